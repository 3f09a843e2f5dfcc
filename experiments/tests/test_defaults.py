"""The page on the defaults, from made-up results; at the end a small one from real ones."""

import json
import re

import pytest

from taxarbor.bench import Setup, _ablation, _defaults, run_experiment, write_pages
from taxarbor.bench._ablation import GROUPS, OURS, RIVALS, plan_defaults
from taxarbor.bench._defaults import Scores, standard_error, summarise_defaults
from taxarbor.bench._select import Mean, spread_out

READING = {
    "median_features": 3.0,
    "most_features": 9.0,
    "mean_fidelity": 0.97,
    "least_fidelity": 0.9,
    "parent_overlap": 0.125,
}


@pytest.fixture
def setup(tmp_path, made):
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("awa_attr", "awa_pca", "some_set"):
        made.data(folder, name)
    return Setup(folder, n_seeds=2)


def results(path, setup, made, make=None, **ours):
    """Return results in which all is one half, but for what HMMC at its defaults has."""

    def usual(job):
        is_default = job.method == "HMMC" and job.settings == "{}"
        return made.outcome(**READING, **(ours if is_default else {}))

    return made.fill(path, plan_defaults(setup), make or usual)


def summary(store, setup):
    lines = summarise_defaults(Scores.of(spread_out(store.read(), setup), setup)).splitlines()
    return {re.match(r"- ([\w ]+)", line)[1]: line for line in lines}


@pytest.mark.parametrize(
    ("asp", "ari", "verdicts"),
    [
        (0.53, 0.515, {"aSP": "holds", "ARI": "holds"}),
        (0.519, 0.515, {"aSP": "**falls short**", "ARI": "holds"}),
        (0.53, 0.509, {"aSP": "holds", "ARI": "**falls short**"}),
        (0.4, 0.4, {"aSP": "**falls short**", "ARI": "**falls short**"}),
    ],
)
def test_margins_are_computed(tmp_path, setup, made, asp, ari, verdicts):
    store = results(
        tmp_path,
        setup,
        made,
        adjusted_shortest_path=asp,
        adjusted_rand=ari,
        dendrogram_purity=1,
    )
    told = summary(store, setup)
    assert told["aSP"] == (
        f"- aSP: HMMC {100 * asp:.1f}, the best rival Ward 50.0, difference "
        f"{100 * asp - 50:+.2f}. A margin of 2 points: {verdicts['aSP']}."
    )
    assert told["ARI"].endswith(f"A margin of 1 point: {verdicts['ARI']}.")
    assert told["DP"].endswith("difference +50.00. A margin of 1 point: holds.")
    assert told["AMI"].endswith("difference +0.00. A margin of 1 point: **falls short**.")


def test_who_leads_where(tmp_path, setup, made):
    """First on one, within the standard error on one, behind on one."""
    rival = {"awa_attr": (0.4, 0.4), "awa_pca": (0.5, 0.6), "some_set": (0.61, 0.61)}
    ours = {"awa_attr": (0.5, 0.5), "awa_pca": (0.48, 0.58), "some_set": (0.6, 0.6)}

    def make(job):
        scores = ours if job.method == "HMMC" else rival
        return made.outcome(adjusted_shortest_path=scores[job.dataset][job.seed])

    told = summary(results(tmp_path, setup, made, make), setup)["aSP by data set"]
    assert "on 2 of 3 (best on 1, behind on some_set)" in told
    assert standard_error(Mean(0.5, 0.05, 2)) == 0.05
    assert standard_error(Mean(0.5, 0.0, 1)) == 0.0


@pytest.mark.parametrize(("ours", "told"), [(0.1, "no more than"), (0.3, "**more than**")])
def test_the_spread_over_seeds(tmp_path, setup, made, ours, told):
    def make(job):
        spread = {"HMMC": ours, "BKM": 0.2}.get(job.method, 0.0)
        return made.outcome(adjusted_rand=0.5 + spread * job.seed)

    line = summary(results(tmp_path, setup, made, make), setup)[
        "Standard deviation of ARI over seeds"
    ]
    assert f"HMMC {50 * ours:.2f}, BKM 10.00; {told} BKM's." in line


def test_seconds(tmp_path, setup, made):
    def make(job):
        if job.dataset != "awa_pca":
            return made.outcome(100.0)
        return made.outcome({"HMMC": 3.0, "BKM": 1.5, "Ward": 60.0}.get(job.method, 9.0))

    line = summary(results(tmp_path, setup, made, make), setup)["Seconds of one fit on awa_pca"]
    assert "HMMC 3.0;" in line
    assert "BKM 1.5 (HMMC takes 2.00 times that)" in line
    assert "Ward 60.0 (HMMC takes 0.05 times that)" in line


def test_a_rival_without_a_result_is_named(tmp_path, setup, made):
    """A mean over fewer data sets would not compare."""

    def make(job):
        if (job.method, job.dataset) == ("AL", "awa_pca"):
            return made.outcome(status="timed out")
        return made.outcome(adjusted_rand=0.9 if job.method == "AL" else 0.5)

    store = results(tmp_path, setup, made, make)
    line = summary(store, setup)["ARI"]
    assert "the best rival Ward 50.0 (without AL, which lack a result)" in line
    text = write_pages(("defaults",), store, setup, tmp_path / "page.md")[0].read_text("utf-8")
    assert "- AL on awa_pca, 4 clusters, seed 0: timed out" in text
    assert "| AL | 50.0 | 50.0 | - |" not in text
    assert "| AL | - | - | - | - | - |" in text


