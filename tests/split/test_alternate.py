"""Labels and weights in turn: every way of running the rounds ends in the same place."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from taxarbor._types import Status
from taxarbor.assign import assign_balanced, assign_two, size_bounds
from taxarbor.native import hinge_costs
from taxarbor.optim import HingeLoss, ProximalQuasiNewton
from taxarbor.optim._minimise import first_point
from taxarbor.rows import as_rows
from taxarbor.rows._problems import KwayProblem, PairProblem
from taxarbor.split import Regularizer
from taxarbor.split._alternate import Problem
from taxarbor.split._margins import KINDS
from taxarbor.split._starts import principal_start

BALANCE = (0.6, 1.4)
STORAGE = ("dense", "sparse")
MAX_ROUNDS = "taxarbor.split._alternate.MAX_ALTERNATIONS"


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


def problem_of(rows, kind, K, *, tol=1e-10, alpha=0.05, solver="newton"):
    spread = float(rows.spread().max())
    usage = np.random.default_rng(3).uniform(0.2, 1.0, rows.n_features)
    penalty = Regularizer(kind, alpha, 0.05, relative=True).at(usage, spread, K)
    return Problem(penalty, BALANCE, K, tol, tol * spread, solver)


def origins(rows):
    """Return the rows about their own mean, and about another point, as in the paper."""
    elsewhere = rows.center + 0.2 * rows.spread()
    return rows, rows.take(np.arange(rows.n_rows), center=elsewhere)


def start_of(rows, K, seed=0):
    return principal_start(rows, K, np.random.default_rng(seed))


def first_labels(rows, centers):
    """Return the labels from which ``from_centers`` begins with two children."""
    scores = rows.scores(centers)
    scores -= (0.5 * (centers**2).sum(axis=1)).astype(rows.dtype)
    return assign_two(scores[:, 0] - scores[:, 1], *size_bounds(rows.n_rows, 2, *BALANCE))


def run_general(problem, rows, labels):
    """Run the rounds for any number of children, a model per child, on two of them."""
    penalty, n = problem.penalty, rows.n_rows
    return rows.solve_kway(
        KwayProblem(
            start=np.zeros((2, rows.n_features)),
            labels=labels.astype(np.int32),
            bounds=size_bounds(n, 2, *problem.balance),
            group=penalty.group,
            l1=penalty.l1,
            ridge=penalty.ridge,
            tol=problem.tol,
            violation=problem.violation,
            max_alternations=1000,
            max_working=2048,
        )
    )


# ---- two children: the compiled solver, with the general path for its oracle ----


def hold_pair(rows, labels, penalty, tol):
    """Return d and the objective where single rounds end, each from the same labels."""
    d, l1 = np.zeros(rows.n_features), penalty.l1 + penalty.group / np.sqrt(2.0)
    rest = (0, rows.n_rows), l1, penalty.ridge / 2.0, 0.0, tol, 1, 2048
    for _ in range(500):
        found = rows.solve_pair(PairProblem(d, labels, *rest))
        if np.array_equal(found.weights, d):
            return d, found.trace[0]
        d = found.weights
    raise AssertionError("no end after 500 steps")


def test_given_labels_have_one_optimum(draw, rows_of, hinge, kind):
    """Compiled in d, and by quasi-Newton in two models: one convex problem."""
    for storage in STORAGE:
        for seed, distance in ((0, 0.5), (1, 2.0), (2, 6.0)):
            X = draw(2, distance=distance, seed=seed)
            for rows in origins(rows_of(X, storage)):
                problem = problem_of(rows, kind, 2)
                penalty, tol = problem.penalty, 1e-10 * float(rows.spread().max())
                for labels in (np.arange(len(X)) % 3 == 0, X[:, 0] > X[:, 0].mean()):
                    d, reached = hold_pair(rows, labels.astype(np.int8), penalty, tol)
                    W = np.stack([d, -d]) / 2.0
                    by_hand = hinge(X - rows.center, W, labels) + penalty.value(W)
                    np.testing.assert_allclose(reached, by_hand, rtol=1e-9)
                    loss = HingeLoss(rows, 2)
                    point = first_point(loss, penalty, labels.astype(np.int32))
                    general = (
                        ProximalQuasiNewton()
                        .minimise(loss, penalty, point, tol=tol, max_iter=5000)
                        .point
                    )
                    value = general.value + penalty.value(general.W)
                    np.testing.assert_allclose(reached, value, rtol=1e-6)


def test_compiled_and_general_rounds_agree(draw, rows_of, kind):
    """With labels that move, on clouds that are far apart, where the end is one."""
    ends = {Status.CONVERGED, Status.SETTLED, Status.STALLED}
    for storage in STORAGE:
        for seed in (0, 1, 2):
            for rows in origins(rows_of(draw(2, distance=6.0, seed=seed), storage)):
                centers = start_of(rows, 2)
                problem = problem_of(rows, kind, 2)
                compiled = problem.from_centers(rows, centers)
                general = run_general(problem, rows, first_labels(rows, centers))
                np.testing.assert_allclose(compiled.trace[-1], general.trace[-1], rtol=1e-6)
                np.testing.assert_array_equal(compiled.labels, general.labels)
                W = general.weights
                np.testing.assert_allclose(compiled.weights, W, atol=1e-4 * np.abs(W).max())
                assert {compiled.status, Status(general.status)} <= ends


def test_quasi_newton_agrees(draw, rows_of, kind):
    """The paper's own solver, on clouds that are far apart, where the end is one."""
    for K in (2, 3):
        for rows in origins(rows_of(draw(K, distance=6.0, seed=3))):
            centers = start_of(rows, K)
            newton, pqn = (
                problem_of(rows, kind, K, solver=solver).from_centers(rows, centers)
                for solver in ("newton", "pqn")
            )
            np.testing.assert_array_equal(newton.labels, pqn.labels)
            np.testing.assert_allclose(newton.trace[-1], pqn.trace[-1], rtol=1e-6)
            assert newton.W.shape == pqn.W.shape == (1 if K == 2 else K, rows.n_features)


