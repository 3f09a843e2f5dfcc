import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

from taxarbor.metrics._labels import encode_labels

ROWS = ["b", "a", "b", "c", "a"]
TEXT = [
    ROWS,
    tuple(ROWS),
    np.array(ROWS),
    np.array(ROWS, dtype=object),
    pd.Series(ROWS, index=[5, 4, 3, 2, 1]),
    pd.Series(ROWS, dtype=object),
    pd.Series(ROWS, dtype="category"),
    pd.Categorical(ROWS, categories=["z", "c", "b", "a"]),
    pd.Index(ROWS),
    pl.Series(ROWS),
    pl.Series(ROWS, dtype=pl.Categorical),
    np.ma.array(ROWS),
]
NUMBERS = [3, -2, 3, 100, -2]
TYPES = ["int8", "int16", "int32", "int64", "float32", "float64", "object"]


def decoded(y):
    codes, classes = encode_labels(y, len(y))
    assert codes.dtype == np.intp
    assert sorted(set(codes)) == list(range(len(classes)))
    return [classes[code] for code in codes]


@pytest.mark.parametrize("y", TEXT, ids=lambda y: type(y).__name__)
def test_text(y):
    assert decoded(y) == ROWS


@pytest.mark.parametrize("dtype", TYPES)
def test_numbers(dtype):
    for y in (np.array(NUMBERS, dtype=dtype), pd.Series(NUMBERS, dtype=dtype)):
        assert decoded(y) == NUMBERS


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int8", "uint8"])
def test_the_ends_of_a_type(dtype):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    for values in ([low, high, low], [high, high - 1, high], [low, low + 1, low + 5]):
        assert decoded(np.array(values, dtype=dtype)) == values


def test_labels_read_as_python_would():
    assert decoded(np.array([True, False])) == [True, False]
    assert {type(label) for label in encode_labels(np.array([True, False]), 2)[1]} == {bool}
    assert {type(label) for label in encode_labels(np.array([1, 0]), 2)[1]} == {int}
    assert {type(label) for label in encode_labels(np.array(["a", "b"]), 2)[1]} == {str}
    assert decoded(np.array([(1, 2), "x", None], dtype=object)[:2]) == [(1, 2), "x"]


def test_labels_that_read_the_same_are_one_class():
    codes, classes = encode_labels([1, "1", 2, b"1", "2"], 5)
    assert codes.tolist() == [0, 0, 1, 0, 1]
    assert classes == (1, 2)


def test_dates():
    y = np.array(["2020-01-01", "2021-01-01", "2020-01-01"], dtype="datetime64[D]")
    assert encode_labels(y, 3)[0].tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    "y",
    [
        ["a", None, "b", None],
        ["a", math.nan, "b", math.nan],
        [1, math.nan, 2, math.nan],
        np.array([1.0, math.nan, 2.0, math.nan]),
        np.array(["a", np.float32("nan"), "b", None], dtype=object),
        np.array(["a", pd.NA, "b", pd.NaT], dtype=object),
        np.array(["2020-01-01", "NaT", "2020-01-01", "NaT"], dtype="datetime64[D]"),
        np.ma.array([1, 2, 3, 4], mask=[0, 1, 0, 1]),
        pd.Series(["a", None, "b", None]),
        pd.Series([1, None, 2, None], dtype="Int64"),
        pd.Categorical(["a", None, "b", None]),
        pl.Series(["a", None, "b", None]),
        pl.Series([1, None, 2, None]),
    ],
    ids=lambda y: f"{type(y).__name__}",
)
def test_missing_classes_are_refused(y):
    with pytest.raises(
        ValueError, match=r"no class for 2 rows, the first of them row 1; leave"
    ):
        encode_labels(y, 4)


@pytest.mark.parametrize(
    "y",
    ["abc", ["a", "b"], np.zeros((3, 1), dtype=int), pd.DataFrame({"y": [1, 2, 3]}), 7, []],
    ids=lambda y: type(y).__name__,
)
def test_a_wrong_shape_is_refused(y):
    with pytest.raises(ValueError, match=r"each of the 3 rows.*shape \(3,\); got shape \("):
        encode_labels(y, 3)


def test_what_cannot_be_a_class_is_refused():
    y = np.array([["a"], {"b": 1}, None], dtype=object)
    with pytest.raises(ValueError, match=r"one class per row.*unhashable"):
        encode_labels(y, 3)
