"""Nodes in a few words, made of the features that lead to them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from taxarbor.hierarchy import Hierarchy, Reason, printable

WORDS = 2
"""Features in a short name."""

WEAK = 0.3
"""A feature is named only if its share is so large a part of the first one's."""

LONGEST = 40
"""Characters of a feature in a short name."""

BLOCK = 4096
"""Rows looked at together."""


def are_yes_no(X: Any) -> NDArray[np.bool_]:
    """Say of each column of an array or CSR matrix whether it holds 0 and 1, and no more."""
    if sparse.issparse(X):
        return _are_yes_no_sparse(X)
    found: NDArray[np.bool_] = np.ones(X.shape[1], dtype=bool)
    # Most columns are ruled out by the first rows, and then not looked at again.
    for first in range(0, len(X), BLOCK):
        candidates = np.flatnonzero(found)
        if not len(candidates):
            return found
        some = X[first : first + BLOCK][:, candidates]
        found[candidates] = ((some == 0) | (some == 1)).all(axis=0)
    varies: NDArray[np.bool_] = X.min(axis=0) < X.max(axis=0)
    return found & varies


def _are_yes_no_sparse(X: Any) -> NDArray[np.bool_]:
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    n_ones = np.bincount(X.indices[X.data == 1], minlength=X.shape[1])
    n_filled = np.bincount(X.indices[X.data != 0], minlength=X.shape[1])
    found: NDArray[np.bool_] = (n_ones == n_filled) & (n_ones > 0) & (n_ones < X.shape[0])
    return found


def phrase(reason: Reason, is_yes_no: bool) -> str:
    """Return ``higher age``, ``lower age``; of what is there or not, ``fur``, ``not fur``."""
    name = printable(reason.name).strip() or "unnamed"
    if len(name) > LONGEST:
        name = name[: LONGEST - 1].rstrip() + "…"
    if is_yes_no:
        return name if reason.sign > 0 else f"not {name}"
    return f"{'higher' if reason.sign > 0 else 'lower'} {name}"


def name_nodes(hierarchy: Hierarchy, is_yes_no: Sequence[bool]) -> tuple[str, ...]:
    """Return a short name for each node.

    The root is ``all rows``; the others are named by what leads to them from their parent, so
    that nodes of different parents may have the same name.
    """
    return tuple(_name(hierarchy, node, is_yes_no) for node in range(hierarchy.n_nodes))


def _name(hierarchy: Hierarchy, node: int, is_yes_no: Sequence[bool]) -> str:
    reasons = hierarchy.reasons(node, WORDS)
    told = [
        phrase(reason, bool(is_yes_no[reason.feature]))
        for reason in reasons
        if not reason.share < WEAK * reasons[0].share
    ]
    if node == hierarchy.root:
        return "all rows"
    return ", ".join(told) or f"node {node}"
