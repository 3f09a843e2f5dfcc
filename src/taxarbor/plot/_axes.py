"""Colours, text and figures of all plots. matplotlib is imported late.

Lengths are in points, of which an inch has 72.
"""

from typing import TYPE_CHECKING

from taxarbor._errors import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, PLAIN, PLUS, MINUS = "#1f2933", "#52606d", "#05668d", "#9b2c1f"
BRANCH, EDGE, FACE, LEAF_FACE = "#9fb0c0", "#b8c4d0", "#ffffff", "#f3f6f9"
OTHER, GRID = "#c9d1d9", "#e4e9ee"

FONT_SIZE, LINE_HEIGHT = 8.0, 11.0  # the latter from one baseline to the next
MAX_LETTERS = 28  # of a line
MAX_INCHES = 100.0  # of a new figure
POINTS_PER_INCH = 72.0
LITERAL = {"parse_math": False, "usetex": False}  # "$" is no mathematics


def require_matplotlib(function: str) -> None:
    """Raise ImportError, saying what to install, if matplotlib is missing."""
    try:
        import matplotlib.textpath  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{function} needs matplotlib: pip install matplotlib") from error


def shorten(text: object, max_letters: int = MAX_LETTERS) -> str:
    """Return the text on one line, printable and not too long."""
    line = printable(str(text)).strip()
    return line if len(line) <= max_letters else line[: max_letters - 1].rstrip() + "…"


def new_axes(width: float, height: float, *, layout: str) -> "Axes":
    """Return axes on a new figure of this size."""
    from matplotlib import pyplot as plt

    inches = [min(length / POINTS_PER_INCH, MAX_INCHES) for length in (width, height)]
    figure = plt.figure(figsize=(inches[0], inches[1]), facecolor="white", layout=layout)
    return figure.add_axes((0, 0, 1, 1)) if layout == "none" else figure.add_subplot()
