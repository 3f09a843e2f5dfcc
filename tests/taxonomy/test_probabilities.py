"""Probabilities of leaves: highest where rows go, on every tree; and their temperature."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from taxarbor.tables.columns import FeatureRows
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy.probabilities import TEMPERATURE, calibrate, find_staying
from taxarbor.tree import LinearRule, TreeBuilder
from tests.taxonomy.conftest import set_means, taxonomies

LARGEST = st.sampled_from([2.0, 1e3, 1e30, 1e38])
"""Of the values of rows: with the larger ones, scores overflow float32, or tie."""


@settings(max_examples=50)
@given(taxonomy=taxonomies(st.just(True)), largest=LARGEST, data=st.data())
def test_probabilities_agree_with_predict_on_any_tree(taxonomy, largest, data):
    P = 1 if taxonomy.n_features is None else taxonomy.n_features
    whole = st.integers(-2, 2).map(lambda x: x * largest / 2)
    X = data.draw(hnp.arrays("float64", (7, P), elements=whole | st.floats(-1, 1)))
    for one in (taxonomy, taxonomy.prune((taxonomy.tree.n_leaves + 1) // 2)):
        for new in (X, X.astype("float32"), sparse.csr_array(X), X[:0]):
            found = one.predict_proba(new)
            assert (found.shape, found.dtype) == ((new.shape[0], one.tree.n_leaves), "float64")
            assert (found >= 0).all()
            np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
            np.testing.assert_array_equal(found.argmax(axis=1), one.predict(new))


def softmax(scores, temperature):
    odds = np.exp(np.array(scores) / temperature)
    return odds / odds.sum()


def random_rule(rng, n_children):
    return LinearRule(*(rng.normal(size=size) for size in ((n_children, 2), 2, n_children)))


def test_rules_by_hand(with_means):
    """Margins in units of those at the means of the children, two ways and more."""
    rng = np.random.default_rng(0)
    builder = TreeBuilder(12)  # not split in the order of its nodes
    builder.add_split(0, [0] * 4 + [1] * 5 + [2] * 3, random_rule(rng, 3))
    for node, labels in ((3, [0, 1, 1]), (1, [0, 1, 0, 2]), (5, [0, 1]), (2, [0, 1, 0, 1, 1])):
        builder.add_split(node, labels, random_rule(rng, max(labels) + 1))
    other = set_means(Taxonomy(builder.freeze()), rng.normal(size=(builder.n_nodes, 2)))
    for taxonomy in (with_means, other):
        X = rng.normal(size=(60, 2)) * 3
        expected = [softmax(scores_by_hand(taxonomy, x), TEMPERATURE) for x in X]
        np.testing.assert_allclose(taxonomy.predict_proba(X), expected)


def margins_by_hand(rule, x):
    scores = rule.weights @ (x - rule.center) + rule.offsets
    return [score - max(np.delete(scores, i)) for i, score in enumerate(scores)]


def scores_by_hand(taxonomy, x):
    scores = []
    for leaf in taxonomy.tree.leaves:
        found = []
        for node, child in pairwise(taxonomy.tree.path(leaf)):
            rule, own = taxonomy.tree.rules[node], list(taxonomy.tree.children(node))
            at_means = [margins_by_hand(rule, taxonomy.means[c])[i] for i, c in enumerate(own)]
            unit = np.average(np.abs(at_means), weights=taxonomy.tree.sizes[own])
            found.append(margins_by_hand(rule, x)[own.index(child)] / unit)
        scores.append(min(found) if min(found) > 0 else sum(np.minimum(found, 0)))
    return scores


def test_ties_go_to_the_first_leaf():
    builder, rule = TreeBuilder(4), LinearRule(np.ones((2, 1)), np.zeros(1))
    builder.add_split(0, [0, 0, 1, 1], rule)
    builder.add_split(1, [0, 1], rule)
    P = Taxonomy(builder.freeze()).predict_proba([[0.0], [0.3], [-1e300]])
    np.testing.assert_allclose(P, 1 / 3)
    assert (P.argmax(axis=1) == 0).all()


def test_units_do_not_matter(with_means):
    X = np.random.default_rng(0).normal(size=(30, 2))
    taxonomy = dataclasses.replace(with_means, temperature=0.7)
    P = taxonomy.predict_proba(X)
    scaled = [
        rule and LinearRule(rule.weights * 1e6, rule.center, rule.offsets * 1e6)
        for rule in taxonomy.tree.rules
    ]
    tree = dataclasses.replace(taxonomy.tree, rules=scaled)
    np.testing.assert_allclose(dataclasses.replace(taxonomy, tree=tree).predict_proba(X), P)


def test_trees_without_means_are_read_as_k_means():
    from sklearn.cluster import KMeans

    X = np.random.default_rng(0).normal(size=(200, 3))
    found = []
    for scale in (1.0, 1e4):
        model = KMeans(4, random_state=0).fit(X * scale)
        builder = TreeBuilder(200)
        builder.add_split(0, model.labels_, LinearRule.nearest(model.cluster_centers_))
        found.append(Taxonomy(builder.freeze()).predict_proba(X * scale))
        np.testing.assert_array_equal(found[-1].argmax(axis=1), model.predict(X * scale))
    np.testing.assert_allclose(*found)
    assert 0.3 < found[0].max(axis=1).mean() < 0.95


def test_a_temperature_that_fits(with_means):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    heats, labels = [], (with_means.predict(X) + 1) % 4  # other names, the same clusters
    for wrong in (0.6, 0.4, 0.1, 0.0):
        others = np.where(rng.random(300) < wrong, rng.integers(0, 4, 300), labels)
        stayed = find_staying(with_means.predict(X), others).mean()
        found = calibrate(with_means, FeatureRows(X), [others] * 2)
        assert found.predict_proba(X).max(axis=1).mean() == pytest.approx(stayed, abs=0.02)
        heats.append(found.temperature)
    assert heats == sorted(heats, reverse=True)
    assert calibrate(with_means, FeatureRows(X), []) is with_means
    single = with_means.prune(1)
    assert calibrate(single, FeatureRows(X), [np.zeros(300, dtype=int)]) is single
    np.testing.assert_array_equal(single.predict_proba(X), np.ones((300, 1)))


def test_what_is_refused_as_in_predict(bare, with_means):
    with pytest.raises(ValueError, match="made from labels or merges alone"):
        bare.predict_proba(np.zeros((2, 2)))
    for X, words in (
        (np.zeros((2, 3)), "3 features"),
        ([[np.nan, 0]], "NaN"),
        ([1.0], "two dim"),
    ):
        with pytest.raises(ValueError, match=words):
            with_means.predict_proba(X)


def test_nodes_of_zero_weight_have_probabilities(known):
    weights = np.zeros(10)
    weights[known.tree.rows(1)] = 1.0  # the children of node 2 have none
    odd = dataclasses.replace(known, tree=dataclasses.replace(known.tree, weights=weights))
    np.testing.assert_allclose(odd.predict_proba(np.eye(2)).sum(axis=1), 1.0)
