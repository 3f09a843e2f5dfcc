"""What users pass to estimators."""

import itertools
import math
import pickle
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from taxarbor import HMMC, Taxarbor
from taxarbor._errors import FileFormatError, InputError, InputTypeError, TaxarborError
from taxarbor.rows import as_rows
from taxarbor.tables._checks import (
    check_balance,
    check_choice,
    check_count,
    check_jobs,
    check_new_rows,
    check_strength,
)
from taxarbor.tables._features import make_features

LAYOUTS = (np.asarray, sparse.csr_array)


class Anything(BaseEstimator):
    """An estimator in whose name data are checked."""

    encoder = None


@pytest.fixture(scope="module", name="X")
def cloud():
    X = np.random.default_rng(0).standard_normal((60, 4))
    X.flags.writeable = False
    return X


def check(X):
    return as_rows(make_features(Anything(), X).data)


def refused(told, X, check=check, kind=InputError):
    with pytest.raises(kind, match=told) as caught:
        check(X)
    assert isinstance(caught.value, InputError)


# The errors themselves


def test_an_error_names_the_parameter_in_the_words_of_who_asks():
    error = InputError("must be at least 1, got 0", "n_clusters")
    assert str(error) == error.message() == "n_clusters must be at least 1, got 0"
    assert error.message({"n_clusters": "-k"}.get) == "-k must be at least 1, got 0"
    assert error.message({}.get) == str(error)
    error = FileFormatError("a.csv has gaps", remedy=("; choose others with", "columns"))
    assert str(error) == "a.csv has gaps; choose others with columns="
    told = error.message({"columns": "--columns"}.get)
    assert told == "a.csv has gaps; choose others with --columns"
    assert error.message({}.get) == "a.csv has gaps"
    for kind in (InputError, InputTypeError, FileFormatError):
        assert issubclass(kind, TaxarborError)
        assert issubclass(kind, ValueError)
    assert issubclass(InputTypeError, TypeError)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


# Rows that are refused


def test_not_finite(X):
    values = (math.nan, math.inf, -math.inf)
    for layout, dtype, value in itertools.product(LAYOUTS, ("float64", "float32"), values):
        bad = X.astype(dtype)
        bad[3, 2] = value
        refused("contains NaN" if math.isnan(value) else "contains infinity", layout(bad))
    for missing in (None, math.nan):
        bad = X.astype(object)
        bad[3, 2] = missing
        refused("contains NaN", bad)


