"""Tree scores, purity and flat scores, against their definitions and scikit-learn."""

import itertools
import json
import math
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics as sk
from sklearn.cluster import KMeans

from taxarbor import Taxarbor, Taxonomy
from taxarbor.data import load_animals
from taxarbor.exchange import from_labels
from taxarbor.metrics import ClassTree, tree_scores
from taxarbor.tree import TreeBuilder
from tests.metrics.conftest import (
    SIMILARITIES,
    draw_truth,
    grow_randomly,
    lowest_common_ancestor,
    split_like,
)

HERE = Path(__file__).resolve()
FOLDER = Path(os.environ.get("TAXARBOR_DATA", HERE.parents[3] / "shared" / "data"))
KINDS = ("shortest_path", "path_sharing")
FLAT = ("rand", "adjusted_rand", "adjusted_mutual_info")
NAMES = list("abcdef")
OF_TREES = [f"{prefix}{kind}" for prefix in ("", "adjusted_", "chance_") for kind in KINDS]
OF_CLASSES = [*FLAT, "dendrogram_purity"]


def nested(node):
    """Return nested mappings for nested tuples of names; inner nodes have none."""
    if isinstance(node, str):
        return {"name": node}
    return {"name": "", "children": [nested(child) for child in node]}


# Agreement with a true tree


def both_similarities(kind, taxonomy, y, truth):
    """Return the similarity of each pair of rows in the learned and in the true tree."""
    similarity, true = SIMILARITIES[kind], ClassTree.read(truth)
    one, other = np.triu_indices(len(y), k=1)
    labels = taxonomy.tree.labels
    classes = np.array([true.names.index(name) for name in y])
    a = similarity(taxonomy.tree)[labels[one], labels[other]]
    return a, similarity(true)[classes[one], classes[other]]


def test_scores_by_their_definition():
    shapes = [(14, 1 + seed % 7, 6) for seed in range(10)] + [(700, 600, 550)]  # in blocks
    for seed, (n_rows, n_leaves, n_classes) in enumerate(shapes):
        names = [f"n{n}" for n in range(n_classes)]
        taxonomy = grow_randomly(seed, n_rows, n_leaves)
        truth = draw_truth(seed, names)
        y = np.random.default_rng(seed).choice(names, n_rows)
        y[: min(n_rows, n_classes)] = names[:n_rows]
        scores = tree_scores(taxonomy, y, truth)
        assert list(scores) == OF_TREES + OF_CLASSES
        assert {type(value) for value in scores.values()} == {float}
        for kind in KINDS:
            a, b = both_similarities(kind, taxonomy, y, truth)
            error = np.mean((a - b) ** 2)
            chance = np.mean(a**2) + np.mean(b**2) - 2 * np.mean(a) * np.mean(b)
            assert scores[kind] == pytest.approx(1 - error, abs=1e-13)
            assert scores[f"adjusted_{kind}"] == pytest.approx(1 - error / chance, abs=1e-11)
            assert scores[f"chance_{kind}"] == pytest.approx(1 - chance, abs=1e-13)


def test_similarities_by_hand():
    """Two rows in one leaf are alike by 1: the score tells how alike their classes are."""
    together = from_labels([0, 0])

    def assert_alike(truth, y, shared, by_edges):
        scores = tree_scores(together, y, truth)
        assert 1 - math.sqrt(1 - scores["path_sharing"]) == pytest.approx(shared)
        assert 1 - math.sqrt(1 - scores["shortest_path"]) == pytest.approx(by_edges)

    truth = nested(((("cat", "dog"), "mouse"), ("owl", "duck"), "coral"))
    for one, other, shared, n_edges in [
        ("cat", "dog", 2 / 3, 2), ("cat", "mouse", 1 / 3, 3), ("cat", "owl", 0, 5),
        ("cat", "coral", 0, 4), ("owl", "duck", 1 / 2, 2), ("owl", "coral", 0, 3),
    ]:  # fmt: skip
        assert_alike(truth, [one, other], shared, 1 - n_edges / 5)
    # A single child makes branches longer.
    truth = nested((((("cat",), "dog"),), "rock"))
    assert_alike(truth, ["cat", "dog"], 2 / 4, 1 - 3 / 5)
    # A deep tree: two classes share the root's child, of branches of 2 and of 1,000 nodes.
    height = 1000
    truth = {f"n{depth}": list(map(str, range(depth + 1))) for depth in range(height)}
    assert_alike(truth, ["n1", f"n{height - 1}"], 1 / height, 1 / (height + 1))


