"""Texts stay within their rectangles."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from taxarbor.plot._cells import Cells, draw_cells, write_in_cells

LINES = [("+a rather long name", "plus"), ("12 rows", "plain")]


def drawn(sizes):
    """Rectangles of these sizes in points, side by side."""
    figure, ax = plt.subplots(figsize=(10, 5), layout="none")
    ax.set_position((0, 0, 1, 1))
    ax.set(xlim=(0, 720), ylim=(360, 0))
    low = np.column_stack([np.cumsum([0, *(w for w, _ in sizes)])[:-1], np.zeros(len(sizes))])
    cells = Cells(low, low + np.array(sizes), np.ones((len(sizes), 3)))
    draw_cells(ax, cells)
    texts = write_in_cells(ax, cells, [LINES] * len(sizes))
    figure.canvas.draw()
    return cells, texts, ax


def test_texts_are_inside():
    cells, texts, ax = drawn([(120, 40), (60, 12), (14, 100), (5, 5), (40, 40), (300, 300)])
    for n, written in enumerate(texts):
        corners = ax.transData.transform([cells.low[n], cells.high[n]])
        low, high = corners.min(axis=0), corners.max(axis=0)
        for text in written:
            extent = text.get_window_extent()
            assert (extent.min >= low - 1).all()
            assert (extent.max <= high + 1).all()
    assert [len(written) for written in texts] == [2, 1, 1, 0, 2, 2]
    assert [w[0].get_rotation() for w in texts if w] == [0, 0, 90, 0, 0]
    assert texts[1][0].get_text().endswith("…")


def test_texts_are_clipped_when_axes_shrink():
    _, texts, _ = drawn([(120, 40)])
    assert all(text.get_clip_on() and text.get_clip_box() is not None for text in texts[0])


def test_lines_do_not_hide_small_cells():
    _, _, ax = drawn([(100, 100), (0.5, 100)])
    assert ax.collections[0].get_linewidths() == pytest.approx([1.0, 0.06])
