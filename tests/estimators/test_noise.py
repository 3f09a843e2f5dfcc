"""Noise: rows far from every cluster have the label -1, in fit, predict, trees and files."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array

from taxarbor import HMMC, Taxarbor, make_planted_tree
from taxarbor.exchange import to_frame, to_linkage, to_newick
from taxarbor.stability import assess
from taxarbor.taxonomy import Taxonomy

MODELS = [
    Taxarbor(5, noise=0.05),
    Taxarbor(6, branching=3, noise=0.05),
    Taxarbor(6, min_leaf_size=10, max_leaf_size=90, noise=0.05),
    Taxarbor(4, noise=0.5),
    Taxarbor(1, noise=0.05),
]


def planted(seed, dtype=np.float64):
    """Return rows of four clusters, and ten, the last, that belong to none."""
    data = make_planted_tree(190, depth=2, random_state=seed)
    far = np.random.default_rng(seed).normal(size=(10, data.X.shape[1])) * 30.0
    return np.concatenate([np.asarray(data.X), far]).astype(dtype)


@pytest.mark.filterwarnings("ignore::taxarbor.GrowthWarning")
@pytest.mark.parametrize("model", MODELS, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_noise_has_no_cluster(model, dtype):
    for seed in range(3):
        X = planted(seed, dtype)
        taxonomy = model.set_params(random_state=seed).fit(X).taxonomy_
        labels, n_noise = model.labels_, round(model.noise * len(X))
        assert (labels == -1).sum() == len(taxonomy.tree.noise) == n_noise
        assert taxonomy.tree.n_rows == len(X)
        assert len(X) - n_noise == len(taxonomy.tree.order) == taxonomy.tree.sizes[0]
        np.testing.assert_array_equal(np.flatnonzero(labels == -1), taxonomy.tree.noise)
        assert set(labels) - {-1} == set(range(taxonomy.tree.n_leaves))
        np.testing.assert_array_equal(model.predict(X), labels)
        scores = model.outlier_score_
        assert scores[labels == -1].min() > scores[labels != -1].max()
        for leaf in taxonomy.tree.leaves:
            mean = X[taxonomy.tree.rows(leaf)].mean(axis=0)
            np.testing.assert_allclose(taxonomy.means[leaf], mean, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_planted_noise_is_found():
    for seed in range(3):
        model = Taxarbor(8, noise=0.05, random_state=seed)
        X = planted(seed)
        assert (model.fit(X).labels_[-10:] == -1).all()
        assert model.taxonomy_.tree.n_leaves == 8
        plain = Taxarbor(8, random_state=seed).fit(X)
        np.testing.assert_array_equal(np.argsort(plain.outlier_score_)[-10:] >= 190, True)


def test_scores_are_in_units_of_the_average_distance():
    X = planted(0)[:190]
    for model in (Taxarbor(4), HMMC(4)):
        scores = model.set_params(random_state=0).fit(X).outlier_score_
        assert scores.shape == (190,)
        assert 0.9 < scores.mean() < 1.1
        taxonomy = model.taxonomy_
        away = np.sqrt(((X[:, None] - taxonomy.means[taxonomy.tree.leaves]) ** 2).sum(axis=2))
        distance = away[np.arange(190), model.labels_]
        unit = [distance[model.labels_ == label].mean() for label in range(4)]
        np.testing.assert_allclose(scores, distance / np.array(unit)[model.labels_], rtol=0.1)
        np.testing.assert_allclose(model.fit(1e3 + 7.0 * X).outlier_score_, scores, rtol=1e-6)


def test_noise_survives_files_cuts_and_pruning(tmp_path):
    scaled = (planted(1) - 5.0) / 0.25
    taxonomy = Taxarbor(4, noise=0.1, random_state=0).fit(scaled).taxonomy_
    taxonomy.save(tmp_path / "tree")
    tree = taxonomy.tree
    loaded, pickled = Taxonomy.load(tmp_path / "tree"), pickle.loads(pickle.dumps(taxonomy))
    for again, data in ((loaded, scaled), (pickled, scaled), (taxonomy, csr_array(scaled))):
        np.testing.assert_array_equal(again.tree.noise, tree.noise)
        np.testing.assert_array_equal(again.tree.labels, tree.labels)
        np.testing.assert_array_equal(again.predict(data), tree.labels)
    for n_clusters in (1, 2, 3):
        few = taxonomy.prune(n_clusters)
        np.testing.assert_array_equal(few.tree.labels, taxonomy.cut(n_clusters))
        np.testing.assert_array_equal(few.tree.noise, tree.noise)
        np.testing.assert_array_equal(few.predict(scaled), few.tree.labels)
    assert to_frame(taxonomy)["n_rows"].max() == len(tree.order)
    assert to_newick(taxonomy).count(",") == len(to_linkage(taxonomy)) == tree.n_leaves - 1


@pytest.mark.filterwarnings("ignore::taxarbor.GrowthWarning")
def test_noise_counts_weights():
    X = planted(2)
    w = np.random.default_rng(0).integers(0, 4, len(X))
    w[-10:] = 1
    model = Taxarbor(5, noise=0.04, random_state=0)
    taxonomy = model.fit(X, sample_weight=w).taxonomy_
    index = np.repeat(np.arange(len(X)), w)
    copies = Taxarbor(5, noise=0.04, random_state=0).fit(X[index]).taxonomy_
    np.testing.assert_array_equal(taxonomy.tree.labels[index], copies.tree.labels)
    np.testing.assert_allclose(taxonomy.means, copies.means, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(model.predict(X), taxonomy.tree.labels)
    assert 0 < w[taxonomy.tree.noise].sum() <= 0.04 * w.sum()


def test_outliers_count_in_the_share_of_noise():
    X = planted(0)
    X[-10:] *= 1e3  # which are excluded when the tree is found
    for noise, n_noise in ((0.05, 10), (0.1, 20)):
        model = Taxarbor(4, noise=noise, random_state=0).fit(X)
        assert (model.labels_ == -1).sum() == n_noise
        assert (model.labels_[-10:] == -1).all()


def test_refits_are_without_noise():
    X = planted(0)
    model = Taxarbor(4, noise=0.05, random_state=0).fit(X)
    assert (assess(model, X, n_refits=3).stability.n_recovered[:5] == 3).all()


def test_equal_rows_are_no_noise():
    model = Taxarbor(4, noise=0.3, random_state=0).fit(np.repeat(np.eye(4), 25, axis=0))
    assert model.labels_.min() == 0
    assert (model.outlier_score_ < 1e-6).all()


@pytest.mark.parametrize("noise", [-0.1, 0.51, 1, np.nan, np.inf, "0.1", None, True])
def test_invalid_noise(noise):
    with pytest.raises(ValueError, match="noise"):
        Taxarbor(2, noise=noise).fit(np.eye(4))


@pytest.mark.filterwarnings("ignore::taxarbor.TableWarning")
def test_noise_of_tables_wide_and_narrow():
    rng = np.random.default_rng(0)
    for n_values in (3, 30):
        group = rng.integers(0, 2, 400)
        center = 1e6 + 5e3 * group
        frame = pd.DataFrame({name: center + rng.normal(0, 900, 400) for name in ("xa", "xb")})
        codes = n_values // 2 * group + rng.integers(0, n_values // 2, 400)
        frame["c"] = [f"v{code}" for code in codes]
        frame.loc[:7, "xa"] = 2e6 * rng.normal(size=8)
        frame.loc[10:30, "c"] = None
        weights = rng.uniform(0.9, 1.1, 400)
        model = Taxarbor(2, noise=0.02, random_state=0).fit(frame, sample_weight=weights)
        noise = set(np.flatnonzero(model.labels_ == -1).tolist())
        assert len(noise & set(range(8))) >= 6
        assert len(noise) <= 8
        np.testing.assert_array_equal(model.predict(frame), model.labels_)


@pytest.mark.filterwarnings("ignore::taxarbor.TableWarning")
def test_rows_without_a_value_are_not_far():
    X = np.random.default_rng(0).normal(size=(100, 3))
    X[:50] += 7.0
    X[[3, 70]] = np.nan
    model = Taxarbor(3, noise=0.05, random_state=0).fit(X)
    assert (model.labels_[[3, 70]] >= 0).all()
    assert 1 <= (model.labels_ == -1).sum() <= 5
    np.testing.assert_array_equal(model.predict(X), model.labels_)
