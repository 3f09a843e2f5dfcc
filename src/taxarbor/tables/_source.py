"""The data of a fit by sweeps, wherever its rows are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from taxarbor._errors import named_by
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import Hierarchy
from taxarbor.hierarchy._encoding import Encoding
from taxarbor.hierarchy._repeats import repeats_of
from taxarbor.rows import as_rows
from taxarbor.sweep import Blocks, Column, Engine, blocks_of
from taxarbor.sweep._sums import Sums, sums_of_labels
from taxarbor.tables._checks import SeenFeatures
from taxarbor.tables._training import Training


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
