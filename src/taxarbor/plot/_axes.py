"""Axes of a new figure, the room on given ones, and a legend at the foot of either."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from taxarbor.plot._palette import PLAIN
from taxarbor.plot._text import FONT_SIZE, LEADING, LITERAL, SMALLEST, font, width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend

LARGEST = 100.0  # inches of a new figure's width or height; beyond, all is drawn smaller
POINTS = 72.0  # in an inch
SWATCH, SWATCH_GAP, COLUMN_GAP = 1.0, 0.5, 1.6  # of a legend, in font sizes
LEGEND_PAD = 5.0


def require_matplotlib(asked: str) -> None:
    """Raise ImportError, saying what to install, where there is no matplotlib."""
    try:
        import matplotlib.textpath  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{asked} needs matplotlib: pip install 'taxarbor[plot]'") from error


def new_axes(size: Sequence[float], margins: Sequence[float] = (0, 0, 0, 0)) -> "Axes":
    """Return axes of so many points on a new figure, or fewer if these are too many.

    The margins around them, left, bottom, right and top, are in points too.
    """
    from matplotlib import pyplot as plt

    left, bottom, right, top = margins
    width = min(size[0] + left + right, LARGEST * POINTS)
    height = min(size[1] + bottom + top, LARGEST * POINTS)
    inches = width / POINTS, height / POINTS
    figure = plt.figure(figsize=inches, facecolor="white", layout="none")
    share = 1.0 - (left + right) / width, 1.0 - (bottom + top) / height
    return figure.add_axes((left / width, bottom / height, *share))


def room_on(ax: "Axes") -> tuple[float, float]:
    """Return the width and the height of the axes as they are now, in points."""
    point = ax.figure.dpi / POINTS
    return float(ax.bbox.width / point), float(ax.bbox.height / point)


@final
@dataclass(frozen=True, slots=True)
class LegendLayout:
    """A legend at the foot of axes.

    Attributes
    ----------
    names, colours : tuple of str
        The entries.
    columns : int
        In how many columns they stand.
    height : float
        What the legend takes, in points; 0 where there is none.
    scale : float
        What the font is multiplied by so that the legend fits; at most 1.
    """

    names: tuple[str, ...] = ()
    colours: tuple[str, ...] = ()
    columns: int = 0
    height: float = 0.0
    scale: float = 1.0


def lay_out_legend(
    names: Sequence[str], colours: Sequence[str], room: tuple[float, float]
) -> LegendLayout:
    """Return a legend that is as wide as the room at most, and less than half as high."""
    entry = widest_entry(names)
    columns = max(1, min(len(names), int(room[0] // entry)))
    height = math.ceil(len(names) / columns) * LEADING * FONT_SIZE + 2 * LEGEND_PAD
    scale = min(1.0, room[0] / entry, 0.4 * room[1] / height)
    if scale * FONT_SIZE < SMALLEST:
        return LegendLayout()
    return LegendLayout(tuple(names), tuple(colours), columns, scale * height, scale)


def widest_entry(names: Sequence[str]) -> float:
    """Return the width of a legend's widest entry."""
    text = max((width_of((name, "plain")) for name in names), default=0.0)
    return text + (SWATCH + SWATCH_GAP + COLUMN_GAP) * FONT_SIZE


def draw_legend(ax: "Axes", layout: LegendLayout) -> "Legend | None":
    """Draw a legend at the foot of the axes."""
    from matplotlib.patches import Patch

    if not layout.names:
        return None
    handles = [Patch(facecolor=colour) for colour in layout.colours]
    # A name with an underscore in front would be left out; so they are written afterwards.
    legend = ax.legend(
        handles, ["-"] * len(handles), loc="lower center", ncols=layout.columns, frameon=False,
        prop=font("plain", layout.scale), borderpad=0.0, borderaxespad=LEGEND_PAD / FONT_SIZE,
        handlelength=SWATCH, handleheight=SWATCH, handletextpad=SWATCH_GAP,
        columnspacing=COLUMN_GAP, labelspacing=LEADING - 1.0, labelcolor=PLAIN,
    )  # fmt: skip
    for text, name in zip(legend.get_texts(), layout.names, strict=True):
        text.set(text=name, **LITERAL)
    return legend
