"""New rows from any source: read once, matched by name, with one warning of what is new."""

import warnings
from unittest.mock import Mock

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from taxarbor import Taxarbor, Taxonomy
from taxarbor._errors import InputError, TableWarning
from taxarbor.explain import explain
from taxarbor.report import report
from taxarbor.sources import open_source
from tests.sources.places import write_h5ad

N = 300
GROUPS = np.arange(N) % 3


@pytest.fixture(scope="module", name="frame")
def make_frame():
    """Rules read ``size`` and ``kind``, and no other column."""
    noise = np.random.default_rng(0).normal(size=(N, 2))
    size = (GROUPS == 2) * 20 + noise[:, 0]
    kind, is_x = np.array(["x", "y", "z"])[GROUPS], np.where(GROUPS == 0, "yes", "no")
    kind[2::30] = "y"  # so that size tells the last two groups apart better
    return pd.DataFrame({"other": noise[:, 1], "size": size, "kind": kind, "is_x": is_x})


@pytest.fixture(scope="module", name="model")
def fit_model(frame):
    with warnings.catch_warnings(action="ignore", category=TableWarning):
        model = Taxarbor(3, random_state=0).fit(frame)
    assert read_columns(model.taxonomy_) == {"size", "kind"}
    return model


def read_columns(taxonomy):
    rules = [rule for rule in taxonomy.tree.rules if rule is not None]
    places = {int(taxonomy.columns.owner[one]) for rule in rules for one in rule.features}
    return {taxonomy.columns[place].name for place in places}


class Relation:
    """Rows behind Arrow's protocol, as DuckDB has them; they can be read once."""

    def __init__(self, table):
        self.reader = table.to_reader(max_chunksize=70)

    def __arrow_c_stream__(self, requested_schema=None):
        reader, self.reader = self.reader, None
        return reader.__arrow_c_stream__(requested_schema)


FORMS = {
    "reader": lambda table: table.to_reader(max_chunksize=70),
    "relation": Relation,
    "table": lambda table: table,
    "record batch": lambda table: table.to_batches()[0],
    "lazy frame": lambda table: pl.from_arrow(table).lazy(),
}


@pytest.mark.parametrize("form", FORMS)
def test_streams_are_read_once(frame, model, form):
    table = pa.Table.from_pandas(frame)
    make = FORMS[form]
    for predictor in (model, model.taxonomy_):
        np.testing.assert_array_equal(predictor.predict(make(table)), model.labels_)
        P = predictor.predict_proba(make(table))
        np.testing.assert_array_equal(P, predictor.predict_proba(frame))
    attached = model.taxonomy_.attach(make(table))
    np.testing.assert_array_equal(attached.tree.labels, model.labels_)
    assert explain(model, make(table)).names == explain(model, frame).names


@pytest.mark.filterwarnings("ignore::taxarbor._errors.TableWarning")
@pytest.mark.parametrize("form", FORMS)
def test_fits_read_streams_once(frame, form, kind):
    table = pa.Table.from_pandas(frame)
    expected = kind(3, random_state=0).fit(frame)
    found = kind(3, random_state=0).fit_predict(FORMS[form](table))
    np.testing.assert_array_equal(found, expected.labels_)


@pytest.mark.parametrize("form", ["reader", "relation", "table", "lazy frame"])
def test_empty_streams(frame, model, form, kind):
    def make():
        return FORMS[form](pa.Table.from_pandas(frame[:0]))

    assert model.taxonomy_.predict(make()).shape == (0,)
    assert model.predict_proba(make()).shape == (0, 3)
    with pytest.raises(InputError) as caught:
        kind(3).fit(make())
    assert caught.value.parameter == "X"


def test_files(frame, model, tmp_path):
    model.taxonomy_.save(tmp_path / "model.tax")
    loaded = Taxonomy.load(tmp_path / "model.tax")
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=70)
    frame.to_csv(tmp_path / "x.csv")
    np.testing.assert_array_equal(loaded.predict(tmp_path / "x.parquet"), model.labels_)
    lazy = loaded.predict(dd.from_pandas(frame, npartitions=3))
    np.testing.assert_array_equal(lazy.compute(), model.labels_)
    for use in (loaded.predict, Taxarbor(3).fit):
        with pytest.raises(InputError, match="read_table"):
            use(tmp_path / "x.csv")


def test_matrices_in_files(frame, kind, tmp_path):
    names = ["other", "size"]
    X = frame[names].to_numpy()
    model = kind(3, random_state=0).fit(X, feature_names=names)
    assert model.taxonomy_.feature_names == ("other", "size")
    expected = model.predict(X)
    np.save(tmp_path / "x.npy", X)
    write_h5ad(tmp_path / "x.h5ad", X[:, ::-1], names[::-1])
    for rows in (tmp_path / "x.npy", tmp_path / "x.h5ad", frame):
        np.testing.assert_array_equal(model.taxonomy_.predict(rows), expected)


