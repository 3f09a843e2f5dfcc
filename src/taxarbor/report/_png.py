"""Small pictures as text that a page can hold, without an imaging library."""

import struct
import zlib
from base64 import b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxarbor._images import small_image

EDGES = (64, 48, 32, 24, 16)
"""Widths and heights, at most, that thumbnails may be reduced to."""


def thumbnail(images: NDArray[Any], row: int, edge: int) -> str:
    """Return a row's picture as a ``data:`` address of a PNG, of an edge at most."""
    data = b64encode(encode_png(small_image(images, row, edge))).decode("ascii")
    return f"data:image/png;base64,{data}"


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
