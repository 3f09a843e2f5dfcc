"""What must hold in every hierarchy and in the data that it is given."""

import operator
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy

Claims: TypeAlias = Iterator[tuple[bool | np.bool_, str]]
"""What must hold, and what to say where it does not; the next is computed if it does."""
BLOCK = 1 << 20
"""Cells that are looked at in one go."""


def node_id(node: SupportsIndex, n_nodes: int) -> int:
    """Return the id as a number, or raise IndexError if there is no such node."""
    index = operator.index(node)
    if not 0 <= index < n_nodes:
        raise IndexError(f"there is no node {index}: ids run from 0 to {n_nodes - 1}")
    return index


def no_rows() -> InputError:
    """Return what to raise where rows are asked for, and the tree holds counts."""
    return InputError(
        "the tree holds counts only, and does not know which rows its nodes own: "
        "tree.attach(X) gives it rows, tree.predict(X) the labels of rows"
    )


def keep(frozen: object, /, **values: object) -> None:
    """Set attributes of a frozen value; its arrays cannot be written to from now on."""
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(frozen, name, value)


def indices(name: str, values: IndexArray) -> IndexArray:
    """Copy to intp, which must lose nothing."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ValueError(f"invalid hierarchy: {name} must hold integers, not {array.dtype}")
    return array.astype(np.intp)


def all_finite(values: Array) -> bool:
    """Look at the sum first: mostly that is enough, and takes no memory."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return True
    flat = values.ravel()
    steps = range(0, len(flat), BLOCK)
    return all(bool(np.isfinite(flat[first : first + BLOCK]).all()) for first in steps)


def check_structure(X: Any) -> None:
    """Raise ValueError if a SciPy sparse matrix is none, or points outside itself.

    Compiled code that follows a wrong index ends the process. SciPy's ``check_format`` is not
    used, as it passes every matrix whose last pointer is 0, and changes the one it looks at.
    """
    if len(X.shape) != 2:
        told = f"two dimensions, (n_rows, n_features), got shape {X.shape}"
        raise InputError(f"must have {told}", "X")
    is_sound = True
    if X.format in ("csr", "csc", "bsr"):
        shape = np.array(X.shape) // (X.blocksize if X.format == "bsr" else 1)
        n_outer, n_inner = shape[::-1] if X.format == "csc" else shape
        ends, n_stored = X.indptr, min(len(X.indices), len(X.data))
        is_sound = len(ends) == n_outer + 1 and ends[0] == 0 and ends[-1] <= n_stored
        is_sound = is_sound and (ends[1:] >= ends[:-1]).all()
        is_sound = is_sound and _are_within(X.indices[: ends[-1]], n_inner)
    elif X.format == "coo":
        is_sound = len(X.row) == len(X.col) == len(X.data)
        is_sound = is_sound and _are_within(X.row, X.shape[0])
        is_sound = is_sound and _are_within(X.col, X.shape[1])
    if not is_sound:
        raise InputError(
            f"X is a damaged sparse matrix: its indices do not fit its shape, {X.shape}, or "
            "its pointers do not ascend from 0 to the number of entries"
        )


def _are_within(found: NDArray[Any], size: int) -> bool:
    return not len(found) or bool(found.min() >= 0 and found.max() < size)


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


def check(h: "Hierarchy") -> None:
    """Raise ValueError, naming what is wrong, unless the fields make a hierarchy."""
    for claims in (_lengths, _lineage, _slices, _features, _rows, _trust):
        for holds, message in claims(h):
            if not holds:
                raise ValueError(f"invalid hierarchy: {message}")


def _lengths(h: "Hierarchy") -> Claims:
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


def _lineage(h: "Hierarchy") -> Claims:
    """Yield what holds of parents and birth, which say together what each split created."""
    is_root = h.parents[0] == -1 and h.birth[0] == 0
    yield is_root, "node 0 must be the root, born at step 0"
    parents, birth = h.parents[1:], h.birth[1:]
    if not len(parents):
        return
    are_before = (parents >= 0).all() and (parents < np.arange(1, len(h.parents))).all()
    told = "a parent's id must be smaller than its children's, and only the root has none"
    yield are_before, told
    steps = np.diff(birth, prepend=0)
    are_steps = birth[0] == 1 and ((steps == 0) | (steps == 1)).all()
    yield are_steps, "birth must count the splits, 1, 2, ..., in the order of ids"
    are_siblings = ((steps[1:] == 1) == (np.diff(parents) != 0)).all()
    told = "siblings must have consecutive ids and the same birth, and a node is split once"
    yield are_siblings and len(np.unique(parents)) == birth[-1], told
    yield (np.bincount(birth)[1:] >= 2).all(), "a split must have two children at least"


def _slices(h: "Hierarchy") -> Claims:
    yield h.start[0] == 0, "the root must own all rows"
    yield (h.start < h.stop).all(), "every node must own a row: start < stop"
    parents, start, stop = h.parents[1:], h.start[1:], h.stop[1:]
    first, last = np.diff(parents, prepend=-2) != 0, np.diff(parents, append=-2) != 0
    tiles = (start[first] == h.start[parents[first]]).all()
    tiles &= (stop[last] == h.stop[parents[last]]).all() and (
        start[~first] == stop[~last]
    ).all()
    yield tiles, "the slices of children must tile the slice of their parent, in order"


