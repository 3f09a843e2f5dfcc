"""Margins and the paths of rows, step by step, against their definitions."""

import numpy as np
import pytest
from scipy import sparse

from taxarbor import HMMC, TableEncoder, Taxarbor
from taxarbor.exchange import from_labels
from taxarbor.explain import explain
from tests.explain.conftest import steps_of, steps_of_row

N_NAMED = 3
"""Features that a step names, at most."""


def best_scores(tree, node, x):
    """Return the best score of each node that a rule chooses among."""
    rule, frontier, best = tree.rules[node], tree.frontier(node), {}
    scores = rule.weights.astype(float) @ (x - rule.center) + rule.offsets
    for target, score in zip(rule.targets.tolist(), scores.tolist(), strict=True):
        best[frontier[target]] = max(score, best.get(frontier[target], -np.inf))
    return best


def margin_of(tree, node, child, x):
    best = best_scores(tree, node, x)
    return best.pop(child) - max(best.values())


def least_margins(why):
    """Return the least margin on the path of each row."""
    tree = why.taxonomy.tree
    least = np.full(tree.n_rows, np.inf)
    for node, margins in enumerate(why.margins.values):
        if margins is not None:
            rows = tree.rows(node)
            least[rows] = np.minimum(least[rows], margins)
    return least


def test_margins_are_between_the_best_scores(cases):
    for case in cases.values():
        why, tree = case.why, case.tree
        expected = {node: [] for node in range(tree.n_nodes)}
        for row in tree.rows(0).tolist():
            for node, child in steps_of(tree, tree.leaves[tree.labels[row]]):
                expected[node].append(margin_of(tree, node, child, case.dense[row]))
        for node, margins in enumerate(why.margins.values):
            if tree.rules[node] is None:
                assert margins is None
                assert why.margins.units[node] == 1.0
                continue
            found = margins * why.margins.units[node]
            np.testing.assert_allclose(found, expected[node], atol=case.tolerance)
            # The median margin is one, unless most are zero.
            median = np.median(np.abs(margins))
            assert median == pytest.approx(1.0 if median else 0.0)
            assert median or why.margins.units[node] == 1.0


def test_trees_without_rules_have_margins_by_the_nearest_mean(cases):
    for name in ("labels", "ward", "ward, a row per leaf", "no rules"):
        case = cases[name]
        tree = case.tree
        assert case.given.tree.rules == (None,) * tree.n_nodes
        assert not case.why.has_rules
        for node, margins in enumerate(case.why.margins.values):
            for child in tree.children(node):
                rows, others = tree.rows(child), set(tree.children(node)) - {child}
                means = {c: case.dense[tree.rows(c)].mean(axis=0) for c in tree.children(node)}
                far = {c: ((case.dense[rows] - means[c]) ** 2).sum(axis=1) for c in means}
                rest = np.min([far[c] for c in others], axis=0)
                start = tree.start[child] - tree.start[node]
                found = margins[start : start + len(rows)] * case.why.margins.units[node]
                np.testing.assert_allclose(found, (rest - far[child]) / 2, atol=1e-9)


def test_margins_are_negative_where_prediction_differs(cases):
    """On the border, where the margin is zero, a row may go to either side."""
    for case in cases.values():
        least, tree = least_margins(case.why), case.tree
        np.testing.assert_array_equal(case.why.least_margins, least[tree.rows(0)])
        is_same = case.why.taxonomy.predict(case.X) == tree.labels
        tiny = 1e-5 if case.tolerance == 1e-4 else 1e-9
        assert (least[is_same] >= -tiny).all()
        assert (least[~is_same] <= tiny).all()
        if case.name in ("labels", "shuffled"):
            assert not is_same.all()
            assert (least < 0.0).any()


def test_units_of_columns_do_not_matter(X):
    scale, mean = np.logspace(-3, 3, X.shape[1]), np.linspace(-9.0, 9.0, X.shape[1])
    model = HMMC(6, encoder=TableEncoder(scale="standard"), random_state=0)
    one, other = (explain(model.fit(rows), rows) for rows in (X, X * scale + mean))
    for margins, same in zip(one.margins.values, other.margins.values, strict=True):
        assert (margins is None) == (same is None)
        if margins is not None:
            np.testing.assert_allclose(margins, same, atol=1e-8)


