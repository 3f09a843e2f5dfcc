"""Who takes part in a fit, how often, and samples of them.

Rows are numbered by their copies: a row that counts three times has three numbers in a row, one
that takes no part has none. A sample is the copies with the lowest hash of a key and their
number, so that it is the same however the rows lie in blocks.
"""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor import native
from taxarbor._types import IndexArray
from taxarbor.sweep._engine import Column, Engine

ALL = np.uint64(2**64 - 1)
"""No hash is higher."""

Hashes = NDArray[np.uint64]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Copies:
    """How often each row counts.

    Attributes
    ----------
    counts : Column
        An int32 per row, or None for a block whose rows count once each.
    first : Column
        The number of the first copy in each block.
    n : int
        Number of copies.
    """

    counts: Column
    first: Column
    n: int

    @classmethod
    def once(cls, sizes: IndexArray) -> Self:
        """Return that each row counts once, given the numbers of rows of the blocks."""
        stops = np.cumsum(sizes)
        return cls([None] * len(sizes), (stops - sizes).tolist(), int(stops[-1]))

    @classmethod
    def of(cls, counts: Column, engine: Engine) -> Self:
        """Return how often rows count, given the counts of all rows in each block."""
        sums = np.array(engine.sweep(_total, counts).items)
        stops = np.cumsum(sums)
        return cls(counts, (stops - sums).tolist(), int(stops[-1]))


@final
@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """What blocks found, one after the other."""

    items: list[Any]

    def merge(self, other: "Listed") -> "Listed":
        """Put the other's behind."""
        return Listed(self.items + other.items)


def _total(counts: NDArray[np.int32]) -> Listed:
    return Listed([int(counts.sum(dtype=np.int64))])


def count_copies(
    labels: NDArray[np.integer[Any]], counts: NDArray[np.int32] | None, *, n_labels: int
) -> NDArray[np.int64]:
    """Return how many copies there are of rows of each label; negative ones do not count."""
    (there,) = np.nonzero(labels >= 0)
    own = None if counts is None else counts[there]
    return np.bincount(labels[there], weights=own, minlength=n_labels).astype(np.int64)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Rows with low hashes, each of a part, and what is known of them."""

    parts: IndexArray
    hashes: Hashes
    rows: list[Any]

    def __copy__(self) -> "Drawn":
        return Drawn(self.parts, self.hashes, [*self.rows])

    def merge(self, other: "Drawn") -> "Drawn":
        """Put the other's behind."""
        parts = np.concatenate([self.parts, other.parts])
        hashes = np.concatenate([self.hashes, other.hashes])
        return Drawn(parts, hashes, self.rows + other.rows)

    def lowest(self, most: int) -> tuple[IndexArray, IndexArray]:
        """Return the positions of the lowest hashes of each part, by part and hash; the parts.

        ``most`` is how many of each.
        """
        order = np.lexsort((self.hashes, self.parts))
        parts = self.parts[order]
        rank = np.arange(len(parts)) - np.searchsorted(parts, parts)
        own = rank < most
        return order[own], parts[own]

    def stacked(self) -> Any:
        """Return the rows as one array or matrix."""
        if any(sparse.issparse(part) for part in self.rows):
            return sparse.vstack(self.rows, format="csr")
        return self.rows[0] if len(self.rows) == 1 else np.concatenate(self.rows)


def limits(sizes: IndexArray, wanted: float) -> Hashes:
    """Return up to which hash to draw, to find about so many of each part."""
    share = wanted / np.maximum(sizes, 1)
    found = np.full(np.shape(sizes), ALL)
    few = share < 1.0
    found[few] = (share[few] * 2.0**64).astype(np.uint64)
    return found


def draw(
    X: Any,
    nodes: NDArray[np.int32] | None,
    counts: NDArray[np.int32] | None,
    first: int,
    *,
    keys: Hashes,
    bounds: Hashes,
) -> Drawn:
    """Return the rows of a block whose hashes are low enough for their node."""
    at, hashes = native.draw(keys, bounds, nodes, counts, X.shape[0], first)
    parts = np.zeros(len(at), dtype=np.intp) if nodes is None else nodes[at].astype(np.intp)
    return Drawn(parts, hashes, [X[at]])
