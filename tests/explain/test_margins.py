"""Margins against their definition, score by score."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taxarbor import HMMC
from taxarbor.explain import explain
from taxarbor.explain._margins import children_of_rows, find_rivals, raw_margins
from taxarbor.hierarchy import Hierarchy
from taxarbor.rows import as_rows


def scores(rule, x):
    return rule.weights.astype(float) @ (x - rule.center) + rule.offsets


def margin(tree, x, node, child):
    """Return how clearly a row is in a child: its best score less the best of the others."""
    if tree.placement is not None:
        values = scores(tree.placement.rule, x)
        paths = [tree.path(leaf) for leaf in tree.placement.leaves]
        own = [v for v, path in zip(values, paths, strict=True) if child in path]
        others = [
            v
            for v, path in zip(values, paths, strict=True)
            if node in path and child not in path
        ]
    else:
        values = dict(zip(tree.children(node), scores(tree.rules[node], x), strict=True))
        own, others = [values.pop(child)], values.values()
    return max(own) - max(others)


def inner(tree):
    return [node for node in range(tree.n_nodes) if not tree.is_leaf(node)]


def child_of(tree, node, row):
    return next(c for c in tree.children(node) if row in tree.rows(c))


def test_margins_are_as_defined(why, dense):
    tree = why.hierarchy
    for node in range(tree.n_nodes):
        found = why.margins[node]
        if tree.is_leaf(node):
            assert found is None
            assert why.units[node] == 1.0
            continue
        rows = tree.rows(node)
        expected = np.array(
            [margin(tree, dense[r], node, child_of(tree, node, r)) for r in rows]
        )
        tolerance = 1e-4 if tree.rules[node].dtype == np.float32 else 1e-9
        assert found.dtype == np.float64
        np.testing.assert_allclose(found * why.units[node], expected, atol=tolerance)


@pytest.mark.parametrize("case", ["labels", "ward", "ward, all"], indirect=True)
def test_margins_of_trees_without_rules_are_by_the_nearest_mean(case, why, dense):
    assert case[0].rules[0] is None
    tree = why.hierarchy
    for node in inner(tree):
        means = {c: dense[tree.rows(c)].mean(axis=0) for c in tree.children(node)}
        for found, row in zip(why.margins[node], tree.rows(node), strict=True):
            far = {c: np.square(dense[row] - mean).sum() / 2 for c, mean in means.items()}
            own = far.pop(child_of(tree, node, row))
            expected = min(far.values()) - own
            assert found * why.units[node] == pytest.approx(expected, abs=1e-9)


def test_the_usual_margin_is_one(why):
    for node in inner(why.hierarchy):
        usual = np.median(np.abs(why.margins[node]))
        assert usual == pytest.approx(1.0) or (usual == 0.0 and why.units[node] == 1.0)
        assert np.isfinite(why.margins[node]).all()
        assert why.units[node] > 0.0


def least_margins(why):
    """Return the least margin on the way of each row."""
    tree = why.hierarchy
    least = np.full(len(tree.order), np.inf)
    for node in inner(tree):
        rows = tree.rows(node)
        least[rows] = np.minimum(least[rows], why.margins[node])
    return least


def test_margins_are_negative_where_prediction_disagrees(case, why):
    """On the border, where the margin is zero, a row may go to either side."""
    tree, least = why.hierarchy, least_margins(why)
    is_own = tree.predict(case[1]) == tree.labels
    tiny = 1e-5 if why.margins[0] is not None and tree.rules[0].dtype == np.float32 else 1e-12
    assert (least[is_own] >= -tiny).all()
    assert (least[~is_own] <= tiny).all()
    assert (is_own == (least >= 0.0))[np.abs(least) > tiny].all()


@pytest.mark.parametrize("case", ["spectral", "labels", "placed, shuffled"], indirect=True)
def test_there_are_rows_on_the_wrong_side(case, why):
    """Or else the test above says little."""
    tree = why.hierarchy
    assert (tree.predict(case[1]) != tree.labels).any()
    assert (least_margins(why) < 0.0).any()


def test_the_units_of_the_columns_do_not_matter(X):
    tree = HMMC(6, random_state=0).fit(X).hierarchy_
    scale, mean = np.logspace(-3, 3, X.shape[1]), np.linspace(-9.0, 9.0, X.shape[1])
    one, other = explain(tree, X), explain(tree.unscale(mean, scale), X * scale + mean)
    for node in inner(tree):
        np.testing.assert_allclose(one.margins[node], other.margins[node], atol=1e-8)


def test_rows_are_scored_in_blocks(why, case, monkeypatch):
    monkeypatch.setattr("taxarbor.explain._margins.BLOCK", 17)
    again = explain(*case)
    for one, other in zip(why.margins, again.margins, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.tobytes() == other.tobytes()


def test_rules_agree_where_their_scores_say_so(why, dense):
    tree = why.hierarchy
    for node in inner(tree)[:6]:
        rule, rows, which = tree.rules[node], tree.rows(node), children_of_rows(tree, node)
        data = dense.astype(rule.dtype)
        rivals, found = find_rivals(tree, as_rows(data), node, rows, which)
        values = np.array([scores(rule, dense[row]) for row in rows])
        best = np.sort(values, axis=1)
        clear = best[:, -1] - best[:, -2] > 1e-5
        np.testing.assert_array_equal(found[clear], (values.argmax(axis=1) == which)[clear])
        values[np.arange(len(rows)), which] = -np.inf
        np.testing.assert_allclose(
            values[np.arange(len(rows)), rivals], values.max(axis=1), atol=1e-5
        )


@given(data=st.data())
@settings(max_examples=40)
def test_margins_of_any_division(data):
    n_rows = data.draw(st.integers(2, 12))
    labels = data.draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows))
    values = st.lists(st.integers(-3, 3), min_size=2, max_size=2)
    X = np.array(data.draw(st.lists(values, min_size=n_rows, max_size=n_rows)), dtype=float)
    why = explain(Hierarchy.from_labels(labels), X)
    tree = why.hierarchy
    for node in inner(tree):
        rows = tree.rows(node)
        which = children_of_rows(tree, node)
        raw = raw_margins(tree, as_rows(X), node, rows, which)
        expected = [
            margin(tree, X[r], node, tree.children(node)[k])
            for r, k in zip(rows, which, strict=True)
        ]
        np.testing.assert_allclose(raw, expected, atol=1e-12)
        np.testing.assert_allclose(why.margins[node] * why.units[node], raw, atol=1e-12)
