"""Colours, fonts, axes and legends of all plots. matplotlib is imported late.

Lengths are in points, of which an inch has 72.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from taxarbor._errors import InputError, printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.font_manager import FontProperties
    from matplotlib.legend import Legend

Size: TypeAlias = tuple[float, float]
Style: TypeAlias = Literal["title", "plain", "plus", "minus"]
StyledLine: TypeAlias = tuple[str, Style]
Entries: TypeAlias = tuple[tuple[str, str], ...]  # names and colours of a legend
Orientation: TypeAlias = Literal["down", "right"]

INK, PLAIN, PLUS, MINUS = "#1f2933", "#52606d", "#05668d", "#9b2c1f"
BRANCH, EDGE, FACE, LEAF_FACE = "#9fb0c0", "#b8c4d0", "#ffffff", "#f3f6f9"
OTHER, GRID = "#c9d1d9", "#e4e9ee"
# The muted set of Paul Tol, made for colour-blind readers, less one that is close to others.
CLASSES = (
    "#332288", "#cc6677", "#44aa99", "#ddcc77", "#88ccee", "#882255", "#117733", "#999933",
)  # fmt: skip
COLOURS: dict[Style, str] = {"title": INK, "plain": PLAIN, "plus": PLUS, "minus": MINUS}

FONT_SIZE, LINE_HEIGHT = 8.0, 11.0  # the latter from one baseline to the next
MAX_LETTERS = 28  # of a line
MAX_INCHES = 100.0  # of a new figure; where more is needed, all is drawn smaller
POINTS_PER_INCH = 72.0
LITERAL = {"parse_math": False, "usetex": False}  # "$" is no mathematics
LEGEND_PAD, LEGEND_HANDLE = 5.0, 3.1 * FONT_SIZE  # a coloured square with the space around it


def check_orientation(orientation: object) -> None:
    """Raise InputError unless this is an orientation."""
    if orientation not in get_args(Orientation):
        raise InputError(f"orientation must be 'down' or 'right', got {orientation!r}")


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


def font(style: Style, scale: float = 1.0) -> "FontProperties":
    """Return a style's font."""
    from matplotlib.font_manager import FontProperties

    weight = "bold" if style == "title" else "normal"
    return FontProperties(weight=weight, size=scale * FONT_SIZE)


def width_of(line: StyledLine) -> float:
    """Return the width of a line, whatever the figure is saved as."""
    from matplotlib.textpath import text_to_path

    text, style = line
    return float(text_to_path.get_text_width_height_descent(text, font(style), False)[0])


def new_axes(size: Size, margins: Sequence[float] = (0, 0, 0, 0)) -> "Axes":
    """Return axes of this size on a new figure, smaller if the figure would be too large.

    The margins are left, bottom, right and top.
    """
    from matplotlib import pyplot as plt

    left, bottom, right, top = margins
    width = min(size[0] + left + right, MAX_INCHES * POINTS_PER_INCH)
    height = min(size[1] + bottom + top, MAX_INCHES * POINTS_PER_INCH)
    inches = width / POINTS_PER_INCH, height / POINTS_PER_INCH
    figure = plt.figure(figsize=inches, facecolor="white", layout="none")
    share = 1.0 - (left + right) / width, 1.0 - (bottom + top) / height
    return figure.add_axes((left / width, bottom / height, *share))


def size_of(ax: "Axes") -> Size:
    """Return the width and the height of the axes as they are now."""
    point = ax.figure.dpi / POINTS_PER_INCH
    return float(ax.bbox.width / point), float(ax.bbox.height / point)


def _legend_columns(entries: Entries, width: float) -> int:
    widest = max(width_of((name, "plain")) for name, _ in entries) + LEGEND_HANDLE
    return max(1, min(len(entries), int(width // widest)))


def legend_height(entries: Entries, width: float) -> float:
    """Return the height of a legend in axes of this width."""
    if not entries:
        return 0.0
    n_lines = math.ceil(len(entries) / _legend_columns(entries, width))
    return n_lines * LINE_HEIGHT + 2 * LEGEND_PAD


def draw_legend(ax: "Axes", entries: Entries) -> "Legend | None":
    """Draw a legend at the foot of the axes."""
    from matplotlib.patches import Patch

    if not entries:
        return None
    n_columns = _legend_columns(entries, size_of(ax)[0])
    handles = [Patch(facecolor=colour) for _, colour in entries]
    # A name that begins with an underscore would be excluded; so names are set afterwards.
    legend = ax.legend(
        handles, ["-"] * len(handles), loc="lower center", ncols=n_columns, frameon=False,
        prop=font("plain"), borderpad=0.0, borderaxespad=LEGEND_PAD / FONT_SIZE,
        handlelength=1.0, handleheight=1.0, handletextpad=0.5, columnspacing=1.6,
        labelspacing=LINE_HEIGHT / FONT_SIZE - 1.0, labelcolor=PLAIN,
    )  # fmt: skip
    for text, (name, _) in zip(legend.get_texts(), entries, strict=True):
        look: dict[str, Any] = {"text": name, **LITERAL}
        text.set(**look)
    return legend
