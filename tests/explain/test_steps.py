"""Margins and the paths of rows, step by step, against their definitions."""

import tracemalloc
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from taxarbor import HMMC, Taxarbor
from taxarbor.exchange import from_labels
from taxarbor.explain import _steps, explain
from taxarbor.explain._steps import TOP, Pull, find_steps

Step = namedtuple("Step", "row node child margin surer_than pulls")


def inner(taxonomy):
    return [node for node in range(taxonomy.tree.n_nodes) if not taxonomy.tree.is_leaf(node)]


def tolerance(why):
    rule = why.taxonomy.rules[0]
    return 1e-4 if rule is not None and rule.dtype == np.float32 else 1e-9


# Margins


def scores(rule, x):
    return rule.weights.astype(float) @ (x - rule.center) + rule.offsets


def margin(taxonomy, x, node, child):
    """Return how clearly a row is in a child: its best score less the best of the others."""
    values = dict(
        zip(taxonomy.tree.children(node), scores(taxonomy.tree.rules[node], x), strict=True)
    )
    return values.pop(child) - max(values.values())


def child_of(taxonomy, node, row):
    return next(c for c in taxonomy.tree.children(node) if row in taxonomy.tree.rows(c))


def test_margins_are_as_defined(cases):
    for case in cases.values():
        why, taxonomy = case.why, case.why.taxonomy
        for node in range(taxonomy.tree.n_nodes):
            found = why.margins[node]
            if taxonomy.tree.is_leaf(node):
                assert found is None
                assert why.units[node] == 1.0
                continue
            rows = taxonomy.tree.rows(node)
            own = [child_of(taxonomy, node, row) for row in rows]
            expected = [
                margin(taxonomy, case.dense[r], node, c) for r, c in zip(rows, own, strict=True)
            ]
            assert found.dtype == np.float64
            np.testing.assert_allclose(found * why.units[node], expected, atol=tolerance(why))
            # The usual margin is one.
            usual = np.median(np.abs(found))
            assert usual == pytest.approx(1.0) or (usual == 0.0 and why.units[node] == 1.0)
            assert np.isfinite(found).all()
            assert why.units[node] > 0.0


def test_margins_of_trees_without_rules_are_by_the_nearest_mean(cases):
    for case in (cases["labels"], cases["ward"], cases["ward, all"]):
        assert case.given.rules[0] is None
        why, taxonomy = case.why, case.why.taxonomy
        for node in inner(taxonomy):
            means = {
                c: case.dense[taxonomy.tree.rows(c)].mean(axis=0)
                for c in taxonomy.tree.children(node)
            }
            for found, row in zip(why.margins[node], taxonomy.tree.rows(node), strict=True):
                x = case.dense[row]
                far = {c: np.square(x - mean).sum() / 2 for c, mean in means.items()}
                own = far.pop(child_of(taxonomy, node, row))
                expected = min(far.values()) - own
                assert found * why.units[node] == pytest.approx(expected, abs=1e-9)


def test_margins_are_negative_where_prediction_differs(cases):
    """On the border, where the margin is zero, a row may go to either side."""
    for case in cases.values():
        taxonomy = case.why.taxonomy
        least = np.full(len(taxonomy.tree.order), np.inf)  # margin on the path of each row
        for node in inner(taxonomy):
            rows = taxonomy.tree.rows(node)
            least[rows] = np.minimum(least[rows], case.why.margins[node])
        is_own = taxonomy.predict(case.X) == taxonomy.tree.labels
        tiny = 1e-5 if tolerance(case.why) == 1e-4 else 1e-12
        assert (least[is_own] >= -tiny).all()
        assert (least[~is_own] <= tiny).all()
        assert (is_own == (least >= 0.0))[np.abs(least) > tiny].all()
        if case.name in ("labels", "shuffled"):
            # Some rows are on the wrong side, or else this test says little.
            assert not is_own.all()
            assert (least < 0.0).any()


def test_units_of_columns_and_blocks_of_rows_do_not_matter(X, cases, monkeypatch):
    taxonomy = Taxarbor(6, random_state=0).fit(X).taxonomy_
    scale, mean = np.logspace(-3, 3, X.shape[1]), np.linspace(-9.0, 9.0, X.shape[1])
    one, other = explain(taxonomy, X), explain(taxonomy.unscale(mean, scale), X * scale + mean)
    for node in inner(taxonomy):
        np.testing.assert_allclose(one.margins[node], other.margins[node], atol=1e-8)
    monkeypatch.setattr(_steps, "BLOCK", 17)
    for case in cases.values():
        again = explain(case.given, case.X)
        for one, other in zip(case.why.margins, again.margins, strict=True):
            assert (one is None) == (other is None)
            if one is not None:
                assert one.tobytes() == other.tobytes()


@given(data=st.data())
@settings(max_examples=40)
def test_margins_of_any_division(data):
    n_rows = data.draw(st.integers(2, 12))
    labels = data.draw(st.lists(st.integers(0, 3), min_size=n_rows, max_size=n_rows))
    values = st.lists(st.integers(-3, 3), min_size=2, max_size=2)
    X = np.array(data.draw(st.lists(values, min_size=n_rows, max_size=n_rows)), dtype=float)
    why = explain(from_labels(labels), X)
    taxonomy = why.taxonomy
    for node in inner(taxonomy):
        rows = taxonomy.tree.rows(node)
        expected = [
            margin(taxonomy, X[row], node, child_of(taxonomy, node, row)) for row in rows
        ]
        np.testing.assert_allclose(why.margins[node] * why.units[node], expected, atol=1e-12)


# Steps


