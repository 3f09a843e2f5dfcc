"""One file per taxonomy: a zip of NumPy arrays and one JSON text, without pickles.

The member ``meta.json`` has the format's name and version, the names of the arrays, and what
is not an array: notes, infos, how columns are read, parameters. The arrays ``weights``,
``offsets``, ``targets`` and ``centers`` hold the rules of the ``rule_nodes``, one below the
other: a rule ends where the targets start again. Optional parts are left out: a tree of counts
has no ``order``, one without rules no ``weights``, nodes without a note or info none of these.

``numpy.savez_compressed`` would date the members: they are written here, so that the same
taxonomy gives the same bytes. The sizes that a file states are compared with its own before
anything is allocated, and a damaged file raises FileFormatError.
"""

import io
import json
import os
import zipfile
from collections import Counter
from dataclasses import asdict
from itertools import pairwise
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import ArrayLike, NDArray

from taxarbor._atomic_write import write_atomically
from taxarbor._errors import FileFormatError
from taxarbor._types import SolveInfo, Status
from taxarbor.tables.columns import ARRAYS, Columns
from taxarbor.taxonomy.noise import NoiseModel
from taxarbor.taxonomy.stability_result import Curve, Stability
from taxarbor.taxonomy.statistics import sum_leaves
from taxarbor.tree import LinearRule, Tree

if TYPE_CHECKING:
    from taxarbor.taxonomy.taxonomy import Taxonomy

FORMAT, VERSION = "taxarbor", 1
META = "meta.json"
MAX_MATRICES = 1 << 28  # bytes of zeros that a large tree may have
MAX_BYTES, MAX_NODES, MAX_META = (1 << 24, 64), (1 << 20, 16), (1 << 22, 64)
"""Bytes of all members, of a number for each node, and of ``meta.json``, and more for each byte
that they take in the file. A deflated byte may stand for a thousand, a node takes 100 bytes,
and text that is parsed takes 20 times as much."""
LARGEST = 1e151  # largest mean: squares must fit. A fit makes none above 1e150
_TREE = ("parents", "sizes", "score", "objective", "noise")
_OPTIONAL_TREE = ("order", "totals")
_STATISTICS = ("counts", "sums", "n_missing")
_SCORES = ("weights", "offsets", "targets")
_BOUNDED = ("noise_centers", "columns_fills", "counts")
_NOISE = ("centers", "units", "scale", "limit")
_STABILITY = ("n_recovered", "n_separated", "left_out")


def save(taxonomy: "Taxonomy", path: str | os.PathLike[str]) -> None:
    """Write the taxonomy to a file of exactly this name; see :meth:`Taxonomy.save`."""
    arrays = pack(taxonomy)
    write_atomically(path, lambda file: _write_archive(file, arrays))


def load(path: str | os.PathLike[str], kind: "type[Taxonomy]") -> "Taxonomy":
    """Return the taxonomy in a file; see :meth:`Taxonomy.load`."""
    with open(path, "rb") as file:
        try:
            return kind(**unpack(_read_archive(file)))
        except MemoryError:
            raise
        except Exception as error:  # damaged bytes raise errors of all kinds
            message = str(error)
            if not isinstance(error, FileFormatError):
                message = f"the file is damaged or incomplete ({message})"
            raise FileFormatError(f"cannot load {os.fspath(path)!r}: {message}") from error


def pack(taxonomy: "Taxonomy") -> dict[str, Any]:
    """Return the taxonomy as plain arrays, none of them of objects; ``meta`` is JSON."""
    tree, stability, noise_model = taxonomy.tree, taxonomy.stability, taxonomy.noise_model
    statistics, (columns, of_columns) = taxonomy.statistics, taxonomy.columns.pack()
    of_nodes = {name: getattr(statistics, name, None) for name in _STATISTICS}
    arrays: dict[str, ArrayLike | None] = {
        **{name: getattr(tree, name) for name in (*_TREE, *_OPTIONAL_TREE)},
        **{name: n if n is None else n[tree.leaves] for name, n in of_nodes.items()},
        **{f"columns_{name}": array for name, array in of_columns.items()},
        "row_weights": tree.weights,
        **{f"noise_{name}": getattr(noise_model, name, None) for name in _NOISE},
        **{f"stability_{name}": getattr(stability, name, None) for name in _STABILITY},
        "stability_curve": None if stability is None else np.stack(stability.curve),
    }
    if rules := [rule for rule in tree.rules if rule is not None]:
        for name in _SCORES:
            arrays[name] = np.concatenate([getattr(rule, name) for rule in rules])
        arrays["rule_nodes"] = np.flatnonzero([rule is not None for rule in tree.rules])
        arrays["centers"] = np.stack([rule.center for rule in rules])
    given = {name: array for name, array in arrays.items() if array is not None}
    known = {name: np.asarray(array, order="C") for name, array in given.items()}
    meta = {
        "format": FORMAT,
        "version": VERSION,
        "arrays": sorted(known),
        "notes": {node: note for node, note in enumerate(tree.notes) if note},
        "info": {node: asdict(info) for node, info in enumerate(tree.info) if info},
        "n_noise": tree.n_noise,
        "columns": columns,
        "n_refits": None if stability is None else stability.n_refits,
        "temperature": taxonomy.temperature,
        "made_by": taxonomy.made_by,
    }
    return {"meta": json.dumps(meta)} | known


