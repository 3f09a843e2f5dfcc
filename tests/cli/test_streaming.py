"""Rows that are read part by part: ``taxarbor fit`` and ``predict``."""

import csv
import json
import re

import h5py
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from taxarbor import Hierarchy, Taxarbor
from taxarbor._errors import FileFormatError
from taxarbor.cli import _fitting, _reading
from taxarbor.explain import _sample
from taxarbor.sweep import _blocks
from taxarbor.tables import read_table
from taxarbor.tables._scan_parquet import ParquetPart
from taxarbor.tables._stream import Stream
from tests.cli.conftest import COLUMNS


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts of 17 rows."""
    monkeypatch.setattr(_blocks, "MOST", 17)
    monkeypatch.setattr(_blocks, "LEAST", 1)


@pytest.fixture
def in_parts(monkeypatch):
    """Let every file be large."""
    monkeypatch.setattr(_reading, "available", lambda: 1_000)


@pytest.fixture
def customers(folder):
    """The customers as a folder of Parquet files, big, and as a frame."""
    frame = pd.read_csv(folder / "customers.csv")
    (folder / "big").mkdir()
    for i in range(3):
        part = frame[40 * i : 40 * i + 40]
        part.to_parquet(folder / "big" / f"part-{i}.parquet", index=False)
    return frame


class Gathering(Taxarbor):
    """Gathers the parts of a stream; it shows what arrives in a fit."""

    seen = None

    def __init__(self, n_clusters=8, *, encoder="auto", random_state=None):
        super().__init__(n_clusters, encoder=encoder, random_state=random_state)

    def fit(self, X, y=None, sample_weight=None):
        assert isinstance(X, Stream)
        parts = [part.load() for part in X.parts]
        Gathering.seen = {"stream": X, "weights": sample_weight}
        if X.dtype is None:
            asked = parts[0].attrs
            data = pd.concat(parts, ignore_index=True)
            data.attrs.update(asked)
        elif sparse.issparse(parts[0]):
            data = sparse.vstack(parts, format="csr")
        else:
            data = np.concatenate(parts)
        Gathering.seen["data"] = data
        inner = Taxarbor(self.n_clusters, encoder=self.encoder, random_state=self.random_state)
        inner.fit(data, sample_weight=sample_weight)
        self.hierarchy_, self.labels_ = inner.hierarchy_, inner.labels_
        return self


@pytest.fixture
def gathering(monkeypatch):
    def make(**settings):
        known = ("n_clusters", "random_state")
        return Gathering(**{name: settings[name] for name in known if name in settings})

    monkeypatch.setitem(_fitting.METHODS, "taxarbor", make)
    return Gathering


def lines_of(path, delimiter=","):
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.reader(file, delimiter=delimiter)]


def labels_of(folder):
    return Hierarchy.load(folder / "model.taxarbor").labels.tolist()


def test_labels_of_a_folder(run, run_json, folder, customers):
    labels = labels_of(folder)
    predict = ("predict", "model.taxarbor", "big")
    told = run(*predict)
    assert (told.exit_code, told.stderr) == (0, "")
    lines = [f"{row},{label}" for row, label in enumerate(labels)]
    assert told.stdout.splitlines() == ["row,cluster", *lines]
    for name, delimiter in (("l.csv", ","), ("l.tsv", "\t")):
        told = run(*predict, "--id-column", "id", "-o", name)
        assert (told.exit_code, told.stdout) == (0, f"120 rows -> {name}\n")
        found = lines_of(folder / name, delimiter)
        assert found[0] == ["id", "cluster"]
        assert found[1:] == [[f"C{row:03d}", str(label)] for row, label in enumerate(labels)]
    run(*predict, "-o", "l.npy")
    assert np.load(folder / "l.npy").tolist() == labels
    run(*predict, "-o", "l.parquet", "--id-column", "id", "--proba")
    found = pd.read_parquet(folder / "l.parquet")
    assert found["id"].tolist() == customers["id"].tolist()
    assert found["cluster"].tolist() == labels
    assert [*found.columns] == ["id", "cluster", "probability", *(f"c{i}" for i in range(6))]
    np.testing.assert_allclose(found["probability"], found.iloc[:, 3:].max(axis=1))
    whole = run_json("predict", "model.taxarbor", "customers.csv", "--proba")
    parts = run_json(*predict, "--proba", "--id-column", "id")
    assert parts == whole
    parts = run_json(*predict, "-o", "l2.csv")
    assert (parts["rows"], parts["labels"]) == (None, labels)


def test_labels_in_other_formats_of_tables_in_memory(run, folder):
    for suffix in ("npy", "parquet"):
        told = run("predict", "model.taxarbor", "customers.csv", "-o", f"l.{suffix}")
        assert told.stdout == f"120 rows -> l.{suffix}\n"
    assert np.load(folder / "l.npy").tolist() == labels_of(folder)
    found = pd.read_parquet(folder / "l.parquet")
    assert [*found.columns] == ["id", "cluster"]
    assert found["cluster"].tolist() == labels_of(folder)


def test_labels_of_arrays(run_json, refused, folder, in_parts):
    X = read_table(folder / "customers.csv", columns=COLUMNS).X.to_numpy()
    np.save(folder / "x.npy", X)
    found = run_json("predict", "model.taxarbor", "x.npy")
    assert found["labels"] == labels_of(folder)
    with h5py.File(folder / "x.h5ad", "w") as file:
        for name, index in (("obs", range(120)), ("var", COLUMNS)):
            group = file.create_group(name)
            group.attrs["_index"] = "names"
            group["names"] = [str(one).encode() for one in index]
        file["X"] = X
    found = run_json("predict", "model.taxarbor", "x.h5ad")
    assert found["labels"] == labels_of(folder)
    np.save(folder / "y.npy", X[:, :3])
    told = "y.npy has 3 columns without names, and the model 4 columns"
    refused(told, "predict", "model.taxarbor", "y.npy")
    told = "--id-column is for files with names of columns: x.npy"
    refused(told, "predict", "model.taxarbor", "x.npy", "--id-column", "id")


def test_what_a_model_has_not_seen_is_told_once(run_json, folder, customers, in_parts):
    run_json("fit", "customers.csv", "-k", 4, "-o", "m", "--columns", "age,city,spend")
    customers.loc[[3, 50, 51], "city"] = ["Rome", "Oslo", "Rome"]
    customers.loc[[7, 90], "age"] = np.nan
    customers.to_parquet(folder / "new.parquet", index=False)
    customers.to_csv(folder / "new.csv", index=False)
    found = run_json("predict", "m", "new.parquet")
    assert found["notes"] == [
        "3 cells hold what the model has not seen: city = Rome, Oslo",
        "5 cells count as missing, that is, as the column's mean",
    ]
    assert found["labels"] == run_json("predict", "m", "new.csv")["labels"]


def test_labels_are_written_whole_or_not_at_all(refused, folder, customers, monkeypatch):
    plain = ParquetPart.load

    def load(self):
        if self.source.file.name == "part-2.parquet":
            raise FileFormatError("part-2.parquet changed while it was read")
        return plain(self)

    monkeypatch.setattr(ParquetPart, "load", load)
    (folder / "there.csv").write_text("mine", encoding="utf-8")
    for name in ("l.csv", "l.npy", "l.parquet", "there.csv"):
        arguments = ("predict", "model.taxarbor", "big", "-o", name, "--force")
        refused("part-2.parquet changed while it was read", *arguments)
    assert not [*folder.glob(".taxarbor*")]


def test_predict_refuses_in_one_line(refused, folder, customers):
    predict = ("predict", "model.taxarbor", "big")
    refused("an npy file has labels only", *predict, "--proba", "-o", "l.npy")
    refused("part-0.parquet has no column called 'idd'", *predict, "--id-column", "idd")
    refused("must not be 'age', which the model uses", *predict, "--id-column", "age")
    for name in ("age", "spend"):
        renamed = customers.rename(columns={name: "other"})
        renamed.to_parquet(folder / "big" / "part-1.parquet", index=False)
        refused(f"part-1.parquet has no column {name!r}, and part-0", *predict)


def test_what_arrives_in_a_fit(run, run_json, gathering, folder, customers):
    options = ("-k", 4, "--force", "-o")
    found = run_json("fit", "big", *options, "m1", "--id-column", "id", "--labels", "l.csv")
    assert gathering.seen["stream"].names == [*COLUMNS, "city", "class"]
    assert (found["n_rows"], found["n_clusters"], found["scores"]) == (120, 4, None)
    lines = lines_of(folder / "l.csv")
    tree = Hierarchy.load(folder / "m1")
    expected = [[f"C{row:03d}", str(label)] for row, label in enumerate(tree.labels)]
    assert lines == [["id", "cluster"], *expected]
    run_json("fit", "big", *options, "m2", "--columns", "spend, age")
    assert gathering.seen["stream"].names == ["spend", "age"]
    assert gathering.seen["stream"].asked == ("spend", "age")
    run_json("fit", "big", *options, "m3", "--categories", "visits", "--weights", "items")
    seen = gathering.seen
    assert "items" not in seen["stream"].names
    assert seen["weights"].tolist() == customers["items"].tolist()
    assert seen["stream"].asked == ("visits",)
    assert seen["stream"].parts[0].load()["visits"].dtype == "category"
    told = run("fit", "big", *options, "m4")
    assert told.stdout.startswith("big: 120 rows, ")
    assert "left out: id (" in told.stderr


def test_arrays_keep_their_names_in_a_fit(run_json, gathering, folder, in_parts):
    X = read_table(folder / "customers.csv", columns=COLUMNS).X.to_numpy()
    np.save(folder / "x.npy", X)
    run_json("fit", "x.npy", "-k", 3, "-o", "m")
    np.testing.assert_array_equal(gathering.seen["data"], X)
    tree = Taxarbor(3, random_state=0).fit(X).hierarchy_
    assert Hierarchy.load(folder / "m").labels.tolist() == tree.labels.tolist()


def test_large_files_are_read_part_by_part(run, gathering, folder, customers, monkeypatch):
    customers.to_parquet(folder / "x.parquet", index=False)
    monkeypatch.setattr(_reading, "available", lambda: 1_000)
    fit = ("fit", "x.parquet", "-k", 3, "-o", "m", "--force")
    assert run(*fit).exit_code == 0
    assert gathering.seen["stream"].names == [*customers.columns]
    gathering.seen = None
    monkeypatch.setitem(_fitting.METHODS, "taxarbor", Taxarbor)
    assert run(*fit, "--label-column", "class").exit_code == 0  # which needs all rows
    monkeypatch.setattr(_reading, "available", lambda: 10**9)
    assert run(*fit).exit_code == 0
    assert gathering.seen is None


def test_options_that_need_all_rows_are_refused(refused, folder, customers):
    fit = ("fit", "big", "-o", "m")
    for told, options in (
        ("--method hmmc", ("--method", "hmmc")),
        ("-k auto", ("-k", "auto")),
        ("--label-column", ("--label-column", "class")),
    ):
        refused(f"{told} needs all rows in memory at once, and big is read", *fit, *options)


def test_fit_refuses_in_one_line(refused, gathering, folder, customers):
    fit = ("fit", "big", "-o", "m")
    refused("has 120 rows, too few for 121 clusters", *fit, "-k", 121)
    refused("no column called 'x'", *fit, "--columns", "x,age")
    refused("did you mean 'city'?", *fit, "--categories", "citty")
    refused("no column called 'x'", *fit, "--id-column", "x")
    refused("--weights names 'city', which does not hold", *fit, "--weights", "city")


def page_of(path):
    """Return all that a page shows."""
    found = re.search(r'type="application/json"[^>]*>(.*?)</script>', path.read_text(), re.S)
    return json.loads(found[1])


def test_pages_and_reasons_of_a_folder(run, run_json, refused, folder, customers):
    customers.to_parquet(folder / "x.parquet", index=False)
    for data, name in (("big", "m1"), ("x.parquet", "m2")):
        options = ("-k", 5, "-o", name, "--id-column", "id", "--title", "Customers")
        run_json("fit", data, *options, "--report", f"{name}.html")
    pages = [page_of(folder / name) for name in ("m1.html", "m2.html")]
    assert pages[0] == pages[1]
    run("report", "m1", "big", "--id-column", "id", "--title", "Customers", "-o", "again.html")
    assert page_of(folder / "again.html") == pages[0]
    named = ("--id-column", "id")
    name = str(customers["id"][7])
    for options in ((), ("--node", "c1"), ("--row", name), ("--new", "x.parquet")):
        told = run("explain", "m1", "big", *named, *options).stdout
        assert told == run("explain", "m2", "x.parquet", *named, *options).stdout
    assert run_json("explain", "m1", "big", "--row", 7)["row"] == 7
    told = "part-0.parquet has 40 rows, and the model was fitted on 120"
    refused(told, "explain", "m1", "big/part-0.parquet")
    (folder / "big" / "part-2.parquet").unlink()
    refused("big has 80 rows, and the model was fitted on 120", "explain", "m1", "big")
    refused("--label-column needs all rows", "explain", "m1", "big", "--label-column", "class")


def test_reasons_of_a_folder_of_numbers_in_one_unit(run, run_json, folder):
    """Nothing is encoded, and the model knows the names of the columns all the same."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    X[:150] += 6.0
    (folder / "numbers").mkdir()
    for part in range(3):
        frame = pd.DataFrame(X[part::3], columns=list("abcd"))
        frame.to_parquet(folder / "numbers" / f"{part}.parquet", index=False)
    run_json("fit", "numbers", "-k", 2, "-o", "m")
    assert Hierarchy.load(folder / "m").encoding is None
    assert run("explain", "m", "numbers").stdout
    run("report", "m", "numbers", "-o", "p.html")
    assert page_of(folder / "p.html")["n_rows"] == 300


