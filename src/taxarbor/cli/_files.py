"""What commands read and write: models, rows that fit them, labels, pages.

Outputs are checked before any work, and written whole or not at all.
"""

import csv
import io
import os
import shutil
import stat
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import typer

from taxarbor._errors import FileFormatError, InputError, counted, some
from taxarbor.cli import interruptible
from taxarbor.hierarchy import Hierarchy
from taxarbor.hierarchy._file import write_whole
from taxarbor.hierarchy._route import check_data
from taxarbor.hierarchy._rule import deciding_rule
from taxarbor.metrics import ClassTree
from taxarbor.tables import Table, read_table
from taxarbor.tables._table import NamelessError

LIKELY = 0.5
"""Share of rows that a model puts where it has them, if they are those it was fitted on."""
LABEL_SUFFIXES = ("", ".csv", ".tsv", ".txt")
STDIN = STDOUT = "-"


class _Stdin(io.BytesIO):
    """Standard input, which can be read more than once."""

    name = "standard input"


def _kept(path: Path) -> Any:
    return _Stdin(sys.stdin.buffer.read()) if str(path) == STDIN else str(path)


def read_columns(path: Path, columns: str | None, **asked: str | None) -> Table:
    """Return the columns of a file that a text such as ``a, b`` names, or all.

    Blanks around names do not count, unless there are columns whose names have them.
    """
    if columns is None:
        return _read(str(path), None, **asked)
    try:
        names = next(csv.reader([columns]), [])
    except csv.Error as error:
        raise InputError(
            f"must be names with commas between them: {error}", "columns"
        ) from error
    bare, source = [name.strip() for name in names], _kept(path)
    try:
        return _read(source, names, **asked)
    except FileFormatError:
        if names == bare:
            raise
        return _read(source, bare, **asked)


def _read(source: Any, columns: Sequence[str] | None, **asked: str | None) -> Table:
    """Return the rows in a file; see :func:`read_table`. Odd ids are noted."""
    if isinstance(source, io.BytesIO):
        source.seek(0)
    table = read_table(source, columns=columns, **asked)
    ids = () if asked.get("id_column") is None else table.row_names or ()
    notes = [*table.notes]
    n_empty = sum(not name.strip() for name in ids)
    if n_empty:
        notes.append(f"{counted(n_empty, 'id is', 'ids are')} empty")
    repeated = [repr(name) for name, n in Counter(ids).items() if n > 1 and name.strip()]
    if repeated:
        notes.append(f"ids repeat: {some(repeated, 1)}")
    return replace(table, notes=tuple(notes))


def heading(title: str | None, data: Path) -> dict[str, str]:
    """Return the title of a page as an option: the one asked for, or the name of the file."""
    if title is None and str(data) == STDIN:
        return {}
    return {"title": Path(data.name.removesuffix(".gz")).stem if title is None else title}


def read_truth(path: Path | None) -> ClassTree | None:
    """Return the tree of the classes in a file, where one is given."""
    try:
        return None if path is None else ClassTree.read(path)
    except UnicodeDecodeError as error:
        raise FileFormatError(f"{path} is not text in UTF-8: {error.reason}") from error


def read_for(tree: Hierarchy, path: Path, **asked: str | None) -> Table:
    """Return rows with the features of a model: by name where both have names, else by place.

    Columns that the model does not know are passed over in silence.
    """
    names = tree.feature_names
    source = str(path) if names is None else _kept(path)
    for option in ("id_column", "label_column"):
        column = asked.get(option)
        if column in (names or ()):
            raise InputError(f"must not be {column!r}, which is a feature of the model", option)
    try:
        table = _read(source, names, **asked)
        table = table if names is None else replace(table, dropped=())
    except NamelessError as error:
        table = _read(source, None, **asked)
        if names is not None and table.X.shape[1] != len(names):
            raise InputError(
                f"{path} has {counted(table.X.shape[1], 'column')} without names, and the "
                f"model {counted(len(names), 'feature')}"
            ) from error
    X: Any = table.X
    check_data(X, tree)
    return table


def read_own(tree: Hierarchy, path: Path, **asked: str | None) -> Table:
    """Return the rows that a model was fitted on; a doubt that they are is a note."""
    table = read_for(tree, path, **asked)
    if table.X.shape[0] != tree.n_rows:
        raise InputError(
            f"{path} has {counted(table.X.shape[0], 'row')}, and the model was fitted on "
            f"{tree.n_rows:,}: give the same rows, in the same order"
        )
    if deciding_rule(tree) is None:
        return table
    X: Any = table.X
    share = float((tree.predict(X) == tree.labels).mean())
    if share >= LIKELY:
        return table
    doubt = f"the model would put only {share:.0%} of these rows where it has them: are they "
    doubt += "those it was fitted on, in the same order?"
    return replace(table, notes=(*table.notes, doubt))


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
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; make it first")
    try:
        with interruptible(), tempfile.NamedTemporaryFile(dir=folder, prefix=".taxarbor-"):
            pass
    except OSError as error:
        raise InputError(f"cannot write to the folder {folder}: {error.strerror}") from error


def as_file(output: Path | None) -> Path | None:
    """Return where to write, None where ``-`` says that it is standard output."""
    return None if output is None or str(output) == STDOUT else output


@contextmanager
def placed(path: Path, *, force: bool) -> Iterator[Path]:
    """Yield a name to write to; what is written there gets its place in the end.

    The library replaces what is there. A file may have come since the outputs were checked:
    FileExistsError, unless ``force`` is given.
    """
    folder = Path(os.path.realpath(path)).parent
    with interruptible(), tempfile.TemporaryDirectory(prefix=".taxarbor-", dir=folder) as aside:
        draft = Path(aside) / path.name
        yield draft
        with draft.open("rb") as written:
            write_whole(path, lambda file: shutil.copyfileobj(written, file), replace=force)


def write_text(path: Path, text: str, *, force: bool) -> None:
    """Write a file in UTF-8; one that is there is replaced only if ``force`` is given."""
    data = text.encode("utf-8", "replace")
    with interruptible():
        write_whole(path, lambda file: file.write(data), replace=force)


def check_labels_name(path: Path | None) -> None:
    """Refuse to write labels to a file whose name promises something else."""
    if path is not None and path.suffix.lower() not in LABEL_SUFFIXES:
        raise InputError(f"{path}: labels are written as .csv or .tsv; end the name in one")


def write_labels(
    path: Path | None,
    labels: Sequence[int],
    row_names: Sequence[str] | None,
    name: str | None,
    probabilities: Sequence[Sequence[float]] | None = None,
    *,
    force: bool,
) -> None:
    """Write a line per row to a file or standard output: its name or number, its cluster.

    And, if given, the probability of this cluster, and of each, to four digits.
    """
    is_tsv = path is not None and path.suffix.lower() == ".tsv"
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter="\t" if is_tsv else ",", lineterminator="\n")
    header = [name or "row", "cluster"]
    rows: Iterable[Any] = range(len(labels)) if row_names is None else row_names
    lines: Iterable[Any] = zip(rows, labels, strict=True)
    if probabilities is not None:
        header += ["probability", *(f"c{leaf}" for leaf in range(len(probabilities[0])))]
        lines = (
            [row, label, *(f"{p:.4f}" for p in (P[label], *P))]
            for (row, label), P in zip(lines, probabilities, strict=True)
        )
    writer.writerow(header)
    writer.writerows(lines)
    if path is None:
        typer.echo(buffer.getvalue(), nl=False)
    else:
        write_text(path, buffer.getvalue(), force=force)
