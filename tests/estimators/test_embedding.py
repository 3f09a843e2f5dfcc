"""Clusters that are found in an embedding, with rules in the features."""

import warnings
from functools import partial

import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from taxarbor import TableEncoder, Taxarbor
from taxarbor._errors import InputError, InputTypeError, TableWarning
from taxarbor.stability import assess
from tests.conftest import assert_same_rules
from tests.sources.places import AnnData, write_h5ad

N, D = 240, 10
GROUPS = np.arange(N) % 4
NAMES = ["a", "b", "c", "d", *(f"noise {j}" for j in range(12))]


@pytest.fixture(scope="module", name="E")
def make_vectors():
    """Vectors that int8 and float16 hold, in four groups."""
    rng = np.random.default_rng(0)
    centers = 8.0 * rng.normal(size=(4, D))
    vectors = 2.0 * (centers[GROUPS] + rng.normal(size=(N, D)))
    return vectors.round().clip(-127, 127).astype(np.float32)


@pytest.fixture(scope="module", name="X")
def make_features():
    """Booleans that imply the group, and others that make two groups of their own."""
    rng = np.random.default_rng(1)
    noise = rng.integers(0, 2, size=N)[:, None] ^ (rng.random((N, 12)) < 0.1)
    return pd.DataFrame(np.column_stack([np.eye(4)[GROUPS], noise]), columns=NAMES)


@pytest.fixture(scope="module")
def table(X, E):
    return X.assign(emb=list(E))


@pytest.fixture(scope="module")
def model(X, E):
    return Taxarbor(4, random_state=0).fit(X, embedding=E)


def features_used(taxonomy):
    rules = [rule for rule in taxonomy.tree.rules if rule is not None]
    names = taxonomy.feature_names
    return {names[j] for rule in rules for j in rule.features}


def fit(X, embedding=None, **options):
    return Taxarbor(4, random_state=0, **options).fit(X, embedding=embedding)


def refuse(X, embedding, error=InputError, use=fit, **options):
    """Check that an embedding is refused; return the message."""
    with pytest.raises(error) as caught:
        use(X, embedding=embedding, **options)
    assert caught.value.parameter == "embedding"
    return str(caught.value)


def test_labels_follow_the_embedding_and_rules_the_features(X, E, model):
    assert adjusted_rand_score(GROUPS, model.labels_) == 1.0
    assert features_used(model.taxonomy_) <= set("abcd")
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert adjusted_rand_score(GROUPS, fit(X).labels_) < 1.0


def places(folder, X, E):
    """Return X and embedding, the same in many places."""
    np.save(folder / "E.npy", E)
    table = X.assign(emb=list(E))
    arrays = {name: pa.array(X[name]) for name in X}
    lists = pa.array(list(E), pa.list_(pa.float32()))
    large = lists.cast(pa.large_list(pa.float32()))
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(E.ravel()), D)
    pq.write_table(pa.table(arrays | {"emb": lists}), folder / "lists.parquet")
    fixed_table = pa.table(arrays | {"emb": fixed})
    pq.write_table(fixed_table, folder / "fixed.parquet", row_group_size=50)
    polars = pl.DataFrame(X.to_dict("list"))
    emb = pl.Series("emb", E.tolist(), dtype=pl.List(pl.Float32))
    return {
        "path": (X, folder / "E.npy"),
        "text": (X, str(folder / "E.npy")),
        "memory map": (X, np.load(folder / "E.npy", mmap_mode="r")),
        "Fortran": (X, np.asfortranarray(E)),
        "series": (X, table["emb"]),
        "pandas": (table, "emb"),
        "list": (pa.table(arrays | {"emb": lists}), "emb"),
        "large_list": (pa.table(arrays | {"emb": large}), "emb"),
        "fixed_size_list": (fixed_table, "emb"),
        "polars List": (polars.with_columns(emb), "emb"),
        "polars Array": (polars.with_columns(emb.list.to_array(D)), "emb"),
        "parquet": (folder / "lists.parquet", "emb"),
        "parquet fixed": (folder / "fixed.parquet", "emb"),
        "parquet and npy": (folder / "lists.parquet", folder / "E.npy"),
    }


def test_same_tree_from_everywhere(X, E, model, tmp_path):
    for place, (rows, embedding) in places(tmp_path, X, E).items():
        with warnings.catch_warnings():
            if place == "parquet and npy":  # the column of vectors is not named
                warnings.simplefilter("ignore", TableWarning)
            found = fit(rows, embedding)
        np.testing.assert_array_equal(found.labels_, model.labels_, place)
        np.testing.assert_array_equal(found.predict(rows), model.labels_, place)
        np.testing.assert_array_equal(found.predict(X), model.labels_, place)
        assert str(found.taxonomy_) == str(model.taxonomy_), place
        assert_same_rules(found.taxonomy_.tree, model.taxonomy_.tree)


