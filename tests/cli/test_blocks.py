"""Rows of folders and large files, which are read in blocks."""

import csv
import json
import re

import h5py
import numpy as np
import pandas as pd
import pytest

from taxarbor import Taxarbor, Taxonomy
from taxarbor._errors import FileFormatError
from taxarbor.cli import _read
from taxarbor.explain import _sample
from taxarbor.sources import _parquet, _reader
from taxarbor.tables import read_table
from tests.cli.conftest import COLUMNS


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Blocks of few rows."""
    monkeypatch.setattr(_reader, "BLOCK_BYTES", 600)
    monkeypatch.setattr(_parquet, "BLOCK_BYTES", 600)


@pytest.fixture
def in_blocks(monkeypatch):
    """Let every file be large."""
    monkeypatch.setattr(_read, "MAX_BYTES_IN_MEMORY", 0)


@pytest.fixture
def customers(folder):
    """The customers as a folder of Parquet files, big, and as a frame."""
    frame = pd.read_csv(folder / "customers.csv")
    (folder / "big").mkdir()
    for i in range(3):
        part = frame[40 * i : 40 * i + 40]
        part.to_parquet(folder / "big" / f"part-{i}.parquet", index=False)
    return frame


def lines_of(path, delimiter=","):
    with path.open(encoding="utf-8", newline="") as file:
        return [*csv.reader(file, delimiter=delimiter)]


def labels_of(folder):
    return Taxonomy.load(folder / "model.taxarbor").tree.labels.tolist()


def test_labels_of_a_folder(run, run_json, folder, customers):
    labels = labels_of(folder)
    predict = ("predict", "model.taxarbor", "big")
    result = run(*predict)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [f"{row},{label}" for row, label in enumerate(labels)]
    assert result.stdout.splitlines() == ["row,cluster", *lines]
    for name, delimiter in (("l.csv", ","), ("l.tsv", "\t")):
        result = run(*predict, "--id-column", "id", "-o", name)
        assert (result.exit_code, result.stdout) == (0, f"120 rows -> {name}\n")
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
        result = run("predict", "model.taxarbor", "customers.csv", "-o", f"l.{suffix}")
        assert result.stdout == f"120 rows -> l.{suffix}\n"
    assert np.load(folder / "l.npy").tolist() == labels_of(folder)
    found = pd.read_parquet(folder / "l.parquet")
    assert [*found.columns] == ["id", "cluster"]
    assert found["cluster"].tolist() == labels_of(folder)


def test_labels_of_arrays(run_json, refuse, folder, in_blocks):
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
    result = "y.npy has 3 columns without names, and the model 4 columns"
    refuse(result, "predict", "model.taxarbor", "y.npy")
    result = "--id-column is for files with names of columns: x.npy"
    refuse(result, "predict", "model.taxarbor", "x.npy", "--id-column", "id")


def test_unseen_values_are_noted_once(run_json, folder, customers, in_blocks):
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


def test_labels_are_written_whole_or_not_at_all(refuse, folder, customers, monkeypatch):
    load = _parquet._load

    def fail(batch, reading):
        if batch.column("age")[-1].as_py() == customers["age"].iloc[-1]:
            raise FileFormatError("part-2.parquet changed while it was read")
        return load(batch, reading)

    monkeypatch.setattr(_parquet, "_load", fail)
    (folder / "there.csv").write_text("mine", encoding="utf-8")
    for name in ("l.csv", "l.npy", "l.parquet", "there.csv"):
        arguments = ("predict", "model.taxarbor", "big", "-o", name, "--force")
        refuse("part-2.parquet changed while it was read", *arguments)
    assert not [*folder.glob(".taxarbor*")]


def test_predict_refuses_in_one_line(refuse, folder, customers):
    predict = ("predict", "model.taxarbor", "big")
    refuse("an npy file has labels only", *predict, "--proba", "-o", "l.npy")
    refuse("part-0.parquet has no column called 'idd'", *predict, "--id-column", "idd")
    refuse("must not be 'age', which the model uses", *predict, "--id-column", "age")
    for name in ("age", "spend"):
        renamed = customers.rename(columns={name: "other"})
        renamed.to_parquet(folder / "big" / "part-1.parquet", index=False)
        refuse(f"part-1.parquet has no column {name!r}, and part-0", *predict)


def test_the_options_of_a_fit(run, run_json, folder, customers):
    """A folder gives the model of the same table in memory."""
    columns = ("--columns", "spend, age,city")
    for options in (
        ("--id-column", "id"),
        columns,
        (*columns, "--categories", "city"),
        ("--columns", "visits,city,age", "--weights", "items"),
        ("--categories", "class", "--id-column", "id"),
    ):
        for data, name in (("big", "m1"), ("customers.csv", "m2")):
            run_json("fit", data, "-k", 4, "-o", name, "--force", *options)
        blocks, whole = (Taxonomy.load(folder / name) for name in ("m1", "m2"))
        assert blocks.feature_names == whole.feature_names
        assert blocks.to_text() == whole.to_text()
        assert not blocks.tree.has_rows
    whole = ("-k", 4, "-o", "m2", "--force", "--columns", ",".join(COLUMNS))
    run_json("fit", "big", *whole, "--method", "hmmc")
    assert Taxonomy.load(folder / "m2").tree.n_leaves == 4
    result = run("fit", "big", "-k", 4, "-o", "m4")
    assert result.stdout.startswith("big: 120 rows, ")
    assert "left out: id (" in result.stderr


def test_labels_of_a_fit_have_names(run_json, folder, customers):
    labels = ("--id-column", "id", "--labels", "l.csv")
    found = run_json("fit", "big", "-k", 4, "-o", "m", *labels)
    assert (found["n_rows"], found["n_clusters"], found["scores"]) == (120, 4, None)
    predicted = run_json("predict", "m", "customers.csv")["labels"]
    expected = [[f"C{row:03d}", str(label)] for row, label in enumerate(predicted)]
    assert lines_of(folder / "l.csv") == [["id", "cluster"], *expected]


def test_a_column_that_looks_like_an_identifier_is_used_if_named(run_json, folder, in_blocks):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"id": rng.permutation(100), "x": rng.normal(size=100)})
    frame.to_parquet(folder / "x.parquet", index=False)
    found = run_json("fit", "x.parquet", "-k", 2, "-o", "m", "--force")
    assert [one["column"] for one in found["dropped"]] == ["id"]
    run_json("fit", "x.parquet", "-k", 2, "-o", "m", "--force", "--columns", "id,x")
    assert Taxonomy.load(folder / "m").feature_names == ["id", "x"]


def test_large_files_are_read_in_blocks(run_json, folder, customers, monkeypatch):
    customers.to_parquet(folder / "x.parquet", index=False)
    fit = ("fit", "x.parquet", "-k", 3, "-o", "m", "--force")
    for most, options, has_rows in (
        (0, (), False),
        (0, ("--label-column", "class"), True),  # which needs all rows
        (10**9, (), True),
    ):
        monkeypatch.setattr(_read, "MAX_BYTES_IN_MEMORY", most)
        run_json(*fit, *options)
        assert Taxonomy.load(folder / "m").tree.has_rows == has_rows


def test_options_that_need_all_rows_are_refused(refuse, folder, customers):
    fit = ("fit", "big", "-o", "m")
    for name, options in (
        ("-k auto", ("-k", "auto")),
        ("--label-column", ("--label-column", "class")),
    ):
        refuse(f"{name} needs all rows in memory", *fit, *options)


def test_fit_refuses_in_one_line(refuse, folder, customers):
    fit = ("fit", "big", "-o", "m")
    refuse("has 120 rows, too few for 121 clusters", *fit, "-k", 121)
    refuse("no column called 'x'", *fit, "--columns", "x,age")
    refuse("did you mean 'city'?", *fit, "--categories", "citty")
    refuse("no column called 'x'", *fit, "--id-column", "x")
    refuse("--weights names 'city', which does not hold", *fit, "--weights", "city")


def test_predict_needs_the_columns_that_the_encoding_uses(run_json, folder, customers):
    """In any order, and no others: as Taxarbor.predict."""
    model = Taxarbor(4, encoder="auto", random_state=0)
    with pytest.warns(UserWarning, match="left out: id"):
        labels = model.fit(customers).labels_
    model.taxonomy_.save(folder / "m")
    fewer = customers.drop(columns="id")[["class", "city", *reversed(COLUMNS)]]
    fewer.to_csv(folder / "new.csv", index=False)
    (folder / "new").mkdir()
    fewer.to_parquet(folder / "new" / "part.parquet", index=False)
    assert model.predict(fewer).tolist() == labels.tolist()
    for data in ("new.csv", "new", "big", "customers.csv"):
        assert run_json("predict", "m", data)["labels"] == labels.tolist()


def test_a_model_of_a_matrix_takes_the_numbers_of_a_table(run_json, folder, customers):
    np.save(folder / "x.npy", customers[[*COLUMNS]].to_numpy())
    run_json("fit", "x.npy", "-k", 3, "-o", "m")
    labels = Taxonomy.load(folder / "m").tree.labels.tolist()
    assert run_json("predict", "m", "big")["labels"] == labels


def page_of(path):
    """Return all that a page shows."""
    found = re.search(r'type="application/json"[^>]*>(.*?)</script>', path.read_text(), re.S)
    return json.loads(found[1])


def test_pages_and_reasons_of_a_folder(run, run_json, refuse, folder, customers):
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
        result = run("explain", "m1", "big", *named, *options).stdout
        assert result == run("explain", "m2", "x.parquet", *named, *options).stdout
    assert run_json("explain", "m1", "big", "--row", 7)["row"] == 7
    result = "part-0.parquet has 40 rows, and the model was fitted on 120"
    refuse(result, "explain", "m1", "big/part-0.parquet")
    (folder / "big" / "part-2.parquet").unlink()
    refuse("big has 80 rows, and the model was fitted on 120", "explain", "m1", "big")


def test_classes_of_a_folder(run_json, customers):
    run_json("fit", "big", "-k", 4, "-o", "m", "--columns", ",".join(COLUMNS))
    found = run_json("explain", "m", "big", "--label-column", "class", "--node", 0)
    assert sum(found["classes"].values()) == 120


def test_reasons_of_a_folder_of_numbers_in_one_unit(run, run_json, folder):
    """Nothing is encoded, and the model knows the names of the columns all the same."""
    X = np.random.default_rng(0).normal(size=(300, 4))
    X[:150] += 6.0
    (folder / "numbers").mkdir()
    for part in range(3):
        frame = pd.DataFrame(X[part::3], columns=list("abcd"))
        frame.to_parquet(folder / "numbers" / f"{part}.parquet", index=False)
    run_json("fit", "numbers", "-k", 2, "-o", "m")
    assert Taxonomy.load(folder / "m").encoding is None
    assert run("explain", "m", "numbers").stdout
    run("report", "m", "numbers", "-o", "p.html")
    assert page_of(folder / "p.html")["n_rows"] == 300


def test_a_page_of_a_sample_says_so(run_json, folder, in_blocks, monkeypatch):
    monkeypatch.setattr(_sample, "MIN_SAMPLE", 300)
    monkeypatch.setattr(_sample, "ROWS_PER_LEAF", 10)
    X = np.random.default_rng(0).normal(size=(500, 3)).astype(np.float32)
    X[:250] += 6.0
    np.save(folder / "x.npy", X)
    run_json("fit", "x.npy", "-k", 2, "-o", "m", "--report", "p.html")
    (result,) = page_of(folder / "p.html")["notes"]
    assert "from a sample of 300 rows of 500" in result
    assert page_of(folder / "p.html")["n_rows"] == 500


@pytest.mark.parametrize("most", [0, 10**9])
def test_rows_that_are_excluded_are_noted(run_json, folder, most, monkeypatch):
    monkeypatch.setattr(_read, "MAX_BYTES_IN_MEMORY", most)
    X = np.random.default_rng(0).normal(size=(500, 3)).astype(np.float32)
    X[7] = 4000.0
    np.save(folder / "x.npy", X)
    fit = ("fit", "x.npy", "-k", 2, "-o", "m", "--force")
    note = "1 row far from all others, or without a value, excluded from the fit"
    assert run_json(*fit)["notes"] == [note]
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
def test_a_streamed_fit_is_the_fit_in_memory(run_json, folder, customers, in_blocks, kind):
    X = customers[[*COLUMNS]]
    X.to_parquet(folder / "x.parquet", index=False)
    np.save(folder / "x.npy", X.to_numpy())
    options = ["-k", 5, "-o", "m", "--labels", "l.npy"]
    if kind == "big":
        options += ["--columns", ",".join(COLUMNS)]
    run_json("fit", kind, *options)
    limitless = X.to_numpy() if kind == "x.npy" else X
    expected = Taxarbor(5, random_state=0).fit(limitless)
    found = Taxonomy.load(folder / "m")
    same_tree(found, expected.taxonomy_)
    np.testing.assert_array_equal(np.load(folder / "l.npy"), expected.labels_)
    assert run_json("predict", "m", kind)["labels"] == expected.labels_.tolist()
