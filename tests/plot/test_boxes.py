"""Boxes do not overlap, whatever their sizes, and branches keep out of them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from taxarbor.plot import lay_out
from taxarbor.plot._boxes import place_boxes


@st.composite
def arrangements(draw, trees, depths):
    layout = lay_out(draw(trees), draw(depths))
    sizes = hnp.arrays(float, len(layout.nodes), elements=st.floats(1, 300))
    room = draw(st.none() | st.tuples(st.floats(10, 2000), st.floats(10, 2000)))
    orientation = draw(st.sampled_from(["down", "right"]))
    widths, heights = draw(sizes), draw(sizes)
    placed = place_boxes(layout, widths, heights, orientation, room)
    return layout, widths, heights, orientation, room, placed


@pytest.fixture(scope="session")
def arranged(trees, depths):
    return arrangements(trees, depths)


@given(data=st.data())
def test_boxes_do_not_overlap(data, arranged):
    placed = data.draw(arranged)[-1]
    for i, j in itertools.combinations(range(len(placed.low)), 2):
        apart = (placed.high[i] < placed.low[j]) | (placed.high[j] < placed.low[i])
        assert apart.any()


@given(data=st.data())
def test_boxes_are_large_enough(data, arranged):
    layout, widths, heights, *_, placed = data.draw(arranged)
    width, height = (placed.high - placed.low).T
    assert (width >= widths - 1e-9).all()
    np.testing.assert_allclose(height, heights)
    for depth in range(layout.height + 1):
        assert np.ptp(width[layout.depth == depth]) < 1e-9


@given(data=st.data())
def test_all_is_within_the_page(data, arranged):
    *_, room, placed = data.draw(arranged)
    corners = np.concatenate([placed.low, placed.high, *placed.branches, *placed.stubs])
    assert (corners > 0).all()
    assert (corners < placed.size).all()
    if room is None:
        assert placed.scale == 1
    else:
        assert 0 < placed.scale <= 1
        np.testing.assert_allclose(placed.scale * np.array(placed.size), room)


@given(data=st.data())
def test_branches_enter_no_box(data, arranged):
    placed = data.draw(arranged)[-1]
    for line in placed.branches:
        for a, b in itertools.pairwise(line):
            assert (a == b).any()  # across or along
            low, high = np.minimum(a, b), np.maximum(a, b)
            outside = (high <= placed.low + 1e-9) | (low >= placed.high - 1e-9)
            assert outside.any(axis=1).all()


@given(data=st.data())
def test_branches_lead_from_each_parent_to_each_child(data, arranged):
    layout, _, _, orientation, _, placed = data.draw(arranged)
    towards = {"down": np.array([0, -1]), "right": np.array([1, 0])}[orientation]
    centre, half = (placed.low + placed.high) / 2, (placed.high - placed.low) / 2
    ends = np.array([end for line in placed.branches for end in (line[0], line[-1])])
    for parent, node in layout.edges:
        for point in (
            centre[parent] + towards * half[parent],
            centre[node] - towards * half[node],
        ):
            assert (np.abs(ends - point).max(axis=1) < 1e-9).any()
    assert len(placed.stubs) == layout.is_cut.sum()
    for stub, node in zip(placed.stubs, np.flatnonzero(layout.is_cut), strict=True):
        np.testing.assert_allclose(stub[0], centre[node] + towards * half[node])


def length(line):
    return np.abs(np.diff(line, axis=0)).sum()


def test_no_branch_is_drawn_twice(known):
    layout = lay_out(known)
    n = len(layout.nodes)
    placed = place_boxes(layout, np.full(n, 40.0), np.full(n, 20.0), "down")
    x = ((placed.low + placed.high) / 2)[:, 0]
    gap = placed.low[0, 1] - placed.high[1, 1]
    # Of three children, one rises from the bar; half a gap each, and the stems likewise.
    expected = (x[3] - x[1]) + (x[5] - x[4]) + (3 + 1 + 2 + 1) * gap / 2
    assert sum(map(length, placed.branches)) == pytest.approx(expected)


@pytest.mark.parametrize(("orientation", "axis", "sign"), [("down", 1, -1), ("right", 0, 1)])
def test_orientation(known, orientation, axis, sign):
    layout = lay_out(known)
    sizes = np.full(len(layout.nodes), 10.0)
    placed = place_boxes(layout, sizes, sizes, orientation)
    centre = (placed.low + placed.high) / 2
    np.testing.assert_array_equal(
        np.unique(sign * centre[:, axis], return_inverse=True)[1], layout.depth
    )
    across = centre[:, 1 - axis] * (1 if orientation == "down" else -1)
    assert (np.diff(across[[1, 2, 3]]) > 0).all()


def test_room_is_filled(known):
    layout = lay_out(known)
    sizes = np.full(len(layout.nodes), 10.0)
    close = place_boxes(layout, sizes, sizes, "down")
    wide = place_boxes(layout, sizes, sizes, "down", (1000.0, 500.0))
    assert wide.size == (1000, 500)
    assert np.ptp(wide.low[:, 0]) > 2 * np.ptp(close.low[:, 0])
    np.testing.assert_allclose(
        wide.low.min(axis=0), np.array(wide.size) - wide.high.max(axis=0)
    )
