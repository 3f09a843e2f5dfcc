"""What must hold in every hierarchy and in the data that it is given."""

import operator
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy
    from taxarbor.hierarchy._trust import Trust

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


def check(h: "Hierarchy") -> None:
    """Raise ValueError, naming what is wrong, unless the fields make a hierarchy."""
    _check_lengths(h)
    _check_lineage(h)
    _check_slices(h)
    _check_features(h, _check_rules(h))
    _check_encoding(h)
    _check_counts(h)
    if h.weights is not None:
        _require(
            h.weights.shape == (h.n_rows,) and np.isfinite(h.weights).all(),
            f"weights must be finite, one for each of {h.n_rows} rows",
        )
        _require((h.weights >= 0).all() and h.weights.any(), "weights must not be negative")
    heat = h.temperature
    _require(
        heat is None or (isinstance(heat, float) and 0.0 < heat < np.inf),
        f"temperature must be None or a positive, finite float, got {heat!r}",
    )
    _require(h.made_by is None or isinstance(h.made_by, dict), "made_by must be None or a dict")
    if h.trust is not None:
        _check_trust(h, h.trust)


def _require(holds: bool | np.bool_, message: str) -> None:
    if not holds:
        raise ValueError(f"invalid hierarchy: {message}")


def _check_lengths(h: "Hierarchy") -> None:
    n_nodes = len(h.parents)
    _require(n_nodes > 0, "there must be a root")
    for name in ("start", "stop", "parents", "birth", "score", "objective"):
        shape = getattr(h, name).shape
        _require(shape == (n_nodes,), f"{name} has shape {shape}, not ({n_nodes},)")
    for name in ("rules", "info", "notes"):
        length = len(getattr(h, name))
        _require(length == n_nodes, f"{name} has {length} entries for {n_nodes} nodes")
    if h.order is None:
        return
    _require(h.order.ndim == 1 and h.order.size > 0, "order must be one-dimensional, not empty")
    _require(h.noise.ndim == 1, "noise must be one-dimensional")
    _require(h.stop[0] == len(h.order), "the root must own all rows")
    rows = np.concatenate((h.order, h.noise)) if len(h.noise) else h.order
    in_range = rows.min() >= 0 and rows.max() < h.n_rows
    _require(
        in_range and (np.bincount(rows, minlength=h.n_rows) == 1).all(),
        f"order, and noise, must hold each of 0 to {h.n_rows - 1} once",
    )


def _check_counts(h: "Hierarchy") -> None:
    """Check that a tree of counts says nothing of single rows, and only it has totals."""
    if h.order is not None:
        _require(h.totals is None, "a tree with rows has their weights, and no totals")
        return
    _require(
        h.weights is None and not len(h.noise) and h.trust is None,
        "a tree of counts has no weights, noise or trust, which are of rows",
    )
    _require(
        type(h.n_noise) is int and 0 <= h.n_noise < 1 << 62 and h.stop[0] < 1 << 62,
        "n_noise must be a number of rows",
    )
    if h.totals is not None:
        _require(
            h.totals.shape == h.parents.shape and np.isfinite(h.totals).all(),
            f"totals must be finite, one for each of {len(h.parents)} nodes",
        )
        _require((h.totals >= 0).all() and h.totals[0] > 0, "totals must not be negative")


def _check_lineage(h: "Hierarchy") -> None:
    """Parents and birth together say which split created which nodes."""
    _require(h.parents[0] == -1 and h.birth[0] == 0, "node 0 must be the root, born at step 0")
    parents, birth = h.parents[1:], h.birth[1:]
    if not len(parents):
        return
    ids = np.arange(1, len(h.parents))
    _require(
        (parents >= 0).all() and (parents < ids).all(),
        "a parent's id must be smaller than its children's, and only the root has none",
    )
    steps = np.diff(birth, prepend=0)
    _require(
        birth[0] == 1 and ((steps == 0) | (steps == 1)).all(),
        "birth must count the splits, 1, 2, ..., in the order of ids",
    )
    _require(
        ((steps[1:] == 1) == (np.diff(parents) != 0)).all()
        and len(np.unique(parents)) == birth[-1],
        "siblings must have consecutive ids and the same birth, and a node is split once",
    )
    _require((np.bincount(birth)[1:] >= 2).all(), "a split must have two children at least")


def _check_slices(h: "Hierarchy") -> None:
    _require(h.start[0] == 0, "the root must own all rows")
    _require((h.start < h.stop).all(), "every node must own a row: start < stop")
    parents = h.parents[1:]
    first = np.diff(parents, prepend=-2) != 0
    last = np.diff(parents, append=-2) != 0
    start, stop = h.start[1:], h.stop[1:]
    _require(
        (start[first] == h.start[parents[first]]).all()
        and (stop[last] == h.stop[parents[last]]).all()
        and (start[~first] == stop[~last]).all(),
        "the slices of children must tile the slice of their parent, in order",
    )


