"""From coordinates to clusters and the tree above them, and the growth of their leaves."""

from concurrent.futures import ThreadPoolExecutor
from itertools import combinations

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from taxarbor._fit_context import Run
from taxarbor.clusters import find_clusters, find_coordinates
from taxarbor.clusters._find import PART_ROWS, PLANE_ROWS, GapSplitter, grow_leaves
from taxarbor.clusters.leaves import Leaves, fit_leaves, measure_objective
from taxarbor.grow import StoppingRule

FREE = GapSplitter((0.0, 2.0))
"""No bounds on the sizes of children."""
GRID = np.argwhere(np.ones((40, 40))).astype(float, order="C")
"""Rows with many ties."""


def find(X, n_leaves=None, *, run=None, branching=2, min_size=1, n_init=2, **limits):
    stop, splitter = StoppingRule(n_leaves, **limits), GapSplitter(min_size=min_size)
    limits = {"branching": branching, "stop": stop, "run": run or Run(), "n_init": n_init}
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


def test_clusters_without_a_gap_are_found():
    """Two clouds so close that their sum has one mode."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((2048, 64)) + 1.95 / 8.0 * rng.integers(0, 2, (2048, 1))
        nearer = X.mean(axis=1) > 1.95 / 16.0
        theirs = KMeans(2, n_init=10, random_state=seed).fit(X).labels_
        for n_init in (1, 6):
            ours = find(X, 2, n_init=n_init, run=Run(seed)).labels
            least = 0.9 * adjusted_rand_score(nearer, theirs)
            assert adjusted_rand_score(nearer, ours) >= least > 0.6


def test_with_more_starts_seeds_agree_better():
    """Where clusters overlap, and are more than requested."""
    rng = np.random.default_rng(1)
    X = 1.2 * rng.standard_normal((40, 10))[rng.integers(0, 40, 1500)]
    X += rng.standard_normal((1500, 10))
    coordinates, agreement, objectives = find_coordinates(X, 0), [], []
    for n_init in (1, 6):
        each = [find(X, 20, n_init=n_init, run=Run(seed)).labels for seed in range(4)]
        pairs = [adjusted_rand_score(*pair) for pair in combinations(each, 2)]
        agreement.append(np.mean(pairs))
        found = [Leaves.of(labels, 20, coordinates) for labels in each]
        objectives.append([measure_objective(one, coordinates, 1e-3) for one in found])
    assert agreement[1] > agreement[0] + 0.1
    assert (np.array(objectives[1]) <= np.array(objectives[0]) + 1e-3).all()


def test_of_many_rows_clusters_are_found_on_a_part():
    """Limits hold for all rows, and nothing depends on the number of threads."""
    rng = np.random.default_rng(0)
    n_rows = 2 * PART_ROWS + 2500
    truth = rng.integers(0, 30, n_rows)
    X = 3.0 * rng.standard_normal((30, 8))[truth] + rng.standard_normal((n_rows, 8))
    limits = {"n_leaves": 30}, {"n_leaves": 20, "min_size": 300}, {"max_leaf_size": 2000}
    for own in limits:
        clusters = find(X, **own)
        assert clusters.labels.shape == (n_rows,)
        assert np.bincount(clusters.labels).tolist() == sizes(clusters)
        assert clusters.tree.n_leaves == own.get("n_leaves", clusters.tree.n_leaves) >= 7
        assert min(sizes(clusters)) >= own.get("min_size", 1)
        assert max(sizes(clusters)) <= 1.5 * own.get("max_leaf_size", n_rows)
        if own == limits[0]:
            assert adjusted_rand_score(truth, clusters.labels) >= 0.9
        with ThreadPoolExecutor(2) as pool:
            other = find(X, run=Run(pool=pool, width=4), **own)
        np.testing.assert_array_equal(clusters.labels, other.labels)
        one, two = (found.tree.freeze(with_rows=False) for found in (clusters, other))
        np.testing.assert_array_equal(one.parents, two.parents)


def test_what_a_part_of_the_rows_does_not_have_is_found():
    """Two rows of thousands differ: all rows are searched where a part has too few clusters."""
    X = np.zeros((4 * PART_ROWS, 2))
    X[[5, 17_000]] = [3.0, 1.0]
    for seed in range(3):
        labels = find(X, 2, run=Run(seed)).labels
        assert np.flatnonzero(labels == labels[5]).tolist() == [5, 17_000]


def test_limits_hold(data):
    rng = np.random.default_rng(0)
    for n_rows, least in ((3000, 108), (PART_ROWS + 7500, 450)):
        truth = rng.integers(0, 30, n_rows)
        X = 3.0 * rng.standard_normal((30, 8))[truth] + rng.standard_normal((n_rows, 8))
        for seed in range(6):
            found = sizes(find(X, 20, min_size=least, run=Run(seed)))
            assert 10 <= len(found) <= 20
            assert min(found) >= least
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
