"""What rules cost: which fits, and what the page says of them."""

import pytest

from experiments.defaults import CLUSTERS
from experiments.plan import Setup
from experiments.rules import ROWS, RULES, over_all, plan_rules, write_rules
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
        is_ours = job.method == "Taxarbor" and job.settings == "{}"
        better = 0.1 * job.seed if is_ours else 0.0
        has_rules = job.method in ("Taxarbor", "HMMC")
        reading = {"mean_features": 9.0, "features_per_child": 4.0} if has_rules else {}
        told = {key: value + better for key, value in (ours if is_ours else {}).items()}
        return made.outcome(**reading, **told)

    return make


def test_each_fit_is_planned_with_some_rows_and_with_all(setup):
    jobs = list(plan_rules(setup))
    assert len(set(jobs)) == len(jobs)
    assert {job.max_rows for job in jobs} == {0, 6000}
    assert {job.settings for job in jobs if job.method == "Taxarbor"} == {
        "{}",
        '{"max_features": 5}',
    }
    quick = list(plan_rules(Setup.quick(setup.folder)))
    assert {job.max_rows for job in quick} == {1000}


def test_means_and_what_was_asked_for(tmp_path, setup, made):
    ours = {"adjusted_rand": 0.6, "adjusted_path_sharing": 0.2}
    store = made.fill(tmp_path, plan_rules(setup), outcome(made, **ours))
    jobs = done_jobs(store.read(), setup)
    assert set(jobs["branching"]) == {2, 3, 5}
    jobs = jobs[jobs["branching"] == 2]
    mean = over_all(jobs, RULES, NAMES, "adjusted_rand")
    assert mean == pytest.approx((0.65, 0.05, 2))
    assert over_all(jobs, CLUSTERS, NAMES, "adjusted_rand") == pytest.approx((0.5, 0.0, 2))
    assert over_all(jobs, RULES, [*NAMES, "three"], "adjusted_rand").n_values == 0
    page = tmp_path / "rules.md"
    assert write_rules(store, setup, page) == [page]
    text = page.read_text("utf-8")
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## 6,000 rows of each at most",
        "## All rows",
    ]
    tables = made.tables(text)
    assert [line[0] for line in tables[0][2:]] == [row.told for row in ROWS]
    asked = {line[0]: line[1:] for line in tables[1][2:]}
    assert asked["features per split"] == ["at most 10", "9.0", "yes"]
    assert asked["ARI less Ward's"] == ["at least 0", "+15.00", "yes"]
    assert asked["aPS less Ward's"] == ["at least 0", "-25.00", "**no**"]
    assert asked["ARI less that of the clusters"] == ["at least -1.5", "+15.00", "yes"]
    assert text.count("### Up to 3 children per split") == 2
