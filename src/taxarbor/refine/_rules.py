r"""The reasons of a split: the sparsest linear rule that reproduces it.

The rows of a node and their children are given; what is sought is a rule on few features that
sends most rows to their own child. First the steepest feature is tried alone. Then penalties
as in the paper's Eqs. 2 and 3, on the squared hinge loss for fixed labels, are lowered step by
step from the strength at which all weights vanish, and features come into use; the threshold is
set where most rows agree. The first rule that agrees with the split on 19 of 20 rows is kept;
where none does, the sparsest of about the best; and none that breaks the budget of features, if
there is one. Its weights are then fitted anew without the penalty, which shrinks them.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from taxarbor._run import Run, node_rng
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import HierarchyBuilder, LinearRule
from taxarbor.optim._newton import MAX_WORKING
from taxarbor.rows import Rows
from taxarbor.rows._base import RuleProblem
from taxarbor.split import Regularizer
from taxarbor.split._starts import child_means, true_spread

SAMPLE = 500
"""Rows per node on which a rule is sought."""

LEAST = 25
"""Rows of each child that the sample has, if there are as many."""

REPRODUCED = 0.95
"""Share of the rows that a rule must send to their own child for the search to end."""

NEARLY = 0.01
"""What is no loss: of rules that differ by less, the sparsest is kept, and the search ends
where two steps bring less."""

STRENGTHS = [0.7, *(0.5**step for step in range(1, 10))]
"""Steps of the path, as shares of the critical strength."""

RIDGE = 1e-3
"""Weight of the squared weights in the second fit, as a share of the features' variance."""

TOL = 1e-2
BARRED = 1e12
"""Penalty, in units of the critical one, that keeps a feature out."""


@final
@dataclass(frozen=True, slots=True)
class Sparsity:
    """How few features a rule should use.

    Attributes
    ----------
    novelty : float
        How strongly a split avoids the features of its ancestors, in units of how strongly it
        avoids features at all.
    max_features : int or None
        The most features that a rule may use.
    """

    novelty: float = 1.0
    max_features: int | None = None

    @property
    def regularizer(self) -> Regularizer:
        """The penalty at the strength where the path begins."""
        return Regularizer("group+exclusive", 1.0, self.novelty, relative=True)


def find_rules(tree: HierarchyBuilder, rows: Rows, sparsity: Sparsity, run: Run) -> None:
    """Give each split of a tree its rule, parents before children.

    Parameters
    ----------
    tree : HierarchyBuilder
        The tree, its rows where they stay.
    rows : Rows
        All rows, with all features.
    sparsity : Sparsity
        How few features the rules use.
    run : Run
        The seed, and where to run.
    """

    def find(node: int) -> LinearRule:
        path, lineage = tree.lineage(node)
        usage = sparsity.regularizer.usage(path, lineage, rows.n_features)
        sizes = [tree.size(child) for child in tree.children(node)]
        labels = np.repeat(np.arange(len(sizes)), sizes)
        own = rows.take(tree.rows(node), center=rows.center)
        return find_rule(own, labels, sparsity, usage, node_rng(run.seed, path, stream=1))

    by_depth: dict[int, list[int]] = {}
    for node in sorted(tree.inner):
        by_depth.setdefault(tree.depth(node), []).append(node)
    for _, level in sorted(by_depth.items()):
        for node, rule in zip(level, run.each(find, level), strict=True):
            tree.explain(node, rule)


def find_rule(
    rows: Rows, labels: IndexArray, sparsity: Sparsity, usage: Array, rng: np.random.Generator
) -> LinearRule:
    """Return a sparse rule that reproduces the division of one node's rows into its children.

    ``usage`` says how much the ancestors use each feature, ``rng`` is the node's own.
    """
    positions = _sample(labels, rng)
    own = labels[positions].astype(np.int32)
    K = int(labels.max()) + 1
    few = rows.take(positions)
    center = (few.center + child_means(few, own, K).mean(axis=0)).astype(rows.dtype)
    spread = true_spread(few)
    few = few.take(np.arange(len(own)), center=center)
    weights, offsets = few.find_rule(_problem(few, own, sparsity, usage, spread))
    if K == 2:
        weights = np.concatenate([0.5 * weights, -0.5 * weights])
        offsets = np.concatenate([0.5 * offsets, -0.5 * offsets])
    return LinearRule(*(part.astype(rows.dtype) for part in (weights, center, offsets)))


def _sample(labels: IndexArray, rng: np.random.Generator) -> IndexArray:
    """Draw rows, of each child some."""
    n = len(labels)
    if n <= SAMPLE:
        return np.arange(n)
    parts = []
    for child, count in enumerate(np.bincount(labels).tolist()):
        size = min(count, max(LEAST, SAMPLE * count // n))
        drawn = rng.choice(count, size, replace=False, shuffle=False)
        parts.append(np.flatnonzero(labels == child)[drawn])
    chosen: IndexArray = np.sort(np.concatenate(parts))
    return chosen


def _problem(
    rows: Rows, labels: NDArray[np.int32], sparsity: Sparsity, usage: Array, spread: Array
) -> RuleProblem:
    n_children, is_constant = int(labels.max()) + 1, spread == 0.0
    sides = labels[:, None] == np.arange(n_children if n_children > 2 else 1)
    gradients = rows.adjoint((2.0 * sides - 1.0).astype(rows.dtype)) / rows.n_rows
    gradients[:, is_constant] = 0.0
    if not gradients.any():  # children of equal means: any feature that varies may tell
        gradients[:] = spread
    steepness = np.abs(gradients).max(axis=0)
    critical = float(steepness.max())
    penalty = sparsity.regularizer.at(usage, critical, 2)
    l1 = penalty.l1 + penalty.group / np.sqrt(2.0)
    steepest = np.zeros_like(gradients)
    if critical > 0.0:  # weights, which have the inverse unit of a gradient
        best = int(np.argmax(steepness / (critical + l1)))
        steepest[:, best] = gradients[:, best] / critical**2
    barred = BARRED * critical
    return RuleProblem(
        labels=labels,
        n_children=n_children,
        l1=np.where(is_constant, barred, l1),
        second_ridge=RIDGE * float(rows.norms().mean()) / 2.0,
        barred=barred,
        strengths=STRENGTHS,
        max_features=sparsity.max_features or 0,
        reproduced=REPRODUCED,
        nearly=NEARLY,
        tol=TOL,
        violation=1e-2 * TOL * critical,
        max_working=MAX_WORKING,
        steepest=steepest,
    )
