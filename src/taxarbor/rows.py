"""Rows in memory: their checks, the few passes that a solver needs, and its problems.

A solver never reads ``X`` itself. It calls :class:`Rows`, which returns small arrays over
features (float64) and arrays over rows. Nothing is copied.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array, issparse

from taxarbor import native
from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray, Matrix

CELLS_PER_BLOCK = 1 << 20  # cells that are looked at together
FIRST_ROWS = 64  # rows that are read first to find booleans
ROUNDING = 1e-5  # how far from 0 and 1 the values of a boolean may be

__all__ = ["Rows", "as_rows"]


def all_finite(values: Array) -> bool:
    """Return whether all values are finite; their sum mostly says so, without memory."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return True
        return bool(np.isfinite(values.min()) and np.isfinite(values.max()))


def check_structure(X: Any) -> None:
    """Raise ValueError if a SciPy sparse matrix is none, or points outside itself.

    Compiled code that follows a wrong index ends the process. SciPy's ``check_format`` is not
    used, as it passes every matrix whose last pointer is 0, and changes the one it looks at.
    """
    if len(X.shape) != 2:
        expected = "must have two dimensions, (n_rows, n_features)"
        raise InputError(f"{expected}, got shape {X.shape}", "X")
    is_sound = True
    if X.format in ("csr", "csc", "bsr"):
        shape = np.array(X.shape) // (X.blocksize if X.format == "bsr" else 1)
        n_outer, n_inner = shape[::-1] if X.format == "csc" else shape
        ends, n_stored = X.indptr, min(len(X.indices), len(X.data))
        is_sound = len(ends) == n_outer + 1 and ends[0] == 0 and ends[-1] <= n_stored
        is_sound = is_sound and (ends[1:] >= ends[:-1]).all()
        is_sound = is_sound and _are_within(X.indices[: ends[-1]], n_inner)
    elif X.format == "coo":
        is_sound = len(X.row) == len(X.col) == len(X.data)
        is_sound = is_sound and _are_within(X.row, X.shape[0])
        is_sound = is_sound and _are_within(X.col, X.shape[1])
    if not is_sound:
        raise InputError(
            f"X is a damaged sparse matrix: its indices do not fit its shape, {X.shape}, or "
            "its pointers do not ascend from 0 to the number of entries"
        )


def _are_within(indices: NDArray[np.integer], size: int) -> bool:
    return not len(indices) or bool(indices.min() >= 0 and indices.max() < size)


# What the kernels solve for a node


@final
@dataclass(frozen=True, slots=True, eq=False)
class SplitProblem:
    """A split: its loss, a penalty, and where to start.

    Of two children the problem is one in ``d = w_0 - w_1``; of more, in the weights of all of
    them. Rounds end when one lowers the objective by less than the share ``tol``, or when no
    row moves and no feature violates optimality by more than ``violation``.
    """

    start: Array  #: (n_features,) or (n_children, n_features), weights to start from
    labels: NDArray[np.signedinteger] | None  #: to start from; None for those of the weights
    bounds: tuple[int, int]  #: least and greatest number of rows of a child; of two, child 0
    group: float  #: weight of the norm of a feature's weights; of two children, not used
    l1: Array  #: (n_features,), weight of their absolute values
    ridge: float  #: weight of their squares
    tol: float
    violation: float
    max_alternations: int  #: most rounds
    max_working: int  #: most features that one Newton step may change


class SplitSolution(NamedTuple):
    """Weights (d, of two children), labels and scores of a split, and its rounds."""

    weights: Array
    labels: NDArray[np.signedinteger]
    scores: Array
    trace: list[float]
    status: str
    n_passes: float


@final
@dataclass(frozen=True, slots=True, eq=False)
class HalveProblem:
    """A division in two of lifted rows, whose last feature is constant, by the best of starts.

    The plane is found as in :class:`SplitProblem`, with no penalty but a ridge.
    """

    seed: int  #: of the starts
    starts: list[str]  #: each "principal", "ward" or "far_rows"
    bounds: tuple[int, int]  #: least and greatest number of rows of child 0
    ridge: float  #: a share of the rows' variance
    tol: float = 0.02
    violation: float = 2e-5  #: a share of the root of the rows' variance
    max_rounds: int = 100
    start_rows: int = 500  #: rows that starts read, except Ward's
    ward_rows: int = 200  #: rows that Ward's starts read, which need all pairs of them
    lloyd_steps: int = 3  #: six are no better
    power_steps: int = 3


