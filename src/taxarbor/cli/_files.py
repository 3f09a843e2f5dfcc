"""The models and tables that commands read, and the files that they write, checked first.

Outputs are written whole or not at all. Folders and large files are read in blocks.
"""

import csv
import os
import re
import sys
import warnings
import webbrowser
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, final

import numpy as np

from taxarbor._atomic_write import check_target, write_atomically
from taxarbor._errors import InputError, counted
from taxarbor._types import Array, IndexArray, TableLike
from taxarbor.cli._shell import print_data
from taxarbor.estimators import HMMC, Taxarbor
from taxarbor.sources import LocalSource, Source, open_source, stored_format
from taxarbor.tables import Table, TableEncoder, read_table
from taxarbor.tables.notes import MAX_CATEGORIES, Note
from taxarbor.taxonomy import Taxonomy

if TYPE_CHECKING:
    import pandas as pd

STDIN = Path("-")
MAX_BYTES_IN_MEMORY = 200_000_000  # of a file whose format can be read in blocks
SAMPLE_ROWS = 100_000  # rows of a folder or a large file that explain and report read
COMPRESSION = re.compile(r"\.(gz|bz2|xz)$", re.IGNORECASE)
INTEGER = re.compile(r"-?\d+")
LABEL_SUFFIXES = ("", ".csv", ".tsv", ".txt", ".parquet")


# Tables


@final
@dataclass(frozen=True, slots=True)
class DataFile:
    """A file or folder with a table, and the parts of it to read."""

    path: Path
    format: str | None = None
    id_column: str | tuple[str, ...] | None = None
    label_column: str | None = None
    sheet: str | None = None
    layer: str = ""

    def __str__(self) -> str:
        return "standard input" if self.path == STDIN else str(self.path)

    @property
    def kind(self) -> str:
        """The format, as it is given or as the extension says."""
        return self.format or stored_format(self.path) or self.path.suffix.lower()[1:]

    def read(
        self,
        columns: Sequence[str] = (),
        names: Path | None = None,
        *,
        features: Sequence[str] = (),
        option: str = "",
    ) -> Table:
        """Return the rows as a table whose ``X`` is a source, in blocks if they are many.

        ``option`` needs all in memory, ``features`` name no rows, ``names`` is a file of names.
        """
        roles = {option: option, "--id-column": isinstance(self.id_column, str)}
        roles |= {"--label-column": self.label_column}
        in_memory = next((name for name, given in roles.items() if given), "")
        if self.path.is_dir() and in_memory:
            raise InputError(f"{in_memory} needs all rows in memory, and {self} is a folder")
        if self.path.is_dir() or (not in_memory and self._is_large()):
            source = open_source(self.path, columns or None, self.format, layer=self.layer)
            return Table(_name_columns(source, names), None)
        table = read_table(
            str(self.path),
            columns=columns or None,
            id_column=self.id_column,
            label_column=self.label_column,
            format=self.format,
            sheet=self.sheet,
            layer=self.layer or None,
            features=features,
        )
        source = open_source(table.X, feature_names=table.feature_names)
        if self.layer and isinstance(source, LocalSource):  # which the model is to know
            source = replace(source, layer=self.layer)
        return replace(table, X=_name_columns(source, names))

    def _is_large(self) -> bool:
        has_blocks = self.kind in ("npy", "parquet", "h5ad") and self.path.is_file()
        return has_blocks and self.path.stat().st_size > MAX_BYTES_IN_MEMORY

    def find_embedding(self, name: str | None, known: Sequence[str] | None) -> TableLike:
        """Return the column, .npy file or entry of obsm of an option, as ``fit`` takes it."""
        if name is None or name in (known or ()) or name.endswith(".npy"):
            return name
        if self.kind == "h5ad":
            return open_source(self.path, None, self.format, name).embedding
        if self.kind == "parquet":
            source = open_source(self.path, [name], self.format, name)
            return source.sample(source.n_rows, seed=0).embedding
        return name


def _name_columns(source: Source, names: Path | None) -> Source:
    """Return rows whose columns, which have no names, have those in a text file."""
    if names is None:
        return source
    if source.names is not None:
        raise InputError("is for columns without names, and these have some", "names")
    try:
        lines = names.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise InputError(f"must be a text in UTF-8, and {names} is none", "names") from error
    return open_source(source, feature_names=[line.strip() for line in lines if line.strip()])


# Models


def load_model(path: Path, n_clusters: int | None = None) -> Taxonomy:
    """Return the model in a file, pruned to a number of clusters."""
    taxonomy = Taxonomy.load(path)
    return taxonomy if n_clusters is None else taxonomy.prune(n_clusters)


