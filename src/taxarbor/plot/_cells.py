"""Coloured rectangles on axes, with as much text in each as fits."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from taxarbor._types import Array
from taxarbor.plot._axes import POINTS
from taxarbor.plot._contents import rectangles
from taxarbor.plot._describe import StyledLine
from taxarbor.plot._palette import FACE, ink_on
from taxarbor.plot._text import LEADING, fit_lines, font, size_of, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.text import Text

PAD = np.array([3.0, 0.0])  # points that text leaves free at its ends; lines are apart anyway
LINE = 1.0  # width of the lines between rectangles, where these are not small


@final
@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Rectangles and their colours.

    Attributes
    ----------
    low, high : arrays of shape (n_cells, 2)
        Opposite corners, (x, y).
    faces : float array of shape (n_cells, 3)
        Red, green and blue.
    """

    low: Array
    high: Array
    faces: Array

    def measure(self, ax: "Axes") -> Array:
        """Return widths and heights in points on these axes, (n_cells, 2)."""
        corners = ax.transData.transform(self.low), ax.transData.transform(self.high)
        sizes: Array = np.abs(corners[1] - corners[0]) * (POINTS / ax.figure.dpi)
        return sizes


def draw_cells(ax: "Axes", cells: Cells) -> "PolyCollection":
    """Draw the rectangles, with thin lines between that do not hide the small ones."""
    from matplotlib.collections import PolyCollection

    (left, bottom), (right, top) = cells.low.T, cells.high.T
    drawn = PolyCollection(
        list(rectangles(left, right, bottom, top)),
        facecolors=list(cells.faces),
        edgecolors=FACE,
        linewidths=np.minimum(LINE, 0.12 * cells.measure(ax).min(axis=1)).tolist(),
        zorder=1,
    )
    ax.add_collection(drawn, autolim=False)
    return drawn


def write_in_cells(
    ax: "Axes", cells: Cells, words: list[list[StyledLine]]
) -> tuple[tuple["Text", ...], ...]:
    """Write into each rectangle as much as fits, upwards where that is the only way."""
    texts = []
    for n, (size, lines) in enumerate(zip(cells.measure(ax), words, strict=True)):
        level, upright = (
            fit_lines(lines, (across, along))
            for across, along in (size - 2 * PAD, size[::-1] - 2 * PAD)
        )
        # What has to be turned to be read must be worth it.
        is_upright = _n_letters(upright) > 2 * _n_letters(level)
        texts.append(_write(ax, cells, n, upright if is_upright else level, is_upright))
    return tuple(texts)


def _n_letters(lines: list[StyledLine]) -> int:
    """Return how much of the first line is left."""
    return len(lines[0][0]) if lines else 0


def _write(
    ax: "Axes", cells: Cells, n: int, lines: list[StyledLine], is_upright: bool
) -> tuple["Text", ...]:
    from matplotlib.patches import Rectangle

    low, high = cells.low[n], cells.high[n]
    point = ax.figure.dpi / POINTS
    middle = ax.transData.transform((low + high) / 2)
    # From the first line on: down the page or, where text runs upwards, to the right.
    onwards = np.array([1.0, 0.0]) if is_upright else np.array([0.0, -1.0])
    leading = [LEADING * size_of(style) for _, style in lines]
    to_data = ax.transData.inverted().transform
    # Fits as the axes are now; should they get smaller, no text runs over its rectangle.
    frame = Rectangle(tuple(low), *(high - low), transform=ax.transData)
    red, green, blue = cells.faces[n].tolist()
    texts = []
    for (text, style), below in zip(lines, np.cumsum(leading), strict=True):
        baseline = below - sum(leading) / 2 - (LEADING - 1.0) * size_of(style)
        written = write(
            ax, to_data(middle + point * baseline * onwards), text, ha="center", va="baseline",
            rotation=90.0 if is_upright else 0.0, rotation_mode="anchor",
            color=ink_on((red, green, blue)), fontproperties=font(style), zorder=3,
            clip_on=True,
        )  # fmt: skip
        written.set_clip_path(frame)
        texts.append(written)
    return tuple(texts)
