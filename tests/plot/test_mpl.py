"""Pictures show every word, in boxes that do not overlap, on the axes given."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.patches import FancyBboxPatch

from taxarbor.hierarchy import Hierarchy
from taxarbor.plot import plot_tree


@pytest.fixture(autouse=True)
def no_figure_is_left():
    assert plt.get_fignums() == []
    yield
    plt.close("all")


@pytest.fixture
def told(animals):
    """Three names and three features for each node: seven lines."""
    tree, names = animals

    def describe(node):
        rows = tree.rows(node)
        some = rows[np.linspace(0, len(rows) - 1, 3).astype(int)]
        features = [("+eats insects or worms", "plus"), ("-lives in sea", "minus"), "striped"]
        return [f"{len(rows):,} images", *(f"{names[row]} (123)" for row in some), *features]

    return describe


def words(drawn):
    return [[text.get_text() for text in texts] for texts in drawn.texts]


def extents(drawn):
    """Return the places of boxes and of texts in pixels, (n, 4), and whose texts they are."""
    renderer = drawn.axes.figure.canvas.get_renderer()
    boxes = np.array([box.get_window_extent(renderer).extents for box in drawn.boxes])
    owners = [n for n, texts in enumerate(drawn.texts) for _ in texts]
    texts = [text.get_window_extent(renderer).extents for text in itertools.chain(*drawn.texts)]
    return boxes, np.array(texts), owners


def assert_readable(drawn):
    boxes, texts, owners = extents(drawn)
    for i, j in itertools.combinations(range(len(boxes)), 2):
        a, b = boxes[i], boxes[j]
        assert (a[2:] < b[:2]).any() or (b[2:] < a[:2]).any()
    assert (texts[:, :2] >= boxes[owners, :2]).all()
    assert (texts[:, 2:] <= boxes[owners, 2:]).all()
    lower = 1 + np.flatnonzero(np.diff(owners) == 0)
    assert (texts[lower, 3] <= texts[lower - 1, 1]).all()
    width, height = drawn.axes.figure.bbox.size
    assert (boxes >= 0).all()
    assert (boxes <= [width, height, width, height]).all()


@pytest.mark.parametrize("orientation", ["down", "right"])
@pytest.mark.parametrize("dpi", [70, 110, 200])
def test_seven_lines_in_four_layers(animals, told, orientation, dpi):
    tree, _ = animals
    drawn = plot_tree(tree, max_depth=4, describe=told, orientation=orientation)
    assert len(drawn.boxes) > 20
    assert drawn.texts[0][1].get_fontsize() == 8
    drawn.axes.figure.set_dpi(dpi)
    assert_readable(drawn)
    assert words(drawn) == [
        [line if isinstance(line, str) else line[0] for line in told(node)]
        for node in drawn.layout.nodes.tolist()
    ]


@pytest.mark.parametrize("size", [(3, 2), (6.4, 4.8), (40, 40)])
@pytest.mark.parametrize("orientation", ["down", "right"])
def test_given_axes(known, size, orientation):
    figure, (ax, other) = plt.subplots(1, 2, figsize=size)
    drawn = plot_tree(known, ax=ax, orientation=orientation)
    assert drawn.axes is ax
    assert plt.get_fignums() == [figure.number]
    for artist in (*drawn.boxes, *itertools.chain(*drawn.texts), drawn.branches, drawn.stubs):
        assert artist.axes is ax
        assert artist in ax.get_children()
    assert not [*other.texts, *other.patches, *other.collections]
    assert_readable(drawn)
    boxes, _, _ = extents(drawn)
    low, high = ax.get_window_extent().extents.reshape(2, 2)
    assert (boxes[:, :2] >= low).all()
    assert (boxes[:, 2:] <= high).all()


def test_axes_of_a_fixed_aspect_are_filled(known):
    _, ax = plt.subplots()
    ax.set_aspect("equal")
    ax.invert_yaxis()
    drawn = plot_tree(known, ax=ax)
    assert_readable(drawn)
    assert extents(drawn)[0][0, 1] > extents(drawn)[0][1:, 1].max()


def test_a_new_figure_is_one_figure(known):
    drawn = plot_tree(known)
    assert plt.get_fignums() == [drawn.axes.figure.number]
    assert len(drawn.axes.figure.axes) == 1
    assert_readable(drawn)


def test_what_fails_leaves_no_figure(known):
    with pytest.raises(ValueError, match="orientation must be 'down' or 'right', got 'up'"):
        plot_tree(known, orientation="up")
    with pytest.raises(ValueError, match="max_depth"):
        plot_tree(known, max_depth=-1)
    with pytest.raises(TypeError, match="put it in a list"):
        plot_tree(known, describe=lambda node: "text")
    assert plt.get_fignums() == []


def test_the_default_description(known):
    assert words(plot_tree(known))[:4] == [
        ["12 rows"], ["3 rows", "+a"], ["6 rows", "+$b$"], ["3 rows", "\u2212$b$", "\u2212a"],
    ]  # fmt: skip


def test_styles(known):
    lines = ["title", "plain", ("more", "plus"), ("less", "minus")]
    title, plain, plus, minus = plot_tree(known, describe=lambda node: lines).texts[0]
    assert title.get_fontweight() == "bold"
    assert plain.get_fontweight() == plus.get_fontweight() == minus.get_fontweight() == "normal"
    assert (plus.get_color(), minus.get_color()) == ("#05668d", "#9b2c1f")
    assert len({text.get_color() for text in (title, plain, plus, minus)}) == 4


@pytest.mark.parametrize("text", ["$x$", r"$\frac$", "a $", r"\$5", "50% {", r"\alpha_1^2"])
def test_texts_are_literal(known, text, tmp_path):
    drawn = plot_tree(known, max_depth=1, describe=lambda node: [text])
    assert words(drawn) == [[text]] * 4
    _, whole, _ = extents(drawn)
    # As mathematics, a dollar sign would take no room.
    for artist, extent in zip(itertools.chain(*drawn.texts), whole, strict=True):
        assert not artist.get_parse_math()
        artist.set_text("".join("M" if c in "$\\" else c for c in text))
        wider = artist.get_window_extent()
        assert extent[2] - extent[0] > 0.5 * wider.width
    with plt.rc_context({"svg.fonttype": "none"}):
        plot_tree(known, describe=lambda node: [text]).axes.figure.savefig(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text("utf-8").count(f">{text}</text>") == 6


def test_a_cut_is_shown(known):
    whole, cut = plot_tree(known), plot_tree(known, max_depth=1)
    assert (len(whole.boxes), len(cut.boxes)) == (6, 4)
    assert (len(whole.stubs.get_segments()), len(cut.stubs.get_segments())) == (0, 1)
    assert isinstance(cut.branches, LineCollection)
    assert all(isinstance(box, FancyBboxPatch) for box in cut.boxes)
    faces = [box.get_facecolor() for box in cut.boxes]
    assert faces[0] == faces[2] != faces[1] == faces[3]


def test_a_root_alone(single):
    drawn = plot_tree(single)
    assert words(drawn) == [["3 rows"]]
    assert_readable(drawn)
    drawn.axes.figure.canvas.draw()


def test_boxes_without_lines(known):
    drawn = plot_tree(known, describe=lambda node: [] if node else ["root", ""])
    assert words(drawn) == [["root", ""], *[[]] * 5]
    drawn.axes.figure.canvas.draw()


def test_a_large_tree_gets_no_larger_figure():
    drawn = plot_tree(Hierarchy.from_labels(np.arange(200)))
    width, _ = drawn.axes.figure.get_size_inches()
    assert width == 100
    boxes, texts, owners = extents(drawn)
    assert drawn.texts[0][0].get_fontsize() < 9
    assert (np.diff(boxes[1:, 0]) > boxes[1:, 2][:-1] - boxes[1:, 0][:-1]).all()
    assert (texts[:, 2] - texts[:, 0] < boxes[owners, 2] - boxes[owners, 0]).all()


def test_text_too_small_to_draw_is_left_out():
    drawn = plot_tree(Hierarchy.from_labels(np.arange(1500)))
    assert len(drawn.boxes) == 1501
    assert not any(drawn.texts)


def test_importing_does_not_import_matplotlib():
    code = "import sys, taxarbor.plot; print('matplotlib' in sys.modules)"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert run.stdout.strip() == "False"


def test_without_matplotlib(known, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.textpath", None)
    with pytest.raises(ImportError, match=r"pip install 'taxarbor\[plot\]'"):
        plot_tree(known)
