"""A coarser tree: which nodes a cut leaves, and what is known of them."""

import operator
from dataclasses import replace
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import IndexArray
from taxarbor.hierarchy._follows import Follows
from taxarbor.hierarchy._rule import Placement

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy


def pruned(
    tree: "Hierarchy", n_clusters: SupportsIndex | None, depth: SupportsIndex | None
) -> "Hierarchy":
    """Return a coarser tree; see :meth:`Hierarchy.prune`."""
    kept, is_inner = kept_nodes(tree, n_clusters, depth)
    inner = set(kept[is_inner].tolist())
    nodes, placement = kept.tolist(), tree.placement if len(kept) > 1 else None
    new_id = np.full(tree.n_nodes + 1, -1)  # the last for the parent of the root, -1
    new_id[kept] = np.arange(len(kept))
    if placement is not None:
        frontier = from_left(tree, kept[~is_inner])
        # The slices of the new leaves tile all rows: a leaf lies where its first row does.
        first_rows = tree.start[placement.leaves]
        owners = np.searchsorted(tree.start[frontier], first_rows, side="right") - 1
        placement = Placement(placement.rule, new_id[frontier[owners]])
    return replace(
        tree,
        start=tree.start[kept],
        stop=tree.stop[kept],
        parents=new_id[tree.parents[kept]],
        # Splits that stay are counted anew: by depth, earlier ones may have gone.
        birth=np.unique(tree.birth[kept], return_inverse=True)[1],
        score=tree.score[kept],
        objective=tree.objective[kept],
        rules=tuple(tree.rules[i] if i in inner else None for i in nodes),
        info=tuple(tree.info[i] for i in nodes),
        notes=tuple(tree.notes[i] for i in nodes),
        fidelity=np.where(is_inner, tree.fidelity[kept], np.nan),
        placement=placement,
        means=None if tree.means is None else tree.means[kept],
        missing=None if tree.missing is None else tree.missing[kept],
        totals=None if tree.totals is None else tree.totals[kept],
        follows=tree.follows and _follows(tree.follows, kept, is_inner, new_id),
        trust=None if tree.trust is None else tree.trust.take(kept, is_inner),
    )


def kept_nodes(
    tree: "Hierarchy", n_clusters: SupportsIndex | None, depth: SupportsIndex | None
) -> tuple[IndexArray, NDArray[np.bool_]]:
    """Return the ids of the nodes that a cut leaves, ascending, and which have children."""
    if (n_clusters is None) == (depth is None):
        raise ValueError("give either n_clusters or depth, and not both")
    if n_clusters is not None:
        wanted = operator.index(n_clusters)
        if not 1 <= wanted <= tree.n_leaves:
            raise ValueError(
                "n_clusters must be between 1 and the number of leaves, "
                f"{tree.n_leaves}, got {wanted}"
            )
        n_leaves_after = 1 + np.cumsum(np.bincount(tree.birth)[1:] - 1)
        last_step = np.searchsorted(n_leaves_after, wanted, side="right")
        kept = np.flatnonzero(tree.birth <= last_step)
    else:
        limit = operator.index(depth)  # type: ignore[arg-type]
        if limit < 0:
            raise ValueError(f"depth must be 0 or more, got {limit}")
        kept = np.flatnonzero(tree.depth <= limit)
    is_inner = np.zeros(tree.n_nodes, dtype=bool)
    is_inner[tree.parents[kept[1:]]] = True
    return kept, is_inner[kept]


def from_left(tree: "Hierarchy", nodes: IndexArray) -> IndexArray:
    """Return nodes, none of them above another, from left to right."""
    return nodes[np.argsort(tree.start[nodes])]


def _follows(
    follows: Follows, kept: IndexArray, is_inner: NDArray[np.bool_], new_id: IndexArray
) -> Follows:
    """Forget the rules that have gone; all above a node that stays, stay as well."""
    inner_id = np.full_like(new_id, -1)
    inner_id[kept[is_inner]] = np.flatnonzero(is_inner)
    return Follows(
        broken=None if follows.broken is None else inner_id[follows.broken],
        share=follows.share[kept],
        worst=new_id[follows.worst[kept]],
        worst_share=follows.worst_share[kept],
        gap=np.where(is_inner[:, None], follows.gap[kept], np.nan),
    )
