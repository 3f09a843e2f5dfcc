"""From what a user passes to ``fit`` to the rows of a fit, in memory or part by part.

Of a table that comes in parts, a sweep or a few look at the columns; what they become is
decided as in memory. The rows are encoded anew whenever a fit reads them, and none are kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.base import clone

from taxarbor._errors import (
    InputError,
    InputTypeError,
    TableWarning,
    counted,
    named_by,
    some,
    warn_caller,
)
from taxarbor._run import Run
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import Hierarchy
from taxarbor.hierarchy._cells import as_numbers, column, column_names, is_frame
from taxarbor.hierarchy._checks import check_structure
from taxarbor.hierarchy._encoding import Encoding, empty_rows
from taxarbor.hierarchy._repeats import repeats_of
from taxarbor.rows import Rows, as_rows
from taxarbor.sweep import Blocks, Column, Engine, blocks_of
from taxarbor.sweep._copies import Listed
from taxarbor.sweep._sums import Sums, sums_of_labels
from taxarbor.tables._checks import (
    RANGE,
    SeenFeatures,
    check_array,
    check_middle,
    check_range,
    check_spread,
    check_weights,
)
from taxarbor.tables._encoder import TableEncoder, check_encoder
from taxarbor.tables._look import Parts, Place, exact_sums, sums_of
from taxarbor.tables._scan import Stream
from taxarbor.tables._study import Study, Subject, canonical

NUMBERS = "fiub"
"""Kinds of types that are numbers."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Training:
    """A user's training data: rows to fit, and how they came about."""

    rows: Rows
    data: Any
    """The rows as an array or a CSR matrix."""
    seen: SeenFeatures
    encoding: Encoding | None = None
    gaps: Any = None
    owner: IndexArray | None = None
    """The column of each feature, where any column has several."""
    empty: NDArray[np.bool_] | None = None
    """Which rows have no value at all, if any: they have nothing to say in a fit."""

    @classmethod
    def of(cls, estimator: Any, X: Any, n_threads: int, weights: Any = None) -> Self:
        """Return the rows that an estimator is fitted to, or raise InputError.

        An array of numbers, or a sparse matrix, is taken as it is; its gaps are filled.
        """
        encoder = estimator.encoder
        is_auto = asks_for_auto(encoder)
        if isinstance(encoder, Encoding):  # whose rows these are, encoded already
            data, seen = check_array(estimator, X, with_gaps=False)
            return cls(as_rows(data, n_threads=n_threads), data, seen, owner=owner_of(encoder))
        if encoder is None or (is_auto and _may_be_numbers(X)):
            data, seen = check_array(estimator, X, with_gaps=is_auto)
            rows = as_rows(data, n_threads=n_threads)
            is_sparse = issparse(data)
            cells: Any = data.data if is_sparse else data
            # The means are there already, and tell whether it is worth looking at the cells.
            if not (is_auto and np.isnan(rows.center).any() and np.isnan(cells).any()):
                check_range(rows)
                return cls(rows, data, seen)
        if is_auto:
            is_table = is_frame(X) or _has_text(X)
            encoder = TableEncoder(scale="auto" if is_table else None)
        encoder = clone(encoder).fit(X, sample_weight=weights)
        encoder.encoding_ = encoder.encoding_.evened()
        found, encoding = encoder.encode(X), encoder.encoding_
        empty = empty_rows(found.gaps)
        if empty is not None:
            encoding = without_rows(encoding, int(empty.sum()))
        if found.data.shape[0] < 2:
            raise InputError("has 1 row (n_samples=1), and 2 are needed at least", "X")
        rows = as_rows(found.data, n_threads=n_threads)
        check_range(rows)
        seen = SeenFeatures.of(encoder)
        if is_auto:
            warn_of(encoding)
        if encoding.is_identity and found.gaps is None:
            return cls(rows, found.data, seen)
        return cls(rows, found.data, seen, encoding, found.gaps, owner_of(encoding), empty)


def asks_for_auto(encoder: Any) -> bool:
    """Say whether the encoder of an estimator is "auto", or raise InputError."""
    is_auto = isinstance(encoder, str) and encoder == "auto"
    if not (encoder is None or is_auto or isinstance(encoder, TableEncoder | Encoding)):
        told = f'must be "auto", None or a TableEncoder; got {encoder!r}'
        raise InputTypeError(told, "encoder")
    return is_auto


