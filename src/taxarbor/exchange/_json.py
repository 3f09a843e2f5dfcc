"""All of a hierarchy as strict JSON, for other programs to read.

::

    {"format": "taxarbor-hierarchy", "version": 1,
     "dtype": "float64", "feature_names": null, "temperature": null, "order": [2, 0, 1],
     "weights": [1.0, 2.0, 1.5], "noise": [3], "n_noise": 1, "totals": null,
     "noise_model": {"centers": [[...], [...]], "units": [...], "limit": 4.5, "scale": null},
     "two_values": [[0.0, 1.0], null],
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
                "birth": 0, "score": 0.5, "objective": null,
                "mean": [...], "note": "",
                "rule": {"center": [...], "offsets": [...], "features": [...],
                         "weights": [[...], [...]]},
                "info": {"status": "converged", "n_iter": 3, "n_passes": 7.5,
                         "trace": [...]}}, ...]}

Weights are given for the features that the rule uses, one row per child. NaN is null,
infinities are "inf" and "-inf"; other floats are written so that they read back exactly. A
leaf's rule is null, and in a tree without rules all are; "mean" is null where means are not
known. "order" is null in a tree that holds counts, not rows.
"""

import json
import os
from typing import Any

import numpy as np

from taxarbor.hierarchy import Hierarchy, LinearRule, Trust
from taxarbor.hierarchy._file import FORMAT, VERSION, encode_float, encode_info
from taxarbor.hierarchy._noise import NoiseModel
from taxarbor.hierarchy._trust import Curve
from taxarbor.hierarchy._whole import write_whole

_INDICES, _FLOATS = ("start", "stop", "birth"), ("score", "objective")
"""What every node has under the same name here and in the tree, one number each."""


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
    >>> import json
    >>> from taxarbor.exchange import from_labels, to_json
    >>> json.loads(to_json(from_labels([0, 1, 1])))["order"]
    [0, 1, 2]
    """
    rule = hierarchy.rules[hierarchy.root]
    typed = hierarchy.means if rule is None else rule.weights
    document = {
        "format": FORMAT,
        "version": VERSION,
        "dtype": None if typed is None else str(typed.dtype),
        "feature_names": hierarchy.feature_names,
        "temperature": hierarchy.temperature,
        "order": _plain(hierarchy.order),
        "weights": _plain(hierarchy.weights),
        "noise": hierarchy.noise.tolist(),
        "n_noise": hierarchy.n_noise,
        "totals": _plain(hierarchy.totals),
        "noise_model": _plain(hierarchy.noise_model),
        "two_values": _plain(hierarchy.two_values),
        "trust": _plain(hierarchy.trust),
        "made_by": hierarchy.made_by,
        "encoding": hierarchy.encoding and hierarchy.encoding.to_dict(),
        "missing": _plain(hierarchy.missing),
        "nodes": [_node(hierarchy, node) for node in range(hierarchy.n_nodes)],
    }
    text = json.dumps(document, allow_nan=False)
    if path is not None:
        write_whole(path, lambda file: file.write(text.encode("ascii")))
    return text


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
        "info": encode_info(hierarchy.info[node]),
    }


def _plain(value: Any) -> Any:
    """Return arrays, and what is made of them, as JSON has them.

    NaN is null, and so is a pair of numbers with one.
    """
    if isinstance(value, NoiseModel | Trust | Curve):
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


def _encode_rule(rule: LinearRule) -> dict[str, Any]:
    features = rule.features
    return {
        "center": rule.center.tolist(),
        "offsets": rule.offsets.tolist(),
        "features": features.tolist(),
        "weights": rule.weights[:, features].tolist(),
    }
