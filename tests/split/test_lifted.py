"""Division of lifted rows: by planes that lie where the gap is."""

from itertools import pairwise

import numpy as np
import pytest
from taxarbor.split._lifted import keep_ties, lift, number_by_first, scatter_between

from taxarbor.rows import as_rows
from taxarbor.split import LiftedSplitter, Refusal, Split, SplitTask

LIFT = 10.0


def lifted(X, dtype="float64", n_threads=1):
    """Return rows about their mean, in units of their spread, with a constant at the end."""
    Z = X - X.mean(axis=0)
    spread = np.sqrt((Z**2).sum(axis=1).mean()) or 1.0
    values = np.column_stack([Z / spread, np.full(len(X), LIFT)]).astype(dtype)
    return as_rows(values, n_threads=n_threads)


def split(rows, K=2, seed=0, balance=(0.5, 1.5), n_init=6, **changes):
    task = SplitTask(rows, (), (), K, seed)
    return LiftedSplitter(balance, n_init, 0.02, **changes).split(task)


def same_groups(one, other):
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return len(pairs) == len(set(one.tolist())) == len(set(other.tolist()))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("seed", range(5))
def test_a_gap_off_the_mean_is_found(dtype, seed):
    """The mean lies inside the larger group, and so does every plane through it."""
    rng = np.random.default_rng(seed)
    X = np.concatenate([rng.uniform(0.0, 10.0, 210), rng.uniform(16.0, 17.0, 90)])[:, None]
    truth = np.repeat([0, 1], [210, 90])
    order = rng.permutation(300)
    X, truth = X[order], truth[order]
    assert X[truth == 0].max() > X.mean()
    rows = lifted(X, dtype)
    assert same_groups(split(rows).labels, truth)
    assert not same_groups(split(rows, has_intercept=False).labels, truth)


@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
def test_blobs_far_apart(share):
    rng = np.random.default_rng(0)
    truth = (rng.random(400) < share).astype(np.intp)
    X = rng.standard_normal((400, 5)) + 15.0 * truth[:, None]
    assert same_groups(split(lifted(X)).labels, truth)


@pytest.mark.parametrize("K", [3, 4])
def test_several_blobs(K):
    rng = np.random.default_rng(1)
    truth = np.arange(300) % K
    X = rng.standard_normal((300, 6)) + 20.0 * np.eye(6)[truth]
    found = split(lifted(X), K)
    assert same_groups(found.labels, truth)
    assert found.rule is None
    assert found.score > 0.0


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("balance", [(0.9, 1.1), (0.5, 1.5), (0.0, 3.0)])
@pytest.mark.parametrize("n_rows", [100, 2500])
def test_sizes_are_within_bounds(K, balance, n_rows):
    X = np.random.default_rng(2).standard_normal((n_rows, 4)) ** 3
    found = split(lifted(X), K, balance=balance, n_init=2)
    sizes = np.bincount(found.labels, minlength=K)
    assert max(np.floor(balance[0] * n_rows / K), 1) <= sizes.min()
    assert sizes.max() <= np.ceil(min(balance[1] * n_rows / K, n_rows))


@pytest.mark.parametrize("n_rows", [300, 2600])
@pytest.mark.parametrize("K", [2, 3])
def test_the_same_for_any_number_of_threads(n_rows, K):
    X = np.random.default_rng(3).standard_normal((n_rows, 5))
    one, two = (split(lifted(X, n_threads=n), K) for n in (1, 2))
    np.testing.assert_array_equal(one.labels, two.labels)
    assert one.score == two.score
    assert one.info == two.info


def test_the_seed_counts():
    X = np.random.default_rng(3).standard_normal((400, 5))
    one, same = (split(lifted(X), seed=0) for _ in range(2))
    np.testing.assert_array_equal(one.labels, same.labels)
    assert len({split(lifted(X), seed=seed).labels.tobytes() for seed in range(6)}) > 1


@pytest.mark.parametrize("K", [2, 3])
def test_the_objective_never_rises(K):
    X = np.random.default_rng(4).standard_normal((300, 7))
    for n_init in range(1, 7):
        found = split(lifted(X), K, n_init=n_init)
        assert isinstance(found, Split)
        assert (np.diff(found.info.trace) <= 1e-12).all()
        assert found.objective == found.info.trace[-1]
        assert found.info.n_iter == len(found.info.trace) - 1


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("by", ["gap", "scatter"])
def test_more_starts_are_never_worse(K, by):
    X = np.random.default_rng(5).standard_normal((300, 7))
    found = [
        split(lifted(X), K, n_init=n, choose_by=by, grow_by=by).score for n in (1, 2, 3, 6)
    ]
    assert all(b >= a * (1.0 - 1e-5) for a, b in pairwise(found))


