"""All of a hierarchy as strict JSON, for other programs to read.

The keys are the attributes of :class:`Hierarchy`, and of a node those that :func:`_node` lists.
A rule has weights for the features that it uses, one row per score, and the id of the node that
each score leads to. NaN is null, infinities are "inf" and "-inf"; other floats read back
exactly. What is not known is null: the rule of a leaf, the order of a tree that holds counts.
"""

import json
import os
from typing import Any

import numpy as np

from taxarbor.hierarchy import Hierarchy, Trust
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
    told: dict[str, Any] | None = None
    if rule is not None:
        told = {"center": rule.center.tolist(), "offsets": rule.offsets.tolist()}
        told["features"] = rule.features.tolist()
        told["weights"] = rule.weights[:, rule.features].tolist()
        frontier = hierarchy.frontier(node)
        told["targets"] = [frontier[target] for target in rule.targets.tolist()]
    return {
        "id": node,
        "parent": hierarchy.parent(node),
        "children": hierarchy.children(node),
        **{name: int(getattr(hierarchy, name)[node]) for name in _INDICES},
        **{name: encode_float(getattr(hierarchy, name)[node]) for name in _FLOATS},
        "mean": None if hierarchy.means is None else hierarchy.means[node].tolist(),
        "note": hierarchy.notes[node],
        "rule": told,
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
