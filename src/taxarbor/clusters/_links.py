"""The tree above the leaves, made from the bottom up, as Ward's method links rows.

A tree that was grown from the top has made its first divisions before it knew the leaves, and
rows have moved between them since. So more leaves are grown
than requested, and those whose union adds least to the scatter are merged, first to as many
leaves as requested, then to the tree above them.
"""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from taxarbor import native
from taxarbor._types import Array, IndexArray
from taxarbor.grow import StoppingRule
from taxarbor.tree import TreeBuilder

POWER = 0.75
"""The weight of a leaf is this power of its size. With Ward's own weight, 1, large clusters are
divided before small ones are separated; on the shared sets that costs a point of the adjusted
Rand index."""


def link_leaves(
    means: Array, counts: IndexArray, stop: StoppingRule
) -> tuple[TreeBuilder, IndexArray]:
    """Return a tree of two children per split whose leaves are the given ones or their unions.

    Links are undone, the last one first, until the tree is full; leaves that are small enough
    stay whole. The score of a node is the cost of its link. Also returns the position of each
    given leaf among the new ones.
    """
    links, costs = ward_links(means, counts**POWER)
    # Each node is a range of leaves, from left to right; the root is the last link.
    n = len(counts)
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
        if whole in open_nodes and not is_full and not stop.is_final(int(sizes[whole]), 0):
            splits[whole] = left, right
            open_nodes |= {left, right}
    tree, node_of = build_tree(splits, 2 * n - 2, sizes)
    for whole in splits:
        cost = float(costs[whole - n])
        tree.record(node_of[whole], score=cost, objective=np.nan, info=None)
    edges = np.sort([begin[node] for node in open_nodes if node not in splits])
    return tree, np.searchsorted(edges, begin[:n], side="right") - 1


def merge_small(means: Array, counts: IndexArray, min_size: int) -> IndexArray:
    """Return the new number of each leaf when small ones are merged with their nearest.

    The smallest leaf is merged first, with the one whose union with it costs least.
    """
    points, sizes = means.copy(), counts.astype(np.float64)
    target = np.arange(len(counts))
    is_open = np.ones(len(counts), dtype=bool)
    while np.count_nonzero(is_open) > 1:
        leaf = int(np.argmin(np.where(is_open, sizes, np.inf)))
        if sizes[leaf] >= min_size:
            break
        weights = sizes**POWER
        costs = ((points - points[leaf]) ** 2).sum(axis=1)
        costs *= weights * weights[leaf] / (weights + weights[leaf])
        costs[~is_open] = costs[leaf] = np.inf
        nearest = int(costs.argmin())
        share = sizes[leaf] / (sizes[leaf] + sizes[nearest])
        points[nearest] += share * (points[leaf] - points[nearest])
        sizes[nearest] += sizes[leaf]
        is_open[leaf] = False
        target[target == leaf] = nearest
    return (np.cumsum(is_open) - 1)[target]


def build_tree(
    splits: Mapping[int, Sequence[int]], root: int, sizes: IndexArray
) -> tuple[TreeBuilder, dict[int, int]]:
    """Return a tree, given the sizes of its nodes, and its number for each of them.

    Splits come in the order in which they are made.
    """
    nodes = [root, *chain.from_iterable(splits.values())]
    node_of = {node: made for made, node in enumerate(nodes)}
    tree = TreeBuilder(int(sizes[root]))
    for node, parts in splits.items():
        tree.divide(node_of[node], [int(sizes[part]) for part in parts])
    return tree, node_of


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
