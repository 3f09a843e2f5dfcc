"""Memory and files: the same sample, the same routing, and one line for what is wrong."""

import os
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from taxarbor._errors import FileFormatError, InputError, InputTypeError
from taxarbor.sources import file_checks, open_source, stored_format
from tests.sources.places import local_places, write_h5ad
from tests.sources.works import DTYPES, NAMES, as_array, check_sample, make_rows, pair, sums

X = make_rows()
PLACES = [
    *("array", "csr", "coo", "lists", "pandas", "pyarrow", "npy", "fortran"),
    *("swapped", "memmap", "memmap of Fortran", "copy on write", "parquet", "folder"),
    *("dense h5ad", "CSR h5ad"),
]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(file_checks, "BLOCK_BYTES", 5000)


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    found = local_places(tmp_path_factory.mktemp("rows"), X)
    assert list(found) == PLACES
    return found


@pytest.fixture(params=PLACES)
def source(request, places):
    return open_source(places[request.param])


@pytest.mark.parametrize("weights", [None, np.arange(len(X)) % 3.0], ids=["equal", "weights"])
def test_same_sample(source, weights):
    check_sample(source, open_source(X), weights)
    assert source.names in (None, NAMES)


def test_same_routing(source):
    (totals, cells), total = source.route(sums, DTYPES)
    np.testing.assert_array_equal(totals, X.sum(axis=1))
    np.testing.assert_array_equal(cells, X[:, 1])
    np.testing.assert_allclose(total[:-1], X.sum(axis=0))
    assert total[-1] >= len(X)


def test_arrays_of_two_dimensions(source):
    (found,), n_rows = source.route(pair, (np.float64,))
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, X[:, :2])
    assert n_rows == len(X)


def test_memory_is_one_block_and_is_not_copied():
    source = open_source(X)
    assert source.in_memory
    assert source.sample(len(X), 0).table is X
    arrays, seen = source.route(lambda table, rows: ((), [table]), ())
    assert not arrays
    assert seen[0] is X


def test_types_of_samples_stay(places):
    for place in ("pandas", "parquet"):
        table = open_source(places[place]).sample(5, 0).table
        assert isinstance(table.to_native(), pd.DataFrame)
    assert sparse.issparse(open_source(places["CSR h5ad"]).sample(5, 0).table)


def test_polars():
    polars = pytest.importorskip("polars")
    source = open_source(polars.DataFrame(X, schema=NAMES))
    found = source.sample(50, 1)
    assert isinstance(found.table.to_native(), polars.DataFrame)
    np.testing.assert_array_equal(found.table.to_numpy(), X[found.rows])
    assert source.names == NAMES


@pytest.mark.parametrize("place", ["parquet", "folder", "CSR h5ad"])
def test_columns(places, place):
    source = open_source(places[place], columns=["c2", "c0"])
    assert source.names == ["c2", "c0"]
    assert source.n_columns == 2
    np.testing.assert_array_equal(as_array(source.sample(9999, 0).table), X[:, [2, 0]])
    (cells,), _ = source.route(pair, (float,))
    np.testing.assert_array_equal(cells, X[:, [2, 0]])
    assert source.keep({"c0", "c9"}).names == ["c0"]
    fewer, both = (as_array(one.sample(9, 0).table) for one in (source.keep({"c0"}), source))
    np.testing.assert_array_equal(fewer[:, 0], both[:, 1])
    with pytest.raises(FileFormatError, match="c7"):
        open_source(places[place], columns=["c7"])


def test_columns_without_names(places):
    with pytest.raises(FileFormatError, match="names"):
        open_source(places["npy"], columns=["c2"])


@pytest.mark.parametrize("cut", [np.s_[100:2000], np.s_[5::3], np.s_[:, 1:3], np.s_[::-1]])
def test_views_of_memory_maps(places, cut):
    (cells,), _ = open_source(places["memmap"][cut]).route(pair, (np.float32,))
    np.testing.assert_array_equal(cells, X[cut][:, :2])


def test_memory_map_shows_what_was_written(tmp_path):
    place = np.lib.format.open_memmap(tmp_path / "w.npy", "w+", np.float64, (50, 3))
    place[:] = 4.0
    source = open_source(place)
    assert not source.in_memory
    assert (source.sample(10, 0).table == 4.0).all()


def test_mixed_columns(tmp_path, make_cars):
    cars = make_cars(n_rows=200)
    cars["origin"] = cars["origin"].astype("category")
    cars.to_parquet(tmp_path / "cars.parquet", row_group_size=30)
    source = open_source(tmp_path / "cars.parquet")
    assert source.names == list(cars.columns)
    found = source.sample(60, seed=0)
    table = found.table.to_native()
    assert isinstance(table["origin"].dtype, pd.CategoricalDtype)
    expected = cars.iloc[found.rows].reset_index(drop=True)
    assert table["make"].fillna("").tolist() == expected["make"].fillna("").tolist()
    np.testing.assert_array_equal(table["mpg"], expected["mpg"])


def test_missing_values_of_floats(tmp_path):
    table = pa.table({"a": pa.array([1.0, None, 3.0]), "b": pa.array([None, 2.0, 3.0])})
    pq.write_table(table, tmp_path / "gaps.parquet")
    found = open_source(tmp_path / "gaps.parquet").sample(9, 0).table
    np.testing.assert_array_equal(found, [[1, np.nan], [np.nan, 2], [3, 3]])


