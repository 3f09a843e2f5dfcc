"""Stability of a taxonomy: the clusters that were recovered in refits to parts of its rows."""

from dataclasses import dataclass, replace
from typing import NamedTuple, final

import numpy as np

from taxarbor._types import Array, IndexArray, Mask, set_frozen
from taxarbor.tree import Tree
from taxarbor.tree.tree import Claims

MIN_JACCARD = 0.75
"""Jaccard's index from which on a cluster counts as the same (Hennig, 2007): rows in both, of
those in either."""

MIN_STABLE_SHARE = 0.5  # of refits in which a stable cluster is recovered and separated


class Curve(NamedTuple):
    """The stability of the cut into each number of clusters; arrays of one length.

    ``stability`` is the share of refits in which its least stable cluster was recovered,
    separated from others; ``reference`` the same for rows without clusters, or NaN.
    """

    n_clusters: IndexArray
    stability: Array
    reference: Array

    @property
    def suggested(self) -> int:
        """The largest number whose clusters are all stable.

        They were recovered, separated from others, in at least half of the refits, and more
        often than in rows without clusters.
        """
        # NaN where there is no reference: a comparison with it is false.
        is_stable = (self.stability >= MIN_STABLE_SHARE) & ~(self.stability <= self.reference)
        return int(self.n_clusters[is_stable].max(initial=1))

    def verdict(self) -> str:
        """Return a sentence on the number of clusters."""
        suggested = self.suggested
        if suggested == 1:
            return (
                "no clusters found: no cut of the tree has clusters that are all recovered, "
                "with gaps between them, in most refits; there may be none, or too few rows "
                "to tell"
            )
        more = "; there may be more, as the tree ends there"
        is_all = suggested == self.n_clusters[-1]
        return f"the finest stable cut has {suggested} clusters{more if is_all else ''}"


@final
@dataclass(frozen=True, slots=True, eq=False)
class Stability:
    """How often the clusters of a model were recovered when it was refitted to half its rows.

    Attributes
    ----------
    n_refits : int
        Number of refits.
    n_recovered : int array of shape (n_nodes,)
        In how many refits the cluster of the node was recovered: a node of the refit has a
        Jaccard index of at least 0.75 with it.
    n_separated : int array of shape (n_nodes,)
        In how many it was recovered, and rows that the refit had not seen left a gap between
        it and its siblings. A part of one cloud may be recovered again and again, but without
        a gap.
    left_out : array of shape (n_nodes,)
        Share of the node's rows left out of a refit that the refit sends to the matching node:
        the most similar one or, for leaves, their partner when leaves are matched one to one.
        NaN where no row was left out. The first entry, the root's, is the share of all rows
        left out that are sent to the matching leaf.
    curve : Curve
        The stability of the cut into each number of clusters.

    Examples
    --------
    >>> from taxarbor import Taxarbor, make_planted_tree
    >>> from taxarbor.stability import assess
    >>> planted = make_planted_tree(200, depth=2)
    >>> model = Taxarbor(6, random_state=0).fit(planted.X)
    >>> stability = assess(model, planted.X, n_refits=5).stability
    >>> stability.suggested, stability.describe(1)
    (4, 'recovered in 5 of 5 refits')
    """

    n_refits: int
    n_recovered: IndexArray
    n_separated: IndexArray
    left_out: Array
    curve: Curve

    def __post_init__(self) -> None:
        for name in ("n_recovered", "n_separated"):
            counts = np.asarray(getattr(self, name))
            set_frozen(self, **{name: counts.astype(np.intp, casting="same_kind")})
        set_frozen(self, left_out=np.array(self.left_out, dtype=np.float64))
        for part in self.curve:
            part.setflags(write=False)

    @property
    def is_stable(self) -> Mask:
        """Whether each node's cluster was recovered, separated, in at least half the refits."""
        return self.n_separated >= MIN_STABLE_SHARE * self.n_refits

    @property
    def suggested(self) -> int:
        """Number of clusters of the finest cut whose clusters are all stable."""
        return self.curve.suggested

    def describe(self, node: int) -> str:
        """Return ``recovered in 18 of 20 refits``, and how many of them were without a gap."""
        text = f"recovered in {self.n_recovered[node]} of {self.n_refits} refits"
        n_without = int(self.n_recovered[node] - self.n_separated[node])
        if n_without and n_without == self.n_recovered[node]:
            return f"{text}, always without a gap"
        return f"{text}, in {n_without} of them without a gap" if n_without else text

    def describe_left_out(self) -> str:
        """Return a sentence on the rows left out of refits."""
        return (
            f"In refits to half of the rows, {100.0 * self.left_out[0]:.0f} % of the rows left "
            "out go where the tree fitted with them puts them."
        )

    def claims(self, tree: Tree) -> Claims:
        """Yield what must hold of the stability of a tree."""
        is_count = type(self.n_refits) is int and 0 < self.n_refits < 2**31
        yield is_count, "stability must have a refit, and fewer than 2 ** 31"
        for name in ("n_recovered", "n_separated", "left_out"):
            values, most = getattr(self, name), 1 if name == "left_out" else self.n_refits
            is_right = values.shape == (tree.n_nodes,)
            # NaN, of nodes no row of which was left out, passes.
            is_right = is_right and not ((values < 0) | (values > most)).any()
            expected = f"{tree.n_nodes} numbers from 0 to {most}"
            yield is_right, f"{name} of the stability must be {expected}"
        shapes = {part.shape for part in self.curve}
        is_even = len(shapes) == 1 and self.curve.n_clusters.ndim == 1
        yield is_even, "the parts of a curve must have one length"

    def take(self, nodes: IndexArray, is_inner: Mask, node_weights: Array) -> "Stability":
        """Return the stability of a pruned tree of these nodes, with the weights of their rows.

        Its share of rows left out is then the mean over its leaves.
        """
        left_out, is_cut = self.left_out[nodes], self.curve.n_clusters <= (~is_inner).sum()
        if len(nodes) < len(self.left_out):
            weights = np.where(is_inner | np.isnan(left_out), 0.0, node_weights)
            mean = weights @ np.nan_to_num(left_out) / max(weights.sum(), 1e-300)
            left_out[0] = mean if is_inner[0] else 1.0  # all rows go to the only cluster
        return replace(
            self,
            n_recovered=self.n_recovered[nodes],
            n_separated=self.n_separated[nodes],
            left_out=left_out,
            curve=Curve(*(part[is_cut] for part in self.curve)),
        )
