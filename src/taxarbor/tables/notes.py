"""What was noticed in a table, and what changes it: a line for each kind of remark."""

import re
import shlex
from collections import defaultdict
from collections.abc import Container, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from taxarbor._errors import counted, printable, some
from taxarbor._number_text import format_number
from taxarbor._types import Array

if TYPE_CHECKING:
    from taxarbor.tables.columns import Columns

MAX_NOTES, MAX_NAMED, MAX_LINE, MAX_NAME = 5, 5, 200, 40
"""Lines that are shown, columns that each names, and characters of both."""
LIGHT, LESS = 0.5, "columns that say little about the others count less"
"""Weight up to which a column is said to count less, and how."""
MAX_CATEGORIES = 255  # distinct values up to which a column may be declared categorical
VALUES = re.compile(r"([\d,]+) different values")

IS_EMBEDDING = "the embedding of the clusters"  # why a column of vectors is no feature
IDENTIFIER = "looks like an identifier"

CATEGORICAL = "TableEncoder(categorical_features={})", "--categories {}"
MISSING = "TableEncoder(missing_values={})", "--missing {}"
EXCLUDE = "X.drop(columns={})", "--exclude {}"
NOTES = {
    "sentinel": ("numbers far beyond all others may stand for missing values", *MISSING),
    "odd value": ("odd values among numbers or dates count as missing", *CATEGORICAL),
    "text": ("left out", "TableEncoder(text_features={})", "--text {}"),
    "identifier": ("left out", "TableEncoder(numeric_features={})", "--numbers {}"),
    "names": ("left out", *CATEGORICAL),
    "left out": ("left out", "", ""),
    "code": ("taken as numbers, though they look like codes", *CATEGORICAL),
    "case": ("values that differ in case only count as different", "", ""),
    "copy": ("columns that tell the same all count", *EXCLUDE),
    "word": ("recognised", *MISSING),
    "date": ("recognised", "TableEncoder(date_features=None)", "--exclude {}"),
    "read": ("recognised", *CATEGORICAL),
}
"""What is said of remarks, and the parameter and the option that change it; by importance."""
COPIES_ONCE = ("columns that tell the same count as one", *EXCLUDE)  # where columns are weighed


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


Remark: TypeAlias = tuple[Sequence[str], str, Sequence[str | float]]
"""Columns, what was seen in them, and the values of the parameter that changes it."""
Remarks = defaultdict[tuple[str, bool], list[Remark]]
"""By their kind, and whether the columns have too many values for categories."""


def write_notes(
    remarks: Remarks,
    columns: "Columns",
    reason_to_scale: str | None,
    weights: Array | None,
    given: Container[str],
) -> Iterator[Note]:
    """Yield the notes on a table, the most important first.

    ``weights`` are those that were found for the columns, if any; some are ``given`` by name.
    """
    found = {**remarks, **_group_left_out(columns.dropped)}
    said = NOTES if weights is None else NOTES | {"copy": COPIES_ONCE}
    for kind, (text, *changes) in said.items():
        for is_many in (False, True):
            if remarks_of := found.get((kind, is_many)):
                yield _write_note(text, remarks_of, *(EXCLUDE if is_many else changes))
    yield from _describe_missing(columns)
    if reason_to_scale is not None:
        light = None if weights is None else _describe_weights(columns, weights, given)
        note = light or Note("", "TableEncoder(scale=None)", "--scale none")
        yield note._replace(text="; ".join(filter(None, (reason_to_scale, note.text))))


def _describe_weights(columns: "Columns", weights: Array, given: Container[str]) -> Note | None:
    """Return a note on columns that are read as logarithms, or count less; None if none is."""
    skewed = [columns[place] for place in columns.owner[np.flatnonzero(columns.log_unit)]]
    order = np.argsort(weights, kind="stable").tolist()
    light = [columns[at] for at in order if weights[at] <= LIGHT]
    light = [one for one in light if one.name not in given]
    said = {"logarithms of skewed columns are compared": skewed, LESS: light}
    parts = [
        f"{text}: {some([cut(one.label) for one in named], MAX_NAMED)}"
        for text, named in said.items()
        if named
    ]
    if not parts:
        return None
    name = (light or skewed)[0].name
    option = f"--column-weights {shlex.quote(name + '=1')}"
    return Note("; ".join(parts), f"column_weights={{{name!r}: 1}}", option)


def _write_note(text: str, remarks: Sequence[Remark], parameter: str, option: str) -> Note:
    """Return a note that fits into a line: it, or at last its option, too, names fewer."""
    values = [*dict.fromkeys(value for _, _, given in remarks for value in given)]
    few = range(MAX_NAMED, 0, -1)
    for most, chosen in [*((n, values) for n in few), *((n, values[:n]) for n in few)]:
        listing = some([f"{some(names, most)} ({seen})" for names, seen, _ in remarks], most)
        cells = [f'"{value}"' if "," in str(value) else str(value) for value in chosen]
        given = option.format(shlex.quote(",".join(cells)))
        note = Note(f"{text}: {listing}", parameter.format(chosen), given)
        if len(note.for_shell) <= MAX_LINE:
            break
    return note


def cut(text: str) -> str:
    """Return a text without its end if it is long."""
    return text if len(text) <= MAX_NAME else f"{text[: MAX_NAME - 1]}…"


def quote(values: Sequence[str]) -> str:
    """Return the first two values as they are named in a note."""
    return some([repr(cut(value)) for value in values], 2)


def _group_left_out(dropped: Sequence[tuple[str, str]]) -> Remarks:
    """Return remarks on columns that were left out, together where the reason is the same."""
    names_of: defaultdict[str, list[str]] = defaultdict(list)
    for name, reason in dropped:
        if reason != IS_EMBEDDING:
            names_of[reason].append(name)
    groups: Remarks = defaultdict(list)
    for reason, names in names_of.items():
        kind = "identifier" if reason == IDENTIFIER else "left out"
        kind = "text" if reason.startswith("text") else kind
        number = VALUES.match(reason)
        if number and int(number[1].replace(",", "")) <= MAX_CATEGORIES:
            kind = "names"
        groups[kind, False].append(([*map(cut, names)], reason, names))
    return groups


def _describe_missing(columns: "Columns") -> Iterator[Note]:
    missing = columns.missing
    rare: list[Remark] = [
        ([cut(columns[place].name)], quote(reading.rare), [columns[place].name])
        for place, reading in columns.readings.items()
        if reading.rare and reading.kind in ("category", "ordered")
    ]
    if missing.any():
        worst, share = int(missing.argmax()), 100.0 * float(missing.mean())
        parts = (columns.positions, columns.positions[missing > 0.0])  # those of a date are one
        n_columns, n_missing = (len({*part.tolist()}) for part in parts)
        yield Note(
            f"missing {'and rare ' if rare else ''}values in {n_missing} of "
            f"{counted(n_columns, 'column')} are "
            f"imputed by means and shares: {format_number(share, 2)} % of the cells, most in "
            f"{columns[worst].label}, {format_number(100.0 * float(missing[worst]), 2)} %"
        )
    if rare:
        yield _write_note("rare or unknown values count as missing", rare, *CATEGORICAL)
