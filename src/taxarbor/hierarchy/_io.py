"""One file per hierarchy: a zip of NumPy arrays, as ``numpy.load`` reads, without pickles.

The array ``meta`` is a JSON text with the format's name and version, the notes, infos
and feature names. The arrays ``weights``, ``offsets`` and ``centers`` hold the rules of
the inner nodes, one below the other, and are empty where there are none. The arrays
``placement_weights``, ``placement_offsets``, ``placement_center`` and ``placement_leaves``
hold the placement, and are empty where there is none; so is ``means``, those of the nodes.
Files of version 2 lack ``means``, those of version 1 also the placement and ``fidelity``.
"""

import io
import json
import math
import os
import struct
import zipfile
import zlib
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from taxarbor._errors import FileFormatError
from taxarbor.hierarchy._atomic import write_whole
from taxarbor.hierarchy._json import (
    FORMAT,
    VERSION,
    check_version,
    decode_info,
    encode_info,
    parse_strict,
)
from taxarbor.hierarchy._placement import Placement
from taxarbor.hierarchy._rule import LinearRule

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy

_INDICES = ("order", "start", "stop", "parents", "birth")
_FLOATS = ("score", "objective", "weights", "offsets", "centers")
_PLACEMENT = tuple(f"placement_{part}" for part in ("weights", "center", "offsets", "leaves"))
_NAMES_V1 = frozenset((*_INDICES, *_FLOATS, "meta"))
_NAMES_V2 = _NAMES_V1 | {"fidelity", *_PLACEMENT}
_NAMES = _NAMES_V2 | {"means"}
# What the standard library raises, here or there, on bytes that are no sound archive.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    KeyError,
    IndexError,
    TypeError,
    OverflowError,
    RuntimeError,
    OSError,
)


def save(hierarchy: "Hierarchy", path: str | os.PathLike[str]) -> None:
    """Write the hierarchy to a file of exactly this name, whole or not at all.

    Parameters
    ----------
    hierarchy : Hierarchy
        What to write.
    path : str or path
        Where. A file that is there is replaced, once the new one is complete.

    Raises
    ------
    OSError
        If the file cannot be written; what was there before is left as it was.
    """
    arrays = pack(hierarchy)
    write_whole(path, lambda file: _write_archive(file, arrays))


def load(path: str | os.PathLike[str]) -> "Hierarchy":
    """Return the hierarchy that :func:`save` wrote.

    Parameters
    ----------
    path : str or path
        The file.

    Raises
    ------
    FileFormatError
        If the file is damaged, of another kind or of a newer version.
    OSError
        If it cannot be read, FileNotFoundError if there is none.
    """
    from taxarbor.hierarchy._tree import Hierarchy

    with open(path, "rb") as file:
        if file.read(4) != b"PK\x03\x04":
            raise FileFormatError(f"{os.fspath(path)!r} is not a taxarbor hierarchy")
        file.seek(0)
        data = file.read()
    try:
        return Hierarchy(**unpack(_read_archive(data)))
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
        "version": VERSION,
        "notes": hierarchy.notes,
        "info": [encode_info(info) for info in hierarchy.info],
        "feature_names": hierarchy.feature_names,
    }
    flat, nothing = np.zeros(0), np.zeros((0, 0))
    return {
        "meta": np.array(json.dumps(meta, allow_nan=False)),
        **{name: getattr(hierarchy, name).astype(np.int64) for name in _INDICES},
        "score": hierarchy.score,
        "objective": hierarchy.objective,
        "weights": np.concatenate([rule.weights for rule in rules]) if rules else nothing,
        "offsets": np.concatenate([rule.offsets for rule in rules]) if rules else flat,
        "centers": np.stack([rule.center for rule in rules]) if rules else nothing,
        "fidelity": hierarchy.fidelity,
        **_pack_placement(hierarchy.placement),
        "means": nothing if hierarchy.means is None else hierarchy.means,
    }


def _pack_placement(placement: Placement | None) -> dict[str, NDArray[Any]]:
    arrays: tuple[NDArray[Any], ...]
    if placement is None:
        arrays = np.zeros((0, 0)), np.zeros(0), np.zeros(0), np.zeros(0, dtype=np.int64)
    else:
        rule, leaves = placement.rule, placement.leaves.astype(np.int64)
        arrays = rule.weights, rule.center, rule.offsets, leaves
    return dict(zip(_PLACEMENT, arrays, strict=True))


def unpack(arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    """Return the arguments of Hierarchy that :func:`pack` packed.

    Raises
    ------
    FileFormatError
        If the arrays are not those that this version, or the one they name, packs.
    """
    if "meta" not in arrays or arrays["meta"].dtype.kind != "U":
        raise FileFormatError("this is not a taxarbor hierarchy")
    meta = parse_strict(str(arrays["meta"]))
    version = check_version(meta)
    expected = {1: _NAMES_V1, 2: _NAMES_V2}.get(version, _NAMES)
    if arrays.keys() != expected:
        missing, foreign = sorted(expected - arrays.keys()), sorted(arrays.keys() - expected)
        raise FileFormatError(f"arrays are missing: {missing}, or foreign: {foreign}")
    for name in (*_FLOATS, "fidelity", *_PLACEMENT[:-1], "means"):
        if name in expected and arrays[name].dtype.kind != "f":
            raise FileFormatError(f"{name} must hold floats, not {arrays[name].dtype}")
    names, means = meta["feature_names"], arrays.get("means")
    return {
        **{name: arrays[name] for name in (*_INDICES, "score", "objective")},
        "rules": _unstack(
            *(arrays[name] for name in ("parents", "weights", "offsets", "centers"))
        ),
        "info": tuple(decode_info(values) for values in meta["info"]),
        "notes": tuple(meta["notes"]),
        "feature_names": None if names is None else tuple(names),
        "fidelity": arrays.get("fidelity"),
        "placement": None if version == 1 else _unpack_placement(arrays),
        "means": None if means is None or means.shape == (0, 0) else means,
    }


def _unpack_placement(arrays: dict[str, NDArray[Any]]) -> Placement | None:
    weights, center, offsets, leaves = (arrays[name] for name in _PLACEMENT)
    if leaves.dtype.kind not in "iu":
        raise FileFormatError(f"placement_leaves must hold integers, not {leaves.dtype}")
    if not (len(weights) or len(center) or len(offsets) or len(leaves)):
        return None
    return Placement(LinearRule(weights, center, offsets), leaves)


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
