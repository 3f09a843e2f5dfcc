"""Splitters of the baselines: k-means (HKM, HKM-D) and spectral clustering (HSC, HSC-D).

The rule of either is the nearest of the children's means. For the spectral one, the rows'
nearest neighbours make a sparse graph; its leading eigenvectors, scaled to unit length per row,
are clustered by k-means (Ng, Jordan and Weiss, 2001).
"""

from dataclasses import dataclass
from inspect import signature
from typing import Any, Literal, NamedTuple, final

import numpy as np
from scipy.sparse import csr_array, diags_array, issparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from taxarbor._types import Array, IndexArray, SolveInfo, Status
from taxarbor.exchange import from_linkage
from taxarbor.optim import Labels
from taxarbor.rows import Rows, as_rows
from taxarbor.split import Refusal, Split, SplitTask
from taxarbor.split._alternate import far_rows
from taxarbor.split.splitter import keep_together, refuse_size
from taxarbor.tree import LinearRule

Criterion = Literal["scatter", "compact"]
CRITERIA: tuple[Criterion, ...] = ("scatter", "compact")
"""Which leaf to grow: the one whose rows are farthest from their centre, all together, or
the one whose children would have the least average distance from theirs."""

MAX_STEPS = 300
TOLERANCE = 1e-4
"""Settled when the centres move by less than this share of the variance, as in scikit-learn."""

ROWS_PER_THREAD = 1024
"""With fewer, scikit-learn (1.6 to 1.9) shares out the candidates instead of the rows, and
which of some equally near ones are kept depends on the number of threads."""
EIGEN_TOLERANCE = 1e-6
MIN_WEIGHT = 1e-12
"""Keeps the edges of far rows, whose similarity would vanish, in the graph."""
MAX_DENSE = 200
"""Nodes of a graph whose eigenvectors are found all at once."""
MEANS_AT_ONCE = 64
"""Children whose means are taken at once."""


class Division(NamedTuple):
    """Labels of a node's rows, with their objective and the course of the solver."""

    labels: Labels
    objective: float
    info: SolveInfo


def child_means(rows: Rows, labels: Labels, n_children: int) -> Array:
    """Return the mean of each child's rows, seen from the rows' centre."""
    sums = []
    for first in range(0, n_children, MEANS_AT_ONCE):  # some at a time: there may be many
        some = np.arange(first, min(first + MEANS_AT_ONCE, n_children))
        sums.append(rows.adjoint((labels[:, None] == some).astype(rows.dtype)))
    counts = np.bincount(labels, minlength=n_children)
    means: Array = np.concatenate(sums) / counts[:, None]
    return means


def nearest_rule(rows: Rows, points: Array) -> LinearRule:
    """Return the rule that sends a row to the nearest of some points.

    These are seen from the rows' centre, and so they are in the rule: added to it, they would
    lose digits where the data are far from the origin.
    """
    lengths = np.einsum("kp,kp->k", points, points)
    parts = points, rows.center, -0.5 * lengths
    return LinearRule(*(part.astype(rows.dtype) for part in parts))


def follow(rows: Rows, rule: LinearRule) -> Labels:
    """Return the child that a rule about the rows' centre sends each row to: one sweep."""
    scores = rows.scores(rule.weights) + rule.offsets
    labels: Labels = scores.argmax(axis=1).astype(np.int32)
    return labels


def make_split(rows: Rows, division: Division, rule: LinearRule, criterion: Criterion) -> Split:
    """Return a split with its score."""
    labels, objective, info = division
    if criterion == "scatter":
        score = float(np.sqrt(rows.norms()).sum())
    else:
        score = -_average_distance(rows, labels, child_means(rows, labels, rule.n_targets))
    return Split(labels, rule, score, objective, info)


def _average_distance(rows: Rows, labels: Labels, means: Array) -> float:
    """Return the average distance of the rows from the mean of their child."""
    scores = np.take_along_axis(rows.scores(means), labels[:, None].astype(np.intp), axis=1)
    lengths = np.einsum("kp,kp->k", means, means)[labels]
    squares = rows.norms() - 2.0 * scores[:, 0].astype(np.float64) + lengths
    return float(np.sqrt(np.maximum(squares, 0.0)).mean())


