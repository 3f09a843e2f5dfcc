"""What a splitter is given and what it gives back."""

from dataclasses import dataclass
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._run import node_rng
from taxarbor._types import Array, IndexArray, SolveInfo
from taxarbor.optim._loss import Labels
from taxarbor.rows import Rows
from taxarbor.tree import LinearRule


@final
@dataclass(frozen=True, slots=True, eq=False)
class SplitTask:
    """All that a split may depend on, so that it depends on nothing else.

    Attributes
    ----------
    rows : Rows
        The rows of the node, about their mean.
    path : tuple of int
        Which child to take at each ancestor, from the root down.
    lineage : tuple of LinearRule
        The rules of those ancestors.
    n_children : int
        How many children are wanted.
    seed : int
        The tree's seed; together with the path it makes the node's own random numbers.
    origin : array of shape (n_features,) or None
        The mean of all the data, for a splitter that sees every node from there.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.rows import as_rows
    >>> from taxarbor.split import SplitTask
    >>> task = SplitTask(as_rows(np.eye(3)), path=(), lineage=(), n_children=2, seed=0)
    >>> bool(task.rng().random() == task.rng().random())  # the same numbers every time
    True
    """

    rows: Rows
    path: tuple[int, ...]
    lineage: tuple[LinearRule, ...]
    n_children: int
    seed: int
    origin: Array | None = None

    def rng(self) -> np.random.Generator:
        """Return this node's own random numbers, whatever happens elsewhere in the tree."""
        return node_rng(self.seed, self.path)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A division of one node.

    Attributes
    ----------
    labels : array of shape (n_rows,)
        The child of each row; no child is empty.
    rule : LinearRule or None
        Sends a new row to a child; None where rules are found when the tree is whole.
    score : float
        How much this split is worth doing: the leaf with the highest is split next.
    objective : float
        What the splitter minimised.
    info : SolveInfo
        How it was found.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.split import SolveInfo, Split, Status
    >>> info = SolveInfo(Status.CONVERGED, n_iter=1, n_passes=1.0, trace=(0.0,))
    >>> split = Split(np.array([0, 1]), rule=None, score=1.0, objective=0.0, info=info)
    >>> split.info.status.value
    'converged'
    """

    labels: Labels
    rule: LinearRule | None
    score: float
    objective: float
    info: SolveInfo


@final
@dataclass(frozen=True, slots=True)
class Refusal:
    """A node that cannot be split, and why.

    Examples
    --------
    >>> from taxarbor.split import Refusal
    >>> Refusal("all of its rows are equal").reason
    'all of its rows are equal'
    """

    reason: str


def refuse_few(task: SplitTask, least: int = 2) -> Refusal | None:
    """Refuse a node with too few rows for its children: two each, or ``least`` if more."""
    return refuse_size(task.rows.n_rows, task.n_children, least)


def refuse_size(n_rows: int, n_children: int, least: int = 2) -> Refusal | None:
    """Refuse so many rows for so many children, likewise."""
    needed = n_children * max(least, 2)
    if n_rows >= needed:
        return None
    rows = "1 row is" if n_rows == 1 else f"{n_rows} rows are"
    each = f" of at least {least} rows" if least > 2 else ""
    return Refusal(f"{rows} too few for {n_children} children{each} (it takes {needed})")


def keep_together(
    rows: Rows, labels: Labels, ruled: Labels, n_children: int, bounds: tuple[int, int]
) -> Labels | Refusal:
    """Bring equal rows that were torn apart together again; refuse if a child has none then.

    A bound on sizes, or a graph, may part rows that nothing tells apart. They go where the
    rule sends them; unless children are too small or too large then, and are not if they go
    where some of them were. Equal rows have the same scores along random directions, to the
    bit; of the few others that do, cells tell.
    """
    if np.array_equal(labels, ruled):
        return labels  # what the rule does is the same for equal rows
    directions = np.random.default_rng(0).standard_normal((2, rows.n_features))
    scores = np.ascontiguousarray(rows.scores(directions)) + 0.0  # no zero has a sign
    torn = _torn(labels, scores.view(np.result_type(scores, np.complex64))[:, 0])
    marks = rows.marks(torn)
    equal = _torn(labels[torn], marks)
    torn, marks = torn[equal], marks[equal]
    if not len(torn):
        return labels
    low, high = bounds
    others = np.bincount(np.delete(labels, torn), minlength=n_children)
    by_rule = ruled[torn]
    together, counts = labels.copy(), others + np.bincount(by_rule, minlength=n_children)
    together[torn] = by_rule
    if low <= counts.min() and counts.max() <= high:
        return together
    evened = _even_out(labels[torn], by_rule, marks, others)
    if low <= others.min() and others.max() <= high:
        together[torn] = evened
        return together
    if counts.all():
        return together
    return Refusal(f"too many of its {rows.n_rows} rows are equal for {n_children} children")


def _even_out(
    labels: Labels, ruled: Labels, marks: NDArray[np.uint64], counts: IndexArray
) -> Labels:
    """Return labels by which equal rows stay together and children are about as large.

    The rows with most equals choose first, among where some of them are or the rule sends them:
    to the child of the fewest rows. Those are added to the counts of others.
    """
    found, order = ruled.copy(), np.argsort(marks, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(marks[order])) + 1)
    for own in sorted(groups, key=lambda own: (-len(own), own[0])):
        choice = np.unique(np.append(labels[own], ruled[own[0]]))
        found[own] = child = choice[counts[choice].argmin()]
        counts[child] += len(own)
    return found


def _torn(labels: Labels, marks: NDArray[Any]) -> IndexArray:
    """Return the positions of rows of which others with the same mark have other labels."""
    group = np.unique(marks, return_inverse=True)[1].reshape(-1)
    first = np.zeros(len(labels), dtype=labels.dtype)
    first[group] = labels  # that of any one
    is_torn = np.zeros(len(labels), dtype=bool)
    is_torn[group[labels != first[group]]] = True
    return np.flatnonzero(is_torn[group])


class Splitter(Protocol):
    """Divides the rows of one node: a pure function of its task."""

    def split(self, task: SplitTask) -> Split | Refusal:
        """Return a division of the rows, or the reason why there is none."""
        ...
