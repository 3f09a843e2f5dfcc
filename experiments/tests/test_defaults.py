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
    HALF,
    OURS,
    RIVALS,
    SAMPLES,
    Scores,
    all_datasets,
    describe_samples,
    halve_few,
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
from taxarbor.clusters import GapSplitter

EIGHT = ["Ward", "AL", "HKM", "HKM-D", "HKM-D, 10 starts", "BKM", "KM+Ward", "KM"]


@pytest.fixture
def folder(tmp_path, made):
    folder = tmp_path / "some data"
    folder.mkdir()
    made.data(folder, "one", X_other=made.blobs()[0])
    made.data(folder, "awa_attr", feature_names=made.blobs()[0][0].astype(str))
    made.data(folder, "tiny_vehicle15", X_sift=made.blobs()[0])
    return folder


def test_rivals_and_ours(folder):
    assert [row.label for row in RIVALS] == EIGHT
    assert all(find_method(row.method).family != "ours" for row in RIVALS)
    assert [row.method for row in OURS] == ["Taxarbor", "variant", "HMMC"]
    assert OURS[0].settings == OURS[1].settings == HALF
    found = all_datasets(Setup(folder))
    assert found == ["awa_attr", "one", "tiny_vehicle15", "tiny_vehicle15/X_sift"]
    assert all_datasets(Setup(None)) == ["animals"]


def test_each_group_begins_with_the_default_and_changes_it():
    known = signature(Taxarbor).parameters
    usual = GapSplitter()
    labels = {group.title: group.rows[0].label for group in GROUPS}
    assert labels["starts"] == str(known["n_init"].default)
    assert labels["start of a split"] == f"from the {usual.starts[0]} direction"
    assert (labels["least child in growth"], usual.balance[0]) == ("a tenth of the node", 0.2)
    for group in GROUPS:
        first, *others = group.rows
        assert first[1:] in (CLUSTERS[1:], DEFAULT[1:])
        assert len({row.label for row in group.rows}) == len(group.rows)
        assert all(row.settings.keys() > HALF.keys() for row in others)
        for row in others:  # none is the default under another name
            for name in row.settings.keys() - HALF.keys():
                value = row.settings[name]
                if name in known and row.method in ("variant", "Taxarbor"):
                    assert value != known[name].default
                elif row.method == "variant" and name in ("balance", "starts"):
                    assert value not in (getattr(usual, name), list(usual.starts))
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
    assert {(job.branching, job.scaling, job.max_rows) for job in jobs} == {
        (2, "none", 6000),
        (2, "none", 0),  # for the size of the sample
    }
    assert all('"sample": ' in job.settings for job in jobs)
    rows = (*RIVALS, *OURS, *(row for group in GROUPS for row in group.rows))
    for max_rows, some in ((6000, rows), (0, SAMPLES)):
        for row in some:
            settings = json.dumps(row.settings, sort_keys=True)
            key = ("one", max_rows, row.method, settings, 4)
            mine = [(*j[:1], j.max_rows, j.method, j.settings, j.n_clusters) for j in jobs]
            assert mine.count(key) == 3  # other halves, even where nothing else is random
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
        is_default = (job.method, job.settings) == ("Taxarbor", '{"sample": "half"}')
        return outcome(made, **(ours if is_default else {}))

    (path / "results.jsonl").unlink(missing_ok=True)
    return made.fill(path, plan_defaults(setup), make or plain)


def outcome(made, *seconds, status="done", **measures):
    """Return what a fit to a half might give: every measure, on new rows as told."""
    known = {f"new_{name}": value for name, value in made.outcome().measures.items()}
    new = {f"new_{name}": value for name, value in measures.items()}
    return made.outcome(*seconds, status=status, **(known | new))


def summary(store, setup):
    few = halve_few(setup)
    lines = summarise_defaults(Scores.of(done_jobs(store.read(), few), few)).splitlines()
    return {re.match(r"- ([\w ,-]+)", line)[1]: line for line in lines}


def test_differences_to_the_best_rival(tmp_path, setup, made):
    ours = {"adjusted_shortest_path": 0.53, "adjusted_rand": 0.4, "dendrogram_purity": 1}
    told = summary(results(tmp_path, setup, made, **ours), setup)
    assert told["aSP on held-out rows"] == (
        "- aSP on held-out rows: Taxarbor 53.0 ± 0.0, best other method Ward 50.0 ± 0.0, "
        "difference +3.0 ± 0.0."
    )
    assert told["ARI on held-out rows"].endswith("difference -10.0 ± 0.0.")
    assert told["DP on held-out rows"].endswith("difference +50.0 ± 0.0.")
    assert told["AMI on held-out rows"].endswith("difference +0.0 ± 0.0.")


