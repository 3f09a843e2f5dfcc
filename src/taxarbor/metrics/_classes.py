"""The class of each row, and the tree of the classes. Nothing here recurses."""

import json
import os
import reprlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._errors import FileFormatError, InputError, InputTypeError, some
from taxarbor._frames import is_missing
from taxarbor._types import IndexArray, set_frozen

NO_LABEL = "(no label)"
"""What rows without a class are called wherever classes are shown."""
MAX_NAMED = 5
"""Names in an error message, at most."""

# The class of each row


def encode_labels(y: ArrayLike, n_rows: int) -> tuple[IndexArray, tuple[object, ...]]:
    """Return the number of each row's class, -1 if it has none, and the label of each class.

    Labels may be anything hashable, in a list, an array, or a pandas or polars series; those
    that read the same, such as 1 and "1", are one class. None, NaN, NA, NaT, masked values and
    blank text are missing labels.
    """
    values = _as_array(y)
    if values.shape != (n_rows,):
        raise InputError(
            f"there must be one class for each of the {n_rows} rows of the tree, an array "
            f"of shape ({n_rows},); got shape {values.shape}"
        )
    labels = values.tolist()
    try:  # looked up one by one: several times as fast as sorting strings
        code_of = dict.fromkeys(labels, -1)
    except TypeError as error:
        raise InputError(
            f"there must be one class per row, such as a number or a name: {error}"
        ) from error
    number: dict[str, int] = {}
    classes: list[object] = []
    for label in code_of:
        name = name_of(label)
        if is_missing(name if isinstance(label, bytes) else label):
            continue
        if name not in number:
            number[name] = len(classes)
            classes.append(label)
        code_of[label] = number[name]
    if not classes:
        raise InputError(f"none of the {n_rows} rows has a label: there are no classes")
    codes = np.fromiter(map(code_of.__getitem__, labels), dtype=np.intp, count=n_rows)
    return codes, tuple(classes)


def name_of(label: object) -> str:
    """Return a label as text, as it is looked up among the names of a tree."""
    return label.decode() if isinstance(label, bytes) else str(label)


def _as_array(y: ArrayLike) -> NDArray[Any]:
    if isinstance(y, np.ma.MaskedArray):
        objects = y.data.astype(object)
        objects[np.ma.getmaskarray(y)] = None
        return objects
    # NumPy would turn ["a", nan] into two strings.
    values = np.asarray(y, dtype=object if isinstance(y, Sequence) else None)
    # Times in nanoseconds would be listed as integers.
    return values.astype(f"{values.dtype.kind}8[us]") if values.dtype.kind in "mM" else values


