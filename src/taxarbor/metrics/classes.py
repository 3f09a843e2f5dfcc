"""Known classes of rows, and trees of classes."""

import reprlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self, TypeAlias, TypedDict, final

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._errors import InputError, InputTypeError, printable, some
from taxarbor._frames import is_missing
from taxarbor._types import IndexArray, set_frozen

NO_LABEL = "(no label)"
"""What rows without a class are called wherever classes are shown."""
MAX_NAMED = 5
"""Names in an error message, at most."""


def encode_labels(y: ArrayLike, n_rows: int) -> tuple[IndexArray, tuple[str, ...]]:
    """Return the number of each row's class, -1 if it has none, and the names of the classes.

    Labels may be anything hashable, in a list, an array, or a pandas or polars series; those
    that read the same, such as 1 and "1", are one class. None, NaN, NA, NaT, masked values and
    blank text are missing labels.
    """
    given = y.tolist() if np.ma.isMaskedArray(y) else y  # masked values become None
    # NumPy would turn ["a", nan] into two strings.
    values = np.asarray(given, dtype=object if isinstance(given, Sequence) else None)
    if values.shape != (n_rows,):
        raise InputError(
            f"there must be one class for each of the {n_rows} rows of the tree, an array "
            f"of shape ({n_rows},); got shape {values.shape}"
        )
    if values.dtype.kind == "S":
        values = np.char.decode(values)
    elif values.dtype.kind in "mM":  # times in nanoseconds would be listed as integers
        values = values.astype(f"{values.dtype.kind}8[us]")
    labels = values.tolist()
    try:  # looked up one by one: several times as fast as sorting strings
        name_of = {one: str(one) for one in dict.fromkeys(labels) if not is_missing(one)}
    except TypeError as error:
        raise InputError(
            f"there must be one class per row, such as a number or a name: {error}"
        ) from error
    if not name_of:
        raise InputError(f"none of the {n_rows} rows has a label: there are no classes")
    names = tuple(dict.fromkeys(name_of.values()))
    number = {name: code for code, name in enumerate(names)}
    code_of = {label: number[name] for label, name in name_of.items()}
    codes = np.fromiter((code_of.get(one, -1) for one in labels), dtype=np.intp, count=n_rows)
    return codes, names


