"""Rows that commands read: in memory, or in blocks from folders and large files."""

import csv
import difflib
import io
import sys
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from taxarbor._errors import FileFormatError, InputError, NamelessError, counted, some
from taxarbor._frames import as_factor, is_plain, text_of
from taxarbor._types import Array, IndexArray
from taxarbor.cli._files import STDIN
from taxarbor.sources import open_source, stored_format
from taxarbor.sources._local import LocalSource
from taxarbor.sources._parquet import ParquetReader
from taxarbor.sources._reader import as_texts, mark_columns
from taxarbor.tables import Table, read_table
from taxarbor.tables._table import as_labels
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._routing import expand

MIN_AGREEMENT = 0.5
"""Share of rows that a model predicts as it has them, if they are those it was fitted on."""
MAX_IN_MEMORY = 200_000_000
"""Bytes of the largest file that is read into memory if its format can be read in blocks."""


class _Stdin(io.BytesIO):
    """Standard input, which can be read more than once."""

    name = "standard input"


def _as_input(path: Path) -> Path | _Stdin:
    return _Stdin(sys.stdin.buffer.read()) if str(path) == STDIN else path


def is_in_blocks(path: Path | _Stdin, format: str | None) -> bool:
    """Say whether rows are read in blocks: those of folders, and of large files."""
    if isinstance(path, _Stdin) or str(path) == STDIN:
        return False
    if path.is_dir():
        return True
    can_be = (format or stored_format(path)) in ("npy", "parquet", "h5ad")
    return can_be and path.is_file() and path.stat().st_size > MAX_IN_MEMORY


def _read(
    path: Path | _Stdin,
    columns: Sequence[str] | None,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    format: str | None = None,
    in_blocks: bool,
) -> Table:
    """Return columns of a file, all by default, and what is odd about its ids."""
    if in_blocks:
        assert isinstance(path, Path)
        source: Any = open_source(path, columns, format)
        features = None if source.names is None else tuple(source.names)
        ids, labels = (
            None if name is None else as_texts(_read_column(path, name, option, format))
            for name, option in ((id_column, "id_column"), (label_column, "label_column"))
        )
        table = Table(source, features, ids, as_labels(labels), id_column=id_column)
    else:
        if isinstance(path, _Stdin):
            path.seek(0)
        given = {"id_column": id_column, "label_column": label_column, "format": format}
        table = read_table(path, columns=columns, **given)
    names = () if table.id_column is None else table.row_names or ()
    notes = [*table.notes]
    if n_empty := sum(not name.strip() for name in names):
        notes.append(f"{counted(n_empty, 'id is', 'ids are')} empty")
    repeated = [repr(name) for name, n in Counter(names).items() if n > 1 and name.strip()]
    if repeated:
        notes.append(f"ids repeat: {some(repeated, 1)}")
    return replace(table, notes=tuple(notes))


def _read_column(path: Path, name: str, option: str, format: str | None) -> Any:
    """Return the cells of one column of a file that is read in blocks."""
    try:
        source = open_source(path, [name], format)
    except NamelessError as error:
        raise InputError(f"is for files with names of columns: {error}", option) from error
    if not isinstance(source, LocalSource) or not isinstance(source.reader, ParquetReader):
        raise InputError(f"is for Parquet here: {path.name} is a large matrix", option)
    return source.sample(source.n_rows, seed=0).table[name].to_numpy()


def find_embedding(
    path: Path, name: str | None, format: str | None, known: Collection[str] = ()
) -> Any:
    """Return the embedding that an option names, as a fit takes it: columns by their names."""
    if name is not None and (format or stored_format(path)) == "h5ad":
        return open_source(path, None, format, name).embedding
    if name is None or known or name.endswith(".npy"):
        return name
    source = open_source(path, [name], format, name)
    return source.sample(source.n_rows, seed=0).embedding


def read_training(
    path: Path,
    columns: str | None,
    weights: str | None,
    *,
    id_column: str | None,
    label_column: str | None,
    format: str | None,
    embedding: str | None,
    in_blocks: bool,
) -> tuple[Table, Array | None]:
    """Return the columns of a file that a text names, or all; and the column of weights."""
    source, names = _as_input(path), None
    roles = {"id_column": id_column, "label_column": label_column}
    options: dict[str, Any] = roles | {"format": format, "in_blocks": in_blocks}
    beside = [one for one in (*roles.values(), weights) if one is not None]
    if columns is not None:
        names = split_names(columns, "columns")
        is_column = (format or stored_format(path)) == "parquet" and not (
            embedding is None or embedding.endswith(".npy")
        )
        more = [weights, embedding if is_column else None]
        names += [one for one in more if one is not None and one not in names]
    elif in_blocks and beside:
        names = [
            one for one in open_source(path, None, format).names or () if one not in beside
        ]
        names += [] if weights is None else [weights]
        if not names:
            raise FileFormatError(f"{path.name} has no columns but {', '.join(beside)}")
    try:
        table = _read(source, names, **options)
    except FileFormatError:  # blanks around names count only where columns have them
        bare = [name.strip() for name in names or ()]
        if bare == (names or []):
            raise
        table = _read(source, bare, **options)
    if columns is not None and has_typed_columns(table):
        wanted = [one for one in table.feature_names or () if one != embedding]
        if not in_blocks:
            table.X.attrs.clear()
        table = mark_table(table, wanted, ())
    return _split_weights(table, path, weights, format)


