"""Children tile their parents, colours say what they should, and texts fit."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt

from taxarbor.plot import lay_out_icicle, plot_icicle
from taxarbor.plot._palette import CLASSES, FACE, mix


def texts(drawn):
    return [[text.get_text() for text in lines] for lines in drawn.texts]


def assert_readable(drawn):
    """Assert that every text is within its cell, and no two overlap."""
    drawn.axes.figure.canvas.draw()
    at = drawn.axes.transData.transform
    for path, lines in zip(drawn.cells.get_paths(), drawn.texts, strict=True):
        corners = at(path.vertices)
        extents = [text.get_window_extent() for text in lines]
        for extent in extents:
            assert (extent.min >= corners.min(axis=0) - 1).all()
            assert (extent.max <= corners.max(axis=0) + 1).all()
        for one, other in itertools.pairwise(extents):
            assert other.y1 <= one.y0 or one.x1 <= other.x0


@given(data=st.data())
def test_children_tile_their_parent(data, trees, depths):
    tree = data.draw(trees)
    layout = lay_out_icicle(tree, data.draw(depths))
    position = {node: n for n, node in enumerate(layout.nodes.tolist())}
    assert layout.low[0].tolist() == [0, 0]
    assert layout.high[0].tolist() == [len(tree.order), 1]
    for node, n in position.items():
        children = [position[child] for child in tree.children(node) if child in position]
        assert layout.is_cut[n] == (not children and not tree.is_leaf(node))
        assert (layout.high[n] - layout.low[n]).tolist() == [tree.n_rows[node], 1]
        if children:
            edges = [*layout.low[children, 0], layout.high[children[-1], 0]]
            assert edges[0] == layout.low[n, 0]
            assert edges[-1] == layout.high[n, 0]
            assert edges[1:] == layout.high[children, 0].tolist()
            assert (layout.low[children, 1] == layout.high[n, 1]).all()


def test_the_layout_is_frozen(known):
    layout = lay_out_icicle(known)
    assert repr(layout) == "IcicleLayout(n_shown=6, size=(12, 3))"
    for array in (layout.nodes, layout.low, layout.high, layout.is_cut):
        assert not array.flags.writeable


@pytest.mark.parametrize("orientation", ["down", "right"])
@pytest.mark.parametrize("with_classes", [False, True])
def test_the_animals(animals, groups, orientation, with_classes):
    tree, _ = animals
    drawn = plot_icicle(tree, classes=groups if with_classes else None, orientation=orientation)
    assert_readable(drawn)
    assert len(drawn.cells.get_paths()) == tree.n_nodes
    assert (drawn.legend is not None) == with_classes
    assert texts(drawn)[0][0] == "206 rows"
    assert sum(map(bool, texts(drawn))) > tree.n_nodes / 2
    width, height = drawn.axes.figure.bbox.size
    corners = np.concatenate([path.vertices for path in drawn.cells.get_paths()])
    places = drawn.axes.transData.transform(corners)
    assert (places >= 0).all()
    assert (places <= [width, height]).all()
    if with_classes:
        assert drawn.legend.get_window_extent().y1 < places[:, 1].min()


def test_colours_of_classes(known):
    drawn = plot_icicle(known, classes=["b", "a", "b", "b"] * 3)
    faces = drawn.cells.get_facecolors()[:, :3]
    assert faces[0] == pytest.approx(mix(CLASSES[0], FACE, 0.1 + 0.7 * 0.75))
    assert faces[1] == pytest.approx(mix(CLASSES[0], FACE, 0.8))
    assert len(np.unique(faces.round(6), axis=0)) > 2


def test_colours_of_branches(known):
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


@pytest.mark.parametrize("size", [(1, 1), (4, 3), (12, 9)])
@pytest.mark.parametrize("orientation", ["down", "right"])
def test_given_axes(animals, groups, size, orientation):
    tree, _ = animals
    figure, (ax, other) = plt.subplots(1, 2, figsize=size)
    before = ax.get_position().bounds
    drawn = plot_icicle(tree, classes=groups, orientation=orientation, ax=ax)
    assert drawn.axes is ax
    assert plt.get_fignums() == [figure.number]
    assert ax.get_position().bounds == before
    assert not [*other.texts, *other.patches, *other.collections]
    assert_readable(drawn)


def test_a_root_alone(single):
    drawn = plot_icicle(single)
    assert texts(drawn) == [["3 rows"]]
    assert_readable(drawn)
    assert_readable(plot_icicle(single, classes=["a", "b", "c"], orientation="down"))


def test_a_chain(chain):
    drawn = plot_icicle(chain, classes=np.arange(len(chain.order)) % 12)
    assert len(drawn.cells.get_paths()) == chain.n_nodes
    assert max(drawn.cells.get_linewidths()) < 0.2


def test_hostile_names(hostile):
    tree, classes = hostile
    drawn = plot_icicle(tree, classes=classes)
    assert_readable(drawn)
    for text in itertools.chain(drawn.legend.get_texts(), *drawn.texts):
        assert not text.get_parse_math()
        assert len(text.get_text()) <= 28


def test_what_is_wrong_leaves_no_figure(known):
    with pytest.raises(ValueError, match="orientation must be 'down' or 'right', got 'up'"):
        plot_icicle(known, orientation="up")
    with pytest.raises(ValueError, match="one class for each of the 12 rows"):
        plot_icicle(known, classes=[1])
    with pytest.raises(TypeError, match="or a Hierarchy, got int"):
        plot_icicle(3)
    assert plt.get_fignums() == []