@final
@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Known classes: their names, the largest first, and the code of each row's, or -1."""

    names: tuple[str, ...]
    codes: IndexArray

    @classmethod
    def of(cls, labels: ArrayLike, n_rows: int) -> Self:
        """Return the classes that these labels name, or raise ValueError."""
        codes, classes = encode_labels(labels, n_rows)
        order = np.argsort(-np.bincount(codes + 1)[1:], kind="stable")
        rank = np.full(len(order) + 1, -1)
        rank[order] = np.arange(len(order))
        return cls(tuple(printable(classes[code]) for code in order), rank[codes])

    def count(self, rows: IndexArray) -> list[tuple[int, int]]:
        """Return the classes of some rows and how many are of each, the largest first.

        Rows without a class come last, as class -1.
        """
        counts = np.bincount(self.codes[rows] + 1, minlength=len(self.names) + 1)
        largest = [*np.argsort(-counts[1:], kind="stable").tolist(), -1]
        return [(code, int(counts[code + 1])) for code in largest if counts[code + 1]]

    def name(self, code: int) -> str:
        """Return the name of a class; for -1, that of rows without one."""
        return NO_LABEL if code < 0 else self.names[code]


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
        leaves = np.setdiff1d(np.arange(len(self.parents)), self.parents)
        names = tuple(self.node_names[leaf] for leaf in leaves)
        if "" in names:
            raise InputError("a leaf, that is, a node without children, has no name")
        if repeated := [name for name, count in Counter(names).items() if count > 1]:
            raise InputError(f"leaves must have different names; repeated: {_list(repeated)}")
        set_frozen(self, parents=self.parents, leaves=leaves, names=names)

    def __repr__(self) -> str:
        return f"ClassTree(n_leaves={len(self.leaves)}, n_nodes={len(self.parents)})"

    @classmethod
    def read(cls, source: "ClassTreeLike") -> Self:
        """Return the tree that nested mappings or paths describe.

        Parameters
        ----------
        source : ClassTree or mapping
            A tree, which is returned; nested mappings ``{"name": ..., "children": [...]}``, as
            ``json.loads`` returns, whose other keys do not matter; or a mapping from each class
            to its path, the names of the nodes above it from the root down. Nodes of two paths
            are the same if all names from the root on are. Nodes with a single child are kept:
            they make branches longer.

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
        if not isinstance(source, Mapping):
            raise InputTypeError(
                "a tree of classes must be nested mappings, or a mapping from each class to "
                f"its path; got {type(source).__name__}"
            )
        parents: list[int] = []
        names: list[str] = []
        pending: list[tuple[int, object]] = [
            (-1, source if _is_node(source) else _nest(source))
        ]
        while pending:
            parent, node = pending.pop()
            children = (node.get("children") or ()) if isinstance(node, Mapping) else ""
            if isinstance(children, str) or not isinstance(children, Sequence):
                above = names[parent] if names else ""
                raise InputError(
                    'a node must be a mapping with a "name", and a list of "children" if it '
                    f"has any; got {reprlib.repr(node)} below {above!r}"
                )
            pending += [(len(parents), child) for child in reversed(children)]
            parents.append(parent)
            name = node.get("name") if isinstance(node, Mapping) else None
            names.append("" if name is None else str(name))
        return cls(np.array(parents, dtype=np.intp), tuple(names))

    def leaves_of(self, classes: Sequence[object]) -> IndexArray:
        """Return the id of the leaf of each class, an int array of shape (n_classes,).

        Classes are looked up as text; ValueError is raised if one is not the name of a leaf.

        Examples
        --------
        >>> tree = ClassTree.read({"cat": ["animal", "mammal"], "owl": ["animal"]})
        >>> tree.leaves_of(["owl", "cat"])
        array([3, 2])
        """
        number = dict(zip(self.names, self.leaves.tolist(), strict=True))
        if unknown := [label for label in classes if str(label) not in number]:
            raise InputError(
                f"{len(unknown)} of the {len(classes)} classes in y are not leaves of the true "
                f"tree: {_list(unknown)}; its leaves are {_list(self.names)}. If y numbers the "
                "classes, pass their names: class_names[y]"
            )
        return np.array([number[str(label)] for label in classes], dtype=np.intp)

    def ancestors_of(self, classes: Sequence[object], depth: int) -> list[str]:
        """Return the name of each class's ancestor at a depth, or its own if it is no deeper.

        Takes and raises what :meth:`leaves_of` does; the root has depth 0.

        Examples
        --------
        >>> tree = ClassTree.read({"cat": ["animal", "mammal"], "owl": ["animal"]})
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


ClassTreeLike: TypeAlias = ClassTree | Mapping[str, object]


class _Node(TypedDict):
    name: str
    children: list["_Node"]


def _list(values: Sequence[object]) -> str:
    """Return the first few values as code."""
    return some([f"{value!r:.40}" for value in values], MAX_NAMED)


def _is_node(source: Mapping[str, object]) -> bool:
    """Tell a node from a mapping to paths, in which a class may be called "name"."""
    children = source.get("children")
    has_nodes = isinstance(children, Sequence) and all(isinstance(c, Mapping) for c in children)
    return has_nodes or isinstance(source.get("name"), str)


def _nest(paths: Mapping[str, object]) -> _Node:
    """Return nested mappings in which each class is below the names on its path."""
    top = _Node(name="", children=[])
    below: dict[tuple[int, str], _Node] = {}  # by the node above and the name
    leaves: list[_Node] = []
    for label, path in paths.items():
        if isinstance(path, str) or not isinstance(path, Sequence | np.ndarray):
            raise InputError(
                "a path must be a sequence of names, from the root to the node above the "
                f"class; got {reprlib.repr(path)}"
            )
        node = top
        for name in (*map(str, path), str(label)):
            key = id(node), name
            if key not in below:
                below[key] = _Node(name=name, children=[])
                node["children"].append(below[key])
            node = below[key]
        leaves.append(node)
    if inner := [leaf["name"] for leaf in leaves if leaf["children"]]:
        raise InputError(f"a class must not be on the path of another: {_list(inner)}")
    if len(roots := top["children"]) != 1:
        names = _list([root["name"] for root in roots])
        raise InputError(f"paths must begin with the same name, that of the root; got {names}")
    return roots[0]
