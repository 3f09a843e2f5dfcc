"""Dense rows in memory, through the native kernels. Nothing is copied."""

from dataclasses import dataclass
from typing import Self, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array, IndexArray
from taxarbor.native import (
    dense_adjoint,
    dense_gram,
    dense_lloyd,
    dense_moment,
    dense_norms,
    dense_pair,
    dense_principal,
    dense_rule,
    dense_scores,
    ward,
)
from taxarbor.rows._base import PairProblem, PairSolution, RuleProblem
from taxarbor.rows._neighbors import find_neighbors


@final
@dataclass(frozen=True, slots=True, eq=False)
class DenseRows:
    """Some rows of a C-contiguous array, about a centre.

    Parameters
    ----------
    X : array of shape (n_all_rows, n_features), float32 or float64
        The whole data, shared by all nodes.
    index : array of int or None
        Which rows of ``X`` these are; all of them if None.
    center : array of shape (n_features,)
        Subtracted from each row.
    n_threads : int
        Threads for one sweep; no result depends on it.
    """

    X: Array
    index: IndexArray | None
    center: Array
    n_threads: int

    @classmethod
    def of(cls, X: Array, n_threads: int = 1) -> Self:
        """Return all rows of ``X`` about their mean."""
        return cls(X, None, X[0], n_threads)._about_mean()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.X) if self.index is None else len(self.index)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Type of the data and of the scores."""
        return self.X.dtype

    def scores(self, W: Array) -> Array:
        """Return ``(X - center) @ W.T``."""
        return dense_scores(*self._native, np.ascontiguousarray(W, dtype=np.float64))

    def adjoint(self, R: Array) -> Array:
        """Return ``R.T @ (X - center)``."""
        return dense_adjoint(*self._native, R)

    def gram(self, positions: IndexArray, features: IndexArray) -> Array:
        """Return the Gram matrix of some rows and features, about the centre."""
        return dense_gram(*self._native, positions, features)

    def lloyd(self, centers: Array, n_steps: int) -> tuple[NDArray[np.int32], Array]:
        """Return the nearest centre of each row and the centres after steps of k-means."""
        return dense_lloyd(*self._native, np.ascontiguousarray(centers), n_steps)

    def principal(self, start: Array, n_steps: int) -> Array:
        """Return the direction of greatest variance, approached from another one."""
        return dense_principal(*self._native, start, n_steps)

    def norms(self) -> Array:
        """Return the squared distance of each row from the centre."""
        return dense_norms(*self._native)

    def spread(self) -> Array:
        """Return the mean absolute deviation of each feature."""
        return dense_moment(*self._native, True)

    def ward(self, n_clusters: int) -> NDArray[np.int32]:
        """Return Ward's clusters of the rows."""
        return ward(self._centered(), n_clusters)

    def neighbors(self, n_neighbors: int) -> tuple[Array, IndexArray]:
        """Return distances and positions of each row's nearest other rows."""
        return find_neighbors(self._centered(), n_neighbors, self.n_threads)

    def solve_pair(self, problem: PairProblem) -> PairSolution:
        """Solve a two-way split."""
        return PairSolution(*dense_pair(*self._native, *problem.arguments()))

    def find_rule(self, problem: RuleProblem) -> tuple[Array, Array]:
        """Return a sparse rule for a division of the rows."""
        return dense_rule(*self._native, *problem.arguments())

    def take(self, positions: IndexArray, center: Array | None = None) -> Self:
        """Return the rows at these positions, about their own mean or a given centre."""
        index = positions if self.index is None else self.index[positions]
        if center is not None:
            return type(self)(self.X, index, center, self.n_threads)
        return type(self)(self.X, index, self.X[index[0]], self.n_threads)._about_mean()

    def _centered(self) -> Array:
        """Return a copy about the centre, so that an offset of the data costs no digits."""
        X = self.X if self.index is None else self.X[self.index]
        return X - self.center.astype(self.dtype)

    def _about_mean(self) -> Self:
        """Return the same rows about their mean, as the data's type would hold it.

        The mean is taken about one of the rows, so offsets cost no digits and the centre of
        a constant feature is exact; rounded, so that a saved rule routes as the fitted one.
        """
        mean = self.center + dense_moment(*self._native, False)
        rounded = mean.astype(self.dtype).astype(np.float64)
        return type(self)(self.X, self.index, rounded, self.n_threads)

    @property
    def _native(self) -> tuple[Array, IndexArray | None, Array, int]:
        return self.X, self.index, self.center.astype(self.dtype, copy=False), self.n_threads
