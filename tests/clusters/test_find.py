"""From coordinates to clusters and the tree above them, and the growth of their leaves."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
from sklearn.metrics import adjusted_rand_score

from taxarbor._fit_context import Run
from taxarbor.clusters import find_clusters, find_coordinates
from taxarbor.clusters._find import PLANE_ROWS, GapSplitter, grow_leaves
from taxarbor.clusters.leaves import Leaves, fit_leaves
from taxarbor.grow import StoppingRule

FREE = GapSplitter((0.0, 2.0))
"""No bounds on the sizes of children."""
GRID = np.argwhere(np.ones((40, 40))).astype(float, order="C")
"""Rows with many ties."""


def find(X, n_leaves=None, *, run=None, branching=2, min_size=1, **limits):
    stop, splitter = StoppingRule(n_leaves, **limits), GapSplitter(min_size=min_size)
    limits = {"branching": branching, "stop": stop, "run": run or Run()}
    return find_clusters(find_coordinates(X, 0), splitter, **limits)


def sizes(clusters):
    return [clusters.tree.size(leaf) for leaf in clusters.tree.leaves]


def test_labels_are_those_of_the_leaves(data):
    for X in data.values():
        for n_leaves, limits in ((2, {}), (7, {}), (None, {"max_depth": 3})):
            clusters = find(X, n_leaves, **limits)
            assert clusters.labels.dtype == np.int32
            assert np.bincount(clusters.labels).tolist() == sizes(clusters)
            assert n_leaves in (None, clusters.tree.n_leaves)
            coordinates = find_coordinates(X, 0)
            leaves = Leaves.of(clusters.labels, clusters.tree.n_leaves, coordinates)
            model, _ = fit_leaves(leaves, coordinates)
            best = (coordinates.values[:, :-1] @ model.weights.T + model.offsets).argmax(axis=1)
            assert np.mean(best == clusters.labels) > 0.95


def test_clusters_depend_on_the_rows_and_the_seed_alone(data):
    for X in (data["cloud"], GRID):
        plain, (tree, labels) = find(X, 6), grow(X, 7)
        with ThreadPoolExecutor(2) as pool:
            for run in (Run(width=3), Run(pool=pool, width=4)):
                other, (again, others) = find(X, 6, run=run), grow(X, 7, run=run)
                np.testing.assert_array_equal(plain.labels, other.labels)
                one, two = (found.tree.freeze(with_rows=False) for found in (plain, other))
                np.testing.assert_array_equal(one.parents, two.parents)
                np.testing.assert_array_equal(labels, others)
                assert tree.freeze(with_rows=False).info == again.freeze(with_rows=False).info
    assert len({grow(data["cloud"], 2, run=Run(seed))[1].tobytes() for seed in range(6)}) > 1


def test_clusters_without_order_are_found():
    """A hundred about random points: planes split some of them, and leaves start again."""
    rng = np.random.default_rng(0)
    truth = np.arange(4000) % 100
    X = rng.standard_normal((100, 32))[truth] + rng.standard_normal((4000, 32))
    assert adjusted_rand_score(truth, find(X, 100).labels) >= 0.9
    _, grown = grow_leaves(find_coordinates(X, 0), GapSplitter(), StoppingRule(100), Run())
    assert adjusted_rand_score(truth, grown) < 0.8


def test_limits_hold(data):
    for X in data.values():
        assert max(sizes(find(X, max_leaf_size=60))) <= 90  # rows move after growth
        assert min(sizes(find(X, 12, min_size=15))) >= 15
        assert find(X, max_depth=2).tree.freeze(with_rows=False).height <= 2


# ---- leaves, divided by planes ----


def grow(X, n_leaves, splitter=FREE, run=None):
    coordinates = find_coordinates(np.ascontiguousarray(X, dtype=float), 0)
    return grow_leaves(coordinates, splitter, StoppingRule(n_leaves), run or Run())


def test_children_keep_to_their_bounds(data):
    for X in data.values():
        for balance, least, most in (((0.5, 1.5), 0.25, 0.75), ((1.0, 1.0), 0.5, 0.5)):
            _, labels = grow(X, 2, GapSplitter(balance))
            share = np.bincount(labels).max() / len(X)
            assert least <= 1.0 - share <= share <= most + 1.0 / len(X)


def test_what_the_sample_does_not_have():
    """Three rows of thousands differ: no sample has them, and yet the node is divided."""
    X = np.zeros((6 * PLANE_ROWS, 2))
    X[[5, 99, 4000]] = [3.0, 1.0]
    for seed in range(3):
        _, labels = grow(X, 2, run=Run(seed))
        assert np.flatnonzero(labels == labels[5]).tolist() == [5, 99, 4000]
        tree, _ = grow(X, 2, GapSplitter((0.0, 2.0), min_size=50), Run(seed))
        assert "duplicates" in tree.freeze(with_rows=False).notes[0]
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X = np.tile(rng.standard_normal(3), (PLANE_ROWS * rng.integers(1, 3), 1))
        far = int(rng.integers(len(X)))
        X[far] += 1.0
        _, labels = grow(X, 2, run=Run(seed))
        assert np.flatnonzero(labels == labels[far]).tolist() == [far]
