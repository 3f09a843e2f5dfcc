"""The data in a few coordinates: where clusters are found before rules for them are sought."""

from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from taxarbor import native
from taxarbor._run import Run, node_seed
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import LinearRule
from taxarbor.rows import Rows, as_rows
from taxarbor.rows._memory import seen_from
from taxarbor.sweep import Blocks, Column, LocalEngine, blocks_of
from taxarbor.sweep._copies import Copies, Drawn, draw, limits

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

BITS = 22
"""Coordinates are whole multiples of a unit, a power of two, and the farthest row has so many
bits: sums of them are exact, whatever the order."""

WIDE = 40
"""Bits of the lower part of a sum of products."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What one sweep over the data finds: the mean of the rows, and a sample of them."""

    center: Array
    sample: Any

    @classmethod
    def of(cls, blocks: Blocks, copies: Copies, seed: int) -> Self:
        """Sweep the rows that take part."""
        found = blocks.engine.sweep(
            _survey,
            *(blocks.data, copies.counts, copies.first),
            keys=np.array([node_seed(seed, ())], dtype=np.uint64),
            bounds=limits(np.array([copies.n]), SAMPLE),
        )
        sums, drawn = found
        center = native.exact_values(sums[0], blocks.dtype == np.float32) / copies.n
        at, _ = drawn.lowest(SAMPLE)
        return cls(center.astype(blocks.dtype).astype(np.float64), drawn.stacked()[at])


def _survey(X: Any, counts: Any, first: int, **low: Any) -> tuple[NDArray[np.int64], Drawn]:
    rows = seen_from(X, np.zeros(X.shape[1]))
    return rows.exact_sums(None, counts, 1), draw(X, None, counts, first, **low)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """The rows along their principal directions, in units of their overall spread.

    Attributes
    ----------
    blocks : Blocks
        The rows, with all features.
    copies : Copies
        How often each counts.
    values : Column
        float32 arrays of shape (n_rows, n_coordinates + 1), the last one constant; zero for
        rows that take no part.
    directions : array of shape (n_coordinates, n_features)
        What takes a row, seen from the centre, to its coordinates.
    center : array of shape (n_features,)
        The mean of the rows.
    unit : float
        What all coordinates are multiples of.
    scatter : array of shape (n_coordinates, n_coordinates)
        The covariance of the coordinates: all of it, between leaves and within.
    """

    blocks: Blocks
    copies: Copies
    values: Column
    directions: Array
    center: Array
    unit: float
    scatter: Array

    @classmethod
    def of(
        cls, blocks: Blocks, copies: Copies, survey: Survey, farthest: float, seed: int
    ) -> Self:
        """Return the coordinates of rows about their mean: zeros, if all are equal.

        ``farthest`` is a bound on the distance of a row from the mean.
        """
        few = as_rows(survey.sample, center=survey.center)
        spread = float(np.sqrt(few.norms().mean())) or 1.0
        directions = _principal_directions(few, np.random.default_rng(seed)) / spread
        bound = max(1.001 * farthest / spread, LIFT)
        unit = 2.0 ** (np.ceil(np.log2(bound)) - BITS)
        values, gram = blocks.engine.keep(
            _project,
            *(blocks.data, copies.counts),
            directions=np.pad(directions, ((0, 1), (0, 0))),
            center=survey.center,
            unit=unit,
        )
        scatter = _scatter(gram, unit, copies.n)
        return cls(blocks, copies, values, directions, survey.center, unit, scatter)

    @classmethod
    def in_memory(cls, X: Any, seed: int) -> Self:
        """Return the coordinates of the rows of an array or a matrix, each counted once."""
        blocks = blocks_of(X, LocalEngine(Run(seed)))
        copies = Copies.once(blocks.sizes)
        survey = Survey.of(blocks, copies, seed)
        farthest = float(np.sqrt(seen_from(X, survey.center).norms().max()))
        return cls.of(blocks, copies, survey, farthest, seed)

    @property
    def array(self) -> Array:
        """The coordinates of all rows, of shape (n_rows, n_coordinates), gathered here."""
        found: Array = np.concatenate(self.blocks.engine.gather(self.values))[:, :-1]
        return found

    def take(self, positions: IndexArray) -> "Coordinates":
        """Return the same coordinates of some of the rows, in one block."""
        values = np.concatenate(self.blocks.engine.gather(self.values))[positions]
        copies = Copies.once(np.array([len(positions)]))
        scatter = _scatter(native.exact_gram(values, self.unit), self.unit, len(positions))
        return replace(self, copies=copies, values=[values], scatter=scatter)

    def rule(self, weights: Array, offsets: Array) -> LinearRule:
        """Return a linear rule on the coordinates as one on the features."""
        parts = weights @ self.directions, self.center, offsets
        return LinearRule(*(part.astype(self.blocks.dtype) for part in parts))


def _scatter(gram: NDArray[np.int64], unit: float, n: int) -> Array:
    """Return the covariance of coordinates whose mean is zero, and whose last is constant."""
    high, low = _carried(gram)[:, :-1, :-1].astype(np.float64)
    scatter: Array = (high * 2.0**WIDE + low) * (unit**2 / n)
    return scatter


def _lift(unit: float) -> float:
    return max(round(LIFT / unit), 1) * unit


def _project(
    X: Any, counts: NDArray[np.int32] | None, *, directions: Array, center: Array, unit: float
) -> tuple[Array, NDArray[np.int64]]:
    """Return the coordinates of a block, and the sums of their products."""
    scores = seen_from(X, center).scores(directions)
    scores /= scores.dtype.type(unit)
    np.rint(scores, out=scores)
    scores *= scores.dtype.type(unit)
    values = np.ascontiguousarray(scores, dtype=np.float32)
    values[:, -1] = _lift(unit)
    if counts is not None:
        values[counts == 0] = 0.0
    return values, _gram(values, counts, unit)


def _gram(values: Array, counts: NDArray[np.int32] | None, unit: float) -> NDArray[np.int64]:
    """Return the sums of products of the coordinates of all copies: high and low parts."""
    if counts is None:
        return native.exact_gram(values, unit)
    total = np.zeros((2, values.shape[1], values.shape[1]), dtype=np.int64)
    for bit in range(int(counts.max(initial=0)).bit_length()):
        high, low = native.exact_gram(values[(counts >> bit) & 1 == 1], unit)
        total[0] += (high << bit) + (low >> (WIDE - bit))
        total[1] += (low & (2 ** (WIDE - bit) - 1)) << bit
    return _carried(total)


def _carried(gram: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return sums of products whose low parts are below their limit again."""
    return np.stack([gram[0] + (gram[1] >> WIDE), gram[1] & (2**WIDE - 1)])


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
