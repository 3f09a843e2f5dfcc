"""A look at each column of a table: what it holds, and what becomes of it."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csc_array, issparse

from taxarbor._errors import InputError, InputTypeError, counted, some
from taxarbor._types import Array
from taxarbor.hierarchy._cells import (
    as_days,
    as_factor,
    as_numbers,
    column,
    column_names,
    is_gap,
    is_number,
    text_of,
)
from taxarbor.hierarchy._encoding import KINDS, WEEKDAYS, Column, Encoding, date_parts
from taxarbor.hierarchy._words import format_number

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
FEW, SAMPLE, AT_ONCE = 64, 10_000, 16
"""Values that are looked at first, those from which quartiles are guessed, and columns of an
array that are looked at together."""
SILENT, MANY_SILENT, ALONE = 0.01, 1 / 3, 90.0
"""Columns differ in unit if so many of them hold less than this share of the mean variance, or
one of three or more holds so many percent of all. In tables of measurements more than half hold
less, in embeddings and pictures less than a sixth, and none holds more than 15 percent."""
FAR = 100.0
"""Ranges between the quartiles beyond which a value has no part in its column's mean."""
IDENTIFIER = re.compile(r"(?i:id|index|.*[ _.-]id)|.*[a-z]I[dD]", re.DOTALL)
DATE = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ].*)?")
ASKED = "taxarbor asked"
"""Where a frame says which columns somebody asked for by name, among pandas' ``attrs``."""
AS_DATES = "dates, which are used only if asked for"
AS_IDENTIFIER = "looks like an identifier; rename the column to use it"


