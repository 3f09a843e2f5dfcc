"""Columns of different units: logarithms of skewed ones, weights, copies that count once."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import skew
from sklearn.metrics import adjusted_rand_score

from taxarbor import HMMC, TableEncoder, Taxarbor, Taxonomy
from taxarbor._errors import InputError
from taxarbor.stability import assess
from taxarbor.tables.columns import Columns

quiet = pytest.mark.filterwarnings("ignore::UserWarning")


def make_shop(seed=0, n=900):
    """Three groups in money and age, and coins that say nothing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    frame = pd.DataFrame({
        "revenue": np.exp(rng.normal(np.array([4.0, 6.5, 9.0])[y], 0.6)).round(2),
        "orders": rng.poisson(np.array([2, 30, 9])[y]),
        "age": rng.normal(np.array([25.0, 60.0, 45.0])[y], 5.0).round(),
        "coin": rng.integers(0, 2, n),
        "shelf": rng.choice(list("abcd"), n),
    })  # fmt: skip
    return frame, y


def weights_of(columns, frame):
    """Return the variance of each column as the fit sees it."""
    Z = columns.encode(frame).data
    return np.bincount(columns.owner, Z.var(axis=0))


@pytest.fixture(scope="module")
def shop():
    return make_shop()


@pytest.fixture(scope="module")
def fitted(shop):
    with warnings.catch_warnings(action="ignore"):
        return Taxarbor(3, random_state=0).fit(shop[0])


def test_groups_are_found_behind_skewed_columns_and_coins(shop, fitted):
    frame, y = shop
    assert adjusted_rand_score(y, fitted.labels_) > 0.9
    rng = np.random.default_rng(0)
    noise = {f"debt {at}": np.exp(rng.normal(8.0, 1.5, len(y))).round(2) for at in range(3)}
    frame, encoders = frame.assign(**noise), ("auto", TableEncoder(scale="standard"))
    with warnings.catch_warnings(action="ignore"):
        models = [Taxarbor(3, encoder=one, random_state=0).fit(frame) for one in encoders]
    ours, plain = (adjusted_rand_score(y, model.labels_) for model in models)
    assert ours > 0.9
    assert plain < ours - 0.1


def test_skewed_columns_are_made_symmetric(shop, fitted):
    columns = fitted.taxonomy_.columns
    Z = columns.encode(shop[0]).data
    assert np.flatnonzero(columns.log_unit).tolist() == [0]
    assert skew(shop[0].revenue) > 1.0
    assert abs(skew(Z[:, 0])) < 0.1
    np.testing.assert_allclose(Z[:, 0].std(), 1.0, rtol=0.02)


def test_columns_that_say_little_count_less(shop, fitted):
    found = weights_of(fitted.taxonomy_.columns, shop[0])
    np.testing.assert_allclose(found[:3], 1.0, rtol=0.02)
    assert (found[3:] < 0.5).all()
    text = str(fitted.taxonomy_.columns.notes[-1])
    assert "logarithms of skewed columns are compared: revenue;" in text
    assert "count less: " in text
    assert text.partition("count less: ")[2].startswith(("coin, shelf", "shelf, coin"))


@quiet
def test_weights_that_are_given_replace_those_that_are_found(shop):
    frame, _ = shop
    model = Taxarbor(3, column_weights={"coin": 1, "age": 0.25}, random_state=0).fit(frame)
    found = weights_of(model.taxonomy_.columns, frame)
    np.testing.assert_allclose(found[[2, 3]], [0.25, 1.0])
    encoder = TableEncoder(column_weights={"coin": 1, "age": 0.25}).fit(frame)
    np.testing.assert_allclose(weights_of(encoder.columns_, frame)[[2, 3]], [0.25, 1.0])
    # Where columns have one unit they multiply the variance as it is, of arrays, too.
    X = np.random.default_rng(0).normal(size=(100, 3))
    plain = Taxarbor(2, column_weights={"x1": 4}, random_state=0).fit(X).taxonomy_.columns
    np.testing.assert_allclose(weights_of(plain, X), X.var(axis=0) * [1.0, 4.0, 1.0])


@quiet
def test_models_with_weights_are_assessed(shop):
    model = Taxarbor(3, column_weights={"coin": 0.5}, random_state=0).fit(shop[0])
    taxonomy = assess(model, shop[0], n_refits=2, random_state=0)
    assert taxonomy.stability.n_recovered.max() == 2


@quiet
def test_copies_count_once():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"kg": rng.normal(70, 10, 500), "cm": 10.0 * rng.normal(170, 9, 500)})
    frame["lb"], frame["g"] = (2.20462 * frame.kg).round(1), -1000.0 * frame.kg
    frame["kind"] = np.where(rng.random(500) < 0.5, "a", "b")
    columns = TableEncoder().fit(frame).columns_
    found = weights_of(columns, frame)
    np.testing.assert_allclose(found[[0, 2, 3]], found[1] / 3.0, rtol=1e-3)
    assert any("count as one: kg" in note.text for note in columns.notes)


