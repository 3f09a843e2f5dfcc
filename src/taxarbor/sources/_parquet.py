"""Parquet files, and folders of them."""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from taxarbor._errors import FileFormatError, require
from taxarbor._frames import Table, as_table
from taxarbor._types import IndexArray
from taxarbor.sources.file_checks import Block, File, base_name, check_unique, count_block_rows

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SUFFIXES = (".parquet", ".parq", ".pq")
INDEX = re.compile(r"__index_level_\d+__")  # name that pandas gives an index without a name
BUFFER_BYTES = 1 << 25  # bytes of a file that are read ahead, over all columns


class ParquetFile(NamedTuple):
    """A Parquet file, with its metadata read."""

    file: File
    n_rows: int
    schema: "pa.Schema"


@final
@dataclass(frozen=True, slots=True, eq=False)
class ParquetReader:
    """Files one after the other; blocks are frames of pandas."""

    files: Sequence[ParquetFile]
    names: list[str]

    @property
    def shape(self) -> tuple[int, int]:
        return sum(one.n_rows for one in self.files), len(self.names)

    def keep(self, columns: Sequence[int]) -> "ParquetReader":
        return replace(self, names=[self.names[j] for j in columns])

    def blocks(self) -> Iterator[Block]:
        import pyarrow as pa

        for file, rows, start, batch in self._batches():
            title = f"{file.name}, rows {rows.start - start} to {rows.stop - start - 1}"
            with file.reading("parquet"):
                frame = as_table(to_pandas(pa.Table.from_batches([batch])))
            yield Block(title, rows, frame)

    def take(self, rows: IndexArray) -> Table:
        import pyarrow as pa

        batches = []
        for _, block, _, batch in self._batches():
            inside = rows[slice(*np.searchsorted(rows, (block.start, block.stop)))]
            if len(inside):
                batches.append(batch.take(pa.array(inside - block.start)))
        return as_table(to_pandas(pa.Table.from_batches(batches).combine_chunks()))

    def read_all(self) -> "pa.Table":
        """Return all rows as a table of Arrow."""
        import pyarrow as pa

        return pa.Table.from_batches([batch for *_, batch in self._batches()])

    def _batches(self) -> Iterator[tuple[File, slice, int, "pa.RecordBatch"]]:
        """Yield record batches of each file, with their rows and the first row of the file.

        A scanner of a dataset would hold a whole row group in memory, which may be the file.
        """
        import pyarrow.parquet as pq

        schema = self.files[0].schema
        row_bytes = sum(_estimate_width(schema.field(name).type) for name in self.names)
        n_rows, last = count_block_rows(row_bytes), 0
        buffer = BUFFER_BYTES // len(self.names)
        for one in self.files:
            first, last = last, last + one.n_rows
            stop = first
            with (
                one.file.reading("parquet"),
                pq.ParquetFile(one.file.path, buffer_size=buffer, pre_buffer=False) as content,
            ):
                for batch in content.iter_batches(n_rows, columns=self.names):
                    batch.validate(full=True)  # text that is not UTF-8, codes without values
                    rows = slice(stop, stop + len(batch))
                    stop = rows.stop
                    if stop > last:
                        break
                    if len(batch):
                        yield one.file, rows, first, batch.select(self.names)
                if stop != last:
                    raise ValueError(f"it declares {one.n_rows:,} rows and has another number")


def to_pandas(table: "pa.Table") -> "pd.DataFrame":
    """Return a table of Arrow as a frame of pandas.

    Columns of one float type become one matrix in C order, which costs half of what pandas
    takes, and which ``to_numpy`` returns as it is. Decimals become floats.
    """
    import pandas as pd
    import pyarrow as pa

    types = {str(dtype) for dtype in table.schema.types}
    if types in ({"float"}, {"double"}):
        matrix = np.empty(table.shape, np.float32 if types == {"float"} else np.float64)
        for j, column in enumerate(table.columns):
            matrix[:, j] = column.to_numpy()
        return pd.DataFrame(matrix, columns=table.column_names, copy=False)
    for j, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            table = table.set_column(j, field.name, table.column(j).cast(pa.float64()))
    return table.to_pandas(date_as_object=False, ignore_metadata=True)


def open_parquet(path: str | os.PathLike[str]) -> ParquetReader:
    """Return a reader of a Parquet file, or of those in a folder by their names."""
    title = base_name(path)
    paths = _find_files(Path(path)) if Path(path).is_dir() else {title: Path(path)}
    if not paths:
        suffixes = ", ".join(SUFFIXES)
        raise FileFormatError(f"{title} is a folder without Parquet files ({suffixes})")
    opened = [_open_file(one, relative) for relative, one in paths.items()]
    files = [one for one in opened if one.n_rows]
    if not files:
        raise FileFormatError(f"{title} has no rows")
    for one in opened:
        _check_alike(one, files[0])
    schema = files[0].schema
    with files[0].file.reading("parquet"):
        index = (schema.pandas_metadata or {}).get("index_columns", [])
    names = [one for one in schema.names if one not in index and not INDEX.fullmatch(one)]
    if not names:
        raise FileFormatError(f"{title} has no columns")
    return ParquetReader(files, names)


def _find_files(folder: Path) -> dict[str, Path]:
    """Return the Parquet files in a folder and the folders in it by name, no hidden ones."""
    found = {}
    for path in sorted(folder.rglob("*")):
        parts = path.relative_to(folder).parts
        if path.suffix.lower() in SUFFIXES and not any(part[0] in "._" for part in parts):
            found[" ".join("/".join(parts).split())] = path
            if any("=" in part for part in parts[:-1]):
                problem = f"has a column in the names of folders ({parts[0]})"
                raise FileFormatError(f"{base_name(folder)} {problem}; read it with Dask")
    return found


def _open_file(path: Path, name: str) -> ParquetFile:
    with require("reading parquet", "pandas", "pyarrow"):
        import pandas  # noqa: F401
        import pyarrow.parquet as pq
    file = File.open(path, name)
    with file.reading("parquet"), pq.ParquetFile(path) as content:
        check_unique(name, content.schema_arrow.names)
        return ParquetFile(file, content.metadata.num_rows, content.schema_arrow)


def _check_alike(one: ParquetFile, other: ParquetFile) -> None:
    """Raise FileFormatError if two files have other columns or types."""
    types, others = ({field.name: field.type for field in file.schema} for file in (one, other))
    for column in [*others, *types]:
        kind, other_kind = types.get(column, "absent"), others.get(column, "absent")
        if kind != other_kind and (one.n_rows or "absent" in (kind, other_kind)):
            # Without rows, text is written as null.
            where = f"{kind} in {one.file.name}, and {other_kind} in {other.file.name}"
            raise FileFormatError(f"column {column!r} is {where}; make the files alike")


def _estimate_width(dtype: "pa.DataType") -> int:
    """Return the bytes that a cell takes in memory, about."""
    from pyarrow import types

    if types.is_nested(dtype):
        return 4096  # an embedding of some hundred numbers
    return 8 if types.is_primitive(dtype) else 64
