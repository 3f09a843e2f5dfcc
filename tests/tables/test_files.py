import contextlib
import gzip
import io
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse
from scipy.io import mmwrite

from taxarbor._errors import FileFormatError, InputError
from taxarbor.tables import Table, TableEncoder, read_table

FILES = Path(__file__).parent / "files"
CELLS = np.array(
    [[1, 0, 0, 3], [3, 1, 1, 2], [1, 0, 2, 3], [2, 0, 2, 3], [1, 1, 1, 0], [1, 2, 1, 0]],
    dtype=np.float32,
)
GENES = ("CD3D", "MS4A1", "NKG7", "LYZ")
HOSTILE = ['a,"b"', "two\nlines", "<img src=x onerror=alert(1)>", "=1+1", "ü, é"]
FRAME = pd.DataFrame(
    {
        "height": [0.5, 1.5, 2.25],
        "legs": [2, 4, 6],
        "flies": [True, False, True],
        "name": ["owl", "fox", "ant"],
    }
)
EXPECTED = [[0.5, 2, 1], [1.5, 4, 0], [2.25, 6, 1]]


def read(content, **options) -> Table:
    """Return the table in bytes, or in a text."""
    stream = io.BytesIO(content.encode() if isinstance(content, str) else content)
    return read_table(stream, **options)


def refusal(content, **options) -> str:
    """Return what is said of a file that cannot be used: one line."""
    with pytest.raises(FileFormatError) as caught:
        read(content, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def is_float(text):
    try:
        return float(text) is not None
    except ValueError:
        return False


def dense(X):
    """Return a table's numbers as an array."""
    if isinstance(X, pd.DataFrame):
        return X.to_numpy(dtype=np.float64, na_value=np.nan)
    return X.toarray() if sparse.issparse(X) else X


def as_bytes(write, *args, **kwargs) -> bytes:
    stream = io.BytesIO()
    write(stream, *args, **kwargs)
    return stream.getvalue()


def npz(**arrays) -> bytes:
    return as_bytes(np.savez, **arrays)


def parquet(frame, **options) -> bytes:
    return as_bytes(lambda stream: frame.to_parquet(stream, **options))


def arrow(**columns) -> bytes:
    return as_bytes(lambda stream: pq.write_table(pa.table(columns), stream))


WRITTEN = {
    "csv": FRAME.to_csv(index=False).encode(),
    "tsv": FRAME.to_csv(index=False, sep="\t").encode(),
    "parquet": parquet(FRAME),
    "npy": as_bytes(np.save, np.array(EXPECTED)),
    "npz": npz(X=np.array(EXPECTED), feature_names=np.array(["height", "legs", "flies"])),
    "mtx": as_bytes(mmwrite, np.array(EXPECTED)),
}
SPARSE = {
    "npz": as_bytes(sparse.save_npz, sparse.csr_array(EXPECTED)),
    "mtx": as_bytes(mmwrite, sparse.coo_array(EXPECTED)),
}
WHOLE = WRITTEN | {kind: (FILES / f"{kind}.h5ad").read_bytes() for kind in ("dense", "csr")}


def test_each_format_by_its_name(tmp_path):
    for suffix, content in WRITTEN.items():
        path = tmp_path / f"data.{suffix.upper()}"
        path.write_bytes(content)
        for source in (path, str(path)):
            table = read_table(source)
            np.testing.assert_array_equal(dense(table.X), EXPECTED)
            named = None if suffix in {"npy", "mtx"} else ("height", "legs", "flies")
            assert table.feature_names == named
            assert (table.labels, table.dropped) == (None, ())
            if suffix in {"csv", "tsv", "parquet"}:
                assert [str(kind) for kind in table.X.dtypes] == ["float64", "int64", "bool"]
                assert table.row_names == ("owl", "fox", "ant")
                assert table.id_column == "name"
            else:
                assert table.X.dtype == np.float64
                assert table.X.flags.c_contiguous
                assert (table.row_names, table.id_column) == (None, None)


def test_what_is_sparse_stays_so(tmp_path):
    for suffix, content in SPARSE.items():
        (tmp_path / f"data.{suffix}").write_bytes(content)
        for X in (read_table(tmp_path / f"data.{suffix}").X, read(content).X):
            assert isinstance(X, sparse.csr_array)
            assert (X.dtype, X.nnz) == (np.float64, 8)
            np.testing.assert_array_equal(X.toarray(), EXPECTED)


def test_only_text_may_be_compressed(tmp_path):
    for suffix in ("csv", "tsv", "mtx"):
        path = tmp_path / f"data.{suffix}.gz"
        # At last as browsers leave it, unpacked under the old name.
        for content in (gzip.compress(WRITTEN[suffix]), WRITTEN[suffix]):
            path.write_bytes(content)
            np.testing.assert_array_equal(dense(read_table(path).X), EXPECTED)
    np.testing.assert_array_equal(dense(read(gzip.compress(WRITTEN["csv"])).X), EXPECTED)
    assert "decompress it first" in refusal(gzip.compress(WRITTEN["npy"]))


def test_the_first_bytes_tell_the_format(monkeypatch):
    for content in WHOLE.values():
        found = dense(read(content).X)
        np.testing.assert_array_equal(found, CELLS if found.shape == (6, 4) else EXPECTED)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        np.testing.assert_array_equal(dense(read_table("-").X), found)


def test_a_pipe_and_the_rest_of_a_stream(tmp_path):
    code = "from taxarbor.tables import read_table as read; print(read('-').X.values.tolist())"
    command = [sys.executable, "-c", code]
    run = subprocess.run(command, input=WRITTEN["parquet"], capture_output=True, check=True)
    assert json.loads(run.stdout.lower()) == EXPECTED
    stream = io.BytesIO(b"12345" + WRITTEN["npy"])
    stream.seek(5)
    np.testing.assert_array_equal(read_table(stream).X, EXPECTED)
    assert not stream.closed
    (tmp_path / "named.csv").write_bytes(b"a,b\n1,x\ninf,y\n")
    with (
        (tmp_path / "named.csv").open("rb") as file,
        pytest.raises(FileFormatError, match=r"^named\.csv has 1 infinite cell in 'a', first"),
    ):
        read_table(file)
    pipe = tmp_path / "63"  # as /dev/fd/63, which <(command) is in a shell
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[WRITTEN["tsv"]])
    writer.start()
    np.testing.assert_array_equal(read_table(pipe).X, EXPECTED)
    writer.join()


