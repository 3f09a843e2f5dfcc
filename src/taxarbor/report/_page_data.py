"""All that the page shows, as plain values."""

import struct
import zlib
from base64 import b64encode
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._errors import InputError, printable
from taxarbor._number_text import format_means, format_number, format_share, round_digits
from taxarbor._types import Array, IndexArray
from taxarbor.explain import Explanation
from taxarbor.explain._explanation import EXAMPLES
from taxarbor.explain._feature_table import count_rows, row_width
from taxarbor.tables._encoding import Column, Encoding, FeatureRows
from taxarbor.taxonomy import Stability
from taxarbor.taxonomy._text import describe_decision
from taxarbor.tree._edit_tree import sum_below

MANY_NODES = 250
"""Nodes above which less is shown of each."""
N_EXAMPLES, N_FEATURES = (5, 3), (8, 4)
"""Rows of each kind, and features, that are shown per node: of few nodes and of many."""
N_EXAMPLE_FEATURES = 3
"""Features whose values are shown with an example."""
MAX_CLASSES, MAX_NOISE, MAX_COLUMNS, MAX_CATEGORIES = 100, 50, 200, 6
"""Classes of a node, rows that are noise, columns, and categories of each, that are listed."""
NAME_LENGTH = 300
"""Characters of a row's name, which may be a text."""
MAX_NAMES_LENGTH = 250_000
"""Characters that the packed names of all rows may take, so that they can be searched."""
BLOCK_SIZE = 4_000_000
"""Numbers of rows or of their probabilities held at a time."""
MAX_ROWS, MAX_LEAST_MARGINS = 100_000, 10_000
"""Rows up to which the page has the number and probability of each, and its least margin."""
MAX_PICTURES_LENGTH, THUMBNAIL_EDGES = 300_000, (64, 48, 32, 24, 16)
"""Characters of all thumbnails, and the widths and heights that these may be reduced to."""
MARGIN_BINS = np.linspace(-3.0, 3.0, 25)
"""Margins beyond are in the first and the last bin."""
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

Values = dict[str, Any]
"""What JSON can hold."""


def build_context(
    explanation: Explanation,
    title: str,
    *,
    images: NDArray[Any] | None,
    scores: dict[str, float],
    outlier_scores: Array | None = None,
) -> Values:
    """Return all that the page shows, as JSON can hold it.

    With outlier scores, noise is listed by these, the largest first.
    """
    taxonomy, whole = explanation.taxonomy, explanation.whole
    tree, weights, encoding = whole.tree, whole.tree.weights, taxonomy.encoding
    noise, classes = np.flatnonzero(taxonomy.tree.labels < 0), explanation.classes
    noise_scores = np.zeros(0) if outlier_scores is None else outlier_scores[noise]
    if len(noise_scores):
        order = np.argsort(-noise_scores, kind="stable")
        noise, noise_scores = noise[order], noise_scores[order]
    writer = _NodeWriter(explanation)
    nodes = [writer.describe(node) for node in range(tree.n_nodes)]
    is_split = [rule is not None for rule in taxonomy.tree.rules]
    used, sizes = taxonomy.n_features_used[is_split], tree.sizes[tree.leaves]
    return {
        "title": printable(title),
        "n_rows": int(tree.sizes[0]),
        "n_noise": tree.n_noise,
        "n_excluded": 0 if weights is None else int((weights[tree.rows(0)] == 0.0).sum()),
        "n_elsewhere": _count_elsewhere(explanation),
        "n_features": taxonomy.n_features if encoding is None else len(encoding.columns),
        "n_clusters": tree.n_leaves,
        "height": tree.height,
        "smallest_cluster": int(sizes.min()),
        "largest_cluster": int(sizes.max()),
        "features_per_split": format_number(float(np.median(used))) if len(used) else None,
        "has_rules": explanation.has_rules,
        "is_calibrated": taxonomy.temperature is not None,
        "notes": [printable(f"{note}.") for note in explanation.notes],
        "noise_scores": [round_digits(score) for score in noise_scores[:MAX_NOISE].tolist()],
        "nodes": nodes,
        "features": [list(feature) for feature in writer.features],
        "rows": _describe_rows(explanation, nodes),
        "pictures": {} if images is None else _make_thumbnails(nodes, images),
        **_pack_rows(explanation, noise),
        "classes": [] if classes is None else classes.names,
        "scores": {name: round_digits(value) for name, value in scores.items()},
        "stability": taxonomy.stability and _describe_stability(taxonomy.stability),
        "table": encoding and _describe_table(encoding),
    }


