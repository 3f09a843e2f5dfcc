import os
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from scipy import sparse

from taxarbor._errors import FileFormatError, InputError
from taxarbor._run import Run
from taxarbor.sweep import _blocks
from taxarbor.tables import _scan_parquet
from taxarbor.tables._stream import Stream, as_stream, open_stream
from taxarbor.tables._table import NamelessError

FILES = Path(__file__).parent / "files"
X = np.random.default_rng(0).normal(size=(103, 5)).astype(np.float32)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts of ten rows."""
    monkeypatch.setattr(_blocks, "MOST", 10)
    monkeypatch.setattr(_blocks, "LEAST", 1)
    _scan_parquet._cursors.clear()


def loaded(stream) -> list:
    """Return all parts, after a journey to another process and back; check their sizes."""
    parts = [pickle.loads(pickle.dumps(part)).load() for part in stream.parts]
    assert [part.shape[0] for part in parts] == stream.sizes.tolist()
    assert len(stream.titles) == len(parts)
    return parts


def rows(stream) -> np.ndarray:
    """Return an array of all rows."""
    parts = [part.toarray() if sparse.issparse(part) else part for part in loaded(stream)]
    assert all(part.dtype == stream.dtype for part in parts)
    assert all(part.flags.c_contiguous for part in parts)
    return np.concatenate(parts)


def frame(stream) -> pd.DataFrame:
    assert stream.dtype is None
    found = pd.concat(loaded(stream), ignore_index=True)
    assert [*found.columns] == stream.names
    return found


def refusal(path) -> str:
    """Return what is said of a file, when it is opened or read: one line."""
    with pytest.raises(FileFormatError) as caught:
        [part.load() for part in as_stream(path).parts]
    message = str(caught.value)
    assert "\n" not in message
    return message


def save(path, frame, **options):
    frame.to_parquet(path, index=False, **options)
    return path


def table(n_rows=103) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    found = pd.DataFrame({"a": rng.normal(size=n_rows), "b": np.arange(n_rows)})
    found["c"] = pd.Series(rng.choice(["x", "yy", "z"], n_rows))
    found["d"] = pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(n_rows), "D")
    found.loc[3, "a"] = np.nan
    return found


def test_other_data_are_no_streams(tmp_path):
    for other in (X, X.tolist(), table(), sparse.csr_array(X), None, 3):
        assert as_stream(other) is None
    memory = np.memmap(tmp_path / "x", X.dtype, "w+", shape=X.shape)
    assert as_stream(memory + 1) is None  # which is in memory
    assert as_stream(memory.astype(np.float64)) is None


def test_a_text_is_a_path(tmp_path):
    for nothing in ("text", "rows.csv", tmp_path / "none"):
        with pytest.raises(FileNotFoundError):
            as_stream(nothing)
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"rows\.csv cannot be read part by part; .* \.npy"):
        as_stream(tmp_path / "rows.csv")


def test_a_stream_is_its_own(tmp_path):
    np.save(tmp_path / "x.npy", X)
    stream = as_stream(tmp_path / "x.npy")
    assert isinstance(stream, Stream)
    assert as_stream(stream) is stream


@pytest.mark.parametrize("dtype", ["<f4", "<f8", ">f4", "<f2", "<i4", "|u1", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_files(tmp_path, dtype, order):
    path, values = tmp_path / "x.npy", np.abs(X * 9).astype(dtype)
    np.save(path, np.asarray(values, order=order))
    for source in (path, str(path)):
        stream = as_stream(source)
        assert stream.names is None
        assert stream.dtype == values.dtype.newbyteorder("=")
        np.testing.assert_array_equal(rows(stream), values)
    assert stream.titles[0] == "x.npy, rows 0 to 9"
    assert stream.titles[-1] == "x.npy, rows 100 to 102"


def test_wide_npy_files_have_parts_of_fewer_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(_blocks, "CELLS", 12)
    np.save(tmp_path / "x.npy", X)
    assert as_stream(tmp_path / "x.npy").sizes.max() == 2


def test_npy_files_that_cannot_be_used(tmp_path):
    path = tmp_path / "x.npy"
    for values, told in (
        (np.array([[1, "a"]], dtype=object), "holds Python objects, which are not loaded"),
        (X[0], "has shape (5,), not (n_rows, n_features): reshape it"),
        (X[None], "has shape (1, 103, 5), not (n_rows, n_features)"),
        (X * 1j, "holds complex numbers"),
        (X.astype(str), "holds text"),
        (X[:0], "has no rows"),
        (X[:, :0], "has no columns"),
        (np.zeros(3, dtype=[("a", "f4")]), "holds records"),
    ):
        np.save(path, values, allow_pickle=True)
        message = refusal(path)
        assert message.startswith(f"x.npy {told}"), message
    np.save(path, X)
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    assert "is truncated" in refusal(path)
    for cut in (0, 3, 20):
        path.write_bytes(whole[:cut])
        assert "x.npy is no npy file, or a damaged one" in refusal(path)
    with pytest.raises(FileNotFoundError):
        as_stream(tmp_path / "none.npy")


def test_files_that_change_while_they_are_read(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, X)
    stream = as_stream(path)
    stream.parts[0].load()
    os.truncate(path, path.stat().st_size - 1_000)
    with pytest.raises(
        FileFormatError, match=r"^x\.npy shrank while it was read: it had 2,188"
    ):
        stream.parts[0].load()
    np.save(path, X + 1)
    os.utime(path, (1, 1))
    with pytest.raises(FileFormatError, match=r"^x\.npy changed while it was read"):
        stream.parts[0].load()
    path.unlink()
    with pytest.raises(FileFormatError, match=r"^x\.npy was removed while it was read"):
        stream.parts[0].load()
    path = save(tmp_path / "x.parquet", table(), row_group_size=50)
    stream = as_stream(path)
    stream.parts[0].load()
    save(path, table(), row_group_size=40)
    with pytest.raises(
        FileFormatError, match=r"^x\.parquet (changed|shrank) while it was read"
    ):
        stream.parts[1].load()


VIEWS = {
    "whole": lambda M: M,
    "rows": lambda M: M[7:90],
    "every third row": lambda M: M[::3],
    "columns": lambda M: M[:, 1:4],
    "every other column": lambda M: M[5:, ::2],
    "transposed": lambda M: M[:5].T,
    "reversed": lambda M: M[::-1],
    "one row": lambda M: M[4:5],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("offset", [0, 13, 70_000])
@pytest.mark.parametrize("order", ["C", "F"])
def test_memory_maps_and_views_of_them(tmp_path, view, offset, order):
    path = tmp_path / "x.dat"
    path.write_bytes(bytes(offset) + X.tobytes(order))
    options = {"offset": offset, "shape": X.shape, "order": order}
    M = view(np.memmap(path, np.float32, "r", **options))
    assert isinstance(M, np.memmap)
    stream = as_stream(M)
    np.testing.assert_array_equal(rows(stream), view(X))
    assert stream.titles[0].startswith("x.dat, rows 0 to ")


def test_memory_maps_of_what_is_no_file_any_more(tmp_path):
    path = tmp_path / "x.dat"
    path.write_bytes(X.tobytes())
    private = np.memmap(path, np.float32, "c", shape=X.shape)
    private[50] = 7.0  # which never gets to the file
    np.testing.assert_array_equal(rows(as_stream(private))[50], np.full(5, 7.0))
    changed = np.memmap(path, np.float32, "r+", shape=X.shape)
    changed[51] = 8.0
    np.testing.assert_array_equal(rows(as_stream(changed))[51], np.full(5, 8.0))
    path.rename(tmp_path / "y.dat")
    np.testing.assert_array_equal(rows(as_stream(changed)), changed)
    path.write_bytes((X + 1).tobytes())  # another file of this name
    np.testing.assert_array_equal(rows(as_stream(changed)), changed)


def test_memory_maps_that_cannot_be_used(tmp_path):
    path = tmp_path / "x.dat"
    path.write_bytes(X.tobytes())
    with pytest.raises(FileFormatError, match=r"^x\.dat has shape \(515,\), not"):
        as_stream(np.memmap(path, np.float32, "r"))
    with pytest.raises(FileFormatError, match=r"^x\.dat holds complex numbers"):
        as_stream(np.memmap(path, np.complex64, "r", shape=(50, 5)))


def test_parquet_files(tmp_path):
    expected = table()
    for size in (103, 50, 7, 3, 10):  # rows of a group, beside ten of a part
        path = save(tmp_path / "x.parquet", expected, row_group_size=size)
        stream = as_stream(path)
        assert stream.sizes.max() <= 10
        found = frame(stream)
        pd.testing.assert_frame_equal(found, pd.read_parquet(path))
    assert stream.titles[:2] == ["x.parquet, rows 0 to 9", "x.parquet, rows 10 to 19"]
    assert not _scan_parquet._cursors


def test_small_row_groups_are_read_together(tmp_path):
    path = save(tmp_path / "x.parquet", table(), row_group_size=4)
    assert as_stream(path).sizes.tolist() == [8] * 12 + [7]


def test_large_row_groups_are_decoded_once_by_threads(tmp_path, monkeypatch):
    path = save(tmp_path / "x.parquet", table(1_000))
    opened, plain = [], _scan_parquet.Groups.batches
    monkeypatch.setattr(
        _scan_parquet.Groups, "batches", lambda self, n: opened.append(n) or plain(self, n)
    )
    stream = as_stream(path)
    with ThreadPoolExecutor(6) as pool:
        for times in (1, 2, 3):
            found = pd.concat(pool.map(lambda part: part.load(), stream.parts))
            assert found["b"].tolist() == [*range(1_000)]
            assert len(opened) == times
    backwards = [part.load()["b"].iloc[0] for part in reversed(stream.parts)]
    assert backwards == [*range(990, -1, -10)]


def test_reading_large_row_groups_leaves_less_room(tmp_path, monkeypatch):
    run, kept = Run(), np.zeros((4, 4))
    for size, is_kept in ((1_000, False), (10, True)):
        path = save(tmp_path / f"{size}.parquet", table(1_000), row_group_size=size)
        stream = as_stream(path)
        engine = stream.make_engine(run, 10_000)
        (column,) = engine.keep(lambda one: (kept, None), stream.parts[:1])[0]
        assert (column is kept) == is_kept
        engine.close()


def test_folders_of_parquet_files(tmp_path):
    whole, folder = table(), tmp_path / "big"
    (folder / "more").mkdir(parents=True)
    save(folder / "part-1.parquet", whole[30:60])
    save(folder / "part-0.parquet", whole[:30])
    save(folder / "more" / "a.parquet", whole[60:][["d", "c", "b", "a"]])  # in another order
    save(folder / "part-2.parquet", whole[:0])
    save(folder / "a.parquet", whole[:0][[*"dcba"]].astype({"c": object}))  # text as null
    (folder / "_SUCCESS").touch()
    save(folder / ".part-0.parquet", whole)
    save(folder / "_hidden.parquet", whole)
    stream = as_stream(folder)
    expected = pd.concat([whole[60:], whole[:60]], ignore_index=True)[["d", "c", "b", "a"]]
    pd.testing.assert_frame_equal(frame(stream), expected)
    assert stream.titles[0] == "more/a.parquet, rows 0 to 9"
    assert stream.titles[-1] == "part-1.parquet, rows 20 to 29"


def test_folders_that_name_values(tmp_path):
    whole = table()
    for value in ("x", "yy", "z"):
        (tmp_path / "big" / f"c={value}").mkdir(parents=True)
        part = whole[whole["c"] == value].drop(columns="c")
        save(tmp_path / "big" / f"c={value}" / "0.parquet", part, row_group_size=15)
    expected = whole.sort_values("c", kind="stable", ignore_index=True)
    found = frame(as_stream(tmp_path / "big"))
    pd.testing.assert_frame_equal(found[[*"abcd"]], expected, check_dtype=False)


def test_folders_that_cannot_be_used(tmp_path):
    folder, whole = tmp_path / "big", table()
    folder.mkdir()
    (folder / "rows.csv").write_text("a,b\n1,2")
    assert refusal(folder).startswith("big is a folder without Parquet files")
    save(folder / "0.parquet", whole)
    for other, told in (
        (whole.drop(columns="b"), "1.parquet has no column 'b', and 0.parquet has; make"),
        (whole.assign(e=1), "1.parquet has a column 'e', and 0.parquet has not; make"),
        (whole.assign(b=1.5), "1.parquet holds 'b' as double, and 0.parquet as int64; make"),
    ):
        save(folder / "1.parquet", other)
        assert refusal(folder).startswith(told)
    content = (folder / "0.parquet").read_bytes()
    for cut in (0, 10, len(content) // 2):
        (folder / "1.parquet").write_bytes(content[:cut])
        assert refusal(folder).startswith("1.parquet is no parquet file, or a damaged one: ")
    for name in ("0.parquet", "1.parquet"):
        save(folder / name, whole[:0])
    assert "no rows" in refusal(folder)


def test_damage_within_a_parquet_file_is_told_by_rows(tmp_path):
    path = save(tmp_path / "x.parquet", table(), row_group_size=10, compression="gzip")
    meta = pq.read_metadata(path).row_group(4).column(0)
    content = bytearray(path.read_bytes())
    first = meta.dictionary_page_offset or meta.data_page_offset
    content[first : first + meta.total_compressed_size] = b"\xff" * meta.total_compressed_size
    path.write_bytes(content)
    message = refusal(path)
    told = "x.parquet is a damaged parquet file: rows 40 to 49 cannot be read: "
    assert message.startswith(told), message


def test_kinds_of_columns_in_parquet(tmp_path):
    n = 25
    arrow = pa.table(
        {
            "decimal": pa.array([*range(n)]).cast(pa.decimal128(30, 2)),
            "day": pa.array([*range(n)], pa.int32()).cast(pa.date32()),
            "code": pa.array([*"abcde"] * 5).dictionary_encode(),
            "small": pa.array([*range(n)], pa.int8()),
            "gap": pa.array([None, True, False, True, None] * 5),
        }
    )
    pq.write_table(arrow, tmp_path / "x.parquet")
    found = frame(as_stream(tmp_path / "x.parquet"))
    assert found["decimal"].tolist() == [*map(float, range(n))]
    assert found["day"].dtype.kind == "M"
    assert found["small"].dtype == np.int8
    assert found["code"].tolist() == [*"abcde"] * 5
    assert found["gap"].isna().sum() == 10


def test_the_index_of_a_frame_is_no_column(tmp_path):
    path, whole = tmp_path / "x.parquet", table()
    for index in (pd.Index([f"r{i}" for i in range(103)]), pd.Index(range(3, 106), name="id")):
        whole.set_index(index).to_parquet(path)
        assert as_stream(path).names == [*"abcd"]


def test_some_columns(tmp_path):
    path = save(tmp_path / "x.parquet", table(), row_group_size=50)
    stream = open_stream(path, columns=["c", "a"])
    pd.testing.assert_frame_equal(frame(stream), pd.read_parquet(path)[["c", "a"]])
    with pytest.raises(FileFormatError, match=r"has no column called 'aa'.*did you mean 'a'"):
        open_stream(path, columns=["aa"])
    stream = open_stream(FILES / "csr.h5ad", columns=["LYZ", "CD3D"])
    assert stream.names == ["LYZ", "CD3D"]
    assert rows(stream)[:, 1].tolist() == [1, 3, 1, 2, 1, 1]
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(NamelessError, match=r"x\.npy has no column names"):
        open_stream(tmp_path / "x.npy", columns=["a"])
    (tmp_path / "x.txt").write_text("1 2")
    with pytest.raises(InputError, match=r"x\.txt cannot be read part by part"):
        open_stream(tmp_path / "x.txt")


def test_datasets(tmp_path):
    whole = table()
    for i in range(3):
        save(tmp_path / f"{i}.parquet", whole[i * 30 : i * 30 + 30], row_group_size=15)
    files = [str(tmp_path / f"{i}.parquet") for i in (2, 0, 1)]
    stream = as_stream(ds.dataset(files))
    expected = pd.concat([whole[60:90], whole[:60]], ignore_index=True)
    pd.testing.assert_frame_equal(frame(stream), expected, check_dtype=False)
    assert stream.titles[0] == "2.parquet, rows 0 to 9"
    memory = ds.dataset(pa.Table.from_pandas(whole))
    for _ in range(2):
        found = pd.concat([part.load() for part in as_stream(memory).parts], ignore_index=True)
        pd.testing.assert_frame_equal(found, whole, check_dtype=False)
    whole.to_csv(tmp_path / "x.csv", index=False)
    text = as_stream(ds.dataset(tmp_path / "x.csv", format="csv"))
    assert frame(text)["b"].tolist() == [*range(103)]
    wider = pa.schema([("a", pa.float64()), ("b", pa.float64())])
    found = frame(as_stream(ds.dataset(files, schema=wider)))
    assert found["b"].dtype == np.float64
    assert found["b"].tolist() == expected["b"].tolist()
    with pytest.raises(InputError, match="the dataset is filtered"):
        as_stream(ds.dataset(files).filter(ds.field("b") > 4))


def write_h5ad(path, values, kind="csr_matrix", **options):
    with h5py.File(path, "w") as file:
        for name, count in (("obs", values.shape[0]), ("var", values.shape[1])):
            group = file.create_group(name)
            group.attrs["_index"] = "_index"
            group["_index"] = [f"{name}{i}".encode() for i in range(count)]
        if not sparse.issparse(values):
            file.create_dataset("X", data=values, **options)
            return
        group = file.create_group("X")
        group.attrs["encoding-type"], group.attrs["shape"] = kind, values.shape
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(values, part)


def test_h5ad_files(tmp_path):
    path = tmp_path / "x.h5ad"
    thin = np.where(X > 0.5, X, 0)
    for values, options in (
        (X, {}),
        (X, {"chunks": (4, 5), "compression": "gzip"}),
        (sparse.csr_array(thin), {}),
    ):
        write_h5ad(path, values, **options)
        stream = as_stream(path)
        assert stream.names == [f"var{j}" for j in range(5)]
        np.testing.assert_array_equal(rows(stream), thin if sparse.issparse(values) else X)
        assert sparse.issparse(stream.parts[0].load()) == sparse.issparse(values)
        assert stream.sizes.max() == (8 if options else 10)
    for kind in ("dense", "csr"):
        stream = as_stream(FILES / f"{kind}.h5ad")
        assert stream.names == ["CD3D", "MS4A1", "NKG7", "LYZ"]
        assert rows(stream)[:, 0].tolist() == [1, 3, 1, 2, 1, 1]


def test_h5ad_files_that_cannot_be_used(tmp_path):
    path = tmp_path / "x.h5ad"
    message = refusal(FILES / "csc.h5ad")
    assert "csc.h5ad holds X as 'csc_matrix'" in message
    assert "adata.X.tocsr()" in message
    shutil.copy(FILES / "csr.h5ad", path)
    with h5py.File(path, "r+") as file:
        file["X/indices"][0] = 1_000_000  # which would crash
    message = refusal(path)
    assert message.startswith("x.h5ad is a damaged h5ad file: rows 0 to 5 cannot be read: ")
    with h5py.File(path, "r+") as file:
        del file["X"]
    assert "is an h5ad file without X" in refusal(path)
    content = (FILES / "csr.h5ad").read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert refusal(path).startswith("x.h5ad is no h5ad file, or a damaged one: ")
    write_h5ad(path, X[:0])
    assert "x.h5ad has no rows" in refusal(path)


def test_what_is_missing_can_be_installed(tmp_path, monkeypatch):
    parquet = save(tmp_path / "x.parquet", table())
    for path, library, packages in (
        (parquet, "pyarrow.dataset", "pandas pyarrow"),
        (tmp_path, "pandas", "pandas pyarrow"),
        (FILES / "dense.h5ad", "h5py", "h5py"),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, library, None)
            with pytest.raises(ImportError, match=f": pip install {packages}$"):
                as_stream(path)


def test_a_stream_is_swept_by_threads(tmp_path):
    np.save(tmp_path / "x.npy", X)
    stream = as_stream(tmp_path / "x.npy")
    with ThreadPoolExecutor(2) as pool:
        engine = stream.make_engine(Run(pool=pool), None)
        assert engine.sweep(np.count_nonzero, stream.parts) == X.size
        engine.close()


MEASURE = """
import resource, sys, numpy as np
from taxarbor.tables._stream import as_stream
source = sys.argv[1]
if source.endswith(".dat"):
    source = np.memmap(source, np.float32, "r", shape=(1_000_000, 32))
