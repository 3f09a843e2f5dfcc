"""Texts are cut to the room there is, by their measured width."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt

from taxarbor.plot._text import FEWEST, LEADING, fit, fit_lines, size_of, width_of

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


def test_short_remains_are_left_out():
    assert fit(("a long name that is cut", "plain"), 20.0) == ""
    assert len(fit(("a long name that is cut", "plain"), 60.0)) > FEWEST
    assert fit(("", "plain"), 10.0) == ""


def test_numbers_are_not_cut():
    line = ("mammals · 100%", "plain")
    for room in range(30, int(width_of(line))):
        assert fit(line, room) in ("", "mammal…", "mammals…")
    assert fit(line, width_of(line)) == line[0]


def test_lines_fit_in_height():
    lines = [("one", "title"), ("two", "plain"), ("three", "plus")]
    full = sum(LEADING * size_of(style) for _, style in lines)
    assert fit_lines(lines, (100.0, full)) == lines
    assert fit_lines(lines, (100.0, full - 1)) == lines[:2]
    assert fit_lines(lines, (100.0, 1.0)) == []
    assert fit_lines([("very long text", "plain"), ("ab", "plain")], (20.0, 100.0)) == []


def test_widths_follow_the_font():
    line = ("illicit", "plain")
    narrow = width_of(line)
    with plt.rc_context({"font.family": "monospace"}):
        assert width_of(line) > 1.2 * narrow
    assert width_of(line) == narrow


@pytest.mark.parametrize("text", ["plain", "$x$", "a_b^c"])
def test_widths_are_those_drawn(text):
    figure = plt.figure()
    drawn = figure.text(0.5, 0.5, text, fontsize=8, parse_math=False)
    assert width_of((text, "plain")) == pytest.approx(
        drawn.get_window_extent().width * 72 / figure.dpi, abs=1.5
    )
