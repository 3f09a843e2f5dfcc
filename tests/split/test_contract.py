"""One contract over every splitter of rows: what any of them owes to the growth loop.

``GapSplitter``, which finds planes on samples, has another: see ``test_gap_splitter.py``, and
``tests/clusters/test_find.py`` for the rows that it divides.
"""

from itertools import product

import numpy as np
import pytest

from taxarbor import Taxonomy
from taxarbor.split import MaxMarginSplitter, Refusal, Regularizer, Split
from taxarbor.tree import TreeBuilder
from tests.split.conftest import draw, rows_of, same_partition, task_of

BOTH = Regularizer("group+exclusive", 0.03, 0.02, True)
GROUP = Regularizer("group", 0.003, 0.0, True)
FREE = (0.0, 99.0)
SPLITTERS = {
    "margins": MaxMarginSplitter(BOTH, (0.5, 1.5)),
    "margins, one origin": MaxMarginSplitter(BOTH, (0.9, 1.1), center="data"),
    "margins, pqn": MaxMarginSplitter(BOTH, (0.5, 1.5), solver="pqn"),
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
    """Return clusters that are far apart, and which row is in which."""
    rng = np.random.default_rng(7)
    truth = rng.permutation(np.arange(K * n_rows) % K)
    X = rng.normal(size=(len(truth), 4)) + 60.0 * np.eye(K, 4 + K)[truth, :4]
    X[:, 0] += 40.0 * truth
    return np.ascontiguousarray(X, dtype=dtype), truth


def everything(split):
    parts = [split.labels, split.rule.weights, split.rule.center, split.rule.offsets]
    return [part.tobytes() for part in parts], split.score, split.objective, split.info


def test_what_a_split_holds(name, splitter):
    for (kind, dtype), K, deep in product(ALL_KINDS, NUMBERS, (False, True)):
        rows = rows_of(draw(K, dtype=dtype), kind)
        task = task_of(rows, K, deep=deep)
        split = splitter.split(task)
        assert isinstance(split, Split)
        assert split.labels.shape == (rows.n_rows,)
        assert set(split.labels.tolist()) == set(range(K))
        assert type(split.score) is float
        assert np.isfinite(split.score)
        assert np.isfinite(split.objective)
        assert split.objective >= 0.0
        trace = np.array(split.info.trace)
        assert len(trace) == split.info.n_iter + 1
        if dtype == "float64" and "pqn" not in name:
            assert (np.diff(trace) <= 0.0).all()
            assert trace[-1] == split.objective
        assert split.info.n_passes > 0.0
        assert split.rule.weights.shape == (K, rows.n_features)
        assert split.rule.dtype == dtype
        center = task.origin if "one origin" in name else rows.center
        np.testing.assert_array_equal(split.rule.center, center.astype(dtype))


def test_a_split_depends_on_its_task_alone(splitter):
    for kind, (K, n_rows) in product(KINDS, ((2, 70), (NUMBERS[-1], 500))):
        X, other = draw(K, n_rows=n_rows, distance=1.0), draw(2, n_rows=90, seed=5)
        first = everything(splitter.split(task_of(rows_of(X, kind), K)))
        splitter.split(task_of(rows_of(other, kind), 2, seed=8))
        for n_threads in (1, 2):
            assert everything(splitter.split(task_of(rows_of(X, kind, n_threads), K))) == first


def test_ties_do_not_hang_on_the_number_of_threads(splitter):
    X = np.argwhere(np.ones((40, 40))).astype(np.float64, order="C")
    for kind in KINDS:
        one, two = (splitter.split(task_of(rows_of(X, kind, n), 2)) for n in (1, 2))
        assert everything(one) == everything(two)


def test_far_clusters_are_split(splitter):
    for K in NUMBERS:
        first = None
        for kind, dtype in ALL_KINDS:
            X, truth = blobs(K, dtype=dtype)
            tasks = [task_of(rows_of(X, kind), K, seed=seed) for seed in range(4)]
            splits = [splitter.split(task) for task in tasks]
            right = [same_partition(split.labels, truth) for split in splits]
            # One start may end with two clusters in one child.
            assert any(right) if K > 2 else all(right)
            first = first or splits[0]
            assert same_partition(splits[0].labels, first.labels)
            np.testing.assert_allclose(splits[0].score, first.score, rtol=1e-2)


def route(X, split):
    """Where a tree of this one split sends the rows."""
    builder = TreeBuilder(X.shape[0])
    builder.add_split(0, split.labels, split.rule)
    return Taxonomy(builder.freeze()).predict(X)


@pytest.mark.parametrize("name", FOLLOWED, indirect=True)
def test_the_rule_repeats_the_labels(splitter):
    for (kind, dtype), K, offset in product(ALL_KINDS, (2, 3, 5), (0.0, 1e4)):
        X = (draw(K, n_rows=900, distance=1.0) + offset).astype(dtype)
        split = splitter.split(task_of(rows_of(X, kind), K, deep=offset == 0.0))
        np.testing.assert_array_equal(route(X, split), split.labels)


# ---- refusals: reasons, never exceptions ----


def test_few_rows(splitter):
    for kind, K in product(KINDS, NUMBERS):
        for n_rows in (1, 2 * K - 1):
            rows = rows_of(draw(K, n_rows=2 * K - 1), kind).take(np.arange(n_rows))
            refused = splitter.split(task_of(rows, K))
            assert isinstance(refused, Refusal)
            assert "too few" in refused.reason
        split = splitter.split(task_of(rows_of(draw(K, n_rows=2 * K), kind), K))
        assert set(split.labels.tolist()) == set(range(K))


def test_equal_rows(splitter):
    """Also in a child of duplicates, below a node that has other rows too."""
    for (kind, dtype), value in product(ALL_KINDS, (0.0, 1.0, 0.1, 1e6 / 3)):
        for n_rows, K in ((37, 2), (300, NUMBERS[-1])):
            X = np.full((n_rows, 4), value, dtype=dtype)
            assert isinstance(splitter.split(task_of(rows_of(X, kind), K)), Refusal)
        X = np.random.default_rng(0).normal(size=(140, 2)).astype(dtype)
        X[:99] = value, 0.1
        task = task_of(rows_of(X, kind).take(np.arange(99)), 2, deep=True)
        assert isinstance(splitter.split(task), Refusal)


@pytest.mark.parametrize("K", NUMBERS)
def test_equal_rows_stay_together(splitter, K):
    rng = np.random.default_rng(3)
    places = rng.normal(size=(6, 3))
    tables = {
        "few places": np.repeat(places[: K - 1], 20, axis=0),
        "one place in front": np.repeat(places, [60, 1, 2, 3, 1, 1], axis=0),
        "yes or no": (rng.random((120, 4)) < 0.4).astype(float),
    }
    for name, X in tables.items():
        group = np.unique(X, axis=0, return_inverse=True)[1].reshape(-1)
        for kind in KINDS:
            split = splitter.split(task_of(rows_of(X, kind), K))
            if isinstance(split, Refusal):
                assert name != "yes or no"
                continue
            assert name != "few places"
            pairs = np.unique(np.stack([group, split.labels], axis=1), axis=0)
            assert len(pairs) == group.max() + 1
            assert np.bincount(split.labels, minlength=K).all()
