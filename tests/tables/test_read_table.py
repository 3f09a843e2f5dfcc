import gzip
import io
import itertools
import os
import sys
import threading
import tracemalloc
import zipfile
from datetime import datetime, time
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.sax.saxutils import escape

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

from taxarbor._errors import FileFormatError, InputError
from taxarbor.tables import Table, TableEncoder, read_table

FILES = Path(__file__).parent / "files"
CELLS = np.array(
    [[1, 0, 0, 3], [3, 1, 1, 2], [1, 0, 2, 3], [2, 0, 2, 3], [1, 1, 1, 0], [1, 2, 1, 0]],
    dtype=np.float32,
)
GENES = ("CD3D", "MS4A1", "NKG7", "LYZ")
HOSTILE = ['a,"b"', "two\nlines", "<img src=x onerror=alert(1)>", "=1+1", "ü, é"]
FRAME = pd.DataFrame({
    "height": [0.5, 1.5, 2.25], "legs": [2, 4, 6], "flies": [True, False, True],
    "name": ["owl", "fox", "ant"],
})  # fmt: skip
EXPECTED = [[0.5, 2, 1], [1.5, 4, 0], [2.25, 6, 1]]


def read(content, format="csv", **options) -> Table:
    """Return the table in a text, or in the bytes of a file."""
    content = content.encode() if isinstance(content, str) else content
    if format in {"csv", "tsv", "txt"}:
        return read_table(io.BytesIO(content), format=format, **options)
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"data.{format}"
        path.write_bytes(content)
        return read_table(path, **options)


