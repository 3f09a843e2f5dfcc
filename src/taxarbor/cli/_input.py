"""The models and tables that commands read: in memory, or in blocks if they are large."""

import csv
import difflib
import io
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import numpy as np
from scipy.sparse import issparse

from taxarbor._errors import FileFormatError, InputError, NamelessError, counted, some
from taxarbor._types import Array, IndexArray
from taxarbor.cli._output import STDIN
from taxarbor.sources import Source, open_source, stored_format
from taxarbor.tables import Table, read_table
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._new_rows import expand

if TYPE_CHECKING:
    import pandas as pd

MAX_BYTES_IN_MEMORY = 200_000_000
"""Size of the largest file that is read into memory if its format can be read in blocks."""
MAX_NAMED = 3
"""Columns that a note names before it only counts them."""


@final
@dataclass(slots=True)
class DataFile:
    """A file or folder with a table, and the columns with names and classes of its rows."""

    path: Path
    format: str | None = None
    id_column: str | None = None
    label_column: str | None = None
    in_blocks: bool = field(init=False)
    _stdin: io.BytesIO | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        is_stdin = str(self.path) == STDIN
        self.format = self.format or (None if is_stdin else stored_format(self.path))
        self.in_blocks = not is_stdin and self.path.is_dir()
        if not is_stdin and self.format in ("npy", "parquet", "h5ad") and self.path.is_file():
            self.in_blocks = self.path.stat().st_size > MAX_BYTES_IN_MEMORY

    def __str__(self) -> str:
        return "standard input" if str(self.path) == STDIN else str(self.path)

    def read(self, columns: Sequence[str] | None = None) -> Table:
        """Return the table, or some columns of it; a source in place of its cells in blocks."""
        if self.in_blocks:
            table = self._open(columns)
        else:
            table = read_table(
                self._as_input(),
                columns=columns,
                id_column=self.id_column,
                label_column=self.label_column,
                format=self.format,
            )
        names = () if table.id_column is None else table.row_names or ()
        notes = [*table.notes]
        if n_empty := sum(not name.strip() for name in names):
            notes.append(f"{counted(n_empty, 'row has', 'rows have')} an empty id")
        duplicates = [
            repr(name) for name, n in Counter(names).items() if n > 1 and name.strip()
        ]
        if duplicates:
            notes.append(f"duplicate ids: {some(duplicates, 1)}")
        return replace(table, notes=tuple(notes))

    def load(self, option: str) -> None:
        """Have all rows read into memory, which an option needs; refuse a folder."""
        if self.in_blocks and self.path.is_dir():
            raise InputError(f"{option} needs all rows in memory, and {self} is a folder")
        self.in_blocks = False

    def cells(self, table: Table) -> Any:
        """Return the cells of a table for functions that read blocks themselves."""
        return table.X if self.in_blocks else in_memory(table)

    def read_column(self, name: str, option: str) -> "pd.Series":
        """Return one column of a file that is read in blocks."""
        if self.format != "parquet":
            raise InputError(f"is for parquet here: {self} is a large matrix", option)
        source = self.open([name])
        cells: pd.Series = source.sample(source.n_rows, seed=0).table[name]
        return cells

    def open(
        self, columns: Sequence[str] | None = None, embedding: str | None = None
    ) -> Source:
        """Return the rows as a source, without reading them."""
        return open_source(self.path, columns, self.format, embedding)

    def _open(self, columns: Sequence[str] | None) -> Table:
        names, labels = (
            None if name is None else _as_texts(self.read_column(name, option))
            for name, option in (
                (self.id_column, "id_column"),
                (self.label_column, "label_column"),
            )
        )
        if columns is None and (names or labels):
            roles = (self.id_column, self.label_column)
            columns = [name for name in self.open().names or () if name not in roles]
        source = self.open(columns)
        known = None if source.names is None else tuple(source.names)
        classes = None if labels is None else np.array(labels, dtype=np.str_)
        return Table(source, known, names, classes, id_column=self.id_column)

    def _as_input(self) -> Any:
        """Return the path, or standard input, which can be read more than once."""
        if str(self.path) != STDIN:
            return self.path
        if self._stdin is None:
            self._stdin = io.BytesIO(sys.stdin.buffer.read())
            self._stdin.name = "standard input"
        self._stdin.seek(0)
        return self._stdin


def _as_texts(cells: "pd.Series") -> tuple[str, ...]:
    missing = cells.isna().tolist()
    return tuple("" if gap else str(cell) for cell, gap in zip(cells, missing, strict=True))


def is_frame(X: Any) -> bool:
    """Say whether a table in memory is a data frame, as of csv and parquet."""
    return not (isinstance(X, np.ndarray) or issparse(X))


def split_names(text: str | None, option: str) -> list[str]:
    """Return the names in a text such as ``a, b``, where quotes keep blanks and commas."""
    try:
        return next(csv.reader([text or ""], skipinitialspace=True), [])
    except csv.Error as error:
        raise InputError(f"must be names separated by commas: {error}", option) from error