stream = as_stream(source)
stream.parts[0].load()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
total = sum(float(part.load().sum(dtype=np.float64)) for part in stream.parts)
assert total == 32_000_000.0, total
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted in other units")
def test_little_memory_is_used(tmp_path):
    """Far less than the 128 MB of the table."""
    np.save(tmp_path / "x.npy", np.ones((1_000_000, 32), np.float32))
    shutil.copy(tmp_path / "x.npy", tmp_path / "y.dat")
    os.truncate(tmp_path / "y.dat", 128_000_000)
    np.memmap(tmp_path / "y.dat", np.float32, "r+")[:] = 1.0
    for name in ("x.npy", "y.dat"):
        run = [sys.executable, "-c", MEASURE, str(tmp_path / name)]
        done = subprocess.run(run, check=True, capture_output=True, text=True)
        assert int(done.stdout) < 48


def test_a_damaged_note_of_pandas_says_nothing(tmp_path):
    table = pa.table({"a": np.arange(60.0) % 7, "b": np.arange(60.0) % 5})
    for name, note in (("no.pq", b"{"), ("bad.pq", b"\xff"), ("list.pq", b"[1]")):
        pq.write_table(table.replace_schema_metadata({b"pandas": note}), tmp_path / name)
        assert open_stream(tmp_path / name).names == ["a", "b"]
