"""Rows divided by planes: one node, and whole trees."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from taxarbor._run import Run
from taxarbor.clusters import find_coordinates
from taxarbor.clusters._find import grow_leaves
from taxarbor.grow import StoppingRule
from taxarbor.split._gap import PLANE_ROWS, GapSplitter

FREE = GapSplitter((0.0, 2.0))
"""No bounds on the sizes of children."""


def grow(X, n_leaves=None, splitter=FREE, run=None, max_children=2, **limits):
    stop = StoppingRule(n_leaves, **limits)
    coordinates = find_coordinates(np.ascontiguousarray(X, dtype=float), 0)
    return grow_leaves(coordinates, splitter, stop, run or Run(), max_children=max_children)


@pytest.mark.parametrize("splitter", [GapSplitter(), FREE])
def test_labels_are_those_of_the_leaves(data, splitter):
    for X in data.values():
        tree, labels = grow(X, 11, splitter)
        assert labels.dtype == np.int32
        assert tree.n_leaves == 11
        sizes = [tree.size(leaf) for leaf in tree.leaves]
        assert np.bincount(labels).tolist() == sizes
        for node in tree.inner:
            recorded = tree.recorded(node)
            assert recorded["score"] > 0.0
            assert recorded["objective"] == recorded["info"].trace[-1] >= 0.0
            assert (np.diff(recorded["info"].trace) <= 0.0).all()


def test_children_keep_to_their_bounds(data):
    for X in data.values():
        for balance, least, most in (((0.5, 1.5), 0.25, 0.75), ((1.0, 1.0), 0.5, 0.5)):
            _, labels = grow(X, 2, GapSplitter(balance))
            share = np.bincount(labels).max() / len(X)
            assert least <= 1.0 - share <= share <= most + 1.0 / len(X)


def test_trees_depend_on_the_rows_and_the_seed_alone(data):
    for X in (data["cloud"], np.argwhere(np.ones((40, 40)))):  # the latter with ties
        tree, labels = grow(X, 7)
        expected = tree.freeze(order=False)
        with ThreadPoolExecutor(2) as pool:
            for run in (Run(width=3), Run(pool=pool, width=4)):
                other, again = grow(X, 7, run=run)
                np.testing.assert_array_equal(labels, again)
                frozen = other.freeze(order=False)
                assert (frozen.notes, frozen.info) == (expected.notes, expected.info)
                for name in ("parents", "birth", "score", "objective"):
                    np.testing.assert_array_equal(
                        getattr(frozen, name), getattr(expected, name)
                    )
    assert len({grow(data["cloud"], 2, run=Run(seed))[1].tobytes() for seed in range(6)}) > 1


def test_equal_rows_stay_together():
    """Children have the bounds asked for as far as that allows, and the least size always."""
    rng = np.random.default_rng(0)
    for sizes in ((40, 40, 5), (60, 10, 10), (5, 70, 5)):
        X = np.repeat(rng.standard_normal((3, 2)), sizes, axis=0)
        for splitter in (GapSplitter(), GapSplitter(min_size=20), FREE):
            tree, labels = grow(X, 2, splitter)
            for part in np.split(labels, np.cumsum(sizes)[:-1]):
                assert len(set(part.tolist())) == 1
            if tree.n_leaves == 2:
                assert np.bincount(labels).min() >= splitter.min_size
            else:  # rather none than one that separates duplicates
                assert splitter.min_size == 20
                assert "duplicates" in tree.note(0)


def test_what_the_sample_does_not_have():
    """Three rows of thousands differ: no sample has them, and yet the node is divided."""
    X = np.zeros((6 * PLANE_ROWS, 2))
    X[[5, 99, 4000]] = [3.0, 1.0]
    for seed in range(3):
        _, labels = grow(X, 2, run=Run(seed))
        assert np.flatnonzero(labels == labels[5]).tolist() == [5, 99, 4000]
        tree, _ = grow(X, 2, GapSplitter((0.0, 2.0), min_size=50), Run(seed))
        assert "duplicates" in tree.note(0)
    for seed in range(15):
        rng = np.random.default_rng(seed)
        X = np.tile(rng.standard_normal(3), (PLANE_ROWS * rng.integers(1, 3), 1))
        far = int(rng.integers(len(X)))
        X[far] += 1.0
        _, labels = grow(X, 2, run=Run(seed))
        assert np.flatnonzero(labels == labels[far]).tolist() == [far]


def test_sizes_and_depths_hold(data):
    for X in data.values():
        splitter = GapSplitter((0.0, 2.0), min_size=12)
        assert np.bincount(grow(X, 30, splitter)[1]).min() >= 12
        assert np.bincount(grow(X, max_leaf_size=40)[1]).max() <= 40
        tree, _ = grow(X, max_depth=3)
        assert max(tree.depth(leaf) for leaf in tree.leaves) <= 3
        assert grow(X, max_depth=1, max_children=3)[0].n_leaves == 3


def test_an_observer_sees_the_leaves_asked_for(data):
    events = []
    coordinates = find_coordinates(data["cloud"], 0)
    run = Run(observer=events.append)
    grow_leaves(coordinates, GapSplitter(), StoppingRule(20), run, n_reported=10)
    numbers = [event.n_leaves for event in events]
    assert numbers == sorted(numbers)
    assert numbers[-1] == 10
    assert {event.max_leaves for event in events} == {10}
