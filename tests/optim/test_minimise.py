"""Both minimisers against a slow one, and what they promise about their steps."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given as given_any
from hypothesis import settings
from hypothesis import strategies as st

from taxarbor._types import Status
from taxarbor.native import descend_blocks
from taxarbor.optim import (
    PairHinge,
    ProximalNewton,
    ProximalQuasiNewton,
    SparseGroupPenalty,
    first_point,
)
from taxarbor.optim._minimise import search_line
from taxarbor.rows import as_rows

SOLVERS = {"newton": ProximalNewton, "pqn": ProximalQuasiNewton}
STRENGTH = 0.05


@pytest.fixture(params=SOLVERS)
def solver(request):
    return SOLVERS[request.param]


def loss_and_gradient(Z, W, labels):
    """Return the paper's loss and its gradient, in plain NumPy; one model stands for d."""
    A = np.concatenate([W / 2, -W / 2]) if len(W) == 1 else W
    n, K = len(Z), len(A)
    S = Z @ A.T
    everyone, y = np.arange(n), labels.astype(np.intp)
    slack = np.maximum(0.0, 1.0 - S[everyone, y][:, None] + S)
    slack[everyone, y] = 0.0
    value = float((slack**2).sum()) / (n * K)
    slack[everyone, y] = -slack.sum(axis=1)
    gradient = 2.0 / (n * K) * slack.T @ Z
    return value, (gradient[:1] - gradient[1:]) / 2 if len(W) == 1 else gradient


def fista(Z, labels, penalty, models, n_iter=3000):
    """Minimise by accelerated proximal gradient, restarted when the objective rises."""
    step = 1.0 / (2.0 * np.linalg.norm(Z, 2) ** 2 / len(Z))
    W = V = np.zeros((models, Z.shape[1]))
    momentum, best = 1.0, np.inf
    for _ in range(n_iter):
        moved = penalty.prox(V - step * loss_and_gradient(Z, V, labels)[1], step)
        objective = loss_and_gradient(Z, moved, labels)[0] + penalty.value(moved)
        if objective > best:
            if momentum == 1.0:
                break
            V, momentum = W, 1.0
            continue
        grown = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        V = moved + (momentum - 1.0) / grown * (moved - W)
        W, momentum, best = moved, grown, objective
    return W, best


def penalty_of(given, make_penalty, as_pair, strength=STRENGTH):
    penalty = make_penalty(given.Z.shape[1], strength)
    return as_pair(penalty) if given.models == 1 else penalty


def objective(point, penalty):
    return point.value + penalty.value(point.W)


@pytest.mark.parametrize("start", ["zero", "first"])
def test_agrees_with_a_slow_method(problem, form, make_penalty, as_pair, solver, start):
    given = problem(*form)
    penalty = penalty_of(given, make_penalty, as_pair)
    _, least = fista(given.Z, given.labels, penalty, given.models)
    if start == "zero":
        point = given.loss.zero(given.labels)
    else:
        point = first_point(given.loss, penalty, given.labels)
    found = solver().minimise(given.loss, penalty, point, tol=1e-9, max_iter=2000)
    assert found.status in (Status.CONVERGED, Status.STALLED)
    np.testing.assert_allclose(objective(found.point, penalty), least, rtol=1e-6)
    value, gradient = loss_and_gradient(given.Z, found.point.W, given.labels)
    np.testing.assert_allclose(found.point.value, value, rtol=1e-10)
    assert penalty.optimality(found.point.W, gradient) <= 1e-7


def test_pair_and_multi_agree(problem, make_penalty, as_pair, solver):
    pair, multi = problem(2, "pair"), problem(2, "multi")
    least = []
    for given in (pair, multi):
        penalty = penalty_of(given, make_penalty, as_pair)
        point = given.loss.zero(given.labels)
        found = solver().minimise(given.loss, penalty, point, tol=1e-10, max_iter=2000)
        least.append(objective(found.point, penalty))
    np.testing.assert_allclose(least[0], least[1], rtol=1e-9)


def test_wide_data_agree(problem, make_penalty, as_pair):
    """With more features than rows, where the Hessian has no full rank."""
    given = problem(3, n_rows=40, n_features=90)
    penalty = penalty_of(given, make_penalty, as_pair, 0.1)
    found = [
        solver().minimise(
            given.loss, penalty, given.loss.zero(given.labels), tol=1e-8, max_iter=3000
        )
        for solver in SOLVERS.values()
    ]
    newton, pqn = (objective(solution.point, penalty) for solution in found)
    np.testing.assert_allclose(newton, pqn, rtol=1e-6)


