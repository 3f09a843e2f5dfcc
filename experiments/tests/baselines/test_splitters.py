"""K-means and the graph, against scikit-learn, brute force, and shapes one can see."""

import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_info

from experiments.baselines import KMeansSplitter, SpectralSplitter
from experiments.baselines._splitters import (
    CRITERIA,
    MAX_DENSE,
    MIN_WEIGHT,
    cluster_rows,
    divide_graph,
    find_neighbors,
    group_pieces,
    neighbor_graph,
)
from taxarbor._types import Status
from taxarbor.rows import as_rows
from taxarbor.split import Refusal, SplitTask
from taxarbor.split._alternate import far_rows

KINDS = ("dense", "sparse")
PRECISION = {"float32": 1e-5, "float64": 1e-12}
ALL_KINDS = [(kind, dtype) for kind in KINDS for dtype in PRECISION]
MODULE = "experiments.baselines._splitters"


def rng_of(seed=0):
    return np.random.default_rng(seed)


def draw(n_children, *, n_rows=150, n_features=6, distance=3.0, dtype="float64", seed=0):
    """Return K clouds of rows, some of their features noise."""
    rng = np.random.default_rng(seed)
    middles = np.zeros((n_children, n_features))
    middles[:, : n_features - 2] = rng.normal(size=(n_children, n_features - 2))
    X = rng.normal(size=(n_rows, n_features))
    X += distance * middles[rng.integers(0, n_children, n_rows)] + 5.0
    return np.ascontiguousarray(X, dtype=dtype)


def rows_of(X, kind="dense", n_threads=1):
    return as_rows(csr_array(X) if kind == "sparse" else X, n_threads=n_threads)


def task_of(rows, n_children, seed=0):
    return SplitTask(rows, (), (), n_children, seed, rows.center)


def same_partition(labels, others):
    """Return whether two labellings divide the rows alike."""
    pairs = set(zip(labels.tolist(), others.tolist(), strict=True))
    return len(pairs) == len(set(labels.tolist())) == len(set(others.tolist()))


# ---- k-means ----


def inertia(X, labels):
    """Mean squared distance from the means of the labels."""
    Z = X.astype(np.float64)
    clusters = [Z[labels == k] for k in np.unique(labels)]
    return sum(np.square(C - C.mean(axis=0)).sum() for C in clusters) / len(Z)


def is_fixed_point(X, labels, K):
    """Say whether each row is nearest to the mean of its own cluster."""
    Z = X.astype(np.float64)
    means = np.array([Z[labels == k].mean(axis=0) for k in range(K)])
    distances = np.square(Z[:, None] - means).sum(axis=2)
    own = distances[np.arange(len(Z)), labels]
    return bool((own - distances.min(axis=1)).max() <= 1e-5 * distances.max())


def test_scikit_learn_from_the_same_centers():
    for K in (2, 3, 6):
        for distance in (0.0, 1.0, 5.0):
            for seed in range(3):
                for kind, dtype in ALL_KINDS:
                    X = draw(K, distance=distance, dtype=dtype, seed=seed)
                    rows = rows_of(X, kind)
                    start = far_rows(rows, K, rng_of(seed)) + rows.center
                    split = cluster_rows(rows, K, 1, rng_of(seed))
                    oracle = KMeans(K, init=start, n_init=1, tol=0.0).fit(X.astype(float))
                    assert split.info.status is Status.CONVERGED
                    expected = oracle.inertia_ / len(X)
                    np.testing.assert_allclose(split.objective, expected, rtol=1e-5)
                    np.testing.assert_array_equal(split.labels, oracle.labels_)


def test_k_means_ends_in_a_fixed_point_and_never_rises():
    for kind, dtype in ALL_KINDS:
        for K in (2, 5):
            for offset in (0.0, 1e4):
                X = (draw(K, n_rows=400, distance=0.7, seed=K) + offset).astype(dtype)
                split = KMeansSplitter().split(task_of(rows_of(X, kind), K))
                assert split.info.status is Status.CONVERGED
                assert is_fixed_point(X, split.labels, K)
                precision = 1e-12 if (dtype, offset) == ("float64", 0.0) else 1e-5
                expected = inertia(X, split.labels)
                np.testing.assert_allclose(split.objective, expected, rtol=precision)
        for seed in range(5):
            X = draw(3, n_rows=700, distance=0.5, dtype=dtype, seed=seed)
            trace = cluster_rows(rows_of(X, kind), 4, 1, rng_of(seed)).info.trace
            assert len(trace) > 3
            assert (np.diff(trace) <= 0.0).all()
            assert trace[0] > trace[-1] > 0.0


