import math

import pytest

from taxarbor.bench import METHODS, Setup
from taxarbor.bench._plan import plan_table
from taxarbor.bench._select import spread_out
from taxarbor.bench._table import (
    corrected_measures,
    describe_tables,
    median_seconds,
    papers_measures,
    score,
    title,
)


@pytest.fixture
def setup(tmp_path, made):
    made.data(tmp_path, "awa_attr")
    return Setup(tmp_path, n_seeds=2)


def results(setup, made, make):
    return spread_out(made.fill(setup.folder, plan_table(setup), make).read(), setup)


def by_method(markdown, text):
    """Return the cells of a table, by method and heading."""
    ((heading, _, *lines),) = markdown.check(text)
    assert len(set(heading)) == len(heading)
    return {line[0]: dict(zip(heading, line, strict=True)) for line in lines}


def test_both_protocols_stand_beside_what_was_published(setup, made, markdown):
    def make(job):
        sp = 0.875 + 0.0625 * job.seed if job.settings != "{}" else 0.25
        return made.outcome(
            2.0 + job.seed if job.settings != "{}" else 0.5,
            shortest_path=sp,
            chance_shortest_path=sp / 2,
        )

    jobs = results(setup, made, make)
    found = by_method(markdown, papers_measures(jobs, "awa_attr"))
    assert list(found) == list(METHODS)
    line = found["HMMC"]
    assert line["SP paper"] == "94.40"
    assert line["SP best"] == "90.62 ± 3.12"
    assert line["SP default"] == "25.00 ± 0.00"
    assert line["SP best, shuffled"] == "45.31 ± 1.56"
    assert (line["PS paper"], line["RI paper"]) == ("91.03", "95.96")
    assert (line["s paper"], line["s best"], line["s default"]) == ("1,986.9", "2.5", "0.500")
    assert found["Ward"]["SP paper"] == found["Ward"]["s paper"] == "-"
    assert found["AL"]["SP best"] == found["AL"]["SP default"] == "25.00"  # one setting, seed
    assert found["AL"]["s best"] == found["AL"]["s default"] == "0.500"


def test_each_measure_chooses_for_itself(setup, made):
    def make(job):
        strong = '"alpha": 1.0, "balance": [0.9, 1.1], "beta": 1.0' in job.settings
        return made.outcome(
            shortest_path=0.9 if strong else 0.1, path_sharing=0.1 if strong else 0.9
        )

    jobs = results(setup, made, make)
    assert score(jobs, "HMMC", "best", "shortest_path").mean == pytest.approx(0.9)
    assert score(jobs, "HMMC", "best", "path_sharing").mean == pytest.approx(0.9)


def test_corrected_measures_and_shapes(setup, made, markdown):
    def make(job):
        best = '"alpha": 0.1,' in job.settings
        return made.outcome(
            shortest_path=0.5 + best / 4, height=9.0 if best else 5.0, adjusted_rand=0.125
        )

    found = by_method(markdown, corrected_measures(results(setup, made, make)))
    assert found["HMMC"]["height, best SP"] == "9.0"
    assert found["HMMC"]["height, default"] == "5.0"
    assert found["HMMC"]["ARI best"] == "12.50 ± 0.00"
    assert found["HMMC"]["MB"] == "1"


def test_missing_methods_have_dashes(setup, made, markdown):
    def make(job):
        return None if job.method in {"SC", "AL"} else made.outcome()

    jobs = results(setup, made, make)
    for text in (papers_measures(jobs, "awa_attr"), corrected_measures(jobs)):
        found = by_method(markdown, text)
        for name in ("SC", "AL"):
            ours = [cell for key, cell in found[name].items() if key.split()[-1] != "paper"]
            assert set(ours[1:]) == {"-"}
    assert math.isnan(median_seconds(jobs, "SC", "best"))
    assert math.isnan(median_seconds(jobs, "SC", "default"))


def test_without_a_true_tree(tmp_path, made, markdown):
    made.data(tmp_path, "some", truth=False)
    setup = Setup(tmp_path, n_seeds=1)
    jobs = results(setup, made, lambda _: made.outcome(truth=False, rand=0.75))
    heading, papers, corrected = describe_tables(jobs, setup)
    assert heading.startswith("### some\n\n24 rows x 5 features, 4 classes")
    found = by_method(markdown, papers)
    assert found["HMMC"]["RI best"] == "75.00"
    assert not any(column.startswith(("SP", "PS", "s paper")) for column in found["HMMC"])
    assert by_method(markdown, corrected)["HMMC"]["ARI best"] == "50.00"


def test_only_trees_of_the_right_size_are_in_the_table(setup, made, markdown):
    store = made.fill(setup.folder, [made.job(dataset="awa_attr")])
    store.add(made.job(dataset="awa_attr", n_clusters=6), made.outcome(rand=1.0))
    store.add(made.job(dataset="awa_attr", branching=3), made.outcome(rand=1.0))
    _, papers, _ = describe_tables(spread_out(store.read(), setup), setup)
    assert by_method(markdown, papers)["HMMC"]["RI default"] == "50.00"


def test_data_without_results_is_not_told(setup, made):
    jobs = spread_out(made.fill(setup.folder, []).read(), setup)
    assert not list(describe_tables(jobs, setup))


def test_titles():
    assert title("awa_attr") == "awa_attr: for AWA-ATTR"
    assert title("animals") == "animals"
