"""How far features vary."""

import numpy as np

from taxarbor._types import Array
from taxarbor.rows import Rows


def true_spread(rows: Rows) -> Array:
    """Return the mean absolute deviation of each feature, zero where it is only rounding.

    That is, within the last digits of the centre or of the largest deviation.
    """
    spread = rows.spread()
    eps = float(np.finfo(rows.dtype).eps)
    noise = eps * (4.0 * np.abs(rows.center) + 16.0 * spread.max(initial=0.0))
    return np.where(spread > noise, spread, 0.0)
