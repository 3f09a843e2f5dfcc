"""Exemplars: strips of small images, as pixels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor.hierarchy import Hierarchy

Exemplars: TypeAlias = Mapping[int, ArrayLike] | Callable[[int], ArrayLike]
Pixels: TypeAlias = NDArray[np.uint8]

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
    pixels = _expect_images(images, len(hierarchy.order))
    strips = []
    for node in nodes:
        rows = _choose(hierarchy, node, exemplars)
        strips.append(_join([_to_bytes(pixels[row], row) for row in rows]))
    return tuple(strips)


def _expect_images(images: ArrayLike, n_rows: int) -> NDArray[Any]:
    pixels = np.asanyarray(images)
    is_grey = pixels.ndim == 3
    if not (is_grey or (pixels.ndim == 4 and pixels.shape[3] in (3, 4))):
        raise ValueError(
            "images must have shape (n_rows, height, width), with 3 or 4 colours behind if "
            f"they are not grey, got {pixels.shape}"
        )
    if len(pixels) != n_rows:
        raise ValueError(
            f"there must be one image for each of the {n_rows:,} rows, got {len(pixels):,}"
        )
    if 0 in pixels.shape:
        raise ValueError(f"images must have pixels, got shape {pixels.shape}")
    if pixels.dtype.kind not in "fb" and pixels.dtype != np.uint8:
        raise ValueError(
            f"images must be floats from 0 to 1, uint8 or booleans, got {pixels.dtype}"
        )
    return pixels


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


def _to_bytes(image: NDArray[Any], row: int) -> Pixels:
    """Return the image with four bytes for each pixel, and not too many pixels."""
    if image.dtype != np.uint8:
        values = image.astype(np.float64)
        if not (values.min() >= 0.0 and values.max() <= 1.0):
            raise ValueError(
                f"images of floats must range from 0 to 1, got {values.min():g} to "
                f"{values.max():g} for row {row}: divide by the largest"
            )
        image = values * 255.0
    step = -(-max(image.shape[:2]) // SIDE)
    image = _shrink(image, min(step, image.shape[0]), min(step, image.shape[1]))
    colours = image[..., None].repeat(3, axis=2) if image.ndim == 2 else image
    full = np.full((*colours.shape[:2], 4), 255, dtype=np.uint8)
    full[..., : colours.shape[2]] = np.round(colours)
    return full


def _shrink(image: NDArray[Any], down: int, right: int) -> NDArray[Any]:
    """Return means over rectangles; what is left over at the edges is left out."""
    if down == right == 1:
        return image
    height, width = image.shape[0] // down, image.shape[1] // right
    parts = (height, down, width, right, *image.shape[2:])
    blocks = image[: height * down, : width * right].reshape(parts)
    return np.asarray(blocks.mean(axis=(1, 3)))


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
