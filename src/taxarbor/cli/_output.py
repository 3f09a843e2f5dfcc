"""Where results go: checked before any work, written whole or not at all."""

import csv
import io
import json
import math
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from taxarbor.cli._guard import on_one_line
from taxarbor.cli._words import in_options
from taxarbor.hierarchy import write_whole

MAX_NAMED = 5
"""Columns that a note names before it only counts them."""
LABEL_SUFFIXES = ("", ".csv", ".tsv", ".txt")
STDIN = STDOUT = "-"


def check_outputs(
    outputs: Iterable[Path | None], inputs: Iterable[Path | None], *, force: bool
) -> None:
    """Refuse, before anything is done, what could not be written or must not be lost.

    Raises
    ------
    ValueError
        If an output is there already and ``force`` is not given, is no plain file, is
        standard output, an input or another output, or its folder cannot be written to.
    """
    sources = {_place(path) for path in inputs if path is not None and str(path) != STDIN}
    taken: set[str] = set()
    for path in outputs:
        if path is None:
            continue
        if str(path) == STDOUT:
            raise ValueError("this does not go to standard output; name a file in place of -")
        place = _place(path)
        if place in sources:
            raise ValueError(f"{path} would be read and written at once; name another file")
        if place in taken:
            raise ValueError(f"{path} would be written twice; name different files")
        taken.add(place)
        _check_target(path, force)
        _check_folder(Path(place).parent)


def _place(path: Path) -> str:
    """Return where a path leads, through links."""
    return os.path.realpath(path)


def _check_target(path: Path, force: bool) -> None:
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise ValueError(f"{path} is a folder; name a file in it")
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is no plain file, and would be replaced by one")
    if not force:
        raise ValueError(f"{path} is there already; --force replaces it")


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}; make it first")
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".taxarbor-"):
            pass
    except OSError as error:
        raise ValueError(f"cannot write to the folder {folder}: {error.strerror}") from error


def as_file(output: Path | None) -> Path | None:
    """Return where to write, None where ``-`` says that it is standard output."""
    return None if output is None or str(output) == STDOUT else output


@contextmanager
def placed(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield a name to write to; what is written there gets its place in the end.

    The library replaces what is there. A file may have come since the outputs were checked,
    and stays unless ``force`` is given.

    Raises
    ------
    FileExistsError
        If there is one.
    """
    folder = Path(_place(path)).parent
    with tempfile.TemporaryDirectory(prefix=".taxarbor-", dir=folder) as aside:
        draft = Path(aside) / path.name
        yield draft
        with draft.open("rb") as written:
            write_whole(path, lambda file: shutil.copyfileobj(written, file), replace=force)


def write_text(path: Path, text: str, *, force: bool) -> None:
    """Write a file in UTF-8; one that is there is replaced only if ``force`` is given."""
    data = text.encode("utf-8", "replace")
    write_whole(path, lambda file: file.write(data), replace=force)


def check_labels_name(path: Path | None) -> None:
    """Refuse to write labels to a file whose name promises something else."""
    if path is not None and path.suffix.lower() not in LABEL_SUFFIXES:
        raise ValueError(f"{path}: labels are written as .csv or .tsv; end the name in one")


def labels_text(
    labels: Sequence[int], row_names: Sequence[str] | None, name: str | None, separator: str
) -> str:
    """Return a line per row: what it is called, or its number, and its cluster."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=separator, lineterminator="\n")
    writer.writerow([name or "row", "cluster"])
    rows: Iterable[Any] = range(len(labels)) if row_names is None else row_names
    writer.writerows(zip(rows, labels, strict=True))
    return buffer.getvalue()


def write_labels(
    path: Path | None,
    labels: Sequence[int],
    row_names: Sequence[str] | None,
    name: str | None,
    *,
    force: bool,
) -> None:
    """Write labels to a file, or to standard output where none is given."""
    is_tsv = path is not None and path.suffix.lower() == ".tsv"
    text = labels_text(labels, row_names, name, "\t" if is_tsv else ",")
    if path is None:
        typer.echo(text, nl=False)
    else:
        write_text(path, text, force=force)


def say_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document; numbers that JSON does not have are null."""
    typer.echo(json.dumps(_plain(document), allow_nan=False))


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def say_notes(notes: Iterable[str]) -> None:
    """Print notes on standard error, a line each."""
    for note in notes:
        typer.echo(f"taxarbor: note: {on_one_line(note)}", err=True)


def note_on_dropped(dropped: Sequence[tuple[str, str]]) -> list[str]:
    """Return a note on the columns that were left out, if there are any."""
    if not dropped:
        return []
    told = ", ".join(f"{name} ({_reason(reason)})" for name, reason in dropped[:MAX_NAMED])
    n_more = len(dropped) - MAX_NAMED
    return [f"left out: {told}" + (f" and {n_more} more" if n_more > 0 else "")]


def plain_dropped(dropped: Sequence[tuple[str, str]]) -> list[dict[str, str]]:
    """Return the columns that were left out, for JSON."""
    return [{"column": name, "reason": _reason(reason)} for name, reason in dropped]


def _reason(reason: str) -> str:
    return in_options(reason, "fit")  # of which alone the columns are chosen