def test_chance_is_the_mean_over_all_orders_of_rows():
    for seed in range(4):
        taxonomy, truth = grow_randomly(seed, n_rows=5, n_leaves=3), draw_truth(seed, NAMES)
        y = np.random.default_rng(seed).choice(NAMES, 5)
        scores = [tree_scores(taxonomy, one, truth) for one in itertools.permutations(y)]
        for kind in KINDS:
            mean = math.fsum(one[kind] for one in scores) / len(scores)
            assert scores[0][f"chance_{kind}"] == pytest.approx(mean, abs=1e-13)
            adjusted = math.fsum(one[f"adjusted_{kind}"] for one in scores) / len(scores)
            assert adjusted == pytest.approx(0.0, abs=1e-12)


def test_the_true_tree_scores_one():
    best = ["dendrogram_purity", *KINDS, *(f"adjusted_{kind}" for kind in KINDS)]
    for seed in range(5):
        truth = draw_truth(seed, NAMES, chains=False)
        y = np.random.default_rng(seed).permutation(NAMES * 4)
        scores = tree_scores(split_like(truth, y), y, truth)
        assert [scores[name] for name in best] == pytest.approx([1.0] * 5, abs=1e-14)
        assert max(scores.values()) <= 1.0
    # Flat trees give the Rand index.
    rng = np.random.default_rng(0)
    taxonomy, y = from_labels(rng.integers(0, 4, 30)), rng.choice(NAMES, 30)
    scores = tree_scores(taxonomy, y, nested(NAMES))
    assert [scores[kind] for kind in KINDS] == pytest.approx([scores["rand"]] * 2, abs=1e-14)


def test_order_and_names_do_not_matter():
    rng = np.random.default_rng(0)
    taxonomy, truth, y = grow_randomly(0), draw_truth(0, NAMES), rng.choice(NAMES, 14)
    renamed = json.loads(json.dumps(truth).replace('"name": "', '"name": "the '))
    expected = tree_scores(taxonomy, y, truth)
    assert tree_scores(taxonomy, [f"the {name}" for name in y], renamed) == expected
    numbers, of_numbers = rng.integers(0, 6, 14), draw_truth(0, list("012345"))
    as_text = tree_scores(taxonomy, numbers.astype(str), of_numbers)
    assert tree_scores(taxonomy, numbers, of_numbers) == as_text
    flat, order = from_labels(taxonomy.tree.labels), rng.permutation(14)
    shuffled = from_labels(taxonomy.tree.labels[order])
    expected = tree_scores(flat, y, truth)
    assert tree_scores(shuffled, y[order], truth) == pytest.approx(expected)


