"""What commands read: rows, all at once or part by part, with the columns of a model."""

import csv
import difflib
import io
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar, final

import numpy as np
from scipy.sparse import issparse

from taxarbor._errors import FileFormatError, InputError, counted, some
from taxarbor._types import Array, IndexArray
from taxarbor.cli._files import STDIN, Block, Header, write_blocks
from taxarbor.cli._options import given
from taxarbor.hierarchy import Hierarchy
from taxarbor.hierarchy._cells import as_factor, is_plain, text_of
from taxarbor.hierarchy._route import check_data, expand
from taxarbor.metrics import ClassTree
from taxarbor.sweep._room import available
from taxarbor.tables import Table, read_table
from taxarbor.tables._profile import ASKED
from taxarbor.tables._stream import Stream, open_stream, stored_format
from taxarbor.tables._table import NamelessError, as_texts

LIKELY = 0.5
"""Share of rows that a model puts where it has them, if they are those it was fitted on."""
MANY = 1 << 16
"""Rows whose labels are written in one go."""
SHARE = 4
"""A file that takes more than one part in so many of the memory is read part by part."""

Read = TypeVar("Read")


def is_streamed(
    data: Path,
    *,
    format: str | None,
    whole: str | None = None,
) -> bool:
    """Say whether rows are to be read part by part.

    Folders are; an option that needs all rows, ``whole``, is refused then. Large files are,
    too, unless there is such an option.
    """
    if str(data) == STDIN:
        return False
    if data.is_dir():
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


class _Stdin(io.BytesIO):
    """Standard input, which can be read more than once."""

    name = "standard input"


def _kept(path: Path) -> Any:
    if str(path) != STDIN:
        return str(path)
    return _Stdin(sys.stdin.buffer.read())


def split_names(text: str | None, option: str) -> list[str]:
    """Return the names in a text such as ``a, b``."""
    try:
        return next(csv.reader([text or ""]), [])
    except csv.Error as error:
        raise InputError(f"must be names with commas between them: {error}", option) from error


def _with_names(names: list[str], read: Callable[[list[str]], Read]) -> Read:
    """Read columns by their names.

    Blanks around names do not count, unless there are columns whose names have them.
    """
    bare = [name.strip() for name in names]
    try:
        return read(names)
    except FileFormatError:
        if names == bare:
            raise
        return read(bare)


def read_columns(
    path: Path, columns: str | None, weights: str | None = None, **asked: str | None
) -> Table:
    """Return the columns of a file that a text names, or all; that of weights among them."""
    if columns is None:
        return _read(str(path), None, **asked)
    names, source = split_names(columns, "columns"), _kept(path)
    names += [weights] if weights is not None and weights not in names else []
    return _with_names(names, lambda names: _read(source, names, **asked))


def open_columns(
    path: Path, columns: str | None, beside: Sequence[str | None], format: str | None
) -> Table:
    """Return the columns that a text names, or all, part by part.

    Those beside, of names and weights, are no features.
    """
    stream = open_stream(path, format=format)
    apart = [name for name in beside if name is not None]
    if columns is not None:

        def read(names: list[str]) -> list[str]:
            if not names or len({*names}) < len(names):
                raise InputError(f"must be names, each once; got {names}", "columns")
            open_stream(path, names, format)
            return [name for name in names if name not in apart]

        used = _with_names(split_names(columns, "columns"), read)
        stream = open_stream(path, used, format).marked(() if stream.dtype else used)
    elif apart:
        open_stream(path, apart, format)  # which refuses what is not there
        used = [name for name in stream.names or () if name not in apart]
        if not used:
            raise FileFormatError(f"{path.name} has no other columns than {', '.join(apart)}")
        stream = open_stream(path, used, format)
    return _table_of(stream)


def _table_of(stream: Stream) -> Table:
    rows: Any = stream
    return Table(rows, None if stream.names is None else tuple(stream.names))


def count_rows(table: Table) -> int:
    """Return the number of rows, wherever they are."""
    X: Any = table.X
    sizes: Any = X.sizes if isinstance(X, Stream) else X.shape[0]
    return int(np.sum(sizes))


def is_framed(table: Table) -> bool:
    """Say whether a table has columns of their own types, wherever its rows are."""
    X: Any = table.X
    return X.dtype is None if isinstance(X, Stream) else not is_plain(X)


