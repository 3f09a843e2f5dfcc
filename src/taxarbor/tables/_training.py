"""From what a user passes to ``fit`` to the rows of a fit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone

from taxarbor._errors import (
    InputError,
    InputTypeError,
    TableWarning,
    counted,
    some,
    warn_caller,
)
from taxarbor._types import IndexArray
from taxarbor.hierarchy._cells import is_frame
from taxarbor.hierarchy._encoding import Encoding, empty_rows
from taxarbor.rows import Rows, as_rows
from taxarbor.tables._checks import SeenFeatures, check_array, check_range
from taxarbor.tables._encoder import TableEncoder


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
    notes = [*encoding.notes, *_left_out(encoding.dropped)]
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


def _left_out(dropped: Sequence[tuple[str, str]]) -> list[str]:
    told = some([f"{name} ({reason})" for name, reason in dropped], 10)
    return [f"left out: {told}"] if dropped else []