def test_a_sample_of_files(X, E, tmp_path, monkeypatch):
    """Beyond the sample only the vectors of sampled rows are read."""
    monkeypatch.setattr("taxarbor.estimators._taxarbor.SAMPLE_ROWS", 120)
    monkeypatch.setattr("taxarbor.estimators._taxarbor.ROWS_PER_CLUSTER", 30)
    expected = fit(X, E)
    assert adjusted_rand_score(GROUPS, expected.labels_) == 1.0
    for place, (rows, embedding) in places(tmp_path, X, E).items():
        if place != "parquet and npy":
            np.testing.assert_array_equal(fit(rows, embedding).labels_, expected.labels_, place)


def test_types_of_numbers(X, E, model):
    for dtype in ("float16", "float64", "int8", "int64", ">f4"):
        np.testing.assert_array_equal(fit(X, E.astype(dtype)).labels_, model.labels_, dtype)
    np.testing.assert_array_equal(fit(X, E.tolist()).labels_, model.labels_)
    halves = pa.array(list(E.astype(np.float16)), pa.list_(pa.float16()))
    small = pa.table({name: pa.array(X[name]) for name in X} | {"emb": halves})
    np.testing.assert_array_equal(fit(small, "emb").labels_, model.labels_)


def test_bfloat16(X, E, model):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    np.testing.assert_array_equal(fit(X, E.astype(ml_dtypes.bfloat16)).labels_, model.labels_)


def damaged(E, value):
    vectors = E.copy()
    vectors[7, 3] = value
    return vectors


def test_what_is_refused(X, E, table, tmp_path):
    ragged = table.assign(emb=[vector[: D - (row == 7)] for row, vector in enumerate(E)])
    absent = table.assign(emb=[None if row == 7 else one for row, one in enumerate(E)])
    texts = table.assign(emb=[["x"] if row == 7 else one for row, one in enumerate(E)])
    (tmp_path / "no.npy").write_bytes(b"nothing")
    wrong = {
        "rows": (X, E[:-1]),
        "NaN": (X, damaged(E, np.nan)),
        "infinity": (X, damaged(E, np.inf)),
        "shape": (X, E[:, 0]),
        "no dimension": (X, E[:, :0]),
        "ragged lists": (X, [[1.0], [2.0, 3.0]]),
        "absent column": (X, "emb"),
        "absent file": (X, str(tmp_path / "none.npy")),
        "damaged file": (X, str(tmp_path / "no.npy")),
        "a column of numbers": (X, "a"),
        "ragged": (ragged, "emb"),
        "missing": (absent, "emb"),
        "text": (texts, "emb"),
        "NaN in a column": (X.assign(emb=list(damaged(E, np.nan))), "emb"),
        "ragged series": (X, ragged["emb"]),
        "range": (X, E.astype(np.float64) * 1e200),
    }
    for problem, (rows, embedding) in wrong.items():
        message = refuse(rows, embedding)
        if "ragged" in problem and problem != "ragged lists":
            assert "row 7" in message, problem
        assert problem != "ragged" or "'emb'" in message
    for embedding in (sparse.csr_array(E), da.from_array(E), E.astype(str), E.astype(complex)):
        refuse(X, embedding, InputTypeError)
    refuse(table, "emb", encoder=None)


def test_rows_are_numbered_as_in_the_source(X, E, monkeypatch):
    monkeypatch.setattr("taxarbor.estimators._taxarbor.SAMPLE_ROWS", 100)
    monkeypatch.setattr("taxarbor.estimators._taxarbor.ROWS_PER_CLUSTER", 25)
    vectors = E.copy()
    vectors[100:] = np.nan
    with pytest.raises(InputError, match=r"row 1\d\d"):
        fit(X, vectors)


def test_a_column_of_vectors_beside_others(X, E, table):
    for rows in (table, pl.DataFrame(X).with_columns(emb=pl.Series(E.tolist()))):
        with pytest.warns(TableWarning, match="embedding='emb'"):
            found = Taxarbor(4, random_state=0).fit(rows)
        np.testing.assert_array_equal(found.labels_, fit(X).labels_)
        np.testing.assert_array_equal(found.predict(rows), found.labels_)
    assert dict(TableEncoder().fit(table).columns_.dropped).keys() == {"emb"}


def test_nothing_but_vectors(E):
    table = pd.DataFrame({"text": [f"text {row}" for row in range(N)], "emb": list(E)})
    for rows in (table, pl.DataFrame({"emb": E.tolist()})):
        for embedding in (None, "emb"):
            with pytest.raises(InputError, match="no column to use"):
                fit(rows, embedding)


