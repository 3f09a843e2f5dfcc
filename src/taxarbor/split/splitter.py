"""The task of a splitter, and its result."""

from dataclasses import dataclass
from typing import Protocol, final

import numpy as np

from taxarbor._types import Array, IndexArray, SolveInfo
from taxarbor.optim import Labels
from taxarbor.rows import Rows
from taxarbor.tree import LinearRule


@final
@dataclass(frozen=True, slots=True, eq=False)
class SplitTask:
    """All that a split may depend on, so that it depends on nothing else.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.rows import as_rows
    >>> from taxarbor.split import SplitTask
    >>> task = SplitTask(as_rows(np.eye(3)), path=(), lineage=(), n_children=2, seed=0)
    >>> bool(task.rng().random() == task.rng().random())  # the same numbers every time
    True
    """

    rows: Rows  #: the rows of the node, about their mean
    path: tuple[int, ...]  #: which child to take at each ancestor, from the root down
    lineage: tuple[LinearRule, ...]  #: the rules of those ancestors
    n_children: int  #: number of children to make
    seed: int  #: the tree's; with the path it makes the node's own random numbers
    origin: Array | None = None  #: the mean of all the data

    def rng(self) -> np.random.Generator:
        """Return this node's random generator, independent of the rest of the tree."""
        seeds = np.random.SeedSequence(self.seed, spawn_key=self.path)
        return np.random.default_rng(seeds)


@final
@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A division of one node.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.split import SolveInfo, Split, Status
    >>> info = SolveInfo(Status.CONVERGED, n_iter=1, n_passes=1.0, trace=(0.0,))
    >>> split = Split(np.array([0, 1]), rule=None, score=1.0, objective=0.0, info=info)
    >>> split.info.status.value
    'converged'
    """

    labels: Labels  #: the child of each row; no child is empty
    rule: LinearRule | None  #: sends new rows to a child; None: rules are found later
    score: float  #: the leaf with the highest is split next
    objective: float  #: what the splitter minimised
    info: SolveInfo  #: what it took


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


def refuse_size(n_rows: int, n_children: int, least: int = 2) -> Refusal | None:
    """Refuse too few rows for the children: two each, or ``least`` if that is more."""
    needed = n_children * max(least, 2)
    if n_rows >= needed:
        return None
    rows = "1 row is" if n_rows == 1 else f"{n_rows} rows are"
    each = f" of at least {least} rows" if least > 2 else ""
    return Refusal(f"{rows} too few for {n_children} children{each} (it takes {needed})")


def keep_together(
    rows: Rows, labels: Labels, rule_labels: Labels, n_children: int, bounds: tuple[int, int]
) -> Labels | Refusal:
    """Move duplicates that were separated together again; refuse if that empties a child.

    A bound on sizes, or a graph, may separate duplicates. They go where the rule sends them;
    or, if children are too small or too large then, where some of them were, if that helps.
    """
    if np.array_equal(labels, rule_labels):
        return labels  # a rule does not separate duplicates
    # Duplicates have the same scores along random directions, to the bit.
    directions = np.random.default_rng(0).standard_normal((2, rows.n_features))
    scores = np.ascontiguousarray(rows.scores(directions))
    pairs = scores.view(np.result_type(scores, np.complex64))[:, 0]
    _, first, group = np.unique(pairs, return_index=True, return_inverse=True)
    divided = group[labels != labels[first[group]]]
    separated = np.flatnonzero(np.isin(group, divided))
    if not len(separated):
        return labels
    low, high = bounds
    others = np.bincount(np.delete(labels, separated), minlength=n_children)
    by_rule = rule_labels[separated]
    together, counts = labels.copy(), others + np.bincount(by_rule, minlength=n_children)
    together[separated] = by_rule
    if low <= counts.min() and counts.max() <= high:
        return together
    even, even_counts = _even_out(labels[separated], by_rule, group[separated], others)
    if low <= even_counts.min() and even_counts.max() <= high:
        together[separated] = even
        return together
    if counts.all():
        return together
    return Refusal(f"too many of its {rows.n_rows} rows are equal for {n_children} children")


def _even_out(
    labels: Labels, rule_labels: Labels, group: IndexArray, counts: IndexArray
) -> tuple[Labels, IndexArray]:
    """Return labels that keep duplicates together in children of about equal size, and sizes.

    The largest group is placed first, in the child of the fewest rows among those that have
    some of its rows or that the rule sends it to. ``counts`` are of all other rows.
    """
    even, counts = rule_labels.copy(), counts.copy()
    order = np.argsort(group, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(group[order])) + 1)
    for rows in sorted(groups, key=lambda rows: (-len(rows), rows[0])):
        choice = np.unique(np.append(labels[rows], rule_labels[rows[0]]))
        even[rows] = child = choice[counts[choice].argmin()]
        counts[child] += len(rows)
    return even, counts


class Splitter(Protocol):
    """Divides the rows of one node: a pure function of its task."""

    def split(self, task: SplitTask) -> Split | Refusal:
        """Return a division of the rows, or the reason why there is none."""
