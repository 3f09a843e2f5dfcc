"""The page on the defaults, from made-up results; at the end a small one from real ones."""

import json
import re
from inspect import signature

import pytest

from experiments import defaults
from experiments.defaults import (
    CLUSTERS,
    DEFAULT,
    GROUPS,
    OURS,
    RIVALS,
    SAMPLES,
    Scores,
    all_datasets,
    describe_samples,
    n_clusters_of,
    plan_defaults,
    standard_error,
    summarise_defaults,
    write_defaults,
)
from experiments.methods import find_method
from experiments.plan import Setup
from experiments.run import run_jobs
from experiments.tables import Mean, done_jobs
from experiments.variants import default_of
from taxarbor import Taxarbor

SEVEN = ["Ward", "AL", "HKM", "HKM-D", "HKM-D, 10 starts", "BKM", "KM+Ward"]
READING = {
    "median_features": 3.0,
    "most_features": 9.0,
    "parent_overlap": 0.125,
}


@pytest.fixture
def folder(tmp_path, made):
    folder = tmp_path / "some data"
    folder.mkdir()
    made.data(folder, "one", X_other=made.blobs()[0])
    made.data(folder, "awa_attr", feature_names=made.blobs()[0][0].astype(str))
    made.data(folder, "tiny_vehicle15", X_sift=made.blobs()[0])
    return folder


def test_rivals_and_ours(folder):
    assert [row.label for row in RIVALS] == SEVEN
    assert all(find_method(row.method).family != "ours" for row in RIVALS)
    assert [row.method for row in OURS] == ["Taxarbor", "Taxarbor", "variant", "HMMC"]
    assert OURS[0].settings == OURS[2].settings == {}
    found = all_datasets(Setup(folder))
    assert found == ["awa_attr", "one", "tiny_vehicle15", "tiny_vehicle15/X_sift"]
    assert all_datasets(Setup(None)) == ["animals"]


def test_each_group_begins_with_the_default_and_changes_it():
    known = signature(Taxarbor).parameters
    told = [row.label for group in GROUPS for row in group.rows if "(default)" in row.label]
    assert told == [group.rows[0].label for group in GROUPS]
    assert told[2] == f"{known['n_init'].default} (default)"
    assert told[4] == f"balance {known['balance'].default} (default)"
    for group in GROUPS:
        first, *others = group.rows
        assert first[1:] in (CLUSTERS[1:], DEFAULT[1:])
        assert len({row.label for row in group.rows}) == len(group.rows)
        assert all(row.settings for row in others)
        for row in others:  # none is the default under another name
            for name, value in row.settings.items():
                if name in known and row.method == "variant":
                    assert value != known[name].default
                elif row.method == "variant" and name == "grow_by":
                    assert value != "gap"
                elif row.method == "variant" and name == "cut_of":
                    assert value > 1
                elif row.method == "variant":
                    assert value != default_of(name)


def test_every_row_is_planned_once_for_each_seed(folder):
    setup = Setup(folder, n_seeds=3)
    jobs = list(plan_defaults(setup))
    assert len(set(jobs)) == len(jobs)
    assert {(job.branching, job.scaling, job.max_rows) for job in jobs} == {(2, "none", 0)}
    for row in (*RIVALS, *OURS, *SAMPLES, *(row for group in GROUPS for row in group.rows)):
        key = ("one", row.method, json.dumps(row.settings, sort_keys=True), 4)
        mine = [j for j in jobs if (j.dataset, j.method, j.settings, j.n_clusters) == key]
        assert len(mine) == (3 if find_method(row.method).is_random else 1)
    read = {job.settings for job in jobs if "max_features" in job.settings}
    assert len(read) == 3
    assert {job.dataset for job in jobs if job.settings in read} == {"awa_attr"}
    assert n_clusters_of(Setup(folder, max_rows=1), "one") == 2  # of one class


@pytest.fixture
def setup(tmp_path, made):
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("awa_attr", "awa_pca", "some_set"):
        made.data(folder, name)
    return Setup(folder, n_seeds=2)


def results(path, setup, made, make=None, **ours):
    """Return results in which all is one half, but for what Taxarbor has by default."""

    def plain(job):
        is_default = (job.method, job.settings) == ("Taxarbor", "{}")
        return made.outcome(**READING, **(ours if is_default else {}))

    (path / "results.jsonl").unlink(missing_ok=True)
    return made.fill(path, plan_defaults(setup), make or plain)


