"""Small pictures as text that a page can hold, without an imaging library."""

import struct
import zlib
from base64 import b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

EDGES = (64, 48, 32, 24, 16)
"""Widths and heights, at most, that thumbnails may be reduced to."""


def check_images(images: Any, n_rows: int) -> NDArray[Any]:
    """Return pictures as an array, or raise ValueError saying what is wrong.

    They are of shape (n_rows, height, width), grey, or (n_rows, height, width, 3 or 4);
    bytes, or floats from 0 to 1.
    """
    array = np.asarray(images)
    fits = array.ndim == 3 or (array.ndim == 4 and array.shape[3] in (3, 4))
    if not fits or array.shape[0] != n_rows or 0 in array.shape:
        raise ValueError(
            f"images must have shape ({n_rows}, height, width), or that with 3 or 4 colours "
            f"at the end, got {array.shape}"
        )
    if array.dtype != np.uint8 and array.dtype.kind != "f":
        raise ValueError(
            f"images must be bytes (uint8), or floats from 0 to 1, got {array.dtype}"
        )
    return array


def thumbnail(image: NDArray[Any], edge: int) -> str:
    """Return a picture as a ``data:`` address of a PNG, reduced to an edge by averaging.

    Floats beyond 0 to 1 are cut off, and what is not a number is black.
    """
    if image.dtype == np.uint8:
        values = image.astype(np.float64)
    else:
        values = 255.0 * np.clip(np.nan_to_num(image.astype(np.float64)), 0.0, 1.0)
    step = -(-max(image.shape[:2]) // edge)
    if step > 1:
        values = _average(values, step)
    data = b64encode(encode_png(values.round().astype(np.uint8))).decode("ascii")
    return f"data:image/png;base64,{data}"


def _average(values: NDArray[np.float64], step: int) -> NDArray[np.float64]:
    """Return the means of squares of so many points; those at the far edges may be smaller."""
    for axis in (0, 1):
        begins = np.arange(0, values.shape[axis], step)
        sizes = np.diff(np.append(begins, values.shape[axis]))
        shape = [1] * values.ndim
        shape[axis] = len(sizes)
        values = np.add.reduceat(values, begins, axis=axis) / sizes.reshape(shape)
    return values


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a picture of bytes, grey or with 3 or 4 colours, as a PNG file."""
    height, width = pixels.shape[:2]
    kind = {1: 0, 3: 2, 4: 6}[pixels.size // (height * width)]
    lines = pixels.reshape(height, -1)
    raw = np.concatenate([np.zeros((height, 1), dtype=np.uint8), lines], axis=1).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, body: bytes) -> bytes:
    check = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)
