"""Tables in Markdown."""

import math
from collections.abc import Iterable, Sequence

from taxarbor.bench._select import Mean

NOTHING = "-"


def table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; what is in a cell stays in it."""
    rows = [headings, ["---", *["--:"] * (len(headings) - 1)], *lines]
    return "\n".join("| " + " | ".join(_cell(text) for text in row) + " |" for row in rows)


def without_gaps(headings: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table without the columns that have nothing in any line."""
    kept = [n for n in range(len(headings)) if not n or any(x[n] != NOTHING for x in lines)]
    return table([headings[n] for n in kept], [[line[n] for n in kept] for line in lines])


def percent(value: Mean, digits: int = 2) -> str:
    """Return a mean as ``91.20 ± 0.30``, in percent; without a spread if there is one value."""
    if math.isnan(value.mean):
        return NOTHING
    told = f"{100 * value.mean:.{digits}f}"
    return told if value.n_values < 2 else f"{told} ± {100 * value.spread:.{digits}f}"


def number(value: float, digits: int = 2) -> str:
    """Return a number, or a dash for what is missing."""
    return NOTHING if math.isnan(value) else f"{value:,.{digits}f}"


def seconds(value: float) -> str:
    """Return seconds with as many digits as matter."""
    return number(value, 3 if value < 1 else 1)


def plain(text: str) -> str:
    """Return a name so that Markdown shows it as it is, in one line."""
    told = " ".join(text.split()).replace("&", "&amp;").replace("<", "&lt;")
    return "".join(f"\\{sign}" if sign in "\\`*[]" else sign for sign in told)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