@given(
    X=hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 6), st.integers(1, 5)),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    ),
    data=st.data(),
)
def test_floats_survive_csv_and_parquet(X, data):
    names = st.text(
        st.characters(codec="utf-8", exclude_characters="\0\r", exclude_categories=["Cs"])
    ).filter(lambda name: name.strip() and name[0] != "\ufeff" and not is_float(name))
    columns = data.draw(st.lists(names, min_size=X.shape[1], max_size=X.shape[1], unique=True))
    frame = pd.DataFrame(X, columns=columns)
    for content in (frame.to_csv(index=False, quoting=1), parquet(frame)):
        table = read(content)
        assert table.feature_names == tuple(columns)
        np.testing.assert_array_equal(dense(table.X), X)
        again = read(content, columns=columns[::-1])
        np.testing.assert_array_equal(dense(again.X), X[:, ::-1])


def test_separators_and_marks_of_csv():
    for separator, bom in itertools.product((",", ";", "\t"), ("", "\ufeff")):
        table = read(bom + 'a,"b;;;c",d\n1,2,3\n'.replace(",", separator))
        assert table.feature_names == ("a", "b;;;c", "d")
        np.testing.assert_array_equal(table.X, [[1, 2, 3]])
    table = read("a;b;c\n1,5;1;x\n2,5;2,25;y,z\n")  # where commas may be decimal
    np.testing.assert_array_equal(dense(table.X), [[1.5, 1], [2.5, 2.25]])
    assert table.row_names == ("x", "y,z")


def test_a_first_line_of_numbers_is_no_header():
    for ending in ("\n", "\r\n", "\r"):
        table = read(ending.join(["1,2.5,-1e3", "4,5,6", ""]))
        assert table.feature_names is None
        np.testing.assert_array_equal(table.X, [[1, 2.5, -1000], [4, 5, 6]])
    assert read("1,\n2,").feature_names == ("1", "Unnamed: 1")
    assert read("1\n0\n1\n").X.shape == (3, 1)
    assert read("a,b\n1,2\n").notes == ()
    for header in ("0,2,3", "3,2,1", "1.0,2.0,3.0", "-1,0,1", "1,1,1", "0.5,1,2"):
        table = read(f"{header}\n7,8,9\n")
        assert table.feature_names is None
        assert len(table.X) == 2
        assert len(table.notes) == 1
    assert "no column has a name" in refusal("1,9\n3,4", columns=["a"])
    assert "no column has a name" in refusal("1,9\n3,4", label_column="a")