def _split_weights(
    table: Table, path: Path, name: str | None, format: str | None
) -> tuple[Table, Array | None]:
    """Return a table without the column of weights, and this column."""
    if name is None:
        return table, None
    (name,) = find_columns(table, [name], "weights")
    names = [one for one in table.feature_names or () if one != name]
    if not names:
        raise InputError(f"names {name!r}, the only column there is", "weights")
    X: Any = table.X
    if isinstance(X, LocalSource):
        reader: Any = X.reader
        weights = _read_column(path, name, "weights", format)
        kept = tuple(one for one in reader.requested if one != name)
        X = LocalSource(replace(reader, names=names, requested=kept))
    else:
        weights, X = X[name].to_numpy(), X[names]
    if weights.dtype.kind not in "fiub":
        raise InputError(f"names {name!r}, which does not hold numbers", "weights")
    return replace(table, X=X, feature_names=tuple(names)), weights.astype(np.float64)


def split_names(text: str | None, option: str) -> list[str]:
    """Return the names in a text such as ``a, b``."""
    try:
        return next(csv.reader([text or ""]), [])
    except csv.Error as error:
        raise InputError(f"must be names with commas between them: {error}", option) from error


def has_typed_columns(table: Table) -> bool:
    """Say whether each column of a table has a type of its own, as in csv and Parquet."""
    if isinstance(table.X, LocalSource):
        return isinstance(table.X.reader, ParquetReader)
    return not is_plain(table.X)


def find_columns(table: Table, names: Sequence[str], option: str) -> list[str]:
    """Return the columns of a table that an option names."""
    if names and not has_typed_columns(table):
        raise InputError("is for files of csv, tsv and parquet", option)
    known = table.feature_names or ()
    chosen = [name if name in known else name.strip() for name in names]
    for name in chosen:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise InputError(f"names {name!r}, which is no column to use{hint}", option)
    return chosen


def mark_table(table: Table, requested: Sequence[str], categories: Sequence[str]) -> Table:
    """Return a table some of whose columns are used or refused, some of them as categories."""
    if not (requested or categories):
        return table
    if not isinstance(table.X, LocalSource):
        return replace(table, X=mark_columns(table.X, requested, categories))
    reader: Any = table.X.reader
    requested = (*reader.requested, *requested)
    reader = replace(reader, requested=requested, categories=tuple(categories))
    return replace(table, X=LocalSource(reader))


def load_model(path: Path, n_clusters: int | None) -> Taxonomy:
    """Return the tree in a file, with fewer clusters where a number is given."""
    taxonomy = Taxonomy.load(path)
    if n_clusters is not None and n_clusters > taxonomy.tree.n_leaves:
        most = f"at most {taxonomy.tree.n_leaves:,}, as many as the model has"
        raise InputError(f"must be {most}; got {n_clusters:,}", "n_clusters")
    return taxonomy if n_clusters is None else taxonomy.prune(n_clusters)


def model_columns(taxonomy: Taxonomy) -> list[str] | None:
    """Return the names of the columns that a model uses, where it knows them."""
    if taxonomy.encoding is None:
        return None if taxonomy.feature_names is None else [*taxonomy.feature_names]
    names = dict.fromkeys(one.name for one in taxonomy.encoding.columns)
    return [*names] if taxonomy.encoding.has_names else None


def read_rows(
    taxonomy: Taxonomy,
    path: Path,
    *,
    id_column: str | None = None,
    label_column: str | None = None,
    format: str | None = None,
) -> Table:
    """Return rows with the columns of a model: by name where both have names, else in order."""
    names, source = model_columns(taxonomy), _as_input(path)
    roles = {"id_column": id_column, "label_column": label_column}
    for option, column in roles.items():
        if column in (names or ()):
            raise InputError(f"must not be {column!r}, which the model uses", option)
    in_blocks = is_in_blocks(source, format)
    options: dict[str, Any] = roles | {"format": format, "in_blocks": in_blocks}
    try:
        table = _read(source, names, **options)
    except NamelessError as error:
        table = _read(source, None, **options)
        n_columns = open_source(table.X).n_columns
        if names is not None and n_columns != len(names):
            width = counted(n_columns, "column")
            message = f"{path} has {width} without names, and the model "
            raise InputError(f"{message}{counted(len(names), 'column')}") from error
    if names is not None:
        return replace(table, dropped=())
    if taxonomy.encoding is None and has_typed_columns(
        table
    ):  # of a matrix, which has no names
        X: Any = table.X
        first = next(X.reader.blocks(use_threads=False)).load() if in_blocks else X
        numbers = [*first.select_dtypes(["number", "bool"]).columns]
        if in_blocks:
            return replace(table, X=open_source(path, numbers, format), feature_names=None)
        own = tuple(numbers) if table.feature_names else None
        return replace(table, X=X[numbers].to_numpy(np.float64), feature_names=own)
    return table


