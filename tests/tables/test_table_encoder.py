"""Tables as people have them: gaps, categories, dates, units."""

import gzip
import io
import re
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from taxarbor import HMMC, TableEncoder, TableWarning, Taxarbor
from taxarbor._errors import InputError, InputTypeError
from taxarbor.tables.columns import Columns, parse_times

quiet = pytest.mark.filterwarnings("ignore::taxarbor.TableWarning")


@parametrize_with_checks([TableEncoder(), TableEncoder(scale="standard")])
def test_scikit_learn(estimator, check):
    check(estimator)


def make_cars(n=300, seed=0):
    """Return a table of all kinds of columns, with gaps."""
    rng = np.random.default_rng(seed)
    origin = rng.choice(["usa", "japan", "europe"], n, p=[0.6, 0.2, 0.2]).astype(object)
    weight = np.where(origin == "usa", 3500.0, 2300.0) + rng.normal(0.0, 200.0, n)
    cars = pd.DataFrame({
        "car_id": rng.permutation(n) + 1000, "weight": weight,
        "power": weight / 30.0 + rng.normal(0.0, 5.0, n), "origin": origin,
        "automatic": rng.random(n) < 0.4,
        "fuel": pd.Categorical(rng.choice(["petrol", "diesel"], n)),
        "name": [f"car {row}" for row in range(n)],
        "sold": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n), "D"),
    })  # fmt: skip
    for column in ("weight", "origin", "fuel"):
        cars.loc[rng.choice(n, n // 10, replace=False), column] = None
    return cars


# What columns become


def test_categories_are_encoded_as_in_factor_analysis_of_mixed_data():
    cars = make_cars()
    encoder = TableEncoder(date_features=None, scale="standard").fit(cars)
    Z, names = encoder.transform(cars), encoder.get_feature_names_out().tolist()
    origins = [f"origin = {one}" for one in ("europe", "japan", "usa")]
    assert names == ["weight", "power", *origins, "automatic", "fuel = petrol"]
    known = cars.origin.notna().to_numpy()
    for one in ("europe", "japan", "usa"):
        is_one = (cars.origin == one).to_numpy()
        p = is_one[known].mean()
        found = Z[:, names.index(f"origin = {one}")]
        np.testing.assert_allclose(found[known], (is_one[known] - p) / np.sqrt(p), atol=1e-12)
    # Numbers have variance 1, a category of g values g - 1; a gap says nothing.
    of_known = cars.weight.notna().to_numpy()
    np.testing.assert_allclose(Z[of_known, 0].std(), 1.0)
    np.testing.assert_allclose((Z[known, 2:5] ** 2).mean(axis=0).sum(), 2.0)
    np.testing.assert_allclose(Z[cars.fuel.notna(), -1].std(), 1.0)
    np.testing.assert_allclose(Z[~of_known, 0], 0.0, atol=1e-12)
    np.testing.assert_allclose(Z[~known, 2:5], 0.0, atol=1e-12)
    reasons = dict(encoder.columns_.dropped)
    assert list(reasons) == ["car_id", "name", "sold"]
    assert "identifier" in reasons["car_id"]
    assert reasons["name"] == "different in every row"
    assert "dates" in reasons["sold"]


def test_many_categories_are_kept_sparse_and_mean_the_same():
    rng = np.random.default_rng(1)
    letters = np.array([*"abcdefghijklmnopqrstuvwxyzäöüß"])
    frame = pd.DataFrame({f"c{j}": rng.choice(letters, 400) for j in range(3)})
    frame["x"] = rng.normal(50.0, 9.0, 400)
    frame.loc[:20, "c1"] = None
    frame.loc[10:40, "x"] = None
    encoder = TableEncoder().fit(frame)
    Z, E = encoder.transform(frame), encoder.columns_.read(frame)
    assert sparse.issparse(Z)
    assert Z.shape == (400, 91)
    np.testing.assert_allclose(E.data.toarray()[:20, 30:60].sum(axis=1), 1.0)
    dense = (E.data.toarray() - encoder.columns_.shift) / encoder.columns_.scale
    np.testing.assert_allclose(Z.toarray(), dense, atol=1e-6)
    assert E.missing.sum(axis=0).tolist() == [0, 21, 0, 31]


def test_dates_are_used_unless_nobody_wants_them():
    days = ["2020-02-29", None, "2021-12-31", "1969-07-20"]
    for column in (days, pd.to_datetime(days), pd.Series(days, dtype="string")):
        frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 5.0], "day": column})
        assert TableEncoder(date_features=None).fit(frame).columns_.dropped[0][0] == "day"
        encoder = TableEncoder(scale=None).fit(frame)
        names = encoder.get_feature_names_out().tolist()
        assert names[:3] == ["x", "day year", "day month"]
        E = pd.DataFrame(encoder.transform(frame), columns=names)
        assert E["day year"].tolist() == [2020.0, pytest.approx(6010 / 3), 2021.0, 1969.0]
        assert E["day month"].tolist() == [2.0, 7.0, 12.0, 7.0]
        assert E["day weekday = Saturday"].tolist() == [1.0, pytest.approx(1 / 3), 0.0, 0.0]
        assert E["day weekday = Sunday"].tolist() == [0.0, pytest.approx(1 / 3), 0.0, 1.0]


