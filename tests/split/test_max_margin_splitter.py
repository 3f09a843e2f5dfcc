"""The paper's splitter: its penalty, its objective, its score, its sizes, its refusals."""

from itertools import product

import numpy as np
import pytest

from taxarbor._errors import InputError
from taxarbor.rows import as_rows
from taxarbor.split import MaxMarginSplitter, Refusal, Regularizer, Split, SplitTask
from taxarbor.tree import LinearRule
from tests.split.conftest import PENALTY_TERMS, draw, hinge, rows_of, task_of

BALANCE = (0.5, 1.5)
STRENGTHS = {"raw": (0.5, 0.3), "relative": (0.03, 0.02)}
CENTERS = ("node", "data")
ALL_KINDS = [(kind, dtype) for kind in ("dense", "sparse") for dtype in ("float32", "float64")]
ANCESTOR = LinearRule(np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]), np.zeros(3))


def splitter_of(kind="group+exclusive", units="relative", **options):
    alpha, beta = options.pop("strengths", STRENGTHS[units])
    regularizer = Regularizer(kind, alpha, beta, units == "relative")
    return MaxMarginSplitter(regularizer, options.pop("balance", BALANCE), **options)


def ancestors_of(path, rules):
    return [rule.weights[k].astype(float) for k, rule in zip(path, rules, strict=True)]


# ---- the penalty ----


def test_an_ancestor_without_weights_does_not_count():
    silent = LinearRule(np.zeros((2, 3)), np.zeros(3))
    loud = LinearRule(np.array([[2.0, 0.0, 1.0], [9.0, 9.0, 9.0]]), np.zeros(3))
    for relative, largest in ((True, 2.0), (False, 1.0)):
        regularizer = Regularizer("group+exclusive", 0.1, 0.1, relative)
        usage = regularizer.usage((0, 0), (silent, loud), 3)
        np.testing.assert_allclose(usage, np.array([1.0, 0.0, 0.5]) / largest)
        np.testing.assert_array_equal(regularizer.usage((), (), 3), np.zeros(3))


# ---- the split ----


def test_objective_and_score_are_the_papers(kind):
    """Eq. 5, and the sum of the rows' own scores over G + E (Eq. 4), from either origin.

    With more rows than the sample of the starts, too.
    """
    data = ("dense", "float64", 150), ("sparse", "float64", 150), ("dense", "float32", 150)
    data = *data, ("dense", "float64", 2500)
    for (storage, dtype, n_rows), K, deep in product(data, (2, 3), (False, True)):
        precision, slack = (1e-9, 1e-12) if dtype == "float64" else (1e-5, 1e-6)
        X = draw(K, dtype=dtype, n_rows=n_rows)
        task = task_of(rows_of(X, storage), K, deep=deep)
        ancestors = ancestors_of(task.path, task.lineage)
        for center, (units, strengths) in product(CENTERS, STRENGTHS.items()):
            split = splitter_of(kind, units, tol=1e-3, center=center).split(task)
            assert isinstance(split, Split)
            W = split.rule.weights.astype(float)
            Z = X - split.rule.center.astype(float)
            origin = task.origin if center == "data" else task.rows.center
            terms = kind, *strengths, W, ancestors, float(np.abs(X - origin).mean(axis=0).max())
            expected = hinge(Z, W, split.labels) + PENALTY_TERMS[units](*terms)
            np.testing.assert_allclose(split.objective, expected, rtol=precision)
            trace = np.array(split.info.trace)
            assert (np.diff(trace) <= slack * trace[:-1]).all()
            if units == "raw":
                total = (Z @ W.T)[np.arange(len(X)), split.labels].sum()
                at_root = np.sqrt(1e3 / W.size)
                bottom = PENALTY_TERMS["raw"](kind, 1.0, 1.0, W, ancestors, at_root)
                np.testing.assert_allclose(split.score, total / bottom, rtol=100 * precision)


def test_a_split_avoids_the_features_of_its_ancestors():
    """Two features tell the rows apart equally well; the ancestor uses the first."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)) + 6.0 * np.repeat([[0, 0, 0], [1, 1, 0]], 100, axis=0)
    task = SplitTask(as_rows(X), (0,), (ANCESTOR,), 2, 0)
    split = splitter_of(strengths=(0.1, 0.5), tol=1e-6).split(task)
    assert split.rule.features.tolist() == [1]
    # HMMC-E: the denominator of the score, the overlap, is then nothing at all.
    split = splitter_of("exclusive", strengths=(0.0, 10.0)).split(task)
    assert 0 not in split.rule.features
    assert split.score > 0.0  # infinite is fine, NaN is not


# ---- tables, where some columns are several features ----


def mixed(seed=0):
    """Return two numbers and two categories of six values, scaled, and their columns."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 6, (300, 2))
    flags = (codes[:, :, None] == np.arange(6)).reshape(300, -1)
    X = np.hstack([rng.normal(size=(300, 2)) + 2.0 * (codes[:, :1] < 3), flags])
    return X / X.std(axis=0), np.append([0, 1], np.repeat([2, 3], 6))