def summary(store, setup):
    lines = summarise_defaults(Scores.of(done_jobs(store.read(), setup), setup)).splitlines()
    return {re.match(r"- ([\w ]+)", line)[1]: line for line in lines}


def test_margins_are_computed(tmp_path, setup, made):
    for asp, ari, verdicts in (
        (0.53, 0.515, ("holds", "holds")),
        (0.519, 0.509, ("**falls short**", "**falls short**")),
        (0.4, 0.515, ("**falls short**", "holds")),
    ):
        ours = {"adjusted_shortest_path": asp, "adjusted_rand": ari, "dendrogram_purity": 1}
        told = summary(results(tmp_path, setup, made, **ours), setup)
        assert told["aSP"] == (
            f"- aSP: Taxarbor {100 * asp:.1f}, the best rival Ward 50.0, difference "
            f"{100 * asp - 50:+.2f}. A margin of 2 points: {verdicts[0]}."
        )
        assert told["ARI"].endswith(f"A margin of 1 point: {verdicts[1]}.")
        assert told["DP"].endswith("difference +50.00. A margin of 1 point: holds.")
        assert told["AMI"].endswith("difference +0.00. A margin of 1 point: **falls short**.")


def test_who_leads_how_steadily_and_how_fast(tmp_path, setup, made):
    """First on one data set, within the standard error on one, behind on one."""
    rival = {"awa_attr": (0.4, 0.4), "awa_pca": (0.5, 0.6), "some_set": (0.61, 0.61)}
    ours = {"awa_attr": (0.5, 0.5), "awa_pca": (0.48, 0.58), "some_set": (0.6, 0.6)}
    times = {"Taxarbor": 3.0, "BKM": 1.5, "Ward": 60.0}
    for spread, verdict in ((0.1, "no more than"), (0.3, "**more than**")):

        def make(job, spread=spread):
            scores = ours if job.method == "Taxarbor" else rival
            slope = {"Taxarbor": spread, "BKM": 0.2}.get(job.method, 0.0)
            return made.outcome(
                times.get(job.method, 9.0) if job.dataset == "awa_pca" else 100.0,
                adjusted_shortest_path=scores[job.dataset][job.seed],
                adjusted_rand=0.5 + slope * job.seed,
            )

        told = summary(results(tmp_path, setup, made, make), setup)
        assert "on 2 of 3 (best on 1, behind on some_set)" in told["aSP by data set"]
        line = told["Standard deviation of ARI over seeds"]
        assert f"Taxarbor {50 * spread:.2f}, BKM 10.00; {verdict} BKM's." in line
        line = told["Seconds of one fit on awa_pca"]
        assert "Taxarbor 3.0;" in line
        assert "BKM 1.5 (Taxarbor takes 2.00 times that)" in line
        assert "Ward 60.0 (Taxarbor takes 0.05 times that)" in line
    assert standard_error(Mean(0.5, 0.05, 2)) == 0.05
    assert standard_error(Mean(0.5, 0.0, 1)) == 0.0


def test_the_smallest_sample_that_is_enough(tmp_path, setup, made):
    """Each mean counts, and being above that of all rows costs nothing."""
    lowest = {150: 0.499, 300: 0.4975, 500: 0.4981, 750: 0.5}

    def make(job):
        size = json.loads(job.settings).get("sample")
        measures = {"adjusted_path_sharing": 0.9 if size == 300 else 0.5}
        if size:
            measures["adjusted_shortest_path"] = lowest[size] + 0.01 * job.seed - 0.005
            measures["adjusted_rand"] = 0.4 if size == 150 else 0.5
        return made.outcome(**READING, **measures)

    store = results(tmp_path, setup, made, make)
    text = "\n\n".join(describe_samples(Scores.of(done_jobs(store.read(), setup), setup)))
    (lines,) = made.tables(text)
    sizes = [*(f"{size} rows per cluster" for size in lowest), "all rows"]
    assert [line[0] for line in lines[2:]] == sizes
    assert lines[4][1] == "49.81 ± 0.50"
    assert text.endswith("has 500 rows per cluster; Taxarbor takes 500.")