def test_no_rows_of_numbers():
    for bad, told in (
        (np.empty((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 2"),
        (np.ones((1, 3)), r"1 sample\(s\) \(shape=\(1, 3\)\) while a minimum of 2"),
        (np.empty((5, 0)), r"0 feature\(s\) \(shape=\(5, 0\)\) while a minimum of 1"),
        ([], "Expected 2D array, got 1D array"),
        (np.arange(5.0), "Expected 2D array, got 1D array"),
        (pd.Series([1.0, 2.0]), "Expected a 2-dimensional container"),
        (np.ones((2, 2, 2)), r"^X must have two dimensions, .* got shape \(2, 2, 2\)"),
        ([[[1.0], [2.0]]], r"^X must have two dimensions, .* got shape \(1, 2, 1\)"),
        (sparse.coo_array(np.ones(5)), r"^X must have two dimensions, .* got shape \(5,\)"),
        (sparse.csr_array(np.ones(5)), r"^X must have two dimensions, .* got shape \(5,\)"),
        (sparse.coo_array(np.ones((2, 2, 2))), r"^X must have two .* shape \(2, 2, 2\)"),
        (3.0, "Expected 2D array, got scalar array"),
        (None, "Expected 2D array, got scalar array"),
        ([["a", "b"], ["c", "d"]], "could not convert string to float: 'a'"),
        (np.array([["a", 1], ["b", 2]], dtype=object), "could not convert string .*'a'"),
        (np.ones((3, 2)) * 1j, "Complex data not supported"),
        (sparse.csr_array((1, 3)), "while a minimum of 2 is required by Anything"),
        (sparse.csr_array((0, 3)), "while a minimum of 2 is required by Anything"),
        ([[10**400, 1], [2, 3]], "X holds an integer that is too large for float64"),
    ):
        refused(told, bad)
    refused("must be a string or a real number", np.array([[{}], [{}]]), kind=TypeError)


def test_columns_of_one_name(X):
    """Whatever scikit-learn says of them: some versions fitted, or predicted, them."""
    fitted = Taxarbor(3, random_state=0).fit(X)
    for names in ("abba", (1, 2, 1, 2), ("a", "b", "c", "a")):
        bad = pd.DataFrame(X, columns=[*names])
        for method in (check, fitted.fit, fitted.predict, fitted.predict_proba):
            refused(f"^X has more than one column called {names[0]!r}", bad, method)


def test_sparse_indices_that_point_outside(X):
    """Each of these ended the process."""
    fitted = Taxarbor(3, random_state=0).fit(X)
    changes = (("indices", 5, 2 * 10**9), ("indices", 5, -1), ("indptr", 2, 10**6))
    for layout, (part, place, value) in itertools.product(
        (sparse.csr_array, sparse.csc_array), changes
    ):
        bad = layout(X)
        getattr(bad, part)[place] = value
        refused("damaged sparse matrix", bad)
        refused("damaged sparse matrix", bad, fitted.predict)
    for axis in (0, 1):
        bad = sparse.coo_array(X)
        bad.coords[axis][5] = 2 * 10**9
        refused("damaged sparse matrix", bad)


def test_out_of_range(X):
    """Sums of powers must fit."""
    for layout in LAYOUTS:
        for dtype, scale, told in (
            ("float64", 1e300, r"by about .e\+... in float64, .* divide it"),
            ("float64", 1e75, r"by about .e\+7. in float64, .* divide it"),
            ("float64", 1e-300, "by about .e-30. in float64, .* multiply it"),
            ("float64", 1e-75, "by about .e-7. in float64, .* multiply it"),
            ("float64", 1e-312, "in float64, .* multiply it"),
            ("float32", 1e30, r"in float32, .* vary by 1e-15 to 1e\+15, .* divide"),
            ("float32", 1e-30, "in float32, .* multiply it"),
        ):
            refused(f"^X varies .*{told}", layout((X * scale).astype(dtype)))


# scikit-learn warns on its way: it sums the values to see whether they are finite.
@pytest.mark.filterwarnings("ignore:invalid value|overflow:RuntimeWarning")
def test_at_the_end_of_the_range(X):
    for layout, dtype in itertools.product(LAYOUTS, ("float64", "float32")):
        largest = (np.sign(X) * float(np.finfo(dtype).max)).astype(dtype)
        refused(f"in {dtype}, .* divide it by a constant first", layout(largest))


@pytest.mark.filterwarnings("ignore:invalid value|overflow:RuntimeWarning")
def test_too_far_from_zero(X, tmp_path):
    """A constant is enough: squares of the means must fit."""
    for dtype, far in (("float64", 1e300), ("float64", -1e200), ("float32", 1e30)):
        far_column = np.append(X, np.full((len(X), 1), far), axis=1).astype(dtype)
        for layout in LAYOUTS:
            refused(r"^X has a column whose mean is about .*subtract", layout(far_column))
    np.save(tmp_path / "far.npy", far_column)
    with pytest.raises(InputError, match=r"^X has a column whose mean is about"):
        Taxarbor(3).fit(tmp_path / "far.npy")


def test_wide_range_is_fine(X):
    setting = {"balance": None, "random_state": 0}
    wide = (("float64", 220), ("float64", -220), ("float32", 43), ("float32", -43))
    for (dtype, power), layout, method in itertools.product(wide, LAYOUTS, (Taxarbor, HMMC)):
        scaled = layout((X * 2.0**power).astype(dtype))
        model = method(5, **setting).fit(scaled)
        plain = method(5, **setting).fit(layout(X.astype(dtype)))
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        np.testing.assert_array_equal(model.predict(scaled), model.labels_)


# Rows that are taken


def test_types_of_numbers(X):
    for dtype in ("float64", "float32"):
        for layout in LAYOUTS:
            assert check(layout(X.astype(dtype))).dtype == dtype
    for dtype in (int, np.int8, np.uint16, bool, np.float16, np.longdouble, object):
        values = np.abs(np.rint(X * 3)).astype(dtype)
        rows = check(values)
        assert rows.dtype == np.float64
        np.testing.assert_array_equal(rows._X, values.astype(float))
    for dtype in (int, bool):
        assert check(sparse.csr_array(np.rint(X).astype(dtype))).dtype == np.float64
    np.testing.assert_array_equal(check(X.tolist())._X, X)
    assert np.shares_memory(check(X)._X, X)


def test_other_sparse_formats_are_converted(X):
    usual = check(sparse.csr_array(X))
    for convert in (sparse.csc_array, sparse.coo_array, sparse.lil_array, sparse.csc_matrix):
        rows = check(convert(X))
        for part in ("data", "indices", "indptr"):
            found, expected = getattr(rows._X, part), getattr(usual._X, part)
            np.testing.assert_array_equal(found, expected)
    # They are made canonical, and the original stays as it is.
    values, columns, starts = [1.0, 2.0, 4.0, 8.0], [2, 0, 2, 1], [0, 3, 4]
    X = sparse.csr_array((values, columns, starts), shape=(2, 3))
    rows = check(X)
    assert rows._X.data.tolist() == [2.0, 5.0, 8.0]
    assert rows._X.indices.tolist() == [0, 2, 1]
    assert (X.data.tolist(), X.indices.tolist(), X.indptr.tolist()) == (values, columns, starts)


def test_names_are_noted_when_told_to_and_forgotten(X):
    estimator = Anything()
    seen = make_features(estimator, pd.DataFrame(X, columns=list("abcd"))).seen
    assert not vars(estimator)
    assert seen.names == ["a", "b", "c", "d"]
    vars(estimator).update(seen.attributes)
    assert estimator.n_features_in_ == 4
    assert estimator.feature_names_in_.tolist() == seen.names
    seen = make_features(estimator, X).seen
    assert seen.names is None
    assert "feature_names_in_" not in seen.attributes


# New rows


@pytest.fixture
def fitted(X):
    estimator = Anything()
    vars(estimator).update(make_features(estimator, X).seen.attributes)
    return estimator


def test_new_rows(fitted, X):
    for layout, dtype in itertools.product(LAYOUTS, ("float64", "float32")):
        new = check_new_rows(fitted, layout(X[:1].astype(dtype)))
        assert (new.dtype, new.shape) == (dtype, (1, 4))
    for bad, told in (
        (np.ones((2, 3)), "X has 3 features, but Anything is expecting 4 features as input"),
        (sparse.csr_array((2, 5)), "X has 5 features, but Anything is expecting 4 features"),
        (np.ones((0, 4)), r"0 sample\(s\) \(shape=\(0, 4\)\) while a minimum of 1"),
        (np.ones(4), "Expected 2D array, got 1D array"),
        ([["a"] * 4], "could not convert string to float: 'a'"),
        ([[10**400] * 4], "too large for float64"),
    ):
        refused(told, bad, lambda X: check_new_rows(fitted, X))


def test_new_rows_of_models(X):
    model = Taxarbor(2, random_state=0).fit(X.astype(np.float32))
    with pytest.raises(ValueError, match="too large for float32"):
        model.predict(X * 1e300)
    with pytest.raises(NotFittedError):
        Taxarbor().predict(X)
    for model in (Taxarbor(4, random_state=0), HMMC(4, random_state=0)):
        model.fit(X)
        for scale, layout in itertools.product((1e300, 1e-320), LAYOUTS):
            assert set(model.predict(layout(X * scale))) <= set(range(4))


# Parameters


def test_count():
    for value in (2, np.int64(2), np.uint8(2)):
        count = check_count("n_init", value, least=1)
        assert count == 2
        assert type(count) is int
    for value in (2.0, "2", None, True, np.True_, np.float64(2), [2], 2j):
        with pytest.raises(TypeError, match="n_init must be an integer, got "):
            check_count("n_init", value, least=1)
    for value in (0, -1, np.int64(-5)):
        with pytest.raises(InputError, match=f"n_init must be at least 1, got {value}"):
            check_count("n_init", value, least=1)


def test_strength():
    for value in (0, 1, 0.5, np.float32(0.5), np.int32(3), Fraction(1, 2)):
        strength = check_strength("alpha", value)
        assert strength == value
        assert type(strength) is float
    for value in ("0.5", None, True, 1j, [0.5], np.array([0.5])):
        with pytest.raises(TypeError, match="alpha must be a number, got "):
            check_strength("alpha", value)
    for value in (-1, -1e-300, math.nan, math.inf, -math.inf, np.float32("nan")):
        told = f"alpha must be finite and not negative, got {value}"
        with pytest.raises(InputError, match=told):
            check_strength("alpha", value)
    for value in (10**400, 10**5000, Fraction(10**400)):
        with pytest.raises(InputError, match=r"^alpha must be less than 1.8e\+308$"):
            check_strength("alpha", value)


def test_jobs():
    for value in (None, 1, 2, np.int64(2)):
        assert check_jobs(value) == (value or 1)
    assert check_jobs(-1) >= 1
    for value in ("2", 1.5, True, [2]):
        with pytest.raises(TypeError, match="n_jobs must be an integer or None, got "):
            check_jobs(value)
    with pytest.raises(InputError, match="n_jobs must not be 0"):
        check_jobs(0)


def test_choice():
    assert check_choice("units", "raw", ("relative", "raw")) is None
    for value in ("cm", "RAW", "", None, 3, ["raw"], ("raw",)):
        told = re.escape(f"units must be one of 'relative', 'raw'; got {value!r}")
        with pytest.raises(InputError, match=told):
            check_choice("units", value, ("relative", "raw"))


def test_balance():
    for value, expected in (
        *((None, (0.0, 3.0)), (0, (0.0, 2.0)), (0.25, (0.25, 1.75)), (1, (1.0, 1.0))),
        *(((0.9, 1.1), (0.9, 1.1)), ([0.5, 3], (0.5, 3.0)), ((0, 1), (0.0, 1.0))),
        (np.float32(0.5), (0.5, 1.5)),
    ):
        assert check_balance(value, 3) == expected
    infeasible = (
        *((1.2, 1.5), (0.5, 0.8), -0.1, 1.5, math.nan, math.inf, (0.5, math.nan), (-1, 1)),
        *((1, 0), "x", (0.9,), (0.9, 1.0, 1.1), ("a", "b"), True, {}, 1j, 10**400),
    )
    told = r"balance must be .*between 0 and 1.* pair \(low, high\) .*got "
    for value in infeasible:
        with pytest.raises(InputError, match=told) as error:
            check_balance(value, 2)
        assert repr(value) in str(error.value)
    with pytest.raises(InputError, match="got a int"):
        check_balance(10**5000, 2)
