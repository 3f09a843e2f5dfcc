"""What rules cost: which fits, and what the page says of them."""

from dataclasses import replace

import pytest

from experiments.defaults import Scores
from experiments.methods import find_method
from experiments.plan import Setup
from experiments.rules import ROWS, plan_rules, write_rules
from experiments.run import run_jobs
from experiments.tables import done_jobs

NAMES = ["one", "two"]


@pytest.fixture
def setup(tmp_path, made):
    folder = tmp_path / "data"
    folder.mkdir()
    for name in NAMES:
        made.data(folder, name)
    return Setup(folder, n_seeds=2)


def outcome(made, **ours):
    """Return results in which all is one half, but for what Taxarbor has."""

    def make(job):
        is_ours = job.method == "Taxarbor" and "max_features" not in job.settings
        better = 0.1 * job.seed if is_ours else 0.0
        reading = {"mean_features": 9.0, "path_features": 40.0}
        values = made.outcome().measures
        values |= {f"new_{name}": value for name, value in values.items()}
        values |= {key: value + better for key, value in (ours if is_ours else {}).items()}
        has_rules = find_method(job.method).family == "ours" and job.method != "variant"
        return made.outcome(**values, **(reading if has_rules else {}))

    return make


def test_half_of_the_rows_is_fitted(setup):
    jobs = list(plan_rules(setup))
    assert len(set(jobs)) == len(jobs)
    assert {job.max_rows for job in jobs} == {6000}
    assert all('"sample": "half"' in job.settings for job in jobs)
    assert {job.seed for job in jobs if job.method == "Ward"} == {0, 1}  # of other halves
    assert {job.branching for job in jobs} == {2, 3, 5}
    assert {job.max_rows for job in plan_rules(Setup.quick(setup.folder))} == {1000}


def test_means_and_differences(tmp_path, setup, made):
    ours = {"new_adjusted_rand": 0.6, "adjusted_rand": 0.7, "new_adjusted_path_sharing": 0.2}
    store = made.fill(tmp_path, plan_rules(setup), outcome(made, **ours))
    scores = Scores.of(done_jobs(store.read(), replace(setup, max_rows=6000)), setup)
    mean = scores.over_all(ROWS[0], "new_adjusted_rand")
    assert mean == pytest.approx((0.65, 0.05, 2))
    assert scores.over_all(ROWS[2], "new_adjusted_rand") == pytest.approx((0.5, 0.0, 2))
    more = scores._replace(datasets=(*NAMES, "three"))
    with pytest.raises(ValueError, match="three"):
        more.over_all(ROWS[0], "new_adjusted_rand")
    page = tmp_path / "rules.md"
    assert write_rules(store, setup, page) == [page]
    text = page.read_text("utf-8")
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## New rows",
        "## Rows of the fit",
        "## New rows, up to 3 children per split",
        "## New rows, up to 5 children per split",
    ]
    tables = made.tables(text)
    assert [line[0] for line in tables[0][2:]] == [row.label for row in ROWS]
    assert tables[0][2][3] == "65.0 ± 5.0"
    assert tables[0][2][-2:] == ["9.0 ± 0.0", "40.0 ± 0.0"]
    assert tables[0][4][-2:] == ["-", "-"]
    differences = [line[2:4] for line in tables[1][2:]]
    assert differences == [["-25.00", "+15.00"]] * 3
    assert tables[7][2][3] == "75.0 ± 5.0"


@pytest.mark.long
def test_a_small_one_from_real_fits(tmp_path, setup):
    setup = replace(setup, n_seeds=1)
    store = run_jobs(plan_rules(setup), setup.folder, tmp_path / "out", n_workers=2)
    assert set(store.read()["status"]) == {"done"}
    text = write_rules(store, setup, tmp_path / "page.md")[0].read_text("utf-8")
    assert "nan" not in text
