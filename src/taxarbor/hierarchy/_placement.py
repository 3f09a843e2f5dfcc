"""The rule by which a whole tree sends rows to its leaves, all at once."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, final

import numpy as np

from taxarbor._types import IndexArray
from taxarbor.hierarchy._rule import LinearRule

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy


@final
@dataclass(frozen=True, slots=True, eq=False)
class Placement:
    """A row ``x`` goes to leaf ``leaves[argmax(W (x - center) + offsets)]``, the first of ties.

    Each row of ``W`` stands for a cell, and several cells may make up one leaf. The array
    is copied and cannot be written to.

    Parameters
    ----------
    rule : LinearRule
        The ``W``, ``center`` and ``offsets`` above; its children are the cells.
    leaves : int array of shape (n_cells,)
        Id of the leaf that each cell belongs to.

    Raises
    ------
    ValueError
        If there is not one id per cell, or they cannot be ids.

    Examples
    --------
    >>> import numpy as np
    >>> rule = LinearRule.nearest(np.array([[0.0], [4.0], [9.0]]))
    >>> Placement(rule, [1, 2, 1])
    Placement(n_cells=3, n_leaves=2, n_features=1, dtype=float64)
    """

    rule: LinearRule
    leaves: IndexArray

    def __post_init__(self) -> None:
        given = np.asarray(self.leaves)
        if given.shape != (self.rule.n_children,) or given.dtype.kind not in "iu":
            raise ValueError(
                f"leaves must be {self.rule.n_children} integers, one per cell of the "
                f"placement, got {given.dtype} of shape {given.shape}"
            )
        leaves = given.astype(np.intp)
        if leaves.min() < 0:
            raise ValueError(
                f"leaves must be ids of nodes, from 0 on, got {given.min()} to {given.max()}"
            )
        leaves.setflags(write=False)
        object.__setattr__(self, "leaves", leaves)

    def __repr__(self) -> str:
        cells, P = f"n_cells={self.n_cells}", len(self.rule.center)
        n_leaves = len(np.unique(self.leaves))
        return f"Placement({cells}, {n_leaves=}, n_features={P}, dtype={self.rule.dtype})"

    # Arrays forget in a pickle that they are read-only: build the copy anew.
    def __getstate__(self) -> dict[str, Any]:
        return {"rule": self.rule, "leaves": self.leaves}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Placement.__init__(self, **state)

    @property
    def n_cells(self) -> int:
        """Number of cells, each of which belongs to one leaf."""
        return len(self.leaves)


def deciding_rule(hierarchy: "Hierarchy") -> LinearRule | None:
    """Return the first rule that new rows meet: the placement's, else the root's, or None.

    Features and dtype are the same in all rules of a tree, so it stands for them.
    """
    placement = hierarchy.placement
    return hierarchy.rules[hierarchy.root] if placement is None else placement.rule