def _count_elsewhere(explanation: Explanation) -> int:
    """Count the rows in another cluster than the one that the rules send them to."""
    weights = explanation.weights[explanation.taxonomy.tree.rows(0)]
    return round(float(weights[explanation.least_margins < -1e-6].sum()))


def _describe_stability(stability: Stability) -> Values:
    curve = stability.curve
    points = zip(curve.n_clusters, curve.stability, curve.reference, strict=True)
    return {
        "n_refits": int(stability.n_refits),
        "suggested": int(stability.suggested),
        "verdict": curve.verdict(),
        "left_out": stability.describe_left_out(),
        "curve": [[int(n), round_digits(own), round_digits(ref)] for n, own, ref in points],
    }


def _describe_table(encoding: Encoding) -> Values:
    """Say how a table was read: its columns, those that were left out, what was done."""
    columns = [
        (printable(column.label), _describe_kind(column), _format_missing(column.missing))
        for column in encoding.columns[:MAX_COLUMNS]
    ]
    return {
        "columns": columns,
        "dropped": [list(map(printable, pair)) for pair in encoding.dropped[:MAX_COLUMNS]],
        "notes": list(map(printable, encoding.notes)),
        "counts": (len(encoding.columns), len(encoding.dropped)),
    }


def _describe_kind(column: Column) -> str:
    """Return what a column was read as."""
    if not column.categories:
        return "boolean" if column.values == (0.0, 1.0) else column.kind
    names = [printable(name) for name in column.categories]
    rest = len(names) - MAX_CATEGORIES
    listed = ", ".join(names[:MAX_CATEGORIES]) + (f" and {rest} more" if rest > 0 else "")
    return f"{column.kind}: {listed}"


def _format_missing(share: float) -> str:
    return format_share(share) if share else ""


# Nodes