@final
@dataclass(frozen=True, slots=True, eq=False)
class Half:
    """Labels and scores (child 1 below zero) of a division in two, and its rounds."""

    labels: NDArray[np.int8]
    scores: Array
    gap: float  #: the scatter between the children for the root of the objective
    trace: list[float]
    status: str
    n_passes: float
    weights: Array  #: (n_features,), of the scores: about the centre, but for the last feature


# Rows


def as_rows(X: Matrix, *, center: Array | None = None, n_threads: int = 1) -> "Rows":
    """Return data as rows about their mean, or about a given centre.

    The data are not copied and must not change while the rows are in use. Their structure is
    checked once; the caller checks that values are finite.

    Parameters
    ----------
    X : C-contiguous ndarray or CSR matrix of shape (n_rows, n_features)
        float32 or float64. A sparse matrix has at most one entry per cell.
    center : array of shape (n_features,), optional
        Subtracted from each row; the mean of the rows by default.
    n_threads : int
        Threads for one sweep.

    Raises
    ------
    TypeError, ValueError
        If X is no such matrix, or the centre or the number of threads is wrong.

    Examples
    --------
    >>> import numpy as np
    >>> rows = as_rows(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> rows.scores(np.array([[1.0, 1.0]]))
    array([[-1.],
           [ 1.]])
    """
    middle = None if center is None else _floats(center)
    if issparse(X):
        values, columns, starts = _csr_arrays(X)
        data = native.Data.csr(values, columns, starts, X.shape[1], middle, n_threads)
        if len(values) < 2**31:  # SciPy copies the columns where the starts have another type
            starts = starts.astype(np.int32)
        return Rows(csr_array((values, columns, starts), shape=X.shape), data)
    if not isinstance(X, np.ndarray):
        kind = type(X).__name__
        raise TypeError(f"X must be a NumPy array or a SciPy CSR matrix; got {kind}")
    if not X.flags.aligned:  # arrays from a Dask worker may not be
        X = X.copy()
    return Rows(X, native.Data.dense(X, middle, n_threads))


