"""Planes that lie where the gap is, found on lifted rows."""

from itertools import pairwise, product

import numpy as np
from scipy.optimize import minimize

from taxarbor.clusters._find import PLANE_ROWS, RIDGE, GapPlane, GapSplitter
from taxarbor.split import Refusal
from tests.split.conftest import draw, same_partition

LIFT = 10.0
STARTS = ("principal", "ward", "far_rows", "ward", "ward", "ward")
DTYPES = ("float32", "float64")


def lifted(X, dtype="float32"):
    """Return rows about their mean, in units of their spread, with a constant at the end."""
    Z = X - X.mean(axis=0)
    spread = np.sqrt((Z**2).sum(axis=1).mean()) or 1.0
    return np.column_stack([Z / spread, np.full(len(X), LIFT)]).astype(dtype)


def find(Z, *, seed=0, n_rows=None, **options):
    return GapSplitter(**options).find(Z, len(Z) if n_rows is None else n_rows, seed)


def sides(Z, plane):
    return (Z.astype(np.float64) @ plane.weights + plane.offset < 0.0).astype(np.intp)


def test_a_gap_off_the_mean_is_found():
    """The mean lies inside the larger cluster, and so does every plane through it."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = np.concatenate([rng.uniform(0.0, 10.0, 210), rng.uniform(16.0, 17.0, 90)])[:, None]
        order = rng.permutation(300)
        X, truth = X[order], np.repeat([0, 1], [210, 90])[order]
        assert X[truth == 0].max() > X.mean()
        for dtype in DTYPES:
            Z = lifted(X, dtype)
            assert same_partition(sides(Z, find(Z)), truth)


def test_more_starts_are_never_worse_and_no_round_raises_the_objective():
    for seed in range(5):
        Z = lifted(np.random.default_rng(seed).standard_normal((300, 7)))
        found = [find(Z, starts=STARTS[:n]) for n in (1, 2, 3, 6)]
        for one in found:
            assert (np.diff(one.info.trace) <= 1e-12).all()
        assert all(b.gap >= a.gap * (1.0 - 1e-5) for a, b in pairwise(found))


def test_the_objective_is_nearly_the_least_for_the_labels():
    """A general minimiser, given the labels, gets no further than the tolerance allows."""
    for dtype, seed in product(DTYPES, range(4)):
        Z = lifted(np.random.default_rng(seed).standard_normal((250, 3)) ** 3, dtype)
        found = find(Z)
        Z = Z.astype(np.float64)
        scores = Z @ found.weights + found.offset
        n_high = np.clip(np.count_nonzero(scores >= 0.0), *GapSplitter().bounds(250, 250))
        sign = np.where(np.argsort(np.argsort(-scores)) < n_high, 1.0, -1.0)
        Z[:, :-1] -= Z[:, :-1].mean(axis=0)
        ridge = RIDGE / 2.0 * (Z[:, :-1] ** 2).sum(axis=1).mean()

        def objective(d, Z=Z, sign=sign, ridge=ridge):
            return 0.5 * (np.maximum(1.0 - sign * (Z @ d), 0.0) ** 2).mean() + ridge * (d @ d)

        least = minimize(objective, np.zeros(4), method="BFGS").fun
        assert least * (1.0 - 1e-4) <= found.info.trace[-1] <= least * (1.0 + 2.0 * 0.02)


def test_few_or_equal_rows_are_refused():
    """With a reason, never an exception."""
    for n_rows in (1, 2, 3):
        refused = find(lifted(draw(2, n_rows=n_rows)))
        assert isinstance(refused, Refusal)
        assert "too few" in refused.reason
    assert isinstance(find(lifted(draw(2, n_rows=4))), GapPlane)
    for n_rows in (100, PLANE_ROWS + 500):
        Z = lifted(draw(2, n_rows=min(n_rows, PLANE_ROWS)))
        least = n_rows // 2 + 1
        assert isinstance(find(Z, n_rows=n_rows, min_size=least), Refusal)
        assert isinstance(find(Z, n_rows=n_rows, min_size=least - 1), GapPlane)
    for dtype, value, n_rows in product(DTYPES, (0.0, 1.0, 0.1, 1e6 / 3), (37, 300)):
        Z = np.full((n_rows, 5), value, dtype=dtype)
        Z[:, -1] = LIFT
        assert isinstance(find(Z, n_rows=5000), Refusal)