def test_names_may_be_hostile():
    frame = pd.DataFrame([[1.0, 2.0, 3.0, 4.0, 5.0]], columns=HOSTILE)
    for content in (frame.to_csv(index=False), parquet(frame)):
        assert read(content).feature_names == tuple(HOSTILE)
    frame.loc[0, "two\nlines"] = np.inf
    assert r"'two\nlines'" in refusal(frame.to_csv(index=False))
    for name in HOSTILE:
        assert repr(name) in refusal("a\n1", columns=[name])
        assert repr(name) in refusal("a\n1", id_column=name)


def test_columns_are_typed_alike_from_every_format():
    frame = pd.DataFrame(
        {
            "x": [1.0, None, 3.0, 4.0],
            "town": ["v", "u", "v", "u"],
            "sex": ["m", None, "m", "m"],
            "day": pd.to_datetime(["2024-01-01", None, "2024-03-01", "2024-03-01"]),
            "empty": [None] * 4,
            "count": [7, 7, 7, 9],
            "is_new": [True, False, True, True],
            "is_known": [True, None, False, True],
            "pay": ["10 %", "20 %", "10 %", None],
            "words": ["some", "other", "words", "here"],
            "more": ["and", "more", "of", "them"],
        }
    )
    expected = TableEncoder(date_features=["day"]).fit(frame.drop(columns=["words", "more"]))
    for content in (parquet(frame), frame.to_csv(index=False)):
        table = read(content, label_column="words")
        assert table.row_names == ("and", "more", "of", "them")
        encoder = TableEncoder(date_features=["day"]).fit(table.X)
        assert encoder.encoding_.columns == expected.encoding_.columns
        assert encoder.encoding_.dropped == expected.encoding_.dropped
    assert [name for name, _ in encoder.encoding_.dropped] == ["sex", "empty", "pay"]
    odd = read("a,c\n?, \n1,u\nN.A.,u\n2,u\n")
    np.testing.assert_array_equal(odd.X["a"], [np.nan, 1, np.nan, 2])  # words for no value
    mostly = [f"{row}" if row % 4 else f"PC {row}" for row in range(40)]
    assert read("a,b\n" + "".join(f"1,{cell}\n" for cell in mostly)).row_names is not None


def test_what_was_asked_for_is_used_or_refused():
    frame = FRAME.assign(film_id=[10, 12, 11], empty=None, day=pd.to_datetime("2024-01-01"))
    for content in (parquet(frame), frame.to_csv(index=False)):
        assert ("film_id" in read(content).X) is True  # the rows have better names
        table = read(content, columns=["film_id", "legs"])
        others = dict.fromkeys(
            ("height", "flies", "empty", "day"), "not among the requested columns"
        )
        assert table.dropped == tuple(others.items())
        encoded = TableEncoder().fit(table.X).encoding_
        assert [one.name for one in encoded.columns] == ["film_id", "legs"]
        for name, why in (("day", "dates"), ("empty", "empty")):
            with pytest.raises(ValueError, match=f"'{name}'.*: {why}"):
                TableEncoder().fit(read(content, columns=["legs", name]).X)


def test_one_column_names_the_rows():
    def names(**columns):
        frame = pd.DataFrame({"x": [3.0, 1.0, 3.0]} | columns)
        found = {read(one).row_names for one in (parquet(frame), frame.to_csv(index=False))}
        (only,) = found
        return only

    ids, words = [7, 4, 9], ["u", "v", "w"]
    assert names(name=words, movieId=ids) == ("u", "v", "w")
    for days in (["1/2/20", "3/4/21", "5/6/22"], ["Jun 12 1998", "may 1. 1999", "3 July 98"]):
        assert names(name=words, day=days) == ("u", "v", "w")
    assert names(movieId=ids) == names(**{"Film ID": ids}) == ("7", "4", "9")
    assert names(comment=words, customer_id=["c7", "c4", "c9"]) == ("c7", "c4", "c9")
    assert names(n=[1, 2, 3]) == ("1", "2", "3")  # which counts them
    assert names(year=[2018, 2019, 2020]) is None
    for columns in (
        *({"a": words, "b": words}, {"a_id": ids, "b_id": ids}, {"n": ids}),
        *({"a": ["u", None, "w"]}, {"a": [letter * 101 for letter in words]}),
    ):
        assert names(**columns) is None
    assert read("a\n1\n2\n3\n").X.shape == (3, 1)


