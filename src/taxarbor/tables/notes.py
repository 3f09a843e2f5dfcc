"""What was noticed in a table, and what changes it: a line for each kind of remark."""

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from taxarbor._errors import counted, printable, some
from taxarbor._number_text import format_number

if TYPE_CHECKING:
    from taxarbor.tables.columns import Columns

MAX_NOTES, MAX_NAMED = 5, 5
"""Lines that are shown, and columns that each names."""
MAX_CATEGORIES = 255
"""Distinct values up to which a column may be declared categorical."""
VALUES = re.compile(r"([\d,]+) different values")

IS_EMBEDDING = "the embedding of the clusters"
"""Why the column with the vectors of rows is no feature."""
IDENTIFIER = "looks like an identifier"

CATEGORICAL = "TableEncoder(categorical_features={})", "--categories {}"
NOTES = {
    "sentinel": (
        *("numbers far beyond all others may stand for missing values",),
        *("TableEncoder(missing_values={})", "--missing {}"),
    ),
    "odd value": ("odd values among numbers count as missing", *CATEGORICAL),
    "text": ("left out", "TableEncoder(text_features={})", "--text {}"),
    "identifier": ("left out", "TableEncoder(numeric_features={})", "--numbers {}"),
    "names": ("left out", *CATEGORICAL),
    "left out": ("left out", "", ""),
    "code": ("taken as numbers, though they look like codes", *CATEGORICAL),
    "case": ("values that differ in case only are different categories", "", ""),
    "copy": (
        "columns that are equal but for their unit all count",
        *("X.drop(columns={})", "--exclude {}"),
    ),
    "date": ("recognised", "TableEncoder(date_features=None)", "--exclude {}"),
    "read": ("recognised", *CATEGORICAL),
    "rare": ("rare values count as missing", *CATEGORICAL),
}
"""What is said of remarks, and the parameter and the option that change it; by importance."""


class Note(NamedTuple):
    """What was noticed in a table, and what changes it: a parameter, or an option."""

    text: str
    parameter: str = ""
    option: str = ""

    def __str__(self) -> str:
        return printable(f"{self.text} [{self.parameter}]" if self.parameter else self.text)

    @property
    def for_shell(self) -> str:
        """The note with the option of the command line."""
        return f"{self.text} [{self.option}]" if self.option else self.text


Remark: TypeAlias = tuple[str, str, str | float]
"""A column, what was seen in it, and the value of the parameter that changes it."""
Remarks = defaultdict[str, list[Remark]]


def write_notes(
    remarks: Mapping[str, Sequence[Remark]], columns: "Columns", reason_to_scale: str | None
) -> Iterator[Note]:
    """Yield the notes on a table, the most important first."""
    found = {**remarks, **_group_left_out(columns.dropped)}
    for kind in NOTES:
        if kind in found:
            shown = [f"{name} ({seen})" for name, seen, _ in found[kind] if name]
            yield _write_note(kind, shown, [*dict.fromkeys(one[2] for one in found[kind])])
    yield from _describe_missing(columns)
    if reason_to_scale is not None:
        yield Note(reason_to_scale, "TableEncoder(scale=None)", "--scale none")


def _write_note(kind: str, shown: Sequence[str], values: Sequence[str | float]) -> Note:
    text, parameter, option = NOTES[kind]
    cells = [f'"{value}"' if "," in str(value) else str(value) for value in values]
    given = shlex.quote(",".join(cells))
    listing = some(shown, MAX_NAMED)
    return Note(f"{text}: {listing}", parameter.format(values), option.format(given))


def _group_left_out(dropped: Sequence[tuple[str, str]]) -> dict[str, list[Remark]]:
    """Return remarks on columns that were left out, together where the reason is the same."""
    names_of: defaultdict[str, list[str]] = defaultdict(list)
    for name, reason in dropped:
        if reason != IS_EMBEDDING:
            names_of[reason].append(name)
    groups: dict[str, list[Remark]] = {}
    for reason, names in names_of.items():
        kind = "identifier" if reason == IDENTIFIER else "left out"
        kind = "text" if reason.startswith("text") else kind
        number = VALUES.match(reason)
        if number and int(number[1].replace(",", "")) <= MAX_CATEGORIES:
            kind = "names"
        shown = [(some(names, MAX_NAMED), reason, names[0])]
        groups.setdefault(kind, []).extend(shown + [("", "", name) for name in names[1:]])
    return groups


def _describe_missing(columns: "Columns") -> Iterator[Note]:
    missing = columns.missing
    rare = {
        columns[place].name: some([*map(repr, reading.rare)], 2)
        for place, reading in columns.readings.items()
        if reading.rare and reading.kind in ("category", "ordered")
    }
    if missing.any():
        worst, share = int(missing.argmax()), 100.0 * float(missing.mean())
        yield Note(
            f"missing {'and rare ' if rare else ''}values in {np.count_nonzero(missing)} of "
            f"{counted(len(columns), 'column')} are "
            f"imputed by means and shares: {format_number(share, 2)} % of the cells, most in "
            f"{columns[worst].label}, {format_number(100.0 * float(missing[worst]), 2)} %"
        )
    if rare:
        shown = [f"{values} of {name}" for name, values in rare.items()]
        yield _write_note("rare", shown, [*rare])