def read_own_rows(taxonomy: Taxonomy, path: Path, **options: str | None) -> tuple[Table, Any]:
    """Return the rows that a model was fitted on, and the same as its features.

    Rows in blocks stay as they are. A note says so if rows seem to be others.
    """
    table = read_rows(taxonomy, path, **options)
    if (n_rows := open_source(table.X).n_rows) != taxonomy.tree.n_rows:
        raise InputError(
            f"{path} has {counted(n_rows, 'row')}, and the model was fitted on "
            f"{taxonomy.tree.n_rows:,}: give the same rows, in the same order"
        )
    if isinstance(table.X, LocalSource):
        return table, table.X
    features = as_features(taxonomy, table)
    if taxonomy.tree.rules[taxonomy.tree.root] is not None and taxonomy.tree.has_rows:
        share = float((taxonomy.predict(features) == taxonomy.tree.labels).mean())
        if share < MIN_AGREEMENT:
            note = f"the model would put only {share:.0%} of these rows where it has them: "
            note += "are they those it was fitted on, in the same order?"
            table = replace(table, notes=(*table.notes, note))
    return table, features


def in_memory(table: Table) -> Table:
    """Return a table with all of its rows in memory."""
    if not isinstance(table.X, LocalSource):
        return table
    return replace(table, X=table.X.sample(table.X.n_rows, 0).table)


def as_features(taxonomy: Taxonomy, table: Table) -> Any:
    """Return the rows of a table in memory as a model's features, for all that follows."""
    is_named = taxonomy.encoding is not None and taxonomy.encoding.has_names
    return expand(as_frame(table) if is_named else table.X, taxonomy)


def as_frame(table: Table) -> Any:
    """Return what a table holds, with the names of its columns if it is a dense matrix."""
    if table.feature_names is None or not isinstance(table.X, np.ndarray):
        return table.X
    import pandas as pd

    return pd.DataFrame(table.X, columns=list(table.feature_names), copy=False)


def predict_rows(
    taxonomy: Taxonomy, table: Table, *, proba: bool
) -> tuple[IndexArray, Array | None, list[str]]:
    """Return the cluster of each row, probabilities if asked for, and notes."""

    def work(X: Any, rows: slice) -> tuple[tuple[Any, ...], Counter[tuple[str, str | None]]]:
        features = as_features(taxonomy, replace(table, X=X))
        labels = taxonomy.predict(features)
        more = (taxonomy.predict_proba(features).round(6),) if proba else ()
        return (labels, *more), count_missing(taxonomy, X)

    dtypes = [np.intp, np.float64] if proba else [np.intp]
    (labels, *more), counts = open_source(table.X).route(work, dtypes)
    return labels, more[0] if more else None, [*table.notes, *describe_missing(counts)]


def count_missing(taxonomy: Taxonomy, X: Any) -> Counter[tuple[str, str | None]]:
    """Count, by column, missing cells, as None, and each value that the model has not seen."""
    counts: Counter[tuple[str, str | None]] = Counter()
    if taxonomy.encoding is None or is_plain(X):
        return counts
    columns = {one.name: one for one in taxonomy.encoding.columns}  # a date once
    for one in columns.values():
        cells = X[one.name] if taxonomy.encoding.has_names else X.iloc[:, one.place]
        counts[one.name, None] += int(cells.isna().sum())
        if one.kind != "category":
            continue
        factor = as_factor(cells)
        sizes = np.bincount(factor.codes[factor.codes >= 0], minlength=len(factor.values))
        for value, size in zip(factor.values, sizes.tolist(), strict=True):
            if (text := text_of(value)) and text not in one.categories:
                counts[one.name, text] += size
    return counts


def describe_missing(counts: Counter[tuple[str, str | None]]) -> list[str]:
    """Return notes on what :func:`count_missing` found."""
    notes, values = [], dict[str, list[str]]()
    for (name, text), n in counts.items():
        if text is not None and n:
            values.setdefault(name, []).append(text)
    if values:
        n_new = sum(n for (_, text), n in counts.items() if text is not None)
        new = [f"{name} = {some(texts, 3)}" for name, texts in values.items()]
        cells = counted(n_new, "cell holds", "cells hold")
        notes.append(f"{cells} what the model has not seen: {some(new, 3)}")
    if total := counts.total():
        cells = counted(total, "cell counts", "cells count")
        notes.append(f"{cells} as missing, that is, as the column's mean")
    return notes
