import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from taxarbor import HMMC
from taxarbor.data import (
    check_balance,
    check_choice,
    check_count,
    check_jobs,
    check_new_rows,
    check_strength,
    check_training_rows,
)

LAYOUTS = {"dense": np.asarray, "csr": sparse.csr_array}


class Anything(BaseEstimator):
    """An estimator in whose name data are checked."""


@pytest.fixture(scope="module", name="X")
def cloud():
    X = np.random.default_rng(0).standard_normal((60, 4))
    X.flags.writeable = False
    return X


@pytest.fixture(params=list(LAYOUTS))
def layout(request):
    return LAYOUTS[request.param]


def check(X):
    rows, _ = check_training_rows(Anything(), X, 1)
    return rows


# Rows that are refused


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_not_finite(X, layout, dtype, value):
    bad = X.astype(dtype)
    bad[3, 2] = value
    told = "contains NaN" if math.isnan(value) else "contains infinity"
    with pytest.raises(ValueError, match=told):
        check(layout(bad))


@pytest.mark.parametrize("missing", [None, math.nan])
def test_missing_among_objects(X, missing):
    bad = X.astype(object)
    bad[3, 2] = missing
    with pytest.raises(ValueError, match="contains NaN"):
        check(bad)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (np.empty((0, 3)), r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 2"),
        (np.ones((1, 3)), r"1 sample\(s\) \(shape=\(1, 3\)\) while a minimum of 2"),
        (np.empty((5, 0)), r"0 feature\(s\) \(shape=\(5, 0\)\) while a minimum of 1"),
        ([], "Expected 2D array, got 1D array"),
        (np.arange(5.0), "Expected 2D array, got 1D array"),
        (np.ones((2, 2, 2)), "dim 3, while dim <= 2"),
        (3.0, "Expected 2D array, got scalar array"),
        (None, "Expected 2D array, got scalar array"),
        ([["a", "b"], ["c", "d"]], "could not convert string to float: 'a'"),
        (np.array([["a", 1], ["b", 2]], dtype=object), "could not convert string .*'a'"),
        (np.ones((3, 2)) * 1j, "Complex data not supported"),
    ],
    ids=["empty", "row", "columns", "list", "1d", "3d", "0d", "None", "str", "obj", "complex"],
)
def test_no_rows_of_numbers(bad, told):
    with pytest.raises(ValueError, match=told):
        check(bad)


@pytest.mark.parametrize("bad", [sparse.csr_array((1, 3)), sparse.csr_array((0, 3))])
def test_too_few_sparse_rows(bad):
    with pytest.raises(ValueError, match="while a minimum of 2 is required by Anything"):
        check(bad)


@pytest.mark.parametrize(
    ("dtype", "scale", "told"),
    [
        ("float64", 1e300, r"by about .e\+... in float64, .* divide X"),
        ("float64", 1e75, r"by about .e\+7. in float64, .* divide X"),
        ("float64", 1e-300, "by about .e-30. in float64, .* multiply X"),
        ("float64", 1e-75, "by about .e-7. in float64, .* multiply X"),
        ("float64", 1e-312, "in float64, .* multiply X"),
        ("float32", 1e30, r"in float32, where it should vary by 1e-15 to 1e\+15, .* divide X"),
        ("float32", 1e-30, "in float32, .* multiply X"),
    ],
)
def test_out_of_range(X, layout, dtype, scale, told):
    with pytest.raises(ValueError, match=f"X varies .*{told} by a constant first"):
        check(layout((X * scale).astype(dtype)))


# scikit-learn warns on its way: it sums the values to see whether they are finite.
@pytest.mark.filterwarnings("ignore:invalid value|overflow:RuntimeWarning")
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_at_the_end_of_the_range(X, layout, dtype):
    largest = float(np.finfo(dtype).max)
    with pytest.raises(ValueError, match=f"in {dtype}, .* divide X by a constant first"):
        check(layout((np.sign(X) * largest).astype(dtype)))


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [
        ("float64", 2.0**220),
        ("float64", 2.0**-220),
        ("float32", 2.0**43),
        ("float32", 2.0**-43),
    ],
)
@pytest.mark.parametrize("refine", [True, False])
def test_wide_range_is_fine(X, layout, dtype, scale, refine):
    scaled = layout((X * scale).astype(dtype))
    setting = {"balance": None, "refine": refine, "random_state": 0}
    model = HMMC(5, **setting).fit(scaled)
    plain = HMMC(5, **setting).fit(layout(X.astype(dtype)))
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(model.predict(scaled), model.labels_)


