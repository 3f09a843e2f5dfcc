"""One file per hierarchy: a zip of NumPy arrays, as ``numpy.load`` reads, without pickles.

The array ``meta`` is a JSON text with the format's name and version, the notes, infos
and feature names. The arrays ``weights``, ``offsets`` and ``centers`` hold the rules of
the inner nodes, one below the other, and are empty where there are none. The arrays
``placement_weights``, ``placement_offsets``, ``placement_center`` and ``placement_leaves``
hold the placement, and are empty where there is none; so is ``means``, those of the nodes.
Since version 2 there may be more: ``two_values``, what a ``Follows`` holds, each under its own
name, what a ``Trust`` holds, where the tree was assessed, and in the text the temperature and
``made_by``, the method that made the tree. Since version 3 there may be ``row_weights``,
``noise`` and what is usual, by which new rows are told to be noise, and of a tree that was
grown on a table, in the text its ``encoding``, and ``missing``, the shares of its gaps. What is
not there is not known. Version 4 is for trees that hold counts, not rows: they have no
``order``, no ``follows_broken`` and nothing else of rows, in the text ``n_noise``, and may have
``totals``, the weights of the nodes. Trees with rows are written as version 3.

``numpy.savez_compressed`` would date the members, and ``numpy.load`` allocates what a header
states: the members are written and read here, so that the same tree gives the same bytes and
a damaged file is an error and nothing worse. What the directory states must fit into the memory
that is left, before anything is read. All headers are read before any array: what they state
must fit together, as in a tree, and into the bytes that are there. So reading takes a few times
the memory of the tree that is stated, and not more than there is. A small file may state a
large tree, since zeros take nearly no bytes.
"""

import json
import math
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from taxarbor._errors import FileFormatError, printable
from taxarbor._types import SolveInfo, Status
from taxarbor.hierarchy._encoding import Encoding
from taxarbor.hierarchy._follows import Follows
from taxarbor.hierarchy._noise import Usual
from taxarbor.hierarchy._rule import LinearRule, Placement
from taxarbor.hierarchy._trust import Curve, Trust
from taxarbor.hierarchy._whole import write_whole
from taxarbor.sweep._room import available

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy

FORMAT, VERSION = "taxarbor-hierarchy", 4
_INDICES = ("order", "start", "stop", "parents", "birth")
_PLACEMENT = tuple(f"placement_{part}" for part in ("weights", "center", "offsets", "leaves"))
_NODES, _RULES = ("score", "objective", "fidelity"), ("weights", "offsets", "centers")
_FLOATS = (*_NODES, *_RULES, "means", *_PLACEMENT[:-1])
_FOLLOWS = ("broken", "share", "worst", "worst_share", "gap")
_NAMES = frozenset((*_INDICES, *_FLOATS, _PLACEMENT[-1]))
_USUAL = ("centers", "units", "limit", "scale")
_OPTIONAL = frozenset(
    (
        *(f"follows_{part}" for part in _FOLLOWS),
        *(f"usual_{part}" for part in _USUAL),
        *("two_values", "missing", "row_weights", "noise", "totals"),
    )
)
_TRUST = ("came_back", "apart", "rule_came_back", "feature_came_back", "rows", "curve")
_TRUST_NAMES = frozenset(f"trust_{name}" for name in _TRUST)
_HEADER = re.compile(
    rb"\{'descr': '([<>|][a-zA-Z]\d*)', 'fortran_order': (True|False), "
    rb"'shape': \((\d{0,18}|\d{1,18},|\d{1,18}, \d{1,18})\), \} *\n"
)
"""What NumPy writes before an array of two dimensions at most."""
_DEFLATED = 1032
"""Bytes that a compressed byte may stand for, at most."""
_VALUES = 8
"""Numbers that a byte may stand for where no two are the same; of 0, 1, 2, ... it is 0.7."""
_TEXT, _BESIDE, _ALIKE = 64, 32, 1 << 26
"""Bytes of the text per byte that it takes; per byte of the arrays, and of these at most.

What is said of nodes and features that are all alike takes nearly no bytes.
"""
_COPIES, _OBJECTS = 3, 16
"""Bytes of memory that a byte of an array, and of the text, takes while it is read, at most."""
_LITTLE = 1 << 26
"""Bytes of memory that are always taken to be left."""
_STEP, _TOLD = 1 << 20, 300  # bytes read in one go, and letters of what is wrong with them
# What the standard library raises, here or there, on bytes that are no sound archive.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, LookupError),
    *(TypeError, OverflowError, RuntimeError, OSError),
)