def test_a_hessian_of_some_features_at_a_time(draw, rows_of, monkeypatch, kind):
    """Inside the compiled rounds too, features take turns where not all of them fit."""
    monkeypatch.setattr(MAX_ROUNDS, 1000)
    for K in (2, 3):
        rows = rows_of(draw(K, distance=6.0, seed=3))
        problem = problem_of(rows, kind, K, tol=1e-12)
        centers = start_of(rows, K)
        whole = problem.from_centers(rows, centers)
        with monkeypatch.context() as patch:
            patch.setattr("taxarbor.split._alternate.MAX_WORKING", 4 if K == 3 else 2)
            parts = problem.from_centers(rows, centers)
        np.testing.assert_array_equal(parts.labels, whole.labels)
        np.testing.assert_allclose(parts.trace[-1], whole.trace[-1], rtol=1e-6)


# ---- any number of children ----


def test_the_objective_never_rises(draw, rows_of, hinge, kind):
    for storage, dtype in (("dense", "float64"), ("sparse", "float64"), ("dense", "float32")):
        slack, close = (1e-6, 1e-5) if dtype == "float32" else (1e-12, 1e-9)
        for K in (2, 3, 5):
            X = draw(K, distance=1.0, dtype=dtype, n_rows=120)
            lower, upper = size_bounds(len(X), K, *BALANCE)
            for rows in origins(rows_of(X, storage)):
                for solver in ("newton", "pqn"):
                    problem = problem_of(rows, kind, K, solver=solver, tol=1e-5)
                    far = problem.from_centers(rows, start_of(rows, K, seed=1))
                    for found in (far, problem.from_weights(rows, 0.7 * far.W)):
                        trace = np.array(found.trace)
                        assert (np.diff(trace) <= slack * trace[:-1]).all()
                        sizes = np.bincount(found.labels, minlength=K)
                        assert lower <= sizes.min() <= sizes.max() <= upper
                        W = found.weights
                        value = hinge(X - rows.center, W, found.labels)
                        value += problem.penalty.value(W)
                        # In single precision d is rounded once more where two models end.
                        np.testing.assert_allclose(trace[-1], value, rtol=close)


