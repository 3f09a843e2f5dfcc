"""Branches meet the clusters of each cut; texts and ticks say what they are."""

import numpy as np
import pytest

from taxarbor.exchange import from_linkage
from taxarbor.plot import plot_dendrogram


def lines_of(ax):
    """Return the corners of all branches."""
    return np.concatenate([lines.get_segments() for lines in ax.collections])


def test_ticks_are_numbers_of_clusters(known, animals):
    axis = plot_dendrogram(known).xaxis
    ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=True)
    assert {at: text.get_text() for at, text in ticks} == {2.5: "1", 1.5: "3", 0.5: "4"}
    taxonomy, _ = animals
    ax = plot_dendrogram(taxonomy)
    ticks = dict(zip(ax.get_xticks(), ax.get_xticklabels(), strict=True))
    assert 5 < len(ticks) <= 15
    for tick, text in ticks.items():
        n_clusters = int(text.get_text())
        assert (lines_of(ax)[:, 1, 0] > tick).sum() + 1 == n_clusters
        assert len(set(taxonomy.cut(n_clusters))) == n_clusters


def test_texts_do_not_overlap_and_are_on_the_page(animals):
    taxonomy, _ = animals
    ax = plot_dendrogram(taxonomy)
    texts = ax.get_yticklabels()
    names = [text.get_text().split(" · ")[0] for text in texts]
    assert names == [f"c{n}" for n in range(taxonomy.tree.n_leaves)]
    for dpi in (70, 150):
        ax.figure.set_dpi(dpi)
        ax.figure.canvas.draw()
        extents = np.array([text.get_window_extent().extents for text in texts])
        assert (extents >= 0).all()
        assert (extents <= np.tile(ax.figure.bbox.size, 2)).all()
        places = ax.transData.transform(lines_of(ax).reshape(-1, 2))
        assert (extents[:-1, 1] - extents[1:, 3] > -0.5).all()  # the first is on top
        assert places[:, 0].max() < extents[:, 0].min()


def test_branches_have_colours(animals):
    colours = {tuple(lines.get_color()[0]) for lines in plot_dendrogram(animals[0]).collections}
    assert 2 <= len(colours) <= 6  # the sixth is that of splits above


def test_trees_that_are_too_wide_or_deep(single, chain):
    steps = np.arange(1999)
    wide = from_linkage(np.column_stack([2 * steps, 2 * steps + 1, steps, steps]))
    assert list(plot_dendrogram(wide).get_yticklabels()) == []
    for taxonomy, message in ((single, "two leaves"), (chain, "prune")):
        with pytest.raises(ValueError, match=message):
            plot_dendrogram(taxonomy)
