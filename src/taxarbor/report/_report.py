"""From a tree and its rows to a page: one file, which fetches nothing."""

import json
import os
import re
import string
import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from taxarbor._atomic_write import write_atomically
from taxarbor._errors import InputError, printable, some
from taxarbor._number_text import format_means, format_number, format_share, round_digits
from taxarbor._types import Array, IndexArray, TableLike
from taxarbor.explain import Explanation, explain
from taxarbor.explain.explanation import EXAMPLES
from taxarbor.metrics import tree_scores
from taxarbor.metrics.classes import ClassTreeLike
from taxarbor.tables.columns import Columns
from taxarbor.tables.notes import MAX_NOTES
from taxarbor.taxonomy import Stability, Taxonomy
from taxarbor.taxonomy._text import describe_decision

MANY_NODES = 250  # nodes above which less is shown of each
N_EXAMPLES, N_FEATURES = (5, 3), (8, 4)  # of each kind per node, of few nodes and of many
N_EXAMPLE_FEATURES = 3  # whose values are shown with an example
MAX_CLASSES, MAX_COLUMNS, MAX_CATEGORIES = 100, 200, 6  # of a node, of all, of a column
NAME_LENGTH = 300  # characters of a row's name, which may be a text
MAX_NAMES_LENGTH = 250_000  # characters of the packed names of all rows, to be searched
MAX_ROWS, MAX_LEAST_MARGINS = 100_000, 10_000  # with the number, and the least margin, of each
MAX_PICTURES_LENGTH, EDGES = 300_000, (16, 64)  # of all thumbnails; bounds of their edges
MARGIN_BINS = np.linspace(-3.0, 3.0, 25)  # the outer ones include the margins beyond
HEIGHTS = string.digits + string.ascii_lowercase
SCRIPTS = (
    *("start.js", "cut.js", "view.js", "tree.js", "icicle.js", "panel.js"),
    *("search.js", "tables.js", "download.js", "main.js"),
)

Values = dict[str, Any]  # what JSON can hold
Pixels: TypeAlias = NDArray[np.floating | np.uint8 | np.bool_]
"""Pictures of rows: (n_rows, height, width), or that with 3 or 4 colours at the end."""


# The page


def report(
    model: object,
    X: TableLike,
    path: str | os.PathLike[str],
    *,
    row_names: Sequence[str] | None = None,
    classes: ArrayLike | None = None,
    truth: ClassTreeLike | None = None,
    images: ArrayLike | None = None,
    title: str = "A taxonomy",
) -> None:
    """Write a page that shows a tree and its reasons: one HTML file that opens offline.

    Parameters
    ----------
    model, X : fitted estimator or Taxonomy, and array-like, CSR matrix, data frame or AnnData
        The tree, and the rows that it was grown on, in memory and in the same order, as
        :func:`~taxarbor.explain.explain` takes them.
    path : str or path
        Where to write. An existing file is replaced once the new one is complete.
    row_names, classes : sequences, optional
        Names of the rows, which may be texts, and known classes, to compare with. Rows without
        a class are left out of the scores, and a warning says how many.
    truth : ClassTree, or what :meth:`~taxarbor.metrics.ClassTree.read` takes, optional
        The true tree of these classes.
    images : array, optional
        A picture of each row: (n_rows, height, width), or that with 3 or 4 colours at the
        end; floats from 0 to 1, bytes or booleans.
    title : str
        Of the page.

    Raises
    ------
    ValueError, TypeError, OSError
        If these do not fit together, or the file cannot be written, which is left as it was.

    Examples
    --------
    >>> from taxarbor import Taxarbor, load_animals
    >>> animals = load_animals()
    >>> X = animals.X / animals.X.max(axis=0)
    >>> model = Taxarbor(12, random_state=0).fit(X)
    >>> report(model, X, "animals.html", row_names=animals.names)  # doctest: +SKIP
    """
    if truth is not None and classes is None:
        raise InputError("must be given, too, to compare with a true tree", "classes")
    explanation = explain(model, X, row_names=row_names, classes=classes)
    taxonomy = explanation.taxonomy
    pictures = None if images is None else check_images(images, taxonomy.tree.n_rows)
    scores = {} if classes is None else tree_scores(taxonomy, classes, truth)
    page = _build_page(build_context(explanation, title, pictures, scores), taxonomy.to_text())
    write_atomically(path, lambda file: file.write(page.encode("utf-8", "replace")))


