"""Rows on their way from a table to a tree: names, weights and words go with them."""

import copy
from contextlib import suppress

import numpy as np
import pandas as pd
import polars as pl
import pytest

from taxarbor import TableEncoder, Taxarbor
from taxarbor._errors import InputError
from taxarbor.stability import assess
from taxarbor.tables.columns import Columns

pytestmark = pytest.mark.filterwarnings("ignore::taxarbor.TableWarning")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_columns_without_names_keep_their_numbers(rng):
    X = rng.normal(size=(80, 3))
    X[:, 0], X[:40, 2] = np.nan, X[:40, 2] + 9.0
    tree = Taxarbor(2, random_state=0).fit(X).taxonomy_
    assert str(tree.reasons(1)[0]).startswith("x2 ")
    assert tree.columns.dropped == (("x0", "empty"),)


def test_refits_know_which_features_are_one_column(rng):
    group, letters = rng.integers(0, 2, 600), np.array(list("abcdefghijkl"))
    codes = np.where(group, rng.integers(0, 6, (3, 600)), rng.integers(6, 12, (3, 600)))
    X = pd.DataFrame(dict(zip("opq", letters[codes], strict=True)))
    model = Taxarbor(2, max_features=1, random_state=0).fit(X)
    stability = assess(model, X, n_refits=5, random_state=0).stability
    assert stability.n_recovered.tolist() == [5, 5, 5]


def test_a_far_row_of_great_weight_is_a_group(rng):
    X = np.vstack([rng.normal(size=(200, 3)), [[300.0] * 3]])
    X[:100] += 8.0
    weights = np.ones(201, dtype=int)
    weights[-1] = 50
    found = Taxarbor(3, random_state=0).fit(X, sample_weight=weights)
    copies = Taxarbor(3, random_state=0).fit(np.repeat(X, weights, axis=0))
    np.testing.assert_array_equal(np.repeat(found.labels_, weights), copies.labels_)
    weights[-1] = 1
    light = Taxarbor(3, random_state=0).fit(X, sample_weight=weights)
    assert light.taxonomy_.tree.weights[-1] == 0


def test_words_hold_for_rows_that_were_placed_afterwards():
    rng = np.random.default_rng(3)
    own = np.concatenate([rng.normal(size=20), rng.normal(size=20) + 9.0])
    X = np.append(own, np.linspace(0.0, 9.0, 200))[:, None]
    weights = np.append(np.ones(40), np.zeros(200))
    tree = Taxarbor(2, random_state=0).fit(X, sample_weight=weights).taxonomy_
    threshold = tree.reasons(1)[0].threshold
    low, high = sorted((X[tree.tree.rows(node)] for node in (1, 2)), key=np.mean)
    assert low.max() <= threshold < high.min()


def test_rare_values_are_counted_by_weight(rng):
    X = pd.DataFrame({"a": rng.normal(size=400), "o": rng.choice(list("xyz"), 400)})
    X.loc[:2, "o"] = "q"
    weights = np.where(np.arange(400) < 3, 100, 1)
    found = TableEncoder().fit(X, sample_weight=weights).columns_
    copies = TableEncoder().fit(X.loc[X.index.repeat(weights)]).columns_
    assert found[1].categories == copies[1].categories == ("q", "x", "y", "z")


def test_weights_are_no_gaps_and_rare_values_are_named(rng):
    odd = np.where(np.arange(300) % 30, "7 km", "n/a").astype(object)
    X = pd.DataFrame({"o": rng.choice(list("xy"), 300), "d": odd, "a": rng.normal(size=300)})
    X.loc[10:, "d"] = [f"{x} km" for x in range(290)]
    X.loc[0, "o"] = "z"
    columns = TableEncoder().fit(X[["o"]][1:], sample_weight=np.full(299, 60)).columns_
    assert columns[0].categories == ("x", "y")
    *_, note = (one for one in TableEncoder().fit(X).columns_.notes if "rare" in one.text)
    assert note.parameter == "TableEncoder(categorical_features=['o'])"
    assert note.for_shell.endswith("[--categories o]")


