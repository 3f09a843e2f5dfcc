"""How stable a tree is when it is cut into 2, 3, 4, ... clusters.

Cut to fewer clusters than it was grown to, a tree may have a cluster in pieces, which an early
split went through. So the clusters of each cut compete for the rows first, as leaves do at the
end of a fit: what was cut in two is whole again, and the cut is what a fit to that number
would have been.
"""

import numpy as np

from taxarbor._types import Array, IndexArray
from taxarbor.clusters import Coordinates
from taxarbor.clusters._leaves import Leaves, compete
from taxarbor.stability._gaps import find_apart
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._probabilities import jaccard
from taxarbor.taxonomy._stability import MIN_JACCARD

MAX_CONSECUTIVE, STEP = 50, 1.1
"""Up to how many clusters each number is looked at, and how much more the next is beyond."""


def cut_sizes(taxonomy: Taxonomy) -> IndexArray:
    """Return numbers of clusters that a tree can be cut into: all small ones, some large ones.

    They begin with 1 and end with the number of leaves.
    """
    added = np.bincount(taxonomy.tree.birth)[1:] - 1
    kept = [1]
    for size in (1 + np.cumsum(added, dtype=np.intp)).tolist():
        if size <= MAX_CONSECUTIVE or size >= STEP * kept[-1] or size == taxonomy.tree.n_leaves:
            kept.append(size)
    return np.array(kept)


def measure_stability(
    taxonomy: Taxonomy,
    rows: IndexArray,
    refits: list[tuple[Taxonomy, IndexArray]],
    coordinates: Coordinates,
) -> Array:
    """Return of each cut the share of refits in which its least stable cluster came back.

    Parameters
    ----------
    tree : Taxonomy
        The tree that is cut.
    rows : int array
        Which of its rows the coordinates are of.
    refits : list of (Taxonomy, int array)
        The trees that were grown on some of these, and on which.
    coordinates : Coordinates
        The rows.
    """
    Z = coordinates.values[:, :-1].astype(np.float64)
    every_row = np.arange(len(rows))
    found = [1.0]
    for n_clusters in cut_sizes(taxonomy)[1:].tolist():
        labels = _compete(coordinates, taxonomy.cut(n_clusters)[rows], every_row)
        n_back = np.zeros(int(labels.max()) + 1, dtype=np.intp)
        for other, own in refits:
            again = _compete(coordinates, other.cut(min(n_clusters, other.tree.n_leaves)), own)
            likeness = jaccard(labels, again)
            match, back = likeness.argmax(axis=1), likeness.max(axis=1) >= MIN_JACCARD
            is_own, wanted = np.zeros(len(rows), bool), np.zeros(likeness.shape[1], bool)
            is_own[own] = True
            wanted[match[back]] = True
            if back.any():
                back &= find_apart(Z, again, is_own, wanted)[match]
            n_back += back
        found.append(float(n_back.min()) / max(len(refits), 1))
    return np.array(found)


def _compete(coordinates: Coordinates, labels: IndexArray, own: IndexArray) -> IndexArray:
    """Let clusters of some rows compete for all rows; return the cluster of each row."""
    labels = np.unique(labels, return_inverse=True)[1]
    K = int(labels.max()) + 1
    if K == 1:
        return np.zeros(coordinates.n_rows, dtype=np.intp)
    some = coordinates.take(own)
    _, model = compete(Leaves.of(labels.astype(np.int32), K, some), some)
    scores = coordinates.values[:, :-1] @ model.weights.T + model.offsets
    return np.unique(scores.argmax(axis=1), return_inverse=True)[1]
