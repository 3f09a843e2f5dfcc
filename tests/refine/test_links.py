"""Leaves, linked by Ward's method."""

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from taxarbor.grow import StoppingRule
from taxarbor.refine import compete, gather, link_leaves
from taxarbor.refine._links import POWER, ward_links


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


def test_leaves_are_the_grown_ones_or_their_unions(coordinates_of, data, grown_on, values_of):
    for X in data.values():
        coordinates = coordinates_of(X, sizes=[70, len(X) - 70])
        stop = StoppingRule(n_leaves=9)
        grown, _ = compete(grown_on(coordinates, 9), coordinates)
        before = values_of(grown.labels, coordinates)
        linked, place = link_leaves(grown, coordinates, stop)
        np.testing.assert_array_equal(values_of(grown.labels, coordinates), before)
        labels = values_of(linked.labels, coordinates)
        np.testing.assert_array_equal(labels, place[before])
        tree = linked.tree.freeze(order=np.argsort(labels, kind="stable"))
        np.testing.assert_array_equal(tree.labels, labels)
        assert (tree.n_leaves, tree.n_nodes) == (9, 17)
        assert is_same(before, labels)
        # The last links are the first splits: the tree is cut as Ward's is.
        assert (np.diff(tree.score[list(linked.tree.inner)]) <= 0.0).all()
        Z = coordinates.array.astype(np.float64)
        means = np.array([Z[labels == leaf].mean(axis=0) for leaf in range(9)])
        np.testing.assert_allclose(linked.means, means, rtol=1e-9, atol=1e-12)
        np.testing.assert_array_equal(linked.counts, np.bincount(labels))
        links, _ = ward_links(means, np.bincount(labels) ** POWER)
        for n_clusters in range(2, 9):
            expected = parts(links, 9, n_clusters)[labels]
            assert is_same(tree.cut(n_clusters), expected)
            fewer, home = link_leaves(grown, coordinates, StoppingRule(n_leaves=n_clusters))
            found = values_of(fewer.labels, coordinates)
            assert is_same(found, expected)
            np.testing.assert_array_equal(found, home[before])
            np.testing.assert_array_equal(fewer.counts, np.bincount(found))
            assert [fewer.tree.size(leaf) for leaf in fewer.tree.leaves] == [*fewer.counts]


def test_small_unions_stay_whole(coordinates_of, data, grown_on):
    coordinates = coordinates_of(data["cloud"])
    grown = grown_on(coordinates, 20)
    tree = link_leaves(grown, coordinates, StoppingRule(max_leaf_size=60))[0].tree
    assert 1 < tree.n_leaves < 20
    assert max(tree.size(leaf) for leaf in tree.leaves) <= 60
    assert min(tree.size(node) for node in tree.inner) > 60


def test_notes_stay_with_their_leaves(coordinates_of, data, grown_on, values_of):
    coordinates, stop = coordinates_of(data["animals"]), StoppingRule(n_leaves=5)
    grown = grown_on(coordinates, 5)

    def told(labels, leaf):
        return str(np.flatnonzero(labels == leaf).tolist())

    before = values_of(grown.labels, coordinates)
    for at, leaf in enumerate(grown.tree.leaves):
        grown.tree.refuse(leaf, told(before, at))
    linked, _ = link_leaves(grown, coordinates, stop)
    after = values_of(linked.labels, coordinates)
    for tree, labels in (
        (linked.tree, after),
        (gather(grown.tree, 3), before),
        (gather(linked.tree, 4), after),
    ):
        assert tree.n_leaves == 5
        for at, leaf in enumerate(tree.leaves):
            assert tree.note(leaf) == told(labels, at)
            assert tree.size(leaf) == np.count_nonzero(labels == at)
    union = link_leaves(grown, coordinates, StoppingRule(n_leaves=4))[0].tree
    assert sorted(bool(union.note(leaf)) for leaf in union.leaves) == [False, True, True, True]
