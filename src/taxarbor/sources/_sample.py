"""The sample of a source's rows, which is the same wherever they live.

The key of row i is a hash of (seed, i), and the sample is the n rows with the lowest keys. It
depends on nothing else, so memory, files, any chunks and any number of workers give the same.

With weights the key is an exponential variable of rate w_i, ``-log(1 - u_i) / w_i`` with u_i
the hash as a fraction (Efraimidis and Spirakis 2006). Given tau, the (n + 1)-th lowest key, row
i is drawn with probability ``1 - exp(-w_i tau)``; a sampled row counts for its weight over it.
"""

from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from taxarbor import native
from taxarbor._fit_context import node_seed
from taxarbor._frames import Table, as_vectors
from taxarbor._types import Array, IndexArray
from taxarbor.sources.file_checks import Reader

HASHED_ROWS = 1 << 20  # at a time


@final
@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Rows of a source in memory."""

    table: Table  # as in the source; an array in memory is itself if it is whole
    rows: IndexArray  # the row numbers, ascending
    weights: Array | None  # their sum is that of all rows; None: all rows count the same
    n_rows: int  # rows of the source
    layer: str = ""  # what was read of AnnData, as in ``open_source``
    embedding: Array | None = None  # vectors in which likeness is measured; None: the features
    embedding_column: str | None = None  # the column of the table that they are in


def add_vectors(sample: Sample, embedding: str | Reader | None) -> Sample:
    """Return a sample with the vectors of its rows, from a column of it or from a reader."""
    if embedding is None:
        return sample
    if not isinstance(embedding, str):
        vectors = as_vectors(embedding.take(sample.rows), rows=sample.rows)
        return replace(sample, embedding=vectors)
    frame: Any = sample.table
    vectors = as_vectors(frame.get_column(embedding), embedding, rows=sample.rows)
    return replace(sample, embedding=vectors, embedding_column=embedding)


def draw_rows(
    n_rows: int, n: int, seed: int, weights: Array | None = None
) -> tuple[IndexArray, Array | None]:
    """Return the numbers of at most n rows, none of weight 0, and what each counts for."""
    if weights is None:
        if n_rows <= n:
            return np.arange(n_rows), None
        rows, _ = _lowest(n_rows, n, node_seed(seed, ()), None)
        return np.sort(rows), None
    weights = np.asarray(weights)
    if np.count_nonzero(weights) <= n:
        rows = np.flatnonzero(weights)
        return rows, weights[rows].astype(np.float64)
    rows, keys = _lowest(n_rows, n + 1, node_seed(seed, ()), weights)
    rows = np.sort(rows[:n])
    drawn = weights[rows].astype(np.float64)
    with np.errstate(over="ignore"):
        chance = np.maximum(-np.expm1(-drawn * keys[n]), np.finfo(np.float64).tiny)
    counts = drawn / chance
    return rows, counts * (weights.sum(dtype=np.float64) / counts.sum())


def _lowest(
    n_rows: int, n: int, seed: int, weights: Array | None
) -> tuple[IndexArray, NDArray[Any]]:
    """Return the n rows with the lowest keys, by key, and these keys."""
    rows, bound = np.empty(0, dtype=np.intp), np.inf
    keys = _find_keys(seed, rows, weights)
    for first in range(0, n_rows, HASHED_ROWS):
        last = min(first + HASHED_ROWS, n_rows)
        numbers = np.arange(first, last)
        if weights is not None:
            numbers = numbers[weights[numbers] > 0]
        new = _find_keys(seed, numbers, weights)
        is_low = new <= bound
        rows, keys = np.append(rows, numbers[is_low]), np.append(keys, new[is_low])
        if len(rows) >= 2 * n or last == n_rows:
            bound = np.partition(keys, n - 1)[n - 1]
            rows, keys = rows[keys <= bound], keys[keys <= bound]
    order = np.lexsort((native.hashes(seed, rows), keys))[:n]  # keys may be equal
    return rows[order], keys[order]


def _find_keys(seed: int, rows: IndexArray, weights: Array | None) -> NDArray[Any]:
    hashes: NDArray[Any] = native.hashes(seed, rows)
    if weights is None:
        return hashes
    u = np.minimum((hashes + 0.5) / 2.0**64, 1.0 - 2.0**-53)
    with np.errstate(over="ignore"):
        return np.asarray(-np.log1p(-u) / weights[rows])
