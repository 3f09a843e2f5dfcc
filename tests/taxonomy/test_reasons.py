"""Reasons against their definition, computed from the rows themselves."""

import dataclasses

import numpy as np
import pytest

from taxarbor import HMMC, Taxarbor, load_animals
from taxarbor.taxonomy import Reason, Taxonomy
from taxarbor.tree import LinearRule, TreeBuilder
from tests.taxonomy.conftest import set_means

MODELS = {
    "taxarbor": Taxarbor(6, random_state=0),
    "hmmc": HMMC(6, random_state=0),
    "hmmc of three": HMMC(7, branching=3, random_state=0),
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
    tree = dataclasses.replace(taxonomy.tree, rules=(None,) * taxonomy.tree.n_nodes)
    bare = dataclasses.replace(taxonomy, tree=tree)
    assert bare.means is not None
    assert not any(bare.reasons(node, None) for node in range(bare.tree.n_nodes))
    for node in (-1, taxonomy.tree.n_nodes):
        with pytest.raises(IndexError, match="there is no node"):
            taxonomy.reasons(node)


def test_without_means_the_largest_weights_come_first(taxonomy):
    taxonomy = dataclasses.replace(taxonomy, statistics=None)
    for node in range(1, taxonomy.tree.n_nodes):
        found = taxonomy.reasons(node, None)
        assert all(np.isnan(reason.share) for reason in found)
        weights = np.array([reason.weight for reason in found])
        assert (np.diff(np.abs(weights)) <= 0.0).all()
        assert weights.all()
        assert [r.feature for r in taxonomy.reasons(node, 2)] == [r.feature for r in found[:2]]


def made(W, means, sizes=(4, 4)):
    """Return a tree of one split, with such weights and means of the children."""
    W, means = np.array(W, dtype=float), np.array(means, dtype=float)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    builder = TreeBuilder(len(labels))
    builder.add_split(0, labels, LinearRule(W, np.zeros(W.shape[1])))
    whole = np.average(means, axis=0, weights=sizes)
    return set_means(Taxonomy(builder.freeze()), np.vstack([whole, means]))


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
    W = [[0.1, 7.0, 3.0], [0.1, 0.0, 1 / 3], [0.1, -7.0, 0.0]]
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
