"""Labels and weights in turn: every way of running the rounds ends in the same place."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from taxarbor._types import Status
from taxarbor.optim import HingeLoss, assign_two, first_point, minimise, size_bounds
from taxarbor.rows import SplitProblem, as_rows
from taxarbor.split import Regularizer
from taxarbor.split._alternate import NodeProblem, find_start
from tests.split.conftest import draw, hinge, rows_of

BALANCE = (0.6, 1.4)
STORAGE = ("dense", "sparse")


def problem_of(rows, kind, K, *, tol=1e-10, alpha=0.05, solver="newton"):
    spread = float(rows.spread().max())
    usage = np.random.default_rng(3).uniform(0.2, 1.0, rows.n_features)
    penalty = Regularizer(kind, alpha, 0.05, relative=True).at(usage, spread, K)
    return NodeProblem(penalty, BALANCE, K, tol, tol * spread, solver)


def origins(rows):
    """Return the rows about their own mean, and about another point, as in the paper."""
    return rows, rows.take(np.arange(rows.n_rows), center=rows.center + 0.2 * rows.spread())


def start_of(rows, K, seed=0):
    return find_start(rows, K, "principal", np.random.default_rng(seed))


def first_labels(rows, centers):
    """Return the labels from which ``from_centers`` begins with two children."""
    scores = rows.scores(centers)
    scores -= (0.5 * (centers**2).sum(axis=1)).astype(rows.dtype)
    return assign_two(scores[:, 0] - scores[:, 1], *size_bounds(rows.n_rows, 2, *BALANCE))


def run_general(problem, rows, labels):
    """Run the rounds for any number of children, a model per child, on two of them."""
    penalty, start = problem.penalty, np.zeros((2, rows.n_features))
    bounds = size_bounds(rows.n_rows, 2, *problem.balance)
    limits = problem.tol, problem.violation
    weights = penalty.group, penalty.l1, penalty.ridge
    labels = labels.astype(np.int32)
    return rows.solve_kway(SplitProblem(start, labels, bounds, *weights, *limits, 1000, 2048))


# ---- two children: the compiled solver, with the general path for its oracle ----


def solve_for_labels(rows, labels, penalty, tol):
    """Return d and the objective where single rounds end, each from the same labels."""
    d, l1 = np.zeros(rows.n_features), penalty.l1 + penalty.group / np.sqrt(2.0)
    rest = (0, rows.n_rows), 0.0, l1, penalty.ridge / 2.0, 0.0, tol, 1, 2048
    for _ in range(500):
        end = rows.solve_pair(SplitProblem(d, labels, *rest))
        if np.array_equal(end.weights, d):
            return d, end.trace[0]
        d = end.weights
    raise AssertionError("no end after 500 steps")


def test_given_labels_have_one_optimum(kind):
    """Compiled in d, and by quasi-Newton in two models: one convex problem."""
    for storage, (seed, distance) in product(STORAGE, ((0, 0.5), (1, 2.0), (2, 6.0))):
        X = draw(2, distance=distance, seed=seed)
        for rows in origins(rows_of(X, storage)):
            penalty, tol = problem_of(rows, kind, 2).penalty, 1e-10 * float(rows.spread().max())
            for labels in (np.arange(len(X)) % 3 == 0, X[:, 0] > X[:, 0].mean()):
                d, reached = solve_for_labels(rows, labels.astype(np.int8), penalty, tol)
                W = np.stack([d, -d]) / 2.0
                by_hand = hinge(X - rows.center, W, labels) + penalty.value(W)
                np.testing.assert_allclose(reached, by_hand, rtol=1e-9)
                loss = HingeLoss(rows, 2)
                point = first_point(loss, penalty, labels.astype(np.int32))
                general = minimise(loss, penalty, point, tol=tol, max_iter=5000)[0]
                value = general.value + penalty.value(general.W)
                np.testing.assert_allclose(reached, value, rtol=1e-6)


def test_all_rounds_agree(kind):
    """Compiled, of the paper's solver, and general: far apart, where the end is one."""
    ends = {Status.CONVERGED, Status.SETTLED, Status.STALLED}
    for storage, seed, K in product(STORAGE, (0, 1, 3), (2, 3)):
        for rows in origins(rows_of(draw(K, distance=6.0, seed=seed), storage)):
            centers = start_of(rows, K)
            problem = problem_of(rows, kind, K)
            newton = problem.from_centers(rows, centers)
            if seed == 3:
                pqn = problem_of(rows, kind, K, solver="pqn").from_centers(rows, centers)
                np.testing.assert_array_equal(newton.labels, pqn.labels)
                np.testing.assert_allclose(newton.trace[-1], pqn.trace[-1], rtol=1e-6)
                assert newton.W.shape == pqn.W.shape == (1 if K == 2 else K, rows.n_features)
            if K == 2:
                general = run_general(problem, rows, first_labels(rows, centers))
                assert {newton.status, Status(general.status)} <= ends
                np.testing.assert_allclose(newton.trace[-1], general.trace[-1], rtol=1e-6)
                np.testing.assert_array_equal(newton.labels, general.labels)
                W = general.weights
                np.testing.assert_allclose(newton.weights, W, atol=1e-4 * np.abs(W).max())


