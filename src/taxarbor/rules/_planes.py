"""Planes on one or two columns that divide the rows of two children."""

from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array, IndexArray
from taxarbor.rules._discriminant import DIGITS, sort_falling
from taxarbor.rules._sample import RuleSample

N_COLUMNS = 6
"""Columns that planes are made of: those that separate most."""


class Plane(NamedTuple):
    """Rows whose weighted sum of a few features exceeds a threshold go to the second child."""

    columns: IndexArray
    features: IndexArray
    weights: Array
    threshold: float
    rank: tuple[float, float]  # the share of rows on their side, the distance of the children

    def divide(self, values: Array, rows: IndexArray) -> NDArray[np.bool_]:
        """Return which rows go to the second child."""
        is_second: NDArray[np.bool_] = (
            values[np.ix_(rows, self.features)] @ self.weights > self.threshold
        )
        return is_second


def find_planes(
    sample: RuleSample, rows: IndexArray, is_second: NDArray[np.bool_], penalty: Array
) -> list[Plane]:
    """Return the planes of one and of two columns that divide rows best, if any do.

    ``penalty`` is the share of rows that each column must sort beyond others.
    """
    values, weights = sample.values[rows].astype(np.float64), sample.weights[rows]
    masses = weights @ ~is_second, weights @ is_second
    if not min(masses):
        return []
    means = [(weights * side) @ values for side in (~is_second, is_second)]
    means = [total / mass for total, mass in zip(means, masses, strict=True)]
    around = values - np.where(is_second[:, None], means[1], means[0])
    difference = means[1] - means[0]
    columns = _choose_columns(sample, weights @ around**2 / weights.sum(), difference)
    best: list[Plane] = []
    for n_columns in (1, 2):
        planes = []
        for chosen in combinations(columns.tolist(), n_columns):
            features = np.flatnonzero(np.isin(sample.columns, chosen))
            part = around[:, features]
            apart = difference[features]
            scatter = (part.T * weights) @ part / weights.sum()
            ridge = 1e-3 * (np.trace(scatter) + apart @ apart) / len(features) + 1e-300
            scatter[np.diag_indices(len(features))] += ridge
            direction = np.linalg.solve(scatter, apart)
            distance = float(apart @ direction) or 1.0
            direction /= distance  # the means differ by one
            cut = _find_cut(values[:, features] @ direction, is_second, weights)
            if cut is not None:
                threshold, share = cut
                share = round(share - float(penalty[[*chosen]].sum()), 9)
                rank = share, float(f"{distance:.{DIGITS}g}")
                planes.append(Plane(np.sort(chosen), features, direction, threshold, rank))
        if not planes:
            break
        best.append(max(planes, key=lambda plane: plane.rank))
    return best


def _choose_columns(sample: RuleSample, variances: Array, difference: Array) -> IndexArray:
    """Return the columns that separate most, given variances within and between children."""
    total = variances + difference**2
    separation = difference**2 / np.maximum(variances, 1e-6 * total + 1e-300)
    separation[total <= sample.rounding] = 0.0  # the feature is constant here
    by_column = np.zeros(sample.n_columns)
    np.maximum.at(by_column, sample.columns, separation)
    columns = sort_falling(by_column)[:N_COLUMNS]
    return np.sort(columns[by_column[columns] > 0.0])


def _find_cut(
    scores: Array, is_second: NDArray[np.bool_], weights: Array
) -> tuple[float, float] | None:
    """Return the threshold that divides rows best, of equals in the widest gap; None if equal.

    Also the share of the rows that are on their side.
    """
    order = np.argsort(scores, kind="stable")
    ordered = scores[order]
    signed = (weights * np.where(is_second, -1.0, 1.0))[order]
    gaps = np.diff(ordered)
    # Duplicate rows may differ by rounding, and stay together.
    gaps[gaps <= 1e-10 * np.abs(ordered).max(initial=0.0)] = 0.0
    if not len(gaps) or not gaps.max() > 0.0:
        return None
    right = np.cumsum(signed)[:-1] + weights @ is_second
    right[gaps <= 0.0] = -np.inf
    ties = np.flatnonzero(right >= right.max() - 1e-9 * weights.sum())
    at = ties[gaps[ties].argmax()]
    return float(ordered[at] + 0.5 * gaps[at]), float(right[at] / weights.sum())
