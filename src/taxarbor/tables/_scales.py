"""Shift and scale of each feature in a fit, so that columns of different units compare."""

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np

from taxarbor._errors import InputError, some
from taxarbor._number_text import format_number
from taxarbor._types import Array
from taxarbor.tables.columns import Columns, FoundColumn

LOW_VARIANCE, LOW_VARIANCE_SHARE, DOMINANT_PERCENT = 0.01, 1 / 3, 90.0
"""Columns differ in unit if this share of them have less than a hundredth of the mean variance,
or if one of three or more has 90 % of the total. In tables of measurements more than half are
below, in embeddings and images less than a sixth, and none has more than 15 %."""


def check_cosine(columns: Columns, scale: str | None) -> None:
    """Raise InputError for categories, and for scales that unit length would undo."""
    named = [repr(one.label) for one in columns if one.categories]
    if named:
        problem = f"is for numbers, and X has categories: {some(named, 5)}"
        raise InputError(f"{problem}; drop them, or choose euclidean", "metric")
    if scale not in ("auto", None):
        problem = "has no effect where rows are normalized by the metric cosine; leave it out"
        raise InputError(problem, "scale")


def find_reason_to_scale(
    used: Sequence[FoundColumn], columns: Columns, scale: str | None
) -> str | None:
    """Return why columns are scaled, None if they are not."""
    if scale is None:
        return None
    if scale != "auto":
        return f"numbers are scaled ({scale})"
    n_numbers = sum(len(one.fill) == 1 for one in used)
    if n_numbers < len(used):
        reason = "numbers are scaled to variance 1, beside categories or texts"
        return reason if n_numbers else "categories and words are scaled by their frequency"
    variances = np.array([one.std**2 for one in used])
    variances = variances[variances > 0.0]
    if not len(variances):
        return None
    percent = 100.0 * variances.max() / variances.sum()
    is_dominant = len(variances) > 2 and percent > DOMINANT_PERCENT
    low_share = np.mean(variances < LOW_VARIANCE * variances.mean())
    if not is_dominant and low_share < LOW_VARIANCE_SHARE:
        return None
    largest = columns[int(np.argmax([one.std for one in used]))].label
    share = f"{largest} alone holds {format_number(percent, 3)} % of the variance"
    return f"numbers are scaled to variance 1, as they differ in unit: {share}"


def scale_columns(used: Sequence[FoundColumn], *, is_sparse: bool) -> Array:
    """Return the shift and the scale of each feature. Those of sparse rows are not shifted."""
    shift, scale = np.array([*chain(*map(_scale_column, used))]).T
    return np.array([np.zeros(len(shift)) if is_sparse else shift, scale])


def _scale_column(found: FoundColumn) -> Iterator[tuple[float, float]]:
    """Yield the shift and the scale of each feature of a column."""
    fill = found.fill
    if found.reading is not None and found.reading.kind == "text":
        shares = np.array(fill)
        rarity = 1.0 - np.log(shares)  # as the inverse document frequency of tf-idf
        total = np.sqrt((np.square(rarity) * shares * (1.0 - shares)).sum()) or 1.0
        for scale in (total / rarity).tolist():
            yield 0.0, scale
    elif len(fill) > 2:
        for share in fill:
            yield share, float(np.sqrt(max(share, 1e-12)))
    elif len(fill) == 2:
        yield fill[-1], float(np.sqrt(fill[-1] * (1.0 - fill[-1]))) or 1.0
    else:
        yield fill[0], found.std or 1.0
