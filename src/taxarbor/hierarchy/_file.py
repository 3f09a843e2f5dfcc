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
a damaged file is an error and nothing worse.
"""

import io
import json
import math
import os
import struct
import zipfile
import zlib
from typing import IO, TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from taxarbor._errors import FileFormatError
from taxarbor._types import SolveInfo, Status
from taxarbor.hierarchy._encoding import Encoding
from taxarbor.hierarchy._follows import Follows
from taxarbor.hierarchy._noise import Usual
from taxarbor.hierarchy._rule import LinearRule, Placement
from taxarbor.hierarchy._trust import Curve, Trust
from taxarbor.hierarchy._whole import write_whole

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy

FORMAT, VERSION = "taxarbor-hierarchy", 4
_INDICES = ("order", "start", "stop", "parents", "birth")
_PLACEMENT = tuple(f"placement_{part}" for part in ("weights", "center", "offsets", "leaves"))
_NODES, _RULES = ("score", "objective", "fidelity"), ("weights", "offsets", "centers")
_FLOATS = (*_NODES, *_RULES, "means", *_PLACEMENT[:-1])
_FOLLOWS = ("broken", "share", "worst", "worst_share", "gap")
_NAMES = frozenset((*_INDICES, *_FLOATS, _PLACEMENT[-1], "meta"))
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
        file.seek(0)
        data = file.read()
    try:
        return kind(**unpack(_read_archive(data)))
    except FileFormatError as error:
        raise FileFormatError(f"cannot load {os.fspath(path)!r}: {error}") from error
    except _DAMAGE as error:
        raise FileFormatError(
            f"cannot load {os.fspath(path)!r}: the file is damaged or incomplete ({error})"
        ) from error


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
    packed: dict[str, NDArray[Any]] = {}
    for name in ("two_values", "missing", "totals"):
        array = getattr(hierarchy, name)
        if array is not None:
            packed[name] = array
    if hierarchy.weights is not None:
        packed["row_weights"] = hierarchy.weights
    if len(hierarchy.noise):
        packed["noise"] = hierarchy.noise.astype(np.int64)
    for part in _USUAL if hierarchy.usual is not None else ():
        if (value := getattr(hierarchy.usual, part)) is not None:
            packed[f"usual_{part}"] = np.asarray(value)
    if hierarchy.follows is not None:
        for part in _FOLLOWS:
            if (array := getattr(hierarchy.follows, part)) is None:
                continue
            packed[f"follows_{part}"] = (
                array.astype(np.int64) if array.dtype.kind == "i" else array
            )
    return packed


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
    if "meta" not in arrays or arrays["meta"].dtype.kind != "U":
        raise FileFormatError("this is not a taxarbor hierarchy")
    meta = parse_strict(str(arrays["meta"]))
    check_version(meta)
    n_refits = meta.get("n_refits")
    n_noise = counts_noise(meta)
    expected = _NAMES if n_refits is None else _NAMES | _TRUST_NAMES
    of_rows = set() if n_noise is None else {"order", "follows_broken"}
    expected -= of_rows
    missing = sorted(expected - arrays.keys())
    foreign = sorted(arrays.keys() - expected - (_OPTIONAL - of_rows))
    if missing or foreign:
        raise FileFormatError(f"arrays are missing: {missing}, or foreign: {foreign}")
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
        "made_by": meta.get("made_by"),
        "encoding": decode_encoding(meta.get("encoding")),
    }


def _unstack(
    parents: NDArray[Any], weights: NDArray[Any], offsets: NDArray[Any], centers: NDArray[Any]
) -> tuple[LinearRule | None, ...]:
    """Give each inner node its centre and as many rows of weights as it has children."""
    rules: list[LinearRule | None] = [None] * len(parents)
    if not (len(weights) or len(offsets) or len(centers)):
        return tuple(rules)
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


def _read_archive(data: bytes) -> dict[str, NDArray[Any]]:
    """Read all members; the archive's checksums are compared before any is looked into."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        names = archive.namelist()
        if len(set(names)) < len(names) or not all(n.endswith(".npy") for n in names):
            raise FileFormatError("this is not a taxarbor hierarchy")
        if any(entry.compress_type != zipfile.ZIP_DEFLATED for entry in archive.infolist()):
            raise FileFormatError("an array is compressed in an unknown way")
        return {name.removesuffix(".npy"): _parse(archive.read(name)) for name in names}


def _parse(data: bytes) -> NDArray[Any]:
    """Return the array in these bytes, never unpickling, never allocating what is not there."""
    stream = io.BytesIO(data)
    if npy.read_magic(stream) != (1, 0):
        raise FileFormatError("an array is of an unknown version")
    shape, is_fortran, dtype = npy.read_array_header_1_0(stream)
    if dtype.hasobject:
        raise FileFormatError("an array holds Python objects, which are never loaded")
    body = data[stream.tell() :]
    if math.prod(shape) * dtype.itemsize != len(body):
        raise FileFormatError("an array is not of the size that it states")
    return np.frombuffer(body, dtype).reshape(shape, order="F" if is_fortran else "C")


def parse_strict(text: str | bytes) -> Any:
    """Parse JSON, without the NaN and Infinity that Python would let pass."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


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


def decode_encoding(values: dict[str, Any] | None) -> Encoding | None:
    """Return the encoding in a document, where there is one."""
    return None if values is None else Encoding.from_dict(values)


def encode_float(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return float(value) if math.isfinite(value) else str(float(value))


def decode_float(value: float | str | None) -> float:
    return math.nan if value is None else float(value)
