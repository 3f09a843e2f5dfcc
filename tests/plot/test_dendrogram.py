"""Lines are SciPy's, in the order of the leaves; texts and ticks say what they are."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from scipy.cluster.hierarchy import dendrogram

from taxarbor.exchange import from_linkage, to_linkage
from taxarbor.plot import plot_dendrogram


@settings(max_examples=15)
@given(data=st.data())
def test_lines_are_those_of_scipy(data, taxonomies):
    taxonomy = data.draw(taxonomies.filter(lambda taxonomy: taxonomy.tree.n_leaves > 1))
    tree = taxonomy.tree
    expected = dendrogram(to_linkage(taxonomy), no_plot=True)
    assert expected["leaves"] == list(range(tree.n_leaves))
    places = np.dstack([(np.array(expected["icoord"]) - 5) / 10, expected["dcoord"]])
    for orientation, turn in (("down", 1), ("right", -1)):
        drawn = plot_dendrogram(taxonomy, orientation=orientation)
        segments = np.array(drawn.lines.get_segments())
        np.testing.assert_allclose(segments[..., ::turn], places)
        np.testing.assert_allclose(drawn.layout.lines, places)
        leaves = np.column_stack([np.arange(tree.n_leaves), np.zeros(tree.n_leaves)])
        np.testing.assert_array_equal(drawn.dots.get_offsets()[:, ::turn], leaves)
        plt.close("all")


def test_ticks_are_numbers_of_clusters(known, animals):
    axis = plot_dendrogram(known).axes.xaxis
    ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
    assert {at: text.get_text() for at, text in ticks} == {2.5: "1", 1.5: "3", 0.5: "4"}
    taxonomy, _ = animals
    layout = plot_dendrogram(taxonomy).layout
    assert len(layout.ticks) <= 15
    for tick, n_clusters in zip(layout.ticks, layout.n_clusters, strict=True):
        crossed = layout.lines[:, 1, 1] > tick
        assert crossed.sum() + 1 == n_clusters == len(set(taxonomy.cut(n_clusters)))


@pytest.mark.parametrize("orientation", ["down", "right"])
def test_texts_do_not_overlap_and_are_on_the_page(animals, orientation):
    taxonomy, _ = animals
    drawn = plot_dendrogram(taxonomy, orientation=orientation)
    figure = drawn.axes.figure
    names = [text.get_text().split(" · ")[0] for text in drawn.texts]
    assert names == [f"c{n}" for n in range(taxonomy.tree.n_leaves)]
    for dpi in (70, 150):
        figure.set_dpi(dpi)
        figure.canvas.draw()
        extents = np.array([text.get_window_extent().extents for text in drawn.texts])
        assert (extents >= 0).all()
        assert (extents <= np.tile(figure.bbox.size, 2)).all()
        places = drawn.axes.transData.transform(np.concatenate(drawn.lines.get_segments()))
        if orientation == "down":
            gaps = extents[1:, 0] - extents[:-1, 2]
            assert places[:, 1].min() > extents[:, 3].max()
        else:
            gaps = extents[:-1, 1] - extents[1:, 3]
            assert places[:, 0].max() < extents[:, 0].min()
        assert (gaps > -0.5).all()
        page = drawn.axes.get_tightbbox()
        assert min(page.x0, page.y0) >= -0.5


def test_branches_have_colours(animals):
    taxonomy, _ = animals
    colours = plot_dendrogram(taxonomy).dots.get_facecolors().round(6)
    n_branches = len(np.unique(colours, axis=0))
    assert 2 <= n_branches <= 6  # the sixth is that of leaves without a branch
    first = [taxonomy.tree.rows(leaf)[0] for leaf in taxonomy.tree.leaves.tolist()]
    branches = taxonomy.cut(5)[first]
    for label in range(5):
        assert len(np.unique(colours[branches == label], axis=0)) == 1


def test_trees_that_are_too_wide_or_deep(single, chain):
    steps = np.arange(1999)
    wide = from_linkage(np.column_stack([2 * steps, 2 * steps + 1, steps, steps]))
    assert plot_dendrogram(wide).texts == ()
    for taxonomy, message in ((single, "two leaves"), (chain, "prune")):
        with pytest.raises(ValueError, match=message):
            plot_dendrogram(taxonomy)
