"""Shares of a level add up to 1, and are those of the reasons."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from matplotlib import pyplot as plt

from experiments.baselines import plot_feature_levels
from experiments.baselines._levels import measure_levels
from taxarbor import Taxarbor, Taxonomy, load_animals
from taxarbor.exchange import from_labels
from taxarbor.tree import LinearRule, TreeBuilder


@pytest.fixture(scope="module")
def taxonomy():
    """The animals' tree."""
    bundle = load_animals()
    X = bundle.X / bundle.X.max(axis=0)
    return Taxarbor(20, max_features=3, random_state=0).fit(X).taxonomy_


@st.composite
def ruled_trees(draw):
    """Random trees with rules over five features; some, but not the first, use none."""
    builder = TreeBuilder(12)
    leaves = [0]
    for _ in range(draw(st.integers(1, 5))):
        wide = [leaf for leaf in leaves if len(builder.rows(leaf)) > 3]
        if not wide:
            break
        node = draw(st.sampled_from(wide))
        K = draw(st.integers(2, 3))
        W = draw(hnp.arrays(float, (K, 5), elements=st.integers(-2, 2).map(float)))
        labels = [n % K for n in range(len(builder.rows(node)))]
        W[0, 0] += 3.0 * (node == 0 or draw(st.booleans()))
        leaves.remove(node)
        leaves += builder.add_split(node, labels, LinearRule(W, np.zeros(5)))
    return Taxonomy(builder.freeze())


@given(taxonomy=ruled_trees())
def test_levels_add_up(taxonomy):
    levels, tree = measure_levels(taxonomy), taxonomy.tree
    assert levels.matrix.shape == (len(levels.features), tree.height)
    assert len(levels.names) == len(levels.features) == len(set(levels.features.tolist()))
    assert (levels.matrix >= 0).all()
    for depth, total in enumerate(levels.matrix.sum(axis=0)):
        rules = [tree.rules[node] for node in np.flatnonzero(tree.depth == depth)]
        has_any = any(rule and np.ptp(rule.weights, axis=0).any() for rule in rules)
        assert total == pytest.approx(float(has_any))
    first = (levels.matrix >= 0.01).argmax(axis=1)
    assert (np.diff(first) >= 0).all()


def test_the_animals(taxonomy):
    levels = measure_levels(taxonomy)
    np.testing.assert_allclose(levels.matrix.sum(axis=0), 1.0)
    used = np.unique(np.concatenate([r.features for r in taxonomy.tree.rules if r is not None]))
    assert set(levels.features.tolist()) <= set(used.tolist())
    shares = {reason.feature: abs(reason.share) for reason in taxonomy.reasons(1, n_top=None)}
    total = sum(shares.values())
    for feature, share in zip(levels.features.tolist(), levels.matrix[:, 0], strict=True):
        assert share == pytest.approx(shares.get(feature, 0.0) / total)


def test_rows_weigh():
    builder = TreeBuilder(12)
    one, two = np.array([[1.0, 0, 0], [0, 0, 0]]), np.array([[0, 1.0, 0], [0, 0, 0]])
    builder.add_split(0, [0] * 9 + [1] * 3, LinearRule(np.eye(3)[:2], np.zeros(3)))
    builder.add_split(1, [0, 1, 1] * 3, LinearRule(one, np.zeros(3)))
    builder.add_split(2, [0, 1, 1], LinearRule(two, np.zeros(3)))
    levels = measure_levels(Taxonomy(builder.freeze()))
    assert levels.names == ("x0", "x1")  # none were given
    np.testing.assert_allclose(levels.matrix, [[0.5, 0.75], [0.5, 0.25]])


def test_the_table(taxonomy):
    drawn = plot_feature_levels(taxonomy, n_top=10)
    names = [text.get_text() for text in drawn.axes.get_yticklabels()]
    n_used = len(drawn.levels.features)
    assert names[-1] == f"and {n_used - 10} more features"
    assert len(names) == 11
    shown = drawn.mesh.get_array()
    assert shown.shape == (11, taxonomy.tree.height)
    np.testing.assert_allclose(shown.sum(axis=0), 1.0)
    assert [text.get_text() for text in drawn.texts] == [
        f"{100 * share:.0f}" for share in shown.ravel() if share >= 0.01
    ]
    _, ax = plt.subplots()
    whole = plot_feature_levels(taxonomy, n_top=10_000, ax=ax)
    assert whole.axes is ax
    assert len(ax.get_yticklabels()) == n_used


def test_what_has_no_features_to_show(taxonomy):
    idle = TreeBuilder(2)
    idle.add_split(0, [0, 1], LinearRule(np.ones((2, 3)), np.zeros(3)))
    for without in (TreeBuilder(3), idle):
        with pytest.raises(ValueError, match="the tree"):
            plot_feature_levels(Taxonomy(without.freeze()))
    with pytest.raises(ValueError, match="no rules"):
        plot_feature_levels(from_labels([0, 1]))
    with pytest.raises(ValueError, match="n_top"):
        plot_feature_levels(taxonomy, n_top=0)
    assert plt.get_fignums() == []


def test_names_are_literal():
    names = ("$x$", r"$\frac$", "two\nlines", "y" * 500)
    builder = TreeBuilder(2)
    builder.add_split(0, [0, 1], LinearRule(np.arange(8.0).reshape(2, 4) ** 2, np.zeros(4)))
    drawn = plot_feature_levels(Taxonomy(builder.freeze()).rename_features(names))
    drawn.axes.figure.canvas.draw()
    labels = drawn.axes.get_yticklabels()
    assert "$x$" in [label.get_text() for label in labels]
    assert not any(label.get_parse_math() for label in labels)
    assert max(len(label.get_text()) for label in labels) <= 28