@final
class Rows:
    """Some rows of an array or a CSR matrix, about a center: made by :func:`as_rows`.

    ``n_rows`` and ``n_features`` are the shape, ``dtype`` is that of the data and of scores,
    ``center`` is subtracted from each row before anything else, and no result depends on
    ``n_threads``, the threads of one pass.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.rows import as_rows
    >>> rows = as_rows(np.array([[1.0, 5.0], [3.0, 5.0]]))
    >>> rows.n_rows, rows.take([1]).center
    (2, array([3., 5.]))
    """

    __slots__ = ("_X", "_data", "center", "dtype", "n_features", "n_rows")

    def __init__(self, X: Matrix, data: native.Data) -> None:
        self._X, self._data = X, data
        self.n_rows, self.n_features = data.n_rows, data.n_features
        self.dtype: np.dtype[np.floating] = X.dtype
        self.center: Array = data.center
        self.center.flags.writeable = False

    @property
    def n_threads(self) -> int:
        """Threads for one sweep; one in a process that was forked."""
        return self._data.n_threads

    def scores(self, W: Array) -> Array:
        """Return ``(X - center) @ W.T``, of shape (n_rows, len(W)): one sweep.

        A row's score depends on that row, the centre and ``W`` alone, to the last bit.
        """
        return native.scores(self._data, _floats(W))

    def best(self, W: Array, offsets: Array | None = None) -> IndexArray:
        """Return the position of each row's highest score plus offset, the first of ties."""
        added = np.zeros(len(W)) if offsets is None else offsets
        return native.best(self._data, _floats(W), _floats(added))

    def adjoint(self, R: Array) -> Array:
        """Return ``R.T @ (X - center)``, of shape (R.shape[1], n_features), float64.

        Rows where ``R`` is zero are not touched.
        """
        return native.adjoint(self._data, R)

    def gram(self, positions: IndexArray, features: IndexArray) -> Array:
        """Return ``Z.T @ Z`` for ``Z = (X - center)[positions][:, features]``, float64."""
        rows, columns = _positions(positions, "positions"), _positions(features, "features")
        return native.gram(self._data, rows, columns)

    def lloyd(self, centers: Array, n_steps: int) -> tuple[NDArray[np.int32], Array]:
        """Return the nearest centre of each row and the centres after steps of k-means.

        Centres, of shape (n_centers, n_features), are seen from ``center``; the labels are
        those that the last centres are the means of. One sweep per step.
        """
        return native.lloyd(self._data, _floats(centers), n_steps)

    def principal(self, start: Array, n_steps: int) -> Array:
        """Return the direction of greatest variance, of unit length and shape (n_features,).

        Approached from another one by the power method: two sweeps per step.
        """
        return native.principal(self._data, _floats(start), n_steps)

    def norms(self) -> Array:
        """Return the squared length of each row of ``X - center``, float64: one sweep."""
        return native.norms(self._data)

    def route(self, table: object, fill: Array | None) -> tuple[NDArray[np.int32], int]:
        """Return the leaf of each row by the rules of a tree, and the first row refused."""
        return native.route(self._data, table, fill)

    def distances(
        self, labels: NDArray[np.int32], centers: Array, factors: Array, fill: Array
    ) -> Array:
        """Return the distance of each row from the center of its label."""
        return native.distances(self._data, labels, _floats(centers), _floats(factors), fill)

    def spread(self) -> Array:
        """Return the mean of ``|X - center|`` per feature, float64: one sweep."""
        return native.spread(self._data)

    def find_booleans(self) -> NDArray[np.bool_]:
        """Return which columns hold 0 and 1 only, and both, but for rounding.

        One sweep, mostly over few columns. A cell that is not stored is zero.
        """
        X, n_rows, n_columns = self._matrix(), self.n_rows, self.n_features
        columns, n_ones = np.arange(n_columns), np.zeros(n_columns, dtype=np.intp)
        is_boolean = np.zeros(n_columns, dtype=bool)
        if not isinstance(X, np.ndarray):
            is_one = np.abs(X.data - 1.0) < ROUNDING
            is_other = ~is_one & (np.abs(X.data) >= ROUNDING)
            n_ones = np.bincount(X.indices, is_one, minlength=n_columns)
            columns = np.flatnonzero(np.bincount(X.indices, is_other, n_columns) == 0.0)
        else:
            first, step = 0, FIRST_ROWS
            # Most columns are ruled out by the first few rows, and then not read again.
            while first < n_rows and len(columns):
                block = X[first : first + step][:, columns]
                is_one = np.abs(block - 1.0) < ROUNDING
                n_ones[columns] += np.count_nonzero(is_one, axis=0)
                columns = columns[(is_one | (np.abs(block) < ROUNDING)).all(axis=0)]
                first, step = first + step, CELLS_PER_BLOCK // max(len(columns), 1) + 1
        is_boolean[columns] = (n_ones[columns] > 0) & (n_ones[columns] < n_rows)
        return is_boolean

    def solve_pair(self, problem: SplitProblem) -> SplitSolution:
        """Alternate labels and weights of a two-way split, by proximal Newton steps."""
        return SplitSolution(*native.pair(self._data, problem))

    def solve_kway(self, problem: SplitProblem) -> SplitSolution:
        """Alternate labels and weights of a split into several children, likewise."""
        return SplitSolution(*native.kway(self._data, problem))

    def halve(self, problem: HalveProblem) -> Half | None:
        """Divide lifted rows in two, where the gap is; None if all are equal."""
        half = native.halve(self._data, problem)
        return None if half is None else Half(*half)

    def take(self, positions: IndexArray, center: Array | None = None) -> Self:
        """Return the rows at these positions, about their own mean or a given centre."""
        middle = None if center is None else _floats(center)
        return type(self)(self._X, self._data.take(_positions(positions, "positions"), middle))

    def _matrix(self) -> Matrix:
        """Return the rows as an array or a matrix."""
        index = self._data.index
        return self._X if index is None else self._X[index]


def _csr_arrays(X: csr_array) -> tuple[Array, NDArray[np.int32], IndexArray]:
    """Return values, columns and starts in the types that the kernels take."""
    if X.format != "csr" or X.ndim != 2:
        raise ValueError(
            "a sparse X must be a CSR matrix, whose rows can be read one by one; got "
            f"{X.format} of shape {X.shape}. X.tocsr() makes one"
        )
    if X.indices.dtype != np.int32:  # others are checked by the kernels
        check_structure(X)
    stored = int(X.indptr[-1])  # arrays may be longer
    columns = X.indices[:stored].astype(np.int32, copy=False)
    return X.data[:stored], columns, X.indptr.astype(np.int64, copy=False)


def _floats(values: ArrayLike) -> Array:
    """Return float64 in C order."""
    return np.ascontiguousarray(values, dtype=np.float64)


def _positions(values: ArrayLike, name: str) -> IndexArray:
    """Return integers in C order; a boolean mask is an error, as it would count as 0 and 1."""
    array = np.asarray(values)
    if array.size and array.dtype.kind not in "iu":
        raise TypeError(f"{name} must be whole numbers; got {array.dtype}")
    return np.ascontiguousarray(array, dtype=np.intp)
