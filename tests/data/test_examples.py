"""The animals, and planted trees, which the estimators must find again."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import pdist
from sklearn.metrics import adjusted_rand_score

from taxarbor import HMMC, Taxarbor, make_planted_tree
from taxarbor.data import Bundle, load_animals

ORDINAL = {"size_class", "lifespan_class", "brood_size_class", "legs_count_class"}


@pytest.fixture(scope="module")
def animals() -> Bundle:
    return load_animals()


def walk(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack += node.get("children", [])


def value(animals: Bundle, name: str, feature: str) -> float:
    return float(animals.X[animals.names.index(name), animals.feature_names.index(feature)])


def test_values_are_small_whole_numbers(animals: Bundle) -> None:
    X = animals.X
    assert X.shape == (len(animals.names), len(animals.feature_names))
    assert X.shape[0] >= 100
    assert X.shape[1] >= 40
    assert np.array_equal(X, np.rint(X))
    highest = np.array([4 if name in ORDINAL else 1 for name in animals.feature_names])
    assert np.array_equal(X.min(axis=0), np.zeros(len(highest)))
    assert np.array_equal(X.max(axis=0), highest)  # so that no column is constant
    assert len(np.unique(X, axis=1).T) == X.shape[1]
    assert len(np.unique(X, axis=0)) == len(X)
    with pytest.raises(ValueError, match="read-only"):
        X[0, 0] = 1
    for names in (animals.names, animals.feature_names):
        assert len(set(names)) == len(names)
        assert all(name == name.lower().strip() for name in names)
    assert all(name in animals.description for name in ORDINAL)


def test_facts(animals: Bundle) -> None:
    for name, yes, no in (
        ("pipistrelle bat", "flies gives_milk echolocates", "lays_eggs has_feathers"),
        ("emperor penguin", "has_feathers lays_eggs mainly_polar", "flies gives_milk"),
        ("platypus", "lays_eggs gives_milk venomous webbed_feet", "teeth_in_jaws flies"),
        ("octopus", "changes_colour_at_will has_beak has_gills", "has_shell has_backbone"),
    ):
        for features, expected in ((yes, 1), (no, 0)):
            for feature in features.split():
                assert value(animals, name, feature) == expected, (name, feature)
    by_size = "flea", "mouse", "cat", "wolf", "elephant"
    assert [value(animals, name, "size_class") for name in by_size] == [0, 1, 2, 3, 4]


def test_the_tree(animals: Bundle) -> None:
    load_animals().tree["children"].clear()  # each call loads its own
    assert load_animals().tree["children"]
    nodes = list(walk(animals.tree))
    leaves = [node["name"] for node in nodes if "children" not in node]
    assert sorted(leaves) == sorted(animals.names)
    assert animals.tree["name"] == "animals"
    assert len({node["name"] for node in nodes}) == len(nodes)
    assert all(len(node["children"]) >= 2 for node in nodes if "children" in node)
    assert all(node.keys() <= {"name", "children"} for node in nodes)


SHAPES = [
    {"n_rows": 800, "depth": 3, "branching": 2},
    {"n_rows": 810, "depth": 2, "branching": 3},
]


def test_planted_shapes():
    for depth, branching in itertools.product((1, 2, 3), (2, 3, 4)):
        shape = {"depth": depth, "branching": branching, "n_features_per_level": 5}
        planted, same, other = (
            make_planted_tree(300, **shape, n_noise_features=3, random_state=seed)
            for seed in (1, 1, 2)
        )
        np.testing.assert_array_equal(planted.X, same.X)
        np.testing.assert_array_equal(planted.labels, same.labels)
        assert not np.array_equal(planted.X, other.X)
        assert planted.X.shape == (300, 5 * depth + 3)
        assert planted.labels.shape == (300,)
        assert len(planted.features) == depth
        sizes = np.bincount(planted.labels)
        assert len(sizes) == branching**depth
        assert sizes.max() - sizes.min() <= 1
        together = np.concatenate(planted.features)
        assert len(np.unique(together)) == len(together) == 5 * depth  # the noise in no level


def test_features_tell_apart_the_children_of_their_level():
    """Means differ between siblings of a level on its own features, and on no others."""
    for branching, level in itertools.product((2, 3, 4), (0, 1)):
        planted = make_planted_tree(9000, depth=2, branching=branching)
        own = planted.features[level]
        child = planted.labels // branching ** (1 - level) % branching
        means = np.array([planted.X[child == k].mean(axis=0) for k in range(branching)])
        gaps = np.abs(means[:, None] - means[None]).max(axis=(0, 1))
        assert gaps[own].min() > 2.0
        assert np.delete(gaps, own).max() < 1.0
        # No two siblings are alike, and higher levels are further apart.
        assert pdist(means[:, own]).min() > 6.0 * 2.0 ** (1 - level)


def test_shifts_are_as_long_as_the_separation():
    for branching, n_features in ((2, 1), (2, 3), (3, 2), (3, 3), (4, 4), (5, 3)):
        shape = {"depth": 1, "branching": branching, "n_features_per_level": n_features}
        planted = make_planted_tree(20_000, **shape, separation=10.0)
        for child in range(branching):
            rows = planted.X[planted.labels == child]
            shift = rows[:, planted.features[0]].mean(axis=0)
            np.testing.assert_allclose(np.linalg.norm(shift), 10.0, rtol=0.02)
            np.testing.assert_allclose(rows.std(axis=0), 1.0, atol=0.05)
    with pytest.raises(ValueError, match="n_features_per_level"):
        make_planted_tree(100, depth=1, branching=3, n_features_per_level=1)


@pytest.mark.parametrize("is_ours", [True, False])
def test_both_methods_find_the_planted_tree(is_ours):
    for shape, seed, kind in itertools.product(SHAPES, (0, 1), ("float32", "float64", "csr")):
        branching, depth = shape["branching"], shape["depth"]
        planted = make_planted_tree(**shape, random_state=seed)
        X = sparse.csr_array(planted.X) if kind == "csr" else planted.X.astype(kind)
        sizes = {"n_clusters": branching**depth, "branching": branching, "random_state": seed}
        model = Taxarbor(**sizes) if is_ours else HMMC(alpha=0.1, beta=0.1, **sizes)
        model.fit(X)
        tree = model.taxonomy_.tree
        assert adjusted_rand_score(planted.labels, model.labels_) >= 0.95
        assert tree.depth[tree.leaves].tolist() == [depth] * branching**depth
        for node, rule in enumerate(tree.rules):
            if rule is not None:
                allowed = set(planted.features[tree.depth[node]].tolist())
                assert rule.n_features_used > 0
                assert set(rule.features.tolist()) <= allowed


def test_every_variant_and_solver_finds_the_leaves():
    for shape, penalty in itertools.product(SHAPES, ("group", "exclusive", "l1", "l2")):
        planted = make_planted_tree(**shape)
        branching, depth = shape["branching"], shape["depth"]
        setting = {"penalty": penalty, "random_state": 0}
        model = HMMC(branching**depth, branching=branching, **setting).fit(planted.X)
        assert adjusted_rand_score(planted.labels, model.labels_) >= 0.95
    planted = make_planted_tree(400, depth=2)
    for solver in ("newton", "pqn"):
        model = HMMC(n_clusters=4, solver=solver, random_state=0).fit(planted.X)
        assert adjusted_rand_score(planted.labels, model.labels_) >= 0.95


def test_upper_levels_are_cut_first():
    planted = make_planted_tree(400, depth=3)
    for method in (Taxarbor, HMMC):
        tree = method(n_clusters=8, random_state=0).fit(planted.X).taxonomy_.tree
        for n_clusters in (2, 4, 8):
            truth = planted.labels // (8 // n_clusters)
            assert adjusted_rand_score(truth, tree.cut(n_clusters)) >= 0.95
