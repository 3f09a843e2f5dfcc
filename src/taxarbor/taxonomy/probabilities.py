r"""How likely a row is to be in each leaf.

The probability of a leaf estimates how often the row would be in the same cluster in a fit to
new data of the same kind. It is a softmax of scores of the leaves,

    P(leaf | x) = exp(s_leaf(x) / T) / sum over leaves,

and highest for the leaf where the row goes. A margin is how much higher a target of a rule
scores than the best of its other targets, in units of what it is on average; ``s`` is the sum
of the negative margins on the way to the leaf or, for the one leaf that has none, its least
margin. (A product of probabilities along the path would often be highest for another leaf.)

T accounts for the variability between fits, which the scores do not contain. So it is measured,
by refitting.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from taxarbor._types import Array, IndexArray, Mask
from taxarbor.rows import as_rows
from taxarbor.tables.columns import FeatureRows
from taxarbor.taxonomy.new_rows import impute, send
from taxarbor.tree import Tree
from taxarbor.tree.rule import best_scores

if TYPE_CHECKING:
    from taxarbor.taxonomy.taxonomy import Taxonomy

TEMPERATURE = 0.5  # until it is measured: about the middle of what was measured on many data
MIN_FACTOR = 0.01  # the least that is measured, in units of that; its inverse is the most
CALIBRATION_ROWS = 5000  # rows on which a temperature is found, at most

SCORES_PER_BLOCK, MIN_ROWS_PER_BLOCK = 250_000, 256
"""Scores that are held at a time, so that they fit into a cache; and the fewest rows of a
block, as each block costs some time per node."""


def predict_proba(taxonomy: "Taxonomy", rows: FeatureRows, *, n_threads: int = 1) -> Array:
    """Return the probability of each leaf; see :meth:`Taxonomy.predict_proba`."""
    expanded = impute(taxonomy, rows)
    labels = send(taxonomy, expanded, n_threads=n_threads)
    result = np.ones((len(labels), taxonomy.tree.n_leaves))
    if not len(labels) or taxonomy.tree.n_leaves == 1:
        return result
    first, temperature = 0, taxonomy.temperature or TEMPERATURE
    for scores in _leaf_scores(taxonomy, expanded, n_threads):
        leaf = labels[first : first + len(scores)]
        P, row = _softmax(scores, temperature), np.arange(len(leaf))
        # Scores so large that they overflow, or so close that rounding makes them equal, must
        # not lead elsewhere than ``predict``.
        lost = ~np.isfinite(P).all(axis=1)
        P[lost], P[row[lost], leaf[lost]] = 0.0, 1.0
        best = P.argmax(axis=1)
        P[row, leaf], P[row, best] = P[row, best], P[row, leaf]
        tied = P.argmax(axis=1) != leaf
        P[row[tied], leaf[tied]] = np.nextafter(P[row[tied], leaf[tied]], 2.0)
        result[first : first + len(leaf)] = P
        first += len(leaf)
    return result


def calibrate(
    taxonomy: "Taxonomy", rows: FeatureRows, refits: Iterable[IndexArray]
) -> "Taxonomy":
    """Return the taxonomy with the temperature at which rows are as sure as refits say.

    The mean of the rows' highest probabilities will be the share of rows that stayed in their
    cluster when the method was fitted again, as far as one temperature can do that. ``refits``
    are the labels that each refit, to a half of the rows, gives all of them. (It has seen
    half of them, which makes it agree more, and half of the data, which makes it agree less.)
    """
    labels = send(taxonomy, rows)
    shares = [find_staying(labels, others).mean() for others in refits]
    if taxonomy.tree.n_leaves == 1 or not shares:
        return taxonomy
    stayed = np.mean(shares)
    every = -(-len(labels) // CALIBRATION_ROWS)
    scores = np.concatenate([*_leaf_scores(taxonomy, rows, every=every)])
    scores = scores[np.isfinite(scores).all(axis=1)]
    low, high = np.log(TEMPERATURE * MIN_FACTOR), np.log(TEMPERATURE / MIN_FACTOR)
    for _ in range(30):  # the mean falls as the temperature rises
        middle = (low + high) / 2
        is_sure = _softmax(scores, np.exp(middle)).max(axis=1).mean() > stayed
        low, high = (middle, high) if is_sure else (low, middle)
    return replace(taxonomy, temperature=float(np.exp((low + high) / 2)))


def find_staying(labels: IndexArray, others: IndexArray) -> Mask:
    """Return whether each row lies in the cluster of another fit that matches its own.

    Clusters are matched one to one, so that Jaccard's indices add up to the most.
    """
    from scipy.optimize import linear_sum_assignment  # late: it takes long to load

    overlap = jaccard(labels, others)
    mine, theirs = linear_sum_assignment(overlap, maximize=True)
    match = np.full(len(overlap), -1)
    match[mine] = theirs
    return np.asarray(match[labels] == others)


def jaccard(labels: IndexArray, others: IndexArray) -> Array:
    """Return how alike each two clusters are: the rows in both, of those in either."""
    shape = int(labels.max(initial=0)) + 1, int(others.max(initial=0)) + 1
    both = np.bincount(labels * shape[1] + others, minlength=shape[0] * shape[1]).reshape(shape)
    either = both.sum(axis=1)[:, None] + both.sum(axis=0) - both
    return np.asarray(both / np.maximum(either, 1))


def _softmax(scores: Array, temperature: float) -> Array:
    with np.errstate(invalid="ignore", over="ignore"):  # of infinities, the caller's to mend
        odds: Array = np.exp((scores - scores.max(axis=1, keepdims=True)) / temperature)
        odds /= odds.sum(axis=1, keepdims=True)
    return odds


def _leaf_scores(
    taxonomy: "Taxonomy", imputed: FeatureRows, n_threads: int = 1, every: int = 1
) -> Iterator[Array]:
    """Yield the scores of the leaves, from the left, of all rows or some: block by block."""
    tree = taxonomy.tree
    weights, offsets, center = _stack_rules(tree)
    units = _mean_margins(taxonomy)
    frontiers = [list(tree.frontier(node)) for node in range(tree.n_nodes)]
    data = taxonomy.columns.take_logs(imputed.data)
    rows = as_rows(data, center=center, n_threads=n_threads)
    chosen = range(0, rows.n_rows, every)
    step = max(SCORES_PER_BLOCK // len(weights), MIN_ROWS_PER_BLOCK)
    for first in range(0, len(chosen), step):
        block = rows.take(np.array(chosen[first : first + step]), center=rows.center)
        with np.errstate(over="ignore", invalid="ignore"):
            scores = (block.scores(weights) + offsets).astype(np.float64)
            yield _path_scores(tree, scores, units, frontiers)


def _stack_rules(tree: Tree) -> tuple[Array, Array, Array]:
    """Return the rules of all nodes as one, in the order of their nodes, from one centre."""
    rules = [rule for rule in tree.rules if rule is not None]
    centers = [rule.center.astype(np.float64) for rule in rules]
    shifts = [
        rule.weights.astype(np.float64) @ (centers[0] - center) + rule.offsets
        for rule, center in zip(rules, centers, strict=True)
    ]
    weights = np.concatenate([rule.weights for rule in rules])
    return weights, np.concatenate(shifts), rules[0].center


def _mean_margins(taxonomy: "Taxonomy") -> Array:
    """Return, for each node with a rule, the mean margin at the means of its targets, by size.

    Without means, a rule is read as that of the nearest centre, as those of k-means are.
    """
    tree = taxonomy.tree
    units, node_weights = np.ones(tree.n_nodes), tree.node_weights
    for node, rule in enumerate(tree.rules):
        if rule is None:
            continue
        frontier, targets = np.array(tree.frontier(node)), np.arange(rule.n_targets)
        if taxonomy.means is None:
            points, targets = rule.center + rule.weights, rule.targets
        else:
            points = taxonomy.columns.take_logs(taxonomy.means[frontier])
        sizes = node_weights[frontier][targets]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            scores = (points - rule.center).astype(np.float64) @ rule.weights.T + rule.offsets
            margins = _margins(best_scores(rule, scores.T))[targets, np.arange(len(points))]
            unit = float((np.abs(margins) * sizes).sum() / sizes.sum())  # NaN: none counts
        if 0.0 < unit < np.inf:
            units[node] = unit
    return units


def _margins(scores: Array) -> Array:
    """Return how much higher each line scores than the best of the others, by columns."""
    if len(scores) == 2:  # as in most trees
        return np.stack([scores[0] - scores[1], scores[1] - scores[0]])
    best, at = scores.argmax(axis=0), np.arange(scores.shape[1])
    margins: Array = scores - scores[best, at]
    others = scores.copy()
    others[best, at] = -np.inf
    margins[best, at] = scores[best, at] - others.max(axis=0)
    return margins


def _path_scores(tree: Tree, scores: Array, units: Array, frontiers: list[list[int]]) -> Array:
    """Return the scores of the leaves from the scores of all rules; see the module."""
    by_score, stop = np.ascontiguousarray(scores.T), 0
    missed = np.zeros((tree.n_nodes, len(scores)))
    least = np.full((tree.n_nodes, len(scores)), np.inf)
    for node, rule in enumerate(tree.rules):
        if rule is None:
            continue
        start, stop = stop, stop + rule.n_scores
        margins = _margins(best_scores(rule, by_score[start:stop])) / units[node]
        missed[frontiers[node]] = missed[node] + np.minimum(margins, 0.0)
        least[frontiers[node]] = np.minimum(least[node], margins)
    return np.asarray((missed[tree.leaves] + np.maximum(least[tree.leaves], 0.0)).T)
