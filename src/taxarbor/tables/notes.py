"""What was noticed in a table, and what changes it: a line for each kind of remark."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from taxarbor._errors import counted, some
from taxarbor._number_text import format_number

MAX_NOTES = 5
"""Lines that are shown."""
MAX_NAMED = 5
"""Columns that a line names."""

IS_EMBEDDING = "the embedding of the clusters"
"""Why the column with the vectors of rows is no feature."""

Remarks: TypeAlias = Mapping[str, Sequence[tuple[str, str]]]
"""Names of columns, and what was seen in each, by the kind of remark."""


class Note(NamedTuple):
    """What was noticed in a table, and what changes it: a parameter, or an option."""

    text: str
    parameter: str = ""
    option: str = ""

    def __str__(self) -> str:
        return f"{self.text} [{self.parameter}]" if self.parameter else self.text

    @property
    def for_shell(self) -> str:
        """The note with the option of the command line."""
        return f"{self.text} [{self.option}]" if self.option else self.text


def _encoder(parameter: str, names: Sequence[str]) -> str:
    return f"TableEncoder({parameter}={[*names]})"


def write_notes(
    remarks: Remarks,
    columns: Any,
    dropped: Sequence[tuple[str, str]],
    reason_to_scale: str | None,
) -> Iterator[Note]:
    """Yield the notes on a table, the most important first."""

    def describe(kind: str) -> tuple[list[str], str]:
        found = remarks.get(kind, ())
        return [name for name, _ in found], some(
            [f"{one} {seen}" for one, seen in found], MAX_NAMED
        )

    names, listing = describe("sentinel")
    if names:
        values = [*dict.fromkeys(one for _, one in remarks["sentinel value"])]
        yield Note(
            f"numbers far beyond all others may stand for missing values: {listing}",
            f"TableEncoder(missing_values=[{', '.join(values)}])",
            f"--missing {','.join(values)}",
        )
    names, listing = describe("odd value")
    if names:
        yield Note(
            f"odd values among numbers count as missing: {listing}",
            _encoder("categorical_features", names),
            f"--categories {','.join(names)}",
        )
    if left_out := [pair for pair in dropped if pair[1] != IS_EMBEDDING]:
        of_reason: dict[str, list[str]] = {}
        for name, reason in left_out:
            of_reason.setdefault(reason, []).append(name)
        listed = [f"{some(names, MAX_NAMED)} ({reason})" for reason, names in of_reason.items()]
        texts = [name for name, reason in dropped if reason.startswith("text")]
        yield Note(
            f"left out: {some(listed, MAX_NAMED)}",
            _encoder("text_features", texts[:1]) if texts else "",
            f"--text {texts[0]}" if texts else "",
        )
    names, listing = describe("code")
    if names:
        yield Note(
            f"taken as numbers, though they look like codes: {listing}",
            _encoder("categorical_features", names),
            f"--categories {','.join(names)}",
        )
    names, listing = describe("copy")
    if names:
        others = [other for _, other in remarks["copied"]]
        yield Note(
            f"columns that are equal but for their unit all count: {listing}",
            f"X.drop(columns={others})",
            f"--exclude {','.join(others)}",
        )
    names, listing = describe("read")
    if names:
        yield Note(
            f"recognised: {listing}",
            _encoder("categorical_features", names[:1]),
            f"--categories {names[0]}, --exclude {names[0]}",
        )
    yield from _describe_missing(columns)
    if reason_to_scale is not None:
        yield Note(reason_to_scale, "TableEncoder(scale=None)", "--scale none")


def _describe_missing(columns: Any) -> Iterator[Note]:
    missing = columns.missing
    if missing.any():
        worst, share = int(missing.argmax()), 100.0 * float(missing.mean())
        yield Note(
            f"missing values in {np.count_nonzero(missing)} of "
            f"{counted(len(columns), 'column')} are "
            f"imputed by the column's mean: {format_number(share, 2)} % of the cells, most in "
            f"{columns[worst].label}, {format_number(100.0 * float(missing[worst]), 2)} %"
        )
    rare = [
        f"{counted(len(reading.rare), 'value')} of {columns[place].name}"
        for place, reading in columns.readings.items()
        if reading.rare and reading.kind == "category"
    ]
    if rare:
        yield Note(f"rare values count as missing: {some(rare, MAX_NAMED)}")