def test_new_rows_are_read_as_the_fit_read_them(rng):
    days = [f"{day:02}.{month:02}.2024" for month in range(1, 11) for day in range(1, 11)]
    days[:5] = [f"2023-0{month}-01" for month in range(1, 6)]
    X = pd.DataFrame({"day": days, "a": rng.normal(size=100), "o": list("xy") * 50})
    X.loc[7, "a"] = np.inf
    columns = TableEncoder(missing_values=[np.inf]).fit(X).columns_
    rows = columns.read(X.assign(day=["?", *days[1:]]))
    assert columns.missing[0] == 0.0
    assert rows.unseen == {("day", "?"): 1}
    assert rows.missing.sum(axis=0)[-2:].tolist() == [1, 0]


def test_directions_are_of_numbers(rng):
    X = pd.DataFrame({"kg": rng.random(60), "hp": rng.random(60), "o": list("xyz") * 20})
    with pytest.raises(InputError, match="metric is for numbers, and X has categories: 'o'"):
        TableEncoder(metric="cosine").fit(X)
    with pytest.raises(InputError, match="scale"):
        TableEncoder(metric="cosine", scale="standard").fit(X[["kg", "hp"]])
    numbers = X[["kg", "hp"]].round()
    tree = Taxarbor(2, encoder=TableEncoder(metric="cosine")).fit(numbers).taxonomy_
    assert all(reason.have is None for node in (1, 2) for reason in tree.reasons(node))


def test_odd_cells_and_types(rng):
    rows = [[float(rng.normal()), "ab"[row % 2]] for row in range(60)]
    model = Taxarbor(2, random_state=0).fit(rows)
    assert [one.kind for one in model.taxonomy_.columns] == ["number", "category"]
    np.testing.assert_array_equal(model.predict(rows), model.labels_)
    days = pd.date_range("2020-01-01", periods=60)
    X = pd.DataFrame({"a": rng.normal(size=60), "o": list("xyz") * 20, "t": days})
    arrow = X.convert_dtypes(dtype_backend="pyarrow")
    encoder = TableEncoder(date_features="from_dtype")
    names = encoder.fit(X).get_feature_names_out().tolist()
    assert encoder.fit(arrow).get_feature_names_out().tolist() == names
    structs = pl.DataFrame({"a": [1.0, 2.0, 4.0], "b": [{"q": 1}] * 3})
    for frame in (structs, structs.lazy()):
        assert TableEncoder().fit(frame).columns_.dropped[0][0] == "b"


def test_a_value_called_unknown_is_no_gap(rng):
    told = []
    for _ in range(4):
        group = rng.integers(0, 3, 300)
        X = pd.DataFrame({"o": np.array(["unknown", "yes", "no"], dtype=object)[group]})
        X["a"] = 0.1 * group + rng.normal(size=300)
        X.loc[::10, "o"] = None
        told.append(Taxarbor(3, random_state=0).fit(X).taxonomy_.to_text())
    both = [text for text in told if 'o = "unknown"' in text]
    assert both
    assert any('o unknown or not "unknown"' in text for text in both)
    assert not any("o = unknown" in text for text in told)


def test_damaged_columns_are_refused(rng):
    X = pd.DataFrame({"a": rng.normal(size=60), "o": list("xyz") * 20})
    columns = TableEncoder().fit(X).columns_
    values = (10**12, -1, 7.5, "x", None, [], [1, None, {}], {"a": 1}, True, 1e300)
    n_refused = 0
    for _ in range(200):
        meta, arrays = copy.deepcopy(columns.pack())
        spot = [meta, meta["readings"]["1"], arrays][rng.integers(3)]
        spot[rng.choice(list(spot))] = values[rng.integers(len(values))]
        try:
            loaded = Columns.unpack(meta, arrays)
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError):
            n_refused += 1
            continue
        with suppress(InputError):
            loaded.read(X)
    assert n_refused > 100