def test_labels_and_weights_fit_each_other(draw, rows_of):
    """At the end neither step can lower the objective."""
    for K in (2, 3):
        for rows in origins(rows_of(draw(K))):
            problem = problem_of(rows, "group", K)
            found = problem.from_centers(rows, start_of(rows, K))
            np.testing.assert_array_equal(problem.assign(found.scores), found.labels)
            np.testing.assert_allclose(rows.scores(found.W), found.scores, rtol=1e-12)
            loss = HingeLoss(rows, K)
            point = loss.evaluate(found.weights, found.labels.astype(np.int32))
            violation = problem.penalty.optimality(point.W, loss.gradient(point))
            assert violation <= 1e-5 * rows.spread().max()


def test_an_assignment_costs_as_little_as_the_flows(draw, rows_of):
    """Whether it is a threshold, an argmax or a flow."""
    rng = np.random.default_rng(0)
    for K in (2, 3, 5):
        problem = problem_of(rows_of(draw(K)), "group", K)
        for size in (0.01, 1.0):
            for shift in (0.0, 2.0):
                scores = size * rng.normal(size=(80, K)) + shift * np.eye(K)[0]
                costs = hinge_costs(scores)
                flow = assign_balanced(costs, *size_bounds(80, K, *BALANCE))
                everyone, found = np.arange(80), problem.assign(scores)
                cheapest = costs[everyone, flow].sum()
                np.testing.assert_allclose(costs[everyone, found].sum(), cheapest, rtol=1e-9)
                if K == 2:
                    alone = problem.assign(scores[:, :1] - scores[:, 1:])
                    np.testing.assert_array_equal(alone, found)


def test_going_on_from_weights_begins_no_higher(draw, rows_of):
    """The labels that weights are given first are the best ones for them."""
    for K in (2, 3, 5):
        rows = rows_of(draw(K, distance=1.0, n_rows=120))
        for solver in ("newton", "pqn"):
            problem = problem_of(rows, "l1", K, solver=solver, tol=1e-5)
            done = problem.from_centers(rows, start_of(rows, K, seed=1))
            again = problem.from_weights(rows, done.W)
            assert again.trace[0] <= done.trace[-1] * (1.0 + 1e-12)


def test_rounds_are_limited_and_sweeps_counted(draw, rows_of, monkeypatch):
    rows = rows_of(draw(3, distance=0.5))
    for K in (2, 3):
        loose, tight = (
            problem_of(rows, "group", K, tol=tol).from_centers(rows, start_of(rows, K))
            for tol in (1e-1, 1e-10)
        )
        assert 1.0 <= loose.n_passes <= tight.n_passes
        with monkeypatch.context() as patch:
            patch.setattr(MAX_ROUNDS, 2)
            problem = problem_of(rows, "group", K, tol=0.0)
            found = problem.from_centers(rows, start_of(rows, K))
        assert found.status is Status.ITERATION_LIMIT
        assert len(found.trace) == 3


