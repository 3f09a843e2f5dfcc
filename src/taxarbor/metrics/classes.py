"""Known classes of rows, and trees of classes."""

import reprlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._errors import InputError, InputTypeError, printable, some
from taxarbor._frames import is_missing
from taxarbor._types import IndexArray, set_frozen

NO_LABEL = "(no label)"  # what rows without a class are called wherever classes are shown
MAX_NAMED = 5  # in an error message


@final
@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """Known classes: their names, the largest first, and the code of each row's, or -1."""

    names: tuple[str, ...]
    codes: IndexArray

    @classmethod
    def of(cls, y: ArrayLike, n_rows: int) -> Self:
        """Return the classes that labels name, or raise InputError.

        Labels may be anything hashable, in a list, an array, or a pandas or polars series;
        those that read the same, such as 1 and "1", are one class. None, NaN, NA, NaT, masked
        values and blank text are missing labels.
        """
        given = y.tolist() if np.ma.isMaskedArray(y) else y  # masked values become None
        # NumPy would turn ["a", nan] into two strings.
        values = np.asarray(given, dtype=object if isinstance(given, Sequence) else None)
        if values.shape != (n_rows,):
            expected = f"one class for each of the {n_rows} rows, shape ({n_rows},)"
            raise InputError(f"there must be {expected}; got shape {values.shape}")
        if values.dtype.kind == "S":
            values = np.char.decode(values)
        elif values.dtype.kind in "mM":  # times in nanoseconds would be listed as integers
            values = values.astype(f"{values.dtype.kind}8[us]")
        labels = values.tolist()
        try:  # looked up one by one: several times as fast as sorting strings
            name_of = {one: str(one) for one in dict.fromkeys(labels) if not is_missing(one)}
        except TypeError as error:
            raise InputError(f"a class must be a number or a name: {error}") from error
        if not name_of:
            raise InputError(f"none of the {n_rows} rows has a label: there are no classes")
        texts = [name_of.get(one) for one in labels]
        names = tuple(name for name, _ in Counter(texts).most_common() if name is not None)
        code_of: dict[str | None, int] = {name: code for code, name in enumerate(names)}
        return cls(names, np.array([code_of.get(text, -1) for text in texts], dtype=np.intp))

    def count(self, rows: IndexArray) -> list[tuple[int, int]]:
        """Count rows by class, the largest first; those without one come last, as -1."""
        counts = np.bincount(self.codes[rows] + 1, minlength=len(self.names) + 1)
        largest = [*np.argsort(-counts[1:], kind="stable").tolist(), -1]
        return [(code, int(counts[code + 1])) for code in largest if counts[code + 1]]

    def name(self, code: int) -> str:
        """Return the name of a class as it can be shown; for -1, that of rows without one."""
        return NO_LABEL if code < 0 else printable(self.names[code])


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClassTree:
    """A frozen tree whose leaves are classes, made by :meth:`read`.

    Attributes
    ----------
    parents, node_names : int array of shape (n_nodes,), tuple of str
        The parent, -1 for the root, and the name of each node; inner ones may be called "".
        Nodes are numbered from left to right, parents first.
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
            A tree, which is returned; nested mappings ``{"name": ..., "children": [...]}``,
            whose other keys do not matter; or a mapping from each class to its path, the names
            of the nodes above it from the root down. Nodes of two paths are the same if all
            names from the root on are. Nodes with a single child make branches longer.

        Raises
        ------
        ValueError, TypeError
            If the source does not make a tree, or is none of these.

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
            raise InputTypeError(f"a class tree must be a mapping; got {type(source).__name__}")
        parents: list[int] = []
        names: list[str] = []
        root: object = source if _is_node(source) else _nest(source)
        pending = [(-1, root)]
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
                f"tree: {_list(unknown)}; its leaves are {_list(self.names)}. Numbers must be "
                "made names: class_names[y]"
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
        for node in self.leaves_of(classes).tolist():
            path = [node]
            while (node := int(self.parents[node])) >= 0:
                path.append(node)
            names.append(self.node_names[path[max(len(path) - 1 - depth, 0)]])
        return names


ClassTreeLike: TypeAlias = ClassTree | Mapping[str, object]


def _list(values: Sequence[object]) -> str:
    """Return the first few values as code."""
    return some([f"{value!r:.40}" for value in values], MAX_NAMED)


def _is_node(source: Mapping[str, object]) -> bool:
    """Tell a node from a mapping to paths, in which a class may be called "name"."""
    children = source.get("children")
    has_nodes = isinstance(children, Sequence) and all(isinstance(c, Mapping) for c in children)
    return has_nodes or isinstance(source.get("name"), str)


def _nest(paths: Mapping[str, object]) -> dict[str, Any]:
    """Return nested mappings in which each class is below the names on its path."""
    top: dict[str, Any] = {"children": []}
    below: dict[tuple[int, str], dict[str, Any]] = {}  # by the node above and the name
    leaves = []
    for label, path in paths.items():
        if isinstance(path, str) or not isinstance(path, Sequence | np.ndarray):
            raise InputError(f"a path must be a list of names; got {reprlib.repr(path)}")
        node = top
        for name in (*map(str, path), str(label)):
            key = id(node), name
            if key not in below:
                below[key] = {"name": name, "children": []}
                node["children"].append(below[key])
            node = below[key]
        leaves.append(node)
    if inner := [leaf["name"] for leaf in leaves if leaf["children"]]:
        raise InputError(f"a class must not be on the path of another: {_list(inner)}")
    if len(top["children"]) != 1:
        names = _list([root["name"] for root in top["children"]])
        raise InputError(f"paths must begin with the same name, that of the root; got {names}")
    return dict(top["children"][0])
