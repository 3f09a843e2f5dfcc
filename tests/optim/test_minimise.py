"""All minimisers against a slow one, and what they promise about their steps."""

from itertools import pairwise

import numpy as np

from taxarbor._types import Status
from taxarbor.optim import SparseGroupPenalty, _minimise, first_point, minimise
from taxarbor.rows import SplitProblem, as_rows
from tests.optim.conftest import paper_loss, penalty_of, problem

CHILDREN = (2, 3, 5)
STRENGTH = 0.05


def fista(given, penalty, n_iter=3000):
    """Minimise by accelerated proximal gradient, restarted when the objective rises."""
    step = 1.0 / (2.0 * np.linalg.norm(given.Z, 2) ** 2 / len(given.Z))
    W = V = np.zeros((given.K, given.Z.shape[1]))
    momentum, best = 1.0, np.inf
    for _ in range(n_iter):
        moved = penalty.prox(V - step * paper_loss(given.Z, V, given.labels)[1], step)
        objective = paper_loss(given.Z, moved, given.labels)[0] + penalty.value(moved)
        if objective > best:
            if momentum == 1.0:
                break
            V, momentum = W, 1.0
            continue
        grown = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        V = moved + (momentum - 1.0) / grown * (moved - W)
        W, momentum, best = moved, grown, objective
    return best


def solve(given, penalty, point=None, **limits):
    point = given.loss.zero(given.labels) if point is None else point
    return minimise(given.loss, penalty, point, **({"tol": 1e-9, "max_iter": 2000} | limits))


def newton(rows, labels, penalty, *, tol=1e-9, start=None, max_working=2048, max_iter=2000):
    """Return where compiled Newton steps end, and the objective, for labels that stay.

    A round at a time: the next begins with the weights of the last, and the same labels.
    """
    W = np.zeros((int(labels.max()) + 1, rows.n_features)) if start is None else start
    rest = penalty.group, penalty.l1, penalty.ridge, 0.0, tol, 1, max_working
    trace = []
    for _ in range(max_iter):
        end = rows.solve_kway(SplitProblem(W, labels, (0, rows.n_rows), *rest))
        trace.append(end.trace[0])
        if np.array_equal(end.weights, W):
            assert (np.diff(trace) <= 1e-6 * np.array(trace[:-1])).all()
            return W, trace[-1]
        W = end.weights
    raise AssertionError(f"no end after {max_iter} steps")


def objective(point, penalty):
    return point.value + penalty.value(point.W)


def test_value_and_gradient_are_the_papers():
    for K in CHILDREN:
        W = 0.4 * np.random.default_rng(0).normal(size=(K, 7))
        for seed in (0, 1):  # dense and sparse
            for dtype, close in (("float64", 1e-12), ("float32", 1e-5)):
                given = problem(K, dtype=dtype, seed=seed)
                point = given.loss.evaluate(W, given.labels)
                value, gradient = paper_loss(given.Z, point.W, given.labels)
                np.testing.assert_allclose(point.value, value, rtol=close)
                np.testing.assert_allclose(given.loss.gradient(point), gradient, atol=close)
                assert given.loss.at(point.W, given.labels, point.scores).value == point.value


def test_agrees_with_a_slow_method(kind):
    penalty = penalty_of(kind, 7, STRENGTH)
    for K in CHILDREN:
        given = problem(K)
        least = fista(given, penalty)
        first = first_point(given.loss, penalty, given.labels)
        compiled = [{"max_working": 3}, {"max_working": 2048}, {"start": first.W}]
        ends = [newton(given.loss.rows, given.labels, penalty, **one) for one in compiled]
        for start in (None, first):
            end, status = solve(given, penalty, start)
            assert status in (Status.CONVERGED, Status.STALLED)
            ends.append((end.W, objective(end, penalty)))
        for W, reached in ends:
            np.testing.assert_allclose(reached, least, rtol=1e-6)
            value, gradient = paper_loss(given.Z, W, given.labels)
            np.testing.assert_allclose(reached, value + penalty.value(W), rtol=1e-10)
            assert penalty.optimality(W, gradient) <= 1e-7
            if K == 2:  # loss and penalty are smallest there: two children have one model
                np.testing.assert_allclose(W[0], -W[1], atol=1e-6 * np.abs(W).max())