def read_training_table(
    data: DataFile,
    columns: Sequence[str] | None,
    categories: Sequence[str],
    weights: str | None,
    embedding: str | None,
) -> tuple[Table, Array | None]:
    """Return the columns to use, all by default, and the column of sample weights."""
    if data.in_blocks:
        return _open_training_table(data, columns, embedding), None
    is_apart = columns is not None and weights is not None and weights not in columns
    table = data.read([*(columns or ()), weights or ""] if is_apart else columns)
    X: Any = table.X
    known = table.feature_names if is_frame(X) else None
    for option, names in (
        ("categories", categories),
        ("weights", [weights] if weights else []),
    ):
        for name in names:
            if name not in (known or ()):
                close = difflib.get_close_matches(name, known or (), n=1)
                hint = f"; did you mean {close[0]!r}?" if close else ""
                raise InputError(
                    f"names {name!r}, which is no column of the table{hint}", option
                )
    for name in categories:
        X[name] = X[name].astype("category")
    if weights is None:
        return table, None
    names = [name for name in known or () if name != weights]
    return replace(table, X=X[names], feature_names=tuple(names)), X[weights].to_numpy()


def _open_training_table(
    data: DataFile, columns: Sequence[str] | None, embedding: str | None
) -> Table:
    if columns is None or data.format != "parquet":
        return data.read(columns)
    is_column = embedding is not None and not embedding.endswith(".npy")
    names = dict.fromkeys([*columns, embedding or ""] if is_column else columns)
    return data.read([*names])


def find_embedding(data: DataFile, name: str | None, known: Collection[str] = ()) -> Any:
    """Return the embedding that an option names, in a form that ``fit`` takes."""
    if name is None or name.endswith(".npy"):
        return name
    if data.format == "h5ad":
        return data.open(embedding=name).embedding
    if name in known or data.format != "parquet":
        return name
    source = data.open([name], name)
    return source.sample(source.n_rows, seed=0).embedding


# Rows for a model


def load_model(path: Path, n_clusters: int | None = None) -> Taxonomy:
    """Return the model in a file, pruned to a number of clusters."""
    taxonomy = Taxonomy.load(path)
    if n_clusters is None:
        return taxonomy
    if n_clusters > taxonomy.tree.n_leaves:
        limit = f"at most {taxonomy.tree.n_leaves:,}, the clusters of the model"
        raise InputError(f"must be {limit}; got {n_clusters:,}", "n_clusters")
    return taxonomy.prune(n_clusters)


def read_rows(taxonomy: Taxonomy, data: DataFile) -> Table:
    """Return rows with the columns of a model: by name if both have names, else in order."""
    names, encoding = taxonomy.feature_names, taxonomy.encoding
    if encoding is not None:
        columns = dict.fromkeys(column.name for column in encoding.columns)
        names = tuple(columns) if encoding.has_names else None
    for role in ("id_column", "label_column"):
        if (column := getattr(data, role)) in (names or ()):
            raise InputError(f"must not be {column!r}, which the model uses", role)
    try:
        table = data.read(names)
    except NamelessError as error:
        table = data.read()
        width = open_source(table.X).n_columns
        if names is not None and width != len(names):
            problem = f"has {counted(width, 'column')} without names"
            message = f"{data} {problem}, and the model has {len(names):,}"
            raise FileFormatError(message) from error
        return table
    if names is not None:
        return table
    first: Any = table.X.sample(1, seed=0).table if data.in_blocks else table.X
    if encoding is None and is_frame(first):  # a model of a matrix without names
        numbers = [*first.select_dtypes(["number", "bool"]).columns]
        X: Any = data.open(numbers) if data.in_blocks else first[numbers].to_numpy(np.float64)
        return replace(table, X=X, feature_names=table.feature_names and tuple(numbers))
    return table


def in_memory(table: Table) -> Any:
    """Return all cells of a table, in a frame if its columns have names and are dense."""
    X: Any = table.X
    X = X.sample(X.n_rows, seed=0).table if isinstance(X, Source) else X
    if not isinstance(X, np.ndarray) or table.feature_names is None:
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=[*table.feature_names], copy=False)


def predict_rows(
    taxonomy: Taxonomy, table: Table, *, proba: bool
) -> tuple[IndexArray, Array | None, list[str]]:
    """Return the cluster of each row, probabilities if asked for, and notes."""

    def predict(X: Any, rows: slice) -> tuple[tuple[Any, ...], Array]:
        features = expand(in_memory(replace(table, X=X)), taxonomy)
        labels = taxonomy.predict(features)
        more = (taxonomy.predict_proba(features).round(6),) if proba else ()
        return (labels, *more), count_missing(taxonomy, features)

    dtypes = [np.intp, np.float64] if proba else [np.intp]
    (labels, *more), counts = open_source(table.X).route(predict, dtypes)
    notes = [*table.notes, *describe_missing(taxonomy, counts)]
    return labels, more[0] if more else None, notes


def count_missing(taxonomy: Taxonomy, features: Any) -> Array:
    """Count missing values and unknown categories by column of the encoding."""
    _, missing = features
    if taxonomy.encoding is None or missing is None:
        return np.zeros(0 if taxonomy.encoding is None else len(taxonomy.encoding.columns))
    return np.asarray(missing.sum(axis=0)).ravel()


def describe_missing(taxonomy: Taxonomy, counts: Array) -> list[str]:
    """Return a note on missing values and unknown categories, if there are any."""
    columns = () if taxonomy.encoding is None else taxonomy.encoding.columns
    names = [column.name for column in columns]
    by_name = {name: int(n) for name, n in zip(names, counts, strict=True) if n}
    if not by_name:
        return []
    listed = some([f"{name} ({n:,})" for name, n in by_name.items()], MAX_NAMED)
    values = counted(sum(by_name.values()), "value is", "values are")
    return [f"{values} missing or of an unknown category, imputed by the mean: {listed}"]
