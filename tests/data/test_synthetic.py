"""Planted trees, and the estimator that must find them again."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from taxarbor import HMMC, make_planted_tree

SHAPES = [
    pytest.param({"n_rows": 800, "depth": 3, "branching": 2}, id="2x2x2"),
    pytest.param({"n_rows": 810, "depth": 2, "branching": 3}, id="3x3"),
]


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("branching", [2, 3, 4])
def test_shapes(depth, branching):
    planted = make_planted_tree(
        300, depth=depth, branching=branching, n_features_per_level=5, n_noise_features=3
    )
    assert planted.X.shape == (300, 5 * depth + 3)
    assert planted.labels.shape == (300,)
    assert len(planted.features) == depth
    sizes = np.bincount(planted.labels)
    assert len(sizes) == branching**depth
    assert sizes.max() - sizes.min() <= 1


def test_levels_have_features_of_their_own():
    planted = make_planted_tree(100, depth=3)
    together = np.concatenate(planted.features)
    assert len(np.unique(together)) == len(together)
    assert planted.X.shape[1] - len(together) == 8  # the noise, in no level


@pytest.mark.parametrize("branching", [2, 3, 4])
def test_features_tell_apart_the_children_of_their_level(branching):
    """Means differ between siblings of a level on its own features, and on no others."""
    depth = 2
    planted = make_planted_tree(9000, depth=depth, branching=branching)
    for level, own in enumerate(planted.features):
        child = planted.labels // branching ** (depth - 1 - level) % branching
        means = np.array([planted.X[child == k].mean(axis=0) for k in range(branching)])
        gaps = np.abs(means[:, None] - means[None]).max(axis=(0, 1))
        others = np.setdiff1d(np.arange(planted.X.shape[1]), own)
        assert gaps[own].min() > 2.0
        assert gaps[others].max() < 1.0
        # No two siblings are alike, and higher levels are further apart.
        distances = [
            np.linalg.norm(means[a, own] - means[b, own])
            for a in range(branching)
            for b in range(a)
        ]
        assert min(distances) > 6.0 * 2.0 ** (depth - 1 - level)


@pytest.mark.parametrize(
    ("branching", "n_features"), [(2, 1), (2, 3), (3, 2), (3, 3), (4, 4), (5, 3)]
)
def test_shifts_are_as_long_as_the_separation(branching, n_features):
    planted = make_planted_tree(
        20_000, depth=1, branching=branching, n_features_per_level=n_features, separation=10.0
    )
    for child in range(branching):
        shift = planted.X[planted.labels == child][:, planted.features[0]].mean(axis=0)
        np.testing.assert_allclose(np.linalg.norm(shift), 10.0, rtol=0.02)


def test_one_feature_cannot_tell_three_children_apart():
    with pytest.raises(ValueError, match="n_features_per_level"):
        make_planted_tree(100, depth=1, branching=3, n_features_per_level=1)


def test_the_noise_is_of_unit_variance():
    planted = make_planted_tree(20_000, depth=2)
    for leaf in range(4):
        within = planted.X[planted.labels == leaf].std(axis=0)
        np.testing.assert_allclose(within, 1.0, atol=0.05)


def test_the_seed_decides():
    one, same, other = (make_planted_tree(50, random_state=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.X, same.X)
    np.testing.assert_array_equal(one.labels, same.labels)
    assert not np.array_equal(one.X, other.X)


def test_more_separation_moves_leaves_apart():
    near, far = (make_planted_tree(200, depth=1, separation=s) for s in (1.0, 9.0))
    np.testing.assert_array_equal(near.labels, far.labels)

    def gap(planted):
        sides = [planted.X[planted.labels == k].mean(axis=0) for k in range(2)]
        return np.linalg.norm(sides[0] - sides[1])

    np.testing.assert_allclose(gap(far) - gap(near), 16.0, rtol=0.1)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["float32", "float64", "csr"])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("refine", [True, False])
def test_hmmc_finds_the_planted_tree(shape, kind, seed, refine):
    planted = make_planted_tree(**shape, random_state=seed)
    X = sparse.csr_array(planted.X) if kind == "csr" else planted.X.astype(kind)
    branching, depth = shape["branching"], shape["depth"]
    setting = {"alpha": 0.1, "beta": 0.1, "refine": refine, "random_state": seed}
    model = HMMC(branching**depth, branching=branching, **setting).fit(X)
    tree = model.hierarchy_
    assert adjusted_rand_score(planted.labels, model.labels_) >= 0.95
    assert tree.depth[tree.leaves].tolist() == [depth] * branching**depth
    for node, rule in enumerate(tree.rules):
        if rule is not None:
            allowed = set(planted.features[tree.depth[node]].tolist())
            assert rule.n_features_used > 0
            assert set(rule.features.tolist()) <= allowed


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("penalty", ["group", "exclusive", "l1", "l2"])
@pytest.mark.parametrize("refine", [True, False])
def test_every_variant_finds_the_leaves(shape, penalty, refine):
    planted = make_planted_tree(**shape)
    branching, depth = shape["branching"], shape["depth"]
    setting = {"penalty": penalty, "refine": refine, "random_state": 0}
    model = HMMC(branching**depth, branching=branching, **setting).fit(planted.X)
    assert adjusted_rand_score(planted.labels, model.labels_) >= 0.95


@pytest.mark.parametrize("solver", ["newton", "pqn"])
def test_every_solver_finds_the_leaves(solver):
    planted = make_planted_tree(400, depth=2)
    model = HMMC(n_clusters=4, refine=False, solver=solver, random_state=0).fit(planted.X)
    assert adjusted_rand_score(planted.labels, model.labels_) >= 0.95


@pytest.mark.parametrize("refine", [True, False])
def test_upper_levels_are_cut_first(refine):
    planted = make_planted_tree(400, depth=3)
    tree = HMMC(n_clusters=8, refine=refine, random_state=0).fit(planted.X).hierarchy_
    for n_clusters in (2, 4, 8):
        truth = planted.labels // (8 // n_clusters)
        assert adjusted_rand_score(truth, tree.cut(n_clusters)) >= 0.95