def test_an_index_becomes_row_names():
    frame = FRAME.set_index(pd.Index(["007", "NA", "x"]))
    for content, index in (
        (parquet(frame), "__index_level_0__"),
        (frame.to_csv(), "Unnamed: 0"),
    ):
        table, other = read(content), read(content, id_column="name")
        assert table.row_names == ("007", "NA", "x")
        assert (index, "the index: used as row names") in table.dropped
        assert other.row_names == ("owl", "fox", "ant")
        assert (index, "the index") in other.dropped
        for found in (table, other):
            np.testing.assert_array_equal(dense(found.X[[*FRAME][:3]]), EXPECTED)
        assert read(content, id_column=index).row_names == ("007", "NA", "x")
    repeated = read(",a\n1,5\n1,7\n2,6\n")
    assert (repeated.feature_names, repeated.row_names) == (("Unnamed: 0", "a"), None)
    np.testing.assert_array_equal(repeated.X, [[1, 5], [1, 7], [2, 6]])
    asked = read("Unnamed: 0,a\n3,5\n1,6\n", columns=["Unnamed: 0"])
    np.testing.assert_array_equal(asked.X, [[3], [1]])


def test_lines_may_be_longer_than_the_header():
    table = read("a,b\nr1,1,2\nr2,3,4\n")  # as R writes row names
    assert (table.feature_names, table.row_names) == (("a", "b"), ("r1", "r2"))
    assert read("a,b\n1,2,\n3,4,\n").X["Unnamed: 2"].isna().all()
    assert "4 cells in line 2, and 2 columns" in refusal("a,b\n1,2,3,4\n")
    assert "3 cells in line 5, and 2 columns" in refusal('a,"b\nc"\n\n1,2\n1,2,3\n')
    assert "3 cells in line 3, and 2 columns" in refusal("a,b\n1\n1,2,3\n")
    assert "3 cells in line 2, and 2 columns" in refusal("1,9\n1,2,3\n")


def test_a_column_of_numbers_may_not_have_odd_texts():
    message = refusal('a,b\n1,"x\ny"\n\n2,z\n3 m,z\n4,z\n')
    assert "'a' except '3 m' in line 6" in message
    assert read("a,b,c\n1,1,2\n2,x,2\n3,y,3\n").feature_names == ("a", "c")
    assert read("a,b,c\n1,1,q\n2,x,q\n2,2,q\n", columns=["a"]).feature_names == ("a",)


def test_cells_may_be_missing_but_not_infinite():
    message = refusal('a,"b\nc",d\n1,2,x\n,2,x\n3,inf,x\n1,2,x\n')
    assert "1 infinite cell in 'b\\nc', first in line 5" in message
    assert "2 infinite cells in 'a', first in line 2" in refusal("a,b\n1e999,x\n-inf,y\n,z\n")
    assert "row 1, counted from 0" in refusal(arrow(a=[1.0, np.inf], b=[1, 2]))
    np.testing.assert_array_equal(read("a,b\n1,2\n3").X["b"], [2, np.nan])
    X = np.zeros((40, 30), dtype=np.float32)
    X[0] = np.nan
    for content in (as_bytes(np.save, X), as_bytes(sparse.save_npz, sparse.csc_array(X))):
        np.testing.assert_array_equal(dense(read(content).X), X)
    X[3:, 4:] = np.inf
    for content in (as_bytes(np.save, X), as_bytes(sparse.save_npz, sparse.csc_array(X))):
        message = refusal(content)
        assert "962 infinite cells" in message
        assert "row 3" in message


def test_large_values_are_finite_though_their_sum_is_not():
    X = np.full((3, 4), 3e38, dtype=np.float32)
    np.testing.assert_array_equal(read(as_bytes(np.save, X)).X, X)


