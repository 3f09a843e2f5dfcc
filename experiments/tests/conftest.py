"""Small data sets in a folder, and results that were never computed."""

import json
import os
import re
from types import SimpleNamespace
from unittest import mock

import matplotlib as mpl
import numpy as np
import pytest

from experiments import figures, plan
from experiments.data import list_datasets, open_dataset
from experiments.methods import DONE, METHODS, Job, Outcome
from experiments.plan import Setup
from experiments.run import Store
from experiments.tables import done_jobs

mpl.use("Agg")

CLASSES = ("ape", "bat", "cod", "eel")
OF_TREES = ("shortest_path", "path_sharing", "adjusted_shortest_path", "adjusted_path_sharing")
CHANCE = ("chance_shortest_path", "chance_path_sharing")
OF_LEAVES = ("rand", "adjusted_rand", "adjusted_mutual_info", "dendrogram_purity")
SHAPE = ("height", "n_leaves", "zero_weights")
SMALL = ("KM", "AL", "Ward", "HKM", "HKM-D", "HMMC", "HMMC-G", "HMMC-E", "HMMC-1", "Taxarbor")


def blobs(n_rows=24, n_features=5):
    """Return rows around four corners, and the number of each one's class."""
    rng = np.random.default_rng(0)
    y = np.arange(n_rows) % len(CLASSES)
    corners = 4.0 * np.eye(len(CLASSES), n_features)
    return (corners[y] + rng.normal(size=(n_rows, n_features))).astype(np.float32), y


def write_data(folder, name, *, classes=CLASSES, of_tree=None, **arrays):
    """Write a data set of 24 rows and four classes, with its tree; return the folder."""
    X, y = blobs()
    given = {"X": X, "y": y, "class_names": np.array(classes), **arrays}
    np.savez(
        folder / f"{name}.npz", **{key: one for key, one in given.items() if one is not None}
    )
    leaves = [{"name": one} for one in of_tree or classes]
    pairs = [{"name": f"pair {n}", "children": leaves[n : n + 2]} for n in (0, 2)]
    text = json.dumps({"name": "all", "children": pairs})
    (folder / f"{name}.hierarchy.json").write_text(text, encoding="utf-8")
    return folder


def job(method="HMMC", settings="{}", **changes):
    return Job("animals", "none", 0, method, settings, 4, 2, 0)._replace(**changes)


def outcome(seconds=1.0, *, status=DONE, **measures):
    """Return what a fit might give: every measure, one half by default."""
    values = dict.fromkeys((*OF_TREES, *CHANCE, *OF_LEAVES, *SHAPE), 0.5) | measures
    return Outcome(status, seconds, 1.0, values if status == DONE else {})


def fill(path, jobs, make=lambda _: outcome()):
    """Return a store with a made-up outcome for each job; none where there is None."""
    store = Store(path / "results.jsonl")
    with mock.patch.object(os, "fsync"):  # which takes longer than all else
        for one in dict.fromkeys(jobs):
            if (made := make(one)) is not None:
                store.add(one, made)
    return store


def results(setup, jobs, make=lambda _: outcome()):
    """Return made-up results of jobs that are done, as the tables take them."""
    path = setup.folder / "results.jsonl"
    path.unlink(missing_ok=True)
    return done_jobs(fill(setup.folder, jobs, make).read(), setup)


def cells(line):
    """Return the cells of a line of a Markdown table; a pipe after a backslash is text."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def read_tables(text):
    """Return each table of a page; every line has as many cells as its heading."""
    blocks = re.findall(r"(?:^\|.*\|$\n?)+", text, flags=re.MULTILINE)
    tables = [[cells(line) for line in one.splitlines()] for one in blocks]
    for heading, rule, *lines in tables:
        assert all(set(cell) <= set("-:") for cell in rule)
        assert {len(line) for line in [rule, *lines]} == {len(heading)}
    stray = [line for line in text.splitlines() if line.startswith("|") and line[-1] != "|"]
    assert not stray
    return tables


@pytest.fixture(autouse=True)
def nothing_is_remembered():
    """Tests change their data."""
    list_datasets.cache_clear()
    open_dataset.cache_clear()


@pytest.fixture
def small_registry(monkeypatch):
    """Leave only some methods, as tests have seconds."""
    for name in set(METHODS) - set(SMALL):
        monkeypatch.delitem(METHODS, name)
    for module in (plan, figures):
        monkeypatch.setattr(module, "SWEPT", ("KM", "HKM", "HMMC"))


@pytest.fixture
def animals():
    """The bundled data with one seed and one strength."""
    return Setup(None, n_seeds=1, strengths=(1.0,))


@pytest.fixture(scope="session")
def made():
    """Functions that make data and results."""
    return SimpleNamespace(
        blobs=blobs,
        data=write_data,
        job=job,
        outcome=outcome,
        fill=fill,
        results=results,
        tables=read_tables,
        classes=CLASSES,
    )
