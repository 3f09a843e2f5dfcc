import itertools
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from taxarbor.hierarchy import Hierarchy
from taxarbor.metrics import (
    ClassTree,
    path_sharing_score,
    rand_score,
    score_hierarchy,
    shortest_path_score,
)

HERE = Path(__file__).resolve()
FOLDER = Path(os.environ.get("TAXARBOR_DATA", HERE.parents[3] / "shared" / "data"))
SCORES = {"shortest_path": shortest_path_score, "path_sharing": path_sharing_score}
NAMES = list("abcdef")


@pytest.fixture(params=SCORES)
def measure(request):
    return request.param


def both_similarities(literal, measure, tree, y, truth):
    """Return the similarity of each pair of rows in the learned and in the true tree."""
    similar, true = literal.similarities[measure], ClassTree.read(truth)
    leaf_of_row = tree.leaves[tree.labels]
    leaf_of_class = dict(zip(true.names, true.leaves, strict=True))
    pairs = literal.pairs(len(y))
    a = [similar(tree, leaf_of_row[i], leaf_of_row[j]) for i, j in pairs]
    b = [similar(true, leaf_of_class[y[i]], leaf_of_class[y[j]]) for i, j in pairs]
    return np.array(a), np.array(b)


def squared_error(literal, measure, tree, y, truth):
    a, b = both_similarities(literal, measure, tree, y, truth)
    return sum((p - q) ** 2 for p, q in zip(a, b, strict=True)) / len(a)


