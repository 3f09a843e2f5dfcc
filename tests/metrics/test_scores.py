"""Tree scores, node scores and flat scores, against their definitions and scikit-learn."""

import itertools
import json
import math
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as sk
from sklearn.cluster import KMeans

from taxarbor import Taxarbor, Taxonomy, metrics
from taxarbor.data import load_animals
from taxarbor.exchange import from_labels
from taxarbor.metrics import (
    ClassTree,
    dasgupta_cost,
    dendrogram_purity,
    path_sharing_score,
    shortest_path_score,
    tree_scores,
)
from taxarbor.tree import TreeBuilder

HERE = Path(__file__).resolve()
FOLDER = Path(os.environ.get("TAXARBOR_DATA", HERE.parents[3] / "shared" / "data"))
KINDS = ("shortest_path", "path_sharing")
SCORES = {kind: getattr(metrics, f"{kind}_score") for kind in KINDS}
FLAT = ("rand", "adjusted_rand", "adjusted_mutual_info")
NAMES = list("abcdef")
OF_TREES = [f"{prefix}{kind}" for prefix in ("", "adjusted_", "chance_") for kind in KINDS]
OF_CLASSES = [*FLAT, "dendrogram_purity"]


def nested(node):
    """Return nested mappings for nested tuples of names; inner nodes have none."""
    if isinstance(node, str):
        return {"name": node}
    return {"name": "", "children": [nested(child) for child in node]}


def pairs(n_rows):
    return list(itertools.combinations(range(n_rows), 2))


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


# Agreement with a true tree


def both_similarities(literal, kind, taxonomy, y, truth):
    """Return the similarity of each pair of rows in the learned and in the true tree."""
    similarity, true = literal.similarities[kind], ClassTree.read(truth)
    one, other = np.triu_indices(len(y), k=1)
    labels = taxonomy.tree.labels
    classes = np.array([true.names.index(name) for name in y])
    a = similarity(taxonomy.tree)[labels[one], labels[other]]
    return a, similarity(true)[classes[one], classes[other]]


def test_scores_by_their_definition(trees, literal, kind):
    score = SCORES[kind]
    shapes = [(14, 1 + seed % 7, 6) for seed in range(10)] + [(700, 600, 550)]  # in blocks
    for seed, (n_rows, n_leaves, n_classes) in enumerate(shapes):
        names = [f"n{n}" for n in range(n_classes)]
        taxonomy = trees.grow(seed, n_rows, n_leaves)
        truth = trees.draw_truth(seed, names)
        y = np.random.default_rng(seed).choice(names, n_rows)
        y[: min(n_rows, n_classes)] = names[:n_rows]
        a, b = both_similarities(literal, kind, taxonomy, y, truth)
        error = np.mean((a - b) ** 2)
        chance = np.mean(a**2) + np.mean(b**2) - 2 * np.mean(a) * np.mean(b)
        assert type(score(taxonomy, y, truth)) is float
        assert score(taxonomy, y, truth) == pytest.approx(1 - error, abs=1e-13)
        adjusted = score(taxonomy, y, truth, adjusted=True)
        assert adjusted == pytest.approx(1 - error / chance, abs=1e-11)


def test_similarities_by_hand():
    """Two rows in one leaf are alike by 1: the score tells how alike their classes are."""
    together = from_labels([0, 0])

    def similarity(score, truth, *y):
        return 1 - math.sqrt(1 - score(together, y, truth))

    truth = nested(((("cat", "dog"), "mouse"), ("owl", "duck"), "coral"))
    for one, other, shared, n_edges in [
        ("cat", "dog", 2 / 3, 2), ("cat", "mouse", 1 / 3, 3), ("cat", "owl", 0, 5),
        ("cat", "coral", 0, 4), ("owl", "duck", 1 / 2, 2), ("owl", "coral", 0, 3),
    ]:  # fmt: skip
        assert similarity(path_sharing_score, truth, one, other) == pytest.approx(shared)
        assert similarity(shortest_path_score, truth, one, other) == pytest.approx(
            1 - n_edges / 5
        )
    # A single child makes branches longer.
    truth = nested((((("cat",), "dog"),), "rock"))
    assert similarity(path_sharing_score, truth, "cat", "dog") == pytest.approx(2 / 4)
    assert similarity(shortest_path_score, truth, "cat", "dog") == pytest.approx(1 - 3 / 5)