def test_a_page_of_a_sample_says_so(run_json, folder, in_parts, monkeypatch):
    monkeypatch.setattr(_sample, "ROWS", 300)
    X = np.random.default_rng(0).normal(size=(500, 3)).astype(np.float32)
    X[:250] += 6.0
    np.save(folder / "x.npy", X)
    run_json("fit", "x.npy", "-k", 2, "-o", "m", "--report", "p.html")
    (told,) = page_of(folder / "p.html")["notes"]
    assert "from a sample of 300 rows of 500" in told
    assert page_of(folder / "p.html")["n_rows"] == 500


@pytest.mark.parametrize("available", [1_000, 10**9])
def test_rows_without_a_part_are_told_of(run_json, folder, available, monkeypatch):
    monkeypatch.setattr(_reading, "available", lambda: available)
    X = np.random.default_rng(0).normal(size=(500, 3)).astype(np.float32)
    X[7] = 4000.0
    np.save(folder / "x.npy", X)
    fit = ("fit", "x.npy", "-k", 2, "-o", "m", "--force")
    told = "1 row far from all others, or without a value, had no part in the fit"
    assert run_json(*fit)["notes"] == [told]
    (note,) = run_json(*fit, "--noise", 0.01)["notes"]
    assert note == "5 rows are set apart, far from all clusters"


