"""Trees to test with, known and random, and what it means that two are the same."""

import dataclasses

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from taxarbor._types import SolveInfo, Status
from taxarbor.tables.columns import Columns
from taxarbor.taxonomy import NodeStatistics, Stability
from taxarbor.tree import LinearRule, Tree, TreeBuilder

DEEP = 3000
PARTS = Columns | LinearRule | NodeStatistics | SolveInfo | Stability | Tree


def bits(value):
    """Return a value as one that equals only the same, to the bit but for kinds of NaN."""
    if isinstance(value, np.ndarray):
        assert not value.flags.writeable
        return value.dtype, value.shape, repr(value.tolist())
    if isinstance(value, PARTS):
        names = [one.name for one in dataclasses.fields(value) if not one.name.startswith("_")]
        return type(value), *(bits(getattr(value, name)) for name in names)
    if isinstance(value, tuple | list):
        return [bits(item) for item in value]
    return type(value), repr(value)


def assert_same(a, b):
    """Compare everything, to the bit."""
    assert type(a) is type(b)
    for field in dataclasses.fields(a):
        assert bits(getattr(a, field.name)) == bits(getattr(b, field.name))


def any_floats():
    return st.floats() | st.sampled_from([float("nan"), float("inf"), -float("inf")])


def infos():
    return st.none() | st.builds(
        SolveInfo,
        status=st.sampled_from(Status),
        n_iter=st.integers(0, 1000),
        n_passes=st.floats(0, 1e6),
        trace=st.lists(any_floats(), max_size=3).map(tuple),
    )


@st.composite
def rules(draw, n_targets, n_features, dtype):
    # Sums of a few of them must fit: how they overflow is no part of a rule.
    values = st.floats(-1e9, 1e9, allow_nan=False, width=8 * dtype.itemsize)
    targets = np.sort([*range(n_targets), *draw(st.sets(st.integers(0, n_targets - 1)))])
    weights = draw(hnp.arrays(dtype, (len(targets), n_features), elements=values))
    center = draw(hnp.arrays(dtype, n_features, elements=values))
    offsets = st.none() | hnp.arrays(dtype, len(targets), elements=values)
    return LinearRule(weights, center, draw(offsets), targets)


def frontier(builder, node, ruled):
    """Return the nodes below one that are leaves or have a rule, and none in between has."""
    below = []
    for child in builder.children(node):
        is_end = child in ruled or not builder.children(child)
        below += [child] if is_end else frontier(builder, child, ruled)
    return below


@st.composite
def random_trees(draw, has_rules=st.booleans(), dtype=np.dtype(np.float64), n_features=2):  # noqa: B008
    builder, leaves, has_rules = TreeBuilder(draw(st.integers(1, 25))), [0], draw(has_rules)
    for _ in range(draw(st.integers(0, 5))):
        node = draw(st.sampled_from(leaves))
        size = len(builder.rows(node))
        if size < 2:
            continue
        K = draw(st.integers(2, min(4, size)))
        labels = draw(st.permutations([*range(K), *(i % K for i in range(size - K))]))
        leaves.remove(node)
        leaves += builder.add_split(node, labels)
    if has_rules and builder.inner:
        ruled = draw(st.sets(st.sampled_from(builder.inner))) | {0}
        for node in ruled:
            n_targets = len(frontier(builder, node, ruled))
            builder.set_rule(node, draw(rules(n_targets, n_features, dtype)))
    for node in range(builder.n_nodes):
        score, objective = draw(any_floats()), draw(any_floats())
        builder.record(node, score=score, objective=objective, info=draw(infos()))
    for node in leaves:
        builder.refuse(node, draw(st.text(max_size=5)))
    return builder.freeze()


def assert_refused(function, values):
    """Assert that a function refuses each of some values."""
    for value in values:
        with pytest.raises(ValueError):  # noqa: PT011
            function(value)


@pytest.fixture(scope="session")
def builder():
    """Builder of the known tree: 10 rows, a split in three, then one of them in two."""
    builder = TreeBuilder(10)
    W = np.array([[1.0, 0.0], [0.0, 2.0], [-1.0, -2.0]])
    builder.add_split(0, [2, 0, 1, 1, 0, 1, 2, 0, 1, 1], LinearRule(W, np.array([0.5, 0.5])))
    W = np.array([[-3.0, 0.0], [3.0, 0.0]])
    builder.add_split(2, [0, 1, 0, 1, 1], LinearRule(W, np.array([2.0, 7.0])))
    info = SolveInfo(Status.CONVERGED, n_iter=4, n_passes=9.25, trace=(3.0, 0.1))
    builder.record(0, score=0.75, objective=0.1, info=info)
    builder.refuse(1, "too few rows")
    return builder


@pytest.fixture
def known(builder):
    """The known tree."""
    return builder.freeze()


@pytest.fixture
def bare(known):
    """The known tree without its rules."""
    return dataclasses.replace(known, rules=(None,) * known.n_nodes)


def make_chain():
    """Return a tree as deep as can be: each split takes one row away."""
    builder = TreeBuilder(DEEP + 1)
    rule = LinearRule(np.array([[-1.0], [1.0]]), np.zeros(1))
    node = 0
    for step in range(DEEP):
        labels = np.ones(DEEP + 1 - step, dtype=int)
        labels[0] = 0
        _, node = builder.add_split(node, labels, rule)
    return builder.freeze()


@pytest.fixture(scope="session")
def chain():
    """A tree as deep as can be."""
    return make_chain()
