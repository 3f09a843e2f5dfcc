"""Coarser clusterings of a tree, as labels and as a smaller tree."""

import operator
from dataclasses import replace
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import IndexArray
from taxarbor.hierarchy._placement import Placement

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy


def cut(
    hierarchy: "Hierarchy", n_clusters: SupportsIndex | None, depth: SupportsIndex | None
) -> IndexArray:
    """Return the labels of a coarser clustering; see :meth:`Hierarchy.cut`."""
    kept = _kept(hierarchy, n_clusters, depth)
    frontier = kept[~_are_inner(hierarchy.parents[kept], hierarchy.n_nodes)[kept]]
    return number(hierarchy, frontier[np.argsort(hierarchy.start[frontier])])


def prune(
    hierarchy: "Hierarchy", n_clusters: SupportsIndex | None, depth: SupportsIndex | None
) -> "Hierarchy":
    """Return the tree without the splits that the cut undoes; see :meth:`Hierarchy.prune`."""
    kept = _kept(hierarchy, n_clusters, depth)
    parents = hierarchy.parents[kept]
    is_inner = _are_inner(parents, hierarchy.n_nodes)[kept]
    new_id = np.full(hierarchy.n_nodes, -1)
    new_id[kept] = np.arange(len(kept))
    parents[1:] = new_id[parents[1:]]
    nodes = kept.tolist()
    placement = _moved(hierarchy, new_id, kept[~is_inner]) if len(kept) > 1 else None
    return replace(
        hierarchy,
        start=hierarchy.start[kept],
        stop=hierarchy.stop[kept],
        parents=parents,
        # Splits that stay are counted anew: by depth, earlier ones may have gone.
        birth=np.unique(hierarchy.birth[kept], return_inverse=True)[1],
        score=hierarchy.score[kept],
        objective=hierarchy.objective[kept],
        rules=tuple(
            hierarchy.rules[node] if inner else None
            for node, inner in zip(nodes, is_inner.tolist(), strict=True)
        ),
        info=tuple(hierarchy.info[node] for node in nodes),
        notes=tuple(hierarchy.notes[node] for node in nodes),
        fidelity=np.where(is_inner, hierarchy.fidelity[kept], np.nan),
        placement=placement,
        means=None if hierarchy.means is None else hierarchy.means[kept],
    )


def _moved(
    hierarchy: "Hierarchy", new_id: IndexArray, frontier: IndexArray
) -> Placement | None:
    """Return the placement with each leaf's new id, or that of the new leaf it is within."""
    placement = hierarchy.placement
    if placement is None:
        return None
    frontier = frontier[np.argsort(hierarchy.start[frontier])]
    # The slices of the new leaves tile all rows, so a leaf lies where its first row does.
    first_rows = hierarchy.start[placement.leaves]
    owners = np.searchsorted(hierarchy.start[frontier], first_rows, side="right") - 1
    return Placement(placement.rule, new_id[frontier[owners]])


def number(hierarchy: "Hierarchy", frontier: IndexArray) -> IndexArray:
    """Label each row with the position of its node among these, which tile all rows."""
    labels = np.empty(len(hierarchy.order), dtype=np.intp)
    sizes = hierarchy.stop[frontier] - hierarchy.start[frontier]
    labels[hierarchy.order] = np.repeat(np.arange(len(frontier)), sizes)
    return labels


def _kept(
    hierarchy: "Hierarchy", n_clusters: SupportsIndex | None, depth: SupportsIndex | None
) -> IndexArray:
    """Return the ids of the nodes that a cut leaves, ascending."""
    if (n_clusters is None) == (depth is None):
        raise ValueError("give either n_clusters or depth, and not both")
    if n_clusters is not None:
        return np.flatnonzero(hierarchy.birth <= _last_step(hierarchy, n_clusters))
    limit = operator.index(depth)  # type: ignore[arg-type]
    if limit < 0:
        raise ValueError(f"depth must be 0 or more, got {limit}")
    return np.flatnonzero(hierarchy.depth <= limit)


def _last_step(hierarchy: "Hierarchy", n_clusters: SupportsIndex) -> np.intp:
    """Return the last growth step at which there were at most so many leaves."""
    wanted, n_leaves = operator.index(n_clusters), hierarchy.n_leaves
    if not 1 <= wanted <= n_leaves:
        raise ValueError(
            f"n_clusters must be between 1 and the number of leaves, {n_leaves}, got {wanted}"
        )
    n_leaves_after = 1 + np.cumsum(np.bincount(hierarchy.birth)[1:] - 1)
    return np.searchsorted(n_leaves_after, wanted, side="right")


def _are_inner(parents: IndexArray, n_nodes: int) -> NDArray[np.bool_]:
    """Say of each node whether it is the parent of any, given the parents from the root on."""
    is_inner = np.zeros(n_nodes, dtype=bool)
    is_inner[parents[1:]] = True
    return is_inner
