"""All of a hierarchy as strict JSON, and back.

::

    {"format": "taxarbor-hierarchy", "version": 3,
     "dtype": "float64", "feature_names": null, "temperature": null, "order": [2, 0, 1],
     "weights": [1.0, 2.0, 1.5], "noise": [3],
     "usual": {"centers": [[...], [...]], "units": [...], "limit": 4.5, "scale": null},
     "placement": {"center": [...], "offsets": [...], "features": [...],
                   "weights": [[...], [...]], "leaves": [1, 2]},
     "two_values": [[0.0, 1.0], null], "follows": {"broken": [-1, -1, 0], "share": [...],
                   "worst": [...], "worst_share": [...], "gap": [null, [1.5, 2.0]]},
     "trust": {"n_refits": 20, "came_back": [20, 18, 19], "apart": [...],
               "rule_came_back": [...], "feature_came_back": [[17, 3], [], []],
               "rows": [1.0, 0.95, 1.0],
               "curve": {"n_clusters": [1, 2], "stability": [1.0, 0.9],
                         "reference": [1.0, null]}},
     "made_by": {"estimator": "Taxarbor", "n_clusters": 2, ...},
     "encoding": {"columns": [{"name": "origin", "place": 0, "kind": "category",
                               "fill": [0.25, 0.75], "categories": ["japan", "usa"],
                               "values": [], "missing": 0.5, "has_indicator": false}, ...],
                  "n_columns_in": 2, "has_names": true, "unit_length": false,
                  "dropped": [["id", "..."]], "notes": ["..."],
                  "shift": [0.75, 2.0], "scale": [0.4, 1.5]},
     "missing": [[0.5, 0.0], [1.0, 0.0], [0.25, 0.0]],
     "nodes": [{"id": 0, "parent": null, "children": [1, 2], "start": 0, "stop": 3,
                "birth": 0, "score": 0.5, "objective": null, "fidelity": 0.9,
                "mean": [...], "note": "",
                "rule": {"center": [...], "offsets": [...], "features": [...],
                         "weights": [[...], [...]]},
                "info": {"status": "converged", "n_iter": 3, "n_passes": 7.5,
                         "trace": [...]}}, ...]}

Weights are given for the features that the rule uses, one row per child; in a placement,
one row per cell. NaN is null, infinities are "inf" and "-inf"; other
floats are written so that they read back exactly. A leaf's rule is null, and in a tree
without rules all are. The placement is null where there is none; where there are no rules
either, so is the dtype; unless there are means, "mean" is null in all nodes. Version 1 has
neither "two_values", "follows", "trust" nor "made_by", and version 2 neither "weights",
"noise", "usual", "encoding" nor "missing", a share for each node and column; all but "noise"
may also be null. Version 4 is for trees that hold counts, not rows: "order" is null there, and
"broken" of "follows"; "n_noise" is a number, and "totals", the weights of the nodes, may be
null.

The standard library writes and reads it: the numbers of a wide tree take most of the time, and
a faster parser would be one more library to install.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from taxarbor._errors import FileFormatError, InputError
from taxarbor._types import Array, IndexArray
from taxarbor.hierarchy import Follows, Hierarchy, LinearRule, Placement, Trust, _file
from taxarbor.hierarchy._checks import indices
from taxarbor.hierarchy._encoding import Encoding
from taxarbor.hierarchy._file import clipped, decode_float, encode_float
from taxarbor.hierarchy._noise import Usual
from taxarbor.hierarchy._rule import deciding_rule
from taxarbor.hierarchy._trust import Curve
from taxarbor.hierarchy._whole import write_whole

_INDICES, _FLOATS = ("start", "stop", "birth"), ("score", "objective", "fidelity")
"""What every node has under the same name here and in the tree, one number each."""
_COUNTS = ("came_back", "apart", "rule_came_back")


def to_json(hierarchy: Hierarchy, path: str | os.PathLike[str] | None = None) -> str:
    """Return all of the hierarchy as strict JSON, ASCII only, and write it to a file if given.

    Parameters
    ----------
    hierarchy : Hierarchy
        The tree.
    path : str or path, optional
        A file, which is written whole or not at all.

    Examples
    --------
    >>> from taxarbor.exchange import from_json, from_labels, to_json
    >>> from_json(to_json(from_labels([0, 1, 1])))
    Hierarchy(n_rows=3, n_leaves=2, height=1)
    """
    rule, placement = deciding_rule(hierarchy), hierarchy.placement
    typed = hierarchy.means if rule is None else rule.weights
    document = {
        "format": _file.FORMAT,
        "version": _file.version_of(hierarchy),
        "dtype": None if typed is None else str(typed.dtype),
        "feature_names": hierarchy.feature_names,
        "temperature": hierarchy.temperature,
        "order": _plain(hierarchy.order),
        "weights": _plain(hierarchy.weights),
        "noise": hierarchy.noise.tolist(),
        "usual": _plain(hierarchy.usual),
        "placement": placement
        and _encode_rule(placement.rule) | {"leaves": placement.leaves.tolist()},
        "two_values": _plain(hierarchy.two_values),
        "follows": _plain(hierarchy.follows),
        "trust": _plain(hierarchy.trust),
        "made_by": hierarchy.made_by,
        "encoding": hierarchy.encoding and hierarchy.encoding.to_dict(),
        "missing": _plain(hierarchy.missing),
        "nodes": [_node(hierarchy, node) for node in range(hierarchy.n_nodes)],
    }
    if not hierarchy.has_rows:
        document |= {"n_noise": hierarchy.n_noise, "totals": _plain(hierarchy.totals)}
    text = json.dumps(document, allow_nan=False)
    if path is not None:
        write_whole(path, lambda file: file.write(text.encode("ascii")))
    return text


def from_json(source: str | os.PathLike[str]) -> Hierarchy:
    """Return the hierarchy that :func:`to_json` wrote.

    Parameters
    ----------
    source : str or path
        The text itself, or a path object, such as ``pathlib.Path``, to a file of it.

    Raises
    ------
    FileFormatError
        If the text is not JSON, of another kind, damaged, or of another version.

    Examples
    --------
    >>> from taxarbor.exchange import from_json, from_labels, to_json
    >>> from_json(to_json(from_labels(["a", "b"]))).labels
    array([0, 1])
    """
    data = source if isinstance(source, str) else Path(source).read_bytes()
    try:
        document = _file.parse_strict(data)
        _file.check_version(document)
        return Hierarchy(**_fields(document))
    except FileFormatError as error:
        raise FileFormatError(clipped(error)) from error
    except KeyError as error:
        raise FileFormatError(f"the hierarchy in JSON lacks {error}") from error
    except MemoryError as error:
        raise FileFormatError("the tree in JSON takes more memory than there is") from error
    except (ValueError, TypeError, IndexError, OverflowError, RecursionError) as error:
        is_name = isinstance(source, str) and not source.lstrip().startswith("{")
        hint = "; to read a file, pass pathlib.Path" if is_name else ""
        told = f"not a hierarchy in JSON, or damaged: {clipped(error)}{hint}"
        raise FileFormatError(told) from error


def _node(hierarchy: Hierarchy, node: int) -> dict[str, Any]:
    rule = hierarchy.rules[node]
    return {
        "id": node,
        "parent": hierarchy.parent(node),
        "children": hierarchy.children(node),
        **{name: int(getattr(hierarchy, name)[node]) for name in _INDICES},
        **{name: encode_float(getattr(hierarchy, name)[node]) for name in _FLOATS},
        "mean": None if hierarchy.means is None else hierarchy.means[node].tolist(),
        "note": hierarchy.notes[node],
        "rule": rule and _encode_rule(rule),
        "info": _file.encode_info(hierarchy.info[node]),
    }


def _fields(document: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of Hierarchy; their types and relations are checked there."""
    nodes = document["nodes"]
    if [node["id"] for node in nodes] != list(range(len(nodes))):
        raise InputError("nodes must be listed by id")
    parents = [-1 if node["parent"] is None else node["parent"] for node in nodes]
    dtype, placement = document["dtype"], document["placement"]
    if dtype not in (None, "float32", "float64"):
        raise InputError(f"dtype must be float32 or float64, got {dtype!r}")
    cells = _if_known(placement, _decode_rule, dtype)
    means = [node["mean"] for node in nodes]
    n_noise, order = _file.counts_noise(document), document["order"]
    if (n_noise is None) == (order is None):
        raise InputError("either the order of the rows must be known, or n_noise")
    return {
        **{name: np.array([node[name] for node in nodes]) for name in _INDICES},
        **{name: np.array([decode_float(node[name]) for node in nodes]) for name in _FLOATS},
        **{
            name: _if_known(document.get(name), _numbers)
            for name in ("totals", "weights", "missing")
        },
        "order": _if_known(order, np.array),
        "n_noise": n_noise or 0,
        "noise": _counts("noise", document.get("noise") or []),
        "usual": _if_known(document.get("usual"), _decode_usual, dtype),
        "parents": np.array(parents),
        "rules": tuple(_if_known(node["rule"], _decode_rule, dtype) for node in nodes),
        "info": tuple(_file.decode_info(node["info"]) for node in nodes),
        "notes": tuple(node["note"] for node in nodes),
        "feature_names": document["feature_names"],
        "temperature": document.get("temperature"),  # older files have none
        "placement": cells and Placement(cells, np.array(placement["leaves"])),
        "means": None if all(mean is None for mean in means) else _numbers(means, dtype),
        "two_values": _if_known(document.get("two_values"), _decode_pairs),
        "follows": _if_known(document.get("follows"), _decode_follows),
        "trust": _if_known(document.get("trust"), _decode_trust),
        "made_by": _file.decode_made_by(document.get("made_by")),
        "encoding": _if_known(document.get("encoding"), Encoding.from_dict),
    }


