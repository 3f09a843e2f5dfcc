"""What commands read: models, and rows that fit them."""

import csv
import io
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from taxarbor._errors import FileFormatError
from taxarbor.cli._output import STDIN
from taxarbor.cli._render import counted
from taxarbor.data import Table, read_table
from taxarbor.hierarchy import Hierarchy, deciding_rule

LIKELY = 0.5
"""Share of rows that a model puts where it has them, if they are those it was fitted on."""


@final
@dataclass(frozen=True, slots=True)
class Asked:
    """What a command wants from a file beside the numbers."""

    id_column: str | None = None
    label_column: str | None = None
    format: str | None = None

    def read(self, source: Any, columns: tuple[str, ...] | None = None) -> Table:
        """Return the rows in a file; see :func:`read_table`. Odd ids are noted."""
        if isinstance(source, io.BytesIO):
            source.seek(0)
        elif str(source) == STDIN:
            source = STDIN
        table = read_table(
            source,
            columns=columns,
            id_column=self.id_column,
            label_column=self.label_column,
            format=self.format,
        )
        ids = () if self.id_column is None else table.row_names or ()
        return replace(table, notes=(*table.notes, *_notes_on_ids(ids)))

    def read_columns(self, source: Path, columns: str | None) -> Table:
        """Return the columns named in a text such as ``a, b``, or all.

        Blanks around names do not count, unless there are columns whose names have them.
        """
        if columns is None:
            return self.read(source)
        names = tuple(next(csv.reader([columns]), ()))
        bare = tuple(name.strip() for name in names)
        if names == bare:
            return self.read(source, names)
        kept = _kept(source)
        try:
            return self.read(kept, names)
        except FileFormatError:
            return self.read(kept, bare)


def _kept(path: Path) -> Any:
    """Return what can be read more than once, which a pipe cannot."""
    return io.BytesIO(sys.stdin.buffer.read()) if str(path) == STDIN else path


def _notes_on_ids(ids: Sequence[str]) -> list[str]:
    n_empty = sum(not name.strip() for name in ids)
    repeated = [name for name, n in Counter(ids).items() if n > 1 and name.strip()]
    notes = []
    if n_empty:
        notes.append(f"{counted(n_empty, 'id is', 'ids are')} empty")
    if repeated:
        more = f" and {len(repeated) - 1} more" * (len(repeated) > 1)
        notes.append(f"ids repeat: {repeated[0]!r}{more}")
    return notes


def heading(title: str | None, data: Path) -> dict[str, str]:
    """Return the title of a page as an option: the one asked for, or the name of the file."""
    if title is None and str(data) == STDIN:
        return {}
    return {"title": Path(data.name.removesuffix(".gz")).stem if title is None else title}


def read_for(tree: Hierarchy, path: Path, asked: Asked) -> Table:
    """Return rows with the features of a model: by name where both have names, else by place.

    Columns that the model does not know are passed over in silence.

    Raises
    ------
    FileFormatError, OSError, ImportError
        As :func:`read_table`.
    ValueError
        If there are more or fewer features.
    """
    names = tree.feature_names
    if names is None:
        return asked.read(path)
    source = _kept(path)
    try:
        return replace(asked.read(source, names), dropped=())
    except FileFormatError as error:
        table = _unnamed(source, asked)
        if table is None:
            raise
        if table.X.shape[1] != len(names):
            raise ValueError(
                f"{path} has {counted(table.X.shape[1], 'column')} without names, and the "
                f"model {counted(len(names), 'feature')}"
            ) from error
        return table


def _unnamed(source: Any, asked: Asked) -> Table | None:
    """Return the rows of a file whose columns have no names, None of any other."""
    try:
        table = asked.read(source)
    except FileFormatError:
        return None
    return table if table.feature_names is None else None


def read_own(tree: Hierarchy, path: Path, asked: Asked, notes: list[str]) -> Table:
    """Return the rows that a model was fitted on; a doubt that they are is a note.

    Raises
    ------
    ValueError
        If they are more or fewer.
    """
    table = read_for(tree, path, asked)
    notes += table.notes
    n_rows = len(tree.order)
    if table.X.shape[0] != n_rows:
        raise ValueError(
            f"{path} has {counted(table.X.shape[0], 'row')}, and the model was fitted on "
            f"{n_rows:,}: give the same rows, in the same order"
        )
    if deciding_rule(tree) is not None:
        X: Any = table.X
        share = float(np.mean(tree.predict(X) == tree.labels))
        if share < LIKELY:
            notes.append(
                f"the model would put only {share:.0%} of these rows where it has them: are "
                "they those it was fitted on, in the same order?"
            )
    return table