@pytest.mark.parametrize(
    ("n_features", "K", "kind", "alpha", "chosen"),
    [
        (2100, 2, "l2", 0.01, "newton"),  # all features in use, but few rows: along these
        (2100, 2, "l1", 0.5, "newton"),  # few in use
        (600, 2, "l2", 0.01, "newton"),
        (500, 2, "l2", 0.01, "newton"),  # fits: one model
        (2000, 2, "l1", 0.01, "newton"),
        (700, 3, "l2", 0.01, "pqn"),  # three models
        (6000, 3, "group", 0.001, "newton"),  # a few at a time
        (40, 3, "l2", 0.01, "newton"),
    ],
)
def test_which_solver_auto_picks(
    draw, rows_of, monkeypatch, n_features, K, kind, alpha, chosen
):
    made = []
    monkeypatch.setattr(
        "taxarbor.split._alternate.ProximalQuasiNewton",
        lambda: made.append("pqn") or ProximalQuasiNewton(),
    )
    rows = rows_of(draw(K, n_rows=16, n_features=n_features))
    problem = problem_of(rows, kind, K, solver="auto", tol=1e-1, alpha=alpha)
    found = problem.from_centers(rows, start_of(rows, K))
    assert found.W.any()
    assert made == ["pqn"] * (chosen == "pqn")


def test_auto_with_more_rows_than_a_linear_system_takes(draw, rows_of, monkeypatch):
    monkeypatch.setattr("taxarbor.split._alternate.MAX_SMOOTH", 20)
    for n_rows, n_features, chosen in ((20, 30, "span"), (22, 30, "pqn"), (22, 20, "newton")):
        rows = rows_of(draw(2, n_rows=n_rows, n_features=n_features))
        assert problem_of(rows, "l2", 2, solver="auto")._choose_way(rows) == chosen
    monkeypatch.setattr("taxarbor.split._alternate.MAX_SPAN", 100)
    rows = rows_of(draw(2, n_rows=8, n_features=30))
    assert problem_of(rows, "l2", 2, solver="auto")._choose_way(rows) == "pqn"


@pytest.mark.parametrize("K", [2, 3])
def test_along_the_rows(draw, rows_of, hinge, K):
    """As good as along all features, also where these are of very different sizes."""
    X = draw(K, n_rows=40, n_features=700)
    X *= np.logspace(-4, 0, 700)
    for storage in STORAGE:
        rows = rows_of(X, storage)
        near, far = (
            problem_of(rows, "l2", K, solver=solver, tol=1e-8) for solver in ("auto", "newton")
        )
        assert near._choose_way(rows) == "span"
        centers = start_of(rows, K)
        found, other = near.from_centers(rows, centers), far.from_centers(rows, centers)
        assert found.trace[-1] <= other.trace[-1] * (1.0 + 1e-5)
        value = hinge(X - rows.center, found.weights, found.labels)
        value += near.penalty.value(found.weights)
        np.testing.assert_allclose(found.trace[-1], value, rtol=1e-6)
        np.testing.assert_allclose(near.objective(found), value, rtol=1e-9)


def test_along_the_rows_features_are_barred(draw, rows_of):
    """As if they were not there, wherever they are seen from."""
    X = draw(2, n_rows=30, n_features=700)
    X[:, 3] = 9.0
    kept = np.arange(700) != 3
    part = rows_of(np.ascontiguousarray(X[:, kept]))
    whole = as_rows(X, center=np.insert(part.center, 3, 0.0))
    plain = problem_of(part, "l2", 2, solver="auto")
    barred = replace(plain, penalty=replace(plain.penalty, l1=(~kept).astype(float)))
    centers = start_of(part, 2)
    one = plain.from_centers(part, centers)
    other = barred.from_centers(whole, np.insert(centers, 3, 0.0, axis=1))
    assert not other.W[:, 3].any()
    np.testing.assert_array_equal(other.labels, one.labels)
    atol = 1e-6 * abs(one.W).max()
    np.testing.assert_allclose(other.W[:, kept], one.W, rtol=1e-6, atol=atol)


def test_along_the_rows_memory_is_that_of_the_rows(draw, rows_of):
    rows = rows_of(draw(2, n_rows=60, n_features=20_000))
    problem, centers = problem_of(rows, "l2", 2, solver="auto"), start_of(rows, 2)
    tracemalloc.start()
    try:
        problem.from_centers(rows, centers)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.6 * 60 * 20_000 * 8
