"""Leaves, linked by Ward's method, and small ones merged."""

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage

from taxarbor.clusters.leaves import POWER, link_leaves, merge_small, ward_links
from taxarbor.grow import StoppingRule
from tests.split.conftest import same_partition


def parts(links, n_points, n_parts):
    """Return which points are together when only so many parts are left."""
    part = np.arange(n_points)
    members = [{point} for point in range(n_points)]
    for a, b in links[: n_points - n_parts]:
        members.append(members[a] | members[b])
        part[list(members[-1])] = len(members)
    return part


def test_links_are_those_of_scipy():
    """Points of larger weight are as many equal ones."""
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, p = rng.integers(2, 40), rng.integers(1, 6)
        counts = rng.integers(1, 6, n) if seed % 2 else np.ones(n, dtype=int)
        X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-3, 4) + 5.0
        links, costs = ward_links(X, counts)
        theirs = linkage(np.repeat(X, counts, axis=0), "ward")
        expected = theirs[len(theirs) - len(links) :, 2] ** 2 / 2.0  # the others cost nothing
        np.testing.assert_allclose(costs, expected, rtol=1e-6)
        for n_parts in range(1, n + 1):
            found = np.repeat(parts(links, n, n_parts), counts)
            assert same_partition(found, fcluster(theirs, n_parts, "maxclust"))


def test_links_are_in_order_and_ties_do_no_harm():
    for X in (np.zeros((9, 2)), np.arange(16.0)[:, None], np.argwhere(np.ones((4, 4)))):
        links, costs = ward_links(np.asarray(X, float), np.ones(len(X)))
        assert (np.diff(costs) >= 0.0).all()
        assert sorted(links.ravel().tolist()) == list(range(2 * len(X) - 2))
        assert (links < len(X) + np.arange(len(X) - 1)[:, None]).all()


def draw_leaves(seed, n_leaves=9):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n_leaves, 4)), rng.integers(1, 50, n_leaves)


def test_leaves_are_the_given_ones_or_their_unions():
    for seed in range(5):
        means, counts = draw_leaves(seed)
        links, costs = ward_links(means, counts**POWER)
        tree, place = link_leaves(means, counts, StoppingRule())
        assert sorted(place.tolist()) == list(range(9))
        assert [tree.size(leaf) for leaf in tree.leaves] == counts[np.argsort(place)].tolist()
        # The last links are the first splits: the tree is cut as Ward's is.
        frozen = tree.freeze(with_rows=False)
        np.testing.assert_allclose(frozen.score[list(tree.inner)], costs[::-1])
        for n_leaves in range(1, 10):
            fewer, place = link_leaves(means, counts, StoppingRule(n_leaves))
            assert fewer.n_leaves == n_leaves
            assert same_partition(place, parts(links, 9, n_leaves))
            sizes = np.bincount(place, weights=counts)
            assert [fewer.size(leaf) for leaf in fewer.leaves] == sizes.tolist()


def test_small_unions_stay_whole():
    means, counts = draw_leaves(0, 40)
    tree, _ = link_leaves(means, counts, StoppingRule(max_leaf_size=120))
    assert 1 < tree.n_leaves < 40
    assert max(tree.size(leaf) for leaf in tree.leaves) <= 120
    assert min(tree.size(node) for node in tree.inner) > 120


def test_small_leaves_are_merged_with_their_nearest():
    means = np.array([[0.0], [1.0], [10.0], [11.5], [12.0]])
    counts = np.array([3, 50, 50, 4, 60])
    assert merge_small(means, counts, 1).tolist() == [0, 1, 2, 3, 4]
    assert merge_small(means, counts, 5).tolist() == [0, 0, 1, 2, 2]
    for seed in range(20):
        means, counts = draw_leaves(seed, 15)
        for least in (1, 10, 60, 10_000):
            place = merge_small(means, counts, least)
            n_leaves = int(place.max()) + 1
            assert set(place.tolist()) == set(range(n_leaves))
            assert n_leaves == 1 or np.bincount(place, weights=counts).min() >= least
            assert n_leaves == 15 or counts.min() < least