def _build_page(context: Values, plain_text: str) -> str:
    """Return the page; the tree as text is for browsers without scripts."""
    script = "\n".join(_asset(name) for name in SCRIPTS)
    parts = {
        "title": escape(context["title"]),
        "policy": escape(_policy(script)),
        "style": _asset("style.css"),
        "text": escape(plain_text),
        "data": _safe_json(context),
        "script": script,
    }
    # In one go: what is put in is not looked at for further places.
    return re.sub("%%(.*?)%%", lambda place: parts[place[1]], _asset("page.html"))


def _policy(script: str) -> str:
    """Let nothing be loaded, and no script run but this one, whatever a name may hold."""
    digest = b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii")
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _safe_json(values: Values) -> str:
    """Return JSON that cannot end the element it stands in."""
    text = json.dumps(values, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[<>&\u2028\u2029]", lambda sign: f"\\u{ord(sign[0]):04x}", text)


def _asset(name: str) -> str:
    return files("taxarbor.report").joinpath("assets", name).read_text(encoding="utf-8")


# What it shows


def build_context(
    explanation: Explanation, title: str, images: Pixels | None, scores: dict[str, float]
) -> Values:
    """Return all that the page shows, as JSON can hold it."""
    taxonomy, classes = explanation.taxonomy, explanation.classes
    tree, weights, columns = taxonomy.tree, taxonomy.tree.weights, taxonomy.columns
    n_used = taxonomy.n_features_used
    nodes = [_describe_node(explanation, node, n_used) for node in range(tree.n_nodes)]
    used = n_used[[rule is not None for rule in tree.rules]]
    sizes = tree.sizes[tree.leaves]
    typical = [one["row"] for leaf in tree.leaves for one in nodes[leaf]["typical"]]
    rows = [one["row"] for kind in EXAMPLES for node in nodes for one in node[kind]]
    shown = list(dict.fromkeys(typical + rows))
    return {
        "title": printable(title),
        "n_rows": int(tree.sizes[0]),
        "n_noise": tree.n_noise,
        "n_excluded": 0 if weights is None else int((weights[tree.rows(0)] == 0.0).sum()),
        # In another cluster than the one that the rules send them to.
        "n_elsewhere": int((explanation.least_margins < -1e-6).sum()),
        "n_features": len(columns),
        "n_clusters": tree.n_leaves,
        "height": tree.height,
        "smallest_cluster": int(sizes.min()),
        "largest_cluster": int(sizes.max()),
        "features_per_split": format_number(float(np.median(used))) if len(used) else None,
        "has_rules": explanation.has_rules,
        "nodes": nodes,
        "rows": _describe_rows(explanation, shown),
        "pictures": {} if images is None else _make_thumbnails(shown, len(typical), images),
        **_pack_rows(explanation),
        "classes": [] if classes is None else [*map(printable, classes.names)],
        "scores": {name: round_digits(value) for name, value in scores.items()},
        "stability": taxonomy.stability and _describe_stability(taxonomy.stability),
        "table": _describe_table(columns),
    }


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


def _describe_table(columns: Columns) -> Values | None:
    """Describe how a table was read: its columns, those left out, notes; None for an array."""
    if columns.names is None and not (columns.notes or columns.dropped or columns.readings):
        return None
    lines = []
    for column in islice(columns, MAX_COLUMNS):
        categories = some([*map(printable, column.categories)], MAX_CATEGORIES)
        kind = f"{column.kind}: {categories}" if categories else column.kind
        lines.append((printable(column.label), kind, _format_missing(column.missing)))
    return {
        "columns": lines,
        "dropped": [list(map(printable, pair)) for pair in columns.dropped[:MAX_COLUMNS]],
        "notes": [printable(str(note)) for note in columns.notes[:MAX_NOTES]],
        "counts": (len(columns), len(columns.dropped), len({*columns.positions.tolist()})),
    }


def _format_missing(share: float) -> str:
    return format_share(share) if share else ""


# Nodes


def _describe_node(explanation: Explanation, node: int, n_used: IndexArray) -> Values:
    taxonomy = explanation.taxonomy
    tree, stability = taxonomy.tree, taxonomy.stability
    is_many, parent = tree.n_nodes > MANY_NODES, tree.parent(node)
    features = explanation.deciding_features(node, N_FEATURES[is_many])
    distinctive = explanation.distinctive_features(node, N_FEATURES[is_many])
    examples = explanation.examples(node, N_EXAMPLES[is_many])
    columns = [feature["column"] for feature in features[:N_EXAMPLE_FEATURES]]
    values: Values = {
        "parent": parent,
        "name": explanation.names[node],
        "start": int(tree.start[node]),
        "stop": int(tree.stop[node]),
        "birth": int(tree.birth[node]),
        "deciding": [_describe_deciding(taxonomy, feature) for feature in features],
        "distinctive": [_describe_distinctive(feature) for feature in distinctive],
        "n_features": int(n_used[node]),
        "n_deciding": 0 if parent is None else int(n_used[tree.decided_by(parent) or 0]),
        "decision": describe_decision(taxonomy, node),
        "note": printable(tree.notes[node]),
        **{kind: _add_values(explanation, examples[kind], columns) for kind in EXAMPLES},
        "margins": _count_margins(explanation, node),
        "classes": _count_classes(explanation, node),
    }
    if stability is not None:
        values |= {
            "n_recovered": int(stability.n_recovered[node]),
            "recurrence": stability.describe(node),
            "left_out": round_digits(float(stability.left_out[node])),
            "is_stable": bool(stability.is_stable[node]),
        }
    return values


def _describe_deciding(taxonomy: Taxonomy, feature: Values) -> Values:
    """Return what the panel shows of a feature that separates a node from its siblings."""
    direction = feature["direction"]
    is_boolean = bool(taxonomy.columns.is_boolean[feature["column"]])
    is_share = is_boolean or direction in ("known", "unknown")
    mean, rest = format_means((feature["mean"], feature["rest_mean"]), is_share=is_share)
    return {
        "name": printable(feature["feature"]),
        "text": printable(feature["words"]),
        "sign": -1 if direction == "lower" else 1,
        "share": round_digits(feature["share"]),
        "mean": mean,
        "rest": rest,
        "missing": _format_missing(feature["missing"]),
    }


def _describe_distinctive(feature: Values) -> Values:
    """Return what the panel shows of a feature that separates a node from all other rows."""
    means = feature["mean"], feature["all_mean"]
    mean, all_mean = format_means(means, is_share=feature["share"] is not None)
    return {
        "name": printable(feature["feature"]),
        "text": printable(feature["words"]),
        "effect": round_digits(feature["effect"]),
        "mean": mean,
        "every": all_mean,
        "counts": _pack_counts(feature["counts"]),
        "all_counts": _pack_counts(feature["all_counts"]),
        "missing": _format_missing(feature["missing"]),
    }


def _add_values(
    explanation: Explanation, examples: list[Values], columns: list[int]
) -> list[Values]:
    """Return rows with their margins, and with their values of some features."""
    rows = np.array([example["row"] for example in examples], dtype=np.intp)
    cells = [explanation.format_cells(rows, column) for column in columns]
    margins = [round_digits(example.get("margin")) for example in examples]
    return [
        {"row": row, "margin": margins[n], "values": [printable(column[n]) for column in cells]}
        for n, row in enumerate(rows.tolist())
    ]


def _pack_counts(counts: list[int]) -> str:
    """Return a small histogram, a digit per bin."""
    heights: Array = np.asarray(counts, dtype=np.float64)
    steps = np.ceil((len(HEIGHTS) - 1) * heights / max(heights.max(initial=0.0), 1.0))
    return "".join(HEIGHTS[step] for step in steps.astype(int))


def _count_margins(explanation: Explanation, node: int) -> list[list[int]]:
    """Count a split's rows by margin, per child; of two children, the first is mirrored."""
    children = explanation.taxonomy.tree.children(node)
    sides = (-1.0, 1.0) if len(children) == 2 else (1.0,) * len(children)
    margins = [
        side * explanation.margins_within(node, child).clip(-3.0, 3.0)
        for child, side in zip(children, sides, strict=True)
    ]
    return [np.histogram(values, MARGIN_BINS)[0].tolist() for values in margins]


def _count_classes(explanation: Explanation, node: int) -> list[tuple[int, int]]:
    """Count the rows of a node by class; -1 is all that are not listed, -2 is none."""
    if explanation.classes is None:
        return []
    counts = explanation.classes.count(explanation.taxonomy.tree.rows(node))
    known = [(code, count) for code, count in counts if code >= 0]
    rest = sum(count for _, count in known[MAX_CLASSES:])
    unknown = [(-2, count) for code, count in counts if code < 0]
    return [*known[:MAX_CLASSES], *([(-1, rest)] if rest else []), *unknown]


# Rows


def _describe_rows(explanation: Explanation, shown: list[int]) -> Values:
    """Return the name and the class of each row that is shown."""
    rows, classes = {}, explanation.classes
    for row in shown:
        name = printable(explanation.row_name(row))
        name = name if len(name) <= NAME_LENGTH else name[: NAME_LENGTH - 1] + "…"
        rows[str(row)] = [name, -1 if classes is None else int(classes.codes[row])]
    return rows


def _pack_rows(explanation: Explanation) -> Values:
    """Return what is known of every row, in the order of the tree, if that is not too much.

    Row numbers; names, as lines, and whether these are words; the least margin on the path and
    the node of its rule. Numbers and names go on with those of noise.
    """
    tree, names, packed = explanation.taxonomy.tree, explanation.row_names, None
    order = np.append(tree.rows(0), np.flatnonzero(tree.labels < 0))
    if names is not None:
        lines = (printable(explanation.row_name(row)) for row in order.tolist())
        packed = _pack("\n".join(lines).encode("utf-8", "replace"))
    is_short = packed is not None and len(packed) <= MAX_NAMES_LENGTH
    return {
        "order": _pack_numbers(order) if tree.sizes[0] <= MAX_ROWS else None,
        "names": packed if is_short else None,
        "names_are_words": names is not None and _are_words(names[:1000]),
        "least_margins": _pack_least_margins(explanation),
    }


def _are_words(names: tuple[str, ...]) -> bool:
    """Return whether names are words, and neither numbers nor codes of a few letters."""
    stems = {"".join(filter(str.isalpha, name)).lower() for name in names}
    return len(stems) > 0.5 * len(names) and len(set("".join(stems))) > 10


def _pack(raw: bytes) -> str:
    """Return bytes compressed, as text."""
    return b64encode(zlib.compress(raw, 9)).decode("ascii")


def _pack_numbers(values: Array | IndexArray) -> str:
    """Pack whole numbers: all first bytes, the lowest, then all second ones, and so on."""
    return _pack(values.astype("<u4").view(np.uint8).reshape(-1, 4).T.tobytes())


def _pack_least_margins(explanation: Explanation) -> dict[str, str] | None:
    tree, least = explanation.taxonomy.tree, explanation.least_margins
    if len(least) > MAX_LEAST_MARGINS or tree.n_leaves == 1:
        return None
    where = np.zeros(len(least), dtype=np.intp)
    for node, margins in reversed([*enumerate(explanation.margins.values)]):
        if margins is not None:  # of equal ones, the first from the root
            part = slice(tree.start[node], tree.stop[node])
            where[part][margins == least[part]] = node
    # Hundredths, from -300 to 300: margins beyond are as clear.
    hundredths = np.nan_to_num(100.0 * least.clip(-3.0, 3.0)).round() + 300
    return {"margin": _pack_numbers(hundredths), "node": _pack_numbers(where)}


# Pictures of rows


def check_images(images: ArrayLike, n_rows: int) -> Pixels:
    """Return pictures as an array, one for each row, or raise InputError."""
    pixels = np.asanyarray(images)
    got: object = f"shape {pixels.shape}"
    if not (pixels.ndim == 3 or (pixels.ndim == 4 and pixels.shape[3] in (3, 4))):
        expected = "must have shape (n_rows, height, width), or that with 3 or 4 colours behind"
    elif len(pixels) != n_rows or 0 in pixels.shape:
        expected = f"must be one image with pixels for each of the {n_rows:,} rows"
    elif pixels.dtype.kind not in "fb" and pixels.dtype != np.uint8:
        expected, got = "must be floats from 0 to 1, uint8 or booleans", pixels.dtype
    else:
        return pixels
    raise InputError(f"{expected}; got {got}", "images")


def _shrink(images: Pixels, row: int, edge: int) -> NDArray[np.uint8]:
    """Return a row's picture as bytes, reduced by averaging to an edge at most."""
    image: Array = images[row].astype(np.float64)
    if images.dtype != np.uint8:
        low, high = image.min(), image.max()
        if not (low >= 0.0 and high <= 1.0):
            problem = f"must range from 0 to 1, got {low:g} to {high:g} for row {row}"
            raise InputError(f"{problem}: divide by the largest", "images")
        image = 255.0 * image
    step = -(-max(image.shape[:2]) // edge)
    n_pixels = np.ones_like(image)  # in each square: fewer at the far edges
    for axis in (0, 1):
        begins = np.arange(0, image.shape[axis], step)
        image, n_pixels = (np.add.reduceat(one, begins, axis) for one in (image, n_pixels))
    return np.round(image / n_pixels).astype(np.uint8)


def _make_thumbnails(rows: list[int], n_typical: int, images: Pixels) -> dict[str, str]:
    """Return rows as PNGs, as many and the first ones as large as fit on the page."""
    n_bytes = 1.4 * n_typical * (images.shape[3] if images.ndim == 4 else 1)  # of base64
    edge = int(np.clip((MAX_PICTURES_LENGTH / n_bytes) ** 0.5, *EDGES))
    pictures: dict[str, str] = {}
    n_left = MAX_PICTURES_LENGTH
    for row in rows:
        data = b64encode(_encode_png(_shrink(images, row, edge))).decode("ascii")
        n_left -= len(data)
        if n_left < 0:
            break
        pictures[str(row)] = f"data:image/png;base64,{data}"
    return pictures


def _encode_png(pixels: NDArray[np.uint8]) -> bytes:
    """Return a picture of bytes, grey or with 3 or 4 colours, as a PNG file."""
    height, width = pixels.shape[:2]
    kind = {1: 0, 3: 2, 4: 6}[pixels.size // (height * width)]
    lines = np.pad(pixels.reshape(height, -1), ((0, 0), (1, 0)))  # 0: without a filter
    head = struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0)
    file = b"\x89PNG\r\n\x1a\n"
    for chunk in (b"IHDR" + head, b"IDAT" + zlib.compress(lines.tobytes(), 9), b"IEND"):
        file += struct.pack(">I", len(chunk) - 4) + chunk + struct.pack(">I", zlib.crc32(chunk))
    return file
