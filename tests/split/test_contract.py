"""One contract over every splitter of rows: what any of them owes to the growth loop.

What finds planes on samples, ``GapSplitter``, has another: see ``test_gap.py``, and
``tests/refine/test_field.py`` for the rows that it divides.
"""

import pickle

import numpy as np
import pytest

from taxarbor.split import MaxMarginSplitter, Refusal, Regularizer, Split
from taxarbor.tree import TreeBuilder

BOTH = Regularizer("group+exclusive", 0.03, 0.02, True)
GROUP = Regularizer("group", 0.003, 0.0, True)
FREE = (0.0, 99.0)
SPLITTERS = {
    "margins": MaxMarginSplitter(BOTH, (0.5, 1.5)),
    "margins, one origin": MaxMarginSplitter(BOTH, (0.9, 1.1), center="data"),
    "margins, free": MaxMarginSplitter(GROUP, FREE, tol=1e-4),
    "margins, free, one origin": MaxMarginSplitter(GROUP, FREE, tol=1e-4, center="data"),
}
FOLLOWED = [name for name in SPLITTERS if name.startswith("margins, free")]
NUMBERS = (2, 3, 5)
KINDS = ("dense", "sparse")
ALL_KINDS = [(kind, dtype) for kind in KINDS for dtype in ("float32", "float64")]


@pytest.fixture(params=SPLITTERS)
def name(request):
    return request.param


@pytest.fixture
def splitter(name):
    return SPLITTERS[name]


def blobs(K, n_rows=40, dtype="float64"):
    """Return clusters that nobody could miss, and which row is in which."""
    rng = np.random.default_rng(7)
    truth = rng.permutation(np.arange(K * n_rows) % K)
    X = rng.normal(size=(len(truth), 4)) + 60.0 * np.eye(K, 4 + K)[truth, :4]
    X[:, 0] += 40.0 * truth
    return np.ascontiguousarray(X, dtype=dtype), truth


def everything(split):
    parts = [split.labels, split.rule.weights, split.rule.center, split.rule.offsets]
    arrays = [part.tobytes() for part in parts]
    return arrays, split.score, split.objective, split.info


def test_what_a_split_holds(draw, rows_of, task_of, name, splitter):
    for kind, dtype in ALL_KINDS:
        for K in NUMBERS:
            for deep in (False, True):
                rows = rows_of(draw(K, dtype=dtype), kind)
                task = task_of(rows, K, deep=deep)
                found = splitter.split(task)
                assert isinstance(found, Split)
                assert found.labels.shape == (rows.n_rows,)
                assert set(found.labels.tolist()) == set(range(K))
                assert type(found.score) is float
                assert np.isfinite(found.score)
                assert np.isfinite(found.objective)
                assert found.objective >= 0.0
                assert found.rule.weights.shape == (K, rows.n_features)
                assert found.rule.dtype == dtype
                center = task.origin if "one origin" in name else rows.center
                np.testing.assert_array_equal(found.rule.center, center.astype(dtype))


def test_what_a_split_tells_of_its_way(draw, rows_of, task_of, splitter):
    for kind in KINDS:
        for K in NUMBERS[:2]:
            for deep in (False, True):
                rows = rows_of(draw(K, distance=1.0), kind)
                found = splitter.split(task_of(rows, K, deep=deep))
                trace = np.array(found.info.trace)
                assert len(trace) == found.info.n_iter + 1
                assert (np.diff(trace) <= 0.0).all()
                assert trace[-1] == found.objective
                assert found.info.n_passes > 0.0


def test_a_split_depends_on_its_task_alone(draw, rows_of, task_of, splitter):
    for kind in KINDS:
        for K, n_rows in ((2, 70), (NUMBERS[-1], 500)):
            X, other = draw(K, n_rows=n_rows, distance=1.0), draw(2, n_rows=90, seed=5)
            first = everything(splitter.split(task_of(rows_of(X, kind), K)))
            splitter.split(task_of(rows_of(other, kind), 2, seed=8))
            for n_threads in (1, 2):
                again = splitter.split(task_of(rows_of(X, kind, n_threads), K))
                assert everything(again) == first
            copy, task = pickle.loads(pickle.dumps((splitter, task_of(rows_of(X, kind), K))))
            assert everything(copy.split(task)) == first


def test_ties_do_not_hang_on_the_number_of_threads(rows_of, task_of, splitter):
    X = np.argwhere(np.ones((40, 40))).astype(np.float64, order="C")
    for kind in KINDS:
        one, two = (splitter.split(task_of(rows_of(X, kind, n), 2)) for n in (1, 2))
        assert everything(one) == everything(two)


