"""Rows that are read part by part: folders of Parquet files, and files that are large."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

import numpy as np

from taxarbor._errors import FileFormatError, InputError, counted, missing_extra
from taxarbor._types import Array, IndexArray
from taxarbor.cli import _files as files
from taxarbor.cli import interruptible
from taxarbor.cli._labels import Block, Header, write_blocks
from taxarbor.hierarchy import Hierarchy
from taxarbor.sweep._room import available, size_of
from taxarbor.tables import Table
from taxarbor.tables._checks import check_jobs
from taxarbor.tables._stream import Stream, make_engine, open_stream, stored_format
from taxarbor.tables._table import NamelessError, as_texts

SHARE = 4
"""A file that takes more than one part in so many of the memory is read part by part."""
LOCAL = "local"
WORKER = 500_000_000
"""Bytes that a process of Dask needs at least: it stands still where it has hardly more than
what it takes itself."""
SECONDS = 10.0
"""How long to wait for a scheduler to answer."""


def is_streamed(
    data: Path,
    *,
    format: str | None,
    memory_limit: str | None = None,
    scheduler: str | None = None,
    whole: str | None = None,
) -> bool:
    """Say whether rows are to be read part by part.

    Folders are, and all files if that is asked for; an option that needs all rows, ``whole``,
    is refused then. Large files are, too, unless there is such an option.
    """
    if memory_limit is not None:
        size_of(memory_limit)
    is_asked = memory_limit is not None or scheduler is not None
    if str(data) == files.STDIN:
        if is_asked:
            told = "standard input cannot be read part by part: drop"
            raise InputError(f"{told} {'--scheduler' if scheduler else '--memory-limit'}")
        return False
    if data.is_dir() or is_asked:
        if whole is not None:
            told = "needs all rows in memory at once, and"
            raise InputError(f"{whole} {told} {data} is read part by part")
        return True
    kind = format or stored_format(data)
    if whole is not None or kind not in ("npy", "parquet", "h5ad") or not data.is_file():
        return False
    return SHARE * _size(data, kind) > available()


def _size(data: Path, kind: str) -> int:
    """Return about how many bytes a file takes in memory."""
    size = data.stat().st_size
    if kind == "parquet":
        with suppress(ImportError, OSError, ValueError):  # which is told when it is read
            import pyarrow.parquet as pq

            meta = pq.read_metadata(data)
            size = max(size, 8 * meta.num_rows * meta.num_columns)
    return size


@final
@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """Rows to fit that are read part by part."""

    path: Path
    format: str | None
    stream: Stream
    days: list[str]
    """Columns of dates that are to be used."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return _count(self.stream)

    def weights(self, name: str) -> Array:
        """Return a column of numbers, for all rows."""
        found = np.concatenate([*self._column(name, "weights")])
        if found.dtype.kind not in "fiub":
            raise InputError(f"names {name!r}, which does not hold numbers", "weights")
        return found.astype(np.float64)

    def write_labels(
        self, path: Path, labels: IndexArray, id_column: str | None, *, force: bool
    ) -> None:
        """Write the label of each row, with its name if there is a column of names."""
        header = Header(id_column, id_column is not None, len(labels))
        write_blocks(path, self._blocks(labels, id_column), header, force=force)

    def _blocks(self, labels: IndexArray, id_column: str | None) -> Iterator[Block]:
        sizes = self.stream.sizes
        assert sizes is not None
        parts = np.split(labels, np.cumsum(sizes)[:-1])
        if id_column is None:
            yield from map(Block, parts)
            return
        whole, first = np.asarray(labels), 0
        for cells in self._column(id_column, "id_column"):
            yield Block(whole[first : first + len(cells)], as_texts(cells.tolist()))
            first += len(cells)

    def row_names(self, id_column: str) -> tuple[str, ...]:
        """Return a column as text, for all rows."""
        cells = self._column(id_column, "id_column")
        return tuple(name for part in cells for name in as_texts(part.tolist()))

    def _column(self, name: str, option: str) -> Iterator[Any]:
        """Yield the cells of a column, part by part."""
        try:
            stream = open_stream(self.path, [name], self.format)
        except NamelessError as error:
            raise InputError(f"is for files with names of columns: {error}", option) from error
        for part in stream.parts:
            rows = part.load()
            yield rows.to_numpy()[:, 0] if stream.dtype is None else rows[:, [0]].ravel()


