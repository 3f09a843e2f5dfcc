"""What must hold in every tree."""

import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, SupportsIndex, TypeAlias

import numpy as np

from taxarbor._types import IndexArray

if TYPE_CHECKING:
    from taxarbor.tree._tree import Tree

Claims: TypeAlias = Iterator[tuple[bool | np.bool_, str]]
"""What must hold, and what to say where it does not; the next is computed if it does."""


def node_id(node: SupportsIndex, n_nodes: int) -> int:
    """Return the id as a number, or raise IndexError if there is no such node."""
    index = operator.index(node)
    if not 0 <= index < n_nodes:
        raise IndexError(f"there is no node {index}: ids run from 0 to {n_nodes - 1}")
    return index


def as_indices(name: str, values: IndexArray) -> IndexArray:
    """Copy to intp, which must lose nothing."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ValueError(f"invalid tree: {name} must hold integers, not {array.dtype}")
    return array.astype(np.intp)


def find_deciders(parents: IndexArray, rules: Sequence[object]) -> IndexArray:
    """Return the nearest node with a rule of each node: itself, or above; else the root.

    The stride is doubled each time, as a walk per node would take too long in a deep tree.
    """
    nodes = np.arange(len(parents))
    has_rule = np.array([rule is not None for rule in rules])
    above = np.where(has_rule, nodes, np.maximum(parents, 0))
    while (above[above] != above).any():
        above = above[above]
    return above


def check_tree(tree: "Tree") -> None:
    """Raise ValueError, naming what is wrong, unless the fields make a tree."""
    for claims in (_lengths, _lineage, _slices, _rules, _rows):
        check_claims("tree", claims(tree))


def check_claims(what: str, claims: Claims) -> None:
    """Raise ValueError for the first claim that does not hold."""
    for holds, message in claims:
        if not holds:
            raise ValueError(f"invalid {what}: {message}")


def _lengths(h: "Tree") -> Claims:
    n_nodes = len(h.parents)
    yield n_nodes > 0, "there must be a root"
    for name in ("start", "stop", "parents", "birth", "score", "objective"):
        shape = getattr(h, name).shape
        yield shape == (n_nodes,), f"{name} has shape {shape}, not ({n_nodes},)"
    for name in ("rules", "info", "notes"):
        length = len(getattr(h, name))
        yield length == n_nodes, f"{name} has {length} entries for {n_nodes} nodes"
    if h.order is None:
        return
    is_some = h.order.ndim == 1 and h.order.size > 0
    yield is_some, "order must be one-dimensional, not empty"
    yield h.noise.ndim == 1, "noise must be one-dimensional"
    yield h.stop[0] == len(h.order), "the root must own all rows"
    rows = np.concatenate((h.order, h.noise)) if len(h.noise) else h.order
    in_range = rows.min() >= 0 and rows.max() < h.n_rows
    is_right = in_range and (np.bincount(rows, minlength=h.n_rows) == 1).all()
    yield is_right, f"order, and noise, must hold each of 0 to {h.n_rows - 1} once"


def _lineage(h: "Tree") -> Claims:
    """Yield what holds of parents and birth, which say together what each split created."""
    is_root = h.parents[0] == -1 and h.birth[0] == 0
    yield is_root, "node 0 must be the root, born at step 0"
    parents, birth = h.parents[1:], h.birth[1:]
    if not len(parents):
        return
    are_before = (parents >= 0).all() and (parents < np.arange(1, len(h.parents))).all()
    message = "a parent's id must be smaller than its children's, and only the root has none"
    yield are_before, message
    steps = np.diff(birth, prepend=0)
    are_steps = birth[0] == 1 and ((steps == 0) | (steps == 1)).all()
    yield are_steps, "birth must count the splits, 1, 2, ..., in the order of ids"
    are_siblings = ((steps[1:] == 1) == (np.diff(parents) != 0)).all()
    message = "siblings must have consecutive ids and the same birth, and a node is split once"
    yield are_siblings and len(np.unique(parents)) == birth[-1], message
    yield (np.bincount(birth)[1:] >= 2).all(), "a split must have two children at least"


def _slices(h: "Tree") -> Claims:
    yield h.start[0] == 0, "the root must own all rows"
    yield (h.start < h.stop).all(), "every node must own a row: start < stop"
    parents, start, stop = h.parents[1:], h.start[1:], h.stop[1:]
    first, last = np.diff(parents, prepend=-2) != 0, np.diff(parents, append=-2) != 0
    tiles = (start[first] == h.start[parents[first]]).all()
    tiles &= (stop[last] == h.stop[parents[last]]).all() and (
        start[~first] == stop[~last]
    ).all()
    yield tiles, "the slices of children must tile the slice of their parent, in order"


def _rules(h: "Tree") -> Claims:
    """Yield what holds of rules and feature names."""
    n_nodes, names = len(h.parents), h.feature_names
    n_targets = np.array([0 if rule is None else rule.n_targets for rule in h.rules])
    if n_targets.any():
        is_leaf = np.bincount(h.parents[1:], minlength=n_nodes) == 0
        yield n_targets[0] > 0, "the root must have a rule where any node has one"
        yield not n_targets[is_leaf].any(), "a leaf must have no rule"
        # Rows go to leaves and to nodes with a rule, from the next node above with a rule.
        is_end = is_leaf | (n_targets > 0)
        sources = find_deciders(h.parents, h.rules)[h.parents[1:]][is_end[1:]]
        fit = n_targets == np.bincount(sources, minlength=n_nodes)
        message = "a rule must have a target for each node of its frontier"
        yield fit.all(), f"{message}; that of node {fit.argmin()} does not"
    kinds = {(rule.dtype, len(rule.center)) for rule in h.rules if rule is not None}
    yield len(kinds) <= 1, "all rules must have the same dtype and number of features"
    yield all(isinstance(note, str) for note in h.notes), "notes must be strings"
    yield not any(h.notes[node] for node in h.parents[1:]), "only leaves may have a note"
    if names is not None:
        yield all(isinstance(name, str) for name in names), "feature names must be strings"
        widths = {width for _, width in kinds}
        message = f"{len(names)} feature names for rules over {widths or 0} features"
        yield widths <= {len(names)}, message


def _rows(h: "Tree") -> Claims:
    """Yield what holds of rows: only a tree of counts has totals, and it has no row weights."""
    if h.order is not None:
        yield h.totals is None, "a tree with rows has their weights, and no totals"
    else:
        is_bare = h.weights is None and not len(h.noise)
        yield is_bare, "a tree of counts has no weights or noise, which are of rows"
        is_count = type(h.n_noise) is int and 0 <= h.n_noise < 1 << 62 and h.stop[0] < 1 << 62
        yield is_count, "n_noise must be a number of rows"
    for name, length in (("totals", len(h.parents)), ("weights", h.n_rows)):
        if (values := getattr(h, name)) is not None:
            is_right = values.shape == (length,) and np.isfinite(values).all()
            yield is_right, f"{name} must be finite, one for each of {length}"
            yield (values >= 0).all() and values.any(), f"{name} must not be negative"
