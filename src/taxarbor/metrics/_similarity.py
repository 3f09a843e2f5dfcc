"""How similar the leaves of a tree are, by where their branches part.

One implementation serves the learned tree and the true one: all it needs is the parent of
each node. Nodes are numbered so that a parent comes before its children.

Leaves are taken from left to right. The branches of two leaves then part at the shallowest
of the places where neighbours between them part, so a running minimum along a row gives a
whole row of pairs, and rows come in blocks: no square matrix is needed for large trees.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, Self, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import IndexArray

_BLOCK_SIZE = 2**18
"""Number of pairs to hold at once: a few megabytes. More is no faster."""


class Measure(StrEnum):
    """What is called similar."""

    SHORTEST_PATH = "shortest_path"
    """One minus the edges between two leaves, over the most there are in the tree."""
    PATH_SHARING = "path_sharing"
    """Nodes common to two branches over those of the longer one, the root not counted."""


class LeafTree(Protocol):
    """What both Hierarchy and ClassTree are."""

    @property
    def parents(self) -> IndexArray:
        """Id of each node's parent, -1 for the root, which is node 0."""
        ...

    @property
    def leaves(self) -> IndexArray:
        """Ids of the leaves."""
        ...


@final
@dataclass(frozen=True, slots=True, eq=False)
class LeafPairs:
    """All pairs of some leaves of a tree, held in the space of one row of them.

    Attributes
    ----------
    order : int array of shape (n_leaves,)
        Positions of the given leaves, arranged from left to right; all else is in this order.
    depth : int array of shape (n_leaves,)
        Number of edges from the root to each leaf.
    parting : int array of shape (n_leaves - 1,)
        Depth of the node where the branches of neighbours part.
    diameter : int
        The most edges between any two leaves of the whole tree, the given ones or not.
    """

    order: IndexArray
    depth: IndexArray
    parting: IndexArray
    diameter: int

    @classmethod
    def of(cls, parents: IndexArray, leaves: IndexArray) -> Self:
        """Survey the tree, in time that grows with its nodes and not with its height.

        Parameters
        ----------
        parents : int array of shape (n_nodes,)
            Id of each node's parent, smaller than its own; -1 for the root, node 0.
        leaves : int array of shape (n_leaves,)
            The leaves wanted, each once, in any order.
        """
        above = parents.tolist()
        place, depth = _survey(above)
        order = np.argsort(place[leaves])
        arranged = leaves[order]
        first = np.array(_first_below(above, arranged.tolist()), dtype=np.intp)
        # A node that starts where its parent does not has a left neighbour within the
        # parent, and there is one such node per neighbouring pair.
        later = (
            np.flatnonzero((first[1:] < len(leaves)) & (first[1:] != first[parents[1:]])) + 1
        )
        parting = np.empty(max(len(leaves) - 1, 0), dtype=np.intp)
        parting[first[later] - 1] = depth[parents[later]]
        return cls(order, depth[arranged], parting, _diameter(above))

    def blocks(self, measure: Measure) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield the similarities of some leaves with all, until each had its turn."""
        n_leaves = len(self.depth)
        step = max(1, _BLOCK_SIZE // n_leaves)
        for start in range(0, n_leaves, step):
            rows = slice(start, min(start + step, n_leaves))
            yield rows, self._similarity(rows, measure)

    def matrix(self, measure: Measure) -> NDArray[np.float64]:
        """Return the similarities of all pairs, leaves in the order they were given."""
        result = np.empty((len(self.depth),) * 2)
        for rows, block in self.blocks(measure):
            result[np.ix_(self.order[rows], self.order)] = block
        return result

    def _similarity(self, rows: slice, measure: Measure) -> NDArray[np.float64]:
        common, own = self._common_depth(rows), self.depth[rows, None]
        if measure is Measure.SHORTEST_PATH:
            distance = own + self.depth - 2 * common
            return 1.0 - distance / max(self.diameter, 1)
        longer = np.maximum(own, self.depth)
        # Only a root that is a leaf has a branch of length 0, and it shares it with itself.
        return np.where(longer == 0, 1.0, common / np.maximum(longer, 1))

    def _common_depth(self, rows: slice) -> IndexArray:
        """Return the depth of the lowest common ancestors, of shape (n_rows, n_leaves)."""
        n_leaves = len(self.depth)
        here, there = np.arange(rows.start, rows.stop)[:, None], np.arange(n_leaves)
        far = self.depth.max()  # no branches part deeper
        result = np.where(there > here, np.append(far, self.parting), far)
        np.minimum.accumulate(result, axis=1, out=result)
        left = np.where(there < here, np.append(self.parting, far), far)[:, ::-1]
        np.minimum(result, np.minimum.accumulate(left, axis=1)[:, ::-1], out=result)
        result[here == there] = self.depth[rows]
        return result


def _survey(parents: list[int]) -> tuple[IndexArray, IndexArray]:
    """Return the place of each node from left to right, parents first, and its depth."""
    size, place, depth = [1] * len(parents), [0] * len(parents), [0] * len(parents)
    for node in range(len(parents) - 1, 0, -1):
        size[parents[node]] += size[node]
    free = [1] * len(parents)  # the next place below each node, counted from its own
    for node in range(1, len(parents)):
        parent = parents[node]
        place[node] = place[parent] + free[parent]
        free[parent] += size[node]
        depth[node] = depth[parent] + 1
    return np.array(place, dtype=np.intp), np.array(depth, dtype=np.intp)


def _first_below(parents: list[int], leaves: list[int]) -> list[int]:
    """Return the position of the first of the leaves below each node, their number if none."""
    first = [len(leaves)] * len(parents)
    for position, leaf in enumerate(leaves):
        first[leaf] = position
    for node in range(len(parents) - 1, 0, -1):
        parent = parents[node]
        first[parent] = min(first[parent], first[node])
    return first


def _diameter(parents: list[int]) -> int:
    """Return the most edges between two leaves: down from some node by two of its children."""
    height, widest = [0] * len(parents), 0
    for node in range(len(parents) - 1, 0, -1):
        parent, reach = parents[node], height[node] + 1
        if height[parent]:  # another child was seen
            widest = max(widest, height[parent] + reach)
        height[parent] = max(height[parent], reach)
    return widest


def shortest_path_similarity(tree: LeafTree) -> NDArray[np.float64]:
    """Return one minus the edges between leaves, over the most there are in the tree.

    Parameters
    ----------
    tree : Hierarchy or ClassTree
        The tree.

    Returns
    -------
    float array of shape (n_leaves, n_leaves)
        In the order of ``tree.leaves``; 1 on the diagonal, 0 for the leaves farthest apart.

    Examples
    --------
    >>> from taxarbor.metrics import ClassTree
    >>> shortest_path_similarity(ClassTree.read("((cat,dog),owl);"))
    array([[1.        , 0.33333333, 0.        ],
           [0.33333333, 1.        , 0.        ],
           [0.        , 0.        , 1.        ]])
    """
    return LeafPairs.of(tree.parents, tree.leaves).matrix(Measure.SHORTEST_PATH)


def path_sharing_similarity(tree: LeafTree) -> NDArray[np.float64]:
    """Return the nodes that the branches of leaves share, over those of the longer branch.

    A branch runs from the root, which is not counted, to the leaf, which is.

    Parameters
    ----------
    tree : Hierarchy or ClassTree
        The tree.

    Returns
    -------
    float array of shape (n_leaves, n_leaves)
        In the order of ``tree.leaves``; 1 on the diagonal, 0 for leaves that only the root
        joins.

    Examples
    --------
    >>> from taxarbor.metrics import ClassTree
    >>> path_sharing_similarity(ClassTree.read("((cat,dog),owl);"))
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    """
    return LeafPairs.of(tree.parents, tree.leaves).matrix(Measure.PATH_SHARING)