@final
@dataclass(frozen=True, slots=True)
class KMeansSplitter:
    """Splits a node by k-means.

    Parameters
    ----------
    criterion : {"scatter", "compact"}
        Which leaf is worth splitting next.
    n_init : int
        Number of starts; the one with the least squared distances is kept.
    """

    criterion: Criterion = "scatter"
    n_init: int = 1

    def split(self, task: SplitTask) -> Split | Refusal:
        """Return the best division found, or why there is none."""
        few = refuse_size(task.rows.n_rows, task.n_children)
        if few is not None:
            return few
        clusters = cluster_rows(task.rows, task.n_children, self.n_init, task.rng())
        # Labels by the rule, for predict to repeat them: centres that have settled may still
        # have moved past some rows.
        rule = nearest_rule(task.rows, clusters.centers)
        labels = follow(task.rows, rule)
        empty = refuse_empty(task, labels)
        if empty is not None:
            return empty
        division = Division(labels, clusters.objective, clusters.info)
        return make_split(task.rows, division, rule, self.criterion)


class Clusters(NamedTuple):
    """The result of k-means: labels, and their means seen from the rows' centre."""

    labels: Labels
    centers: Array
    objective: float
    info: SolveInfo


def refuse_empty(task: SplitTask, labels: Labels) -> Refusal | None:
    """Refuse a node of which the nearest of K centres leave a child empty."""
    if np.bincount(labels, minlength=task.n_children).all():
        return None
    return Refusal(f"its {task.rows.n_rows} rows are in fewer than {task.n_children} places")


def cluster_rows(
    rows: Rows, n_clusters: int, n_init: int, rng: np.random.Generator
) -> Clusters:
    """Return the best of some runs of k-means, each begun from rows far from each other.

    The objective is the mean squared distance from the centres. A cluster may end up empty
    where there are fewer different rows than clusters.
    """
    total = float(rows.norms().sum())
    runs = [_descend(rows, far_rows(rows, n_clusters, rng), total) for _ in range(n_init)]
    return min(runs, key=lambda clusters: clusters.objective)


def _descend(rows: Rows, centers: Array, total: float) -> Clusters:
    """Move centres to the means of their rows until they hardly move."""
    least_shift = TOLERANCE * total / rows.n_rows / rows.n_features
    labels: Labels | None = None
    trace: list[float] = []
    status = Status.ITERATION_LIMIT
    while status is Status.ITERATION_LIMIT and len(trace) < MAX_STEPS:
        before, known = centers, labels
        labels, centers = rows.lloyd(centers, 1)
        counts = np.bincount(labels, minlength=len(centers))
        # The rows' squares split into those about the means and those of the means.
        between = float(counts @ np.einsum("kp,kp->k", centers, centers))
        trace.append(max(total - between, 0.0) / rows.n_rows)
        if known is not None and np.array_equal(labels, known):
            status = Status.CONVERGED
        elif float(np.square(centers - before).sum()) <= least_shift:
            status = Status.SETTLED
    assert labels is not None  # for the type checker; there is one step at least
    info = SolveInfo(status, len(trace) - 1, float(len(trace)), tuple(trace))
    return Clusters(labels, centers, trace[-1], info)


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
        few = refuse_size(task.rows.n_rows, task.n_children) or refuse_empty(
            task, rows.lloyd(far_rows(rows, K, rng), 1)[0]
        )
        if few is not None:
            return few
        graph = neighbor_graph(rows, min(self.n_neighbors, rows.n_rows - 1))
        n_pieces, piece = connected_components(graph, directed=False)
        try:
            if n_pieces > K:
                division = group_pieces(rows, piece.astype(np.int32), K)
            else:
                division = divide_graph(graph, K, self.n_init, rng)
        except ArpackError as error:
            return Refusal(f"the eigenvectors of its graph were not found: {error}")
        if not np.bincount(division.labels, minlength=K).all():
            return Refusal(f"its graph does not fall into {K} parts")
        rule = nearest_rule(rows, child_means(rows, division.labels, K))
        by_rule = follow(rows, rule)
        labels = keep_together(rows, division.labels, by_rule, K, (1, rows.n_rows))
        if isinstance(labels, Refusal):
            return labels
        if labels is not division.labels:
            division = division._replace(labels=labels)
            rule = nearest_rule(rows, child_means(rows, labels, K))
        return make_split(rows, division, rule, self.criterion)