def test_clusters_that_nobody_could_miss(rows_of, task_of, same_partition, splitter):
    for kind, dtype in ALL_KINDS:
        for K in NUMBERS:
            X, truth = blobs(K, dtype=dtype)
            tasks = [task_of(rows_of(X, kind), K, seed=seed) for seed in range(4)]
            right = [same_partition(splitter.split(task).labels, truth) for task in tasks]
            # One start may end with two clusters in one child.
            assert any(right) if K > 2 else all(right)


def test_kinds_and_types_agree(rows_of, task_of, same_partition, splitter):
    for K in NUMBERS[:2]:
        first, *others = (
            splitter.split(task_of(rows_of(blobs(K, dtype=dtype)[0], kind), K))
            for kind, dtype in ALL_KINDS
        )
        for found in others:
            assert same_partition(found.labels, first.labels)
            np.testing.assert_allclose(found.score, first.score, rtol=1e-2)


def routed(X, found):
    """Where a tree of this one split sends the rows."""
    builder = TreeBuilder(X.shape[0])
    builder.add_split(0, found.labels, found.rule)
    return builder.freeze().predict(X)


@pytest.mark.parametrize("name", FOLLOWED, indirect=True)
def test_the_rule_repeats_the_labels(draw, rows_of, task_of, splitter):
    for kind, dtype in ALL_KINDS:
        for K in (2, 3, 5):
            for offset in (0.0, 1e4):
                X = (draw(K, n_rows=900, distance=1.0) + offset).astype(dtype)
                found = splitter.split(task_of(rows_of(X, kind), K, deep=offset == 0.0))
                np.testing.assert_array_equal(routed(X, found), found.labels)


# ---- refusals: reasons, never exceptions ----


def test_few_rows(draw, rows_of, task_of, splitter):
    for kind in KINDS:
        for K in NUMBERS:
            refused = splitter.split(task_of(rows_of(draw(K, n_rows=2 * K - 1), kind), K))
            assert isinstance(refused, Refusal)
            assert f"{2 * K - 1} rows are too few for {K} children" in refused.reason
            found = splitter.split(task_of(rows_of(draw(K, n_rows=2 * K), kind), K))
            assert set(found.labels.tolist()) == set(range(K))
    one = splitter.split(task_of(rows_of(draw(2)).take(np.arange(1)), 2))
    assert one == Refusal("1 row is too few for 2 children (it takes 4)")


def test_equal_rows(rows_of, task_of, splitter):
    for kind, dtype in ALL_KINDS:
        for value in (0.0, 1.0, 0.1, 1e6 / 3):
            for n_rows, K in ((37, 2), (300, NUMBERS[-1])):
                X = np.full((n_rows, 4), value, dtype=dtype)
                refused = splitter.split(task_of(rows_of(X, kind), K))
                assert isinstance(refused, Refusal)
                assert f"its {n_rows} rows are" in refused.reason


def test_equal_rows_among_others(rows_of, task_of, splitter):
    """A child of duplicates, below a node that has other rows too."""
    for kind, dtype in ALL_KINDS:
        for row in ((0.1, 0.1), (1e6 / 3, 0.1), (0.1, 0.0), (0.0, 0.0)):
            X = np.random.default_rng(0).normal(size=(140, 2)).astype(dtype)
            X[:99] = row
            rows = rows_of(X, kind)
            task = task_of(rows.take(np.arange(99)), 2, deep=True)
            refused = splitter.split(task)
            assert isinstance(refused, Refusal)
            assert "its 99 rows are" in refused.reason


@pytest.mark.parametrize("K", NUMBERS)
def test_equal_rows_stay_together(rows_of, task_of, splitter, K):
    rng = np.random.default_rng(3)
    places = rng.normal(size=(6, 3))
    tables = {
        "few places": np.repeat(places[: K - 1], 20, axis=0),
        "one place in front": np.repeat(places, [60, 1, 2, 3, 1, 1], axis=0),
        "yes or no": (rng.random((120, 4)) < 0.4).astype(float),
    }
    for told, X in tables.items():
        group = np.unique(X, axis=0, return_inverse=True)[1].reshape(-1)
        for kind in KINDS:
            found = splitter.split(task_of(rows_of(X, kind), K))
            if isinstance(found, Refusal):
                assert told != "yes or no"
                continue
            assert told != "few places"
            pairs = np.unique(np.stack([group, found.labels], axis=1), axis=0)
            assert len(pairs) == group.max() + 1
            assert np.bincount(found.labels, minlength=K).all()
