"""What commands read: models, and rows that fit them."""

import io
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

import numpy as np

from taxarbor._errors import FileFormatError
from taxarbor.cli._output import STDIN
from taxarbor.data import Table, read_table
from taxarbor.hierarchy import Hierarchy

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
        """Return the rows in a file; see :func:`read_table`."""
        if isinstance(source, Path) and str(source) == STDIN:
            source = STDIN
        return read_table(
            source,
            columns=columns,
            id_column=self.id_column,
            label_column=self.label_column,
            format=self.format,
        )


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
    # A pipe is read once, and perhaps looked at twice.
    source: Any = io.BytesIO(sys.stdin.buffer.read()) if str(path) == STDIN else path
    try:
        return replace(asked.read(source, names), dropped=())
    except FileFormatError as error:
        table = _unnamed(source, asked)
        if table is None:
            raise
        if table.X.shape[1] != len(names):
            raise ValueError(
                f"{path} has {table.X.shape[1]} columns without names, and the model "
                f"{len(names)} features"
            ) from error
        return table


def _unnamed(source: Any, asked: Asked) -> Table | None:
    """Return the rows of a file whose columns have no names, None of any other."""
    if isinstance(source, io.BytesIO):
        source.seek(0)
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
    n_rows = len(tree.order)
    if table.X.shape[0] != n_rows:
        raise ValueError(
            f"{path} has {table.X.shape[0]} rows, and the model was fitted on {n_rows}: give "
            "the same rows, in the same order"
        )
    if places_rows(tree):
        X: Any = table.X
        share = float(np.mean(tree.predict(X) == tree.labels))
        if share < LIKELY:
            notes.append(
                f"the model would put only {share:.0%} of these rows where it has them: are "
                "they those it was fitted on, in the same order?"
            )
    return table


def places_rows(tree: Hierarchy) -> bool:
    """Say whether a model has rules or scores by which new rows go somewhere."""
    return tree.placement is not None or tree.rules[tree.root] is not None
