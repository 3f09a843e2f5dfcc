"""The models and tables that commands read; folders and large files in blocks."""

import csv
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, final

from taxarbor._errors import InputError, counted
from taxarbor._frames import is_frame, is_plain
from taxarbor.sources import Source, open_source, stored_format
from taxarbor.tables import Table, read_table
from taxarbor.tables._read_table import STDIN
from taxarbor.taxonomy import Taxonomy

MAX_BYTES_IN_MEMORY = 200_000_000
"""Size of the largest file that is read into memory if its format can be read in blocks."""
SAMPLE_ROWS = 100_000
"""Rows of a folder or a large file that explain and report read."""


@final
@dataclass(frozen=True, slots=True)
class DataFile:
    """A file or folder with a table, and the columns with names and classes of its rows."""

    path: Path
    format: str | None = None
    id_column: str | None = None
    label_column: str | None = None
    sheet: str | None = None
    layer: str | None = None

    def __str__(self) -> str:
        return "standard input" if str(self.path) == STDIN else str(self.path)

    @property
    def stored_format(self) -> str | None:
        """The format, if it is one that can be read in blocks."""
        return self.format or stored_format(self.path)

    def read(
        self,
        columns: Sequence[str] | None = None,
        option: str | None = None,
        features: Sequence[str] = (),
    ) -> Table:
        """Return the table; ``X`` is a source if it is read in blocks.

        ``option`` needs all rows in memory, as the columns with names and classes do. Columns
        that are ``features`` name no rows.
        """
        option = option or ("--id-column" if self.id_column is not None else None)
        option = option or ("--label-column" if self.label_column is not None else None)
        is_folder = self.path.is_dir()
        if is_folder and option is not None:
            raise InputError(f"{option} needs all rows in memory, and {self} is a folder")
        if is_folder or (option is None and self._is_large()):
            source = open_source(self.path, columns, self.format)
            return Table(source, None if source.names is None else tuple(source.names))
        return read_table(
            STDIN if str(self.path) == STDIN else self.path,
            columns=columns,
            id_column=self.id_column,
            label_column=self.label_column,
            format=self.format,
            sheet=self.sheet,
            features=features,
        )

    def _is_large(self) -> bool:
        if self.stored_format not in ("npy", "parquet", "h5ad") or not self.path.is_file():
            return False
        return self.path.stat().st_size > MAX_BYTES_IN_MEMORY


# Tables for a fit


def split_names(text: str | None) -> list[str]:
    """Return the names in a text such as ``a, b``, where quotes keep blanks and commas."""
    lines = csv.reader((text or "").splitlines(), skipinitialspace=True)
    return [name for line in lines for name in line]


def exclude(file: DataFile, table: Table, names: Sequence[str]) -> Table:
    """Return a table without some of its columns."""
    known = table.feature_names or ()
    if unknown := [name for name in names if name not in known]:
        raise InputError(f"names {unknown[0]!r}, which is no column of {file}", "exclude")
    kept, X = [name for name in known if name not in names], table.X
    if not names:
        return table
    if is_frame(X):
        X = X[kept]
    elif is_plain(X):
        X = X[:, [known.index(name) for name in kept]]
    else:
        X = X.keep({*kept})
    return replace(table, X=X, feature_names=tuple(kept))


def read_lines(path: Path) -> list[str]:
    """Return the lines of a text file, without the empty ones."""
    lines = path.read_text(encoding="utf-8-sig").splitlines()
    return [line.strip() for line in lines if line.strip()]


def mark_categories(file: DataFile, X: Any, names: Sequence[str]) -> None:
    """Make columns of a frame categories."""
    for name in names:
        if not is_frame(X) or name not in X.columns:
            raise InputError(f"names {name!r}, which is no column of {file}", "categories")
        X[name] = X[name].astype("category")


def find_embedding(file: DataFile, name: str | None, known: Collection[str] = ()) -> Any:
    """Return the embedding that an option names, in a form that ``fit`` takes.

    It may be one of the known columns, a .npy file, an entry of obsm or another column.
    """
    is_stored = file.stored_format in ("h5ad", "parquet")
    if name is None or name in known or name.endswith(".npy") or not is_stored:
        return name
    if file.stored_format == "h5ad":
        return open_source(file.path, None, file.format, name).embedding
    source = open_source(file.path, [name], file.format, name)
    return source.sample(source.n_rows, seed=0).embedding


# Rows for a model


def load_model(path: Path, n_clusters: int | None = None) -> Taxonomy:
    """Return the model in a file, pruned to a number of clusters."""
    taxonomy = Taxonomy.load(path)
    return taxonomy if n_clusters is None else taxonomy.prune(n_clusters)


def read_rows(taxonomy: Taxonomy, file: DataFile, option: str | None = None) -> Table:
    """Return rows for a model; columns that it reads name no rows."""
    names = taxonomy.columns.names or ()
    used = [names[at] for at in taxonomy.columns.positions.tolist()] if names else []
    return file.read(None, option, used)


def attach_rows(taxonomy: Taxonomy, table: Table) -> tuple[Taxonomy, Table]:
    """Return a model with its rows in memory, and these.

    Of a folder or a large file they are a sample, and a warning says so.
    """
    source = open_table(table)
    if source.n_rows != taxonomy.tree.n_rows:
        rows = f"{counted(source.n_rows, 'row')}, and the model was fitted to"
        raise InputError(f"has {rows} {taxonomy.tree.n_rows:,}: pass the same rows", "X")
    sample = source.sample(source.n_rows if source.in_memory else SAMPLE_ROWS, seed=0)
    is_part = len(sample.rows) < source.n_rows
    if is_part:
        rows = f"a sample of {len(sample.rows):,} of {source.n_rows:,} rows"
        warnings.warn(f"{rows} is used, and numbered from 0", UserWarning, stacklevel=2)
        names = None if is_frame(sample.table) else source.names
        source = open_source(sample.table, feature_names=names)
    if is_part or not taxonomy.tree.has_rows:
        taxonomy = taxonomy.attach(source)
    return taxonomy, replace(table, X=source)


def read_model(
    model: Path, file: DataFile, option: str | None = None
) -> tuple[Taxonomy, Table]:
    """Return a model and the rows that it was fitted to, in memory."""
    taxonomy = load_model(model)
    return attach_rows(taxonomy, read_rows(taxonomy, file, option))


def open_table(table: Table) -> Source:
    """Return the rows of a table as a source, with the names of its columns."""
    names = table.feature_names if is_plain(table.X) else None
    return open_source(table.X, feature_names=names)
