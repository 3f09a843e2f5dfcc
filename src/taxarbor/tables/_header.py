"""What is asked of a file, what it holds, and which of its first rows is the header."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._errors import FileFormatError, counted
from taxarbor.sources.file_checks import check_present, list_names

if TYPE_CHECKING:
    import pandas as pd

UNNAMED = "Unnamed: {}"
"""Name that pandas gives a column without a name."""
MISSING = (
    *("", "NA", "N/A", "n/a", "#N/A", "#N/A N/A", "#NA", "<NA>", "NaN", "nan", "-NaN", "-nan"),
    *("NULL", "null", "None", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
)
"""Stand for a missing value, as in pandas; not in names and labels: NA may be Namibia."""
HEADER_ROWS = 20
"""Rows among which the header is sought."""
YEAR = re.compile(r"(19|20)\d\d")
NO_HEADER = (
    "the first line holds numbers only and was used as a row; give the columns names if it is "
    "a header"
)

Texts: TypeAlias = Mapping[str, tuple[str, ...]]
"""Columns that name or label the rows."""


@final
@dataclass(frozen=True, slots=True)
class Request:
    """The columns to read from a file, and the name of the file in messages."""

    name: str
    columns: tuple[str, ...] | None
    id_column: str | None
    label_column: str | None
    features: Sequence[str] = ()
    sheet: str | int | None = None
    layer: str = ""

    @property
    def text_columns(self) -> tuple[str, ...]:
        """The id and the label column, where requested."""
        requested = (self.id_column, self.label_column)
        return tuple(dict.fromkeys(name for name in requested if name is not None))

    @property
    def requested(self) -> list[str]:
        """The columns that must be there."""
        return [*self.text_columns, *(self.columns or ())]

    @property
    def used_columns(self) -> frozenset[str]:
        """Columns that do not name the rows."""
        return frozenset((*self.features, *(self.columns or ())))

    def find_labels(self, texts: Texts) -> NDArray[np.str_] | None:
        """Return the label column as an array."""
        labels = texts.get(self.label_column or "")
        return None if labels is None else np.array(labels, dtype=np.str_)


class Content(NamedTuple):
    """The columns of a file; those that are names and labels are apart, as text."""

    frame: "pd.DataFrame"
    texts: Texts
    index_name: str | None = None
    """The column of ``texts`` that names the rows unless another one is requested."""
    has_names: bool = True
    notes: tuple[str, ...] = ()


class Header(NamedTuple):
    """The names of the columns."""

    names: list[str]
    n_skipped: int
    """Rows of the file before the first row of the table; 0 where columns have no names."""
    unnamed: list[str]
    index_name: str | None
    """The first column if it has no name."""
    notes: tuple[str, ...]

    @property
    def has_names(self) -> bool:
        """Whether the file names the columns."""
        return self.n_skipped > 0

    def drop_empty(self, frame: "pd.DataFrame", texts: dict[str, tuple[str, ...]]) -> Content:
        """Return the columns, without those that have neither a name nor a value."""
        names = [name for name in self.unnamed if name in frame and frame[name].isna().all()]
        frame = frame.drop(columns=names) if names else frame
        index = self.index_name if any(texts.get(self.index_name or "", ())) else None
        return Content(frame, texts, index, self.has_names, self.notes)


def find_header(rows: Sequence[Sequence[str]], request: Request) -> Header:
    """Return the header among the first rows of a file.

    Rows above it may be blank, or a title: a single cell at their start.
    """
    filled = [(at, cells) for at, cells in enumerate(rows) if any(map(str.strip, cells))]
    if not filled:
        raise FileFormatError(f"{request.name} is empty")
    n_titles = _count_titles([cells for _, cells in filled])
    notes = []
    if n_titles:
        lines = f"{counted(n_titles, 'line')} above the header"
        notes.append(f"{lines} skipped; the first is {filled[0][1][0].strip()[:60]!r}")
    at, first = filled[n_titles]
    body = [cells for _, cells in filled[n_titles + 1 :]]
    if all(map(_is_number, first)):
        _check_width(request.name, len(first), body)
        if request.requested:
            message = "has numbers in its first line, so no column has a name"
            raise FileFormatError(f"{request.name} {message}")
        names = [f"column {j}" for j in range(1, len(first) + 1)]
        return Header(names, 0, [], None, (NO_HEADER,))
    if body and len(body[0]) == len(first) + 1:  # R names no row names; others end in a comma
        longer = [cells for cells in body if len(cells) == len(body[0])]
        first = ["", *first] if any(cells[-1] for cells in longer) else [*first, ""]
    _check_width(request.name, len(first), body)
    names = make_unique([name or UNNAMED.format(j) for j, name in enumerate(first)])
    pairs = [*zip(names, first, strict=True)]
    repeated = [name for name, given in pairs if given not in ("", name)]
    if repeated:
        notes.append(f"names of columns are repeated: now {list_names(repeated)}")
    check_present(request.name, request.requested, names)
    used = request.used_columns
    unnamed = [name for name, given in pairs if not given and name not in used]
    index = names[0] if names[0] in unnamed else None
    return Header(names, at + 1, unnamed, index, tuple(notes))


def _count_titles(filled: Sequence[Sequence[str]]) -> int:
    """Return how many rows are titles above a header, whose cells are texts."""
    n_titles = 0
    for cells in filled:
        if sum(map(bool, map(str.strip, cells))) > 1:
            break
        if not cells[0].strip():  # an index without a name
            return 0
        n_titles += 1
    header, *body = filled[n_titles:] or [[]]
    if not (n_titles and body) or any(len(cells) != len(header) for cells in body[:3]):
        return 0
    odd = [one for one in header if _is_number(one)]
    if len(odd) == len(header) or not all(map(YEAR.fullmatch, odd)):
        return 0
    has_numbers = any(_is_number(cell) for cells in body for cell in cells)
    return n_titles if len(header) > 2 or has_numbers else 0


def _check_width(title: str, n_columns: int, body: Sequence[Sequence[str]]) -> None:
    """Raise FileFormatError for a first row that pandas would cut."""
    if body and len(body[0]) > n_columns:
        cells, columns = counted(len(body[0]), "cell"), counted(n_columns, "column")
        raise FileFormatError(f"{title} has {cells} in its first row, and {columns}")


def make_unique(names: Sequence[str]) -> list[str]:
    """Return names, each once: of several ``a``, the second becomes ``a_2``."""
    taken, seen, unique = {*names}, Counter[str](), []
    for given in names:
        name = given
        seen[given] += 1
        while seen[given] > 1 and name in taken:
            name = f"{given}_{seen[given]}"
            seen[given] += name in taken
        taken.add(name)
        unique.append(name)
    return unique


def _is_number(cell: str) -> bool:
    """Return whether a text spells a number, with a decimal point or comma."""
    try:
        float(cell.replace(",", ".", 1))
    except ValueError:
        return False
    return "_" not in cell  # Python takes 1_000 for a number


TEXT_FORMATS = frozenset({"csv", "tsv", "txt", "json", "jsonl"})
SIGNATURES = {
    b"%PDF": "a PDF document",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
    b"PK\x03\x04": "a zip archive or an Excel file",
    b"\xd0\xcf\x11\xe0": "an Excel file of before 2007, or one with a password",
    b"\x1f\x8b": "a gzip archive",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a npy file",
}
MARKUP = (b"<!doctype", b"<html", b"<?xml")


def check_content(title: str, start: bytes, format: str) -> None:
    """Raise FileFormatError if the first bytes of a file show that it is of another format."""
    is_archive, is_text = format in ("xlsx", "ods"), format in TEXT_FORMATS
    if not start:
        raise FileFormatError(f"{title} is empty")
    found = next((what for mark, what in SIGNATURES.items() if start.startswith(mark)), None)
    if start.removeprefix(b"\xef\xbb\xbf").lstrip().lower().startswith(MARKUP):
        found = "a web page or XML"
    is_utf16 = start.startswith((b"\xff\xfe", b"\xfe\xff"))
    if is_text and found is None and b"\0" in start and not is_utf16:
        found = "binary data"
    if is_archive and start.startswith((b"PK", b"\xd0\xcf")):
        found = None
    if found is not None:
        message = f"is {found}, where {format} is expected"
        raise FileFormatError(f"{title} {message}; save it as {format}, or give its format")