@pytest.mark.long
def test_a_rival_without_a_result_is_named(tmp_path, setup, made):
    """A mean over fewer data sets would not compare."""

    def make(job):
        if (job.method, job.dataset) == ("AL", "awa_pca"):
            return made.outcome(status="timed out")
        return made.outcome(adjusted_rand=0.9 if job.method == "AL" else 0.5)

    store = results(tmp_path, setup, made, make)
    line = summary(store, setup)["ARI"]
    assert "the best rival Ward 50.0 (without AL, which lack a result)" in line
    text = write_defaults(store, setup, tmp_path / "page.md")[0].read_text("utf-8")
    assert "- AL on awa_pca, 4 clusters, seed 0: timed out" in text
    assert "| AL | - | - | - | - | - |" in text


@pytest.mark.long
def test_the_page(tmp_path, setup, made):
    ours = {"adjusted_shortest_path": 0.6, "adjusted_rand": 0.4}
    store = results(tmp_path, setup, made, **ours)
    page = tmp_path / "docs" / "defaults.md"
    assert write_defaults(store, setup, page) == [page]
    text = page.read_text(encoding="utf-8")
    found = made.tables(text)
    assert len(found) == 1 + 5 + 1 + 3 * len(GROUPS) + 2
    means, by_asp = found[0], found[1]
    assert means[0] == ["method", "aSP", "aPS", "ARI", "AMI", "DP", "s"]
    assert [line[0] for line in means[2:]] == [row.label for row in (*RIVALS, *OURS)]
    assert means[2 + len(RIVALS)] == ["Taxarbor", "60.0", "50.0", "40.0", "50.0", "50.0", "1.0"]
    assert by_asp[0][1:] == ["awa_attr", "awa_pca", "some_set"]
    assert by_asp[2 + len(RIVALS)] == ["Taxarbor", *["**60.0 ± 0.0**"] * 3]
    assert by_asp[2] == ["Ward", "50.0", "50.0", "50.0"]  # one seed: no spread
    moves = found[7]
    assert moves[2][0] == GROUPS[0].rows[0].label
    assert moves[3][:4] == [
        "as many as clusters",
        "50.0 (+0.0)",
        "50.0 (+0.0)",
        "50.0 (+0.0)",
    ]
    assert all(f"### {group.title}" in text for group in GROUPS)
    everywhere, sparser = found[-2:]
    reading = ["3.0", "9.0", "5", "12.5 ± 0.0"]
    assert everywhere[2] == ["awa_attr", *reading]
    names = ["default", "novelty = 0", *(f"max_features = {most}" for most in (3, 5, 10))]
    assert [line[0] for line in sparser[2:]] == names
    assert f"{len(set(plan_defaults(setup))):,} fits" in text
    store.add(made.job("KM", dataset="awa_pca"), made.outcome(status="timed out"))
    store.add(made.job("KM", dataset="awa_attr"), made.outcome())
    write_defaults(store, setup, page)  # fits of the other page do not count
    assert page.read_text(encoding="utf-8") == text
    empty = write_defaults(made.fill(tmp_path / "empty", []), setup, page)[0]
    assert "There are no results." in empty.read_text("utf-8")


@pytest.mark.long
def test_a_small_one_from_real_fits(tmp_path, made, monkeypatch):
    few = (GROUPS[0]._replace(rows=GROUPS[0].rows[:2]),)
    monkeypatch.setattr(defaults, "GROUPS", few)
    folder = made.data(tmp_path, "some")
    made.data(tmp_path, "awa_attr")
    setup = Setup(folder, n_seeds=2)
    store = run_jobs(plan_defaults(setup), folder, tmp_path / "out", n_workers=2)
    found = store.read()
    assert set(found["status"]) == {"done"}
    assert {"KM+Ward", "variant", "Taxarbor", "HMMC"} <= set(found["method"])
    known = json.loads((tmp_path / "out" / "data.json").read_text("utf-8"))
    assert known.keys() == {"some", "awa_attr"}
    text = write_defaults(store, setup, tmp_path / "page.md")[0].read_text("utf-8")
    assert all("-" not in line for line in made.tables(text)[0][2:])
    assert "nan" not in text
