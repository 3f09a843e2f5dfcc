"""Taxonomies to test with, known and random."""

import dataclasses

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from taxarbor.tables.columns import Columns
from taxarbor.taxonomy import NodeStatistics, Stability, Taxonomy
from taxarbor.taxonomy.stability_result import Curve
from taxarbor.taxonomy.statistics import sum_leaves
from taxarbor.tree import edit_tree
from tests.tree.conftest import builder, make_chain, random_trees

__all__ = ["builder"]


def drop_rows(taxonomy):
    """Return the taxonomy of a tree of counts."""
    tree = edit_tree.drop_rows(taxonomy.tree)
    return dataclasses.replace(taxonomy, tree=tree, stability=None)


def set_means(taxonomy, means):
    """Return the taxonomy with such means of its nodes."""
    counts = taxonomy.tree.sizes
    statistics = NodeStatistics(counts, counts[:, None] * np.asarray(means))
    return dataclasses.replace(taxonomy, statistics=statistics)


@st.composite
def stabilities(draw, tree):
    n_refits = draw(st.integers(1, 20))

    def counts(size):
        return draw(hnp.arrays(np.intp, size, elements=st.integers(0, n_refits)))

    n_cuts = draw(st.integers(0, tree.n_leaves))
    heights = hnp.arrays(np.float64, n_cuts, elements=st.floats(0, 1) | st.just(np.nan))
    return Stability(
        n_refits,
        counts(tree.n_nodes),
        counts(tree.n_nodes),
        np.linspace(1.0, 0.0, tree.n_nodes),
        Curve(np.arange(1, n_cuts + 1), draw(heights), draw(heights)),
    )


def made_by():
    values = st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | st.text()
    return st.none() | st.dictionaries(st.text(), values | st.lists(values, max_size=2))


@st.composite
def taxonomies(draw, has_rules=st.booleans()):  # noqa: B008
    """Draw a taxonomy, with or without rules and means."""
    n_features = draw(st.integers(1, 3))
    dtype = np.dtype(draw(st.sampled_from(["float32", "float64"])))
    tree = draw(random_trees(has_rules, dtype, n_features))
    names = st.lists(st.text(max_size=4), min_size=n_features, max_size=n_features)
    columns = Columns.plain(
        n_features,
        draw(st.none() | names),
        fills=draw(hnp.arrays(float, n_features, elements=st.floats(-1e9, 1e9))),
        is_boolean=draw(hnp.arrays(bool, n_features)),
        imputes=draw(st.booleans()),
    )
    shape, values = (tree.n_leaves, n_features), st.floats(-1e9, 1e9)
    gaps = draw(st.none() | hnp.arrays(float, shape, elements=st.floats(0, 1)))
    sums = draw(st.none() | hnp.arrays(float, shape, elements=values))
    sizes = tree.sizes[tree.leaves].astype(float)
    return Taxonomy(
        tree,
        columns,
        None if sums is None else sum_leaves(tree, sizes, sums, gaps),
        temperature=draw(st.none() | st.floats(0.01, 100)),
        stability=draw(st.none() | stabilities(tree)),
        made_by=draw(made_by()),
    )


@pytest.fixture
def known(builder):
    """The known tree."""
    return Taxonomy(builder.freeze(), Columns.plain(2, "ab", imputes=False))


@pytest.fixture
def bare(known):
    """The known tree without its rules."""
    rules = (None,) * known.tree.n_nodes
    return Taxonomy(dataclasses.replace(known.tree, rules=rules), known.columns)


@pytest.fixture
def with_means(known):
    """The known tree with means."""
    means = np.array([[2.0, -1.0], [-0.4, 2.0], [1 / 3, 4.0], [-0.5, 0.25]])
    counts = known.tree.sizes[known.tree.leaves] * 1.0
    statistics = sum_leaves(known.tree, counts, counts[:, None] * means)
    return dataclasses.replace(known, statistics=statistics)


@pytest.fixture
def assessed(known):
    """The known tree with stability: nodes 1 and 2; node 3 has no gap, the others are lost."""
    n_recovered, apart = np.array([20, 18, 20, 16, 3, 2]), np.array([20, 18, 20, 4, 3, 2])
    curve = Curve(np.arange(1, 5), np.array([1.0, np.nan, 0.2, 0.1]), np.zeros(4))
    left_out = np.array([0.83, 0.9, 0.95, 0.75, np.nan, 0.5])
    stability = Stability(20, n_recovered, apart, left_out, curve)
    made_by = {"estimator": "Taxarbor", "C": np.inf}
    return dataclasses.replace(known, stability=stability, made_by=made_by)


@pytest.fixture(scope="session")
def chain():
    """A taxonomy as deep as can be."""
    return Taxonomy(make_chain())
