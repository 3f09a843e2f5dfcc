"""One tree, to the bit, however its rows lie in blocks, whoever sweeps them, and where."""

import dataclasses
import tempfile
import warnings

import numpy as np
import pytest
from scipy import sparse

from taxarbor import GrowthWarning, TableWarning, Taxarbor, make_planted_tree
from taxarbor._errors import InputError, InputTypeError
from taxarbor.estimators._parts import rows_by_parts
from taxarbor.estimators._sweeping import Sweeping
from taxarbor.grow import StoppingRule
from taxarbor.sweep import _blocks
from taxarbor.tables import _scan
from taxarbor.tables._stream import as_stream

SETTINGS = {
    "usual": {"n_clusters": 9},
    "three": {"n_clusters": 9, "branching": 3},
    "describe": {"n_clusters": 9, "rules": "describe"},
    "describe three": {"n_clusters": 7, "rules": "describe", "branching": 3},
    "small leaves": {"n_clusters": None, "max_leaf_size": 40},
    "large leaves": {"n_clusters": 9, "min_leaf_size": 12, "rules": "describe"},
    "between": {"n_clusters": 9, "min_leaf_size": 6, "max_leaf_size": 90, "branching": 3},
    "deep": {"n_clusters": None, "max_depth": 3},
    "deep three": {"n_clusters": None, "max_depth": 2, "branching": 3},
    "noise": {"n_clusters": 6, "noise": 0.05},
    "noise describe": {"n_clusters": 6, "noise": 0.05, "rules": "describe", "n_init": 3},
    "few features": {"n_clusters": 8, "max_features": 2, "novelty": 3.0, "balance": None},
}


def clouds(n_rows, n_features, seed=0):
    """Return clusters of several sizes and shapes."""
    rng = np.random.default_rng(seed)
    middles = 4.0 * rng.standard_normal((6, n_features)) * (rng.random((6, n_features)) < 0.4)
    labels = rng.choice(6, n_rows, p=[0.4, 0.25, 0.15, 0.1, 0.07, 0.03])
    return middles[labels] + rng.standard_normal((n_rows, n_features)) + 3.0


def with_outliers(X, seed=0):
    rng = np.random.default_rng(seed)
    far = rng.choice(len(X), 7, replace=False)
    X = X.copy()
    X[far] += 1e4 * rng.standard_normal((7, X.shape[1]))
    return X


def with_gaps(X, seed=0):
    rng = np.random.default_rng(seed)
    X = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    X[3] = np.nan  # a row without a value
    return X


def data_sets():
    rng = np.random.default_rng(0)
    planted = make_planted_tree(400, random_state=1).X
    whole = rng.integers(0, 4, (300, 5)).astype(np.float64)
    constant = np.insert(clouds(300, 6), [0, 3], [0.0, 1e4], axis=1)
    words = clouds(500, 90, 5) * (rng.random((500, 90)) < 0.1)
    return {
        "float64": planted,
        "float32": clouds(700, 8).astype(np.float32),
        "small": clouds(23, 3),
        "outliers": with_outliers(clouds(600, 6, 2)),
        "outliers float32": with_outliers(clouds(600, 6, 3)).astype(np.float32),
        "gaps": with_gaps(clouds(400, 7, 4)),
        "duplicates": np.repeat(whole[:60], 6, axis=0)[rng.permutation(360)],
        "ties": whole,
        "constant columns": constant,
        "constant float32": constant.astype(np.float32),
        "middle": clouds(500, 80, 6),
        "middle float32": clouds(500, 80, 6).astype(np.float32),
        "wide": clouds(300, 540, 7),
        "wide float32": clouds(300, 540, 7).astype(np.float32),
        "csr": sparse.csr_array(words),
        "csr float32": sparse.csr_array(words.astype(np.float32)),
        "csr wide": sparse.csr_array(clouds(300, 540, 8) * (rng.random((300, 540)) < 0.1)),
    }


SETS = data_sets()
WEIGHTED = ("float64", "float32", "csr", "gaps", "outliers", "ties")


def parts_of(found):
    """Yield all that a tree knows, but for who made it."""
    if dataclasses.is_dataclass(found):
        for field in dataclasses.fields(found):
            if field.name != "made_by":
                for name, part in parts_of(getattr(found, field.name)):
                    yield f"{field.name} {name}", part
    elif isinstance(found, tuple | list):
        for at, one in enumerate(found):
            for name, part in parts_of(one):
                yield f"{at} {name}", part
    elif isinstance(found, np.ndarray):
        yield str((found.dtype, found.shape)), found.tobytes()
    else:
        yield "", repr(found)