def same_tree(one, other):
    for name in ("parents", "start", "stop", "birth"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for mine, yours in zip(one.rules, other.rules, strict=True):
        assert (mine is None) == (yours is None)
        if mine is not None:
            np.testing.assert_array_equal(mine.weights, yours.weights)
            np.testing.assert_array_equal(mine.offsets, yours.offsets)


@pytest.mark.parametrize("kind", ["big", "x.parquet", "x.npy"])
def test_a_streamed_fit_is_the_fit_in_memory(run_json, folder, customers, in_parts, kind):
    X = customers[[*COLUMNS]]
    X.to_parquet(folder / "x.parquet", index=False)
    np.save(folder / "x.npy", X.to_numpy())
    options = ["-k", 5, "-o", "m", "--labels", "l.npy"]
    if kind == "big":
        options += ["--columns", ",".join(COLUMNS)]
    run_json("fit", kind, *options)
    limitless = X.to_numpy() if kind == "x.npy" else X
    expected = Taxarbor(5, random_state=0).fit(limitless)
    found = Hierarchy.load(folder / "m")
    same_tree(found, expected.hierarchy_)
    np.testing.assert_array_equal(np.load(folder / "l.npy"), expected.labels_)
    assert run_json("predict", "m", kind)["labels"] == expected.labels_.tolist()