class _NodeWriter:
    """Describes one node after the other, and collects the features that they name."""

    def __init__(self, explanation: Explanation) -> None:
        taxonomy = explanation.taxonomy
        is_many = taxonomy.tree.n_nodes > MANY_NODES
        self.explanation, self.taxonomy = explanation, taxonomy
        self.n_examples, self.n_features = N_EXAMPLES[is_many], N_FEATURES[is_many]
        self.n_used, self.is_boolean = taxonomy.n_features_used.tolist(), taxonomy.is_boolean
        self.features: dict[tuple[str, str, str], int] = {}  # name, mean and histogram of all

    def describe(self, node: int) -> Values:
        explanation, tree = self.explanation, self.taxonomy.tree
        parent, features = (
            tree.parent(node),
            explanation.deciding_features(node, self.n_features),
        )
        columns = [feature["column"] for feature in features[:N_EXAMPLE_FEATURES]]
        examples = explanation.examples(node, self.n_examples)
        values = {
            "parent": parent,
            "name": explanation.names[node],
            "start": int(explanation.whole.tree.start[node]),
            "stop": int(explanation.whole.tree.stop[node]),
            "birth": int(tree.birth[node]),
            "deciding": [self._describe_deciding(feature) for feature in features],
            "distinctive": self._describe_distinctive(node),
            "n_features": self.n_used[node],
            "n_deciding": 0 if parent is None else self.n_used[tree.decided_by(parent) or 0],
            "decision": describe_decision(self.taxonomy, node),
            "note": printable(tree.notes[node]),
            **{kind: self._add_values(examples[kind], columns) for kind in EXAMPLES},
            "margins": _count_margins(explanation, node),
            "classes": _count_classes(explanation, node),
        }
        if (stability := self.taxonomy.stability) is not None:
            values |= {
                "n_recovered": int(stability.n_recovered[node]),
                "recurrence": stability.describe(node),
                "left_out": round_digits(float(stability.left_out[node])),
                "is_stable": bool(stability.is_stable[node]),
            }
        return values

    def _describe_deciding(self, feature: Values) -> Values:
        """Return what the panel shows of a feature that separates a node from its siblings."""
        direction, is_boolean = feature["direction"], self.is_boolean
        is_share = direction in ("known", "unknown") or (
            is_boolean is not None and bool(is_boolean[feature["column"]])
        )
        means = format_means((feature["mean"], feature["rest_mean"]), is_share=is_share)
        return {
            "name": printable(feature["feature"]),
            "text": printable(feature["words"]),
            "sign": -1 if direction == "lower" else 1,
            "share": round_digits(feature["share"]),
            "mean": means[0],
            "rest": means[1],
            "missing": _format_missing(feature["missing"]),
        }

    def _describe_distinctive(self, node: int) -> list[list[Any]]:
        """Return number, words, effect, mean, histogram and missing share of features."""
        lines = []
        for feature in self.explanation.distinctive_features(node, self.n_features):
            means = feature["mean"], feature["all_mean"]
            mean, all_mean = format_means(means, is_share=feature["share"] is not None)
            every = printable(feature["feature"]), all_mean, _pack_counts(feature["all_counts"])
            number = self.features.setdefault(every, len(self.features))
            words, effect = printable(feature["words"]), round_digits(feature["effect"])
            counts, missing = (
                _pack_counts(feature["counts"]),
                _format_missing(feature["missing"]),
            )
            lines.append([number, words, effect, mean, counts, missing])
        return lines

    def _add_values(self, examples: list[Values], columns: list[int]) -> list[Values]:
        """Return rows with their values of some features."""
        rows = np.array([example["row"] for example in examples], dtype=np.intp)
        cells = [self.explanation.format_cells(rows, column) for column in columns]
        return [
            {
                "row": example["row"],
                "margin": round_digits(example.get("margin")),
                "values": [printable(column[n]) for column in cells],
            }
            for n, example in enumerate(examples)
        ]


def _pack_counts(counts: list[int]) -> str:
    """Return a small histogram, a digit per bin."""
    heights: Array = np.asarray(counts, dtype=np.float64)
    steps = np.ceil((len(DIGITS) - 1) * heights / max(heights.max(initial=0.0), 1.0))
    return "".join(DIGITS[step] for step in steps.astype(int))


def _count_margins(explanation: Explanation, node: int) -> list[list[int]]:
    """Count a split's rows by margin, per child; of two children, the first is mirrored."""
    tree = explanation.taxonomy.tree
    children = tree.children(node)
    sides = (-1.0, 1.0) if len(children) == 2 else (1.0,) * len(children)
    counts: list[list[int]] = []
    for child, side in zip(children, sides, strict=True):
        margins: Array = side * explanation.margins_within(node, child)
        margins, weights = margins.clip(-3.0, 3.0), explanation.weights[tree.rows(child)]
        counts.append(
            count_rows(np.histogram(margins, MARGIN_BINS, weights=weights)[0]).tolist()
        )
    return counts


def _count_classes(explanation: Explanation, node: int) -> list[tuple[int, int]]:
    """Return the classes of a node and their numbers of rows.

    -1 is all classes that are not listed, and -2 is rows without a class.
    """
    if explanation.classes is None:
        return []
    rows = explanation.taxonomy.tree.rows(node)
    counts = explanation.classes.count(rows, explanation.weights)
    known = [(code, count) for code, count in counts if code >= 0]
    rest = sum(count for _, count in known[MAX_CLASSES:])
    unknown = [(-2, count) for code, count in counts if code < 0]
    return [*known[:MAX_CLASSES], *([(-1, rest)] if rest else []), *unknown]


# Rows that are shown


def _find_leaves(nodes: list[Values]) -> list[Values]:
    inner = {node["parent"] for node in nodes}
    return [node for number, node in enumerate(nodes) if number not in inner]


def _find_shown(nodes: list[Values]) -> list[int]:
    """Return the rows that any node shows: typical ones of leaves first, borderline last."""
    parts = [(_find_leaves(nodes), "typical"), *((nodes, kind) for kind in EXAMPLES)]
    rows = [row["row"] for some, kind in parts for node in some for row in node[kind]]
    return list(dict.fromkeys(rows))


