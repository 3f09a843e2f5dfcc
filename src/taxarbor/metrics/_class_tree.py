"""The true tree of the classes, and the forms in which people keep one.

Each ``_read_...`` function returns the parent of each node, -1 for a root, and its name, "" if
it has none; ClassTree checks that they make a tree. Nothing here recurses.
"""

import json
import os
import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from pathlib import Path
from typing import Any, Self, TypeAlias, final

import numpy as np

from taxarbor._errors import FileFormatError, InputError, InputTypeError
from taxarbor._types import IndexArray
from taxarbor.metrics._table import name_of

TreeSource: TypeAlias = Any
"""What :meth:`ClassTree.read` takes."""
_Form: TypeAlias = tuple[list[int], list[str]]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClassTree:
    """A frozen tree whose leaves are classes. The easiest way to make one is :meth:`read`.

    Nodes are numbered from left to right, parents first, whatever order they are given in.

    Attributes
    ----------
    parents : int array of shape (n_nodes,)
        Id of each node's parent, -1 for the root, which is node 0.
    node_names : tuple of str
        The name of each node; inner ones may be "".
    leaves, names : int array of shape (n_leaves,), tuple of str
        Ids and names of the leaves from left to right; no two names are the same.

    Raises
    ------
    ValueError
        If there is no node, more than one root or a cycle, or leaves without a name or with
        the same one.

    Examples
    --------
    >>> mammals = ["animal", "mammal"]
    >>> tree = ClassTree.read({"cat": mammals, "dog": mammals, "owl": ["animal"]})
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
            raise InputError(f"{len(self.node_names)} names for {len(given)} nodes")
        if not all(-1 <= parent < len(given) for parent in given):
            raise InputError(f"parents must be -1 or one of the {len(given)} nodes")
        order = _walk(given, self.node_names)
        place = {node: position for position, node in enumerate(order)}
        parents = np.array([place.get(given[node], -1) for node in order], dtype=np.intp)
        leaves = np.flatnonzero(np.bincount(parents[1:], minlength=len(parents)) == 0)
        node_names = tuple(str(self.node_names[node]) for node in order)
        names = tuple(node_names[leaf] for leaf in leaves)
        if "" in names:
            raise InputError("a leaf, that is, a node without children, has no name")
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            told = f"leaves must have different names; more than one is {_some(twice)}"
            raise InputError(told)
        parents.flags.writeable = leaves.flags.writeable = False
        values = (parents, node_names, leaves, names)
        for key, value in zip(self.__slots__, values, strict=True):
            object.__setattr__(self, key, value)

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
        """Make a tree from any of the forms in which trees are kept.

        Parameters
        ----------
        source : ClassTree, mapping, sequence, str or Path
            One of

            - a tree, which is returned;
            - nested mappings ``{"name": ..., "children": [...]}``; other keys do not matter;
            - a mapping from each class to its path, the names from the root down to the class
              itself or to the node above it;
            - a sequence of such paths, each of which ends with its class. Nodes of two
              paths are the same if all names from the root on are;
            - either mapping as text in JSON, up to a few hundred levels;
            - a ``Path`` to a file of such text, in UTF-8.

            Nodes with a single child are kept: they make branches longer.

        Raises
        ------
        ValueError
            If the source does not make a tree; the message says why, and where in a text.
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
        if isinstance(source, os.PathLike):
            try:
                return cls.read(Path(source).read_text(encoding="utf-8-sig"))
            except UnicodeDecodeError as error:
                told = f"{source} is not text in UTF-8: {error.reason}"
                raise FileFormatError(told) from error
            except ValueError as error:
                raise InputError(f"{source}: {error}") from error
        parents, names = _read_form(source)
        return cls(np.array(parents, dtype=np.intp), tuple(names))

    def leaves_of(self, classes: Sequence[Any]) -> IndexArray:
        """Return the id of the leaf of each class, an int array of shape (n_classes,).

        Classes are looked up as text; ValueError is raised if one is not the name of a leaf.

        Examples
        --------
        >>> tree = ClassTree.read([["animal", "mammal", "cat"], ["animal", "owl"]])
        >>> tree.leaves_of(["owl", "cat"])
        array([3, 2])
        """
        number = dict(zip(self.names, self.leaves.tolist(), strict=True))
        unknown = [label for label in classes if name_of(label) not in number]
        if unknown:
            raise InputError(_unknown_classes(self, unknown, len(classes)))
        return np.array([number[name_of(label)] for label in classes], dtype=np.intp)

    def ancestors_of(self, classes: Sequence[Any], depth: int) -> list[str]:
        """Return the name of each class's ancestor at a depth, or its own if it is no deeper.

        Takes and raises what :meth:`leaves_of` does; the root has depth 0.

        Examples
        --------
        >>> tree = ClassTree.read([["animal", "mammal", "cat"], ["animal", "owl"]])
        >>> tree.ancestors_of(["owl", "cat"], 1)
        ['owl', 'mammal']
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
        raise InputError("the tree is empty; it needs at least one leaf")
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(parents):
        children.setdefault(parent, []).append(node)
    roots = children.get(-1, [])
    if len(roots) > 1:
        raise InputError(
            f"there are {len(roots)} roots, {_some([names[root] for root in roots])}; put one "
            "node above them all: paths begin at the root, and mappings are nested, "
            "{'name': ..., 'children': [...]}"
        )
    order, waiting = [], roots[:]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting += reversed(children.get(node, ()))
    if len(order) < len(parents):
        lost = sorted(set(range(len(parents))) - set(order))
        raise InputError(
            f"{'1 node' if len(lost) == 1 else f'{len(lost)} nodes'} cannot be reached from a "
            f"root, because there is a cycle: {_some([names[node] for node in lost])}"
        )
    return order


def _unknown_classes(tree: ClassTree, unknown: list[Any], n_classes: int) -> str:
    told = (
        f"{len(unknown)} of the {n_classes} classes in y are not leaves of the true tree: "
        f"{_some(unknown)}; its leaves are {_some(tree.names)}"
    )
    if set(map(name_of, unknown)) & set(tree.node_names):
        return f"{told}. Some are inner nodes, but rows must belong to leaves"
    if all(isinstance(label, Integral) for label in unknown):
        if not any(name.strip().lstrip("+-").isdigit() for name in tree.names):
            return f"{told}. If y numbers the classes, pass their names: class_names[y]"
    elif all(isinstance(label, float) and label.is_integer() for label in unknown):
        return f"{told}. If y holds whole numbers, pass them as integers: y.astype(int)"
    return told


def _some(values: Sequence[Any]) -> str:
    """Name a few."""
    few = ", ".join(f"{value!r:.40}" for value in values[:5])
    return few if len(values) <= 5 else f"{few}, ..."


def _read_form(source: Any) -> _Form:
    """Read anything but files."""
    if isinstance(source, str):
        return _read_text(source)
    if isinstance(source, Mapping):
        return _read_nested(source) if _is_nested(source) else _read_paths(_paths_of(source))
    if isinstance(source, Sequence | np.ndarray):
        return _read_paths(source)
    raise InputTypeError(
        "a tree of classes must be a ClassTree, nested mappings, a mapping from classes to "
        "paths, a sequence of paths, text in JSON or a pathlib.Path; got "
        f"{type(source).__name__}"
    )


def _read_text(text: str) -> _Form:
    """Read JSON."""
    if not text.strip():
        return [], []
    try:
        source = json.loads(text)
    except RecursionError:  # at some 500 levels
        told = "this JSON is nested too deeply; give the paths of the classes"
        raise InputError(told) from None
    except ValueError as error:
        raise InputError(
            f"{text!r:.60} is not a tree in JSON: {error}; if it names a file, pass "
            "pathlib.Path(...) of it"
        ) from error
    if not isinstance(source, Mapping | list):
        raise InputError(f"a tree in JSON is an object or a list, got {text!r:.60}")
    return _read_form(source)


def _is_nested(source: Mapping[Any, Any]) -> bool:
    """Tell a node from a mapping to paths, in which a class may be called "name"."""
    children = source.get("children")
    has_nodes = isinstance(children, Sequence) and all(isinstance(c, Mapping) for c in children)
    return has_nodes or isinstance(source.get("name"), str)


def _read_nested(root: Mapping[str, Any]) -> _Form:
    parents: list[int] = []
    names: list[str] = []
    seen: set[int] = set()
    waiting: list[tuple[int, Any]] = [(-1, root)]
    while waiting:
        parent, node = waiting.pop()
        if not isinstance(node, Mapping):
            raise InputError(
                'a node must be a mapping with a "name", and "children" if it has any; '
                f"found {reprlib.repr(node)} below {names[parent] if names else ''!r}"
            )
        name = "" if node.get("name") is None else str(node["name"])
        if id(node) in seen:
            raise InputError(
                f"the node {name!r} occurs twice, the second time below {names[parent]!r}; "
                "in a tree, each has one parent"
            )
        seen.add(id(node))
        children = () if node.get("children") is None else node["children"]
        if isinstance(children, str | Mapping) or not isinstance(children, Sequence):
            kind = type(children).__name__
            raise InputError(f'the "children" of {name!r} must be a list of nodes, got {kind}')
        waiting += [(len(parents), child) for child in reversed(children)]
        parents.append(parent)
        names.append(name)
    return parents, names


def _read_paths(paths: Iterable[Any]) -> _Form:
    parents: list[int] = []
    names: list[str] = []
    number: dict[tuple[int, str], int] = {}
    classes: set[int] = set()
    for path in paths:
        node = -1
        for name in _steps(path):
            key = (node, name)
            if key not in number:
                number[key] = len(parents)
                parents.append(node)
                names.append(name)
            node = number[key]
        if node < 0:
            raise InputError("a path is empty; give the names from the root to the class")
        if node in classes:
            raise InputError(f"two paths lead to the class {names[node]!r}; give one per class")
        classes.add(node)
    for node in classes.intersection(parents):
        raise InputError(
            f"the class {names[node]!r} has others below it; only leaves can be classes, so "
            f"give it a leaf of its own, such as {names[node] + ' (other)'!r}"
        )
    return parents, names


def _steps(path: Any) -> list[str]:
    if isinstance(path, str) or not isinstance(path, Sequence | np.ndarray):
        raise InputError(
            "a path must be a sequence of names from the root to the class, "
            f"got {reprlib.repr(path)}"
        )
    return [str(name) for name in path]


def _paths_of(mapping: Mapping[Any, Any]) -> Iterator[list[str]]:
    """Return the path of each class, with the class itself at the end."""
    for label, path in mapping.items():
        above = _steps(path)
        yield above if above[-1:] == [str(label)] else [*above, str(label)]
