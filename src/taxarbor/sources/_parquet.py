"""Parquet files, folders of them, and datasets of pyarrow."""

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np

from taxarbor._errors import FileFormatError, InputError, counted, missing_extra
from taxarbor._types import IndexArray
from taxarbor.sources._file_checks import (
    BLOCK_BYTES,
    Block,
    File,
    base_name,
    check_unique,
    find_columns,
    reading,
    row_range,
)

SUFFIXES = (".parquet", ".parq", ".pq")
BUFFER_BYTES = 1 << 25
"""Bytes of a file that are read ahead, over all columns."""
TEXT_BYTES = 64
"""Bytes of memory that a text takes, about."""
LIST_BYTES = 4096
"""Bytes of memory that a list takes, about: an embedding of some hundred numbers."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """A fragment of a dataset, such as a Parquet file."""

    name: str
    file: File | None
    """The file, if it is on this machine."""
    fragment: Any
    n_rows: int
    schema: Any
    """The columns that the fragment holds, without those of its folders."""

    @classmethod
    def open(cls, fragment: Any, name: str, file: File | None) -> "Fragment":
        """Return a fragment, with its metadata read."""
        with cls(name, file, fragment, 0, None).reading("its metadata"):
            schema = fragment.physical_schema
            check_unique(name, schema.names)
            return cls(name, file, fragment, fragment.count_rows(), schema)

    def batches(
        self, schema: Any, columns: list[str], n_rows: int, use_threads: bool
    ) -> Iterator[Any]:
        """Yield record batches of at most so many rows.

        A scanner holds a whole row group in memory, which may be the whole file.
        """
        import pyarrow.dataset as ds
        import pyarrow.parquet as pq

        types = {field.name: field.type for field in self.schema}
        is_plain = all(types.get(name) == schema.field(name).type for name in columns)
        if self.file and is_plain and isinstance(self.fragment, ds.ParquetFileFragment):
            buffer = min(max(BUFFER_BYTES // len(columns), 1 << 12), 1 << 20)
            with pq.ParquetFile(self.file.path, buffer_size=buffer, pre_buffer=False) as file:
                yield from file.iter_batches(n_rows, columns=columns, use_threads=use_threads)
            return
        scanner = self.fragment.scanner(
            schema,
            columns=columns,
            batch_size=n_rows,
            batch_readahead=1,
            fragment_readahead=1,
            use_threads=use_threads,
        )
        yield from scanner.to_batches()

    def reading(self, part: str) -> AbstractContextManager[None]:
        """Name the fragment and the rows in the errors of pyarrow."""
        if self.file is None:
            return reading(self.name, "parquet", part)
        return self.file.reading("parquet", part)

    def check_like(self, other: "Fragment") -> None:
        """Raise FileFormatError if another file has other columns or types."""
        types = {field.name: field.type for field in self.schema}
        expected = {field.name: field.type for field in other.schema}
        differing = sorted(expected.keys() - types.keys()) or sorted(
            types.keys() - expected.keys()
        )
        if self.n_rows and not differing:  # without rows, text is written as null
            differing = [name for name in types if types[name] != expected[name]]
        for name in differing[:1]:
            kind, other_kind = types.get(name, "absent"), expected.get(name, "absent")
            problem = (
                f"column {name!r} is {kind} in {self.name}, and {other_kind} in {other.name}"
            )
            raise FileFormatError(f"{problem}; make the files alike")


@final
@dataclass(frozen=True, slots=True, eq=False)
class ParquetReader:
    """Fragments one after the other; blocks are frames of pandas."""

    fragments: Sequence[Fragment]
    schema: Any
    names: list[str]
    step: int
    """Rows of a block, at most."""
    in_memory: ClassVar[bool] = False

    @property
    def n_rows(self) -> int:
        return sum(fragment.n_rows for fragment in self.fragments)

    @property
    def n_columns(self) -> int:
        return len(self.names)

    def blocks(self, *, use_threads: bool) -> Iterator[Block]:
        for name, first, batch, context in self._batches(use_threads):
            load = partial(_load, batch, context)
            yield Block(name, slice(first, first + len(batch)), load)

    def take(self, rows: IndexArray) -> Any:
        """Return some rows as one frame."""
        import pyarrow as pa

        tables = []
        for _, first, batch, context in self._batches(use_threads=True):
            inside = rows[slice(*np.searchsorted(rows, (first, first + len(batch))))] - first
            if len(inside):
                with context:
                    batch.validate(full=True)
                    tables.append(pa.Table.from_batches([batch.take(pa.array(inside))]))
        return to_pandas(pa.concat_tables(tables).combine_chunks())

    def choose(self, names: list[str]) -> "ParquetReader":
        """Return a reader of some of the columns."""
        return replace(self, names=names, step=_count_block_rows(self.schema, names))

    def read_all(self, names: list[str]) -> Any:
        """Return all rows of some columns as a table of Arrow."""
        import pyarrow as pa

        tables = []
        for fragment in self.fragments:
            with fragment.reading("it"):
                tables.append(fragment.fragment.to_table(self.schema, columns=names))
                tables[-1].validate(full=True)  # text that is not UTF-8, codes without values
        return pa.concat_tables(tables)

    def _batches(
        self, use_threads: bool
    ) -> Iterator[tuple[str, int, Any, AbstractContextManager[None]]]:
        """Yield record batches, each with a title, its first row and what names its errors."""
        start = 0
        for fragment in self.fragments:
            done = 0
            batches = fragment.batches(self.schema, self.names, self.step, use_threads)
            while done < fragment.n_rows:
                with fragment.reading(f"what follows row {done}"):
                    batch = next(batches, None)
                    if batch is None or done + len(batch) > fragment.n_rows:
                        declared = counted(fragment.n_rows, "row")
                        raise ValueError(f"it declares {declared} and has another number")
                if len(batch):
                    rows = row_range(done, done + len(batch))
                    title = f"{fragment.name}, {rows}"
                    yield title, start + done, batch, fragment.reading(rows)
                done += len(batch)
            start += done


def _load(batch: Any, context: AbstractContextManager[None]) -> Any:
    import pyarrow as pa

    with context:
        batch.validate(full=True)
        return to_pandas(pa.Table.from_batches([batch]))


def to_pandas(table: Any) -> Any:
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


def open_parquet(
    path: str | os.PathLike[str], columns: Sequence[str] | None = None, name: str | None = None
) -> ParquetReader:
    """Return a reader of a Parquet file, or of those in a folder by their names."""
    ds, _ = _import_arrow()
    names = {Path(path): name or base_name(path)}
    if Path(path).is_dir():
        files_in = sorted((one.relative_to(path).as_posix(), one) for one in _find_files(path))
        names = {one: " ".join(relative.split()) for relative, one in files_in}
    if not names:
        suffixes = ", ".join(SUFFIXES)
        raise FileFormatError(
            f"{base_name(path)} is a folder without Parquet files ({suffixes})"
        )
    folder = path if Path(path).is_dir() else Path(path).parent
    with reading(base_name(path), "parquet"):
        dataset = ds.dataset(
            [os.path.abspath(one) for one in names],
            format="parquet",
            partitioning=ds.partitioning(flavor="hive"),  # folders such as year=2024
            partition_base_dir=os.path.abspath(folder),
        )
        pairs = zip(names.items(), dataset.get_fragments(), strict=True)
        fragments = [
            Fragment.open(fragment, title, File.open(one, title))
            for (one, title), fragment in pairs
        ]
    first = next((fragment for fragment in fragments if fragment.n_rows), fragments[0])
    for fragment in fragments:
        fragment.check_like(first)
    schema = first.schema
    for field in dataset.schema:
        schema = schema if field.name in schema.names else schema.append(field)
    return _open_fragments(fragments[0].name, fragments, schema, columns)


def open_dataset(dataset: Any) -> ParquetReader:
    """Return a reader of a dataset of pyarrow, in its order."""
    _, LocalFileSystem = _import_arrow()
    check_unique("the dataset", dataset.schema.names)
    try:
        fragments = [*dataset.get_fragments()]
    except ValueError as error:
        message = "is a filtered dataset: write its rows to files first"
        raise InputError(message, "X") from error
    opened = []
    for number, fragment in enumerate(fragments):
        path: str = getattr(fragment, "path", "")
        is_local = path and isinstance(fragment.filesystem, LocalFileSystem)
        name = base_name(path) if path else f"fragment {number}"
        opened.append(Fragment.open(fragment, name, File.open(path) if is_local else None))
    return _open_fragments("the dataset", opened, dataset.schema, None)


def _find_files(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the Parquet files in a folder and the folders in it, without hidden ones."""
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in names:
            if name.lower().endswith(SUFFIXES) and not name.startswith((".", "_")):
                yield Path(parent) / name


