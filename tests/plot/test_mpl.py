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
    assert_inside(drawn, boxes, texts, owners)
    width, height = drawn.axes.figure.bbox.size
    assert (boxes >= 0).all()
    assert (boxes <= [width, height, width, height]).all()


def assert_inside(drawn, boxes, texts, owners):
    """Assert that strips and bars are in boxes, below their texts and each other."""
    at = drawn.axes.transData.transform
    lowest = boxes[:, 3].copy()
    np.minimum.at(lowest, owners, texts[:, 1])
    places = [strip.get_window_extent().extents for strip in drawn.strips]
    if drawn.bars is not None:
        places += [at(path.vertices[:4])[[0, 2]].ravel() for path in drawn.bars.get_paths()]
    for n, (left, bottom, right, top) in enumerate(places):
        centre = np.array([left + right, bottom + top]) / 2
        (owner,) = np.flatnonzero(
            (boxes[:, :2] < centre).all(axis=1) & (boxes[:, 2:] > centre).all(axis=1)
        )
        assert left > boxes[owner, 0]
        assert right < boxes[owner, 2]
        assert bottom > boxes[owner, 1]
        assert top < lowest[owner] + 1e-6
        if n == len(drawn.strips) - 1:
            lowest[:] = np.inf


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


@pytest.mark.parametrize("orientation", ["down", "right"])
def test_classes_and_images(animals, groups, orientation):
    tree, names = animals
    images = np.random.default_rng(0).random((len(names), 8, 12, 3))
    drawn = plot_tree(tree, max_depth=3, classes=groups, images=images, orientation=orientation)
    drawn.axes.figure.canvas.draw()
    assert_readable(drawn)
    assert len(drawn.strips) == len(drawn.boxes)
    n_groups = sum(
        len(set(groups[tree.rows(node)]) & {text.get_text() for text in drawn.legend.texts})
        for node in drawn.layout.nodes.tolist()
    )
    others = len(drawn.bars.get_paths()) - n_groups
    assert 0 < others <= len(drawn.boxes)
    assert [text.get_text() for text in drawn.legend.texts][8:] == ["other"]
    legend = drawn.legend.get_window_extent().extents
    boxes, _, _ = extents(drawn)
    assert legend[3] < boxes[:, 1].min()
    assert legend[0] >= 0
    assert legend[2] <= drawn.axes.figure.bbox.width
    assert words(drawn)[0][-2].endswith("%")


def test_a_bar_has_the_shares_of_the_classes(known):
    drawn = plot_tree(known, classes=["b", "a", "b", "b"] * 3)
    first, second, *_ = drawn.bars.get_paths()
    widths = [np.ptp(path.vertices[:, 0]) for path in (first, second)]
    assert widths[0] == pytest.approx(3 * widths[1])
    assert [text.get_text() for text in drawn.legend.texts] == ["b", "a"]
    assert words(drawn)[0] == ["12 rows", "b · 75%", "a · 25%"]


def test_given_axes_with_classes(known):
    for size in [(1, 1), (3, 2), (20, 10)]:
        _, ax = plt.subplots(figsize=size)
        drawn = plot_tree(known, classes=["one", "two", "three", "four"] * 3, ax=ax)
        drawn.axes.figure.canvas.draw()
        boxes, _, _ = extents(drawn)
        legend = drawn.legend.get_window_extent().extents
        frame = ax.get_window_extent().extents
        assert legend[3] <= boxes[:, 1].min()
        assert (legend[:2] >= frame[:2] - 1).all()
        assert (legend[2:] <= frame[2:] + 1).all()


def test_exemplars_are_chosen(known):
    images = np.zeros((12, 4, 4), dtype=np.uint8)
    images[7] = 255
    drawn = plot_tree(known, images=images, exemplars={0: [7], 1: [1, 7, 2]})
    assert len(drawn.strips) == 2
    shown = drawn.strips[0].get_array()
    assert shown.shape == (4, 4, 4)
    assert (shown == 255).all()
    drawn = plot_tree(known, images=images, exemplars=lambda node: [node])
    assert len(drawn.strips) == 6


def test_wrong_classes_and_images_are_refused(known):
    with pytest.raises(
        ValueError, match=r"one class for each of the 12 rows .* got shape \(3,\)"
    ):
        plot_tree(known, classes=["a", "b", "c"])
    with pytest.raises(ValueError, match=r"images must have shape .*, got \(12, 4\)"):
        plot_tree(known, images=np.zeros((12, 4)))
    with pytest.raises(ValueError, match="give the images too"):
        plot_tree(known, exemplars={0: [1]})
    assert plt.get_fignums() == []


def test_hostile_names(hostile):
    tree, classes = hostile
    drawn = plot_tree(tree, classes=classes)
    drawn.axes.figure.canvas.draw()
    assert_readable(drawn)
    shown = [text.get_text() for text in drawn.legend.texts]
    assert {"$x$", "two lines", "(empty)", "_under", "a & <b>"} < set(shown)
    texts = [*drawn.legend.texts, *itertools.chain(*drawn.texts)]
    assert not any(text.get_parse_math() for text in texts)
    assert max(len(text.get_text()) for text in texts) <= 28


def test_a_chain_with_classes_and_images(chain):
    n_rows = len(chain.order)
    drawn = plot_tree(
        chain, max_depth=300, classes=np.arange(n_rows) % 9, images=np.zeros((n_rows, 2, 2))
    )
    assert len(drawn.boxes) == 601