# Rows that are taken


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_floats_keep_their_type(X, layout, dtype):
    assert check(layout(X.astype(dtype))).dtype == dtype


@pytest.mark.parametrize(
    "dtype", [int, np.int8, np.uint16, bool, np.float16, np.longdouble, object]
)
def test_other_numbers_become_float64(X, dtype):
    values = np.abs(np.rint(X * 3)).astype(dtype)
    rows = check(values)
    assert rows.dtype == np.float64
    np.testing.assert_array_equal(rows.X, values.astype(float))


@pytest.mark.parametrize("dtype", [int, bool])
def test_sparse_integers_become_float64(X, dtype):
    assert check(sparse.csr_array(np.rint(X).astype(dtype))).dtype == np.float64


def test_lists(X):
    np.testing.assert_array_equal(check(X.tolist()).X, X)


def test_dense_rows_are_not_copied(X):
    assert np.shares_memory(check(X).X, X)


@pytest.mark.parametrize("convert", [sparse.csc_array, sparse.coo_array, sparse.lil_array])
def test_other_sparse_formats_are_converted(X, convert):
    rows, usual = check(convert(X)), check(sparse.csr_array(X))
    np.testing.assert_array_equal(rows.values, usual.values)
    np.testing.assert_array_equal(rows.columns, usual.columns)
    np.testing.assert_array_equal(rows.starts, usual.starts)


def test_canonical_without_touching_the_original():
    values, columns, starts = [1.0, 2.0, 4.0, 8.0], [2, 0, 2, 1], [0, 3, 4]
    X = sparse.csr_array((values, columns, starts), shape=(2, 3))
    rows = check(X)
    assert rows.values.tolist() == [2.0, 5.0, 8.0]
    assert rows.columns.tolist() == [0, 2, 1]
    assert X.data.tolist() == values
    assert X.indices.tolist() == columns
    assert X.indptr.tolist() == starts


def test_what_came_is_noted_when_told_to(X):
    estimator = Anything()
    _, seen = check_training_rows(estimator, X, 1)
    assert not vars(estimator)
    seen.note_on(estimator)
    assert estimator.n_features_in_ == 4
    assert seen.names is None


def test_names_are_noted_and_forgotten(X):
    estimator = Anything()
    _, seen = check_training_rows(estimator, pd.DataFrame(X, columns=list("abcd")), 1)
    assert seen.names == ["a", "b", "c", "d"]
    seen.note_on(estimator)
    assert estimator.feature_names_in_.tolist() == seen.names
    check_training_rows(estimator, X, 1)[1].note_on(estimator)
    assert "feature_names_in_" not in vars(estimator)


# New rows


@pytest.fixture
def fitted(X):
    estimator = Anything()
    check_training_rows(estimator, X, 1)[1].note_on(estimator)
    return estimator


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_new_rows(fitted, X, layout, dtype):
    new = check_new_rows(fitted, layout(X[:1].astype(dtype)))
    assert new.dtype == dtype
    assert new.shape == (1, 4)


@pytest.mark.parametrize(
    ("bad", "told"),
    [
        (np.ones((2, 3)), "X has 3 features, but Anything is expecting 4 features as input"),
        (sparse.csr_array((2, 5)), "X has 5 features, but Anything is expecting 4 features"),
        (np.full((2, 4), np.nan), "contains NaN"),
        (np.full((2, 4), np.inf), "contains infinity"),
        (np.ones((0, 4)), r"0 sample\(s\) \(shape=\(0, 4\)\) while a minimum of 1"),
        (np.ones(4), "Expected 2D array, got 1D array"),
        ([["a"] * 4], "could not convert string to float: 'a'"),
    ],
    ids=["fewer", "more", "nan", "inf", "none", "1d", "text"],
)
def test_bad_new_rows(fitted, bad, told):
    with pytest.raises(ValueError, match=told):
        check_new_rows(fitted, bad)


def test_new_rows_beyond_float32(X):
    model = HMMC(2, random_state=0).fit(X.astype(np.float32))
    with pytest.raises(ValueError, match="too large for float32"):
        model.predict(X * 1e300)


