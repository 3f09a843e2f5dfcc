"""The rule of a node, which sends rows to nodes below it."""

from dataclasses import dataclass, replace
from typing import final

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from taxarbor._errors import InputError
from taxarbor._types import Array, IndexArray, set_frozen


@final
@dataclass(frozen=True, slots=True, eq=False)
class LinearRule:
    """A row ``x`` goes to ``targets[argmax(W (x - center) + offsets)]``, the first of ties.

    A target is a position in the frontier of the rule's node, from left to right: its children
    or nodes further down, see :meth:`Tree.frontier`. The arrays are copied and cannot be
    written to.

    Parameters
    ----------
    weights : array of shape (n_scores, n_features)
        The ``W`` above; the floats are all float32 or all float64, as the data.
    center : array of shape (n_features,)
        What is subtracted from a row first.
    offsets : array of shape (n_scores,), optional
        What is added to each score, zeros by default.
    targets : int array of shape (n_scores,), optional
        Where each score leads: 0, 1, ... by default. They start at 0 and grow by 1 at most;
        several scores lead to one target where pruning made one cluster of several.

    Raises
    ------
    ValueError
        If shapes or dtypes do not fit together, or a value is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> rule = LinearRule(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.zeros(2))
    >>> rule.n_targets, rule.n_features_used
    (2, 1)
    """

    weights: Array
    center: Array
    offsets: Array = None  # type: ignore[assignment]  # always an array once made
    targets: IndexArray = None  # type: ignore[assignment]  # likewise

    def __post_init__(self) -> None:
        weights, center = np.asarray(self.weights), np.asarray(self.center)
        # Of what is no rule, weights may lack a length: which is checked below.
        no_offsets = np.zeros(weights.shape[:1], dtype=center.dtype)
        offsets = no_offsets if self.offsets is None else np.asarray(self.offsets)
        targets = np.arange(offsets.size) if self.targets is None else np.asarray(self.targets)
        _check(weights, center, offsets, targets)
        # Copies, with -0.0 made 0.0, so that every file format gives back each bit.
        set_frozen(self, weights=weights + 0.0, center=center + 0.0, offsets=offsets + 0.0)
        set_frozen(self, targets=targets.astype(np.intp))

    @classmethod
    def nearest(cls, centers: ArrayLike) -> "LinearRule":
        """Return the rule that sends a row to the nearest of some points.

        The points have shape (n_targets, n_features) and are float32 or float64, which the rule
        keeps; ValueError is raised for others.

        Examples
        --------
        >>> import numpy as np
        >>> rule = LinearRule.nearest(np.array([[0.0, 0.0], [4.0, 2.0]]))
        >>> rule.center, rule.offsets
        (array([2., 1.]), array([-2.5, -2.5]))
        """
        points = np.asarray(centers)
        if points.ndim != 2 or not len(points) or points.dtype not in (np.float32, np.float64):
            raise ValueError(
                "centers must be float32 or float64 of shape (n_targets, n_features), "
                f"got {points.dtype} of shape {points.shape}"
            )
        # The nearest point is where c.x - |c|^2 / 2 is largest, from any center.
        with np.errstate(over="ignore", invalid="ignore"):  # not finite, refused for it
            exact = points.astype(np.float64)
            center = exact.mean(axis=0)
            weights = exact - center
            offsets = -(weights**2).sum(axis=1) / 2
            return cls(*(part.astype(points.dtype) for part in (weights, center, offsets)))

    def __repr__(self) -> str:
        K, P = self.n_targets, len(self.center)
        return f"LinearRule(n_targets={K}, n_features={P}, dtype={self.dtype})"

    @property
    def n_scores(self) -> int:
        """Number of scores, each with a row of weights."""
        return len(self.weights)

    @property
    def n_targets(self) -> int:
        """Number of nodes that rows are sent to."""
        return int(self.targets[-1]) + 1

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Dtype of the arrays."""
        return self.weights.dtype

    @property
    def features(self) -> IndexArray:
        """Indices of the features with any non-zero weight, ascending."""
        return np.flatnonzero(self.weights.any(axis=0))

    @property
    def n_features_used(self) -> int:
        """Number of features with any non-zero weight."""
        return len(self.features)


def best_scores(rule: LinearRule, scores: Array) -> Array:
    """Return the best score of each target, given a line for each score of a rule."""
    if rule.n_scores == rule.n_targets:
        return scores
    first = np.flatnonzero(np.diff(rule.targets, prepend=-1))
    return np.maximum.reduceat(scores, first, axis=0)


def merge_targets(rule: LinearRule, nodes: IndexArray) -> LinearRule | None:
    """Return the rule whose targets have become these nodes, -1 for those that are gone.

    Neighbours that have become one node are one target. None where one node is left.
    """
    ends = nodes[rule.targets]
    is_left = ends >= 0
    targets = np.cumsum(np.diff(ends[is_left], prepend=ends[is_left][:1]) != 0)
    if not targets.any():
        return None
    if np.array_equal(targets, rule.targets):
        return rule
    return LinearRule(rule.weights[is_left], rule.center, rule.offsets[is_left], targets)


def dividing_feature(rule: LinearRule) -> int | None:
    """Return the feature by which alone a rule divides rows in two, or None."""
    weights = rule.weights.astype(np.float64)
    difference = np.abs(weights[0] - weights[1])
    used = np.flatnonzero(difference > 1e-12 * np.abs(weights).max(axis=0))
    return int(used[0]) if len(weights) == 2 and len(used) == 1 else None


def threshold_of(rule: LinearRule, feature: int) -> np.floating:
    """Return where a rule divides rows by this feature alone, in the dtype of the rule.

    A row at the threshold is a tie, and goes to the first child.
    """
    return _toward_first(rule, feature, _boundary(rule, feature))


def with_threshold(rule: LinearRule, feature: int, threshold: float) -> LinearRule:
    """Return the rule that divides rows in two exactly at a threshold of one feature.

    The scores of the children are ``w (x - threshold)`` and its negative, so that rounding
    cannot change which is higher.
    """
    first, second = rule.weights[:, feature].astype(np.float64)
    weights, center = np.zeros_like(rule.weights), rule.center.copy()
    weights[0, feature] = (first - second) / 2
    weights[1, feature] = -weights[0, feature]
    center[feature] = _toward_first(rule, feature, threshold)
    return LinearRule(weights, center)


@np.errstate(over="ignore")  # weights next to zero divide beyond all numbers
def _boundary(rule: LinearRule, feature: int) -> float:
    """Return the value of a feature at which both children score the same, in float64."""
    first, second = rule.weights[:, feature].astype(np.float64)
    offsets = rule.offsets.astype(np.float64)
    return float(rule.center[feature] - (offsets[0] - offsets[1]) / (first - second))


@np.errstate(over="ignore", under="ignore")
def _toward_first(rule: LinearRule, feature: int, value: float) -> np.floating:
    """Round to the dtype of a rule such that the same numbers of it are on either side.

    The first child takes ties, so its side must not become larger.
    """
    rounded: np.floating = rule.dtype.type(value)
    is_low = rule.weights[0, feature] < rule.weights[1, feature]
    if (rounded > value) if is_low else (rounded < value):
        rounded = np.nextafter(rounded, rule.dtype.type(-np.inf if is_low else np.inf))
    return rounded


def unscale_rule(
    rule: LinearRule, shift: Array, factor: Array, dtype: DTypeLike | None = None
) -> LinearRule:
    """Return the rule that takes ``x`` for ``(x - shift) / factor``, in a dtype or its own."""
    dtype = rule.dtype if dtype is None else dtype
    exact = rule.center * factor + shift
    weights, center = (rule.weights / factor).astype(dtype), exact.astype(dtype)
    feature = dividing_feature(rule)
    if feature is not None and not rule.offsets.any():  # a threshold stays one
        threshold = _boundary(rule, feature) * factor[feature] + shift[feature]
        return with_threshold(LinearRule(weights, center), feature, threshold)
    # Far from zero, float32 rounds a centre by a good part of the column's deviation. What
    # this adds to the scores is known, and taken back.
    added = weights.astype(np.float64) @ (center - exact)
    offsets = (rule.offsets + added).astype(dtype)
    return replace(rule, weights=weights, center=center, offsets=offsets)


def _check(weights: Array, center: Array, offsets: Array, targets: IndexArray) -> None:
    """Raise ValueError unless these arrays make a rule."""
    shape, dtype = weights.shape, weights.dtype
    if weights.ndim != 2 or center.shape != shape[1:]:
        message = "weights must have shape (n_scores, n_features) and center (n_features,)"
        raise ValueError(f"{message}, got {shape} and {center.shape}")
    if offsets.shape != shape[:1] or targets.shape != shape[:1]:
        message = f"offsets and targets must have shape (n_scores,), {shape[:1]} here"
        raise ValueError(f"{message}, got {offsets.shape} and {targets.shape}")
    if {center.dtype, offsets.dtype} != {dtype} or dtype not in (np.float32, np.float64):
        message = "weights, center and offsets must all be float32 or all float64"
        raise ValueError(f"{message}, got {dtype}, {center.dtype} and {offsets.dtype}")
    if shape[0] < 2 or shape[1] < 1 or targets.dtype.kind not in "iu" or not targets.any():
        raise ValueError(f"a rule needs two targets and one feature at least, got {targets}")
    if targets[0] != 0 or not np.isin(np.diff(targets.astype(np.intp)), (0, 1)).all():
        raise ValueError(f"targets must start at 0 and grow by 1 at most, got {targets}")
    if not all(np.isfinite(array).all() for array in (weights, center, offsets)):
        raise InputError("weights, center and offsets must be finite, got NaN or infinity")