def test_a_hessian_of_some_features_at_a_time(kind):
    """Inside the compiled rounds too, features take turns where not all of them fit."""
    for K in (2, 3):
        rows = rows_of(draw(K, distance=6.0, seed=3))
        problem = replace(problem_of(rows, kind, K, tol=1e-12), max_rounds=1000)
        centers = start_of(rows, K)
        whole = problem.from_centers(rows, centers)
        parts = replace(problem, max_working=4 if K == 3 else 2).from_centers(rows, centers)
        np.testing.assert_array_equal(parts.labels, whole.labels)
        np.testing.assert_allclose(parts.trace[-1], whole.trace[-1], rtol=1e-6)


# ---- any number of children ----


def test_the_objective_never_rises(kind):
    kinds = ("dense", "float64"), ("sparse", "float64"), ("dense", "float32")
    for (storage, dtype), K, solver in product(kinds, (2, 3, 5), ("newton", "pqn")):
        slack, close = (1e-6, 1e-5) if dtype == "float32" else (1e-12, 1e-9)
        X = draw(K, distance=1.0, dtype=dtype, n_rows=120)
        lower, upper = size_bounds(len(X), K, *BALANCE)
        for rows in origins(rows_of(X, storage)):
            problem = problem_of(rows, kind, K, solver=solver, tol=1e-5)
            far = problem.from_centers(rows, start_of(rows, K, seed=1))
            again = problem.from_weights(rows, far.W)
            assert again.trace[0] <= far.trace[-1] * (1.0 + slack)  # with their best labels
            for end in (far, again, problem.from_weights(rows, 0.7 * far.W)):
                trace = np.array(end.trace)
                assert (np.diff(trace) <= slack * trace[:-1]).all()
                sizes = np.bincount(end.labels, minlength=K)
                assert lower <= sizes.min() <= sizes.max() <= upper
                W = end.weights
                value = hinge(X - rows.center, W, end.labels) + problem.penalty.value(W)
                # In single precision d is rounded once more where two models end.
                np.testing.assert_allclose(trace[-1], value, rtol=close)


def test_labels_and_weights_fit_each_other():
    """At the end neither step can lower the objective."""
    for K in (2, 3):
        for rows in origins(rows_of(draw(K))):
            problem = problem_of(rows, "group", K)
            end = problem.from_centers(rows, start_of(rows, K))
            np.testing.assert_array_equal(problem.assign(end.scores), end.labels)
            np.testing.assert_allclose(rows.scores(end.W), end.scores, rtol=1e-12)
            loss = HingeLoss(rows, K)
            point = loss.evaluate(end.weights, end.labels.astype(np.int32))
            violation = problem.penalty.optimality(point.W, loss.gradient(point))
            assert violation <= 1e-5 * rows.spread().max()


@pytest.mark.parametrize("K", [2, 3])
def test_along_the_rows(K):
    """As good as along all features, also where these are of very different sizes."""
    X = draw(K, n_rows=40, n_features=700)
    X *= np.logspace(-4, 0, 700)
    for storage in STORAGE:
        rows = rows_of(X, storage)
        near = problem_of(rows, "l2", K, solver="auto", tol=1e-8)
        far = replace(near, solver="newton")
        assert near.choose_method(rows) == "span"
        centers = start_of(rows, K)
        end, other = near.from_centers(rows, centers), far.from_centers(rows, centers)
        assert end.trace[-1] <= other.trace[-1] * (1.0 + 1e-5)
        value = hinge(X - rows.center, end.weights, end.labels)
        value += near.penalty.value(end.weights)
        np.testing.assert_allclose(end.trace[-1], value, rtol=1e-6)
        np.testing.assert_allclose(near.objective(end), value, rtol=1e-9)


def test_along_the_rows_features_are_excluded():
    """As if they were not there, wherever they are seen from."""
    X = draw(2, n_rows=30, n_features=700)
    X[:, 3] = 9.0
    kept = np.arange(700) != 3
    part = rows_of(np.ascontiguousarray(X[:, kept]))
    whole = as_rows(X, center=np.insert(part.center, 3, 0.0))
    plain = problem_of(part, "l2", 2, solver="auto")
    other = replace(plain, penalty=replace(plain.penalty, l1=(~kept).astype(float)))
    centers = start_of(part, 2)
    expected = plain.from_centers(part, centers)
    end = other.from_centers(whole, np.insert(centers, 3, 0.0, axis=1))
    assert not end.W[:, 3].any()
    np.testing.assert_array_equal(end.labels, expected.labels)
    atol = 1e-6 * abs(expected.W).max()
    np.testing.assert_allclose(end.W[:, kept], expected.W, rtol=1e-6, atol=atol)