def test_names_and_labels_are_read_to_the_letter():
    table = read("k,y,a\n007,NA,1\n,,2\n1.0,None,3\n", id_column="k", label_column="y")
    assert table.row_names == ("007", "", "1.0")
    assert table.labels.tolist() == ["NA", "", "None"]
    assert table.labels.dtype.kind == "U"
    assert table.feature_names == ("a",)
    assert table.dropped == ()
    columns = {"k": [7, None], "y": pa.array(["u", None]).dictionary_encode(), "a": [1, 2]}
    table = read(arrow(**columns), id_column="k", label_column="y")
    assert (table.row_names, table.labels.tolist()) == (("7", ""), ["u", ""])


def test_columns_that_are_not_there():
    for content in ("height,legs\n1,2", WRITTEN["parquet"], WRITTEN["npz"]):
        message = refusal(content, columns=["hieght", "zzz"])
        assert "'hieght', 'zzz'" in message
        assert "did you mean 'height'?" in message
        for asked in ({"id_column": "hight"}, {"label_column": "hight"}):
            assert "'hight'" in refusal(content, **asked)
    content = ",".join(f"c{j}" for j in range(30)) + "\n" + ",".join("x" * 30)
    assert "'c9' and 20 more" in refusal(content, columns=["nothing"])


def test_requests_that_make_no_sense():
    for options, name in (
        *(({"columns": []}, "columns"), ({"columns": ["a", "a"]}, "columns")),
        *(({"columns": ["a"], role: "a"}, "columns") for role in ("id_column", "label_column")),
        *(({"columns": "ab"}, "columns"), ({"format": "xlsx"}, "format")),
    ):
        with pytest.raises(InputError) as caught:
            read("a,b\n1,2", **options)
        assert caught.value.parameter == name
    with pytest.raises(TypeError, match="binary"):
        read_table(io.StringIO("a\n1"))


def test_names_may_not_repeat():
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    written = as_bytes(lambda stream: pq.write_table(table, stream))
    named = npz(X=np.eye(2), feature_names=np.array(["a", "a"]))
    for content in ("a,b,a\n1,2,3", named, written):
        assert "'a'" in refusal(content)


def test_there_must_be_something_to_use():
    assert "has no column to use" in refusal("y\n1\n", label_column="y")
    assert "standard" not in refusal("")
    for content in ("", "\n\n", "\ufeff"):
        assert "is empty" in refusal(content)
    for content in ("a,b\n", parquet(FRAME[:0]), as_bytes(np.save, np.empty((0, 3)))):
        assert "has no rows" in refusal(content)
    assert read("a\n1").X.shape == (1, 1)


def test_types_of_numbers():
    singles = {np.float32, np.float16, ">f4"}
    for dtype in (*singles, np.float64, np.int8, np.uint64, np.bool_, np.longdouble):
        kept = np.float32 if dtype in singles else np.float64
        X = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)
        contents = [as_bytes(np.save, X), as_bytes(np.save, np.asfortranarray(X)), npz(X=X)]
        if np.dtype(dtype).kind == "f" and np.dtype(dtype).itemsize in {4, 8}:
            contents.append(as_bytes(sparse.save_npz, sparse.csc_array(X.astype(kept))))
        if dtype not in {np.float16, ">f4", np.longdouble}:  # which parquet lacks, or did
            contents.append(arrow(a=X[:, 0], b=X[:, 1]))
        for content in contents:
            found = read(content).X
            if isinstance(found, pd.DataFrame):
                np.testing.assert_array_equal(dense(found), X)
                continue
            assert found.dtype == np.dtype(kept)
            assert found.dtype.isnative
            assert dense(found).flags.c_contiguous
            np.testing.assert_array_equal(dense(found), X.astype(kept))


def test_odd_numbers():
    decimals = pa.array([1, 2, 2]).cast(pa.decimal128(25, 2))
    coded = pa.array(["v", "u", "u"]).dictionary_encode()  # as pandas writes categories
    X = read(arrow(a=decimals, b=coded, c=[[1], [2], [2]])).X
    assert X["a"].tolist() == [1.0, 2.0, 2.0]
    kinds = [one.kind for one in TableEncoder().fit(X).encoding_.columns]
    assert kinds == ["number", "category"]
    large = read(f"a,b\n{'9' * 30},1\n1,2\n2,4\n").X
    assert TableEncoder(scale=None).fit_transform(large)[0, 0] == 1e30
    with pytest.raises(ValueError, match="a"):
        TableEncoder().fit(read(f"a,b\n{'9' * 400},1\n1,2\n").X)


