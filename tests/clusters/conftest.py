"""Rows and coordinates that several modules ask for."""

import numpy as np
import pytest

from taxarbor import load_animals, make_planted_tree
from taxarbor._fit_context import one_blas_thread


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """As in a fit: BLAS threads on few cores make small matrices take seconds."""
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
