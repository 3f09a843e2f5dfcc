"""Functions, scales and weights of columns in a fit, so that those of different units compare.

A skewed column is made symmetric: rules read its logarithm, shifted so that its quantiles have
no skewness. Numbers have variance 1. Then each column counts by what others tell of it,
copies of one column count once, and weights that are given replace those that are found.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from taxarbor._errors import InputError, some
from taxarbor._number_text import format_number
from taxarbor._types import Array, IndexArray
from taxarbor.tables.columns import Columns, FoundColumn

LOW_VARIANCE, LOW_VARIANCE_SHARE = 0.01, 1 / 3
DOMINANT_PERCENT, DOMINANT_RATIO = 90.0, 10.0
"""Columns differ in unit if this share of them have less than a hundredth of the mean variance,
or if one of three or more has 90 % of the total, or more than half and ten times as much as the
next. In tables of measurements more than half are below, in embeddings and images less than a
sixth, and none has more than 15 %. Or if half have few values, such as answers from 1 to 5, and
one of the others has ten times their median variance."""

MAX_FEW_VALUES = 10  # distinct values: of answers, not of measurements

MIN_SKEWNESS, N_QUANTILES = 1.0, 1001
"""Skewness from which on a column is made symmetric, and the quantiles by which it is."""
STEPS, LEAST_UNIT, LARGEST_UNIT = 40, 1e-3, 100.0
"""Bisections of the unit of a logarithm, between shares of the median and of the range."""

COPY = 0.999  # correlation from which on columns say the same
MAX_WEIGHED = 2000  # features up to which columns are weighed: their correlations are inverted
CORRELATION_RIDGE = 0.05  # of their mean variance
UNTOLD, TOLD = 0.02, 0.1
"""A column counts whole if others tell this share of its variance, adjusted for their number,
and in proportion below, but for a fifth. Without weights the mean adjusted Rand index of eleven
made kinds of tables (docs/groups.md, 0.93) is about two points less; where weights go on rising
with that share, columns that share a factor outvote groups."""


def scale_columns(
    columns: Columns, used: Sequence[FoundColumn], scale: str | None, *, is_sparse: bool
) -> tuple[Columns, str | None]:
    """Return columns with their scales, and why they are scaled, None if they are not.

    Features of sparse rows are not shifted. Raises InputError where rows have unit length, for
    categories, and for scales that it would undo.
    """
    if columns.unit_length:
        if named := [repr(one.label) for one in columns if one.categories]:
            problem = f"is for numbers, and X has categories: {some(named, 5)}"
            raise InputError(f"{problem}; drop them, or choose euclidean", "metric")
        if scale not in ("auto", None):
            raise InputError("has no effect with the metric cosine; leave it out", "scale")
        return columns, None
    reason = _find_reason(columns, used, scale)
    if reason is None:
        return columns, None
    shifts, scales = np.array([*chain(*map(_scale_column, used))]).T
    if is_sparse or columns.is_sparse:
        shifts = np.zeros(len(shifts))
    return replace(columns, shift=shifts, scale=scales), reason


def _find_reason(
    columns: Columns, used: Sequence[FoundColumn], scale: str | None
) -> str | None:
    """Return why columns are scaled, None if they are not."""
    if scale is None:
        return None
    if scale != "auto":
        return f"numbers are scaled ({scale})"
    readings = [one.reading for one in used]
    n_numbers = sum(
        one is None or one.kind == "ordered" or len(one.categories) < 2 for one in readings
    )
    if n_numbers < len(used):
        reason = "numbers are scaled to variance 1, beside categories or texts"
        return reason if n_numbers else "categories and words are scaled by their frequency"
    variances = np.array([one.std**2 for one in used])
    variances = variances[variances > 0.0]
    if not len(variances):
        return None
    second, first = np.sort(variances)[[-min(len(variances), 2), -1]].tolist()
    percent = 100.0 * first / float(variances.sum())
    is_alone = first > DOMINANT_RATIO * second and percent > 50.0
    is_dominant = len(variances) > 2 and (percent > DOMINANT_PERCENT or is_alone)
    low_share = np.mean(variances < LOW_VARIANCE * variances.mean())
    if not (is_dominant or low_share >= LOW_VARIANCE_SHARE or _are_answers_outvoted(used)):
        return None
    largest = columns[int(np.argmax([one.std for one in used]))].label
    share = f"{largest} alone holds {format_number(percent, 3)} % of the variance"
    return f"numbers are scaled to variance 1, as they differ in unit: {share}"


def _are_answers_outvoted(used: Sequence[FoundColumn]) -> bool:
    """Return whether half of the columns have few values, and others far larger variances."""
    variances = np.array([one.std**2 for one in used])
    typical = float(np.median(variances))
    if any(one.cells is None for one in used) or not variances.max() > DOMINANT_RATIO * typical:
        return False
    n_values = (len(np.unique(one.cells[~np.isnan(one.cells)])) for one in used)
    has_few = np.array([n <= MAX_FEW_VALUES for n in n_values])
    if not len(used) <= 2 * has_few.sum() < 2 * len(used):
        return False
    answers = float(np.median(variances[has_few]))
    return bool(variances[~has_few].max() > DOMINANT_RATIO * answers > 0.0)


def find_quantiles(values: Array, mean: float, std: float) -> Array | None:
    """Return quantiles of a skewed column, None if it is not skewed or has few values."""
    if not std > 0.0 or abs(_skewness((values - mean) / std)) <= MIN_SKEWNESS:
        return None
    levels = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    quantiles: Array = np.quantile(values, levels, method="inverted_cdf")
    return quantiles if len(np.unique(quantiles)) > MAX_FEW_VALUES else None


def _skewness(values: Array) -> float:
    away = values - values.mean()
    squares = away * away  # cubes by ** take ten times as long
    return float(squares @ away / len(away) / max(squares.mean(), 1e-300) ** 1.5)


def find_log(quantiles: Array) -> tuple[float, float]:
    """Return origin and unit of the logarithm after which quantiles have no skewness."""
    sign = 1.0 if _skewness(quantiles) > 0.0 else -1.0
    steps: Array = sign * quantiles
    steps = steps - steps.min()
    low = np.log(max(LEAST_UNIT * np.median(steps[steps > 0.0]), 1e-12 * steps.max()))
    high = np.log(LARGEST_UNIT * steps.max())
    for _ in range(STEPS):  # the skewness rises with the unit
        middle = (low + high) / 2.0
        is_long = _skewness(np.log1p(steps / np.exp(middle))) > 0.0
        low, high = (low, middle) if is_long else (middle, high)
    return float(sign * (sign * quantiles).min()), float(sign * np.exp(high))


def straighten(columns: Columns, used: Sequence[FoundColumn]) -> Columns:
    """Return columns of which the skewed ones are read as logarithms, scaled to variance 1."""
    origin, unit = columns.log_origin.copy(), columns.log_unit.copy()
    fills, shift, scale = columns.fills.copy(), columns.shift.copy(), columns.scale.copy()
    begins = np.searchsorted(columns.owner, np.arange(len(used))).tolist()
    quantiles_of = {at: one.quantiles for at, one in zip(begins, used, strict=True)}
    skewed = [(at, values) for at, values in quantiles_of.items() if values is not None]
    for at, values in skewed:
        origin[at], unit[at] = find_log(values)
    columns = replace(columns, log_origin=origin, log_unit=unit)
    for at, values in skewed:
        logs = columns.take_logs(values[:, None], [at])[:, 0]
        shift[at], scale[at] = logs.mean(), logs.std() or 1.0
        fills[at] = columns.undo_log(at, shift[at])
    return replace(columns, fills=fills, shift=shift, scale=scale)


def weigh_columns(
    columns: Columns,
    data: Any,
    counts: IndexArray | None,
    given: Mapping[str, float],
    copies: Sequence[Sequence[int]],
    *,
    is_auto: bool,
) -> tuple[Columns, Array]:
    """Return columns whose scales have weights, and these but for the share of copies.

    ``data`` are the scaled features of the sample, ``counts`` how often each row counts, and
    ``copies`` groups of columns that say the same. Weights are found if ``is_auto``; those that
    are given, by name, replace them.
    """
    told: Array = np.ones(len(columns))
    sizes: Array = told
    if is_auto and columns.n_features <= MAX_WEIGHED:
        told, sizes = _find_weights(columns.equalize(), columns, data, counts, copies)
    weights = told / sizes
    for place, column in enumerate(columns):
        weights[place] = given.get(column.name, weights[place])
    scale = columns.scale / np.sqrt(weights[columns.owner])
    return replace(columns, scale=scale), told


def _find_weights(
    equal: Columns, columns: Columns, data: Array, counts: IndexArray | None, copies: Any
) -> tuple[Array, Array]:
    """Return the weight of each column by what others tell of it, and its number of copies."""
    values: Array = data.astype(np.float64) * (columns.scale / equal.scale)
    n_rows = len(values) if counts is None else int(counts.sum())
    weighted = values if counts is None else values * counts[:, None]
    mean = weighted.sum(axis=0) / n_rows
    covariance: Array = weighted.T @ values / n_rows - np.outer(mean, mean)
    groups = _group_copies(columns.owner, covariance, copies)
    _, first, sizes = np.unique(groups, return_index=True, return_counts=True)
    one_each = np.flatnonzero(np.isin(columns.owner, first))
    part, owner = covariance[np.ix_(one_each, one_each)], columns.owner[one_each]
    part[np.diag_indices(len(part))] += CORRELATION_RIDGE * np.trace(part) / len(part)
    inverse = np.linalg.inv(part + 1e-12 * np.eye(len(part)))
    told = np.zeros(len(first))
    for group, place in enumerate(first.tolist()):
        own = np.ix_(*[np.flatnonzero(owner == place)] * 2)
        unexplained = np.trace(np.linalg.inv(inverse[own])) / np.trace(part[own])
        told[group] = 1.0 - unexplained * (n_rows - 1.0) / max(n_rows - len(part) - 1.0, 1.0)
    found = np.minimum(np.maximum(told, 0.0) + UNTOLD, TOLD)
    return np.asarray(found / found.max())[groups], sizes[groups].astype(np.float64)


def _group_copies(owner: IndexArray, covariance: Array, copies: Any) -> NDArray[np.intp]:
    """Return for each column the number of its group, of columns that say the same."""
    n_columns = int(owner[-1]) + 1
    alike = np.zeros((n_columns, n_columns), dtype=bool)
    for group in copies:
        alike[np.ix_(group, group)] = True
    single = np.flatnonzero(np.bincount(owner) == 1)
    at = np.searchsorted(owner, single)
    deviations = np.sqrt(np.maximum(np.diag(covariance)[at], 1e-300))
    correlations = np.abs(covariance[np.ix_(at, at)]) / np.outer(deviations, deviations)
    alike[np.ix_(single, single)] |= correlations >= COPY
    return np.asarray(connected_components(alike)[1])


def _scale_column(found: FoundColumn) -> Iterator[tuple[float, float]]:
    """Yield the shift and the scale of each feature of a column."""
    shares = np.array(found.fills)
    if found.reading is not None and found.reading.kind == "text":
        rarity = 1.0 - np.log(shares)  # as the inverse document frequency of tf-idf
        total = np.sqrt((np.square(rarity) * shares * (1.0 - shares)).sum()) or 1.0
        for scale in (total / rarity).tolist():
            yield 0.0, scale
    elif len(shares) > 1:
        yield from zip(found.fills, np.sqrt(np.maximum(shares, 1e-12)).tolist(), strict=True)
    else:
        yield found.fills[0], found.std or 1.0
