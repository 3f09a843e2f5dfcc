"""Exemplars: strips of small images, as pixels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._images import Pixels, check_images, small_image
from taxarbor.hierarchy import Hierarchy

Exemplars: TypeAlias = Mapping[int, ArrayLike] | Callable[[int], ArrayLike]

N_SHOWN = 4
SIDE = 128  # pixels; larger images are made smaller, by means over squares
GAP = 0.1  # between two images, in widths of one
TALLEST, WIDEST = 26.0, 78.0  # points that an image takes at most


@final
@dataclass(frozen=True, slots=True, eq=False)
class Strip:
    """Images side by side.

    Attributes
    ----------
    pixels : uint8 array of shape (height, width, 4)
        Red, green, blue and opacity; without width where there is nothing to show.
    size : tuple of float
        Width and height in points.
    """

    pixels: Pixels
    size: tuple[float, float]


def make_strips(
    hierarchy: Hierarchy, nodes: Sequence[int], images: ArrayLike, exemplars: Exemplars | None
) -> tuple[Strip, ...]:
    """Return the images of each node side by side.

    Parameters
    ----------
    hierarchy : Hierarchy
        The tree.
    nodes : sequence of int
        Which nodes to show.
    images : array of shape (n_rows, height, width) or (n_rows, height, width, 3 or 4)
        An image for each row: floats from 0 to 1, bytes or booleans, grey or in colours.
    exemplars : mapping or callable, optional
        The numbers of the rows to show, by node; a mapping may leave out nodes. If not
        given: four rows from all over the node.

    Returns
    -------
    tuple of Strip
        One for each node.

    Raises
    ------
    ValueError
        If the images or the exemplars are none of the above.
    """
    pixels = check_images(images, len(hierarchy.order))
    strips = []
    for node in nodes:
        rows = _choose(hierarchy, node, exemplars)
        strips.append(_join([_in_colour(small_image(pixels, row, SIDE)) for row in rows]))
    return tuple(strips)


def _choose(hierarchy: Hierarchy, node: int, exemplars: Exemplars | None) -> list[int]:
    """Return the rows to show for a node."""
    if exemplars is None:
        rows = hierarchy.rows(node)
        spread = np.unique(np.linspace(0, len(rows) - 1, N_SHOWN).astype(int))
        return [int(row) for row in rows[spread]]
    given = exemplars.get(node, ()) if isinstance(exemplars, Mapping) else exemplars(node)
    chosen = np.asarray(given)
    if chosen.size == 0:
        return []
    n_rows = len(hierarchy.order)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise ValueError(f"exemplars must be row numbers, got {given!r} for node {node}")
    if chosen.min() < 0 or chosen.max() >= n_rows:
        raise ValueError(
            f"exemplars must be row numbers from 0 to {n_rows - 1}, "
            f"got {chosen.min()} to {chosen.max()} for node {node}"
        )
    return [int(row) for row in chosen]


def _in_colour(image: Pixels) -> Pixels:
    """Return an image with four bytes for each pixel."""
    colours = image[..., None].repeat(3, axis=2) if image.ndim == 2 else image
    full = np.full((*colours.shape[:2], 4), 255, dtype=np.uint8)
    full[..., : colours.shape[2]] = colours
    return full


def _join(shown: list[Pixels]) -> Strip:
    """Put images side by side, with clear pixels between."""
    if not shown:
        return Strip(np.zeros((1, 0, 4), dtype=np.uint8), (0.0, 0.0))
    height, width = shown[0].shape[:2]
    gap = max(1, round(GAP * width))
    strip = np.zeros((height, len(shown) * (width + gap) - gap, 4), dtype=np.uint8)
    for n, image in enumerate(shown):
        strip[:, n * (width + gap) :][:, :width] = image
    point = min(TALLEST / height, WIDEST / width)
    return Strip(strip, (point * strip.shape[1], point * height))