def test_names_of_weights_are_checked(shop):
    with pytest.raises(InputError, match="'colour', which X does not have; it has 'revenue'"):
        Taxarbor(3, column_weights={"colour": 1}).fit(shop[0])
    named = shop[0].assign(id=np.arange(len(shop[0])))
    with pytest.raises(InputError, match="'id', which is left out"):
        Taxarbor(3, column_weights={"id": 1}).fit(named)
    with pytest.raises(InputError, match="needs an encoder"):
        Taxarbor(3, encoder=None, column_weights={"x0": 1}).fit(np.eye(9))


@quiet
def test_thresholds_are_in_the_units_of_the_table(shop, tmp_path):
    """And say of each row where it goes, of loaded models, too."""
    frame = shop[0][["revenue"]].assign(late=np.random.default_rng(0).normal(size=900) ** 3)
    fitted = Taxarbor(3, encoder=TableEncoder(), random_state=0).fit(frame)
    fitted.taxonomy_.save(tmp_path / "m")
    loaded = Taxonomy.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict(frame), fitted.labels_)
    taxonomy, said = fitted.taxonomy_, 0
    for node in range(1, taxonomy.tree.n_nodes):
        reasons = taxonomy.reasons(node)
        if len(reasons) != 1 or reasons[0].threshold is None:
            continue
        reason, values = reasons[0], frame[reasons[0].name].to_numpy(float)
        rows, parent = taxonomy.tree.rows(node), taxonomy.tree.parents[node]
        is_here = values > reason.threshold if reason.sign > 0 else values < reason.threshold
        is_here |= reason.takes_threshold & (values == reason.threshold)
        inside = taxonomy.tree.rows(int(parent))
        np.testing.assert_array_equal(np.sort(inside[is_here[inside]]), np.sort(rows))
        said += reason.name == "revenue"
    assert said


@quiet
def test_means_are_of_the_values_of_the_table(shop, fitted):
    taxonomy = fitted.taxonomy_
    for node in range(taxonomy.tree.n_nodes):
        rows = taxonomy.tree.rows(node)
        np.testing.assert_allclose(taxonomy.means[node][0], shop[0].revenue.iloc[rows].mean())


@quiet
def test_weights_of_rows_are_repeats(shop):
    frame = shop[0][:300]
    counts = np.random.default_rng(1).integers(0, 4, 300)
    weighted = Taxarbor(3, random_state=0).fit(frame, sample_weight=counts).taxonomy_.columns
    repeated = frame.loc[frame.index.repeat(counts)].reset_index(drop=True)
    again = Taxarbor(3, random_state=0).fit(repeated).taxonomy_.columns
    for name in ("scale", "shift", "log_unit", "log_origin"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(again, name), rtol=1e-6)


@quiet
def test_one_unit_arrays_and_the_papers_method_stay_as_they_are(shop):
    X = np.exp(np.random.default_rng(0).normal(size=(300, 4)))
    for rows in (X, pd.DataFrame(X)):
        columns = Taxarbor(3, random_state=0).fit(rows).taxonomy_.columns
        assert not columns.is_scaled
    columns = HMMC(3, random_state=0).fit(shop[0]).taxonomy_.columns
    assert not columns.log_unit.any()
    np.testing.assert_allclose(weights_of(columns, shop[0]), 1.0)


@quiet
def test_a_measurement_beside_answers_has_another_unit():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    items = np.clip(np.rint(2.0 + 2.0 * y[:, None] + rng.normal(0, 1.0, (600, 12))), 1, 5)
    frame = pd.DataFrame(items, columns=[f"item {at}" for at in range(12)]).astype(int)
    frame["age"], frame["hours"] = rng.normal(45, 14, 600).round(), rng.normal(38, 7, 600)
    model = Taxarbor(2, random_state=0).fit(frame)
    assert model.taxonomy_.columns.is_scaled
    assert adjusted_rand_score(y, model.labels_) > 0.95


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3), st.sampled_from([1.0, -1.0]))
def test_logarithms_rise_and_are_undone(origin, unit, sign):
    columns = Columns.plain(1, log_origin=[origin], log_unit=[sign * unit])
    X = np.sort(origin + unit * np.linspace(-50.0, 1e4, 200))[:, None]
    logs = columns.take_logs(X)
    assert (np.diff(logs[:, 0]) > 0.0).all()
    for x, value in zip(X[::20, 0], logs[::20, 0], strict=True):
        np.testing.assert_allclose(columns.undo_log(0, value), x, rtol=1e-9, atol=1e-9 * unit)


@quiet
def test_leaves_have_enough_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 5))
    X[:3] += 40.0 + rng.normal(size=(3, 5))
    for k in (8, 30):
        sizes = np.bincount(Taxarbor(k, random_state=0).fit(X).labels_)
        assert sizes.min() >= max(5, min(4, 2000 // (5 * k)))
    few = Taxarbor(100, random_state=0).fit(X[3:303])
    assert np.bincount(few.labels_).min() < 5  # too few rows for a bound