def test_weights(X, E):
    weights = np.arange(N) % 3
    rows = np.repeat(np.arange(N), weights)
    found = Taxarbor(4, random_state=0).fit(X, sample_weight=weights, embedding=E)
    np.testing.assert_array_equal(found.predict(X)[rows], fit(X.iloc[rows], E[rows]).labels_)
    assert adjusted_rand_score(GROUPS, found.labels_) == 1.0


def test_outliers_and_noise(X, E):
    vectors = E.copy()
    vectors[5] *= 1e4
    assert adjusted_rand_score(GROUPS, fit(X, vectors).labels_) == 1.0
    assert fit(X, E, noise=0.05).labels_.min() == -1


def test_auto_finds_the_groups(X, E, table):
    for rows, embedding in ((X, E), (table, "emb")):
        found = Taxarbor("auto", random_state=0).fit(rows, embedding=embedding)
        assert adjusted_rand_score(GROUPS, found.labels_) == 1.0
        assert found.taxonomy_.stability.suggested == 4


def test_assess(X, E, table, model):
    taxonomy = assess(model, X, embedding=E, n_refits=4)
    assert taxonomy.stability.is_stable.all()
    named = fit(table, "emb")
    again = assess(named, table, embedding="emb", n_refits=4)
    np.testing.assert_array_equal(again.stability.n_recovered, taxonomy.stability.n_recovered)
    for rows, given, one in ((X, None, model), (table, None, named), (X, E, fit(X))):
        refuse(rows, given, use=partial(assess, one))


def test_dask(X, E, model):
    partitions = dd.from_pandas(X, npartitions=3)
    found = fit(partitions, E)
    np.testing.assert_array_equal(found.labels_.compute(), model.labels_)
    column = pd.Series(pa.array(list(E)), dtype=pd.ArrowDtype(pa.list_(pa.float32())))
    partitions = dd.from_pandas(X.assign(emb=column), npartitions=3)
    found = fit(partitions, "emb")
    np.testing.assert_array_equal(found.labels_.compute(), model.labels_)
    np.testing.assert_array_equal(found.predict(partitions).compute(), model.labels_)


def test_anndata(X, E, model):
    matrix = X.to_numpy()
    for rows in (matrix, sparse.csr_array(matrix)):
        adata = AnnData(rows, NAMES, {"X_pca": E, "other": E[:, :2]})
        found = fit(adata, "X_pca")
        np.testing.assert_array_equal(found.labels_, model.labels_)
        np.testing.assert_array_equal(found.predict(adata), model.labels_)
        assert features_used(found.taxonomy_) <= set("abcd")
        np.testing.assert_array_equal(fit(adata).labels_, fit(rows).labels_)
        assert [*fit(adata).taxonomy_.feature_names] == NAMES
        assert assess(found, adata, embedding="X_pca", n_refits=3).stability is not None
        refuse(adata, "a")
        other = AnnData(rows[:, ::-1], NAMES[::-1], {})  # genes in another order
        for predict in (found.predict, found.taxonomy_.predict):
            np.testing.assert_array_equal(predict(other), model.labels_)
    adata.isbacked = True
    with pytest.raises(InputTypeError):
        fit(adata)


def test_real_anndata(X, E, model):
    anndata = pytest.importorskip("anndata")
    adata = anndata.AnnData(sparse.csr_matrix(X.to_numpy()), var=X.T[[]], obsm={"X_pca": E})
    found = fit(adata, "X_pca")
    np.testing.assert_array_equal(found.labels_, model.labels_)
    np.testing.assert_array_equal(found.predict(adata), model.labels_)


def test_h5ad(X, E, model, tmp_path):
    for name, rows in (("dense", X.to_numpy()), ("csr", sparse.csr_array(X.to_numpy()))):
        path = write_h5ad(tmp_path / f"{name}.h5ad", rows, NAMES)
        refuse(path, "X_pca")
        with h5py.File(path, "a") as file:
            file.create_group("obsm")["X_pca"] = E
            file["obsm"].create_group("frame")
        found = fit(path, "X_pca")
        np.testing.assert_array_equal(found.labels_, model.labels_)
        np.testing.assert_array_equal(found.predict(path), model.labels_)
        assert features_used(found.taxonomy_) <= set("abcd")
        refuse(path, "frame")


def test_genes_with_missing_values_are_found_by_name():
    X = np.concatenate([np.zeros((50, 4)), np.full((50, 4), 9.0)])
    X += np.random.default_rng(0).normal(size=X.shape)
    for cells in ([3], slice(None)):  # one is missing, or all of a gene
        X[cells, 2] = np.nan
        with pytest.warns(TableWarning):
            model = Taxarbor(2, random_state=0).fit(AnnData(X, list("abcd"), {}))
        assert set(model.taxonomy_.feature_names) <= set("abcd")
        for order in (1, -1):
            rows = AnnData(X[:, ::order], list("abcd")[::order])
            for predict in (model.predict, model.taxonomy_.predict):
                np.testing.assert_array_equal(predict(rows), model.labels_)
