"""All of a hierarchy as strict JSON, and back.

::

    {"format": "taxarbor-hierarchy", "version": 3,
     "dtype": "float64", "feature_names": null, "order": [2, 0, 1],
     "placement": {"center": [...], "offsets": [...], "weights": [[...], [...]],
                   "leaves": [1, 2]},
     "nodes": [{"id": 0, "parent": null, "children": [1, 2], "start": 0, "stop": 3,
                "birth": 0, "score": 0.5, "objective": null, "fidelity": 0.9,
                "mean": [...], "note": "",
                "rule": {"center": [...], "offsets": [...], "features": [...],
                         "weights": [[...], [...]]},
                "info": {"status": "converged", "n_iter": 3, "n_passes": 7.5,
                         "trace": [...]}}, ...]}

Weights are given for the features that the rule uses, one row per child; in a placement,
for all features, one row per cell. NaN is null, infinities are "inf" and "-inf"; other
floats are written so that they read back exactly. A leaf's rule is null, and in a tree
without rules all are. The placement is null where there is none; where there are no rules
either, so is the dtype; unless there are means, "mean" is null in all nodes. Version 2 had no
"mean", version 1 neither "placement" nor "fidelity".
"""

import json
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from taxarbor._errors import FileFormatError
from taxarbor._types import Array, IndexArray, SolveInfo, Status
from taxarbor.hierarchy._atomic import write_whole
from taxarbor.hierarchy._placement import Placement, deciding_rule
from taxarbor.hierarchy._rule import LinearRule

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy

FORMAT, VERSION = "taxarbor-hierarchy", 3


def to_json(hierarchy: "Hierarchy", path: str | os.PathLike[str] | None = None) -> str:
    """Return the hierarchy as JSON text, ASCII only, and write it to a file if given."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "dtype": _dtype(hierarchy),
        "feature_names": hierarchy.feature_names,
        "order": hierarchy.order.tolist(),
        "placement": _encode_placement(hierarchy.placement),
        "nodes": [_node(hierarchy, node) for node in range(hierarchy.n_nodes)],
    }
    text = json.dumps(document, allow_nan=False)
    if path is not None:
        write_whole(path, lambda file: file.write(text.encode("ascii")))
    return text


def _dtype(hierarchy: "Hierarchy") -> str | None:
    """Return the one type of all weights and means, None where there are none."""
    rule, means = deciding_rule(hierarchy), hierarchy.means
    if rule is None and means is None:
        return None
    return str(means.dtype if rule is None else rule.dtype)  # type: ignore[union-attr]


def from_json(source: str | os.PathLike[str]) -> "Hierarchy":
    """Return the hierarchy that :func:`to_json` wrote.

    Parameters
    ----------
    source : str or path
        The text itself, or a path object, such as ``pathlib.Path``, to a file of it.

    Raises
    ------
    FileFormatError
        If the text is not JSON, of another kind, damaged, or of a newer version.
    """
    from taxarbor.hierarchy._tree import Hierarchy

    data = source if isinstance(source, str) else Path(source).read_bytes()
    try:
        document = parse_strict(data)
        version = check_version(document)
        added = {} if version == 1 else _fields_since_v2(document)
        means = None if version < 3 else _decode_means(document)
        return Hierarchy(**_fields(document), **added, means=means)
    except FileFormatError:
        raise
    except KeyError as error:
        raise FileFormatError(f"the hierarchy in JSON lacks {error}") from error
    except (ValueError, TypeError, IndexError, OverflowError, RecursionError) as error:
        is_name = isinstance(source, str) and not source.lstrip().startswith("{")
        hint = "; to read a file, pass pathlib.Path" if is_name else ""
        raise FileFormatError(f"not a hierarchy in JSON, or damaged: {error}{hint}") from error


def parse_strict(text: str | bytes) -> Any:
    """Parse JSON, without the NaN and Infinity that Python would let pass."""

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def check_version(document: Any) -> int:
    """Return the document's version, or raise FileFormatError if it cannot be read here."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise FileFormatError("this is not a taxarbor hierarchy")
    version = document.get("version")
    if type(version) is not int or version < 1:
        raise FileFormatError(f"a taxarbor hierarchy without a valid version: {version!r}")
    if version > VERSION:
        raise FileFormatError(
            f"written by a newer taxarbor: format version {version}, and this one reads "
            f"versions up to {VERSION}. Upgrade taxarbor to read it."
        )
    return version


