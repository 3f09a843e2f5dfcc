"""Data frames of all libraries: the same tree from each, with the names of the columns."""

import subprocess
import sys

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from taxarbor import TableWarning, load_animals
from taxarbor._errors import InputError
from taxarbor.exchange import to_json
from tests.conftest import assert_same_rules

NAMES = [f"f{j}" for j in range(20)]
NULLABLE = ("Int64", "Float64", "boolean")
quiet = pytest.mark.filterwarnings("ignore::taxarbor.TableWarning")


class Stream:
    """A table that is known by nothing but Arrow's interface."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


KINDS = {
    "pandas": lambda frame: frame,
    "pandas of Arrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
    "record batch": pa.RecordBatch.from_pandas,
    "stream": lambda frame: Stream(pa.Table.from_pandas(frame)),
    "narwhals of pandas": nw.from_native,
    "narwhals of polars": lambda frame: nw.from_native(pl.from_pandas(frame)),
    "narwhals of pyarrow": lambda frame: nw.from_native(pa.Table.from_pandas(frame)),
    "narwhals of a lazy frame": lambda frame: nw.from_native(pl.from_pandas(frame).lazy()),
}


@pytest.fixture(params=KINDS)
def convert(request):
    return KINDS[request.param]


@pytest.fixture
def fit(kind):
    return lambda X: kind(4, random_state=0).fit(X)


def make_mixed(n=120):
    """Return numbers, booleans, text, categories and dates, with missing values."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 3, n)
    frame = pd.DataFrame({
        "x": group * 3.0 + rng.normal(size=n), "count": rng.integers(0, 9, n),
        "small": rng.normal(size=n).astype(np.float32), "flag": rng.random(n) < 0.3,
        "colour": np.array(["red", "blue", "grey"], dtype=object)[group],
        "kind": pd.Categorical(rng.choice(["u", "v"], n)),
        "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 99, n), "D"),
    })  # fmt: skip
    frame.loc[:5, "colour"] = None
    frame.loc[3:9, "x"] = None
    return frame


@quiet
def test_every_kind_of_frame_gives_the_same_tree(fit, convert):
    frame = make_mixed()
    expected, model = fit(frame), fit(convert(frame))
    assert model.feature_names_in_.tolist() == [*frame]
    assert model.taxonomy_.feature_names == expected.taxonomy_.feature_names
    assert model.taxonomy_.columns.dropped == expected.taxonomy_.columns.dropped
    assert "colour" in model.taxonomy_.to_text()
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.predict(convert(frame)), expected.predict(frame))
    np.testing.assert_array_equal(model.taxonomy_.predict(frame), expected.predict(frame))


def test_frames_of_numbers_are_arrays_with_names(X, fit, convert):
    for dtype in ("float64", "float32"):
        array = X.astype(dtype)
        frame = pd.DataFrame(array, columns=NAMES)
        before = frame.copy()
        plain, named = fit(array), fit(convert(frame))
        assert named.feature_names_in_.tolist() == NAMES
        assert [*named.taxonomy_.feature_names] == NAMES
        np.testing.assert_array_equal(named.labels_, plain.labels_)
        np.testing.assert_array_equal(named.predict(convert(frame)), plain.predict(array))
        pd.testing.assert_frame_equal(frame, before)
        assert named.taxonomy_.dtype == dtype
        assert_same_rules(named.taxonomy_.tree, plain.taxonomy_.tree)


def test_encoder_none_takes_numbers_only(X, kind, convert):
    frame = pd.DataFrame(X, columns=NAMES)
    plain = kind(4, encoder=None, random_state=0).fit(X)
    named = kind(4, encoder=None, random_state=0).fit(convert(frame))
    np.testing.assert_array_equal(named.labels_, plain.labels_)
    np.testing.assert_array_equal(named.predict(convert(frame)), named.labels_)
    with pytest.raises(ValueError, match="'colour'"):
        kind(2, encoder=None).fit(convert(make_mixed()[["count", "colour"]]))
    with pytest.raises(ValueError, match="NaN"):
        kind(2, encoder=None).fit(convert(make_mixed()[["count", "x"]]))


