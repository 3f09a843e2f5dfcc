"""Rows, coordinates and trees that several modules ask for."""

import numpy as np
import pytest
from scipy import sparse

from taxarbor import load_animals, make_planted_tree
from taxarbor._blas import one_blas_thread
from taxarbor.refine import Coordinates
from taxarbor.rows import as_rows


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
def coordinates_of(rows_of):
    """Return the coordinates of data."""

    def make(X, kind="dense"):
        return Coordinates.of(rows_of(X, kind), 0)

    return make