def test_index_is_left_out(tmp_path):
    frame = pd.DataFrame({"a": [1.0, 2.0]}, index=pd.Index([5, 6], name="key"))
    frame.to_parquet(tmp_path / "frame.parquet")
    assert open_source(tmp_path / "frame.parquet").names == ["a"]


def test_partitioned_folders_are_refused(tmp_path):
    (tmp_path / "kind=x").mkdir()
    pq.write_table(pa.table({"a": [1.0]}), tmp_path / "kind=x" / "0.parquet")
    with pytest.raises(FileFormatError, match="kind=x"):
        open_source(tmp_path)


def test_duplicate_names_of_h5ad_get_numbers(tmp_path):
    path = write_h5ad(tmp_path / "a.h5ad", X, ["g", "g", "h", "g"])
    assert open_source(path).names == ["g", "g-1", "h", "g-2"]


def test_errors_of_the_work_name_the_block(places):
    def refuse(table, rows):
        raise InputError("is bad", "X")

    for place in ("npy", "parquet"):
        with pytest.raises(InputError, match=rf"\.{place}, rows 0 to"):
            open_source(places[place]).route(refuse, (float,))


@pytest.mark.parametrize("bad", [5, None, object()])
def test_what_is_no_table(bad):
    with pytest.raises(InputTypeError) as caught:
        open_source(bad)
    assert caught.value.parameter == "X"


def test_paths_that_are_no_tables(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_source(tmp_path / "none.npy")
    (tmp_path / "a.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError):
        open_source(tmp_path / "a.csv")
    with pytest.raises(FileFormatError):
        open_source(tmp_path)  # a folder without Parquet files
    assert stored_format(tmp_path) == "parquet"
    assert stored_format("a.NPY") == "npy"
    assert stored_format("a.csv") is None


@pytest.mark.parametrize("name", ["c.npy", "one.parquet", "dense.h5ad", "csr.h5ad"])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.6, 0.99])
def test_truncated_files(tmp_path, name, share):
    local_places(tmp_path, X)
    path = tmp_path / name
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(FileFormatError, match=name):
        open_source(path).route(sums, DTYPES)


def test_damaged_pages_of_parquet(tmp_path):
    local_places(tmp_path, X)
    path = tmp_path / "one.parquet"
    whole = bytearray(path.read_bytes())
    whole[100:4000] = bytes(3900)
    path.write_bytes(whole)
    source = open_source(path)
    for use in (lambda: source.sample(100, 0), lambda: source.route(sums, DTYPES)):
        with pytest.raises(FileFormatError, match=r"one\.parquet"):
            use()


@pytest.mark.parametrize("name", ["c.npy", "one.parquet", "csr.h5ad"])
def test_files_that_change(tmp_path, name):
    local_places(tmp_path, X)
    path = tmp_path / name
    source = open_source(path)
    source.route(sums, DTYPES)
    os.utime(path, ns=(1, 1))
    with pytest.raises(FileFormatError, match="changed"):
        source.route(sums, DTYPES)
    path.unlink()
    with pytest.raises(FileFormatError, match="removed"):
        source.sample(100, 0)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(5), np.zeros((0, 3)), np.zeros((3, 0)), np.zeros((2, 2), complex),
        np.array([["a"]]), np.array([[None]], dtype=object),
    ],
)  # fmt: skip
def test_npy_files_that_are_no_tables(tmp_path, array):
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(FileFormatError, match=r"a\.npy"):
        open_source(tmp_path / "a.npy")


def test_parquet_files_that_differ(tmp_path):
    one = pa.table({"a": [1.0], "b": [1.0]})
    pq.write_table(one, tmp_path / "1.parquet")
    others = {"b": one.drop_columns("b"), "c": one.append_column("c", [[1.0]])}
    others["int64"] = pa.table({"a": [1], "b": [1.0]})
    for word, other in others.items():
        pq.write_table(other, tmp_path / "2.parquet")
        with pytest.raises(FileFormatError, match=rf"(?=.*2\.parquet).*{word}"):
            open_source(tmp_path)
    pq.write_table(others["int64"].slice(0, 0), tmp_path / "2.parquet")  # no rows, no types
    assert open_source(tmp_path).n_rows == 1
    pq.write_table(one.slice(0, 0), tmp_path / "1.parquet")
    with pytest.raises(FileFormatError, match="no rows"):
        open_source(tmp_path)


def test_h5ad_files_that_cannot_be_read(tmp_path):
    bad = write_h5ad(tmp_path / "csc.h5ad", sparse.csc_array(X))
    with pytest.raises(FileFormatError, match="csc"):
        open_source(bad)
    with pytest.raises(FileFormatError, match="names"):
        open_source(write_h5ad(tmp_path / "names.h5ad", X, ["a"]))
    csr = sparse.csr_array(X)
    csr.indices[5] = 99
    source = open_source(write_h5ad(tmp_path / "wild.h5ad", csr))
    with pytest.raises(FileFormatError, match=r"wild\.h5ad"):
        source.route(sums, DTYPES)


def test_libraries_that_are_not_installed(places, monkeypatch):
    for place, library in (("parquet", "pyarrow.parquet"), ("dense h5ad", "h5py")):
        monkeypatch.setitem(sys.modules, library, None)
        with pytest.raises(ImportError, match="pip install"):
            open_source(places[place])
