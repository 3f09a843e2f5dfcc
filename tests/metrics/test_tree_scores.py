"""Similarities, tree scores and node scores, against their definitions, pair by pair."""

import itertools
import json
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from taxarbor import metrics
from taxarbor.data import load_animals
from taxarbor.exchange import from_labels
from taxarbor.metrics import ClassTree, dasgupta_cost, dendrogram_purity, score_hierarchy
from taxarbor.metrics._tree_scores import LeafPairs

HERE = Path(__file__).resolve()
FOLDER = Path(os.environ.get("TAXARBOR_DATA", HERE.parents[3] / "shared" / "data"))
MEASURES = ("shortest_path", "path_sharing")
SIMILARITIES = {name: getattr(metrics, f"{name}_similarity") for name in MEASURES}
SCORES = {name: getattr(metrics, f"{name}_score") for name in MEASURES}
NAMES = list("abcdef")
OF_TREES = [f"{kind}{name}" for kind in ("", "adjusted_", "chance_") for name in SCORES]
OF_CLASSES = ["rand", "adjusted_rand", "adjusted_mutual_info", "dendrogram_purity"]
BY_HAND = ((("cat", "dog"), "mouse"), ("owl", "duck"), "coral")


def nested(node):
    """Return nested mappings for nested tuples of names; inner nodes have none."""
    if isinstance(node, str):
        return {"name": node}
    return {"name": "", "children": [nested(child) for child in node]}


@pytest.fixture(params=SCORES)
def measure(request):
    return request.param


@pytest.fixture(params=[2**18, 7], ids=["whole", "blocks"])
def block_size(request, monkeypatch):
    monkeypatch.setattr("taxarbor.metrics._tree_scores._BLOCK_SIZE", request.param)


# Similarities


@pytest.mark.usefixtures("block_size")
def test_similarity_pair_by_pair(trees, literal, measure):
    similar = literal.similarities[measure]
    for seed in range(10):
        learned = trees.grow(seed, n_leaves=1 + seed)
        true = ClassTree.read(trees.draw_truth(seed, list("abcdefghi")))
        for taxonomy in (learned, true):
            found = SIMILARITIES[measure](taxonomy)
            expected = [
                [similar(taxonomy, i, j) for j in taxonomy.tree.leaves]
                for i in taxonomy.tree.leaves
            ]
            np.testing.assert_allclose(found, expected, atol=1e-15)
            assert found.dtype == np.float64
            assert (found == found.T).all()
            assert (found.diagonal() == 1.0).all()
        chosen = np.random.default_rng(seed).permutation(true.n_leaves)[:4]
        some = LeafPairs.of(true.parents, true.leaves[chosen]).matrix(measure)
        np.testing.assert_array_equal(some, found[np.ix_(chosen, chosen)])


def test_similarities_by_hand():
    taxonomy = ClassTree.read(nested(BY_HAND))
    assert taxonomy.names == ("cat", "dog", "mouse", "owl", "duck", "coral")
    # Cat and dog share mammal and carnivore, and each has three nodes.
    pairs, shared = np.triu_indices(6, k=1), np.zeros((6, 6))
    shared[pairs] = [2 / 3, 1 / 3, 0, 0, 0, 1 / 3, 0, 0, 0, 0, 0, 0, 1 / 2, 0, 0]
    expected = shared + shared.T + np.eye(6)
    np.testing.assert_allclose(metrics.path_sharing_similarity(taxonomy), expected, atol=1e-15)
    edges = np.zeros((6, 6))
    edges[pairs] = [2, 3, 5, 5, 4, 3, 5, 5, 4, 4, 4, 3, 2, 3, 3]
    expected = 1 - (edges + edges.T) / 5
    np.testing.assert_allclose(metrics.shortest_path_similarity(taxonomy), expected, atol=1e-15)
    # A single child makes branches longer.
    taxonomy = ClassTree.read(nested((((("cat",), "dog"),), "rock")))
    np.testing.assert_allclose(metrics.path_sharing_similarity(taxonomy)[0, 1], 2 / 4)
    np.testing.assert_allclose(metrics.shortest_path_similarity(taxonomy)[0, 1], 1 - 3 / 5)
    for similarity in SIMILARITIES.values():
        np.testing.assert_array_equal(
            similarity(ClassTree.read(nested(tuple("abcd")))), np.eye(4)
        )
        for one in ("a", ("a",), (("a",),)):
            assert similarity(ClassTree.read(nested(one))) == [[1.0]]


