"""Random trees, and the definitions of the measures taken literally, pair by pair."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

from taxarbor.tree import LinearRule, TreeBuilder

RULES = {K: LinearRule(np.eye(K, 30), np.zeros(30)) for K in range(2, 31)}


def grow(seed, n_rows=14, n_leaves=5):
    """Split random leaves, in two to four, until there are so many."""
    rng = np.random.default_rng(seed)
    builder = TreeBuilder(n_rows)
    leaves = [0]
    while len(leaves) < n_leaves:
        wide = [leaf for leaf in leaves if builder.size(leaf) > 1]
        leaf = int(rng.choice(wide))
        size = builder.size(leaf)
        K = int(rng.integers(2, min(4, size, n_leaves - len(leaves) + 1) + 1))
        labels = rng.permutation(np.append(np.arange(K), rng.integers(0, K, size - K)))
        leaves.remove(leaf)
        leaves += builder.add_split(leaf, labels, RULES[K])
    return builder.freeze()


def split_like(taxonomy, y):
    """Split rows as a nested tree does their classes; a node with one child is no split."""
    y = np.asarray(y)
    builder = TreeBuilder(len(y))
    waiting = [(taxonomy, 0)]
    while waiting:
        node, place = waiting.pop()
        while len(node.get("children", ())) == 1:
            (node,) = node["children"]
        children = node.get("children", ())
        if not children:
            continue
        below = [list(class_names(child)) for child in children]
        own = y[builder.rows(place)]
        labels = [next(k for k, names in enumerate(below) if name in names) for name in own]
        places = builder.add_split(place, labels, RULES[len(children)])
        waiting += zip(children, places, strict=True)
    return builder.freeze()


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


def branch(parents, node):
    """Return the nodes from the root to this one."""
    found = [node]
    while parents[found[-1]] >= 0:
        found.append(int(parents[found[-1]]))
    return found[::-1]


def n_edges(parents, one, other):
    return len({*branch(parents, one)} ^ {*branch(parents, other)})


def shortest_path(taxonomy, one, other):
    farthest = max(
        n_edges(taxonomy.tree.parents, i, j)
        for i in taxonomy.tree.leaves
        for j in taxonomy.tree.leaves
    )
    return 1 - n_edges(taxonomy.tree.parents, one, other) / farthest if farthest else 1.0


def path_sharing(taxonomy, one, other):
    a, b = branch(taxonomy.tree.parents, one)[1:], branch(taxonomy.tree.parents, other)[1:]
    return len(set(a) & set(b)) / max(len(a), len(b)) if a or b else 1.0


def lowest_common_ancestor(taxonomy, one, other):
    """Return the smallest node that owns both rows."""
    nodes = range(taxonomy.tree.n_nodes)
    owners = [node for node in nodes if {one, other} <= {*taxonomy.tree.rows(node)}]
    return min(owners, key=lambda node: (taxonomy.tree.sizes[node], -taxonomy.tree.depth[node]))


@pytest.fixture(scope="session")
def trees():
    """Functions that make trees."""
    return SimpleNamespace(grow=grow, split_like=split_like, draw_truth=draw_truth)


@pytest.fixture(scope="session")
def literal():
    """Definitions, taken literally."""
    return SimpleNamespace(
        pairs=lambda n_rows: list(itertools.combinations(range(n_rows), 2)),
        similarities={"shortest_path": shortest_path, "path_sharing": path_sharing},
        lowest_common_ancestor=lowest_common_ancestor,
    )


@pytest.fixture(scope="session")
def known():
    """Rows 0 to 5: leaves {0, 1}, {2}, {3}, {4, 5}; the first two and the last two meet."""
    builder = TreeBuilder(6)
    builder.add_split(0, [0, 0, 0, 1, 1, 1], RULES[2])
    builder.add_split(1, [0, 0, 1], RULES[2])
    builder.add_split(2, [0, 1, 1], RULES[2])
    return builder.freeze()
