"""The files that commands write: checked before any work, and written whole or not at all."""

import csv
import os
import sys
import webbrowser
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from taxarbor._atomic_write import check_target, write_atomically
from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray
from taxarbor.cli._shell import print_data
from taxarbor.tables import Table
from taxarbor.tables._read_table import STDIN

if TYPE_CHECKING:
    import pandas as pd

    from taxarbor.taxonomy import Taxonomy

LABEL_SUFFIXES = ("", ".csv", ".tsv", ".txt", ".parquet")


def stem_of(data: Path) -> str | None:
    """Return the name of a file without folder and extensions; None for standard input."""
    return None if str(data) == STDIN else Path(data.name.removesuffix(".gz")).stem


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
        if str(path) == STDIN:
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


def write_page(path: Path, taxonomy: "Taxonomy", table: Table, title: str | None) -> None:
    """Write an HTML report of a model and the rows that it was fitted to."""
    from taxarbor.report import report

    names, title = table.row_names, title or "A taxonomy"
    report(taxonomy, table.X, path, row_names=names, classes=table.labels, title=title)


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
    path: Path | None,
    labels: IndexArray,
    table: Table,
    probabilities: Array | None = None,
) -> None:
    """Write a line per row to a file or standard output: its name or number, its cluster.

    And, if given, the probability of this cluster, which noise (-1) has none of, and of each.
    """
    import pandas as pd

    frame = pd.DataFrame({"cluster": labels})
    if probabilities is not None:
        frame["probability"] = np.where(labels < 0, np.nan, probabilities.max(axis=1))
        frame[[f"c{leaf}" for leaf in range(probabilities.shape[1])]] = probabilities
    header = "row" if table.id_column in (None, *frame.columns) else table.id_column
    names = None if table.row_names is None else pd.Series(table.row_names, dtype=object)
    frame.insert(0, header, np.arange(len(frame)) if names is None else names)
    if path is not None and path.suffix.lower() == ".parquet":
        write_atomically(path, lambda file: frame.to_parquet(file, index=False))
        return
    is_tsv = path is not None and path.suffix.lower() == ".tsv"
    text = format_csv(frame, sep="\t" if is_tsv else ",", float_format="%.4f")
    if path is None:
        print_data(text)
    else:
        write_text(path, text)