def read_rows(taxonomy: Taxonomy, file: DataFile, option: str = "") -> Table:
    """Return rows for a model, named by the column that named those of the fit."""
    known = (taxonomy.made_by or {}).get("id_column")
    ids = file.id_column or (() if known is None else (str(known),))
    return replace(file, layer=taxonomy.columns.layer, id_column=ids).read(option=option)


def attach_rows(
    taxonomy: Taxonomy, rows: Table, most: int | None = None
) -> tuple[Taxonomy, Table]:
    """Return a model with its rows in memory, and these: of many, a sample, with a warning."""
    source = rows.X
    if source.n_rows != taxonomy.tree.n_rows:
        given = f"{counted(source.n_rows, 'row')}, and the model was fitted to"
        raise InputError(f"has {given} {taxonomy.tree.n_rows:,}: pass the same rows", "X")
    most = most or (source.n_rows if source.in_memory else SAMPLE_ROWS)
    if source.n_rows > most:
        sample = source.sample(most, seed=0)
        part = f"a sample of {most:,} of {source.n_rows:,} rows"
        warnings.warn(f"{part} is used, and numbered from 0", UserWarning, stacklevel=2)
        source = open_source(sample.table, feature_names=source.names)
        names, labels = rows.row_names, rows.labels
        names = None if names is None else tuple(names[row] for row in sample.rows.tolist())
        labels = None if labels is None else labels[sample.rows]
        rows = replace(rows, row_names=names, labels=labels)
    if source is not rows.X or not taxonomy.tree.has_rows:
        taxonomy = taxonomy.attach(source)
    return taxonomy, replace(rows, X=source)


def read_model(
    model: Path, file: DataFile, option: str = "", most: int | None = None
) -> tuple[Taxonomy, Table]:
    """Return a model and the rows that it was fitted to, in memory."""
    taxonomy = load_model(model)
    return attach_rows(taxonomy, read_rows(taxonomy, file, option), most)


# Fits and refits


def describe_reading(taxonomy: Taxonomy, rows: Table, id_column: str | None) -> Taxonomy:
    """Return a model that knows which column named its rows, and the notes on their file."""
    name, notes, made_by = rows.id_column, [*taxonomy.columns.notes], taxonomy.made_by or {}
    if name is not None:
        made_by = made_by | {"id_column": name}
    if name is not None and id_column is None:
        are_numbers = all(map(INTEGER.fullmatch, rows.row_names or ()))
        option = f"--{'numbers' if are_numbers else 'categories'} {quote(name)}"
        few = are_numbers or len(rows.row_names or ()) <= MAX_CATEGORIES
        text = f"{name!r} names the rows, and is no feature"
        notes.insert(0, Note(text, "", option if few else ""))
    columns = replace(taxonomy.columns, notes=(*notes, *map(Note, rows.notes)))
    return replace(taxonomy, columns=columns, made_by=made_by)


def make_encoder(scale: str, *, is_matrix: bool, **parameters: Any) -> TableEncoder | str:
    """Return the encoder of a table; a matrix has one unit, and is scaled only on request."""
    usual: Any = TableEncoder(scale=None if is_matrix else "auto")
    scales: dict[str, Any] = {"auto": usual.scale, "standard": "standard", "none": None}
    encoder = TableEncoder(scale=scales[scale], **parameters)
    is_usual = scale == "auto" and encoder.get_params() == usual.get_params()
    return "auto" if is_usual else encoder


def fit_without(
    estimator: Taxarbor, source: Source, excluded: Sequence[str], vectors: TableLike
) -> Taxonomy:
    """Fit to rows without some columns; those that have no names are x0, x1, and so on."""
    if not excluded:
        return estimator.fit(source, embedding=vectors).taxonomy_
    known = source.names or [f"x{place}" for place in range(source.n_columns)]
    if unknown := [name for name in excluded if name not in known]:
        raise InputError(f"names {unknown[0]!r}, which is no column of the table", "exclude")
    kept = [place for place, name in enumerate(known) if name not in excluded]
    if not kept:
        raise InputError("leaves no column", "exclude")
    part = open_source(source, feature_names=known).keep([known[place] for place in kept])
    taxonomy = estimator.fit(part, embedding=vectors).taxonomy_
    names = None if source.names is None else tuple(source.names)
    columns, width = taxonomy.columns, source.n_columns  # as the model reads whole tables
    positions = np.array(kept)[columns.positions]
    columns = replace(columns, n_columns_in=width, positions=positions, names=names)
    return replace(taxonomy, columns=columns)