def refusal(content, format="csv", **options) -> str:
    """Return what is said of a file that cannot be used: one line."""
    with pytest.raises(FileFormatError) as caught:
        read(content, format, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


def kind_of(content) -> str:
    """Return csv for text, parquet for bytes."""
    return "csv" if isinstance(content, str) else "parquet"


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


def book(**sheets) -> bytes:
    """Return a workbook of some sheets; their cells are those of a frame or of lists."""
    stream = io.BytesIO()
    with pd.ExcelWriter(stream, engine="openpyxl") as writer:
        for name, sheet in sheets.items():
            header = isinstance(sheet, pd.DataFrame)
            pd.DataFrame(sheet).to_excel(writer, sheet_name=name, index=False, header=header)
    return stream.getvalue()


def archive(**contents) -> bytes:
    """Return a zip file of some files."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, content in contents.items():
            file.writestr(name, content)
    return stream.getvalue()


def open_document(rows) -> bytes:
    """Return an ods file with one sheet of these rows."""

    def write(cell):
        if pd.isna(cell) or cell == "":
            return "<table:table-cell/>"
        kind, text = "float", str(cell)
        if isinstance(cell, bool | np.bool_):
            kind, text = "boolean", text.lower()
        elif isinstance(cell, pd.Timestamp):
            kind, text = "date", cell.isoformat().removesuffix("T00:00:00")
        elif isinstance(cell, str):
            kind, text = "string", escape(cell)
        value = "value" if kind == "float" else f"{kind}-value"
        attributes = f'office:value-type="{kind}" office:{value}="{text}"'
        return f"<table:table-cell {attributes}><text:p>{text}</text:p></table:table-cell>"

    lines = ["".join(map(write, row)) for row in rows]
    body = "".join(f"<table:table-row>{line}</table:table-row>" for line in lines)
    names = "".join(
        f' xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"'
        for name in ("office", "table", "text")
    )
    content = (
        f"<office:document-content{names}><office:body><office:spreadsheet>"
        f'<table:table table:name="s">{body}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    mimetype = "application/vnd.oasis.opendocument.spreadsheet"
    others = {"META-INF/manifest.xml": "<manifest/>", "content.xml": content}
    return archive(mimetype=mimetype, **others)


WRITTEN = {
    "csv": FRAME.to_csv(index=False).encode(),
    "tsv": FRAME.to_csv(index=False, sep="\t").encode(),
    "parquet": parquet(FRAME),
    "npy": as_bytes(np.save, np.array(EXPECTED)),
    "npz": npz(X=np.array(EXPECTED), feature_names=np.array(["height", "legs", "flies"])),
}
SPARSE_NPZ = as_bytes(sparse.save_npz, sparse.csr_array(EXPECTED))
H5AD = {kind: (FILES / f"{kind}.h5ad").read_bytes() for kind in ("dense", "csr")}


def test_each_format_by_its_name(tmp_path):
    for suffix, content in WRITTEN.items():
        path = tmp_path / f"data.{suffix.upper()}"
        path.write_bytes(content)
        for source in (path, str(path)):
            table = read_table(source)
            np.testing.assert_array_equal(dense(table.X), EXPECTED)
            named = None if suffix == "npy" else ("height", "legs", "flies")
            assert table.feature_names == named
            assert table.labels is None
            if suffix in {"csv", "tsv", "parquet"}:
                assert [str(kind) for kind in table.X.dtypes] == ["float64", "int64", "bool"]
                assert table.row_names == ("owl", "fox", "ant")
                assert table.id_column == "name"
            else:
                assert table.X.dtype == np.float64
                assert table.X.flags.c_contiguous
                assert (table.row_names, table.id_column) == (None, None)


def test_only_text_may_be_compressed_or_come_from_a_stream(tmp_path):
    for suffix, content in WRITTEN.items():
        path = tmp_path / f"data.{suffix}.gz"
        path.write_bytes(gzip.compress(content))
        if suffix in {"csv", "tsv"}:
            np.testing.assert_array_equal(dense(read_table(path).X), EXPECTED)
            continue
        with pytest.raises(InputError):
            read_table(path)
        with pytest.raises(InputError) as caught:
            read_table(io.BytesIO(content), format=suffix)
        assert caught.value.parameter == "format"


def test_the_same_table_from_every_format(tmp_path):
    frame = pd.DataFrame({
        "x": [1.0, None, 3.5], "n": [7, 9, 7], "town": ["v", None, "v"],
        "day": pd.to_datetime(["2024-01-01", None, "2024-03-01"]),
        "is_new": [True, False, True], "is_known": pd.array([True, None, False], dtype=object),
        "code": ["c1", "c2", "c3"], "label": ["7", "é", ""],
    })  # fmt: skip
    records = frame.assign(day=frame["day"].dt.strftime("%Y-%m-%d"))
    text = frame.to_csv(index=False).encode()
    contents = {
        **{"csv": text, "csv.gz": gzip.compress(text), "tsv": text.replace(b",", b"\t")},
        **{"xlsx": book(s=frame), "xls": book(s=frame)},
        "ods": open_document([[*frame], *frame.to_numpy(object)]),
        "json": records.to_json(orient="records").encode(),
        "ndjson": records.to_json(orient="records", lines=True).encode(),
        "columns.json": records.to_json().encode(),
        "feather": as_bytes(frame.to_feather),
        "orc": as_bytes(frame.to_orc),
        "parquet": parquet(frame),
    }
    parts = {"__MACOSX/._t.csv": "x", "folder/t.xlsx": contents["xlsx"], "readme.md": "x"}
    for suffix, content in (contents | {"zip": archive(**parts)}).items():
        path = tmp_path / f"t.{suffix}"
        path.write_bytes(content)
        table = read_table(path, label_column="label")
        assert (table.row_names, table.labels.tolist()) == (("c1", "c2", "c3"), ["7", "é", ""])
        assert table.notes == ()
        X = table.X.assign(day=pd.to_datetime(table.X["day"]).astype("M8[ns]"))
        pd.testing.assert_frame_equal(
            X.astype(object).where(X.notna(), None),
            frame.iloc[:, :6].astype({"day": "M8[ns]"}).astype(object).where(X.notna(), None),
        )
        chosen = read_table(path, columns=["n", "x"], id_column="town")
        assert chosen.feature_names == ("n", "x")
        assert chosen.row_names == ("v", "", "v")
        assert read_table(path, features=["code"], label_column="label").row_names is None


def test_archives_must_hold_one_table():
    for names, told in ((["a.csv", "b.json"], "'a.csv', 'b.json'"), (["a.md"], "no table")):
        content = archive(**dict.fromkeys(names, "a,b\n1,2\n"))
        assert told in refusal(content, "zip")


def test_encodings_of_text():
    content = "a,b\n1,é\n2,ü\n"
    for encoding, note in (
        *(("utf-8", None), ("utf-8-sig", None), ("utf-16", None)),
        *(("cp1252", "cp1252"), ("latin-1", "cp1252")),
    ):
        table = read(content.encode(encoding))
        assert (table.feature_names, table.row_names) == (("a",), ("é", "ü"))
        assert len(table.notes) == (note is not None)
        assert note is None or note in table.notes[0]
    late = b"a,b\n" + b"1,2\n" * 99_999 + b"\x81,2\n"  # which cp1252 lacks
    assert "latin-1" in read(late).notes[0]


def test_titles_above_the_header_are_skipped():
    rows = [["a", "b", "2019"], ["u", "v", 1], ["u", "w", 2], ["t", "x", 3]]
    body = "".join(f"{','.join(map(str, row))}\n" for row in rows)
    padded = [["Sales", "", ""], ["", "", ""], ["of 2019", "", ""], *rows]
    for content, format in (
        *((f"Sales\n\nof 2019\n{body}", "csv"), (f"Sales,,\n,,\nof 2019,,\n{body}", "csv")),
        *((book(s=padded), "xlsx"), (open_document(padded), "ods")),
    ):
        table = read(content, format)
        assert (table.feature_names, len(table.X)) == (("a", "2019"), 3)
        assert table.notes == ("2 lines above the header skipped; the first is 'Sales'",)
    for content in (",x\nr,5\ns,6\n", "x\nr,5\ns,6\n", "x,\n1,2\n3,4\n", "x,,\nu,2,3\nv,2,4\n"):
        table = read(content)
        assert (len(table.X), table.notes) == (2, ())
        assert "x" in (table.id_column, table.feature_names[0])


def test_titles_may_have_several_cells():
    rows = [["a", "b", "c", "d"], ["u", "v", 1, 2], ["u", "w", 3, 3], ["t", "v", 3, 3]]
    body = "".join(f"{','.join(map(str, row))}\n" for row in rows)
    padded = [["Source", "Eurostat", "", ""], *rows]
    contents = [(f"Source,Eurostat{end}\n{body}", "csv") for end in ("", ",,", "\n2020")]
    for content, format in (*contents, (book(s=padded), "xlsx")):
        table = read(content, format)
        assert (table.feature_names, len(table.X)) == (("a", "b", "c", "d"), 3)
        assert "'Source, Eurostat'" in table.notes[0]
    table = read("Report, made by X\na;b\n1;2\n3;4\n")
    assert (table.feature_names, len(table.X)) == (("a", "b"), 2)
    for body in ("r,u,NA\ns,v,3\nt,v,4\n", "r,u,v\ns,v,w\nt,v,v\n"):  # row names, of R
        assert read(f"a,b\n{body}").feature_names == ("a", "b")


def test_sheets_and_types_of_their_cells():
    mixed = [[*"adte"], [1, datetime(2024, 1, 2), time(12, 30), 1], ["u", "x", None, 2.5]]
    content = book(first=[], second=mixed, third=FRAME)
    table = read(content, "xlsx")
    assert table.X.iloc[0].tolist() == ["1", "2024-01-02", "12:30:00", 1.0]
    assert table.X["a"].tolist() == ["1", "u"]
    assert "'second'" in table.notes[0]
    assert "'third'" in table.notes[0]
    for sheet in ("third", 2):
        table = read(content, "xlsx", sheet=sheet)
        assert (table.row_names, table.notes) == (("owl", "fox", "ant"), ())
        np.testing.assert_array_equal(dense(table.X), EXPECTED)
    for sheet in ("fourth", 3):
        with pytest.raises(InputError) as caught:
            read(content, "xlsx", sheet=sheet)
        assert caught.value.parameter == "sheet"
    lines = read('{"a": 1, "b": 2}\n\n{"a": 3, "b": 5}\n', "json")
    assert lines.X.to_dict("list") == {"a": [1, 3], "b": [2, 5]}
    nested = '{"data": [{"a": {"b": 1}, "v": [1, 2]}, {"a": {"b": 2}, "v": [3, 4]}]}'
    assert read(nested, "json").X.to_dict("list") == {"a.b": [1, 2], "v": [[1, 2], [3, 4]]}


def test_pipes_and_the_rest_of_a_stream(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WRITTEN["csv"])))
    np.testing.assert_array_equal(read_table("-").X, EXPECTED)
    stream = io.BytesIO(b"12345" + WRITTEN["csv"])
    stream.seek(5)
    np.testing.assert_array_equal(read_table(stream).X, EXPECTED)
    assert not stream.closed
    pipe = tmp_path / "63"  # as /dev/fd/63, which <(command) is in a shell
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[WRITTEN["tsv"]])
    writer.start()
    np.testing.assert_array_equal(read_table(pipe, format="tsv").X, EXPECTED)
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
    ).filter(lambda name: name.strip("\ufeff").strip() == name != "" and not is_float(name))
    columns = data.draw(st.lists(names, min_size=X.shape[1], max_size=X.shape[1], unique=True))
    frame = pd.DataFrame(X, columns=columns)
    for content in (frame.to_csv(index=False, quoting=1), parquet(frame)):
        table = read(content, kind_of(content))
        assert table.feature_names == tuple(columns)
        np.testing.assert_array_equal(dense(table.X), X)
        again = read(content, kind_of(content), columns=columns[::-1])
        np.testing.assert_array_equal(dense(again.X), X[:, ::-1])


def test_separators_and_marks_of_csv():
    for separator, bom in itertools.product((",", ";", "\t"), ("", "\ufeff")):
        table = read(bom + 'a,"b;;;c",d\n1,2,3\n'.replace(",", separator))
        assert table.feature_names == ("a", "b;;;c", "d")
        np.testing.assert_array_equal(table.X, [[1, 2, 3]])
    table = read("a;b;c\n1,5;1;x\n2,5;2,25;y,z\n", columns=["a", "b"])
    assert table.X.to_numpy().tolist() == [["1,5", "1"], ["2,5", "2,25"]]  # as in the file
    assert "a semicolon" in table.notes[0]
    assert read("1,5;2,5\n3,5;4,5\n").X.shape == (2, 2)
    assert read("a|b\n1|2\n", "txt").notes == ()
    assert "a comma" in read("a,b\n1,2\n", "tsv").notes[0]
    assert read('a; b;"c "\n1;2;3\n').feature_names == ("a", "b", "c")
    for mark, names in itertools.product(("sep=;", '"SEP=;"'), ("a;b,c\n", "")):
        table = read(f"{mark}\r\n{names}1;2\n3;4\n")
        assert table.X.to_numpy().tolist() == [[1, 2], [3, 4]]
        assert "above" not in "".join(table.notes)


def test_dots_are_thousands_beside_decimal_commas():
    for first in ("950", "-1.050"):
        lines = ["sales;price;share", f"{first};12,50;0.125", "12.400;9,90;0.5", "1.000.000;;1"]
        for n_lines in (3, 4):
            table = read("\n".join(lines[:n_lines]))
            sales = (
                TableEncoder().fit(pd.concat([table.X] * 30)).columns_.read(table.X).data[:2, 0]
            )
            np.testing.assert_array_equal(sales, [int(first.replace(".", "")), 12_400])
            assert table.X["share"][0] == 0.125
    assert any("sales" in note for note in read("\n".join(lines[:3])).notes)
    plain = read("a;b\n1.250;x\n2.500;y\n")
    assert plain.X["a"].tolist() == [1.25, 2.5]


def test_a_first_line_of_numbers_is_no_header():
    for ending in ("\n", "\r\n", "\r"):
        table = read(ending.join(["1,2.5,-1e3", "4,5,6", ""]))
        assert table.feature_names is None
        np.testing.assert_array_equal(table.X, [[1, 2.5, -1000], [4, 5, 6]])
    assert read("1,\n2,").feature_names == ("1",)
    assert read("1\n0\n1\n").X.shape == (3, 1)
    assert read("a,b\n1,2\n").notes == ()
    for header in ("0,1,2", "3,2,1", "1.0,2.0,3.0", "-1,0,1", "1,1,1", "0.5,1,2"):
        table = read(f"{header}\n7,8,9\n")
        assert table.feature_names is None
        assert len(table.X) == 2
        assert len(table.notes) == 1
    flowers = read("5.1,3.5,setosa\n4.9,3,setosa\n7,3.2,virginica\n")
    assert (flowers.X.shape, flowers.feature_names, len(flowers.notes)) == ((3, 3), None, 1)
    assert read("a,2019,2020\nb,1,2\nb,3,4\n").feature_names == ("a", "2019", "2020")
    assert "no column has a name" in refusal("1,9\n3,4", columns=["a"])
    assert "no column has a name" in refusal("1,9\n3,4", label_column="a")


def test_names_may_be_hostile():
    frame = pd.DataFrame([[1.0, 2.0, 3.0, 4.0, 5.0]], columns=HOSTILE)
    for content in (frame.to_csv(index=False), parquet(frame)):
        assert read(content, kind_of(content)).feature_names == tuple(HOSTILE)
    for name in HOSTILE:
        assert repr(name) in refusal("a\n1", columns=[name])
        assert repr(name) in refusal("a\n1", id_column=name)


def test_columns_are_typed_alike_from_every_format():
    frame = pd.DataFrame({
        "x": [1.0, None, 3.0, 4.0], "town": ["v", "u", "v", "u"], "sex": ["m", None, "m", "m"],
        "day": pd.to_datetime(["2024-01-01", None, "2024-03-01", "2024-03-01"]),
        "empty": [None] * 4, "count": [7, 7, 7, 9],
        "is_new": [True, False, True, True], "is_known": [True, None, False, True],
        "words": ["some", "other", "words", "here"], "more": ["and", "more", "of", "them"],
    })  # fmt: skip
    expected = TableEncoder(date_features=["day"]).fit(frame.drop(columns=["words", "more"]))
    for content in (parquet(frame), frame.to_csv(index=False)):
        table = read(content, kind_of(content), label_column="words")
        assert table.row_names == ("and", "more", "of", "them")
        encoder = TableEncoder(date_features=["day"]).fit(table.X)
        assert [*encoder.columns_] == [*expected.columns_]
        assert encoder.columns_.dropped == expected.columns_.dropped
    assert [name for name, _ in encoder.columns_.dropped] == ["sex", "empty"]
    mostly = [f"{row}" if row % 4 else f"PC {row}" for row in range(40)]
    assert read("a,b\n" + "".join(f"1,{cell}\n" for cell in mostly)).row_names is not None


def test_requested_columns_are_read_in_their_order():
    frame = FRAME.assign(film_id=[10, 12, 11])
    for content in (parquet(frame), frame.to_csv(index=False)):
        assert "film_id" in read(content, kind_of(content)).X  # the rows have better names
        table = read(content, kind_of(content), columns=["film_id", "name"])
        assert [*table.X] == ["film_id", "name"]
        assert table.row_names is None


def test_one_column_names_the_rows():
    def names(**columns):
        frame = pd.DataFrame({"x": [3.0, 1.0, 3.0]} | columns)
        contents = (parquet(frame), frame.to_csv(index=False))
        (found,) = {read(one, kind_of(one)).row_names for one in contents}
        return found

    ids, words = [7, 4, 9], ["u", "v", "w"]
    assert names(name=words, movieId=ids) == ("u", "v", "w")
    for values in (
        *("1/2/20|3/4/21|5/6/22", "$1,200|$ 3.50|-", "Rs. 5|Rs. 7|Rs. 1"),
        *("USD 2,132.06|USD 7|USD 9.5", "CHF 1'234.5|CHF 1|CHF 2", "771.8 km|3 km|12"),
        *("2011Q1|2011 Q2|2011-Q3", "101:02:00|1:2|3:4"),
    ):
        assert names(name=words, value=values.split("|")) == ("u", "v", "w")
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
        kind = kind_of(content)
        table, other = read(content, kind), read(content, kind, id_column="name")
        assert table.row_names == ("007", "NA", "x")
        assert other.row_names == ("owl", "fox", "ant")
        for found in (table, other):
            np.testing.assert_array_equal(dense(found.X[[*FRAME][:3]]), EXPECTED)
        assert read(content, kind, id_column=index).row_names == ("007", "NA", "x")
    asked = read("Unnamed: 0,a\n3,5\n1,6\n", columns=["Unnamed: 0"])
    np.testing.assert_array_equal(asked.X, [[3], [1]])


def test_lines_may_be_longer_than_the_header():
    table = read("a,b\nr1,1,2\nr2,3,4\n")  # as R writes row names
    assert (table.feature_names, table.row_names) == (("a", "b"), ("r1", "r2"))
    for content in ("a,b\n1,2,\n3,4,\n", "a,b,\n1,2,\n3,4,\n"):
        table = read(content)
        assert (table.feature_names, table.row_names, table.notes) == (("a", "b"), None, ())
    assert read("a,b\nr1,1,\nr2,3,4\n").row_names == ("r1", "r2")
    assert "4 cells in most rows, and 2 columns" in refusal("a,b\n1,2,3,4\n")
    assert "3 cells in most rows, and 2 columns" in refusal("1,9\n1,2,3\n")


def test_surplus_cells_of_a_line_are_ignored_and_noted():
    lines = ["1,2,3\n"] * 40
    for at, line in ((0, "1,2,3,7\n"), (0, "1,2,3,7,8\n"), (0, "1,2,3,\n"), (30, "1,2,3,x\n")):
        table = read("".join(["a,b,c\n", *lines[:at], line, *lines[at:], "4,5\n"]))
        assert table.X.iloc[:-1].drop_duplicates().to_numpy().tolist() == [[1, 2, 3]]
        short, surplus = table.notes
        assert short.startswith("1 line has too few cells, first line 43;")
        assert surplus.startswith(f"1 line has too many cells, first line {at + 2};")


def test_short_lines_are_filled_and_noted():
    table = read("a,b,c\n1,2,3\n4,5\n\n6\n7,8,\n")
    assert table.X["c"].isna().tolist() == [False, True, True, True]
    assert table.notes[0].startswith("2 lines have too few cells, first line 3;")
    assert read("k,a,b\nu,1\nv,2\n", id_column="k").row_names == ("u", "v")


def test_texts_among_numbers_stay_as_they_are():
    contents = {
        '1,"x\ny"\n': ("\n02,z\n3 m,z\n,z\n", ["1", "02", "3 m", None]),
        "1.50,y\n": ("True,z\n?,z\nNA,z\n", ["1.50", "True", "?", None]),
        "1,y\n": (",z\n2.5,z\n3,z\n", [1.0, None, 2.5, 3.0]),
        "TRUE,y\n": (",z\nfalse,z\ntrue,z\n", [True, None, False, True]),
        ",y\n": ("u,z\nu,z\n,z\n", [None, "u", "u", None]),
    }
    for n_repeats in (1, 600_000):  # pandas parses long texts in parts
        for line, (rest, expected) in contents.items():
            cells = read(f"a,b\n{line * n_repeats}{rest}").X["a"][n_repeats - 1 :]
            assert cells.astype(object).where(cells.notna(), None).tolist() == expected
    assert read("a,b\n007,1\n008,2\nNA,3\n", id_column="a").row_names[2] == "NA"


def test_cells_may_be_missing_or_large():
    np.testing.assert_array_equal(read("a,b\n1,2\n3").X["b"], [2, np.nan])
    X = np.full((40, 30), 3e38, dtype=np.float32)
    X[0] = np.nan
    for format, content in (
        ("npy", as_bytes(np.save, X)),
        ("npz", as_bytes(sparse.save_npz, sparse.csc_array(X))),
    ):
        np.testing.assert_array_equal(dense(read(content, format).X), X)


def test_names_and_labels_are_read_to_the_letter():
    table = read("k,y,a\n007,NA,1\n,,2\n1.0,None,3\n", id_column="k", label_column="y")
    assert table.row_names == ("007", "", "1.0")
    assert table.labels.tolist() == ["NA", "", "None"]
    assert table.labels.dtype.kind == "U"
    assert table.feature_names == ("a",)
    columns = {"k": [7, None], "y": pa.array(["u", None]).dictionary_encode(), "a": [1, 2]}
    table = read(arrow(**columns), "parquet", id_column="k", label_column="y")
    assert (table.row_names, table.labels.tolist()) == (("7", ""), ["u", ""])


def test_columns_that_are_not_there():
    for format in ("csv", "parquet", "npz"):
        content = WRITTEN[format]
        message = refusal(content, format, columns=["hieght", "zzz"])
        assert "'hieght', 'zzz'" in message
        assert "did you mean 'height'?" in message
        for asked in ({"id_column": "hight"}, {"label_column": "hight"}):
            assert "'hight'" in refusal(content, format, **asked)
    content = ",".join(f"c{j}" for j in range(30)) + "\n" + ",".join("x" * 30)
    assert "'c9' and 20 more" in refusal(content, columns=["nothing"])


def test_requests_that_make_no_sense():
    for options, name in (
        *(({"columns": []}, "columns"), ({"columns": ["a", "a"]}, "columns")),
        *(({"columns": ["a"], role: "a"}, "columns") for role in ("id_column", "label_column")),
        *(({"columns": "ab"}, "columns"), ({"format": "xyz"}, "format")),
        *(({"sheet": 0}, "sheet"), ({"format": "zip"}, "format")),
    ):
        with pytest.raises(InputError) as caught:
            read_table(io.BytesIO(b"a,b\n1,2"), **options)
        assert caught.value.parameter == name
    with pytest.raises(TypeError, match="binary"):
        read_table(io.StringIO("a\n1"))


def test_names_may_not_repeat():
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    written = as_bytes(lambda stream: pq.write_table(table, stream))
    named = npz(X=np.eye(2), feature_names=np.array(["a", "a"]))
    repeated = read("a,b,a,a_2,a\n1,2,3,4,5")
    assert repeated.feature_names == ("a", "b", "a_3", "a_2", "a_4")
    assert "'a_3', 'a_4'" in repeated.notes[0]
    assert "'a'" in refusal(named, "npz")
    assert "'a'" in refusal(written, "parquet")


def test_there_must_be_something_to_use():
    assert "has no column to use" in refusal("y\n1\n", label_column="y")
    for content in ("", "\n\n", "\ufeff"):
        assert "is empty" in refusal(content)
    assert "has no rows" in refusal("a,b\n")
    assert "has no rows" in refusal(parquet(FRAME[:0]), "parquet")
    assert read("a\n1").X.shape == (1, 1)


def test_types_of_numbers():
    singles = {np.float32, np.float16, ">f4"}
    for dtype in (*singles, np.float64, np.int8, np.uint64, np.bool_, np.longdouble):
        kept = np.float32 if dtype in singles else np.float64
        X = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)
        contents = [("npy", as_bytes(np.save, X)), ("npz", npz(X=X))]
        contents.append(("npy", as_bytes(np.save, np.asfortranarray(X))))
        if np.dtype(dtype).kind == "f" and np.dtype(dtype).itemsize in {4, 8}:
            csc = sparse.csc_array(X.astype(kept))
            contents.append(("npz", as_bytes(sparse.save_npz, csc)))
        if dtype not in {np.float16, ">f4", np.longdouble}:  # which parquet lacks, or did
            contents.append(("parquet", arrow(a=X[:, 0], b=X[:, 1])))
        for format, content in contents:
            found = read(content, format).X
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
    X = read(arrow(a=decimals, b=coded, c=[[1], [2], [2]]), "parquet").X
    assert X["a"].tolist() == [1.0, 2.0, 2.0]
    assert [one.kind for one in TableEncoder().fit(X).columns_] == ["number", "category"]
    large = read(f"a,b\n{'9' * 30},1\n1,2\n1,4\n").X
    assert TableEncoder(scale=None).fit_transform(large)[0, 0] == 1e30
    with pytest.raises(ValueError, match="a"):
        TableEncoder().fit(read("a,b\ninf,1\n1,2\n").X)


def test_arrays_must_be_tables_of_numbers():
    for bad in (
        *(np.ones(5), np.ones((2, 2, 2)), np.zeros(2, dtype=[("a", float)])),
        *(np.ones((2, 2), dtype=complex), np.array([["a"]]), np.zeros((1, 1), dtype="M8[s]")),
        *(np.empty((0, 3)), np.empty((3, 0))),
    ):
        assert refusal(as_bytes(np.save, bad), "npy")
        assert refusal(npz(X=bad), "npz")
    for options in ({"columns": ["a"]}, {"id_column": "a"}):
        assert refusal(WRITTEN["npy"], "npy", **options)


def test_nothing_is_unpickled():
    objects = np.array([["a", 1]], dtype=object)
    assert "Python objects" in refusal(as_bytes(np.save, objects), "npy")
    assert "Python objects" in refusal(npz(X=objects), "npz")
    assert "dtype=str" in refusal(npz(X=np.eye(2), feature_names=objects[0]), "npz")


def test_npz_with_names_and_labels():
    arrays = {
        "X": np.eye(3, dtype=np.float32),
        "feature_names": np.array([b"a", b"b", b"c"]),
        "row_names": np.array(["u", "v", "w"]),
        "y": np.array([1, 0, 1]),
        "class_names": np.array(["no", "yes"]),
        "age": np.array([30.5, np.nan, 50]),
    }
    table = read(npz(**arrays), "npz", columns=["c", "a"], label_column="y")
    assert (table.feature_names, table.row_names) == (("c", "a"), ("u", "v", "w"))
    assert table.labels.tolist() == ["yes", "no", "yes"]
    np.testing.assert_array_equal(table.X, arrays["X"][:, [2, 0]])
    table = read(npz(**arrays), "npz", id_column="y", label_column="age")
    assert table.row_names == ("1", "0", "1")
    assert table.labels.tolist() == ["30.5", "", "50.0"]
    assert read(npz(**arrays), "npz").labels is None
    assert refusal(npz(**arrays | {"y": np.array([0, 1, 2])}), "npz", label_column="y")
    for names in ("row_names", "feature_names"):
        assert f"2 values in {names!r}" in refusal(npz(**arrays | {names: np.ones(2)}), "npz")


def test_npz_without_a_name_for_its_table():
    np.testing.assert_array_equal(read(npz(a=np.eye(2), b=np.ones(3)), "npz").X, np.eye(2))
    assert "'a', 'b'" in refusal(npz(a=np.eye(2), b=np.eye(2)), "npz")
    assert refusal(as_bytes(np.savez), "npz")


def test_layouts_of_sparse_npz():
    for layout, kind in itertools.product(("csr", "csc", "coo", "bsr"), ("array", "matrix")):
        X = getattr(sparse, f"{layout}_{kind}")(CELLS)
        found = read(as_bytes(sparse.save_npz, X), "npz").X
        assert isinstance(found, sparse.csr_array)
        assert found.has_canonical_format
        np.testing.assert_array_equal(found.toarray(), CELLS)
    X = sparse.csr_array(CELLS)
    X.indices[0] = 1_000_000  # which would crash
    assert "damaged" in refusal(as_bytes(sparse.save_npz, X), "npz")


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
        assert "did you mean 'LYZ'?" in refusal(content, "h5ad", columns=["LYZZ"])
        told = refusal(content, "h5ad", id_column="sort")
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

    for column, names in (("cell_type", "|B|T|NK|B|T"), ("may_lack", "0|1|2|3||")):
        table = read(changed(change), "h5ad", id_column=column)
        assert table.row_names == tuple(names.split("|"))
    # Genes of one name are numbered.
    content = changed(lambda file: replace(file, "var/_index", [b"A", b"B", b"A", b"A-1"]))
    assert read(content, "h5ad").feature_names == ("A", "B", "A-2", "A-1")


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
        assert refusal(changed(change), "h5ad", label_column="cell_type")


def test_truncated_files_are_told_in_one_line(tmp_path):
    contents = [(name, WRITTEN[name]) for name in ("parquet", "npy", "npz")]
    contents += [("h5ad", content) for content in H5AD.values()] + [("npz", SPARSE_NPZ)]
    contents.append(("csv.gz", gzip.compress(WRITTEN["csv"] * 9)))
    for (suffix, content), share in itertools.product(contents, (0.3, 0.6, 0.95)):
        path = tmp_path / f"my data.{suffix}"
        path.write_bytes(content[: int(len(content) * share)])
        with pytest.raises(FileFormatError, match=r"^my data\.\S+ is no .* damaged one: .+$"):
            read_table(path)


def test_files_of_another_kind(tmp_path):
    for suffix in ("parquet", "npy", "npz", "h5ad"):
        assert f"is no {suffix} file" in refusal("a,b\n1,2\n", suffix)
    assert "damaged" in refusal(WRITTEN["npy"].replace(b"}", b"("), "npy")
    for content, found in (
        *((b"%PDF-1.7", "a PDF"), (b"\x89PNG\r\n", "an image")),
        *((b"a,b\n1,\0\n", "binary data"), ("\ufeff <!DOCTYPE html>", "a web page")),
        (book(a=FRAME), "an Excel file"),
    ):
        assert found in refusal(content)
        assert refusal(content, "json")
    for content in (b"", b"PK\x03\x04 and more", b"\xd0\xcf\x11\xe0", b"a,b\n1,2\n"):
        assert refusal(content, "xlsx")
        assert refusal(content, "feather")
        assert refusal(content, "zip")
    for content in ("1", "[1, 2]", "{}", '{"a": 1}', '{"a": [1], "b": [1, 2]}', "[]", "{"):
        assert refusal(content, "json")
    path = tmp_path / "data.xyz"
    path.write_bytes(WRITTEN["npy"])
    with pytest.raises(InputError, match=r"^format .* data\.xyz, "):
        read_table(path)
    np.testing.assert_array_equal(read_table(path, format="npy").X, EXPECTED)
    with pytest.raises(FileNotFoundError):
        read_table(tmp_path / "nowhere.csv")


def test_missing_libraries_can_be_installed(monkeypatch):
    for format, library, packages in (
        ("csv", "pandas", "pandas"),
        ("parquet", "pyarrow.parquet", "pandas pyarrow"),
        ("h5ad", "h5py", "h5py"),
    ):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, library, None)
            with pytest.raises(ImportError, match=f": pip install {packages}$"):
                read((WRITTEN | {"h5ad": H5AD["csr"]})[format], format)


def test_a_large_array_is_loaded_once(tmp_path):
    X = np.full((20_000, 50), 3e37, dtype=np.float32)  # the sum is infinite: all are looked at
    np.save(tmp_path / "data.npy", X)
    tracemalloc.start()
    table = read_table(tmp_path / "data.npy")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert table.X.nbytes <= peak < 1.5 * table.X.nbytes
