"""Shift and scale of each feature in a fit, so that columns of different units compare."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from taxarbor._errors import InputError, some
from taxarbor._number_text import format_number
from taxarbor.tables.columns import Columns, FoundColumn

LOW_VARIANCE, LOW_VARIANCE_SHARE = 0.01, 1 / 3
DOMINANT_PERCENT, DOMINANT_RATIO = 90.0, 10.0
"""Columns differ in unit if this share of them have less than a hundredth of the mean variance,
or if one of three or more has 90 % of the total, or more than half and ten times as much as the
next. In tables of measurements more than half are below, in embeddings and images less than a
sixth, and none has more than 15 %."""


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
    if not is_dominant and low_share < LOW_VARIANCE_SHARE:
        return None
    largest = columns[int(np.argmax([one.std for one in used]))].label
    share = f"{largest} alone holds {format_number(percent, 3)} % of the variance"
    return f"numbers are scaled to variance 1, as they differ in unit: {share}"


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
