"""One file per hierarchy: a zip of NumPy arrays, as ``numpy.load`` reads, without pickles.

The array ``meta`` is a JSON text with the format's name and version, the names of the other
arrays, the notes, infos and feature names, the temperature, ``made_by``, the encoding, the
number of refits of the trust and the number of rows that are noise. The arrays ``weights``,
``offsets``, ``targets`` and ``centers`` hold the rules of the ``rule_nodes``, one below the
other: a rule ends where the targets start again. What a tree does not have is not there: a tree
of counts has no ``order``, one without rules no ``weights``.

``numpy.savez_compressed`` would date the members: they are written here, so that the same tree
gives the same bytes. The sizes that a file states are compared with its own before any array is
allocated, and a damaged file raises FileFormatError.
"""

import json
import math
import os
import struct
import tokenize
import zipfile
import zlib
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from taxarbor._errors import FileFormatError, printable
from taxarbor._types import SolveInfo, Status
from taxarbor.hierarchy._encoding import Encoding
from taxarbor.hierarchy._noise import NoiseModel
from taxarbor.hierarchy._rule import LinearRule
from taxarbor.hierarchy._trust import Curve, Trust
from taxarbor.hierarchy._whole import write_whole

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy

FORMAT, VERSION = "taxarbor-hierarchy", 1
MAX_RATIO = 1032
"""Bytes that a byte of a deflated stream may stand for, at most."""
MAX_MESSAGE = 300
"""Characters that are quoted of what is wrong with a file."""
_INDICES = ("start", "stop", "parents", "birth")
_OPTIONAL = ("order", "noise", "means", "two_values", "missing", "totals")
_SCORES = ("weights", "offsets", "targets")
_NOISE = ("centers", "units", "limit", "scale")
_TRUST = (
    *("came_back", "apart", "rule_came_back", "feature_came_back"),
    *("left_out", "rows", "curve"),
)
# What the standard library and NumPy raise on bytes that are no sound archive.
_DAMAGE = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, ValueError, LookupError),
    *(TypeError, AttributeError, OverflowError, RuntimeError, OSError, MemoryError),
    tokenize.TokenError,
)


def save(hierarchy: "Hierarchy", path: str | os.PathLike[str]) -> None:
    """Write the hierarchy to a file of exactly this name; see :meth:`Hierarchy.save`."""
    arrays = pack(hierarchy)
    write_whole(path, lambda file: _write_archive(file, arrays))


def load(path: str | os.PathLike[str], kind: "type[Hierarchy]") -> "Hierarchy":
    """Return the hierarchy in a file; see :meth:`Hierarchy.load`."""
    with open(path, "rb") as file:
        try:
            return kind(**unpack(_read_archive(file)))
        except FileFormatError as error:
            message = printable(str(error))[:MAX_MESSAGE]
            raise FileFormatError(f"cannot load {os.fspath(path)!r}: {message}") from error
        except _DAMAGE as error:
            message = printable(str(error))[:MAX_MESSAGE]
            message = f"the file is damaged or incomplete ({message})"
            raise FileFormatError(f"cannot load {os.fspath(path)!r}: {message}") from error


def pack(hierarchy: "Hierarchy") -> dict[str, NDArray[Any]]:
    """Return the hierarchy as plain arrays, none of them of objects."""
    trust, noise_model = hierarchy.trust, hierarchy.noise_model
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "notes": hierarchy.notes,
        "info": [encode_info(info) for info in hierarchy.info],
        "feature_names": hierarchy.feature_names,
        "temperature": hierarchy.temperature,
        "made_by": hierarchy.made_by,
        "encoding": None if hierarchy.encoding is None else hierarchy.encoding.to_dict(),
        "n_refits": None if trust is None else trust.n_refits,
        "n_noise": hierarchy.n_noise,
    }
    arrays: dict[str, Any] = {
        **{name: getattr(hierarchy, name) for name in (*_INDICES, "score", "objective")},
        **{name: getattr(hierarchy, name) for name in _OPTIONAL},
        "row_weights": hierarchy.weights,
        **{f"noise_{name}": getattr(noise_model, name, None) for name in _NOISE},
    }
    if rules := [rule for rule in hierarchy.rules if rule is not None]:
        for name in _SCORES:
            arrays[name] = np.concatenate([getattr(rule, name) for rule in rules])
        arrays["rule_nodes"] = np.flatnonzero([rule is not None for rule in hierarchy.rules])
        arrays["centers"] = np.stack([rule.center for rule in rules])
    if trust is not None:
        arrays |= {f"trust_{name}": getattr(trust, name) for name in _TRUST}
        arrays["trust_feature_came_back"] = np.concatenate(trust.feature_came_back)
        arrays["trust_curve"] = np.stack(trust.curve)
    known = {name: np.asarray(one) for name, one in arrays.items() if one is not None}
    text = json.dumps(meta | {"arrays": sorted(known)}, allow_nan=False)
    plain = {n: a.astype(np.int64) if a.dtype.kind == "i" else a for n, a in known.items()}
    return {"meta": np.array(text)} | plain


