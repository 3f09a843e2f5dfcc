"""Pictures of rows: what they may be, and small ones of them."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._errors import InputError

Pixels: TypeAlias = NDArray[np.uint8]


def check_images(images: ArrayLike, n_rows: int) -> NDArray[Any]:
    """Return pictures as an array, one for each row.

    Of shape (n_rows, height, width), grey, or (n_rows, height, width, 3 or 4); floats from 0 to
    1, bytes or booleans.

    Raises
    ------
    ValueError
        If they are none of these.
    """
    pixels = np.asanyarray(images)
    if not (pixels.ndim == 3 or (pixels.ndim == 4 and pixels.shape[3] in (3, 4))):
        raise InputError(
            "images must have shape (n_rows, height, width), with 3 or 4 colours behind if "
            f"they are not grey, got {pixels.shape}"
        )
    if len(pixels) != n_rows:
        raise InputError(
            f"there must be one image for each of the {n_rows:,} rows, got {len(pixels):,}"
        )
    if 0 in pixels.shape:
        raise InputError(f"images must have pixels, got shape {pixels.shape}")
    if pixels.dtype.kind not in "fb" and pixels.dtype != np.uint8:
        raise InputError(
            f"images must be floats from 0 to 1, uint8 or booleans, got {pixels.dtype}"
        )
    return pixels


def small_image(images: NDArray[Any], row: int, edge: int) -> Pixels:
    """Return a row's picture as bytes, reduced by averaging to an edge at most.

    Raises
    ------
    ValueError
        If floats are not from 0 to 1.
    """
    image = images[row]
    if image.dtype != np.uint8:
        values = image.astype(np.float64)
        if not (values.min() >= 0.0 and values.max() <= 1.0):
            raise InputError(
                f"images of floats must range from 0 to 1, got {values.min():g} to "
                f"{values.max():g} for row {row}: divide by the largest"
            )
        image = 255.0 * values
    step = -(-max(image.shape[:2]) // edge)
    return np.round(_average(image, step) if step > 1 else image).astype(np.uint8)


def _average(image: NDArray[Any], step: int) -> NDArray[Any]:
    """Return the means of squares of so many points; those at the far edges may be smaller."""
    for axis in (0, 1):
        begins = np.arange(0, image.shape[axis], step)
        sizes = np.diff(np.append(begins, image.shape[axis]))
        shape = [1] * image.ndim
        shape[axis] = len(sizes)
        image = np.add.reduceat(image.astype(np.float64), begins, axis) / sizes.reshape(shape)
    return image