def without_rows(encoding: Encoding, n_empty: int) -> Encoding:
    """Return an encoding that says how many rows had no value."""
    verb = "takes" if n_empty == 1 else "take"
    told = f"{counted(n_empty, 'row')} without any value {verb} no part in the fit"
    return replace(encoding, notes=(*encoding.notes, told))


def warn_of(encoding: Encoding) -> None:
    """Warn of what was done to a table, if anything was."""
    told = some([f"{name} ({reason})" for name, reason in encoding.dropped], 10)
    notes = [*encoding.notes, *([f"left out: {told}"] if told else [])]
    if notes:
        warn_caller(f"{'; '.join(notes)} (see TableEncoder)", TableWarning)


def owner_of(encoding: Encoding) -> IndexArray | None:
    """Return the column of each feature, where any column has several."""
    return None if len(encoding.columns) == encoding.n_features else encoding.owner


def _may_be_numbers(X: Any) -> bool:
    """Say whether data are numbers and nothing else, or a list that may be."""
    if is_frame(X) or np.ma.isMaskedArray(X):
        return False
    return issparse(X) or not (_has_text(X) or any(cell is None for cell in _cells(X)))


def _has_text(X: Any) -> bool:
    return any(isinstance(cell, str) for cell in _cells(X))


def _cells(X: Any) -> Any:
    """Return the cells of a list or an array of objects or text; none of other data."""
    if isinstance(X, np.ndarray) and X.dtype.kind in "fiub":
        return ()
    return (
        np.asarray(X, dtype=object).ravel() if isinstance(X, list | tuple | np.ndarray) else ()
    )


@final
@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """A user's training data in blocks, and how they came about.

    Attributes
    ----------
    blocks : Blocks
        The rows as features.
    seen : SeenFeatures
        What an estimator remembers of them.
    encoding : Encoding or None
        What became of the columns; None where they are the features.
    owner : int array or None
        The column of each feature, where any column has several.
    weights : Column or None
        What rows count for, as given, and zero without any value; None where all count one.
    counts : Column or None
        How many copies a fit sees of each row, int32; 0 for rows of weight 0 and rows without a
        value. None where all have one.
    empty : Column or None
        Which rows have no value at all, if any.
    gaps : array, CSC matrix or None
        Which cells have no value, where the rows are in memory.
    tables, titles : Column, sequence of str
        The parts of a table whose rows are not in memory and may lack values; else none.
    """

    blocks: Blocks
    seen: SeenFeatures
    encoding: Encoding | None = None
    owner: IndexArray | None = None
    weights: Column | None = None
    counts: Column | None = None
    empty: Column | None = None
    gaps: Any = None
    tables: Column = ()
    titles: Sequence[str] = ()

    @classmethod
    def in_memory(cls, training: Training, engine: Engine, weights: Array | None) -> Self:
        """Return the source of data in memory, with their weights."""
        blocks = blocks_of(training.data, engine)
        edges, empty = np.cumsum(blocks.sizes)[:-1], training.empty
        if empty is not None:
            weights = np.where(empty, 0.0, 1.0 if weights is None else weights)
        counts = None if weights is None else repeats_of(weights).astype(np.int32)
        cut = [
            None if one is None else np.split(one, edges) for one in (weights, counts, empty)
        ]
        told = training.seen, training.encoding, training.owner
        return cls(blocks, *told, cut[0], cut[1], cut[2], training.gaps)

    @property
    def has_rows(self) -> bool:
        """Whether trees know which rows they have: those of rows in memory do."""
        return self.blocks.whole is not None

    def decode(self, tree: Hierarchy, labels: Column, counts: Column) -> Hierarchy:
        """Return a tree in the user's units, given labels and counts of its rows."""
        if self.encoding is None:
            return tree
        missing = self.missing(labels, tree.n_leaves, self.weights, counts)
        return self.encoding.decode(tree, self.gaps, missing)

    def missing(
        self,
        labels: Column,
        n_leaves: int,
        weights: Column | None = None,
        counts: Column | None = None,
    ) -> Array | None:
        """Return how much of each leaf has no value, per column of a table, in one sweep.

        ``labels`` are the leaves of all rows, negative for none, ``weights`` what each row
        counts for, and rows whose ``counts`` are zero weigh nothing. The result is for
        :meth:`Encoding.decode`; None where there are no gaps.
        """
        if self.encoding is None or not self.titles:
            return None
        nothing = [None] * len(self.titles)
        more = (nothing if one is None else one for one in (weights, counts))
        told: Any = {"encoding": self.encoding, "n_leaves": n_leaves}
        columns = self.tables, self.titles, labels, *more
        sums, n_gaps = self.blocks.engine.sweep(count_missing, *columns, **told)
        return sums.values() if n_gaps else None


