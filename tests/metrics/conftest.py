"""Random trees, and the definitions of the measures taken literally, pair by pair."""

import itertools

import numpy as np
import pytest

from taxarbor.taxonomy import Taxonomy
from taxarbor.tree import TreeBuilder


def grow_randomly(seed, n_rows=14, n_leaves=5):
    """Split random leaves, in two to four, until there are so many."""
    rng = np.random.default_rng(seed)
    builder, leaves = TreeBuilder(n_rows), [0]
    while len(leaves) < n_leaves:
        leaf = int(rng.choice([leaf for leaf in leaves if builder.size(leaf) > 1]))
        size = builder.size(leaf)
        K = int(rng.integers(2, min(4, size, n_leaves - len(leaves) + 1) + 1))
        labels = rng.permutation(np.append(np.arange(K), rng.integers(0, K, size - K)))
        leaves.remove(leaf)
        leaves += builder.add_split(leaf, labels)
    return Taxonomy(builder.freeze())


def split_like(truth, y):
    """Split rows as a nested tree does their classes; a node with one child is no split."""
    y = np.asarray(y)
    builder, pending = TreeBuilder(len(y)), [(truth, 0)]
    while pending:
        node, place = pending.pop()
        while len(node.get("children", ())) == 1:
            (node,) = node["children"]
        if children := node.get("children", ()):
            below = [list(class_names(child)) for child in children]
            classes = y[builder.rows(place)]
            labels = [next(k for k, names in enumerate(below) if c in names) for c in classes]
            pending += zip(children, builder.add_split(place, labels), strict=True)
    return Taxonomy(builder.freeze())


def class_names(node):
    children = node.get("children", ())
    return itertools.chain(*map(class_names, children)) if children else iter([node["name"]])


def draw_truth(seed, names, *, chains=True):
    """Join random nodes, two to three at a time; put some nodes above one child."""
    rng = np.random.default_rng(seed)
    nodes = [{"name": name} for name in rng.permutation(names).tolist()]
    while len(nodes) > 1:
        chosen = [nodes.pop(int(rng.integers(len(nodes)))) for _ in range(2)]
        if nodes and rng.random() < 0.4:
            chosen.append(nodes.pop())
        joined = {"name": "", "children": chosen}
        if chains and rng.random() < 0.3:
            joined = {"name": "only", "children": [joined]}
        nodes.append(joined)
    return nodes[0]


def branches(tree):
    """Return which nodes are on the way to each leaf, the root left out."""
    is_on = np.zeros((len(tree.leaves), len(tree.parents)))
    for n, leaf in enumerate(tree.leaves):
        node = leaf
        while node > 0:
            is_on[n, node] = 1
            node = tree.parents[node]
    return is_on


def shortest_path(tree):
    """Return the similarity of all leaves by the edges between them."""
    is_on = branches(tree)
    n_edges = is_on @ (1 - is_on).T + (1 - is_on) @ is_on.T  # on one way, and not on the other
    return 1 - n_edges / max(n_edges.max(), 1)


def path_sharing(tree):
    """Return the similarity of all leaves by the nodes that they share."""
    is_on = branches(tree)
    longer = np.maximum.outer(is_on.sum(axis=1), is_on.sum(axis=1))
    return np.where(longer == 0, 1.0, is_on @ is_on.T / np.maximum(longer, 1))


def lowest_common_ancestor(tree, one, other):
    """Return the smallest node that owns both rows."""
    owners = [node for node in range(tree.n_nodes) if {one, other} <= {*tree.rows(node)}]
    return min(owners, key=lambda node: (tree.sizes[node], -tree.depth[node]))


SIMILARITIES = {"shortest_path": shortest_path, "path_sharing": path_sharing}
"""Definitions, taken literally."""


@pytest.fixture(scope="session")
def known():
    """Rows 0 to 5: leaves {0, 1}, {2}, {3}, {4, 5}; the first two and the last two meet."""
    builder = TreeBuilder(6)
    builder.add_split(0, [0, 0, 0, 1, 1, 1])
    builder.add_split(1, [0, 0, 1])
    builder.add_split(2, [0, 1, 1])
    return Taxonomy(builder.freeze())