def open_source(
    data: Path,
    *,
    format: str | None,
    columns: str | None,
    categories: str | None,
    dates: str | None,
    beside: Sequence[str | None],
) -> Source:
    """Return the rows of a file or folder, with the columns that options name.

    Those beside, of names and weights, are no features.
    """
    stream = open_stream(data, format=format)
    apart = [name for name in beside if name is not None]
    if columns is not None:
        asked = _asked(data, columns, format)
        used = [name for name in asked if name not in apart]
        stream = open_stream(data, used, format).marked(() if stream.dtype else used)
    elif apart:
        open_stream(data, apart, format)  # which refuses what is not there
        used = [name for name in stream.names or () if name not in apart]
        if not used:
            raise FileFormatError(f"{data.name} has no other columns than {', '.join(apart)}")
        stream = open_stream(data, used, format)
    kinds = _named(stream, categories, "categories")
    days = _named(stream, dates, "dates")
    return Source(data, format, stream.marked(days, kinds), days)


def _asked(data: Path, columns: str, format: str | None) -> list[str]:
    """Return the columns that a text names; blanks around names count only if they must."""
    names = files.split_names(columns, "columns")
    bare = [name.strip() for name in names]
    if not names or len({*bare}) < len(bare):
        raise InputError(f"must be names, each once; got {names}", "columns")
    try:
        open_stream(data, names, format)
    except FileFormatError:
        if names == bare:
            raise
        return bare
    return names


def _named(stream: Stream, text: str | None, option: str) -> list[str]:
    """Return the columns of a stream that an option names."""
    empty = _frame_of(stream) if text is not None and stream.dtype is None else None
    table = Table(np.empty((0, 0)) if empty is None else empty, tuple(stream.names or ()))
    return files.named_columns(table, files.split_names(text, option), option)


def _frame_of(stream: Stream) -> Any:
    """Return a frame without rows that has the columns of a stream."""
    import pandas as pd

    from taxarbor.tables._study import ASKED

    empty = pd.DataFrame(columns=stream.names or [])
    empty.attrs[ASKED] = ()
    return empty


def _count(stream: Stream) -> int:
    assert stream.sizes is not None  # files tell
    return int(stream.sizes.sum())