def paths(why):
    """Return the steps of each row, from the root down."""
    taxonomy = why.taxonomy
    leaves = taxonomy.tree.leaves[taxonomy.tree.labels]
    source, chosen = why._source, np.arange(len(leaves))
    found = [[] for _ in chosen]
    steps = find_steps(why, source, leaves, chosen, tuple)
    for values in zip(*(part.tolist() for part in steps), strict=True):
        found[values[0]].append(Step(*values))
    return found


@pytest.fixture(scope="module")
def steps(cases):
    """The paths of all rows of each tree."""
    return [(case.why, paths(case.why), case.dense) for case in cases.values()]


def test_steps_are_as_sure_as_the_margins(steps):
    for why, found, _ in steps:
        for step in (step for path in found[::7] for step in path):
            margins = why.margins_within(step.node, step.child)
            assert step.surer_than == (margins < step.margin - 1e-6).mean()
            assert 0.0 <= step.surer_than < 1.0


def test_pulls_are_parts_of_the_score_and_strengths_are_shares(steps):
    for why, found, dense in steps:
        taxonomy = why.taxonomy
        for step in (step for path in found[::11] for step in path):
            rule, children = taxonomy.tree.rules[step.node], taxonomy.tree.children(step.node)
            x, W = dense[step.row], rule.weights.astype(float)
            values, own = scores(rule, x), children.index(step.child)
            rival = max((k for k in range(len(W)) if k != own), key=values.__getitem__)
            means = taxonomy.means[list(children)].astype(float)
            parts = (W[own] - W[rival]) * (x - (means[own] + means[rival]) / 2)
            total = np.abs(parts).sum()
            largest = np.sort(np.abs(parts))[::-1][:TOP]
            sizes = [abs(pull.strength) * total for pull in step.pulls]
            assert sizes == pytest.approx(largest[largest > 0.0], abs=tolerance(why))
            for pull in step.pulls:
                j = pull.feature
                assert pull.strength * total == pytest.approx(parts[j], abs=tolerance(why))
                assert (pull.value, pull.name) == (x[j], f"x{j}")
                assert (pull.mean, pull.other_mean) == (means[own, j], means[rival, j])
        for step in (step for path in found for step in path):
            strengths = np.abs([pull.strength for pull in step.pulls])
            assert len(strengths) <= TOP
            assert strengths.sum() <= 1.0 + 1e-9
            assert (strengths > 0.0).all()
            assert (np.diff(strengths) <= 1e-12).all()
            used = why.taxonomy.rules[step.node].features
            assert {pull.feature for pull in step.pulls} <= set(used.tolist())
            if 0 < len(strengths) < TOP:
                assert strengths.sum() == pytest.approx(1.0)


def test_features_pull_to_the_side_that_the_rule_takes(X):
    """With one feature per rule and the border between the means, the signs must agree."""
    x = X[:, :1] + np.linspace(0.0, 0.1, len(X))[:, None]
    why = explain(from_labels(x[:, 0] > np.median(x)), x)
    frame = why.rows()
    for row in range(0, len(x), 9):
        (step,) = why.row(row)["steps"]
        (pull,) = step["pulls"]
        assert (pull["strength"] > 0) == (step["margin"] > 0)
        assert abs(pull["strength"]) == 1.0
        against = " (against)" if pull["strength"] < 0 else ""
        assert frame["why"][row] == f"x0 = {x[row, 0]:.4g}{against}"


def test_pulls_in_words():
    pull = Pull(0, "a\nb", 0.123456, 0.0, 0.0, 0.5)
    assert str(pull) == "a b = 0.1235"
    assert str(pull._replace(strength=-0.5)) == "a b = 0.1235 (against)"
    assert str(pull._replace(value=46e6)) == "a b = 46 million"


def test_of_equals_the_first_columns_are_named():
    """Whatever rounding made of them, and however many there are."""
    for n_columns in (4, 40, 1000):
        sizes = np.full((3, n_columns), 0.1)
        sizes += np.random.default_rng(0).normal(size=sizes.shape) * 1e-12
        sizes[1, -1] = 0.2
        sizes[2] = 0.0
        expected = [[0, 1, 2], [n_columns - 1, 0, 1], [0, 1, 2]]
        assert _steps._largest(sizes).tolist() == expected
    assert _steps._largest(np.array([[1.0, 3.0]])).tolist() == [[1, 0]]
    assert _steps._largest(np.zeros((2, 0))).shape == (2, 0)


def wide(n_rows=60, n_columns=700):
    """Return sparse rows, and a tree of them."""
    rng = np.random.default_rng(0)
    X = sparse.random(n_rows, n_columns, 0.02, "csr", random_state=0, dtype=float)
    X.data[::3] *= -1.0
    X.data[X.indptr[5] : X.indptr[6]] = 0.0
    X.eliminate_zeros()
    return X, from_labels(rng.integers(0, 3, size=n_rows))


def test_sparse_rows_are_moved_by_what_moves_dense_ones(monkeypatch):
    X, taxonomy = wide()
    for block in (700, 7000, 1 << 20):
        monkeypatch.setattr(_steps, "BLOCK", block)
        one, other = paths(explain(taxonomy, X)), paths(explain(taxonomy, X.toarray()))
        for path, same in zip(one, other, strict=True):
            assert [step.node for step in path] == [step.node for step in same]
            for a, b in zip(path, same, strict=True):
                assert [p.feature for p in a.pulls] == [p.feature for p in b.pulls]
                strengths = [[p.strength for p in step.pulls] for step in (a, b)]
                assert strengths[0] == pytest.approx(strengths[1], rel=1e-9)
                assert len(a.pulls) == TOP


def test_frames_of_many_steps_take_little_memory():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    why = explain(HMMC(8, random_state=0).fit(X), X)
    why.rows([0])
    tracemalloc.start()
    frame = why.rows()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 600 * len(frame)