def _features(h: "Hierarchy") -> Claims:
    """Yield what holds of rules, and of all that has a value for each feature."""
    n_nodes, names, values = len(h.parents), h.feature_names, h.two_values
    n_targets = np.array([0 if rule is None else rule.n_targets for rule in h.rules])
    if n_targets.any():
        is_leaf = np.bincount(h.parents[1:], minlength=n_nodes) == 0
        yield n_targets[0] > 0, "the root must have a rule where any node has one"
        yield not n_targets[is_leaf].any(), "a leaf must have no rule"
        # Rows go to leaves and to nodes with a rule, from the next node above with a rule.
        is_end = is_leaf | (n_targets > 0)
        sources = find_deciders(h.parents, h.rules)[h.parents[1:]][is_end[1:]]
        fit = n_targets == np.bincount(sources, minlength=n_nodes)
        told = "a rule must have a target for each node of its frontier"
        yield fit.all(), f"{told}; that of node {fit.argmin()} does not"
    kinds = {(rule.dtype, len(rule.center)) for rule in h.rules if rule is not None}
    yield len(kinds) <= 1, "all rules must have the same dtype and number of features"
    if h.means is not None:
        shape, dtype = h.means.shape, h.means.dtype
        is_right = len(shape) == 2 and shape[0] == n_nodes and dtype.char in "fd"
        told = f"means must be floats with a row for each of {n_nodes} nodes"
        yield is_right, f"{told}, got {dtype} of shape {shape}"
        yield np.isfinite(h.means).all(), "means must be finite"
        told = "means must have the dtype and the number of features of the rules"
        yield kinds <= {(dtype, shape[1])}, told
        kinds = {(dtype, shape[1])}
    widths = {width for _, width in kinds}
    yield all(isinstance(note, str) for note in h.notes), "notes must be strings"
    yield not any(h.notes[node] for node in h.parents[1:]), "only leaves may have a note"
    if h.noise_model is not None:
        width = h.noise_model.centers.shape[1]
        yield widths <= {width}, f"noise_model must have a column for each feature, got {width}"
    if values is not None:
        expected = {(n, 2) for n in widths or {values.shape[0] if values.ndim else 0}}
        told = f"two_values must have two numbers for each of {widths} features"
        yield {values.shape} == expected, f"{told}, got shape {values.shape}"
        known = values[~np.isnan(values).all(axis=1)]
        ascend = np.isfinite(known).all() and (known[:, 0] < known[:, 1]).all()
        yield ascend, "two_values must be finite and ascend, or both be NaN"
    if names is not None:
        yield all(isinstance(name, str) for name in names), "feature names must be strings"
        told = f"{len(names)} feature names for rules over {widths or 0} features"
        yield widths <= {len(names)}, told
    n_columns = 0
    if h.encoding is not None:
        n_columns, n_made = len(h.encoding.columns), h.encoding.n_features
        told = f"the encoding makes {n_made} features, the rules have {h.n_features}"
        yield h.n_features in (None, n_made), told
    if (missing := h.missing) is not None:
        is_right = missing.shape == (n_nodes, n_columns)
        told = "missing must have a share for each node and column of the encoding"
        yield is_right and ((missing >= 0.0) & (missing <= 1.0)).all(), told


def _rows(h: "Hierarchy") -> Claims:
    """Yield what holds of rows: a tree of counts has no single ones, and only it has totals."""
    if h.order is not None:
        yield h.totals is None, "a tree with rows has their weights, and no totals"
    else:
        is_bare = h.weights is None and not len(h.noise) and h.trust is None
        yield is_bare, "a tree of counts has no weights, noise or trust, which are of rows"
        is_count = type(h.n_noise) is int and 0 <= h.n_noise < 1 << 62 and h.stop[0] < 1 << 62
        yield is_count, "n_noise must be a number of rows"
    for name, length in (("totals", len(h.parents)), ("weights", h.n_rows)):
        if (values := getattr(h, name)) is not None:
            is_right = values.shape == (length,) and np.isfinite(values).all()
            yield is_right, f"{name} must be finite, one for each of {length}"
            yield (values >= 0).all() and values.any(), f"{name} must not be negative"
    heat = h.temperature
    is_heat = heat is None or (isinstance(heat, float) and 0.0 < heat < np.inf)
    yield is_heat, f"temperature must be None or a positive, finite float, got {heat!r}"
    yield h.made_by is None or isinstance(h.made_by, dict), "made_by must be None or a dict"


def _trust(h: "Hierarchy") -> Claims:
    trust, n_nodes = h.trust, len(h.parents)
    if trust is None:
        return
    n_refits = trust.n_refits
    is_count = type(n_refits) is int and 0 < n_refits < 2**31
    yield is_count, "there must be a refit, and fewer than 2 ** 31"
    told = f"trust must have a count of refits, 0 to {n_refits}, for each of {n_nodes} nodes"
    for counts in (trust.came_back, trust.apart, trust.rule_came_back):
        is_right = counts.shape == (n_nodes,) and (counts >= 0).all()
        yield is_right and (counts <= n_refits).all(), told
    shares = trust.left_out
    is_right = shares.shape == (n_nodes,) and shares[0] >= 0
    is_right = is_right and ~((shares < 0) | (shares > 1)).any()
    yield is_right, f"trust must have a share of rows left out for each of {n_nodes} nodes"
    used = [0 if rule is None else rule.n_features_used for rule in h.rules]
    are_right = [len(counts) for counts in trust.feature_came_back] == used
    yield are_right, "trust must have a count for each feature of each rule"
    is_right = trust.rows.shape == (h.n_rows,) and ((trust.rows >= 0) & (trust.rows <= 1)).all()
    yield is_right, f"trust must have a share for each of {h.n_rows} rows"
    is_even = (
        trust.curve.n_clusters.ndim == 1 and len({part.shape for part in trust.curve}) == 1
    )
    yield is_even, "the parts of a curve must have one length"
