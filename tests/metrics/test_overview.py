import math

import numpy as np
import pytest

from taxarbor import metrics
from taxarbor.data import load_animals
from taxarbor.hierarchy import Hierarchy
from taxarbor.metrics import score_hierarchy

NAMES = list("abcdef")
OF_TREES = [
    "shortest_path",
    "path_sharing",
    "adjusted_shortest_path",
    "adjusted_path_sharing",
    "chance_shortest_path",
    "chance_path_sharing",
]
OF_CLASSES = ["rand", "adjusted_rand", "adjusted_mutual_info", "dendrogram_purity"]


@pytest.fixture
def case(trees):
    y = np.random.default_rng(0).choice(NAMES, 14)
    return trees.grow(0), y, trees.draw_truth(0, NAMES)


def test_names_and_their_order(case):
    tree, y, truth = case
    assert list(score_hierarchy(tree, y, truth)) == OF_TREES + OF_CLASSES
    assert list(score_hierarchy(tree, y)) == OF_CLASSES
    assert list(score_hierarchy(tree, y, dasgupta=True)) == [*OF_CLASSES, "dasgupta_cost"]
    everything = score_hierarchy(tree, y, truth, dasgupta=True)
    assert list(everything) == [*OF_TREES, *OF_CLASSES, "dasgupta_cost"]
    assert {type(value) for value in everything.values()} == {float}


@pytest.mark.parametrize("seed", range(5))
def test_the_same_as_one_by_one(trees, seed):
    tree, truth = trees.grow(seed), trees.draw_truth(seed, NAMES)
    y = np.random.default_rng(seed).choice(NAMES, 14)
    found = score_hierarchy(tree, y, truth, dasgupta=True)
    for name in ("shortest_path", "path_sharing"):
        score = getattr(metrics, f"{name}_score")
        assert found[name] == score(tree, y, truth)
        assert found[f"adjusted_{name}"] == score(tree, y, truth, adjusted=True)
        chance = found[f"chance_{name}"]
        assert found[f"adjusted_{name}"] == pytest.approx((found[name] - chance) / (1 - chance))
    for name in OF_CLASSES[:3]:
        assert found[name] == getattr(metrics, f"{name}_score")(tree, y)
    assert found["dendrogram_purity"] == metrics.dendrogram_purity(tree, y)
    assert found["dasgupta_cost"] == metrics.dasgupta_cost(tree, y, truth)
    without = score_hierarchy(tree, y, dasgupta=True)
    assert without["dasgupta_cost"] == metrics.dasgupta_cost(tree, y)


def test_each_row_its_own_class():
    animals = load_animals()
    labels = np.arange(len(animals.names)) % 9
    found = score_hierarchy(Hierarchy.from_labels(labels), animals.names, animals.tree)
    assert abs(found["adjusted_shortest_path"]) < 0.02
    assert found["adjusted_rand"] == 0.0
    assert math.isnan(found["dendrogram_purity"])


def test_the_true_tree_of_the_animals(trees):
    animals = load_animals()
    tree = trees.split_like(animals.tree, animals.names)
    assert tree.n_leaves == len(animals.names)
    found = score_hierarchy(tree, animals.names, animals.tree, dasgupta=True)
    for name in OF_TREES[:4]:
        assert found[name] == pytest.approx(1.0, abs=1e-13)
    flat = Hierarchy.from_labels(animals.names)
    assert found["dasgupta_cost"] < metrics.dasgupta_cost(flat, animals.names, animals.tree)


def test_many_rows(trees):
    rng = np.random.default_rng(0)
    n_rows, names = 200_000, [str(name) for name in range(60)]
    y, truth = rng.integers(0, 60, n_rows), trees.draw_truth(0, names)
    tree = trees.grow(0, n_rows=n_rows, n_leaves=50)
    found = score_hierarchy(tree, y, truth, dasgupta=True)
    assert all(abs(found[name]) < 1e-3 for name in found if name.startswith("adjusted"))
    assert 0.5 < found["chance_shortest_path"] < 1.0
    assert found["shortest_path"] == pytest.approx(found["chance_shortest_path"], abs=1e-4)


@pytest.mark.parametrize("dasgupta", [False, True])
def test_wrong_input_is_refused(case, dasgupta):
    tree, y, truth = case
    with pytest.raises(ValueError, match="each of the 14 rows"):
        score_hierarchy(tree, y[1:], truth, dasgupta=dasgupta)
    with pytest.raises(ValueError, match=r"pass their names: class_names\[y\]"):
        score_hierarchy(tree, np.arange(14) % 6, truth, dasgupta=dasgupta)


def test_what_is_no_hierarchy_is_refused():
    with pytest.raises(
        TypeError, match=r"expected a Hierarchy, got list; pass model.hierarchy_"
    ):
        score_hierarchy([1, 2], ["a", "b"])