def test_a_column_is_used_as_a_whole():
    for K, seed in product((2, 3), range(3)):
        X, owner = mixed(seed)
        counts = np.bincount(owner)
        for kind in ("group", "group+exclusive"):
            for alpha in (0.01, 0.2):
                regularizer = Regularizer(kind, alpha, 0.0, True, owner)
                splitter = MaxMarginSplitter(regularizer, BALANCE, tol=1e-6)
                split = splitter.split(task_of(as_rows(X), K))
                used = np.bincount(owner[split.rule.features], minlength=4)
                assert ((used == 0) | (used == counts)).all()
            strong = MaxMarginSplitter(Regularizer(kind, 1.0, 0, True, owner), BALANCE)
            assert isinstance(strong.split(task_of(as_rows(X), K)), Refusal)


def test_what_ancestors_use_of_a_column_counts_for_all_of_it():
    X, owner = mixed()
    above = LinearRule(np.where(np.arange(14) == 4, [[-2.0], [2.0]], 0.0), np.zeros(14))
    for kind in ("exclusive", "group+exclusive"):
        regularizer = Regularizer(kind, 0.01, 0.1, True, owner)
        np.testing.assert_array_equal(regularizer.usage((0,), (above,), 14), owner == 2)
        task = SplitTask(as_rows(X), (0,), (above,), 2, 0)
        strong = Regularizer(kind, 0.01, 9.0, True, owner)
        assert 2 not in owner[MaxMarginSplitter(strong, BALANCE).split(task).rule.features]


def test_columns_of_one_feature_change_nothing(kind):
    task = task_of(rows_of(draw(2)), 2)
    plain = splitter_of(kind, solver="newton").split(task)
    regularizer = Regularizer(kind, *STRENGTHS["relative"], True, np.arange(8)[::-1])
    other = MaxMarginSplitter(regularizer, BALANCE, solver="newton").split(task)
    np.testing.assert_array_equal(plain.rule.weights, other.rule.weights)
    assert plain.score == other.score


def test_newton_has_no_groups_of_features():
    _, owner = mixed()
    with pytest.raises(InputError, match="solver"):
        MaxMarginSplitter(Regularizer("group", 0.1, 0, True, owner), BALANCE, solver="newton")
    MaxMarginSplitter(Regularizer("l1", 0.1, 0, True, owner), BALANCE, solver="newton")


# ---- what has no plane, or may not be used ----


def test_too_strong_a_penalty():
    both, relative = "group+exclusive", "relative"
    cases = ("group", relative, 1.0), (both, relative, 1.0), ("l1", relative, 1.0)
    cases += ("group", "raw", 1e6), (both, relative, 1e9)
    for (kind, units, alpha), K, solver in product(cases, (2, 3), ("newton", "pqn")):
        splitter = splitter_of(kind, units, strengths=(alpha, 0.0), solver=solver)
        refused = splitter.split(task_of(rows_of(draw(K)), K))
        assert isinstance(refused, Refusal)
        assert "alpha" in refused.reason


def test_a_constant_feature_is_never_used(kind):
    """Nor one that varies elsewhere in the tree, but not at this node."""
    for (storage, dtype), K in product(ALL_KINDS, (2, 3)):
        X = draw(K, dtype=dtype, n_rows=3000)
        X[:, 1] = 7.1
        X[::2, 2] = 7.1
        X[::2, 3] = 0.0
        rows = rows_of(X, storage)
        assert 1 not in splitter_of(kind).split(task_of(rows, K)).rule.features
        part = splitter_of(kind).split(task_of(rows.take(np.arange(0, 3000, 2)), K))
        assert not {1, 2, 3} & set(part.rule.features.tolist())


def test_the_objective_is_that_of_the_labels():
    """Also where equal rows were sent after each other."""
    X = np.repeat(np.random.default_rng(3).normal(size=(6, 3)), [60, 9, 8, 7, 6, 5], axis=0)
    splitter = splitter_of("group", balance=(0.9, 1.1))
    for K in (2, 3):
        split = splitter.split(task_of(rows_of(X), K))
        assert split.objective < split.info.trace[-1]  # some were moved
        W = split.rule.weights
        critical = splitter.regularizer.critical(rows_of(X).spread())
        penalty = splitter.regularizer.at(np.zeros(3), critical, K)
        value = hinge(X - split.rule.center, W, split.labels) + penalty.value(W)
        np.testing.assert_allclose(split.objective, value, rtol=1e-6)