@quiet
def test_missing_values_of_all_kinds_are_alike():
    numbers = make_cars()[["weight", "power"]].to_numpy()
    masked = np.ma.masked_invalid(numbers)
    holes = np.where(np.isnan(numbers), None, numbers.astype(object))
    want = Taxarbor(3, random_state=0).fit(numbers)
    for table in (holes, holes.tolist(), sparse.csr_array(numbers)):
        model = Taxarbor(3, random_state=0).fit(table)
        np.testing.assert_array_equal(model.labels_, want.labels_)
        np.testing.assert_array_equal(want.predict(table), want.labels_)
    imputed = TableEncoder(scale=None).fit(masked).transform(masked)
    filled = np.where(np.isnan(numbers), np.nanmean(numbers, axis=0), numbers)
    np.testing.assert_allclose(imputed, filled)


@quiet
def test_masks_are_gaps_wherever_they_come():
    """What is behind a mask counts for nothing, even where gaps are refused."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(80, 3)) + 8.0 * (np.arange(80)[:, None] % 2), 1)
    mask = rng.random(X.shape) < 0.1
    gaps = np.where(mask, np.nan, X)
    behind = np.where(mask, 10**6, X)
    texts = np.where(mask, "n/a", X.astype(object))
    want = Taxarbor(3, random_state=0).fit(gaps)
    tables = [np.ma.array(behind, mask=mask), np.ma.array(texts, mask=mask)]
    for masked in (*tables, [*tables[0]]):
        found = Taxarbor(3, random_state=0).fit(masked)
        np.testing.assert_array_equal(found.labels_, want.labels_)
        np.testing.assert_array_equal(want.predict(masked), want.predict(gaps))
        np.testing.assert_array_equal(want.taxonomy_.predict(masked), want.predict(gaps))
        for model in (Taxarbor, HMMC):
            with pytest.raises(InputError, match="NaN"):
                model(3, encoder=None).fit(masked)
            with pytest.raises(InputError, match="NaN"):
                model(3, encoder=None).fit(X).predict(masked)
    weights = np.ma.array(np.ones(80), mask=np.arange(80) < 5)
    with pytest.raises(InputError, match=r"sample_weight must be finite .* row 0 has nan"):
        Taxarbor(3).fit(X, sample_weight=weights)


@quiet
def test_dates_and_times_are_no_numbers():
    """In none of the libraries, and not in silence."""
    days = pd.Series(pd.date_range("2026-01-01", periods=40))
    x = np.arange(40.0) % 2
    kinds = (days, days.dt.tz_localize("UTC"), days - days[0])
    tables = [pd.DataFrame({"x": x, "d": cells}) for cells in kinds]
    tables += [pl.from_pandas(table) for table in tables]
    tables += [tables[3].with_columns(pl.col("d").dt.date()), pa.table(tables[3])]
    tables += [tables[3].with_columns(pl.col("d").dt.time())]
    numbers = pd.DataFrame({"x": x, "d": np.where(x, 2.0, np.arange(40.0) / 3)})
    plain = Taxarbor(2, encoder=None, random_state=0).fit(numbers)
    holes = Taxarbor(2, random_state=0).fit(numbers.assign(x=np.where(x, x, np.nan)))
    for table in tables:
        for use in (Taxarbor(2, encoder=None).fit, plain.predict, plain.taxonomy_.predict):
            with pytest.raises(InputTypeError, match="'d' of X holds dates or times"):
                use(table)
        with pytest.raises(InputError, match="'d'"):
            holes.predict(table)
        model = Taxarbor(2, encoder=TableEncoder(date_features=None)).fit(table)
        assert dict(model.taxonomy_.columns.dropped).keys() == {"d"}
    array = np.array([days, days], dtype="datetime64[D]").T
    for table in (array, array - array[0], np.ma.array(array), [*array]):
        for encoder in (TableEncoder(date_features=None), None):
            with pytest.raises(InputError, match=r"dates|times|no column to use"):
                Taxarbor(2, encoder=encoder).fit(table)
    for cells in ([[1]], [b"1"], [{"a": 1}]):
        with pytest.raises(InputError, match="where a number is expected"):
            holes.predict(pl.DataFrame({"x": [1.0], "d": cells}))


def test_unseen_categories_are_missing():
    cars = make_cars()
    encoder = TableEncoder().fit(cars)
    found = encoder.encode(cars[:3].assign(origin=["mars", None, "usa"]))
    assert found.missing[:, 2].tolist() == [True, True, False]
    np.testing.assert_allclose(found.data[0, 2:5], 0.0, atol=1e-12)


def test_text_of_many_values_is_left_out_unless_somebody_wants_it():
    rng = np.random.default_rng(0)
    values = [f"v{one}" for one in rng.permutation(200) % 80]
    frame = pd.DataFrame({"x": rng.normal(size=200), "v": values})
    assert TableEncoder().fit(frame).columns_.dropped == (("v", "80 different values"),)
    for chosen in (["v"], [1], np.array(["v"])):
        encoder = TableEncoder(categorical_features=chosen).fit(frame)
        assert len(encoder.get_feature_names_out()) == 81
    assert TableEncoder(categorical_features=None).fit(frame).columns_.dropped[0][0] == "v"
    frame["v"] = [f"v{one}" for one in range(200)]
    wide = pd.concat([frame] * 2).assign(v=[f"v{one}" for one in range(400)])
    with pytest.raises(InputError, match="categorical_features names 'v', which has 400"):
        TableEncoder(categorical_features=["v"]).fit(wide)


def test_integer_weights_are_repeats():
    cars = make_cars()
    weights = np.random.default_rng(0).integers(0, 4, len(cars))
    parameters = {"scale": "standard", "date_features": ["sold"]}
    found = TableEncoder(**parameters).fit(cars, sample_weight=weights).columns_
    repeated = cars.loc[cars.index.repeat(weights)]
    # Repeated rows have no identifier, and their names may be categories.
    copies = TableEncoder(**parameters).fit(repeated.drop(columns=["car_id", "name"])).columns_
    assert found.feature_names == copies.feature_names
    np.testing.assert_allclose(found.scale, copies.scale)
    np.testing.assert_allclose(found.shift, copies.shift)
    np.testing.assert_allclose(found.fills, copies.fills)


def test_sparse_columns_are_described_like_dense_ones():
    X = np.random.default_rng(0).normal(1e6, 1.0, (50, 3))
    X[::3, 1], X[4, 2] = 0.0, np.nan
    dense, rows = (TableEncoder(scale="standard").fit(T) for T in (X, sparse.csc_array(X)))
    np.testing.assert_allclose(rows.columns_.scale, dense.columns_.scale)
    np.testing.assert_allclose(rows.columns_.fills, dense.columns_.fills)
    assert rows.columns_[2].missing == 1 / 50


def test_columns_without_a_use_are_dropped_once():
    x = np.arange(6.0) / 3
    frame = pd.DataFrame({"x": x, "never": pd.Series([pd.NaT] * 6)})
    frame["band"] = pd.arrays.IntervalArray.from_breaks(range(7))
    frame["span"] = pd.to_timedelta(x, "h")
    columns = TableEncoder(date_features="from_dtype").fit(frame).columns_
    assert [name for name, _ in columns.dropped] == ["never", "band", "span"]
    assert columns.dropped[-1][1] == "durations"


def test_numbers_that_hardly_vary_are_left_out_as_texts_are():
    row = np.arange(400)
    frame = pd.DataFrame({"a": row % 7 + 0.5, "flag": row < 2, "five": 5.0 * (row < 5)})
    assert TableEncoder().fit(frame).columns_.dropped == ()
    frame = frame.assign(flag=row < 1, five=5.0 * (row < 4))
    reasons = [f"always the same, but in {rows}" for rows in ("1 row", "4 rows")]
    found = TableEncoder().fit(frame).columns_.dropped
    assert found == (("flag", reasons[0]), ("five", reasons[1]))
    assert TableEncoder(numeric_features=["flag", "five"]).fit(frame).columns_.dropped == ()


def test_texts_named_like_identifiers():
    names = [f"B{row % 40}" for row in range(400)]
    frame = pd.DataFrame({"bookpageID": names, "unit_id": names, "grid": names, "no": names})
    dropped = dict(TableEncoder().fit(frame).columns_.dropped)
    assert dropped.keys() == {"bookpageID", "unit_id"}
    assert "identifier" in dropped["unit_id"]
    sites = {"site": ["1_UM", "2_IU", "3_UK"] * 20, "class": ["1_a", "2_b", "3_c"] * 20}
    columns = TableEncoder().fit(pd.DataFrame(sites)).columns_
    assert {one.kind for one in columns} == {"category"}


# Numbers with odd values, and what is asked for


def make_odd(word, n_odd, n=300):
    """Return few numbers as text, with a word in some of the rows."""
    values = np.array([*"3468"])[np.arange(n) % 4].astype(object)
    values[:n_odd] = word
    return pd.DataFrame({"v": values, "x": np.arange(n) % 7 + 0.5})


@pytest.mark.parametrize(
    ("word", "n_odd", "kind", "remedy"),
    [
        ("rotary", 2, "number", "[--categories v]"),
        ("rotary", 9, "category", "--missing rotary"),
        ("unknown", 9, "number", "[--categories v]"),
        ("none", 9, "category", "--missing none"),
        ("x", 9, "category", "--missing x"),
    ],
)
def test_few_numbers_with_a_word(word, n_odd, kind, remedy):
    columns = TableEncoder().fit(make_odd(word, n_odd)).columns_
    assert columns[0].kind == kind
    (note,) = (note for note in columns.notes if repr(word) in note.text)
    assert remedy in note.for_shell
    encoder = TableEncoder(missing_values=[word], numeric_features=["v"])
    assert encoder.fit(make_odd(word, n_odd)).columns_[0].kind == "number"


@pytest.mark.parametrize(
    "cells", [["101:02:00", "9:15:00"], ["Ann", "12"], ["007", "008"], "days"]
)
def test_numbers_that_were_asked_for(cells):
    cells = pd.date_range("2024-01-01", periods=2) if cells == "days" else cells
    frame = pd.DataFrame({"v": [*cells] * 40, "x": np.arange(80) % 7})
    with pytest.raises(InputError, match="'v'") as caught:
        TableEncoder(numeric_features=["v"]).fit(frame)
    assert caught.value.parameter == "numeric_features"
    found = TableEncoder(numeric_features=["v"]).fit(make_odd("rotary", 9)).columns_
    assert (found[0].kind, found[0].missing) == ("number", 9 / 300)


def test_odd_values_are_missing_in_any_batch():
    frame = make_odd("rotary", 2)
    columns = TableEncoder().fit(frame).columns_
    for word, unseen in (("rotary", {}), ("wankel", {("v", "wankel"): 2})):
        rows = columns.read(frame[:2].assign(v=word))
        assert rows.missing[:, 0].all()
        assert rows.unseen == unseen
    with pytest.raises(InputError, match="where a number is expected"):
        columns.read(frame.assign(x="rotary"))


# Frames of other types


def test_times_of_day_and_sparse_columns():
    hours = pl.DataFrame({"x": np.arange(48.0) % 5, "m": np.arange(48) % 24 * 60 + 30})
    hours = hours.select("x", t=pl.time(pl.col("m") // 60, pl.col("m") % 60))
    for frame in (hours, hours.to_arrow()):
        encoder = TableEncoder(scale=None).fit(frame)
        assert encoder.get_feature_names_out().tolist() == ["x", "t hour"]
        assert encoder.transform(frame)[:3, 1].tolist() == [0.5, 1.5, 2.5]
    dense = pd.get_dummies(pd.DataFrame({"o": [*"uvw"] * 20}))
    sparse_ones = pd.get_dummies(pd.DataFrame({"o": [*"uvw"] * 20}), sparse=True)
    found = TableEncoder().fit_transform(sparse_ones)
    np.testing.assert_array_equal(found, TableEncoder().fit_transform(dense))


def test_a_date_is_read_once(monkeypatch):
    days = pd.date_range("2020-01-01", periods=700).strftime("%d.%m.%Y")
    frame = pd.DataFrame({"month": days, "a": np.arange(700.0) % 9})
    encoder = TableEncoder().fit(frame)
    names = encoder.get_feature_names_out().tolist()
    assert names[:3] == ["month year", "month", "month weekday = Monday"]
    spy = Mock(wraps=parse_times)
    monkeypatch.setattr("taxarbor.tables.columns.parse_times", spy)
    for rows, n_unseen in ((frame, 0), (frame.assign(month="soon"), 700)):
        spy.reset_mock()
        assert encoder.columns_.read(rows).unseen.total() == n_unseen
        spy.assert_called_once()


# Scales


@pytest.mark.parametrize(
    ("load", "expected"),
    [(load_wine, True), (load_breast_cancer, True), (load_iris, False), (load_digits, False)],
)
def test_columns_are_scaled_where_they_differ_in_unit(load, expected):
    columns = TableEncoder().fit(load(as_frame=True).data).columns_
    assert columns.is_scaled == expected
    assert any("differ in unit" in note.text for note in columns.notes) == expected


def test_scales():
    X = np.random.default_rng(0).normal(5.0, [1.0, 3.0, 9.0], (400, 3))
    plain = TableEncoder().fit(X).columns_
    assert (dict(plain.readings), plain.is_scaled) == ({}, False)
    np.testing.assert_allclose(TableEncoder(scale="standard").fit_transform(X).std(axis=0), 1.0)
    np.testing.assert_array_equal(TableEncoder(scale=None).fit_transform(X), X)
    # One value far out does not decide how the others are scaled, nor what fills a gap.
    X[7, 1] = 1e9
    columns = TableEncoder(scale="standard").fit(X).columns_
    np.testing.assert_allclose(columns.scale, [1.0, 3.0, 9.0], rtol=0.1)
    np.testing.assert_allclose(columns.fills, 5.0, atol=1.5)


def test_cosine():
    rng = np.random.default_rng(0)
    X = rng.random((30, 5))
    X[3] = 0.0
    encoder = TableEncoder(metric="cosine").fit(X)
    Z = encoder.transform(X)
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    expected = np.divide(X, lengths, where=lengths > 0, out=np.zeros((30, 5)))
    np.testing.assert_allclose(Z, expected)
    np.testing.assert_allclose(encoder.transform(sparse.csr_array(X)).toarray(), Z)
    factors = rng.uniform(0.1, 9.0, (30, 1))
    model = Taxarbor(3, encoder=encoder, random_state=0).fit(X)
    np.testing.assert_array_equal(model.predict(X * factors), model.labels_)


# Trees


@quiet
@pytest.mark.parametrize("kind", [Taxarbor, HMMC])
def test_a_tree_takes_the_table_as_it_is_and_speaks_its_units(kind):
    cars = make_cars()
    model = kind(5, random_state=0).fit(cars)
    tree = model.taxonomy_
    assert (model.predict(cars) == model.labels_).mean() > (0.999 if kind is Taxarbor else 0.9)
    assert model.n_features_in_ == 8
    assert tree.n_features == 16
    # Columns are found by name, others do not matter to the tree.
    mixed = cars[["origin", "fuel", "automatic", "weight", "power", "sold"]].assign(more=1)
    for fitted in (tree, model):
        np.testing.assert_array_equal(fitted.predict(mixed), model.predict(cars))
        with pytest.warns(TableWarning, match="^X lacks 'power': its values count as missing"):
            found = fitted.predict(mixed.drop(columns="power"))
        np.testing.assert_array_equal(found, model.predict(cars.assign(power=np.nan)))
        with pytest.raises(ValueError, match="has 7 features, but Taxonomy is expecting 8"):
            fitted.predict(mixed.to_numpy())
    with pytest.warns(TableWarning, match=r"did not see.*: power = 'high' \(1 row\)"):
        tree.predict(mixed.assign(power=["high", *cars.power[1:]]))
    with pytest.raises(InputError, match="column 'power' of X holds 'high', where a number"):
        tree.predict(mixed.assign(power="high"))
    filled = cars.weight.fillna(cars.weight.mean())
    for node in range(tree.tree.n_nodes):
        rows = tree.tree.rows(node)
        np.testing.assert_allclose(tree.means[node][0], filled.iloc[rows].mean(), rtol=1e-9)
        shares = cars[["weight", "power", "origin"]].iloc[rows].isna().mean()
        np.testing.assert_allclose(tree.missing[node][:3], shares)


def test_it_says_what_it_did_to_a_table_once():
    told = r"left out: car_id .*\nleft out: name .*\nrecognised: sold .*\nmissing .*\n.*scaled"
    with pytest.warns(TableWarning, match=told):
        Taxarbor(4, random_state=0).fit(make_cars())
    X = np.arange(40.0).reshape(20, 2)
    plain = Taxarbor(2).fit(X).taxonomy_.columns
    assert (dict(plain.readings), plain.is_scaled, plain.notes) == ({}, False, ())
    X[3, 1] = np.nan
    with pytest.warns(TableWarning, match=r"missing values in 1 of 2 .* 2\.5 % of the cells"):
        tree = Taxarbor(2).fit(X).taxonomy_
    assert tree.missing[0].tolist() == [0.0, 0.05]
    with pytest.raises(InputError, match="NaN"):
        Taxarbor(2, encoder=None).fit(X)


def test_a_step_of_a_pipeline():
    cars = make_cars()
    pipeline = make_pipeline(TableEncoder(), Taxarbor(4, random_state=0)).fit(cars)
    np.testing.assert_array_equal(pipeline.predict(cars), pipeline[-1].labels_)


@quiet
def test_a_category_weighs_as_much_as_a_number():
    scores = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        group = rng.integers(0, 4, 400)
        frame = pd.DataFrame(rng.normal(0.0, 3.0, (4, 5))[group] + rng.normal(size=(400, 5)))
        frame.columns = list("abcde")
        for name in "fg":  # which tell nothing
            frame[name] = rng.choice(list("uvwxyz"), 400)
        whole = dict.fromkeys(frame, 1.0)  # else these count less
        model = Taxarbor(4, column_weights=whole, random_state=0).fit(frame)
        columns = model.taxonomy_.columns
        Z = columns.encode(frame).data
        variances = np.bincount(columns.owner, (Z - Z.mean(axis=0)).var(axis=0))
        np.testing.assert_allclose(variances, 1.0)
        scores.append(adjusted_rand_score(group, model.labels_))
    assert np.mean(scores) > 0.9


# Bad input


def test_wrong_parameters():
    wrong = [("categorical_features", one) for one in (["colour"], [9], [True], "origin", 3.5)]
    for name, value in (*wrong, ("scale", "max"), ("metric", "l1")):
        with pytest.raises(InputError) as caught:
            TableEncoder(**{name: value}).fit(make_cars())
        assert caught.value.parameter == name
    with pytest.raises(InputError, match="'name'"):
        TableEncoder(date_features=["name"]).fit(make_cars())


def test_tables_that_cannot_be_used():
    empty = pd.DataFrame({"a": [None, None], "b": [np.nan, np.nan], "c": ["x", "x"]})
    with pytest.raises(InputError, match=r"no column to use: 'a' \(empty\), .*'c' \(always"):
        TableEncoder().fit(empty)
    infinite = pd.DataFrame({"a": [1.0, -np.inf, 2.0]})
    with pytest.raises(InputError, match=r"'a' of X holds infinity, first in row 1.*inf,-inf"):
        TableEncoder().fit(infinite)
    columns = TableEncoder(missing_values=["inf", "-inf"]).fit(infinite).columns_
    assert columns[0].missing == pytest.approx(1 / 3)
    with pytest.raises(InputError, match='must be "auto", None or a TableEncoder; got'):
        Taxarbor(2, encoder="table").fit([[1.0], [2.0]])
    with pytest.raises(ValueError, match="shift must hold 2"):
        Columns.plain(2, shift=np.zeros(1))


def test_gaps_in_new_rows_of_a_tree_that_has_seen_none():
    X = np.random.default_rng(0).normal(size=(60, 3)) + 4.0 * (np.arange(60)[:, None] % 2)
    model = Taxarbor(2, random_state=0).fit(X)
    new = X[:4].copy()
    new[0, 1] = np.nan
    want = model.predict(np.where(np.isnan(new), X.mean(axis=0), new)).tolist()
    for rows in (new, np.ma.masked_invalid(new), sparse.csr_array(new)):
        assert model.predict(rows).tolist() == want
        assert model.taxonomy_.predict(rows).tolist() == want
    with pytest.raises(InputError, match="NaN"):
        Taxarbor(2, encoder=None).fit(X).predict(new)
    with pytest.raises(InputError, match="infinity"):
        model.predict(np.where(np.isnan(new), np.inf, new))


def test_rare_values_count_as_gaps():
    frame = pd.DataFrame({"v": ["a"] * 200 + ["b"] * 98 + ["c", "d"], "x": np.arange(300) % 7})
    columns = TableEncoder().fit(frame).columns_
    assert columns[0].categories == ("a", "b")
    assert columns[0].missing == pytest.approx(2 / 300)
    assert any("missing: v ('c', 'd')" in str(note) for note in columns.notes)
    named = TableEncoder(categorical_features=["v"]).fit(frame).columns_
    assert named[0].categories == ("a", "b", "c", "d")


# Real tables, which come with scikit-learn's own tests


def read_arff(number, name):
    folder = Path(sklearn.__file__).parent / "datasets/tests/data/openml" / f"id_{number}"
    if not (folder / name).exists():
        pytest.skip("scikit-learn was installed without the data of its tests")
    with gzip.open(folder / name, "rt") as file:
        head, body = re.split("@data", file.read(), flags=re.IGNORECASE)
    names = re.findall(r"@ATTRIBUTE\s+['\"]?([\w.]+)", head, re.IGNORECASE)
    return pd.read_csv(io.StringIO(body), names=names, na_values="?", skipinitialspace=True)


def test_penguins_and_passengers():
    penguins = read_arff(42585, "data-v1-dl-21854866.arff.gz")
    species = penguins.pop("species")
    told = r"missing and rare values in 5 of 6 .*\nrare .*sex \('_'\) .*\nnumbers"
    with pytest.warns(TableWarning, match=told):
        model = Taxarbor(5, random_state=0).fit(penguins)
    # Gentoos are a branch of their own.
    gentoo = (species == "Gentoo").to_numpy()
    tree = model.taxonomy_.tree
    branches = (tree.rows(node) for node in tree.children(0))
    first = max(branches, key=lambda rows: gentoo[rows].mean())
    assert gentoo[first].mean() > 0.99
    assert gentoo[first].sum() > 0.99 * gentoo.sum()
    passengers = read_arff(40945, "data-v1-dl-16826755.arff.gz")
    with pytest.warns(TableWarning, match="left out: name .text, 1,307 different values"):
        tree = Taxarbor(6, random_state=0).fit(passengers).taxonomy_
    used = {column.name for column in tree.columns}
    assert used >= {"pclass", "sex", "age", "fare", "embarked"}
    assert used.isdisjoint({"name", "ticket", "cabin", "home.dest"})