def _plain(value: Any) -> Any:
    """Return arrays, and what is made of them, as JSON has them.

    NaN is null, and so is a pair of numbers with one.
    """
    if isinstance(value, Usual | Follows | Trust | Curve):
        return {name: _plain(getattr(value, name)) for name in value.__match_args__}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    if not isinstance(value, np.ndarray):
        return value
    if value.dtype.kind != "f" or np.isfinite(value).all():
        return value.tolist()
    if value.ndim == 1:
        return [encode_float(number) for number in value]
    return [None if np.isnan(pair).any() else pair.tolist() for pair in value]


def _if_known(value: Any, decode: Callable[..., Any], *more: Any) -> Any:
    return None if value is None else decode(value, *more)


def _decode_pairs(values: list[list[float] | None]) -> Array:
    pairs = [[np.nan] * 2 if pair is None else _numbers(pair) for pair in values]
    return np.array(pairs, dtype=np.float64).reshape(len(pairs), 2)


def _decode_usual(values: dict[str, Any], dtype: str) -> Usual:
    centers, units = _numbers(values["centers"], dtype), _numbers(values["units"])
    limit, scale = _numbers([values["limit"]]), _if_known(values["scale"], _numbers)
    return Usual(centers, units, float(limit[0]), scale)


def _decode_follows(values: dict[str, Any]) -> Follows:
    if values["worst"] is None:
        raise InputError("the worst rules of follows must be known")
    broken, worst = (
        _if_known(values[name], lambda found, name=name: indices(name, np.array(found)))
        for name in ("broken", "worst")
    )
    share, worst_share = (_numbers(values[name]) for name in ("share", "worst_share"))
    return Follows(broken, share, worst, worst_share, _decode_pairs(values["gap"] or []))


