"""Parquet files, folders of them, and datasets of pyarrow."""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np

from taxarbor._errors import FileFormatError, InputError, counted, missing_extra
from taxarbor._types import IndexArray
from taxarbor.sources._reader import (
    BLOCK_BYTES,
    DAMAGED,
    Block,
    File,
    base_name,
    check_unique,
    columns_at,
    damaged,
    row_range,
)
from taxarbor.tables._profile import mark_columns

SUFFIXES = (".parquet", ".parq", ".pq")
BUFFER_BYTES = 1 << 25
"""Bytes of a file that are read ahead, over all columns."""
TEXT_BYTES = 64
"""Bytes that a cell without a fixed width takes in memory, about."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class ParquetFile:
    """A Parquet file on this machine."""

    file: File
    n_rows: int

    @property
    def name(self) -> str:
        """How messages name it."""
        return self.file.name

    def batches(self, columns: list[str], n_rows: int, use_threads: bool) -> Iterator[Any]:
        """Yield record batches of at most so many rows."""
        import pyarrow.parquet as pq

        ahead = min(max(BUFFER_BYTES // len(columns), 1 << 12), 1 << 20)
        with pq.ParquetFile(self.file.path, buffer_size=ahead, pre_buffer=False) as file:
            yield from file.iter_batches(n_rows, columns=columns, use_threads=use_threads)

    def reading(self, what: str) -> AbstractContextManager[None]:
        """Name the file and the rows in what is wrong with them."""
        return self.file.reading("parquet", what)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """A fragment of a dataset, such as a file on another machine."""

    name: str
    n_rows: int
    fragment: Any
    schema: Any

    def batches(self, columns: list[str], n_rows: int, use_threads: bool) -> Iterator[Any]:
        """Yield record batches of at most so many rows."""
        scanner = self.fragment.scanner(
            self.schema,
            columns=columns,
            batch_size=n_rows,
            batch_readahead=1,
            use_threads=use_threads,
        )
        yield from scanner.to_batches()

    def reading(self, what: str) -> AbstractContextManager[None]:
        """Name the fragment and the rows in what is wrong with them."""
        return _reading(self.name, what)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ParquetReader:
    """Files or fragments one after the other; blocks are frames of pandas."""

    pieces: Sequence[ParquetFile | Fragment]
    names: list[str]
    step: int
    """Rows of a block, at most."""
    requested: tuple[str, ...] = ()
    """Columns that were asked for by name: a fit uses them or refuses them."""
    categories: tuple[str, ...] = ()
    """Columns that are categories whatever their type."""
    in_memory: ClassVar[bool] = False

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(piece.n_rows for piece in self.pieces)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.names)

    def blocks(self, *, use_threads: bool) -> Iterator[Block]:
        """Yield all rows in their order."""
        for name, first, batch, reading in self._batches(use_threads):
            load = partial(_load, batch, reading)
            yield Block(name, slice(first, first + len(batch)), load)

    def take(self, rows: IndexArray) -> Any:
        """Return some rows as one frame."""
        import pyarrow as pa

        tables = []
        for _, first, batch, reading in self._batches(use_threads=True):
            own = rows[slice(*np.searchsorted(rows, (first, first + len(batch))))] - first
            if len(own):
                with reading:
                    batch.validate(full=True)
                    tables.append(pa.Table.from_batches([batch.take(pa.array(own))]))
        frame = as_frame(pa.concat_tables(tables).combine_chunks())
        return mark_columns(frame, self.requested, self.categories)

    def _batches(
        self, use_threads: bool
    ) -> Iterator[tuple[str, int, Any, AbstractContextManager[None]]]:
        """Yield record batches, each with a title, its first row and what names its errors."""
        start = 0
        for piece in self.pieces:
            done = 0
            batches = piece.batches(self.names, self.step, use_threads)
            while done < piece.n_rows:
                with piece.reading(f"what follows row {done}"):
                    batch = next(batches, None)
                    if batch is None or done + len(batch) > piece.n_rows:
                        told = counted(piece.n_rows, "row")
                        raise ValueError(f"it declares {told} and has another number")
                if len(batch):
                    rows = row_range(done, done + len(batch))
                    yield f"{piece.name}, {rows}", start + done, batch, piece.reading(rows)
                done += len(batch)
            batches.close()  # type: ignore[attr-defined]
            start += done


def _load(batch: Any, reading: AbstractContextManager[None]) -> Any:
    import pyarrow as pa

    with reading:
        batch.validate(full=True)  # text that is not UTF-8, codes beyond their dictionary
        return as_frame(pa.Table.from_batches([batch]))


def as_frame(table: Any) -> Any:
    """Return a table of Arrow as a frame of pandas.

    Columns of one float type become one matrix in C order, which costs half of what pandas
    takes, and which ``to_numpy`` returns as it is. Decimals become floats.
    """
    import pandas as pd
    import pyarrow as pa

    types = {str(one) for one in table.schema.types}
    if types in ({"float"}, {"double"}):
        matrix = np.empty(table.shape, np.float32 if types == {"float"} else np.float64)
        for j, column in enumerate(table.columns):
            matrix[:, j] = column.to_numpy()
        return pd.DataFrame(matrix, columns=table.column_names, copy=False)
    for j, one in enumerate(table.schema):
        if pa.types.is_decimal(one.type):
            table = table.set_column(j, one.name, table.column(j).cast(pa.float64()))
    return table.to_pandas(date_as_object=False, ignore_metadata=True)


def open_parquet(
    path: str | os.PathLike[str], columns: Sequence[str] | None = None
) -> ParquetReader:
    """Return a reader of a Parquet file, or of those in a folder by their names."""
    ds = _dataset_module()
    if not Path(path).is_dir():
        return _open_files([File.open(path)], columns)
    folder = Path(os.path.abspath(path))
    found = sorted((one.relative_to(folder).as_posix(), one) for one in _files_in(folder))
    title = base_name(folder)
    if not found:
        ends = ", ".join(SUFFIXES)
        raise FileFormatError(f"{title} is a folder without Parquet files ({ends})")
    files = [File.open(one, " ".join(name.split())) for name, one in found]
    if not any("=" in part for name, _ in found for part in name.split("/")[:-1]):
        return _open_files(files, columns)
    with _reading(title, "it"):
        dataset = ds.dataset(
            [file.path for file in files],
            format="parquet",
            partitioning=ds.partitioning(flavor="hive"),
            partition_base_dir=str(folder),
        )
    _check_same(files)
    return open_dataset(dataset, columns)


def open_dataset(dataset: Any, columns: Sequence[str] | None = None) -> ParquetReader:
    """Return a reader of a dataset of pyarrow, in its own order."""
    ds = _dataset_module()
    schema = dataset.schema
    check_unique("the dataset", schema.names)
    try:
        fragments = [*dataset.get_fragments()]
    except ValueError as error:
        told = "is a filtered dataset: write its rows to files first"
        raise InputError(told, "X") from error
    if _is_plain(ds, dataset, fragments):
        return _open_files([File.open(one.path) for one in fragments], columns)
    pieces = []
    for number, one in enumerate(fragments):
        path = getattr(one, "path", None)
        name = base_name(path) if path else f"fragment {number}"
        with _reading(name, "it"):
            pieces.append(Fragment(name, one.count_rows(), one, schema))
    return _reader("the dataset", pieces, schema, columns)


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield the Parquet files in a folder and the folders in it, but for hidden ones."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in names:
            if name.lower().endswith(SUFFIXES) and not name.startswith((".", "_")):
                yield Path(place) / name


def _is_plain(ds: Any, dataset: Any, fragments: Sequence[Any]) -> bool:
    """Say whether a dataset is Parquet files on this machine, with the columns they have."""
    import pyarrow.compute as pc
    from pyarrow.fs import LocalFileSystem

    if not isinstance(dataset, ds.FileSystemDataset) or not fragments:
        return False
    if not isinstance(dataset.format, ds.ParquetFileFormat):
        return False
    if not isinstance(dataset.filesystem, LocalFileSystem):
        return False
    if not all(one.partition_expression.equals(pc.scalar(True)) for one in fragments):
        return False
    types = {one.name: one.type for one in fragments[0].physical_schema}
    return all(types.get(one.name) == one.type for one in dataset.schema)


def _open_files(files: Sequence[File], columns: Sequence[str] | None) -> ParquetReader:
    """Return a reader of Parquet files with the same columns."""
    found = _check_same(files)
    pieces = [ParquetFile(*one) for one in zip(files, (n for n, _ in found), strict=True)]
    schema = next((schema for n, schema in found if n), found[0][1])
    return _reader(files[0].name, pieces, schema, columns)


def _reader(
    title: str,
    pieces: Sequence[ParquetFile | Fragment],
    schema: Any,
    columns: Sequence[str] | None,
) -> ParquetReader:
    names = [*columns] if columns is not None else _features(schema)
    columns_at(title, names, schema.names)
    if not names:
        raise FileFormatError(f"{title} has no columns")
    if not any(piece.n_rows for piece in pieces):
        told = "has no rows" if len(pieces) == 1 else "and all others have no rows"
        raise FileFormatError(f"{title} {told}")
    row_bytes = sum(_width(schema.field(name).type) for name in names)
    return ParquetReader(pieces, names, max(BLOCK_BYTES // row_bytes, 1))


def _width(kind: Any) -> int:
    """Return the bytes that a cell takes in memory, about."""
    try:
        return max(int(kind.bit_width) // 8, 1)
    except ValueError:  # text, lists
        return TEXT_BYTES


def _check_same(files: Sequence[File]) -> list[tuple[int, Any]]:
    """Return the rows and the schema of each file; raise FileFormatError if columns differ."""
    import pyarrow.parquet as pq

    found = []
    for file in files:
        with file.reading("parquet", "its metadata"):
            meta = pq.read_metadata(file.path)
            schema = meta.schema.to_arrow_schema()
        check_unique(file.name, schema.names)
        found.append((meta.num_rows, schema))
    first = next((i for i, (n, _) in enumerate(found) if n), 0)
    known = {one.name: one.type for one in found[first][1]}
    other = f"and {files[first].name}"
    for file, (n_rows, schema) in zip(files, found, strict=True):
        types = {one.name: one.type for one in schema}
        for name in known.keys() - types.keys():
            raise file.error(f"has no column {name!r}, {other} has; make the files alike")
        for name in types.keys() - known.keys():
            raise file.error(f"has a column {name!r}, {other} has not; make the files alike")
        for name in known if n_rows else ():  # without rows, text is written as null
            if types[name] != known[name]:
                told = f"{name!r} as {types[name]}, {other} as {known[name]}"
                raise file.error(f"holds {told}; make the files alike")
    return found


def _features(schema: Any) -> list[str]:
    """Return the columns of a file but those that are the index of a frame."""
    index: set[str] = set()
    with suppress(ValueError, AttributeError, TypeError):  # damaged notes of pandas
        noted = (schema.pandas_metadata or {}).get("index_columns", [])
        index = {one for one in noted if isinstance(one, str)}
    return [
        name
        for name in schema.names
        if name not in index and not name.startswith("__index_level_")
    ]


@contextmanager
def _reading(name: str, what: str) -> Iterator[None]:
    """Turn what pyarrow raises into one line that names a fragment."""
    try:
        yield
    except FileFormatError:
        raise
    except DAMAGED as error:
        raise damaged(name, "parquet", what, error) from error


def _dataset_module() -> Any:
    try:
        import pandas  # noqa: F401
        import pyarrow.dataset as ds
    except ImportError as error:
        raise missing_extra("reading parquet", "pandas", "pyarrow") from error
    return ds
