r"""Division of one node in two where the gap is: a dense plane with an intercept.

Taxarbor finds its clusters so; rules on few features are found later, when the tree is whole.
The plane is found on a sample, with a light ridge in place of the sparse penalties, which would
cost a point or two of agreement with true classes. The last feature of the rows is
a constant, so its weight is the intercept: boundaries need not pass through the node's mean,
and small clusters are cut off where the gap is. What keeps them from being slivers is the lower
bound on a child's size and the choice among starts, by their gap: the scatter between the
children for the root of the objective. The objective alone would reward cutting off a few rows,
the scatter alone cutting through the middle of a cloud.

All starts of a node run compiled, in one call (``native/src/halve.cpp``).
"""

from dataclasses import dataclass
from typing import final

from taxarbor._types import Array, SolveInfo, Status
from taxarbor.optim import size_bounds
from taxarbor.rows import HalveProblem, as_rows
from taxarbor.split._splitter import Refusal, refuse_size

RIDGE = 3e-3
"""Weight of the squared weights, as a share of the rows' variance."""

PLANE_ROWS = 1000
"""Rows on which the plane is found."""

STARTS = ("principal", "ward", "far_rows", "ward", "ward", "ward")
"""Taken in turn, again and again, until there are as many as requested. Ward's clusters of
other rows are other starts; the others hardly change."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Plane:
    """Where to divide a node: rows of the highest ``weights @ z + offset`` on one side."""

    weights: Array  # of all coordinates, the constant one as well
    offset: float
    gap: float  # separation of the sample: the larger, the clearer
    info: SolveInfo


@final
@dataclass(frozen=True, slots=True)
class GapSplitter:
    """Splits lifted rows, whose last feature is constant, in two where the gap is."""

    # The least and greatest size of a child, as multiples of half of the rows.
    balance: tuple[float, float] = (0.5, 1.5)
    n_init: int = 1
    min_size: int = 1  # of a child

    def find(self, sample: Array, n_rows: int, seed: int) -> Plane | Refusal:
        """Return the best plane for a sample of a node's rows, or why there is none."""
        few = refuse_size(n_rows, 2, self.min_size)
        if few is not None:
            return few
        rows = as_rows(sample)
        starts = [STARTS[turn % len(STARTS)] for turn in range(self.n_init)]
        bounds = self.bounds(len(sample), n_rows)
        half = rows.halve(HalveProblem(seed, starts, bounds, RIDGE / 2.0))
        if half is None:
            return Refusal(f"all of its {n_rows} rows are equal, or nearly so")
        trace, status = tuple(half.trace), Status(half.status)
        info = SolveInfo(status, len(trace) - 1, half.n_passes, trace)
        offset = -float(half.weights[:-1] @ rows.center[:-1])
        return Plane(half.weights, offset, half.gap, info)

    def bounds(self, n_drawn: int, n_rows: int) -> tuple[int, int]:
        """Return the least and most of a node's drawn rows that a child may have."""
        least = max(self.balance[0], min(2 * self.min_size / n_rows, 1.0))
        low, high = size_bounds(n_drawn, 2, least, self.balance[1])
        return max(low, n_drawn - high), min(high, n_drawn - low)