def test_arrays_must_be_tables_of_numbers():
    objects = np.array([["a", 1]], dtype=object)
    for bad in (
        *(np.ones(5), np.ones((2, 2, 2)), np.zeros(2, dtype=[("a", float)]), objects),
        *(np.ones((2, 2), dtype=complex), np.array([["a"]]), np.zeros((1, 1), dtype="M8[s]")),
        *(np.empty((0, 3)), np.empty((3, 0))),
    ):
        assert refusal(as_bytes(np.save, bad))
        assert refusal(npz(X=bad))
    assert "complex" in refusal(as_bytes(mmwrite, np.ones((2, 2), dtype=complex)))
    for suffix in ("npy", "mtx"):
        assert "no column names" in refusal(WRITTEN[suffix], columns=["a"])
        assert refusal(WRITTEN[suffix], id_column="a")


def test_nothing_is_unpickled():
    objects = np.array([["a", 1]], dtype=object)
    assert "Python objects" in refusal(as_bytes(np.save, objects))
    assert "'X' as Python objects" in refusal(npz(X=objects))
    message = refusal(npz(X=np.eye(2), feature_names=np.array(["a", "b"], dtype=object)))
    assert "'feature_names' as Python objects" in message
    assert "astype(str)" in message


def test_npz_with_names_and_labels():
    arrays = {
        "X": np.eye(3, dtype=np.float32),
        "feature_names": np.array([b"a", b"b", b"c"]),
        "row_names": np.array(["u", "v", "w"]),
        "y": np.array([1, 0, 1]),
        "class_names": np.array(["no", "yes"]),
        "age": np.array([30.5, np.nan, 50]),
    }
    table = read(npz(**arrays), columns=["c", "a"])
    assert (table.feature_names, table.row_names) == (("c", "a"), ("u", "v", "w"))
    assert table.labels.tolist() == ["yes", "no", "yes"]
    np.testing.assert_array_equal(table.X, arrays["X"][:, [2, 0]])
    assert table.dropped == (("age", "an array beside the table"),)
    table = read(npz(**arrays), id_column="y", label_column="age")
    assert table.row_names == ("1", "0", "1")
    assert table.labels.tolist() == ["30.5", "", "50.0"]
    assert "must number them from 0 to 1" in refusal(npz(**arrays | {"y": np.array([0, 1, 2])}))
    for names in ("row_names", "feature_names"):
        assert "of shape (2,); expected (3,)" in refusal(npz(**arrays | {names: np.ones(2)}))
    odd = npz(**arrays | {"y": np.ones(2)})
    assert read(odd).labels is None
    assert "expected (3,)" in refusal(odd, id_column="y")


def test_npz_without_a_name_for_its_table():
    np.testing.assert_array_equal(read(npz(a=np.eye(2), b=np.ones(3))).X, np.eye(2))
    assert "'a', 'b'" in refusal(npz(a=np.eye(2), b=np.eye(2)))
    assert "its arrays: none" in refusal(as_bytes(np.savez))


def test_layouts_of_sparse_npz():
    for layout, kind in itertools.product(("csr", "csc", "coo", "bsr"), ("array", "matrix")):
        X = getattr(sparse, f"{layout}_{kind}")(CELLS)
        found = read(as_bytes(sparse.save_npz, X)).X
        assert isinstance(found, sparse.csr_array)
        assert found.has_canonical_format
        np.testing.assert_array_equal(found.toarray(), CELLS)
    X = sparse.csr_array(CELLS)
    X.indices[0] = 1_000_000  # which would crash
    assert "damaged" in refusal(as_bytes(sparse.save_npz, X))


def test_h5ad_files_of_anndata():
    for kind in ("dense", "csr", "csc"):
        path = FILES / f"{kind}.h5ad"
        table = read_table(path, label_column="cell_type")
        assert sparse.issparse(table.X) == (kind != "dense")
        assert table.X.dtype == np.float32
        np.testing.assert_array_equal(dense(table.X), CELLS)
        assert table.feature_names == GENES
        assert table.row_names == tuple(f"cell{i}" for i in range(6))
        assert table.labels.tolist() == ["T", "B", "T", "NK", "B", "T"]
        table = read_table(path, columns=["LYZ", "CD3D"], id_column="depth")
        np.testing.assert_array_equal(dense(table.X), CELLS[:, [3, 0]])
        assert table.row_names == ("1.5", "2.0", "3.0", "4.0", "5.0", "6.0")
        content = path.read_bytes()
        assert "did you mean 'LYZ'?" in refusal(content, columns=["LYZZ"])
        told = refusal(content, id_column="sort")
        assert "no column of obs called 'sort': it has 'batch'" in told


