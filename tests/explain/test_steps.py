"""The ways of rows, step by step, against their definition."""

import numpy as np
import pytest
from scipy import sparse

from taxarbor.explain import explain
from taxarbor.explain._steps import TOP, Pull, dense_part, find_steps
from taxarbor.hierarchy import Hierarchy


@pytest.fixture(scope="module")
def steps(why):
    tree = why.hierarchy
    leaves = tree.leaves[tree.labels]
    return find_steps(why, why._rows, why._data, leaves, np.arange(len(leaves)))


def tolerance(why):
    rule = why.hierarchy.rules[0]
    return 1e-4 if rule is not None and rule.dtype == np.float32 else 1e-9


def test_steps_lead_from_the_root_to_the_leaf(why, steps):
    tree = why.hierarchy
    assert len(steps) == len(tree.order)
    for row, way in enumerate(steps):
        path = tree.path(tree.leaves[tree.labels[row]])
        assert [step.node for step in way] == list(path[:-1])
        assert [step.child for step in way] == list(path[1:])
        assert {step.row for step in way} <= {row}


def test_margins_are_those_of_the_explanation(why, steps):
    tree = why.hierarchy
    for node in range(tree.n_nodes):
        for place, row in enumerate(tree.rows(node)):
            found = [step.margin for step in steps[row] if step.node == node]
            assert found == ([] if tree.is_leaf(node) else [why.margins[node][place]])


def test_surer_than_counts_the_rows_of_the_child_with_less(why, steps):
    for way in steps[::7]:
        for step in way:
            margins = why.margins_within(step.node, step.child)
            assert step.surer_than == (margins < step.margin - 1e-6).mean()
            assert 0.0 <= step.surer_than < 1.0


def test_rules_agree_as_often_as_their_fidelity_says(why, steps):
    tree = why.hierarchy
    agrees = {node: [] for node in range(tree.n_nodes) if not tree.is_leaf(node)}
    for way in steps:
        for step in way:
            agrees[step.node].append(step.agrees)
    for node, values in agrees.items():
        if not np.isnan(tree.fidelity[node]):
            assert np.mean(values) == pytest.approx(tree.fidelity[node], abs=1e-9)


def test_pulls_are_parts_of_the_score(why, steps, dense):
    tree = why.hierarchy
    for way in steps[::11]:
        for step in way:
            rule, children = tree.rules[step.node], tree.children(step.node)
            x, W = dense[step.row], rule.weights.astype(float)
            scores = W @ (x - rule.center) + rule.offsets
            own = children.index(step.child)
            rival = max((k for k in range(len(W)) if k != own), key=scores.__getitem__)
            means = tree.means[list(children)].astype(float)
            parts = (W[own] - W[rival]) * (x - (means[own] + means[rival]) / 2)
            total = np.abs(parts).sum()
            largest = np.sort(np.abs(parts))[::-1][:TOP]
            sizes = [abs(pull.strength) * total for pull in step.pulls]
            assert sizes == pytest.approx(largest[largest > 0.0], abs=tolerance(why))
            for pull in step.pulls:
                j = pull.feature
                assert pull.strength * total == pytest.approx(parts[j], abs=tolerance(why))
                assert (pull.value, pull.name) == (x[j], f"x{j}")
                assert pull.mean == means[own, j]
                assert pull.other_mean == means[rival, j]


def test_strengths_are_shares(why, steps):
    for way in steps:
        for step in way:
            strengths = np.abs([pull.strength for pull in step.pulls])
            assert len(strengths) <= TOP
            assert strengths.sum() <= 1.0 + 1e-9
            assert (strengths > 0.0).all()
            assert (np.diff(strengths) <= 1e-12).all()
            used = why.hierarchy.rules[step.node].features
            assert {pull.feature for pull in step.pulls} <= set(used.tolist())
            if 0 < len(strengths) < TOP:
                assert strengths.sum() == pytest.approx(1.0)


def test_features_pull_to_the_side_that_the_rule_takes(X):
    """With one feature per rule and the border between the means, the signs must agree."""
    x = X[:, :1] + np.linspace(0.0, 0.1, len(X))[:, None]
    why = explain(Hierarchy.from_labels(x[:, 0] > np.median(x)), x)
    frame = why.rows()
    for row in range(0, len(x), 9):
        (step,) = why.row(row)["steps"]
        (pull,) = step["pulls"]
        assert (pull["strength"] > 0) == (step["margin"] > 0) == step["agrees"]
        assert abs(pull["strength"]) == 1.0
        against = " (against)" if pull["strength"] < 0 else ""
        assert frame["why"][row] == f"x0 = {x[row, 0]:.4g}{against}"


def test_pulls_in_words():
    pull = Pull(0, "a\nb", 0.123456, 0.0, 0.0, 0.5)
    assert str(pull) == "a b = 0.1235"
    assert str(pull._replace(strength=-0.5)) == "a b = 0.1235 (against)"
    assert str(pull._replace(value=1.0)) == "a b = 1"


def test_parts_of_any_data():
    X = np.arange(12.0).reshape(4, 3)
    rows, columns = np.array([2, 0, 2]), np.array([2, 1])
    for data in (X, sparse.csr_array(X), sparse.csr_matrix(X)):
        part = dense_part(data, rows, columns)
        assert type(part) is np.ndarray
        np.testing.assert_array_equal(part, X[rows][:, columns])
        assert dense_part(data, rows, columns[:0]).shape == (3, 0)
        assert dense_part(data, rows[:0], columns).shape == (0, 2)