def _open_fragments(
    title: str, fragments: Sequence[Fragment], schema: Any, columns: Sequence[str] | None
) -> ParquetReader:
    names = [*columns] if columns is not None else _select_features(schema)
    find_columns(title, names, schema.names)
    if not names:
        raise FileFormatError(f"{title} has no columns")
    if not any(fragment.n_rows for fragment in fragments):
        which = "has no rows" if len(fragments) == 1 else "and all others have no rows"
        raise FileFormatError(f"{title} {which}")
    return ParquetReader(fragments, schema, names, _count_block_rows(schema, names))


def _count_block_rows(schema: Any, names: Sequence[str]) -> int:
    row_bytes = sum(_estimate_width(schema.field(name).type) for name in names)
    return max(BLOCK_BYTES // row_bytes, 1)


def _estimate_width(dtype: Any) -> int:
    """Return the bytes that a cell takes in memory, about."""
    from pyarrow import types

    try:
        return max(int(dtype.bit_width) // 8, 1)
    except ValueError:  # text, lists
        return LIST_BYTES if types.is_nested(dtype) else TEXT_BYTES


def _select_features(schema: Any) -> list[str]:
    """Return the columns of a file without those that are the index of a frame."""
    index: set[str] = set()
    with suppress(ValueError, AttributeError, TypeError):  # damaged metadata of pandas
        columns = (schema.pandas_metadata or {}).get("index_columns", [])
        index = {name for name in columns if isinstance(name, str)}
    return [
        name
        for name in schema.names
        if name not in index and not name.startswith("__index_level_")
    ]


def _import_arrow() -> tuple[Any, Any]:
    try:
        import pandas  # noqa: F401
        import pyarrow.dataset as ds
        from pyarrow.fs import LocalFileSystem
    except ImportError as error:
        raise missing_extra("reading parquet", "pandas", "pyarrow") from error
    return ds, LocalFileSystem
