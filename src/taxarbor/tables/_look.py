"""What is seen of the columns in one part of a table, and how two such looks make one.

Nothing depends on where a table is cut into parts: sums are exact, samples are the copies of
rows whose numbers have the lowest hashes, sets of values are kept up to a bound. So a table has
the same encoding in memory, on disk and on a cluster.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray

from taxarbor import native
from taxarbor._errors import InputError, named_by
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy._cells import (
    Factor,
    as_cells,
    as_days,
    as_factor,
    as_numbers,
    column,
    is_gap,
    is_number,
    text_of,
)
from taxarbor.hierarchy._encoding import date_parts
from taxarbor.rows import as_rows
from taxarbor.sweep import Column, Engine
from taxarbor.sweep._copies import Listed
from taxarbor.sweep._engine import merged

DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ].*)?")
TEXTS = 100_000
"""Different values of a column of text that are counted; it has too many by far then."""
FEW = 64
"""Values that are looked at first."""
AT_ONCE = 1 << 15
"""Cells that are squared together, so that they stay in a cache."""
LIMBS, UNIT = 67, 1 << 1074
"""Numbers of 32 bits that hold the exact sum of doubles, and how many units make one."""
KEY, VALUE_KEY, SHARE = 0x7461626C65, 0x76616C7565, 1 << 64
"""Of the hashes of rows and of values, and what all hashes are below."""

Slot = tuple[int, str]
"""The place of a column, and what is read in it: number, year or month."""


@final
@dataclass(frozen=True, slots=True)
class Place:
    """Where a part of a table stands in it: its title, its first row and its first copy."""

    title: str | None
    row: int
    copy: int


@final
@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """A table in parts, and who sweeps over them.

    ``counts`` are how often each row counts, a column of int arrays; None where all count once.
    """

    engine: Engine
    tables: Column
    places: Sequence[Place]
    sizes: IndexArray
    counts: Column | None
    n_copies: int

    @classmethod
    def of(
        cls,
        engine: Engine,
        tables: Column,
        sizes: IndexArray,
        titles: Sequence[str | None] | None = None,
        counts: NDArray[np.int32] | None = None,
    ) -> Self:
        """Return parts of these sizes; the counts are those of all rows."""
        rows = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        copies, cut = rows, None
        if counts is not None:
            cut = np.split(counts, rows[1:-1])
            copies = np.concatenate([[0], np.cumsum([int(one.sum()) for one in cut])])
        shown = [None] * len(sizes) if titles is None else titles
        begins = zip(shown, rows[:-1].tolist(), copies[:-1].tolist(), strict=True)
        return cls(engine, tables, [Place(*one) for one in begins], sizes, cut, int(copies[-1]))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.sizes.sum())

    def sweep(self, work: Callable[..., Any], **shared: Any) -> Any:
        """Return what ``work(table, place, counts, **shared)`` finds in all parts."""
        counts = [None] * len(self.places) if self.counts is None else self.counts
        return self.engine.sweep(work, self.tables, self.places, counts, **shared)


@final
@dataclass(frozen=True, slots=True)
class Wanted:
    """What to look for.

    Attributes
    ----------
    names : tuple of str
        Those of the columns.
    declared, dates : frozenset of int
        Places of columns that somebody declared to be of categories, or of dates.
    all_texts, all_dates : bool
        Whether text, and dates, are used wherever they are.
    has_squares : bool
        Whether squares of numbers are added up, too.
    limit : int
        The highest hash of a row in the sample.
    """

    names: tuple[str, ...]
    declared: frozenset[int]
    dates: frozenset[int]
    all_texts: bool
    all_dates: bool
    has_squares: bool
    limit: int


@final
@dataclass(frozen=True, slots=True)
class Kind:
    """What a column holds: number, category, text or date, or why it is none of them.

    Where no cell has a value, that is what the type of the column says.
    """

    name: str
    has_values: bool
    are_dates: bool = False
    """Of text, whether all of it is dates."""

    def merge(self, other: "Kind") -> "Kind":
        """Return the kind of a column that holds both."""
        if not (self.has_values and other.has_values):
            is_first = self.has_values or (not other.has_values and self.name != "empty")
            return self if is_first else other
        if self.name == other.name:
            return replace(self, are_dates=self.are_dates and other.are_dates)
        is_text = {self.name, other.name} == {"text", "category"}
        return Kind("text" if is_text else "neither numbers nor text", True)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """In how many rows and copies each text of a column is; None where there are too many."""

    rows: Counter[str] | None
    copies: Counter[str]

    @classmethod
    def of(cls, factor: Factor, weights: NDArray[np.int32] | None) -> "Texts":
        """Count the values of a column; those in rows that do not count are not there."""
        codes = factor.codes if weights is None else factor.codes[weights > 0]
        codes, n = codes + 1, len(factor.values) + 1  # the first is for gaps
        rows = copies = np.bincount(codes, minlength=n)
        if weights is not None:
            copies = np.bincount(codes, weights[weights > 0], minlength=n).astype(np.int64)
        found: tuple[Counter[str], Counter[str]] = Counter(), Counter()
        for code in (np.flatnonzero(rows[1:]) + 1).tolist():
            value = factor.values[code - 1]
            text = "" if is_gap(value) else text_of(value)
            if text:
                found[0][text] += int(rows[code])
                found[1][text] += int(copies[code])
        return cls(*found)._bounded()

    def merge(self, other: "Texts") -> "Texts":
        """Return the values of both."""
        if self.rows is None or other.rows is None:
            return Texts(None, Counter())
        return Texts(self.rows + other.rows, self.copies + other.copies)._bounded()

    def _bounded(self) -> "Texts":
        return Texts(None, Counter()) if len(self.rows or ()) > TEXTS else self


@final
@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """What is known of columns of numbers.

    Attributes
    ----------
    slots : tuple of Slot
        Which columns.
    rows, copies : int arrays of shape (n_slots,)
        Rows with a value, and their copies.
    low, high : arrays of shape (n_slots,)
        The least and the greatest value.
    has_more, is_whole : bool arrays of shape (n_slots,)
        Whether there are values between these two, and whether all are whole numbers.
    sums : int array of shape (2, n_slots, n_limbs)
        Exact sums of the values of all copies, and of their squares.
    sample : array of shape (n_drawn, n_slots)
        The values of copies that were drawn, NaN where there is none.
    """

    slots: tuple[Slot, ...]
    rows: NDArray[np.int64]
    copies: NDArray[np.int64]
    low: Array
    high: Array
    has_more: NDArray[np.bool_]
    is_whole: NDArray[np.bool_]
    sums: NDArray[np.int64]
    sample: tuple[Array, ...]

    @classmethod
    def of(
        cls,
        slots: Sequence[Slot],
        values: Array,
        place: Place,
        counts: NDArray[np.int32] | None,
        wanted: Wanted,
    ) -> "Numbers":
        """Look at values, float64, a column for each slot, and NaN for gaps."""
        known = ~np.isnan(values)
        rows = known.sum(axis=0, dtype=np.int64)
        low = np.fmin.reduce(values, axis=0, initial=np.inf)
        high = np.fmax.reduce(values, axis=0, initial=-np.inf)
        positions, _ = drawn(place, counts, len(values), wanted.limit)
        return cls(
            tuple(slots),
            rows,
            rows if counts is None else counts.astype(np.int64) @ known,
            low,
            high,
            ~_hold(values, lambda some, at: (some == low[at]) | (some == high[at])),
            _hold(values, lambda some, _: some == np.floor(some)),
            _powers(values, counts, wanted.has_squares),
            (values[positions],),
        )

    def merge(self, other: "Numbers") -> "Numbers":
        """Return what is known of all values."""
        if self.slots != other.slots:
            slots = tuple(dict.fromkeys([*self.slots, *other.slots]))
            return self._over(slots).merge(other._over(slots))
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        has_more = self.has_more | other.has_more
        for one in (self, other):
            for value in (one.low, one.high):
                has_more |= (one.rows > 0) & (value != low) & (value != high)
        return Numbers(
            self.slots,
            self.rows + other.rows,
            self.copies + other.copies,
            low,
            high,
            has_more,
            self.is_whole & other.is_whole,
            self.sums + other.sums,
            self.sample + other.sample,
        )

    def drawn(self, at: int) -> Array:
        """Return the sample of a column."""
        found: Array = np.concatenate([one[:, at] for one in self.sample])
        known: Array = found[~np.isnan(found)]
        return known

    def _over(self, slots: tuple[Slot, ...]) -> "Numbers":
        """Return the same with more slots, of which nothing was seen."""
        q, at = len(slots), [slots.index(slot) for slot in self.slots]

        def spread(values: NDArray[Any], fill: Any) -> NDArray[Any]:
            found = np.full((q, *values.shape[1:]), fill, dtype=values.dtype)
            found[at] = values
            return found

        return Numbers(
            slots,
            spread(self.rows, 0),
            spread(self.copies, 0),
            spread(self.low, np.inf),
            spread(self.high, -np.inf),
            spread(self.has_more, False),
            spread(self.is_whole, True),
            spread(self.sums.swapaxes(0, 1), 0).swapaxes(0, 1),
            tuple(spread(one.T, np.nan).T for one in self.sample),
        )


def exact_sums(table: Any, counts: NDArray[np.int32] | None = None) -> NDArray[np.int64]:
    """Return the exact sum of each column, float64, an array or CSR, as limbs.

    NaN adds nothing. Those of several parts can be added.
    """
    n, p = table.shape
    if n == 0 or p == 0:
        return np.zeros((p, LIMBS), dtype=np.int64)
    own = np.ascontiguousarray(table) if isinstance(table, np.ndarray) else table
    rows = as_rows(own, center=np.zeros(p))
    return rows.exact_sums(None, counts, 1).reshape(p, LIMBS)


def sum_of(limbs: NDArray[np.int64]) -> Fraction:
    """Return the number that the limbs of one sum stand for."""
    return Fraction(sum(limb << (32 * at) for at, limb in enumerate(limbs.tolist())), UNIT)


def sums_of(limbs: NDArray[np.int64]) -> Array:
    """Return the doubles nearest to sums."""
    return native.exact_values(np.ascontiguousarray(limbs), False)


def _hold(
    values: Array, holds: Callable[[Array, IndexArray], NDArray[np.bool_]]
) -> NDArray[np.bool_]:
    """Return of which columns something holds for all values; the first few rule most out."""
    at = np.arange(values.shape[1])
    for some in (values[:FEW], values):
        own = some[:, at]
        at = at[(holds(own, at) | np.isnan(own)).all(axis=0)]
    found = np.zeros(values.shape[1], dtype=bool)
    found[at] = True
    return found


def _powers(
    values: Array, counts: NDArray[np.int32] | None, has_squares: bool
) -> NDArray[np.int64]:
    """Return exact sums of values and, if asked for, of their squares, else zeros."""
    sums = exact_sums(values, counts)
    of_squares = np.zeros_like(sums)
    step = max(AT_ONCE // max(values.shape[1], 1), 1)
    for first in range(0, len(values) if has_squares else 0, step):
        some = slice(first, first + step)
        own = None if counts is None else counts[some]
        squares, rest = _squares(values[some])
        of_squares += exact_sums(squares, own)
        if rest is not None:
            of_squares += exact_sums(rest, own)
    return np.stack([sums, of_squares])


def _squares(values: Array) -> tuple[Array, Array | None]:
    """Return the squares of numbers, and what rounding took from them, by Dekker's product."""
    with np.errstate(all="ignore"):
        squares = np.minimum(values * values, np.finfo(np.float64).max)
        short = values.astype(np.float32)
        if not ((short != values) & ~np.isnan(values)).any():
            return squares, None
        high = values * 134217729.0
        high -= high - values
        low = values - high
        rest = ((high * high - squares) + 2.0 * high * low) + low * low
    rest[~np.isfinite(rest)] = np.nan
    return squares, rest