def changed(change, kind="csr") -> bytes:
    stream = io.BytesIO((FILES / f"{kind}.h5ad").read_bytes())
    with h5py.File(stream, "r+") as file:
        change(file)
    return stream.getvalue()


def replace(file, name, values):
    attrs = dict(file[name].attrs)
    del file[name]
    file[name] = values
    file[name].attrs.update(attrs)


def test_h5ad_columns_with_gaps_and_of_old():
    def change(file):
        file["obs/cell_type/codes"][0] = -1
        file.create_group("obs/may_lack").attrs["encoding-type"] = "nullable-integer"
        file["obs/may_lack/values"] = np.arange(6)
        file["obs/may_lack/mask"] = np.arange(6) > 3

    content = changed(change)

    def named(column):
        return read(content, id_column=column).row_names

    assert named("cell_type") == ("", "B", "T", "NK", "B", "T")
    assert named("may_lack") == ("0", "1", "2", "3", "", "")


def test_h5ad_genes_of_one_name_are_numbered():
    content = changed(lambda file: replace(file, "var/_index", [b"A", b"B", b"A", b"A-1"]))
    assert read(content).feature_names == ("A", "B", "A-2", "A-1")


DAMAGE = (
    lambda file: file.pop("X"),
    lambda file: file.pop("obs"),
    lambda file: file["var"].attrs.pop("_index"),
    lambda file: replace(file, "var/_index", [b"a", b"b", b"c"]),
    lambda file: replace(file, "obs/_index", [b"a"]),
    lambda file: file["X/indices"].write_direct(np.full(18, 99, np.int32)),
    lambda file: (file.pop("X/data"), file.create_group("X/data")),
    lambda file: file["X"].attrs.modify("encoding-type", "odd"),
    lambda file: replace(file, "obs/cell_type/codes", [9] * 6),
    lambda file: (file.pop("obs/_index"), file.create_group("obs/_index/codes")),
    lambda file: file.pop("obs/cell_type/codes"),
)


def test_h5ad_files_that_are_not_whole():
    for change in DAMAGE:
        assert refusal(changed(change), label_column="cell_type")


@pytest.mark.parametrize("content", ["npy", "parquet", "csr"])
def test_copies_of_streams_are_removed(content, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert len(dense(read(WHOLE[content]).X))
    assert refusal(WHOLE[content][:-50])
    assert not [*tmp_path.iterdir()]


def test_truncated_files_are_told_in_one_line(tmp_path):
    contents = [(name, WRITTEN[name]) for name in ("parquet", "npy", "npz")]
    contents += [("h5ad", WHOLE["dense"]), ("h5ad", WHOLE["csr"]), ("npz", SPARSE["npz"])]
    contents.append(("csv.gz", gzip.compress(WRITTEN["csv"] * 9)))
    for (suffix, content), share in itertools.product(contents, (0.3, 0.6, 0.95)):
        path = tmp_path / f"my data.{suffix}"
        path.write_bytes(content[: int(len(content) * share)])
        told = r"^my data\.\S+ is no .* damaged one: .+$"
        with pytest.raises(FileFormatError, match=told):
            read_table(path)


def test_files_of_another_kind(tmp_path):
    for suffix in ("parquet", "npy", "npz", "mtx", "h5ad"):
        assert f"is no {suffix} file" in refusal("a,b\n1,2\n", format=suffix)
    assert "damaged one: Truncated" in refusal(WRITTEN["mtx"][:-8])
    assert "damaged" in refusal(WRITTEN["npy"].replace(b"}", b"("))
    assert "a zero byte" in refusal(WRITTEN["mtx"].replace(b"2.25", b"2\x0025"))
    read(WRITTEN["mtx"][:-1] + b"x")  # SciPy alone crashes
    for content in ("a,b\n1,é\n".encode("latin-1"), "a,b\n1,2\n".encode("utf-16")):
        assert "UTF-8" in refusal(content, format="csv")
    assert "UTF-8" in refusal(b"a,b\n" + b"1,2\n" * 99_999 + b"\xff,2\n")
    for name in ("data.xyz", "data.xlsx"):
        (tmp_path / name).write_bytes(WRITTEN["npy"])
    for path, told in (
        (tmp_path / "data.xyz", r"format .* data\.xyz.* csv, "),
        (tmp_path / "data.xlsx", r"data\.xlsx is a spreadsheet.* as csv"),
        (tmp_path, "is a folder"),
        (".", r"^\. is a folder"),
    ):
        with pytest.raises(FileFormatError, match=told):
            read_table(path)
    np.testing.assert_array_equal(read_table(tmp_path / "data.xlsx", format="npy").X, EXPECTED)
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "nowhere.csv")


