"""New axes have the size asked for, legends that of their entries."""

import numpy as np
import pytest
from matplotlib import pyplot as plt

from taxarbor.plot._axes import draw_legend, lay_out_legend, new_axes, room_on, widest_entry

NAMES = ("one", "two", "three")
COLOURS = ("#332288", "#cc6677", "#44aa99")


def test_new_axes():
    ax = new_axes((200.0, 100.0), (10.0, 20.0, 30.0, 40.0))
    assert room_on(ax) == pytest.approx((200.0, 100.0))
    assert ax.figure.get_size_inches() * 72 == pytest.approx([240.0, 160.0])


def test_new_axes_are_not_too_large():
    ax = new_axes((20_000.0, 100.0), (10.0, 0.0, 0.0, 0.0))
    assert ax.figure.get_figwidth() == 100
    assert room_on(ax) == pytest.approx((7190.0, 100.0))


def test_legends_take_what_they_need():
    entry = widest_entry(NAMES)
    wide = lay_out_legend(NAMES, COLOURS, (3 * entry, 500.0))
    narrow = lay_out_legend(NAMES, COLOURS, (1.5 * entry, 500.0))
    assert (wide.columns, narrow.columns) == (3, 1)
    assert wide.height < narrow.height
    assert wide.scale == narrow.scale == 1
    small = lay_out_legend(NAMES, COLOURS, (0.5 * entry, 500.0))
    assert small.scale == pytest.approx(0.5)
    assert lay_out_legend(NAMES, COLOURS, (1.0, 1.0)).names == ()


@pytest.mark.parametrize("width", [100.0, 300.0])
def test_legends_stay_in_their_place(width):
    ax = new_axes((width, 200.0))
    layout = lay_out_legend(NAMES, COLOURS, room_on(ax))
    legend = draw_legend(ax, layout)
    extent = legend.get_window_extent().extents * 72 / ax.figure.dpi
    assert extent[0] >= 0
    assert extent[2] <= width
    assert extent[1] >= 0
    assert extent[3] <= layout.height + 1


def test_legends_are_literal():
    names = ("_a", "$x$", "")
    legend = draw_legend(
        new_axes((300.0, 200.0)), lay_out_legend(names, COLOURS, (300.0, 200.0))
    )
    assert tuple(text.get_text() for text in legend.get_texts()) == names
    assert not any(text.get_parse_math() for text in legend.get_texts())
    faces = [patch.get_facecolor() for patch in legend.get_patches()]
    assert len(np.unique(faces, axis=0)) == 3
    plt.gcf().canvas.draw()
