"""Integer size bounds, made feasible."""

import math

NOISE = 1e-9
"""Relative: 1.1 * 30 / 3 is 11.000000000000002, and eleven rows are meant."""


def size_bounds(n: int, k: int, low: float, high: float) -> tuple[int, int]:
    """Return the least and the largest number of rows that each of k children may have.

    The bounds are ``ceil(low * n / k)`` and ``floor(high * n / k)``, kept to what leaves no
    child empty, then widened by the least amount that makes ``k * lower <= n <= k * upper``.

    Parameters
    ----------
    n, k : int
        Number of rows and of children, ``1 <= k <= n``.
    low, high : float
        Bounds as multiples of the even share ``n / k``, ``0 <= low <= 1 <= high``.
        ``low=0, high=k`` asks for nothing but non-empty children.

    Returns
    -------
    lower, upper : int

    Raises
    ------
    ValueError
        If ``k`` children of ``n`` rows cannot all be non-empty, or ``low`` and ``high`` are
        not on their side of 1.

    Examples
    --------
    >>> size_bounds(30, 3, 0.9, 1.1)
    (9, 11)
    >>> size_bounds(7, 3, 1, 1)
    (2, 3)
    >>> size_bounds(7, 3, 0, 3)
    (1, 5)
    """
    if not 1 <= k <= n:
        raise ValueError(f"{n} rows cannot make {k} non-empty children; need 1 <= k <= n")
    if not 0 <= low <= 1:
        raise ValueError(f"low must lie between 0 and 1, as a share of n / k; got {low}")
    if not high >= 1:
        raise ValueError(f"high must be at least 1, as a multiple of n / k; got {high}")
    lower = math.ceil(low * n / k * (1 - NOISE))
    upper = math.floor(min(high, k) * n / k * (1 + NOISE))
    lower = min(max(lower, 1), n // k)
    upper = max(min(upper, n - (k - 1)), -(-n // k))
    return lower, upper
