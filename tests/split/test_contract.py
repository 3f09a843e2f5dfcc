"""One contract over every splitter: what any of them owes to the growth loop."""

import pickle

import numpy as np
import pytest

from taxarbor.hierarchy import HierarchyBuilder
from taxarbor.split import (
    CRITERIA,
    KMeansSplitter,
    MaxMarginSplitter,
    Refusal,
    Regularizer,
    SpectralSplitter,
    Split,
)

FREE = (0.0, 99.0)
MARGINS = {
    "margins": MaxMarginSplitter(Regularizer("group+exclusive", 0.03, 0.02, True), (0.5, 1.5)),
    "margins, free": MaxMarginSplitter(Regularizer("group", 0.003, 0.0, True), FREE, tol=1e-4),
}
KMEANS = {f"k-means, {name}": KMeansSplitter(name) for name in CRITERIA}
SPECTRAL = {f"spectral, {name}": SpectralSplitter(name) for name in CRITERIA}
SPLITTERS = {**MARGINS, **KMEANS, **SPECTRAL}
BY_PLACE = {**KMEANS, **SPECTRAL}
KINDS = ("dense", "sparse")
DTYPES = ("float32", "float64")


@pytest.fixture(params=list(SPLITTERS))
def splitter(request):
    return SPLITTERS[request.param]


@pytest.fixture(params=list(BY_PLACE))
def baseline(request):
    return BY_PLACE[request.param]


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(params=DTYPES)
def dtype(request):
    return request.param


def blobs(K, n_rows=40, dtype="float64"):
    """Return groups that nobody could miss, and which row is in which."""
    rng = np.random.default_rng(7)
    truth = rng.permutation(np.arange(K * n_rows) % K)
    X = rng.normal(size=(len(truth), 4)) + 60.0 * np.eye(K, 4 + K)[truth, :4]
    X[:, 0] += 40.0 * truth
    return np.ascontiguousarray(X, dtype=dtype), truth


def same_partition(one, other):
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return len(pairs) == len(set(one.tolist())) == len(set(other.tolist()))


def everything(split):
    rule = split.rule
    arrays = (split.labels, rule.weights, rule.center, rule.offsets)
    return [array.tobytes() for array in arrays], split.score, split.objective, split.info


@pytest.mark.parametrize("deep", [False, True], ids=["root", "deep"])
@pytest.mark.parametrize("K", [2, 3, 5])
def test_what_a_split_holds(draw, rows_of, task_of, splitter, kind, dtype, K, deep):
    X = draw(K, dtype=dtype)
    found = splitter.split(task_of(rows_of(X, kind), K, deep=deep))
    assert isinstance(found, Split)
    assert found.labels.shape == (len(X),)
    assert set(found.labels.tolist()) == set(range(K))
    assert found.rule.n_children == K
    assert found.rule.weights.shape == (K, X.shape[1])
    assert found.rule.dtype == dtype
    assert type(found.score) is float
    assert np.isfinite(found.score)
    assert np.isfinite(found.objective)
    assert found.objective >= 0.0


@pytest.mark.parametrize("K", [2, 3])
def test_what_a_split_tells_of_its_way(draw, rows_of, task_of, splitter, kind, K):
    info = (found := splitter.split(task_of(rows_of(draw(K), kind), K))).info
    assert len(info.trace) == info.n_iter + 1
    assert (np.diff(info.trace) <= 0.0).all()
    assert info.trace[-1] == found.objective
    assert info.n_passes > 0.0


@pytest.mark.parametrize("n_rows", [70, 500])  # below and above spectral's MAX_DENSE
@pytest.mark.parametrize("K", [2, 3])
def test_a_split_depends_on_its_task_alone(draw, rows_of, task_of, splitter, kind, K, n_rows):
    X, other = draw(K, n_rows=n_rows, distance=1.0), draw(2, n_rows=90, seed=5)
    first = everything(splitter.split(task_of(rows_of(X, kind), K)))
    splitter.split(task_of(rows_of(other, kind), 2, seed=8))
    for n_threads in (1, 2):
        again = splitter.split(task_of(rows_of(X, kind, n_threads), K))
        assert everything(again) == first
    copy, task = pickle.loads(pickle.dumps((splitter, task_of(rows_of(X, kind), K))))
    assert everything(copy.split(task)) == first


def test_ties_do_not_hang_on_the_number_of_threads(rows_of, task_of, splitter, kind):
    X = np.argwhere(np.ones((40, 40))).astype(np.float64, order="C")
    one, two = (splitter.split(task_of(rows_of(X, kind, n), 2)) for n in (1, 2))
    assert everything(one) == everything(two)


@pytest.mark.parametrize("K", [2, 3, 5])
def test_groups_that_nobody_could_miss(rows_of, task_of, splitter, kind, dtype, K):
    X, truth = blobs(K, dtype=dtype)
    splits = [splitter.split(task_of(rows_of(X, kind), K, seed=seed)) for seed in range(4)]
    right = [same_partition(found.labels, truth) for found in splits]
    # One start may end with two groups in one child.
    assert any(right) if K > 2 else all(right)