def test_the_page(tmp_path, setup, made, markdown):
    ours = {"adjusted_shortest_path": 0.6, "adjusted_rand": 0.4}
    store = results(tmp_path, setup, made, **ours)
    page = tmp_path / "docs" / "defaults.md"
    assert write_pages(("defaults",), store, setup, page) == [page]
    text = page.read_text(encoding="utf-8")
    found = markdown.check(text)
    n_groups = sum(3 * len(group.multiples) for group in GROUPS)
    assert len(found) == 1 + 5 + n_groups + 2
    means, by_asp = found[0], found[1]
    assert means[0] == ["method", "aSP", "aPS", "ARI", "AMI", "DP", "s"]
    assert [line[0] for line in means[2:]] == [row.told for row in (*RIVALS, *OURS)]
    assert means[2 + len(RIVALS)] == ["HMMC", "60.0", "50.0", "40.0", "50.0", "50.0", "1.0"]
    assert by_asp[0][1:] == ["awa_attr", "awa_pca", "some_set"]
    assert by_asp[2 + len(RIVALS)] == ["HMMC", *["**60.0 ± 0.0**"] * 3]
    assert by_asp[2] == ["Ward", "50.0", "50.0", "50.0"]  # one seed: no spread
    moves = found[6]
    assert moves[2][0] == GROUPS[0].rows[0].told
    assert moves[3] == [
        "no moves",
        "50.0 (-10.0)",
        "50.0 (+0.0)",
        "50.0 (+10.0)",
        *moves[3][4:],
    ]
    for group in GROUPS:
        assert f"### {group.title}" in text
    everywhere, sparser = found[-2:]
    assert everywhere[2] == [
        "awa_attr",
        "3.0",
        "9.0",
        "5",
        "97.0 ± 0.0",
        "90.0 ± 0.0",
        "12.5 ± 0.0",
    ]
    assert [line[0] for line in sparser[2:]] == [
        "default",
        "beta = 0",
        *(f"max_features = {most}" for most in (3, 5, 10)),
    ]
    assert f"{len(set(plan_defaults(setup))):,} fits" in text
    assert "one thread, with two fits side by side" in " ".join(text.split())


def test_fits_of_other_parts_do_not_count(tmp_path, setup, made):
    store = results(tmp_path, setup, made)
    page = tmp_path / "page.md"
    before = write_pages(("defaults",), store, setup, page)[0].read_text("utf-8")
    store.add(made.job("KM", dataset="awa_pca"), made.outcome(status="timed out"))
    store.add(made.job("KM", dataset="awa_attr"), made.outcome())
    assert write_pages(("defaults",), store, setup, page)[0].read_text("utf-8") == before


def test_data_without_a_tree(tmp_path, made, markdown):
    made.data(tmp_path, "some", truth=False)
    setup = Setup(tmp_path, n_seeds=1)
    store = made.fill(tmp_path, plan_defaults(setup), lambda _: made.outcome(truth=False))
    text = write_pages(("defaults",), store, setup, tmp_path / "page.md")[0].read_text("utf-8")
    found = markdown.check(text)
    assert found[0][0] == ["method", "ARI", "AMI", "DP", "s"]
    assert "### aSP" not in text
    assert "- aSP" not in text
    assert "Standard deviation of ARI" not in text  # of one seed
    assert "nan" not in text
    assert found[-2][2] == ["some", *["-"] * 6]


def test_without_results_there_is_still_a_page(tmp_path, setup, made):
    store = made.fill(tmp_path / "empty", [])
    text = write_pages(("defaults",), store, setup, tmp_path / "page.md")[0].read_text("utf-8")
    assert "There are no results." in text


def test_a_small_one_from_real_fits(tmp_path, made, markdown, monkeypatch):
    few = (GROUPS[0]._replace(rows=GROUPS[0].rows[:2]),)
    for module in (_ablation, _defaults):
        monkeypatch.setattr(module, "GROUPS", few)
    folder = tmp_path / "data"
    folder.mkdir()
    made.data(folder, "some")
    setup = Setup(folder, n_seeds=2)
    store = run_experiment(("defaults",), setup, tmp_path / "out")
    found = store.read()
    assert set(found["status"]) == {"done"}
    assert {"KM+Ward", "variant"} <= set(found["method"])
    assert json.loads((tmp_path / "out" / "data.json").read_text("utf-8")).keys() == {"some"}
    told = []
    run_experiment(("defaults",), setup, tmp_path / "out", observer=told.append)
    assert [state.n_jobs for state in told] == [0]  # nothing is left to do
    text = write_pages(("defaults",), store, setup, tmp_path / "page.md")[0].read_text("utf-8")
    tables = markdown.check(text)
    assert all("-" not in line for line in tables[0][2:])


def test_data_beyond_the_papers_is_remembered(tmp_path, made, monkeypatch):
    """So that results of other data of the same name are not mixed with it."""
    monkeypatch.setattr(_ablation, "GROUPS", ())
    monkeypatch.setattr(_ablation, "RIVALS", RIVALS[:1])
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("awa_attr", "some"):
        made.data(folder, name)
    run_experiment(("defaults",), Setup(folder, n_seeds=1), tmp_path / "out")
    known = json.loads((tmp_path / "out" / "data.json").read_text("utf-8"))
    assert set(known) == {"awa_attr", "some"}
