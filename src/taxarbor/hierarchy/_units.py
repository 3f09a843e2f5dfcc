"""A tree of scaled rows in the units that the rows had before."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from taxarbor._errors import InputError
from taxarbor._types import Array
from taxarbor.hierarchy._reasons import dividing_feature
from taxarbor.hierarchy._rule import Placement, deciding_rule, unscaled

if TYPE_CHECKING:
    from taxarbor.hierarchy._tree import Hierarchy


def unscaled_tree(
    tree: "Hierarchy", mean: ArrayLike | None, scale: ArrayLike | None
) -> "Hierarchy":
    """Return the tree of rows that were not scaled; see :meth:`Hierarchy.unscale`."""
    if tree.encoding is not None:
        raise InputError(
            "the tree is in the units of the table that it was grown on, and takes its "
            "rows as they are: what was scaled for the fit is undone already"
        )
    shift, factor = _scaling(tree, mean, scale)
    placement, means = tree.placement, tree.means
    if placement is not None:
        placement = Placement(unscaled(placement.rule, shift, factor), placement.leaves)
    if means is not None:
        means = (means * factor + shift).astype(means.dtype)
    rules = tuple(rule and unscaled(rule, shift, factor) for rule in tree.rules)
    follows, values = tree.follows, tree.two_values
    if follows is not None:
        alone = [rule and dividing_feature(rule) for rule in tree.rules]
        columns = np.array([-1 if column is None else column for column in alone])
        gap = follows.gap * factor[columns, None] + shift[columns, None]
        follows = replace(follows, gap=gap)
    if values is not None:
        values = values * factor[:, None] + shift[:, None]
    return replace(
        tree,
        rules=rules,
        placement=placement,
        means=means,
        follows=follows,
        two_values=values,
        usual=tree.usual and tree.usual.unscaled(shift, factor),
    )


def _scaling(
    tree: "Hierarchy", mean: ArrayLike | None, scale: ArrayLike | None
) -> tuple[Array, Array]:
    """Return both as arrays, 0 and 1 where there are none, or raise ValueError."""
    shapes = [np.shape(values) for values in (mean, scale) if values is not None]
    scaled = deciding_rule(tree), tree.means, tree.two_values
    if any(part is not None for part in scaled):
        shapes = [(tree.n_features,)]
    expected = shapes[0] if shapes else (0,)
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