def unpack(arrays: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of Taxonomy that :func:`pack` packed, or raise an error."""
    meta = _read_meta(arrays["meta"])
    if sorted(arrays.keys() - {"meta"}) != meta["arrays"]:
        raise FileFormatError(f"the arrays must be {meta['arrays']}, got {sorted(arrays)}")
    _check_sizes(arrays)
    nodes = [*map(str, range(len(arrays["parents"])))]
    parts: dict[str, Any] = {name: meta[name] for name in ("temperature", "made_by")}
    fields: dict[str, Any] = {name: arrays[name] for name in _TREE}
    fields |= {name: arrays.get(name) for name in _OPTIONAL_TREE}
    parts["tree"] = Tree(
        **fields,
        rules=_unstack(arrays),
        weights=arrays.get("row_weights"),
        n_noise=meta["n_noise"],
        info=tuple(_read_info(meta["info"].get(node)) for node in nodes),
        notes=tuple(meta["notes"].get(node, "") for node in nodes),
    )
    of_columns = {name: arrays[f"columns_{name}"] for name in ARRAYS}
    parts["columns"] = Columns.unpack(meta["columns"], of_columns)
    if "counts" in arrays:
        of_leaves = [arrays[name] for name in _STATISTICS if name in arrays]
        parts["statistics"] = sum_leaves(parts["tree"], *of_leaves)
    if "noise_centers" in arrays:
        centers, units, scale, limit = (arrays[f"noise_{name}"] for name in _NOISE)
        parts["noise_model"] = NoiseModel(centers, units, scale, float(limit))
    if meta["n_refits"] is not None:
        known: dict[str, Any] = {name: arrays[f"stability_{name}"] for name in _STABILITY}
        numbers, *shares = arrays["stability_curve"]
        curve = Curve(numbers.astype(np.intp), *shares)
        parts["stability"] = Stability(meta["n_refits"], **known, curve=curve)
    return parts


def _check_sizes(arrays: dict[str, Any]) -> None:
    """Raise FileFormatError for means and counts that a fit does not make."""
    values = {name: arrays[name] for name in _BOUNDED if name in arrays}
    if "counts" in arrays:
        values["means"] = arrays["sums"] / np.maximum(arrays["counts"], 1 / LARGEST)[:, None]
    for name, array in values.items():
        if not (np.abs(array) <= LARGEST).all():
            raise FileFormatError(f"{name} must be finite and at most {LARGEST:.0e}")


def _read_meta(text: str) -> dict[str, Any]:
    """Return the text as JSON, if it is of the version that is read here."""
    meta = json.loads(text)
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise FileFormatError("this is not a taxarbor file")
    if (version := meta.get("version")) != VERSION:
        raise FileFormatError(
            f"written by another taxarbor: format version {version!r}, and this one reads "
            f"version {VERSION}"
        )
    return meta


def _read_info(values: dict[str, Any] | None) -> SolveInfo | None:
    if values is None:
        return None
    trace = tuple(map(float, values["trace"]))
    n_iter, n_passes = int(values["n_iter"]), float(values["n_passes"])
    return SolveInfo(Status(values["status"]), n_iter, n_passes, trace)


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


def _write_archive(file: IO[bytes], arrays: dict[str, Any]) -> None:
    """Write what ``numpy.savez_compressed`` would, with a fixed date: same tree, same bytes."""
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(META if name == "meta" else f"{name}.npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as member:
                if name == "meta":
                    member.write(array.encode("ascii"))  # json escapes all else
                else:
                    npy.write_array(member, array, version=(1, 0), allow_pickle=False)


def _read_archive(file: IO[bytes]) -> dict[str, Any]:
    """Return the arrays and ``meta``; the sizes that are stated must fit into the file."""
    if file.read(4) != b"PK\x03\x04":
        raise FileFormatError("this is not a taxarbor file")
    n_bytes = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        entries = {entry.filename: entry for entry in archive.infolist()}
        if META not in entries:
            raise FileFormatError("this is not a taxarbor file")
        taken = min(sum(entry.compress_size for entry in entries.values()), n_bytes)
        sizes = Counter({name: entry.file_size for name, entry in entries.items()})
        lines = sizes["parents.npy"] + sizes["noise_units.npy"]  # 8 bytes for each
        matrices = min(lines * sizes["columns_fills.npy"], MAX_MATRICES)
        given = sizes.total() - matrices
        meta = entries.pop(META)
        for name, size, stored, (least, ratio) in (
            ("the arrays", given, taken, MAX_BYTES),
            ("the columns", sizes["columns_fills.npy"], taken, MAX_BYTES),
            ("the nodes", sizes["parents.npy"], taken, MAX_NODES),
            (META, meta.file_size, meta.compress_size, MAX_META),
        ):
            if size > least + ratio * stored:
                raise FileFormatError(f"{name} would take {size:,} bytes, which are too many")
        members: dict[str, Any] = {"meta": archive.read(meta).decode("ascii")}
        for name, entry in entries.items():
            members[name.removesuffix(".npy")] = _read_array(archive, entry)
        return members


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> NDArray[Any]:
    """Return an array of the archive; no Python objects, and no more than its member holds."""
    file = io.BytesIO(archive.read(entry))  # which compares its checksum
    npy.read_magic(file)
    shape, _, dtype = npy.read_array_header_1_0(file)
    if dtype.itemsize < 4 and dtype.kind != "b":  # it would grow when it is used
        raise FileFormatError(f"{entry.filename} holds {dtype}")
    return np.frombuffer(file.getbuffer(), dtype, offset=file.tell()).reshape(shape).copy()