def count_missing(
    table: Any,
    title: str,
    labels: IndexArray,
    weights: Array | None,
    counts: NDArray[np.int32] | None,
    *,
    encoding: Encoding,
    n_leaves: int,
) -> tuple[Sums | None, int]:
    """Return exact sums, per leaf and column, of the weights of rows without a value.

    And how many cells have none; if all have one, no sums.
    """
    with named_by(title):
        gaps = encoding.encode(table).gaps
    if gaps is None:
        return None, 0
    own = np.ones(len(labels)) if weights is None else np.asarray(weights, dtype=np.float64)
    own = own if counts is None else np.where(counts > 0, own, 0.0)
    where = np.asarray(labels, dtype=np.int32)
    cells = csr_array(gaps)
    cells.data = np.repeat(own, np.diff(cells.indptr))
    rows = as_rows(cells, center=np.zeros(cells.shape[1]))
    return sums_of_labels(rows, where, None, n_leaves), int(cells.nnz)


def train_on_stream(
    estimator: Any, stream: Stream, run: Run, room: int | None, weights: Any = None
) -> Source:
    """Return the blocks that an estimator is fitted to, or raise InputError.

    The engine in them is open, and the caller's to close.
    """
    is_auto = asks_for_auto(estimator.encoder)
    engine = stream.make_engine(run, room)
    try:
        return _ByParts(estimator.encoder, is_auto, stream, engine).made(weights)
    except BaseException:
        engine.close()
        raise


