"""Arrays that a hierarchy holds."""

import operator
from typing import SupportsIndex

import numpy as np

from taxarbor._types import Array, IndexArray

BLOCK = 1 << 20
"""Cells that are looked at in one go."""


def read_only(array: IndexArray) -> IndexArray:
    """Return the array, which can no longer be written to."""
    array.setflags(write=False)
    return array


def node_id(node: SupportsIndex, n_nodes: int) -> int:
    """Return the id as a number, or raise IndexError if there is no such node."""
    index = operator.index(node)
    if not 0 <= index < n_nodes:
        raise IndexError(f"there is no node {index}: ids run from 0 to {n_nodes - 1}")
    return index


def indices(name: str, values: IndexArray) -> IndexArray:
    """Copy to intp, which must lose nothing."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ValueError(f"invalid hierarchy: {name} must hold integers, not {array.dtype}")
    return array.astype(np.intp)


def depths(parents: IndexArray) -> IndexArray:
    """Count the ancestors of each node, doubling the stride each time: no walk per node."""
    found = (parents >= 0).astype(np.intp)
    ancestors = np.maximum(parents, 0)  # the root, its own ancestor, adds nothing
    while ancestors.any():
        found += found[ancestors]
        ancestors = ancestors[ancestors]
    return found


def all_finite(values: Array) -> bool:
    """Look at the sum first: mostly that is enough, and takes no memory."""
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return True
    flat = values.ravel()
    steps = range(0, len(flat), BLOCK)
    return all(bool(np.isfinite(flat[first : first + BLOCK]).all()) for first in steps)
