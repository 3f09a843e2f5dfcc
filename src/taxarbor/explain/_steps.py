"""The way of single rows through a tree, step by step."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from taxarbor._types import Array, IndexArray
from taxarbor.explain._margins import blocks, raw_margins, rule_agrees
from taxarbor.hierarchy import Hierarchy, printable

if TYPE_CHECKING:
    from taxarbor.explain._explanation import Explanation

TOP = 3
"""Features named per step."""


class Step(NamedTuple):
    """A split on the way of a row.

    Attributes
    ----------
    row : int
        Number of the row.
    node, child : int
        The node that is split, and the child that the row is in.
    margin : float
        How clearly: 1 is usual, 0 the border, negative the wrong side.
    surer_than : float
        Share of the child's rows that have a smaller margin.
    agrees : bool
        Whether the rule alone sends the row there, too.
    pulls : tuple of Pull
        The features that pull the row most, to its own side or to the other.
    """

    row: int
    node: int
    child: int
    margin: float
    surer_than: float
    agrees: bool
    pulls: "tuple[Pull, ...]"


class Pull(NamedTuple):
    """What one feature does to one row: its value, the children's means, and which way.

    ``strength`` is the part that it adds to the rule's score, divided by the sum of the sizes
    of all such parts: positive if it pulls the row to the child it is in.
    """

    feature: int
    name: str
    value: float
    mean: float
    other_mean: float
    strength: float

    def __str__(self) -> str:
        side = "" if self.strength >= 0.0 else " (against)"
        return f"{printable(self.name)} = {self.value:.4g}{side}"


def find_steps(
    explanation: "Explanation", rows: Any, data: Any, leaves: IndexArray, chosen: IndexArray
) -> list[list[Step]]:
    """Return the steps of some rows, from the root down.

    Parameters
    ----------
    explanation : Explanation
        The tree, with the margins of its own rows.
    rows, data : Rows, array or CSR matrix
        The same data in both forms.
    leaves : int array of shape (n_rows,)
        Id of the leaf of each row.
    chosen : int array
        The rows to follow.
    """
    tree = explanation.hierarchy
    found: list[list[Step]] = [[] for _ in chosen]
    begins = tree.start[leaves[chosen]]
    for node in range(tree.n_nodes):
        children = tree.children(node)
        # A leaf lies below a node if its slice begins within the node's.
        inside = np.flatnonzero((begins >= tree.start[node]) & (begins < tree.stop[node]))
        if not children or not len(inside):
            continue
        which = np.searchsorted(tree.start[list(children)], begins[inside], side="right") - 1
        steps = _steps_at(explanation, (rows, data), node, chosen[inside], which)
        for place, step in zip(inside.tolist(), steps, strict=True):
            found[place].append(step)
    return found


def _steps_at(
    explanation: "Explanation",
    source: tuple[Any, Any],
    node: int,
    positions: IndexArray,
    which: IndexArray,
) -> Iterator[Step]:
    tree, (rows, data) = explanation.hierarchy, source
    margins = raw_margins(tree, rows, node, positions, which) / explanation.units[node]
    agrees = rule_agrees(tree, rows, node, positions, which)
    n_used = max(1, int(tree.rules[node].n_features_used))  # type: ignore[union-attr]
    pulls = [
        pull
        for some in blocks(len(positions), n_used)
        for pull in _pulls(tree, data, node, positions[some], which[some])
    ]
    children = tree.children(node)
    known = [np.sort(explanation.margins_within(node, child)) for child in children]
    for place, (row, k) in enumerate(zip(positions.tolist(), which.tolist(), strict=True)):
        # Margins that differ by rounding only are equal.
        below = np.searchsorted(known[k], margins[place] - 1e-6) / len(known[k])
        told = float(margins[place]), float(below), bool(agrees[place])
        yield Step(row, node, children[k], *told, pulls[place])


def _pulls(
    tree: Hierarchy, data: Any, node: int, positions: IndexArray, which: IndexArray
) -> list[tuple[Pull, ...]]:
    """Return the features that pull rows most at a split: towards their child, or away."""
    rule, children = tree.rules[node], list(tree.children(node))
    assert rule is not None
    assert tree.means is not None
    used = rule.features
    values = dense_part(data, positions, used).astype(np.float64)
    weights = rule.weights[:, used].astype(np.float64)
    means = tree.means[children][:, used].astype(np.float64)
    scores = (values - rule.center[used]) @ weights.T + rule.offsets
    scores[np.arange(len(which)), which] = -np.inf
    rival = scores.argmax(axis=1)
    middle = (means[which] + means[rival]) / 2.0
    parts = (weights[which] - weights[rival]) * (values - middle)
    sizes = np.abs(parts)
    total = np.maximum(sizes.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    top = _largest(sizes)
    names = tree.feature_names
    return [
        tuple(
            Pull(
                feature=int(used[j]),
                name=names[used[j]] if names else f"x{used[j]}",
                value=float(values[i, j]),
                mean=float(means[which[i], j]),
                other_mean=float(means[rival[i], j]),
                strength=float(parts[i, j] / total[i, 0]),
            )
            for j in top[i]
            if sizes[i, j] > 0.0
        )
        for i in range(len(positions))
    ]


def _largest(sizes: Array) -> IndexArray:
    """Return the positions of the largest few of each line, largest first."""
    n_top = min(TOP, sizes.shape[1])
    some = (
        np.argpartition(-sizes, n_top - 1, axis=1)[:, :n_top]
        if n_top
        else np.zeros((len(sizes), 0), dtype=np.intp)
    )
    some.sort(axis=1)  # among equals, the column that comes first
    order = np.argsort(-np.take_along_axis(sizes, some, axis=1), axis=1, kind="stable")
    return np.take_along_axis(some, order, axis=1)


def dense_part(data: Any, positions: IndexArray, features: IndexArray) -> Array:
    """Return some columns of some rows as an array."""
    part: Any = data[positions][:, features]
    is_sparse = sparse.issparse(part)
    whole: Array = part.toarray() if is_sparse else part
    return whole
