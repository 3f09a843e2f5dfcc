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
from taxarbor._frames import text_of
from taxarbor._types import Array, IndexArray
from taxarbor.cli._write import STDIN
from taxarbor.sources import Source, open_source, stored_format
from taxarbor.tables import Table, read_table
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._routing import expand

if TYPE_CHECKING:
    import pandas as pd

MAX_BYTES_IN_MEMORY = 200_000_000
"""Size of the largest file that is read into memory if its format can be read in blocks."""
MAX_NAMED = 3
"""Columns and values that a note names before it only counts them."""


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
        roles = {"id_column": self.id_column, "label_column": self.label_column}
        texts = {
            role: _as_texts(self.read_column(name, role))
            for role, name in roles.items()
            if name is not None
        }
        if columns is None and texts:
            known = self.open().names or ()
            columns = [name for name in known if name not in roles.values()]
        source = self.open(columns)
        names = None if source.names is None else tuple(source.names)
        labels = texts.get("label_column")
        return Table(
            source,
            names,
            texts.get("id_column"),
            None if labels is None else np.array(labels, dtype=np.str_),
            id_column=self.id_column,
        )

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
    *,
    columns: Sequence[str] | None,
    categories: Sequence[str],
    weights: str | None,
    embedding: str | None,
) -> tuple[Table, Array | None]:
    """Return the columns to use, all by default, and the column of sample weights."""
    names = None if columns is None else [*columns]
    if not data.in_blocks:
        if names is not None and weights is not None and weights not in names:
            names.append(weights)
        table = data.read(names)
        _check_columns(table, categories, "categories")
        for name in categories:
            table.X[name] = table.X[name].astype("category")
        if weights is None:
            return table, None
        _check_columns(table, [weights], "weights")
        sample_weight = table.X[weights].to_numpy()
        return _with_cells(table, table.X.drop(columns=weights)), sample_weight
    if names is None and weights is not None:
        beside = (data.id_column, data.label_column, weights)
        names = [name for name in data.open().names or () if name not in beside]
    if columns is not None:
        names = [name for name in columns if name != weights]
        if embedding is not None and data.format == "parquet" and embedding not in names:
            names += [] if embedding.endswith(".npy") else [embedding]
    table = data.read(names)
    _check_columns(table, categories, "categories")
    source: Any = table.X
    if data.format == "parquet":
        requested = tuple(name for name in columns or () if name not in (weights, embedding))
        reader = replace(source.reader, requested=requested, categories=tuple(categories))
        source = replace(source, reader=reader)
    sample_weight = None if weights is None else data.read_column(weights, "weights").to_numpy()
    return replace(table, X=source), sample_weight


def _with_cells(table: Table, X: Any) -> Table:
    """Return a table with other columns."""
    return replace(table, X=X, feature_names=tuple(map(str, X.columns)))


def _check_columns(table: Table, names: Sequence[str], option: str) -> None:
    """Raise InputError if an option names a column that the table does not have."""
    known = table.feature_names or ()
    for name in names:
        if name not in known or issparse(table.X) or isinstance(table.X, np.ndarray):
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputError(f"names {name!r}, which is no column of the table{hint}", option)


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
        return replace(table, dropped=())
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

    def predict(X: Any, rows: slice) -> tuple[tuple[Any, ...], Counter[tuple[str, str]]]:
        X = in_memory(replace(table, X=X))
        features = expand(X, taxonomy)
        labels = taxonomy.predict(features)
        more = (taxonomy.predict_proba(features).round(6),) if proba else ()
        return (labels, *more), count_missing(taxonomy, X)

    dtypes = [np.intp, np.float64] if proba else [np.intp]
    (labels, *more), counts = open_source(table.X).route(predict, dtypes)
    return labels, more[0] if more else None, [*table.notes, *describe_missing(counts)]


def count_missing(taxonomy: Taxonomy, X: Any) -> Counter[tuple[str, str]]:
    """Count, by column, missing values, as "", and each category that is not in the model."""
    counts: Counter[tuple[str, str]] = Counter()
    if taxonomy.encoding is None or not is_frame(X):
        return counts
    for column in {column.name: column for column in taxonomy.encoding.columns}.values():
        cells = X[column.name] if taxonomy.encoding.has_names else X.iloc[:, column.place]
        counts[column.name, ""] += int(cells.isna().sum())
        if column.kind == "category":
            for value, n in cells.value_counts().items():
                if (text := text_of(value)) not in column.categories:
                    counts[column.name, text] += n
    return +counts


def describe_missing(counts: Counter[tuple[str, str]]) -> list[str]:
    """Return notes on missing values and unknown categories."""
    notes = []
    unknown = {key: n for key, n in counts.items() if key[1]}
    if unknown:
        values = some([f"{name} = {text}" for name, text in unknown], MAX_NAMED)
        n_values = counted(sum(unknown.values()), "value")
        notes.append(f"{n_values} of categories that are not in the model: {values}")
    if total := counts.total():
        notes.append(f"{counted(total, 'missing value')} imputed by the mean of the column")
    return notes
