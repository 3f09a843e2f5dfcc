"""Compressed sparse rows; the centre is implicit, so nothing is made dense."""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from taxarbor._types import Array, IndexArray
from taxarbor.native import (
    csr_adjoint,
    csr_gram,
    csr_lloyd,
    csr_moment,
    csr_norms,
    csr_pair,
    csr_principal,
    csr_rule,
    csr_scores,
    ward,
)
from taxarbor.rows._base import PairProblem, PairSolution, RuleProblem
from taxarbor.rows._neighbors import find_neighbors


@final
@dataclass(frozen=True, slots=True, eq=False)
class SparseRows:
    """Some rows of a CSR matrix, about a centre.

    Parameters
    ----------
    values, columns, starts : arrays
        The three arrays of the CSR matrix: float32 or float64, int32, int64.
    index : array of int or None
        Which rows these are; all of them if None.
    center : array of shape (n_features,)
        Subtracted from each row, in effect.
    n_threads : int
        Threads for one sweep; no result depends on it.
    """

    values: Array
    columns: NDArray[np.int32]
    starts: IndexArray
    index: IndexArray | None
    center: Array
    n_threads: int

    @classmethod
    def of(cls, X: Any, n_threads: int = 1) -> Self:
        """Return all rows of a scipy CSR matrix about their mean."""
        columns = X.indices.astype(np.int32, copy=False)
        starts = X.indptr.astype(np.int64, copy=False)
        whole = cls(X.data, columns, starts, None, np.zeros(X.shape[1]), n_threads)
        return whole._about_mean()._about_mean()

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.starts) - 1 if self.index is None else len(self.index)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.center)

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Type of the data and of the scores."""
        return self.values.dtype

    def scores(self, W: Array) -> Array:
        """Return ``(X - center) @ W.T``."""
        return csr_scores(*self._native, np.ascontiguousarray(W, dtype=np.float64))

    def adjoint(self, R: Array) -> Array:
        """Return ``R.T @ (X - center)``."""
        return csr_adjoint(*self._native, R)

    def gram(self, positions: IndexArray, features: IndexArray) -> Array:
        """Return the Gram matrix of some rows and features, about the centre."""
        return csr_gram(*self._native, positions, features)

    def lloyd(self, centers: Array, n_steps: int) -> tuple[NDArray[np.int32], Array]:
        """Return the nearest centre of each row and the centres after steps of k-means."""
        return csr_lloyd(*self._native, np.ascontiguousarray(centers), n_steps)

    def principal(self, start: Array, n_steps: int) -> Array:
        """Return the direction of greatest variance, approached from another one."""
        return csr_principal(*self._native, start, n_steps)

    def norms(self) -> Array:
        """Return the squared distance of each row from the centre."""
        return csr_norms(*self._native)

    def spread(self) -> Array:
        """Return the mean absolute deviation of each feature."""
        return csr_moment(*self._native, True)

    def ward(self, n_clusters: int) -> NDArray[np.int32]:
        """Return Ward's clusters of the rows, which are made dense for it."""
        dense = self._matrix().toarray() - self.center.astype(self.dtype)
        return ward(np.ascontiguousarray(dense), n_clusters)

    def neighbors(self, n_neighbors: int) -> tuple[Array, IndexArray]:
        """Return distances and positions of each row's nearest other rows."""
        return find_neighbors(self._matrix(), n_neighbors, self.n_threads)

    def solve_pair(self, problem: PairProblem) -> PairSolution:
        """Solve a two-way split."""
        return PairSolution(*csr_pair(*self._native, *problem.arguments()))

    def find_rule(self, problem: RuleProblem) -> tuple[Array, Array]:
        """Return a sparse rule for a division of the rows."""
        return csr_rule(*self._native, *problem.arguments())

    def take(self, positions: IndexArray, center: Array | None = None) -> Self:
        """Return the rows at these positions, about their own mean or a given centre."""
        index = positions if self.index is None else self.index[positions]
        if center is not None:
            return self._with(index, center)
        return self._with(index, np.zeros(self.n_features))._about_mean()._about_mean()

    def _with(self, index: IndexArray | None, center: Array) -> Self:
        center = center.astype(np.float64, copy=False)
        return type(self)(self.values, self.columns, self.starts, index, center, self.n_threads)

    def _matrix(self) -> Any:
        """Return the rows, as they are, as a matrix."""
        shape = len(self.starts) - 1, self.n_features
        X = csr_array((self.values, self.columns, self.starts), shape=shape)
        return X if self.index is None else X[self.index]

    def _about_mean(self) -> Self:
        """Return the same rows about their mean, as the data's type would hold it.

        Taken twice, the second time about the first, it is exact for constant features;
        rounded, so that a saved rule routes as the fitted one.
        """
        mean = self.center + csr_moment(*self._native, False)
        return self._with(self.index, mean.astype(self.dtype))

    @property
    def _native(
        self,
    ) -> tuple[Array, NDArray[np.int32], IndexArray, IndexArray | None, Array, int]:
        return self.values, self.columns, self.starts, self.index, self.center, self.n_threads
