import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from taxarbor import HMMC, MMC, load_animals

NAMES = [f"f{j}" for j in range(20)]
FRAMES = {
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES[: X.shape[1]]),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES[: X.shape[1]]),
}


@pytest.fixture(params=list(FRAMES))
def make_frame(request):
    return FRAMES[request.param]


@pytest.fixture(name="fit")
def fit_either_way(way):
    return lambda X: HMMC(5, random_state=0, **way).fit(X)


@pytest.mark.parametrize("estimator", [HMMC, MMC])
def test_names_are_kept(X, make_frame, estimator):
    model = estimator(4, random_state=0).fit(make_frame(X))
    assert model.feature_names_in_.tolist() == NAMES
    assert model.hierarchy_.feature_names == tuple(NAMES)
    assert all(type(name) is str for name in model.hierarchy_.feature_names)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_frames_are_arrays_with_names(X, make_frame, dtype, fit):
    array = X.astype(dtype)
    frame = make_frame(array)
    plain, named = fit(array), fit(frame)
    np.testing.assert_array_equal(named.labels_, plain.labels_)
    np.testing.assert_array_equal(named.predict(frame), plain.predict(array))
    assert {rule.dtype for rule in named.hierarchy_.rules if rule} == {np.dtype(dtype)}
    for ours, theirs in zip(named.hierarchy_.rules, plain.hierarchy_.rules, strict=True):
        if ours is not None:
            np.testing.assert_array_equal(ours.weights, theirs.weights)


def test_readable_tree(fit):
    animals = load_animals()
    model = fit(pd.DataFrame(animals.X, columns=list(animals.feature_names)))
    used = [animals.feature_names[j] for j in model.hierarchy_.rules[0].features]
    assert any(name in model.hierarchy_.to_text() for name in used)


def test_other_order_of_columns(X, make_frame, fit):
    frame = make_frame(X)
    with pytest.raises(
        ValueError, match=r"feature names should match .*\n.*must be in the same order"
    ):
        fit(frame).predict(frame[NAMES[::-1]])


def test_other_names(X, make_frame, fit):
    frame = make_frame(X)
    other = pd.DataFrame(X, columns=[f"g{j}" for j in range(20)])
    with pytest.raises(ValueError, match=r"feature names should match"):
        fit(frame).predict(other)


def test_missing_column(X, make_frame, fit):
    frame = make_frame(X)
    with pytest.raises(ValueError, match=r"missing:\n- f19"):
        fit(frame).predict(frame[NAMES[:-1]])


def test_names_at_fit_only(X, make_frame, fit):
    model = fit(make_frame(X))
    with pytest.warns(UserWarning, match="X does not have valid feature names, but HMMC was"):
        model.predict(X)


def test_names_at_predict_only(X, make_frame, fit):
    model = fit(X)
    with pytest.warns(UserWarning, match="X has feature names, but HMMC was fitted without"):
        model.predict(make_frame(X))


def test_refit_forgets_the_names(X, fit):
    model = fit(FRAMES["pandas"](X))
    assert model.fit(X).hierarchy_.feature_names is None
    assert "feature_names_in_" not in vars(model)


def test_failed_fit_keeps_the_names(X, fit):
    frame = FRAMES["pandas"](X)
    model = fit(frame)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(pd.DataFrame({"a": [1.0, np.nan], "b": [0.0, 1.0]}))
    assert model.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(model.predict(frame), model.labels_)


def mixed(rng):
    return {
        "whole": rng.integers(-3, 4, 90),
        "small": rng.integers(0, 9, 90).astype(np.int8),
        "yes": rng.random(90) < 0.5,
        "single": rng.standard_normal(90).astype(np.float32),
        "double": rng.standard_normal(90),
    }


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_mixed_types(frame, fit):
    columns = mixed(np.random.default_rng(0))
    model = fit(frame(columns))
    plain = fit(np.column_stack([column.astype(float) for column in columns.values()]))
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    assert model.hierarchy_.rules[0].dtype == np.float64
    assert model.hierarchy_.feature_names == tuple(columns)


@pytest.mark.parametrize("dtype", ["Int64", "Float64", "boolean"])
def test_nullable_types(data, dtype, fit):
    frame = pd.DataFrame(data["binary"].astype(int)).add_prefix("f")
    plain = fit(frame)
    assert fit(frame.astype(dtype)).hierarchy_.to_json() == plain.hierarchy_.to_json()
    missing = frame.astype(dtype)
    missing.iloc[3, 4] = pd.NA
    with pytest.raises(ValueError, match=r"NaN|NA"):
        fit(missing)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_text_is_refused(frame, fit):
    with pytest.raises(ValueError, match="could not convert string to float: 'red'"):
        fit(frame({"size": [1.0, 2.0, 3.0], "colour": ["red", "green", "blue"]}))


def test_numbers_as_names(X, fit):
    model = fit(pd.DataFrame(X))
    assert "feature_names_in_" not in vars(model)
    assert model.hierarchy_.feature_names is None


def test_names_of_two_types(X, fit):
    with pytest.raises(TypeError, match=r"Feature names are only supported if all .* strings"):
        fit(pd.DataFrame(X, columns=[0, *NAMES[1:]]))


def test_frames_are_not_changed(X, make_frame, fit):
    frame, same = make_frame(X), make_frame(X)
    fit(frame).predict(frame)
    assert frame.equals(same)


def test_pipeline_that_keeps_frames(X):
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), HMMC(4))
    pipeline.fit(FRAMES["pandas"](X))
    assert pipeline[-1].hierarchy_.feature_names == tuple(NAMES)
