"""How far a tree can be trusted: what came back when it was grown again on other rows."""

from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array, IndexArray


class Curve(NamedTuple):
    """How stable the best cut into each number of clusters is; all of one length.

    ``stability`` is that of its least stable cluster, the share of refits in which it came
    back with a gap around it; ``reference`` the same of rows without clusters.
    """

    n_clusters: IndexArray
    stability: Array
    reference: Array


@final
@dataclass(frozen=True, slots=True, eq=False)
class Trust:
    """What came back when a model was fitted again to parts of its rows.

    Attributes
    ----------
    n_refits : int
        How many times it was.
    came_back : int array of shape (n_nodes,)
        In how many refits the cluster of the node came back.
    apart : int array of shape (n_nodes,)
        In how many it came back, and rows that the refit had not seen left a gap between it
        and its siblings. What is cut out of the middle of a cloud may come back again and
        again, but without a gap.
    rule_came_back : int array of shape (n_nodes,)
        In how many the node and its children came back, and the rule with the feature that
        does most for it.
    feature_came_back : tuple of int arrays
        The same of each feature: per node, in the order of ``rules[node].features``.
    rows : array of shape (n_rows,)
        The share of refits that put the row into the cluster that it is in.
    is_stable : bool array of shape (n_nodes,)
        Whether the cluster of the node comes back, apart from others, often enough.
    suggested : int
        Number of clusters of the finest cut whose clusters are all stable.
    curve : Curve
        ``n_clusters``, ``stability`` and ``reference``, arrays of one length.
    """

    n_refits: int
    came_back: IndexArray
    apart: IndexArray
    rule_came_back: IndexArray
    feature_came_back: tuple[IndexArray, ...]
    rows: Array
    is_stable: NDArray[np.bool_]
    suggested: int
    curve: Curve

    def told(self, node: int) -> str:
        """Return ``came back in 18 of 20 refits``, and whether without a gap."""
        text = f"came back in {self.came_back[node]} of {self.n_refits} refits"
        alone = self.came_back[node] - self.apart[node]
        return f"{text}, {alone} times without a gap" if node and alone else text
