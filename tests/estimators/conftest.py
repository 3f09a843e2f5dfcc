"""Read-only data, and questions about a tree that several test modules ask."""

import json
import math

import numpy as np
import pytest
from scipy import sparse

from taxarbor import HMMC, Taxarbor, load_animals, make_planted_tree
from taxarbor.exchange import to_json


def _frozen(X):
    X = np.array(X, dtype=np.float64)
    X.flags.writeable = False
    return X


def _all_data():
    rng = np.random.default_rng(0)
    return {
        "planted": make_planted_tree(600, random_state=1).X,
        "animals": load_animals().X,
        "cloud": rng.standard_normal((500, 8)),
        "wide": rng.standard_normal((60, 200)),
        "binary": rng.random((300, 12)) < 0.3,
        "grid": np.argwhere(np.ones((9, 9))),
        "line": np.arange(41.0)[:, None],
    }


@pytest.fixture(scope="session")
def data():
    """Read-only float64 arrays by name."""
    return {name: _frozen(X) for name, X in _all_data().items()}


@pytest.fixture(scope="session")
def planted():
    """A planted tree of eight leaves, 600 rows, 20 features."""
    return make_planted_tree(600, random_state=1)


@pytest.fixture(scope="session", name="X")
def planted_rows(data):
    """The rows of that tree."""
    return data["planted"]


@pytest.fixture(params=[Taxarbor, HMMC])
def kind(request):
    """Each of the estimators that grow a tree."""
    return request.param


def as_kind(X, kind):
    """Return data as another kind: "float32 csr", "float64 dense", ..."""
    dtype, layout = kind.split()
    return sparse.csr_array(X.astype(dtype)) if layout == "csr" else X.astype(dtype)


def bounds(n, K, balance):
    """Return the least and greatest size of a child, computed independently of the library."""
    low, high = balance
    least, most = math.ceil(low * n / K - 1e-6), math.floor(high * n / K + 1e-6)
    least, most = max(least, 1), min(most, n - (K - 1))
    return min(least, n // K), max(most, math.ceil(n / K))


def assert_balanced(tree, K, balance):
    """Assert that the children of all nodes have sizes as balance requires."""
    sizes = tree.node_weights
    for node in inner(tree):
        least, most = bounds(sizes[node], K, balance)
        children = sizes[list(tree.children(node))]
        assert least <= children.min() <= children.max() <= most


def inner(tree):
    """Return the nodes of a tree that were split."""
    return [node for node in range(tree.n_nodes) if not tree.is_leaf(node)]


def structure(taxonomy):
    """Return all that does not depend on the last bits: its rows, and features of rules."""
    document = json.loads(to_json(taxonomy))
    del document["columns"]["fills"]
    for node in document["nodes"]:
        for name in ("score", "objective", "info", "mean"):
            del node[name]
        if node["rule"] is not None:
            node["rule"] = node["rule"]["features"]
    return document