@final
class Study:
    """A look at all columns of a table, one after the other."""

    def __init__(self, encoder: Any, table: Any, weights: Array | None) -> None:
        self.encoder, self.table, self.weights = encoder, table, weights
        found = column_names(table)
        n_columns = table.shape[1]
        self.has_names = found is not None
        self.names = found or [f"x{place}" for place in range(n_columns)]
        repeated = [repr(name) for name, n in Counter(self.names).items() if n > 1]
        if repeated:
            told = f"has more than one column called {some(repeated, 5)}"
            raise InputError(f"{told}; make the names different", "X")
        self.categories = self._named("categorical_features")
        self.dates = self._named("date_features")
        self.asked = getattr(table, "attrs", {}).get(ASKED, ())
        self.dropped: list[tuple[str, str]] = []
        self.rare: list[tuple[str, int]] = []

    def encoding(self) -> Encoding:
        """Decide what becomes of the columns, and how they are scaled."""
        if issparse(self.table):
            found = list(self._of_sparse())
        else:
            found = [one for place in range(len(self.names)) for one in self._of(place)]
        if not found:
            told = some([f"{name!r} ({why})" for name, why in self.dropped], 5)
            raise InputError(f"has no column to use: {told}", "X")
        columns = tuple(one.column for one in found)
        self._refuse_gaps(columns)
        if self.encoder.missing == "indicator":
            if issparse(self.table) and any(one.missing for one in columns):
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

    def _of(self, place: int) -> Iterator["_Found"]:
        """Yield what a column becomes; nothing, with the reason, where it is left out."""
        name, cells = self.names[place], self._cells(place)
        declared = isinstance(self.categories, dict) and place in self.categories
        as_date = isinstance(self.dates, dict) and place in self.dates
        kind = "date" if as_date else _kind(cells)
        kind = "text" if declared and kind != "category" else kind
        if kind == "date":
            if as_date or self.dates == FROM_DTYPE:
                yield from self._of_date(name, place, cells)
            else:
                self._drop(name, AS_DATES)
        elif kind == "number":
            yield from self._of_numbers(name, place, as_numbers(cells, name))
        elif kind in ("category", "text"):
            if declared or self.categories == FROM_DTYPE:
                yield from self._of_categories(name, place, cells, declared, kind)
            else:
                self._drop(name, "text, which is not declared to be of categories")
        else:
            self._drop(name, kind)

    def _cells(self, place: int) -> Any:
        """Return a column; those of an array are copied some at a time, which is faster."""
        if not (isinstance(self.table, np.ndarray) and self.table.flags.c_contiguous):
            return column(self.table, place)
        first = place - place % AT_ONCE
        if first == place:
            self._block = np.ascontiguousarray(self.table[:, first : first + AT_ONCE].T)
        return self._block[place - first]

    def _drop(self, name: str, reason: str) -> None:
        if name in self.asked:
            raise InputError(f"has no use for the column {name!r}: {reason}", "X")
        self.dropped.append((name, reason))

    def _of_numbers(
        self, name: str, place: int, cells: Array, kind: str = "number"
    ) -> Iterator["_Found"]:
        known = ~np.isnan(cells)
        weights = self.weights if self.weights is None else self.weights[known]
        is_absent = not known.any() or (weights is not None and not weights.any())
        if is_absent:
            self._drop(name, "empty")
            return
        values = cells if known.all() else cells[known]
        values = values.astype(np.float64, copy=False)
        may_count = kind == "number" and self.has_names and name not in self.asked
        if may_count and is_identifier(name, values):
            self._drop(name, AS_IDENTIFIER)
            return
        low, high = float(values.min()), float(values.max())
        is_robust = self.encoder.scale == "robust"
        middle, spread, center, width = _moments(values, weights, low, high, is_robust)
        has_two = low < high and all(
            bool(((some_values == low) | (some_values == high)).all())
            for some_values in (values[:FEW], values)
        )
        one = Column(
            name,
            place,
            kind,
            (middle,),
            values=(low, high) if has_two else (),
            missing=self._share_missing(known),
        )
        yield _Found(one, spread, center, width)

    def _of_categories(
        self, name: str, place: int, cells: Any, declared: bool, kind: str
    ) -> Iterator["_Found"]:
        factor = as_factor(cells)
        texts = ["" if is_gap(value) else text_of(value) for value in factor.values]
        order = list(dict.fromkeys(text for text in texts if text))
        code_of = {text: code for code, text in enumerate(order)}
        codes = np.array([*(code_of.get(text, -1) for text in texts), -1])[factor.codes]
        known = codes >= 0
        weights = None if self.weights is None else self.weights[known]
        counts = np.bincount(codes[known], weights, minlength=len(order))
        rows = np.bincount(codes[known], minlength=len(order))
        present = [code for code in np.argsort(order).tolist() if counts[code] > 0]
        n_known, n_values = int(rows[present].sum()), len(present)
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
            if declared:
                raise InputError(
                    f"names {name!r}, which has {n_values:,} different values, more than "
                    f"{MOST_CATEGORIES}; leave it out, or put values together",
                    "categorical_features",
                )
            self._drop(name, f"text, {n_values:,} different values")
        else:
            n = len(codes) if self.weights is None else float(self.weights.sum())
            least = min(n / 50, max(RARE, n / 1000))
            common = [code for code in present if counts[code] >= least]
            if not declared and name not in self.asked and 1 < len(common) < n_values:
                self.rare.append((name, n_values - len(common)))
                present, known = common, known & np.isin(codes, common)
            shares = counts[present] / counts[present].sum()
            categories = tuple(order[code] for code in present)
            missing = self._share_missing(known)
            fill = tuple(shares.tolist())
            yield _Found(Column(name, place, "category", fill, categories, missing=missing))

    def _of_date(self, name: str, place: int, cells: Any) -> Iterator["_Found"]:
        parts = date_parts(as_days(cells, name))
        for kind in ("year", "month"):
            yield from self._of_numbers(name, place, parts[kind], kind)
        days, weights = parts["weekday"], self.weights
        known = days >= 0
        counts = np.bincount(
            days[known], None if weights is None else weights[known], minlength=7
        )
        if counts.any():
            here = np.flatnonzero(counts)
            fill = tuple((counts[here] / counts.sum()).tolist())
            shown = tuple(WEEKDAYS[day] for day in here.tolist())
            missing = self._share_missing(known)
            yield _Found(Column(name, place, "weekday", fill, shown, missing=missing))

    def _of_sparse(self) -> Iterator["_Found"]:
        columns = csc_array(self.table)
        n_rows = columns.shape[0]
        for place, name in enumerate(self.names):
            entries = columns.data[columns.indptr[place] : columns.indptr[place + 1]]
            rows = columns.indices[columns.indptr[place] : columns.indptr[place + 1]]
            values = entries.astype(np.float64)
            if np.isinf(values).any():
                raise InputError(f"column {name!r} of X holds infinity")
            known = ~np.isnan(values)
            if self.weights is None:
                total, own = float(n_rows - (~known).sum()), np.ones(known.sum())
            else:
                own = self.weights[rows[known]]
                total = float(self.weights.sum() - self.weights[rows[~known]].sum())
            mean = float(own @ values[known]) / (total or 1.0)
            square = float(own @ np.square(values[known])) / (total or 1.0)
            spread = float(np.sqrt(max(square - mean * mean, 0.0)))
            share = float((~known).sum()) / n_rows
            yield _Found(Column(name, place, "number", (mean,), missing=share), spread)

    def _share_missing(self, known: NDArray[np.bool_]) -> float:
        if self.weights is None:
            return float(1.0 - known.mean())
        return float(1.0 - np.average(known, weights=self.weights))

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
                shift.append(0.0 if issparse(self.table) else middle)
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