# The tree of the classes


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClassTree:
    """A frozen tree whose leaves are classes, made by :meth:`read`.

    Nodes are numbered from left to right, parents first.

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
        If there is no node, a node comes before its parent, or leaves have no name or the same
        one.

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
        parents, node_names = np.array(self.parents, dtype=np.intp), tuple(self.node_names)
        numbers = np.arange(len(node_names))
        is_tree = len(parents) and parents.shape == numbers.shape and parents[0] == -1
        if not is_tree or (parents[1:] < 0).any() or (parents >= numbers).any():
            raise InputError("each node needs a name and, but for the first, a node before it")
        leaves = np.setdiff1d(numbers, parents)
        names = tuple(node_names[leaf] for leaf in leaves)
        if "" in names:
            raise InputError("a leaf, that is, a node without children, has no name")
        if repeated := [name for name, count in Counter(names).items() if count > 1]:
            raise InputError(f"leaves must have different names; repeated: {_list(repeated)}")
        set_frozen(self, parents=parents, node_names=node_names, leaves=leaves, names=names)

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
    def read(cls, source: "ClassTreeLike") -> Self:
        """Return the tree that nested mappings, paths or a JSON file describe.

        Parameters
        ----------
        source : ClassTree, mapping, sequence or Path
            One of

            - a tree, which is returned;
            - nested mappings ``{"name": ..., "children": [...]}``; other keys do not matter;
            - a mapping from each class to its path, the names from the root down to the class
              itself or to the node above it;
            - a sequence of such paths, each of which ends with its class. Nodes of two
              paths are the same if all names from the root on are;
            - a ``Path`` to a JSON file, in UTF-8, with any of these.

            Nodes with a single child are kept: they make branches longer.

        Raises
        ------
        ValueError
            If the source does not make a tree; the message says why.
        TypeError
            If it is none of these.

        Examples
        --------
        >>> paths = {"cat": ["animal", "mammal"], "owl": ["animal", "bird"]}
        >>> ClassTree.read(paths).node_names
        ('animal', 'mammal', 'cat', 'bird', 'owl')
        >>> ClassTree.read({"children": [{"name": "cat"}, {"name": "owl"}]}).names
        ('cat', 'owl')
        """
        if isinstance(source, cls):
            return source
        if isinstance(source, os.PathLike):
            return cls._read_file(Path(source))
        if isinstance(source, Mapping):
            return cls._walk(source if _is_node(source) else _join(_paths_of(source)))
        if isinstance(source, Sequence | np.ndarray) and not isinstance(source, str):
            return cls._walk(_join(source))
        raise InputTypeError(
            "a tree of classes must be a ClassTree, nested mappings, a mapping from classes to "
            "paths, a sequence of paths, or a pathlib.Path to a JSON file; got "
            f"{type(source).__name__}"
        )

    @classmethod
    def _read_file(cls, path: Path) -> Self:
        try:
            return cls.read(json.loads(path.read_text(encoding="utf-8-sig")))
        except RecursionError:  # at some 500 levels
            message = "is nested too deeply; write the path of each class instead"
            raise FileFormatError(f"{path} {message}") from None
        except ValueError as error:
            raise FileFormatError(f"{path} is not a tree in JSON: {error}") from error

    @classmethod
    def _walk(cls, root: Mapping[str, Any]) -> Self:
        """Take the nodes of nested mappings from left to right, parents first."""
        parents: list[int] = []
        names: list[str] = []
        seen: set[int] = set()
        pending: list[tuple[int, object]] = [(-1, root)]
        while pending:
            parent, node = pending.pop()
            above = names[parent] if names else ""
            if not isinstance(node, Mapping):
                raise InputError(
                    'a node must be a mapping with a "name", and "children" if it has any; '
                    f"got {reprlib.repr(node)} below {above!r}"
                )
            name = "" if node.get("name") is None else str(node["name"])
            if id(node) in seen:
                raise InputError(f"{name!r} occurs twice, the second time below {above!r}")
            seen.add(id(node))
            children = () if node.get("children") is None else node["children"]
            if isinstance(children, str) or not isinstance(children, Sequence):
                got = type(children).__name__
                raise InputError(f'"children" of {name!r} must be a list of nodes, got {got}')
            pending += [(len(parents), child) for child in reversed(children)]
            parents.append(parent)
            names.append(name)
        return cls(np.array(parents), tuple(names))

    def leaves_of(self, classes: Sequence[object]) -> IndexArray:
        """Return the id of the leaf of each class, an int array of shape (n_classes,).

        Classes are looked up as text; ValueError is raised if one is not the name of a leaf.

        Examples
        --------
        >>> tree = ClassTree.read([["animal", "mammal", "cat"], ["animal", "owl"]])
        >>> tree.leaves_of(["owl", "cat"])
        array([3, 2])
        """
        number = dict(zip(self.names, self.leaves.tolist(), strict=True))
        if unknown := [label for label in classes if name_of(label) not in number]:
            raise InputError(
                f"{len(unknown)} of the {len(classes)} classes in y are not leaves of the true "
                f"tree: {_list(unknown)}; its leaves are {_list(self.names)}. If y numbers the "
                "classes, pass their names: class_names[y]"
            )
        return np.array([number[name_of(label)] for label in classes], dtype=np.intp)

    def ancestors_of(self, classes: Sequence[object], depth: int) -> list[str]:
        """Return the name of each class's ancestor at a depth, or its own if it is no deeper.

        Takes and raises what :meth:`leaves_of` does; the root has depth 0.

        Examples
        --------
        >>> tree = ClassTree.read([["animal", "mammal", "cat"], ["animal", "owl"]])
        >>> tree.ancestors_of(["owl", "cat"], 1)
        ['owl', 'mammal']
        """
        names = []
        for leaf in self.leaves_of(classes).tolist():
            path = [leaf]
            while self.parents[path[-1]] >= 0:
                path.append(int(self.parents[path[-1]]))
            names.append(self.node_names[path[::-1][min(depth, len(path) - 1)]])
        return names


ClassTreeLike: TypeAlias = (
    ClassTree | Mapping[str, Any] | Sequence[Any] | NDArray[Any] | os.PathLike[str]
)


def _list(values: Sequence[object]) -> str:
    """Return the first few values as code."""
    return some([f"{value!r:.40}" for value in values], MAX_NAMED)


def _is_node(source: Mapping[str, object]) -> bool:
    """Tell a node from a mapping to paths, in which a class may be called "name"."""
    children = source.get("children")
    has_nodes = isinstance(children, Sequence) and all(isinstance(c, Mapping) for c in children)
    return has_nodes or isinstance(source.get("name"), str)


def _join(paths: Iterable[object]) -> dict[str, Any]:
    """Return nested mappings that have these paths from the root to a leaf."""
    top: dict[str, Any] = {"children": []}
    below: dict[tuple[int, str], dict[str, Any]] = {}  # by the node above and the name
    ends: list[dict[str, Any]] = []
    for path in paths:
        node = top
        for name in _names_on(path):
            key = id(node), name
            if key not in below:
                below[key] = {"name": name, "children": []}
                node["children"].append(below[key])
            node = below[key]
        ends.append(node)
    if any(end is top for end in ends) or not ends:
        raise InputError("a path is empty; give the names from the root to each class")
    n_paths = Counter(map(id, ends))
    if wrong := [end["name"] for end in ends if end["children"] or n_paths[id(end)] > 1]:
        raise InputError(
            f"a path must lead to a leaf, and no other to the same; wrong: {_list(wrong)}"
        )
    if len(top["children"]) > 1:
        roots = _list([root["name"] for root in top["children"]])
        raise InputError(f"paths must begin with the same name, that of the root; got {roots}")
    root: dict[str, Any] = top["children"][0]
    return root


def _names_on(path: object) -> list[str]:
    if isinstance(path, str) or not isinstance(path, Sequence | np.ndarray):
        raise InputError(
            "a path must be a sequence of names from the root to the class, "
            f"got {reprlib.repr(path)}"
        )
    return [str(name) for name in path]


def _paths_of(mapping: Mapping[str, object]) -> Iterator[list[str]]:
    """Yield the path of each class, with the class itself at the end."""
    for label, path in mapping.items():
        above = _names_on(path)
        yield above if above[-1:] == [str(label)] else [*above, str(label)]
