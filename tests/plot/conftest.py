"""Trees to draw, random and known, and a backend that needs no screen."""

import warnings
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import strategies as st
from matplotlib import pyplot as plt

from taxarbor import GrowthWarning, Taxarbor, load_animals
from taxarbor.taxonomy import Stability
from taxarbor.taxonomy._stability import Curve
from taxarbor.tree import LinearRule, TreeBuilder

mpl.use("Agg")

DEEP = 3000
HOSTILE = ("$x$", r"$\frac$", "two\nlines", "y" * 500, "", "\x07\ud800", "_under", "a & <b>")


@pytest.fixture(autouse=True)
def no_figure_is_left():
    assert plt.get_fignums() == []
    yield
    plt.close("all")


@st.composite
def random_trees(draw):
    """Split random leaves in two to four."""
    n_rows = draw(st.integers(1, 30))
    builder = TreeBuilder(n_rows)
    leaves = [0]
    for _ in range(draw(st.integers(0, 8))):
        wide = [leaf for leaf in leaves if len(builder.rows(leaf)) > 1]
        if not wide:
            break
        node = draw(st.sampled_from(wide))
        size = len(builder.rows(node))
        K = draw(st.integers(2, min(4, size)))
        labels = draw(st.permutations([*range(K), *(i % K for i in range(size - K))]))
        leaves.remove(node)
        leaves += builder.add_split(node, labels, None)
    return builder.freeze()


def trusted(taxonomy, counts):
    """Return a tree whose nodes came back in so many of 20 refits."""
    features = tuple(np.zeros(n, dtype=int) for n in taxonomy.n_features_used)
    numbers = np.arange(1, taxonomy.tree.n_leaves + 1)
    curve = Curve(numbers, 1.0 / numbers, np.zeros(len(numbers)))
    shares = counts / 20
    trust = Stability(
        20, counts, counts, counts, features, shares, np.ones(taxonomy.tree.n_rows), curve
    )
    return replace(taxonomy, stability=trust)


@pytest.fixture(scope="session")
def trees():
    """Hypothesis strategy of random trees."""
    return random_trees()


@pytest.fixture(scope="session")
def depths():
    """Hypothesis strategy of what to cut them at."""
    return st.none() | st.integers(0, 5)


@pytest.fixture(scope="session")
def known():
    """12 rows, a split in three, then the second of them in two."""
    builder = TreeBuilder(12)
    W = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, -2.0]])
    builder.add_split(0, [0, 1, 2, 1] * 3, LinearRule(W, np.zeros(2)))
    builder.add_split(2, [0, 1, 0, 1, 0, 1], LinearRule(W[1:], np.zeros(2)))
    return builder.freeze(feature_names=["a", "$b$"])


@pytest.fixture(scope="session")
def assessed(known):
    """The same, of which nodes 1, 2 and 3 are stable, and 4 and 5 are not."""
    return trusted(known, np.array([20, 18, 10, 20, 9, 3]))


@pytest.fixture(scope="session")
def single():
    """A root alone."""
    return TreeBuilder(3).freeze()


@pytest.fixture(scope="session")
def chain():
    """A tree as deep as can be: each split takes one row away."""
    builder = TreeBuilder(DEEP + 1)
    node = 0
    for step in range(DEEP):
        labels = np.ones(DEEP + 1 - step, dtype=int)
        labels[0] = 0
        _, node = builder.add_split(node, labels, None)
    return builder.freeze()


@pytest.fixture(scope="session")
def animals():
    """The animals' tree, with trust, and their names."""
    bundle = load_animals()
    X = bundle.X / bundle.X.max(axis=0)
    model = Taxarbor(30, max_features=1, max_depth=9, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrowthWarning)
        taxonomy = model.fit(X).taxonomy_
    return trusted(taxonomy, np.full(taxonomy.tree.n_nodes, 20)), bundle.names


@pytest.fixture(scope="session")
def classes(animals):
    """A class for each animal: 13 of them, of different sizes."""
    _, names = animals
    return np.array([f"class {min(len(name), 15)}" for name in names])


@pytest.fixture(scope="session")
def hostile():
    """A tree of which features have the worst names, and as many classes."""
    n = len(HOSTILE)
    builder = TreeBuilder(2 * n)
    W = np.arange(2.0 * n).reshape(2, n) ** 2
    builder.add_split(0, [0, 1] * n, LinearRule(W, np.zeros(n)))
    builder.add_split(1, [0, 1] * (n // 2), LinearRule(W[:, ::-1], np.zeros(n)))
    return builder.freeze(feature_names=HOSTILE), HOSTILE * 2