def encode_info(info: SolveInfo | None) -> dict[str, Any] | None:
    """Return the values of a SolveInfo for JSON."""
    if info is None:
        return None
    return {
        "status": str(info.status),
        "n_iter": int(info.n_iter),
        "n_passes": _encode_float(info.n_passes),
        "trace": [_encode_float(value) for value in info.trace],
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


def _encode_float(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return float(value) if math.isfinite(value) else str(float(value))


def _decode_float(value: float | str | None) -> float:
    return math.nan if value is None else float(value)


def _node(hierarchy: "Hierarchy", node: int) -> dict[str, Any]:
    return {
        "id": node,
        "parent": hierarchy.parent(node),
        "children": hierarchy.children(node),
        "start": int(hierarchy.start[node]),
        "stop": int(hierarchy.stop[node]),
        "birth": int(hierarchy.birth[node]),
        "score": _encode_float(hierarchy.score[node]),
        "objective": _encode_float(hierarchy.objective[node]),
        "fidelity": _encode_float(hierarchy.fidelity[node]),
        "mean": None if hierarchy.means is None else hierarchy.means[node].tolist(),
        "note": hierarchy.notes[node],
        "rule": _encode_rule(hierarchy.rules[node]),
        "info": encode_info(hierarchy.info[node]),
    }


def _fields(document: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of Hierarchy; their types and relations are checked there."""
    nodes = document["nodes"]
    if [node["id"] for node in nodes] != list(range(len(nodes))):
        raise ValueError("nodes must be listed by id")
    parents = [-1 if node["parent"] is None else node["parent"] for node in nodes]
    dtype, names = document["dtype"], document["feature_names"]
    return {
        "order": np.array(document["order"]),
        "start": np.array([node["start"] for node in nodes]),
        "stop": np.array([node["stop"] for node in nodes]),
        "parents": np.array(parents),
        "birth": np.array([node["birth"] for node in nodes]),
        "score": np.array([_decode_float(node["score"]) for node in nodes]),
        "objective": np.array([_decode_float(node["objective"]) for node in nodes]),
        "rules": tuple(_decode_rule(node["rule"], dtype) for node in nodes),
        "info": tuple(decode_info(node["info"]) for node in nodes),
        "notes": tuple(node["note"] for node in nodes),
        "feature_names": None if names is None else tuple(names),
    }


def _fields_since_v2(document: dict[str, Any]) -> dict[str, Any]:
    """Return those arguments of Hierarchy that version 1 did not have."""
    shares = [_decode_float(node["fidelity"]) for node in document["nodes"]]
    placement = _decode_placement(document["placement"], document["dtype"])
    return {"fidelity": np.array(shares), "placement": placement}


def _decode_means(document: dict[str, Any]) -> Array | None:
    means = [node["mean"] for node in document["nodes"]]
    if all(mean is None for mean in means):
        return None
    return _numbers(means, document["dtype"])


def _numbers(values: Any, dtype: str) -> Array:
    """Return an array of what must be numbers: NumPy would take "1" and true for some."""
    entries = np.array(values, dtype=object)
    if not all(type(entry) in (int, float) for entry in entries.ravel().tolist()):
        raise ValueError("weights, centers, offsets and means must be finite numbers")
    return entries.astype(dtype)


def _encode_rule(rule: LinearRule | None) -> dict[str, Any] | None:
    if rule is None:
        return None
    features = rule.features
    return {
        "center": rule.center.tolist(),
        "offsets": rule.offsets.tolist(),
        "features": features.tolist(),
        "weights": rule.weights[:, features].tolist(),
    }


def _decode_rule(values: dict[str, Any] | None, dtype: str) -> LinearRule | None:
    if values is None:
        return None
    used, center, offsets = (
        _numbers(values[name], dtype) for name in ("weights", "center", "offsets")
    )
    features: IndexArray = np.array(values["features"], dtype=np.intp)
    if used.ndim != 2 or used.shape[1:] != features.shape:
        raise ValueError("a rule must have one weight per child and feature")
    if len(np.unique(features)) < len(features) or (features < 0).any():
        raise ValueError("the features of a rule must be different column numbers")
    weights = np.zeros((len(used), len(center)), dtype=dtype)
    weights[:, features] = used
    return LinearRule(weights, center, offsets)


def _encode_placement(placement: Placement | None) -> dict[str, Any] | None:
    if placement is None:
        return None
    return {
        "center": placement.rule.center.tolist(),
        "offsets": placement.rule.offsets.tolist(),
        "weights": placement.rule.weights.tolist(),
        "leaves": placement.leaves.tolist(),
    }


def _decode_placement(values: dict[str, Any] | None, dtype: str) -> Placement | None:
    if values is None:
        return None
    parts = [_numbers(values[name], dtype) for name in ("weights", "center", "offsets")]
    return Placement(LinearRule(*parts), np.array(values["leaves"]))
