"""What boxes hold, from top to bottom: lines of text, a strip of images, a bar of classes."""

from dataclasses import dataclass
from typing import final

import numpy as np

from taxarbor._types import Array, IndexArray
from taxarbor.plot._boxes import BoxLayout
from taxarbor.plot._describe import StyledLine
from taxarbor.plot._images import Strip
from taxarbor.plot._text import LEADING, size_of, width_of

PAD, SPACE = 6.0, 3.5  # points, as all lengths here: within boxes, and between what they hold
BAR, SHORTEST = 5.0, 60.0  # height of a bar, and its width at least


@final
@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """What the boxes of a tree hold, in the order of its layout.

    Attributes
    ----------
    words : list of list of StyledLine
        Lines of text.
    counts : int array of shape (n_shown, n_groups), optional
        The pieces of each bar.
    colours : tuple of str
        Their colours.
    strips : tuple of Strip
        One for each box; none at all where there are no images.
    """

    words: list[list[StyledLine]]
    counts: IndexArray | None
    colours: tuple[str, ...]
    strips: tuple[Strip, ...]

    def measure(self) -> tuple[Array, Array]:
        """Return the width and the height that each box needs."""
        widths = [max((width_of(line) for line in lines), default=0.0) for lines in self.words]
        heights = [sum(LEADING * size_of(style) for _, style in lines) for lines in self.words]
        strips = self._strip_sizes()
        width = np.maximum(widths, strips[:, 0])
        height = np.array(heights) + strips[:, 1] + SPACE * (strips[:, 1] > 0.0)
        if self.counts is not None:
            width, height = np.maximum(width, SHORTEST), height + BAR + SPACE
        return width + 2 * PAD, height + 2 * PAD

    def place_strips(self, placed: BoxLayout) -> Array:
        """Return left, right, bottom and top of the strips, (n_shown, 4)."""
        sizes = self._strip_sizes()
        left = (placed.low[:, 0] + placed.high[:, 0] - sizes[:, 0]) / 2
        bottom = placed.low[:, 1] + PAD + (0.0 if self.counts is None else BAR + SPACE)
        return np.column_stack([left, left + sizes[:, 0], bottom, bottom + sizes[:, 1]])

    def place_bars(self, placed: BoxLayout) -> tuple[Array, IndexArray]:
        """Return the corners of all pieces of the bars, (n_pieces, 4, 2), and their groups."""
        assert self.counts is not None
        nodes, groups = np.nonzero(self.counts)
        ends = np.cumsum(self.counts, axis=1) / self.counts.sum(axis=1, keepdims=True)
        width = placed.high[:, 0] - placed.low[:, 0] - 2 * PAD
        places = (
            placed.low[:, :1]
            + PAD
            + width[:, None] * np.column_stack([np.zeros(len(ends)), ends])
        )
        left, right = places[nodes, groups], places[nodes, groups + 1]
        bottom = placed.low[nodes, 1] + PAD
        return rectangles(left, right, bottom, bottom + BAR), groups

    def _strip_sizes(self) -> Array:
        if not self.strips:
            return np.zeros((len(self.words), 2))
        return np.array([strip.size for strip in self.strips])


def rectangles(left: Array, right: Array, bottom: Array, top: Array) -> Array:
    """Return the corners of rectangles, (n, 4, 2)."""
    corners = [(left, bottom), (right, bottom), (right, top), (left, top)]
    return np.stack([np.column_stack(corner) for corner in corners], axis=1)
