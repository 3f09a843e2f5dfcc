"""Parquet files, folders of them, and datasets of pyarrow, part by part.

A part is a row group, several small ones, or some rows of a large one. The latter can only be
read from its start: a cursor stays where the last part ended, so that parts that are read one
after the other, as sweeps do, decode a group once.
"""

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, final

import numpy as np

from taxarbor._errors import InputError, counted, missing_extra
from taxarbor._run import Run
from taxarbor.sweep import LocalEngine
from taxarbor.sweep._blocks import rows_per_block
from taxarbor.tables._frames import INDEX
from taxarbor.tables._scan import File, Stream, edges, one_line, spans, told_rows
from taxarbor.tables._table import Request, refuse_absent, refuse_repeated

if TYPE_CHECKING:
    import pandas as pd

CURSORS = 4
"""Row groups that are kept open side by side; each has a page or two of every column."""
AHEAD = 8
"""Parts that a cursor has ready for threads that came late."""
BUFFERS = 1 << 25
"""Bytes of a file that are read ahead, over all columns."""
PER_COLUMN = 1 << 22
"""Bytes that a cursor takes for a column: pages, as they are and unpacked, and a dictionary."""
SUFFIXES = (".parquet", ".parq", ".pq")


@final
@dataclass(slots=True, eq=False)
class _Cursor:
    """A place in a source."""

    source: "Groups | Fragment"
    step: int
    total: int
    lock: Lock = field(default_factory=Lock)
    batches: Iterator[Any] | None = None
    at: int = 0
    rest: Any = None
    ahead: OrderedDict[int, Any] = field(default_factory=OrderedDict)
    """Parts that threads who were quicker came past."""

    def take(self, first: int) -> Any:
        """Return the part that begins with a row, as a table."""
        with self.lock:
            if first in self.ahead:
                return self.ahead.pop(first)
            if self.batches is None or first < self.at:
                self.batches, self.at, self.rest = self.source.batches(self.step), 0, None
                self.ahead.clear()
            while True:
                here, found = self.at, self._next()
                if here == first:
                    return found
                self.ahead[here] = found
                if len(self.ahead) > AHEAD:
                    self.ahead.popitem(last=False)

    @property
    def is_done(self) -> bool:
        """Whether all parts were taken."""
        return self.at >= self.total and not self.ahead

    def _next(self) -> Any:
        """Return the next rows, as many as a part has, or what is left."""
        import pyarrow as pa

        assert self.batches is not None
        found = [] if self.rest is None else [self.rest]
        n_found = sum(len(one) for one in found)
        while n_found < self.step:
            batch = next(self.batches, None)
            if batch is None:
                break
            found.append(pa.Table.from_batches([batch]))
            n_found += len(batch)
        if not n_found:
            self.batches = None
            raise EOFError("there are fewer rows than it says")
        table = pa.concat_tables(found) if len(found) > 1 else found[0]
        self.rest = table.slice(self.step) if n_found > self.step else None
        self.at += min(n_found, self.step)
        return table.slice(0, self.step)


_cursors: OrderedDict[tuple["Groups | Fragment", int], _Cursor] = OrderedDict()
_lock = Lock()


def _taken(source: "Groups | Fragment", step: int, total: int, first: int) -> Any:
    """Return the part of a source that begins with a row, as a table."""
    key = (source, step)
    with _lock:
        cursor = _cursors.pop(key, None) or _Cursor(source, step, total)
        _cursors[key] = cursor
        if len(_cursors) > CURSORS:
            _cursors.popitem(last=False)
    is_over = True
    try:
        found = cursor.take(first)
        is_over = cursor.is_done
        return found
    finally:
        with _lock:
            if is_over and _cursors.get(key) is cursor:
                del _cursors[key]


