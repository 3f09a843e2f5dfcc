"""Spectral division of one node: the paper's baselines HSC and HSC-D.

The rows' nearest neighbours make a sparse graph; its leading eigenvectors, scaled to unit
length per row, are divided by k-means (Ng, Jordan and Weiss, 2001).
"""

from dataclasses import dataclass
from inspect import signature
from typing import Any, final

import numpy as np
from scipy.sparse import csr_array, diags_array
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from taxarbor._blas import one_blas_thread
from taxarbor._types import Array, SolveInfo, Status
from taxarbor.hierarchy import Hierarchy
from taxarbor.optim import Labels
from taxarbor.rows import Rows, as_rows
from taxarbor.split._base import Refusal, Split, SplitTask, refuse_few
from taxarbor.split._kmeans import cluster_rows, refuse_empty
from taxarbor.split._means import Criterion, Division, child_means, conclude, nearest_rule
from taxarbor.split._starts import far_rows

EIGEN_TOLERANCE = 1e-6
LEAST_WEIGHT = 1e-12
"""Keeps the edges of far rows, whose similarity would vanish, in the graph."""
MAX_DENSE = 200
"""Nodes of a graph whose eigenvectors are found all at once."""


@final
@dataclass(frozen=True, slots=True)
class SpectralSplitter:
    """Splits a node along its graph of nearest neighbours.

    Parameters
    ----------
    criterion : {"scatter", "compact"}
        Which leaf is worth splitting next.
    n_neighbors : int
        Neighbours per row in the graph.
    n_init : int
        Runs of k-means on the eigenvectors.
    """

    criterion: Criterion = "scatter"
    n_neighbors: int = 5
    n_init: int = 10

    def split(self, task: SplitTask) -> Split | Refusal:
        """Return the division, or why there is none."""
        rows, K, rng = task.rows, task.n_children, task.rng()
        # A graph of equal rows can be cut as well, but nothing tells its parts apart.
        few = refuse_few(task) or refuse_empty(task, rows.lloyd(far_rows(rows, K, rng), 1)[0])
        if few is not None:
            return few
        graph = neighbor_graph(rows, min(self.n_neighbors, rows.n_rows - 1))
        n_pieces, piece = connected_components(graph, directed=False)
        try:
            if n_pieces > K:
                found = group_pieces(rows, piece.astype(np.int32), K)
            else:
                found = divide_graph(graph, K, self.n_init, rng)
        except ArpackError as error:
            return Refusal(f"the eigenvectors of its graph were not found: {error}")
        if not np.bincount(found.labels, minlength=K).all():
            return Refusal(f"its graph does not fall into {K} parts")
        rule = nearest_rule(rows, child_means(rows, found.labels, K))
        return conclude(rows, found, rule, self.criterion)


def neighbor_graph(rows: Rows, n_neighbors: int) -> csr_array:
    """Return Gaussian similarities of neighbours, as wide as those are apart on average."""
    distances, positions = rows.neighbors(n_neighbors)
    width = float(distances.mean())
    squares = np.square(distances / width) if width > 0.0 else np.zeros_like(distances)
    weights = np.maximum(np.exp(-0.5 * squares), LEAST_WEIGHT)
    starts = np.arange(rows.n_rows + 1) * n_neighbors
    shape = rows.n_rows, rows.n_rows
    graph = csr_array((weights.ravel(), positions.ravel(), starts), shape=shape)
    return csr_array(graph.maximum(graph.T))


def divide_graph(
    graph: csr_array, n_parts: int, n_init: int, rng: np.random.Generator
) -> Division:
    """Cut a graph of at most ``n_parts`` pieces so that edges between parts are few and weak.

    As many pieces as parts are the parts. If there are too few, the largest one is cut.
    """
    n_pieces, piece = connected_components(graph, directed=False)
    by_size = np.argsort(-np.bincount(piece), kind="stable")
    rank = np.empty(n_pieces, dtype=np.intp)
    rank[by_size] = np.arange(n_pieces)
    if n_pieces == n_parts:
        return _uncut(rank[piece].astype(np.int32))
    largest = np.flatnonzero(rank[piece] == 0)
    n_cut = n_parts - n_pieces + 1
    found = _cut(csr_array(graph[largest][:, largest]), n_cut, n_init, rng)
    labels = (rank[piece] + n_cut - 1).astype(np.int32)
    labels[largest] = found.labels
    return Division(labels, found.objective, found.info)


def group_pieces(rows: Rows, piece: Labels, n_parts: int) -> Division:
    """Divide the rows of a graph that falls into more pieces than parts, cutting none.

    The graph says nothing of how pieces go together; where they are does. Means of pieces
    are joined, the nearest on average first.
    """
    from scipy.cluster.hierarchy import linkage  # loads long, and is seldom needed

    means = child_means(rows, piece, int(piece.max()) + 1)
    part = Hierarchy.from_linkage(linkage(means, "average"), n_parts).labels
    return _uncut(_renumber(part[piece].astype(np.int32), n_parts))


def _uncut(labels: Labels) -> Division:
    return Division(labels, 0.0, SolveInfo(Status.CONVERGED, 0, float(len(labels)), (0.0,)))


def _cut(graph: csr_array, n_parts: int, n_init: int, rng: np.random.Generator) -> Division:
    """Cut a connected graph; the objective is the normalised cut that relaxation allows."""
    roots = np.sqrt(graph.sum(axis=1))
    scale = diags_array(1.0 / roots)
    values, vectors = _leading(csr_array(scale @ graph @ scale), roots, n_parts, rng)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    points = np.ascontiguousarray(vectors / np.where(lengths > 0.0, lengths, 1.0))
    found = cluster_rows(as_rows(points), n_parts, n_init, rng)
    objective = max(float(n_parts - values.sum()), 0.0)
    # What it costs is the search for neighbours, a sweep per row.
    info = SolveInfo(found.info.status, 0, float(len(points)), (objective,))
    return Division(_renumber(found.labels, n_parts), objective, info)


def _renumber(labels: Labels, n_parts: int) -> Labels:
    """Order parts by their first rows: a vector's sign, which is nobody's, decides nothing."""
    present, first = np.unique(labels, return_index=True)
    number = np.zeros(n_parts, dtype=np.int32)
    number[present[np.argsort(first)]] = np.arange(len(present))
    renumbered: Labels = number[labels]
    return renumbered


def _leading(
    graph: csr_array, roots: Array, n_vectors: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return the largest eigenvalues and their vectors; sums in one thread, for one result.

    The first vector, roots of the degrees, has eigenvalue 1. Taken out, it cannot hide a
    second one of 1 but for rounding, as where a few rows are far from all others.
    """
    n = graph.shape[0]
    with one_blas_thread():
        if n <= max(MAX_DENSE, 2 * n_vectors):
            values, vectors = np.linalg.eigh(graph.toarray())
            return values[-n_vectors:], vectors[:, -n_vectors:]
        first: Array = roots / np.linalg.norm(roots)

        def multiply(x: Array) -> Array:
            return graph @ x - (2.0 * (first @ x)) * first  # of eigenvalue -1, the least

        options: dict[str, Any] = {"v0": rng.standard_normal(n), "tol": EIGEN_TOLERANCE}
        if "rng" in signature(eigsh).parameters:  # since SciPy 1.17, for restarts
            options["rng"] = rng
        others = LinearOperator((n, n), matvec=multiply, dtype=np.float64)
        values, vectors = eigsh(others, k=n_vectors - 1, which="LA", **options)
    return np.append(values, 1.0), np.column_stack([vectors, first])
