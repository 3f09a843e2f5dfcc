"""What rows, columns, classes and nodes are called, and whether the rows are the tree's own."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._errors import InputError, InputTypeError, printable
from taxarbor._format import format_number
from taxarbor._types import Array, IndexArray
from taxarbor.explain._sample import MIN_SAMPLE
from taxarbor.metrics._classes import NO_LABEL, encode_labels, name_of
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._text import phrase

if TYPE_CHECKING:
    from taxarbor.explain._portrait import Portraits

MOVED = 1e-3
"""Standard deviations that the mean of a column may differ by, beyond float32's rounding."""
MAX_STANDARD_ERRORS = 6.0
"""That the mean of a sample, or of weighted rows, may differ by from that of the fit."""
WEAK = 0.3
"""A second feature is named only if its share is at least this part of the first one's."""
WORDS, LONGEST = 2, 48  # features in a short name, and characters of each


# Rows and columns


def given_names(
    kind: str, given: Sequence[str] | None, found: Sequence[str] | None, n_expected: int
) -> tuple[str, ...] | None:
    """Return the names that were given, or else those found with the data, or None."""
    if isinstance(given, str):
        raise InputTypeError(f"{kind}_names must be a list of names, got the text {given!r}")
    names = found if given is None else given
    if names is None:
        return None
    if len(names) != n_expected:
        raise InputError(f"got {len(names)} {kind} names for {n_expected} {kind}s")
    return tuple(str(name) for name in names)


def find_row(row: Any, names: Sequence[str] | None, n_rows: int, numbers: IndexArray) -> int:
    """Return the place of a row among those that are known, given its number or its name."""
    if isinstance(row, str):
        found = [n for n, name in enumerate(names or ()) if name == row]
        if len(found) != 1:
            count = "there is no row" if not found else f"there are {len(found)} rows"
            raise KeyError(f"{count} called {row!r}; give its number, 0 to {n_rows - 1}")
        return found[0]
    if isinstance(row, bool | np.bool_):
        raise InputTypeError(
            f"a row is a number or a name, got {row}; of a mask, pass np.flatnonzero(mask)"
        )
    number = operator.index(row)
    if not 0 <= number < n_rows:
        raise IndexError(f"there is no row {number}: rows are numbered 0 to {n_rows - 1}")
    place = int(np.searchsorted(numbers, number))
    if place == len(numbers) or numbers[place] != number:
        raise IndexError(
            f"row {number} is not among the {len(numbers):,} rows of the sample: place(X) "
            "explains any rows"
        )
    return place


def columns_of(X: Any) -> tuple[str, ...] | None:
    """Return the names of a frame's columns."""
    columns = getattr(X, "columns", None)
    return None if columns is None else tuple(str(name) for name in columns)


def index_of(X: Any) -> Sequence[str] | None:
    """Return the index of a pandas frame if it holds names, not just numbers."""
    index = getattr(X, "index", None)
    is_named = getattr(getattr(index, "dtype", None), "kind", "i") in "OUT"
    return [str(name) for name in index] if index is not None and is_named else None


def check_same_rows(taxonomy: Taxonomy, columns: "Portraits") -> None:
    """Raise ValueError if the mean of a column is not that of the tree's own rows.

    Those of a sample, on which large trees are found, or of rows with weights, which a fit
    rounds, may differ by some standard errors.
    """
    if taxonomy.means is None:
        return
    moved, weights, center = MOVED, columns.weights, columns.center
    if taxonomy.tree.n_rows > MIN_SAMPLE:
        moved = MAX_STANDARD_ERRORS / MIN_SAMPLE**0.5
    if weights is not None:
        error = float(np.sqrt(np.square(weights).sum()) / weights.sum())
        moved = max(moved, MAX_STANDARD_ERRORS * error)
    known = taxonomy.means[taxonomy.tree.root].astype(np.float64)
    allowed = moved * columns.spread + 4.0 * np.finfo(np.float32).eps * np.abs(center)
    wrong = np.flatnonzero(np.abs(known - center) > allowed)
    if len(wrong):
        column, names = int(wrong[0]), taxonomy.feature_names
        name = names[column] if names else f"x{column}"
        was, now = (format_number(float(means[column])) for means in (known, center))
        raise InputError(
            "X does not hold the rows that the tree was grown on, in the same order: the mean "
            f"of {name} was {was}, and is {now} now. If the rows were scaled for the fit, pass "
            "the scaled rows, pipeline[:-1].transform(X), or the tree in the units of X, as "
            "taxonomy.unscale(scaler.mean_, scaler.scale_) returns it"
        )


# Classes


@final
@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Known classes: their names, the largest first, and the number of each row's, or -1."""

    names: tuple[str, ...]
    codes: IndexArray

    @classmethod
    def of(cls, labels: ArrayLike, n_rows: int) -> Self:
        """Return the classes that these labels name, or raise ValueError."""
        codes, found = encode_labels(labels, n_rows)
        order = np.argsort(-np.bincount(codes + 1)[1:], kind="stable")
        place = np.full(len(order) + 1, -1)
        place[order] = np.arange(len(order))
        return cls(tuple(printable(name_of(found[n])) for n in order), place[codes])

    def count(self, rows: IndexArray, weights: Array | None = None) -> list[tuple[int, int]]:
        """Return the classes of some rows and how many are of each, the largest first.

        Rows without a class come last, as class -1. Those of a sample have weights: how many
        each stands for.
        """
        own = None if weights is None else weights[rows]
        counts = np.bincount(self.codes[rows] + 1, own, minlength=len(self.names) + 1)
        counts = whole_numbers(counts)
        largest = [*np.argsort(-counts[1:], kind="stable").tolist(), -1]
        return [(code, int(counts[code + 1])) for code in largest if counts[code + 1]]

    def name(self, code: int) -> str:
        """Return the name of a class, and what rows without one are called for -1."""
        return NO_LABEL if code < 0 else self.names[code]


def whole_numbers(counts: NDArray[Any]) -> IndexArray:
    """Return weights as numbers of rows: some are never none."""
    found: IndexArray = np.maximum(np.rint(counts), counts > 0.0).astype(np.intp)
    return found


# Nodes


def name_nodes(taxonomy: Taxonomy) -> tuple[str, ...]:
    """Return a short name for each node: what leads there from its parent."""
    names = ["all rows"]
    for node in range(1, taxonomy.tree.n_nodes):
        reasons = taxonomy.reasons(node, WORDS)
        words = [
            phrase(reason, LONGEST)
            for reason in reasons
            if not reason.share < WEAK * reasons[0].share
        ]
        names.append(", ".join(words) or f"node {node}")
    return tuple(names)