def test_deep_trees():
    height = 1000
    truth = {f"n{depth}": list(map(str, range(depth + 1))) for depth in range(height)}
    together, y = from_labels([0, 0]), ["n1", f"n{height - 1}"]
    # They share the root's child, of branches of 2 and of 1,000 nodes.
    assert path_sharing_score(together, y, truth) == pytest.approx(1 - (1 - 1 / height) ** 2)
    assert shortest_path_score(together, y, truth) == pytest.approx(
        1 - (height / (height + 1)) ** 2
    )


def test_chance_is_the_mean_over_all_orders_of_rows(trees, literal, kind):
    for seed in range(4):
        taxonomy, truth = trees.grow(seed, n_rows=5, n_leaves=3), trees.draw_truth(seed, NAMES)
        y = np.random.default_rng(seed).choice(NAMES, 5)
        errors, adjusted = [], []
        for order in itertools.permutations(y):
            a, b = both_similarities(literal, kind, taxonomy, list(order), truth)
            errors.append(np.mean((a - b) ** 2))
            adjusted.append(SCORES[kind](taxonomy, order, truth, adjusted=True))
        chance = tree_scores(taxonomy, y, truth)[f"chance_{kind}"]
        assert chance == pytest.approx(1 - math.fsum(errors) / len(errors), abs=1e-13)
        assert math.fsum(adjusted) / len(adjusted) == pytest.approx(0.0, abs=1e-12)


def test_the_true_tree_scores_one(trees, kind):
    for seed in range(5):
        truth = trees.draw_truth(seed, NAMES, chains=False)
        y = np.random.default_rng(seed).permutation(NAMES * 4)
        taxonomy = trees.split_like(truth, y)
        for adjusted in (False, True):
            score = SCORES[kind](taxonomy, y, truth, adjusted=adjusted)
            assert score == pytest.approx(1.0, abs=1e-14)
            assert score <= 1.0
    # Flat trees give the Rand index.
    rng = np.random.default_rng(0)
    taxonomy, y = from_labels(rng.integers(0, 4, 30)), rng.choice(NAMES, 30)
    score = SCORES[kind](taxonomy, y, nested(NAMES))
    assert score == pytest.approx(tree_scores(taxonomy, y)["rand"], abs=1e-14)


def test_order_and_names_do_not_matter(trees, kind):
    rng = np.random.default_rng(0)
    taxonomy, truth = trees.grow(0), trees.draw_truth(0, NAMES)
    y, score = rng.choice(NAMES, 14), SCORES[kind]
    renamed = json.loads(json.dumps(truth).replace('"name": "', '"name": "the '))
    expected = score(taxonomy, y, truth)
    assert score(taxonomy, [f"the {name}" for name in y], renamed) == expected
    numbers, of_numbers = rng.integers(0, 6, 14), trees.draw_truth(0, list("012345"))
    assert score(taxonomy, numbers, of_numbers) == score(
        taxonomy, numbers.astype(str), of_numbers
    )
    flat, order = from_labels(taxonomy.tree.labels), rng.permutation(14)
    shuffled = from_labels(taxonomy.tree.labels[order])
    expected = tree_scores(flat, y, truth, dasgupta=True)
    assert tree_scores(shuffled, y[order], truth, dasgupta=True) == pytest.approx(expected)


def test_unused_leaves_count_for_the_greatest_distance_only(trees):
    taxonomy, y = trees.grow(0), ["a", "b"] * 7
    narrow, wide = nested((("a", "b"), "c")), nested((("a", "b"), ((("c",),),)))
    shared = [path_sharing_score(taxonomy, y, truth) for truth in (narrow, wide)]
    assert shared[0] == shared[1]
    flat = from_labels(np.zeros(14))
    # 49 of 91 pairs are of different classes, 2 edges apart: similar by 1 - 2 / 3, 1 - 2 / 6.
    for truth, farthest in ((narrow, 3), (wide, 6)):
        expected = 1 - 49 / 91 * (2 / farthest) ** 2
        assert shortest_path_score(flat, y, truth) == pytest.approx(expected)


