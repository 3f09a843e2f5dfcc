"""The make-up of each node: which classes its rows are of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import Hierarchy
from taxarbor.metrics._table import encode_labels, name_of
from taxarbor.plot._describe import StyledLine, shorten
from taxarbor.plot._palette import CLASSES, N_CLASSES, OTHER

N_NAMED = 2
LONGEST_NAME = 20  # letters, so that a share fits behind
LEAST = 0.1  # share of a node's rows below which a class is not named


@final
@dataclass(frozen=True, slots=True, eq=False)
class Makeup:
    """How many rows of each class there are in each node.

    Attributes
    ----------
    names : tuple of str
        All classes, the largest first; of the eight largest, numbers ascend.
    codes : int array of shape (n_rows,)
        The position in ``names`` of each row's class; rows as in ``hierarchy.order``.
    groups : tuple of str
        What is told apart by colour: the eight largest classes, then all others in one.
    counts : int array of shape (n_nodes, n_groups)
        Number of rows.
    """

    names: tuple[str, ...]
    codes: IndexArray
    groups: tuple[str, ...]
    counts: IndexArray

    @property
    def colours(self) -> tuple[str, ...]:
        """A colour for each group."""
        return (*CLASSES, OTHER)[: len(self.groups)]

    def describe(self, hierarchy: Hierarchy, node: int) -> list[StyledLine]:
        """Return lines such as ``mammals · 92%`` for the largest classes of a node."""
        found, shares = self._largest(hierarchy, node)
        told = zip(found[:N_NAMED].tolist(), shares[:N_NAMED].tolist(), strict=True)
        return [
            (f"{shorten(self.names[n], LONGEST_NAME)} · {share:.0%}", "plain")
            for n, share in told
            if share >= LEAST
        ]

    def majorities(
        self, hierarchy: Hierarchy, nodes: IndexArray
    ) -> tuple[list[int], list[float]]:
        """Return the group of the largest class of some nodes, and its share of the rows."""
        largest = [self._largest(hierarchy, node) for node in nodes.tolist()]
        groups = [min(int(found[0]), N_CLASSES) for found, _ in largest]
        return groups, [float(shares[0]) for _, shares in largest]

    def _largest(self, hierarchy: Hierarchy, node: int) -> tuple[IndexArray, Array]:
        """Return the classes of a node, the largest first, and their shares."""
        mine = self.codes[hierarchy.start[node] : hierarchy.stop[node]]
        found, counts = np.unique(mine, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return found[order], counts[order] / len(mine)


def count_classes(hierarchy: Hierarchy, classes: ArrayLike) -> Makeup:
    """Return the make-up of each node.

    Raises
    ------
    ValueError
        If there is not one class for each row.
    """
    n_rows = len(hierarchy.order)
    codes, found = encode_labels(classes, n_rows)
    names = [name_of(label) for label in found]
    order = np.lexsort((np.array(names), -np.bincount(codes)))
    order[:N_CLASSES] = sorted(order[:N_CLASSES], key=_number(names))
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    codes = rank[codes][hierarchy.order]
    told = tuple(shorten(names[n]) or "(empty)" for n in order.tolist())
    groups = told[:N_CLASSES] + ("other",) * (len(told) > N_CLASSES)
    # Sums up to each row: two of them make a node's, whose rows are consecutive.
    sums = np.zeros((n_rows + 1, len(groups)), dtype=np.intp)
    sums[np.arange(1, n_rows + 1), np.minimum(codes, N_CLASSES)] = 1
    np.cumsum(sums, axis=0, out=sums)
    return Makeup(told, codes, groups, sums[hierarchy.stop] - sums[hierarchy.start])


def _number(names: list[str]) -> Callable[[int], float]:
    """Return a key by which numbers ascend, and other names stay as they are."""
    try:
        values = [float(name) for name in names]
    except ValueError:
        return lambda n: 0.0
    return lambda n: values[n]
