"""All of a taxonomy as strict JSON, for other programs to read.

The keys are the attributes of :class:`Taxonomy`, and of a node those that :func:`_node` lists.
A rule has weights for the features that it uses, one row per score, and the id of the node that
each score leads to. NaN is null, infinities are "inf" and "-inf"; other floats read back
exactly. What is not known is null: the rule of a leaf, the order of a tree that holds counts.
"""

import json
import os
from typing import Any

import numpy as np

from taxarbor._atomic import write_atomically
from taxarbor.taxonomy import Stability, Taxonomy
from taxarbor.taxonomy._file import FORMAT, VERSION, encode_float, encode_info
from taxarbor.taxonomy._noise import NoiseModel
from taxarbor.taxonomy._stability import Curve

_INDICES, _FLOATS = ("start", "stop", "birth"), ("score", "objective")
"""What every node has under the same name here and in the tree, one number each."""


def to_json(taxonomy: Taxonomy, path: str | os.PathLike[str] | None = None) -> str:
    """Return all of the taxonomy as strict JSON, ASCII only, and write it to a file if given.

    Parameters
    ----------
    taxonomy : Taxonomy
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
    rule = taxonomy.tree.rules[taxonomy.tree.root]
    typed = taxonomy.means if rule is None else rule.weights
    document = {
        "format": FORMAT,
        "version": VERSION,
        "dtype": None if typed is None else str(typed.dtype),
        "feature_names": taxonomy.feature_names,
        "temperature": taxonomy.temperature,
        "order": _plain(taxonomy.tree.order),
        "weights": _plain(taxonomy.tree.weights),
        "noise": taxonomy.tree.noise.tolist(),
        "n_noise": taxonomy.tree.n_noise,
        "totals": _plain(taxonomy.tree.totals),
        "noise_model": _plain(taxonomy.noise_model),
        "two_values": _plain(taxonomy.two_values),
        "stability": _plain(taxonomy.stability),
        "made_by": taxonomy.made_by,
        "encoding": taxonomy.encoding and taxonomy.encoding.to_dict(),
        "missing": _plain(taxonomy.missing),
        "nodes": [_node(taxonomy, node) for node in range(taxonomy.tree.n_nodes)],
    }
    text = json.dumps(document, allow_nan=False)
    if path is not None:
        write_atomically(path, lambda file: file.write(text.encode("ascii")))
    return text


def _node(taxonomy: Taxonomy, node: int) -> dict[str, Any]:
    rule = taxonomy.tree.rules[node]
    told: dict[str, Any] | None = None
    if rule is not None:
        told = {"center": rule.center.tolist(), "offsets": rule.offsets.tolist()}
        told["features"] = rule.features.tolist()
        told["weights"] = rule.weights[:, rule.features].tolist()
        frontier = taxonomy.tree.frontier(node)
        told["targets"] = [frontier[target] for target in rule.targets.tolist()]
    return {
        "id": node,
        "parent": taxonomy.tree.parent(node),
        "children": taxonomy.tree.children(node),
        **{name: int(getattr(taxonomy.tree, name)[node]) for name in _INDICES},
        **{name: encode_float(getattr(taxonomy.tree, name)[node]) for name in _FLOATS},
        "mean": None if taxonomy.means is None else taxonomy.means[node].tolist(),
        "note": taxonomy.tree.notes[node],
        "rule": told,
        "info": encode_info(taxonomy.tree.info[node]),
    }


def _plain(value: Any) -> Any:
    """Return arrays, and what is made of them, as JSON has them.

    NaN is null, and so is a pair of numbers with one.
    """
    if isinstance(value, NoiseModel | Stability | Curve):
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
