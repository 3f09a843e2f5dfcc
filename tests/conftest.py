"""Fixtures of several rooms: tables of cars, and small taxonomies with known rules."""

import dataclasses
import signal

import numpy as np
import pandas as pd
import pytest

from taxarbor.tables.columns import Columns, FeatureRows
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy.statistics import describe_rows
from taxarbor.tree import LinearRule, TreeBuilder


@pytest.fixture
def ctrl_c():
    """Let Ctrl-C raise KeyboardInterrupt, even where the parent process ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def make_cars():
    """Make tables of cars: numbers, booleans, categories, missing values and an id."""

    def make(seed=0, n_rows=120, *, gaps=0.15):
        rng = np.random.default_rng(seed)
        origin = rng.choice(["usa", "europe", "japan"], n_rows, p=[0.5, 0.25, 0.25])
        is_large = (origin == "usa") & (rng.random(n_rows) < 0.6)
        weight = np.where(is_large, 4000.0, 2400.0) + rng.normal(0, 250, n_rows)
        makes = {
            "usa": ["ford", "dodge"],
            "europe": ["vw", "fiat"],
            "japan": ["toyota", "mazda"],
        }
        table = pd.DataFrame({
            "id": np.arange(1, n_rows + 1), "weight": weight.round(),
            "mpg": (50 - 0.008 * weight + rng.normal(0, 2, n_rows)).round(1),
            "origin": origin, "make": [rng.choice(makes[place]) for place in origin],
            "fuel": np.where(rng.random(n_rows) < 0.3, "diesel", "petrol"),
            "automatic": rng.random(n_rows) < np.where(is_large, 0.8, 0.2),
        })  # fmt: skip
        for name in ("mpg", "origin", "make", "fuel"):
            table[name] = table[name].where(rng.random(n_rows) >= gaps, None)
        return table

    return make


@pytest.fixture(scope="session")
def four_clusters():
    """A tree of four clusters among all of which the rule of the root chooses, and its rows."""
    X = np.array([[0.0, 0.0], [0.0, 4.0], [4.0, 0.0], [4.0, 4.0]]).repeat(5, axis=0)
    X += np.random.default_rng(0).normal(size=X.shape) / 8
    builder = TreeBuilder(20)
    builder.add_split(0, np.arange(20) // 10)
    builder.add_split(1, np.arange(10) // 5)
    builder.add_split(2, np.arange(10) // 5)
    centers = np.array([X[first : first + 5].mean(axis=0) for first in range(0, 20, 5)])
    builder.set_rule(0, LinearRule.nearest(centers))
    return describe_tree(builder.freeze(), X, ["a", "b"]), X


def describe_tree(tree, X, names=None):
    """Return a tree of the rows of an array as a taxonomy with their statistics."""
    columns = Columns.plain(X.shape[1], names)
    statistics = describe_rows(tree, columns, FeatureRows(X), tree.labels, None)
    return Taxonomy(tree, columns, statistics)


def assert_same_rules(tree, other, parts=("weights", "offsets")):
    """Assert that rules are at the same nodes of two trees, and equal to the bit."""
    for rule, same in zip(tree.rules, other.rules, strict=True):
        assert (rule is None) == (same is None)
        for part in parts if rule else ():
            np.testing.assert_array_equal(getattr(rule, part), getattr(same, part))


@pytest.fixture(scope="session")
def three_nodes(four_clusters):
    """The same, but the root chooses among three nodes, one of which has a rule of its own."""
    taxonomy, X = four_clusters
    first, second, third, fourth = taxonomy.means[taxonomy.tree.leaves]
    root = LinearRule.nearest(np.array([first, second, taxonomy.means[2]]))
    rules = (root, None, LinearRule.nearest(np.array([third, fourth])), *[None] * 4)
    tree = dataclasses.replace(taxonomy.tree, rules=rules)
    return dataclasses.replace(taxonomy, tree=tree), X
