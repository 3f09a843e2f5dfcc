"""Rows, coordinates and trees that several modules ask for."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse

from taxarbor import load_animals, make_planted_tree
from taxarbor._blas import one_blas_thread
from taxarbor._run import Run
from taxarbor.grow import StoppingRule
from taxarbor.refine import Coordinates, Survey
from taxarbor.refine._field import grow_leaves
from taxarbor.rows import as_rows
from taxarbor.rows._memory import seen_from
from taxarbor.split import GapSplitter
from taxarbor.sweep import LocalEngine, blocks_of
from taxarbor.sweep._copies import Copies


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """As in a fit: BLAS threads that fight over few cores make small matrices take seconds."""
    with one_blas_thread():
        yield


@pytest.fixture(scope="session")
def data():
    """Float64 arrays by name."""
    rng = np.random.default_rng(0)
    return {
        "planted": make_planted_tree(400, random_state=1).X,
        "animals": np.asarray(load_animals().X, dtype=np.float64),
        "cloud": rng.standard_normal((300, 8)),
        "middle": rng.standard_normal((200, 100)) + 3.0 * rng.integers(0, 3, (200, 1)),
        "wide": rng.standard_normal((120, 600)) + 2.0 * rng.integers(0, 2, (120, 1)),
    }


@pytest.fixture(scope="session")
def rows_of():
    """Return how data becomes rows: dense, or by way of CSR."""

    def make(X, kind="dense", n_threads=1):
        return as_rows(sparse.csr_array(X) if kind == "csr" else X, n_threads=n_threads)

    return make


@pytest.fixture(scope="session")
def column_of():
    """Return how values, one per row, become a column of blocks."""

    def make(values, coordinates):
        return np.split(np.asarray(values), np.cumsum(coordinates.blocks.sizes)[:-1])

    return make


@pytest.fixture(scope="session")
def values_of():
    """Return how a column of blocks becomes one array."""

    def make(column, coordinates):
        return np.concatenate(coordinates.blocks.engine.gather(column))

    return make


@pytest.fixture(scope="session")
def coordinates_of():
    """Return the coordinates of data, in blocks of given sizes, of rows of given counts."""

    def make(X, kind="dense", *, seed=0, sizes=None, counts=None, pool=None, whole=True):
        X = sparse.csr_array(X) if kind == "csr" else X
        blocks = blocks_of(X, LocalEngine(Run(seed, pool=pool)))
        if sizes is not None:
            edges = np.cumsum(sizes)
            parts = [X[last - size : last] for size, last in zip(sizes, edges, strict=True)]
            blocks = dataclasses.replace(blocks, data=parts, sizes=np.asarray(sizes))
        if not whole:
            blocks = dataclasses.replace(blocks, whole=None)
        copies, there = Copies.once(blocks.sizes), slice(None)
        if counts is not None:
            column = np.split(counts.astype(np.int32), np.cumsum(blocks.sizes)[:-1])
            copies, there = Copies.of(column, blocks.engine), np.flatnonzero(counts)
        survey = Survey.of(blocks, copies, seed)
        farthest = float(np.sqrt(seen_from(X[there], survey.center).norms().max()))
        return Coordinates.of(blocks, copies, survey, farthest, seed)

    return make


@pytest.fixture(scope="session")
def grown_on():
    """Return a tree that was grown on coordinates, with its rows."""

    def make(coordinates, n_leaves=None, *, run=None, splitter=None, gather=2, **limits):
        how = StoppingRule(n_leaves, **limits), (run or Run()).seed
        return grow_leaves(coordinates, splitter or GapSplitter(), *how, gather=gather)

    return make
