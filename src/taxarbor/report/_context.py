"""All that the page shows, as plain values."""

import math
import struct
import zlib
from base64 import b64encode
from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxarbor._errors import printable
from taxarbor._format import format_column, format_number
from taxarbor._images import small_image
from taxarbor._types import Array, IndexArray
from taxarbor.explain import Explanation
from taxarbor.explain._names import whole_numbers
from taxarbor.explain._steps import row_width
from taxarbor.tables._encoding import Column, Encoding, Expanded
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._text import describe_decision

MANY = 250  # nodes from which on less is said of each
N_EXAMPLES = (5, 3)  # rows of each kind shown per node, of a few nodes and of many
N_FEATURES = (8, 4)  # features, likewise
N_VALUES = 3  # features whose values are shown with an example
N_CLASSES = 100  # classes of a node that are named, at most
N_NOISE = 50  # rows set apart that are listed
N_COLUMNS, N_NAMES = 200, 6  # of a table, and categories of each, that are listed
LONGEST = 300  # characters of a row's name, which may be a text
NAMES = 250_000
"""Characters that the packed names of all rows may take, so that they can be found."""
BLOCK = 4_000_000  # numbers of rows or of their probabilities held at a time
ROWS = 100_000  # rows up to which a page holds the number and the probability of each
WEAKEST = 10_000  # rows up to which a page says where each was least clear
PICTURES = 300_000  # characters of all thumbnails of a page
EDGES = (64, 48, 32, 24, 16)  # widths and heights, at most, that thumbnails may be reduced to
BINS = np.linspace(-3.0, 3.0, 25)  # of margins; those beyond are in the first and the last
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
KINDS = ("typical", "extreme", "borderline")
_NO_ROWS = {"order": None, "names": None, "speak": False, "weakest": None}
"""What is known of every row, where only a sample was seen."""


def build_context(
    explanation: Explanation,
    title: str,
    *,
    images: NDArray[Any] | None,
    scores: dict[str, float],
    outlier_scores: Array | None = None,
) -> dict[str, Any]:
    """Return all that the page shows, as JSON can hold it.

    With outlier scores, the rows that are noise are listed by these, the largest first.
    """
    taxonomy, classes, whole = explanation.taxonomy, explanation.classes, explanation.whole
    is_sample, absent = explanation.weights is not None, whole.tree.weights
    encoding, noise = taxonomy.encoding, np.flatnonzero(taxonomy.tree.labels < 0)
    far = np.zeros(0) if outlier_scores is None else outlier_scores[noise]
    if len(far):
        noise, far = noise[np.argsort(-far, kind="stable")], np.sort(far)[::-1]
    writer = _Nodes(explanation)
    nodes = [writer.describe(node) for node in range(taxonomy.tree.n_nodes)]
    return {
        "title": printable(title),
        "n_rows": int(whole.tree.sizes[0]),
        "n_noise": whole.tree.n_noise,
        "n_absent": 0 if absent is None else int((absent[whole.tree.rows(0)] == 0.0).sum()),
        "notes": [printable(f"{note}.") for note in explanation.notes],
        "noise_scores": [_tidy(score) for score in far[:N_NOISE].tolist()],
        "n_features": taxonomy.n_features if encoding is None else len(encoding.columns),
        "n_clusters": taxonomy.tree.n_leaves,
        "height": taxonomy.tree.height,
        "nodes": nodes,
        "features": [list(feature) for feature in writer.features],
        "rows": _shown_rows(explanation, nodes),
        "pictures": {} if images is None else _pictures(nodes, images),
        **(_NO_ROWS if is_sample else _all_rows(explanation, noise)),
        "probabilities": None
        if is_sample or not explanation.has_rules
        else _probabilities(explanation),
        "measured": taxonomy.temperature is not None,
        "classes": [] if classes is None else classes.names,
        "scores": {name: _tidy(value) for name, value in scores.items()},
        "facts": _facts(whole, taxonomy),
        "trust": _trust(taxonomy),
        "has_rules": explanation.has_rules,
        "n_elsewhere": _count_elsewhere(explanation),
        "table": None if encoding is None else _table(encoding),
    }


def _count_elsewhere(explanation: Explanation) -> int:
    """Count the rows in another cluster than the one that the rules send them to."""
    taxonomy, weights = explanation.taxonomy, explanation.weights
    if taxonomy.tree.n_leaves == 1:
        return 0
    is_elsewhere = explanation.least_margins < -1e-6
    found = (
        is_elsewhere
        if weights is None
        else weights[taxonomy.tree.rows(taxonomy.tree.root)] * is_elsewhere
    )
    return round(float(found.sum()))