def _decode_trust(values: dict[str, Any]) -> Trust:
    curve = values["curve"]
    shares = (
        np.array([decode_float(value) for value in curve[name]], dtype=np.float64)
        for name in ("stability", "reference")
    )
    features = (_counts("feature_came_back", one) for one in values["feature_came_back"])
    return Trust(
        n_refits=values["n_refits"],
        **{name: _counts(name, values[name]) for name in _COUNTS},
        feature_came_back=tuple(features),
        rows=_numbers(values["rows"]),
        curve=Curve(_counts("n_clusters", curve["n_clusters"]), *shares),
    )


def _counts(name: str, values: list[int]) -> IndexArray:
    return indices(name, np.array(values, dtype=None if values else np.intp))


def _numbers(values: Any, dtype: str = "float64") -> Array:
    """Return an array of what must be numbers: NumPy would take "1" and true for some."""
    entries = np.array(values, dtype=object)
    if not all(type(entry) in (int, float) for entry in entries.ravel().tolist()):
        raise InputError("weights, centers, offsets and means must be finite numbers")
    return entries.astype(dtype)


def _encode_rule(rule: LinearRule) -> dict[str, Any]:
    features = rule.features
    return {
        "center": rule.center.tolist(),
        "offsets": rule.offsets.tolist(),
        "features": features.tolist(),
        "weights": rule.weights[:, features].tolist(),
    }


def _decode_rule(values: dict[str, Any], dtype: str) -> LinearRule:
    used, center, offsets = (
        _numbers(values[name], dtype) for name in ("weights", "center", "offsets")
    )
    features: IndexArray = np.array(values["features"], dtype=np.intp)
    if used.ndim != 2 or used.shape != (*offsets.shape, *features.shape):
        raise InputError("a rule must have one weight per child and feature, in this shape")
    if len(np.unique(features)) < len(features) or (features < 0).any():
        raise InputError("the features of a rule must be different column numbers")
    weights = np.zeros((len(used), len(center)), dtype=dtype)
    weights[:, features] = used
    return LinearRule(weights, center, offsets)
