import numpy as np
import pytest

from taxarbor.bench import Setup
from taxarbor.bench._findings import describe_differences, describe_heights, describe_ranks
from taxarbor.bench._plan import plan_sweep, plan_table
from taxarbor.bench._published import PUBLISHED
from taxarbor.bench._select import spread_out


@pytest.fixture
def setup(tmp_path, made):
    made.data(tmp_path, "awa_attr")
    return Setup(tmp_path, n_seeds=2, strengths=(1.0,))


def results(setup, made, make, plan=plan_table):
    return spread_out(made.fill(setup.folder, plan(setup), make).read(), setup)


def test_how_much_of_sp_is_the_shape(setup, made, markdown):
    rng = np.random.default_rng(0)
    jobs = list(plan_table(setup))
    drawn = {job: rng.random(3) for job in jobs}
    heights = {job: 4.0 + job.seed for job in jobs}

    def make(job):
        sp, chance, adjusted = drawn[job]
        return made.outcome(
            shortest_path=sp,
            chance_shortest_path=chance,
            adjusted_rand=adjusted,
            height=heights[job],
        )

    text = describe_heights(results(setup, made, make), setup)
    ((_, _, line),) = markdown.check(text)
    values = np.array([drawn[job] for job in jobs])
    assert line[0] == "AWA-ATTR"
    assert line[1] == str(len(jobs))
    assert line[2] == f"{np.corrcoef(values[:, 0], values[:, 1])[0, 1]:.3f}"
    assert line[3] == f"{np.corrcoef(values[:, 0], values[:, 2])[0, 1]:.3f}"
    ours = {
        seed: [drawn[job][0] for job in jobs if job.method[:4] == "HMMC" and job.seed == seed]
        for seed in (0, 1)
    }
    assert line[4] == ", ".join(f"{4 + s}: {100 * np.mean(v):.1f}" for s, v in ours.items())


def test_trees_that_are_all_the_same_have_no_correlation(setup, made, markdown):
    ((_, _, line),) = markdown.check(
        describe_heights(results(setup, made, lambda _: made.outcome()), setup)
    )
    assert line[2:4] == ["-", "-"]


def test_too_few_trees_are_not_told(setup, made, markdown):
    jobs = results(setup, made, lambda job: made.outcome() if job.method == "AL" else None)
    ((_, _, *lines),) = markdown.check(describe_heights(jobs, setup))
    assert not lines


@pytest.mark.parametrize(
    ("ours", "told"),
    [
        (0.9, "HMMC 90.0 (1 of 13); Ward 80.0"),
        (0.75, "HMMC 75.0 (2 of 13); Ward 80.0"),
        (0.1, "HMMC 10.0 (13 of 13); Ward 80.0"),
        (0.8, "HMMC 80.0 (1 of 13); Ward 80.0"),
    ],
)
def test_ranks(setup, made, markdown, ours, told):
    others = {"HMMC": ours, "Ward": 0.8, "HMMC-G": 0.99}

    def make(job):
        return made.outcome(adjusted_rand=others.get(job.method, 0.5))

    ((heading, _, best, default),) = markdown.check(
        describe_ranks(results(setup, made, make), setup)
    )
    place = heading.index("ARI")
    assert best[0] == "AWA-ATTR, best"
    assert best[place] == default[place] == told


def test_ranks_of_hmmc_alone_or_missing(setup, made, markdown):
    def alone(job):
        return made.outcome() if job.method == "HMMC" else None

    ((_, _, best, _),) = markdown.check(describe_ranks(results(setup, made, alone), setup))
    assert set(best[1:]) == {"HMMC 50.0 (1 of 1)"}


def test_ranks_without_hmmc_or_tree(tmp_path, made, markdown):
    made.data(tmp_path, "some", truth=False)
    setup = Setup(tmp_path, n_seeds=1, strengths=(1.0,))

    def make(job):
        return None if job.method == "HMMC" else made.outcome(truth=False)

    ((_, _, best, default),) = markdown.check(describe_ranks(results(setup, made, make), setup))
    assert set(best[1:] + default[1:]) == {""}


def test_values_far_from_the_papers_are_listed(setup, made, markdown):
    def make(job):
        printed = PUBLISHED.get((job.method, "awa_attr"))
        if printed is None:
            return made.outcome()
        sp = printed.shortest_path + {"KM": 5.5, "SC": -4.5, "AL": -6.0}.get(job.method, 0.0)
        return made.outcome(
            shortest_path=sp / 100,
            path_sharing=printed.path_sharing / 100,
            rand=printed.rand / 100,
        )

    ((_, _, *lines),) = markdown.check(describe_differences(results(setup, made, make), setup))
    assert [line[:4] for line in lines] == [
        ["KM", "AWA-ATTR", "SP", "77.95"],
        ["AL", "AWA-ATTR", "SP", "74.55"],
    ]
    assert lines[0][4] == "83.45 ± 0.00"


def test_other_shapes_do_not_matter(setup, made, markdown):
    jobs = results(setup, made, lambda _: made.outcome(), plan_sweep)
    wide = jobs[(jobs["n_clusters"] != 4) | (jobs["branching"] != 2)]
    for describe in (describe_heights, describe_ranks, describe_differences):
        ((_, _, *lines),) = markdown.check(describe(wide, setup))
        assert not lines


def test_what_the_papers_sp_takes_at_the_shape_of_our_trees(tmp_path, made, markdown):
    made.data(tmp_path, "awa_attr")
    setup = Setup(tmp_path, n_seeds=1, strengths=(1.0,))
    outcome = made.outcome(
        shortest_path=0.93, chance_shortest_path=0.92, adjusted_shortest_path=0.125
    )
    store = made.fill(tmp_path, plan_table(setup), lambda _: outcome)
    ((_, _, line),) = markdown.check(describe_heights(spread_out(store.read(), setup), setup))
    # The paper has 94.40: 1 - 0.056 / 0.08.
    assert line[-1] == "12.5, 30.0"
