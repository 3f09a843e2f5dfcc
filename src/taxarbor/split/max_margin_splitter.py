r"""Maximum-margin division of one node, the paper's: sparse planes that decide where rows go.

Starts are tried on a sample of the rows; the best one goes on with all of them.

From a user's alpha and beta to the penalty of one node (the paper's Eqs. 2 to 4): in raw mode
the weights are the paper's, ``group = alpha / (P K)`` and
``l1[p] = beta * mean_a |w_a[p]| / (K P)``, which act on the scale of the features.

In relative mode they are shares of the critical value. For rows about their mean, the
gradient of the loss at ``W = 0`` is, whatever the labels and the number of children, at most
``max_p mean_i |x_ip - c_p|`` in each entry and sqrt(2) times that in each column; so with an
alpha of 1 every weight is zero for every labelling, and multiplying the data by a constant
changes nothing. Ancestors count by the share of each one's largest weight.

Where several features are one column of a table, as the values of a category are, both norms
are over columns: the group norm is that of all weights of a column, and what ancestors use is
the length of their weights there. An alpha of 1 then stands for the length of the deviations of
a whole column, which is enough, if more than needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, final

import numpy as np

from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray
from taxarbor.optim import SparseGroupPenalty, size_bounds
from taxarbor.optim.penalty import group_norms, group_shares
from taxarbor.rows import Rows
from taxarbor.split._alternate import (
    START_ROWS,
    STARTS,
    Alternation,
    NodeProblem,
    SolverName,
    draw_sample,
    find_start,
    thin_out,
    true_spread,
)
from taxarbor.split.splitter import Refusal, Split, SplitTask, keep_together, refuse_size
from taxarbor.tree import LinearRule

VIOLATION = 1e-3
"""What counts as optimal weights, as a share of ``tol`` and of the critical value: less than
a weak penalty, which alone moves the weights of rows that are far apart."""

START_SAMPLE = 2000  # rows on which starts are tried, or 200 per child if that is more

Kind = Literal["group+exclusive", "group", "exclusive", "l1", "l2"]
Center = Literal["node", "data"]

ROOT_RIDGE = 1e-3
"""Ridge where nothing else is penalised: the root of ``"exclusive"``, which has no ancestors.
A share of the squared critical value, so that it too has no unit."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Regularizer:
    """The penalty that a tree puts on each of its nodes.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.split import Regularizer
    >>> regularizer = Regularizer("l1", alpha=0.5, beta=0.0, relative=True)
    >>> regularizer.at(np.zeros(2), critical=4.0, n_children=2).l1
    array([2., 2.])
    """

    kind: Kind  #: which norms take part
    alpha: float  #: strength of sparsity
    beta: float  #: strength of the competition with ancestors
    relative: bool  #: whether strengths are shares of the critical value, or raw numbers
    owner: IndexArray | None = None  #: the column of each feature; None: each is a column

    def __post_init__(self) -> None:
        if self.owner is not None and len(np.unique(self.owner)) == len(self.owner):
            object.__setattr__(self, "owner", None)

    @property
    def groups(self) -> IndexArray | None:
        """The column of each feature, where a norm is over columns."""
        return self.owner if self.kind in ("group", "group+exclusive") else None

    def critical(self, spread: Array) -> float:
        """Return the largest mean absolute deviation of a feature, or length of a column's."""
        return float(group_norms(spread[None], self.groups).max(initial=0.0))

    def at(self, usage: Array, critical: float, n_children: int) -> SparseGroupPenalty:
        """Return the penalty of a node, given its ancestors' use of each feature.

        As :meth:`usage` returns it; :meth:`critical` is the strength of an alpha of 1.
        """
        P, K = len(usage), n_children
        unit = critical if self.relative else 1.0 / (P * K)
        group = self.alpha * unit * (np.sqrt(2.0) if self.relative else 1.0)
        nothing = np.zeros(P)
        match self.kind:
            case "group+exclusive":
                return SparseGroupPenalty(group, self.beta * unit * usage, owner=self.owner)
            case "group":
                return SparseGroupPenalty(group, nothing, owner=self.owner)
            case "exclusive":
                ridge = 0.0 if usage.any() else ROOT_RIDGE * critical**2
                return SparseGroupPenalty(0.0, self.beta * unit * usage, ridge)
            case "l1":
                return SparseGroupPenalty(0.0, np.full(P, self.alpha * unit))
            case "l2":
                ridge = self.alpha * (critical**2 if self.relative else unit)
                return SparseGroupPenalty(0.0, nothing, ridge)

    def usage(self, path: tuple[int, ...], lineage: tuple[LinearRule, ...], size: int) -> Array:
        """Return the average use of each feature by the models on the way to a node."""
        if not lineage:
            return np.zeros(size)
        used = [rule.weights[child] for child, rule in zip(path, lineage, strict=True)]
        weights = np.abs(np.array(used, dtype=np.float64))
        if self.owner is not None:
            weights = np.array([group_norms(row[None], self.owner) for row in weights])
        if self.relative:
            largest = weights.max(axis=1, keepdims=True)
            weights /= np.where(largest > 0.0, largest, 1.0)
        return np.asarray(weights.sum(axis=0) / len(lineage))

    def complexity(self, W: Array, usage: Array) -> float:
        """Return the denominator of the paper's splitting score (Eq. 4) for weights W."""
        K, P = W.shape
        match self.kind:
            case "l1":
                total = np.abs(W).sum()
            case "exclusive" if usage.any():
                total = (np.abs(W).sum(axis=0) * usage).sum()
            case "exclusive" | "l2":
                total = np.square(W).sum()
            case _:
                total = (group_norms(W, self.groups) * group_shares(self.groups)).sum()
                if self.kind == "group+exclusive":
                    total += (np.abs(W).sum(axis=0) * usage).sum()
        return float(total / (P * K))


