"""Reasons against their definition, computed from the rows themselves."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from taxarbor import HMMC, Taxarbor, load_animals, make_planted_tree
from taxarbor.exchange import to_frame
from taxarbor.taxonomy import Reason, Taxonomy
from taxarbor.taxonomy._reasons import rest_mean
from taxarbor.tree import LinearRule, TreeBuilder

MODELS = {
    "hmmc": Taxarbor(6, random_state=0),
    "greedy": HMMC(6, random_state=0),
    "three": HMMC(7, branching=3, random_state=0),
}


@pytest.fixture(scope="module", name="X")
def animals_as_shares():
    animals = load_animals().X
    return animals / animals.max(axis=0)


@pytest.fixture(scope="module", params=MODELS)
def taxonomy(request, X):
    return MODELS[request.param].fit(X).taxonomy_


def expected_shares(taxonomy, X, node):
    """Return the weights that count and the shares, feature by feature, zeros included."""
    parent = taxonomy.tree.parent(node)
    W = taxonomy.tree.rules[parent].weights.astype(float)
    contrast = W[taxonomy.tree.children(parent).index(node)] - W.mean(axis=0)
    rest = np.setdiff1d(taxonomy.tree.rows(parent), taxonomy.tree.rows(node))
    gains = contrast * (X[taxonomy.tree.rows(node)].mean(axis=0) - X[rest].mean(axis=0))
    return contrast, gains / gains[gains > 0.0].sum()


def shares_of(taxonomy, node, n_features):
    """Return the shares of all reasons as an array over the features."""
    found = np.zeros(n_features)
    for reason in taxonomy.reasons(node, None):
        found[reason.feature] = reason.share
    return found


def test_reasons_are_contrast_times_gap(taxonomy, X):
    for node in range(1, taxonomy.tree.n_nodes):
        contrast, shares = expected_shares(taxonomy, X, node)
        found = taxonomy.reasons(node, None)
        listed = {reason.feature for reason in found}
        assert listed >= set(np.flatnonzero(np.abs(contrast) > 1e-12))
        assert all(abs(shares[j]) < 1e-9 for j in range(85) if j not in listed)
        for reason in found:
            assert reason.weight == pytest.approx(contrast[reason.feature], rel=1e-9)
            assert reason.share == pytest.approx(shares[reason.feature], abs=1e-9)
            assert reason.sign == (1 if contrast[reason.feature] > 0 else -1)
            assert reason.name == f"x{reason.feature}"


def test_the_first_reasons_are_those_that_pull_apart(taxonomy, X):
    """Positive shares add up to one and come in order; only they are among the first."""
    named = taxonomy.rename_features([f"column {j}" for j in range(X.shape[1])])
    for node in range(1, taxonomy.tree.n_nodes):
        everything = taxonomy.reasons(node, None)
        shares = np.array([reason.share for reason in everything])
        assert shares[shares > 0.0].sum() == pytest.approx(1.0, abs=1e-9)
        assert (np.diff((shares / shares.max()).round(5)) <= 0.0).all()
        apart = [reason for reason in everything if round(reason.share / shares.max(), 5) > 0.0]
        for n_top in (0, 1, 2, 3, 1000):
            assert taxonomy.reasons(node, n_top) == tuple(apart[:n_top])
        assert taxonomy.reasons(node) == tuple(apart[:3])
        assert taxonomy.reasons(node, -1) == ()
        for plain, called in zip(taxonomy.reasons(node), named.reasons(node), strict=True):
            assert called == dataclasses.replace(plain, name=f"column {plain.feature}")


def test_the_root_has_no_reasons_and_nor_have_trees_without_rules(taxonomy):
    assert taxonomy.reasons(0) == taxonomy.reasons(0, None) == ()
    bare = dataclasses.replace(
        taxonomy, tree=dataclasses.replace(taxonomy.tree, rules=(None,) * taxonomy.tree.n_nodes)
    )
    assert bare.means is not None
    assert not any(bare.reasons(node, None) for node in range(bare.tree.n_nodes))
    for node in (-1, taxonomy.tree.n_nodes):
        with pytest.raises(IndexError, match="there is no node"):
            taxonomy.reasons(node)


def test_without_means_the_largest_weights_come_first(taxonomy):
    taxonomy = dataclasses.replace(taxonomy, means=None)
    for node in range(1, taxonomy.tree.n_nodes):
        found = taxonomy.reasons(node, None)
        assert all(np.isnan(reason.share) for reason in found)
        weights = np.array([reason.weight for reason in found])
        assert (np.diff(np.abs(weights)) <= 0.0).all()
        assert weights.all()
        assert [r.feature for r in taxonomy.reasons(node, 2)] == [r.feature for r in found[:2]]


def test_two_siblings_have_the_same_reasons_with_other_signs(taxonomy):
    for node in range(taxonomy.tree.n_nodes):
        if len(taxonomy.tree.children(node)) == 2:
            left, right = (
                taxonomy.reasons(child, None) for child in taxonomy.tree.children(node)
            )
            assert [r.feature for r in left] == [r.feature for r in right]
            assert [r.sign for r in left] == [-r.sign for r in right]
            assert [r.share for r in left] == pytest.approx([r.share for r in right])


def made(W, means, sizes=(4, 4)):
    """Return a tree of one split, with such weights and means of the children."""
    W, means = np.array(W, dtype=float), np.array(means, dtype=float)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    builder = TreeBuilder(len(labels))
    builder.add_split(0, labels, LinearRule(W, np.zeros(W.shape[1])))
    whole = np.average(means, axis=0, weights=sizes)
    return dataclasses.replace(Taxonomy(builder.freeze()), means=np.vstack([whole, means]))


def test_by_hand():
    """Features: pulls most; in larger units; pulls the wrong way; unused; has no gap."""
    W = [[1.0, -0.001, 2.0, 0.0, 5.0], [-1.0, 0.001, -2.0, 0.0, -5.0]]
    taxonomy = made(W, [[3.0, -1000.0, -0.5, 9.0, 7.0], [0.0, 0.0, 0.0, 0.0, 7.0]])
    first, second, none, against = taxonomy.reasons(1, None)
    assert first == Reason(0, "x0", 1.0, 0.75)
    assert second == Reason(1, "x1", -0.001, 0.25)
    assert none == Reason(4, "x4", 5.0, 0.0)
    assert against == Reason(2, "x2", 2.0, -0.25)
    assert taxonomy.reasons(1) == (first, second)
    told = ["higher x0", "lower x1", "higher x4", "higher x2"]
    assert [str(reason) for reason in taxonomy.reasons(1, None)] == told
    assert [str(reason) for reason in taxonomy.reasons(2)] == ["lower x0", "higher x1"]


def test_what_all_children_share_is_no_reason():
    third = 1 / 3
    W = [[0.1, 7.0, 3.0], [0.1, 0.0, third], [0.1, -7.0, 0.0]]
    taxonomy = made(W, [[5.0, 1.0, 1.0], [9.0, 0.0, 0.0], [-3.0, -1.0, 0.0]], (1, 2, 3))
    assert [r.feature for r in taxonomy.reasons(1, None)] == [1, 2]
    assert [r.feature for r in taxonomy.reasons(2, None)] == [2]


def test_where_nothing_pulls_apart_no_reason_is_given():
    taxonomy = made(np.zeros((2, 3)), [[1.0, 2.0, 3.0], [0.0, 0.0, 0.0]])
    assert taxonomy.reasons(1, None) == taxonomy.reasons(2) == ()
    taxonomy = made([[1.0, 1.0], [-1.0, -1.0]], [[-1.0, 0.0], [1.0, 0.0]])
    assert taxonomy.reasons(1) == ()
    assert [reason.share > 0.0 for reason in taxonomy.reasons(1, None)] == [False, False]
    assert taxonomy.to_text().splitlines()[1].split(":")[1] == " 4 rows [c0]"


def test_equal_reasons_come_in_the_order_of_the_columns():
    W = np.outer([1.0, -1.0], [1.0, 1.0 + 1e-9, 1.0, 1.0 + 2e-9])
    taxonomy = made(W, [[1.0] * 4, [0.0] * 4])
    assert [r.feature for r in taxonomy.reasons(1, None)] == [0, 1, 2, 3]
    n_features = 250_000
    W = np.outer([1.0, -1.0], np.ones(n_features))
    taxonomy = made(W, [np.ones(n_features), np.zeros(n_features)])
    assert [reason.feature for reason in taxonomy.reasons(1)] == [0, 1, 2]
    assert taxonomy.reasons(2)[0].share == pytest.approx(1 / n_features)


def test_the_units_of_a_column_do_not_matter_to_a_tree(taxonomy, X):
    for factor in (1000.0, 1e-3):
        scale = np.ones(X.shape[1])
        scale[taxonomy.tree.rules[0].features[0]] = scale[3::7] = factor
        other = taxonomy.unscale(np.linspace(-5.0, 5.0, len(scale)), scale)
        for node in range(1, taxonomy.tree.n_nodes):
            shares = shares_of(other, node, len(scale))
            np.testing.assert_allclose(shares, shares_of(taxonomy, node, len(scale)), atol=1e-9)
            for ours, theirs in zip(other.reasons(node), taxonomy.reasons(node), strict=True):
                assert ours.feature == theirs.feature


def test_the_units_of_a_column_do_not_matter_when_fitted_anew():
    X = make_planted_tree(200, depth=2, random_state=3).X
    factors = np.ones(X.shape[1])
    factors[[0, 5, 9]] = 1000.0
    trees = []
    for data in (X, X * factors):
        scaler = StandardScaler().fit(data)
        model = Taxarbor(4, random_state=0).fit(scaler.transform(data))
        trees.append(model.taxonomy_.unscale(scaler.mean_, scaler.scale_))
    np.testing.assert_array_equal(trees[0].tree.labels, trees[1].tree.labels)
    for node in range(1, trees[0].tree.n_nodes):
        one, other = (shares_of(taxonomy, node, len(factors)) for taxonomy in trees)
        np.testing.assert_allclose(one, other, atol=1e-6)
        weights = [{r.feature: r.weight for r in taxonomy.reasons(node)} for taxonomy in trees]
        for feature, weight in weights[0].items():
            assert weights[1][feature] * factors[feature] == pytest.approx(weight, rel=1e-5)


def test_dense_and_sparse_rows_and_all_dtypes_have_the_same_reasons(X):
    for name in ("hmmc", "greedy"):
        trees = [MODELS[name].fit(data).taxonomy_ for data in (X, sparse.csr_array(X))]
        assert trees[0].tree.n_nodes == trees[1].tree.n_nodes
        for node in range(1, trees[0].tree.n_nodes):
            dense, csr = (taxonomy.reasons(node) for taxonomy in trees)
            assert [(r.feature, r.sign) for r in dense] == [(r.feature, r.sign) for r in csr]
            assert [r.share for r in dense] == pytest.approx([r.share for r in csr], abs=1e-6)
    trees = [MODELS["greedy"].fit(X.astype(dtype)).taxonomy_ for dtype in ("f4", "f8")]
    for node in range(1, trees[0].tree.n_nodes):
        single, double = (shares_of(taxonomy, node, X.shape[1]) for taxonomy in trees)
        np.testing.assert_allclose(single, double, atol=1e-4)


def test_reasons_of_pruned_and_loaded_trees_stay(taxonomy, tmp_path):
    pruned = taxonomy.prune(3)
    kept = np.flatnonzero(taxonomy.tree.birth <= pruned.tree.n_splits)
    for new, node in enumerate(kept):
        assert pruned.reasons(new, None) == taxonomy.reasons(node, None)
    taxonomy.save(tmp_path / "tree")
    loaded = Taxonomy.load(tmp_path / "tree")
    for node in range(taxonomy.tree.n_nodes):
        assert loaded.reasons(node, None) == taxonomy.reasons(node, None)


def test_text_and_frames_say_the_reasons(taxonomy):
    frame = to_frame(taxonomy, n_top=2)
    for node, line in zip(range(taxonomy.tree.n_nodes), frame["top_features"], strict=True):
        assert line == ", ".join(map(str, taxonomy.reasons(node, 2)))
    for line in taxonomy.to_text(n_top=1).splitlines():
        node = int(line.split()[1].rstrip(":"))
        assert all(str(reason) in line for reason in taxonomy.reasons(node, 1))


def wide_star(n_children, n_features, dtype="float64"):
    """Return a root with many children, most rows in the first, far from the origin."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 9, size=n_children)
    sizes[0] = 100_000
    means = (1000.0 + rng.normal(size=(n_children, n_features))).astype(dtype)
    taxonomy = made(rng.normal(size=means.shape), means, sizes)
    rule = LinearRule(taxonomy.tree.rules[0].weights.astype(dtype), np.zeros(n_features, dtype))
    rules = (rule, *taxonomy.tree.rules[1:])
    tree = dataclasses.replace(taxonomy.tree, rules=rules)
    return dataclasses.replace(taxonomy, tree=tree, means=taxonomy.means.astype(dtype))


def test_means_of_the_rest_of_many_children():
    for dtype in ("float32", "float64"):
        taxonomy = wide_star(6, 5, dtype)
        for node in (1, 4, 2, 6):
            others = [child for child in taxonomy.tree.children(0) if child != node]
            means, sizes = taxonomy.means[others].astype(float), taxonomy.tree.sizes[others]
            expected = np.average(means, axis=0, weights=sizes)
            rules = (None,) * taxonomy.tree.n_nodes
            tree = dataclasses.replace(taxonomy.tree, rules=rules)
            bare = dataclasses.replace(taxonomy, tree=tree)
            for one in (taxonomy, bare):
                np.testing.assert_allclose(rest_mean(one, node), expected, rtol=1e-14)
