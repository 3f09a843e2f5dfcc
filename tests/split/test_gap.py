"""Division of lifted rows: by planes that lie where the gap is."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from taxarbor.assign import assign_two, size_bounds
from taxarbor.rows import as_rows
from taxarbor.split import GapSplitter, Refusal, SplitTask
from taxarbor.split._gap import RIDGE, SAMPLE, TOL, keep_ties

LIFT = 10.0


def lifted(X, dtype="float64", n_threads=1):
    """Return rows about their mean, in units of their spread, with a constant at the end."""
    Z = X - X.mean(axis=0)
    spread = np.sqrt((Z**2).sum(axis=1).mean()) or 1.0
    values = np.column_stack([Z / spread, np.full(len(X), LIFT)]).astype(dtype)
    return as_rows(values, n_threads=n_threads)


def split(rows, *, seed=0, path=(), **options):
    return GapSplitter(**options).split(SplitTask(rows, path, (), 2, seed))


def test_a_gap_off_the_mean_is_found(same_partition):
    """The mean lies inside the larger cluster, and so does every plane through it."""
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = np.concatenate([rng.uniform(0.0, 10.0, 210), rng.uniform(16.0, 17.0, 90)])[:, None]
        order = rng.permutation(300)
        X, truth = X[order], np.repeat([0, 1], [210, 90])[order]
        assert X[truth == 0].max() > X.mean()
        for dtype in ("float32", "float64"):
            assert same_partition(split(lifted(X, dtype)).labels, truth)


def test_blobs_far_apart(same_partition):
    rng = np.random.default_rng(0)
    for share in (0.3, 0.5, 0.7):
        truth = (rng.random(400) < share).astype(np.intp)
        X = rng.standard_normal((400, 5)) + 15.0 * truth[:, None]
        assert same_partition(split(lifted(X)).labels, truth)


def test_sizes_are_within_bounds():
    for n_rows in (100, SAMPLE + 500):
        rows = lifted(np.random.default_rng(2).standard_normal((n_rows, 4)) ** 3)
        for balance in ((0.9, 1.1), (0.5, 1.5), (0.0, 2.0)):
            for min_size in (1, 20, n_rows // 2):
                sizes = np.bincount(split(rows, balance=balance, min_size=min_size).labels)
                assert max(balance[0] * n_rows / 2, min_size) <= sizes.min()
                assert sizes.max() <= min(balance[1] * n_rows / 2, n_rows - 1)
        refused = split(rows, min_size=n_rows // 2 + 1)
        assert isinstance(refused, Refusal)
        told = f"too few for 2 children of at least {n_rows // 2 + 1} rows (it takes "
        assert told in refused.reason


def test_threads_seeds_and_paths():
    for n_rows in (300, 20 * SAMPLE):
        X = np.random.default_rng(3).standard_normal((n_rows, 5))
        one, two = (split(lifted(X, n_threads=n)) for n in (1, 2))
        np.testing.assert_array_equal(one.labels, two.labels)
        assert (one.score, one.info) == (two.score, two.info)
    rows = lifted(np.random.default_rng(3).standard_normal((400, 5)))
    for change in ("seed", "path"):
        values = range(6) if change == "seed" else [(k,) for k in range(6)]
        labels = {split(rows, n_init=1, **{change: v}).labels.tobytes() for v in values}
        assert len(labels) > 1


def test_more_starts_are_never_worse_and_no_round_raises_the_objective():
    for seed in range(5):
        rows = lifted(np.random.default_rng(seed).standard_normal((300, 7)))
        found = [split(rows, n_init=n) for n in (1, 2, 3, 6)]
        for one in found:
            assert (np.diff(one.info.trace) <= 1e-12).all()
        assert all(b.score >= a.score * (1.0 - 1e-5) for a, b in pairwise(found))


def test_a_leaf_is_ranked_by_its_gap():
    """The scatter between the children, by hand, for the root of the objective."""
    rows = lifted(np.random.default_rng(6).standard_normal((200, 4)))
    Z = rows.scores(np.eye(5))
    found = split(rows)
    means = np.stack([Z[found.labels == k].mean(axis=0) for k in range(2)])
    between = (means[found.labels] ** 2).sum(axis=1).mean()
    assert found.score == pytest.approx(200 * between / np.sqrt(found.objective))


def test_the_objective_is_nearly_the_least_for_the_labels():
    """A general minimiser, given the labels, gets no further than the tolerance allows."""
    for dtype, seed in product(("float32", "float64"), range(4)):
        X = np.random.default_rng(seed).standard_normal((250, 3)) ** 3
        rows = lifted(X, dtype)
        Z = rows.scores(np.eye(4)).astype(np.float64)
        ridge = RIDGE / 2.0 * (Z**2).sum(axis=1).mean()
        Z[:, -1] = LIFT
        found = split(rows)
        sign = np.where(found.labels == 0, 1.0, -1.0)

        def objective(d, Z=Z, sign=sign, ridge=ridge):
            return 0.5 * (np.maximum(1.0 - sign * (Z @ d), 0.0) ** 2).mean() + ridge * (d @ d)

        least = minimize(objective, np.zeros(4), method="BFGS").fun
        assert least * (1.0 - 1e-4) <= found.objective <= least * (1.0 + 2.0 * TOL)


def test_children_are_numbered_by_their_first_rows():
    for n_rows in (200, SAMPLE + 300):
        for seed in range(4):
            rows = lifted(np.random.default_rng(seed).standard_normal((n_rows, 3)))
            labels = split(rows).labels
            assert (labels[0], labels.dtype) == (0, np.int8)


# ---- ties ----


def keep_ties_slowly(scores, labels, min_size):
    """Give every set of rows with equal scores, one by one, the label that most of it has."""
    together = labels.copy()
    for score in np.unique(scores):
        same = scores == score
        together[same] = np.bincount(labels[same], minlength=2).argmax()
    sizes = np.bincount(together, minlength=2)
    return together if sizes.min() >= min_size else labels


@settings(max_examples=200)
@given(
    n_rows=st.integers(4, 40),
    n_values=st.integers(1, 12),
    shift=st.integers(-4, 4),
    low=st.floats(0.0, 1.0),
    min_size=st.integers(1, 5),
    seed=st.integers(0, 2**31),
)
def test_ties_are_kept_as_by_looking_at_all_of_them(
    n_rows, n_values, shift, low, min_size, seed
):
    rng = np.random.default_rng(seed)
    scores = (rng.integers(-n_values, n_values + 1, n_rows) + shift) / 2.0
    labels = assign_two(scores, *size_bounds(n_rows, 2, low, 2.0 - low))
    before = labels.copy()
    found = keep_ties(scores, labels, min_size)
    np.testing.assert_array_equal(found, keep_ties_slowly(scores, labels, min_size))
    np.testing.assert_array_equal(labels, before)


def test_rows_of_equal_scores_stay_together():
    scores = np.array([3.0, 1.0, 1.0, 1.0, -2.0])
    torn = np.array([0, 0, 1, 1, 1], np.int8)
    assert keep_ties(scores, torn).tolist() == [0, 1, 1, 1, 1]
    assert keep_ties(scores, np.array([0, 0, 0, 1, 1], np.int8)).tolist() == [0, 0, 0, 0, 1]
    # Rather torn than one child less, or one too small.
    assert keep_ties(np.ones(3), np.array([0, 1, 1], np.int8)).tolist() == [0, 1, 1]
    assert keep_ties(scores, torn, 2).tolist() == torn.tolist()


def test_a_cluster_below_the_bound_is_not_torn():
    """The least size of a child would take equal rows from the larger cluster."""
    for sizes in ((40, 40, 5), (100, 3, 3), (5, 1, 60)):
        X = np.repeat([[0.0, 0.0], [1.0, 0.0], [30.0, 30.0]], sizes, axis=0)
        labels = split(lifted(X)).labels
        parts = np.split(labels, np.cumsum(sizes)[:-1])
        assert all(len(set(part.tolist())) == 1 for part in parts)
        assert set(labels.tolist()) == {0, 1}
        least = split(lifted(X), min_size=20).labels
        assert np.bincount(least).min() >= 20


def test_what_the_sample_does_not_see():
    """Three rows of thousands differ: no sample has them, and yet the node is divided."""
    X = np.zeros((6 * SAMPLE, 2))
    X[[5, 99, 4000]] = [3.0, 1.0]
    for seed in range(3):
        labels = split(lifted(X), seed=seed).labels
        assert np.flatnonzero(labels).tolist() == [5, 99, 4000]
        assert np.bincount(split(lifted(X), seed=seed, min_size=50).labels).min() >= 50
    for seed in range(30):
        rng = np.random.default_rng(seed)
        X = np.tile(rng.standard_normal(3), (SAMPLE * rng.integers(1, 3), 1))
        far = int(rng.integers(len(X)))
        X[far] += 1.0
        labels = split(lifted(X), seed=seed).labels
        assert np.bincount(labels).min() == 1
        assert np.count_nonzero(labels == labels[far]) == 1