def _table(encoding: Encoding) -> dict[str, Any]:
    """Say how a table was read: its columns, those that were left out, what was done."""
    columns = [
        [printable(one.label), _kind(one), _percent(one.missing) if one.missing else ""]
        for one in encoding.columns[:N_COLUMNS]
    ]
    dropped = [list(map(printable, one)) for one in encoding.dropped[:N_COLUMNS]]
    counts = len(encoding.columns), len(encoding.dropped)
    notes = list(map(printable, encoding.notes))
    return {"columns": columns, "dropped": dropped, "notes": notes, "counts": counts}


def _kind(column: Column) -> str:
    """Say what a column was read as."""
    if not column.categories:
        return "yes or no" if column.values == (0.0, 1.0) else column.kind
    names = [printable(name) for name in column.categories]
    rest = len(names) - N_NAMES
    listed = ", ".join(names[:N_NAMES]) + (f" and {rest} more" if rest > 0 else "")
    return f"{column.kind}: {listed}"


class _Nodes:
    """Describes one node after the other, and keeps the features that were named."""

    def __init__(self, explanation: Explanation) -> None:
        taxonomy, is_many = explanation.taxonomy, explanation.taxonomy.tree.n_nodes > MANY
        self.explanation, self.taxonomy = explanation, taxonomy
        self.n_examples, self.n_features = N_EXAMPLES[is_many], N_FEATURES[is_many]
        self.n_used = taxonomy.n_features_used.tolist()
        is_boolean = taxonomy.is_boolean
        self.is_boolean = (
            np.zeros(taxonomy.n_features or 0, dtype=bool) if is_boolean is None else is_boolean
        )
        self.features: dict[tuple[str, str, str], int] = {}  # name, mean and histogram of all

    def describe(self, node: int) -> dict[str, Any]:
        explanation, taxonomy = self.explanation, self.taxonomy
        parent, leads = taxonomy.tree.parent(node), explanation.leading(node, self.n_features)
        columns = [one["column"] for one in leads[:N_VALUES]]
        examples = explanation.examples(node, self.n_examples)
        values = {
            "parent": parent,
            "name": explanation.names[node],
            "start": int(explanation.whole.tree.start[node]),
            "stop": int(explanation.whole.tree.stop[node]),
            "birth": int(taxonomy.tree.birth[node]),
            "leads": self._leads(leads),
            "stands": self._stands(node),
            "n_features": self.n_used[node],
            "n_leading": 0
            if parent is None
            else self.n_used[taxonomy.tree.decided_by(parent) or 0],
            "decided": describe_decision(taxonomy, node),
            "note": printable(taxonomy.tree.notes[node]),
            **{kind: self._with_values(examples[kind], columns) for kind in KINDS},
            "margins": _histograms(explanation, node),
            "classes": _make_up(explanation, node),
        }
        if (trust := taxonomy.stability) is not None:
            values |= {
                "n_recovered": int(trust.n_recovered[node]),
                "returned": trust.describe(node),
                "left_out": _tidy(float(trust.left_out[node])),
                "stable": bool(trust.is_stable[node]),
            }
        return values

    def _leads(self, leads: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Say what sets a node apart from its siblings."""
        lines = []
        for one in leads:
            is_share = (
                one["direction"] in ("known", "unknown") or self.is_boolean[one["column"]]
            )
            mean, rest = _means((one["mean"], one["rest_mean"]), is_share)
            lines.append({
                "name": printable(one["feature"]), "text": printable(one["words"]),
                "sign": -1 if one["direction"] == "lower" else 1,
                "share": _tidy(one["share"]), "mean": mean, "rest": rest,
                **({"missing": _percent(one["missing"])} if one["missing"] else {}),
            })  # fmt: skip
        return lines

    def _stands(self, node: int) -> list[list[Any]]:
        """Say what sets a node apart from all rows: feature, words, effect, mean, histogram."""
        lines = []
        for one in self.explanation.standout(node, self.n_features):
            is_share = one["share"] is not None
            mean, every = _means((one["mean"], one["all_mean"]), is_share)
            feature = printable(one["feature"]), every, _spark(one["all_counts"])
            place = self.features.setdefault(feature, len(self.features))
            words = printable(one["words"])
            line = [place, words, _tidy(one["effect"]), mean, _spark(one["counts"])]
            lines.append(line + [_percent(one["missing"])] * (one["missing"] > 0.0))
        return lines

    def _with_values(
        self, examples: list[dict[str, Any]], columns: list[int]
    ) -> list[dict[str, Any]]:
        """Return rows with their values of some features."""
        rows = np.array([one["row"] for one in examples], dtype=np.intp)
        texts = [map(printable, self.explanation.cells(rows, column)) for column in columns]
        values: Any = list(zip(*texts, strict=True)) or [()] * len(rows)
        return [
            {"row": one["row"], "margin": _tidy(one.get("margin")), "values": text}
            for one, text in zip(examples, values, strict=True)
        ]


def _means(values: tuple[float | None, ...], is_share: bool) -> list[str]:
    """Put means into words, as shares where they are such; those of no row are unknown."""
    numbers = [math.nan if value is None else value for value in values]
    texts = list(map(_percent, numbers)) if is_share else format_column(numbers)
    return [
        "unknown" if value is None else text for value, text in zip(values, texts, strict=True)
    ]


def _percent(share: float) -> str:
    """Return a share in words; what is not all is never 100 %, and what is some never 0 %."""
    text = f"{abs(100.0 * share):.0f}"
    near = {"100": ">99", "0": "<1"} if 1e-6 < share < 1.0 - 1e-6 else {}
    return f"{near.get(text, text)} %"


def _spark(counts: list[int]) -> str:
    """Return a small histogram, a digit per bin."""
    heights: Array = np.asarray(counts, dtype=np.float64)
    steps = np.ceil((len(DIGITS) - 1) * heights / max(heights.max(initial=0.0), 1.0))
    return "".join(DIGITS[step] for step in steps.astype(int))


def _histograms(explanation: Explanation, node: int) -> list[list[int]]:
    """Count a split's rows by margin, per child; of two children, the first is mirrored."""
    children = explanation.taxonomy.tree.children(node)
    sides = (-1.0, 1.0) if len(children) == 2 else (1.0,) * len(children)
    counts: list[list[int]] = []
    for child, side in zip(children, sides, strict=True):
        margins: Array = side * explanation.margins_within(node, child)
        weights = explanation.weights
        own = None if weights is None else weights[explanation.taxonomy.tree.rows(child)]
        found = np.histogram(np.clip(margins, BINS[0], BINS[-1]), BINS, weights=own)[0]
        counts.append(whole_numbers(found).tolist())
    return counts


def _make_up(explanation: Explanation, node: int) -> list[tuple[int, int]]:
    """Return the classes of a node and how many rows they have.

    -1 is all that are too many, and -2 is rows without a class.
    """
    if explanation.classes is None:
        return []
    rows = explanation.taxonomy.tree.rows(node)
    counts = explanation.classes.count(rows, explanation.weights)
    known = [(code, count) for code, count in counts if code >= 0]
    rest = sum(count for _, count in known[N_CLASSES:])
    unknown = [(-2, count) for code, count in counts if code < 0]
    return [*known[:N_CLASSES], *([(-1, rest)] if rest else []), *unknown]


def _shown(nodes: list[dict[str, Any]]) -> list[int]:
    """Return the rows that any node shows: typical ones of leaves first, borderline last."""
    inner = {node["parent"] for node in nodes}
    leaves = [node for number, node in enumerate(nodes) if number not in inner]
    parts = [(leaves, KINDS[0]), *((nodes, kind) for kind in KINDS)]
    rows = [one["row"] for some, kind in parts for node in some for one in node[kind]]
    return list(dict.fromkeys(rows))


def _shown_rows(explanation: Explanation, nodes: list[dict[str, Any]]) -> dict[str, Any]:
    found, classes = {}, explanation.classes
    for row in _shown(nodes):
        name = printable(explanation.row_name(row))
        name = name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"
        place = int(explanation.places(np.array(row)))
        found[str(row)] = [name, -1 if classes is None else int(classes.codes[place])]
    return found


def _pictures(nodes: list[dict[str, Any]], images: NDArray[Any]) -> dict[str, str]:
    """Return thumbnails of the rows shown, as large and as many as fit on the page."""
    rows = _shown(nodes)
    inner = {node["parent"] for node in nodes}
    n_first = sum(len(node["typical"]) for n, node in enumerate(nodes) if n not in inner)
    first = rows[:n_first]
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
    file = b"\x89PNG\r\n\x1a\n"
    for name, body in chunks:
        file += struct.pack(">I", len(body)) + name + body
        file += struct.pack(">I", zlib.crc32(name + body))
    return file


# Rows and facts


def _all_rows(explanation: Explanation, noise: IndexArray) -> dict[str, Any]:
    """Return what is known of every row, in the order of the tree, if that is not too much.

    Numbers; names, as lines, and whether these are words; and the least margin on the path,
    with the node where that is. Numbers and names go on with those of noise.
    """
    taxonomy, names = explanation.taxonomy, explanation.row_names
    n_rows, packed = int(taxonomy.tree.sizes[0]), None
    order = np.append(taxonomy.tree.rows(0), noise)
    if names is not None:
        lines = (printable(explanation.row_name(row)) for row in order.tolist())
        packed = _pack("\n".join(lines).encode("utf-8", "replace"))
    return {
        "order": _pack_numbers(order) if n_rows <= ROWS else None,
        "names": packed if packed is not None and len(packed) <= NAMES else None,
        "speak": names is not None and _speak(names[:1000]),
        "weakest": _weakest(explanation),
    }


def _speak(names: tuple[str, ...]) -> bool:
    """Say whether names are words, and neither numbers nor codes of a few letters."""
    stems = {"".join(filter(str.isalpha, name)).lower() for name in names}
    return len(stems) > 0.5 * len(names) and len(set("".join(stems))) > 10


def _pack(raw: bytes) -> str:
    """Return bytes compressed, as text."""
    return b64encode(zlib.compress(raw, 9)).decode("ascii")


def _pack_numbers(values: NDArray[Any]) -> str:
    """Pack whole numbers: all first bytes, the lowest, then all second ones, and so on."""
    return _pack(values.astype("<u4").view(np.uint8).reshape(-1, 4).T.tobytes())


def _weakest(explanation: Explanation) -> dict[str, str] | None:
    taxonomy = explanation.taxonomy
    n_rows = int(taxonomy.tree.sizes[0])
    if n_rows > WEAKEST or taxonomy.tree.n_leaves == 1:
        return None
    least = np.full(n_rows, np.inf)
    where = np.zeros(n_rows, dtype=np.intp)
    for node, margins in enumerate(explanation.margins):
        if margins is not None:
            own = slice(taxonomy.tree.start[node], taxonomy.tree.stop[node])
            where[own] = np.where(margins < least[own], node, where[own])
            least[own] = np.minimum(margins, least[own])
    # Hundredths, from -300 to 300: what is further is as clear.
    hundredths = np.nan_to_num(100.0 * least.clip(-3.0, 3.0)).round() + 300
    return {"margin": _pack_numbers(hundredths), "node": _pack_numbers(where)}


def _probabilities(explanation: Explanation) -> str | None:
    """Return, in hundredths, how probable each node on a row's path is for the row.

    Leaf by leaf, within it from the root's child down, within that row by row; compressed.
    """
    taxonomy = explanation.taxonomy
    if taxonomy.tree.n_rows > ROWS or taxonomy.tree.n_leaves == 1:
        return None
    paths: IndexArray = np.zeros((taxonomy.tree.n_leaves, taxonomy.tree.height), dtype=np.intp)
    for label, leaf in enumerate(taxonomy.tree.leaves.tolist()):
        paths[label, : taxonomy.tree.depth[leaf]] = taxonomy.tree.path(leaf)[1:]
    found = np.empty((taxonomy.tree.n_rows, taxonomy.tree.height), dtype=np.uint8)
    X = explanation.data
    step = max(1, BLOCK // max(int(row_width(X)), taxonomy.tree.n_nodes))
    for first in range(0, taxonomy.tree.n_rows, step):
        some = slice(first, first + step)
        part = taxonomy.node_proba(taxonomy.predict_proba(Expanded(X[some], None)))
        own = np.take_along_axis(part, paths[taxonomy.tree.labels[some]], axis=1)
        found[some] = np.clip(100.0 * own, 0.0, 100.0).round()
    levels = [
        found[taxonomy.tree.rows(leaf), : taxonomy.tree.depth[leaf]].T.tobytes()
        for leaf in taxonomy.tree.leaves
    ]
    return _pack(b"".join(levels))


def _trust(taxonomy: Taxonomy) -> dict[str, Any] | None:
    trust = taxonomy.stability
    if trust is None:
        return None
    curve = trust.curve
    points = zip(curve.n_clusters, curve.stability, curve.reference, strict=True)
    return {
        "n_refits": int(trust.n_refits),
        "suggested": int(trust.suggested),
        "verdict": curve.verdict(),
        "left_out": trust.describe_left_out(),
        "curve": [[int(n), _tidy(float(own)), _tidy(float(ref))] for n, own, ref in points],
    }


def _facts(whole: Taxonomy, taxonomy: Taxonomy) -> dict[str, Any]:
    """Return what can be said about a tree without labels, given it as it is explained, too."""
    is_split = [rule is not None for rule in taxonomy.tree.rules]
    used, leaves = taxonomy.n_features_used[is_split], whole.tree.sizes[whole.tree.leaves]
    return {
        "smallest": int(leaves.min()),
        "largest": int(leaves.max()),
        "features_per_split": format_number(float(np.median(used))) if len(used) else None,
    }


def _tidy(value: float | None) -> float | None:
    """Return a number in few digits, which is all that is shown."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.4g}")
    return int(short) if short == int(short) and abs(short) < 1e15 else short
