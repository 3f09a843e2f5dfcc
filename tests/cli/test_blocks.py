"""Rows of folders and large files, which are read in blocks."""

import numpy as np
import pandas as pd
import pytest

from taxarbor import Taxarbor, Taxonomy
from taxarbor.cli import _files
from tests.cli.conftest import COLUMNS, lines_of
from tests.conftest import assert_same_rules
from tests.sources.places import write_h5ad

PREDICT = ("predict", "model.taxarbor", "big")


@pytest.fixture
def in_blocks(monkeypatch):
    """Let every file be large."""
    monkeypatch.setattr(_files, "MAX_BYTES_IN_MEMORY", 0)


@pytest.fixture
def customers(folder):
    """The customers as a folder of Parquet files, big, and as a frame."""
    frame = pd.read_csv(folder / "customers.csv")
    (folder / "big").mkdir()
    for i in range(3):
        part = frame[40 * i : 40 * i + 40]
        part.to_parquet(folder / "big" / f"part-{i}.parquet", index=False)
    return frame


def test_labels_in_all_formats(run, folder, customers, labels):
    named = ("customers.csv", customers["id"].tolist(), "id")
    for data, ids, title in (("big", [*range(120)], "row"), named):
        predict = ("predict", "model.taxarbor", data, "--force")
        for name in ("l.csv", "l.tsv", "l.parquet"):
            assert run(*predict, "-o", name).stdout == f"120 rows -> {name}\n"
        expected = [[str(one), str(label)] for one, label in zip(ids, labels, strict=True)]
        for name, delimiter in (("l.csv", ","), ("l.tsv", "\t")):
            assert lines_of(folder / name, delimiter) == [[title, "cluster"], *expected]
        frame = pd.read_parquet(folder / "l.parquet")
        assert (frame[title].tolist(), frame["cluster"].tolist()) == (ids, labels)
        run(*predict, "-o", "p.parquet", "--proba")
        frame = pd.read_parquet(folder / "p.parquet")
        assert [*frame] == [title, "cluster", "probability", *(f"c{i}" for i in range(6))]
        np.testing.assert_allclose(frame["probability"], frame.iloc[:, 3:].max(axis=1))


def test_labels_of_a_folder_on_standard_output(run, run_json, customers, labels):
    lines = [f"{row},{label}" for row, label in enumerate(labels)]
    assert run(*PREDICT).stdout.splitlines() == ["row,cluster", *lines]
    whole = run_json("predict", "model.taxarbor", "customers.csv", "--proba")
    assert run_json(*PREDICT, "--proba") == whole | {"rows": None}


def test_labels_of_matrices(run_json, refuse, folder, in_blocks, customers, labels):
    X = customers[[*COLUMNS]].to_numpy()
    np.save(folder / "x.npy", X)
    write_h5ad(folder / "x.h5ad", X, COLUMNS, obs=[*map(str, range(120))])
    for name in ("x.h5ad", "x.npy"):
        assert run_json("predict", "model.taxarbor", name)["labels"] == labels
    refuse("'id'", "predict", "model.taxarbor", "x.npy", "--id-column", "id")


def test_labels_are_written_whole_or_not_at_all(refuse, folder, customers):
    (folder / "old.csv").write_text("mine", encoding="utf-8")
    part = folder / "big" / "part-2.parquet"
    data = part.read_bytes()
    footer = -8 - int.from_bytes(data[-8:-4], "little")
    part.write_bytes(data[:4] + bytes(len(data) - 4 + footer) + data[footer:])
    for name in ("l.csv", "l.parquet", "old.csv"):
        refuse("part-2.parquet", *PREDICT, "-o", name, "--force")
    assert not [*folder.glob(".taxarbor*")]


def test_bad_files(refuse, folder, customers):
    refuse("--id-column needs all rows in memory", *PREDICT, "--id-column", "id")
    refuse("assess needs all rows", "assess", "model.taxarbor", "big")
    fit = ("fit", "big", "-o", "m")
    refuse("--n-clusters", *fit, "-k", 121)
    refuse("-k auto", *fit, "-k", "auto")
    for option in ("--label-column", "--id-column"):
        refuse(f"{option} needs all rows in memory", *fit, option, "class")
    refuse("'x'", *fit, "--columns", "x,age")
    refuse("40 ", "explain", "model.taxarbor", "big/part-0.parquet")
    for name in ("age", "spend"):
        renamed = customers.rename(columns={name: "other"})
        renamed.to_parquet(folder / "big" / "part-1.parquet", index=False)
        refuse(repr(name), *PREDICT)