def test_the_objective_never_rises(kind):
    penalty = penalty_of(kind, 7, STRENGTH)
    for K in CHILDREN:
        for dtype in ("float32", "float64"):
            given = problem(K, dtype=dtype, seed=1)
            point = given.loss.zero(given.labels)
            trace = [objective(point, penalty)]
            for _ in range(25):
                point, status = solve(given, penalty, point, max_iter=1)
                trace.append(objective(point, penalty))
                if status is not Status.ITERATION_LIMIT:
                    break
            assert all(after <= before for before, after in pairwise(trace))
            assert trace[-1] < trace[0]


def test_what_a_status_means(kind):
    penalty = penalty_of(kind, 7, STRENGTH)
    for K in CHILDREN:
        given = problem(K)
        for tol in (1e-2, 1e-4, 1e-7):
            point = first_point(given.loss, penalty, given.labels)
            end, status = solve(given, penalty, point, tol=tol)
            assert status is Status.CONVERGED
            gradient = paper_loss(given.Z, end.W, given.labels)[1]
            assert penalty.optimality(end.W, gradient) <= tol * (1.0 + 1e-9)
        assert solve(given, penalty, tol=0.0, max_iter=1)[1] is Status.ITERATION_LIMIT
        again, status = solve(given, penalty, end, tol=tol, max_iter=1)
        assert status is Status.CONVERGED
        assert again is end


def test_too_strong_a_penalty_leaves_zero():
    for kind in ("sparse group", "group", "l1"):
        penalty = penalty_of(kind, 7, 1e3)
        for K in CHILDREN:
            given = problem(K)
            end, status = solve(given, penalty, tol=0.0, max_iter=1)
            assert status is Status.CONVERGED
            assert not end.W.any()
            assert not first_point(given.loss, penalty, given.labels).W.any()
            assert not newton(given.loss.rows, given.labels, penalty)[0].any()


def test_separable_rows(kind):
    """From a start where the loss and its gradient are zero: the penalty still pulls."""
    penalty = penalty_of(kind, 60, 0.01)
    for K in (2, 3):
        given = problem(K, n_rows=20, n_features=60)
        point = first_point(given.loss, penalty, given.labels)
        while point.value > 0.0:
            point = given.loss.evaluate(2.0 * point.W, given.labels)
        assert not given.loss.gradient(point).any()
        end, _ = solve(given, penalty, point, tol=1e-6, max_iter=400)
        _, compiled = newton(given.loss.rows, given.labels, penalty, start=point.W, tol=1e-6)
        for reached in (objective(end, penalty), compiled):
            assert reached <= fista(given, penalty, 400) * (1.0 + 1e-3)


def test_one_large_column_does_not_hold_newton_up():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 10))
    labels = (X[:, :3].sum(axis=1) + 0.5 * rng.standard_normal(400) > 0.0).astype(np.int32)
    penalty = SparseGroupPenalty(0.0, np.full(10, 0.01))
    ends = []
    for factor in (1.0, 1e3, 1e5):
        Z = X.copy()
        Z[:, 0] *= factor
        ends.append(newton(as_rows(Z), labels, penalty, tol=1e-8, max_iter=60)[1])
    # Weights on the large column are small, so the penalty hardly counts there.
    assert max(ends[1:]) < ends[0]


def test_of_very_many_features_some_move_at_a_time(kind, monkeypatch):
    """The end is the same, and features that are not needed never come into use."""
    for K in (2, 3):
        given = problem(K, n_rows=60, n_features=40)
        penalty = penalty_of(kind, 40, 0.08)
        whole = solve(given, penalty, tol=1e-8)
        with monkeypatch.context() as patch:
            patch.setattr(_minimise, "MAX_JOINT", 4)
            parts = solve(given, penalty, tol=1e-8)
            first, _ = solve(given, penalty, tol=1e-8, max_iter=1)
        assert np.count_nonzero(first.W.any(axis=0)) <= 4
        assert parts[1] in (Status.CONVERGED, Status.STALLED)
        ends = [objective(end, penalty) for end, _ in (whole, parts)]
        np.testing.assert_allclose(ends[1], ends[0], rtol=1e-6)