def named_columns(table: Table, names: Sequence[str], option: str) -> list[str]:
    """Return the columns of a table that an option names."""
    if names and not is_framed(table):
        raise InputError("is for files of csv, tsv and parquet", option)
    there = table.feature_names or ()
    found = [name if name in there else name.strip() for name in names]
    for name in found:
        if name not in there:
            close = difflib.get_close_matches(name, there, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputError(f"names {name!r}, which is no column to use{hint}", option)
    return found


def marked(table: Table, asked: Sequence[str], categories: Sequence[str]) -> Table:
    """Return a table some of whose columns are used or refused, some of them as categories."""
    X: Any = table.X
    if isinstance(X, Stream):
        X = X.marked(asked, categories)
    elif asked or categories:
        for name in categories:
            X[name] = X[name].astype("category")
        X.attrs[ASKED] = (*X.attrs[ASKED], *asked, *categories)
    return replace(table, X=X)


def split_weights(table: Table, name: str | None) -> tuple[Table, Any]:
    """Return a table without the column that says what rows count for, and this column."""
    if name is None:
        return table, None
    (name,) = named_columns(table, [name], "weights")
    X: Any = table.X
    weights = X[name]
    if weights.dtype.kind not in "fiub":
        raise InputError(f"names {name!r}, which does not hold numbers", "weights")
    X = X.drop(columns=name)
    if not X.shape[1]:
        raise InputError(f"names {name!r}, the only column there is", "weights")
    return replace(table, X=X, feature_names=tuple(X.columns)), weights.to_numpy(np.float64)


def _read(source: Any, columns: Sequence[str] | None, **asked: str | None) -> Table:
    """Return the rows in a file; see :func:`read_table`. Odd ids are noted."""
    if isinstance(source, io.BytesIO):
        source.seek(0)
    table = read_table(source, columns=columns, **asked)
    ids = () if table.id_column is None else table.row_names or ()
    notes = [*table.notes]
    n_empty = sum(not name.strip() for name in ids)
    if n_empty:
        notes.append(f"{counted(n_empty, 'id is', 'ids are')} empty")
    repeated = [repr(name) for name, n in Counter(ids).items() if n > 1 and name.strip()]
    if repeated:
        notes.append(f"ids repeat: {some(repeated, 1)}")
    return replace(table, notes=tuple(notes))


@final
@dataclass(frozen=True, slots=True)
class Beside:
    """A file that is read part by part, whose columns of names and weights are no features."""

    path: Path
    format: str | None

    def weights(self, name: str) -> Array:
        """Return a column of numbers, for all rows."""
        found = np.concatenate([*self._column(name, "weights")])
        if found.dtype.kind not in "fiub":
            raise InputError(f"names {name!r}, which does not hold numbers", "weights")
        return found.astype(np.float64)

    def row_names(self, id_column: str | None) -> tuple[str, ...] | None:
        """Return a column as text, for all rows, if one is named."""
        if id_column is None:
            return None
        cells = self._column(id_column, "id_column")
        return tuple(name for part in cells for name in as_texts(part.tolist()))

    def write_labels(
        self, path: Path, labels: IndexArray, id_column: str | None, *, force: bool
    ) -> None:
        """Write the label of each row, with its name if there is a column of names."""
        header = Header(id_column, id_column is not None, len(labels))
        write_blocks(path, self._blocks(labels, id_column), header, force=force)

    def _blocks(self, labels: IndexArray, id_column: str | None) -> Iterator[Block]:
        if id_column is None:
            yield from (Block(labels[at : at + MANY]) for at in range(0, len(labels), MANY))
            return
        first = 0
        for cells in self._column(id_column, "id_column"):
            yield Block(labels[first : first + len(cells)], as_texts(cells.tolist()))
            first += len(cells)

    def _column(self, name: str, option: str) -> Iterator[Any]:
        """Yield the cells of a column, part by part."""
        try:
            stream = open_stream(self.path, [name], self.format)
        except NamelessError as error:
            raise InputError(f"is for files with names of columns: {error}", option) from error
        for part in stream.parts:
            rows = part.load()
            yield rows.to_numpy()[:, 0] if stream.dtype is None else rows[:, [0]].ravel()


def read_truth(path: Path | None) -> ClassTree | None:
    """Return the tree of the classes in a file, where one is given."""
    return None if path is None else ClassTree.read(path)


def read_for(tree: Hierarchy, path: Path, **asked: str | None) -> Table:
    """Return rows with the columns of a model: by name where both have names, else by place.

    Columns that the model does not know are passed over in silence; what counts as missing is
    noted.
    """
    table, gaps = _read_for(tree, path, **asked), Gaps()
    gaps.add(tree, table.X)
    return replace(table, notes=(*table.notes, *gaps.notes()))


def columns_of(tree: Hierarchy) -> tuple[str, ...] | None:
    """Return the names of the columns that a model was made from, where it knows them."""
    if tree.encoding is None:
        return None if tree.feature_names is None else tuple(tree.feature_names)
    names = dict.fromkeys(one.name for one in tree.encoding.columns)
    return tuple(names) if tree.encoding.has_names else None


def as_features(tree: Hierarchy, table: Table) -> Any:
    """Return a table whose columns are a model's features, made once for all that follows."""
    has_names = tree.encoding is not None and tree.encoding.has_names
    X: Any = as_frame(table) if has_names else table.X
    return replace(table, X=expand(X, tree))


def as_frame(table: Table) -> Any:
    """Return what a table holds, with the names of its columns if it is a dense matrix."""
    if table.feature_names is None or not is_plain(table.X) or issparse(table.X):
        return table.X
    import pandas as pd

    return pd.DataFrame(table.X, columns=list(table.feature_names), copy=False)


def _read_for(tree: Hierarchy, path: Path, **asked: str | None) -> Table:
    names = columns_of(tree)
    source = str(path) if names is None else _kept(path)
    refuse_used(names, **asked)
    try:
        table = _read(source, names, **asked)
        table = table if names is None else replace(table, dropped=())
    except NamelessError as error:
        table = _read(source, None, **asked)
        refuse_other_width(path, names, table.X.shape[1], error)
    return as_numbers(tree, table)


def refuse_used(names: Sequence[str] | None, **asked: str | None) -> None:
    """Refuse to take a column of the model for the names or the labels of rows."""
    for option in ("id_column", "label_column"):
        column = asked.get(option)
        if column in (names or ()):
            raise InputError(f"must not be {column!r}, which the model uses", option)


def refuse_other_width(
    path: Path, names: Sequence[str] | None, n_columns: int, cause: Exception | None = None
) -> None:
    """Refuse columns without names if they are more or less than a model has."""
    if names is not None and n_columns != len(names):
        raise InputError(
            f"{path} has {counted(n_columns, 'column')} without names, and the "
            f"model {counted(len(names), 'column')}"
        ) from cause


def as_numbers(tree: Hierarchy, table: Table) -> Table:
    """Return all columns that can be features, if the model knows no names."""
    if tree.encoding is not None or columns_of(tree) is not None or is_plain(table.X):
        return table
    X: Any = table.X
    X = X.select_dtypes(["number", "bool"])
    names = tuple(X.columns) if table.feature_names else None
    return replace(table, X=X.to_numpy(np.float64), feature_names=names)


@final
class Gaps:
    """Cells that a model has not seen, and cells that are not there, of some tables."""

    def __init__(self) -> None:
        self._n_gaps, self._n_new = 0, 0
        self._new: dict[str, dict[str, None]] = {}

    def add(self, tree: Hierarchy, X: Any) -> None:
        """Look at a table."""
        if tree.encoding is None or is_plain(X):
            return
        columns = {one.name: one for one in tree.encoding.columns}  # a date once
        for one in columns.values():
            cells = X[one.name] if tree.encoding.has_names else X.iloc[:, one.place]
            self._n_gaps += int(cells.isna().sum())
            if one.kind != "category":
                continue
            factor = as_factor(cells)
            texts = [text_of(value) for value in factor.values]
            odd = [at for at, text in enumerate(texts) if text and text not in one.categories]
            if count := int(np.isin(factor.codes, odd).sum()):
                self._n_new += count
                self._new.setdefault(one.name, {}).update({texts[at]: None for at in odd})

    def notes(self) -> list[str]:
        """Say what there was."""
        found = []
        if self._new:
            new = [f"{name} = {some([*texts], 3)}" for name, texts in self._new.items()]
            told = counted(self._n_new, "cell holds", "cells hold")
            found.append(f"{told} what the model has not seen: {some(new, 3)}")
        if self._n_gaps + self._n_new:
            told = counted(self._n_gaps + self._n_new, "cell counts", "cells count")
            found.append(f"{told} as missing, that is, as the column's mean")
        return found


def read_own(tree: Hierarchy, path: Path, **asked: str | None) -> Table:
    """Return the rows that a model was fitted on, as its features."""
    return read_both(tree, path, **asked)[1]


def read_both(tree: Hierarchy, path: Path, **asked: str | None) -> tuple[Table, Table]:
    """Return the rows that a model was fitted on, as they are and as its features.

    A note says so if they do not seem to be those.
    """
    table = _read_for(tree, path, **asked)
    _refuse_other_length(tree, path, table)
    ready: Any = as_features(tree, table)
    if tree.rules[tree.root] is None or not tree.has_rows:
        check_data(ready.X, tree)
    else:
        share = float((tree.predict(ready.X) == tree.labels).mean())
        if share < LIKELY:
            note = f"the model would put only {share:.0%} of these rows where it has them: "
            note += "are they those it was fitted on, in the same order?"
            ready, table = (replace(one, notes=(*one.notes, note)) for one in (ready, table))
    return table, ready


def _refuse_other_length(tree: Hierarchy, path: Path, table: Table) -> None:
    """Refuse rows that cannot be those of a model, as they are more or less."""
    if (n_rows := count_rows(table)) != tree.n_rows:
        raise InputError(
            f"{path} has {counted(n_rows, 'row')}, and the model was fitted on "
            f"{tree.n_rows:,}: give the same rows, in the same order"
        )


def _open_for(tree: Hierarchy, data: Path, id_column: str | None, format: str | None) -> Stream:
    """Return the columns of a model part by part, and that of the names of rows, if asked."""
    names = columns_of(tree)
    refuse_used(names, id_column=id_column)
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
        refuse_other_width(data, names, width, error)
    if id_column is not None and id_column not in (stream.names or ()):
        raise InputError(f"names {id_column!r}, which is no column of {data}", "id_column")
    return stream


def read_rows(
    tree: Hierarchy, path: Path, *, label_column: str | None, **asked: str | None
) -> Table:
    """Return the rows that a model was fitted on: its features, or all columns part by part."""
    whole, format = given(label_column, "--label-column"), asked["format"]
    if not is_streamed(path, format=format, whole=whole):
        return read_own(tree, path, label_column=label_column, **asked)
    stream = _open_for(tree, path, None, format)
    table = _table_of(stream)
    _refuse_other_length(tree, path, table)
    if columns_of(tree) is None and is_framed(table):  # of a matrix, which has no names
        raise InputError(f"{path} holds a table, and the model was fitted on a matrix")
    refuse_used(columns_of(tree), id_column=asked["id_column"])
    names = table.feature_names if tree.encoding is None else None
    row_names = Beside(path, format).row_names(asked["id_column"])
    return replace(table, feature_names=names, row_names=row_names)


@final
class NewRows:
    """New rows on their way into the clusters of a model, all at once or part by part."""

    def __init__(
        self,
        tree: Hierarchy,
        path: Path,
        *,
        id_column: str | None,
        format: str | None,
        proba: bool,
    ) -> None:
        self._tree, self._id_column, self._proba = tree, id_column, proba
        self._gaps = Gaps()
        self._notes: tuple[str, ...] = ()
        width = tree.n_leaves if proba else None
        self._tables: Iterable[Table]
        if is_streamed(path, format=format):
            stream = _open_for(tree, path, id_column, format)
            n_rows = count_rows(_table_of(stream))
            self.header = Header(id_column, id_column is not None, n_rows, width)
            self._tables = (self._table(stream, part.load()) for part in stream.parts)
        else:
            table = _read_for(tree, path, id_column=id_column, format=format)
            has_names = table.row_names is not None
            self.header = Header(table.id_column, has_names, count_rows(table), width)
            self._tables, self._notes = [table], table.notes

    def blocks(self, kept: dict[str, Any] | None = None) -> Iterator[Block]:
        """Yield the labels of each part, which are added to what is kept of all."""
        for table in self._tables:
            self._gaps.add(self._tree, table.X)
            X: Any = as_features(self._tree, table).X
            P = self._tree.predict_proba(X).round(6) if self._proba else None
            block = Block(self._tree.predict(X), table.row_names, P)
            if kept is not None:
                _keep(kept, block)
            yield block

    def notes(self) -> list[str]:
        """Say what is odd about the rows, and what was missing in the parts so far."""
        return [*self._notes, *self._gaps.notes()]

    def _table(self, stream: Stream, X: Any) -> Table:
        """Return a part with the names of its rows, if there is a column of them."""
        columns, names = stream.names, None
        if self._id_column is not None:
            if stream.dtype is not None:
                raise InputError("is for parquet here", "id_column")
            columns = [name for name in columns or () if name != self._id_column]
            names, X = as_texts(X[self._id_column].tolist()), X[columns]
        features = None if columns is None else tuple(columns)
        return as_numbers(self._tree, Table(X, features, names))


def _keep(kept: dict[str, Any], block: Block) -> None:
    kept.setdefault("labels", []).extend(block.labels.tolist())
    if block.names is not None:
        kept["rows"] = kept["rows"] or []
        kept["rows"].extend(block.names)
    if block.probabilities is not None:
        kept.setdefault("probabilities", []).extend(block.probabilities.tolist())