@pytest.mark.parametrize("scale", [1e300, 1e-320])
@pytest.mark.parametrize("refine", [True, False])
def test_far_new_rows_find_a_leaf(X, layout, scale, refine):
    model = HMMC(4, refine=refine, random_state=0).fit(X)
    assert set(model.predict(layout(X * scale))) <= set(range(4))


def test_new_rows_before_a_fit(X):
    with pytest.raises(NotFittedError):
        HMMC().predict(X)


# Parameters


@pytest.mark.parametrize("value", [2, np.int64(2), np.uint8(2)])
def test_count(value):
    count = check_count("n_init", value, least=1)
    assert count == 2
    assert type(count) is int


@pytest.mark.parametrize("value", [2.0, "2", None, True, np.True_, np.float64(2), [2], 2j])
def test_count_of_another_type(value):
    with pytest.raises(TypeError, match="n_init must be an integer, got "):
        check_count("n_init", value, least=1)


@pytest.mark.parametrize("value", [0, -1, np.int64(-5)])
def test_count_too_small(value):
    with pytest.raises(ValueError, match=f"n_init must be at least 1, got {value}"):
        check_count("n_init", value, least=1)


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.5), np.int32(3), Fraction(1, 2)])
def test_strength(value):
    strength = check_strength("alpha", value)
    assert strength == value
    assert type(strength) is float


@pytest.mark.parametrize("value", ["0.5", None, True, 1j, [0.5], np.array([0.5])])
def test_strength_of_another_type(value):
    with pytest.raises(TypeError, match="alpha must be a number, got "):
        check_strength("alpha", value)


@pytest.mark.parametrize(
    "value", [-1, -1e-300, math.nan, math.inf, -math.inf, np.float32("nan")]
)
def test_strength_out_of_range(value):
    with pytest.raises(ValueError, match=f"alpha must be finite and not negative, got {value}"):
        check_strength("alpha", value)


@pytest.mark.parametrize("value", [None, 1, 2, np.int64(2)])
def test_jobs(value):
    assert check_jobs(value) == (value or 1)


def test_all_processors():
    assert check_jobs(-1) >= 1


@pytest.mark.parametrize("value", ["2", 1.5, True, [2]])
def test_jobs_of_another_type(value):
    with pytest.raises(TypeError, match="n_jobs must be an integer or None, got "):
        check_jobs(value)


def test_no_jobs():
    with pytest.raises(ValueError, match="n_jobs must not be 0"):
        check_jobs(0)


def test_choice():
    assert check_choice("units", "raw", ("relative", "raw")) is None


@pytest.mark.parametrize("value", ["cm", "RAW", "", None, 3, ["raw"], ("raw",)])
def test_no_choice(value):
    with pytest.raises(
        ValueError, match="units must be one of 'relative', 'raw'; got "
    ) as told:
        check_choice("units", value, ("relative", "raw"))
    assert repr(value) in str(told.value)


@pytest.mark.parametrize(
    ("value", "n_children", "expected"),
    [
        (None, 2, (0.0, 2.0)),
        (None, 5, (0.0, 5.0)),
        (0, 2, (0.0, 2.0)),
        (0.25, 3, (0.25, 1.75)),
        (1, 2, (1.0, 1.0)),
        ((0.9, 1.1), 2, (0.9, 1.1)),
        ([0.5, 3], 2, (0.5, 3.0)),
        ((0, 1), 2, (0.0, 1.0)),
        (np.float32(0.5), 2, (0.5, 1.5)),
    ],
)
def test_balance(value, n_children, expected):
    assert check_balance(value, n_children) == expected


@pytest.mark.parametrize(
    "value",
    [(1.2, 1.5), (0.5, 0.8), -0.1, 1.5, math.nan, math.inf, (0.5, math.nan), (-1, 1), (1, 0)],
)
def test_infeasible_balance(value):
    told = r"balance must be .*between 0 and 1.* pair \(low, high\) .*got "
    with pytest.raises(ValueError, match=told) as error:
        check_balance(value, 2)
    assert repr(value) in str(error.value)


@pytest.mark.parametrize("value", ["x", (0.9,), (0.9, 1.0, 1.1), ("a", "b"), True, {}, 1j])
def test_no_balance(value):
    told = r"balance must be .*number.* pair \(low, high\) .*got "
    with pytest.raises((TypeError, ValueError), match=told) as error:
        check_balance(value, 2)
    assert repr(value) in str(error.value)
