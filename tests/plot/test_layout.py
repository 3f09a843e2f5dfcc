"""Layouts are what their docstring says, and no tree is too deep or too wide."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot as plt
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError

from taxarbor import HMMC, load_animals
from taxarbor.hierarchy import Hierarchy
from taxarbor.plot import (
    find_traces,
    lay_out,
    lay_out_dendrogram,
    lay_out_icicle,
    measure_levels,
    plot_dendrogram,
    plot_feature_levels,
    plot_icicle,
    plot_trace,
    plot_tree,
)


def shown_children(tree, layout, node):
    return [child for child in tree.children(node) if child in set(layout.nodes.tolist())]


@given(data=st.data())
def test_nodes_are_those_above_the_cut(data, trees, depths):
    tree, max_depth = data.draw(trees), data.draw(depths)
    layout = lay_out(tree, max_depth)
    limit = tree.height if max_depth is None else max_depth
    nodes = layout.nodes.tolist()
    assert nodes == [node for node in range(tree.n_nodes) if tree.depth[node] <= limit]
    np.testing.assert_array_equal(layout.depth, tree.depth[nodes])
    is_cut = [tree.depth[n] == limit and not tree.is_leaf(n) for n in nodes]
    np.testing.assert_array_equal(layout.is_cut, is_cut)
    assert layout.height == min(limit, tree.height)


@given(data=st.data())
def test_edges_are_the_parents(data, trees, depths):
    tree = data.draw(trees)
    layout = lay_out(tree, data.draw(depths))
    edges = [(tree.parent(node), node) for node in layout.nodes.tolist()[1:]]
    assert layout.nodes[layout.edges].tolist() == [list(edge) for edge in edges]
    assert (layout.edges[:, 0] < layout.edges[:, 1]).all()


@given(data=st.data())
def test_ends_stand_in_order_at_equal_distances(data, trees, depths):
    tree = data.draw(trees)
    layout = lay_out(tree, data.draw(depths))
    ends = np.array([not shown_children(tree, layout, node) for node in layout.nodes.tolist()])
    assert layout.n_ends == ends.sum()
    by_place = layout.nodes[ends][np.argsort(layout.breadth[ends])]
    assert sorted(layout.breadth[ends]) == list(range(layout.n_ends))
    assert (np.diff(tree.start[by_place]) > 0).all()


@given(data=st.data())
def test_parents_stand_in_the_middle(data, trees, depths):
    tree = data.draw(trees)
    layout = lay_out(tree, data.draw(depths))
    place = dict(zip(layout.nodes.tolist(), layout.breadth.tolist(), strict=True))
    for node, middle in place.items():
        below = [place[child] for child in shown_children(tree, layout, node)]
        if below:
            assert middle == (below[0] + below[-1]) / 2
            assert below == sorted(below)


@given(data=st.data())
def test_nodes_of_one_depth_are_apart(data, trees, depths):
    layout = lay_out(data.draw(trees), data.draw(depths))
    for depth in range(layout.height + 1):
        places = sorted(layout.breadth[layout.depth == depth])
        assert all(b - a >= 1 for a, b in itertools.pairwise(places))


def test_known(known):
    layout = lay_out(known)
    assert layout.nodes.tolist() == [0, 1, 2, 3, 4, 5]
    assert layout.breadth.tolist() == [1.5, 0, 1.5, 3, 1, 2]
    assert repr(layout) == "TreeLayout(n_shown=6, n_ends=4, height=2)"
    cut = lay_out(known, np.int64(1))
    assert cut.breadth.tolist() == [1, 0, 1, 2]
    assert cut.is_cut.tolist() == [False, False, True, False]


@pytest.mark.parametrize("max_depth", [None, 0, 3])
def test_a_root_alone(single, max_depth):
    layout = lay_out(single, max_depth)
    assert (layout.nodes, layout.breadth, layout.depth) == ([0], [0], [0])
    assert layout.edges.shape == (0, 2)
    assert not layout.is_cut.any()


def test_only_the_root_is_shown(known):
    layout = lay_out(known, 0)
    assert layout.nodes.tolist() == [0]
    assert layout.is_cut.all()


def test_a_chain(chain):
    layout = lay_out(chain)
    assert (layout.n_ends, layout.height) == (chain.n_leaves, chain.height)
    assert layout.breadth.min() == 0
    assert layout.breadth.max() == chain.n_leaves - 1


def test_many_leaves():
    layout = lay_out(Hierarchy.from_labels(np.arange(10_000)))
    assert layout.breadth[0] == 9999 / 2
    np.testing.assert_array_equal(layout.breadth[1:], np.arange(10_000))


def test_arrays_are_read_only(known):
    layout = lay_out(known)
    for array in (layout.nodes, layout.depth, layout.breadth, layout.edges, layout.is_cut):
        assert not array.flags.writeable


def test_a_negative_depth_is_refused(known):
    with pytest.raises(ValueError, match="max_depth must be 0 or more, or None, got -1"):
        lay_out(known, -1)
    with pytest.raises(TypeError):
        lay_out(known, 1.5)


def test_what_is_no_hierarchy_is_refused():
    with pytest.raises(
        TypeError, match="expected a fitted model of taxarbor or a Hierarchy, got int"
    ):
        lay_out(3)


DRAW = [plot_tree, plot_icicle, plot_dendrogram, plot_trace, plot_feature_levels]
MEASURE = [lay_out, lay_out_icicle, lay_out_dendrogram, find_traces, measure_levels]


def test_a_fitted_model_has_a_tree():
    model = HMMC(4, random_state=0).fit(load_animals().X)
    for make in MEASURE:
        assert repr(make(model)) == repr(make(model.hierarchy_))
    for draw in DRAW:
        assert draw(model).axes.figure is not None


@pytest.mark.parametrize("make", [*DRAW, *MEASURE], ids=lambda make: make.__name__)
def test_models_without_a_tree(make):
    with pytest.raises(TypeError, match="or a Hierarchy, got KMeans"):
        make(KMeans(3))
    with pytest.raises(NotFittedError, match="this HMMC is not fitted yet"):
        make(HMMC(3))
    assert plt.get_fignums() == []
