"""The tree in the units of the data before they were scaled."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._errors import InputError
from taxarbor._types import Array
from taxarbor.hierarchy._rule import LinearRule, Placement, deciding_rule

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy


def unscale(
    hierarchy: "Hierarchy", mean: ArrayLike | None, scale: ArrayLike | None
) -> "Hierarchy":
    """Make the scaling a part of the rules, which are linear; see :meth:`Hierarchy.unscale`."""
    shift, factor = _check(hierarchy, mean, scale)
    placement, means = hierarchy.placement, hierarchy.means
    if placement is not None:
        placement = Placement(_unscaled(placement.rule, shift, factor), placement.leaves)
    if means is not None:
        means = (means * factor + shift).astype(means.dtype)
    rules = tuple(
        None if rule is None else _unscaled(rule, shift, factor) for rule in hierarchy.rules
    )
    return replace(hierarchy, rules=rules, placement=placement, means=means)


def _unscaled(rule: LinearRule, shift: Array, factor: Array) -> LinearRule:
    exact = rule.center * factor + shift
    weights, center = (rule.weights / factor).astype(rule.dtype), exact.astype(rule.dtype)
    # Far from zero, float32 rounds a centre by a good part of the column's deviation. What
    # this adds to the scores is known, and taken back.
    added = weights.astype(np.float64) @ (center - exact)
    return LinearRule(weights, center, (rule.offsets + added).astype(rule.dtype))


def _check(
    hierarchy: "Hierarchy", mean: ArrayLike | None, scale: ArrayLike | None
) -> tuple[Array, Array]:
    """Return both as arrays, 0 and 1 where there are none, or raise ValueError."""
    rule, means = deciding_rule(hierarchy), hierarchy.means
    found = [] if rule is None else [rule.center.shape]
    found += [] if means is None else [means[0].shape]
    found += [np.shape(values) for values in (mean, scale) if values is not None]
    expected = found[0] if found else (0,)
    shift, factor = (
        np.full(expected, usual) if values is None else np.asarray(values, dtype=np.float64)
        for values, usual in ((mean, 0.0), (scale, 1.0))
    )
    if shift.shape != expected or factor.shape != expected or shift.ndim != 1:
        raise InputError(
            f"mean and scale must have shape {expected}, one number per feature, or be None, "
            f"got {shift.shape} and {factor.shape}"
        )
    if not (np.isfinite(shift).all() and np.isfinite(factor).all() and (factor > 0.0).all()):
        raise InputError("mean and scale must be finite, and every scale positive")
    return shift, factor
