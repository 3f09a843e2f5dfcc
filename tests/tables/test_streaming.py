"""Tables in parts: the same encoding and the same rows as in memory, however they are cut."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from taxarbor import TableEncoder, TableWarning, Taxarbor
from taxarbor._errors import InputError
from taxarbor._run import Run
from taxarbor.hierarchy._encoding import missing_in_leaves
from taxarbor.hierarchy._repeats import repeats_of
from taxarbor.sweep import LocalEngine
from taxarbor.tables._look import TEXTS
from taxarbor.tables._stream import Stream
from taxarbor.tables._study import DIFFERENT, Study, Subject
from taxarbor.tables._training import Training, train_on_stream

quiet = pytest.mark.filterwarnings("ignore::taxarbor.TableWarning")
WAYS = ([], [1], [150], [3, 4, 90, 299], list(range(20, 300, 20)))
"""Where to cut 300 rows."""


class Pickled:
    """A part that comes from elsewhere each time that it is read."""

    def __init__(self, part):
        self.bytes = pickle.dumps(part)

    def load(self):
        return pickle.loads(self.bytes)


def cut(table, edges):
    bounds = [0, *edges, table.shape[0]]
    pick = table.iloc.__getitem__ if hasattr(table, "iloc") else table.__getitem__
    return [pick(slice(*pair)) for pair in pairwise(bounds)]


def stream_of(parts, *, with_sizes=True):
    is_frame = hasattr(parts[0], "columns")
    return Stream(
        [Pickled(part) for part in parts],
        [f"block {number}" for number in range(len(parts))],
        np.array([part.shape[0] for part in parts]) if with_sizes else None,
        [str(name) for name in parts[0].columns] if is_frame else None,
        LocalEngine,
        None if is_frame else parts[0].dtype,
    )


def train(parts, weights=None, encoder="auto", **options):
    model = Taxarbor(3, encoder=encoder)
    return train_on_stream(model, stream_of(parts, **options), Run(), None, weights)


def rows_of(column):
    blocks = LocalEngine(Run()).gather(column)
    return sparse.vstack(blocks).toarray() if sparse.issparse(blocks[0]) else np.vstack(blocks)


def assert_same(streamed, table, weights=None, encoder="auto"):
    """Compare a stream with the same table in memory, to the bit."""
    whole = Training.of(Taxarbor(3, encoder=encoder), table, 1, weights)
    data = whole.rows._own()
    data = data.toarray() if sparse.issparse(data) else data
    found = rows_of(streamed.blocks.data)
    assert found.dtype == data.dtype == streamed.blocks.dtype
    np.testing.assert_array_equal(found, data)
    assert streamed.blocks.n_features == data.shape[1]
    assert streamed.blocks.n_rows == data.shape[0]
    assert (streamed.encoding is None) == (whole.encoding is None)
    if whole.encoding is not None:
        assert streamed.encoding.to_dict() == whole.encoding.to_dict()
    assert streamed.seen.n_features_in_ == whole.seen.n_features_in_
    assert streamed.seen.names == whole.seen.names
    np.testing.assert_array_equal(
        np.zeros(0) if streamed.owner is None else streamed.owner,
        np.zeros(0) if whole.owner is None else whole.owner,
    )
    empty = np.zeros(data.shape[0], dtype=bool) if whole.empty is None else whole.empty
    assert (streamed.empty is not None) == empty.any()
    if streamed.empty is not None:
        np.testing.assert_array_equal(np.concatenate(streamed.empty), empty)
    given = np.ones(len(empty)) if weights is None else np.asarray(weights, dtype=float)
    counts = repeats_of(np.where(empty, 0.0, given))
    if streamed.counts is None:
        assert (counts == 1).all()
    else:
        np.testing.assert_array_equal(np.concatenate(streamed.counts), counts)
        assert streamed.counts[0].dtype == np.int32


def numbers(seed=0, gaps=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(1e3, [0.1, 1.0, 50.0, 1e4, 3.0], (300, 5))
    X[:, 4] = rng.integers(0, 2, 300)
    X[rng.random(X.shape) < gaps] = np.nan
    X[7, 1] = 1e12
    return X


def make_cars(n=300, seed=0):
    """Return a table of all kinds of columns, with gaps."""
    rng = np.random.default_rng(seed)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n), "D")
    cars = pd.DataFrame(
        {
            "car_id": rng.permutation(n) + 1000,
            "weight": rng.normal(2500.0, 200.0, n),
            "doors": rng.integers(2, 6, n),
            "origin": rng.choice(["usa", "japan", "europe"], n).astype(object),
            "automatic": rng.random(n) < 0.4,
            "fuel": pd.Categorical(rng.choice(["petrol", "diesel"], n)),
            "rare": rng.choice(["a", "b", "c"], n, p=[0.5, 0.49, 0.01]),
            "name": [f"car {row}" for row in range(n)],
            "sold": days,
            "made": days.strftime("%Y-%m-%d").to_numpy(dtype=object),
            "mostly": np.where(rng.random(n) < 0.9, 0.0, rng.random(n)),
            "tax": np.where(rng.random(n) < 0.01, 99999.0, rng.random(n)),
        }
    )
    for column in ("weight", "origin", "fuel", "sold", "made"):
        cars.loc[rng.choice(n, n // 10, replace=False), column] = None
    return cars


# Arrays


@quiet
@pytest.mark.parametrize("edges", WAYS)
@pytest.mark.parametrize("with_sizes", [True, False])
def test_arrays_are_as_in_memory(edges, with_sizes):
    rng = np.random.default_rng(1)
    plain = numbers(gaps=0.0)
    tables = [
        plain,
        plain.astype(np.float32),
        rng.integers(-3, 9, (300, 4)),
        rng.random((300, 3)) < 0.5,
        numbers(),
        numbers().astype(np.float32),
    ]
    for table in tables:
        assert_same(train(cut(table, edges), with_sizes=with_sizes), table)
    assert_same(train(cut(plain, edges), encoder=None), plain, encoder=None)


@quiet
@pytest.mark.parametrize("edges", WAYS)
def test_sparse_matrices_are_as_in_memory(edges):
    rng = np.random.default_rng(2)
    matrix = sparse.random_array((300, 12), density=0.2, rng=rng, format="csr")
    for dtype in (np.float64, np.float32):
        table = matrix.astype(dtype)
        found = train(cut(table, edges))
        assert_same(found, table)
        assert found.blocks.n_cells == table.nnz / 300
        table.data[[3, 50, 400]] = np.nan
        assert_same(train(cut(table, edges)), table)
        scaled = TableEncoder(scale="standard")
        assert_same(train(cut(table, edges), encoder=scaled), table, encoder=scaled)


@quiet
@pytest.mark.parametrize("edges", WAYS)
def test_weights_and_rows_without_a_value(edges):
    rng = np.random.default_rng(3)
    X = numbers()
    whole, parts = rng.integers(0, 4, 300), rng.uniform(0.0, 2.0, 300)
    for table in (X, np.where(np.arange(300)[:, None] % 50 == 9, np.nan, X)):
        for weights in (None, whole, parts, np.ones(300)):
            assert_same(train(cut(table, edges), weights), table, weights)
    frame = make_cars().drop(columns=["car_id", "doors", "automatic", "rare", "mostly", "tax"])
    frame.loc[[2, 150], :] = None
    for weights in (None, whole, parts):
        assert_same(train(cut(frame, edges), weights), frame, weights)


def test_integer_weights_are_repeated_rows():
    rng = np.random.default_rng(4)
    cars, w = make_cars(), rng.integers(1, 4, 300)
    w[5] = 0
    copies = cars.loc[cars.index.repeat(w)].drop(columns=["car_id", "name"])
    settings = {"date_features": ["sold"], "missing": "indicator"}
    for scale in ("auto", "robust"):
        encoder = TableEncoder(scale=scale, **settings)
        own = encoder.fit(cars.drop(columns=["car_id", "name"]), sample_weight=w).encoding_
        there = encoder.fit(copies).encoding_
        assert own.to_dict() == there.to_dict()


# Frames


@quiet
@pytest.mark.parametrize("edges", WAYS)
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"missing": "indicator", "date_features": "from_dtype"},
        {"scale": "robust", "date_features": ["made"], "categorical_features": ["doors"]},
        {"categorical_features": None, "metric": "cosine"},
        {"scale": None},
    ],
)
def test_frames_are_as_in_memory(edges, settings):
    cars, encoder = make_cars(), TableEncoder(**settings)
    tables = (cars, cars.convert_dtypes(), cars.convert_dtypes(dtype_backend="pyarrow"))
    for table in tables[: 3 if edges == WAYS[3] else 1]:
        assert_same(train(cut(table, edges), encoder=encoder), table, encoder=encoder)
    assert_same(train(cut(cars, edges)), cars)
    encoder = encoder.set_params(categorical_features="from_dtype", date_features=None)
    single = cars[["weight", "mostly"]].astype(np.float32)
    assert_same(train(cut(single, edges), encoder=encoder), single, encoder=encoder)


@quiet
def test_frames_of_numbers_without_an_encoder():
    cars = make_cars()[["doors", "mostly", "tax"]]
    for table in (cars, cars.astype(np.float32)):
        assert_same(train(cut(table, [100]), encoder=None), table, encoder=None)


@quiet
def test_types_may_differ_where_gaps_are():
    """As readers make floats of whole numbers, and objects of nothing, only where gaps are."""
    cars = make_cars()
    cars["doors"] = cars.doors.astype("float64").mask(cars.index < 40)
    cars["origin"] = cars.origin.mask(cars.index < 40)
    parts = cut(cars, [40, 100])
    parts[0] = parts[0].assign(doors=None, origin=np.nan)
    parts[1] = parts[1].astype({"doors": int})
    parts[2] = parts[2].assign(fuel=parts[2].fuel.cat.remove_unused_categories())
    assert_same(train(parts), cars)


@quiet
def test_many_categories_are_sparse_blocks():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({f"c{j}": rng.integers(0, 30, 300).astype(str) for j in range(3)})
    frame["x"] = rng.normal(50.0, 9.0, 300)
    frame.loc[:20, "c1"] = None
    encoder = TableEncoder(categorical_features=["c0", "c1", "c2"])
    found = train(cut(frame, [13, 200]), encoder=encoder)
    assert sparse.issparse(found.blocks.data[0].load())
    assert found.blocks.dtype == np.float32
    assert found.blocks.n_cells < 12
    assert_same(found, frame, encoder=encoder)


@pytest.mark.long
def test_samples_of_large_tables_do_not_depend_on_the_cut():
    """Quartiles, rare values and identifiers are found in some rows of so many."""
    rng = np.random.default_rng(6)
    n = DIFFERENT + 50_001
    table = pd.DataFrame(
        {
            "x": rng.normal(size=n).astype(np.float32),
            "hardly": np.where(rng.random(n) < 0.002, rng.normal(size=n), np.nan),
            "zeros": np.where(rng.random(n) < 0.003, rng.exponential(size=n), 0.0),
            "far": np.where(rng.random(n) < 1e-4, 1e9, rng.random(n)),
            "row": rng.permutation(n),
            "user_id": rng.integers(0, 2**40, n) * 2,
            "group_id": rng.integers(0, n // 2, n),
            "text": (np.arange(n) % (TEXTS + 1)).astype(str),
        }
    )
    dropped = {"row", "user_id", "text"}
    for scale in ("standard", "robust"):
        found = []
        for edges in ([], [5, 70_000, 90_000], list(range(30_000, n, 30_000))):
            parts = cut(table, edges)
            sizes = np.array([len(part) for part in parts])
            stream = Stream(parts, [""] * len(parts), sizes, [*table], LocalEngine, None)
            model = Taxarbor(3, encoder=TableEncoder(scale=scale))
            found.append(train_on_stream(model, stream, Run(), None, None).encoding)
        assert found[0].to_dict() == found[1].to_dict() == found[2].to_dict()
        assert TableEncoder(scale=scale).fit(table).encoding_.to_dict() == {
            **found[0].to_dict(),
        }
        assert {name for name, _ in found[0].dropped} == dropped
        assert found[0].dropped[-1][1] == "text, more than 100,000 different values"
    columns = {one.name: one for one in found[0].columns}
    np.testing.assert_allclose(columns["far"].fill, table.far[table.far < 1.0].mean())
    np.testing.assert_allclose(columns["hardly"].fill, table.hardly.mean(), rtol=1e-12)
    np.testing.assert_allclose(columns["zeros"].fill, table.zeros.mean(), rtol=1e-12)
    # Quartiles of some rows are those of all, nearly.
    low, high = np.quantile(table.x, [0.25, 0.75])
    np.testing.assert_allclose(found[0].scale[0], (high - low) / 1.349, rtol=0.02)


def test_moments_are_exact():
    rng = np.random.default_rng(7)
    X = np.column_stack([1e9 + rng.random(2000), np.full(2000, 0.1), rng.normal(size=2000)])
    encoding = Study(TableEncoder(scale="standard"), Subject.of(X, None)).encoding()
    np.testing.assert_allclose(encoding.scale, [X[:, 0].std(), 1.0, X[:, 2].std()], rtol=1e-9)
    assert encoding.columns[1].fill == (0.1,)


# How much is missing


@quiet
def test_missing_cells_of_leaves_are_counted():
    rng = np.random.default_rng(8)
    cars, edges = make_cars(), [40, 41, 200]
    for weights in (None, rng.uniform(0.0, 2.0, 300)):
        tree = Taxarbor(4, random_state=0).fit(cars, sample_weight=weights).hierarchy_
        found = train(cut(cars, edges), weights)
        own = None if tree.weights is None else np.split(tree.weights, edges)
        missing = found.missing(np.split(tree.labels, edges), tree.n_leaves, own)
        if tree.weights is not None:  # those that take no part may be named by counts as well
            counts = np.split((tree.weights > 0).astype(np.int32), edges)
            given = None if weights is None else np.split(weights, edges)
            again = found.missing(np.split(tree.labels, edges), tree.n_leaves, given, counts)
            np.testing.assert_array_equal(again, missing)
        gaps = found.encoding.encode(cars).gaps
        np.testing.assert_allclose(missing, missing_in_leaves(tree, gaps), rtol=1e-12)
        encoded = found.encoding.encoded(tree)
        np.testing.assert_allclose(
            found.encoding.decode(encoded, missing=missing).missing, tree.missing, rtol=1e-12
        )
    assert train(cut(numbers(gaps=0.0), [9])).missing([], 3, None) is None


@quiet
def test_gaps_in_rows_of_no_weight_are_known():
    X = numbers(gaps=0.0)
    X[5, 2] = np.nan
    weights = (np.arange(300) != 5).astype(float)
    found = train(cut(X, [70]), weights)
    assert_same(found, X, weights)
    labels = np.split(np.zeros(300, dtype=int), [70])
    missing = found.missing(labels, 1, np.split(weights, [70]))
    np.testing.assert_array_equal(missing, np.zeros((1, 5)))
    cars = make_cars()[["origin", "doors"]].fillna("usa")
    assert train(cut(cars, [70]), weights).missing(labels, 1) is None


def test_it_warns_once_of_what_was_done():
    with pytest.warns(TableWarning, match=r"gaps in 5 of 5 columns .*mean") as caught:
        train(cut(numbers(), [70]))
    assert len(caught) == 1


# Bad input


def test_parts_that_do_not_fit_together():
    X = numbers(gaps=0.0)
    parts = cut(X, [100, 200])
    for odd, told in (
        (parts[1][:, :4], "block 1: the first part of X has 5 columns, and this one 4"),
        (parts[1].astype(np.float32), "block 1: the first part of X is float64, .* float32"),
        (
            sparse.csr_array(parts[1]),
            "block 1: the first part of X is of kind array, .* sparse",
        ),
        (parts[1].astype(object), "block 1: X must hold numbers; got object"),
        (parts[1][0], r"block 1: X must have two dimensions.* got an array of shape \(5,\)"),
        ([1, 2], "block 1: X must have two dimensions.* got list"),
    ):
        stream = stream_of(parts)
        stream.parts[1] = Pickled(odd)
        with pytest.raises(InputError, match=told):
            train_on_stream(Taxarbor(3), stream, Run(), None, None)
    cars = make_cars()
    parts = cut(cars, [100, 200])
    parts[2] = parts[2].rename(columns={"doors": "windows"})
    with pytest.raises(
        InputError, match=r"block 2: the columns are not .*'windows' for 'doors'"
    ):
        train(parts)
    parts[2] = parts[2].rename(columns={"windows": "doors"})[[*cars.columns[::-1]]]
    with pytest.raises(
        InputError, match="block 2: the columns are not those of the first part"
    ):
        train(parts)


def test_cells_that_cannot_be_used():
    X = numbers()
    with pytest.raises(InputError, match=r"block 0: X contains NaN, in column 'x\d', first in"):
        train(cut(X, [100]), encoder=None)
    for bad in (X, np.nan_to_num(X), X.astype(np.float32)):
        bad[150, 2] = np.inf
        told = "block 1: column 'x2' of X holds infinity, first in row 150, counted from 0"
        for parts in (cut(bad, [100]), cut(pd.DataFrame(bad).add_prefix("x"), [100])):
            with pytest.raises(InputError, match=told):
                train(parts)
        with pytest.raises(InputError, match="block 1: column 'x2' of X holds infinity"):
            train([sparse.csr_array(part) for part in cut(bad, [100])])
    with pytest.raises(InputError, match="has 1 row"):
        train([X[:1]])
    with pytest.raises(InputError, match="has 0 rows"):
        train([X[:0]], with_sizes=False)
    for factor in (1e80, 1e-90):
        with pytest.raises(InputError, match="X varies by about"):
            train(cut(np.random.default_rng(0).normal(size=(300, 2)) * factor, [5]))
    with pytest.raises(InputError, match="one number for each of 300 rows; got shape"):
        train(cut(X, [100]), np.ones(200))
    with pytest.raises(InputError, match='must be "auto", None or a TableEncoder'):
        train(cut(X, [100]), encoder="table")
    with pytest.raises(InputError, match="scale must be one of"):
        train(cut(X, [100]), encoder=TableEncoder(scale="max"))
    cars = make_cars()
    cars.loc[:99, "name"] = "2020-01-01"
    with pytest.raises(InputError, match="block 1: column 'name' of X holds no dates"):
        train(cut(cars, [100]), encoder=TableEncoder(date_features=["name"]))


@quiet
def test_parts_without_rows_are_passed_over():
    X = numbers()
    parts = [X[:0], X[:100], X[100:100], X[100:]]
    assert_same(train(parts, with_sizes=False), X)
    cars = make_cars()
    assert_same(train([cars[:0], cars[:9], cars[9:]], with_sizes=False), cars)
