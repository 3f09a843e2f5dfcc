"""The tree above the leaves, made from the bottom up, as Ward's method links rows.

A tree that was grown from the top has made its first divisions before it knew the leaves, and
rows have moved between them since. Which leaves are close is seen best at the end: so more
leaves are grown than asked for, and those whose union adds least to the scatter are put
together, first to as many leaves as asked for, then to the tree above them.
"""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from taxarbor import native
from taxarbor._types import Array, IndexArray
from taxarbor.grow import Gathering, StoppingRule
from taxarbor.hierarchy import HierarchyBuilder
from taxarbor.refine._coordinates import Coordinates
from taxarbor.refine._leaves import Leafing, relabel

POWER = 0.75
"""Of its number of rows, what a leaf weighs. With Ward's own weight, 1, large clusters are
divided before small ones are told apart; on the shared sets that costs a point of the adjusted
Rand index."""


def link_leaves(
    grown: Leafing, coordinates: Coordinates, stop: StoppingRule
) -> tuple[Leafing, IndexArray]:
    """Return a tree of two children per split whose leaves are the grown ones or their unions.

    Links are undone, the last one first, until the tree is full; leaves that are small enough
    stay whole. Scores of the nodes are what their union costs. Also, the position of each old
    leaf among the new ones.
    """
    leaves, counts = grown.tree.leaves, grown.counts
    links, costs = ward_links(grown.means, counts**POWER)
    # Each node is a range of leaves, from left to right; the root is the last link.
    n = len(leaves)
    first, widths = np.arange(2 * n - 1), np.ones(2 * n - 1, dtype=np.intp)
    sizes = np.concatenate([counts, np.zeros(n - 1, dtype=np.intp)])
    for whole, (a, b) in enumerate(links.tolist(), n):
        first[whole], widths[whole] = min(first[a], first[b]), widths[a] + widths[b]
        sizes[whole] = sizes[a] + sizes[b]
    links = np.where((first[links[:, :1]] < first[links[:, 1:]]), links, links[:, ::-1])
    begin, open_nodes = np.zeros_like(widths), {2 * n - 2}
    splits: dict[int, tuple[int, int]] = {}
    for whole, (left, right) in reversed([*enumerate(links.tolist(), n)]):
        begin[left], begin[right] = begin[whole], begin[whole] + widths[left]
        is_full = stop.is_full(len(splits) + 1, 2)
        if whole in open_nodes and not is_full and not stop.spares(int(sizes[whole]), 0):
            splits[whole] = left, right
            open_nodes |= {left, right}
    tree, node_of = built(splits, 2 * n - 2, sizes)
    for whole in splits:
        cost = float(costs[whole - n])
        tree.record(node_of[whole], score=cost, objective=np.nan, info=None)
    for old, leaf in enumerate(leaves):
        if old in node_of:
            tree.refuse(node_of[old], grown.tree.note(leaf))
    edges = np.sort([begin[node] for node in open_nodes if node not in splits])
    place = np.searchsorted(edges, begin[:n], side="right") - 1
    return regrouped(grown, tree, place, coordinates), place


def regrouped(
    grown: Leafing, tree: HierarchyBuilder, place: IndexArray, coordinates: Coordinates
) -> Leafing:
    """Return the rows as those of other leaves, given the place of each old leaf."""
    counts = np.zeros(tree.n_leaves, dtype=np.int64)
    sums = np.zeros((tree.n_leaves, grown.sums.shape[1]))
    np.add.at(counts, place, grown.counts)
    np.add.at(sums, place, grown.sums)
    engine = coordinates.blocks.engine
    labels, _ = engine.keep(relabel, grown.labels, place=place.astype(np.int32))
    return Leafing(tree, labels, counts, sums)


def gather(pairs: HierarchyBuilder, branching: int) -> HierarchyBuilder:
    """Return a tree of two children per split as one of more: see :class:`Gathering`.

    The leaves, from left to right, stay.
    """
    gathering = Gathering(branching)
    for node in pairs.inner:
        gathering.add(node, pairs.children(node))
    splits = gathering.splits
    sizes = np.array([pairs.size(node) for node in range(pairs.n_nodes)])
    tree, node_of = built(splits, 0, sizes)
    for node, made in node_of.items():
        if node in splits:
            tree.record(made, **pairs.recorded(node))
        else:
            tree.refuse(made, pairs.note(node))
    return tree


def built(
    splits: Mapping[int, Sequence[int]], root: int, sizes: IndexArray
) -> tuple[HierarchyBuilder, dict[int, int]]:
    """Return a tree, given the sizes of its nodes, and its number for each of them.

    Splits come in the order in which they are made.
    """
    nodes = [root, *chain.from_iterable(splits.values())]
    node_of = {node: made for made, node in enumerate(nodes)}
    tree = HierarchyBuilder(int(sizes[root]))
    for node, parts in splits.items():
        tree.divide(node_of[node], [int(sizes[part]) for part in parts])
    return tree, node_of


def undone(
    tree: HierarchyBuilder, leaves: Sequence[int], reason: str
) -> tuple[HierarchyBuilder, IndexArray]:
    """Undo the splits that made some leaves: their parents become leaves instead, with a note.

    Also, the position of each old leaf among the new ones.
    """
    parents = tree.parents
    ended = {parents[leaf] for leaf in leaves}
    ends = list(range(tree.n_nodes))  # the node that each is a part of, at the end
    for node in range(1, tree.n_nodes):
        above = ends[parents[node]]
        if above != parents[node] or above in ended:
            ends[node] = above
    splits = {node: tree.children(node) for node in tree.inner if ends[node] == node}
    splits = {node: parts for node, parts in splits.items() if node not in ended}
    sizes = np.array([tree.size(node) for node in range(tree.n_nodes)])
    new, node_of = built(splits, 0, sizes)
    rules = tree.freeze(order=False).rules
    for node, made in node_of.items():
        if node not in splits:
            new.refuse(made, reason if node in ended else tree.note(node))
            continue
        new.record(made, **tree.recorded(node))
        rule = rules[node]
        if rule is not None:
            new.explain(made, rule)
    position = {leaf: at for at, leaf in enumerate(new.leaves)}
    place = [position[node_of[ends[leaf]]] for leaf in tree.leaves]
    return new, np.array(place, dtype=np.intp)


def ward_links(means: Array, weights: Array) -> tuple[IndexArray, Array]:
    """Link points of given weights by Ward's method, by chains of nearest neighbours.

    Returns pairs, numbered as SciPy's ``linkage`` does, and what each adds to the scatter.
    """
    n = len(means)
    points = means.astype(np.float64, order="C")
    pairs, costs = native.ward_links(points, weights.astype(np.float64))
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
