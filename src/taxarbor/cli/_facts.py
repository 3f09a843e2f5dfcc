"""What there is to say of a model in a few numbers."""

from typing import Any

import numpy as np

from taxarbor.hierarchy import Hierarchy, deciding_rule


def model_facts(tree: Hierarchy) -> dict[str, Any]:
    """Return sizes and means of a tree, as plain values."""
    is_split = np.array([rule is not None for rule in tree.rules])
    known = tree.fidelity[~np.isnan(tree.fidelity)]
    return {
        "n_rows": len(tree.order),
        "n_features": n_features(tree),
        "n_groups": tree.n_leaves,
        "height": tree.height,
        "median_features_per_split": (
            float(np.median(tree.n_features[is_split])) if is_split.any() else None
        ),
        "mean_fidelity": float(known.mean()) if len(known) else None,
        "places_new_rows": deciding_rule(tree) is not None,
    }


def n_features(tree: Hierarchy) -> int | None:
    """Return the number of columns, None where nothing tells."""
    if tree.feature_names is not None:
        return len(tree.feature_names)
    if tree.means is not None:
        return int(tree.means.shape[1])
    rule = deciding_rule(tree)
    return None if rule is None else len(rule.center)
