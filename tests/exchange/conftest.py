"""Taxonomies to convert, known and random."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import strategies as st

from taxarbor._types import SolveInfo, Status
from taxarbor.tables.columns import Columns
from taxarbor.taxonomy import NodeStatistics, Stability, Taxonomy
from taxarbor.taxonomy._stability_result import Curve
from taxarbor.tree import LinearRule, TreeBuilder

DEEP = 3000


@st.composite
def random_taxonomies(draw):
    """Split random leaves in two to four, with random rules or none, and random scores."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_rows, n_features = draw(st.integers(1, 25)), draw(st.integers(1, 3))
    dtype, has_rules = draw(st.sampled_from(["float32", "float64"])), draw(st.booleans())
    builder, leaves = TreeBuilder(n_rows), [0]
    for _ in range(draw(st.integers(0, 5))):
        node = draw(st.sampled_from(leaves))
        size = len(builder.rows(node))
        if size < 2:
            continue
        K = draw(st.integers(2, min(4, size)))
        labels = rng.permutation([*range(K), *(i % K for i in range(size - K))])
        weights = rng.normal(size=(K, n_features)) * (rng.random(n_features) < 0.7)
        rule = LinearRule(weights.astype(dtype), rng.normal(size=n_features).astype(dtype))
        leaves.remove(node)
        leaves += builder.add_split(node, labels, rule if has_rules else None)
        score = draw(st.floats())
        builder.record(node, score=score, objective=-score, info=None)
    names = draw(st.none() | st.lists(st.text(max_size=4), min_size=3, max_size=3))
    columns = Columns.plain(n_features, names and names[:n_features])
    sums = rng.normal(size=(builder.n_nodes, n_features))
    statistics = NodeStatistics(np.ones(builder.n_nodes), sums)
    return Taxonomy(builder.freeze(), columns, statistics if draw(st.booleans()) else None)


@pytest.fixture(scope="session")
def taxonomies():
    """Hypothesis strategy of random taxonomies, with and without rules and means."""
    return random_taxonomies()


@pytest.fixture(scope="session")
def known():
    """10 rows, a split in three, then the second of them in two."""
    builder = TreeBuilder(10)
    W = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, -2.0]])
    builder.add_split(0, [2, 0, 1, 1, 0, 1, 2, 0, 1, 1], LinearRule(W, np.array([0.5, 0.5])))
    W = np.array([[-3.0, 0.0], [3.0, 0.0]])
    builder.add_split(2, [0, 1, 0, 1, 1], LinearRule(W, np.array([2.0, 7.0])))
    info = SolveInfo(Status.CONVERGED, n_iter=4, n_passes=9.25, trace=(3.0, 0.1))
    builder.record(0, score=0.75, objective=0.1, info=info)
    builder.refuse(1, "too few rows")
    return Taxonomy(builder.freeze(), Columns.plain(2, "ab"))


@pytest.fixture(scope="session")
def bare(known):
    """The known taxonomy without its rules."""
    return replace(known, tree=replace(known.tree, rules=(None,) * known.tree.n_nodes))


@pytest.fixture(scope="session")
def assessed(known):
    """The known taxonomy; nodes 1 and 2 are stable, node 3 has no gap beside it."""
    n_recovered, n_separated = np.array([20, 18, 20, 16, 3, 2]), np.array([20, 18, 20, 4, 3, 2])
    curve = Curve(np.arange(1, 5), np.array([1.0, np.nan, 0.2, 0.1]), np.zeros(4))
    left_out = np.array([0.83, 0.9, 0.95, 0.75, np.nan, 0.5])
    counts = n_recovered, n_separated, n_recovered // 2
    stability = Stability(20, *counts, left_out, np.linspace(0, 1, 10), curve)
    return replace(known, stability=stability, made_by={"estimator": "Taxarbor", "C": np.inf})


@pytest.fixture(scope="session")
def chain():
    """A tree as deep as can be: each split takes one row away."""
    builder, node = TreeBuilder(DEEP + 1), 0
    rule = LinearRule(np.array([[-1.0], [1.0]]), np.zeros(1))
    for step in range(DEEP):
        labels = np.ones(DEEP + 1 - step, dtype=int)
        labels[0] = 0
        _, node = builder.add_split(node, labels, rule)
    return Taxonomy(builder.freeze())
