"""The data in a few coordinates: where clusters are found before rules for them are sought."""

from dataclasses import dataclass, replace
from typing import Self, final

import numpy as np

from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import LinearRule
from taxarbor.rows import Rows, as_rows

N_COORDINATES = 63
"""Principal directions that are kept; with the constant one a round number for the machine.
On the shared sets half as many cost a point of most measures; all of them gained nothing."""

SAMPLE = 5000
"""Rows from which the directions are found."""

MAX_GRAM = 512
"""Features up to which their covariance is diagonalised; beyond, its span is iterated."""

EXTRA, STEPS = 8, 3
"""Directions beyond those wanted, and steps, of the iteration."""

LIFT = 10.0
"""The constant coordinate, in units of the data's spread. So large that a penalty on its
weight, the intercept, is negligible, and small enough not to cost digits."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """The rows along their principal directions, in units of their overall spread.

    Attributes
    ----------
    values : array of shape (n_rows, n_coordinates + 1)
        The coordinates, of the data's dtype, and a constant one at the end.
    directions : array of shape (n_coordinates, n_features)
        What takes a row, seen from the centre, to its coordinates.
    center : array of shape (n_features,)
        The mean of the rows.
    scatter : array of shape (n_coordinates, n_coordinates)
        The covariance of the coordinates: all of it, between leaves and within.
    n_threads : int
        As that of the rows.
    """

    values: Array
    directions: Array
    center: Array
    scatter: Array
    n_threads: int

    @classmethod
    def of(cls, rows: Rows, seed: int) -> Self:
        """Return the coordinates of rows about their mean: zeros, if all are equal."""
        rng = np.random.default_rng(seed)
        few = rows
        if rows.n_rows > SAMPLE:
            chosen = np.sort(rng.choice(rows.n_rows, SAMPLE, replace=False, shuffle=False))
            few = rows.take(chosen, center=rows.center)
        spread = float(np.sqrt(rows.norms().mean())) or 1.0
        directions = _principal_directions(few, rng) / spread
        # One more, which becomes the constant: the scores are the values, none is copied.
        values = rows.scores(np.pad(directions, ((0, 1), (0, 0))))
        values[:, -1] = LIFT
        scatter = _scatter(values, rows.n_threads)
        return cls(values, directions, rows.center, scatter, rows.n_threads)

    def take(self, positions: IndexArray) -> "Coordinates":
        """Return the same coordinates of some of the rows."""
        values = self.values[positions]
        return replace(self, values=values, scatter=_scatter(values, self.n_threads))

    @property
    def rows(self) -> Rows:
        """The coordinates as rows about their mean."""
        return as_rows(self.values, n_threads=self.n_threads)

    @property
    def about_origin(self) -> Rows:
        """The coordinates as rows about zero, which is where their mean is but for rounding."""
        origin = np.zeros(self.values.shape[1])
        return as_rows(self.values, center=origin, n_threads=self.n_threads)

    def rule(self, weights: Array, offsets: Array) -> LinearRule:
        """Return a linear rule on the coordinates as one on the features."""
        dtype = self.values.dtype
        parts = weights @ self.directions, self.center, offsets
        return LinearRule(*(part.astype(dtype) for part in parts))


def _scatter(values: Array, n_threads: int) -> Array:
    """Return the covariance of coordinates whose mean is zero, and whose last is constant."""
    n, p = values.shape
    rows = as_rows(values, center=np.zeros(p), n_threads=n_threads)
    scatter: Array = rows.gram(np.arange(n), np.arange(p - 1)) / n
    return scatter


def _principal_directions(rows: Rows, rng: np.random.Generator) -> Array:
    """Return orthonormal directions of greatest variance, as rows; all if they are few."""
    P, size = rows.n_features, N_COORDINATES
    if size >= P:
        return np.eye(P)
    if P <= MAX_GRAM:
        gram = rows.gram(np.arange(rows.n_rows), np.arange(P))
        return np.ascontiguousarray(np.linalg.eigh(gram)[1][:, : -size - 1 : -1].T)
    width = min(size + EXTRA, rows.n_rows)
    mixture = rng.standard_normal((rows.n_rows, width)).astype(rows.dtype)
    for _ in range(STEPS):
        basis = np.linalg.qr(rows.adjoint(mixture).T)[0].T
        mixture = rows.scores(basis)
    along = mixture.astype(np.float64)
    order = np.linalg.eigh(along.T @ along)[1][:, ::-1][:, :size]
    return np.ascontiguousarray(order.T @ basis)
