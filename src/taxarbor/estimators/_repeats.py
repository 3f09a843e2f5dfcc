"""Weights of rows as repeats: a fit sees each row as often as it counts."""

from dataclasses import dataclass, replace
from typing import TypeVar, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._errors import InputError, counted
from taxarbor._types import Array, IndexArray
from taxarbor.grow import StoppingRule
from taxarbor.sources import Sample
from taxarbor.tables.checks import count_repeats

Table = TypeVar("Table")


@final
@dataclass(frozen=True, slots=True, eq=False)
class Repeats:
    """How often each row of a sample is repeated in a fit."""

    n_rows: int  # of the sample
    counts: IndexArray | None  # of each row, 0 if it is excluded; None for once
    per_row: float  # how many repeats stand for a row, or a unit of weight, of the source

    @classmethod
    def of(
        cls, sample: Sample, empty: NDArray[np.bool_] | None, n_clusters: int | None
    ) -> "Repeats":
        """Count the repeats of the rows of a sample: none of rows without a value."""
        weights, n = sample.weights, len(sample.rows)
        if empty is not None:
            weights = np.where(empty, 0.0, 1.0 if weights is None else weights)
        counts, per_row = None, n / sample.n_rows
        if weights is not None:
            counts = count_repeats(weights)
            with np.errstate(over="ignore"):
                per_row = float(counts.sum() / weights.sum())
            n = int(np.count_nonzero(counts))
        if n < 2:
            problem = f"has {counted(n, 'row')} with a value"
            if sample.weights is not None:
                problem += " and a positive weight"
            raise InputError(f"{problem}; a fit needs at least 2", "X")
        if n_clusters is not None and n_clusters > n:
            message = f"is {n_clusters}, more than the n_samples={n} rows of the fit; lower it"
            raise InputError(message, "n_clusters")
        return cls(len(sample.rows), counts, per_row)

    @property
    def copies_per_row(self) -> float:
        """Average number of repeats of a row; 1 where weights are numbers of rows."""
        if self.counts is None or self.per_row == 1.0:
            return 1.0
        return float(self.counts.sum() / np.count_nonzero(self.counts))

    @property
    def index(self) -> IndexArray:
        """The position in the sample of each repeat."""
        rows = np.arange(self.n_rows)
        return rows if self.counts is None else np.repeat(rows, self.counts)

    def repeat(self, table: Table) -> Table:
        """Return the rows of an array or a CSR matrix of the sample, each repeated."""
        return table if self.counts is None else table[self.index]  # type: ignore[index]

    def exclude(self, outliers: NDArray[np.bool_]) -> "Repeats":
        """Return the same without some of the repeats."""
        return replace(self, counts=np.bincount(self.index[~outliers], minlength=self.n_rows))

    def scale_size(self, size: int) -> int:
        """Return how many repeats stand for so many rows of the source, at least one."""
        return max(round(min(size * self.per_row, 2.0**31)), 1)

    def scale_stop(self, stop: StoppingRule) -> StoppingRule:
        """Return when to stop, with sizes in repeats."""
        most = stop.max_leaf_size
        return stop if most is None else replace(stop, max_leaf_size=self.scale_size(most))

    def weigh_rows(self, weights: Array | None, n_rows: int) -> Array | None:
        """Return the weights of the rows of the source: 0 for those that were excluded.

        Where the sample is not all rows, that is not known, and weights are as given.
        """
        if self.counts is None or self.n_rows < n_rows:
            return weights
        given = np.ones(self.n_rows) if weights is None else weights
        return np.where(self.counts > 0, given, 0.0)
