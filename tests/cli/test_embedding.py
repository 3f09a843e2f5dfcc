"""Embeddings on the command line."""

import h5py
import numpy as np
import pandas as pd
import pytest

from taxarbor import Taxonomy
from taxarbor.cli import _files
from tests.cli.conftest import are_kinds
from tests.sources.places import write_h5ad

N = 120
GROUPS = np.arange(N) % 4


@pytest.fixture
def files(folder):
    rng = np.random.default_rng(0)
    vectors = (6.0 * rng.normal(size=(4, 6))[GROUPS] + rng.normal(size=(N, 6))).astype("f4")
    table = pd.DataFrame(np.eye(4)[GROUPS], columns=[*"abcd"])
    table["noise"], table["id"] = rng.normal(size=N), [f"R{row}" for row in range(N)]
    table.to_csv(folder / "rows.csv", index=False)
    table.assign(emb=list(vectors)).to_parquet(folder / "rows.parquet")
    np.save(folder / "vectors.npy", vectors)
    write_h5ad("cells.h5ad", np.eye(4)[GROUPS], [*"abcd"], obs=table["id"])
    with h5py.File("cells.h5ad", "a") as file:
        file["obsm/X_pca"] = vectors
    return folder


@pytest.mark.parametrize(
    ("data", "embedding"),
    [
        *(("rows.parquet", "emb"), ("cells.h5ad", "X_pca")),
        *((data, "vectors.npy") for data in ("rows.parquet", "rows.csv", "cells.h5ad")),
    ],
)
def test_all_commands(run, files, data, embedding):
    run("fit", data, "-k", "4", "-o", "m.taxarbor", "--embedding", embedding)
    assert are_kinds(Taxonomy.load("m.taxarbor").tree.labels)
    for command in (
        ("predict", "m.taxarbor", data, "-o", "labels.parquet"),
        ("explain", "m.taxarbor", data),
        ("report", "m.taxarbor", data, "-o", "page.html"),
        ("assess", "m.taxarbor", data, "--refits", "3", "--embedding", embedding),
    ):
        run(*command)
    assert are_kinds(pd.read_parquet("labels.parquet")["cluster"])
    assert Taxonomy.load("m.taxarbor").stability is not None


def test_blocks(run, files, monkeypatch):
    monkeypatch.setattr(_files, "MAX_BYTES_IN_MEMORY", 0)
    for data, embedding in (("rows.parquet", "emb"), ("cells.h5ad", "X_pca")):
        options = ("-k", "4", "-o", f"{data}.taxarbor", "--embedding", embedding)
        columns = ("--columns", "a,b,c,d") if embedding == "emb" else ()
        run("fit", data, *options, *columns, "--labels", "l.parquet", "--force")
        assert are_kinds(pd.read_parquet("l.parquet")["cluster"])


def test_a_column_that_is_not_named(run, files):
    assert "embedding='emb'" in run("fit", "rows.parquet", "-k", "4", "-o", "m.taxarbor").stderr


@pytest.mark.parametrize(
    "command",
    [
        *(f"fit rows.parquet --embedding {name}" for name in ("nothing", "none.npy")),
        "fit rows.parquet --embedding nothing --columns a,b",
        *("fit rows.csv --embedding a", "fit cells.h5ad --embedding X_umap"),
        *("fit customers.csv --embedding short.npy", "fit rows.parquet --columns emb"),
        "assess model.taxarbor customers.csv --embedding vectors.npy",
        "assess grouped.taxarbor rows.parquet",
        "assess grouped.taxarbor rows.parquet --embedding a",
    ],
)
def test_bad_files(run, files, command):
    np.save("short.npy", np.ones((5, 2)))
    run("fit", "rows.parquet", "-k", "4", "--embedding", "emb", "-o", "grouped.taxarbor")
    assert run(*command.split(), code=2).stderr.count("\n") == 1