def restore_estimator(taxonomy: Taxonomy) -> Taxarbor | HMMC:
    """Return the fitted estimator of a model, as assess refits it."""
    parameters = dict(taxonomy.made_by or {})
    kinds: dict[str, type[Taxarbor | HMMC]] = {"Taxarbor": Taxarbor, "HMMC": HMMC}
    if (kind := kinds.get(parameters.pop("estimator", ""))) is None:
        raise InputError("the model does not hold its parameters: fit it again")
    for name in ("encoder", "embedding", "id_column"):  # refits have the model's features
        parameters.pop(name, None)
    if parameters.get("n_clusters") is not None:
        parameters["n_clusters"] = taxonomy.tree.n_leaves  # it may be pruned
    try:
        estimator = kind(**parameters)
    except TypeError as error:
        raise InputError(f"the model has unknown parameters: {error}") from error
    estimator.taxonomy_ = taxonomy
    return estimator


# Outputs


def stem_of(data: Path) -> str | None:
    """Return the name of a file without folder and extensions; None for standard input."""
    return None if data == STDIN else Path(COMPRESSION.sub("", data.name)).stem


def check_outputs(
    outputs: Iterable[Path | None],
    inputs: Iterable[Path],
    labels: Path | None = None,
    *,
    force: bool,
) -> None:
    """Raise an error for outputs that cannot be written or must not be replaced."""
    if labels is not None and labels.suffix.lower() not in LABEL_SUFFIXES:
        raise InputError(f"{labels}: labels are written as .csv, .tsv or .parquet")
    taken = {os.path.realpath(path): "is an input, too" for path in inputs}
    for path in (*outputs, labels):
        if path is None:
            continue
        if path == STDIN:
            raise InputError("an output is a file, and - is none: leave it out or name one")
        target = os.path.realpath(path)  # of a link
        if target in taken:
            raise InputError(f"{path} {taken[target]}; name another file")
        taken[target] = "is named for two outputs"
        if not force and path.is_file():
            raise InputError(f"{path} exists already; replace it with --force")
        check_target(path)


def write_text(path: Path, text: str) -> None:
    """Write a file in UTF-8."""
    data = text.encode("utf-8", "backslashreplace")  # of surrogates
    write_atomically(path, lambda file: file.write(data))


def write_page(path: Path, taxonomy: Taxonomy, rows: Table, title: str | None) -> None:
    """Write an HTML report of a model and the rows that it was fitted to."""
    from taxarbor.report import report

    title = title or "A taxonomy"
    report(taxonomy, rows.X, path, row_names=rows.row_names, classes=rows.labels, title=title)


def open_in_browser(page: Path) -> bool:
    """Open a page in a browser, and return whether there is one."""
    has_screen = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    if sys.platform.startswith("linux") and not has_screen:  # a text browser would take over
        return False
    return webbrowser.open(page.resolve().as_uri())


def format_csv(
    frame: "pd.DataFrame", *, sep: str = ",", float_format: str | None = None
) -> str:
    r"""Return a frame as csv with lines that end in ``\n``."""
    texts = frame.select_dtypes(exclude=["number", "bool"])
    has_returns = any("\r" in str(cell) for name in texts for cell in texts[name])
    # Python 3.11 and 3.12 leave \r without quotes where lines end in \n.
    quoting = csv.QUOTE_NONNUMERIC if has_returns else csv.QUOTE_MINIMAL
    text: str = frame.to_csv(
        sep=sep, index=False, float_format=float_format, lineterminator="\n", quoting=quoting
    )
    return text


def write_labels(
    path: Path | None, labels: IndexArray, rows: Table, probabilities: Array | None = None
) -> None:
    """Write the cluster of each row and, if given, the probabilities, which noise has not."""
    import pandas as pd

    frame = pd.DataFrame({"cluster": labels})
    if probabilities is not None:
        frame["probability"] = np.where(labels < 0, np.nan, probabilities.max(axis=1))
        frame[[f"c{leaf}" for leaf in range(probabilities.shape[1])]] = probabilities
    header = "row" if rows.id_column in (None, *frame.columns) else rows.id_column
    names = None if rows.row_names is None else pd.Series(rows.row_names, dtype=object)
    frame.insert(0, header, np.arange(len(frame)) if names is None else names)
    suffix = "" if path is None else path.suffix.lower()
    if path is not None and suffix == ".parquet":
        write_atomically(path, lambda file: frame.to_parquet(file, index=False))
        return
    text = format_csv(frame, sep="\t" if suffix == ".tsv" else ",", float_format="%.4f")
    if path is None:
        print_data(text)
    else:
        write_text(path, text)
