"""Where a split begins.

With a weak penalty the model fits whatever labels it is given, and the first alternation is
the last: where it starts decides where it ends. A start is a set of centres, one per child,
seen from the rows' own centre; a row begins with the child whose centre is nearest. Starts
see few of the node's rows.
"""

from collections.abc import Callable

import numpy as np

from taxarbor._types import Array, IndexArray
from taxarbor.rows import Rows

START_ROWS = 250
"""Rows per child that a start looks at. On the eight shared sets as good as 1,000."""

LLOYD_STEPS = 6
"""Steps of k-means in a start: it need not settle, the margins will see to that."""

POWER_STEPS = 3
"""Steps towards the principal direction: it need not be exact."""

Start = Callable[[Rows, int, np.random.Generator], Array]


def draw_sample(n_rows: int, size: int, rng: np.random.Generator) -> IndexArray | None:
    """Return sorted positions of a sample of rows; None where all rows fit in it."""
    if n_rows <= size:
        return None
    return np.sort(rng.choice(n_rows, size, replace=False, shuffle=False))


def thin_out(rows: Rows, size: int) -> Rows:
    """Return at most ``size`` of the rows, evenly spaced, about the same centre."""
    if rows.n_rows <= size:
        return rows
    return rows.take(np.arange(size) * rows.n_rows // size, center=rows.center)


def true_spread(rows: Rows) -> Array:
    """Return the mean absolute deviation of each feature, zero where it is only rounding.

    That is, within the last digits of the centre or of the largest deviation.
    """
    spread = rows.spread()
    eps = float(np.finfo(rows.dtype).eps)
    noise = eps * (4.0 * np.abs(rows.center) + 16.0 * spread.max(initial=0.0))
    return np.where(spread > noise, spread, 0.0)


def principal_start(rows: Rows, n_children: int, rng: np.random.Generator) -> Array:
    """Return k-means centres, begun from slices along the principal direction."""
    direction = rows.principal(_random_direction(rows, rng), POWER_STEPS)
    return _settle(rows, _slices(rows, direction, n_children))


def random_start(rows: Rows, n_children: int, rng: np.random.Generator) -> Array:
    """Return k-means centres, begun from slices along a random direction."""
    direction = rows.principal(_random_direction(rows, rng), 0)
    return _settle(rows, _slices(rows, direction, n_children))


def far_rows_start(rows: Rows, n_children: int, rng: np.random.Generator) -> Array:
    """Return k-means centres, begun from rows far from each other."""
    return _settle(rows, far_rows(rows, n_children, rng))


def far_rows(rows: Rows, n_children: int, rng: np.random.Generator) -> Array:
    """Return rows far from each other, drawn as in k-means++."""
    norms = rows.norms()
    nearest = norms
    centers = np.empty((0, rows.n_features))
    for _ in range(n_children):
        mass = np.cumsum(np.maximum(nearest, 0.0))
        chosen = min(int(np.searchsorted(mass, rng.random() * mass[-1])), rows.n_rows - 1)
        center = _row(rows, chosen)
        distance = norms - 2.0 * rows.scores(center)[:, 0] + norms[chosen]
        nearest = np.minimum(nearest, distance) if len(centers) else distance
        centers = np.concatenate([centers, center])
    return centers


STARTS: tuple[Start, ...] = (principal_start, far_rows_start, random_start)
"""Taken in turn, again and again, until there are as many as requested."""


def _random_direction(rows: Rows, rng: np.random.Generator) -> Array:
    """Mix the rows at random: directions in which they vary more are likelier."""
    mixture = rng.standard_normal((rows.n_rows, 1), dtype=np.float32)
    mixed: Array = rows.adjoint(mixture.astype(rows.dtype, copy=False))[0]
    return mixed


def _slices(rows: Rows, direction: Array, n_children: int) -> Array:
    """Return points on a line, each in the middle of an equal share of the rows."""
    along = rows.scores(direction[None])[:, 0]
    middles = (2 * np.arange(n_children) + 1) * rows.n_rows // (2 * n_children)
    return np.partition(along, middles)[middles].astype(np.float64)[:, None] * direction


def _row(rows: Rows, position: int) -> Array:
    pick = np.zeros((rows.n_rows, 1), dtype=rows.dtype)
    pick[position] = 1.0
    return rows.adjoint(pick)


def _settle(rows: Rows, centers: Array) -> Array:
    return rows.lloyd(centers, LLOYD_STEPS)[1]