def find_neighbors(rows: Rows, n_neighbors: int) -> tuple[Array, IndexArray]:
    """Return distances and positions of each row's nearest other rows, nearest first.

    Both of shape (n_rows, n_neighbors), for fewer neighbours than there are rows.
    """
    X = rows._matrix()
    if not issparse(X):  # about the centre, an offset of the data costs no digits
        X = np.ascontiguousarray(X - rows.center.astype(rows.dtype))
    max_threads = max((rows.n_rows - 1) // ROWS_PER_THREAD, 1)
    with threadpool_limits(min(rows.n_threads, max_threads), user_api="openmp"):
        search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(X)
        distances, positions = search.kneighbors()
    return distances.astype(np.float64, copy=False), positions.astype(np.intp, copy=False)


def neighbor_graph(rows: Rows, n_neighbors: int) -> csr_array:
    """Return Gaussian similarities of neighbours, as wide as those are apart on average."""
    distances, positions = find_neighbors(rows, n_neighbors)
    width = float(distances.mean())
    squares = np.square(distances / width) if width > 0.0 else np.zeros_like(distances)
    weights = np.maximum(np.exp(-0.5 * squares), MIN_WEIGHT)
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
    cut = _cut(csr_array(graph[largest][:, largest]), n_cut, n_init, rng)
    labels = (rank[piece] + n_cut - 1).astype(np.int32)
    labels[largest] = cut.labels
    return cut._replace(labels=labels)


def group_pieces(rows: Rows, piece: Labels, n_parts: int) -> Division:
    """Divide the rows of a graph that falls into more pieces than parts, cutting none.

    Means of pieces are joined by average linkage, as the graph does not relate pieces.
    """
    from scipy.cluster.hierarchy import linkage  # loads long, and is seldom needed

    means = child_means(rows, piece, int(piece.max()) + 1)
    part = from_linkage(linkage(means, "average"), n_parts).tree.labels
    return _uncut(_renumber(part[piece].astype(np.int32), n_parts))


def _uncut(labels: Labels) -> Division:
    return Division(labels, 0.0, SolveInfo(Status.CONVERGED, 0, float(len(labels)), (0.0,)))


def _cut(graph: csr_array, n_parts: int, n_init: int, rng: np.random.Generator) -> Division:
    """Cut a connected graph; the objective is the normalised cut that relaxation allows."""
    roots = np.sqrt(graph.sum(axis=1))
    scale = diags_array(1.0 / roots)
    values, vectors = _find_eigenvectors(csr_array(scale @ graph @ scale), roots, n_parts, rng)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    points = np.ascontiguousarray(vectors / np.where(lengths > 0.0, lengths, 1.0))
    clusters = cluster_rows(as_rows(points), n_parts, n_init, rng)
    objective = max(float(n_parts - values.sum()), 0.0)
    # What it costs is the search for neighbours, a sweep per row.
    info = SolveInfo(clusters.info.status, 0, float(len(points)), (objective,))
    return Division(_renumber(clusters.labels, n_parts), objective, info)


def _renumber(labels: Labels, n_parts: int) -> Labels:
    """Order parts by their first rows, so that the sign of a vector decides nothing."""
    present, first = np.unique(labels, return_index=True)
    number = np.zeros(n_parts, dtype=np.int32)
    number[present[np.argsort(first)]] = np.arange(len(present))
    renumbered: Labels = number[labels]
    return renumbered


def _find_eigenvectors(
    graph: csr_array, roots: Array, n_vectors: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    """Return the largest eigenvalues and their vectors.

    The first vector, roots of the degrees, has eigenvalue 1. Taken out, it cannot hide a
    second one of 1 but for rounding, as where a few rows are far from all others.
    """
    n = graph.shape[0]
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