def test_the_best_of_the_starts_is_kept():
    for kind in KINDS:
        rows = rows_of(draw(6, distance=2.0), kind)
        rng = rng_of(3)
        objectives = [cluster_rows(rows, 6, 1, rng).objective for _ in range(8)]
        assert np.argmin(objectives) > 0
        assert cluster_rows(rows, 6, 8, rng_of(3)).objective == min(objectives)
    for seed in range(3):
        X = draw(4, n_rows=60, distance=2.0, seed=seed)
        many = KMeansSplitter(n_init=30).split(task_of(rows_of(X), 4, seed=seed))
        oracle = KMeans(4, n_init=30, random_state=seed).fit(X)
        np.testing.assert_allclose(many.objective, oracle.inertia_ / len(X), rtol=0.01)


@pytest.mark.parametrize(
    ("constant", "limit", "status"),
    [("TOLERANCE", 0.02, Status.SETTLED), ("MAX_STEPS", 4, Status.ITERATION_LIMIT)],
)
def test_stopped_early(monkeypatch, constant, limit, status):
    """Labels follow the rule all the same, and the objective is not far from theirs."""
    monkeypatch.setattr(f"{MODULE}.{constant}", limit)
    for kind, dtype in ALL_KINDS:
        for K in (2, 3):
            X = draw(K, n_rows=3000, distance=0.0, dtype=dtype)
            split = KMeansSplitter().split(task_of(rows_of(X, kind), K))
            assert split.info.status is status
            rule = split.rule
            choice = ((X - rule.center) @ rule.weights.T + rule.offsets).argmax(axis=1)
            assert (choice != split.labels).mean() < 1e-3  # but for rounding, half-way
            assert inertia(X, split.labels) <= split.objective * (1.0 + 1e-6)
            np.testing.assert_allclose(inertia(X, split.labels), split.objective, rtol=0.02)
            assert status is Status.SETTLED or len(split.info.trace) == 4


def test_k_means_of_unusual_rows():
    for kind, dtype in ALL_KINDS:
        X = draw(1, dtype=dtype)
        X[17] += 1e5  # an outlier is a child
        labels = KMeansSplitter().split(task_of(rows_of(X, kind), 2)).labels
        assert np.flatnonzero(labels == labels[17]).tolist() == [17]
        line = np.arange(12, dtype=dtype)[:, None]
        labels = KMeansSplitter().split(task_of(rows_of(line, kind), 2)).labels
        assert np.count_nonzero(np.diff(labels)) == 1
        twice = np.repeat(np.array([[0.0, 1.0], [3.0, 1.0]], dtype), 20, axis=0)
        for n_init in (1, 5):
            refused = KMeansSplitter(n_init=n_init).split(task_of(rows_of(twice, kind), 3))
            assert refused == Refusal("its 40 rows are in fewer than 3 places")
    for K in (2, 3):
        X = draw(K)
        one = KMeansSplitter().split(task_of(rows_of(X), K))
        for scale in (1e-12, 1e12):
            other = KMeansSplitter().split(task_of(rows_of(X * scale), K))
            np.testing.assert_array_equal(one.labels, other.labels)
            np.testing.assert_allclose(other.score, one.score * scale, rtol=1e-9)
            np.testing.assert_allclose(other.objective, one.objective * scale**2, rtol=1e-9)


# ---- nearest other rows ----


