"""Labels and weights in turn: every way of running the rounds ends in the same place."""

import numpy as np
import pytest
from taxarbor.split._forms import MultiForm, PairForm

from taxarbor._types import Status
from taxarbor.assign import size_bounds
from taxarbor.optim import ProximalNewton, ProximalQuasiNewton, first_point
from taxarbor.rows import PairProblem
from taxarbor.split import KINDS, Regularizer
from taxarbor.split._alternate import Problem, Rounds
from taxarbor.split._starts import principal_start

BALANCE = (0.6, 1.4)


def usage_of(n_features):
    return np.random.default_rng(3).uniform(0.2, 1.0, n_features)


def problem_of(rows, kind, form, K, **changes):
    spread = float(rows.spread().max())
    strengths = {"alpha": 0.05, "beta": 0.05} | changes.pop("strengths", {})
    penalty = Regularizer(kind, **strengths, relative=True).at(
        usage_of(rows.n_features), spread, K
    )
    tol = changes.pop("tol", 1e-10)
    solver = changes.pop("solver", "newton")
    hold = changes.pop("hold", 0)
    return Problem(form, penalty, BALANCE, K, tol, tol * spread, solver, hold)


def start_of(rows, K, seed=0):
    return principal_start(rows, K, np.random.default_rng(seed))


def labels_of(problem, rows, centers):
    """Return the labels from which ``from_centers`` begins."""
    scores = rows.scores(centers)
    scores -= (0.5 * (centers**2).sum(axis=1)).astype(rows.dtype)
    return problem.form.start(scores, size_bounds(rows.n_rows, problem.n_children, *BALANCE))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("hold", [0, 1, 2, 4])
def test_compiled_and_general_rounds_agree(draw, rows_of, kind, storage, seed, hold):
    rows = rows_of(draw(2, distance=2.0, seed=seed), storage)
    pair = problem_of(rows, kind, PairForm(), 2, hold=hold)
    centers = start_of(rows, 2)
    compiled = pair.from_centers(rows, centers)

    loss = pair.form.loss(rows)
    penalty = pair.form.penalty(pair.penalty)
    point = first_point(loss, penalty, labels_of(pair, rows, centers))
    general = pair._run(Rounds(loss, penalty, ProximalNewton(), 1, 2, hold), point)

    multi = problem_of(rows, kind, MultiForm(2), 2, hold=hold).from_centers(rows, centers)

    np.testing.assert_allclose(compiled.trace[-1], general.trace[-1], rtol=1e-6)
    np.testing.assert_allclose(compiled.trace[-1], multi.trace[-1], rtol=1e-6)
    np.testing.assert_array_equal(compiled.labels, general.labels)
    np.testing.assert_array_equal(compiled.labels, multi.labels)
    np.testing.assert_allclose(compiled.W, general.W, atol=1e-4 * np.abs(compiled.W).max())
    ends = {Status.CONVERGED, Status.SETTLED, Status.STALLED}
    assert {compiled.status, general.status, multi.status} <= ends


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("hold", [1, 2, 3, 5])
def test_rows_are_held_for_as_many_rounds_in_both(draw, rows_of, monkeypatch, storage, hold):
    """Cut off after each round, both have the same labels.

    The compiled rounds count the first step from nowhere, the general ones begin after it.
    """
    rows = rows_of(draw(2, distance=0.7, seed=4), storage)
    pair = problem_of(rows, "l1", PairForm(), 2, hold=hold, tol=1e-14)
    centers = start_of(rows, 2)
    loss, penalty = pair.form.loss(rows), pair.form.penalty(pair.penalty)
    first = labels_of(pair, rows, centers)
    moved = []
    for n_rounds in range(hold + 1, hold + 4):  # fewer would hold them throughout
        monkeypatch.setattr("taxarbor.split._alternate.MAX_ALTERNATIONS", n_rounds)
        compiled = pair.from_centers(rows, centers)
        monkeypatch.setattr("taxarbor.split._alternate.MAX_ALTERNATIONS", n_rounds - 1)
        point = first_point(loss, penalty, first)
        general = pair._run(Rounds(loss, penalty, ProximalNewton(), 1, 2, hold), point)
        np.testing.assert_array_equal(compiled.labels, general.labels)
        np.testing.assert_allclose(compiled.trace[1:], general.trace, rtol=1e-8)
        moved.append(bool((compiled.labels != first).any()))
    assert moved[0]
    monkeypatch.setattr("taxarbor.split._alternate.MAX_ALTERNATIONS", hold)
    np.testing.assert_array_equal(pair.from_centers(rows, centers).labels, first)


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_labels_held_throughout_leave_only_the_weights(draw, rows_of, hinge, storage, dtype):
    """Held for all rounds, labels are fixed: the weights are the best ones for them."""
    X = draw(2, distance=0.5, dtype=dtype)
    rows = rows_of(X, storage)
    labels = (np.arange(len(X)) % 3 == 0).astype(np.int8)
    l1, ridge = np.full(rows.n_features, 0.01), 0.02
    found = rows.solve_pair(
        PairProblem(
            np.zeros(rows.n_features), labels, 50, (0, len(X)), l1, ridge, 1e-12, 1e-7, 50, 500
        )
    )
    np.testing.assert_array_equal(found.labels, labels)
    assert (np.diff(found.trace) <= 1e-6 * found.trace[0]).all()
    Z = X.astype(np.float64) - rows.center

    def objective(d):
        value = hinge(Z, np.stack([0.5 * d, -0.5 * d]), labels)
        return value + l1 @ np.abs(d) + ridge * d @ d

    best = objective(found.weights)
    np.testing.assert_allclose(found.trace[-1], best, rtol=1e-5)
    rng = np.random.default_rng(0)
    for size in (1e-1, 1e-2, 1e-3):
        for _ in range(20):
            step = size * rng.normal(size=rows.n_features)
            assert objective(found.weights + step) >= best * (1.0 - 1e-6)