def test_missing_libraries_can_be_installed(monkeypatch):
    for content, library, packages in (
        ("csv", "pandas", "pandas"),
        ("parquet", "pyarrow.parquet", "pandas pyarrow"),
        ("dense", "h5py", "h5py"),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, library, None)
            with pytest.raises(ImportError, match=f": pip install {packages}$"):
                read(WHOLE[content])


def test_damaged_matrix_market_files_do_not_end_the_process(tmp_path):
    """SciPy's reader does, on some that it reads piece by piece."""
    rng = np.random.default_rng(0)
    path = tmp_path / "x.mtx"
    damaged = [WRITTEN["csv"], b"%%MatrixMarket", b"%", b"\n" * 99]
    for seed in (WRITTEN["mtx"], SPARSE["mtx"]):
        for _ in range(200):
            content = bytearray(seed)
            at = int(rng.integers(len(content)))
            content[at : at + int(rng.integers(4))] = rng.bytes(int(rng.integers(4)))
            damaged.append(bytes(content))
    for content in damaged:
        path.write_bytes(content)
        with contextlib.suppress(FileFormatError):
            assert read_table(path).X.ndim == 2


def test_a_large_array_is_loaded_once(tmp_path):
    X = np.full((20_000, 50), 3e37, dtype=np.float32)  # the sum is infinite: all are looked at
    np.save(tmp_path / "data.npy", X)
    tracemalloc.start()
    table = read_table(tmp_path / "data.npy")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert table.X.nbytes <= peak < 1.5 * table.X.nbytes


# csv


def test_a_first_line_that_counts_is_a_header():
    X = np.random.default_rng(0).normal(size=(5, 4))
    for with_index in (False, True):  # as pandas writes an array
        table = read(pd.DataFrame(X).to_csv(index=with_index))
        np.testing.assert_array_equal(dense(table.X), X)
        assert table.feature_names == ("0", "1", "2", "3")
    for header in ("0,1,2", "1,2,3", "2019,2020,2021", "1;2;3", '"1","2","3"'):
        separator = ";" if ";" in header else ","
        table = read(f"{header}\n7,8,9\n1,2,2\n".replace(",", separator))
        names = tuple(header.replace('"', "").split(separator))
        assert (table.feature_names, len(table.X)) == (names, 2)
        assert f"{names[0]}, {names[1]}, ..." in table.notes[0]


def why_dropped(cells, **options):
    frame = pd.DataFrame({"x": [0.5, 1.5, 2.5, 4.5] * len(cells), "y": cells * 4})
    X = read(frame.to_csv(index=False, **options)).X
    return dict(TableEncoder().fit(X).encoding_.dropped).get("y")


def test_formatted_numbers_are_no_text():
    for cells in (
        ["47,903.03", "1,200.00", "7,000,000.5"],
        ["$47903", "$12.50", "-$3"],
        ["2.7%", "10 %", "-3%"],
        ["1 200", "47 903,5", "1\u00a0200"],
        ["1'200", "47'903.50", "12'000'000"],
        ["12 EUR", "13,5 \u20ac", "+4 EUR"],
        ["2.7%"] * 18 + ["none", "3%"],
    ):
        assert "thousands separators" in why_dropped(cells), cells
    assert "thousands separators" in why_dropped(["47.903,03", "1.000.200,5"], sep=";")
    for cells in (
        *(["12.05.2024", "13.05.2024"], ["192.168.1.1", "10.0.0.1"], ["5 apples", "7 pears"]),
        *(["A-1", "B-2"], ["12,34,56", "1,2,3"], ["2.7%", "none", "few"]),
    ):
        assert why_dropped(cells) is None, cells
    with pytest.raises(ValueError, match="'pay'"):
        TableEncoder().fit(read("pay\n$1\n$2\n").X)
