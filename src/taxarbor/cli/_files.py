"""What commands write: models, pages, texts, and labels as csv, tsv, npy or Parquet.

Outputs are checked before any work, and written whole or not at all.
"""

import csv
import io
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from errno import EEXIST
from pathlib import Path
from typing import IO, Any

import numpy as np

from taxarbor._atomic import may_write, write_atomically
from taxarbor._errors import InputError, missing_extra
from taxarbor._types import Array, IndexArray
from taxarbor.cli._shell import say_data
from taxarbor.tables import Table

STDIN = STDOUT = "-"
TEXTS = ("", ".csv", ".tsv", ".txt")
PARQUET, NPY = ".parquet", ".npy"
ROWS_PER_TEXT = 1 << 16
"""Rows whose labels are written at once."""


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


def heading(title: str | None, data: Path) -> str:
    """Return the title of a page: the one asked for, or the name of the file."""
    if title is None and str(data) == STDIN:
        return "A taxonomy"
    return Path(data.name.removesuffix(".gz")).stem if title is None else title


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
    if not may_write(folder):
        raise InputError(f"cannot write to the folder {folder}")


def as_file(output: Path | None) -> Path | None:
    """Return where to write, None where ``-`` says that it is standard output."""
    return None if output is None or str(output) == STDOUT else output


def refuse_late(path: Path, *, force: bool) -> None:
    """Refuse to replace a file that was made since the outputs were checked."""
    if not force and path.exists():
        raise FileExistsError(EEXIST, os.strerror(EEXIST), str(path))


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
    refuse_late(path, force=force)
    write_atomically(path, lambda file: file.write(as_bytes(text)))


def check_labels_name(path: Path | None, *, proba: bool = False) -> None:
    """Refuse to write labels to a file whose name promises something else."""
    if path is None:
        return
    suffix = path.suffix.lower()
    if suffix not in (*TEXTS, PARQUET, NPY):
        kinds = "labels are written as .csv, .tsv, .npy or .parquet; end the name in one"
        raise InputError(f"{path}: {kinds}")
    if suffix == NPY and proba:
        raise InputError(f"{path}: an npy file has labels only; --proba needs another format")
    if suffix == PARQUET:
        try:
            import pyarrow  # noqa: F401
        except ImportError as error:
            raise missing_extra("writing parquet", "pyarrow") from error


def write_labels(
    path: Path | None,
    labels: IndexArray,
    table: Table | None,
    probabilities: Array | None = None,
    *,
    force: bool,
) -> None:
    """Write a line per row to a file or standard output: its name or number, its cluster.

    And, if given, the probability of this cluster, and of each, to four digits in text. Noise,
    -1, has none.
    """
    suffix = "" if path is None else path.suffix.lower()
    names, columns = None if table is None else table.row_names, ["row", "cluster"]
    if table is not None and table.id_column is not None:
        columns[0] = table.id_column
    if probabilities is not None:
        columns += ["probability", *(f"c{leaf}" for leaf in range(probabilities.shape[1]))]
    lines = _lines(columns, names, labels, probabilities, "\t" if suffix == ".tsv" else ",")
    if path is None:
        for text in lines:
            say_data(text)
        return

    def write(file: IO[bytes]) -> None:
        if suffix == NPY:
            np.save(file, np.asarray(labels, dtype=np.int64))
        elif suffix == PARQUET:
            _write_parquet(file, columns, names, labels, probabilities)
        else:
            for text in lines:
                file.write(as_bytes(text))

    refuse_late(path, force=force)
    write_atomically(path, write)


def _lines(
    columns: Sequence[str],
    names: Sequence[str] | None,
    labels: IndexArray,
    probabilities: Array | None,
    delimiter: str,
) -> Iterator[str]:
    """Yield the header, and then a text for many rows at a time."""
    for first in range(0, len(labels), ROWS_PER_TEXT):
        buffer = CsvText()
        writer = csv.writer(buffer, delimiter=delimiter)
        if not first:
            writer.writerow(columns)
        rows = range(first, min(first + ROWS_PER_TEXT, len(labels)))
        for row, label in zip(rows, labels[first : rows.stop].tolist(), strict=True):
            line: list[Any] = [row if names is None else names[row], label]
            if probabilities is not None:
                P = probabilities[row].tolist()
                line += [f"{P[label]:.4f}" if label >= 0 else "", *(f"{p:.4f}" for p in P)]
            writer.writerow(line)
        yield buffer.getvalue()


def _write_parquet(
    file: IO[bytes],
    columns: Sequence[str],
    names: Sequence[str] | None,
    labels: IndexArray,
    probabilities: Array | None,
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    cells: list[Any] = [np.arange(len(labels)) if names is None else [*names]]
    cells.append(np.asarray(labels, dtype=np.int64))
    if probabilities is not None:
        own = probabilities[np.arange(len(labels)), labels]
        cells += [pa.array(np.where(labels < 0, np.nan, own), from_pandas=True)]
        cells += [*probabilities.T]
    pq.write_table(pa.table([pa.array(one) for one in cells], names=[*columns]), file)