def unpack(arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the arguments of Hierarchy that :func:`pack` packed, or raise an error."""
    meta = _read_meta(arrays.get("meta"))
    if sorted(arrays.keys() - {"meta"}) != meta["arrays"]:
        raise FileFormatError(f"the arrays must be {meta['arrays']}, got {sorted(arrays)}")
    encoding, rules = meta["encoding"], _unstack(arrays)
    fields = {
        **{name: arrays[name] for name in (*_INDICES, "score", "objective")},
        **{name: arrays.get(name) for name in _OPTIONAL},
        "weights": arrays.get("row_weights"),
        "n_noise": meta["n_noise"],
        "rules": rules,
        "info": tuple(decode_info(values) for values in meta["info"]),
        "notes": tuple(meta["notes"]),
        "feature_names": meta["feature_names"],
        "temperature": meta["temperature"],
        "made_by": meta["made_by"],
        "encoding": None if encoding is None else Encoding.from_dict(encoding),
    }
    if "noise_centers" in arrays:
        centers, units, limit = (arrays[f"noise_{part}"] for part in _NOISE[:-1])
        fields["noise_model"] = NoiseModel(
            centers, units, float(limit), arrays.get("noise_scale")
        )
    if meta["n_refits"] is not None:
        fields["trust"] = _unpack_trust(arrays, meta["n_refits"], rules)
    return fields


def _read_meta(text: NDArray[Any] | None) -> dict[str, Any]:
    """Return the text as JSON, if it is of the version that is read here."""
    if text is None or text.dtype.kind != "U":
        raise FileFormatError("this is not a taxarbor hierarchy")
    meta = json.loads(str(text))
    json.dumps(meta, allow_nan=False)  # what cannot be written again is refused
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise FileFormatError("this is not a taxarbor hierarchy")
    if (version := meta.get("version")) != VERSION:
        raise FileFormatError(
            f"written by another taxarbor: format version {version!r}, and this one reads "
            f"version {VERSION}"
        )
    return meta


def _unpack_trust(
    arrays: dict[str, NDArray[Any]], n_refits: int, rules: tuple[LinearRule | None, ...]
) -> Trust:
    came_back, apart, rule, features, left_out, rows, curve = (
        arrays[f"trust_{name}"] for name in _TRUST
    )
    sizes = [0 if one is None else one.n_features_used for one in rules]
    if features.shape != (sum(sizes),):
        raise FileFormatError("trust_feature_came_back does not fit the rules")
    numbers, stability, reference = curve
    return Trust(
        n_refits=n_refits,
        came_back=_counts(came_back),
        apart=_counts(apart),
        rule_came_back=_counts(rule),
        feature_came_back=tuple(np.split(_counts(features), np.cumsum(sizes)[:-1])),
        left_out=left_out.astype(np.float64),
        rows=rows.astype(np.float64),
        curve=Curve(numbers.astype(np.intp), stability.copy(), reference.copy()),
    )


def _counts(array: NDArray[Any]) -> NDArray[np.intp]:
    return array.astype(np.intp, casting="same_kind")


def _unstack(arrays: dict[str, NDArray[Any]]) -> tuple[LinearRule | None, ...]:
    """Give the nodes with a rule their centres, and their rows of weights."""
    rules: list[LinearRule | None] = [None] * len(arrays["parents"])
    if "weights" not in arrays:
        return tuple(rules)
    nodes, centers, targets = (arrays[name] for name in ("rule_nodes", "centers", "targets"))
    if not np.isin(nodes, np.arange(len(rules))).all() or (np.diff(nodes) <= 0).any():
        raise FileFormatError("rule_nodes must be ids of nodes, in order")
    if len({len(arrays[name]) for name in _SCORES}) > 1:
        raise FileFormatError("weights, offsets and targets do not fit together")
    stops = [*np.flatnonzero(np.diff(targets) < 0) + 1, len(targets)]
    for node, center, own in zip(nodes.tolist(), centers, pairwise([0, *stops]), strict=True):
        weights, offsets, ends = (arrays[name][slice(*own)] for name in _SCORES)
        rules[node] = LinearRule(weights, center, offsets, ends)
    return tuple(rules)


def _write_archive(file: IO[bytes], arrays: dict[str, NDArray[Any]]) -> None:
    """Write what ``numpy.savez_compressed`` would, with a fixed date: same tree, same bytes."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as member:
                npy.write_array(member, array, version=(1, 0), allow_pickle=False)


def _read_archive(file: IO[bytes]) -> dict[str, NDArray[Any]]:
    """Return the arrays; the sizes that are stated must fit into the bytes of the file."""
    if file.read(4) != b"PK\x03\x04":
        raise FileFormatError("this is not a taxarbor hierarchy")
    n_bytes = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        n_stated = sum(entry.compress_size for entry in entries)
        if n_stated > n_bytes or any(
            entry.file_size > MAX_RATIO * entry.compress_size for entry in entries
        ):
            raise FileFormatError("the arrays take more bytes than the file has")
        return {
            entry.filename.removesuffix(".npy"): _read_array(archive, entry)
            for entry in entries
        }


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """Return an array of the archive; no Python objects, and no more than its member holds."""
    with archive.open(entry) as member:
        npy.read_magic(member)
        shape, _, dtype = npy.read_array_header_1_0(member)
        if math.prod(shape) * dtype.itemsize + member.tell() != entry.file_size:
            raise FileFormatError("an array is not of the size that it states")
    with archive.open(entry) as member:
        array: NDArray[Any] = npy.read_array(member, allow_pickle=False)
        member.read()  # to the end, where the checksum is compared
    return array


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
        n_passes=_decode_float(values["n_passes"]),
        trace=tuple(_decode_float(value) for value in values["trace"]),
    )


def encode_float(value: float) -> float | str | None:
    """Return a float for JSON: NaN is null, infinities are "inf" and "-inf"."""
    if math.isnan(value):
        return None
    return float(value) if math.isfinite(value) else str(float(value))


def _decode_float(value: float | str | None) -> float:
    return math.nan if value is None else float(value)
