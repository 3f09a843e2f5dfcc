"""A look at each column of a table: what it holds, and what becomes of it."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from taxarbor._errors import InputError, InputTypeError, counted, some
from taxarbor._run import Run
from taxarbor._types import Array
from taxarbor.hierarchy._cells import column_names
from taxarbor.hierarchy._encoding import KINDS, WEEKDAYS, Column, Encoding
from taxarbor.hierarchy._words import format_number
from taxarbor.sweep import LocalEngine
from taxarbor.sweep._blocks import rows_per_block
from taxarbor.tables._checks import refuse_repeated_names
from taxarbor.tables._look import (
    FEW,
    TEXTS,
    Kind,
    Look,
    Parts,
    Slot,
    Texts,
    Wanted,
    cut,
    limit_for,
    look,
    look_sparse,
    lowest,
    near_sums,
    some_values,
    sum_of,
    sums_of,
)

FROM_DTYPE = "from_dtype"

MAX_CATEGORIES = 50
"""Values that a column of text may have to be read as categories."""
MOST_CATEGORIES = 255
"""Values that a column may have that somebody declared to be of categories."""
MANY = 100
"""Rows from which on consecutive numbers, each once, are names of rows, wherever they begin."""
RARE = 5
"""Rows that must have a value for it to be a category; in large tables one in a thousand, in
small ones one in fifty. A value of few rows would be as far from all others as it is rare."""
SAMPLE, ROBUST, CELLS = (1_000, 10_000), 100_000, 1 << 24
"""Rows from which quartiles are guessed, for robust scales, too; but not more cells than this,
and not fewer rows."""
ENOUGH = 256
"""Values of a column that must be among them; else more are drawn."""
DIFFERENT = 200_000
"""Rows up to which it is certain that numbers are all different; of more, some are compared."""
HUGE = 1e150
"""Numbers whose squares are too large to be added up."""
SILENT, MANY_SILENT, ALONE = 0.01, 1 / 3, 90.0
"""Columns differ in unit if so many of them hold less than this share of the mean variance, or
one of three or more holds so many percent of all. In tables of measurements more than half hold
less, in embeddings and pictures less than a sixth, and none holds more than 15 percent."""
FAR = 100.0
"""Ranges between the quartiles beyond which a value has no part in its column's mean."""
IDENTIFIER = re.compile(r"(?i:id|index|.*[ _.-]id)|.*[a-z]I[dD]", re.DOTALL)
ASKED = "taxarbor asked"
"""Where a frame says which columns somebody asked for by name, among pandas' ``attrs``."""
AS_DATES = "dates, which are used only if asked for"
AS_IDENTIFIER = "looks like an identifier; rename the column to use it"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Subject:
    """A table to look at: its parts, its width and the names of its columns, if any."""

    parts: Parts
    n_columns: int
    names: Sequence[str] | None = None
    is_sparse: bool = False
    asked: Sequence[str] = ()
    """Columns that somebody asked for by name, and that must not be left out."""
    has_identifiers: bool = True
    """Whether a column with a name may hold the names of rows."""

    @classmethod
    def of(cls, table: Any, counts: NDArray[np.int32] | None) -> "Subject":
        """Return a table in memory, cut into parts that fit into a cache."""
        n, p = table.shape
        step = n if issparse(table) else rows_per_block(p)
        edges = np.append(np.arange(0, n, step), n)
        pairs = zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        own = canonical(table) if issparse(table) else table
        tables = [own] if len(edges) == 2 else [cut(own, *pair) for pair in pairs]
        parts = Parts.of(LocalEngine(Run()), tables, np.diff(edges), counts=counts)
        asked = getattr(table, "attrs", {}).get(ASKED, ())
        return cls(parts, p, column_names(table), issparse(table), asked)


def canonical(table: Any) -> Any:
    """Return a sparse matrix as CSR with one entry per cell at most."""
    found = table.tocsr()
    if not found.has_canonical_format:
        found = found.copy()
        found.sum_duplicates()
    return found