def scattered(n_rows, seed=0):
    """Return rows with a good share of zeros, no two of them equally far apart."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 6)) * rng.uniform(0.3, 3.0, 6)
    X[:, 1:][rng.random((n_rows, 5)) < 0.5] = 0.0
    return X


def assert_nearest(X, neighbors, slack):
    """Check distances, and that each position has its; which of equally near ones is free."""
    distances, positions = neighbors
    exact = X.astype(np.longdouble)
    D = np.square(exact[:, None] - exact).sum(axis=2).astype(np.float64)
    np.fill_diagonal(D, np.inf)
    n_neighbors = positions.shape[1]
    assert distances.shape == positions.shape == (len(X), n_neighbors)
    assert (distances.dtype, positions.dtype) == (np.float64, np.intp)
    assert (np.diff(distances, axis=1) >= 0.0).all()
    assert all(len(set(row)) == n_neighbors for row in positions)
    own = np.take_along_axis(D, positions, axis=1)
    assert np.isfinite(own).all()  # no row is its own neighbour
    atol = slack * float(D[np.isfinite(D)].max())
    nearest = np.sort(D, axis=1)[:, :n_neighbors]
    np.testing.assert_allclose(np.square(distances), nearest, rtol=0.0, atol=atol)
    np.testing.assert_allclose(own, nearest, rtol=0.0, atol=atol)
    return np.argsort(D, axis=1)[:, :n_neighbors]


@pytest.mark.parametrize(("kind", "dtype"), ALL_KINDS)
def test_nearest_rows_are_those_of_all_distances(kind, dtype):
    slack = 1e-6 if dtype == "float32" else 1e-13
    for n_neighbors, n_threads in ((1, 1), (5, 2), (119, 1)):
        X = scattered(120).astype(dtype)
        assert_nearest(X, find_neighbors(rows_of(X, kind, n_threads), n_neighbors), slack)
    X = scattered(300).astype(dtype)
    neighbors = find_neighbors(rows_of(X, kind), 4)
    np.testing.assert_array_equal(neighbors[1], assert_nearest(X, neighbors, slack))
    X = (scattered(150) + 1e4).astype(dtype)  # an offset costs no digits
    assert_nearest(X, find_neighbors(rows_of(X, kind), 5), 1e-6)


@pytest.mark.parametrize(("kind", "dtype"), ALL_KINDS)
def test_a_row_is_no_neighbor_of_itself_but_its_copies_are(kind, dtype):
    for copies in (2, 4, 9):
        X = np.repeat(scattered(25), copies, axis=0).astype(dtype)
        distances, positions = find_neighbors(rows_of(X, kind), 5)
        assert_nearest(X, (distances, positions), 1e-6)
        same = positions // copies == np.arange(len(X))[:, None] // copies
        assert (same.sum(axis=1) == min(copies - 1, 5)).all()


@pytest.mark.parametrize(("kind", "dtype"), ALL_KINDS)
def test_neighbors_do_not_depend_on_threads_and_leave_their_limits(kind, dtype):
    # scikit-learn shares out the work in another way where there are few rows per thread.
    for side in (25, 40, 50, 60):
        X = np.argwhere(np.ones((side, side))).astype(dtype, order="C")  # many equally far
        one, *others = (find_neighbors(rows_of(X, kind, n), 5) for n in (1, 1, 2, 3, 7))
        for other in others:
            assert [part.tobytes() for part in one] == [part.tobytes() for part in other]
    rows, before = rows_of(scattered(60), kind), threadpool_info()
    find_neighbors(rows, 2)
    assert threadpool_info() == before


# ---- the graph ----


def test_weights_of_the_graph():
    for kind, dtype in ALL_KINDS:
        X = draw(3, n_rows=80, dtype=dtype)
        D = np.linalg.norm(X[:, None].astype(np.float64) - X, axis=2)
        np.fill_diagonal(D, np.inf)
        for n_neighbors in (1, 5, 30):
            graph = neighbor_graph(rows_of(X, kind), n_neighbors)
            nearest = np.argsort(D, axis=1)[:, :n_neighbors]
            is_edge = np.zeros(D.shape, dtype=bool)
            np.put_along_axis(is_edge, nearest, True, axis=1)
            width = np.take_along_axis(D, nearest, axis=1).mean()
            is_edge |= is_edge.T
            expected = np.where(is_edge, np.exp(-0.5 * np.square(D / width)), 0.0)
            close = 1e-5 if dtype == "float32" else 1e-12
            np.testing.assert_allclose(graph.toarray(), expected, atol=close)
            np.testing.assert_array_equal(graph.toarray() != 0.0, is_edge)
            assert graph.dtype == np.float64
            assert (graph != graph.T).nnz == 0
        scaled = neighbor_graph(rows_of(X * 1024, kind), 30)
        np.testing.assert_allclose(scaled.toarray(), graph.toarray(), rtol=1e-6)
    equal = neighbor_graph(rows_of(np.full((30, 3), 2.0)), 5)
    np.testing.assert_array_equal(equal.data, 1.0)


def rings(n_inner, n_outer, radius=3.0):
    """Return two concentric rings, and which row is on which."""
    rng = rng_of()
    truth = np.repeat([0, 1], [n_inner, n_outer])
    angles = np.concatenate([np.linspace(0, 2 * np.pi, n, False) for n in (n_inner, n_outer)])
    lengths = np.where(truth, radius, 1.0) + rng.normal(0.0, 0.02, len(truth))
    X = np.column_stack([np.cos(angles), np.sin(angles)]) * lengths[:, None]
    order = rng.permutation(len(X))
    return np.ascontiguousarray(X[order]), truth[order]


def test_rings_are_told_apart():
    for n_inner, n_outer in ((60, 90), (150, 300), (600, 900)):
        X, truth = rings(n_inner, n_outer)
        for kind, dtype in ALL_KINDS:
            task = task_of(rows_of(X.astype(dtype), kind), 2)
            assert same_partition(SpectralSplitter().split(task).labels, truth)
        assert not same_partition(KMeansSplitter(n_init=10).split(task).labels, truth)
    # In one piece: the inner ring has fewer rows than neighbours are asked for.
    for n_inner, n_neighbors in ((25, 30), (70, 75)):
        X, truth = rings(n_inner, 10 * n_inner, radius=10.0)
        rows = rows_of(X)
        assert connected_components(neighbor_graph(rows, n_neighbors))[0] == 1
        split = SpectralSplitter(n_neighbors=n_neighbors).split(task_of(rows, 2))
        assert same_partition(split.labels, truth)
        assert 0.0 < split.objective < 0.1


def test_a_line_is_cut_into_intervals():
    X = np.sort(rng_of().random(150))[:, None] + np.arange(150)[:, None]
    split = SpectralSplitter().split(task_of(rows_of(X), 3))
    assert np.count_nonzero(np.diff(split.labels)) == 2
    assert np.bincount(split.labels).min() > 20


def test_far_rows_are_a_part():
    """Their similarities vanish: the least weight keeps them in the graph.

    It then has two eigenvalues of 1, but for rounding; both vectors must be found.
    """
    for n_rows in (90, 1000):
        for seed in range(3):
            X = draw(1, n_rows=n_rows, seed=seed)
            X[:5] += 1e3
            rows = rows_of(X)
            graph = neighbor_graph(rows, 5)
            assert graph.data.min() == MIN_WEIGHT
            assert connected_components(graph)[0] == 1
            split = SpectralSplitter().split(task_of(rows, 2, seed=seed))
            assert same_partition(split.labels, (np.arange(n_rows) < 5).astype(int))


# ---- pieces of a graph, and its cut ----


def random_graph(*sizes, seed=0):
    """Return a graph of connected pieces of these sizes, its nodes shuffled, and the pieces."""
    rng = rng_of(seed)
    pieces = []
    for size in sizes:
        W = rng.random((size, size)) * (rng.random((size, size)) < 8.0 / size)
        W[np.arange(size), (np.arange(size) + 1) % size] = 0.5
        np.fill_diagonal(W, 0.0)
        pieces.append(np.maximum(W, W.T))
    order = rng.permutation(sum(sizes))
    graph = csr_array(block_diag(pieces).toarray()[order][:, order])
    return graph, np.repeat(np.arange(len(sizes)), sizes)[order]


def are_ordered(labels, n_parts):
    firsts = [int(np.flatnonzero(labels == part)[0]) for part in range(n_parts)]
    return firsts == sorted(firsts)


def test_pieces_are_parts():
    """The largest comes first; of equal ones the first."""
    graph, piece = random_graph(20, 50, 10, 35)
    split = divide_graph(graph, 4, 1, rng_of())
    np.testing.assert_array_equal(split.labels, np.array([2, 0, 3, 1])[piece])
    assert (split.objective, split.info.status) == (0.0, Status.CONVERGED)
    graph, _ = random_graph(12, 12, 12)
    assert are_ordered(divide_graph(graph, 3, 1, rng_of()).labels, 3)


def test_more_pieces_than_parts_go_together_by_where_they_are():
    piece = rng_of().permutation(np.repeat(np.arange(5, dtype=np.int32), 9))
    X = np.c_[np.array([0.0, 10.0, 100.0, 120.0, 400.0])[piece], np.ones(45)]
    for kind in KINDS:
        for together in ([0, 0, 0, 0, 1], [0, 0, 1, 1, 2], [0, 0, 1, 2, 3]):
            split = group_pieces(rows_of(X, kind), piece, max(together) + 1)
            assert same_partition(split.labels, np.array(together)[piece])
            assert split.objective == 0.0


def test_too_few_pieces():
    """The largest is cut until there are enough parts; the others stay whole."""
    for sizes in ((40,), (12, 40), (40, 12, 9)):
        graph, piece = random_graph(*sizes)
        largest = piece == int(np.argmax(sizes))
        for n_more in (1, 2, 4):
            n_parts = len(sizes) + n_more
            split = divide_graph(graph, n_parts, 5, rng_of())
            assert set(split.labels.tolist()) == set(range(n_parts))
            inside, outside = split.labels[largest], split.labels[~largest]
            assert len(set(inside.tolist())) == n_more + 1
            assert same_partition(outside, piece[~largest])
            assert not set(inside.tolist()) & set(outside.tolist())
            assert split.objective > 0.0


def test_rows_without_edges_between_them():
    truth = np.arange(90) % 3
    rows = rows_of(draw(1, n_rows=90) + 1e3 * truth[:, None])
    assert same_partition(SpectralSplitter().split(task_of(rows, 3)).labels, truth)
    for K in (2, 5):
        labels = SpectralSplitter().split(task_of(rows, K)).labels
        assert len(set(zip(labels.tolist(), truth.tolist(), strict=True))) == max(K, 3)
    X = rng_of().normal(size=(18, 3)) + 1e3 * (np.arange(18) % 3)[:, None]
    refused = SpectralSplitter().split(task_of(rows_of(X), 9))  # seven from six rows
    assert refused == Refusal("its graph does not fall into 9 parts")


def exact_objective(graph, n_parts):
    """Number of parts, less the leading eigenvalues of the normalised graph."""
    W = graph.toarray()
    scale = 1.0 / np.sqrt(W.sum(axis=1))
    return n_parts - np.linalg.eigvalsh(scale[:, None] * W * scale)[-n_parts:].sum()


def test_the_objective_is_what_relaxation_allows():
    for size in (60, MAX_DENSE, MAX_DENSE + 1, 400):
        graph, _ = random_graph(size)
        for n_parts in (2, 3, 5):
            split = divide_graph(graph, n_parts, 1, rng_of())
            expected = exact_objective(graph, n_parts)
            np.testing.assert_allclose(split.objective, expected, rtol=1e-3)
            assert split.info.trace == (split.objective,)
            assert are_ordered(split.labels, n_parts)
    graph, _ = random_graph(MAX_DENSE + 20)  # more parts than a Lanczos basis holds
    assert len(divide_graph(graph, 150, 1, rng_of()).labels) == MAX_DENSE + 20


def test_a_valley_is_where_a_graph_is_cut():
    for n_left, n_right in ((30, 50), (MAX_DENSE // 2, 150), (400, 200)):
        for seed in range(3):
            graph, side = random_graph(n_left, n_right, seed=seed)
            W = graph.toarray()
            left, right = np.flatnonzero(side == 0)[:3], np.flatnonzero(side == 1)[:3]
            W[left, right] = W[right, left] = 1e-2
            cut = divide_graph(csr_array(W), 2, 5, rng_of(seed))
            assert connected_components(W)[0] == 1
            assert same_partition(cut.labels, side)


def test_eigenvectors_that_are_not_found(monkeypatch):
    def give_up(graph, k, **options):
        raise ArpackNoConvergence("No convergence (9 iterations)", np.empty(0), np.empty(0))

    monkeypatch.setattr(f"{MODULE}.eigsh", give_up)
    task = task_of(rows_of(draw(1, n_rows=300, distance=0.0)), 2)
    refused = SpectralSplitter(n_neighbors=9).split(task)
    assert isinstance(refused, Refusal)
    assert "eigenvectors of its graph were not found" in refused.reason


def test_parameters_of_the_spectral_splitter():
    task = task_of(rows_of(draw(4, distance=6.0)), 4)
    one, many = (SpectralSplitter(n_init=n).split(task) for n in (1, 20))
    assert one.objective == many.objective  # that of the eigenvalues
    assert set(many.labels.tolist()) == {0, 1, 2, 3}
    for n_rows in (4, 5, 6):  # more neighbours than rows
        task = task_of(rows_of(draw(2, n_rows=n_rows)), 2)
        labels = SpectralSplitter(n_neighbors=50).split(task).labels
        assert set(labels.tolist()) == {0, 1}


# ---- what any splitter owes to the growth loop ----

SPLITTERS = [
    make(criterion) for make in (KMeansSplitter, SpectralSplitter) for criterion in CRITERIA
]


def everything(split):
    parts = [split.labels, split.rule.weights, split.rule.center, split.rule.offsets]
    return [part.tobytes() for part in parts], split.score, split.objective, split.info


@pytest.mark.parametrize("splitter", SPLITTERS, ids=str)
def test_a_split_depends_on_its_task_alone(splitter):
    for kind in KINDS:
        for K, n_rows in ((2, 70), (5, 500)):  # below and above MAX_DENSE
            X, other = draw(K, n_rows=n_rows, distance=1.0), draw(2, n_rows=90, seed=5)
            split = splitter.split(task_of(rows_of(X, kind), K))
            assert set(split.labels.tolist()) == set(range(K))
            trace = np.array(split.info.trace)
            assert len(trace) == split.info.n_iter + 1
            assert trace[-1] == split.objective
            splitter.split(task_of(rows_of(other, kind), 2, seed=8))
            again = splitter.split(task_of(rows_of(X, kind, n_threads=2), K))
            assert everything(again) == everything(split)


@pytest.mark.parametrize("splitter", SPLITTERS, ids=str)
def test_dense_and_sparse_agree(splitter):
    for K in (2, 3, 5):
        X = draw(K, distance=0.5, n_rows=180)
        dense, csr = (splitter.split(task_of(rows_of(X, kind), K)) for kind in KINDS)
        assert same_partition(dense.labels, csr.labels)
        np.testing.assert_allclose(dense.score, csr.score, rtol=1e-9)


@pytest.mark.parametrize("splitter", SPLITTERS, ids=str)
def test_few_or_equal_rows_are_refused(splitter):
    for kind, dtype in ALL_KINDS:
        for K in (2, 3, 5):
            few = rows_of(draw(K, n_rows=2 * K - 1, dtype=dtype), kind)
            equal = rows_of(np.full((37, 4), 0.1, dtype=dtype), kind)
            places = draw(2, n_rows=K, dtype=dtype)
            fewer = rows_of(np.repeat(places[1:], 40, axis=0), kind)
            for rows in (few, equal, fewer):
                assert isinstance(splitter.split(task_of(rows, K)), Refusal)
            enough = rows_of(np.repeat(places, 40, axis=0), kind)
            split = splitter.split(task_of(enough, K))
            assert same_partition(split.labels, np.repeat(np.arange(K), 40))


@pytest.mark.parametrize("splitter", SPLITTERS, ids=str)
def test_equal_rows_stay_together(splitter):
    X = (np.random.default_rng(3).random((120, 4)) < 0.4).astype(float)
    group = np.unique(X, axis=0, return_inverse=True)[1].reshape(-1)
    for K in (2, 3, 5):
        for kind in KINDS:
            split = splitter.split(task_of(rows_of(X, kind), K))
            pairs = np.unique(np.stack([group, split.labels], axis=1), axis=0)
            assert len(pairs) == group.max() + 1