def fitted(X, weights=None, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrowthWarning)
        warnings.simplefilter("ignore", TableWarning)
        return Taxarbor(random_state=3, **settings).fit(X, sample_weight=weights)


def all_of(model):
    tree = dict(parts_of(model.hierarchy_))
    for name in ("labels_", "outlier_score_"):
        values = getattr(model, name)
        tree[name] = (values.dtype, values.tobytes())
    tree["followed"] = model.hierarchy_.follows.rows.tobytes()
    return tree


def in_blocks(monkeypatch, n_rows):
    """Make blocks of so many rows."""
    for module in (_blocks, _scan):
        monkeypatch.setattr(module, "rows_per_block", lambda n_cells: n_rows)


def check(X, weights, settings, monkeypatch, sizes=(0, 64, 101)):
    """Fit in one block, in more of them, in threads, and with coordinates on disk."""
    n_rows, made = X.shape[0], []
    with monkeypatch.context() as patch:
        in_blocks(patch, n_rows)
        model = fitted(X, weights, **settings)
    expected = all_of(model)
    kept = tempfile.TemporaryFile

    def counted(*how):
        made.append(how)
        return kept(*how)

    for size in [one or max(n_rows // 40, 1) for one in sizes]:
        for how in ({}, {"n_jobs": 2}, {"memory_limit": "1MB"}):
            with monkeypatch.context() as patch:
                in_blocks(patch, size)
                patch.setattr(tempfile, "TemporaryFile", counted)
                found = all_of(fitted(X, weights, **settings, **how))
            different = [name for name in expected if expected[name] != found.get(name)]
            assert not different, (size, how)
            assert found.keys() == expected.keys()
    assert len(made) == len(sizes)  # of the fits with little memory, and no others
    return model


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.parametrize("rules", ["decide", "describe"])
def test_one_tree_of_each_kind_of_data(kind, rules, monkeypatch):
    for branching in (2, 3):
        settings = {"n_clusters": 9, "branching": branching, "rules": rules}
        model = check(SETS[kind], None, settings, monkeypatch, sizes=(0, 101))
        assert model.hierarchy_.n_leaves > 2


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("kind", ["float64", "outliers float32", "ties", "csr"])
def test_one_tree_whatever_is_asked_for(kind, name, monkeypatch):
    model = check(SETS[kind], None, SETTINGS[name], monkeypatch, sizes=(64,))
    assert model.hierarchy_.n_leaves > 1


@pytest.mark.parametrize("kind", WEIGHTED)
@pytest.mark.parametrize("name", ["usual", "describe three", "between", "noise"])
def test_one_tree_of_rows_that_count(kind, name, monkeypatch):
    rng = np.random.default_rng(0)
    X = SETS[kind]
    n_rows = X.shape[0]
    for weights in (rng.integers(0, 4, n_rows), rng.uniform(0.0, 3.0, n_rows)):
        weights[:70] = 0  # nobody of the first block takes part
        model = check(X, weights, SETTINGS[name], monkeypatch, sizes=(64,))
        assert model.hierarchy_.n_leaves > 2


@pytest.mark.parametrize("kind", ["float32", "float64", "csr"])
@pytest.mark.parametrize("rules", ["decide", "describe"])
def test_one_tree_of_many_rows(kind, rules, monkeypatch):
    """More than any sample has, of which the rules' stand for several."""
    X = with_outliers(clouds(13_000, 70 if kind == "csr" else 6, 9))
    if kind == "csr":
        X = sparse.csr_array(X * (np.random.default_rng(0).random(X.shape) < 0.2))
    else:
        X = X.astype(kind)
    counts = np.random.default_rng(0).integers(0, 3, 13_000)
    for weights, n_clusters, least in ((None, 3, 1), (counts, 30, 200)):
        settings = {"n_clusters": n_clusters, "rules": rules, "min_leaf_size": least}
        check(X, weights, settings, monkeypatch, sizes=(1111,))


@pytest.mark.parametrize("kind", ["float64", "float32", "small", "outliers", "gaps", "wide"])
@pytest.mark.parametrize("name", ["usual", "describe three", "between", "deep", "noise"])
def test_one_tree_of_rows_in_a_file(kind, name, tmp_path, monkeypatch):
    X, rng = SETS[kind], np.random.default_rng(0)
    np.save(tmp_path / "rows.npy", X)
    for weights in (None, rng.integers(0, 4, len(X))):
        one = fitted(X, weights, **SETTINGS[name])
        with monkeypatch.context() as patch:
            in_blocks(patch, 77)
            rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
            other = fitted(rows, weights, **SETTINGS[name], memory_limit="1MB")
        for attribute in ("labels_", "outlier_score_"):
            values = np.asarray(getattr(other, attribute))
            np.testing.assert_array_equal(getattr(one, attribute), values)
        one, other = one.hierarchy_, other.hierarchy_
        for attribute in ("sizes", "parents", "birth", "score", "objective", "means"):
            values = getattr(other, attribute)
            np.testing.assert_array_equal(getattr(one, attribute), values)
        assert [*parts_of(one.rules)] == [*parts_of(other.rules)]
        assert [*parts_of(one.placement)] == [*parts_of(other.placement)]
        assert one.notes == other.notes
        np.testing.assert_array_equal(one.follows.share, other.follows.share)
        np.testing.assert_array_equal(one.follows.gap, other.follows.gap)
        np.testing.assert_array_equal(one.fidelity, other.fidelity)


def test_blocks_fit_into_a_cache():
    for n_cells, n_rows in ((0.0, 1 << 16), (40.0, 1 << 16), (1000.0, 4194), (1e6, 256)):
        assert _blocks.rows_per_block(n_cells) == n_rows


def test_the_total_weight_does_not_depend_on_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    X, weights = clouds(3000, 3), 10.0 ** rng.uniform(-3.0, 3.0, 3000)
    found = set()
    for least in (1, 7, 100, 4096):
        monkeypatch.setattr(_blocks, "LEAST", least)
        monkeypatch.setattr(_blocks, "CELLS", 1)
        with Sweeping(Taxarbor(3, random_state=0), X, weights, StoppingRule(3)) as fit:
            found.add(fit.copies(10**6) / 10**6)
            found.add(fit._per_weight)
    assert len(found) == 2


@pytest.mark.filterwarnings("ignore::taxarbor.TableWarning")
def test_the_order_of_bytes_does_not_matter(tmp_path):
    da = pytest.importorskip("dask.array")
    X = clouds(300, 4).astype(np.float32)
    X[5, 2] = np.nan
    for data in (X, np.nan_to_num(X)):
        expected = Taxarbor(5, random_state=0).fit(data)
        other = data.astype(data.dtype.newbyteorder())
        np.save(tmp_path / "X.npy", other)
        blocks = da.from_array(other, chunks=(70, 4))
        for rows in (other, tmp_path / "X.npy", blocks):
            found = Taxarbor(5, random_state=0).fit(rows)
            np.testing.assert_array_equal(found.labels_, expected.labels_)
            assert found.hierarchy_.means.dtype == expected.hierarchy_.means.dtype
            np.testing.assert_array_equal(found.hierarchy_.means, expected.hierarchy_.means)


@pytest.mark.filterwarnings("ignore::taxarbor.TableWarning")
def test_gaps_of_wide_sparse_rows_are_counted_as_in_memory():
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    X = sparse.random_array((400, 3000), density=0.01, format="csr", rng=0)
    X.data[::50] = np.nan
    weights = np.random.default_rng(0).integers(1, 4, 400)
    expected = Taxarbor(4, random_state=0).fit(X, sample_weight=weights)
    blocks = [
        da.from_delayed(dask.delayed(X[i : i + 100]), (100, 3000), X.dtype, X[:0])
        for i in range(0, 400, 100)
    ]
    found = Taxarbor(4, random_state=0).fit(da.concatenate(blocks), sample_weight=weights)
    np.testing.assert_array_equal(found.labels_, expected.labels_)
    assert (expected.hierarchy_.missing > 0.0).any()
    np.testing.assert_array_equal(found.hierarchy_.missing, expected.hierarchy_.missing)


def test_an_error_in_a_part_stays_of_its_kind(tmp_path):
    model = Taxarbor(3, random_state=0).fit(clouds(60, 2))
    np.save(tmp_path / "X.npy", clouds(60, 2))
    stream = as_stream(tmp_path / "X.npy")
    for kind in (InputError, InputTypeError):

        def refuse(tree, rows, kind=kind):
            raise kind("is wrong")

        with pytest.raises(kind, match=r"^X.npy, rows 0 to 59: is wrong$"):
            rows_by_parts(refuse, model.hierarchy_, stream, dtype=np.intp)
