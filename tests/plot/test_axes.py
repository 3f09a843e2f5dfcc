"""Texts fit, axes have their size, and legends stay in place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt

from taxarbor.plot import _axes
from taxarbor.plot._axes import CLASSES, LEADING, fit, width_of

ENTRIES = tuple(zip(("one", "two", "three"), CLASSES, strict=False))
LINES = [("one", "title"), ("two", "plain"), ("three", "plus")]
texts = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=60)


@given(text=texts, room=st.floats(-10, 300), style=st.sampled_from(["title", "plain"]))
def test_what_is_left_fits(text, room, style):
    left = fit((text, style), room)
    assert not left or width_of((left, style)) <= room
    if text and width_of((text, style)) <= room:
        assert left == text
    elif left:
        assert left.endswith("…")
        assert text.startswith(left[:-1])


def test_short_remains_and_half_numbers_are_left_out():
    long = ("a long name that is cut", "plain")
    assert fit(long, 20.0) == fit(("", "plain"), 10.0) == ""
    assert len(fit(long, 60.0)) > _axes.FEWEST
    line = ("mammals · 100%", "plain")
    for room in range(30, int(width_of(line))):
        assert fit(line, room) in ("", "mammal…", "mammals…")
    assert fit(line, width_of(line)) == line[0]


def test_height_of_lines():
    full = sum(LEADING * _axes.size_of(style) for _, style in LINES)
    assert _axes.height_of(LINES) == pytest.approx(full)
    steps = [LEADING * 8 - 0.38 + 0.76, LEADING * 8]
    assert np.diff(_axes.baselines(LINES)) == pytest.approx(steps)


def test_widths_are_those_drawn_and_follow_the_font():
    figure = plt.figure()
    for text in ("plain", "$x$", "a_b^c"):
        drawn = figure.text(0.5, 0.5, text, fontsize=8, parse_math=False)
        width = drawn.get_window_extent().width * 72 / figure.dpi
        assert width_of((text, "plain")) == pytest.approx(width, abs=1.5)
    line = ("illicit", "plain")
    narrow = width_of(line)
    with plt.rc_context({"font.family": "monospace"}):
        assert width_of(line) > 1.2 * narrow
    assert width_of(line) == narrow


def test_new_axes():
    ax = _axes.new_axes((200.0, 100.0), (10.0, 20.0, 30.0, 40.0))
    assert _axes.room_on(ax) == pytest.approx((200.0, 100.0))
    assert ax.figure.get_size_inches() * 72 == pytest.approx([240.0, 160.0])
    large = _axes.new_axes((20_000.0, 100.0), (10.0, 0.0, 0.0, 0.0))
    assert large.figure.get_figwidth() == 100
    assert _axes.room_on(large) == pytest.approx((7190.0, 100.0))


def test_legends_take_what_they_need():
    entry, _ = _axes.add_legend((0.0, 0.0), ENTRIES)
    room = 3.01 * entry
    wide = _axes.lay_out_legend(ENTRIES, (room, 500.0))
    narrow = _axes.lay_out_legend(ENTRIES, (1.5 * entry, 500.0))
    assert (wide.columns, narrow.columns) == (3, 1)
    assert wide.height < narrow.height
    assert wide.scale == narrow.scale == 1
    assert _axes.add_legend((room, 10.0), ENTRIES) == (room, 10.0 + wide.height)
    assert _axes.lay_out_legend(ENTRIES, (0.5 * entry, 500.0)).scale == pytest.approx(0.5)
    assert _axes.lay_out_legend(ENTRIES, (1.0, 1.0)).entries == ()
    assert _axes.add_legend((3.0, 4.0), ()) == (3.0, 4.0)
    assert _axes.lay_out_legend((), (3.0, 4.0)).height == 0.0


def test_legends_stay_in_their_place():
    for width in (100.0, 300.0):
        ax = _axes.new_axes((width, 200.0))
        layout = _axes.lay_out_legend(ENTRIES, _axes.room_on(ax))
        extent = _axes.draw_legend(ax, layout).get_window_extent().extents * 72 / ax.figure.dpi
        assert (extent >= 0).all()
        assert (extent[2:] <= [width, layout.height + 1]).all()


def test_legends_are_literal():
    names = ("_a", "$x$", "")
    layout = _axes.lay_out_legend(tuple(zip(names, CLASSES, strict=False)), (300.0, 200.0))
    legend = _axes.draw_legend(_axes.new_axes((300.0, 200.0)), layout)
    assert tuple(text.get_text() for text in legend.get_texts()) == names
    assert not any(text.get_parse_math() for text in legend.get_texts())
    faces = [patch.get_facecolor() for patch in legend.get_patches()]
    assert len(np.unique(faces, axis=0)) == 3
    plt.gcf().canvas.draw()
