"""From a table in memory to the features that a fit sees."""

from dataclasses import dataclass, replace
from typing import Any, final

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
from taxarbor._frames import as_frame, is_frame, is_plain
from taxarbor._types import Array, IndexArray
from taxarbor.tables._checks import SeenFeatures, check_array, check_range
from taxarbor.tables._encoder import TableEncoder
from taxarbor.tables._encoding import Encoding, empty_rows


@final
@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """The features of training rows, and how they came about.

    Attributes
    ----------
    data : C-contiguous float array or canonical CSR matrix of shape (n_rows, n_features)
        What a fit sees.
    seen : SeenFeatures
        The number and the names of the table's columns.
    encoding : Encoding or None
        What became of the columns; None where they are the features.
    gaps : bool array or CSC matrix of shape (n_rows, n_columns), or None
        Which cells are missing; None if none are.
    owner : int array of shape (n_features,) or None
        The column of each feature, where any column has several.
    empty : bool array of shape (n_rows,) or None
        Which rows have no value at all; None if all have one.
    is_readable : bool
        Whether people read the features, so that rules should use few of them; False for the
        numbers of an embedding.
    """

    data: Any
    seen: SeenFeatures
    encoding: Encoding | None = None
    gaps: Any = None
    owner: IndexArray | None = None
    empty: NDArray[np.bool_] | None = None
    is_readable: bool = True


def make_features(
    estimator: Any, X: Any, sample_weight: Any = None, embedding: str | None = None
) -> Features:
    """Return the features that an estimator is fitted to, or raise InputError.

    Arrays of numbers and sparse matrices are taken as they are, with missing values imputed;
    all else is encoded. ``embedding`` names the column of X that clusters are found in: it is
    no feature, unless no other column can be used. The estimator stays as it is.
    """
    X, encoder = as_frame(X), estimator.encoder
    is_auto = isinstance(encoder, str) and encoder == "auto"
    if not (encoder is None or is_auto or isinstance(encoder, TableEncoder | Encoding)):
        problem = f'must be "auto", None or a TableEncoder; got {encoder!r}'
        raise InputTypeError(problem, "encoder")
    if isinstance(encoder, Encoding):  # whose rows these are, encoded already
        data, seen = check_array(estimator, X, allow_nan=False)
        return Features(data, seen, owner=_find_owner(encoder), is_readable=encoder.is_readable)
    if encoder is None and embedding is not None:
        problem = f"names the column {embedding!r}, and encoder=None takes all for numbers"
        raise InputError(f"{problem}; pass the vectors as an array", "embedding")
    if encoder is None or (is_auto and _may_be_numbers(X)):
        data, seen = check_array(estimator, X, allow_nan=is_auto)
        if not (is_auto and _has_nan(data)):
            check_range(data)
            return Features(data, seen)
    if is_auto:
        is_table = is_frame(X) or any(isinstance(cell, str) for cell in _objects(X))
        encoder = TableEncoder(scale="auto" if is_table else None)
    encoder = clone(encoder).fit(X, sample_weight=sample_weight)
    encoder.encoding_ = encoder.encoding_.equalize_columns()
    return _encode(encoder, X, is_auto, embedding)


def _encode(encoder: TableEncoder, X: Any, is_auto: bool, embedding: str | None) -> Features:
    (data, gaps), encoding = encoder.encode(X), encoder.encoding_
    empty = empty_rows(gaps)
    if empty is not None:
        n_empty = int(empty.sum())
        verb = "takes" if n_empty == 1 else "take"
        note = f"{counted(n_empty, 'row')} without any value {verb} no part in the fit"
        encoding = replace(encoding, notes=(*encoding.notes, note))
    if data.shape[0] < 2:
        raise InputError("has 1 row (n_samples=1), and 2 are needed at least", "X")
    check_range(data)
    seen = SeenFeatures.of(encoder)
    others = tuple(pair for pair in encoding.dropped if pair[0] != embedding)
    if is_auto:
        _warn(replace(encoding, dropped=others))
    if len(others) < len(encoding.dropped):
        dropped = (*others, (str(embedding), "the embedding that clusters are found in"))
        encoding = replace(encoding, dropped=dropped)
    if encoding.is_identity and gaps is None:
        return Features(data, seen)
    own = data, seen, encoding, gaps, _find_owner(encoding), empty
    return Features(*own, is_readable=encoding.is_readable)


def _warn(encoding: Encoding) -> None:
    """Warn of what was done to a table, if anything was."""
    notes = [*encoding.notes]
    if encoding.dropped:
        reasons = [f"{name} ({reason})" for name, reason in encoding.dropped]
        notes.append(f"left out: {some(reasons, 10)}")
    if notes:
        warn_caller(f"{'; '.join(notes)} (see TableEncoder)", TableWarning)


def _find_owner(encoding: Encoding) -> IndexArray | None:
    """Return the column of each feature, where any column has several."""
    return None if len(encoding.columns) == encoding.n_features else encoding.owner


def _has_nan(data: Any) -> bool:
    cells: Array = data.data if issparse(data) else data  # type: ignore[attr-defined]
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isnan(cells.sum())) and bool(np.isnan(cells).any())


def _may_be_numbers(X: Any) -> bool:
    """Say whether data are numbers and nothing else, or a list that may be."""
    if is_frame(X) or np.ma.isMaskedArray(X):
        return False
    return not any(cell is None or isinstance(cell, str) for cell in _objects(X))


def _objects(X: Any) -> Any:
    """Return the cells of a list or an array of objects or text; none of other data."""
    is_listed = isinstance(X, list | tuple | np.ndarray) and not is_plain(X)
    return np.asarray(X, dtype=object).ravel() if is_listed else ()
