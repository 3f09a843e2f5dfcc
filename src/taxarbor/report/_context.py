"""All that the page shows, as plain values."""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._types import Array, IndexArray
from taxarbor.explain import Explanation
from taxarbor.hierarchy import Hierarchy, printable
from taxarbor.metrics._table import encode_labels, name_of
from taxarbor.report._png import EDGES, thumbnail

N_EXAMPLES = 5
N_FEATURES = 10
"""Shown per node."""

N_VALUES = 3
"""Features whose values are shown with an example."""

N_CLASSES = 8
"""Classes that have a colour of their own; the others are one, grey."""

LONGEST = 300
"""Characters of a row's name, which may be a text."""

NAMES = 350_000
"""Characters of all rows' names up to which a page holds them, so that they can be found."""

WEAKEST = 10_000
"""Rows up to which a page says of each where it was least clear."""

PICTURES = 350_000
"""Characters of all thumbnails of a page."""

BINS = np.linspace(-3.0, 3.0, 25)
"""Of margins; what is beyond is in the first and the last."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class Classes:
    """The class of each row, by number; the largest come first.

    Attributes
    ----------
    names : list of str
        What the classes are called.
    codes : int array of shape (n_rows,)
        The position of each row's class among them.
    """

    names: list[str]
    codes: IndexArray

    @classmethod
    def of(cls, labels: ArrayLike, n_rows: int) -> "Classes":
        """Return classes numbered by :func:`~taxarbor.metrics.encode_labels`, largest first."""
        codes, found = encode_labels(labels, n_rows)
        order = np.argsort(-np.bincount(codes), kind="stable")
        place = np.empty_like(order)
        place[order] = np.arange(len(order))
        return cls([printable(name_of(found[n])) for n in order], place[codes])


def build_context(
    explanation: Explanation,
    title: str,
    *,
    classes: Classes | None,
    images: NDArray[Any] | None,
    scores: dict[str, float],
    decides: str,
) -> dict[str, Any]:
    """Return all that the page shows, as JSON can hold it.

    Parameters
    ----------
    explanation : Explanation
        The tree and its reasons.
    title : str
        Of the page.
    classes : Classes or None
        Known classes of the rows.
    images : array or None
        A picture of each row.
    scores : dict of str to float
        How the tree agrees with the classes.
    decides : {"placed", "rules", "means"}
        What places the rows: all features, the rules, or, where there are none, the means.
    """
    tree = explanation.hierarchy
    used = tree.n_features.tolist()
    nodes = [_node(explanation, node, used, classes) for node in range(tree.n_nodes)]
    return {
        "title": printable(title),
        "n_rows": len(tree.order),
        "n_features": 0 if tree.means is None else tree.means.shape[1],
        "n_groups": tree.n_leaves,
        "height": tree.height,
        "nodes": nodes,
        "rows": _shown_rows(explanation, nodes, classes),
        "pictures": {} if images is None else _pictures(nodes, images),
        **_all_rows(explanation),
        "classes": [] if classes is None else classes.names,
        "scores": {name: _tidy(value) for name, value in scores.items()},
        "facts": _facts(tree),
        "decides": decides,
    }


def _node(
    explanation: Explanation, node: int, used: list[int], classes: Classes | None
) -> dict[str, Any]:
    tree, told = explanation.hierarchy, explanation.leading(node, N_FEATURES)
    parent = tree.parent(node)
    columns = [reason.feature for reason in tree.reasons(node, N_FEATURES)]
    examples = [
        [{"row": one["row"], "margin": _tidy(one["margin"])} for one in some]
        for some in (
            explanation.exemplars(node, N_EXAMPLES),
            explanation.borderline(node, N_EXAMPLES),
        )
    ]
    for one in (one for some in examples for one in some):
        one["values"] = _row_values(explanation, one["row"], columns[:N_VALUES])
    return {
        "parent": parent,
        "name": explanation.names[node],
        "start": int(tree.start[node]),
        "stop": int(tree.stop[node]),
        "birth": int(tree.birth[node]),
        "features": [
            {
                "name": printable(one["feature"]),
                "sign": 1 if one["direction"] == "higher" else -1,
                "share": _tidy(one["share"]),
                "mean": _tidy(one["mean"]),
                "rest": _tidy(one["rest_mean"]),
                "yes_no": bool(explanation.is_yes_no[column]),
            }
            for one, column in zip(told, columns, strict=True)
        ],
        "n_features": used[node],
        "n_leading": 0 if parent is None else used[parent],
        "fidelity": _tidy(float(tree.fidelity[node])),
        "note": printable(tree.notes[node]),
        "exemplars": examples[0],
        "borderline": examples[1],
        "margins": _histograms(explanation, node),
        "classes": [] if classes is None else _make_up(tree, node, classes),
    }


def _row_values(explanation: Explanation, row: int, columns: list[int]) -> list[float | None]:
    values = explanation.values(np.array([row]), np.array(columns, dtype=np.intp))[0]
    return [_tidy(float(value)) for value in values]


def _histograms(explanation: Explanation, node: int) -> list[list[int]]:
    """Count a split's rows by margin, per child; of two children, the first is mirrored."""
    tree = explanation.hierarchy
    children = tree.children(node)
    sides = (-1.0, 1.0) if len(children) == 2 else (1.0,) * len(children)
    return [
        _count(side * explanation.margins_within(node, child)).tolist()
        for child, side in zip(children, sides, strict=True)
    ]


