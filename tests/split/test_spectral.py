"""The graph and its cut, against brute force, dense eigenvectors, and shapes one can see."""

from inspect import signature

import numpy as np
import pytest
from scipy.sparse import block_diag, csr_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackNoConvergence, eigsh
from taxarbor.split._spectral import (
    LEAST_WEIGHT,
    MAX_DENSE,
    divide_graph,
    group_pieces,
    neighbor_graph,
)

from taxarbor import HierarchicalSpectral, make_planted_tree
from taxarbor._types import Status
from taxarbor.split import KMeansSplitter, Refusal, SpectralSplitter

KINDS = ("dense", "sparse")
DTYPES = ("float32", "float64")


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(params=DTYPES)
def dtype(request):
    return request.param


def rings(n_inner, n_outer, radius=3.0):
    """Return two concentric rings, and which row is on which."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], [n_inner, n_outer])
    angles = np.concatenate([np.linspace(0, 2 * np.pi, n, False) for n in (n_inner, n_outer)])
    lengths = np.where(truth, radius, 1.0) + rng.normal(0.0, 0.02, len(truth))
    X = np.column_stack([np.cos(angles), np.sin(angles)]) * lengths[:, None]
    order = rng.permutation(len(X))
    return np.ascontiguousarray(X[order]), truth[order]


def same_partition(one, other):
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return len(pairs) == len(set(one.tolist())) == len(set(other.tolist()))


def random_graph(*sizes, seed=0):
    """Return a graph of connected pieces of these sizes, its nodes shuffled, and the pieces."""
    rng = np.random.default_rng(seed)
    pieces = []
    for size in sizes:
        W = rng.random((size, size)) * (rng.random((size, size)) < 8.0 / size)
        W[np.arange(size), (np.arange(size) + 1) % size] = 0.5
        np.fill_diagonal(W, 0.0)
        pieces.append(np.maximum(W, W.T))
    order = rng.permutation(sum(sizes))
    graph = csr_array(block_diag(pieces).toarray()[order][:, order])
    return graph, np.repeat(np.arange(len(sizes)), sizes)[order]


def valley(n_left, n_right, seed=0):
    """Return a connected graph of two dense sides and a few weak edges between them."""
    graph, side = random_graph(n_left, n_right, seed=seed)
    W = graph.toarray()
    left, right = np.flatnonzero(side == 0)[:3], np.flatnonzero(side == 1)[:3]
    W[left, right] = W[right, left] = 1e-2
    return csr_array(W), side


# ---- the graph ----


@pytest.mark.parametrize("n_neighbors", [1, 5, 30])
def test_weights(draw, rows_of, kind, dtype, n_neighbors):
    X = draw(3, n_rows=80, dtype=dtype)
    graph = neighbor_graph(rows_of(X, kind), n_neighbors).toarray()
    D = np.linalg.norm(X[:, None].astype(np.float64) - X, axis=2)
    np.fill_diagonal(D, np.inf)
    nearest = np.argsort(D, axis=1)[:, :n_neighbors]
    is_edge = np.zeros(D.shape, dtype=bool)
    np.put_along_axis(is_edge, nearest, True, axis=1)
    width = np.take_along_axis(D, nearest, axis=1).mean()
    is_edge |= is_edge.T
    expected = np.where(is_edge, np.exp(-0.5 * np.square(D / width)), 0.0)
    np.testing.assert_allclose(graph, expected, atol=1e-5 if dtype == "float32" else 1e-12)
    np.testing.assert_array_equal(graph != 0.0, is_edge)


def test_the_graph_is_symmetric(draw, rows_of, kind, dtype):
    graph = neighbor_graph(rows_of(draw(3, dtype=dtype), kind), 5)
    assert graph.dtype == np.float64
    assert (graph != graph.T).nnz == 0
    assert not graph.diagonal().any()
    assert 0.0 < graph.data.min() <= graph.data.max() <= 1.0
    assert np.diff(graph.indptr).min() >= 5


def test_the_graph_of_equal_rows(rows_of, kind):
    graph = neighbor_graph(rows_of(np.full((30, 3), 2.0), kind), 5)
    np.testing.assert_array_equal(graph.data, 1.0)


def test_the_graph_does_not_see_the_scale(draw, rows_of, kind):
    X = draw(2)
    one, other = (neighbor_graph(rows_of(X * scale, kind), 5) for scale in (1.0, 1e6))
    np.testing.assert_allclose(one.toarray(), other.toarray(), rtol=1e-6)


# ---- shapes ----


@pytest.mark.parametrize(("n_inner", "n_outer"), [(60, 90), (150, 300), (600, 900)])
def test_rings_are_told_apart(rows_of, task_of, kind, dtype, n_inner, n_outer):
    X, truth = rings(n_inner, n_outer)
    task = task_of(rows_of(X.astype(dtype), kind), 2)
    assert same_partition(SpectralSplitter().split(task).labels, truth)
    assert not same_partition(KMeansSplitter(n_init=10).split(task).labels, truth)


@pytest.mark.parametrize(("n_inner", "n_neighbors"), [(25, 30), (70, 75)])
def test_rings_in_one_piece(rows_of, task_of, kind, n_inner, n_neighbors):
    """The inner ring has fewer rows than neighbours are asked for; its edges out are weak."""
    X, truth = rings(n_inner, 10 * n_inner, radius=10.0)
    rows = rows_of(X, kind)
    assert connected_components(neighbor_graph(rows, n_neighbors))[0] == 1
    found = SpectralSplitter(n_neighbors=n_neighbors).split(task_of(rows, 2))
    assert same_partition(found.labels, truth)
    assert 0.0 < found.objective < 0.1


def test_a_line_is_cut_into_intervals(rows_of, task_of, kind):
    X = np.sort(np.random.default_rng(0).random(150))[:, None] + np.arange(150)[:, None]
    found = SpectralSplitter().split(task_of(rows_of(X, kind), 3))
    assert np.count_nonzero(np.diff(found.labels)) == 2
    assert np.bincount(found.labels).min() > 20


@pytest.mark.parametrize("far", [1e3, 1e5])
@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("n_rows", [90, 300])
def test_a_far_row(draw, rows_of, task_of, kind, dtype, n_rows, K, far):
    """Its similarities vanish: the least weight keeps it in the graph."""
    X = draw(1, n_rows=n_rows, dtype=dtype)
    X[41] += far
    rows = rows_of(X, kind)
    graph = neighbor_graph(rows, 5)
    assert graph.data.min() == LEAST_WEIGHT
    assert connected_components(graph)[0] == 1
    found = SpectralSplitter().split(task_of(rows, K))
    assert set(found.labels.tolist()) == set(range(K))
    assert np.isfinite(found.score)
    assert np.isfinite(found.objective)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_rows", [90, 1000])
def test_a_few_far_rows_are_a_part(draw, rows_of, task_of, kind, n_rows, seed):
    """The graph has two eigenvalues of 1, but for rounding; both vectors must be found."""
    X = draw(1, n_rows=n_rows, seed=seed)
    X[:5] += 1e3
    rows = rows_of(X, kind)
    assert connected_components(neighbor_graph(rows, 5))[0] == 1
    found = SpectralSplitter().split(task_of(rows, 2, seed=seed))
    assert same_partition(found.labels, (np.arange(n_rows) < 5).astype(int))


@pytest.mark.parametrize("n_rows", [4, 5, 6])
def test_more_neighbors_than_rows(draw, rows_of, task_of, kind, n_rows):
    found = SpectralSplitter(n_neighbors=50).split(
        task_of(rows_of(draw(2, n_rows=n_rows), kind), 2)
    )
    assert set(found.labels.tolist()) == {0, 1}


# ---- pieces ----


def test_pieces_are_parts():
    """The largest comes first."""
    graph, piece = random_graph(20, 50, 10, 35)
    found = divide_graph(graph, 4, 1, np.random.default_rng(0))
    np.testing.assert_array_equal(found.labels, np.array([2, 0, 3, 1])[piece])
    assert found.objective == 0.0
    assert found.info.status is Status.CONVERGED


@pytest.mark.parametrize("n_parts", [2, 3, 4])
def test_more_pieces_than_parts_go_together_by_where_they_are(rows_of, kind, n_parts):
    piece = np.random.default_rng(0).permutation(np.repeat(np.arange(5, dtype=np.int32), 9))
    places = np.array([0.0, 10.0, 100.0, 120.0, 400.0])
    found = group_pieces(rows_of(np.c_[places[piece], np.ones(45)], kind), piece, n_parts)
    together = {2: [0, 0, 0, 0, 1], 3: [0, 0, 1, 1, 2], 4: [0, 0, 1, 2, 3]}[n_parts]
    assert same_partition(found.labels, np.array(together)[piece])
    assert found.objective == 0.0


def test_a_tree_of_pieces_is_not_a_chain():
    planted = make_planted_tree(600)
    tree = HierarchicalSpectral(8, random_state=0).fit(planted.X).hierarchy_
    assert same_partition(tree.labels, planted.labels)
    assert tree.height == 3
    np.testing.assert_array_equal(tree.predict(planted.X), tree.labels)


@pytest.mark.parametrize("sizes", [(40,), (12, 40), (40, 12, 9)])
@pytest.mark.parametrize("n_more", [1, 2, 4])
def test_too_few_pieces(sizes, n_more):
    """The largest is cut until there are enough parts; the others stay whole."""
    graph, piece = random_graph(*sizes)
    n_parts = len(sizes) + n_more
    found = divide_graph(graph, n_parts, 5, np.random.default_rng(0))
    assert set(found.labels.tolist()) == set(range(n_parts))
    largest = piece == int(np.argmax(sizes))
    assert len(set(found.labels[largest].tolist())) == n_more + 1
    assert same_partition(found.labels[~largest], piece[~largest])
    assert not set(found.labels[largest].tolist()) & set(found.labels[~largest].tolist())
    assert found.objective > 0.0


def test_pieces_of_equal_size_keep_their_order():
    graph, _ = random_graph(12, 12, 12)
    found = divide_graph(graph, 3, 1, np.random.default_rng(0))
    firsts = [int(np.flatnonzero(found.labels == part)[0]) for part in range(3)]
    assert firsts == sorted(firsts)


def test_groups_of_rows_without_edges_between_them(draw, rows_of, task_of, kind):
    X = draw(1, n_rows=90) + 1e3 * (np.arange(90) % 3)[:, None]
    rows = rows_of(X, kind)
    assert same_partition(SpectralSplitter().split(task_of(rows, 3)).labels, np.arange(90) % 3)
    for K in (2, 5):
        labels = SpectralSplitter().split(task_of(rows, K)).labels
        pairs = set(zip(labels.tolist(), (np.arange(90) % 3).tolist(), strict=True))
        assert len(pairs) == max(K, 3)


# ---- eigenvectors ----


def exact_objective(graph, n_parts):
    """Number of parts, less the leading eigenvalues of the normalised graph."""
    W = graph.toarray()
    scale = 1.0 / np.sqrt(W.sum(axis=1))
    return n_parts - np.linalg.eigvalsh(scale[:, None] * W * scale)[-n_parts:].sum()


@pytest.mark.parametrize("n_parts", [2, 3, 5])
@pytest.mark.parametrize("size", [60, MAX_DENSE, MAX_DENSE + 1, 400])
def test_the_objective_is_what_relaxation_allows(size, n_parts):
    graph, _ = random_graph(size)
    found = divide_graph(graph, n_parts, 1, np.random.default_rng(0))
    np.testing.assert_allclose(found.objective, exact_objective(graph, n_parts), rtol=1e-3)
    assert found.info.trace == (found.objective,)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n_left", "n_right"), [(30, 50), (MAX_DENSE // 2, 150), (400, 200)])
def test_a_valley_is_where_a_graph_is_cut(n_left, n_right, seed):
    graph, side = valley(n_left, n_right, seed)
    assert connected_components(graph)[0] == 1
    assert same_partition(divide_graph(graph, 2, 5, np.random.default_rng(seed)).labels, side)


@pytest.mark.parametrize("K", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_few_or_all_eigenvectors(monkeypatch, draw, rows_of, K, seed):
    """A graph just too large to be solved densely is cut as if it were not."""
    X = draw(K, n_rows=MAX_DENSE + 10, distance=1.5, seed=seed)
    graph = neighbor_graph(rows_of(X), 25)
    assert connected_components(graph)[0] == 1
    few = divide_graph(graph, K, 20, np.random.default_rng(0))
    monkeypatch.setattr("taxarbor.split._spectral.MAX_DENSE", len(X))
    every = divide_graph(graph, K, 20, np.random.default_rng(0))
    assert same_partition(few.labels, every.labels)
    np.testing.assert_allclose(few.objective, every.objective, rtol=1e-3)


@pytest.mark.parametrize("size", [60, 400])
def test_parts_are_numbered_by_their_first_rows(size):
    graph, _ = random_graph(size)
    labels = divide_graph(graph, 4, 3, np.random.default_rng(0)).labels
    firsts = [int(np.flatnonzero(labels == part)[0]) for part in range(4)]
    assert firsts == sorted(firsts)


def test_more_parts_than_a_lanczos_basis_holds():
    graph, _ = random_graph(MAX_DENSE + 20)
    found = divide_graph(graph, 150, 1, np.random.default_rng(0))
    assert len(found.labels) == MAX_DENSE + 20


def star(n):
    hub = np.zeros((n, n))
    hub[0, 1:] = hub[1:, 0] = 1.0
    return csr_array(hub)


@pytest.mark.skipif(
    "rng" not in signature(eigsh).parameters, reason="SciPy draws on its own before 1.17"
)
def test_restarts_are_drawn_from_the_task():
    """A star has three eigenvalues, so that the Lanczos basis is soon complete."""
    found = {
        divide_graph(star(300), 2, 3, np.random.default_rng(0)).labels.tobytes()
        for _ in range(5)
    }
    assert len(found) == 1


def test_eigenvectors_that_are_not_found(monkeypatch, draw, rows_of, task_of):
    def give_up(graph, k, **options):
        raise ArpackNoConvergence("No convergence (9 iterations)", np.empty(0), np.empty(0))

    monkeypatch.setattr("taxarbor.split._spectral.eigsh", give_up)
    task = task_of(rows_of(draw(1, n_rows=300, distance=0.0)), 2)
    refused = SpectralSplitter(n_neighbors=9).split(task)
    assert isinstance(refused, Refusal)
    assert "eigenvectors of its graph were not found" in refused.reason


def test_a_largest_piece_with_fewer_rows_than_parts(rows_of, task_of):
    """Three pieces of six rows: nine parts would take seven from the first alone."""
    X = np.random.default_rng(0).normal(size=(18, 3)) + 1e3 * (np.arange(18) % 3)[:, None]
    refused = SpectralSplitter().split(task_of(rows_of(X), 9))
    assert refused == Refusal("its graph does not fall into 9 parts")


# ---- the splitter's own parameters ----


def test_more_runs_of_k_means_are_as_good(draw, rows_of, task_of):
    task = task_of(rows_of(draw(4, distance=6.0)), 4)
    one, many = (SpectralSplitter(n_init=n).split(task) for n in (1, 20))
    assert one.objective == many.objective  # that of the eigenvalues
    assert set(many.labels.tolist()) == {0, 1, 2, 3}


@pytest.mark.parametrize("n_rows", [150, 400])
def test_runs_repeat(draw, rows_of, task_of, kind, dtype, n_rows):
    X = draw(3, n_rows=n_rows, distance=0.5, dtype=dtype)
    labels = {
        SpectralSplitter().split(task_of(rows_of(X, kind, n), 3)).labels.tobytes()
        for n in (1, 1, 2, 2)
    }
    assert len(labels) == 1
