"""Leaves, linked by Ward's method."""

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from taxarbor.grow import Run, StoppingRule, grow
from taxarbor.refine import Coordinates, compete, gather, link_leaves
from taxarbor.refine._links import POWER, ward_links
from taxarbor.split import GapSplitter


def parts(links, n_points, n_parts):
    """Return which points are together when only so many parts are left."""
    part = np.arange(n_points)
    members = [{point} for point in range(n_points)]
    for a, b in links[: n_points - n_parts]:
        members.append(members[a] | members[b])
        part[list(members[-1])] = len(members)
    return part


def is_same(one, other):
    pairs = len(set(zip(one.tolist(), other.tolist(), strict=True)))
    return pairs == len(set(one.tolist())) == len(set(other.tolist()))


def test_points_of_equal_weight_are_linked_as_scipy_does():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, p = rng.integers(2, 40), rng.integers(1, 6)
        X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-3, 4) + 5.0
        links, costs = ward_links(X, np.ones(n, dtype=np.intp))
        theirs = linkage(X, "ward")
        np.testing.assert_allclose(costs, theirs[:, 2] ** 2 / 2.0, rtol=1e-6)
        for n_parts in range(1, n + 1):
            assert is_same(parts(links, n, n_parts), fcluster(theirs, n_parts, "maxclust"))


def test_weights_are_repeated_points():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        counts = rng.integers(1, 6, rng.integers(2, 15))
        X = rng.standard_normal((len(counts), 3))
        links, costs = ward_links(X, counts)
        theirs = linkage(np.repeat(X, counts, axis=0), "ward")
        expected = theirs[len(theirs) - len(links) :, 2] ** 2 / 2.0  # the others cost nothing
        np.testing.assert_allclose(costs, expected, rtol=1e-6)
        for n_parts in range(1, len(counts) + 1):
            found = np.repeat(parts(links, len(counts), n_parts), counts)
            assert is_same(found, fcluster(theirs, n_parts, "maxclust"))


def test_links_are_in_order_and_ties_do_no_harm():
    for X in (np.zeros((9, 2)), np.arange(16.0)[:, None], np.argwhere(np.ones((4, 4)))):
        links, costs = ward_links(np.asarray(X, float), np.ones(len(X), dtype=np.intp))
        assert (np.diff(costs) >= 0.0).all()
        assert sorted(links.ravel().tolist()) == list(range(2 * len(X) - 2))
        assert (links < len(X) + np.arange(len(X) - 1)[:, None]).all()


def test_leaves_are_the_grown_ones_or_their_unions(rows_of, data):
    for X in data.values():
        rows = rows_of(X)
        coordinates = Coordinates.of(rows, 0)
        stop = StoppingRule(n_leaves=9)
        grown = grow(coordinates.rows, GapSplitter(n_init=1), branching=2, stop=stop, run=Run())
        assert compete(grown, coordinates) is None
        before = grown.labels
        linked = link_leaves(grown, coordinates, stop)
        np.testing.assert_array_equal(grown.labels, before)
        tree = linked.freeze()
        assert (tree.n_leaves, tree.n_nodes) == (9, 17)
        assert is_same(before, tree.labels)
        # The last links are the first splits: the tree is cut as Ward's is.
        assert (np.diff(tree.score[list(linked.inner)]) <= 0.0).all()
        means = np.array(
            [coordinates.values[tree.labels == leaf, :-1].mean(axis=0) for leaf in range(9)]
        )
        links, _ = ward_links(means, np.bincount(tree.labels) ** POWER)
        for n_clusters in range(2, 9):
            expected = parts(links, 9, n_clusters)[tree.labels]
            assert is_same(tree.cut(n_clusters), expected)
            fewer = link_leaves(grown, coordinates, StoppingRule(n_leaves=n_clusters))
            assert is_same(fewer.labels, expected)


def test_small_unions_stay_whole(rows_of, data):
    coordinates = Coordinates.of(rows_of(data["cloud"]), 0)
    run, splitter = Run(), GapSplitter(n_init=1)
    grown = grow(coordinates.rows, splitter, branching=2, stop=StoppingRule(20), run=run)
    linked = link_leaves(grown, coordinates, StoppingRule(max_leaf_size=60))
    assert 1 < linked.n_leaves < 20
    assert max(linked.size(leaf) for leaf in linked.leaves) <= 60
    assert min(linked.size(node) for node in linked.inner) > 60


def test_notes_stay_with_their_leaves(rows_of, data):
    coordinates, stop = Coordinates.of(rows_of(data["animals"]), 0), StoppingRule(n_leaves=5)
    grown = grow(coordinates.rows, GapSplitter(n_init=1), branching=2, stop=stop, run=Run())
    for leaf in grown.leaves:
        grown.refuse(leaf, str(sorted(grown.rows(leaf))))
    for tree in (
        link_leaves(grown, coordinates, stop),
        gather(grown, 3),
        gather(link_leaves(grown, coordinates, stop), 4),
    ):
        assert tree.n_leaves == 5
        for leaf in tree.leaves:
            assert tree.note(leaf) == str(sorted(tree.rows(leaf)))
    union = link_leaves(grown, coordinates, StoppingRule(n_leaves=4))
    assert sorted(bool(union.note(leaf)) for leaf in union.leaves) == [False, True, True, True]