@pytest.mark.parametrize("block_size", [2**18, 10])
@pytest.mark.parametrize("seed", range(10))
def test_pair_by_pair(trees, literal, measure, seed, block_size, monkeypatch):
    monkeypatch.setattr("taxarbor.metrics._similarity._BLOCK_SIZE", block_size)
    tree, truth = trees.grow(seed, n_leaves=1 + seed % 7), trees.draw_truth(seed, NAMES)
    y = np.random.default_rng(seed).choice(NAMES, 14)
    a, b = both_similarities(literal, measure, tree, y, truth)
    error = np.mean((a - b) ** 2)
    chance = np.mean(a**2) + np.mean(b**2) - 2 * np.mean(a) * np.mean(b)
    score = SCORES[measure]
    assert type(score(tree, y, truth)) is float
    assert score(tree, y, truth) == pytest.approx(1 - error, abs=1e-14)
    adjusted = score(tree, y, truth, adjusted=True)
    assert adjusted == pytest.approx(1 - error / chance, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_chance_is_the_mean_over_all_orders_of_rows(trees, literal, measure, seed):
    tree, truth = trees.grow(seed, n_rows=5, n_leaves=3), trees.draw_truth(seed, NAMES)
    y = np.random.default_rng(seed).choice(NAMES, 5)
    errors = [
        squared_error(literal, measure, tree, list(order), truth)
        for order in itertools.permutations(y)
    ]
    chance = score_hierarchy(tree, y, truth)[f"chance_{measure}"]
    assert chance == pytest.approx(1 - math.fsum(errors) / len(errors), abs=1e-13)


def test_chance_by_shuffling(trees, measure):
    rng = np.random.default_rng(0)
    tree, truth = trees.grow(0, n_rows=60, n_leaves=9), trees.draw_truth(0, NAMES)
    y = rng.choice(NAMES, 60)
    shuffled = [rng.permutation(y) for _ in range(1000)]
    scores = [SCORES[measure](tree, drawn, truth) for drawn in shuffled]
    chance = score_hierarchy(tree, y, truth)[f"chance_{measure}"]
    assert abs(np.mean(scores) - chance) < 4 * np.std(scores) / math.sqrt(len(scores))
    adjusted = [SCORES[measure](tree, drawn, truth, adjusted=True) for drawn in shuffled]
    assert abs(np.mean(adjusted)) < 4 * np.std(adjusted) / math.sqrt(len(adjusted))


@pytest.mark.parametrize("seed", range(5))
def test_the_true_tree_scores_one(trees, measure, seed):
    truth = trees.draw_truth(seed, NAMES, chains=False)
    y = np.random.default_rng(seed).permutation(NAMES * 4)
    tree = trees.split_like(truth, y)
    for adjusted in (False, True):
        found = SCORES[measure](tree, y, truth, adjusted=adjusted)
        assert found == pytest.approx(1.0, abs=1e-14)
        assert found <= 1.0


def test_flat_trees_give_the_rand_index(measure):
    rng = np.random.default_rng(0)
    tree, y = Hierarchy.from_labels(rng.integers(0, 4, 30)), rng.choice(NAMES, 30)
    found = SCORES[measure](tree, y, f"({','.join(NAMES)});")
    assert found == pytest.approx(rand_score(tree, y), abs=1e-14)


def test_order_and_names_do_not_matter(trees, measure):
    rng = np.random.default_rng(0)
    tree, truth = trees.grow(0), trees.draw_truth(0, NAMES)
    y, score = rng.choice(NAMES, 14), SCORES[measure]
    found = score(tree, y, truth)
    renamed = json.loads(json.dumps(truth).replace('"name": "', '"name": "the '))
    assert score(tree, [f"the {name}" for name in y], renamed) == found
    order = rng.permutation(14)
    other = Hierarchy.from_labels(tree.labels[order])
    flat = Hierarchy.from_labels(tree.labels)
    assert score(other, y[order], truth) == pytest.approx(score(flat, y, truth), abs=1e-14)


def test_unused_leaves_count_for_the_greatest_distance_only(trees):
    tree, y = trees.grow(0), ["a", "b"] * 7
    narrow, wide = "((a,b),c);", "((a,b),(((c))));"
    assert path_sharing_score(tree, y, narrow) == path_sharing_score(tree, y, wide)
    flat = Hierarchy.from_labels(np.zeros(14))
    # 49 of 91 pairs are of different classes, 2 edges apart: similar by 1 - 2 / 3, 1 - 2 / 6.
    assert shortest_path_score(flat, y, narrow) == pytest.approx(1 - 49 / 91 * (2 / 3) ** 2)
    assert shortest_path_score(flat, y, wide) == pytest.approx(1 - 49 / 91 * (2 / 6) ** 2)


def test_where_chance_cannot_err_the_score_is_one(measure):
    score = SCORES[measure]
    together = Hierarchy.from_labels(np.zeros(5))
    assert score(together, ["a"] * 5, "(a,b);", adjusted=True) == 1.0
    apart = Hierarchy.from_labels(np.arange(6))
    assert score(apart, NAMES, f"({','.join(NAMES)});", adjusted=True) == 1.0
    assert score(together, ["a"] * 5, "a;", adjusted=True) == 1.0


def test_where_chance_always_errs_the_score_is_zero(measure):
    apart = Hierarchy.from_labels(np.arange(4))
    assert SCORES[measure](apart, ["a"] * 4, "(a,b);", adjusted=True) == 0.0
    assert SCORES[measure](apart, ["a"] * 4, "(a,b);") == 0.0


def test_integers_are_names(trees, measure):
    tree, truth = trees.grow(0), trees.draw_truth(0, list("012345"))
    y = np.random.default_rng(0).integers(0, 6, 14)
    assert SCORES[measure](tree, y, truth) == SCORES[measure](tree, y.astype(str), truth)


def test_a_class_outside_the_tree_is_refused(trees, measure):
    with pytest.raises(ValueError, match=r"1 of the 2 classes in y are no leaves.*: 'x'; its"):
        SCORES[measure](trees.grow(0), ["a", "x"] * 7, "(a,b);")


@pytest.fixture(scope="module")
def animals():
    """Animals with Attributes: rows, names of their classes, the true tree."""
    path = FOLDER / "awa_attr.npz"
    if not path.exists():
        pytest.skip(f"{path} is absent; the variable TAXARBOR_DATA can name its folder")
    with np.load(path, allow_pickle=False) as file:
        X, y = file["X"].astype(np.float32), file["class_names"][file["y"]]
    return X, y, ClassTree.read(path.with_name("awa_attr.hierarchy.json"))


def test_kmeans_scores_as_measured_before(animals):
    from sklearn.cluster import KMeans

    X, y, truth = animals
    expected = {"shortest_path": 77.94, "path_sharing": 92.76, "rand": 95.99}
    found = dict.fromkeys(expected, 0.0)
    for seed in range(2):
        labels = KMeans(50, n_init=1, random_state=seed).fit_predict(X)
        scores = score_hierarchy(Hierarchy.from_labels(labels), y, truth)
        for name in expected:
            found[name] += 100 * scores[name] / 2
    assert found == pytest.approx(expected, abs=0.15)
