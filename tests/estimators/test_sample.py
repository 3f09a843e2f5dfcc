"""The tree is found on a sample; every row is routed by its rules, wherever it is stored."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from taxarbor import HMMC, Taxarbor
from taxarbor.estimators import _taxarbor
from taxarbor.sources import draw_rows
from tests.conftest import assert_same_rules

N_ROWS = 3000
pytestmark = [
    pytest.mark.filterwarnings("ignore::taxarbor.TableWarning"),
    pytest.mark.filterwarnings("ignore::taxarbor.GrowthWarning"),
]


@pytest.fixture(autouse=True)
def small_sample(monkeypatch):
    """Let the sample be a sixth of the rows."""
    monkeypatch.setattr(_taxarbor, "SAMPLE_ROWS", 500)
    monkeypatch.setattr(_taxarbor, "ROWS_PER_CLUSTER", 5)


def clouds(n_rows=N_ROWS, n_features=6, seed=0):
    rng = np.random.default_rng(seed)
    centers = 5.0 * rng.standard_normal((8, n_features))
    return centers[rng.integers(0, 8, n_rows)] + rng.standard_normal((n_rows, n_features))


def with_outliers(X):
    far = X.copy()
    far[::97] *= 1e4
    return far


def with_missing(X):
    holes = X.copy()
    holes[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    return holes


def mixed_table(n_rows=N_ROWS):
    """Return numbers, booleans and categories, with missing values."""
    rng, X = np.random.default_rng(2), with_missing(clouds(n_rows, 3))
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    table["color"] = rng.choice(["red", "green", "blue"], n_rows)
    table["flag"] = rng.random(n_rows) < 0.3
    table.loc[rng.random(n_rows) < 0.1, "color"] = None
    return table


def sparse_rows(dtype="float64"):
    X = clouds(n_features=30)
    return sparse.csr_array(np.where(X > 4.0, X, 0.0).astype(dtype))


TABLES = {
    "float64": clouds(),
    "float32": clouds().astype("float32"),
    "missing": with_missing(clouds()),
    "missing float32": with_missing(clouds()).astype("float32"),
    "outliers": with_outliers(clouds()),
    "csr": sparse_rows(),
    "csr float32": sparse_rows("float32"),
    "frame": mixed_table(),
    "ties": np.round(clouds() / 4.0),
}
SETTINGS = [
    {},
    {"branching": 3, "max_features": 2, "n_init": 1},
    {"noise": 0.05},
    {"min_leaf_size": 200},
    {"n_clusters": None, "max_depth": 3},
    {"n_clusters": None, "max_leaf_size": 400},
]


def fit(X, sample_weight=None, **parameters):
    return Taxarbor(**{"random_state": 0, **parameters}).fit(X, sample_weight=sample_weight)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", TABLES)
def test_labels_are_predicted(name, settings):
    X, rng = TABLES[name], np.random.default_rng(3)
    weights = rng.integers(0, 4, N_ROWS), rng.uniform(0.1, 3.0, N_ROWS)
    for sample_weight in (None, *weights):
        model = fit(X, sample_weight, **settings)
        labels, tree = model.labels_, model.taxonomy_.tree
        np.testing.assert_array_equal(labels, model.predict(X))
        np.testing.assert_array_equal(labels, tree.labels)
        sizes = np.bincount(labels[labels >= 0], minlength=tree.n_leaves)
        np.testing.assert_array_equal(tree.sizes[tree.leaves], sizes)
        assert sizes.sum() + len(tree.noise) == N_ROWS
        assert tree.n_leaves > 2
        assert np.isfinite(model.taxonomy_.means).all()
        assert np.isfinite(model.outlier_score_).all()
        assert ("noise" in settings) or not len(tree.noise)


def assert_same(model, other):
    """Assert that two fits gave the same tree, to the bit, and the same labels and scores."""
    for name in ("labels_", "outlier_score_"):
        values = np.asarray(getattr(model, name)), np.asarray(getattr(other, name))
        np.testing.assert_array_equal(*values)
    taxonomy, others = model.taxonomy_, other.taxonomy_
    for name in ("means", "missing"):
        np.testing.assert_array_equal(getattr(taxonomy, name), getattr(others, name))
    np.testing.assert_equal(taxonomy.columns.pack(), others.columns.pack())
    tree, others = taxonomy.tree, others.tree
    for name in ("parents", "birth", "sizes", "score", "objective"):
        np.testing.assert_array_equal(getattr(tree, name), getattr(others, name))
    np.testing.assert_allclose(tree.node_weights, others.node_weights, rtol=1e-8)
    assert tree.notes == others.notes
    assert_same_rules(tree, others, ("weights", "offsets", "center"))


@pytest.mark.parametrize("settings", [SETTINGS[0], SETTINGS[1], SETTINGS[2]], ids=str)
@pytest.mark.parametrize("name", ["float64", "float32", "missing", "outliers"])
def test_one_tree_from_memory_files_and_dask(name, settings, tmp_path):
    da = pytest.importorskip("dask.array")
    X = TABLES[name]
    np.save(tmp_path / "rows.npy", X)
    path = tmp_path / "rows.npy"
    for sample_weight in (None, np.random.default_rng(4).uniform(0.1, 3.0, N_ROWS)):
        expected = fit(X, sample_weight, **settings)
        assert_same(fit(X, sample_weight, n_jobs=2, **settings), expected)
        for rows in (path, np.load(path, mmap_mode="r")):
            for n_jobs in (1, 2):
                assert_same(fit(rows, sample_weight, n_jobs=n_jobs, **settings), expected)
        for chunks in (N_ROWS, 701, (1, 2000, 999)):
            blocks = da.from_array(X, chunks=(chunks, X.shape[1]))
            model = fit(blocks, sample_weight, **settings)
            assert not isinstance(model.labels_, np.ndarray)
            assert_same(model, expected)
            np.testing.assert_array_equal(np.asarray(model.predict(blocks)), expected.labels_)


@pytest.mark.parametrize("settings", [SETTINGS[0], SETTINGS[2]], ids=str)
def test_one_tree_from_frames_and_parquet(settings, tmp_path):
    pytest.importorskip("pyarrow")
    table = TABLES["frame"]
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=400)
    expected = fit(table, **settings)
    for n_jobs in (1, 2):
        model = fit(tmp_path / "rows.parquet", n_jobs=n_jobs, **settings)
        assert_same(model, expected)
        labels = model.predict(tmp_path / "rows.parquet")
        np.testing.assert_array_equal(labels, expected.labels_)


def test_least_sizes_hold_on_the_sample_and_in_proportion_beyond():
    for least in (60, 300, 600):
        sizes = np.bincount(fit(TABLES["float64"], n_clusters=20, min_leaf_size=least).labels_)
        assert sizes.min() > 0.5 * least
        few = fit(clouds(500), n_clusters=20, min_leaf_size=least // 6)
        assert np.bincount(few.labels_).min() >= least // 6


def test_missing_values_beyond_the_sample_are_imputed(tmp_path):
    """By the means of the sample, which has none itself."""
    X = TABLES["float64"]
    plain = fit(X)
    holes = X.copy()
    outside = rows_beyond_the_sample(X)
    holes[outside, 2] = np.nan
    np.save(tmp_path / "rows.npy", holes)
    filled = X.copy()
    filled[outside, 2] = plain.taxonomy_.means[0, 2]
    for rows in (holes, tmp_path / "rows.npy"):
        model = fit(rows)
        np.testing.assert_array_equal(model.labels_, plain.predict(filled))
        np.testing.assert_array_equal(model.labels_, model.predict(holes))
        np.testing.assert_array_equal(model.taxonomy_.means, plain.taxonomy_.means)


def rows_beyond_the_sample(X):
    """Return rows that a fit does not look at: infinity there changes no rule."""
    drawn, _ = draw_rows(len(X), 500, int(np.random.RandomState(0).randint(2**31 - 1)))
    return np.setdiff1d(np.arange(len(X)), drawn)[5:40]


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_beyond_the_sample_is_refused(value, tmp_path):
    X = TABLES["float64"].copy()
    row = int(rows_beyond_the_sample(X)[7])
    X[row, 3] = value
    np.save(tmp_path / "rows.npy", X)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    for rows, column in ((X, "x3"), (frame, "d"), (tmp_path / "rows.npy", "x3")):
        model = Taxarbor(random_state=0)
        with pytest.raises(ValueError, match=rf"X.*row {row}\b.*{column}"):
            model.fit(rows)
        assert not vars(model).keys() & {"taxonomy_", "labels_"}
    matrix = sparse_rows()
    at = int(matrix.indptr[row])
    matrix.data[at] = value
    with pytest.raises(ValueError, match=rf"X.*row {row}\b.*x{matrix.indices[at]}\b"):
        fit(matrix)


def test_hmmc_counts_the_rows_that_its_rules_send_elsewhere():
    X = np.random.default_rng(8).standard_normal((900, 6))
    X[:80] += 8.0  # a cluster of fewer rows than balance requires
    for balance in (1.0, 0.9, None):
        model = HMMC(5, balance=balance, random_state=0).fit(X)
        assert model.n_rerouted_ == np.sum(model.labels_ != model.predict(X))
        assert (model.n_rerouted_ > 5) == (balance is not None)
        np.testing.assert_allclose(model.taxonomy_.means[0], X.mean(axis=0))


def test_the_number_of_clusters_of_a_file_is_found_on_the_sample(tmp_path, monkeypatch):
    monkeypatch.setattr(_taxarbor, "SAMPLE_ROWS", 100)
    X = clouds(300)
    np.save(tmp_path / "rows.npy", X)
    model, same = fit(X, n_clusters="auto"), fit(tmp_path / "rows.npy", n_clusters="auto")
    np.testing.assert_array_equal(same.labels_, model.labels_)
    assert model.taxonomy_.stability is not None
    assert same.taxonomy_.stability is None  # which is of rows, and it has counts