def test_blocks_of_rows_do_not_matter():
    """Two million numbers are not read at once."""
    X = np.random.default_rng(0).normal(size=(4000, 520))
    taxonomy = from_labels(np.arange(4000) % 3)
    why = explain(taxonomy, X)
    for row in taxonomy.tree.rows(0)[::500].tolist():
        (step,) = steps_of_row(why, row)
        expected = margin_of(why.taxonomy.tree, 0, step["child"], X[row])
        assert step["margin"] * why.margins.units[0] == pytest.approx(expected)
    csr = explain(taxonomy, sparse.csr_array(X))
    np.testing.assert_allclose(csr.margins.values[0], why.margins.values[0], atol=1e-9)
    assert csr.examples(1)["typical"] == why.examples(1)["typical"]


# Steps


def split_why(why, step):
    """Return the features that a step names, their values, and whether they are against it."""
    names, against, found = why.taxonomy.feature_names, " (against)", []
    for part in filter(None, step["why"].split("; ")):
        name, _, text = part.partition(" = ")
        found.append((names.index(name), text.removesuffix(against), text.endswith(against)))
    return found


def test_steps_are_the_rules_on_the_path(cases):
    for case in cases.values():
        why, tree = case.why, case.tree
        for row in range(0, tree.n_rows, 7):
            leaf = tree.leaves[tree.labels[row]]
            steps = steps_of_row(why, row)
            assert [(step["node"], step["child"]) for step in steps] == steps_of(tree, leaf)
            for step in steps:
                margins = why.margins_within(step["node"], step["child"])
                assert step["margin"] in margins
                percentile = (margins < step["margin"] - 1e-6).mean()
                assert step["margin_percentile"] == pytest.approx(percentile)


def test_contributions_are_parts_of_the_difference_of_scores(cases):
    for case in cases.values():
        tree, means = case.tree, case.means.astype(float)
        for row in range(0, tree.n_rows, 11):
            for step in steps_of_row(case.why, row):
                rule, frontier = tree.rules[step["node"]], tree.frontier(step["node"])
                x, W = case.dense[row], rule.weights.astype(float)
                scores = W @ (x - rule.center) + rule.offsets
                is_inside = rule.targets == frontier.index(step["child"])
                inside = np.where(is_inside, scores, -np.inf).argmax()
                outside = np.where(is_inside, -np.inf, scores).argmax()
                middle = (means[step["child"]] + means[frontier[rule.targets[outside]]]) / 2
                gaps, shift = (part[inside] - part[outside] for part in (W, rule.offsets))
                if len(W) == 2 and np.count_nonzero(gaps) == 1:  # it divides at its threshold
                    middle = rule.center - shift / np.where(gaps, gaps, 1.0)
                parts = gaps * (x - middle)
                found = split_why(case.why, step)
                largest = np.sort(np.abs(parts))[::-1][:N_NAMED]
                sizes = [abs(parts[j]) for j, _, _ in found]
                assert sizes == pytest.approx(largest[largest > 0.0], abs=case.tolerance)
                for j, value, is_against in found:
                    assert is_against == (parts[j] < 0.0)
                    if value in ("yes", "no"):
                        assert x[j] == (value == "yes")
                    else:
                        assert float(value.replace(",", "")) == pytest.approx(x[j], rel=1e-3)


def test_of_equal_contributions_the_first_columns_are_named():
    """Whatever rounding makes of them, and however many there are."""
    for n_columns in (4, 40, 1000):
        noise = np.random.default_rng(0).normal(size=(20, n_columns)) * 1e-12
        X = np.repeat([[0.0], [1.0]], 10, axis=0) + noise
        X[0, -1] -= 0.5
        why = explain(from_labels(np.arange(20) // 10), X)
        found = [split_why(why, steps_of_row(why, row)[0]) for row in (0, 5)]
        features = [[feature for feature, _, _ in parts] for parts in found]
        assert features == [[n_columns - 1, 0, 1], [0, 1, 2]]


def test_sparse_rows_have_the_contributions_of_dense_ones():
    rng = np.random.default_rng(0)
    X = sparse.random(60, 700, 0.02, "csr", random_state=0, dtype=float)
    X.data[::3] *= -1.0
    X.data[X.indptr[5] : X.indptr[6]] = 0.0
    X.eliminate_zeros()
    taxonomy = from_labels(rng.integers(0, 3, size=60))
    one, other = explain(taxonomy, X), explain(taxonomy, X.toarray())
    assert one.rows()["why"].tolist() == other.rows()["why"].tolist()


def test_a_feature_that_decides_alone_is_never_against():
    X = np.concatenate([np.arange(10.0), 10.5 + 9.0 * np.arange(10)])[:, None]
    steps = explain(Taxarbor(2, random_state=0).fit(X), X).rows()
    assert len(steps) == 20
    assert not steps["why"].str.contains("against").any()