def test_no_other_library_is_needed():
    code = (
        "import sys, numpy as np, polars as pl, pyarrow as pa\n"
        "class NoPandas:\n"
        "    def find_spec(self, name, *more):\n"
        "        if name.partition('.')[0] == 'pandas': raise ImportError(name)\n"
        "sys.meta_path.insert(0, NoPandas())\n"
        "from taxarbor import Taxarbor\n"
        "columns = {'a': np.arange(40.0) % 7, 'o': ['x', 'y'] * 20}\n"
        "for make in (pl.DataFrame, pa.table):\n"
        "    model = Taxarbor(2, random_state=0).fit(make(columns))\n"
        "    assert (model.predict(make(columns)) == model.labels_).all()\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", code]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


def test_tables_that_are_refused(fit):
    with pytest.raises(InputError, match="two dimensions"):
        fit(pa.chunked_array([[1.0, 2.0]]))
    twice = pa.table([pa.array(np.arange(9.0)[::step]) for step in (1, -1)], names=["a", "a"])
    for table in (twice, twice.to_batches()[0], twice.to_reader()):
        with pytest.warns(TableWarning, match="now a_2"):
            assert fit(table).taxonomy_.feature_names == ("a", "a_2")


def test_other_names_at_predict(X, fit, convert):
    frame = pd.DataFrame(X, columns=NAMES)
    model = fit(convert(frame))
    want, rules = model.predict(convert(frame)), filter(None, model.taxonomy_.tree.rules)
    used = [NAMES[j] for j in {*np.concatenate([rule.features for rule in rules]).tolist()}]
    for other in (frame[NAMES[::-1]].assign(more=1.0), frame[used]):
        np.testing.assert_array_equal(model.predict(convert(other)), want)
    with pytest.warns(TableWarning, match=f"X lacks '{used[0]}': its values count as missing"):
        model.predict(convert(frame.drop(columns=used[0])))
    with pytest.raises(InputError, match="lacks columns that the tree was grown on: 'f"):
        model.predict(convert(frame.add_prefix("g")))
    np.testing.assert_array_equal(model.predict(X), want)
    np.testing.assert_array_equal(fit(X).predict(convert(frame)), want)


def test_a_refit_forgets_the_names_and_a_failed_one_keeps_them(X, fit):
    frame = pd.DataFrame(X, columns=NAMES)
    model = fit(frame)
    before = model.predict(frame)
    with pytest.raises(ValueError, match="'b'"):
        model.fit(pd.DataFrame({"a": [1.0, 2.0], "b": [0.0, np.inf]}))
    assert model.feature_names_in_.tolist() == NAMES
    np.testing.assert_array_equal(model.predict(frame), before)
    assert model.fit(X).taxonomy_.columns.names is None
    assert "feature_names_in_" not in vars(model)


def test_nullable_types(data, kind, fit):
    frame = pd.DataFrame(data["binary"].astype(int)).add_prefix("f")
    plain = to_json(fit(frame).taxonomy_)
    for dtype in NULLABLE:
        nullable = frame.astype(dtype)
        assert to_json(fit(nullable).taxonomy_) == plain
        nullable.iloc[3, 4] = pd.NA
        with pytest.raises(ValueError, match="NaN"):
            kind(4, encoder=None).fit(nullable)
        with pytest.warns(TableWarning, match="missing values in 1 of 12 columns"):
            model = fit(nullable)
        assert model.taxonomy_.missing[0].tolist() == [1 / 300 * (j == 4) for j in range(12)]
        np.testing.assert_array_equal(model.predict(nullable), model.labels_)


def test_names_that_are_numbers(X, fit):
    model = fit(pd.DataFrame(X))
    assert "feature_names_in_" not in vars(model)
    assert model.taxonomy_.columns.names is None
    with pytest.raises(TypeError):
        fit(pd.DataFrame(X, columns=[0, *NAMES[1:]]))


@pytest.mark.filterwarnings("ignore::taxarbor.TableWarning")
def test_names_in_a_printed_tree_and_through_a_pipeline(X, fit, kind):
    animals = load_animals()
    model = fit(pd.DataFrame(animals.X, columns=list(animals.feature_names)))
    used = [animals.feature_names[j] for j in model.taxonomy_.tree.rules[0].features]
    assert any(name in model.taxonomy_.to_text() for name in used)
    scaler = StandardScaler().set_output(transform="pandas")
    pipeline = make_pipeline(scaler, kind(4)).fit(pd.DataFrame(X, columns=NAMES))
    assert [*pipeline[-1].taxonomy_.feature_names] == NAMES
