"""The ways of rows, step by step, against their definition."""

import tracemalloc
from collections import namedtuple

import numpy as np
import pytest
from scipy import sparse

from taxarbor import HierarchicalKMeans
from taxarbor.explain import _steps, explain
from taxarbor.explain._steps import TOP, Pull, dense_part, find_steps
from taxarbor.hierarchy import Hierarchy

Step = namedtuple("Step", "row node child margin surer_than agrees pulls")


def ways(why):
    """Return the steps of each row, from the root down."""
    tree = why.hierarchy
    leaves = tree.leaves[tree.labels]
    source, chosen = (why._rows, why._data), np.arange(len(leaves))
    found = [[] for _ in chosen]
    for at in find_steps(why, source, leaves, chosen, tuple):
        for place, *values in zip(at.places.tolist(), *at[2:], strict=True):
            found[place].append(Step(place, at.node, *values))
    return found


@pytest.fixture(scope="module")
def steps(why):
    return ways(why)


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


def test_numbers_of_ordinary_size_have_no_exponent():
    pull = Pull(0, "a", 17590.4, 0.0, 0.0, 0.5)
    assert str(pull) == "a = 17,590"
    told = {
        0.0: "0", 0.0001234: "0.0001234", 0.00001: "1e-05", 1984.0: "1984", 9999.6: "10,000",
        -17593.0: "-17,590", 123456789.0: "123,500,000", 2.5e9: "2.5e+09", -0.5: "-0.5",
    }  # fmt: skip
    for value, text in told.items():
        assert str(pull._replace(value=value)) == f"a = {text}"


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


def wide(n_rows=60, n_columns=700, dtype=float):
    """Return sparse rows with more columns than are looked at all, and a tree of them."""
    rng = np.random.default_rng(0)
    X = sparse.random(n_rows, n_columns, 0.02, "csr", random_state=0, dtype=dtype)
    X.data[::3] *= -1.0
    X.data[X.indptr[5] : X.indptr[6]] = 0.0
    X.eliminate_zeros()
    return X, Hierarchy.from_labels(rng.integers(0, 3, size=n_rows))


@pytest.mark.parametrize("together", [1, 7, 32])
def test_sparse_rows_are_moved_by_what_moves_dense_ones(monkeypatch, together):
    monkeypatch.setattr(_steps, "TOGETHER", together)
    X, tree = wide()
    one, other = ways(explain(tree, X)), ways(explain(tree, X.toarray()))
    assert len(explain(tree, X).hierarchy.rules[0].features) > _steps.FEW
    for way, same in zip(one, other, strict=True):
        assert [step.node for step in way] == [step.node for step in same]
        for a, b in zip(way, same, strict=True):
            assert [p.feature for p in a.pulls] == [p.feature for p in b.pulls]
            strengths = [[p.strength for p in step.pulls] for step in (a, b)]
            assert strengths[0] == pytest.approx(strengths[1], rel=1e-9)
            assert len(a.pulls) == TOP


def test_few_columns_of_wide_sparse_rows_are_looked_at(monkeypatch):
    """Or else rules over all columns would take as long as if rows were dense."""
    X, tree = wide(64, 20_000)
    why = explain(tree, X)
    seen = []
    part = _steps.dense_part
    monkeypatch.setattr(
        _steps, "dense_part", lambda *given: seen.append(len(given[2])) or part(*given)
    )
    monkeypatch.setattr(_steps, "TOGETHER", 4)
    why.rows()
    assert max(seen) < 3_000


def test_where_the_rule_is_not_what_decided(why):
    frame = why.rows()
    ends = {
        True: "; all features together decide otherwise",
        False: "; the rule alone decides otherwise",
    }
    end = ends[why.hierarchy.placement is not None]
    told = frame["why"].str.endswith(end)
    assert (told == (~frame["agrees"] & (frame["why"] != ""))).all()
    assert not frame["why"].str.endswith(ends[why.hierarchy.placement is None]).any()


def test_frames_of_many_steps_take_little_memory():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6))
    why = explain(HierarchicalKMeans(8, random_state=0).fit(X), X)
    why.rows([0])
    tracemalloc.start()
    frame = why.rows()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 600 * len(frame)
