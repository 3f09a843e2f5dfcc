"""The rows of a sample in a few coordinates: where clusters are found."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.utils.extmath import randomized_svd

from taxarbor import native
from taxarbor._fit_context import node_seed
from taxarbor._types import Array, IndexArray, Matrix
from taxarbor.rows import Rows, as_rows

N_COORDINATES = 63
"""Principal directions that are kept; with the constant one a round number for the machine.
On the shared sets half as many cost a point of most measures; all of them gained nothing."""

MAX_COORDINATES, CLUSTERS_PER_COORDINATE = 255, 3
"""Of many clusters more directions are kept, as their means differ in as many: one for every
three. With twice as many, growth on 200 planted clusters takes three times as long."""

DIRECTION_ROWS = 5000  # rows from which the directions are found
MAX_GRAM = 512  # features up to which their covariance is diagonalised, and not iterated
EXTRA_DIRECTIONS, N_STEPS = 8, 3  # of the iteration: directions beyond those kept, and steps

LIFT = 10.0
"""The constant coordinate, in units of the data's spread. So large that a penalty on its
weight, the intercept, is negligible, and small enough not to cost digits."""

MIN_WIDE, MAX_DENSITY, N_WIDE = 1000, 0.1, 100
"""Rows of more columns than MIN_WIDE with at most this share of non-zero values are texts or
the like: they are reduced to N_WIDE dimensions. Of 10,000 short texts in 5,000 words the
largest of 30 clusters then has a third of the rows instead of two thirds."""

BITS = 22
"""Coordinates are multiples of a power of two; the farthest row has this many bits. Their
sums are exact, so that neither threads nor dense and sparse storage matter."""


def draw_positions(n_rows: int, size: int, key: int) -> IndexArray:
    """Return the positions of the rows of lowest hash, by hash: all, if there are no more."""
    hashes = native.hashes(key, np.arange(n_rows))
    if size >= n_rows:
        return np.argsort(hashes, kind="stable")
    lowest = np.argpartition(hashes, size)[:size]
    return lowest[np.lexsort((lowest, hashes[lowest]))]


def find_density(X: Matrix) -> float:
    """Return the share of values that are not zero, of rows of many columns; else 1.

    Where it is less than 1, rows are texts or the like, and zeros say little.
    """
    n_rows, n_columns = X.shape
    if n_columns <= MIN_WIDE or n_rows <= N_WIDE:
        return 1.0
    n_values = X.nnz if issparse(X) else np.count_nonzero(X)
    density = float(n_values / (n_rows * n_columns))
    return density if density <= MAX_DENSITY else 1.0


def reduce_wide(X: Matrix) -> Matrix:
    """Return rows of many columns, most values zero, in few dimensions, scaled to length one.

    By a truncated singular value decomposition, so that angles between rows count, as is usual
    for texts. Other rows are returned as they are.
    """
    if find_density(X) == 1.0:
        return X
    vectors, lengths, _ = randomized_svd(csr_array(X), N_WIDE, random_state=0)
    points = vectors * lengths
    norms = np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points / np.where(norms > 0.0, norms, 1.0), dtype=np.float32)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """Rows along their principal directions, in units of their overall spread."""

    values: Array  # (n_rows, n_coordinates + 1), float32; the last one is constant
    directions: Array  # (n_coordinates, n_features), from a row less the center to coordinates
    center: Array  # (n_features,), the mean of the rows
    scatter: Array  # (n_coordinates, n_coordinates), the mean product of each two
    unit: float  # all coordinates are multiples of it
    dtype: np.dtype[np.floating]  # of the features
    n_threads: int = 1

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates, without the constant one."""
        return len(self.directions)

    @property
    def rows(self) -> Rows:
        """The coordinates as rows about zero."""
        zero = np.zeros(self.values.shape[1])
        return as_rows(self.values, center=zero, n_threads=self.n_threads)

    def take(self, positions: IndexArray) -> "Coordinates":
        """Return the same coordinates of some of the rows."""
        values = self.values[positions]
        return replace(self, values=values, scatter=_scatter(values))


def count_coordinates(n_clusters: int | None) -> int:
    """Return the number of coordinates for a number of clusters: a power of two, less one."""
    size = N_COORDINATES
    while size < min((n_clusters or 0) / CLUSTERS_PER_COORDINATE, MAX_COORDINATES):
        size = 2 * size + 1
    return size


def find_coordinates(
    X: Matrix, seed: int, n_threads: int = 1, size: int = N_COORDINATES
) -> Coordinates:
    """Return the principal coordinates of the rows of an array or a CSR matrix.

    ``size`` of them, or as many as there are features. Zeros, if all rows are equal.
    """
    rows = as_rows(X, n_threads=n_threads)
    drawn = draw_positions(rows.n_rows, DIRECTION_ROWS, node_seed(seed, ()))
    few = rows.take(drawn, rows.center)
    spread = float(np.sqrt(few.norms().mean())) or 1.0
    directions = _principal_directions(few, size, np.random.default_rng(seed)) / spread
    farthest = float(np.sqrt(rows.norms().max()))
    unit = 2.0 ** (np.ceil(np.log2(max(1.001 * farthest / spread, LIFT))) - BITS)
    scores = rows.scores(np.pad(directions, ((0, 1), (0, 0))))
    scores /= scores.dtype.type(unit)
    np.rint(scores, out=scores)
    scores *= scores.dtype.type(unit)
    values = np.ascontiguousarray(scores, dtype=np.float32)
    del scores  # as large as the rows
    values[:, -1] = max(round(LIFT / unit), 1) * unit
    return Coordinates(
        values, directions, rows.center, _scatter(values), unit, rows.dtype, n_threads
    )


def _scatter(values: Array) -> Array:
    exact = values[:, :-1].astype(np.float64)
    return exact.T @ exact / len(exact)


def _principal_directions(rows: Rows, size: int, rng: np.random.Generator) -> Array:
    """Return orthonormal directions of greatest variance, as rows; all if they are few."""
    P = rows.n_features
    if size >= P:
        return np.eye(P)
    if P <= MAX_GRAM:
        gram = rows.gram(np.arange(rows.n_rows), np.arange(P))
        return np.ascontiguousarray(np.linalg.eigh(gram)[1][:, : -size - 1 : -1].T)
    width = min(size + EXTRA_DIRECTIONS, rows.n_rows)
    mixture = rng.standard_normal((rows.n_rows, width)).astype(rows.dtype)
    for _ in range(N_STEPS):
        basis = np.linalg.qr(rows.adjoint(mixture).T)[0].T
        mixture = rows.scores(basis)
    along = mixture.astype(np.float64)
    order = np.linalg.eigh(along.T @ along)[1][:, ::-1][:, :size]
    return np.ascontiguousarray(order.T @ basis)
