"""What a picture says of a node: lines of text, each in a style."""

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias, get_args

import numpy as np

from taxarbor.hierarchy import Hierarchy

Style: TypeAlias = Literal["title", "plain", "plus", "minus"]
StyledLine: TypeAlias = tuple[str, Style]
Describe: TypeAlias = Callable[[int], Sequence[str | StyledLine]]

STYLES: tuple[Style, ...] = get_args(Style)
N_TOP = 3
LONGEST = 28
MINUS = "\u2212"  # as wide as a plus


def describe_node(hierarchy: Hierarchy, node: int) -> list[StyledLine]:
    """Return the number of rows, then the features that lead here, as ``to_text`` has them."""
    n_rows = len(hierarchy.rows(node))
    lines: list[StyledLine] = [(f"{n_rows:,} row" + "s" * (n_rows != 1), "title")]
    parent = hierarchy.parent(node)
    rule = None if parent is None else hierarchy.rules[parent]
    if parent is None or rule is None:
        return lines
    weights = rule.weights.astype(np.float64)
    contrast = weights[node - hierarchy.children(parent)[0]] - (weights / len(weights)).sum(0)
    contrast[np.abs(contrast) <= 1e-12 * np.abs(weights).max()] = 0  # rounding of the mean
    names = hierarchy.feature_names
    for j in np.argsort(-np.abs(contrast), kind="stable")[:N_TOP].tolist():
        name = names[j] if names else f"x{j}"
        if contrast[j] != 0:
            lines.append(
                (f"+{name}", "plus") if contrast[j] > 0 else (f"{MINUS}{name}", "minus")
            )
    return lines


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
    # A half character cannot be drawn, and a line break would move what follows.
    whole = str(text).encode("utf-8", "replace").decode("utf-8")
    shown = "".join(c if c.isprintable() else " " for c in whole).strip()
    if len(shown) > LONGEST:
        shown = shown[: LONGEST - 1].rstrip() + "…"
    return shown, style