@pytest.mark.parametrize("K", [2, 3])
def test_kinds_and_types_agree(rows_of, task_of, splitter, K):
    splits = [
        splitter.split(task_of(rows_of(blobs(K, dtype=dtype)[0], kind), K))
        for kind in KINDS
        for dtype in DTYPES
    ]
    for found in splits[1:]:
        assert same_partition(found.labels, splits[0].labels)
        np.testing.assert_allclose(found.score, splits[0].score, rtol=1e-2)


@pytest.mark.parametrize("distance", [0.5, 3.0])
@pytest.mark.parametrize("K", [2, 3, 5])
def test_dense_and_sparse_agree(draw, rows_of, task_of, baseline, K, distance):
    X = draw(K, distance=distance, n_rows=180)
    dense, csr = (baseline.split(task_of(rows_of(X, kind), K)) for kind in KINDS)
    assert same_partition(dense.labels, csr.labels)
    np.testing.assert_allclose(dense.score, csr.score, rtol=1e-9)
    np.testing.assert_allclose(dense.objective, csr.objective, rtol=1e-6, atol=1e-12)


def routed(X, found):
    """Where a tree of this one split sends the rows."""
    builder = HierarchyBuilder(X.shape[0])
    builder.add_split(0, found.labels, found.rule)
    return builder.freeze().predict(X)


@pytest.mark.parametrize("name", ["margins, free", *KMEANS])
@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("K", [2, 3, 5])
def test_the_rule_repeats_the_labels(draw, rows_of, task_of, name, kind, dtype, K, offset):
    X = (draw(K, n_rows=900, distance=1.0) + offset).astype(dtype)
    found = SPLITTERS[name].split(task_of(rows_of(X, kind), K))
    np.testing.assert_array_equal(routed(X, found), found.labels)


@pytest.mark.parametrize("offset", [0.0, 1e4])
@pytest.mark.parametrize("K", [2, 3, 5])
def test_the_rule_is_the_nearest_mean(draw, rows_of, task_of, baseline, kind, dtype, K, offset):
    X = (draw(K, n_rows=300, distance=1.0) + offset).astype(dtype)
    found = baseline.split(task_of(rows_of(X, kind), K))
    Z = X.astype(np.float64) - X.mean(axis=0, dtype=np.float64)
    means = np.array([Z[found.labels == k].mean(axis=0) for k in range(K)])
    distances = np.square(Z[:, None] - means).sum(axis=2)
    own = distances[np.arange(len(X)), routed(X, found)]
    slack = 1e-5 if dtype == "float32" else 1e-11
    assert (own - distances.min(axis=1)).max() <= slack * distances.max()


# ---- refusals: reasons, never exceptions ----


@pytest.mark.parametrize("K", [2, 3, 5])
def test_too_few_rows(draw, rows_of, task_of, splitter, kind, K):
    refused = splitter.split(task_of(rows_of(draw(K, n_rows=2 * K - 1), kind), K))
    assert isinstance(refused, Refusal)
    assert f"{2 * K - 1} rows are too few for {K} children" in refused.reason


@pytest.mark.parametrize("K", [2, 3, 5])
def test_just_enough_rows(draw, rows_of, task_of, splitter, kind, K):
    found = splitter.split(task_of(rows_of(draw(K, n_rows=2 * K), kind), K))
    assert set(found.labels.tolist()) == set(range(K))


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("n_rows", [37, 300])
@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1e6 / 3])
def test_equal_rows(rows_of, task_of, splitter, kind, dtype, n_rows, value, K):
    X = np.full((n_rows, 4), value, dtype=dtype)
    refused = splitter.split(task_of(rows_of(X, kind), K))
    assert isinstance(refused, Refusal)
    assert f"its {n_rows} rows are" in refused.reason


@pytest.mark.parametrize("row", [(0.1, 0.1), (1e6 / 3, 0.1), (0.0, 0.0)])
def test_equal_rows_among_others(rows_of, task_of, splitter, kind, dtype, row):
    X = np.random.default_rng(0).normal(size=(140, 2)).astype(dtype)
    X[:99] = row
    refused = splitter.split(task_of(rows_of(X, kind).take(np.arange(99)), 2))
    assert isinstance(refused, Refusal)
    assert "its 99 rows are" in refused.reason


@pytest.mark.parametrize("copies", [3, 40, 300])
@pytest.mark.parametrize("K", [3, 5])
def test_fewer_different_rows_than_children(
    draw, rows_of, task_of, baseline, kind, dtype, K, copies
):
    X = np.repeat(draw(2, n_rows=K - 1, dtype=dtype), copies, axis=0)
    refused = baseline.split(task_of(rows_of(X, kind), K))
    assert isinstance(refused, Refusal)
    n_rows = (K - 1) * copies
    reasons = (f"its {n_rows} rows are in fewer than {K} places", f"{n_rows} rows are too few")
    assert refused.reason.startswith(reasons)


@pytest.mark.parametrize("K", [2, 3, 5])
def test_as_many_different_rows_as_children(draw, rows_of, task_of, baseline, kind, dtype, K):
    X = np.repeat(draw(2, n_rows=K, dtype=dtype), 40, axis=0)
    found = baseline.split(task_of(rows_of(X, kind), K))
    assert same_partition(found.labels, np.repeat(np.arange(K), 40))
    np.testing.assert_allclose(found.objective, 0.0, atol=1e-5)
