"""Data for the baselines, and tasks for their splitters."""

import numpy as np
import pytest
from matplotlib import pyplot as plt
from scipy import sparse

from taxarbor import load_animals, make_planted_tree
from taxarbor._blas import one_blas_thread
from taxarbor.rows import as_rows
from taxarbor.split import SplitTask
from taxarbor.tree import LinearRule


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """As in a fit: several BLAS threads on few cores make small matrices slow."""
    with one_blas_thread():
        yield


@pytest.fixture(autouse=True)
def _no_figure_is_left():
    yield
    plt.close("all")


# ---- for estimators ----


@pytest.fixture(scope="session")
def planted():
    """A planted tree of eight leaves, 600 rows, 20 features."""
    return make_planted_tree(600, random_state=1)


@pytest.fixture(scope="session")
def data(planted):
    """Read-only float64 arrays by name."""
    rng = np.random.default_rng(0)
    arrays = {
        "planted": planted.X,
        "animals": load_animals().X,
        "cloud": rng.standard_normal((500, 8)),
    }
    arrays = {name: np.array(X, dtype=np.float64) for name, X in arrays.items()}
    for X in arrays.values():
        X.flags.writeable = False
    return arrays


@pytest.fixture(scope="session", name="X")
def planted_rows(data):
    """The rows of the planted tree."""
    return data["planted"]


@pytest.fixture(scope="session")
def as_kind():
    """Return data as another kind: "float32 csr", "float64 dense", ..."""

    def convert(X, kind):
        dtype, layout = kind.split()
        array = X.astype(dtype)
        return sparse.csr_array(array) if layout == "csr" else array

    return convert


@pytest.fixture(scope="session")
def inner():
    """The ids of the nodes that were split."""

    def find(tree):
        return [node for node in range(tree.n_nodes) if not tree.is_leaf(node)]

    return find


# ---- for splitters ----


@pytest.fixture(scope="session")
def draw():
    """Return a function that draws K clouds of rows, some of their features noise."""

    def make(n_children, *, n_rows=150, n_features=6, distance=3.0, dtype="float64", seed=0):
        rng = np.random.default_rng(seed)
        middles = np.zeros((n_children, n_features))
        middles[:, : n_features - 2] = rng.normal(size=(n_children, n_features - 2))
        X = rng.normal(size=(n_rows, n_features))
        X += distance * middles[rng.integers(0, n_children, n_rows)] + 5.0
        return np.ascontiguousarray(X, dtype=dtype)

    return make


@pytest.fixture(scope="session")
def rows_of():
    """Return how data becomes rows: dense, or by way of CSR."""

    def make(X, kind="dense", n_threads=1):
        return as_rows(sparse.csr_array(X) if kind == "sparse" else X, n_threads=n_threads)

    return make


@pytest.fixture(scope="session")
def task_of():
    """Return a function from rows to a task, at the root or below it."""

    def make(rows, n_children, *, deep=False, seed=0):
        if not deep:
            return SplitTask(rows, (), (), n_children, seed, rows.center)
        W = np.random.default_rng(5).normal(size=(n_children, rows.n_features))
        rule = LinearRule(W.astype(rows.dtype), np.zeros(rows.n_features, rows.dtype))
        return SplitTask(rows, (0,), (rule,), n_children, seed, rows.center)

    return make


@pytest.fixture(scope="session")
def same_partition():
    """Say whether two labellings divide the rows alike."""

    def compare(one, other):
        pairs = set(zip(one.tolist(), other.tolist(), strict=True))
        return len(pairs) == len(set(one.tolist())) == len(set(other.tolist()))

    return compare
