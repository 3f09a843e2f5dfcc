import math

import pytest

from taxarbor.bench import Setup
from taxarbor.bench._plan import SPARSE, plan_sparsity, plan_sweep, plan_table
from taxarbor.bench._select import spread_out
from taxarbor.bench._sparsity import describe_sparsity, zero_shares


@pytest.fixture
def setup(tmp_path, made):
    for name in ("one", "a|b"):
        made.data(tmp_path, name)
    return Setup(tmp_path, n_seeds=2)


def share(job):
    return SPARSE.index(job.method) / 10 + job.seed / 100


def test_only_full_strength_counts(setup, made, markdown):
    wanted = set(plan_sparsity(setup))
    store = made.fill(
        setup.folder,
        [*plan_table(setup), *plan_sweep(setup)],
        lambda job: made.outcome(zero_weights=share(job) if job in wanted else 0.99),
    )
    jobs = spread_out(store.read(), setup)
    shares = zero_shares(jobs, setup)
    assert list(shares) == ["a|b", "one"]
    for found in shares.values():
        for n, name in enumerate(SPARSE):
            assert found[name].mean == pytest.approx(n / 10 + 0.005)
            assert found[name].spread == pytest.approx(0.005)
    ((heading, _, *lines),) = markdown.check(describe_sparsity(jobs, setup))
    assert heading == ["zero weights, %", "a\\|b", "one"]
    assert [line[0] for line in lines] == list(SPARSE)
    assert lines[1][1:] == ["10.50 ± 0.50"] * 2


def test_missing_results(setup, made, markdown):
    jobs = spread_out(made.fill(setup.folder, []).read(), setup)
    assert all(math.isnan(one["HMMC"].mean) for one in zero_shares(jobs, setup).values())
    ((_, _, *lines),) = markdown.check(describe_sparsity(jobs, setup))
    assert {cell for line in lines for cell in line[1:]} == {"-"}