@final
@dataclass(frozen=True, slots=True)
class MaxMarginSplitter:
    """Splits a node by margins.

    Examples
    --------
    >>> import numpy as np
    >>> from taxarbor.rows import as_rows
    >>> from taxarbor.split import MaxMarginSplitter, Regularizer, SplitTask
    >>> splitter = MaxMarginSplitter(Regularizer("l1", 0.01, 0.0, True), balance=(0.5, 1.5))
    >>> rows = as_rows(np.array([[0.0, 1.0], [0.1, 2.0], [5.0, 2.0], [5.1, 1.0]]))
    >>> splitter.split(SplitTask(rows, (), (), n_children=2, seed=0)).rule.features
    array([0])
    """

    regularizer: Regularizer
    balance: tuple[float, float]  #: sizes of a child, as multiples of ``n_rows / n_children``
    n_init: int = 1  #: number of starts
    solver: SolverName = "auto"  #: auto: Newton, unless its Hessian would be too large
    tol: float = 2e-2  #: stop when a round lowers the objective by less than this share
    center: Center = "node"  #: where boundaries pass: the mean of the node or of all the data

    def __post_init__(self) -> None:
        if self.solver == "newton" and self.regularizer.groups is not None:
            raise InputError(
                "solver='newton' cannot take the features of a category together; got a table "
                f"with categories and penalty={self.regularizer.kind!r}. Use solver='auto'"
            )

    def over(self, owner: IndexArray | None) -> "MaxMarginSplitter":
        """Return the same for features that belong to columns of a table."""
        return replace(self, regularizer=replace(self.regularizer, owner=owner))

    def allows(self, sizes: Sequence[int]) -> bool:
        """Return whether children of these sizes are balanced."""
        low, high = size_bounds(sum(sizes), len(sizes), *self.balance)
        return low <= min(sizes) and max(sizes) <= high

    def split(self, task: SplitTask) -> Split | Refusal:
        """Return the best division of all starts, or why there is none."""
        few = refuse_size(task.rows.n_rows, task.n_children)
        if few is not None:
            return few
        rows, K = task.rows, task.n_children
        spread = true_spread(rows)
        critical = self.regularizer.critical(spread)
        if critical == 0.0:
            return Refusal(f"all of its {rows.n_rows} rows are equal")
        if self.center == "data" and task.origin is not None:
            rows = rows.take(np.arange(rows.n_rows), center=task.origin)
            spread = true_spread(rows)
            critical = self.regularizer.critical(spread)
        usage = self.regularizer.usage(task.path, task.lineage, rows.n_features)
        penalty = self.regularizer.at(usage, critical, K).exclude(spread == 0.0, critical)
        violation = VIOLATION * self.tol * critical
        problem = NodeProblem(penalty, self.balance, K, self.tol, violation, self.solver)
        end = self._solve(problem, rows, task.rng())
        if not end.W.any():
            return Refusal("the penalty leaves no feature in use; lower alpha or beta")
        bounds = size_bounds(rows.n_rows, K, *self.balance)
        labels = keep_together(rows, end.labels, end.rule_labels, K, bounds)
        if isinstance(labels, Refusal):
            return labels
        objective = end.trace[-1]
        if labels is not end.labels:
            end = replace(end, labels=labels)
            objective = problem.objective(end)
        weights = end.weights
        complexity = self.regularizer.complexity(weights, usage)
        # The paper's Eq. 4; infinite for a split that its penalty says is free.
        score = end.label_scores / complexity if complexity > 0.0 else float("inf")
        rule = LinearRule(weights.astype(rows.dtype), rows.center.astype(rows.dtype))
        return Split(end.labels, rule, score, objective, end.info)

    def _solve(self, problem: NodeProblem, rows: Rows, rng: np.random.Generator) -> Alternation:
        sample = draw_sample(rows, max(START_SAMPLE, 200 * problem.n_children), rng)
        few = thin_out(sample, START_ROWS * problem.n_children)
        tried = []
        for n in range(self.n_init):
            start = STARTS[n % len(STARTS)]
            centers = find_start(few, problem.n_children, start, rng)
            tried.append(problem.from_centers(sample, centers))
        best = min(tried, key=lambda end: end.trace[-1])
        return best if sample is rows else problem.from_weights(rows, best.W)
