"""Data frames: arrays with names."""

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from taxarbor import (
    HMMC,
    TableWarning,
    Taxarbor,
    load_animals,
)
from taxarbor.exchange import to_json

NAMES = [f"f{j}" for j in range(20)]
EVERY = [Taxarbor, HMMC]


def as_pandas(X):
    return pd.DataFrame(X, columns=NAMES[: X.shape[1]])


def as_polars(X):
    return pl.DataFrame(X, schema=NAMES[: X.shape[1]])


class Stream:
    """A table that is known by nothing but Arrow's interface."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


@pytest.fixture(params=[as_pandas, as_polars])
def make_frame(request):
    return request.param


@pytest.fixture(params=EVERY)
def kind(request):
    return request.param


@pytest.fixture
def fit(kind):
    return lambda X: kind(4, random_state=0).fit(X)


def test_frames_are_arrays_with_names(X, make_frame, fit):
    for dtype in ("float64", "float32"):
        array = X.astype(dtype)
        frame, same = make_frame(array), make_frame(array)
        plain, named = fit(array), fit(frame)
        assert named.feature_names_in_.tolist() == NAMES
        assert named.taxonomy_.feature_names == list(NAMES)
        assert all(type(name) is str for name in named.taxonomy_.feature_names)
        np.testing.assert_array_equal(named.labels_, plain.labels_)
        np.testing.assert_array_equal(named.predict(frame), plain.predict(array))
        assert frame.equals(same)
        assert {rule.dtype for rule in named.taxonomy_.tree.rules if rule} == {np.dtype(dtype)}
        for ours, theirs in zip(
            named.taxonomy_.tree.rules, plain.taxonomy_.tree.rules, strict=True
        ):
            if ours is not None:
                np.testing.assert_array_equal(ours.weights, theirs.weights)


def test_other_names_at_predict(X, make_frame, kind, fit):
    frame = make_frame(X)
    model = fit(frame)
    told = r"feature names should match .*\n.*must be in the same order"
    with pytest.raises(ValueError, match=told):
        model.predict(frame[NAMES[::-1]])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame(X, columns=[f"g{j}" for j in range(20)]))
    with pytest.raises(ValueError, match=r"missing:\n- f19"):
        model.predict(frame[NAMES[:-1]])
    told = f"X does not have valid feature names, but {kind.__name__} was"
    with pytest.warns(UserWarning, match=told):
        model.predict(X)
    told = f"X has feature names, but {kind.__name__} was fitted without"
    with pytest.warns(UserWarning, match=told):
        fit(X).predict(frame)


def test_a_refit_forgets_the_names_and_a_failed_one_keeps_them(X, fit):
    frame = as_pandas(X)
    model = fit(frame)
    before = model.predict(frame)
    with pytest.raises(ValueError, match="column 'b' of X holds infinity, first in row 1"):
        model.fit(pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, np.inf]}))
    assert model.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(model.predict(frame), before)
    assert model.fit(X).taxonomy_.feature_names is None
    assert "feature_names_in_" not in vars(model)


def test_mixed_types(kind, fit):
    rng = np.random.default_rng(0)
    columns = {
        "whole": rng.integers(-3, 4, 90),
        "small": rng.integers(0, 9, 90).astype(np.int8),
        "yes": rng.random(90) < 0.5,
        "single": rng.standard_normal(90).astype(np.float32),
        "double": rng.standard_normal(90),
    }
    plain = fit(np.column_stack([column.astype(float) for column in columns.values()]))
    for frame in (pd.DataFrame, pl.DataFrame):
        model = fit(frame(columns))
        np.testing.assert_array_equal(model.labels_, plain.labels_)
        assert model.taxonomy_.tree.rules[0].dtype == np.float64
        assert model.taxonomy_.feature_names == list(columns)
        with pytest.raises(ValueError, match="could not convert string to float: 'red'"):
            kind(2, encoder=None).fit(frame({"a": [1.0, 2.0, 3.0], "b": ["red", "x", "y"]}))


def test_nullable_types(data, kind, fit):
    frame = pd.DataFrame(data["binary"].astype(int)).add_prefix("f")
    plain = to_json(fit(frame).taxonomy_)
    for dtype in ("Int64", "Float64", "boolean"):
        nullable = frame.astype(dtype)
        assert to_json(fit(nullable).taxonomy_) == plain
        nullable.iloc[3, 4] = pd.NA
        with pytest.raises(ValueError, match=r"NaN|NA"):
            kind(4, encoder=None).fit(nullable)
        with pytest.warns(TableWarning, match=r"gaps in 1 of 12 columns .*, 0\.33 % \(see"):
            model = fit(nullable)
        assert model.taxonomy_.missing[0].tolist() == [1 / 300 * (j == 4) for j in range(12)]
        np.testing.assert_array_equal(model.predict(nullable), model.labels_)


def test_names_that_are_numbers(X, fit):
    model = fit(pd.DataFrame(X))
    assert "feature_names_in_" not in vars(model)
    assert model.taxonomy_.feature_names is None
    with pytest.raises(TypeError, match=r"Feature names are only supported if all .* strings"):
        fit(pd.DataFrame(X, columns=[0, *NAMES[1:]]))


def test_names_in_a_printed_tree_and_through_a_pipeline(X, fit, kind):
    animals = load_animals()
    model = fit(pd.DataFrame(animals.X, columns=list(animals.feature_names)))
    used = [animals.feature_names[j] for j in model.taxonomy_.tree.rules[0].features]
    assert any(name in model.taxonomy_.to_text() for name in used)
    scaler = StandardScaler().set_output(transform="pandas")
    pipeline = make_pipeline(scaler, kind(4)).fit(as_pandas(X))
    assert pipeline[-1].taxonomy_.feature_names == list(NAMES)


@pytest.mark.filterwarnings("ignore::taxarbor.TableWarning")
def test_tables_of_arrow_and_narwhals_are_frames(fit):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(90, 3)), columns=["a", "b", "c"])
    mixed = frame.assign(o=rng.choice(["red", "blue", "grey"], 90), n=rng.integers(0, 9, 90))
    mixed.loc[:5, "o"] = None
    for table in (frame, mixed):
        want = fit(table)
        arrow = pa.Table.from_pandas(table)
        for other in (
            arrow,
            arrow.combine_chunks().to_batches()[0],
            Stream(arrow),
            *(nw.from_native(one) for one in (table, arrow, pl.from_pandas(table))),
        ):
            model = fit(other)
            assert model.feature_names_in_.tolist() == table.columns.tolist()
            np.testing.assert_array_equal(model.labels_, want.labels_)
            np.testing.assert_array_equal(model.predict(other), want.predict(table))
    with pytest.raises(TypeError, match=r"^X "):
        fit(nw.from_native(pl.from_pandas(frame).lazy()))
    with pytest.raises((TypeError, ValueError)):  # which one depends on pyarrow
        fit(pa.chunked_array([[1.0, 2.0]]))