def test_a_hessian_of_some_features_at_a_time(
    problem, form, make_penalty, as_pair, monkeypatch
):
    """Where not all features that are in use fit in one step, they take turns."""
    given = problem(*form)
    penalty = penalty_of(given, make_penalty, as_pair)
    point = first_point(given.loss, penalty, given.labels)
    least = ProximalNewton().minimise(given.loss, penalty, point, tol=1e-9, max_iter=200)
    monkeypatch.setattr("taxarbor.optim._prox_newton.MAX_WORKING", 3 * given.models)
    found = ProximalNewton().minimise(given.loss, penalty, point, tol=1e-6, max_iter=1000)
    assert found.status is Status.CONVERGED
    np.testing.assert_allclose(
        objective(found.point, penalty), objective(least.point, penalty), rtol=1e-6
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_objective_never_rises(problem, form, make_penalty, as_pair, solver, dtype):
    given = problem(*form, dtype=dtype, seed=1)
    penalty = penalty_of(given, make_penalty, as_pair)
    minimiser, point = solver(), given.loss.zero(given.labels)
    trace = [objective(point, penalty)]
    for _ in range(25):
        found = minimiser.minimise(given.loss, penalty, point, tol=1e-9, max_iter=1)
        point = found.point
        trace.append(objective(point, penalty))
        if found.status is not Status.ITERATION_LIMIT:
            break
        assert found.n_iter == 1
    assert all(after <= before for before, after in pairwise(trace))
    assert trace[-1] < trace[0]


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-7])
def test_converged_means_within_the_tolerance(
    problem, form, make_penalty, as_pair, solver, tol
):
    given = problem(*form)
    penalty = penalty_of(given, make_penalty, as_pair)
    point = first_point(given.loss, penalty, given.labels)
    found = solver().minimise(given.loss, penalty, point, tol=tol, max_iter=2000)
    assert found.status is Status.CONVERGED
    gradient = loss_and_gradient(given.Z, found.point.W, given.labels)[1]
    assert penalty.optimality(found.point.W, gradient) <= tol * (1.0 + 1e-9)


def test_at_the_optimum_there_is_nothing_to_do(problem, form, make_penalty, as_pair, solver):
    given = problem(*form)
    penalty = penalty_of(given, make_penalty, as_pair)
    point = given.loss.zero(given.labels)
    best = solver().minimise(given.loss, penalty, point, tol=1e-8, max_iter=2000).point
    again = solver().minimise(given.loss, penalty, best, tol=1e-8, max_iter=2000)
    assert again.status is Status.CONVERGED
    assert again.n_iter == 0
    assert again.point is best


@pytest.mark.parametrize("make_penalty", ["sparse group", "group", "l1"], indirect=True)
def test_too_strong_a_penalty_leaves_zero(problem, form, make_penalty, as_pair, solver):
    given = problem(*form)
    penalty = penalty_of(given, make_penalty, as_pair, 1e3)
    point = given.loss.zero(given.labels)
    found = solver().minimise(given.loss, penalty, point, tol=0.0, max_iter=5)
    assert (found.status, found.n_iter) == (Status.CONVERGED, 0)
    first = first_point(given.loss, penalty, given.labels)
    assert not first.W.any()


def test_the_iteration_limit_is_told(problem, solver, make_penalty):
    given = problem(3)
    penalty = make_penalty(7, STRENGTH)
    point = given.loss.zero(given.labels)
    found = solver().minimise(given.loss, penalty, point, tol=0.0, max_iter=2)
    assert (found.status, found.n_iter) == (Status.ITERATION_LIMIT, 2)


def test_first_point_is_below_zero(problem, form, make_penalty, as_pair):
    given = problem(*form)
    penalty = penalty_of(given, make_penalty, as_pair)
    first = first_point(given.loss, penalty, given.labels)
    assert objective(first, penalty) < objective(given.loss.zero(given.labels), penalty)
    value, _ = loss_and_gradient(given.Z, first.W, given.labels)
    np.testing.assert_allclose(first.value, value, rtol=1e-12)


