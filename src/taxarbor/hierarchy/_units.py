"""The tree in the units of the data before they were scaled."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._types import Array
from taxarbor.hierarchy._placement import Placement
from taxarbor.hierarchy._rule import LinearRule

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy


def unscale(hierarchy: "Hierarchy", mean: ArrayLike, scale: ArrayLike) -> "Hierarchy":
    """Return the tree that sends ``x`` where this one sends ``(x - mean) / scale``.

    Rules are linear, so a scaling of columns can be made a part of them. Then nobody has to
    scale new rows, and means and thresholds are in units that people know.

    Parameters
    ----------
    hierarchy : Hierarchy
        The tree of the scaled rows.
    mean, scale : arrays of shape (n_features,)
        What was subtracted from each column, and what it was divided by then, as
        ``mean_`` and ``scale_`` of :class:`sklearn.preprocessing.StandardScaler`.

    Raises
    ------
    ValueError
        If these do not fit the features, are not finite, or a scale is not positive.

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from taxarbor import HMMC, load_animals
    >>> X = load_animals().X
    >>> scaler = StandardScaler().fit(X)
    >>> model = HMMC(6, random_state=0).fit(scaler.transform(X))
    >>> tree = model.hierarchy_.unscale(scaler.mean_, scaler.scale_)
    >>> bool((tree.predict(X) == model.labels_).all())
    True
    """
    shift, factor = (np.asarray(values, dtype=np.float64) for values in (mean, scale))
    _check(hierarchy, shift, factor)

    def rule_of(rule: LinearRule | None) -> LinearRule | None:
        if rule is None:
            return None
        center = (rule.center * factor + shift).astype(rule.dtype)
        return LinearRule((rule.weights / factor).astype(rule.dtype), center, rule.offsets)

    placement, means = hierarchy.placement, hierarchy.means
    if placement is not None:
        whole = rule_of(placement.rule)
        assert whole is not None
        placement = Placement(whole, placement.leaves)
    if means is not None:
        means = (means * factor + shift).astype(means.dtype)
    rules = tuple(rule_of(rule) for rule in hierarchy.rules)
    return replace(hierarchy, rules=rules, placement=placement, means=means)


def _check(hierarchy: "Hierarchy", mean: Array, scale: Array) -> None:
    found = [rule.center for rule in hierarchy.rules if rule is not None][:1]
    found += [] if hierarchy.placement is None else [hierarchy.placement.rule.center]
    found += [] if hierarchy.means is None else [hierarchy.means[0]]
    expected = found[0].shape if found else mean.shape
    if mean.shape != expected or scale.shape != expected or mean.ndim != 1:
        raise ValueError(
            f"mean and scale must have shape {expected}, one number per feature, "
            f"got {mean.shape} and {scale.shape}"
        )
    if not (np.isfinite(mean).all() and np.isfinite(scale).all() and (scale > 0.0).all()):
        raise ValueError("mean and scale must be finite, and every scale positive")