def test_who_leads_how_steadily_and_how_fast(tmp_path, setup, made):
    """First on one data set, within the standard error on one, behind on one."""
    rival = {"awa_attr": (0.4, 0.4), "awa_pca": (0.5, 0.6), "some_set": (0.61, 0.61)}
    ours = {"awa_attr": (0.5, 0.5), "awa_pca": (0.48, 0.58), "some_set": (0.6, 0.6)}
    times = {"Taxarbor": 3.0, "BKM": 1.5, "Ward": 60.0}
    for spread, verdict in ((0.1, "no more than"), (0.3, "**more than**")):

        def make(job, spread=spread):
            scores = ours if job.method == "Taxarbor" else rival
            slope = {"Taxarbor": spread, "BKM": 0.2}.get(job.method, 0.0)
            return outcome(
                made,
                times.get(job.method, 9.0) if job.dataset == "awa_pca" else 100.0,
                adjusted_shortest_path=scores[job.dataset][job.seed],
                adjusted_rand=0.5 + slope * job.seed,
            )

        told = summary(results(tmp_path, setup, made, make), setup)
        assert (
            "on 2 of 3 (best on 1, behind on some_set)"
            in told["aSP on held-out rows, by data set"]
        )
        line = told[
            "Standard deviation of ARI on held-out rows over seeds, mean over data sets"
        ]
        assert f"Taxarbor {50 * spread:.2f}, BKM 10.00; {verdict} BKM's." in line
        line = told["Seconds of one fit to half of awa_pca, median over seeds"]
        assert "Taxarbor 3.0;" in line
        assert "BKM 1.5 (Taxarbor takes 2.00 times that)" in line
        assert "Ward 60.0 (Taxarbor takes 0.05 times that)" in line
    assert standard_error(Mean(0.5, 0.05, 2)) == 0.05
    assert standard_error(Mean(0.5, 0.0, 1)) == 0.0


def test_the_smallest_sample_that_is_enough(tmp_path, setup, made):
    """Each mean counts, and being above that of all rows costs nothing."""
    lowest = {25: 0.499, 50: 0.4975, 100: 0.4981, 200: 0.5}

    def make(job):
        size = json.loads(job.settings).get("sample")
        measures = {"adjusted_path_sharing": 0.9 if size == 50 else 0.5}
        if size in lowest:
            measures["adjusted_shortest_path"] = lowest[size] + 0.01 * job.seed - 0.005
            measures["adjusted_rand"] = 0.4 if size == 25 else 0.5
        return outcome(made, **measures)

    store = results(tmp_path, setup, made, make)
    text = "\n\n".join(describe_samples(Scores.of(done_jobs(store.read(), setup), setup)))
    (lines,) = made.tables(text)
    sizes = [*(f"{size} rows per cluster" for size in lowest), "all rows of the half"]
    assert [line[0] for line in lines[2:]] == sizes
    assert lines[4][1] == "49.81 ± 0.50"
    assert text.endswith("or above it: 100 rows per cluster.")


@pytest.mark.long
def test_a_rival_without_a_result_is_named(tmp_path, setup, made):
    """A mean over fewer data sets would not compare."""

    def make(job):
        if (job.method, job.dataset) == ("AL", "awa_pca"):
            return outcome(made, status="timed out")
        return outcome(made, adjusted_rand=0.9 if job.method == "AL" else 0.5)

    store = results(tmp_path, setup, made, make)
    line = summary(store, setup)["ARI on held-out rows"]
    assert "best other method Ward 50.0 ± 0.0 (without AL, which lack a result)" in line
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
    means, samples, clusters, whole, agreement = found
    assert means[0] == ["method", "aSP", "aPS", "ARI", "AMI", "DP", "s"]
    assert [line[0] for line in means[2:]] == [row.label for row in (*RIVALS, *OURS)]
    half = "50.0 ± 0.0"
    mine = ["Taxarbor", "60.0 ± 0.0", half, "40.0 ± 0.0", half, half, "1.0"]
    assert means[2 + len(RIVALS)] == mine
    assert means[1 + len(RIVALS)] == ["KM", "-", "-", half, half, "-", "1.0"]
    assert len(samples) == 2 + len(SAMPLES)
    n_others = sum(len(group.rows) - 1 for group in GROUPS)
    assert len(clusters) + len(whole) == 2 * 3 + n_others
    assert clusters[2] == ["default", *[half] * 5]
    assert clusters[3][1:] == ["+0.0 ± 0.0"] * 5
    assert whole[2][:2] == ["default", "60.0 ± 0.0"]
    assert whole[3][1] == "-10.0 ± 0.0"
    assert [line[0] for line in agreement[2:]] == ["1", "2", "4", "6", "12"]
    assert {tuple(line[1:]) for line in agreement[2:]} == {("100.0", "1.0")}
    labels = [line[0] for line in (*clusters, *whole)]
    assert all(
        any(label.startswith(f"{group.title}: ") for label in labels) for group in GROUPS
    )
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
    lines = made.tables(text)[0][2:]
    assert [line[0] for line in lines if "-" in line] == ["KM"]
    assert "nan" not in text
