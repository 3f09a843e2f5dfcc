"""What a picture says of a node: lines of text, each in a style."""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, get_args

from taxarbor.hierarchy import Hierarchy, printable

Style: TypeAlias = Literal["title", "plain", "plus", "minus"]
StyledLine: TypeAlias = tuple[str, Style]
Describe: TypeAlias = Callable[[int], Sequence[str | StyledLine]]

STYLES: tuple[Style, ...] = get_args(Style)
N_TOP = 3
LONGEST = 28
MINUS = "\u2212"  # as wide as a plus


def describe_node(hierarchy: Hierarchy, node: int) -> list[StyledLine]:
    """Return the number of rows, then the features that lead here, as ``to_text`` has them."""
    return [(count_rows(hierarchy, node), "title"), *describe_reasons(hierarchy, node)]


def count_rows(hierarchy: Hierarchy, node: int) -> str:
    """Return ``1,234 rows``, ``1 row``."""
    n_rows = len(hierarchy.rows(node))
    return f"{n_rows:,} row" + "s" * (n_rows != 1)


def describe_reasons(hierarchy: Hierarchy, node: int, n_top: int = N_TOP) -> list[StyledLine]:
    """Return the features that lead to a node, ``+name`` or ``-name``."""
    return [
        (f"+{reason.name}", "plus") if reason.sign > 0 else (f"{MINUS}{reason.name}", "minus")
        for reason in hierarchy.reasons(node, n_top)
    ]


def tidy(lines: Sequence[str | StyledLine], node: int) -> list[StyledLine]:
    """Return lines that can be drawn: printable, not too long, each with a style.

    Without one, the first line is the title and the others are plain.

    Raises
    ------
    TypeError
        If these are not lines.
    ValueError
        If there is no such style.
    """
    if isinstance(lines, str):
        raise TypeError(
            f"describe must return a list of lines, got the text {lines!r} for node {node}: "
            "put it in a list, or split it into lines"
        )
    return [_styled(line, STYLES[min(n, 1)], node) for n, line in enumerate(lines)]


def _styled(line: str | StyledLine, default: Style, node: int) -> StyledLine:
    text, style = (line, default) if isinstance(line, str) else line
    if style not in STYLES:
        raise ValueError(
            f"the style of a line must be one of {', '.join(STYLES)}, "
            f"got {style!r} for node {node}"
        )
    return shorten(text), style


def shorten(text: object, longest: int = LONGEST) -> str:
    """Return what can be drawn of a text on one line, and not too much of it."""
    shown = printable(str(text)).strip()
    return shown if len(shown) <= longest else shown[: longest - 1].rstrip() + "…"
