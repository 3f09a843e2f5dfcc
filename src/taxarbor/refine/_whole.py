"""From the data to a whole tree: grown in few coordinates, refined, and given its reasons."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from taxarbor._blas import one_blas_thread
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import Hierarchy, HierarchyBuilder, LinearRule, Placement
from taxarbor.refine._coordinates import N_COORDINATES, Coordinates
from taxarbor.refine._leaves import SHRINKAGE, STEPS, fit_leaves
from taxarbor.refine._rules import Sparsity, agreement, find_rule
from taxarbor.rows import Rows
from taxarbor.rows._base import best_scores

Map = Callable[[Callable[[int], Any], Iterable[int]], Iterable[Any]]


def grow_refined(
    rows: Rows,
    grow_on: Callable[[Rows], Hierarchy],
    sparsity: Sparsity,
    seed: int,
    run_all: Map = map,
) -> Hierarchy:
    """Grow a tree and refine it as a whole.

    Parameters
    ----------
    rows : Rows
        All rows, about their mean.
    grow_on : callable
        Grows a tree without rules on lifted coordinates of the rows.
    sparsity : Sparsity
        How few features the rules use.
    seed : int
        The tree's seed.
    run_all : callable
        Like the builtin ``map``: runs independent searches for rules.

    Returns
    -------
    Hierarchy
        Its placement decides where rows belong; its rules say, on few features, what divides
        the children of a node, and its fidelities how well they do.
    """
    with one_blas_thread():
        tree, rule = group_rows(rows, grow_on, seed)
        if rule is None:
            return tree
        rules, fidelity = _explain(tree, rows, sparsity, seed, run_all)
    return replace(tree, rules=rules, fidelity=fidelity, placement=Placement(rule, tree.leaves))


def group_rows(
    rows: Rows,
    grow_on: Callable[[Rows], Hierarchy],
    seed: int,
    *,
    size: int = N_COORDINATES,
    n_steps: int = STEPS,
    shrinkage: float = SHRINKAGE,
) -> tuple[Hierarchy, LinearRule | None]:
    """Grow a tree and let its leaves compete for the rows; BLAS should have one thread.

    Parameters
    ----------
    rows, grow_on, seed
        As :func:`grow_refined` takes them.
    size : int
        Coordinates in which the tree is grown.
    n_steps, shrinkage
        As :func:`fit_leaves` takes them; without a step, rows stay where they are.

    Returns
    -------
    tree : Hierarchy
        Without rules.
    rule : LinearRule or None
        What gave the rows to the leaves; None if they stayed.
    """
    coordinates = Coordinates.of(rows, np.random.default_rng(seed), size)
    tree = grow_on(coordinates.rows)
    if tree.n_leaves == 1 or n_steps == 0:
        return tree, None
    model = fit_leaves(
        coordinates, tree.labels, tree.n_leaves, n_steps=n_steps, shrinkage=shrinkage
    )
    rule = coordinates.rule(model.weights, model.offsets)
    return move_rows(tree, place(rows, rule)), rule


def place(rows: Rows, rule: LinearRule) -> IndexArray:
    """Return the leaf that a rule over all of them gives each row to, none left empty.

    A leaf that no row would go to gets the one with the highest score for it.
    """
    seen = rows.take(np.arange(rows.n_rows), center=rule.center)
    labels = best_scores(seen, rule.weights, rule.offsets)
    counts = np.bincount(labels, minlength=rule.n_children)
    for leaf in np.flatnonzero(counts == 0):
        scores = seen.scores(rule.weights[[leaf]])[:, 0]
        row = int(np.where(counts[labels] > 1, scores, -np.inf).argmax())
        counts[labels[row]] -= 1
        counts[leaf] += 1
        labels[row] = leaf
    return labels


def move_rows(tree: Hierarchy, labels: IndexArray) -> Hierarchy:
    """Return a tree of the same shape, without rules, whose leaves have other rows.

    Parameters
    ----------
    tree : Hierarchy
        The shape, and what is known of each node.
    labels : int array of shape (n_rows,)
        Position of each row's new leaf among the leaves; none is empty.
    """
    builder = HierarchyBuilder(len(tree.order), tree.feature_names)
    # Leaves are numbered from left to right: a node's first is where its own rows begin.
    first_leaf = np.searchsorted(tree.start[tree.leaves], tree.start)
    splits = np.unique(tree.parents[1:], return_index=True)
    for node in splits[0][np.argsort(splits[1])].tolist():  # in the order they were made
        edges = first_leaf[list(tree.children(node))[1:]]
        builder.add_split(
            node, np.searchsorted(edges, labels[builder.rows(node)], side="right")
        )
    for node in range(tree.n_nodes):
        builder.record(
            node,
            score=tree.score[node],
            objective=tree.objective[node],
            info=tree.info[node],
        )
        if tree.notes[node]:
            stayed = np.array_equal(np.sort(builder.rows(node)), np.sort(tree.rows(node)))
            builder.refuse(node, tree.notes[node] + ("" if stayed else ", before refinement"))
    return builder.freeze()


def _explain(
    tree: Hierarchy, rows: Rows, sparsity: Sparsity, seed: int, run_all: Map
) -> tuple[tuple[LinearRule | None, ...], Array]:
    """Return a rule for each inner node, parents before children, and its fidelity."""
    rules: list[LinearRule | None] = [None] * tree.n_nodes
    fidelity = np.full(tree.n_nodes, np.nan)
    inner = np.flatnonzero(np.bincount(tree.parents[1:], minlength=tree.n_nodes))

    def find(node: int) -> tuple[LinearRule, float]:
        above = tree.path(node)
        lineage = tuple(rule for rule in (rules[a] for a in above[:-1]) if rule is not None)
        path = tuple(tree.children(a).index(b) for a, b in pairwise(above))
        usage = sparsity.regularizer.usage(path, lineage, rows.n_features)
        sizes = tree.n_rows[list(tree.children(node))]
        labels = np.repeat(np.arange(len(sizes)), sizes)
        own = rows.take(tree.rows(node), center=rows.center)
        rng = np.random.default_rng(np.random.SeedSequence((seed, 1), spawn_key=path))
        rule = find_rule(own, labels, sparsity, usage, rng)
        return rule, agreement(own, labels, rule)

    for depth in range(tree.height):
        level = inner[tree.depth[inner] == depth].tolist()
        for node, (rule, share) in zip(level, run_all(find, level), strict=True):
            rules[node], fidelity[node] = rule, share
    return tuple(rules), fidelity
