"""The true tree of the classes."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any, Self, TypeAlias, final

import numpy as np

from taxarbor._types import IndexArray
from taxarbor.metrics._labels import name_of
from taxarbor.metrics._tree_forms import read_form, read_text

TreeSource: TypeAlias = Any
"""What :meth:`ClassTree.read` takes; Any, as networkx graphs are among it."""


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClassTree:
    """A tree whose leaves are classes, frozen. Most easily made by :meth:`read`.

    Nodes are numbered from left to right, parents first, whatever the order they come in.

    Attributes
    ----------
    parents : int array of shape (n_nodes,)
        Id of each node's parent, -1 for the root, which is node 0.
    node_names : tuple of str
        The name of each node; inner ones may be "".
    leaves : int array of shape (n_leaves,)
        Ids of the leaves from left to right.
    names : tuple of str
        The names of the leaves, in that order; no two are the same.

    Raises
    ------
    ValueError
        If there is no node, more than one root or a cycle, or leaves without a name or with
        the same one.

    Examples
    --------
    >>> tree = ClassTree.read("((cat,dog)mammal,owl)animal;")
    >>> tree
    ClassTree(n_leaves=3, n_nodes=5)
    >>> tree.names
    ('cat', 'dog', 'owl')
    >>> tree.parents
    array([-1,  0,  1,  1,  0])
    """

    parents: IndexArray
    node_names: tuple[str, ...]
    leaves: IndexArray = field(init=False)
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        given = np.asarray(self.parents).tolist()
        if len(given) != len(self.node_names):
            raise ValueError(f"{len(self.node_names)} names for {len(given)} nodes")
        if not all(-1 <= parent < len(given) for parent in given):
            raise ValueError(f"parents must be -1 or one of the {len(given)} nodes")
        order = _walk(given, self.node_names)
        place = {node: position for position, node in enumerate(order)}
        parents = np.array([place.get(given[node], -1) for node in order], dtype=np.intp)
        is_leaf = np.bincount(parents[1:], minlength=len(parents)) == 0
        self._set("parents", parents)
        self._set("node_names", tuple(str(self.node_names[node]) for node in order))
        self._set("leaves", np.flatnonzero(is_leaf))
        self._set("names", tuple(self.node_names[leaf] for leaf in self.leaves))
        _check_names(self.names)

    def _set(self, name: str, value: object) -> None:
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        return f"ClassTree(n_leaves={self.n_leaves}, n_nodes={self.n_nodes})"

    @property
    def n_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.parents)

    @property
    def n_leaves(self) -> int:
        """Number of leaves, that is, of classes."""
        return len(self.leaves)

    @classmethod
    def read(cls, source: TreeSource) -> Self:
        """Make a tree of whatever it is kept in.

        Parameters
        ----------
        source : ClassTree, mapping, sequence, str, Path or networkx.DiGraph
            One of

            - a tree, which is returned;
            - nested mappings ``{"name": ..., "children": [...]}``; leaves have no children,
              and other keys do not matter;
            - a mapping from each class to its path, the names from the root down. Whether
              the class itself ends it does not matter: it is added unless it is there;
            - a sequence of such paths, each of which ends with its class. Nodes of two
              paths are the same if all names from the root on are;
            - text in Newick format, where branch lengths, comments and a missing semicolon
              do not matter, or either of the two mappings in JSON;
            - a ``Path`` to a file of such text, in UTF-8;
            - a networkx graph with edges from parent to child, nodes named as they read.

            Nodes with a single child are kept: they make branches longer.

        Raises
        ------
        ValueError
            If it makes no tree; the message says why, and where in a text.
        TypeError
            If it is none of these.

        Examples
        --------
        >>> paths = {"cat": ["animal", "mammal"], "owl": ["animal", "bird"]}
        >>> ClassTree.read(paths).node_names
        ('animal', 'mammal', 'cat', 'bird', 'owl')
        >>> ClassTree.read('{"children": [{"name": "cat"}, {"name": "owl"}]}').names
        ('cat', 'owl')
        """
        if isinstance(source, cls):
            return source
        if not isinstance(source, os.PathLike):
            return cls._of(*read_form(source))
        text = Path(source).read_text(encoding="utf-8-sig")
        try:
            return cls._of(*read_text(text))
        except ValueError as error:
            raise ValueError(f"{source}: {error}") from error

    @classmethod
    def _of(cls, parents: list[int], names: list[str]) -> Self:
        return cls(np.array(parents, dtype=np.intp), tuple(names))

    def leaves_of(self, classes: Sequence[Any]) -> IndexArray:
        """Return the ids of the leaves that these classes are.

        Parameters
        ----------
        classes : sequence
            Labels, which are looked up as text.

        Returns
        -------
        int array of shape (n_classes,)

        Raises
        ------
        ValueError
            If a class is not the name of a leaf.

        Examples
        --------
        >>> ClassTree.read("((cat,dog),owl);").leaves_of(["owl", "cat"])
        array([4, 2])
        """
        number = dict(zip(self.names, self.leaves.tolist(), strict=True))
        unknown = [label for label in classes if name_of(label) not in number]
        if unknown:
            raise ValueError(_unknown_classes(self, unknown, len(classes)))
        return np.array([number[name_of(label)] for label in classes], dtype=np.intp)

    def groups_of(self, classes: Sequence[Any], depth: int) -> list[str]:
        """Return the name of each class's ancestor at a depth; its own, if it is no deeper.

        Parameters
        ----------
        classes : sequence
            Labels, which are looked up as text.
        depth : int
            Steps from the root.

        Raises
        ------
        ValueError
            If a class is not the name of a leaf.

        Examples
        --------
        >>> ClassTree.read("((cat,dog)mammals,owl);").groups_of(["owl", "cat"], 1)
        ['owl', 'mammals']
        """
        found = []
        for leaf in self.leaves_of(classes).tolist():
            path = [leaf]
            while self.parents[path[-1]] >= 0:
                path.append(int(self.parents[path[-1]]))
            found.append(self.node_names[path[::-1][min(depth, len(path) - 1)]])
        return found


def _walk(parents: list[int], names: Sequence[str]) -> list[int]:
    """Return the nodes from left to right, parents first, if they make one tree."""
    if not parents:
        raise ValueError("the tree is empty; it needs one leaf at least")
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(parents):
        children.setdefault(parent, []).append(node)
    roots = children.get(-1, [])
    if len(roots) > 1:
        raise ValueError(
            f"there are {len(roots)} roots, {_some([names[root] for root in roots])}; put one "
            "node above them all: paths begin at the root, and a tree of groups is nested, "
            "{'name': ..., 'children': [...]}"
        )
    order, waiting = [], roots[:]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting += reversed(children.get(node, ()))
    if len(order) < len(parents):
        lost = sorted(set(range(len(parents))) - set(order))
        raise ValueError(
            f"{len(lost)} nodes cannot be reached from a root, as there is a cycle: "
            f"{_some([names[node] for node in lost])}"
        )
    return order


def _check_names(names: tuple[str, ...]) -> None:
    if "" in names:
        raise ValueError("a leaf, that is, a node without children, has no name")
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ValueError(f"leaves must have different names; more than one is {_some(twice)}")


def _unknown_classes(tree: ClassTree, unknown: list[Any], n_classes: int) -> str:
    told = (
        f"{len(unknown)} of the {n_classes} classes in y are no leaves of the true tree: "
        f"{_some(unknown)}; its leaves are {_some(tree.names)}"
    )
    if set(map(name_of, unknown)) & set(tree.node_names):
        return f"{told}. Some are inner nodes, but rows must belong to leaves"
    if all(isinstance(label, Integral) for label in unknown):
        if not any(name.strip().lstrip("+-").isdigit() for name in tree.names):
            return f"{told}. If y numbers the classes, pass their names: class_names[y]"
    elif all(isinstance(label, float) and label.is_integer() for label in unknown):
        return f"{told}. If y holds whole numbers, pass them as such: y.astype(int)"
    return told


def _some(values: Sequence[Any]) -> str:
    """Name a few."""
    few = ", ".join(f"{value!r:.40}" for value in values[:5])
    return few if len(values) <= 5 else f"{few}, ..."