@pytest.mark.parametrize("options", [(), ("--columns", "spend, age,city")])
def test_a_folder_gives_the_model_of_the_table_in_memory(run_json, folder, customers, options):
    for data, name in (("big", "m1"), ("customers.csv", "m2")):
        run_json("fit", data, "-k", 4, "-o", name, *options)
    blocks, whole = (Taxonomy.load(folder / name) for name in ("m1", "m2"))
    assert blocks.feature_names == whole.feature_names
    assert blocks.to_text() == whole.to_text()
    assert not blocks.tree.has_rows


def test_large_files_are_read_in_blocks(run_json, folder, customers, in_blocks):
    customers.to_parquet(folder / "x.parquet", index=False)
    for options, has_rows in (
        ((), False),
        (("--label-column", "class"), True),
        (("--id-column", "id"), True),
        (("--categories", "city"), False),
    ):
        run_json("fit", "x.parquet", "-k", 3, "-o", "m", "--force", *options)
        assert Taxonomy.load(folder / "m").tree.has_rows == has_rows


def test_predict_needs_only_the_columns_of_the_model(run_json, folder, customers):
    model = Taxarbor(4, encoder="auto", random_state=0)
    with pytest.warns(UserWarning, match="id"):
        labels = model.fit(customers).labels_
    model.taxonomy_.save(folder / "m")
    fewer = customers.drop(columns="id")[["class", "city", *reversed(COLUMNS)]]
    fewer.to_csv(folder / "new.csv", index=False)
    (folder / "new").mkdir()
    fewer.to_parquet(folder / "new" / "part.parquet", index=False)
    for data in ("new.csv", "new", "big", "customers.csv"):
        assert run_json("predict", "m", data)["labels"] == labels.tolist()


def test_pages_and_explanations_of_a_folder(run, run_json, folder, customers):
    customers.to_parquet(folder / "x.parquet", index=False)
    run_json("fit", "big", "-k", 5, "-o", "m1", "--report", "fit.html")
    run_json("fit", "x.parquet", "-k", 5, "-o", "m2")
    models = ("m1", "big"), ("m2", "x.parquet")
    for name, data in models:
        run_json("report", name, data, "--title", "big", "-o", f"{name}.html")
    assert (folder / "fit.html").read_bytes() == (folder / "m1.html").read_bytes()
    for options in (("--node", "c1"), ("--row", "7")):
        one, other = (run_json("explain", *both, *options)["cluster"] for both in models)
        assert one == other
    assert run_json("assess", "m1", "x.parquet", "--refits", 2)["n_refits"] == 2


def test_samples_of_large_files(run_json, folder, customers, monkeypatch):
    monkeypatch.setattr(_files, "SAMPLE_ROWS", 100)
    run_json("fit", "big", "-k", 3, "-o", "m")
    document = run_json("explain", "m", "big", "--node", 0)
    assert document["n_rows"] == 100
    assert "a sample of 100 of 120 rows" in document["notes"][0]
    (note,) = run_json("report", "m", "big", "-o", "r.html")["notes"]
    assert note == document["notes"][0]


@pytest.mark.parametrize("limit", [0, 10**9])
def test_excluded_rows_are_noted(run_json, folder, limit, monkeypatch):
    monkeypatch.setattr(_files, "MAX_BYTES_IN_MEMORY", limit)
    X = np.random.default_rng(0).normal(size=(500, 3)).astype(np.float32)
    X[7] = 4000.0
    np.save(folder / "x.npy", X)
    fit = ("fit", "x.npy", "-k", 2, "-o", "m", "--force")
    assert run_json(*fit)["notes"] == ["1 outlier or empty row excluded from the fit"]
    assert run_json(*fit, "--noise", 0.01)["notes"] == ["5 rows labelled as noise"]


@pytest.mark.parametrize("kind", ["big", "x.parquet", "x.npy"])
def test_a_fit_in_blocks_is_the_fit_in_memory(run_json, folder, customers, in_blocks, kind):
    X = customers[[*COLUMNS]]
    X.to_parquet(folder / "x.parquet", index=False)
    np.save(folder / "x.npy", X.to_numpy())
    options = ("--columns", ",".join(COLUMNS)) if kind == "big" else ()
    run_json("fit", kind, "-k", 5, "-o", "m", "--labels", "l.parquet", *options)
    expected = Taxarbor(5, random_state=0).fit(X.to_numpy() if kind == "x.npy" else X)
    assert not Taxonomy.load(folder / "m").columns.readings
    tree, other = Taxonomy.load(folder / "m").tree, expected.taxonomy_.tree
    for name in ("parents", "start", "stop", "birth"):
        np.testing.assert_array_equal(getattr(tree, name), getattr(other, name))
    assert_same_rules(tree, other)
    np.testing.assert_array_equal(pd.read_parquet("l.parquet")["cluster"], expected.labels_)
    assert run_json("predict", "m", kind)["labels"] == expected.labels_.tolist()
