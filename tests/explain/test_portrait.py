"""Typical rows and features that stand out, against brute force."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from taxarbor import HMMC, Taxarbor
from taxarbor.exchange import from_labels
from taxarbor.explain import explain
from taxarbor.explain._portrait import BINS, make_bins


def distances(X, rows):
    """Return how far rows are from their mean, columns in standard deviations over all."""
    scale = X.std(axis=0)
    scale[scale <= 1e-12 * np.abs(X.mean(axis=0))] = 1.0
    return np.sqrt((((X[rows] - X[rows].mean(axis=0)) / scale) ** 2).sum(axis=1))


def effect(x, rows):
    """Return the correlation of a column with being in the node, if half of all rows were."""
    is_own = np.isin(np.arange(len(x)), rows)
    weights = np.where(is_own, 0.5 / is_own.sum(), 0.5 / (~is_own).sum())
    covariance = np.cov(x, is_own, aweights=weights, ddof=0)
    scale = np.sqrt(covariance[0, 0] * covariance[1, 1])
    return covariance[0, 1] / scale if scale > 0.0 else 0.0


# Typical rows


def test_typical_rows_are_the_nearest_to_the_mean(cases):
    for case in cases.values():
        taxonomy = case.why.taxonomy
        for node in range(taxonomy.tree.n_nodes):
            rows = taxonomy.tree.rows(node)
            found = case.why.typical(node, 5)
            known = distances(case.dense, rows)
            known /= np.median(known) or 1.0
            told = [one["distance"] for one in found]
            assert told == sorted(told)
            np.testing.assert_allclose(told, np.sort(known)[:5], atol=1e-4)
            of_row = dict(zip(rows.tolist(), known, strict=True))
            np.testing.assert_allclose(told, [of_row[one["row"]] for one in found], atol=1e-4)
            assert {one["row"] for one in case.why.typical(node, 10_000)} == set(rows.tolist())


def test_typical_rows_lie_below_the_median_distance(named):
    taxonomy = named.taxonomy
    for node in range(taxonomy.tree.n_nodes):
        assert all(one["distance"] < 1.0 for one in named.typical(node, 3))


def test_units_do_not_matter(X):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, size=len(X))
    scale, shift = np.exp(3.0 * rng.normal(size=(2, X.shape[1])))
    one = explain(from_labels(labels), X)
    for data in (X * scale + shift, sparse.csr_array(X * scale), sparse.csr_array(X)):
        other = explain(from_labels(labels), data)
        for node in range(5):
            assert other.typical(node) == one.typical(node)
            a, b = one.standout(node, 85), other.standout(node, 85)
            assert [f["feature"] for f in a] == [f["feature"] for f in b]
            assert [f["effect"] for f in a] == pytest.approx([f["effect"] for f in b], abs=1e-5)


# What stands out


def test_effects_are_correlations_of_equal_halves(cases):
    for case in cases.values():
        taxonomy, X = case.why.taxonomy, case.dense
        for node in {1, taxonomy.tree.n_nodes - 1} - {0}:
            if node >= taxonomy.tree.n_nodes:
                continue
            rows = taxonomy.tree.rows(node)
            expected = np.array([effect(x, rows) for x in X.T])
            found = case.why.standout(node, X.shape[1])
            sizes = [abs(one["effect"]) for one in found]
            assert sizes == sorted(sizes, reverse=True)
            rest = np.setdiff1d(np.arange(X.shape[1]), [one["column"] for one in found])
            assert np.abs(expected[rest]).max(initial=0.0) < 1e-5
            for one in found:
                x = X[:, one["column"]]
                assert one["effect"] == pytest.approx(expected[one["column"]], abs=2e-5)
                means = one["mean"], one["all_mean"]
                assert means == pytest.approx((x[rows].mean(), x.mean()), rel=1e-5, abs=1e-7)
                assert one["words"].startswith("higher ") <= (one["effect"] > 0.0)
                assert (one["share"] is None) == (set(x.tolist()) != {0.0, 1.0})
                if one["share"] is not None:
                    assert (one["share"], one["all_share"]) == pytest.approx(means)
            assert found[:3] == case.why.standout(node, 3)
        assert case.why.standout(0) == []


def test_counts_are_those_of_the_bins(cases):
    for case in cases.values():
        taxonomy = case.why.taxonomy
        for node in range(taxonomy.tree.n_nodes):
            rows = taxonomy.tree.rows(node)
            for one in case.why.standout(node, 4):
                x, edges = case.dense[:, one["column"]], np.array(one["edges"])
                assert (np.diff(edges) > 0.0).all()
                assert len(one["counts"]) == len(one["all_counts"]) == len(edges) - 1
                assert sum(one["counts"]) == len(rows)
                assert sum(one["all_counts"]) == len(x)
                clipped = np.clip(x, edges[0], edges[-1])
                # Values on an edge may fall to either side of it.
                inner = edges[1:-1]
                is_clear = (np.abs(clipped[:, None] - inner) > 1e-6 * np.ptp(edges)).all(axis=1)
                for some, counts in ((rows, "counts"), (np.arange(len(x)), "all_counts")):
                    known = np.histogram(clipped[some][is_clear[some]], edges)[0]
                    assert (known <= one[counts]).all()
                    assert sum(one[counts]) - known.sum() == (~is_clear[some]).sum()


def test_bins_span_what_most_rows_have():
    rng = np.random.default_rng(0)
    skewed = rng.lognormal(sigma=2.0, size=5000)
    edges, counts = make_bins(skewed, 0)
    assert (edges[0], edges[-1]) == pytest.approx(np.quantile(skewed, [0.01, 0.99]))
    assert (len(counts), sum(counts)) == (BINS, 5000)
    # Whole numbers have a bin each.
    assert make_bins(np.array([1.0, 1.0, 3.0]), 4) == ([-0.5, 0.5, 1.5, 2.5, 3.5], [4, 2, 0, 1])
    assert make_bins(np.array([-1.0, 1.0]), 0) == ([-1.5, -0.5, 0.5, 1.5], [1, 0, 1])
    assert make_bins(np.zeros(0), 3) == ([-0.5, 0.5], [3])
    edges, counts = make_bins(np.linspace(0.2, 0.4, 9), 10_000)  # a rare word
    assert (edges[0], counts[0], sum(counts)) == (0.0, 10_000, 10_009)
    assert 0.39 < edges[-1] < 0.4
    many = np.full(1000, 0.5)
    many[0] = 0.75  # nearly all are equal
    assert make_bins(many, 0).edges[::BINS] == [0.5, 0.75]


def test_what_tells_rows_apart_alone_has_an_effect_of_one():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], [30, 200, 770])
    X = rng.normal(size=(1000, 6))
    X[:, 2], X[:, 4], X[:, 5] = labels == 0, 7.3, 1e9 / 3.0
    for data in (X, X.astype("f4"), sparse.csr_array(X)):
        why = explain(from_labels(labels), data)
        first = why.standout(1)[0]
        assert (first["feature"], first["effect"]) == ("x2", 1.0)
        assert (first["share"], first["all_share"]) == (1.0, pytest.approx(0.03))
        assert (first["counts"], first["all_counts"]) == ([0, 30], [970, 30])
        for node in (1, 2, 3):
            assert {one["feature"] for one in why.standout(node)} <= {"x0", "x1", "x2", "x3"}


def test_words_of_one_row_do_not_stand_out_but_those_of_most_do():
    topics = ["moon orbit star", "bread oven flour", "goal match team"]
    rng = np.random.default_rng(0)
    texts = [
        " ".join([*rng.choice(topics[n % 3].split(), 2, replace=False), f"once{n}", "common"])
        for n in range(300)
    ]
    vectorizer = CountVectorizer()
    X = vectorizer.fit_transform(texts).astype(float)
    taxonomy = from_labels(np.arange(300) % 3)
    why = explain(taxonomy, X, feature_names=vectorizer.get_feature_names_out())
    for leaf, topic in zip(taxonomy.tree.leaves, topics, strict=True):
        found = why.standout(leaf, 3)
        assert {one["feature"] for one in found} == set(topic.split())
        assert all(one["effect"] > 0.5 for one in found)


def test_wide_sparse_rows_are_not_made_dense():
    X = sparse.random(1000, 20_000, 0.002, "csr", random_state=0)
    taxonomy = from_labels(np.arange(1000) % 20)
    why = explain(taxonomy, X)
    tracemalloc.start()
    for node in range(taxonomy.tree.n_nodes):
        why.standout(node)
        why.typical(node)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1000 * 20_000  # an eighth of the dense rows


def test_a_thousand_clusters(strict):
    X = np.random.default_rng(0).normal(size=(3000, 20))
    why = explain(HMMC(1000, random_state=0).fit(X), X)
    nodes = why.to_dict(n_top=5)["nodes"]
    strict(nodes[-1])
    assert all(0 < len(node["standout"]) <= 5 for node in nodes[1:])


def test_a_cluster_per_row(strict):
    why = explain(from_labels(range(4)), np.eye(4))
    strict(why.to_dict())
    for leaf in why.taxonomy.leaves:
        (row,) = why.taxonomy.rows(leaf)
        assert why.typical(leaf)[0]["distance"] == 0.0
        assert why.standout(leaf)[0]["feature"] == f"x{row}"


def test_weights_do_what_repeated_rows_do():
    rng = np.random.default_rng(0)
    for kind in (np.asarray, sparse.csr_array):
        X = rng.normal(size=(60, 3)) * (rng.random((60, 3)) < 0.7)
        X += np.arange(60)[:, None] // 20
        X[:3] = 1e6  # which count for nothing
        weights = rng.integers(1, 4, 60).astype(float)
        weights[:3] = 0.0
        taxonomy = Taxarbor(3, random_state=0).fit(kind(X), sample_weight=weights).taxonomy_
        copies = np.repeat(np.arange(60), weights.astype(int))
        repeated = from_labels(taxonomy.tree.labels[copies])
        why, other = explain(taxonomy, kind(X)), explain(repeated, X[copies])
        assert (why.data.shape, taxonomy.tree.n_leaves) == (X.shape, repeated.n_leaves)
        np.testing.assert_allclose(why._portraits.spread, other._portraits.spread)
        for label, leaf in enumerate(taxonomy.tree.leaves.tolist()):
            found, expected = why.standout(leaf), other.standout(repeated.leaves[label])
            assert [one["column"] for one in found] == [one["column"] for one in expected]
            for one, same in zip(found, expected, strict=True):
                for name in ("effect", "mean", "all_mean", "counts", "all_counts", "edges"):
                    assert one[name] == pytest.approx(same[name], abs=1e-6)
            assert {one["distance"] < 10 for one in why.typical(leaf, 3)} == {True}