def _check_rules(h: "Hierarchy") -> set[tuple[np.dtype[Any], int]]:
    """Check the rules; return the one dtype and width of all of them."""
    n_children = np.bincount(h.parents[1:], minlength=len(h.parents))
    given = np.array([0 if rule is None else rule.n_children for rule in h.rules])
    _require(
        not given.any() or (given == n_children).all(),
        "an inner node must have a rule with one row of weights per child, a leaf none; "
        "or no node has a rule",
    )
    kinds = {(rule.dtype, len(rule.center)) for rule in h.rules if rule is not None}
    _require(len(kinds) <= 1, "all rules must have the same dtype and number of features")
    return kinds


def _check_features(h: "Hierarchy", kinds: set[tuple[np.dtype[Any], int]]) -> None:
    """Means, notes and names, and whether means and names fit the rules."""
    if h.means is not None:
        shape, dtype, n_nodes = h.means.shape, h.means.dtype, len(h.parents)
        _require(
            len(shape) == 2 and shape[0] == n_nodes and dtype in (np.float32, np.float64),
            f"means must be floats with a row for each of {n_nodes} nodes, got {dtype} of "
            f"shape {shape}",
        )
        _require(np.isfinite(h.means).all(), "means must be finite")
        _require(
            kinds <= {(dtype, shape[1])},
            "means must have the dtype and the number of features of the rules",
        )
        kinds = {(dtype, shape[1])}
    _require(all(isinstance(note, str) for note in h.notes), "notes must be strings")
    noted = np.array([bool(note) for note in h.notes])
    _require(not noted[h.parents[1:]].any(), "only leaves may have a note")
    if h.noise_model is not None:
        width = h.noise_model.centers.shape[1]
        _require(
            {width} >= {other for _, other in kinds},
            f"noise_model must have a column for each feature, got {width}",
        )
    names, values = h.feature_names, h.two_values
    if values is not None:
        widths = {width for _, width in kinds} or {values.shape[0] if values.ndim else 0}
        _require(
            {values.shape} == {(width, 2) for width in widths},
            f"two_values must have two numbers for each of {widths} features, got shape "
            f"{values.shape}",
        )
        known = ~np.isnan(values).all(axis=1)
        _require(
            np.isfinite(values[known]).all() and (values[known, 0] < values[known, 1]).all(),
            "two_values must be finite and ascend, or both be NaN",
        )
    if names is not None:
        _require(all(isinstance(name, str) for name in names), "feature names must be strings")
        widths = {width for _, width in kinds}
        _require(
            widths <= {len(names)},
            f"{len(names)} feature names for rules over {widths or 0} features",
        )


def _check_encoding(h: "Hierarchy") -> None:
    encoding, missing = h.encoding, h.missing
    if encoding is not None:
        _require(
            h.n_features in (None, encoding.n_features),
            f"the encoding makes {encoding.n_features} features, the rules have {h.n_features}",
        )
    if missing is not None:
        n_columns = 0 if encoding is None else len(encoding.columns)
        is_right = missing.shape == (len(h.parents), n_columns)
        _require(
            is_right and ((missing >= 0.0) & (missing <= 1.0)).all(),
            "missing must have a share for each node and column of the encoding",
        )


def _check_trust(h: "Hierarchy", trust: "Trust") -> None:
    n_nodes, n_rows, n_refits = len(h.parents), h.n_rows, trust.n_refits
    is_count = type(n_refits) is int and 0 < n_refits < 2**31
    _require(is_count, "there must be a refit, and fewer than 2 ** 31")
    for counts in (trust.came_back, trust.apart, trust.rule_came_back):
        is_in_range = counts.shape == (n_nodes,) and (counts >= 0).all()
        _require(
            is_in_range and (counts <= n_refits).all(),
            f"trust must have a count of refits, 0 to {n_refits}, for each of {n_nodes} nodes",
        )
    used = [0 if rule is None else rule.n_features_used for rule in h.rules]
    _require(
        [len(counts) for counts in trust.feature_came_back] == used,
        "trust must have a count for each feature of each rule",
    )
    shares = trust.rows
    _require(
        shares.shape == (n_rows,) and ((shares >= 0) & (shares <= 1)).all(),
        f"trust must have a share for each of {n_rows} rows",
    )
    _require(
        trust.curve.n_clusters.ndim == 1 and len({part.shape for part in trust.curve}) == 1,
        "the parts of a curve must have one length",
    )