@settings(max_examples=30)
@given_any(
    seed=st.integers(0, 2**16),
    size=st.sampled_from([1e-8, 1e-3, 1.0, 1e3]),
    dtype=st.sampled_from(["float32", "float64"]),
    n_children=st.integers(2, 3),
)
def test_a_line_search_never_ends_higher(problem, make_penalty, seed, size, dtype, n_children):
    given = problem(n_children, dtype=dtype)
    penalty = make_penalty(7, STRENGTH)
    rng = np.random.default_rng(seed)
    point = given.loss.evaluate(0.3 * rng.normal(size=(n_children, 7)), given.labels)
    gradient = given.loss.gradient(point)
    for towards in (-gradient, gradient, rng.normal(size=gradient.shape)):
        found = search_line(given.loss, penalty, point, gradient, point.W + size * towards)
        if found is not None:
            assert objective(found.point, penalty) <= objective(point, penalty)
            value, _ = loss_and_gradient(given.Z, found.point.W, given.labels)
            np.testing.assert_allclose(found.point.value, value, rtol=1e-4, atol=1e-7)


def test_a_line_search_finds_a_way_down(problem, form, make_penalty, as_pair):
    given = problem(*form)
    penalty = penalty_of(given, make_penalty, as_pair)
    point = given.loss.zero(given.labels)
    gradient = given.loss.gradient(point)
    far = penalty.prox(-1e3 * gradient, 1e3)
    near = search_line(given.loss, penalty, point, gradient, far)
    assert near is not None
    assert objective(near.point, penalty) < objective(point, penalty)
    assert search_line(given.loss, penalty, point, gradient, 1e3 * gradient) is None


@pytest.mark.parametrize("n_children", [2, 3])
def test_rows_that_can_be_told_apart_perfectly(problem, make_penalty, solver, n_children):
    """From a start where the loss and its gradient are zero: the penalty still pulls."""
    given = problem(n_children, n_rows=20, n_features=60)
    penalty = make_penalty(60, 0.003)
    point = first_point(given.loss, penalty, given.labels)
    while point.value > 0.0:
        point = given.loss.evaluate(2.0 * point.W, given.labels)
    assert not given.loss.gradient(point).any()
    found = solver().minimise(given.loss, penalty, point, tol=1e-6, max_iter=800)
    _, slow = fista(given.Z, given.labels, penalty, n_children, n_iter=1000)
    assert objective(found.point, penalty) <= slow * (1.0 + 1e-3)


@pytest.mark.parametrize("n_models", [1, 3])
def test_descent_comes_close_to_the_minimum_of_the_model(make_penalty, n_models):
    """Where features move together, small moves alone would not say so.

    Newton steps ask for a hundredth of their violation, and need a tenth to get on.
    """
    rng = np.random.default_rng(0)
    n, F = 20, 60
    Z = rng.normal(size=(n, F)) + 3.0 * rng.normal(size=(n, 1))
    H = np.kron(np.eye(n_models), Z.T @ Z / n + 1e-3 * np.eye(F))
    W, gradient = rng.normal(size=(n_models, F)), rng.normal(size=(n_models, n)) @ Z / n
    penalty = make_penalty(F, 0.02)
    blocks = H.reshape(n_models, F, n_models, F).transpose(0, 2, 1, 3).reshape(-1, F, F)
    for tol in (1e-1, 1e-2, 1e-3):
        V, n_sweeps = descend_blocks(
            np.ascontiguousarray(blocks),
            gradient,
            W,
            penalty.group,
            penalty.l1,
            penalty.ridge,
            tol,
            100_000,
        )
        slope = gradient + (H @ (V - W).ravel()).reshape(W.shape)
        assert n_sweeps < 100_000
        assert penalty.optimality(V, slope) <= tol


@pytest.mark.parametrize("scale", [1e3, 1e5])
def test_one_large_column_does_not_hold_newton_up(scale):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 10))
    labels = (X[:, :3].sum(axis=1) + 0.5 * rng.standard_normal(400) > 0.0).astype(np.int8)
    penalty = SparseGroupPenalty(0.0, np.full(10, 0.01))
    ends = []
    for factor in (1.0, scale):
        Z = X.copy()
        Z[:, 0] *= factor
        loss = PairHinge(as_rows(Z))
        found = ProximalNewton().minimise(
            loss, penalty, first_point(loss, penalty, labels), tol=1e-8, max_iter=30
        )
        assert found.status is not Status.ITERATION_LIMIT
        ends.append(objective(found.point, penalty))
    # Weights on the large column are small, so the penalty hardly counts there.
    assert ends[1] < ends[0]