def save(hierarchy: "Hierarchy", path: str | os.PathLike[str]) -> None:
    """Write the hierarchy to a file of exactly this name; see :meth:`Hierarchy.save`."""
    arrays = pack(hierarchy)
    write_whole(path, lambda file: _write_archive(file, arrays))


def load(path: str | os.PathLike[str], kind: "type[Hierarchy]") -> "Hierarchy":
    """Return the hierarchy in a file; see :meth:`Hierarchy.load`."""
    with open(path, "rb") as file:
        if file.read(4) != b"PK\x03\x04":
            raise FileFormatError(f"{os.fspath(path)!r} is not a taxarbor hierarchy")
        try:
            return kind(**_fields(*_read_archive(file)))
        except FileFormatError as error:
            told = f"cannot load {os.fspath(path)!r}: {clipped(error)}"
            raise FileFormatError(told) from error
        except MemoryError as error:
            told = "the tree takes more memory than there is"
            raise FileFormatError(f"cannot load {os.fspath(path)!r}: {told}") from error
        except _DAMAGE as error:
            told = f"the file is damaged or incomplete ({clipped(error)})"
            raise FileFormatError(f"cannot load {os.fspath(path)!r}: {told}") from error


def clipped(error: BaseException) -> str:
    """Return what an error says on one line of bounded length: it may quote a hostile file."""
    return printable(str(error))[:_TOLD]


def pack(hierarchy: "Hierarchy") -> dict[str, NDArray[Any]]:
    """Return the hierarchy as plain arrays, none of them of objects."""
    rules = [rule for rule in hierarchy.rules if rule is not None]
    meta = {
        "format": FORMAT,
        "version": version_of(hierarchy),
        "notes": hierarchy.notes,
        "info": [encode_info(info) for info in hierarchy.info],
        "feature_names": hierarchy.feature_names,
        "temperature": hierarchy.temperature,
        "made_by": hierarchy.made_by,
        "encoding": None if hierarchy.encoding is None else hierarchy.encoding.to_dict(),
        "n_refits": None if hierarchy.trust is None else hierarchy.trust.n_refits,
    }
    known: tuple[str, ...] = _INDICES
    if not hierarchy.has_rows:
        meta, known = meta | {"n_noise": hierarchy.n_noise}, _INDICES[1:]
    flat, nothing = np.zeros(0), np.zeros((0, 0))
    placement: tuple[NDArray[Any], ...] = nothing, flat, flat, flat.astype(np.int64)
    if hierarchy.placement is not None:
        rule, leaves = hierarchy.placement.rule, hierarchy.placement.leaves
        placement = rule.weights, rule.center, rule.offsets, leaves.astype(np.int64)
    return _pack_optional(hierarchy) | {
        "meta": np.array(json.dumps(meta, allow_nan=False)),
        **{name: getattr(hierarchy, name).astype(np.int64) for name in known},
        "score": hierarchy.score,
        "objective": hierarchy.objective,
        "weights": np.concatenate([rule.weights for rule in rules]) if rules else nothing,
        "offsets": np.concatenate([rule.offsets for rule in rules]) if rules else flat,
        "centers": np.stack([rule.center for rule in rules]) if rules else nothing,
        "fidelity": hierarchy.fidelity,
        **dict(zip(_PLACEMENT, placement, strict=True)),
        "means": nothing if hierarchy.means is None else hierarchy.means,
        **({} if hierarchy.trust is None else _pack_trust(hierarchy.trust)),
    }