@final
class _ByParts:
    """The way from a stream to blocks."""

    def __init__(self, encoder: Any, is_auto: bool, stream: Stream, engine: Engine) -> None:
        self.encoder, self.is_auto, self.engine = encoder, is_auto, engine
        self.names, self.asked = stream.names, stream.asked
        if not len(stream.parts):
            raise InputError("has no rows", "X")
        # Where sizes are known, one part is enough: each is compared with it when it is read.
        n_asked = len(stream.parts) if stream.sizes is None else 1
        facts = engine.sweep(facts_of, stream.parts[:n_asked], stream.titles[:n_asked]).items
        own = np.array([one.n_rows for one in facts], dtype=np.intp)
        sizes = own if stream.sizes is None else np.asarray(stream.sizes)
        here = np.flatnonzero(sizes).tolist()
        self.sizes, n = sizes[here], int(sizes.sum())
        if n < 2:
            told = f"has {counted(n, 'row')} (n_samples={n}), and 2 are needed at least"
            raise InputError(told, "X")
        self.like = facts[here[0] if stream.sizes is None else 0]
        self.titles = [stream.titles[at] for at in here]
        parts = [stream.parts[at] for at in here]
        self.tables = engine.lazy(checked, parts, self.titles, like=self.like)
        names = None if self.names is None else np.array(self.names, dtype=object)
        self.seen = SeenFeatures(self.like.n_columns, names)

    def made(self, given: Any) -> Source:
        """Return the blocks, with weights."""
        weights = check_weights(given, int(self.sizes.sum()))
        repeats = None if weights is None else repeats_of(weights).astype(np.int32)
        parts = Parts.of(self.engine, self.tables, self.sizes, self.titles, repeats)
        encoder = self.encoder
        is_plain = encoder is None or isinstance(encoder, Encoding)
        if is_plain or (self.is_auto and self.like.kind != "frame"):
            seen = parts.sweep(look_at_cells, names=self._names(), with_gaps=self.is_auto)
            if is_plain or not seen.n_gaps:
                found = self._as_it_is(seen)
                owner = owner_of(encoder) if isinstance(encoder, Encoding) else None
                own = self._cut(weights)
                return replace(found, owner=owner, weights=own, counts=parts.counts)
        if self.is_auto:
            encoder = TableEncoder(scale="auto" if self.like.kind == "frame" else None)
        return self._encoded(clone(encoder), parts, weights)

    def _names(self) -> tuple[str, ...]:
        return tuple(self.names or (f"x{at}" for at in range(self.like.n_columns)))

    def _as_it_is(self, seen: "_Cells") -> Source:
        """Return blocks of numbers that nothing is done to."""
        is_single = seen.types == {"float32"}
        dtype = np.dtype(np.float32 if is_single else np.float64)
        data = self.engine.lazy(as_array, self.tables, self.titles, dtype=dtype)
        n_cells = seen.n_stored / int(self.sizes.sum())
        n_features = self.like.n_columns
        blocks = Blocks(self.engine, data, self.sizes, n_features, dtype, n_cells)
        self._check_range(blocks, float((seen.high - seen.low).max()))
        check_middle(float(np.maximum(np.abs(seen.low), np.abs(seen.high)).max()), dtype)
        return Source(blocks, self.seen)

    def _encoded(self, encoder: TableEncoder, parts: Parts, weights: Array | None) -> Source:
        check_encoder(encoder)
        is_sparse, is_table = self.like.kind == "sparse", self.like.kind == "frame"
        told: Any = {"asked": self.asked, "has_identifiers": is_table}
        subject = Subject(parts, self.like.n_columns, self.names, is_sparse, **told)
        study = Study(encoder, subject)
        encoding = study.encoding().evened()
        dtype = np.dtype(np.float32 if encoding.is_sparse else self._float_type(study.types))
        told = {"encoding": encoding, "dtype": dtype}
        data = self.engine.lazy(encoded, self.tables, self.titles, **told)
        n_full, n_features = study.n_full(encoding), encoding.n_features
        n_cells = float(n_features)
        if encoding.is_sparse or is_sparse:
            n_cells = self.engine.sweep(count_stored, data) / parts.n_rows
        blocks = Blocks(self.engine, data, self.sizes, n_features, dtype, n_cells)
        is_bounded = not (is_sparse or encoding.unit_length)
        width = float(study.widths(encoding).max()) if is_bounded else np.nan
        self._check_range(blocks, width)
        found = Source(blocks, self.seen, weights=self._cut(weights), counts=parts.counts)
        has_gaps = n_full < len(encoding.columns)
        if n_full == 0 and not is_sparse:
            found, encoding = self._without_empty(found, encoding, weights)
        if self.is_auto:
            warn_of(encoding)
        if encoding.is_identity and not has_gaps:
            return found
        found = replace(found, encoding=encoding, owner=owner_of(encoding))
        return replace(found, tables=self.tables, titles=self.titles) if has_gaps else found

    def _cut(self, values: NDArray[Any] | None) -> list[NDArray[Any]] | None:
        """Return what is known of each row as a column."""
        return None if values is None else np.split(values, np.cumsum(self.sizes)[:-1])

    def _float_type(self, types: frozenset[str]) -> type[np.floating[Any]]:
        """Return float32 for a table whose numbers all are, as in memory, else float64."""
        kinds = types if self.like.kind == "frame" else {self.like.type}
        starts = ("int", "uint", "float", "dec", "bool" if self.like.kind != "frame" else "int")
        numbers = {kind for kind in kinds if kind.startswith(starts)}
        return np.float32 if numbers and numbers <= {"float32", "float16"} else np.float64

    def _without_empty(
        self, found: Source, encoding: Encoding, weights: Array | None
    ) -> tuple[Source, Encoding]:
        """Give rows without any value neither copies nor weight."""
        columns = self.tables, self.titles
        empty, n_empty = self.engine.keep(find_empty, *columns, encoding=encoding)
        if not n_empty:
            return found, encoding
        if weights is None:
            own, _ = self.engine.keep(ones_but_for, empty, dtype=np.float64)
            counts, _ = self.engine.keep(ones_but_for, empty, dtype=np.int32)
            found = replace(found, weights=own, counts=counts)
        else:
            is_empty = np.concatenate(self.engine.gather(empty))
            weights = np.where(is_empty, 0.0, weights)
            repeats = repeats_of(weights).astype(np.int32)
            found = replace(found, weights=self._cut(weights), counts=self._cut(repeats))
        return replace(found, empty=empty), without_rows(encoding, n_empty)

    def _check_range(self, blocks: Blocks, width: float) -> None:
        """Refuse data that vary too little or too much, given how far apart values are."""
        low, high = RANGE[blocks.dtype.name]
        n = blocks.n_rows
        # The mean deviation is at most half of the width, and at least an n-th of it.
        if width == 0.0 or (width / n > low and width / 2.0 < high):
            return
        means = sums_of(self.engine.sweep(add_up, blocks.data)) / n
        away, n_stored = self.engine.sweep(add_deviations, blocks.data, means=means)
        with np.errstate(all="ignore"):
            total = sums_of(away) + (n - n_stored) * np.abs(means)
            check_spread(float((total / n).max(initial=0.0)), blocks.dtype)


