r"""Maximum-margin division of one node.

Starts are tried on a sample of the rows; the best one goes on with all of them.
"""

from dataclasses import dataclass
from typing import Literal, final

import numpy as np

from taxarbor._types import Array, SolveInfo
from taxarbor.hierarchy import LinearRule
from taxarbor.rows import Rows
from taxarbor.split._alternate import Alternation, Problem, SolverName
from taxarbor.split._base import Refusal, Split, SplitTask, refuse_few
from taxarbor.split._forms import MultiForm, PairForm
from taxarbor.split._regularizer import Regularizer
from taxarbor.split._spread import true_spread
from taxarbor.split._starts import START_ROWS, STARTS, draw_sample, thin_out

VIOLATION = 1e-3
"""What counts as optimal weights, as a share of ``tol`` and of the critical value: less than
a weak penalty, which alone moves the weights of rows that are far apart."""

Center = Literal["node", "data"]

SAMPLE = 2000
"""Rows on which starts are tried, or 200 per child if that is more."""


@final
@dataclass(frozen=True, slots=True)
class MaxMarginSplitter:
    """Splits a node by margins.

    Parameters
    ----------
    regularizer : Regularizer
        The penalty of each node.
    balance : tuple of float
        Least and greatest size of a child, as multiples of ``n_rows / n_children``.
    n_init : int
        Number of starts.
    solver : {"auto", "newton", "pqn"}
        Which minimiser; ``"auto"`` is Newton while its Hessian is of moderate size.
    tol : float
        Stop when a round of labels and weights lowers the objective by less than this
        share, or when no row moves and the weights are optimal.
    center : {"node", "data"}
        Through which point the boundary between two children passes: the mean of the node's
        rows, or that of all the data.
    """

    regularizer: Regularizer
    balance: tuple[float, float]
    n_init: int = 1
    solver: SolverName = "auto"
    tol: float = 2e-2
    center: Center = "node"

    def split(self, task: SplitTask) -> Split | Refusal:
        """Return the best division found, or why there is none."""
        few = refuse_few(task)
        if few is not None:
            return few
        rows, K = task.rows, task.n_children
        spread = true_spread(rows)
        critical = float(spread.max(initial=0.0))
        if critical == 0.0:
            return Refusal(f"all of its {rows.n_rows} rows are equal")
        if self.center == "data" and task.origin is not None:
            rows = rows.take(np.arange(rows.n_rows), center=task.origin)
            spread = true_spread(rows)
            critical = float(spread.max())
        usage = self.regularizer.usage(task.path, task.lineage, rows.n_features)
        problem = Problem(
            PairForm() if K == 2 else MultiForm(K),
            self.regularizer.at(usage, critical, K).barring(spread == 0.0, critical),
            self.balance,
            K,
            self.tol,
            VIOLATION * self.tol * critical,
            self.solver,
        )
        found = self._solve(problem, rows, task.rng())
        if not found.W.any():
            return Refusal("the penalty leaves no feature in use; lower alpha or beta")
        return self._conclude(problem, rows, usage, found)

    def _solve(self, problem: Problem, rows: Rows, rng: np.random.Generator) -> Alternation:
        positions = draw_sample(rows.n_rows, max(SAMPLE, 200 * problem.n_children), rng)
        sample = rows if positions is None else rows.take(positions, center=rows.center)
        few = thin_out(sample, START_ROWS * problem.n_children)
        tried = []
        for n in range(self.n_init):
            centers = STARTS[n % len(STARTS)](few, problem.n_children, rng)
            tried.append(problem.from_centers(sample, centers))
        best = min(tried, key=lambda found: found.trace[-1])
        return best if positions is None else problem.from_weights(rows, best.W)

    def _score(self, own: float, weights: Array, usage: Array) -> float:
        """Return the paper's Eq. 4; infinite for a split that its penalty says is free."""
        complexity = self.regularizer.complexity(weights, usage)
        return own / complexity if complexity > 0.0 else float("inf")

    def _conclude(
        self, problem: Problem, rows: Rows, usage: Array, found: Alternation
    ) -> Split:
        weights = problem.form.weights(found.W)
        own = problem.form.own_scores(found.scores, found.labels)
        return Split(
            labels=found.labels,
            rule=LinearRule(weights.astype(rows.dtype), rows.center.astype(rows.dtype)),
            score=self._score(own, weights, usage),
            objective=found.trace[-1],
            info=SolveInfo(
                found.status, len(found.trace) - 1, found.n_passes, tuple(found.trace)
            ),
        )