def test_where_chance_never_or_always_errs(kind):
    score, together = SCORES[kind], from_labels(np.zeros(5))
    assert score(together, ["a"] * 5, nested(("a", "b")), adjusted=True) == 1.0
    assert score(together, ["a"] * 5, nested("a"), adjusted=True) == 1.0
    apart = from_labels(np.arange(6))
    assert score(apart, NAMES, nested(NAMES), adjusted=True) == 1.0
    for adjusted in (True, False):
        assert score(apart, ["a"] * 6, nested(("a", "b")), adjusted=adjusted) == 0.0


@pytest.mark.long
def test_kmeans_scores_as_measured_before():
    """On Animals with Attributes."""
    path = FOLDER / "awa_attr.npz"
    if not path.exists():
        pytest.skip(f"{path} is absent; the variable TAXARBOR_DATA can name its folder")
    with np.load(path, allow_pickle=False) as file:
        X, y = file["X"].astype(np.float32), file["class_names"][file["y"]]
    truth = ClassTree.read(path.with_name("awa_attr.hierarchy.json"))
    expected = {"shortest_path": 77.94, "path_sharing": 92.76, "rand": 95.99}
    labels = [KMeans(50, n_init=1, random_state=n).fit_predict(X) for n in range(2)]
    scores = [tree_scores(from_labels(one), y, truth) for one in labels]
    means = {name: 50 * sum(score[name] for score in scores) for name in expected}
    assert means == pytest.approx(expected, abs=0.15)


# Node by node


def purity_by_pairs(literal, taxonomy, y):
    shares = []
    for i, j in pairs(len(y)):
        if y[i] == y[j]:
            rows = taxonomy.tree.rows(literal.lowest_common_ancestor(taxonomy.tree, i, j))
            shares.append(sum(y[row] == y[i] for row in rows) / len(rows))
    return sum(shares) / len(shares)


def cost_by_pairs(literal, taxonomy, y, truth):
    """Return the cost, and the sum of similarities."""
    cost, total, similarity = 0.0, 0.0, np.equal.outer(y, y)
    if truth is not None:
        true = ClassTree.read(truth)
        classes = [true.names.index(name) for name in y]
        similarity = literal.similarities["shortest_path"](true)[np.ix_(classes, classes)]
    for i, j in pairs(len(y)):
        meet = literal.lowest_common_ancestor(taxonomy.tree, i, j)
        cost += similarity[i, j] * taxonomy.tree.sizes[meet]
        total += similarity[i, j]
    return cost, total


def test_purity_and_cost_pair_by_pair(trees, literal):
    for seed in range(10):
        taxonomy = trees.grow(seed, n_leaves=1 + seed)
        y = np.random.default_rng(seed).choice(NAMES[:5], 14)
        purity = dendrogram_purity(taxonomy, y)
        assert type(purity) is float
        assert purity == pytest.approx(purity_by_pairs(literal, taxonomy, y), abs=1e-14)
        for truth in (None, trees.draw_truth(seed, NAMES[:5])):
            cost, total = cost_by_pairs(literal, taxonomy, y, truth)
            raw = dasgupta_cost(taxonomy, y, truth, normalize=False)
            assert type(raw) is float
            assert raw == pytest.approx(cost, rel=1e-13)
            normal = dasgupta_cost(taxonomy, y, truth)
            assert normal == pytest.approx(cost / (total * 14), rel=1e-13)


def test_purity_and_cost_of_special_trees(trees):
    truth = trees.draw_truth(0, NAMES, chains=False)
    y = np.random.default_rng(0).permutation(NAMES * 3)
    assert dendrogram_purity(trees.split_like(truth, y), y) == pytest.approx(1.0, abs=1e-14)
    taxonomy, y = trees.grow(0), np.random.default_rng(0).choice(NAMES, 14)
    flat = dasgupta_cost(taxonomy, y)
    assert dasgupta_cost(taxonomy, y, nested(NAMES)) == pytest.approx(flat, rel=1e-14)
    taxonomy, y = from_labels([0, 0, 1]), ["a", "b", "c"]  # no pair of a class
    assert math.isnan(dendrogram_purity(taxonomy, y))
    for truth in (None, nested(("a", "b", "c"))):
        assert math.isnan(dasgupta_cost(taxonomy, y, truth))
    assert dasgupta_cost(taxonomy, y, normalize=False) == 0.0


# Flat scores


