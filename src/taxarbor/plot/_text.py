"""Texts: what they say at most, how wide they are, and that they stay literal."""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from taxarbor._types import Array
from taxarbor.plot._describe import Style, StyledLine
from taxarbor.plot._palette import INK, MINUS, PLAIN, PLUS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.font_manager import FontProperties
    from matplotlib.text import Text

COLOURS: dict[Style, str] = {"title": INK, "plain": PLAIN, "plus": PLUS, "minus": MINUS}
FONT_SIZE, TITLE_SIZE = 8.0, 9.0  # points, as all lengths here
LEADING = 1.38  # from one baseline to the next, in font sizes
SMALLEST = 1.0  # font size; matplotlib makes smaller ones so large, too large for their boxes
FEWEST = 6  # letters that are left of a text which is cut, or it is left out
LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}
"""What each text is drawn with: a dollar sign in a name is no mathematics."""


def size_of(style: Style) -> float:
    """Return the size of a style's font."""
    return TITLE_SIZE if style == "title" else FONT_SIZE


def font(style: Style, scale: float = 1.0) -> "FontProperties":
    """Return a style's font."""
    from matplotlib.font_manager import FontProperties

    weight = "bold" if style == "title" else "normal"
    return FontProperties(weight=weight, size=scale * size_of(style))


def width_of(line: StyledLine) -> float:
    """Return the width of a line."""
    from matplotlib.font_manager import findfont

    return _width(line, findfont(font(line[1]))) if line[0] else 0.0


@functools.lru_cache(maxsize=10_000)
def _width(line: StyledLine, file: str) -> float:
    from matplotlib.textpath import text_to_path

    del file  # what the width depends on, beside the line
    # Measured without a canvas, so that it holds for whatever the figure is saved as.
    return float(text_to_path.get_text_width_height_descent(line[0], font(line[1]), False)[0])


def fit(line: StyledLine, room: float) -> str:
    """Return as much of a line as fits, with an ellipsis where it is cut; else nothing."""
    text, style = line
    width = width_of(line)
    while width > max(room, 0.0):
        # At least one letter less, and about as many as the room has width for.
        keep = min(len(text) - 2, int(len(text) * room / width))
        # Half a number would be a wrong one.
        left = text[: max(keep, 0)].rstrip(" 0123456789.,·%")
        if len(left) < FEWEST:
            return ""
        text = left + "…"
        width = width_of((text, style))
    return text


def fit_lines(lines: Sequence[StyledLine], room: tuple[float, float]) -> list[StyledLine]:
    """Return the first lines, as many as there is height for and each cut to the width."""
    fitted: list[StyledLine] = []
    height = room[1]
    for text, style in lines:
        height -= LEADING * size_of(style)
        cut = fit((text, style), room[0]) if height >= 0.0 else ""
        if not (cut or fitted):
            break  # without its first line, a text says too little
        if cut:
            fitted.append((cut, style))
    return fitted


def write(ax: "Axes", at: Sequence[float] | Array, text: str, **look: Any) -> "Text":
    """Write a text as it is."""
    return ax.text(float(at[0]), float(at[1]), text, **LITERAL, **look)
