"""A sample of rows that need not fit into memory: some of each leaf, with what they stand for.

Rows are drawn by a hash of their number, so that the same ones come however the rows lie in
parts. The parts are swept over twice: once to draw, once to fetch what was drawn.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from taxarbor._errors import InputError, counted, named_by
from taxarbor._run import Run
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import Hierarchy
from taxarbor.hierarchy._remade import without_rows
from taxarbor.sweep import Engine
from taxarbor.sweep._copies import Drawn, Listed, draw, limits
from taxarbor.tables._stream import Stream

ROWS = 200_000
"""Rows up to which all are read, and that are drawn at most; but one of each leaf."""
CELLS = 40_000_000
"""Numbers in them, at most."""
EACH = 2_000
"""Rows that are drawn of a leaf, at most."""
KEY = 0x5441584152424F52


class Sample(NamedTuple):
    """Rows that were drawn, by their numbers, which ascend, and what each stands for.

    Numbers, labels and weights are None where the rows are all there are.
    """

    X: Any
    numbers: IndexArray | None
    labels: IndexArray | None
    weights: Array | None

    def told(self, n_rows: int) -> str:
        """Return what is to be said of what was found in a sample."""
        n_drawn = 0 if self.numbers is None else len(self.numbers)
        return (
            "Portraits with their means, examples and margins come from a sample of "
            f"{counted(n_drawn, 'row')} of {n_rows:,}, drawn from each cluster; sizes, rules "
            "and the means beside them are of all rows"
        )


def draw_rows(tree: Hierarchy, stream: Stream) -> Sample:
    """Return all rows of a stream, if they are few, or else some of each leaf of the tree."""
    engine = stream.make_engine(Run(), None)
    try:
        return _draw(tree, stream, engine)
    finally:
        engine.close()


def _draw(tree: Hierarchy, stream: Stream, engine: Engine) -> Sample:
    sizes = stream.sizes
    if sizes is None:
        sizes = np.array(engine.gather(engine.keep(_counted, stream.parts)[0]), dtype=np.intp)
    starts = [0, *np.cumsum(sizes).tolist()]
    if starts[-1] != tree.n_rows:
        raise InputError(
            f"X has {starts[-1]:,} rows, but the tree was grown on {tree.n_rows:,}: pass the "
            "same rows, in the same order"
        )
    n_each = _rows_of_each(tree)
    if n_each is None:
        return Sample(_joined(engine.gather(stream.parts)), None, None, None)
    homes: list[Any] = [None] * len(sizes)
    if tree.has_rows:
        homes = [tree.labels[first:last] for first, last in pairwise(starts)]
    # Hardly ever are there fewer rows below these hashes.
    bounds = limits(tree.sizes[tree.leaves], n_each + 6.0 * np.sqrt(n_each) + 10.0)
    low: Any = {"keys": np.full(tree.n_leaves, KEY, dtype=np.uint64), "bounds": bounds}
    columns = stream.parts, [*stream.titles], starts[:-1], homes
    found: Drawn = engine.sweep(_draw_part, *columns, tree=without_rows(tree), **low)
    at, labels = found.lowest(n_each)
    numbers = found.stacked()[at]
    order = np.argsort(numbers)
    numbers, labels = numbers[order], labels[order]
    drawn = np.bincount(labels, minlength=tree.n_leaves)
    if not drawn.all():
        raise InputError(
            f"no row of X goes to cluster c{int(drawn.argmin())} of the tree: pass the rows "
            "that the tree was grown on"
        )
    taken = engine.sweep(_take_part, stream.parts, starts[:-1], numbers=numbers)
    return Sample(_joined(taken.items), numbers, labels, _weights(tree, numbers, labels))


def _rows_of_each(tree: Hierarchy) -> int | None:
    """Return how many rows of each leaf are drawn at most; None for all rows there are."""
    most = min(ROWS, CELLS // max(tree.n_features or 1, 1))
    return None if tree.n_rows <= most else max(1, min(EACH, most // tree.n_leaves))


def _weights(tree: Hierarchy, numbers: IndexArray, labels: IndexArray) -> Array:
    """Return what each row stands for: those of a leaf together for all of its rows."""
    own = np.ones(len(numbers)) if tree.weights is None else tree.weights[numbers]
    sums = np.bincount(labels, own, minlength=tree.n_leaves)
    weights: Array = (
        own * (tree.node_weights[tree.leaves] / np.where(sums > 0.0, sums, 1.0))[labels]
    )
    return weights


def _counted(part: Any) -> tuple[int, None]:
    return part.shape[0], None


def _draw_part(
    part: Any, title: str, first: int, labels: IndexArray | None, *, tree: Hierarchy, **low: Any
) -> Drawn:
    """Return the numbers of rows of a part whose hash is below the limit of their leaf."""
    numbers: IndexArray = np.arange(first, first + part.shape[0])
    if labels is None:
        with named_by(title):
            labels = tree.predict(part) if len(numbers) else numbers
    return draw(numbers, labels.astype(np.int32), None, first, **low)


def _take_part(part: Any, first: int, *, numbers: IndexArray) -> Listed:
    """Return those rows of a part that were drawn."""
    begin, end = np.searchsorted(numbers, (first, first + part.shape[0]))
    rows = numbers[begin:end] - first
    return Listed([part.iloc[rows] if hasattr(part, "iloc") else part[rows]] * bool(len(rows)))


def _joined(parts: list[Any]) -> Any:
    """Return the rows of some parts as one table."""
    parts = [part for part in parts if part.shape[0]] or parts[:1]
    if hasattr(parts[0], "iloc"):
        import pandas as pd

        return pd.concat(parts)
    if sparse.issparse(parts[0]):
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    return np.concatenate([np.asarray(part) for part in parts])