def _describe_rows(explanation: Explanation, nodes: list[Values]) -> Values:
    """Return the name and the class of each row that is shown."""
    rows, classes = {}, explanation.classes
    for row in _find_shown(nodes):
        name = printable(explanation.row_name(row))
        name = name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"
        position = int(explanation.positions(np.array(row)))
        rows[str(row)] = [name, -1 if classes is None else int(classes.codes[position])]
    return rows


def _make_thumbnails(nodes: list[Values], images: NDArray[Any]) -> dict[str, str]:
    """Return thumbnails of the rows shown, as large and as many as fit on the page."""
    rows, n_typical = _find_shown(nodes), sum(len(n["typical"]) for n in _find_leaves(nodes))
    for edge in THUMBNAIL_EDGES:
        typical = {row: make_thumbnail(images, row, edge) for row in rows[:n_typical]}
        if sum(map(len, typical.values())) <= MAX_PICTURES_LENGTH:
            break
    pictures, room = {}, MAX_PICTURES_LENGTH
    for row in rows:
        picture = typical.get(row) or make_thumbnail(images, row, edge)
        room -= len(picture)
        if room < 0:
            break
        pictures[str(row)] = picture
    return pictures


def make_thumbnail(images: NDArray[Any], row: int, edge: int) -> str:
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
    file = b"\x89PNG\r\n\x1a\n"
    for name, body in ((b"IHDR", head), (b"IDAT", zlib.compress(raw, 9)), (b"IEND", b"")):
        file += struct.pack(">I", len(body)) + name + body
        file += struct.pack(">I", zlib.crc32(name + body))
    return file


# All rows


def _pack_rows(explanation: Explanation, noise: IndexArray) -> Values:
    """Return what is known of every row, in the order of the tree, if that is not too much.

    Row numbers; names, as lines, and whether these are words; the least margin on the path and
    the node of its rule; probabilities. Numbers and names go on with those of noise.
    """
    tree, names, packed = explanation.taxonomy.tree, explanation.row_names, None
    fields = ("order", "names", "names_are_words", "least_margins", "probabilities")
    if explanation.notes:  # only a sample was read
        return dict.fromkeys(fields)
    order = np.append(tree.rows(0), noise)
    if names is not None:
        lines = (printable(explanation.row_name(row)) for row in order.tolist())
        packed = _pack("\n".join(lines).encode("utf-8", "replace"))
    values = (
        _pack_numbers(order) if tree.sizes[0] <= MAX_ROWS else None,
        packed if packed is not None and len(packed) <= MAX_NAMES_LENGTH else None,
        names is not None and _are_words(names[:1000]),
        _pack_least_margins(explanation),
        _pack_probabilities(explanation) if explanation.has_rules else None,
    )
    return dict(zip(fields, values, strict=True))


def _are_words(names: tuple[str, ...]) -> bool:
    """Say whether names are words, and neither numbers nor codes of a few letters."""
    stems = {"".join(filter(str.isalpha, name)).lower() for name in names}
    return len(stems) > 0.5 * len(names) and len(set("".join(stems))) > 10


def _pack(raw: bytes) -> str:
    """Return bytes compressed, as text."""
    return b64encode(zlib.compress(raw, 9)).decode("ascii")


def _pack_numbers(values: NDArray[Any]) -> str:
    """Pack whole numbers: all first bytes, the lowest, then all second ones, and so on."""
    return _pack(values.astype("<u4").view(np.uint8).reshape(-1, 4).T.tobytes())


def _pack_least_margins(explanation: Explanation) -> dict[str, str] | None:
    tree = explanation.taxonomy.tree
    n_rows = int(tree.sizes[0])
    if n_rows > MAX_LEAST_MARGINS or tree.n_leaves == 1:
        return None
    least, where = np.full(n_rows, np.inf), np.zeros(n_rows, dtype=np.intp)
    for node, margins in enumerate(explanation.margins):
        if margins is not None:
            part = slice(tree.start[node], tree.stop[node])
            where[part] = np.where(margins < least[part], node, where[part])
            least[part] = np.minimum(margins, least[part])
    # Hundredths, from -300 to 300: margins beyond are as clear.
    hundredths = np.nan_to_num(100.0 * least.clip(-3.0, 3.0)).round() + 300
    return {"margin": _pack_numbers(hundredths), "node": _pack_numbers(where)}


