"""The nearest rows of each row, by brute force in blocks: exact in any number of features."""

from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from taxarbor._types import Array, IndexArray

ROWS_PER_THREAD = 1024
"""With fewer, scikit-learn (1.6 to 1.9) shares out the candidates instead of the rows, and
which of some equally near ones are kept depends on the number of threads."""


def find_neighbors(X: Any, n_neighbors: int, n_threads: int) -> tuple[Array, IndexArray]:
    """Return distances and positions of the nearest other rows, nearest first.

    Parameters
    ----------
    X : array or CSR matrix of shape (n_rows, n_features)
        The rows.
    n_neighbors : int
        How many, fewer than there are rows.
    n_threads : int
        Threads; the result does not depend on it.

    Returns
    -------
    distances, positions : arrays of shape (n_rows, n_neighbors)
    """
    from sklearn.neighbors import NearestNeighbors  # loads a good part of scikit-learn

    most = max((X.shape[0] - 1) // ROWS_PER_THREAD, 1)
    with threadpool_limits(min(n_threads, most), user_api="openmp"):
        search = NearestNeighbors(n_neighbors=n_neighbors, algorithm="brute").fit(X)
        distances, positions = search.kneighbors()
    return distances.astype(np.float64, copy=False), positions.astype(np.intp, copy=False)
