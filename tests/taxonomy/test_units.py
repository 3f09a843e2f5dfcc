"""Trees of scaled rows, in the units that the rows had before."""

import dataclasses

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from taxarbor import HMMC, Taxarbor, make_planted_tree
from taxarbor.exchange import from_labels, to_json

MODELS = {
    "hmmc": Taxarbor(6, random_state=0),
    "greedy": HMMC(6, random_state=0),
    "three": HMMC(7, branching=3, random_state=0),
}


@pytest.fixture(scope="module")
def raw():
    """Rows in odd units, far from the origin."""
    X = make_planted_tree(300, depth=3, random_state=1).X
    return X * np.logspace(-3, 3, X.shape[1]) + np.linspace(-100.0, 100.0, X.shape[1])


@pytest.fixture(scope="module")
def scaler(raw):
    return StandardScaler().fit(raw)


@pytest.fixture(scope="module", params=MODELS)
def taxonomy(request, raw, scaler):
    return MODELS[request.param].fit(scaler.transform(raw)).taxonomy_


def test_rows_go_where_scaled_rows_go(taxonomy, raw, scaler):
    other = taxonomy.unscale(scaler.mean_, scaler.scale_)
    ones, zeros = np.ones(raw.shape[1]), np.zeros(raw.shape[1])
    by_steps = taxonomy.unscale(zeros, scaler.scale_).unscale(scaler.mean_, ones)
    np.testing.assert_allclose(by_steps.means, other.means)
    rng = np.random.default_rng(0)
    new = raw[rng.integers(len(raw), size=500)] + rng.normal(size=raw.shape[1]) * scaler.scale_
    for X in (raw, new):
        scaled = scaler.transform(X)
        np.testing.assert_array_equal(other.predict(X), taxonomy.predict(scaled))
        np.testing.assert_array_equal(by_steps.predict(raw), other.predict(raw))
        assert (other.decision_path(X) != taxonomy.decision_path(scaled)).nnz == 0


def test_float32_far_from_zero():
    """There, a centre rounded to float32 is off by a good part of a column's deviation."""
    rng = np.random.default_rng(1)
    X = np.array([1e5, 1e6, 3e6, 1.0]) + rng.normal(size=(2000, 4)) * [1.0, 2.0, 3.0, 1.0]
    X = X.astype("float32")
    scaler = StandardScaler().fit(X.astype(float))
    scaled = scaler.transform(X.astype(float)).astype("float32")
    for model in (Taxarbor(6, random_state=0), HMMC(6, random_state=0)):
        taxonomy = model.fit(scaled).taxonomy_
        for shift in (0.0, 0.11, -0.07):  # whichever way the centre is rounded
            other = taxonomy.unscale(scaler.mean_ + shift, scaler.scale_)
            expected = taxonomy.predict(
                ((X - scaler.mean_ - shift) / scaler.scale_).astype("f4")
            )
            assert other.tree.rules[0].dtype == np.float32
            assert (other.predict(X) != expected).sum() <= 1


def test_none_is_no_shift_or_no_scale(taxonomy, raw, same, bare):
    zeros, ones = np.zeros(raw.shape[1]), np.ones(raw.shape[1])
    same(taxonomy.unscale(None, ones * 3.0), taxonomy.unscale(zeros, ones * 3.0))
    same(taxonomy.unscale(ones * 3.0, None), taxonomy.unscale(ones * 3.0, ones))
    for mean, scale in ((None, None), (zeros, ones), (zeros.astype(int), ones.tolist())):
        same(taxonomy.unscale(mean, scale), taxonomy)
    same(bare.unscale(None, None), bare)


def test_means_are_those_of_the_rows_as_they_were_and_nothing_else_changes(
    taxonomy, raw, scaler, same
):
    before, other = to_json(taxonomy), taxonomy.unscale(scaler.mean_, scaler.scale_)
    for node in range(other.tree.n_nodes):
        expected = raw[taxonomy.tree.rows(node)].mean(axis=0)
        np.testing.assert_allclose(other.means[node], expected, rtol=1e-9)
    kept = {name: getattr(taxonomy, name) for name in ("tree", "means", "two_values")}
    same(taxonomy, dataclasses.replace(other, **kept))
    assert to_json(taxonomy) == before
    for one, two in zip(taxonomy.tree.rules, other.tree.rules, strict=True):
        assert (one and one.features.tolist()) == (two and two.features.tolist())


def test_trees_without_rules_or_means(bare, with_means, same):
    same(bare, bare.unscale([1.0, 2.0], [3.0, 4.0]))
    same(bare, bare.unscale(np.zeros(7), np.ones(7)))  # nothing would be scaled
    only_means = dataclasses.replace(bare, means=with_means.means)
    moved = only_means.unscale([1.0, 2.0], [3.0, 4.0])
    np.testing.assert_allclose(moved.means, with_means.means * [3.0, 4.0] + [1.0, 2.0])
    assert from_labels([0, 0]).unscale([0.0], [1.0]).tree.n_leaves == 1


def test_what_is_no_scaling(known, with_means, bare, refused):
    zeros, ones = [0.0, 0.0], [1.0, 1.0]
    cases = [([0.0], ones), (zeros, [1.0] * 3), (0.0, 1.0), ([zeros], [ones]), ([], [])]
    cases += [([0.0] * 3, None), (None, [1.0]), ([0.0, np.nan], ones), (["a", "b"], ones)]
    cases += [(zeros, [1.0, wrong]) for wrong in (np.inf, np.nan, 0.0, -1.0)]
    only_means = dataclasses.replace(bare, means=with_means.means)
    for taxonomy in (known, with_means, only_means):
        refused(lambda given, taxonomy=taxonomy: taxonomy.unscale(*given), cases)
    refused(lambda given: bare.unscale(*given), [(np.zeros(3), np.ones(4)), (0.0, 1.0)])