def test_similarities_in_a_deep_tree():
    height = 3000
    # Of each two children, the second is split again.
    parents = np.array([-1, *(2 * (i // 2) for i in range(2 * height))])
    taxonomy = ClassTree(parents, tuple(f"n{i}" for i in range(len(parents))))
    found = LeafPairs.of(taxonomy.tree.parents, taxonomy.tree.leaves[[0, 1, -1]])
    assert found.diameter == height + 1
    assert sorted(found.depth) == [1, 2, height]
    assert found.matrix("path_sharing")[1, 2] == 1 / height


# Agreement with a true tree


def both_similarities(literal, measure, taxonomy, y, truth):
    """Return the similarity of each pair of rows in the learned and in the true tree."""
    similar, true = literal.similarities[measure], ClassTree.read(truth)
    leaf_of_row = taxonomy.tree.leaves[taxonomy.tree.labels]
    leaf_of_class = dict(zip(true.names, true.leaves, strict=True))
    pairs = literal.pairs(len(y))
    a = [similar(taxonomy, leaf_of_row[i], leaf_of_row[j]) for i, j in pairs]
    b = [similar(true, leaf_of_class[y[i]], leaf_of_class[y[j]]) for i, j in pairs]
    return np.array(a), np.array(b)


@pytest.mark.usefixtures("block_size")
def test_score_pair_by_pair(trees, literal, measure):
    score = SCORES[measure]
    for seed in range(10):
        taxonomy, truth = trees.grow(seed, n_leaves=1 + seed % 7), trees.draw_truth(seed, NAMES)
        y = np.random.default_rng(seed).choice(NAMES, 14)
        a, b = both_similarities(literal, measure, taxonomy, y, truth)
        error = np.mean((a - b) ** 2)
        chance = np.mean(a**2) + np.mean(b**2) - 2 * np.mean(a) * np.mean(b)
        assert type(score(taxonomy, y, truth)) is float
        assert score(taxonomy, y, truth) == pytest.approx(1 - error, abs=1e-14)
        adjusted = score(taxonomy, y, truth, adjusted=True)
        assert adjusted == pytest.approx(1 - error / chance, abs=1e-12)


def test_chance_is_the_mean_over_all_orders_of_rows(trees, literal, measure):
    for seed in range(4):
        taxonomy, truth = trees.grow(seed, n_rows=5, n_leaves=3), trees.draw_truth(seed, NAMES)
        y = np.random.default_rng(seed).choice(NAMES, 5)
        errors, adjusted = [], []
        for order in itertools.permutations(y):
            a, b = both_similarities(literal, measure, taxonomy, list(order), truth)
            errors.append(np.mean((a - b) ** 2))
            adjusted.append(SCORES[measure](taxonomy, order, truth, adjusted=True))
        chance = score_hierarchy(taxonomy, y, truth)[f"chance_{measure}"]
        assert chance == pytest.approx(1 - math.fsum(errors) / len(errors), abs=1e-13)
        assert math.fsum(adjusted) / len(adjusted) == pytest.approx(0.0, abs=1e-12)


def test_the_true_tree_scores_one(trees, measure):
    for seed in range(5):
        truth = trees.draw_truth(seed, NAMES, chains=False)
        y = np.random.default_rng(seed).permutation(NAMES * 4)
        taxonomy = trees.split_like(truth, y)
        for adjusted in (False, True):
            found = SCORES[measure](taxonomy, y, truth, adjusted=adjusted)
            assert found == pytest.approx(1.0, abs=1e-14)
            assert found <= 1.0
    # Flat trees give the Rand index.
    rng = np.random.default_rng(0)
    taxonomy, y = from_labels(rng.integers(0, 4, 30)), rng.choice(NAMES, 30)
    found = SCORES[measure](taxonomy, y, nested(NAMES))
    assert found == pytest.approx(score_hierarchy(taxonomy, y)["rand"], abs=1e-14)


def test_order_and_names_do_not_matter(trees, measure):
    rng = np.random.default_rng(0)
    taxonomy, truth = trees.grow(0), trees.draw_truth(0, NAMES)
    y, score = rng.choice(NAMES, 14), SCORES[measure]
    found = score(taxonomy, y, truth)
    renamed = json.loads(json.dumps(truth).replace('"name": "', '"name": "the '))
    assert score(taxonomy, [f"the {name}" for name in y], renamed) == found
    order = rng.permutation(14)
    other = from_labels(taxonomy.tree.labels[order])
    flat = from_labels(taxonomy.tree.labels)
    assert score(other, y[order], truth) == pytest.approx(score(flat, y, truth), abs=1e-14)
    numbers, truth = rng.integers(0, 6, 14), trees.draw_truth(0, list("012345"))
    assert score(taxonomy, numbers, truth) == score(taxonomy, numbers.astype(str), truth)


def test_unused_leaves_count_for_the_greatest_distance_only(trees):
    taxonomy, y = trees.grow(0), ["a", "b"] * 7
    narrow, wide = nested((("a", "b"), "c")), nested((("a", "b"), ((("c",),),)))
    assert metrics.path_sharing_score(taxonomy, y, narrow) == metrics.path_sharing_score(
        taxonomy, y, wide
    )
    flat = from_labels(np.zeros(14))
    # 49 of 91 pairs are of different classes, 2 edges apart: similar by 1 - 2 / 3, 1 - 2 / 6.
    assert metrics.shortest_path_score(flat, y, narrow) == pytest.approx(
        1 - 49 / 91 * (2 / 3) ** 2
    )
    assert metrics.shortest_path_score(flat, y, wide) == pytest.approx(
        1 - 49 / 91 * (2 / 6) ** 2
    )


def test_where_chance_never_or_always_errs(measure):
    score, together = SCORES[measure], from_labels(np.zeros(5))
    assert score(together, ["a"] * 5, nested(("a", "b")), adjusted=True) == 1.0
    assert score(together, ["a"] * 5, nested("a"), adjusted=True) == 1.0
    apart = from_labels(np.arange(6))
    assert score(apart, NAMES, nested(NAMES), adjusted=True) == 1.0
    for adjusted in (True, False):
        assert score(apart, ["a"] * 6, nested(("a", "b")), adjusted=adjusted) == 0.0


@pytest.fixture(scope="module")
def animals():
    """Animals with Attributes: rows, names of their classes, the true tree."""
    path = FOLDER / "awa_attr.npz"
    if not path.exists():
        pytest.skip(f"{path} is absent; the variable TAXARBOR_DATA can name its folder")
    with np.load(path, allow_pickle=False) as file:
        X, y = file["X"].astype(np.float32), file["class_names"][file["y"]]
    return X, y, ClassTree.read(path.with_name("awa_attr.hierarchy.json"))


@pytest.mark.long
def test_kmeans_scores_as_measured_before(animals):
    from sklearn.cluster import KMeans

    X, y, truth = animals
    expected = {"shortest_path": 77.94, "path_sharing": 92.76, "rand": 95.99}
    found = dict.fromkeys(expected, 0.0)
    for seed in range(2):
        labels = KMeans(50, n_init=1, random_state=seed).fit_predict(X)
        scores = score_hierarchy(from_labels(labels), y, truth)
        for name in expected:
            found[name] += 100 * scores[name] / 2
    assert found == pytest.approx(expected, abs=0.15)


# Node by node


def purity_by_pairs(literal, taxonomy, y):
    shares = []
    for i, j in literal.pairs(len(y)):
        if y[i] == y[j]:
            rows = taxonomy.tree.rows(literal.lowest_common_ancestor(taxonomy, i, j))
            shares.append(sum(y[row] == y[i] for row in rows) / len(rows))
    return sum(shares) / len(shares)


def cost_by_pairs(literal, taxonomy, y, truth):
    """Return the cost, and the sum of similarities."""
    cost = total = 0.0
    true = None if truth is None else ClassTree.read(truth)
    for i, j in literal.pairs(len(y)):
        if true is None:
            similarity = float(y[i] == y[j])
        else:
            one, other = (true.leaves[true.names.index(name)] for name in (y[i], y[j]))
            similarity = literal.similarities["shortest_path"](true, one, other)
        cost += similarity * len(
            taxonomy.tree.rows(literal.lowest_common_ancestor(taxonomy, i, j))
        )
        total += similarity
    return cost, total


@pytest.mark.usefixtures("block_size")
def test_purity_and_cost_pair_by_pair(trees, literal):
    for seed in range(10):
        taxonomy = trees.grow(seed, n_leaves=1 + seed)
        y = np.random.default_rng(seed).choice(NAMES[:5], 14)
        found = dendrogram_purity(taxonomy, y)
        assert type(found) is float
        assert found == pytest.approx(purity_by_pairs(literal, taxonomy, y), abs=1e-14)
        for truth in (None, trees.draw_truth(seed, NAMES[:5])):
            cost, total = cost_by_pairs(literal, taxonomy, y, truth)
            found = dasgupta_cost(taxonomy, y, truth, normalize=False)
            assert type(found) is float
            assert found == pytest.approx(cost, rel=1e-13)
            normal = dasgupta_cost(taxonomy, y, truth)
            assert normal == pytest.approx(cost / (total * 14), rel=1e-13)


def test_purity_and_cost_by_hand(known):
    # Leaves {0, 1}, {2}, {3}, {4, 5}; above them {0, 1, 2} and {3, 4, 5}.
    y = ["a", "a", "a", "b", "b", "a"]
    a = [1, 1, 1, 4 / 6, 4 / 6, 4 / 6]  # pairs 01, 02, 12, and each of 0, 1, 2 with 5
    b = [2 / 3]  # pair 34
    assert dendrogram_purity(known, y) == pytest.approx(sum(a + b) / 7)
    assert dasgupta_cost(known, y, normalize=False) == 2 + 3 + 3 + 3 * 6 + 3
    assert dasgupta_cost(known, y) == pytest.approx(29 / (7 * 6))
    taxonomy, y = from_labels(np.zeros(6)), ["a", "a", "a", "a", "b", "b"]
    assert dendrogram_purity(taxonomy, y) == pytest.approx((6 * 4 / 6 + 2 / 6) / 7)
    assert dasgupta_cost(taxonomy, y) == dasgupta_cost(taxonomy, y, nested(("a", "b"))) == 1.0


def test_purity_and_cost_of_special_trees(trees):
    truth = trees.draw_truth(0, NAMES, chains=False)
    y = np.random.default_rng(0).permutation(NAMES * 3)
    assert dendrogram_purity(trees.split_like(truth, y), y) == pytest.approx(1.0, abs=1e-14)
    taxonomy, y = trees.grow(0), np.random.default_rng(0).choice(NAMES, 14)
    star = nested(NAMES)
    assert dasgupta_cost(taxonomy, y, star) == pytest.approx(
        dasgupta_cost(taxonomy, y), rel=1e-14
    )
    taxonomy, y = trees.grow(0, n_rows=600, n_leaves=600), np.arange(600) % 7
    assert np.max(np.bincount(y) / 600) < dendrogram_purity(taxonomy, y) < 1.0
    assert 0.0 < dasgupta_cost(taxonomy, y) < 1.0


def test_without_a_pair_there_is_no_value_and_order_does_not_matter(trees):
    taxonomy, y = from_labels([0, 0, 1]), ["a", "b", "c"]
    assert math.isnan(dendrogram_purity(taxonomy, y))
    assert all(
        math.isnan(dasgupta_cost(taxonomy, y, truth))
        for truth in (None, nested(("a", "b", "c")))
    )
    assert dasgupta_cost(taxonomy, y, normalize=False) == 0.0
    rng = np.random.default_rng(0)
    taxonomy, y = trees.grow(0), rng.integers(0, 4, 14)
    for score in (dendrogram_purity, dasgupta_cost):
        assert score(taxonomy, rng.permutation(4)[y]) == pytest.approx(
            score(taxonomy, y), rel=1e-14
        )
        flat, order = from_labels(taxonomy.tree.labels), rng.permutation(14)
        shuffled = from_labels(taxonomy.tree.labels[order])
        assert score(shuffled, y[order]) == pytest.approx(score(flat, y), rel=1e-14)


# All scores at once


def test_all_are_the_same_as_one_by_one(trees):
    for seed in range(5):
        taxonomy, truth = trees.grow(seed), trees.draw_truth(seed, NAMES)
        y = np.random.default_rng(seed).choice(NAMES, 14)
        found = score_hierarchy(taxonomy, y, truth, dasgupta=True)
        assert list(found) == [*OF_TREES, *OF_CLASSES, "dasgupta_cost"]
        assert {type(value) for value in found.values()} == {float}
        for name, score in SCORES.items():
            assert found[name] == score(taxonomy, y, truth)
            adjusted, chance = found[f"adjusted_{name}"], found[f"chance_{name}"]
            assert adjusted == score(taxonomy, y, truth, adjusted=True)
            assert adjusted == pytest.approx((found[name] - chance) / (1 - chance))
        assert found["dendrogram_purity"] == dendrogram_purity(taxonomy, y)
        assert found["dasgupta_cost"] == dasgupta_cost(taxonomy, y, truth)
        without = score_hierarchy(taxonomy, y, dasgupta=True)
        assert without["dasgupta_cost"] == dasgupta_cost(taxonomy, y)
        assert list(without) == [*OF_CLASSES, "dasgupta_cost"]
        assert list(score_hierarchy(taxonomy, y, truth)) == OF_TREES + OF_CLASSES
        assert list(score_hierarchy(taxonomy, y)) == OF_CLASSES


def repeat(taxonomy, weights):
    """Return the same tree, its rows from left to right as often as they count."""
    ends = np.append(0, np.cumsum(weights[taxonomy.tree.order]))
    found = {"start": ends[taxonomy.tree.start], "stop": ends[taxonomy.tree.stop]}
    return replace(taxonomy, order=np.arange(ends[-1]), **found)


def test_weights_are_repeated_rows_and_gaps_are_absent(trees):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        taxonomy, truth = trees.grow(seed), trees.draw_truth(seed, [*NAMES, "z"])
        y, weights = rng.choice(NAMES, 14).astype(object), rng.integers(1, 4, 14)
        first = [
            taxonomy.tree.rows(leaf)[0] for leaf in taxonomy.tree.leaves
        ]  # a tree has no empty leaf
        others = np.setdiff1d(np.arange(14), first)
        y[others[:3]], weights[others[3:5]] = [None, "", math.nan], 0
        y[others[3]] = "no leaf"  # what does not count need not be known
        with pytest.warns(UserWarning, match="^3 rows without a label are left out of the sco"):
            found = score_hierarchy(taxonomy, y, truth, dasgupta=True, sample_weight=weights)
        weights[others[:3]] = 0
        rows = np.repeat(taxonomy.tree.order, weights[taxonomy.tree.order])
        expected = score_hierarchy(repeat(taxonomy, weights), y[rows], truth, dasgupta=True)
        assert found == pytest.approx(expected, abs=1e-13)
        assert (
            score_hierarchy(taxonomy, y, truth, dasgupta=True, sample_weight=weights) == found
        )


def test_leaves_may_be_empty(known):
    # Of the leaves {0, 1}, {2}, {3}, {4, 5}, the second has no row that counts.
    y = ["a", "a", None, "b", "b", "a"]
    with pytest.warns(UserWarning, match="^1 row without a label is left out of the scores$"):
        found = score_hierarchy(known, y, nested((("a", "b"), "c")), dasgupta=True)
    assert found["dendrogram_purity"] == pytest.approx((1 + 2 * 3 / 5 + 2 / 3) / 4)
    # Pairs of a class are 1 alike (01, 05, 15, 34), others 1/3 (35, 45, and 0, 1 with 3, 4).
    cost = 2 + 2 * 5 + 3 + (3 + 2 + 4 * 5) / 3
    assert found["dasgupta_cost"] == pytest.approx(cost / (5 * (4 + 6 / 3)))
    # The tree is as deep as before: leaves of one parent are 2 of at most 4 edges apart.
    similar = np.array([1, 0, 0, 0, 0, 0, 0, 1 / 2, 1 / 2, 1])  # 01, 03, 04, 05, 13, ..., 45
    true = np.array([1, 1 / 3, 1 / 3, 1, 1 / 3, 1 / 3, 1, 1, 1 / 3, 1 / 3])
    assert found["shortest_path"] == pytest.approx(1 - np.mean((similar - true) ** 2))
    weights = [1, 1, 0, 1, 1, 1]
    y[2] = "unheard of"
    again = score_hierarchy(
        known, y, nested((("a", "b"), "c")), dasgupta=True, sample_weight=weights
    )
    assert again == found


def test_scores_of_the_bundled_animals(trees):
    animals = load_animals()
    flat = from_labels(np.arange(len(animals.names)) % 9)
    found = score_hierarchy(flat, animals.names, animals.tree)
    assert abs(found["adjusted_shortest_path"]) < 0.02
    assert found["adjusted_rand"] == 0.0
    assert math.isnan(found["dendrogram_purity"])
    taxonomy = trees.split_like(animals.tree, animals.names)
    assert taxonomy.tree.n_leaves == len(animals.names)
    found = score_hierarchy(taxonomy, animals.names, animals.tree, dasgupta=True)
    for name in OF_TREES[:4]:
        assert found[name] == pytest.approx(1.0, abs=1e-11)  # BLAS may add up in threads
    flat = from_labels(animals.names)
    assert found["dasgupta_cost"] < dasgupta_cost(flat, animals.names, animals.tree)


def test_scores_of_many_rows(trees):
    rng = np.random.default_rng(0)
    n_rows, names = 200_000, [str(name) for name in range(60)]
    y, truth = rng.integers(0, 60, n_rows), trees.draw_truth(0, names)
    taxonomy = trees.grow(0, n_rows=n_rows, n_leaves=50)
    found = score_hierarchy(taxonomy, y, truth, dasgupta=True)
    assert all(abs(found[name]) < 1e-3 for name in found if name.startswith("adjusted"))
    assert 0.5 < found["chance_shortest_path"] < 1.0
    assert found["shortest_path"] == pytest.approx(found["chance_shortest_path"], abs=1e-4)


def test_wrong_input_is_refused(trees):
    taxonomy, truth = trees.grow(0), trees.draw_truth(0, NAMES)
    for dasgupta in (False, True):
        with pytest.raises(ValueError, match="each of the 14 rows"):
            score_hierarchy(taxonomy, NAMES, truth, dasgupta=dasgupta)
        with pytest.raises(ValueError, match=r"pass their names: class_names\[y\]"):
            score_hierarchy(taxonomy, np.arange(14) % 6, truth, dasgupta=dasgupta)
    for score in (*SCORES.values(), dasgupta_cost):
        with pytest.raises(ValueError, match=r"1 of the 2 classes in y are not lea.*: 'x'; "):
            score(taxonomy, ["a", "x"] * 7, nested(("a", "b")))
    with pytest.raises(TypeError, match="a Taxonomy, got list"):
        score_hierarchy([1, 2], ["a", "b"])
