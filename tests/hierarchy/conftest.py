"""Trees to test with, known and random, and what it means that two are the same."""

import dataclasses

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from taxarbor._types import SolveInfo, Status
from taxarbor.hierarchy import Hierarchy, HierarchyBuilder, LinearRule

DEEP = 3000


def assert_same(a, b):
    """Compare everything, to the bit."""
    assert type(a) is type(b) is Hierarchy
    for field in dataclasses.fields(Hierarchy):
        x, y = getattr(a, field.name), getattr(b, field.name)
        if isinstance(x, np.ndarray):
            assert x.dtype == y.dtype
            np.testing.assert_array_equal(x, y)
            assert not y.flags.writeable
        elif field.name == "info":
            assert repr([i and (i, i.trace) for i in x]) == repr(
                [i and (i, i.trace) for i in y]
            )
        elif field.name != "rules":
            assert x == y
    for x, y in zip(a.rules, b.rules, strict=True):
        assert (x is None) == (y is None)
        if x is not None:
            for name in ("weights", "center", "offsets"):
                v, w = getattr(x, name), getattr(y, name)
                assert v.dtype == w.dtype
                assert v.tobytes() == w.tobytes()
                assert not w.flags.writeable


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
def rules(draw, n_children, n_features, dtype):
    # Sums of a few of them must fit: how they overflow is no part of a rule.
    values = st.floats(-1e9, 1e9, allow_nan=False, width=8 * dtype.itemsize)
    weights = draw(hnp.arrays(dtype, (n_children, n_features), elements=values))
    center = draw(hnp.arrays(dtype, n_features, elements=values))
    offsets = st.none() | hnp.arrays(dtype, n_children, elements=values)
    return LinearRule(weights, center, draw(offsets))


@st.composite
def random_trees(draw, has_rules=st.booleans()):  # noqa: B008
    n_rows, n_features = draw(st.integers(1, 25)), draw(st.integers(1, 3))
    dtype = np.dtype(draw(st.sampled_from(["float32", "float64"])))
    names = st.lists(st.text(max_size=4), min_size=n_features, max_size=n_features)
    builder = HierarchyBuilder(n_rows, draw(st.none() | names))
    leaves, has_rules = [0], draw(has_rules)
    for _ in range(draw(st.integers(0, 5))):
        node = draw(st.sampled_from(leaves))
        size = len(builder.rows(node))
        if size < 2:
            continue
        K = draw(st.integers(2, min(4, size)))
        labels = draw(st.permutations([*range(K), *(i % K for i in range(size - K))]))
        leaves.remove(node)
        rule = draw(rules(K, n_features, dtype)) if has_rules else None
        leaves += builder.add_split(node, labels, rule)
    for node in range(builder.n_nodes):
        score, objective = draw(any_floats()), draw(any_floats())
        builder.record(node, score=score, objective=objective, info=draw(infos()))
    for node in leaves:
        builder.refuse(node, draw(st.text(max_size=5)))
    return builder.freeze()


@pytest.fixture(scope="session")
def trees():
    """Hypothesis strategy of random hierarchies, with rules and without."""
    return random_trees()


@pytest.fixture(scope="session")
def ruled_trees():
    """Hypothesis strategy of random hierarchies that can predict."""
    return random_trees(st.just(True))


@pytest.fixture(scope="session")
def same():
    """Assertion that two hierarchies are the same."""
    return assert_same


@pytest.fixture(scope="session")
def builder():
    """Builder of the known tree: 10 rows, a split in three, then one of them in two."""
    builder = HierarchyBuilder(10, ["a", "b"])
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


@pytest.fixture(scope="session")
def chain():
    """A tree as deep as can be: each split takes one row away."""
    builder = HierarchyBuilder(DEEP + 1)
    rule = LinearRule(np.array([[-1.0], [1.0]]), np.zeros(1))
    node = 0
    for step in range(DEEP):
        labels = np.ones(DEEP + 1 - step, dtype=int)
        labels[0] = 0
        _, node = builder.add_split(node, labels, rule)
    return builder.freeze()