@pytest.mark.parametrize("name", FLAT)
def test_flat_scores_are_those_of_sklearn(trees, name):
    expected = getattr(sk, f"{name}_score")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n_rows = int(rng.integers(8, 200))
        taxonomy = trees.grow(seed, n_rows, n_leaves=1 + seed % 7)
        labels, is_random = taxonomy.tree.labels, rng.random(n_rows) < rng.random()
        y = np.where(is_random, rng.integers(0, 1 + seed % 5, n_rows), labels)
        score = tree_scores(taxonomy, y)[name]
        assert type(score) is float
        assert score == pytest.approx(expected(y, labels), abs=1e-10)
        known, weights = rng.random(n_rows) < 0.7, rng.integers(0, 4, n_rows)
        known[:8], known[8:9], weights[:9] = True, False, 1
        with pytest.warns(UserWarning, match=r"^\d+ rows? (is|are) excluded"):
            score = tree_scores(taxonomy, pd.Series(y).where(known), sample_weight=weights)
        rows = np.repeat(np.arange(n_rows), weights * known)
        assert score[name] == pytest.approx(expected(y[rows], labels[rows]), abs=1e-10)
    assert tree_scores(taxonomy, labels)[name] == pytest.approx(1.0, abs=1e-12)
    assert tree_scores(from_labels(np.arange(9)), np.arange(9))[name] == 1.0
    assert tree_scores(from_labels(np.zeros(9)), np.zeros(9))[name] == 1.0


