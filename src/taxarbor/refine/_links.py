"""The leaves, linked anew from the bottom up, as Ward's method links rows.

A tree that was grown from the top has made its first divisions before it knew the leaves, and
rows have moved between them since. Which leaves are close is seen best at the end: the two
whose union adds least to the scatter within clusters become siblings, and so on.
"""

import numpy as np

from taxarbor import native
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import HierarchyBuilder, Placement
from taxarbor.refine._coordinates import Coordinates
from taxarbor.refine._leaves import leaf_means


def link_leaves(
    tree: HierarchyBuilder, placement: Placement, coordinates: Coordinates
) -> tuple[HierarchyBuilder, Placement]:
    """Return a tree of two children per split with the same leaves, and their placement.

    The last links are the first splits. Scores of the nodes are what their union costs.
    """
    labels, leaves = tree.labels, tree.leaves
    counts = np.bincount(labels, minlength=len(leaves))
    links, costs = ward_links(leaf_means(coordinates.values[:, :-1], labels, counts), counts)
    # Each node is a range of leaves, from left to right; the root is the last link.
    n = len(leaves)
    first, sizes = np.arange(2 * n - 1), np.ones(2 * n - 1, dtype=np.intp)
    for whole, (a, b) in enumerate(links.tolist(), n):
        first[whole], sizes[whole] = min(first[a], first[b]), sizes[a] + sizes[b]
    links = np.where((first[links[:, :1]] < first[links[:, 1:]]), links, links[:, ::-1])
    begin = np.zeros_like(sizes)
    for whole, (left, right) in reversed([*enumerate(links.tolist(), n)]):
        begin[left], begin[right] = begin[whole], begin[whole] + sizes[left]
    place = begin[labels]
    made, node_of = HierarchyBuilder(len(labels)), {2 * n - 2: 0}
    for whole, (left, right) in reversed([*enumerate(links.tolist(), n)]):
        node = node_of[whole]
        sides = (place[made.rows(node)] >= begin[right]).astype(np.int8)
        node_of[left], node_of[right] = made.add_split(node, sides)
        made.record(node, score=float(costs[whole - n]), objective=np.nan, info=None)
    for old, leaf in enumerate(leaves):
        if tree.note(leaf):
            made.refuse(node_of[old], tree.note(leaf))
    moved = {leaf: node_of[old] for old, leaf in enumerate(leaves)}
    return made, Placement(placement.rule, np.array([moved[leaf] for leaf in placement.leaves]))


def ward_links(means: Array, counts: IndexArray) -> tuple[IndexArray, Array]:
    """Link points of given weights by Ward's method, by chains of nearest neighbours.

    Returns pairs, numbered as SciPy's ``linkage`` does, and what each adds to the scatter.
    """
    n = len(means)
    points = means.astype(np.float64, order="C")
    pairs, costs = native.ward_links(points, counts.astype(np.float64))
    highest = [0.0] * n  # what the last link within each point cost
    for link, (a, b) in enumerate(pairs.tolist()):
        # A union never costs less than its parts, but for rounding.
        costs[link] = highest[a] = max(float(costs[link]), highest[a], highest[b])
    # Chains link far pairs here before near ones there.
    order = np.argsort(costs, kind="stable")
    number, links = list(range(n)), np.empty((n - 1, 2), dtype=np.intp)
    for link, at in enumerate(order.tolist()):
        a, b = pairs[at].tolist()
        links[link] = number[a], number[b]
        number[a] = n + link
    return links, costs[order]
