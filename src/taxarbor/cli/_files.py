"""What commands read and write: models, rows that fit them, labels, pages.

Outputs are checked before any work, and written whole or not at all.
"""

import csv
import difflib
import io
import os
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, final

import numpy as np
from scipy.sparse import issparse

from taxarbor._errors import FileFormatError, InputError, counted, some
from taxarbor.cli import interruptible
from taxarbor.hierarchy import Hierarchy
from taxarbor.hierarchy._cells import as_factor, is_plain, text_of
from taxarbor.hierarchy._route import check_data, expand
from taxarbor.hierarchy._rule import deciding_rule
from taxarbor.hierarchy._whole import DRAFT, may_write, move_whole, told_as, write_whole
from taxarbor.metrics import ClassTree
from taxarbor.tables import Table, read_table
from taxarbor.tables._files import rest_of
from taxarbor.tables._study import ASKED
from taxarbor.tables._table import NamelessError, Request

LIKELY = 0.5
"""Share of rows that a model puts where it has them, if they are those it was fitted on."""
STDIN = STDOUT = "-"


class _Stdin(io.BytesIO):
    """Standard input, which can be read more than once."""

    name = "standard input"


def _kept(path: Path) -> Any:
    if str(path) != STDIN:
        return str(path)
    return _Stdin(rest_of(sys.stdin.buffer, Request(_Stdin.name)))


def split_names(text: str | None, option: str) -> list[str]:
    """Return the names in a text such as ``a, b``."""
    try:
        return next(csv.reader([text or ""]), [])
    except csv.Error as error:
        raise InputError(f"must be names with commas between them: {error}", option) from error


def read_columns(
    path: Path, columns: str | None, weights: str | None = None, **asked: str | None
) -> Table:
    """Return the columns of a file that a text such as ``a, b`` names, or all.

    Blanks around names do not count, unless there are columns whose names have them.
    """
    if columns is None:
        return _read(str(path), None, **asked)
    names = split_names(columns, "columns")
    names += [weights] if weights is not None and weights not in names else []
    bare, source = [name.strip() for name in names], _kept(path)
    try:
        return _read(source, names, **asked)
    except FileFormatError:
        if names == bare:
            raise
        return _read(source, bare, **asked)