def drawn(
    place: Place, counts: NDArray[np.int32] | None, n_rows: int, limit: int
) -> tuple[IndexArray, NDArray[np.uint64]]:
    """Return the rows of the copies whose hash is not above a limit, and these hashes."""
    keys, limits = (np.array([one], dtype=np.uint64) for one in (KEY, limit))
    return native.draw(keys, limits, None, counts, n_rows, place.copy)


def limit_for(n_wanted: int, n_all: int) -> int:
    """Return the hash that so many of all are not above, more or less; all, if they are few."""
    return min((n_wanted * SHARE) // max(n_all, 1), SHARE) - 1


@final
@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What was seen of all columns, in some parts of a table."""

    kinds: tuple[Kind, ...]
    numbers: Numbers
    texts: list[Texts | None]
    weekdays: list[NDArray[np.int64] | None]
    """How many copies have each day of the week, where a column has dates."""
    types: frozenset[str]

    def merge(self, other: "Look") -> "Look":
        """Return what was seen in both."""
        return Look(
            merged(self.kinds, other.kinds),
            self.numbers.merge(other.numbers),
            merged(self.texts, other.texts),
            merged(self.weekdays, other.weekdays),
            self.types | other.types,
        )


def look(table: Any, place: Place, counts: NDArray[np.int32] | None, *, wanted: Wanted) -> Look:
    """Return what there is in the columns of a part."""
    with named_by(place.title):
        return _Looking(table, place, counts, wanted).found()


@final
class _Looking:
    def __init__(
        self, table: Any, place: Place, counts: NDArray[np.int32] | None, wanted: Wanted
    ) -> None:
        self.table, self.place, self.counts, self.wanted = table, place, counts, wanted
        self.kinds: list[Kind] = []
        self.slots: list[Slot] = []
        self.values: list[Array] = []
        self.texts: list[Texts | None] = [None] * len(wanted.names)
        self.weekdays: list[NDArray[np.int64] | None] = [None] * len(wanted.names)

    def found(self) -> Look:
        width, wanted = len(self.wanted.names), self.wanted
        is_plain = not (wanted.declared or wanted.dates)
        values = plain_numbers(self.table) if is_plain else None
        if values is not None:
            for at in infinite(values):
                as_numbers(values[:, at], wanted.names[at], self.place.row)  # raises
            self.kinds = [Kind("number", True)] * width
            self.slots = [(at, "number") for at in range(width)]
        else:
            for at, name in enumerate(wanted.names):
                self._add(at, name, column(self.table, at))
            empty = np.zeros((self.table.shape[0], 0))
            values = np.stack(self.values, axis=1) if self.values else empty
        numbers = Numbers.of(self.slots, values, self.place, self.counts, wanted)
        if self.values:
            has_values = dict(zip(numbers.slots, (numbers.rows > 0).tolist(), strict=True))
            self.kinds = [
                replace(kind, has_values=has_values.get((at, "number"), kind.has_values))
                for at, kind in enumerate(self.kinds)
            ]
        types = getattr(self.table, "dtypes", ())
        told = frozenset(str(one).lower() for one in types)
        return Look(tuple(self.kinds), numbers, self.texts, self.weekdays, told)

    def _add(self, at: int, name: str, cells: Any) -> None:
        wanted, is_declared = self.wanted, at in self.wanted.declared
        if at in wanted.dates and not is_declared:
            self.kinds.append(Kind("date", True))
            self._add_dates(at, name, cells)
            return
        kind, factor = kind_of(cells)
        self.kinds.append(kind)
        is_text = kind.name in ("category", "text")
        if is_declared or (is_text and wanted.all_texts):
            factor = as_factor(cells) if factor is None else factor
            self.texts[at] = Texts.of(factor, self.counts)
        if is_declared:
            return
        if kind.name == "number":
            self.slots.append((at, "number"))
            found = as_numbers(cells, name, self.place.row)
            self.values.append(found.astype(np.float64, copy=False))
        elif wanted.all_dates and (kind.name == "date" or kind.are_dates):
            self._add_dates(at, name, cells)

    def _add_dates(self, at: int, name: str, cells: Any) -> None:
        parts = date_parts(as_days(cells, name))
        for kind in ("year", "month"):
            self.slots.append((at, kind))
            self.values.append(parts[kind])
        days = parts["weekday"]
        known, counts = days >= 0, self.counts
        weights = None if counts is None else counts[known]
        self.weekdays[at] = np.bincount(days[known], weights, minlength=7).astype(np.int64)


def plain_numbers(table: Any) -> Array | None:
    """Return an array of numbers, or a frame of them, as float64; None for all else."""
    cells = as_cells(table)
    is_array = isinstance(cells, np.ndarray) and not np.ma.isMaskedArray(cells)
    if not is_array or cells.dtype.kind not in "fiub":
        return None
    found: Array = cells.astype(np.float64)
    return found


def infinite(values: Array) -> list[int]:
    """Return the columns that hold infinity."""
    with np.errstate(all="ignore"):
        if np.isfinite(values.sum()):
            return []
    found: list[int] = np.flatnonzero(np.isinf(values).any(axis=0)).tolist()
    return found


def values_of(table: Any, slot: Slot, wanted: Wanted) -> Array:
    """Return the numbers of a column, float64, NaN for gaps."""
    at, kind = slot
    cells = column(table, at)
    if kind == "number":
        return as_numbers(cells, wanted.names[at]).astype(np.float64, copy=False)
    return date_parts(as_days(cells, wanted.names[at]))[kind]


def matrix_of(table: Any, slots: Sequence[Slot], wanted: Wanted) -> Array:
    """Return the numbers of some columns, side by side; NaN where a part has none."""
    plain = plain_numbers(table)
    if plain is not None and all(kind == "number" for _, kind in slots):
        return plain[:, [at for at, _ in slots]]
    return np.stack([values_of(table, slot, wanted) for slot in slots], axis=1)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Lowest:
    """The values of the copies of a column that have the lowest hashes, at most so many."""

    n_most: int
    hashes: NDArray[np.uint64]
    values: Array

    def merge(self, other: "Lowest") -> "Lowest":
        """Return the lowest of both."""
        hashes = np.concatenate([self.hashes, other.hashes])
        return Lowest(
            self.n_most, hashes, np.concatenate([self.values, other.values])
        ).bounded()

    def bounded(self) -> "Lowest":
        """Return so many of them."""
        if len(self.hashes) <= self.n_most:
            return self
        here = np.sort(np.argpartition(self.hashes, self.n_most - 1)[: self.n_most])
        return Lowest(self.n_most, self.hashes[here], self.values[here])


def lowest(
    table: Any,
    place: Place,
    counts: NDArray[np.int32] | None,
    *,
    slots: Sequence[Slot],
    besides: Array,
    n_most: int,
    wanted: Wanted,
) -> list[Lowest]:
    """Draw from the values of columns, but for one that each has otherwise."""
    with named_by(place.title):
        values = matrix_of(table, slots, wanted)
    positions, keys = drawn(place, counts, len(values), SHARE - 1)
    found = []
    for at, beside in enumerate(besides.tolist()):
        own = values[positions, at]
        here = np.flatnonzero(~np.isnan(own) & (own != beside))
        found.append(Lowest(n_most, keys[here], own[here]).bounded())
    return found


def near_sums(
    table: Any,
    place: Place,
    counts: NDArray[np.int32] | None,
    *,
    slots: Sequence[Slot],
    centers: Array,
    reaches: Array,
    wanted: Wanted,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return how many copies are near the middles of columns, and sums as in Numbers."""
    with named_by(place.title):
        values = matrix_of(table, slots, wanted)
    with np.errstate(all="ignore"):
        is_near = np.abs(values - centers) <= reaches
    values = np.where(is_near, values, np.nan)
    weights = np.ones(len(values), dtype=np.int64) if counts is None else counts
    return weights.astype(np.int64) @ is_near, _powers(values, counts, wanted.has_squares)


def some_values(
    table: Any,
    place: Place,
    counts: NDArray[np.int32] | None,
    *,
    slots: Sequence[Slot],
    limits: Sequence[int],
    wanted: Wanted,
) -> list[Listed]:
    """Return those values of each column whose own hashes are not above a limit.

    Equal values are drawn together, so that they are seen to be equal.
    """
    with named_by(place.title):
        values = matrix_of(table, slots, wanted)
    found = []
    for at, limit in enumerate(limits):
        own = values[~np.isnan(values[:, at]), at] + 0.0
        keys = native.hashes(VALUE_KEY, own.view(np.int64))
        found.append(Listed([own[keys <= np.uint64(limit)]]))
    return found


def look_sparse(
    table: Any,
    place: Place,
    counts: NDArray[np.int32] | None,
    *,
    names: Sequence[str],
) -> dict[str, NDArray[np.int64]]:
    """Return copies without a value, and sums of values and squares, of sparse columns."""
    width = table.shape[1]
    with named_by(place.title):
        for at in np.unique(table.indices[np.isinf(table.data)]).tolist():
            raise InputError(f"column {names[at]!r} of X holds infinity")
    is_gap_here = np.isnan(table.data)
    weights = None
    if counts is not None:
        weights = np.repeat(counts, np.diff(table.indptr))[is_gap_here]
    gaps = np.bincount(table.indices[is_gap_here], weights, minlength=width)
    wide = table.astype(np.float64)
    sums = exact_sums(wide, counts)
    wide.data = np.square(wide.data)
    return {
        "gaps": gaps.astype(np.int64),
        "sums": sums,
        "squares": exact_sums(wide, counts),
    }


STARTS = {
    **dict.fromkeys(("int", "uint", "float", "double", "bool", "decimal"), "number"),
    **dict.fromkeys(("categor", "enum", "dictionary"), "category"),
    **dict.fromkeys(("date", "period", "timestamp"), "date"),
    **dict.fromkeys(("timedelta", "duration", "time"), "times"),
}
"""What the names of types begin with, in NumPy, pandas and polars."""


def kind_of(cells: Any) -> tuple[Kind, Factor | None]:
    """Return what a column holds, and its values, where they were looked at as text."""
    kind = str(getattr(cells, "dtype", type(cells).__name__)).lower()
    known = next((STARTS[start] for start in STARTS if kind.startswith(start)), None)
    if known == "category":
        factor = as_factor(cells)
        return Kind(known, bool((factor.codes >= 0).any())), factor
    if known is not None:
        return Kind(known, True), None
    if kind.startswith("object"):
        return _kind_of_cells(cells)
    starts = ("string", "utf8", "large_str", "<u", "|s", "<s")
    is_text = kind == "str" or kind.startswith(starts)
    return _kind_of_text(cells) if is_text else (Kind(f"of type {kind}", True), None)


def _kind_of_cells(cells: Any) -> tuple[Kind, Factor | None]:
    """Look at the values of a column whose type says nothing."""
    listed = cells.tolist() if hasattr(cells, "tolist") else list(cells)
    present = [cell for cell in listed if not is_gap(cell)]
    if not present:
        return Kind("empty", False), None
    if all(isinstance(cell, str) for cell in present):
        return _kind_of_text(cells)
    if all(is_number(cell) for cell in present):
        return Kind("number", True), None
    if all(hasattr(cell, "weekday") for cell in present):
        return Kind("date", True), None
    return Kind("neither numbers nor text", True), None


def _kind_of_text(cells: Any) -> tuple[Kind, Factor]:
    factor = as_factor(cells)
    values = [value for value in factor.values if not is_gap(value)]
    are_dates = bool(values) and all(DATE.fullmatch(str(value).strip()) for value in values)
    return Kind("text", bool(values), are_dates), factor


def cut(table: Any, first: int, last: int) -> Any:
    """Return some rows of a table in memory."""
    return table.iloc[first:last] if hasattr(table, "iloc") else table[first:last]