@final
class Study:
    """A look at all columns of a table, and what becomes of them."""

    def __init__(self, encoder: Any, subject: Subject) -> None:
        self.encoder, self.subject, self.parts = encoder, subject, subject.parts
        self.has_names = subject.names is not None
        self.names = list(subject.names or (f"x{at}" for at in range(subject.n_columns)))
        refuse_repeated_names(self.names)
        self.categories = self._named("categorical_features")
        self.dates = self._named("date_features")
        self.dropped: list[tuple[str, str]] = []
        self.rare: list[tuple[str, int]] = []
        self.types: frozenset[str] = frozenset()

    def encoding(self) -> Encoding:
        """Decide what becomes of the columns, and how they are scaled."""
        found = list(self._of_sparse() if self.subject.is_sparse else self._of_columns())
        if not found:
            told = some([f"{name!r} ({why})" for name, why in self.dropped], 5)
            raise InputError(f"has no column to use: {told}", "X")
        columns = tuple(one.column for one in found)
        self._refuse_gaps(columns)
        if self.encoder.missing == "indicator":
            if self.subject.is_sparse and any(one.missing for one in columns):
                raise InputError('must not be "indicator" for a sparse matrix', "missing")
            columns = tuple(
                replace(one, has_indicator=one.missing > 0 and one.kind not in KINDS[3:])
                for one in columns
            )
        scaling = self._scaling(found)
        n_features = sum(one.n_features for one in columns)
        plain = np.zeros(n_features), np.ones(n_features)
        usual = Encoding(columns, len(self.names), self.has_names, *plain)
        shift, scale = plain if scaling is None else self._scales(usual, found)
        return replace(
            usual,
            shift=shift,
            scale=scale,
            unit_length=self.encoder.metric == "cosine",
            refuses_gaps=self.encoder.missing == "error",
            dropped=tuple(self.dropped),
            notes=tuple(self._notes(columns, scaling)),
        )

    def n_full(self, encoding: Encoding) -> int:
        """Return how many of the columns that are used certainly have a value in each row."""
        if self.subject.is_sparse:
            return 0 if any(one.missing for one in encoding.columns) else len(encoding.columns)
        numbers, n = self.seen.numbers, self.parts.n_rows
        return sum(
            not (one.missing or self.parts.counts)
            if one.categories
            else int(numbers.rows[self.at[one.place, one.kind]]) == n
            for one in encoding.columns
        )

    def widths(self, encoding: Encoding) -> Array:
        """Return how far apart the values of each feature are at most, as a fit sees them."""
        numbers, found = self.seen.numbers, np.ones(encoding.n_features)
        for at, one in enumerate(encoding.columns):
            if not one.categories:
                own = self.at[one.place, one.kind]
                first = int(np.searchsorted(encoding.owner, at))
                found[first] = numbers.high[own] - numbers.low[own]
        return found / encoding.scale

    def _named(self, parameter: str) -> dict[int, None] | str | None:
        """Return the places of the columns that a parameter names."""
        given = getattr(self.encoder, parameter)
        if given is None or (isinstance(given, str) and given == FROM_DTYPE):
            return given
        if isinstance(given, str):
            told = f'must be "{FROM_DTYPE}", None, or names of columns in a list; got {given!r}'
            raise InputError(told, parameter)
        chosen = np.asarray(given)
        if chosen.ndim != 1 or (chosen.dtype.kind not in "biuUO" and chosen.size):
            told = f"must be names or places of columns, or a mask; got {given!r}"
            raise InputTypeError(told, parameter)
        if chosen.dtype.kind == "b":
            if len(chosen) != len(self.names):
                told = f"is a mask of {len(chosen)}, and X has {len(self.names)} columns"
                raise InputError(told, parameter)
            return dict.fromkeys(np.flatnonzero(chosen).tolist())
        place_of = {name: place for place, name in enumerate(self.names)}
        places: dict[int, None] = {}
        for one in chosen.tolist():
            place = one if isinstance(one, int) else place_of.get(str(one), -1)
            if not 0 <= place < len(self.names):
                there = some([repr(name) for name in self.names], 10)
                raise InputError(f"names {one!r}, which X does not have: {there}", parameter)
            places[place] = None
        return places

    def _of_columns(self) -> Iterator["_Found"]:
        """Look at all columns, and yield what they become, one after the other."""
        self.wanted = self._wanted()
        self.seen: Look = self.parts.sweep(look, wanted=self.wanted)
        self.types = self.seen.types
        self.kinds = [self._kind(place) for place in range(len(self.names))]
        self.at = {slot: at for at, slot in enumerate(self.seen.numbers.slots)}
        used = [slot for slot in self.at if self._is_used(slot)]
        self.identifiers = self._find_identifiers(used)
        self.moments = self._find_moments([one for one in used if one not in self.identifiers])
        for place, name in enumerate(self.names):
            yield from self._of(place, name)

    def _wanted(self) -> Wanted:
        declared = self.categories if isinstance(self.categories, dict) else {}
        dates = self.dates if isinstance(self.dates, dict) else {}
        most = ROBUST if self.encoder.scale == "robust" else SAMPLE[1]
        n_drawn = int(np.clip(CELLS // max(len(self.names), 1), SAMPLE[0], most))
        return Wanted(
            tuple(self.names),
            frozenset(declared),
            frozenset(dates),
            all_texts=self.categories == FROM_DTYPE,
            all_dates=self.dates == FROM_DTYPE,
            has_squares=self.encoder.scale is not None and self.encoder.metric != "cosine",
            limit=limit_for(n_drawn, self.parts.n_copies),
        )

    def _kind(self, place: int) -> str:
        """Return what a column is read as, or why it is left out."""
        kind: Kind = self.seen.kinds[place]
        if place in self.wanted.declared:
            return "category" if kind.name == "category" else "text"
        return "date" if kind.are_dates or place in self.wanted.dates else kind.name

    def _is_used(self, slot: Slot) -> bool:
        place, kind = slot
        wanted = "number" if kind == "number" else "date"
        return self.kinds[place] == wanted and bool(self.seen.numbers.copies[self.at[slot]])

    def _of(self, place: int, name: str) -> Iterator["_Found"]:
        """Yield what a column becomes; nothing, with the reason, where it is left out."""
        kind, declared = self.kinds[place], place in self.wanted.declared
        if kind == "date":
            if place in self.wanted.dates or self.wanted.all_dates:
                yield from self._of_date(name, place)
            else:
                self._drop(name, AS_DATES)
        elif kind == "number":
            yield from self._of_numbers(name, place)
        elif kind in ("category", "text"):
            if declared or self.wanted.all_texts:
                yield from self._of_categories(name, place, declared, kind)
            else:
                self._drop(name, "text, which is not declared to be of categories")
        else:
            self._drop(name, kind)

    def _drop(self, name: str, reason: str) -> None:
        if name in self.subject.asked:
            raise InputError(f"has no use for the column {name!r}: {reason}", "X")
        self.dropped.append((name, reason))

    def _of_numbers(self, name: str, place: int, kind: str = "number") -> Iterator["_Found"]:
        slot, numbers = (place, kind), self.seen.numbers
        if slot in self.identifiers:
            self._drop(name, AS_IDENTIFIER)
            return
        if slot not in self.moments:
            self._drop(name, "empty")
            return
        at, (mean, *moments) = self.at[slot], self.moments[slot]
        low, high = float(numbers.low[at]), float(numbers.high[at])
        has_two = low < high and not numbers.has_more[at]
        one = Column(
            name,
            place,
            kind,
            (mean,),
            values=(low, high) if has_two else (),
            missing=self._share_missing(int(numbers.copies[at])),
        )
        yield _Found(one, *moments)

    def _of_categories(
        self, name: str, place: int, declared: bool, kind: str
    ) -> Iterator["_Found"]:
        texts = self.seen.texts[place] or Texts(Counter(), Counter())
        if texts.rows is None:
            self._refuse_texts(name, f"more than {TEXTS:,}", declared)
            return
        present, n_values = sorted(texts.rows), len(texts.rows)
        n_known = texts.rows.total()
        if not n_values:
            self._drop(name, "empty")
        elif n_values == 1 and not declared:
            self._drop(name, "always the same")
        elif kind == "text" and not declared and n_values == n_known:
            self._drop(name, "different in every row")
        elif kind == "text" and not declared and not are_few(n_values, n_known):
            rows_told = f" in {n_known:,} rows" if n_values <= MAX_CATEGORIES else ""
            self._drop(name, f"text, {n_values:,} different values{rows_told}")
        elif n_values > MOST_CATEGORIES:
            self._refuse_texts(name, f"{n_values:,}", declared)
        else:
            n = self.parts.n_copies
            least = min(n / 50, max(RARE, n / 1000))
            common = [text for text in present if texts.copies[text] >= least]
            is_free = not declared and name not in self.subject.asked
            if is_free and 1 < len(common) < n_values:
                self.rare.append((name, n_values - len(common)))
                present = common
            counts = np.array([texts.copies[text] for text in present])
            fill = tuple((counts / counts.sum()).tolist())
            missing = self._share_missing(int(counts.sum()))
            one = Column(name, place, "category", fill, tuple(present), missing=missing)
            yield _Found(one)

    def _refuse_texts(self, name: str, number: str, declared: bool) -> None:
        """Leave out a column of too many values, unless it was declared to be of categories."""
        if declared:
            raise InputError(
                f"names {name!r}, which has {number} different values, more than "
                f"{MOST_CATEGORIES}; leave it out, or put values together",
                "categorical_features",
            )
        self._drop(name, f"text, {number} different values")

    def _of_date(self, name: str, place: int) -> Iterator["_Found"]:
        for kind in ("year", "month"):
            yield from self._of_numbers(name, place, kind)
        counts = self.seen.weekdays[place]
        if counts is not None and counts.any():
            here = np.flatnonzero(counts)
            fill = tuple((counts[here] / counts.sum()).tolist())
            shown = tuple(WEEKDAYS[day] for day in here.tolist())
            missing = self._share_missing(int(counts.sum()))
            yield _Found(Column(name, place, "weekday", fill, shown, missing=missing))

    def _of_sparse(self) -> Iterator["_Found"]:
        seen = self.parts.sweep(look_sparse, names=tuple(self.names))
        sums, squares = sums_of(seen["sums"]), sums_of(seen["squares"])
        known = self.parts.n_copies - seen["gaps"]
        means = sums / np.maximum(known, 1)
        spreads = np.sqrt(np.maximum(squares / np.maximum(known, 1) - means * means, 0.0))
        for place, name in enumerate(self.names):
            missing = self._share_missing(int(known[place]))
            one = Column(name, place, "number", (float(means[place]),), missing=missing)
            yield _Found(one, float(spreads[place]))

    def _share_missing(self, n_known: int) -> float:
        return (self.parts.n_copies - n_known) / self.parts.n_copies

    def _find_identifiers(self, used: Sequence[Slot]) -> frozenset[Slot]:
        """Return which columns of numbers are names of rows; see :func:`is_identifier`."""
        numbers, limits = self.seen.numbers, {}
        for place, kind in used if self.has_names and self.subject.has_identifiers else ():
            at, name = self.at[place, kind], self.names[place]
            n, low, high = int(numbers.rows[at]), numbers.low[at], numbers.high[at]
            is_free = kind == "number" and name not in self.subject.asked
            if is_free and numbers.is_whole[at] and may_count_rows(name, n, low, high):
                limits[place, kind] = limit_for(DIFFERENT // 2 if n > DIFFERENT else n, n)
        if not limits:
            return frozenset()
        found = self.parts.sweep(
            some_values, slots=tuple(limits), limits=tuple(limits.values()), wanted=self.wanted
        )
        values = [np.concatenate(one.items) for one in found]
        pairs = zip(limits, values, strict=True)
        return frozenset(slot for slot, own in pairs if len(np.unique(own)) == len(own))

    def _find_moments(self, slots: Sequence[Slot]) -> dict[Slot, tuple[float, ...]]:
        """Return mean, deviation, median and the range of the middle half of columns.

        But for values far out, in the first two; that is seen from some of the values.
        """
        numbers, here = self.seen.numbers, [self.at[slot] for slot in slots]
        n, sums = numbers.copies[here], numbers.sums[:, here]
        low, high = numbers.low[here], numbers.high[here]
        drawn = [numbers.drawn(at) for at in here]
        has_all = self.wanted.limit == limit_for(1, 1)
        if not has_all:
            few = [at for at, own in enumerate(drawn) if len(own) < min(ENOUGH, n[at])]
            nothing = np.full(len(few), np.nan)
            for at, own in zip(few, self._drawn_again(slots, few, nothing), strict=True):
                drawn[at] = own
        parts: Any = {"q": [0.25, 0.5, 0.75], "method": "inverted_cdf"}
        middles = np.array([np.quantile(own, **parts) for own in drawn])
        first, center, third = middles.reshape(-1, 3).T
        with np.errstate(over="ignore"):
            width, most = third - first, np.maximum(np.abs(low), np.abs(high))
            reach = FAR * width
            # Mostly one value: the others tell what is far.
            even = np.flatnonzero((reach == 0.0) & (low < high)).tolist()
            others = {at: drawn[at][drawn[at] != center[at]] for at in even}
            few = [at for at in even if len(others[at]) < ENOUGH and not has_all]
            again = self._drawn_again(slots, few, center[few])
            for at, own in (others | dict(zip(few, again, strict=True))).items():
                reach[at] = FAR * np.median(np.abs(own - center[at])) if len(own) else 0.0
            is_far = (reach > 0.0) & (reach < np.maximum(high - center, center - low))
            most[is_far] = (np.abs(center) + reach)[is_far]
        far = np.flatnonzero(is_far)
        if len(far):
            near: Any = {"slots": [slots[at] for at in far.tolist()], "wanted": self.wanted}
            near |= {"centers": center[far], "reaches": reach[far]}
            n[far], sums[:, far] = self.parts.sweep(near_sums, **near)
        if self.wanted.has_squares and (most > HUGE).any():
            name = self.names[slots[int((most > HUGE).argmax())][0]]
            told = f"holds numbers beyond {HUGE:.0e} in column {name!r}"
            raise InputError(f"{told}; divide them", "X")
        # The deviation, if they were normal.
        rest = zip(center.tolist(), (width / 1.349).tolist(), strict=True)
        return {
            slot: (*_mean_and_spread(int(n[at]), sums[:, at]), *more)
            for at, (slot, more) in enumerate(zip(slots, rest, strict=True))
        }

    def _drawn_again(
        self, slots: Sequence[Slot], few: Sequence[int], besides: Array
    ) -> Sequence[Array]:
        """Return values of some columns, of which too few were drawn, but for one of each."""
        if not len(few):
            return ()
        own = tuple(slots[at] for at in few)
        more: Any = {"besides": besides, "n_most": SAMPLE[1], "wanted": self.wanted}
        return [one.values for one in self.parts.sweep(lowest, slots=own, **more)]

    def _refuse_gaps(self, columns: Sequence[Column]) -> None:
        with_gaps = [repr(one.label) for one in columns if one.missing]
        if with_gaps and self.encoder.missing == "error":
            raise InputError(
                f"has gaps in {counted(len(with_gaps), 'column')}: {some(with_gaps, 5)}; fill "
                "them",
                "X",
                (", or choose another", "missing"),
            )

    def _scaling(self, found: Sequence["_Found"]) -> str | None:
        """Return why and how columns are scaled, None if they are not."""
        scale = self.encoder.scale
        if self.encoder.metric == "cosine":
            self._check_cosine(found)
            return None
        if scale != "auto":
            return None if scale is None else f"numbers are scaled ({scale})"
        numbers = [one for one in found if not one.column.categories]
        if len(numbers) < len(found):
            told = "numbers are scaled to variance 1, beside categories"
            return told if numbers else "categories are scaled by how frequent they are"
        variances = np.array([one.spread**2 for one in found])
        variances = variances[variances > 0.0]
        if not len(variances):
            return None
        largest = max(found, key=lambda one: one.spread)
        share = 100.0 * variances.max() / variances.sum()
        is_alone = len(variances) > 2 and share > ALONE
        if not is_alone and np.mean(variances < SILENT * variances.mean()) < MANY_SILENT:
            return None
        told = f"{largest.column.label} alone holds {format_number(share, 3)} % of the variance"
        return f"numbers are scaled to variance 1, as they differ in unit: {told}"

    def _check_cosine(self, found: Sequence["_Found"]) -> None:
        """Refuse what has no direction, and what the length of a row would undo."""
        named = [repr(one.column.label) for one in found if one.column.categories]
        if named:
            told = f"is for numbers, and X has categories: {some(named, 5)}"
            raise InputError(f"{told}; leave them out, or choose euclidean", "metric")
        if self.encoder.scale not in ("auto", None):
            told = 'must be "auto" or None where rows are brought to length 1, metric="cosine"'
            raise InputError(f"{told}; got {self.encoder.scale!r}", "scale")

    def _scales(self, usual: Encoding, found: Sequence["_Found"]) -> tuple[Array, Array]:
        shift: list[float] = []
        scale: list[float] = []
        is_robust = self.encoder.scale == "robust"
        keeps_zeros = usual.is_sparse
        for one, column_found in zip(usual.columns, found, strict=True):
            if len(one.categories) > 2:
                shares = np.array(one.fill)
                shift += [0.0] * len(shares) if keeps_zeros else shares.tolist()
                scale += np.sqrt(np.maximum(shares, 1e-12)).tolist()
            elif one.categories:
                share = one.fill[-1]
                shift.append(share)
                scale.append(np.sqrt(share * (1.0 - share)) or 1.0)
            else:
                is_used = is_robust and column_found.width > 0.0
                width = column_found.width if is_used else column_found.spread
                middle = column_found.center if is_robust else one.fill[0]
                shift.append(0.0 if self.subject.is_sparse else middle)
                scale.append(width or 1.0)
            if one.has_indicator:
                shift.append(one.missing)
                scale.append(np.sqrt(one.missing * (1.0 - one.missing)) or 1.0)
        return np.array(shift), np.array(scale)

    def _notes(self, columns: Sequence[Column], scaling: str | None) -> Iterator[str]:
        with_gaps = [one for one in columns if one.missing]
        if with_gaps:
            worst = max(with_gaps, key=lambda one: one.missing)
            share = 100.0 * sum(one.missing for one in columns) / len(columns)
            more = ", and have features of their own" if worst.has_indicator else ""
            yield (
                f"gaps in {len(with_gaps)} of {counted(len(columns), 'column')} count as the "
                f"column's mean{more}: {format_number(share, 2)} % of the cells, most in "
                f"{worst.label}, {format_number(100.0 * worst.missing, 2)} %"
            )
        if self.rare:
            told = some(
                [f"{counted(count, 'value')} of {name}" for name, count in self.rare], 5
            )
            yield f"rare values count as gaps: {told}"
        if scaling is not None:
            yield scaling
        if self.encoder.metric == "cosine":
            yield "rows are brought to length 1, and values are parts of that"


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """A column, and of a number its deviation, its median and the range of its middle half."""

    column: Column
    spread: float = 0.0
    center: float = 0.0
    width: float = 0.0


def are_few(n_values: int, n_cells: int) -> bool:
    """Say whether the texts of so many cells are few enough to be categories."""
    return n_values <= MAX_CATEGORIES and 2 * n_values <= n_cells


def is_identifier(name: str, values: Array) -> bool:
    """Say whether whole numbers, all different, are names of rows: by theirs, or as a count."""
    if len(values) < 3 or not all(
        bool((part == np.floor(part)).all()) for part in (values[:FEW], values)
    ):
        return False
    n, low, high = len(values), float(values.min()), float(values.max())
    return may_count_rows(name, n, low, high) and len(np.unique(values)) == n


def may_count_rows(name: str, n: int, low: float, high: float) -> bool:
    """Say whether so many whole numbers are names of rows, if they are all different."""
    is_named = IDENTIFIER.fullmatch(name) is not None
    # As many numbers as rows, without a gap: years may be so, but not very many of them.
    is_count = high - low + 1.0 == n and (n >= MANY or low in (0.0, 1.0))
    return n >= 3 and (is_named or is_count)


def _mean_and_spread(n: int, limbs: NDArray[np.int64]) -> tuple[float, float]:
    """Return mean and deviation from exact sums of values and of squares."""
    mean = sum_of(limbs[0]) / n
    variance = max(sum_of(limbs[1]) / n - mean * mean, Fraction(0))
    spread = float(np.sqrt(float(variance)))
    if spread <= 1e-12 * abs(mean):  # what rounding leaves of a constant
        spread = 0.0
    return float(mean), spread