def test_many_rows():
    n_rows = 1_000_000
    labels = np.arange(n_rows) % 2
    y = np.where(np.arange(n_rows) < n_rows // 10, 1 - labels, labels)
    scores = tree_scores(from_labels(labels), y)
    assert scores["rand"] == pytest.approx(0.82, abs=1e-6)
    assert scores["adjusted_rand"] == pytest.approx(0.64, abs=1e-6)
    # Weights may stand for rows that would not fit into memory: squares are near 1e18.
    weighted = tree_scores(from_labels(labels), y, sample_weight=np.full(n_rows, 1000))
    purity = scores["dendrogram_purity"]
    assert weighted["dendrogram_purity"] == pytest.approx(purity, abs=1e-6)
    assert all(math.isnan(weighted[name]) for name in FLAT)


# All scores at once


def test_all_are_the_same_as_one_by_one(trees):
    for seed in range(5):
        taxonomy, truth = trees.grow(seed), trees.draw_truth(seed, NAMES)
        y = np.random.default_rng(seed).choice(NAMES, 14)
        scores = tree_scores(taxonomy, y, truth, dasgupta=True)
        assert list(scores) == [*OF_TREES, *OF_CLASSES, "dasgupta_cost"]
        assert {type(value) for value in scores.values()} == {float}
        for name, score in SCORES.items():
            assert scores[name] == score(taxonomy, y, truth)
            adjusted, chance = scores[f"adjusted_{name}"], scores[f"chance_{name}"]
            assert adjusted == score(taxonomy, y, truth, adjusted=True)
            assert adjusted == pytest.approx((scores[name] - chance) / (1 - chance), abs=1e-12)
        assert scores["dendrogram_purity"] == dendrogram_purity(taxonomy, y)
        assert scores["dasgupta_cost"] == dasgupta_cost(taxonomy, y, truth)
        assert list(tree_scores(taxonomy, y, truth)) == OF_TREES + OF_CLASSES
        assert list(tree_scores(taxonomy, y)) == OF_CLASSES
    animals = load_animals()
    model = Taxarbor(3, random_state=0).fit(animals.X)
    kinds = [name[0] for name in animals.names]
    assert tree_scores(model, kinds) == tree_scores(model.taxonomy_, kinds)


def repeat(taxonomy, weights):
    """Return the same tree, its rows from left to right as often as they count."""
    tree = taxonomy.tree
    ends = np.append(0, np.cumsum(weights[tree.order]))
    sizes = ends[tree.stop] - ends[tree.start]
    return Taxonomy(replace(tree, order=np.arange(ends[-1]), sizes=sizes))


def test_weights_are_repeated_rows(trees):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        taxonomy, truth = trees.grow(seed), trees.draw_truth(seed, [*NAMES, "z"])
        y, weights = rng.choice(NAMES, 14).astype(object), rng.integers(1, 4, 14)
        tree = taxonomy.tree
        first = [tree.rows(leaf)[0] for leaf in tree.leaves]  # a tree has no empty leaf
        others = np.setdiff1d(np.arange(14), first)
        y[others[:3]], weights[others[3:5]] = [None, "", math.nan], 0
        y[others[3]] = "no leaf"  # the class of an excluded row need not be known
        with pytest.warns(UserWarning, match="^3 rows are excluded"):
            scores = tree_scores(taxonomy, y, truth, dasgupta=True, sample_weight=weights)
        weights[others[:3]] = 0
        rows = np.repeat(tree.order, weights[tree.order])
        expected = tree_scores(repeat(taxonomy, weights), y[rows], truth, dasgupta=True)
        assert scores == pytest.approx(expected, abs=1e-13)
        again = tree_scores(taxonomy, y, truth, dasgupta=True, sample_weight=weights)
        assert again == scores
        near = weights + np.where(weights > 0, 1e-7 * rng.random(14), 0)
        fractions = tree_scores(taxonomy, y, truth, dasgupta=True, sample_weight=near)
        assert all(math.isnan(fractions.pop(name)) for name in FLAT)
        for name, score in fractions.items():
            assert score == pytest.approx(scores[name], abs=1e-4)


def test_leaves_may_be_empty(known):
    # Of the leaves {0, 1}, {2}, {3}, {4, 5}, the second has no row that counts.
    y, truth = ["a", "a", None, "b", "b", "a"], nested((("a", "b"), "c"))
    with pytest.warns(UserWarning, match="^1 row is excluded"):
        scores = tree_scores(known, y, truth, dasgupta=True)
    assert scores["dendrogram_purity"] == pytest.approx((1 + 2 * 3 / 5 + 2 / 3) / 4)
    # Pairs of a class are 1 alike (01, 05, 15, 34), others 1/3 (35, 45, and 0, 1 with 3, 4).
    cost = 2 + 2 * 5 + 3 + (3 + 2 + 4 * 5) / 3
    assert scores["dasgupta_cost"] == pytest.approx(cost / (5 * (4 + 6 / 3)))
    # The tree is as deep as before: leaves of one parent are 2 of at most 4 edges apart.
    similar = np.array([1, 0, 0, 0, 0, 0, 0, 1 / 2, 1 / 2, 1])  # 01, 03, 04, 05, 13, ..., 45
    true = np.array([1, 1 / 3, 1 / 3, 1, 1 / 3, 1 / 3, 1, 1, 1 / 3, 1 / 3])
    assert scores["shortest_path"] == pytest.approx(1 - np.mean((similar - true) ** 2))
    y[2] = "unknown"
    weights = [1, 1, 0, 1, 1, 1]
    assert tree_scores(known, y, truth, dasgupta=True, sample_weight=weights) == scores


def test_wrong_input_is_refused(trees):
    taxonomy, truth, y = trees.grow(0), trees.draw_truth(0, NAMES), np.arange(14) % 3
    for score in (*SCORES.values(), dasgupta_cost, tree_scores):
        with pytest.raises(ValueError, match="each of the 14 rows"):
            score(taxonomy, NAMES, truth)
        with pytest.raises(ValueError, match=r"class_names\[y\]"):
            score(taxonomy, y, truth)
        with pytest.raises(TypeError, match="list"):
            score([1, 2], ["a", "b"], truth)
    with pytest.raises(ValueError, match="got 1"):
        tree_scores(Taxonomy(TreeBuilder(1).freeze()), ["a"])
    for weights in (
        np.ones(13), np.ones((14, 1)), 2.0, -np.eye(14)[3], [1.0, math.nan] * 7,
        [1.0, math.inf] * 7, ["a"] * 14, np.zeros(14),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="sample_weight"):
            tree_scores(taxonomy, y, sample_weight=weights)
    for weights in (np.full(14, 0.1), np.full(14, 1e9)):
        with pytest.raises(ValueError, match=r"got 1\.4"):
            tree_scores(taxonomy, y, sample_weight=weights)
    with pytest.raises(ValueError, match="got 0"):
        tree_scores(taxonomy, ["a"] * 2 + [""] * 12, sample_weight=[0] * 2 + [1] * 12)