def test_unused_leaves_count_for_the_greatest_distance_only():
    taxonomy, y = grow_randomly(0), ["a", "b"] * 7
    narrow, wide = nested((("a", "b"), "c")), nested((("a", "b"), ((("c",),),)))
    shared = [tree_scores(taxonomy, y, truth)["path_sharing"] for truth in (narrow, wide)]
    assert shared[0] == shared[1]
    flat = from_labels(np.zeros(14))
    # 49 of 91 pairs are of different classes, 2 edges apart: similar by 1 - 2 / 3, 1 - 2 / 6.
    for truth, farthest in ((narrow, 3), (wide, 6)):
        expected = 1 - 49 / 91 * (2 / farthest) ** 2
        assert tree_scores(flat, y, truth)["shortest_path"] == pytest.approx(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_where_chance_never_or_always_errs(kind):
    together, apart = from_labels(np.zeros(5)), from_labels(np.arange(6))
    for taxonomy, y, truth, score in [
        (together, ["a"] * 5, ("a", "b"), 1.0),
        (together, ["a"] * 5, "a", 1.0),
        (apart, NAMES, NAMES, 1.0),
        (apart, ["a"] * 6, ("a", "b"), 0.0),
    ]:
        scores = tree_scores(taxonomy, y, nested(truth))
        assert scores[kind] == scores[f"adjusted_{kind}"] == score


@pytest.mark.long
def test_kmeans_scores_as_measured_before():
    """On Animals with Attributes."""
    path = FOLDER / "awa_attr.npz"
    if not path.exists():
        pytest.skip(f"{path} is absent; the variable TAXARBOR_DATA can name its folder")
    with np.load(path, allow_pickle=False) as file:
        X, y = file["X"].astype(np.float32), file["class_names"][file["y"]]
    truth = json.loads(path.with_name("awa_attr.hierarchy.json").read_text(encoding="utf-8"))
    expected = {"shortest_path": 77.94, "path_sharing": 92.76, "rand": 95.99}
    labels = [KMeans(50, n_init=1, random_state=n).fit_predict(X) for n in range(2)]
    scores = [tree_scores(from_labels(one), y, truth) for one in labels]
    means = {name: 50 * sum(score[name] for score in scores) for name in expected}
    assert means == pytest.approx(expected, abs=0.15)


# Agreement with classes


def purity_by_pairs(taxonomy, y):
    shares = []
    for i, j in itertools.combinations(range(len(y)), 2):
        if y[i] == y[j]:
            rows = taxonomy.tree.rows(lowest_common_ancestor(taxonomy.tree, i, j))
            shares.append(sum(y[row] == y[i] for row in rows) / len(rows))
    return sum(shares) / len(shares)


def test_purity_pair_by_pair():
    for seed in range(10):
        taxonomy = grow_randomly(seed, n_leaves=1 + seed)
        y = np.random.default_rng(seed).choice(NAMES[:5], 14)
        purity = tree_scores(taxonomy, y)["dendrogram_purity"]
        assert purity == pytest.approx(purity_by_pairs(taxonomy, y), abs=1e-14)
    assert math.isnan(tree_scores(from_labels([0, 0, 1]), ["a", "b", "c"])["dendrogram_purity"])


@pytest.mark.parametrize("name", FLAT)
def test_flat_scores_are_those_of_sklearn(name):
    expected = getattr(sk, f"{name}_score")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n_rows = int(rng.integers(8, 200))
        taxonomy = grow_randomly(seed, n_rows, n_leaves=1 + seed % 7)
        labels, is_random = taxonomy.tree.labels, rng.random(n_rows) < rng.random()
        y = np.where(is_random, rng.integers(0, 1 + seed % 5, n_rows), labels)
        assert tree_scores(taxonomy, y)[name] == pytest.approx(expected(y, labels), abs=1e-10)
        known = rng.random(n_rows) < 0.7
        known[:8], known[8:9] = True, False
        if not known.all():
            with pytest.warns(UserWarning, match=r"^\d+ rows? (is|are) excluded"):
                score = tree_scores(taxonomy, pd.Series(y).where(known))[name]
            assert score == pytest.approx(expected(y[known], labels[known]), abs=1e-10)
    assert tree_scores(from_labels(np.arange(9)), np.arange(9))[name] == 1.0
    assert tree_scores(from_labels(np.zeros(9)), np.zeros(9))[name] == 1.0


def test_many_rows():
    n_rows = 1_000_000
    labels = np.arange(n_rows) % 2
    y = np.where(np.arange(n_rows) < n_rows // 10, 1 - labels, labels)
    scores = tree_scores(from_labels(labels), y)
    assert scores["rand"] == pytest.approx(0.82, abs=1e-6)
    assert scores["adjusted_rand"] == pytest.approx(0.64, abs=1e-6)


def test_a_fitted_estimator_scores_as_its_taxonomy():
    animals = load_animals()
    model = Taxarbor(3, random_state=0).fit(animals.X)
    kinds = [name[0] for name in animals.names]
    scores = tree_scores(model, kinds)
    assert scores == tree_scores(model.taxonomy_, kinds)
    assert list(scores) == OF_CLASSES


def test_leaves_may_be_empty(known):
    # Of the leaves {0, 1}, {2}, {3}, {4, 5}, the second has no row that counts.
    y, truth = ["a", "a", None, "b", "b", "a"], nested((("a", "b"), "c"))
    with pytest.warns(UserWarning, match="^1 row is excluded"):
        scores = tree_scores(known, y, truth)
    assert scores["dendrogram_purity"] == pytest.approx((1 + 2 * 3 / 5 + 2 / 3) / 4)
    # The tree is as deep as before: leaves of one parent are 2 of at most 4 edges apart.
    similar = np.array([1, 0, 0, 0, 0, 0, 0, 1 / 2, 1 / 2, 1])  # 01, 03, 04, 05, 13, ..., 45
    true = np.array([1, 1 / 3, 1 / 3, 1, 1 / 3, 1 / 3, 1, 1, 1 / 3, 1 / 3])
    assert scores["shortest_path"] == pytest.approx(1 - np.mean((similar - true) ** 2))


def test_wrong_input_is_refused():
    taxonomy, truth, y = grow_randomly(0), draw_truth(0, NAMES), np.arange(14) % 3
    with pytest.raises(ValueError, match="each of the 14 rows"):
        tree_scores(taxonomy, NAMES, truth)
    with pytest.raises(ValueError, match=r"class_names\[y\]"):
        tree_scores(taxonomy, y, truth)
    with pytest.raises(TypeError, match="list"):
        tree_scores([1, 2], ["a", "b"], truth)
    with pytest.raises(ValueError, match="got 1"):
        tree_scores(Taxonomy(TreeBuilder(1).freeze()), ["a"])
