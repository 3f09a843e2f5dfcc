"""What a user calls things: names of rows and columns, given or found with the data."""

from collections.abc import Sequence
from typing import Any


def given_names(
    kind: str, given: Sequence[str] | None, found: Sequence[str] | None, n_expected: int
) -> tuple[str, ...] | None:
    """Return the names that are given, or else found, or None.

    Raises
    ------
    TypeError
        If a single text is given.
    ValueError
        If there are more or fewer than there should be.
    """
    if isinstance(given, str):
        raise TypeError(f"{kind}_names must be a list of names, got the text {given!r}")
    names = found if given is None else given
    if names is None:
        return None
    if len(names) != n_expected:
        things = {"row": "rows", "feature": "features"}[kind]
        raise ValueError(f"got {len(names)} {kind} names for {n_expected} {things}")
    return tuple(str(name) for name in names)


def columns_of(X: Any) -> Sequence[str] | None:
    """Return the names of a frame's columns."""
    columns = getattr(X, "columns", None)
    return None if columns is None else tuple(str(name) for name in columns)


def index_of(X: Any) -> Sequence[str] | None:
    """Return the index of a pandas frame if it holds names, not just numbers."""
    index = getattr(X, "index", None)
    is_named = getattr(getattr(index, "dtype", None), "kind", "i") in "OUT"
    return [str(name) for name in index] if index is not None and is_named else None
