"""Lines are those of SciPy's dendrogram, in the order of the leaves, without recursion."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from scipy.cluster.hierarchy import dendrogram

from taxarbor.exchange import from_linkage, to_linkage
from taxarbor.plot import plot_dendrogram
from taxarbor.plot._dendrogram import lay_out_dendrogram


def turned(linkage):
    """Put the left one of two clusters first, where SciPy draws it."""
    linkage, n_leaves = linkage.copy(), len(linkage) + 1
    first = list(range(n_leaves))
    for row in linkage:
        row[:2] = sorted(row[:2], key=lambda cluster: first[int(cluster)])
        first.append(first[int(row[0])])
    return linkage


@given(data=st.data())
def test_leaves_and_heights(data, trees):
    taxonomy = data.draw(trees.filter(lambda taxonomy: taxonomy.tree.n_leaves > 1))
    layout = lay_out_dendrogram(taxonomy)
    np.testing.assert_array_equal(layout.leaves, taxonomy.tree.leaves)
    hoops = layout.lines[: taxonomy.tree.n_splits]
    heights = sorted(line[1, 1] for line in hoops)
    assert heights == sorted(set(to_linkage(taxonomy)[:, 2]))
    for line, owner in zip(layout.lines, layout.owners, strict=True):
        children = taxonomy.tree.children(owner)
        assert line[:, 1].max() == taxonomy.tree.n_splits + 1 - taxonomy.tree.birth[children[0]]
    feet = sorted(point[0] for line in layout.lines for point in line if point[1] == 0)
    assert feet == list(range(taxonomy.tree.n_leaves))


@given(seed=st.integers(0, 1000), n_leaves=st.integers(2, 12))
def test_lines_are_those_of_scipy(seed, n_leaves):
    rng = np.random.default_rng(seed)
    clusters, merges = list(range(n_leaves)), []
    while len(clusters) > 1:
        pair = [clusters.pop(rng.integers(len(clusters))) for _ in range(2)]
        clusters.append(n_leaves + len(merges))
        merges.append([*pair, len(merges) + 1.0, 2])
    taxonomy = from_linkage(merges)
    drawn = dendrogram(turned(to_linkage(taxonomy)), no_plot=True)
    assert drawn["leaves"] == list(range(n_leaves))
    expected = np.dstack([(np.array(drawn["icoord"]) - 5) / 10, drawn["dcoord"]])
    lines = np.array(lay_out_dendrogram(taxonomy).lines)

    def arrange(hoops):
        return hoops[np.argsort(hoops[:, 1, 1])]

    np.testing.assert_allclose(arrange(lines), arrange(expected))


def test_more_than_two_children(known):
    layout = lay_out_dendrogram(known)
    assert [line.tolist() for line in layout.lines] == [
        [[0, 0], [0, 2], [3, 2], [3, 0]],
        [[1, 0], [1, 1], [2, 1], [2, 0]],
        [[1.5, 2], [1.5, 1]],
    ]
    assert layout.owners.tolist() == [0, 2, 0]
    assert layout.branches.tolist() == [-1, 0, -1, 3, 1, 2]
    axis = plot_dendrogram(known).axes.xaxis
    ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
    assert {at: text.get_text() for at, text in ticks} == {2.5: "1", 1.5: "3", 0.5: "4"}


@pytest.mark.parametrize("orientation", ["down", "right"])
def test_texts_do_not_overlap_and_are_on_the_page(animals, orientation):
    taxonomy, _ = animals
    drawn = plot_dendrogram(taxonomy, orientation=orientation)
    figure = drawn.axes.figure
    told = [text.get_text().split(" · ")[0] for text in drawn.texts]
    assert told == [f"c{n}" for n in range(taxonomy.tree.n_leaves)]
    for dpi in (70, 150):
        figure.set_dpi(dpi)
        figure.canvas.draw()
        extents = np.array([text.get_window_extent().extents for text in drawn.texts])
        assert (extents >= 0).all()
        assert (extents <= np.tile(figure.bbox.size, 2)).all()
        corners = np.concatenate(drawn.lines.get_segments())
        places = drawn.axes.transData.transform(corners)
        if orientation == "down":
            gaps = extents[1:, 0] - extents[:-1, 2]
            assert places[:, 1].min() > extents[:, 3].max()
        else:
            gaps = extents[:-1, 1] - extents[1:, 3]
            assert places[:, 0].max() < extents[:, 0].min()
        assert (gaps > -0.5).all()
        page = drawn.axes.get_tightbbox()
        assert min(page.x0, page.y0) >= -0.5


def test_colours(animals):
    taxonomy, _ = animals
    colours = plot_dendrogram(taxonomy).dots.get_facecolors()
    assert len(np.unique(colours.round(6), axis=0)) == 6
    cut = taxonomy.cut(6)[
        [taxonomy.tree.rows(leaf)[0] for leaf in taxonomy.tree.leaves.tolist()]
    ]
    for label in range(6):
        assert len(np.unique(colours[cut == label].round(6), axis=0)) == 1


def test_texts_are_literal_and_cut(hostile):
    taxonomy, _ = hostile
    told = plot_dendrogram(taxonomy, describe=lambda leaf: ["$a$", "", "b\n" * 100])
    assert told.texts[0].get_text().startswith("$a$ · b b b")
    _, ax = plt.subplots(figsize=(2, 3))
    short = plot_dendrogram(taxonomy, describe=lambda leaf: ["x" * 28] * 3, ax=ax)
    room = ax.get_window_extent()
    for text in short.texts:
        assert text.get_text().endswith("…")
        assert text.get_window_extent().x1 <= room.x1