def _pack_probabilities(explanation: Explanation) -> str | None:
    """Pack, in hundredths, the probability of each node on a row's path.

    Leaf by leaf, within it from the root's child down, within that row by row.
    """
    taxonomy, data = explanation.taxonomy, explanation.data
    tree = taxonomy.tree
    if tree.n_rows > MAX_ROWS or tree.n_leaves == 1:
        return None
    paths: IndexArray = np.zeros((tree.n_leaves, tree.height), dtype=np.intp)
    for label, leaf in enumerate(tree.leaves.tolist()):
        paths[label, : tree.depth[leaf]] = tree.path(leaf)[1:]
    hundredths = np.empty((tree.n_rows, tree.height), dtype=np.uint8)
    step = max(1, BLOCK_SIZE // max(int(row_width(data)), tree.n_nodes))
    for first in range(0, tree.n_rows, step):
        part = slice(first, first + step)
        P = taxonomy.predict_proba(FeatureRows(data[part], None))
        P = sum_below(P.T, tree.leaves, tree.parents).T
        on_path = np.take_along_axis(P, paths[tree.labels[part]], axis=1)
        hundredths[part] = np.clip(100.0 * on_path, 0.0, 100.0).round()
    levels = [
        hundredths[tree.rows(leaf), : tree.depth[leaf]].T.tobytes() for leaf in tree.leaves
    ]
    return _pack(b"".join(levels))


Pixels: TypeAlias = NDArray[np.uint8]


def check_images(images: ArrayLike, n_rows: int) -> NDArray[Any]:
    """Return pictures as an array, one for each row.

    Of shape (n_rows, height, width), grey, or (n_rows, height, width, 3 or 4); floats from 0 to
    1, bytes or booleans.

    Raises
    ------
    ValueError
        If they are none of these.
    """
    pixels = np.asanyarray(images)
    if not (pixels.ndim == 3 or (pixels.ndim == 4 and pixels.shape[3] in (3, 4))):
        raise InputError(
            "images must have shape (n_rows, height, width), with 3 or 4 colours behind if "
            f"they are not grey, got {pixels.shape}"
        )
    if len(pixels) != n_rows:
        raise InputError(
            f"there must be one image for each of the {n_rows:,} rows, got {len(pixels):,}"
        )
    if 0 in pixels.shape:
        raise InputError(f"images must have pixels, got shape {pixels.shape}")
    if pixels.dtype.kind not in "fb" and pixels.dtype != np.uint8:
        raise InputError(
            f"images must be floats from 0 to 1, uint8 or booleans, got {pixels.dtype}"
        )
    return pixels


def small_image(images: NDArray[Any], row: int, edge: int) -> Pixels:
    """Return a row's picture as bytes, reduced by averaging to an edge at most.

    Raises
    ------
    ValueError
        If floats are not from 0 to 1.
    """
    image = images[row]
    if image.dtype != np.uint8:
        values = image.astype(np.float64)
        if not (values.min() >= 0.0 and values.max() <= 1.0):
            raise InputError(
                f"images of floats must range from 0 to 1, got {values.min():g} to "
                f"{values.max():g} for row {row}: divide by the largest"
            )
        image = 255.0 * values
    step = -(-max(image.shape[:2]) // edge)
    return np.round(_average(image, step) if step > 1 else image).astype(np.uint8)


def _average(image: NDArray[Any], step: int) -> NDArray[Any]:
    """Return the means of squares of so many points; those at the far edges may be smaller."""
    for axis in (0, 1):
        begins = np.arange(0, image.shape[axis], step)
        sizes = np.diff(np.append(begins, image.shape[axis]))
        shape = [1] * image.ndim
        shape[axis] = len(sizes)
        image = np.add.reduceat(image.astype(np.float64), begins, axis) / sizes.reshape(shape)
    return image