def named_columns(table: Table, names: Sequence[str], option: str) -> list[str]:
    """Return the columns of a table that an option names; they are then used, or refused."""
    X = table.X
    if names and is_plain(X):
        raise InputError("is for files of csv, tsv and parquet", option)
    there = table.feature_names or ()
    found = [name if name in there else name.strip() for name in names]
    for name in found:
        if name not in there:
            close = difflib.get_close_matches(name, there, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputError(f"names {name!r}, which is no column to use{hint}", option)
    if found:
        frame: Any = X
        frame.attrs[ASKED] = (*frame.attrs[ASKED], *found)
    return found


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


def named_after(data: Path, suffix: str) -> Path:
    """Return a file in this folder that is called as the data are."""
    if str(data) == STDIN:
        raise InputError("the model has no name: give one with --output")
    return Path(Path(data.name.removesuffix(".gz")).stem + suffix)


def opened(page: Path) -> bool:
    """Open a page in a browser with a window of its own, and say whether there is one."""
    import webbrowser

    has_screen = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    if sys.platform.startswith("linux") and not has_screen:  # else it may be one in text
        return False
    try:
        return webbrowser.open(page.resolve().as_uri())
    except (webbrowser.Error, OSError):
        return False


def heading(title: str | None, data: Path) -> dict[str, str]:
    """Return the title of a page as an option: the one asked for, or the name of the file."""
    if title is None and str(data) == STDIN:
        return {}
    return {"title": Path(data.name.removesuffix(".gz")).stem if title is None else title}


def read_truth(path: Path | None) -> ClassTree | None:
    """Return the tree of the classes in a file, where one is given."""
    return None if path is None else ClassTree.read(path)


def read_for(tree: Hierarchy, path: Path, **asked: str | None) -> Table:
    """Return rows with the columns of a model: by name where both have names, else by place.

    Columns that the model does not know are passed over in silence; what counts as missing is
    noted.
    """
    table = _read_for(tree, path, **asked)
    return replace(table, notes=(*table.notes, *_note_on_gaps(tree, table)))


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


def _note_on_gaps(tree: Hierarchy, table: Table) -> list[str]:
    """Say what a model has not seen, and what is not there."""
    gaps = Gaps()
    gaps.add(tree, table.X)
    return gaps.notes()


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

    A doubt that they are those is a note.
    """
    table = _read_for(tree, path, **asked)
    if table.X.shape[0] != tree.n_rows:
        raise InputError(
            f"{path} has {counted(table.X.shape[0], 'row')}, and the model was fitted on "
            f"{tree.n_rows:,}: give the same rows, in the same order"
        )
    ready: Any = as_features(tree, table)
    if deciding_rule(tree) is None or not tree.has_rows:
        check_data(ready.X, tree)
    else:
        share = float((tree.predict(ready.X) == tree.labels).mean())
        if share < LIKELY:
            doubt = f"the model would put only {share:.0%} of these rows where it has them: "
            doubt += "are they those it was fitted on, in the same order?"
            ready, table = (replace(one, notes=(*one.notes, doubt)) for one in (ready, table))
    return table, ready


def check_outputs(
    outputs: Iterable[Path | None], inputs: Iterable[Path | None], *, force: bool
) -> None:
    """Refuse, before anything is done, what could not be written or must not be lost."""
    sources = {os.path.realpath(path) for path in inputs if path and str(path) != STDIN}
    taken: set[str] = set()
    for path in outputs:
        if path is None:
            continue
        if str(path) == STDOUT:
            raise InputError("this does not go to standard output; name a file in place of -")
        place = os.path.realpath(path)  # through links
        if place in sources:
            raise InputError(f"{path} would be read and written at once; name another file")
        if place in taken:
            raise InputError(f"{path} would be written twice; name different files")
        taken.add(place)
        _check_target(path, Path(place).parent, force)


def _check_target(path: Path, folder: Path, force: bool) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = 0
    if stat.S_ISDIR(mode):
        raise InputError(f"{path} is a folder; name a file in it")
    if mode and not stat.S_ISREG(mode):
        raise InputError(f"{path} is no plain file, and would be replaced by one")
    if mode and not force:
        raise InputError(f"{path} is there already; --force replaces it")
    if mode and not may_write(path):
        raise InputError(f"{path} may not be written; change its mode, or name another file")
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; make it first")
    try:
        with interruptible(), tempfile.NamedTemporaryFile(dir=folder, prefix=DRAFT):
            pass
    except OSError as error:
        raise InputError(f"cannot write to the folder {folder}: {error.strerror}") from error


def as_file(output: Path | None) -> Path | None:
    """Return where to write, None where ``-`` says that it is standard output."""
    return None if output is None or str(output) == STDOUT else output


@contextmanager
def placed(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield a name to write to; what is written there gets its place in the end.

    The library replaces what is there. A file may have come since the outputs were checked:
    FileExistsError, unless ``force`` is given.
    """
    folder = Path(os.path.realpath(path)).parent
    aside = partial(tempfile.TemporaryDirectory, prefix=DRAFT, dir=folder)
    with interruptible(), told_as(path), aside() as place:
        draft = Path(place) / path.name
        yield draft
        move_whole(draft, path, replace=force)


def as_bytes(text: str) -> bytes:
    """Return a text in UTF-8; half characters, which it lacks, are spelt out."""
    return text.encode("utf-8", "backslashreplace")


class CsvText(io.StringIO):
    r"""The text of a csv file, whose lines end in ``\n``.

    Its writer must end them in ``\r\n``: else it would leave a cell with a ``\r`` without
    quotes, and whoever reads the file would take that for the end of a line.
    """

    def write(self, line: str) -> int:
        """Add a line."""
        return super().write(line.removesuffix("\r\n") + "\n")


def write_text(path: Path, text: str, *, force: bool) -> None:
    """Write a file in UTF-8; one that is there is replaced only if ``force`` is given."""
    data = as_bytes(text)
    with interruptible():
        write_whole(path, lambda file: file.write(data), replace=force)
