"""Strips show the pixels given, of the rows asked for."""

import numpy as np
import pytest

from taxarbor.plot._images import SIDE, TALLEST, WIDEST, make_strips


@pytest.fixture
def grey():
    return np.arange(12 * 3 * 5, dtype=np.uint8).reshape(12, 3, 5)


def test_bytes_stay(known, grey):
    (strip,) = make_strips(known, [0], grey, {0: [4, 2]})
    assert strip.pixels.shape == (3, 5 + 1 + 5, 4)
    for channel in range(3):
        np.testing.assert_array_equal(strip.pixels[:, :5, channel], grey[4])
        np.testing.assert_array_equal(strip.pixels[:, 6:, channel], grey[2])
    assert (strip.pixels[:, :5, 3] == 255).all()
    assert (strip.pixels[:, 5] == 0).all()
    assert strip.size == pytest.approx((11 / 3 * TALLEST, TALLEST))


@pytest.mark.parametrize("channels", [(), (3,), (4,)])
def test_floats_and_booleans(known, channels):
    values = np.random.default_rng(0).random((12, 2, 2, *channels))
    (strip,) = make_strips(known, [0], values, {0: [7]})
    (again,) = make_strips(known, [0], np.round(values * 255).astype(np.uint8), {0: [7]})
    np.testing.assert_array_equal(strip.pixels, again.pixels)
    (binary,) = make_strips(known, [0], values > 0.5, {0: [7]})
    assert set(np.unique(binary.pixels)) <= {0, 255}


def test_rows_from_all_over_the_node(known):
    images = np.arange(12, dtype=np.uint8)[:, None, None].repeat(2, axis=2)
    for node, strip in enumerate(make_strips(known, range(known.n_nodes), images, None)):
        shown = strip.pixels[0, ::3, 0].tolist()
        rows = known.rows(node).tolist()
        assert shown[0] == rows[0]
        assert shown[-1] == rows[-1]
        assert len(shown) == min(len(rows), 4)
        assert set(shown) <= set(rows)


def test_nodes_may_be_left_out(known, grey):
    strips = make_strips(known, [0, 1], grey, {1: np.array([3])})
    assert [strip.size[0] > 0 for strip in strips] == [False, True]
    assert make_strips(known, [0], grey, lambda node: [])[0].size == (0.0, 0.0)


def test_large_images_are_made_smaller(known):
    images = np.zeros((12, 1000, 300), dtype=np.uint8)
    images[:, :500] = 200
    (strip,) = make_strips(known, [0], images, {0: [0]})
    assert max(strip.pixels.shape[:2]) <= SIDE
    assert strip.pixels[0, 0].tolist() == [200, 200, 200, 255]
    assert strip.pixels[-1, -1].tolist() == [0, 0, 0, 255]
    thin = make_strips(known, [0], np.zeros((12, 1, 2000, 3)), {0: [0]})[0]
    assert thin.size[0] <= WIDEST
    assert thin.pixels.shape[0] == 1


@pytest.mark.parametrize(
    ("images", "told"),
    [
        (np.zeros((12, 4)), r"got \(12, 4\)"),
        (np.zeros((12, 4, 4, 2)), r"got \(12, 4, 4, 2\)"),
        (np.zeros((11, 4, 4)), "one image for each of the 12 rows, got 11"),
        (np.zeros((12, 0, 4)), "must have pixels"),
        (np.zeros((12, 4, 4), dtype=int), "floats from 0 to 1, uint8 or booleans, got int64"),
        (np.full((12, 4, 4), 16.0), "range from 0 to 1, got 16 to 16 for row 0: divide"),
        (np.full((12, 4, 4), np.nan), "range from 0 to 1, got nan"),
    ],
)
def test_what_are_no_images_is_refused(known, images, told):
    with pytest.raises(ValueError, match=told):
        make_strips(known, [0], images, None)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([12], "from 0 to 11, got 12 to 12 for node 0"),
        ([-1, 3], "got -1 to 3"),
        ([0.5], r"must be row numbers, got \[0.5\] for node 0"),
        (3, "must be row numbers, got 3"),
    ],
)
def test_what_are_no_exemplars_is_refused(known, grey, rows, told):
    with pytest.raises(ValueError, match=told):
        make_strips(known, [0], grey, {0: rows})
