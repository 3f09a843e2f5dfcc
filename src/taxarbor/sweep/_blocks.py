"""The rows of a fit, in blocks."""

from dataclasses import dataclass
from typing import Any, final

import numpy as np
from scipy.sparse import csr_array, issparse

from taxarbor._types import IndexArray
from taxarbor.rows import Rows, as_rows
from taxarbor.sweep._engine import Column, Engine

CELLS, LEAST, MOST = 1 << 22, 256, 1 << 16
"""Cells of a block, but so many rows at least and at most."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """All rows of a fit, as features: a column of arrays or CSR matrices, and who sweeps it.

    Attributes
    ----------
    engine : Engine
        Runs the sweeps.
    data : Column
        The rows of each block: C-contiguous arrays or CSR matrices of one dtype, or what loads
        one. They are finite.
    sizes : int array of shape (n_blocks,)
        Their numbers of rows; none is zero.
    n_features : int
        Number of features.
    dtype : dtype
        float32 or float64.
    n_cells : float
        Stored cells per row: the number of features, unless the rows are sparse.
    whole : Rows or None
        All rows, where they are in memory.
    """

    engine: Engine
    data: Column
    sizes: IndexArray
    n_features: int
    dtype: np.dtype[Any]
    n_cells: float
    whole: Rows | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.sizes.sum())


def rows_per_block(n_cells: float) -> int:
    """Return how many rows of so many cells make a block that fits into a cache."""
    return int(np.clip(CELLS // max(n_cells, 1), LEAST, MOST))


def blocks_of(X: Any, engine: Engine) -> Blocks:
    """Return an array or a CSR matrix in memory as blocks of it; nothing is copied."""
    matrix: Any = X
    n, p = X.shape
    n_cells = matrix.nnz / n if issparse(X) else float(p)
    edges = np.append(np.arange(0, n, rows_per_block(n_cells)), n)
    cut = _csr_part if issparse(X) else _part
    data = [cut(X, *pair) for pair in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]
    whole = as_rows(X, center=np.zeros(p))
    return Blocks(engine, data, np.diff(edges), p, X.dtype, n_cells, whole)


def _part(X: Any, first: int, last: int) -> Any:
    return X[first:last]


def _csr_part(X: Any, first: int, last: int) -> Any:
    begin, end = X.indptr[first], X.indptr[last]
    parts = X.data[begin:end], X.indices[begin:end], X.indptr[first : last + 1] - begin
    return csr_array(parts, shape=(last - first, X.shape[1]))
