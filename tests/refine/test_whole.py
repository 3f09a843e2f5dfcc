"""A whole tree: grown, refined, and given its reasons."""

import numpy as np
import pytest
from scipy import sparse

from taxarbor import HMMC
from taxarbor.hierarchy import HierarchyBuilder, LinearRule
from taxarbor.refine import move_rows, place

PENALTIES = ["group+exclusive", "group", "l1"]
NAMES = ["planted", "animals", "cloud", "middle", "wide"]


def fit(X, n_clusters=7, **parameters):
    return HMMC(n_clusters, **{"random_state": 0, **parameters}).fit(X)


def as_kind(X, kind):
    dtype, layout = kind.split()
    return sparse.csr_array(X.astype(dtype)) if layout == "csr" else X.astype(dtype)


@pytest.mark.parametrize(
    "kind", ["float64 dense", "float64 csr", "float32 dense", "float32 csr"]
)
@pytest.mark.parametrize("branching", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_the_tree_is_whole(data, inner, name, branching, kind):
    X = as_kind(data[name], kind)
    model = fit(X, branching=branching, n_init=2)
    tree = model.hierarchy_
    assert tree.n_leaves == 7
    assert tree.n_rows.min() >= 1
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert {rule.dtype for rule in tree.rules if rule} == {np.dtype(kind.split()[0])}
    assert tree.placement.rule.dtype == kind.split()[0]
    assert [node for node in range(tree.n_nodes) if tree.rules[node]] == inner(tree)
    assert (tree.n_features[inner(tree)] >= 1).all()
    assert tree.placement.leaves.tolist() == tree.leaves.tolist()


@pytest.mark.parametrize("branching", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_fidelity_by_hand(data, inner, name, branching):
    X = data[name]
    tree = fit(X, branching=branching, n_init=2).hierarchy_
    for node in range(tree.n_nodes):
        if node not in inner(tree):
            assert np.isnan(tree.fidelity[node])
            continue
        right = 0
        rule = tree.rules[node]
        for position, child in enumerate(tree.children(node)):
            scores = (X[tree.rows(child)] - rule.center) @ rule.weights.T + rule.offsets
            right += int(np.sum(scores.argmax(axis=1) == position))
        assert tree.fidelity[node] == pytest.approx(right / tree.n_rows[node], abs=1e-12)


@pytest.mark.parametrize("most", [1, 2, 5])
@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("branching", [2, 3])
@pytest.mark.parametrize("name", ["planted", "animals", "cloud", "wide"])
def test_the_budget_is_kept(data, inner, name, branching, penalty, most):
    tree = fit(
        data[name], branching=branching, penalty=penalty, max_features=most, n_init=1
    ).hierarchy_
    assert (tree.n_features[inner(tree)] >= 1).all()
    assert tree.n_features.max() <= most


@pytest.mark.parametrize("name", ["planted", "animals", "cloud"])
def test_more_features_hardly_tell_less(data, inner, name):
    shares = []
    for most in (1, 2, 5, 20):
        tree = fit(data[name], max_features=most, n_init=1).hierarchy_
        nodes = inner(tree)
        shares.append(np.average(tree.fidelity[nodes], weights=tree.n_rows[nodes]))
    assert min(np.diff(shares)) >= -0.02
    assert shares[-1] >= shares[0]


def test_the_budget_does_not_see_the_rows(data):
    """The rules describe the groups; the groups do not depend on the rules."""
    trees = [
        fit(data["cloud"], **setting)
        for setting in ({}, {"max_features": 1}, {"alpha": 0.3}, {"penalty": "l2"})
    ]
    for tree in trees[1:]:
        np.testing.assert_array_equal(tree.labels_, trees[0].labels_)


@pytest.mark.parametrize("name", ["animals", "cloud", "wide"])
def test_a_stronger_alpha_uses_fewer_features(data, inner, name):
    used = []
    for alpha in (0.01, 0.1, 0.3, 0.8):
        tree = fit(data[name], alpha=alpha, n_init=1).hierarchy_
        used.append(int(tree.n_features[inner(tree)].sum()))
    assert used == sorted(used, reverse=True)
    assert used[0] > used[-1]


def overlap(tree):
    """Return how many features rules share with the ones above them."""
    total = 0
    for node in range(1, tree.n_nodes):
        if tree.rules[node]:
            above = {j for a in tree.path(node)[:-1] for j in tree.rules[a].features.tolist()}
            total += len(above & set(tree.rules[node].features.tolist()))
    return total


@pytest.mark.parametrize("name", ["animals", "cloud", "wide"])
@pytest.mark.parametrize("alpha", [None, 0.1])
def test_a_larger_beta_avoids_the_features_above(data, name, alpha):
    low, high = (
        overlap(fit(data[name], 10, alpha=alpha, beta=beta, n_init=1).hierarchy_)
        for beta in (0.0, 30.0)
    )
    assert high < low


@pytest.mark.parametrize("kind", ["float64 dense", "float64 csr"])
@pytest.mark.parametrize("branching", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_threads_do_not_matter(data, name, branching, kind):
    X = as_kind(data[name], kind)
    one, two = (fit(X, branching=branching, n_jobs=n, n_init=2) for n in (1, 2))
    assert one.hierarchy_.to_json() == two.hierarchy_.to_json()


@pytest.mark.parametrize("penalty", ["group+exclusive", "l2"])
def test_constant_columns_get_no_weight_in_wide_data(data, penalty):
    X = np.insert(data["wide"], [0, 300], [0.1, 1e4 / 3], axis=1)
    tree = fit(X, 4, penalty=penalty, n_init=1).hierarchy_
    for rule in tree.rules:
        assert rule is None or not rule.weights[:, [0, 301]].any()


def test_equal_rows_are_one_leaf_whatever_the_tree():
    X = np.repeat(np.random.default_rng(23).standard_normal((5, 6)), 11, axis=0)
    with pytest.warns(UserWarning, match="leaves where 20 were asked for"):
        model = fit(X, 20)
    assert (model.labels_.reshape(5, 11) == model.labels_[::11, None]).all()


# The parts


def test_an_empty_leaf_gets_the_row_that_fits_it_best(rows_of):
    X = np.array([[0.0], [1.0], [2.0], [9.0], [10.0]])
    rule = LinearRule(
        np.array([[-1.0], [1.0], [2.0]]), np.array([5.0]), np.array([0.0, 0.0, -99.0])
    )
    labels = place(rows_of(X), rule)
    assert labels.tolist() == [0, 0, 0, 1, 2]


def test_no_leaf_is_emptied_for_another(rows_of):
    """The row that fits best is the last one of its own leaf: the next best has to go."""
    X = np.array([[0.0], [1.0], [2.0], [10.0]])
    rule = LinearRule(
        np.array([[-1.0], [1.0], [2.0]]), np.array([5.0]), np.array([0.0, 0.0, -99.0])
    )
    labels = place(rows_of(X), rule)
    assert labels.tolist() == [0, 0, 2, 1]


def test_several_empty_leaves(rows_of):
    X = np.arange(6.0)[:, None]
    weights = np.array([[1.0], [0.5], [0.25], [0.1]])
    rule = LinearRule(weights, np.array([2.5]), np.array([100.0, 0.0, 0.0, 0.0]))
    counts = np.bincount(place(rows_of(X), rule), minlength=4)
    assert counts.tolist() == [3, 1, 1, 1]


def small_tree():
    builder = HierarchyBuilder(8, ["a", "b"])
    builder.record(0, score=4.0, objective=0.5, info=None)
    first, _, third = builder.add_split(0, np.array([0, 0, 1, 1, 2, 2, 2, 2]))
    builder.record(third, score=2.0, objective=0.25, info=None)
    builder.add_split(third, np.array([0, 1, 1, 1]))
    builder.refuse(first, "too few")
    return builder.freeze()


def test_rows_move_and_the_shape_stays():
    tree = small_tree()
    labels = np.array([3, 2, 1, 0, 3, 3, 1, 2])
    moved = move_rows(tree, labels)
    np.testing.assert_array_equal(moved.parents, tree.parents)
    np.testing.assert_array_equal(moved.birth, tree.birth)
    np.testing.assert_array_equal(moved.labels, labels)
    np.testing.assert_array_equal(moved.score, tree.score)
    np.testing.assert_array_equal(moved.objective, tree.objective)
    told = (f"{note}, before refinement" if note else "" for note in tree.notes)
    kept = zip(tree.notes, told, moved.n_rows == tree.n_rows, strict=True)
    assert moved.notes == tuple(one if same else other for one, other, same in kept)
    assert moved.feature_names == tree.feature_names
    assert not any(moved.rules)


def test_rows_that_stay():
    tree = small_tree()
    same = move_rows(tree, tree.labels)
    np.testing.assert_array_equal(same.order, tree.order)
    assert same.to_json() == tree.to_json()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("branching", [2, 3])
def test_rows_move_in_grown_trees(data, seed, branching):
    tree = fit(data["cloud"], 9, branching=branching, n_init=1).hierarchy_
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.concatenate([np.arange(9), rng.integers(0, 9, 291)]))
    moved = move_rows(tree, labels)
    np.testing.assert_array_equal(moved.labels, labels)
    np.testing.assert_array_equal(moved.parents, tree.parents)