STARTS = {
    **dict.fromkeys(("int", "uint", "float", "double", "bool", "decimal"), "number"),
    **dict.fromkeys(("categor", "enum", "dictionary"), "category"),
    **dict.fromkeys(("date", "period", "timestamp"), "date"),
    **dict.fromkeys(("timedelta", "duration", "time"), "times"),
}
"""What the names of types begin with, in NumPy, pandas and polars."""


def _kind(cells: Any) -> str:
    """Return number, category, text or date, or why a column is none of them."""
    kind = str(getattr(cells, "dtype", type(cells).__name__)).lower()
    known = next((STARTS[start] for start in STARTS if kind.startswith(start)), None)
    if known is not None:
        return known
    if kind.startswith("object"):
        return _kind_of_cells(cells)
    starts = ("string", "utf8", "large_str", "<u", "|s", "<s")
    is_text = kind == "str" or kind.startswith(starts)
    return _kind_of_text(cells) if is_text else f"of type {kind}"


def _kind_of_cells(cells: Any) -> str:
    """Look at the values of a column whose type says nothing."""
    listed = cells.tolist() if hasattr(cells, "tolist") else list(cells)
    present = [cell for cell in listed if not is_gap(cell)]
    if not present:
        return "empty"
    if all(isinstance(cell, str) for cell in present):
        return _kind_of_text(present)
    if all(is_number(cell) for cell in present):
        return "number"
    if all(hasattr(cell, "weekday") for cell in present):
        return "date"
    return "neither numbers nor text"


def _kind_of_text(cells: Any) -> str:
    values = [value for value in as_factor(cells).values if not is_gap(value)]
    are_dates = values and all(DATE.fullmatch(str(value).strip()) for value in values)
    return "date" if are_dates else "text"


def are_few(n_values: int, n_cells: int) -> bool:
    """Say whether the texts of so many cells are few enough to be categories."""
    return n_values <= MAX_CATEGORIES and 2 * n_values <= n_cells


def is_identifier(name: str, values: Array) -> bool:
    """Say whether whole numbers, all different, are names of rows: by theirs, or as a count."""
    if len(values) < 3 or not all(
        bool((part == np.floor(part)).all()) for part in (values[:FEW], values)
    ):
        return False
    n, span = len(values), float(values.max() - values.min()) + 1.0
    is_named = IDENTIFIER.fullmatch(name) is not None
    # As many numbers as rows, without a gap: years may be so, but not very many of them.
    is_count = span == n and (n >= MANY or values.min() in (0.0, 1.0))
    return (is_named or is_count) and len(np.unique(values)) == n


def _moments(
    values: Array, weights: Array | None, least: float, most: float, is_robust: bool
) -> tuple[float, float, float, float]:
    """Return mean and deviation, but for values far out, and median and quartile range.

    What is far out is seen from some of the values as well; only robust scales take all.
    """
    step = 1 if is_robust else max(len(values) // SAMPLE, 1)
    own = None if weights is None else weights[::step]
    if own is not None and not own.any():
        step, own = 1, weights
    low, center, high = _quantiles(values[::step], own)
    reach = FAR * (high - low)
    if reach == 0.0 and least < most:  # mostly one value: the others tell what is far
        reach = FAR * float(np.median(np.abs(values[values != center] - center)))
    if 0.0 < reach < max(most - center, center - least):
        is_near = np.abs(values - center) <= reach
        values, weights = values[is_near], None if weights is None else weights[is_near]
    mean = float(np.average(values, weights=weights))
    off = values - mean
    squares = np.einsum("i,i->", off, off) if weights is None else weights @ np.square(off)
    spread = float(np.sqrt(squares / (len(values) if weights is None else weights.sum())))
    if spread <= 1e-12 * abs(mean):  # what rounding leaves of a constant
        spread = 0.0
    return mean, spread, center, (high - low) / 1.349  # the deviation, if they were normal


def _quantiles(values: Array, weights: Array | None) -> list[float]:
    """Return the quartiles, which repeated rows do not change as weights."""
    shares = np.array([0.25, 0.5, 0.75])
    if weights is None:
        plain: list[float] = np.quantile(values, shares, method="inverted_cdf").tolist()
        return plain
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    at = np.searchsorted(total, shares * total[-1])
    found: list[float] = values[order][np.minimum(at, len(values) - 1)].tolist()
    return found
