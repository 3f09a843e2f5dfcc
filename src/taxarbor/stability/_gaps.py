r"""Whether a gap lies between clusters, tested on rows that the fit has not seen.

A plane through the middle of a single cloud is found again and again: that clusters come back
does not make them clusters. Two clusters are projected on the direction that separates them
best, and three windows of one width are chosen by the rows
of the fit: the emptiest place between the two, M, and the fullest on either side, L and R. If
the density has one peak only, wherever it is, then it is at M at least as high as at L or at
R. So the counts n of unseen rows in them have, for one side or the other,

    n_M ~ Binomial(n_M + n_side, p),   p >= 1/2,

and there is a gap where that is unlikely for both. The reference is thus every distribution
with a single peak: bell-shaped or flat, correlated, skewed, heavy-tailed or bounded.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve
from scipy.special import bdtr

from taxarbor._types import Array, IndexArray

ALPHA = 0.05
"""Chance to see a gap where there is none, at most, in one refit."""

WINDOW = 1 / 3
"""Width of a window, in units of the distance of the two medians."""

PLACES = 21
"""Places that are tried for a window."""

TINY = 1e-12


def find_apart(
    Z: Array, labels: IndexArray, is_own: NDArray[np.bool_], wanted: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    """Return of clusters whether a gap lies between each and the one nearest to it.

    Parameters
    ----------
    Z : array of shape (n_rows, n_coordinates)
        The rows.
    labels : int array of shape (n_rows,)
        Their clusters, 0, 1, ...
    is_own : bool array of shape (n_rows,)
        Which of them the clusters were found by.
    wanted : bool array of shape (n_clusters,)
        Which clusters to look at; the others count as not apart.
    """
    K = len(wanted)
    if K == 1:
        return np.ones(1, dtype=bool)
    own, unseen = _members(labels, K, is_own), _members(labels, K, ~is_own)
    found = np.zeros(K, dtype=bool)
    there = np.flatnonzero([len(rows) > 1 for rows in own])
    if len(there) < 2:
        return found
    means = np.stack([Z[own[k]].mean(axis=0) for k in there])
    weights = _discriminants(Z, [own[k] for k in there], means)
    products = weights @ means.T
    squares = np.diag(products)
    distances = squares[:, None] + squares - products - products.T
    np.fill_diagonal(distances, np.inf)
    tested: dict[tuple[int, int], bool] = {}
    for a, b in enumerate(distances.argmin(axis=1).tolist()):
        if not wanted[there[a]]:
            continue
        if (b, a) not in tested:
            along = weights[b] - weights[a]
            sides = Z[own[there[a]]] @ along, Z[own[there[b]]] @ along
            rest = np.concatenate([unseen[there[a]], unseen[there[b]]])
            tested[a, b] = tested[b, a] = has_gap(*sides, Z[rest] @ along)
        found[there[a]] = tested[a, b]
    return found


def has_gap(left: Array, right: Array, unseen: Array) -> bool:
    """Say whether unseen rows leave a gap between two clusters, laid projected on a line."""
    low, high = float(np.median(left)), float(np.median(right))
    distance = high - low
    if not distance > 0.0:
        return False
    seen, width = np.sort(np.concatenate([left, right])), WINDOW * distance
    between = np.linspace(low, high, PLACES)
    emptiest = np.flatnonzero((counts := _counts(seen, between, width)) == counts.min())
    middle = between[emptiest[len(emptiest) // 2]]
    places = [
        _fullest(seen, np.linspace(low - distance / 2, middle - width, PLACES), width),
        middle,
        _fullest(seen, np.linspace(middle + width, high + distance / 2, PLACES), width),
    ]
    n_left, n_middle, n_right = _counts(np.sort(unseen), np.array(places), width).tolist()
    fewer = min(n_left, n_right)
    return bool(bdtr(n_middle, n_middle + fewer, 0.5) <= ALPHA)


def _members(labels: IndexArray, K: int, chosen: NDArray[np.bool_]) -> list[IndexArray]:
    """Return the chosen rows of each cluster."""
    rows = np.flatnonzero(chosen)
    rows = rows[np.argsort(labels[rows], kind="stable")]
    ends = np.cumsum(np.bincount(labels[rows], minlength=K))
    return np.split(rows, ends[:-1])


def _discriminants(Z: Array, members: list[IndexArray], means: Array) -> Array:
    """Return the means in the metric of the scatter within clusters, as leaves compete in it.

    The difference of two is the direction that separates them best.
    """
    within = np.zeros((Z.shape[1], Z.shape[1]))
    for rows, mean in zip(members, means, strict=True):
        centered = Z[rows] - mean
        within += centered.T @ centered
    within /= sum(map(len, members))
    within[np.diag_indices(len(within))] += np.trace(within) / len(within) + TINY
    return np.asarray(solve(within, means.T, assume_a="pos").T)


def _counts(ordered: Array, places: Array, width: float) -> IndexArray:
    """Count the values in a window around each place."""
    first = np.searchsorted(ordered, places - width / 2, side="left")
    return np.asarray(np.searchsorted(ordered, places + width / 2, side="right") - first)


def _fullest(ordered: Array, places: Array, width: float) -> float:
    return float(places[_counts(ordered, places, width).argmax()])
