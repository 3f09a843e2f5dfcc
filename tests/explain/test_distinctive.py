"""Typical rows and distinctive features, against brute force."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from taxarbor import Taxarbor
from taxarbor.exchange import from_labels
from taxarbor.explain import explain
from tests.explain.conftest import check_json, describe


def distances(X, rows):
    """Return how far rows are from their mean, columns in standard deviations over all."""
    scale = X.std(axis=0)
    scale[scale <= 1e-12 * np.abs(X.mean(axis=0))] = 1.0
    return np.sqrt((((X[rows] - X[rows].mean(axis=0)) / scale) ** 2).sum(axis=1))


def effect(x, rows):
    """Return the correlation of a column with being in the node, if half of all rows were."""
    is_inside = np.isin(np.arange(len(x)), rows)
    weights = np.where(is_inside, 0.5 / is_inside.sum(), 0.5 / (~is_inside).sum())
    covariance = np.cov(x, is_inside, aweights=weights, ddof=0)
    scale = np.sqrt(covariance[0, 0] * covariance[1, 1])
    return covariance[0, 1] / scale if scale > 0.0 else 0.0


def test_typical_rows_are_the_nearest_to_the_mean(cases):
    for case in cases.values():
        for node in range(case.tree.n_nodes):
            rows = case.tree.rows(node)
            examples = case.why.examples(node, 10_000)["typical"]
            assert case.why.examples(node, 5)["typical"] == examples[:5]
            known = distances(case.dense, rows)
            known /= np.median(known) or 1.0
            found = [example["distance"] for example in examples]
            np.testing.assert_allclose(found, np.sort(known), atol=1e-4)
            of_row = dict(zip(rows.tolist(), known, strict=True))
            expected = [of_row.pop(example["row"]) for example in examples]
            np.testing.assert_allclose(found, expected, atol=1e-4)
            assert of_row == {}


def test_units_do_not_matter(X):
    rng = np.random.default_rng(0)
    taxonomy = from_labels(rng.integers(0, 4, size=len(X)))
    scale, shift = np.exp(3.0 * rng.normal(size=(2, X.shape[1])))
    one = explain(taxonomy, X)
    for data in (X * scale + shift, sparse.csr_array(X * scale), sparse.csr_array(X)):
        other = explain(taxonomy, data)
        for node in range(5):
            assert other.examples(node)["typical"] == one.examples(node)["typical"]
            a, b = (why.distinctive_features(node, 85) for why in (one, other))
            assert [f["feature"] for f in a] == [f["feature"] for f in b]
            assert [f["effect"] for f in a] == pytest.approx([f["effect"] for f in b], abs=1e-5)


def test_effects_are_correlations_of_equal_halves(cases):
    for case in cases.values():
        X = case.dense
        assert case.why.distinctive_features(0) == []
        for node in {1, case.tree.n_nodes - 1} & set(range(1, case.tree.n_nodes)):
            rows = case.tree.rows(node)
            expected = np.array([effect(x, rows) for x in X.T])
            found = case.why.distinctive_features(node, X.shape[1])
            assert found[:3] == case.why.distinctive_features(node, 3)
            sizes = [abs(feature["effect"]) for feature in found]
            assert sizes == sorted(sizes, reverse=True)
            rest = np.setdiff1d(np.arange(X.shape[1]), [f["column"] for f in found])
            assert np.abs(expected[rest]).max(initial=0.0) < 1e-5
            for feature in found:
                x = X[:, feature["column"]]
                assert feature["effect"] == pytest.approx(expected[feature["column"]], abs=2e-5)
                means = feature["mean"], feature["all_mean"]
                assert means == pytest.approx((x[rows].mean(), x.mean()), rel=1e-5, abs=1e-7)
                assert feature["words"].startswith("higher ") <= (feature["effect"] > 0.0)
                assert (feature["share"] is None) == (set(x.tolist()) != {0.0, 1.0})
                if feature["share"] is not None:
                    assert (feature["share"], feature["all_share"]) == pytest.approx(means)


def test_counts_are_those_of_the_bins(cases):
    for case in cases.values():
        for node in range(case.tree.n_nodes):
            rows = case.tree.rows(node)
            for feature in case.why.distinctive_features(node, 4):
                x, edges = case.dense[:, feature["column"]], np.array(feature["edges"])
                assert (np.diff(edges) > 0.0).all()
                clipped = np.clip(x, edges[0], edges[-1])
                # Values on an edge may fall to either side of it.
                far = np.abs(clipped[:, None] - edges[1:-1]) > 1e-6 * np.ptp(edges)
                is_clear = far.all(axis=1)
                for some, key in ((rows, "counts"), (np.arange(len(x)), "all_counts")):
                    counts = feature[key]
                    assert (len(counts), sum(counts)) == (len(edges) - 1, len(some))
                    known = np.histogram(clipped[some][is_clear[some]], edges)[0]
                    assert (known <= counts).all()
                    assert sum(counts) - known.sum() == (~is_clear[some]).sum()


def test_bins_span_what_most_rows_have():
    rng = np.random.default_rng(0)

    def bins(values):
        x = np.asarray(values, dtype=float)
        labels = (x > np.quantile(x, 0.8)) if len(set(x)) > 2 else x > x.min()
        feature = explain(from_labels(labels), x[:, None]).distinctive_features(2)[0]
        return feature["edges"], feature["all_counts"]

    skewed = rng.lognormal(sigma=2.0, size=5000)
    edges, counts = bins(skewed)
    ends = np.quantile(skewed, [0.01, 0.99], method="averaged_inverted_cdf")
    np.testing.assert_allclose([edges[0], edges[-1]], ends)
    assert (len(counts), sum(counts)) == (16, 5000)
    # Whole numbers have a bin each.
    assert bins([1, 1, 3, 0, 0, 0, 0]) == ([-0.5, 0.5, 1.5, 2.5, 3.5], [4, 2, 0, 1])
    assert bins([-1, 1]) == ([-1.5, -0.5, 0.5, 1.5], [1, 0, 1])
    edges, counts = bins([*np.linspace(0.2, 0.4, 9), *np.zeros(1000)])  # a rare word
    assert (edges[0], counts[0], sum(counts)) == (0.0, 1000, 1009)
    assert 0.39 < edges[-1] <= 0.4
    edges, _ = bins([0.75, *np.full(1000, 0.5)])  # nearly all are equal
    assert (edges[0], edges[-1]) == (0.5, 0.75)


def test_wide_sparse_rows_are_not_made_dense():
    X = sparse.random(1000, 20_000, 0.002, "csr", random_state=0)
    why = explain(from_labels(np.arange(1000) % 20), X)
    tracemalloc.start()
    for node in range(why.taxonomy.tree.n_nodes):
        why.distinctive_features(node)
        why.examples(node)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1000 * 20_000  # an eighth of the dense rows


def test_one_cluster_per_row():
    why = explain(from_labels(range(4)), np.eye(4))
    check_json(describe(why))
    for leaf in why.taxonomy.tree.leaves:
        (row,) = why.taxonomy.tree.rows(leaf)
        assert why.examples(leaf)["typical"][0]["distance"] == 0.0
        assert why.distinctive_features(leaf)[0]["feature"] == f"x{row}"


def test_weights_do_what_repeated_rows_do():
    rng = np.random.default_rng(0)
    for kind in (np.asarray, sparse.csr_array):
        X = rng.normal(size=(60, 3)) * (rng.random((60, 3)) < 0.7)
        X += np.arange(60)[:, None] // 20
        X[:3] = 1e6  # of weight 0
        weights = rng.integers(1, 4, 60).astype(float)
        weights[:3] = 0.0
        taxonomy = Taxarbor(3, random_state=0).fit(kind(X), sample_weight=weights).taxonomy_
        copies = np.repeat(np.arange(60), weights.astype(int))
        repeated = from_labels(taxonomy.tree.labels[copies])
        why, other = explain(taxonomy, kind(X)), explain(repeated, X[copies])
        for leaf, same in zip(taxonomy.tree.leaves, repeated.tree.leaves, strict=True):
            found, expected = why.distinctive_features(leaf), other.distinctive_features(same)
            assert [f["column"] for f in found] == [f["column"] for f in expected]
            for feature, again in zip(found, expected, strict=True):
                for key in ("effect", "mean", "all_mean", "counts", "all_counts", "edges"):
                    assert feature[key] == pytest.approx(again[key], abs=1e-6)
            assert all(e["distance"] < 10 for e in why.examples(leaf, 3)["typical"])
