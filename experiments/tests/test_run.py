"""The whole of it in small: real processes, the bundled animals, few methods."""

import json
import multiprocessing
import re

import pytest

from taxarbor._errors import FileFormatError
from taxarbor.bench import METHODS, PARTS, Setup, Store, run_experiment, write_pages
from taxarbor.bench._jobs import Job
from taxarbor.bench._work import open_dataset

pytestmark = pytest.mark.usefixtures("small_registry")
ALL = tuple(part for part in PARTS if part != "defaults")


def measures(store):
    """Return all that does not depend on how fast the machine is."""
    found = store.read()
    keys = [*Job._fields, "measure"]
    return dict(
        zip(found[keys].itertuples(index=False, name=None), found["value"], strict=True)
    )


def planned(setup, parts=ALL):
    return {job for part in parts for job in PARTS[part](setup)}


def test_interrupted_or_not_the_results_are_the_same(tmp_path, animals, markdown):
    """One process, interrupted, then two; against two that are not; then nothing is left."""
    told = []

    def interrupt(state):
        told.append(state)
        if state.n_done == 4:
            raise KeyboardInterrupt

    parted, whole = tmp_path / "parted", tmp_path / "whole"
    with pytest.raises(KeyboardInterrupt):
        run_experiment(ALL, animals, parted, observer=interrupt)
    assert not multiprocessing.active_children()
    wanted = planned(animals)
    kept = Store(parted / "results.csv").known()
    assert kept == {state.job for state in told[1:]}
    assert len(kept) == 4
    assert (told[0].n_done, told[0].n_jobs, told[0].job) == (0, len(wanted), None)

    rest = []
    parted_store = run_experiment(ALL, animals, parted, n_workers=2, observer=rest.append)
    assert {state.job for state in rest[1:]} == wanted - kept
    assert [state.n_done for state in rest] == list(range(len(wanted) - 4 + 1))
    assert {state.n_jobs for state in rest} == {len(wanted) - 4}
    shares = [state.share for state in rest]
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert {state.status for state in rest[1:]} == {"done"}

    whole_store = run_experiment(ALL, animals, whole, n_workers=2)
    assert measures(parted_store) == measures(whole_store)
    assert whole_store.known() == wanted

    again = []
    run_experiment(ALL, animals, whole, observer=again.append)
    assert [(state.n_done, state.n_jobs) for state in again] == [(0, 0)]
    check_pages(whole_store, animals, tmp_path, markdown)


def check_pages(store, setup, folder, markdown):
    written = write_pages(ALL, store, setup, folder / "results.md")
    text = written[0].read_text(encoding="utf-8")
    names = ["heights", "sparsity", "sweep-SP", "sweep-aSP", "tree"]
    assert sorted(path.stem for path in written if path.suffix == ".svg") == names
    assert all(f"(results/{name}.png)" in text for name in names)
    found = markdown.check(text)
    ward = next(line for table in found for line in table if line[0] == "Ward")
    assert re.fullmatch(r"\d\d\.\d\d", ward[2])
    assert "Without a result" not in text


def test_long_jobs_go_first_and_failures_are_kept(tmp_path, made):
    """Four rows: k-means cannot make six clusters of them, or eight."""
    X, y = made.blobs()
    made.data(tmp_path, "some", X=X[:4], y=y[:4], truth=False)
    setup = Setup(tmp_path, n_seeds=1, strengths=(1.0,))
    states = []
    store = run_experiment(("sweep",), setup, tmp_path / "out", observer=states.append)
    costs = {shape: [] for shape in ((4, 2), (6, 2), (8, 2))}
    for state in states[1:]:
        if (shape := (state.job.n_clusters, state.job.branching)) in costs:
            costs[shape].append(METHODS[state.job.method].cost)
    assert all(costs.values())
    assert all(found == sorted(found, reverse=True) for found in costs.values())
    found = store.read()
    assert len(found[[*Job._fields]].drop_duplicates()) == len(states) - 1
    failed = {state.job for state in states[1:] if state.status != "done"}
    assert {job.n_clusters for job in failed if job.method == "KM"} == {6, 8}
    assert store.known() == planned(setup, ("sweep",)) - failed
    (page, *_) = write_pages(("sweep",), store, setup, tmp_path / "sweep.md")
    text = page.read_text(encoding="utf-8")
    assert "- KM on some, 6 clusters, seed 0: failed: " in text
    again = []
    run_experiment(("sweep",), setup, tmp_path / "out", observer=again.append)
    assert {state.job for state in again[1:]} == failed  # they are tried again


def test_parts_share_their_jobs(tmp_path, animals):
    out = tmp_path / "out"
    run_experiment(("sparsity",), animals, out)
    states = []
    run_experiment(("sparsity", "tree", "sparsity"), animals, out, observer=states.append)
    assert states[0].n_jobs == 0  # with one strength, the tree is one of those


def test_bad_data_is_refused_before_anything_is_written(tmp_path, made):
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="is not a folder"):
        run_experiment(ALL, Setup(tmp_path / "nowhere"), out)
    made.data(tmp_path, "some", y=None)
    with pytest.raises(ValueError, match="no data in"):
        run_experiment(ALL, Setup(tmp_path), out)
    made.data(tmp_path, "other", classes=("ape", "bat", "cod", "dog"))
    with pytest.raises(FileFormatError, match=r"other\.hierarchy\.json"):
        run_experiment(ALL, Setup(tmp_path), out)
    assert not out.exists()


def test_a_foreign_results_file_is_refused(tmp_path, animals):
    (tmp_path / "results.csv").write_text(json.dumps({"mine": 1}), encoding="utf-8")
    with pytest.raises(FileFormatError, match="not a results file"):
        run_experiment(("tree",), animals, tmp_path)
    assert json.loads((tmp_path / "results.csv").read_text(encoding="utf-8")) == {"mine": 1}


def test_results_of_other_data_are_not_mixed(tmp_path, made):
    folder, out = tmp_path / "data", tmp_path / "out"
    folder.mkdir()
    made.data(folder, "some")
    setup = Setup(folder, n_seeds=1, strengths=(1.0,))
    run_experiment(("sparsity",), setup, out)
    before = (out / "results.csv").read_bytes()
    X, _ = made.blobs()
    made.data(folder, "some", X=X + 1.0)
    open_dataset.cache_clear()
    with pytest.raises(ValueError, match="other data called 'some'"):
        run_experiment(("sparsity",), setup, out)
    assert (out / "results.csv").read_bytes() == before


def test_a_file_is_no_folder_for_results(tmp_path, animals):
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    with pytest.raises(ValueError, match="is a file; results need a folder"):
        run_experiment(("tree",), animals, tmp_path / "out")
