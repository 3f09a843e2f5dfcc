"""Trees to draw, random and known, and a backend that needs no screen."""

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import strategies as st

from taxarbor import Taxarbor, load_animals
from taxarbor.taxonomy import Stability, Taxonomy
from taxarbor.taxonomy.stability_result import Curve
from taxarbor.tree import LinearRule, TreeBuilder
from tests.taxonomy.conftest import chain
from tests.tree.conftest import random_trees

__all__ = ["chain"]

mpl.use("Agg")

HOSTILE = ("$x$", r"$\frac$", "two\nlines", "y" * 500, "", "\x07\ud800", "_under", "a & <b>")


def add_stability(taxonomy, counts):
    """Return a taxonomy whose nodes were recovered in so many of 20 refits."""
    numbers = np.arange(1, taxonomy.tree.n_leaves + 1)
    curve = Curve(numbers, 1.0 / numbers, np.zeros(len(numbers)))
    return replace(taxonomy, stability=Stability(20, counts, counts, counts / 20, curve))


TAXONOMIES = random_trees(st.just(False)).map(Taxonomy)
"""Hypothesis strategy of random taxonomies without rules."""


@pytest.fixture(scope="session")
def known():
    """12 rows, a split in three, then the second of them in two."""
    builder = TreeBuilder(12)
    W = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, -2.0]])
    builder.add_split(0, [0, 1, 2, 1] * 3, LinearRule(W, np.zeros(2)))
    builder.add_split(2, [0, 1, 0, 1, 0, 1], LinearRule(W[1:], np.zeros(2)))
    return Taxonomy(builder.freeze()).rename_features(["a", "$b$"])


@pytest.fixture(scope="session")
def assessed(known):
    """The same, of which nodes 1, 2 and 3 are stable, and 4 and 5 are not."""
    return add_stability(known, np.array([20, 18, 10, 20, 9, 3]))


@pytest.fixture(scope="session")
def single():
    """A root alone."""
    return Taxonomy(TreeBuilder(3).freeze())


@pytest.fixture(scope="session")
def animals():
    """The animals' tree, assessed, and their names."""
    bundle = load_animals()
    model = Taxarbor(30, random_state=0).fit(bundle.X / bundle.X.max(axis=0))
    taxonomy = model.taxonomy_.rename_features(bundle.feature_names)
    return add_stability(taxonomy, np.full(taxonomy.tree.n_nodes, 20)), bundle.names


@pytest.fixture(scope="session")
def hostile():
    """A tree of which features have the worst names, and as many classes."""
    n = len(HOSTILE)
    builder = TreeBuilder(2 * n)
    W = np.arange(2.0 * n).reshape(2, n) ** 2
    builder.add_split(0, [0, 1] * n, LinearRule(W, np.zeros(n)))
    builder.add_split(1, [0, 1] * (n // 2), LinearRule(W[:, ::-1], np.zeros(n)))
    return Taxonomy(builder.freeze()).rename_features(HOSTILE), HOSTILE * 2
