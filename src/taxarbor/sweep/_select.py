"""Order statistics of a column of numbers, exact, without bringing the numbers together.

Numbers are ordered as their bits are, once those of negative ones are turned over. So the k-th
smallest is found from its first bits on: each sweep counts the numbers that agree so far by a
few more bits, and one bin of the count goes on. When few are left, these are looked at.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array
from taxarbor.rows._order import Keys, float_of, key_of
from taxarbor.sweep._copies import Listed
from taxarbor.sweep._engine import Column, Engine

BITS = 11
"""Bits that a sweep counts by: a small table of counts, and few sweeps."""

FEW = 1 << 14
"""Numbers that are looked at one by one."""

ROUNDING = 1e-9
"""By this part a share may be passed over, lest its own rounding cost a number."""

PART = 1 << 22
"""Numbers whose counts are added up in float64, which is exact for counts below 2 ** 31."""

Counts = NDArray[np.integer[Any]]


@final
@dataclass(frozen=True, slots=True, eq=False)
class Extremes:
    """The least and the greatest of some numbers, or of each of several lists of them.

    Of no numbers they are infinite, the least one positive.
    """

    low: Any = np.inf
    high: Any = -np.inf

    @classmethod
    def of(cls, values: Array) -> "Extremes":
        """Return those of an array of one dimension."""
        return cls(
            float(values.min(initial=np.inf)),
            float(values.max(initial=-np.inf)),
        )

    def merge(self, other: "Extremes") -> "Extremes":
        """Return those of both."""
        return Extremes(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


def extremes(
    engine: Engine, column: Column, counts: Column | None, above: float = -np.inf
) -> Extremes:
    """Return the least and greatest number of a column that counts and is above a bound."""
    found: Extremes = engine.sweep(_extremes, *_pair(column, counts), above=above)
    return found


def total(engine: Engine, column: Column, counts: Column | None, above: float = -np.inf) -> int:
    """Return how many numbers of a column are above a bound, each as often as it counts."""
    found: int = engine.sweep(_total, *_pair(column, counts), above=above)
    return found


def blocks_above(engine: Engine, column: Column, bound: float) -> list[int]:
    """Return the blocks of a column that hold a number above a bound."""
    found: list[int] = np.flatnonzero(
        engine.sweep(_are_above, column, bound=bound).items
    ).tolist()
    return found


def share_of(
    engine: Engine, column: Column, counts: Column | None, share: float, above: float = -np.inf
) -> float:
    """Return the number of a column that this share of them is less than, or equal to it."""
    pair = _pair(column, counts)
    return _of_rank(engine, pair, above, lambda n: min(int(share * n), n - 1))


def top_of(engine: Engine, column: Column, counts: Column | None, share: float) -> float:
    """Return the least number such that those above it are this share of all, or less."""

    def rank(n: int) -> int:
        return max(n - 1 - int(share * n * (1.0 + ROUNDING)), 0)

    return _of_rank(engine, _pair(column, counts), -np.inf, rank)


def _of_rank(
    engine: Engine, pair: tuple[Column, Column], above: float, rank_of: Callable[[int], int]
) -> float:
    width, n = engine.sweep(_size, *pair, above=above).both
    rank, shift, prefix = rank_of(n), width, 0
    while n > FEW and shift > 0:
        n_bits = min(BITS, shift)
        shift -= n_bits
        how = {"above": above, "prefix": prefix, "shift": shift, "n_bits": n_bits}
        bins = engine.sweep(_by_bits, *pair, **how)
        stops = np.cumsum(bins)
        chosen = int(np.searchsorted(stops, rank, side="right"))
        n = int(bins[chosen])
        rank -= int(stops[chosen]) - n
        prefix = (prefix << n_bits) | chosen
    key = prefix
    if shift > 0:
        keys, own = engine.sweep(_left, *pair, above=above, prefix=prefix, shift=shift).joined()
        order = np.argsort(keys, kind="stable")
        place = int(np.searchsorted(np.cumsum(own[order]), rank, side="right"))
        key = int(keys[order[place]])
    return float(float_of(np.array([key], dtype=f"u{width // 8}"))[0])


def _pair(column: Column, counts: Column | None) -> tuple[Column, Column]:
    return column, [None] * len(column) if counts is None else counts


def _own(values: Array, counts: Counts | None, above: float) -> tuple[Array, Counts | None]:
    """Return those numbers that count and are above a bound, and how often they count."""
    if counts is None and above == -np.inf:
        return values, None
    some = values > above if above > -np.inf else np.ones(len(values), dtype=np.bool_)
    if counts is not None:
        some &= counts > 0
    return values[some], None if counts is None else counts[some]


def _extremes(values: Array, counts: Counts | None, above: float) -> Extremes:
    return Extremes.of(_own(values, counts, above)[0])


def _are_above(values: Array, bound: float) -> Listed:
    return Listed([bool((values > bound).any())])


def _total(values: Array, counts: Counts | None, above: float) -> int:
    some, own = _own(values, counts, above)
    return len(some) if own is None else int(own.sum(dtype=np.int64))


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Size:
    """Bits of a number, and how many numbers there are."""

    both: tuple[int, int]

    def merge(self, other: "_Size") -> "_Size":
        (width, n), (same, more) = self.both, other.both
        assert width == same
        return _Size((width, n + more))


def _size(values: Array, counts: Counts | None, above: float) -> _Size:
    return _Size((8 * values.dtype.itemsize, _total(values, counts, above)))


def _by_bits(
    values: Array,
    counts: Counts | None,
    *,
    above: float,
    prefix: int,
    shift: int,
    n_bits: int,
) -> NDArray[np.int64]:
    """Count the numbers whose keys begin with a prefix, by the bits that come next."""
    found = np.zeros(1 << n_bits, dtype=np.int64)
    for first in range(0, len(values), PART):
        part = slice(first, first + PART)
        own = None if counts is None else counts[part]
        some, own = _own(values[part], own, above)
        keys = key_of(some)
        fits = _begins(keys, shift + n_bits, prefix)
        keys, own = keys[fits], None if own is None else own[fits]
        last = keys.dtype.type((1 << n_bits) - 1)
        bins = ((keys >> keys.dtype.type(shift)) & last).astype(np.intp)
        found += np.bincount(bins, weights=own, minlength=len(found)).astype(np.int64)
    return found


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Few:
    """Keys of numbers, and how often these count."""

    parts: tuple[tuple[Keys, NDArray[np.int64]], ...]

    def merge(self, other: "_Few") -> "_Few":
        return _Few(self.parts + other.parts)

    def joined(self) -> tuple[Keys, NDArray[np.int64]]:
        keys, counts = zip(*self.parts, strict=True)
        return np.concatenate(keys), np.concatenate(counts)


def _left(values: Array, counts: Counts | None, above: float, prefix: int, shift: int) -> _Few:
    """Return the numbers whose keys begin with a prefix."""
    some, own = _own(values, counts, above)
    keys = key_of(some)
    n_each = np.ones(len(keys), dtype=np.int64) if own is None else own.astype(np.int64)
    fits = _begins(keys, shift, prefix)
    return _Few(((keys[fits], n_each[fits]),))


def _begins(keys: Keys, shift: int, prefix: int) -> Any:
    """Return which keys are the prefix once their last bits are gone."""
    if shift >= 8 * keys.dtype.itemsize:  # which no machine shifts by
        return np.ones(len(keys), dtype=np.bool_)
    return (keys >> keys.dtype.type(shift)) == prefix
