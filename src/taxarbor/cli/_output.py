"""The files that commands write: models, pages, text, and labels as csv, tsv, npy or parquet.

Outputs are checked before any work, and written whole or not at all.
"""

import math
import os
import re
import sys
import webbrowser
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from taxarbor._atomic import check_target, write_atomically
from taxarbor._errors import InputError, missing_extra
from taxarbor._types import Array, IndexArray
from taxarbor.cli._shell import print_data
from taxarbor.tables import Table

STDIN = STDOUT = "-"
TEXT_SUFFIXES = ("", ".csv", ".tsv", ".txt")
NEEDS_QUOTES = re.compile(r'[",\t\r\n]')


def stem_of(data: Path) -> str | None:
    """Return the name of a file without folder and extensions; None for standard input."""
    return None if str(data) == STDIN else Path(data.name.removesuffix(".gz")).stem


def as_file(output: Path | None) -> Path | None:
    """Return the file to write, None for standard output."""
    return None if output is None or str(output) == STDOUT else output


def check_outputs(
    outputs: Iterable[Path | None], inputs: Iterable[Path | None], *, force: bool
) -> None:
    """Raise an error for outputs that cannot be written or must not be replaced."""
    sources = {os.path.realpath(path) for path in inputs if path and str(path) != STDIN}
    targets: set[str] = set()
    for path in outputs:
        if path is None:
            continue
        if str(path) == STDOUT:
            raise InputError("cannot write this to standard output; name a file instead of -")
        target = os.path.realpath(path)  # of a link
        if target in sources:
            raise InputError(f"{path} is an input, too; name another file")
        if target in targets:
            raise InputError(f"{path} is named for two outputs; name different files")
        targets.add(target)
        check_new(path, force=force)
        check_target(path)


def check_new(path: Path, *, force: bool) -> None:
    """Raise InputError if a file exists that must not be replaced."""
    if not force and path.is_file():
        raise InputError(f"{path} exists already; replace it with --force")


def write_text(path: Path, text: str, *, force: bool) -> None:
    """Write a file in UTF-8."""
    check_new(path, force=force)
    write_atomically(path, lambda file: file.write(_encode(text)))


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")  # of surrogates


def open_in_browser(page: Path) -> bool:
    """Open a page in a browser, and return whether there is one."""
    has_screen = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    if sys.platform.startswith("linux") and not has_screen:  # a text browser would take over
        return False
    try:
        return webbrowser.open(page.resolve().as_uri())
    except (webbrowser.Error, OSError):
        return False


def format_csv(rows: Iterable[Iterable[Any]], delimiter: str = ",") -> Iterator[str]:
    r"""Yield lines of csv that end in ``\n``.

    The writer of the standard library leaves ``\r`` without quotes then, at least in 3.11.
    """
    for row in rows:
        texts = map(str, row)
        cells = (
            '"' + t.replace('"', '""') + '"' if NEEDS_QUOTES.search(t) else t for t in texts
        )
        yield delimiter.join(cells) + "\n"


def check_labels_name(path: Path | None, *, proba: bool = False) -> None:
    """Raise InputError for a file of labels with an extension of another format."""
    suffix = "" if path is None else path.suffix.lower()
    if suffix not in (*TEXT_SUFFIXES, ".npy", ".parquet"):
        raise InputError(f"{path}: labels are written as .csv, .tsv, .npy or .parquet")
    if suffix == ".npy" and proba:
        raise InputError(f"{path}: npy holds labels only; write --proba as csv or parquet")
    if suffix == ".parquet":
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise missing_extra("writing parquet", "pyarrow") from error


def write_labels(
    path: Path | None,
    labels: IndexArray,
    table: Table,
    probabilities: Array | None = None,
    *,
    force: bool,
) -> None:
    """Write a line per row to a file or standard output: its name or number, its cluster.

    And, if given, the probability of this cluster, and of each, to four digits in text. The
    first is missing for noise, which has the label -1.
    """
    suffix = "" if path is None else path.suffix.lower()
    labels = np.asarray(labels, dtype=np.int64)
    header = [table.id_column or "row", "cluster"]
    columns: list[Any] = [table.row_names or np.arange(len(labels)), labels]
    if probabilities is not None:
        likely = probabilities[np.arange(len(labels)), labels]
        header += ["probability", *(f"c{leaf}" for leaf in range(probabilities.shape[1]))]
        columns += [np.where(labels < 0, np.nan, likely), *probabilities.T]
    rows = chain([header], _list_rows(columns))
    lines = format_csv(rows, "\t" if suffix == ".tsv" else ",")
    if path is None:
        print_data("".join(lines))
        return

    def write(file: IO[bytes]) -> None:
        if suffix == ".npy":
            np.save(file, labels)
        elif suffix == ".parquet":
            import pyarrow as pa
            import pyarrow.parquet as pq

            cells = [pa.array(values, from_pandas=True) for values in columns]
            pq.write_table(pa.table(cells, names=header), file)
        else:
            file.writelines(map(_encode, lines))

    check_new(path, force=force)
    write_atomically(path, write)


def _list_rows(columns: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield the cells of each row, probabilities to four digits."""
    cells = (
        values.tolist() if isinstance(values, np.ndarray) else values for values in columns
    )
    for name, label, *shares in zip(*cells, strict=True):
        yield name, label, *("" if math.isnan(share) else f"{share:.4f}" for share in shares)