# What is done to each part


def _is_sparse(table: Any) -> bool:
    return bool(issparse(table))


@final
@dataclass(frozen=True, slots=True)
class _Facts:
    """What a part is: a frame, or an array or a sparse matrix of some type; and its shape."""

    kind: str
    n_rows: int
    n_columns: int
    type: str
    names: tuple[str, ...] | None


def facts_of(part: Any, title: str) -> Listed:
    """Return what a part is, or raise InputError if it is nothing that can be used."""
    with named_by(title):
        return Listed([_facts(part)])


def _facts(part: Any) -> _Facts:
    if is_frame(part):
        names = column_names(part)
        n_rows, n_columns = part.shape
        return _Facts("frame", n_rows, n_columns, "", None if names is None else tuple(names))
    is_array = _is_sparse(part) or isinstance(part, np.ndarray)
    if not is_array or part.ndim != 2:
        told = f"an array of shape {part.shape}" if is_array else type(part).__name__
        raise InputError(f"X must have two dimensions, rows and columns; got {told}")
    if part.dtype.kind not in NUMBERS:
        raise InputTypeError(f"X must hold numbers; got {part.dtype}")
    kind = "sparse" if _is_sparse(part) else "array"
    n_rows, n_columns = part.shape
    return _Facts(kind, n_rows, n_columns, _type(part), None)


def _type(part: Any) -> str:
    """Return the type of an array, whichever way its bytes are stored."""
    return str(part.dtype.newbyteorder("="))


def checked(part: Any, title: str, *, like: _Facts) -> Any:
    """Return a part, after comparing it with the first one."""
    with named_by(title):
        facts = _facts(part)
        if facts.kind != like.kind:
            told = f"the first part of X is of kind {like.kind}, and this one {facts.kind}"
            raise InputError(told)
        if facts.n_columns != like.n_columns:
            told = counted(like.n_columns, "column")
            raise InputError(
                f"the first part of X has {told}, and this one {facts.n_columns:,}"
            )
        if facts.type != like.type:
            raise InputError(f"the first part of X is {like.type}, and this one {facts.type}")
        if facts.names != like.names:
            there, first = facts.names or (), like.names or ()
            pairs = zip(there, first, strict=False)
            odd = [f"{new!r} for {old!r}" for new, old in pairs if new != old]
            told = "the columns are not those of the first part of X, in the same order"
            raise InputError(f"{told}: {some(odd, 5) or 'one has no names'}")
        if facts.kind == "sparse":
            check_structure(part)
            return canonical(part)
    return part


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """What is known of an array of numbers."""

    n_gaps: int
    n_stored: int
    low: Array
    high: Array
    types: frozenset[str]

    def merge(self, other: "_Cells") -> "_Cells":
        return _Cells(
            self.n_gaps + other.n_gaps,
            self.n_stored + other.n_stored,
            np.fmin(self.low, other.low),
            np.fmax(self.high, other.high),
            self.types | other.types,
        )


