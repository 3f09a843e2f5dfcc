"""The forms in which people keep a tree of classes.

Each function returns the parent of each node, -1 for a root, and its name, "" where it has
none. Whether that makes a tree is checked by ClassTree. No function recurses.
"""

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from taxarbor.metrics._json_text import read_json
from taxarbor.metrics._newick import read_newick


def read_form(source: Any) -> tuple[list[int], list[str]]:
    """Read anything but files."""
    if isinstance(source, str):
        return read_text(source)
    if isinstance(source, Mapping):
        return read_nested(source) if _is_nested(source) else read_paths(paths_of(source))
    if type(source).__module__.partition(".")[0] == "networkx":
        return read_graph(source)
    if isinstance(source, Sequence | np.ndarray):
        return read_paths(source)
    raise TypeError(
        "a tree of classes must be a ClassTree, nested mappings, a mapping from classes to "
        "paths, a sequence of paths, text in Newick format or JSON, a pathlib.Path or a "
        f"networkx.DiGraph; got {type(source).__name__}"
    )


def read_text(text: str) -> tuple[list[int], list[str]]:
    """Read Newick or JSON."""
    start = text.lstrip()[:1]
    if start == "{":
        try:
            return read_form(read_json(text))
        except ValueError as error:
            raise ValueError(f"not a tree in JSON: {error}") from error
    if start and not set("(;") & set(text):
        raise ValueError(
            f"{text!r:.60} is neither Newick, which has parentheses, nor JSON, which begins "
            "with a brace; if it names a file, pass pathlib.Path(...) of it"
        )
    return read_newick(text) if start else ([], [])


def _is_nested(source: Mapping[Any, Any]) -> bool:
    """Tell a node from a mapping to paths, in which a class may be called "name"."""
    children = source.get("children")
    return isinstance(source.get("name"), str) or (
        isinstance(children, Sequence) and all(isinstance(c, Mapping) for c in children)
    )


def read_nested(root: Mapping[str, Any]) -> tuple[list[int], list[str]]:
    """Read nodes that are mappings with a ``"name"``, and inner ones with ``"children"``."""
    parents: list[int] = []
    names: list[str] = []
    seen: set[int] = set()
    waiting: list[tuple[int, Any]] = [(-1, root)]
    while waiting:
        parent, node = waiting.pop()
        if not isinstance(node, Mapping):
            raise ValueError(
                'a node must be a mapping with a "name", and "children" if it has any; '
                f"found {reprlib.repr(node)} below {_chain(parents, names, parent)}"
            )
        name = "" if node.get("name") is None else str(node["name"])
        if id(node) in seen:
            raise ValueError(
                f"the node {name!r} occurs twice, the second time below "
                f"{_chain(parents, names, parent)}; in a tree, each has one parent"
            )
        seen.add(id(node))
        parents.append(parent)
        names.append(name)
        children = _children(node, name)
        waiting += [(len(parents) - 1, child) for child in reversed(children)]
    return parents, names


def _children(node: Mapping[str, Any], name: str) -> Sequence[Any]:
    children = node.get("children")
    if children is None:
        return ()
    if isinstance(children, str | Mapping) or not isinstance(children, Sequence):
        raise ValueError(
            f'the "children" of {name!r} must be a list of nodes, got {type(children).__name__}'
        )
    return children


def _chain(parents: list[int], names: list[str], node: int) -> str:
    """Say where a node is, by its last few ancestors."""
    chain: list[str] = []
    while node >= 0 and len(chain) < 4:
        chain.append(repr(names[node]))
        node = parents[node]
    return " > ".join(reversed(chain))


def read_paths(paths: Iterable[Any]) -> tuple[list[int], list[str]]:
    """Read paths, each the names of the nodes from the root to a class.

    Nodes are the same if all names from the root on are.
    """
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
        if node in classes:
            raise ValueError(f"two paths lead to the class {names[node]!r}; give one per class")
        classes.add(node)
    for node in classes.intersection(parents):
        raise ValueError(
            f"the class {names[node]!r} has others below it; only leaves can be classes, so "
            f"give it a leaf of its own, such as {names[node] + ' (other)'!r}"
        )
    return parents, names


def _steps(path: Any) -> list[str]:
    if isinstance(path, str) or not isinstance(path, Sequence | np.ndarray):
        raise ValueError(
            "a path must be a sequence of names from the root to the class, "
            f"got {reprlib.repr(path)}"
        )
    if not len(path):
        raise ValueError("a path is empty; it must hold the names from the root to the class")
    return [str(name) for name in path]


def paths_of(mapping: Mapping[Any, Any]) -> Iterable[list[str]]:
    """Return the path of each class, with the class itself at the end."""
    for label, path in mapping.items():
        above = (
            [] if isinstance(path, Sequence | np.ndarray) and not len(path) else _steps(path)
        )
        yield above if above and above[-1] == str(label) else [*above, str(label)]


def read_graph(graph: Any) -> tuple[list[int], list[str]]:
    """Read a networkx graph with edges from parent to child; nodes are named as they read."""
    if not graph.is_directed():
        raise ValueError("the graph must be directed, with edges from parent to child")
    nodes = list(graph.nodes)
    number = {node: position for position, node in enumerate(nodes)}
    parents = [-1] * len(nodes)
    for parent, child in graph.edges():
        if parents[number[child]] >= 0:
            raise ValueError(
                f"the node {child!r} has two parents, {nodes[parents[number[child]]]!r} and "
                f"{parent!r}; in a tree, each has one"
            )
        parents[number[child]] = number[parent]
    return parents, [str(node) for node in nodes]
