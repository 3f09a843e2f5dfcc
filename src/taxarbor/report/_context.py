"""All that the page shows, as plain values."""

import math
import struct
import zlib
from base64 import b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxarbor._errors import printable
from taxarbor._images import small_image
from taxarbor._types import Array
from taxarbor.explain import Explanation
from taxarbor.hierarchy import Hierarchy

N_EXAMPLES = 5  # rows of each kind shown per node
N_FEATURES = 10  # features shown per node
N_VALUES = 3  # features whose values are shown with an example
N_CLASSES = 8  # classes that have a colour of their own; the others are one, grey
LONGEST = 300  # characters of a row's name, which may be a text
NAMES = 350_000
"""Characters of all rows' names up to which a page holds them, so that they can be found."""
WEAKEST = 10_000  # rows up to which a page says where each was least clear
PICTURES = 350_000  # characters of all thumbnails of a page
EDGES = (64, 48, 32, 24, 16)  # widths and heights, at most, that thumbnails may be reduced to
BINS = np.linspace(-3.0, 3.0, 25)  # of margins; those beyond are in the first and the last


def build_context(
    explanation: Explanation,
    title: str,
    *,
    images: NDArray[Any] | None,
    scores: dict[str, float],
    decides: str,
) -> dict[str, Any]:
    """Return all that the page shows, as JSON can hold it.

    ``decides`` says what places the rows: "placed", all features; "rules"; or "means".
    """
    tree, classes = explanation.hierarchy, explanation.classes
    used = tree.n_features_used.tolist()
    nodes = [_node(explanation, node, used) for node in range(tree.n_nodes)]
    return {
        "title": printable(title),
        "n_rows": len(tree.order),
        "n_features": 0 if tree.means is None else tree.means.shape[1],
        "n_clusters": tree.n_leaves,
        "height": tree.height,
        "nodes": nodes,
        "rows": _shown_rows(explanation, nodes),
        "pictures": {} if images is None else _pictures(nodes, images),
        **_all_rows(explanation),
        "classes": [] if classes is None else classes.names,
        "scores": {name: _tidy(value) for name, value in scores.items()},
        "facts": _facts(tree),
        "decides": decides,
    }


def _node(explanation: Explanation, node: int, used: list[int]) -> dict[str, Any]:
    tree, told = explanation.hierarchy, explanation.leading(node, N_FEATURES)
    parent = tree.parent(node)
    columns = [reason.feature for reason in tree.reasons(node, N_FEATURES)]
    shown = np.array(columns[:N_VALUES], dtype=np.intp)

    def examples(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        values = explanation.values(
            np.array([one["row"] for one in found], dtype=np.intp), shown
        )
        return [
            {"row": one["row"], "margin": _tidy(one["margin"]), "values": [*map(_tidy, own)]}
            for one, own in zip(found, values.tolist(), strict=True)
        ]

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
        "exemplars": examples(explanation.exemplars(node, N_EXAMPLES)),
        "borderline": examples(explanation.borderline(node, N_EXAMPLES)),
        "margins": _histograms(explanation, node),
        "classes": _make_up(explanation, node),
    }


def _histograms(explanation: Explanation, node: int) -> list[list[int]]:
    """Count a split's rows by margin, per child; of two children, the first is mirrored."""
    children = explanation.hierarchy.children(node)
    sides = (-1.0, 1.0) if len(children) == 2 else (1.0,) * len(children)
    counts: list[list[int]] = []
    for child, side in zip(children, sides, strict=True):
        margins: Array = side * explanation.margins_within(node, child)
        counts.append(np.histogram(np.clip(margins, BINS[0], BINS[-1]), BINS)[0].tolist())
    return counts


def _make_up(explanation: Explanation, node: int) -> list[tuple[int, int]]:
    """Return the largest classes of a node and how many rows they have; -1 is all others."""
    if explanation.classes is None:
        return []
    counts = explanation.classes.count(explanation.hierarchy.rows(node))
    rest = sum(count for _, count in counts[N_CLASSES:])
    return [*counts[:N_CLASSES], *([(-1, rest)] if rest else [])]


def _shown(nodes: list[dict[str, Any]]) -> list[int]:
    """Return the rows that any node shows: exemplars of leaves first, borderline rows last."""
    inner = {node["parent"] for node in nodes}
    leaves = [node for number, node in enumerate(nodes) if number not in inner]
    parts = [(leaves, "exemplars"), (nodes, "exemplars"), (nodes, "borderline")]
    rows = [one["row"] for some, kind in parts for node in some for one in node[kind]]
    return list(dict.fromkeys(rows))


def _shown_rows(explanation: Explanation, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    found, classes = {}, explanation.classes
    for row in _shown(nodes):
        name = printable(explanation.row_name(row))
        name = name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
        found[str(row)] = [name, -1 if classes is None else int(classes.codes[row])]
    return found


def _pictures(nodes: list[dict[str, Any]], images: NDArray[Any]) -> dict[str, str]:
    """Return thumbnails of the rows shown, as large and as many as fit on the page."""
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


# Pictures, without an imaging library


def thumbnail(images: NDArray[Any], row: int, edge: int) -> str:
    """Return a row's picture as the ``data:`` address of a PNG with edges up to this length."""
    data = b64encode(encode_png(small_image(images, row, edge))).decode("ascii")
    return f"data:image/png;base64,{data}"


def encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a picture of bytes, grey or with 3 or 4 colours, as a PNG file."""
    height, width = pixels.shape[:2]
    kind = {1: 0, 3: 2, 4: 6}[pixels.size // (height * width)]
    lines = pixels.reshape(height, -1)
    raw = np.concatenate([np.zeros((height, 1), dtype=np.uint8), lines], axis=1).tobytes()
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(*chunk) for chunk in chunks)


def _chunk(kind: bytes, body: bytes) -> bytes:
    check = zlib.crc32(kind + body)
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", check)


# Rows and facts


def _all_rows(explanation: Explanation) -> dict[str, Any]:
    """Return what rows are found by, in the order of the tree, if that is not too much.

    Names, as lines, or else numbers; and the least margin on the path of each row, with the
    node where that is.
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
    """Return what can be said about a tree without labels."""
    is_split = [rule is not None for rule in tree.rules]
    used, leaves = tree.n_features_used[is_split], tree.sizes[tree.leaves]
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