def test_weights_of_other_rows_hold_nothing(draw, rows_of):
    """Held are the labels of a start; weights say which labels go with them."""
    rows = rows_of(draw(2, distance=0.7, seed=4))
    held, free = (problem_of(rows, "l1", PairForm(), 2, hold=hold) for hold in (5, 0))
    W = free.from_centers(rows, start_of(rows, 2)).W * 0.5
    one, other = held.from_weights(rows, W), free.from_weights(rows, W)
    np.testing.assert_array_equal(one.trace, other.trace)
    np.testing.assert_array_equal(one.labels, other.labels)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("K", [2, 3])
def test_both_solvers_agree(draw, rows_of, kind, K):
    rows = rows_of(draw(K, distance=6.0, seed=3))
    form = PairForm() if K == 2 else MultiForm(K)
    centers = start_of(rows, K)
    newton, pqn = (
        problem_of(rows, kind, form, K, solver=solver).from_centers(rows, centers)
        for solver in ("newton", "pqn")
    )
    np.testing.assert_array_equal(newton.labels, pqn.labels)
    np.testing.assert_allclose(newton.trace[-1], pqn.trace[-1], rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("solver", ["newton", "pqn"])
@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize(
    ("storage", "dtype"), [("dense", "float64"), ("sparse", "float64"), ("dense", "float32")]
)
def test_the_objective_never_rises(draw, rows_of, hinge, kind, solver, K, storage, dtype):
    X = draw(K, distance=1.0, dtype=dtype, n_rows=120)
    rows = rows_of(X, storage)
    form = PairForm() if K == 2 else MultiForm(K)
    problem = problem_of(rows, kind, form, K, solver=solver, tol=1e-5)
    far = problem.from_centers(rows, start_of(rows, K, seed=1))
    near = problem.from_weights(rows, 0.7 * far.W)
    slack = 1e-6 if dtype == "float32" else 1e-12
    lower, upper = size_bounds(len(X), K, *BALANCE)
    for found in (far, near):
        trace = np.array(found.trace)
        assert (np.diff(trace) <= slack * trace[:-1]).all()
        sizes = np.bincount(found.labels, minlength=K)
        assert lower <= sizes.min()
        assert sizes.max() <= upper
        W = form.weights(found.W)
        expected = hinge(X - rows.center, W, found.labels) + problem.penalty.value(W)
        np.testing.assert_allclose(trace[-1], expected, rtol=1e-5 if slack > 1e-9 else 1e-9)


@pytest.mark.parametrize("K", [2, 3])
def test_labels_and_weights_fit_each_other(draw, rows_of, K):
    """At the end neither step can lower the objective."""
    rows = rows_of(draw(K))
    form = PairForm() if K == 2 else MultiForm(K)
    problem = problem_of(rows, "group", form, K)
    found = problem.from_centers(rows, start_of(rows, K))
    bounds = size_bounds(rows.n_rows, K, *BALANCE)
    np.testing.assert_array_equal(form.assign(found.scores, bounds, found.labels), found.labels)
    loss, penalty = form.loss(rows), form.penalty(problem.penalty)
    point = loss.evaluate(found.W, found.labels)
    np.testing.assert_allclose(point.scores, found.scores, rtol=1e-12)
    violation = penalty.optimality(found.W, loss.gradient(point))
    assert violation <= 1e-8 * rows.spread().max()


@pytest.mark.parametrize("K", [2, 3, 5])
@pytest.mark.parametrize("solver", ["newton", "pqn"])
def test_going_on_from_weights_begins_no_higher(draw, rows_of, K, solver):
    """The labels that weights are given first are the best ones for them."""
    rows = rows_of(draw(K, distance=1.0, n_rows=120))
    form = PairForm() if K == 2 else MultiForm(K)
    problem = problem_of(rows, "l1", form, K, solver=solver, tol=1e-5)
    done = problem.from_centers(rows, start_of(rows, K, seed=1))
    again = problem.from_weights(rows, done.W)
    assert again.trace[0] <= done.trace[-1] * (1.0 + 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_hessian_of_some_features_at_a_time(draw, rows_of, monkeypatch, kind):
    """Inside the compiled rounds too, features take turns where not all of them fit."""
    rows = rows_of(draw(2, distance=6.0, seed=3))
    problem = problem_of(rows, kind, PairForm(), 2, tol=1e-12)
    centers = start_of(rows, 2)
    whole = problem.from_centers(rows, centers)
    monkeypatch.setattr("taxarbor.split._alternate.MAX_WORKING", 2)
    monkeypatch.setattr("taxarbor.split._alternate.MAX_ALTERNATIONS", 1000)
    parts = problem.from_centers(rows, centers)
    np.testing.assert_array_equal(parts.labels, whole.labels)
    np.testing.assert_allclose(parts.trace[-1], whole.trace[-1], rtol=1e-6)


def test_rounds_are_limited(draw, rows_of, monkeypatch):
    monkeypatch.setattr("taxarbor.split._alternate.MAX_ALTERNATIONS", 2)
    rows = rows_of(draw(3, distance=0.5))
    for K in (2, 3):
        form = PairForm() if K == 2 else MultiForm(K)
        problem = problem_of(rows, "group", form, K, tol=0.0)
        found = problem.from_centers(rows, start_of(rows, K))
        assert found.status is Status.ITERATION_LIMIT
        assert len(found.trace) == 3


def test_sweeps_are_counted(draw, rows_of):
    rows = rows_of(draw(2))
    loose, tight = (
        problem_of(rows, "group", PairForm(), 2, tol=tol).from_centers(rows, start_of(rows, 2))
        for tol in (1e-1, 1e-10)
    )
    assert 1.0 <= loose.n_passes <= tight.n_passes


# ---- which solver "auto" picks ----


class Spy:
    """Notes which minimiser was made."""

    def __init__(self, made, minimiser):
        self._made, self._minimiser = made, minimiser

    def __call__(self):
        self._made.append(self._minimiser.__name__)
        return self._minimiser()


@pytest.fixture
def made(monkeypatch):
    names = []
    for minimiser in (ProximalNewton, ProximalQuasiNewton):
        monkeypatch.setattr(
            f"taxarbor.split._alternate.{minimiser.__name__}", Spy(names, minimiser)
        )
    return names


@pytest.mark.parametrize(
    ("n_features", "K", "kind", "alpha", "chosen"),
    [
        (2100, 2, "l2", 0.01, "pqn"),  # all features in use, too many for a Hessian
        (2100, 2, "l1", 0.5, "newton"),  # few in use
        (600, 2, "l2", 0.01, "pqn"),  # too many for a linear system
        (500, 2, "l2", 0.01, "newton"),  # fits: one model
        (2000, 2, "l1", 0.01, "newton"),
        (700, 3, "l2", 0.01, "pqn"),  # 2,100 weights in three models
        (700, 3, "group", 0.7, "newton"),
        (40, 3, "l2", 0.01, "newton"),
    ],
)
def test_auto(draw, rows_of, made, n_features, K, kind, alpha, chosen):
    rows = rows_of(draw(K, n_rows=16, n_features=n_features))
    form = PairForm() if K == 2 else MultiForm(K)
    problem = problem_of(
        rows, kind, form, K, solver="auto", tol=1e-1, strengths={"alpha": alpha}
    )
    centers = start_of(rows, K)
    labels = labels_of(problem, rows, centers)
    nothing = np.zeros((form.n_models, n_features))
    assert problem._choose_solver(rows, nothing, labels) == chosen
    found = problem.from_centers(rows, centers)
    assert problem._choose_solver(rows, found.W, None) == chosen
    compiled = chosen == "newton" and K == 2
    name = {"newton": "ProximalNewton", "pqn": "ProximalQuasiNewton"}[chosen]
    assert made == ([] if compiled else [name])
    assert found.W.any()