def _count(margins: Array) -> IndexArray:
    counts: IndexArray = np.histogram(np.clip(margins, BINS[0], BINS[-1]), BINS)[0]
    return counts


def _make_up(tree: Hierarchy, node: int, classes: Classes) -> list[list[int]]:
    """Return the largest classes of a node and how many rows they have; -1 is all others."""
    counts = np.bincount(classes.codes[tree.rows(node)], minlength=len(classes.names))
    largest = np.argsort(-counts, kind="stable")[:N_CLASSES]
    pairs = [[int(code), int(counts[code])] for code in largest if counts[code]]
    rest = int(counts.sum()) - sum(count for _, count in pairs)
    return [*pairs, [-1, rest]] if rest else pairs


def _shown(nodes: list[dict[str, Any]]) -> list[int]:
    """Return the rows that any node shows: exemplars of leaves first, borderline rows last."""
    inner = {node["parent"] for node in nodes}
    leaves = [node for number, node in enumerate(nodes) if number not in inner]
    groups = [(leaves, "exemplars"), (nodes, "exemplars"), (nodes, "borderline")]
    rows = [one["row"] for some, kind in groups for node in some for one in node[kind]]
    return list(dict.fromkeys(rows))


def _shown_rows(
    explanation: Explanation, nodes: list[dict[str, Any]], classes: Classes | None
) -> dict[str, Any]:
    found = {}
    for row in _shown(nodes):
        name = printable(explanation.row_name(row))
        name = name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
        found[str(row)] = [name, -1 if classes is None else int(classes.codes[row])]
    return found


def _pictures(nodes: list[dict[str, Any]], images: NDArray[Any]) -> dict[str, str]:
    """Return thumbnails of the rows shown, as large and as many as there is room for."""
    rows = _shown(nodes)
    inner = {node["parent"] for node in nodes}
    n_leaves = sum(number not in inner for number in range(len(nodes)))
    first = rows[: n_leaves * N_EXAMPLES]
    for edge in EDGES:
        found = {row: thumbnail(images, row, edge) for row in first}
        if sum(map(len, found.values())) <= PICTURES:
            break
    pictures, room = {}, PICTURES
    for row in rows:
        picture = found.get(row) or thumbnail(images, row, edge)
        room -= len(picture)
        if room < 0:
            break
        pictures[str(row)] = picture
    return pictures


def _all_rows(explanation: Explanation) -> dict[str, Any]:
    """Return what rows are found by, in the order of the tree, if that is not too much.

    Names, as lines, or else numbers; and the least margin on the way of each row, with the
    node where it has it.
    """
    tree, names = explanation.hierarchy, explanation.row_names
    order = tree.order.tolist()
    lines, numbers = None, None
    if names is not None:
        if sum(map(len, names)) + len(names) <= NAMES:
            lines = "\n".join(printable(explanation.row_name(row)) for row in order)
    elif len(str(len(order))) * len(order) <= NAMES:
        numbers = order
    return {"names": lines, "order": numbers, "weakest": _weakest(explanation)}


def _weakest(explanation: Explanation) -> list[list[float | int | None]] | None:
    tree = explanation.hierarchy
    if len(tree.order) > WEAKEST or tree.n_leaves == 1:
        return None
    least = np.full(len(tree.order), np.inf)
    where = np.zeros(len(tree.order), dtype=np.intp)
    for node, margins in enumerate(explanation.margins):
        if margins is not None:
            own = slice(tree.start[node], tree.stop[node])
            where[own] = np.where(margins < least[own], node, where[own])
            least[own] = np.minimum(margins, least[own])
    pairs = zip(least.round(2).tolist(), where.tolist(), strict=True)
    return [[_tidy(margin), node] for margin, node in pairs]


def _facts(tree: Hierarchy) -> dict[str, float | None]:
    """Return what can be said of a tree without labels."""
    is_split = [rule is not None for rule in tree.rules]
    used, leaves = tree.n_features[is_split], tree.n_rows[tree.leaves]
    known = tree.fidelity[~np.isnan(tree.fidelity)]
    return {
        "smallest": int(leaves.min()),
        "largest": int(leaves.max()),
        "features_per_split": _tidy(float(np.median(used))) if len(used) else None,
        "fidelity": _tidy(float(known.mean())) if len(known) else None,
    }


def _tidy(value: float | None) -> float | None:
    """Return a number in few digits, which is all that is shown."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.4g}")
    return int(short) if short == int(short) and abs(short) < 1e15 else short