@final
@dataclass(frozen=True, slots=True)
class Groups:
    """Row groups of a Parquet file, and columns of it."""

    file: File
    groups: tuple[int, ...]
    columns: tuple[str, ...]

    def batches(self, n_rows: int) -> Iterator[Any]:
        """Yield tables of about so many rows."""
        import pyarrow.parquet as pq

        ahead = min(max(BUFFERS // max(len(self.columns), 1), 1 << 12), 1 << 20)
        with pq.ParquetFile(self.file.path, buffer_size=ahead, pre_buffer=False) as file:
            options = {"row_groups": [*self.groups], "columns": [*self.columns]}
            yield from file.iter_batches(batch_size=n_rows, **options)

    def reading(self, rows: str, *also: type[Exception]) -> AbstractContextManager[None]:
        """Name the file and the rows in what is wrong with them."""
        return self.file.reading("parquet", rows, *also)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Fragment:
    """A fragment of a dataset, such as a file that is elsewhere."""

    name: str
    fragment: Any
    schema: Any
    columns: tuple[str, ...]

    def batches(self, n_rows: int) -> Iterator[Any]:
        """Yield tables of at most so many rows."""
        options = {"columns": [*self.columns], "batch_size": n_rows, "batch_readahead": 1}
        yield from self.fragment.scanner(schema=self.schema, **options).to_batches()

    def reading(self, rows: str, *also: type[Exception]) -> AbstractContextManager[None]:
        """Name the fragment in what is wrong with it."""
        return Request(self.name).reading("readable", *also)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ParquetPart:
    """Some rows of a Parquet file, or of a fragment of a dataset."""

    source: Groups | Fragment
    offset: int
    """The first row of the source, in the file."""
    first: int
    """The first row of the part, in the source."""
    n_rows: int
    step: int
    """Rows of the parts of this source, but for the last."""
    total: int
    """Rows of the source."""

    def load(self) -> "pd.DataFrame":
        """Return the rows as a frame of pandas."""
        import pyarrow as pa

        rows = told_rows(self.offset + self.first, self.n_rows)
        with self.source.reading(rows, pa.ArrowException):
            table = _taken(self.source, self.step, self.total, self.first)
            return as_frame(table, self.source.columns, self.n_rows)


def as_frame(table: Any, columns: Sequence[str], n_rows: int) -> "pd.DataFrame":
    """Return a table of Arrow as a frame; exact decimals as floats, days as dates."""
    import pyarrow as pa

    if len(table) != n_rows:
        raise ValueError(f"{counted(n_rows, 'row')} should be there, and {len(table):,} are")
    table = table.select(columns)
    table.validate(full=True)  # text that is none, codes beyond their dictionary
    for j, one in enumerate(table.schema):
        if pa.types.is_decimal(one.type):
            numbers = table.column(j).cast(pa.float64())
            table = table.set_column(j, one.name, numbers)
    return table.to_pandas(date_as_object=False, ignore_metadata=True)


def scan_parquet(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> Stream:
    """Return the parts of a Parquet file, or of those in a folder by their names."""
    ds = _dataset_module()
    if not Path(path).is_dir():
        return _scan_files([File.of(path)], columns)
    folder, title = Path(os.path.abspath(path)), one_line(Path(path).name or str(path))
    files = [(one.relative_to(folder).as_posix(), one) for one in _files_in(folder)]
    if not files:
        ends = ", ".join(SUFFIXES)
        raise Request(one_line(folder.name)).error(
            f"is a folder without Parquet files ({ends})"
        )
    files.sort()
    if any("=" in part for name, _ in files for part in name.split("/")[:-1]):
        with Request(title).reading("parquet"):
            found = ds.dataset(
                [str(one) for _, one in files],
                format="parquet",
                partitioning=ds.partitioning(flavor="hive"),
                partition_base_dir=str(folder),
            )
        _refuse_mixed([File.of(one, one_line(name)) for name, one in files])
        return scan_dataset(found, columns)
    return _scan_files([File.of(one, one_line(name)) for name, one in files], columns)


def _files_in(folder: Path) -> Iterator[Path]:
    """Yield the Parquet files in a folder and the folders in it, but for hidden ones."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "_"))]
        for name in names:
            if name.lower().endswith(SUFFIXES) and not name.startswith((".", "_")):
                yield Path(place) / name


def _scan_files(files: Sequence[File], columns: Sequence[str] | None) -> Stream:
    """Return the parts of Parquet files with the same columns."""
    metas = _refuse_mixed(files)
    schema = metas[0].schema.to_arrow_schema()
    request = files[0].request
    chosen = tuple(_features(schema) if columns is None else columns)
    refuse_absent(request, chosen, [str(name) for name in schema.names])
    if not chosen:
        raise request.error("has no columns")
    stream = _stream(_groups(files, metas, chosen), chosen, _reserve(metas, len(chosen)))
    if not stream.parts:
        raise request.error("has no rows" if len(files) == 1 else "and all others have no rows")
    return stream


def _groups(
    files: Sequence[File], metas: Sequence[Any], columns: tuple[str, ...]
) -> Iterator[tuple[Groups, str, int, int]]:
    """Yield sources, each with the name of its file, its first row there and how many it has.

    Small groups that follow one another are one source; those without rows are left out.
    """
    most = rows_per_block(len(columns))
    for file, meta in zip(files, metas, strict=True):
        bundle: list[int] = []
        n_rows = offset = 0
        for i in range(meta.num_row_groups):
            length = meta.row_group(i).num_rows
            if bundle and n_rows + length > most:
                yield Groups(file, tuple(bundle), columns), file.name, offset, n_rows
                offset += n_rows
                bundle, n_rows = [], 0
            if length:
                bundle.append(i)
                n_rows += length
        if bundle:
            yield Groups(file, tuple(bundle), columns), file.name, offset, n_rows


def _stream(
    sources: Iterable[tuple[Groups | Fragment, str, int, int]],
    columns: Sequence[str],
    reserve: int = 0,
) -> Stream:
    """Return the parts of sources; reading takes so many bytes beside them."""
    step = rows_per_block(max(len(columns), 1))
    parts: list[ParquetPart] = []
    titles: list[str] = []
    for source, name, offset, total in sources:
        for first, n in spans(edges(total, len(columns)).tolist()):
            parts.append(ParquetPart(source, offset, first, n, step, total))
            titles.append(f"{name}, {told_rows(offset + first, n)}")
    sizes = np.array([part.n_rows for part in parts], dtype=np.intp)
    return Stream(parts, titles, sizes, [*columns], partial(_engine, reserve=reserve))


def _engine(run: Run, room: int | None, *, reserve: int) -> LocalEngine:
    """Return threads that keep less in memory by what reading takes."""
    return LocalEngine(run, None if room is None else max(room - reserve, 0))


def _reserve(metas: Sequence[Any], n_columns: int) -> int:
    """Return the bytes of two cursors: one where a group ends, one where another begins."""
    step = rows_per_block(n_columns)
    groups = (meta.row_group(i) for meta in metas for i in range(meta.num_row_groups))
    largest = max((one.total_byte_size for one in groups if one.num_rows > step), default=0)
    return 2 * min(2 * largest, PER_COLUMN * n_columns)


def _refuse_mixed(files: Sequence[File]) -> list[Any]:
    """Return what files say of themselves; refuse those of different columns."""
    import pyarrow.parquet as pq

    metas: list[Any] = []
    columns: list[dict[str, Any]] = []
    for file in files:
        with file.request.reading("parquet"):
            metas.append(pq.read_metadata(file.path))
            schema = metas[-1].schema.to_arrow_schema()
            refuse_repeated(file.request, map(str, schema.names))
        columns.append({one.name: one.type for one in schema})
    first = next((i for i, meta in enumerate(metas) if meta.num_rows), 0)
    known, other = columns[first], f"and {files[first].name}"
    for file, meta, kinds in zip(files, metas, columns, strict=True):
        error = file.request.error
        for name in known.keys() - kinds.keys():
            raise error(f"has no column {name!r}, {other} has; make the files alike")
        for name in kinds.keys() - known.keys():
            raise error(f"has a column {name!r}, {other} has not; make the files alike")
        for name in known if meta.num_rows else ():  # without rows, text is written as null
            if kinds[name] != known[name]:
                told = f"{name!r} as {kinds[name]}, {other} as {known[name]}"
                raise error(f"holds {told}; make the files alike")
    return metas


def _features(schema: Any) -> list[str]:
    """Return the columns of a file but those that are the index of a frame."""
    index: set[str] = set()
    with suppress(ValueError, AttributeError, TypeError):  # a note that is damaged says nothing
        told = (schema.pandas_metadata or {}).get("index_columns", [])
        index = {one for one in told if isinstance(one, str)}
    return [name for name in schema.names if name not in index and not INDEX.fullmatch(name)]


def scan_dataset(dataset: Any, columns: Sequence[str] | None = None) -> Stream:
    """Return the parts of a dataset of pyarrow, in its own order."""
    ds = _dataset_module()
    request = Request("the dataset")
    if columns is None:
        columns = _features(dataset.schema)
    refuse_repeated(request, map(str, dataset.schema.names))
    refuse_absent(request, columns, dataset.schema.names)
    try:
        fragments = [*dataset.get_fragments()]
    except ValueError as error:
        raise InputError("the dataset is filtered: write its rows to files first") from error
    files = _plain_files(ds, dataset, fragments)
    if files:
        return _scan_files(files, columns)
    chosen = tuple(columns)

    def sources() -> Iterator[tuple[Fragment, str, int, int]]:
        for number, fragment in enumerate(fragments):
            path = getattr(fragment, "path", None)
            name = one_line(Path(path).name) if path else f"fragment {number}"
            with Request(name).reading("readable"):
                n_rows = fragment.count_rows()
            yield Fragment(name, fragment, dataset.schema, chosen), name, 0, n_rows

    stream = _stream(sources(), chosen)
    if not stream.parts:
        raise request.error("has no rows")
    return stream


def _plain_files(ds: Any, dataset: Any, fragments: Sequence[Any]) -> list[File] | None:
    """Return the files of a dataset, if it is Parquet files on this machine and no more."""
    import pyarrow.compute as pc
    from pyarrow.fs import LocalFileSystem

    is_plain = isinstance(dataset, ds.FileSystemDataset) and bool(fragments)
    is_plain = is_plain and isinstance(dataset.format, ds.ParquetFileFormat)
    if not (is_plain and isinstance(dataset.filesystem, LocalFileSystem)):
        return None
    if not all(one.partition_expression.equals(pc.scalar(True)) for one in fragments):
        return None
    files = [File.of(one.path) for one in fragments]
    kinds = {one.name: one.type for one in fragments[0].physical_schema}
    is_as_stored = all(kinds.get(one.name) == one.type for one in dataset.schema)
    return files if is_as_stored else None


def _dataset_module() -> Any:
    try:
        import pandas  # noqa: F401
        import pyarrow.dataset as ds
    except ImportError as error:
        raise missing_extra("reading parquet", "pandas", "pyarrow") from error
    return ds