def test_what_a_leaf_is_ranked_by():
    rows = lifted(np.random.default_rng(6).standard_normal((200, 4)))
    score = {
        by: split(rows, grow_by=by)
        for by in ("gap", "scatter", "objective", "variance", "size")
    }
    found = score["gap"]
    between = scatter_between(rows, found.labels, 2)
    n, objective = 200, found.objective
    assert score["size"].score == n
    assert score["variance"].score == pytest.approx(n * rows.norms().mean())
    assert score["scatter"].score == pytest.approx(n * between)
    assert score["objective"].score == pytest.approx(n / objective)
    assert score["gap"].score == pytest.approx(n * between / np.sqrt(objective))


def test_equal_rows_are_refused():
    refused = split(lifted(np.ones((20, 3))))
    assert isinstance(refused, Refusal)
    assert "20 rows are equal" in refused.reason


@pytest.mark.parametrize(("n_rows", "K"), [(1, 2), (3, 2), (5, 3)])
def test_too_few_rows_are_refused(n_rows, K):
    refused = split(lifted(np.arange(float(n_rows))[:, None]), K)
    assert isinstance(refused, Refusal)
    assert f"{n_rows} rows are too few" in refused.reason


def test_scatter_by_hand():
    rng = np.random.default_rng(7)
    X, labels = rng.standard_normal((50, 3)), rng.integers(0, 3, 50).astype(np.int32)
    rows = as_rows(X)
    means = np.stack([X[labels == k].mean(axis=0) for k in range(3)]) - X.mean(axis=0)
    expected = (means[labels] ** 2).sum(axis=1).mean()
    assert scatter_between(rows, labels, 3) == pytest.approx(expected)


def test_lifting_keeps_the_last_feature():
    rows = lift(lifted(np.random.default_rng(8).standard_normal((30, 3))))
    scores = rows.scores(np.eye(4))
    assert (scores[:, -1] == LIFT).all()
    np.testing.assert_allclose(scores[:, :-1].mean(axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ([0, 1, 2], [0, 1, 2]),
        ([2, 2, 0, 1, 0], [0, 0, 1, 2, 1]),
        ([1, 0, 2, 2], [0, 1, 2, 2]),
        ([2, 1, 0], [0, 1, 2]),
    ],
)
def test_children_are_numbered_by_their_first_rows(labels, expected):
    given = np.array(labels, dtype=np.int8)
    found = number_by_first(given, 3)
    assert found.tolist() == expected
    assert found.dtype == given.dtype


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("n_rows", [200, 2300])
def test_the_first_row_is_in_the_first_child(K, n_rows):
    X = np.random.default_rng(9).standard_normal((n_rows, 3))
    labels = split(lifted(X), K, n_init=2).labels
    first = [int(np.argmax(labels == child)) for child in range(K)]
    assert first == sorted(first)
    assert first[0] == 0


def test_rows_of_equal_scores_stay_together():
    scores = np.array([3.0, 1.0, 1.0, 1.0, -2.0])[:, None]
    assert keep_ties(scores, np.array([0, 0, 1, 1, 1], np.int8), 2).tolist() == [0, 1, 1, 1, 1]
    assert keep_ties(scores, np.array([0, 0, 0, 1, 1], np.int8), 2).tolist() == [0, 0, 0, 0, 1]
    # Rather torn than one child less.
    one = np.array([1.0, 1.0, 1.0])[:, None]
    assert keep_ties(one, np.array([0, 1, 1], np.int8), 2).tolist() == [0, 1, 1]
    three = np.array([[3.0, 0.0, 0.0]] * 4 + [[0.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    torn = np.array([0, 0, 0, 1, 1, 2], np.int32)
    assert keep_ties(three, torn, 3).tolist() == [0, 0, 0, 0, 1, 2]


@pytest.mark.parametrize("sizes", [(40, 40, 5), (100, 3, 3), (5, 1, 60)])
def test_a_group_below_the_bound_is_not_torn(sizes):
    """The least size of a child would take equal rows from the larger group."""
    X = np.repeat([[0.0, 0.0], [1.0, 0.0], [30.0, 30.0]], sizes, axis=0)
    found = split(lifted(X))
    assert all(
        len(set(part.tolist())) == 1 for part in np.split(found.labels, np.cumsum(sizes)[:-1])
    )
    assert set(found.labels.tolist()) == {0, 1}