@contextmanager
def cluster(
    scheduler: str | None, jobs: int, memory_limit: str | None
) -> Iterator[Callable[..., Any] | None]:
    """Yield what makes the engine of a fit on a cluster, None for one in this process.

    It is the cluster of a scheduler, or one of processes of this machine, which end with it.
    """
    if scheduler is None:
        yield None
        return
    if scheduler != LOCAL and "://" not in scheduler:
        told = f"must be local or an address such as tcp://host:8786; got {scheduler!r}"
        raise InputError(told, "scheduler")
    try:
        import distributed
    except ImportError as error:
        raise missing_extra("--scheduler", "dask", "distributed") from error
    dask: Any = distributed
    if scheduler == LOCAL:
        n_workers, share = _workers(check_jobs(-1 if jobs == 1 else jobs), memory_limit)
        options = {"n_workers": n_workers, "threads_per_worker": 1, "memory_limit": share}
        with (
            interruptible(),  # there are processes to end, and their folders
            dask.LocalCluster(**options, dashboard_address=":0", silence_logs=50) as own,
            dask.Client(own),
        ):
            yield make_engine
        return
    try:
        client = dask.Client(scheduler, timeout=SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        told = f"names {scheduler}, where no scheduler of Dask answers"
        raise InputError(told, "scheduler") from error
    with client:
        yield make_engine


def _workers(n_workers: int, memory_limit: str | None) -> tuple[int, Any]:
    """Return how many processes there are, fewer if memory is short, and the bytes of each."""
    if memory_limit is None:
        return n_workers, "auto"
    room = size_of(memory_limit)
    if room < WORKER:
        told = f"must be at least {WORKER // 1_000_000} MB for a process of Dask, which "
        told += f"--scheduler local starts; got {memory_limit!r}"
        raise InputError(told, "memory_limit")
    n_workers = min(n_workers, room // WORKER)
    return n_workers, room // n_workers


def _open_for(tree: Hierarchy, data: Path, id_column: str | None, format: str | None) -> Stream:
    """Return the columns of a model part by part, and that of the names of rows, if asked."""
    names = files.columns_of(tree)
    files.refuse_used(names, id_column=id_column)
    try:
        wanted = None
        if names is not None:
            wanted = [*names, *([] if id_column is None else [id_column])]
        stream = open_stream(data, wanted, format)
    except NamelessError as error:
        if id_column is not None:
            told = f"is for files with names of columns: {error}"
            raise InputError(told, "id_column") from error
        stream = open_stream(data, None, format)
        width = stream.parts[0].load().shape[1]
        files.refuse_other_width(data, names, width, error)
    if id_column is not None and id_column not in (stream.names or ()):
        raise InputError(f"names {id_column!r}, which is no column of {data}", "id_column")
    return stream


def open_own(
    tree: Hierarchy, data: Path, *, id_column: str | None, format: str | None
) -> tuple[Stream, tuple[str, ...] | None]:
    """Return the rows that a model was fitted on part by part, and their names, if asked."""
    stream = _open_for(tree, data, None, format)
    if (n_rows := _count(stream)) != tree.n_rows:
        raise InputError(
            f"{data} has {counted(n_rows, 'row')}, and the model was fitted on "
            f"{tree.n_rows:,}: give the same rows, in the same order"
        )
    if tree.encoding is None and stream.dtype is None:  # of a matrix, which has no other types
        raise InputError(f"{data} holds a table, and the model was fitted on a matrix")
    if id_column is None:
        return stream, None
    files.refuse_used(files.columns_of(tree), id_column=id_column)
    return stream, Source(data, format, stream, []).row_names(id_column)


@final
class Placing:
    """New rows, read part by part, on their way into the clusters of a model."""

    def __init__(
        self,
        tree: Hierarchy,
        data: Path,
        *,
        id_column: str | None,
        format: str | None,
        proba: bool,
    ) -> None:
        self._tree, self._id_column, self._proba = tree, id_column, proba
        self._stream = _open_for(tree, data, id_column, format)
        width = tree.n_leaves if proba else None
        self.header = Header(id_column, id_column is not None, _count(self._stream), width)
        self._gaps = files.Gaps()

    def blocks(self, kept: dict[str, Any] | None = None) -> Iterator[Block]:
        """Yield the labels of each part, which are added to what is kept of all."""
        for part in self._stream.parts:
            X, names = part.load(), None
            if self._id_column is not None:
                at = (self._stream.names or []).index(self._id_column)
                X, names = self._without(X, at)
            table = self._table(X)
            self._gaps.add(self._tree, table.X)
            features = files.as_features(self._tree, table).X
            P = self._tree.predict_proba(features) if self._proba else None
            block = Block(self._tree.predict(features), names, P)
            if kept is not None:
                _keep(kept, block)
            yield block

    def notes(self) -> list[str]:
        """Say what was missing in the parts so far."""
        return self._gaps.notes()

    def _without(self, X: Any, at: int) -> tuple[Any, tuple[str, ...]]:
        """Return all columns but one, and that one as text."""
        if self._stream.dtype is not None:
            raise InputError("is for parquet here", "id_column")
        names = as_texts(X.iloc[:, at].tolist())
        return X.drop(columns=X.columns[at]), names

    def _table(self, X: Any) -> Table:
        names = self._stream.names
        if names is not None:
            names = [name for name in names if name != self._id_column]
        return files.as_numbers(self._tree, Table(X, None if names is None else tuple(names)))


def _keep(kept: dict[str, Any], block: Block) -> None:
    kept.setdefault("labels", []).extend(block.labels.tolist())
    if block.names is not None:
        kept["rows"] = [*(kept["rows"] or ()), *block.names]
    if block.probabilities is not None:
        kept.setdefault("probabilities", []).extend(block.probabilities.round(6).tolist())
