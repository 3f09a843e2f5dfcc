"""The page from made-up results: nothing is fitted but the one tree that is drawn."""

import platform
import re
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

from experiments import run
from experiments.data import SCALINGS, list_datasets
from experiments.methods import METHODS
from experiments.plan import Setup, plan_results, plan_scalings, plan_sweep, plan_table
from experiments.results import (
    compare_methods,
    describe_heights,
    describe_ranks,
    describe_scalings,
    write_results,
)
from experiments.run import machine
from experiments.tables import score

FIGURES = {"heights", "sweep-SP", "sweep-aSP", "tree"}


@pytest.fixture
def awa(tmp_path, made):
    made.data(tmp_path, "awa_attr")
    return Setup(tmp_path, n_seeds=2, strengths=(0.01, 1.0))


@pytest.fixture
def four(tmp_path, made):
    """The four data sets of the paper, in small."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("awa_attr", "awa_pca"):
        made.data(folder, name)
    for name in ("tiny_vehicle15", "tiny_imagenet20"):
        made.data(folder, name, X_sift=made.blobs()[0])
    return Setup(folder, n_seeds=1, strengths=(1.0,))


def by_method(made, text):
    """Return the cells of a table, by method and heading."""
    ((heading, _, *lines),) = made.tables(text)
    assert len(set(heading)) == len(heading)
    return {line[0]: dict(zip(heading, line, strict=True)) for line in lines}


def test_scores_stand_beside_the_published_ones(awa, made):
    def make(job):
        sp = 0.875 + 0.0625 * job.seed if job.settings != "{}" else 0.25
        return made.outcome(
            2.0 + job.seed if job.settings != "{}" else 0.5,
            shortest_path=sp,
            chance_shortest_path=sp / 2,
        )

    jobs = made.results(awa, plan_table(awa), make)
    lines = by_method(made, compare_methods(jobs, "awa_attr"))
    assert list(lines) == list(METHODS)
    line = lines["HMMC"]
    assert (line["SP paper"], line["PS paper"], line["RI paper"]) == ("94.4", "91.0", "96.0")
    assert (line["SP"], line["aSP"]) == ("90.6", "50.0")
    assert (line["s paper"], line["s"]) == ("1,986.9", "2.5")
    line = lines["Taxarbor"]
    assert (line["SP paper"], line["SP"]) == ("-", "25.0")
    assert (line["s paper"], line["s"]) == ("-", "0.500")
    assert lines["Ward"]["SP paper"] == lines["Ward"]["s paper"] == "-"
    assert lines["AL"]["SP"] == "25.0"  # one setting, one seed
    assert lines["AL"]["s"] == "0.500"


def test_each_measure_chooses_for_itself(awa, made):
    def make(job):
        strong = '"alpha": 1.0, "balance": [0.9, 1.1], "beta": 1.0' in job.settings
        weak = '"alpha": 0.01,' in job.settings
        return made.outcome(
            shortest_path=0.9 if strong else 0.1 + weak / 4,
            path_sharing=0.1 if strong else 0.9,
            height=9.0 if strong else 5.0,
            adjusted_rand=0.125,
        )

    jobs = made.results(awa, plan_table(awa), make)
    assert score(jobs, "HMMC", "best", "shortest_path").mean == pytest.approx(0.9)
    assert score(jobs, "HMMC", "best", "path_sharing").mean == pytest.approx(0.9)
    assert by_method(made, compare_methods(jobs, "awa_attr"))["HMMC"]["ARI"] == "12.5"


def test_missing_methods_have_dashes_and_other_sizes_no_place(awa, made):
    def make(job):
        if job.method in {"SC", "AL"} or (job.n_clusters, job.branching) != (4, 2):
            return None
        return made.outcome()

    jobs = made.results(awa, [*plan_table(awa), *plan_sweep(awa)], make)
    lines = by_method(made, compare_methods(jobs, "awa_attr"))
    for name in ("SC", "AL"):
        ours = [cell for key, cell in lines[name].items() if key.split()[-1] != "paper"]
        assert set(ours[1:]) == {"-"}


def test_how_much_of_sp_is_the_shape(awa, made):
    rng = np.random.default_rng(0)
    table = list(plan_table(awa))
    jobs = [*table, *(job for job in plan_sweep(awa) if job not in table)]
    drawn = {job: rng.random(3) for job in jobs}

    def make(job):
        sp, chance, adjusted = drawn[job]
        return made.outcome(
            shortest_path=sp,
            chance_shortest_path=chance,
            adjusted_rand=adjusted,
            height=4.0 + job.seed,
        )

    ((_, _, line),) = made.tables(describe_heights(made.results(awa, jobs, make), awa))
    values = np.array([drawn[job] for job in table])  # other shapes do not matter
    assert line[:2] == ["AWA-ATTR", str(len(table))]
    assert line[2] == f"{np.corrcoef(values[:, 0], values[:, 1])[0, 1]:.3f}"
    assert line[3] == f"{np.corrcoef(values[:, 0], values[:, 2])[0, 1]:.3f}"
    same = made.results(awa, table)
    ((_, _, line),) = made.tables(describe_heights(same, awa))
    assert line[2:4] == ["-", "-"]  # trees that are all the same have no correlation
    assert line[4] == f"50.0, {100 * (1 - (1 - 0.944) / 0.5):.1f}"
    few = made.results(awa, table, lambda job: made.outcome() if job.method == "AL" else None)
    ((_, _, *lines),) = made.tables(describe_heights(few, awa))
    assert not lines


def test_ranks(awa, made):
    for ours, told in (
        (0.9, "90.0 (1 of 13); Ward 80.0"),
        (0.75, "75.0 (2 of 13); Ward 80.0"),
        (0.1, "10.0 (13 of 13); Ward 80.0"),
        (0.8, "80.0 (1 of 13); Ward 80.0"),
    ):
        known = {"HMMC": ours, "Taxarbor": ours, "Ward": 0.8, "HMMC-G": 0.99}

        def make(job, known=known):
            return made.outcome(adjusted_rand=known.get(job.method, 0.5))

        jobs = made.results(awa, plan_table(awa), make)
        ((heading, _, best, default),) = made.tables(describe_ranks(jobs, awa))
        place = heading.index("ARI")
        assert best[0] == "AWA-ATTR, best"
        assert (best[place], default[place]) == (f"HMMC {told}", f"Taxarbor {told}")
    alone = made.results(
        awa, plan_table(awa), lambda job: made.outcome() if job.method == "HMMC" else None
    )
    ((_, _, best, default),) = made.tables(describe_ranks(alone, awa))
    assert set(best[1:]) == {"HMMC 50.0 (1 of 1)"}
    assert set(default[1:]) == {""}


def test_each_scaling_has_its_own_line(tmp_path, made):
    made.data(tmp_path, "some")
    setup = Setup(tmp_path, n_seeds=2, strengths=(1.0,))
    means = dict(zip(SCALINGS, (0.5, 0.6, 0.7), strict=True))

    def make(job):
        sp = means[job.scaling] + 0.01 * job.seed + 0.1 * (job.method == "HKM-D")
        return made.outcome(shortest_path=sp, height=8.0, chance_shortest_path=0.25)

    store = made.fill(tmp_path, [*plan_table(setup), *plan_scalings(setup)], make)
    ((heading, _, *lines),) = made.tables(describe_scalings(store.read(), setup))
    assert heading[:4] == ["data, rows", "SP paper", "SP", "PS paper"]
    assert [line[0] for line in lines] == ["some, none", "some, standard", "some, unit"]
    told = {line[0].split(", ")[1]: line for line in lines}
    for scaling, mean in means.items():
        assert told[scaling][2] == f"{100 * mean + 0.5:.2f} ± 0.50"
    made.data(tmp_path, "awa_attr")
    list_datasets.cache_clear()
    high = made.results(setup, plan_table(setup), lambda _: made.outcome(shortest_path=0.95))
    ((_, _, line, *_),) = made.tables(describe_scalings(high, setup))
    assert line[2] == "**95.00 ± 0.00**"  # at least the paper's


def pictures(text):
    """Return what a page links to."""
    return [unquote(link) for link in re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)]


@pytest.mark.long
@pytest.mark.usefixtures("small_registry")
def test_the_page(tmp_path, four, made):
    store = made.fill(tmp_path, plan_results(four))
    page = tmp_path / "new folder" / "my results.md"
    written = write_results(store, four, page)
    text = page.read_text(encoding="utf-8")
    assert written[0] == page
    assert {path.stem for path in written[1:]} == FIGURES
    assert {(page.parent / link).resolve() for link in pictures(text)} == {
        path.resolve() for path in written[1:]
    }
    assert " " not in "".join(re.findall(r"\]\((.*?)\)", text))  # a space would end the link
    found = made.tables(text)
    assert len(found) == 1 + 4 + 1 + 1 + 1 + 1  # claims, data, ranks, SP, scaled rows, zeros
    headings = re.findall(r"^## (.*)", text, flags=re.MULTILINE)
    assert headings == [
        "In short",
        "The paper's claims",
        "The paper's Table 1",
        "Adjusted for chance",
        "What SP measures",
        "Scaled rows",
        "More clusters and more children per split",
        "Sparsity",
        "A tree",
    ]
    assert "### awa_attr: for AWA-ATTR\n\n24 rows x 5 features, 4 classes" in text
    assert "{" not in text
    assert text.endswith("\n")
    for path in written:  # nothing tells where it was made
        for secret in (tmp_path, Path.home(), Path.cwd()):
            assert str(secret).encode() not in path.read_bytes()
    assert platform.node() not in set(re.findall(r"[\w.-]+", text))


@pytest.mark.usefixtures("small_registry")
def test_nothing_done(tmp_path, four, made):
    failed = made.outcome(status="timed out")
    store = made.fill(tmp_path, plan_results(four), lambda _: failed)
    text = write_results(store, four, tmp_path / "results.md")[0].read_text("utf-8")
    assert "There are no results." in text
    assert "- HMMC on awa_attr, 4 clusters, seed 0: timed out" in text
    n_jobs = int(re.search(r"(\d+) fits", text)[1])
    assert text.count(": timed out") == n_jobs > 100


@pytest.mark.usefixtures("small_registry")
def test_the_introduction_counts_what_it_speaks_of(tmp_path, animals, made, monkeypatch):
    assert machine() != "an old machine"
    monkeypatch.setattr(run, "machine", lambda: "an old machine")
    jobs = list(plan_results(animals))
    own = [job for job in jobs if job.scaling == "none"]
    store = made.fill(tmp_path, jobs, lambda _: made.outcome(90.0))
    lost = made.job("AL", n_clusters=10)
    for other in ({"scaling": "unit"}, {"max_rows": 9}, {"seed": 1}):
        store.add(lost._replace(**other), made.outcome(status="failed: other"))
    store.add(own[0], made.outcome(90.0))  # again
    for other in ("KM+Ward", "Taxarbor"):  # of the other page
        store.add(made.job(other, '{"n_init": 1}', n_clusters=10), made.outcome(90.0))
    store.add(lost, made.outcome(90.0, status="failed: ours"))
    (page, *_) = write_results(store, animals, tmp_path / "results.md")
    text = page.read_text(encoding="utf-8")
    assert f"| animals | {len(list(plan_table(animals))) - 1} | - | - |" in text  # AL is lost
    assert f"{len(own)} fits, {len(own) * 90 / 3600:.1f} hours on one core" in text
    assert "; an old machine;" in text
    assert text.count("failed: ours") == 1
    assert "failed: other" not in text
    assert "all rows, 1 seed of every" in " ".join(text.split())
