"""Pages from made-up results: nothing is fitted but the one tree that is drawn."""

import platform
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from taxarbor.bench import PARTS, Setup, write_pages
from taxarbor.bench._jobs import machine

pytestmark = pytest.mark.usefixtures("small_registry")
ALL = tuple(part for part in PARTS if part != "defaults")
FIGURES = {"heights", "sparsity", "sweep-SP", "sweep-aSP", "tree"}


def fill(path, setup, made, make=None, parts=ALL):
    jobs = [job for part in parts for job in PARTS[part](setup)]
    return made.fill(path, jobs, make or (lambda _: made.outcome()))


def pictures(text):
    """Return what a page links to."""
    return [unquote(link) for link in re.findall(r"!\[[^\]]*\]\(([^)]*)\)", text)]


@pytest.fixture
def setup(tmp_path, made):
    """The four data sets of the paper, in small."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("awa_attr", "awa_pca"):
        made.data(folder, name)
    for name in ("tiny_vehicle15", "tiny_imagenet20"):
        made.data(folder, name, X_sift=made.blobs()[0])
    return Setup(folder, n_seeds=1, strengths=(1.0,))


def test_a_page_with_all_parts(tmp_path, setup, made, markdown):
    store = fill(tmp_path, setup, made)
    page = tmp_path / "new folder" / "my results.md"
    written = write_pages(ALL, store, setup, page)
    text = page.read_text(encoding="utf-8")
    assert written[0] == page
    assert {path.stem for path in written[1:]} == FIGURES
    assert {path.suffix for path in written[1:]} == {".png", ".svg"}
    assert len(written) == 11
    assert all(path.stat().st_size > 500 for path in written)
    assert {(page.parent / link).resolve() for link in pictures(text)} == {
        path.resolve() for path in written if path.suffix == ".png"
    }
    assert " " not in "".join(re.findall(r"\]\((.*?)\)", text))  # a space would end the link
    found = markdown.check(text)
    assert len(found) >= 1 + 3 + 2 * 6 + 2 * 8 + 1  # checks, findings, data, panels, zeros
    headings = re.findall(r"^## (.*)", text, flags=re.MULTILINE)
    assert headings == sorted(set(headings), key=headings.index)
    assert set(headings) >= {
        "In short",
        "What we aimed for, and what came out",
        "Every method on every data set",
        "More clusters, more children per split",
        "Sparsity",
        "A tree",
    }
    assert "{" not in text
    assert text.endswith("\n")
    check_that_nothing_tells_where_it_was_made(written, tmp_path)


def check_that_nothing_tells_where_it_was_made(written, folder):
    for path in written:
        content = path.read_bytes()
        for secret in (folder, Path.home(), Path.cwd()):
            assert str(secret).encode() not in content
    words = set(re.findall(r"[\w.-]+", written[0].read_text(encoding="utf-8")))
    assert platform.node() not in words


@pytest.mark.parametrize("part", ALL)
def test_a_page_with_one_part_needs_its_own_jobs_alone(tmp_path, animals, made, part, markdown):
    store = fill(tmp_path, animals, made, parts=(part,))
    written = write_pages((part,), store, animals, tmp_path / f"{part}.md")
    text = written[0].read_text(encoding="utf-8")
    markdown.check(text)
    assert len(pictures(text)) == {"sweep": 2, "scalings": 0}.get(part, 1)
    assert len(re.findall("^## ", text, flags=re.MULTILINE)) == 1


def test_equal_results_make_equal_pages(tmp_path, animals, made):
    store = fill(tmp_path, animals, made)
    first, second = (
        write_pages(("table", "tree"), store, animals, tmp_path / name / "results.md")
        for name in ("first", "second")
    )
    assert len(first) == len(second) == 5
    for one, other in zip(first, second, strict=True):
        assert one.name == other.name
        assert one.read_bytes() == other.read_bytes()


def test_data_without_a_tree(tmp_path, made, markdown):
    folder = made.data(tmp_path, "some", truth=False)
    setup = Setup(folder, n_seeds=1, strengths=(1.0,))
    store = fill(tmp_path, setup, made, lambda _: made.outcome(truth=False))
    written = write_pages(ALL, store, setup, tmp_path / "results.md")
    text = written[0].read_text(encoding="utf-8")
    markdown.check(text)
    assert {path.stem for path in written[1:]} == {"sparsity", "sweep-RI", "sweep-ARI", "tree"}
    assert "best by RI" in text
    assert "What SP rewards" not in text


def test_data_with_and_without_a_tree(tmp_path, made, markdown):
    made.data(tmp_path, "one", truth=False)
    made.data(tmp_path, "two")
    setup = Setup(tmp_path, n_seeds=1, strengths=(1.0,))
    store = fill(tmp_path, setup, made, lambda job: made.outcome(truth=job.dataset == "two"))
    written = write_pages(ALL, store, setup, tmp_path / "results.md")
    markdown.check(written[0].read_text(encoding="utf-8"))
    assert {path.stem for path in written[1:]} == FIGURES


HOSTILE = "a|b<img src=x>$\\frac$ `x` [y](z)"


def test_hostile_names_do_not_break_the_page(tmp_path, made, markdown):
    names = ("<img src=x onerror=alert(1)>", "two\nlines | x", "![x](http://x)", "$\\frac$")
    folder = tmp_path / "data"
    folder.mkdir()
    made.data(folder, HOSTILE, truth=False, classes=names)
    made.data(folder, "two\n## lines", truth=False, classes=names)
    setup = Setup(folder, n_seeds=1, strengths=(1.0,))

    def make(job):
        if job.method == "AL":
            return made.outcome(status="failed: <img>\n## oh | [x](y)")
        return made.outcome(truth=False)

    store = fill(tmp_path, setup, made, make)
    text = write_pages(ALL, store, setup, tmp_path / "results.md")[0].read_text("utf-8")
    markdown.check(text)
    assert "<" not in text
    assert len(re.findall(r"^## ", text, flags=re.MULTILINE)) == 5
    assert len(pictures(text)) == 4
    assert not re.search(r"(?<!\\)\]\((?!results/)", text)  # no link but to figures
    assert r"a\|b&lt;img src=x>$\\frac$ \`x\` \[y\](z)" in text
    assert "two ## lines" in text


def test_nothing_done(tmp_path, setup, made, markdown):
    store = fill(tmp_path, setup, made, lambda _: made.outcome(status="timed out"))
    written = write_pages(ALL, store, setup, tmp_path / "results.md")
    text = written[0].read_text(encoding="utf-8")
    markdown.check(text)
    assert "There is no result to draw." in text
    assert "- HMMC on awa_attr, 4 clusters, seed 0: timed out" in text
    n_jobs = int(re.search(r"(\d+) fits", text)[1])
    assert text.count(": timed out") == n_jobs > 100
    write_pages(ALL, made.fill(tmp_path / "empty", []), setup, tmp_path / "empty.md")


def test_the_introduction_counts_what_it_speaks_of(tmp_path, animals, made):
    jobs = list(PARTS["sparsity"](animals))
    store = made.fill(tmp_path, jobs, lambda _: made.outcome(900.0))
    assert len(jobs) == 4
    lost = made.job("AL", n_clusters=10)
    for other in ({"scaling": "unit"}, {"max_rows": 9}, {"seed": 1}):
        store.add(lost._replace(**other), made.outcome(status="failed: other"))
    store.add(jobs[0], made.outcome(900.0))  # again
    store.add(made.job("HKM"), made.outcome(status="timed out"))  # and then not:
    store.add(made.job("HKM"), made.outcome(900.0))
    store.add(lost, made.outcome(900.0, status="failed: ours"))
    (page, *_) = write_pages(("sparsity",), store, animals, tmp_path / "sparsity.md")
    text = page.read_text(encoding="utf-8")
    assert "6 fits, 1.5 hours of one core" in text
    assert machine() in text
    assert text.count("failed: ours") == 1
    assert "other" not in text.partition("## Sparsity")[0].partition("Without a result")[2]
    assert "timed out" not in text
    assert "all rows, 1 seed of every" in " ".join(text.split())


def test_the_machine_is_that_of_the_results(tmp_path, animals, made, monkeypatch):
    monkeypatch.setattr("taxarbor.bench._store.machine", lambda: "an old machine")
    store = made.fill(tmp_path, PARTS["sparsity"](animals))
    (page, *_) = write_pages(("sparsity",), store, animals, tmp_path / "sparsity.md")
    assert "an old machine" in page.read_text(encoding="utf-8")
