"""Rows that are far and alone are found; groups, tails and clean data lose nothing."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn import datasets
from sklearn.metrics import adjusted_rand_score

from taxarbor import HierarchicalKMeans, Taxarbor
from taxarbor._run import Run
from taxarbor.refine import Survey, _outliers, find_outliers
from taxarbor.refine._outliers import COMPANY, MIDDLE, REFERENCE
from taxarbor.sweep import LocalEngine, _copies, blocks_of
from taxarbor.sweep._copies import Copies


def blobs(n_rows, seed, n_features=8):
    """Return groups of unequal size and spread, far from the origin, and their labels."""
    rng = np.random.default_rng(seed)
    labels = np.sort(rng.choice(4, n_rows, p=[0.5, 0.3, 0.15, 0.05]))
    centers = rng.uniform(-8.0, 8.0, (4, n_features)) + 40.0
    noise = rng.uniform(0.5, 1.5, 4)[labels, None] * rng.standard_normal((n_rows, n_features))
    return centers[labels] + noise, labels


def with_far(X, distances, seed):
    """Return data and, after it, rows in random directions, so many spreads away."""
    rng = np.random.default_rng(seed)
    spread = np.sqrt(X.var(axis=0).sum())
    away = rng.standard_normal((len(distances), X.shape[1]))
    away *= spread * np.asarray(distances)[:, None] / np.linalg.norm(away, axis=1)[:, None]
    return np.vstack([X, X.mean(axis=0) + away])


def found_in(X, seed=0, counts=None, sizes=None, pool=None):
    """Return what is found of rows in blocks of these sizes, or as they are in memory."""
    blocks = blocks_of(X, LocalEngine(Run(pool=pool)))
    if sizes is not None:
        edges = np.cumsum(sizes)
        data = [X[last - size : last] for size, last in zip(sizes, edges, strict=True)]
        blocks = dataclasses.replace(blocks, data=data, sizes=np.asarray(sizes))
    stops = np.cumsum(blocks.sizes)
    column = None if counts is None else np.split(counts.astype(np.int32), stops[:-1])
    copies = Copies.once(blocks.sizes)
    if column is not None:
        copies = Copies.of(column, blocks.engine)
    some = Survey.of(blocks, copies, seed).sample[:MIDDLE]
    return find_outliers(blocks, column, copies.first, seed, some)


def named(X, seed=0, **options):
    """Return the positions of the rows that are found."""
    found = found_in(X, seed, **options).counts
    return [] if found is None else np.flatnonzero(np.concatenate(found) == 0).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_exactly_the_far_rows_are_named(dtype, kind):
    for seed in range(3):
        X, _ = blobs(600, seed)
        assert named(kind(X.astype(dtype)), seed) == []
        # The farthest neither hides the others nor overflows.
        for distances in ([30.0], [1e5], [1e15], [1e5, 30.0, 12.0], [1e30] * 9 + [1e5, 12.0]):
            planted = kind(with_far(X, distances, seed).astype(dtype))
            expected = list(range(600, 600 + len(distances)))
            assert named(planted, seed) == expected
            with ThreadPoolExecutor(2) as pool:
                assert named(planted, seed, sizes=[500, len(distances), 100], pool=pool) == (
                    expected
                )


def test_of_many_a_part_stands_for_all():
    X, _ = blobs(30_000, 0, n_features=3)
    rng = np.random.default_rng(1)
    group = X.mean(axis=0) + 5000.0 * np.eye(3)[0] + rng.standard_normal((300, 3))
    planted = with_far(np.vstack([X, group]), 1e5 * rng.uniform(0.01, 1.0, 1500), 2)
    assert len(planted) - len(X) > REFERENCE
    assert set(named(planted)) == set(range(30_300, 31_800))


def test_groups_are_no_outliers():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        cloud = rng.standard_normal((1980, 20))
        for far in (10.0, 50.0, 1e5):  # one row in a hundred
            group = far * np.sqrt(20.0) * np.eye(20)[0] + rng.standard_normal((20, 20))
            assert named(np.vstack([cloud, group]), seed) == []
        small = [
            rng.uniform(-40.0, 40.0, 20) + spread * rng.standard_normal((30, 20))
            for spread in (0.5, 1.0, 2.0, 3.0, 4.0)
        ]
        assert named(np.vstack([cloud, *small]), seed) == []
        # So are equal rows, if they are not just a few.
        for copies in (1, COMPANY, COMPANY + 1):
            row = np.full((copies, 20), 1e15)
            expected = list(range(1980, 1980 + copies)) if copies <= COMPANY else []
            assert named(np.vstack([cloud, row]), seed) == expected


def test_clean_data_lose_nothing(data):
    toys = [datasets.load_iris, datasets.load_wine, datasets.load_breast_cancer]
    real = [
        np.ascontiguousarray(load().data)
        for load in [*toys, datasets.load_digits, datasets.load_diabetes]
    ]
    for X in [*real, *data.values()]:
        assert named(X) == []
        assert named(sparse.csr_array(X)) == []
    for X in real[:3]:
        assert named((X - X.mean(axis=0)) / X.std(axis=0)) == []
    rng = np.random.default_rng(0)
    shares = 1.0 / np.arange(1.0, 41.0) ** 1.5
    rare = np.eye(40)[rng.choice(40, 2000, p=shares / shares.sum())]
    assert named(np.hstack([rare, rng.standard_normal((2000, 2))])) == []
    mostly_equal = np.eye(40)[np.r_[np.zeros(950, int), rng.integers(1, 40, 50)]]
    assert named(mostly_equal) == []
    assert named(with_far(mostly_equal, [1e5], 0)) == [1000]


def test_tails_lose_next_to_nothing():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        for X in (
            rng.lognormal(sigma=1.0, size=(5000, 8)),
            rng.standard_t(3, (5000, 8)),
            rng.poisson(rng.gamma(0.1, 3.0, (5000, 8))).astype(float),
        ):
            assert len(named(X, seed)) <= 15


def test_few_or_equal_rows_have_none():
    for n_rows in range(1, 11):
        assert named(np.r_[np.zeros(n_rows - 1), 1e9][:, None]) == []
    assert named(np.ones((50, 3))) == []
    assert named(np.r_[np.arange(10.0), 1e9][:, None]) == [10]


def test_the_tree_is_not_spoilt():
    X, labels = blobs(1000, 3)

    def score(model, planted):
        return adjusted_rand_score(labels, model.fit(planted).labels_[:1000])

    ours, other = Taxarbor(4, random_state=0), HierarchicalKMeans(4, random_state=0)
    for share in (0.001, 0.01, 0.05):
        for far in (100.0, 1e5):
            planted = with_far(X, np.full(int(share * 1000), far), 1)
            assert score(ours, planted) >= score(ours, X) - 0.02
    assert score(other, planted) < score(other, X) - 0.2


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_nothing_depends_on_how_rows_lie_in_blocks(kind):
    for seed, n_far in ((0, 12), (1, 1400)):
        rng = np.random.default_rng(seed)
        X = with_far(blobs(15_000, seed)[0], rng.uniform(5.0, 300.0, n_far), seed)
        X, n = kind(X[rng.permutation(len(X))].astype(np.float32)), len(X)
        whole = found_in(X, seed)
        assert sum((part == 0).sum() for part in whole.counts) > 10
        for n_blocks in (2, 7, 40):
            sizes = np.diff([0, *np.sort(rng.choice(n - 1, n_blocks)) + 1, n])
            parts = found_in(X, seed, sizes=sizes[sizes > 0])
            assert np.array_equal(np.concatenate(parts.counts), np.concatenate(whole.counts))
            assert np.array_equal(parts.middle, whole.middle)
            assert parts.reach == whole.reach


@pytest.mark.parametrize("n_far", [10, 700])
def test_counts_are_repeated_rows(n_far):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = with_far(blobs(9000, seed)[0], rng.uniform(5.0, 300.0, n_far), seed)
        counts = rng.integers(0, 4, len(X))
        counts[-3:] = 2, COMPANY, COMPANY + 1
        index = np.repeat(np.arange(len(X)), counts)
        one, other = found_in(X, seed, counts=counts), found_in(X[index], seed)
        assert np.array_equal(one.middle, other.middle)
        assert one.reach == other.reach
        left, repeated = np.concatenate(one.counts), np.concatenate(other.counts)
        assert np.array_equal((left == 0)[index], repeated == 0)
        assert np.array_equal(left[left > 0], counts[left > 0])
        assert (left[counts == 0] == 0).all()
        if n_far == 10:  # all others are compared with: the last row has company
            assert left[-3:].tolist() == [0, 0, COMPANY + 1]


def test_where_the_others_are_is_told():
    X = with_far(blobs(3000, 0)[0], [1e5], 0)
    found = found_in(X)
    away = np.linalg.norm(X - found.middle, axis=1)
    assert found.reach == pytest.approx(away[:-1].max())
    assert np.linalg.norm(found.middle - X[:-1].mean(axis=0)) < 0.5 * np.median(away)
    clean = found_in(X[:-1])
    assert clean.counts is None


def test_many_far_rows_are_never_all_brought_together(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30_000, 3))
    X[:3000] *= rng.uniform(8.0, 30.0, (3000, 1))
    drawn = []

    def draw(*told, **how):
        drawn.append(len(_copies.draw(*told, **how).parts))
        return _copies.draw(*told, **how)

    monkeypatch.setattr(_outliers, "draw", draw)
    for seed in range(6):
        drawn.clear()
        found_in(X, seed, sizes=[30_000])
        assert len(drawn) == 1  # those to compare far rows with
        assert REFERENCE <= drawn[0] < 1.5 * REFERENCE
