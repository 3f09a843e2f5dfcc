"""Where the nodes of a tree stand, whatever their size and whichever way is up."""

import math
import operator
from dataclasses import dataclass
from typing import Any, SupportsIndex, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import hierarchy_of


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TreeLayout:
    """Places for the nodes of a tree, or of its upper levels; the arrays are read-only.

    Attributes
    ----------
    nodes : int array of shape (n_shown,)
        Ids of the nodes shown, parents first. The other arrays follow this order.
    depth : int array of shape (n_shown,)
        Distance from the root, along the tree.
    breadth : float array of shape (n_shown,)
        Place across the tree. The nodes shown without children stand at 0, 1, 2, ... from
        left to right, and a parent in the middle between its first and its last child. So
        any two nodes of one depth are at least 1 apart.
    edges : int array of shape (n_shown - 1, 2)
        A row for each node but the root: the positions in ``nodes`` of its parent and of
        itself.
    is_cut : bool array of shape (n_shown,)
        Whether the node has children that are not shown.

    Examples
    --------
    >>> from taxarbor.hierarchy import Hierarchy
    >>> tree = Hierarchy.from_linkage([[0, 1, 0.5, 2], [3, 2, 2.0, 3]])
    >>> lay_out(tree)
    TreeLayout(n_shown=5, n_ends=3, height=2)
    >>> lay_out(tree).breadth
    array([1.25, 0.5 , 2.  , 0.  , 1.  ])
    """

    nodes: IndexArray
    depth: IndexArray
    breadth: Array
    edges: IndexArray
    is_cut: NDArray[np.bool_]

    def __post_init__(self) -> None:
        for array in (self.nodes, self.depth, self.breadth, self.edges, self.is_cut):
            array.setflags(write=False)

    def __repr__(self) -> str:
        sizes = f"n_shown={len(self.nodes)}, n_ends={self.n_ends}, height={self.height}"
        return f"TreeLayout({sizes})"

    @property
    def n_ends(self) -> int:
        """Number of nodes shown without children: leaves, and nodes that are cut."""
        return len(self.nodes) - len(np.unique(self.edges[:, 0]))

    @property
    def height(self) -> int:
        """Depth of the deepest node shown."""
        return int(self.depth.max())


def lay_out(hierarchy: Any, max_depth: SupportsIndex | None = None) -> TreeLayout:
    """Return places for the nodes of a tree.

    Parameters
    ----------
    hierarchy : Hierarchy or fitted estimator
        The tree.
    max_depth : int, optional
        Show no deeper nodes. The root has depth 0.

    Raises
    ------
    TypeError
        If it has no tree.
    ValueError
        If ``max_depth`` is negative.
    """
    hierarchy = hierarchy_of(hierarchy)
    limit = hierarchy.height if max_depth is None else operator.index(max_depth)
    if limit < 0:
        raise ValueError(f"max_depth must be 0 or more, or None, got {limit}")
    nodes = np.flatnonzero(hierarchy.depth <= limit)
    # Ids ascend, and so do positions: what is said of the order of ids holds for both.
    parents = np.searchsorted(nodes, hierarchy.parents[nodes[1:]])
    is_inner = np.zeros(len(nodes), dtype=bool)
    is_inner[parents] = True
    has_children = np.zeros(hierarchy.n_nodes, dtype=bool)
    has_children[hierarchy.parents[1:]] = True
    return TreeLayout(
        nodes=nodes,
        depth=hierarchy.depth[nodes],
        breadth=_breadths(parents, is_inner, hierarchy.start[nodes]),
        edges=np.column_stack([parents, np.arange(1, len(nodes))]),
        is_cut=has_children[nodes] & ~is_inner,
    )


def _breadths(parents: IndexArray, is_inner: NDArray[np.bool_], start: IndexArray) -> Array:
    """Place the ends by their first row, then parents, of which all children come later."""
    ends = np.flatnonzero(~is_inner)
    breadth = np.empty(len(is_inner))
    breadth[ends[np.argsort(start[ends])]] = np.arange(len(ends))
    places = breadth.tolist()
    above, inner = [-1, *parents.tolist()], is_inner.tolist()
    last = [math.nan] * len(places)
    first = [math.nan] * len(places)
    for node in range(len(places) - 1, -1, -1):
        if inner[node]:
            places[node] = (first[node] + last[node]) / 2
        parent = above[node]
        if parent >= 0:
            if math.isnan(last[parent]):
                last[parent] = places[node]
            first[parent] = places[node]
    return np.array(places)