def look_at_cells(
    table: Any, place: Place, counts: Any, *, names: Sequence[str], with_gaps: bool
) -> _Cells:
    """Count the gaps of numbers, and find the least and the greatest of each column."""
    width = len(names)
    with named_by(place.title):
        types = frozenset([_type(table)]) if not is_frame(table) else _types(table)
        cells = as_array(table, None, dtype=None)
        zeros = np.zeros(width)
        with np.errstate(all="ignore"):
            if _is_sparse(cells):
                low, high = zeros.copy(), zeros.copy()  # of the cells that are not stored
                np.fmin.at(low, cells.indices, cells.data.astype(np.float64))
                np.fmax.at(high, cells.indices, cells.data.astype(np.float64))
            else:
                low = np.fmin.reduce(cells, axis=0).astype(np.float64)
                high = np.fmax.reduce(cells, axis=0).astype(np.float64)
        stored = cells.data if _is_sparse(cells) else cells
        total = stored.sum(dtype=np.float64)
        is_finite = bool(np.isfinite(total)) or bool(np.isfinite(stored).all())
        if not is_finite:
            _refuse_infinite(cells, low, high, names, place.row)
        n_gaps = 0 if is_finite else int(np.isnan(stored).sum())
        if n_gaps and not with_gaps:
            _refuse_gaps(cells, names, place.row)
    return _Cells(n_gaps, stored.size, low, high, types)


def _types(frame: Any) -> frozenset[str]:
    return frozenset(str(one).lower() for one in frame.dtypes)


def _refuse_infinite(
    cells: Any, low: Array, high: Array, names: Sequence[str], first: int
) -> None:
    for at in np.flatnonzero(np.isinf(low) | np.isinf(high)).tolist():
        own = cells[:, [at]].toarray()[:, 0] if _is_sparse(cells) else cells[:, at]
        as_numbers(own, names[at], first)  # raises


def _refuse_gaps(cells: Any, names: Sequence[str], first: int) -> None:
    if _is_sparse(cells):
        at = int(cells.indices[np.isnan(cells.data)][0])
        raise InputError(
            f"X contains NaN, in column {names[at]!r}, and encoder=None refuses it"
        )
    row, at = (int(places[0]) for places in np.nonzero(np.isnan(cells)))
    told = f"in column {names[at]!r}, first in row {first + row}, counted from 0"
    raise InputError(f"X contains NaN, {told}, and encoder=None refuses it")


def as_array(table: Any, title: str | None, *, dtype: Any) -> Any:
    """Return a part as an array or a CSR matrix of a type; of its own, if none is given."""
    if _is_sparse(table):
        return table if dtype is None else table.astype(dtype, copy=False)
    if not is_frame(table):
        return table if dtype is None else np.ascontiguousarray(table, dtype=dtype)
    names = column_names(table) or [f"x{at}" for at in range(table.shape[1])]
    with named_by(title):
        own = [as_numbers(column(table, at), name) for at, name in enumerate(names)]
    return np.ascontiguousarray(np.stack(own, axis=1), dtype=dtype)


def encoded(table: Any, title: str, *, encoding: Encoding, dtype: Any) -> Any:
    """Return the rows of a part as features."""
    with named_by(title):
        data = encoding.encode(table, dtype).data
    if not _is_sparse(data):
        return np.ascontiguousarray(data)
    found = csr_array(data)
    found.sum_duplicates()
    return found


def find_empty(table: Any, title: str, *, encoding: Encoding) -> tuple[NDArray[np.bool_], int]:
    """Return which rows have no value at all, and how many."""
    with named_by(title):
        empty = empty_rows(encoding.encode(table).gaps)
    if empty is None:
        return np.zeros(table.shape[0], dtype=bool), 0
    return empty, int(empty.sum())


def ones_but_for(empty: NDArray[np.bool_], *, dtype: Any) -> tuple[NDArray[Any], None]:
    """Return one for each row that has a value, else zero."""
    return (~empty).astype(dtype), None


def count_stored(data: Any) -> int:
    """Return how many cells are stored."""
    return int(data.nnz if _is_sparse(data) else data.size)


def add_up(data: Any) -> NDArray[np.int64]:
    """Return exact sums of features."""
    return exact_sums(data.astype(np.float64))


def add_deviations(data: Any, *, means: Array) -> tuple[NDArray[np.int64], IndexArray]:
    """Return exact sums of distances from the means, of stored cells, and how many are."""
    if not _is_sparse(data):
        n_stored = np.full(data.shape[1], len(data))
        return exact_sums(np.abs(data.astype(np.float64) - means)), n_stored
    away = data.astype(np.float64)
    away.data = np.abs(away.data - means[away.indices])
    return exact_sums(away), np.bincount(away.indices, minlength=away.shape[1])
