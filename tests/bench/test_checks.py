import pytest

from taxarbor.bench import METHODS, Setup
from taxarbor.bench._checks import describe_checks, find_checks
from taxarbor.bench._plan import plan_sparsity, plan_table
from taxarbor.bench._published import PUBLISHED
from taxarbor.bench._select import spread_out

ATTRIBUTES, VEHICLES = "awa_attr", "tiny_vehicle15/X_sift"
GOOD = {
    "shortest_path": 0.96,
    "path_sharing": 0.95,
    "rand": 0.97,
    "zero_weights": 0.9,
    "seconds": 0.1,
}
BAD = {
    "shortest_path": 0.5,
    "path_sharing": 0.5,
    "rand": 0.5,
    "zero_weights": 0.1,
    "seconds": 9.0,
}
OTHERS = {
    "shortest_path": 0.8,
    "path_sharing": 0.8,
    "rand": 0.8,
    "zero_weights": 0.4,
    "seconds": 1.0,
}


@pytest.fixture
def setup(tmp_path, made):
    made.data(tmp_path, "awa_attr")
    made.data(tmp_path, "tiny_vehicle15", X_sift=made.blobs()[0])
    return Setup(tmp_path, n_seeds=2, strengths=(1e-4, 1.0))


def results(setup, made, ours, others=OTHERS, *, left_out=()):
    def make(job):
        if job.method in left_out:
            return None
        return made.outcome(**(ours if job.method == "HMMC" else others))

    return spread_out(made.fill(setup.folder, plan_table(setup), make).read(), setup)


def told(jobs, setup):
    return {(one.what, one.dataset): one for one in find_checks(jobs, setup)}


def test_every_hope_is_checked(setup, made):
    found = told(results(setup, made, GOOD), setup)
    both = [
        "SP above every baseline's (the best: KM)",
        "PS at least HKM-D's",
        "RI at least HKM-D's",
        "zero weights above HMMC-G's",
        "zero weights above HMMC-E's",
        "seconds, as a multiple of HKM-D's with one start",
    ]
    attributes = [
        "SP at least the paper's",
        "PS at least the paper's",
        "RI at least the paper's",
        "times faster than the paper's",
    ]
    assert set(found) == {
        *((what, name) for what in both for name in ("AWA-ATTR", "VEHICLE")),
        *((what, "AWA-ATTR") for what in attributes),
    }


@pytest.mark.parametrize(("ours", "holds"), [(GOOD, True), (BAD, False)])
def test_all_hold_or_none_does(setup, made, markdown, ours, holds):
    jobs = results(setup, made, ours)
    assert {one.holds for one in find_checks(jobs, setup)} == {holds}
    ((heading, _, *lines),) = markdown.check(describe_checks(jobs, setup))
    assert heading[-1] == "holds"
    assert {line[-1] for line in lines} == {"yes" if holds else "**no**"}
    assert len(lines) == 16


def test_what_is_asked_and_what_came(setup, made):
    found = told(results(setup, made, GOOD), setup)
    one = found["SP at least the paper's", "AWA-ATTR"]
    assert (one.asked, one.got) == ("≥ 94.40", "96.00 ± 0.00")
    one = found["times faster than the paper's", "AWA-ATTR"]
    seconds = PUBLISHED["HMMC", ATTRIBUTES].seconds
    assert (one.asked, one.got) == ("≥ 2,000", f"{seconds / 0.1:,.0f} (0.100 s)")
    one = found["seconds, as a multiple of HKM-D's with one start", "VEHICLE"]
    assert (one.asked, one.got) == ("≤ 2", "0.10 (0.100 and 1.0 s)")


def test_equal_is_not_above(setup, made):
    """But at least."""
    found = told(results(setup, made, OTHERS, OTHERS), setup)
    for (what, _), one in found.items():
        if "above" in what:
            assert not one.holds
        if "at least HKM-D's" in what:
            assert one.holds


def test_the_best_baseline_is_named_and_our_variants_are_none(setup, made):
    def make(job):
        high = {"HMMC": 0.9, "Ward": 0.85, "HMMC-G": 0.99}.get(job.method, 0.5)
        return made.outcome(shortest_path=high)

    jobs = spread_out(made.fill(setup.folder, plan_table(setup), make).read(), setup)
    found = [one for (what, _), one in told(jobs, setup).items() if "baseline" in what]
    assert [one.what for one in found] == ["SP above every baseline's (the best: Ward)"] * 2
    assert all(one.holds and one.asked == "> 85.00" for one in found)


def test_labels_choose_for_us_and_for_others(setup, made):
    """The best over the grid counts, not the default."""

    def make(job):
        return made.outcome(rand=0.1 if job.settings == "{}" else 0.99)

    jobs = spread_out(made.fill(setup.folder, plan_table(setup), make).read(), setup)
    assert told(jobs, setup)["RI at least the paper's", "AWA-ATTR"].holds


def test_what_has_no_result_is_not_checked(setup, made, markdown):
    everyone = set(METHODS) - {"HMMC"}
    jobs = results(setup, made, GOOD, left_out=everyone)
    whats = {what for what, _ in told(jobs, setup)}
    assert whats == {
        "SP at least the paper's",
        "PS at least the paper's",
        "RI at least the paper's",
        "times faster than the paper's",
    }
    markdown.check(describe_checks(jobs, setup))
    jobs = results(setup, made, GOOD, left_out={"HKM-D", "HMMC-E"})
    assert not [what for what, _ in told(jobs, setup) if "HMMC-E" in what]


def test_without_hmmc_there_is_nothing_to_check(tmp_path, setup, made, markdown):
    jobs = results(setup, made, GOOD, left_out={"HMMC"})
    assert not told(jobs, setup)
    ((_, _, *lines),) = markdown.check(describe_checks(jobs, setup))
    assert not lines


def test_results_of_data_that_is_gone_do_not_matter(tmp_path, setup, made):
    jobs = results(setup, made, GOOD)
    for path in tmp_path.glob("awa_attr*"):
        path.unlink()
    assert {name for _, name in told(jobs, Setup(tmp_path, n_seeds=2))} == {"VEHICLE"}


def test_sparsity_alone_is_no_table(setup, made):
    store = made.fill(setup.folder, plan_sparsity(setup), lambda _: made.outcome(**GOOD))
    found = told(spread_out(store.read(), setup), setup)
    assert not [what for what, _ in found if "baseline" in what]