def version_of(hierarchy: "Hierarchy") -> int:
    """Return the lowest version that can hold the tree, so that older readers can read it."""
    return VERSION if not hierarchy.has_rows else VERSION - 1


def _pack_optional(hierarchy: "Hierarchy") -> dict[str, NDArray[Any]]:
    """Return what not every tree has, as far as it is known."""
    given: dict[str, Any] = {
        **{name: getattr(hierarchy, name) for name in ("two_values", "missing", "totals")},
        "row_weights": hierarchy.weights,
        "noise": hierarchy.noise if len(hierarchy.noise) else None,
        **{f"usual_{part}": getattr(hierarchy.usual, part, None) for part in _USUAL},
        **{f"follows_{part}": getattr(hierarchy.follows, part, None) for part in _FOLLOWS},
    }
    known = {name: np.asarray(one) for name, one in given.items() if one is not None}
    return {n: a.astype(np.int64) if a.dtype.kind == "i" else a for n, a in known.items()}


def _unpack_optional(arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the arguments of Hierarchy that :func:`_pack_optional` packed."""
    found: dict[str, Any] = {
        name: arrays.get(name) for name in ("two_values", "missing", "noise", "totals")
    }
    found["weights"] = arrays.get("row_weights")
    if "usual_centers" in arrays:
        centers, units, limit = (arrays[f"usual_{part}"] for part in _USUAL[:-1])
        found["usual"] = Usual(centers, units, float(limit), arrays.get("usual_scale"))
    parts = {part: arrays.get(f"follows_{part}") for part in _FOLLOWS}
    if any(array is not None for array in parts.values()):
        if "order" not in arrays:
            del parts["broken"]
        for name, array in parts.items():
            kinds = "iu" if name in ("broken", "worst") else "f"
            if array is None or array.dtype.kind not in kinds:
                raise FileFormatError(f"follows_{name} is missing, or of another type")
        found["follows"] = Follows(**{"broken": None} | parts)  # type: ignore[arg-type]
    return found


def _pack_trust(trust: Trust) -> dict[str, NDArray[Any]]:
    features = np.concatenate(trust.feature_came_back)
    counts = trust.came_back, trust.apart, trust.rule_came_back, features
    arrays = *(count.astype(np.int64) for count in counts), trust.rows, np.stack(trust.curve)
    return {f"trust_{name}": array for name, array in zip(_TRUST, arrays, strict=True)}


def _unpack_trust(
    arrays: dict[str, NDArray[Any]], n_refits: Any, rules: tuple[LinearRule | None, ...]
) -> Trust:
    """Return the trust in these arrays, or raise ValueError if it does not fit the rules."""
    came_back, apart, rule, features, rows, curve = (arrays[f"trust_{name}"] for name in _TRUST)
    sizes = [0 if one is None else one.n_features_used for one in rules]
    if features.shape != (sum(sizes),):
        raise FileFormatError("trust_feature_came_back does not fit the rules")
    parts = np.split(_counts(features), np.cumsum(sizes)[:-1])
    numbers, stability, reference = curve
    return Trust(
        n_refits=int(n_refits),
        came_back=_counts(came_back),
        apart=_counts(apart),
        rule_came_back=_counts(rule),
        feature_came_back=tuple(parts),
        rows=rows.astype(np.float64),
        curve=Curve(numbers.astype(np.intp), stability.copy(), reference.copy()),
    )


def _counts(array: NDArray[Any]) -> NDArray[np.intp]:
    return array.astype(np.intp, casting="same_kind")


def unpack(arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the arguments of Hierarchy that :func:`pack` packed, or raise FileFormatError."""
    return _fields(_read_meta(arrays.get("meta"), arrays.keys() - {"meta"}), arrays)


def _read_meta(text: NDArray[Any] | None, names: Iterable[str]) -> dict[str, Any]:
    """Return the text as JSON, if it is of a version read here and these are its arrays."""
    if text is None or text.dtype.kind != "U":
        raise FileFormatError("this is not a taxarbor hierarchy")
    meta: dict[str, Any] = parse_strict(str(text))
    check_version(meta)
    expected = _NAMES if meta.get("n_refits") is None else _NAMES | _TRUST_NAMES
    of_rows = set() if counts_noise(meta) is None else {"order", "follows_broken"}
    expected, found = expected - of_rows, set(names)
    missing = sorted(expected - found)
    foreign = sorted(found - expected - (_OPTIONAL - of_rows))
    if missing or foreign:
        told = f"arrays are missing: {missing}, or foreign: {foreign}"
        raise FileFormatError(told)
    return meta


def _fields(meta: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the arguments of Hierarchy in a text and arrays that are all there."""
    n_refits, n_noise, encoding = meta.get("n_refits"), counts_noise(meta), meta.get("encoding")
    for name in _FLOATS:
        if arrays[name].dtype.kind != "f":
            raise FileFormatError(f"{name} must hold floats, not {arrays[name].dtype}")
    means, leaves = arrays["means"], arrays["placement_leaves"]
    if leaves.dtype.kind not in "iu":
        raise FileFormatError(f"placement_leaves must hold integers, not {leaves.dtype}")
    cells = [arrays[name] for name in _PLACEMENT[:-1]]
    has_cells = any(len(array) for array in (*cells, leaves))
    rules = _unstack(arrays["parents"], *(arrays[name] for name in _RULES))
    return {
        **{name: arrays[name] for name in (*_INDICES[1:], *_NODES)},
        "order": arrays.get("order"),
        "n_noise": n_noise or 0,
        "rules": rules,
        "info": tuple(decode_info(values) for values in meta["info"]),
        "notes": tuple(meta["notes"]),
        "feature_names": meta["feature_names"],
        "placement": Placement(LinearRule(*cells), leaves) if has_cells else None,
        "means": None if means.shape == (0, 0) else means,
        **_unpack_optional(arrays),
        "temperature": meta.get("temperature"),  # older files have none
        "trust": None if n_refits is None else _unpack_trust(arrays, n_refits, rules),
        "made_by": decode_made_by(meta.get("made_by")),
        "encoding": None if encoding is None else Encoding.from_dict(encoding),
    }


def _unstack(
    parents: NDArray[Any], weights: NDArray[Any], offsets: NDArray[Any], centers: NDArray[Any]
) -> tuple[LinearRule | None, ...]:
    """Give each inner node its centre and as many rows of weights as it has children."""
    rules: list[LinearRule | None] = [None] * len(parents)
    if not (len(weights) or len(offsets) or len(centers)):
        return tuple(rules)
    if parents[1:].min(initial=0) < 0 or parents[1:].max(initial=0) >= len(parents):
        raise FileFormatError("parents must be ids of nodes")
    n_children = np.bincount(parents[1:], minlength=len(parents))
    inner = np.flatnonzero(n_children)
    if (len(weights), len(offsets), len(centers)) != (*[len(parents) - 1] * 2, len(inner)):
        raise FileFormatError("weights, offsets and centers do not fit the tree")
    stops = np.cumsum(n_children)
    for node, center in zip(inner.tolist(), centers, strict=True):
        own = slice(stops[node] - n_children[node], stops[node])
        rules[node] = LinearRule(weights[own], center, offsets[own])
    return tuple(rules)


def _write_archive(file: IO[bytes], arrays: dict[str, NDArray[Any]]) -> None:
    """Write what ``numpy.savez_compressed`` would, with a fixed date: same tree, same bytes."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as member:
                npy.write_array(member, array, version=(1, 0), allow_pickle=False)


class _Head(NamedTuple):
    """What an archive states of an array, and how many bytes it takes there."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    is_fortran: bool
    n_compressed: int


def _read_archive(file: IO[bytes]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return the text and the other arrays; sizes are compared before any of them is read."""
    with zipfile.ZipFile(file) as archive:
        entries = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
        if len(entries) < len(archive.infolist()) or "meta" not in entries:
            raise FileFormatError("this is not a taxarbor hierarchy")
        if any(entry.compress_type != zipfile.ZIP_DEFLATED for entry in entries.values()):
            raise FileFormatError("an array is compressed in an unknown way")
        if sum(entry.compress_size for entry in entries.values()) > file.seek(0, os.SEEK_END):
            raise FileFormatError("the arrays take more bytes than the file has")
        text = entries.pop("meta")
        _check_memory(text, sum(entry.file_size for entry in entries.values()))
        with archive.open(text) as member:
            meta = _read_meta(_read_array(member, _read_head(member, text)), entries)
        heads = {}
        for name, entry in entries.items():
            with archive.open(entry) as member:
                heads[name] = _read_head(member, entry)
        _check_sizes(heads)
        arrays = {}
        for name, entry in entries.items():
            with archive.open(entry) as member:
                arrays[name] = _read_array(member, _read_head(member, entry))
        return meta, arrays


def _check_memory(text: zipfile.ZipInfo, n_bytes: int) -> None:
    """Raise FileFormatError if a text and arrays of so many bytes are too much to read."""
    alike = min(_BESIDE * n_bytes, _ALIKE)
    if text.file_size > _STEP + _TEXT * text.compress_size + alike:
        raise FileFormatError("the text states more than that of such a tree can hold")
    needed = _COPIES * n_bytes + _OBJECTS * text.file_size
    if needed > _LITTLE and needed > (left := available()):
        raise FileFormatError(
            f"the tree that it states may take {needed / 1e9:,.1f} GB of memory to load, and "
            f"{left / 1e9:,.1f} GB are left. Load it where there is more."
        )


def _read_head(member: IO[bytes], entry: zipfile.ZipInfo) -> _Head:
    """Read what stands before an array; no Python objects, nothing that is not there."""
    start = member.read(10)
    if start[:8] != npy.magic(1, 0):
        raise FileFormatError("an array is of an unknown version")
    length = int.from_bytes(start[8:], "little")
    found = _HEADER.fullmatch(member.read(length))
    if found is None:
        raise FileFormatError("the header of an array is damaged")
    dtype = np.dtype(found[1].decode())
    if dtype.hasobject:
        raise FileFormatError("an array holds Python objects, which are never loaded")
    shape = tuple(int(part) for part in found[3].split(b",") if part.strip())
    n_bytes = math.prod(shape) * dtype.itemsize
    if 10 + length + n_bytes != entry.file_size:
        raise FileFormatError("an array is not of the size that it states")
    if n_bytes > _DEFLATED * entry.compress_size:
        raise FileFormatError("an array states more than its bytes can hold")
    return _Head(shape, dtype, found[2] == b"True", entry.compress_size)


def _check_sizes(heads: dict[str, _Head]) -> None:
    """Raise FileFormatError if the arrays are larger than those of one tree can be."""
    shapes = {name: head.shape for name, head in heads.items()}

    def length(name: str) -> int:
        return shapes.get(name, (0,))[0] if shapes.get(name, (0,)) else 0

    def width(name: str) -> int:
        return shapes[name][-1] if len(shapes.get(name, ())) > 1 else 0

    nodes, rows = length("start"), length("order") + length("noise")
    cells, groups = length("placement_weights"), length("usual_centers")
    wide = "centers", "placement_weights", "means", "usual_centers"
    features = next(filter(None, map(width, wide)), length("two_values"))
    most: dict[str, tuple[int, ...]] = {"order": (rows,), "noise": (rows,)}
    most |= dict.fromkeys(("row_weights", "follows_broken", "trust_rows"), (rows,))
    most |= dict.fromkeys(("weights", "centers", "means"), (nodes, features))
    most |= {"placement_weights": (cells, features), "placement_center": (features,)}
    most |= {"placement_offsets": (cells,), "placement_leaves": (cells,)}
    most |= {"usual_centers": (groups, features), "usual_scale": (features,)}
    most |= {"usual_units": (groups,), "usual_limit": (), "two_values": (features, 2)}
    most |= {"follows_gap": (nodes, 2), "missing": (nodes, width("missing"))}
    most |= {"trust_feature_came_back": (nodes * features,)}
    most |= {"trust_curve": (3, width("trust_curve"))}  # of a finer tree, perhaps
    for name, shape in shapes.items():
        limit = most.get(name, (nodes,))
        if len(shape) != len(limit) or any(a > b for a, b in zip(shape, limit, strict=True)):
            raise FileFormatError(f"{name} has shape {shape}, which does not fit the others")
    distinct = {name: length(name) for name in ("start", "order", "noise")}
    distinct["trust_curve"] = width("trust_curve")
    for name, n in distinct.items():  # no two rows are the same, nor two numbers of leaves
        if name in heads and n > _VALUES * heads[name].n_compressed:
            raise FileFormatError(f"{name} states more than its bytes can hold")


def _read_array(member: IO[bytes], head: _Head) -> NDArray[Any]:
    """Return the array that follows its header."""
    data = np.empty(math.prod(head.shape) * head.dtype.itemsize, dtype=np.uint8)
    at = 0
    while piece := member.read(_STEP):  # to the end, where the checksum is compared
        data[at : at + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
        at += len(piece)
    if at != len(data):
        raise FileFormatError("an array is not of the size that it states")
    return data.view(head.dtype).reshape(head.shape, order="F" if head.is_fortran else "C")


def parse_strict(text: str | bytes) -> Any:
    """Parse JSON, without the NaN and the names given twice that Python would let pass."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    def gather(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(found := dict(pairs)) < len(pairs):
            raise ValueError("a name stands twice in one object")
        return found

    return json.loads(text, parse_constant=refuse, object_pairs_hook=gather)


def check_version(document: Any) -> None:
    """Raise FileFormatError unless the document is a hierarchy of the version read here."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FileFormatError("this is not a taxarbor hierarchy")
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise FileFormatError(f"a taxarbor hierarchy without a valid version: {version!r}")
    if version > VERSION:
        raise FileFormatError(
            f"written by a newer taxarbor: format version {version}, and this one reads "
            f"up to version {VERSION}. Upgrade taxarbor to read it."
        )


def counts_noise(document: dict[str, Any]) -> int | None:
    """Return the number of rows that are noise in a tree of counts, None for one with rows."""
    n_noise = document.get("n_noise")
    if n_noise is not None and (type(n_noise) is not int or document["version"] < VERSION):
        raise FileFormatError(f"n_noise must be a number in a tree of counts, got {n_noise!r}")
    return n_noise


def encode_info(info: SolveInfo | None) -> dict[str, Any] | None:
    """Return the values of a SolveInfo for JSON."""
    if info is None:
        return None
    return {
        "status": str(info.status),
        "n_iter": int(info.n_iter),
        "n_passes": encode_float(info.n_passes),
        "trace": [encode_float(value) for value in info.trace],
    }


def decode_info(values: dict[str, Any] | None) -> SolveInfo | None:
    """Return the SolveInfo that :func:`encode_info` took apart."""
    if values is None:
        return None
    return SolveInfo(
        status=Status(values["status"]),
        n_iter=int(values["n_iter"]),
        n_passes=decode_float(values["n_passes"]),
        trace=tuple(decode_float(value) for value in values["trace"]),
    )


def decode_made_by(values: Any) -> Any:
    """Return what made the tree, if it can be written again: 1e999 is read as infinity."""
    waiting = [(values, 0)]
    while waiting:
        value, depth = waiting.pop()
        if depth > 20 or (isinstance(value, float) and not math.isfinite(value)):
            raise FileFormatError("made_by must hold finite numbers, and 20 levels at most")
        inner = value.values() if isinstance(value, dict) else value
        if isinstance(value, dict | list):
            waiting += [(one, depth + 1) for one in inner]
    return values


def encode_float(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return float(value) if math.isfinite(value) else str(float(value))


def decode_float(value: float | str | None) -> float:
    return math.nan if value is None else float(value)
