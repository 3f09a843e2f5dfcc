"""How all pictures look: colours, fonts, axes and a legend. matplotlib is imported late.

Lengths are in points, of which an inch has 72.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, dataclass_transform

import numpy as np

from taxarbor._types import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.font_manager import FontProperties
    from matplotlib.legend import Legend
    from matplotlib.text import Text

Size: TypeAlias = tuple[float, float]
Style: TypeAlias = Literal["title", "plain", "plus", "minus"]
StyledLine: TypeAlias = tuple[str, Style]
Entries: TypeAlias = tuple[tuple[str, str], ...]  # names and colours of a legend

INK, PLAIN, PLUS, MINUS = "#1f2933", "#52606d", "#05668d", "#9b2c1f"
BRANCH, EDGE, FACE, LEAF_FACE = "#9fb0c0", "#b8c4d0", "#ffffff", "#f3f6f9"
OTHER, GRID = "#c9d1d9", "#e4e9ee"
PALE_INK = 0.65  # what is left of the colour of text of a node that was lost
# The muted set of Paul Tol, made for colour-blind readers, less one that is close to others.
CLASSES = (
    "#332288", "#cc6677", "#44aa99", "#ddcc77", "#88ccee", "#882255", "#117733", "#999933",
)  # fmt: skip
BRANCHES = ("#05668d", "#cc6677", "#44aa99", "#ddaa33", "#882255", "#88aadd")
N_CLASSES, N_BRANCHES = len(CLASSES), len(BRANCHES)
COLOURS: dict[Style, str] = {"title": INK, "plain": PLAIN, "plus": PLUS, "minus": MINUS}

FONT_SIZE, TITLE_SIZE = 8.0, 9.0
LEADING = 1.38  # from one baseline to the next, in font sizes
SMALLEST = 1.0  # font size; matplotlib draws smaller fonts too large for their boxes
FEWEST = 6  # letters that must remain of a text that is cut; otherwise it is left out
LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}  # "$" is no mathematics
LARGEST = 100.0  # inches of a new figure's width or height; beyond, all is drawn smaller
POINTS = 72.0  # in an inch
DOTTED, DASHED = (0, (1.0, 1.2)), (0, (3.0, 2.0))
SWATCH, SWATCH_GAP, COLUMN_GAP = 1.0, 0.5, 1.6  # of a legend, in font sizes
LEGEND_PAD = 5.0


@dataclass_transform(frozen_default=True)
def value(made: Any) -> Any:
    """Make a class a frozen value, whose repr says what there is to ask for."""
    made = dataclass(frozen=True, slots=True, eq=False, repr=False)(made)
    names = ", ".join(field.name for field in fields(made))
    made.__repr__ = lambda self: f"{made.__name__}({names})"
    return made


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


def baselines(lines: Sequence[StyledLine]) -> Array:
    """Return how far below the top of the first line each baseline is."""
    sizes = np.array([size_of(style) for _, style in lines])
    # From the foot of its strip, a line's baseline is as far as descenders reach.
    drops: Array = np.cumsum(LEADING * sizes) - (LEADING - 1.0) * sizes
    return drops


def height_of(lines: Sequence[StyledLine]) -> float:
    """Return the height of lines, one below the other."""
    return sum(LEADING * size_of(style) for _, style in lines)


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


def write(ax: "Axes", at: Sequence[float] | Array, text: str, **look: Any) -> "Text":
    """Write a text as it is."""
    return ax.text(float(at[0]), float(at[1]), text, **LITERAL, **look)


def require_matplotlib(asked: str) -> None:
    """Raise ImportError, saying what to install, if matplotlib is missing."""
    try:
        import matplotlib.textpath  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{asked} needs matplotlib: pip install matplotlib") from error


def new_axes(size: Size, margins: Sequence[float] = (0, 0, 0, 0)) -> "Axes":
    """Return axes of this size on a new figure, smaller if the figure would be too large.

    The margins are left, bottom, right and top.
    """
    from matplotlib import pyplot as plt

    left, bottom, right, top = margins
    width = min(size[0] + left + right, LARGEST * POINTS)
    height = min(size[1] + bottom + top, LARGEST * POINTS)
    inches = width / POINTS, height / POINTS
    figure = plt.figure(figsize=inches, facecolor="white", layout="none")
    share = 1.0 - (left + right) / width, 1.0 - (bottom + top) / height
    return figure.add_axes((left / width, bottom / height, *share))


def room_on(ax: "Axes") -> Size:
    """Return the width and the height of the axes as they are now."""
    point = ax.figure.dpi / POINTS
    return float(ax.bbox.width / point), float(ax.bbox.height / point)


def rectangles(low: Array, high: Array) -> Array:
    """Return the four corners of rectangles, (n, 4, 2), from two opposite ones, (n, 2)."""
    (left, bottom), (right, top) = low.T, high.T
    corners = [(left, bottom), (right, bottom), (right, top), (left, top)]
    return np.stack([np.column_stack(corner) for corner in corners], axis=1)


@value
class LegendLayout:
    """A legend at the foot of axes."""

    entries: Entries = ()
    columns: int = 0
    height: float = 0.0
    scale: float = 1.0  # what the font is multiplied by so that the legend fits; at most 1


def lay_out_legend(entries: Entries, room: Size) -> LegendLayout:
    """Return a legend that is as wide as the room at most, and less than half as high."""
    if not entries:
        return LegendLayout()
    widest = _widest_entry(entries)
    columns = max(1, min(len(entries), int(room[0] // widest)))
    height = math.ceil(len(entries) / columns) * LEADING * FONT_SIZE + 2 * LEGEND_PAD
    scale = min(1.0, room[0] / widest, 0.4 * room[1] / height)
    if scale * FONT_SIZE < SMALLEST:
        return LegendLayout()
    return LegendLayout(entries, columns, scale * height, scale)


def add_legend(size: Size, entries: Entries) -> Size:
    """Return the size of a picture that gets a legend."""
    width = max(size[0], _widest_entry(entries))
    return width, size[1] + lay_out_legend(entries, (width, math.inf)).height


def _widest_entry(entries: Entries) -> float:
    frame = (SWATCH + SWATCH_GAP + COLUMN_GAP) * FONT_SIZE
    return max((frame + width_of((name, "plain")) for name, _ in entries), default=0.0)


def draw_legend(ax: "Axes", layout: LegendLayout) -> "Legend | None":
    """Draw a legend at the foot of the axes."""
    from matplotlib.patches import Patch

    if not layout.entries:
        return None
    handles = [Patch(facecolor=colour) for _, colour in layout.entries]
    # A name that begins with an underscore would be left out; so names are set afterwards.
    legend = ax.legend(
        handles, ["-"] * len(handles), loc="lower center", ncols=layout.columns, frameon=False,
        prop=font("plain", layout.scale), borderpad=0.0, borderaxespad=LEGEND_PAD / FONT_SIZE,
        handlelength=SWATCH, handleheight=SWATCH, handletextpad=SWATCH_GAP,
        columnspacing=COLUMN_GAP, labelspacing=LEADING - 1.0, labelcolor=PLAIN,
    )  # fmt: skip
    for text, (name, _) in zip(legend.get_texts(), layout.entries, strict=True):
        text.set(text=name, **LITERAL)
    return legend