@pytest.mark.parametrize("names", [["a"], "ab", ["a", "a"], ["length", "width"]])
def test_names_that_do_not_fit(frame, kind, names):
    """A frame has its own."""
    X = frame[["other", "size"]] if "length" in names else np.eye(5)[:, :2]
    with pytest.raises(InputError) as caught:
        kind(2).fit(X, feature_names=names)
    assert caught.value.parameter == "feature_names"


def test_a_source_is_opened_once(frame, model, monkeypatch):
    spy = Mock(wraps=open_source)
    monkeypatch.setattr("taxarbor.taxonomy.new_rows.open_source", spy)
    model.predict(frame)
    spy.assert_called_once()


# Columns


def places(frame, folder):
    """Return a frame in memory, in a file and on Dask."""
    frame.to_parquet(folder / "rows.parquet", row_group_size=70)
    return [frame, folder / "rows.parquet", dd.from_pandas(frame, npartitions=2)]


def test_order_and_other_columns_do_not_matter(frame, model, tmp_path):
    wider = frame[frame.columns[::-1]].assign(more="?")
    for given in (wider, frame[["kind", "size"]]):  # no other column is read
        for rows in places(given, tmp_path):
            np.testing.assert_array_equal(model.predict(rows), model.labels_)
            assert np.asarray(model.taxonomy_.predict_proba(rows)).shape == (N, 3)


def test_what_rules_read_and_is_absent_is_missing(frame, model, tmp_path):
    known = frame.assign(size=np.nan)
    absent = frame.drop(columns="size")
    expected = model.predict(known)
    assert (expected != model.labels_).any()
    for rows in places(absent, tmp_path):
        with pytest.warns(TableWarning, match="'size'") as caught:
            found = model.predict(rows)
        assert len(caught) == 1
        np.testing.assert_array_equal(np.asarray(found), expected)
    for use in (model.predict_proba, explain(model, frame).place):
        with pytest.warns(TableWarning, match="'size'") as caught:
            use(absent)
        assert len(caught) == 1
    for rows in places(frame[["other", "is_x"]], tmp_path):
        with pytest.raises(InputError):
            model.predict(rows)


def test_columns_by_name_without_an_encoder(frame, kind):
    numbers = frame[["other", "size"]]
    model = kind(3, random_state=0, encoder=None).fit(numbers)
    expected = model.predict(numbers)
    other = numbers[["size", "other"]].assign(more=1.0)
    np.testing.assert_array_equal(model.predict(other), expected)
    with pytest.raises(InputError):
        model.predict(numbers[["other"]])


@pytest.mark.filterwarnings("ignore::taxarbor._errors.TableWarning")
def test_noise_reads_all_columns(frame):
    model = Taxarbor(3, random_state=0, noise=0.1).fit(frame)
    with pytest.warns(TableWarning, match="'other'"):
        model.predict(frame.drop(columns="other"))


# Values


@pytest.mark.parametrize("column", ["kind", "is_x"])
def test_unseen_values_are_counted(frame, model, column, tmp_path):
    first = frame[column].iloc[0]
    changed = frame.copy()
    changed.loc[changed[column].eq(first) & (np.arange(N) < 200), column] = first.upper()
    n_rows = int((changed[column] == first.upper()).sum())
    words = rf"{column} = '{first.upper()}' \({n_rows} rows\)"
    memory, file, _ = places(changed, tmp_path)
    uses = [lambda: model.predict(memory), lambda: model.taxonomy_.predict(file)]
    uses += [lambda: model.predict_proba(file), lambda: model.taxonomy_.attach(file)]
    with pytest.warns(TableWarning):
        attached = model.taxonomy_.attach(memory)
    uses += [lambda: explain(attached, memory)]
    uses += [lambda: report(attached, memory, tmp_path / "page.html")]
    for use in uses:
        with pytest.warns(TableWarning, match=words) as caught:
            use()
        assert len(caught) == 1
    with pytest.warns(TableWarning, match=words) as caught:
        model.predict(dd.from_pandas(changed, npartitions=1)).compute(scheduler="synchronous")


@pytest.mark.filterwarnings("ignore::taxarbor._errors.TableWarning")
def test_booleans_as_text(frame):
    model = Taxarbor(3, random_state=0).fit(frame.assign(is_x=frame["is_x"] == "yes"))
    with pytest.raises(InputError, match="is_x"):
        model.predict(frame)
    texts = frame.assign(is_x=np.where(GROUPS == 0, "True", "False"))
    model = Taxarbor(3, random_state=0).fit(texts)
    np.testing.assert_array_equal(model.predict(frame.assign(is_x=GROUPS == 0)), model.labels_)
    with pytest.warns(TableWarning, match="TRUE"):
        model.predict(texts.assign(is_x=texts["is_x"].str.upper()))
