"""Children tile their parents, colours say what they should, and texts fit."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt

from taxarbor.plot import plot_icicle
from taxarbor.plot._axes import CLASSES, FACE, GRID, mix
from taxarbor.plot._icicle import Cells, draw_cells, lay_out_cells, write_in_cells
from taxarbor.plot._layout import count_classes, lay_out

LINES = [("+a rather long name", "plus"), ("12 rows", "plain")]


def texts(drawn):
    return [[text.get_text() for text in lines] for lines in drawn.texts]


def assert_readable(drawn):
    """Assert that every text is within its cell, and no two overlap."""
    drawn.axes.figure.canvas.draw()
    assert_inside(drawn.axes, drawn.cells, drawn.texts)


def assert_inside(ax, cells, texts):
    for path, lines in zip(cells.get_paths(), texts, strict=True):
        corners = ax.transData.transform(path.vertices)
        extents = [text.get_window_extent() for text in lines]
        for extent in extents:
            assert (extent.min >= corners.min(axis=0) - 1).all()
            assert (extent.max <= corners.max(axis=0) + 1).all()
        for one, other in itertools.pairwise(extents):
            assert other.y1 <= one.y0 or one.x1 <= other.x0


def drawn_cells(sizes):
    """Rectangles of these sizes in points, side by side."""
    figure, ax = plt.subplots(figsize=(10, 5), layout="none")
    ax.set_position((0, 0, 1, 1))
    ax.set(xlim=(0, 720), ylim=(360, 0))
    low = np.column_stack([np.cumsum([0, *(w for w, _ in sizes)])[:-1], np.zeros(len(sizes))])
    cells = Cells(low, low + np.array(sizes), np.ones((len(sizes), 3)))
    draw_cells(ax, cells)
    texts = write_in_cells(ax, cells, [LINES] * len(sizes))
    figure.canvas.draw()
    return texts, ax


def test_texts_are_inside_their_cells():
    sizes = [(120, 40), (60, 12), (14, 100), (5, 5), (40, 40), (300, 300)]
    texts, ax = drawn_cells(sizes)
    assert_inside(ax, ax.collections[0], texts)
    for text in itertools.chain(*texts):  # should the axes shrink, they are clipped
        assert text.get_clip_on()
        assert text.get_clip_box() is not None
    assert [len(written) for written in texts] == [2, 1, 1, 0, 2, 2]
    assert [w[0].get_rotation() for w in texts if w] == [0, 0, 90, 0, 0]
    assert texts[1][0].get_text().endswith("…")


def test_lines_do_not_hide_small_cells():
    _, ax = drawn_cells([(100, 100), (0.5, 100)])
    assert ax.collections[0].get_linewidths() == pytest.approx([1.0, 0.06])


@given(data=st.data())
def test_children_tile_their_parent(data, trees, depths):
    tree = data.draw(trees)
    layout = lay_out(tree, data.draw(depths))
    classes = data.draw(st.sampled_from([None, np.arange(len(tree.order)) % 10]))
    makeup = count_classes(tree, classes)
    down, right = (lay_out_cells(tree, layout, makeup, way) for way in ("down", "right"))
    for one, other in ((down.low, right.low), (down.high, right.high)):
        np.testing.assert_array_equal(one, other[:, ::-1])
    assert down.faces.shape == (len(layout.nodes), 3)
    position = {node: n for n, node in enumerate(layout.nodes.tolist())}
    assert down.low[0].tolist() == [0, 0]
    assert down.high[0].tolist() == [len(tree.order), 1]
    for node, n in position.items():
        children = [position[child] for child in tree.children(node) if child in position]
        assert layout.is_cut[n] == (not children and not tree.is_leaf(node))
        assert (down.high[n] - down.low[n]).tolist() == [len(tree.rows(node)), 1]
        if children:
            edges = [*down.low[children, 0], down.high[n, 0]]
            assert edges == [down.low[n, 0], *down.high[children, 0]]
            assert (down.low[children, 1] == down.high[n, 1]).all()


@pytest.mark.parametrize("orientation", ["down", "right"])
def test_the_animals(animals, classes, orientation):
    tree, _ = animals
    for given_classes in (None, classes):
        drawn = plot_icicle(tree, classes=given_classes, orientation=orientation)
        assert_readable(drawn)
        assert len(drawn.cells.get_paths()) == tree.n_nodes
        assert (drawn.legend is None) == (given_classes is None)
        assert texts(drawn)[0][0] == "206 rows"
        assert sum(map(bool, texts(drawn))) > tree.n_nodes / 2
        corners = np.concatenate([path.vertices for path in drawn.cells.get_paths()])
        places = drawn.axes.transData.transform(corners)
        assert (places >= 0).all()
        assert (places <= drawn.axes.figure.bbox.size).all()
        if drawn.legend is not None:
            assert drawn.legend.get_window_extent().y1 < places[:, 1].min()
    for size in [(1, 1), (4, 3), (12, 9)]:
        _, (ax, _) = plt.subplots(1, 2, figsize=size)
        assert_readable(plot_icicle(tree, classes=classes, orientation=orientation, ax=ax))


def test_colours_of_classes_and_branches(known):
    drawn = plot_icicle(known, classes=["b", "a", "b", "b"] * 3)
    faces = drawn.cells.get_facecolors()[:, :3]
    assert faces[0] == pytest.approx(mix(CLASSES[0], FACE, 0.1 + 0.7 * 0.75))
    assert faces[1] == pytest.approx(mix(CLASSES[0], FACE, 0.8))
    assert len(np.unique(faces.round(6), axis=0)) > 2
    rows, gaps = known.rows(1), np.array(["a"] * 12, dtype=object)
    gaps[rows] = None
    faces = plot_icicle(known, classes=gaps).cells.get_facecolors()[:, :3]
    assert faces[1] == pytest.approx(mix(GRID, FACE, 0.8))
    assert faces[0] == pytest.approx(mix(CLASSES[0], FACE, 0.8))
    faces = plot_icicle(known).cells.get_facecolors()[:, :3]
    # Branches differ, and the root belongs to none.
    assert len(np.unique(faces[[0, 1, 3, 4, 5]].round(6), axis=0)) == 5


def test_what_describe_says(known):
    drawn = plot_icicle(known, describe=lambda node: [f"node {node}", "$x$"])
    assert texts(drawn)[:2] == [["node 0", "$x$"], ["node 1", "$x$"]]
    assert_readable(drawn)
    empty = plot_icicle(known, describe=lambda node: [])
    assert texts(empty) == [[]] * 6


def test_a_cut_is_shown(known):
    cut = plot_icicle(known, max_depth=1)
    assert len(cut.cells.get_paths()) == 4
    assert [line.tolist() for line in cut.cuts.get_segments()] == [[[2, 3], [2, 9]]]
    assert plot_icicle(known).cuts.get_segments() == []
    down = plot_icicle(known, max_depth=1, orientation="down")
    assert [line.tolist() for line in down.cuts.get_segments()] == [[[3, 2], [9, 2]]]


def test_a_root_alone(single):
    drawn = plot_icicle(single)
    assert texts(drawn) == [["3 rows"]]
    assert_readable(drawn)
    assert_readable(plot_icicle(single, classes=["a", "b", "c"], orientation="down"))
