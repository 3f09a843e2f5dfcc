"""Pictures written by hand, read back by a library."""

import io
from base64 import b64decode

import numpy as np
import pytest
from PIL import Image

from taxarbor.report._png import encode_png, thumbnail


@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (5, 9), (7, 4, 3), (3, 6, 4)])
def test_what_is_written_is_read(shape):
    pixels = np.random.default_rng(0).integers(0, 255, shape, dtype=np.uint8)
    read = np.asarray(Image.open(io.BytesIO(encode_png(pixels))))
    np.testing.assert_array_equal(read, pixels)


def decoded(address):
    return np.asarray(Image.open(io.BytesIO(b64decode(address.partition(",")[2]))))


def test_a_thumbnail_is_an_average():
    image = np.arange(100.0).reshape(1, 10, 10) / 100.0
    small = decoded(thumbnail(image, 0, 5))
    expected = image.reshape(5, 2, 5, 2).mean(axis=(1, 3)) * 255.0
    np.testing.assert_allclose(small, expected, atol=0.51)


@pytest.mark.parametrize(("height", "width"), [(70, 30), (65, 64), (64, 64), (1, 200)])
def test_a_thumbnail_has_no_longer_edge(height, width):
    image = np.full((1, height, width, 3), 200, dtype=np.uint8)
    small = decoded(thumbnail(image, 0, 64))
    assert max(small.shape[:2]) <= 64
    assert (small == 200).all()


def test_what_is_no_brightness_is_refused():
    for value in (-1.0, 2.0, np.nan):
        with pytest.raises(ValueError, match=r"from 0 to 1, got .* for row 1"):
            thumbnail(np.array([[[0.5]], [[value]]]), 1, 8)
