"""The rule by which a node sends rows to its children."""

from dataclasses import dataclass

import numpy as np

from taxarbor._types import Array, IndexArray


@dataclass(frozen=True, slots=True, eq=False)
class LinearRule:
    """A row ``x`` goes to child ``argmax(W (x - center))``, the first of ties.

    Both arrays are copied and cannot be written to.

    Parameters
    ----------
    weights : array of shape (n_children, n_features)
        The ``W`` above; float32 or float64, as the data.
    center : array of shape (n_features,)
        What is subtracted from a row first; of the same dtype.

    Raises
    ------
    ValueError
        If shapes or dtypes do not fit together, or a value is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> rule = LinearRule(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.zeros(2))
    >>> rule.n_children, rule.n_features_used
    (2, 1)
    """

    weights: Array
    center: Array

    def __post_init__(self) -> None:
        weights, center = np.asarray(self.weights), np.asarray(self.center)
        _check(weights, center)
        for name, given in (("weights", weights), ("center", center)):
            # A copy, with -0.0 made 0.0, so that every file format gives back each bit.
            array = given + 0.0
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        K, P = self.weights.shape
        return f"LinearRule(n_children={K}, n_features={P}, dtype={self.dtype})"

    # Arrays forget in a pickle that they are read-only: build the copy anew.
    def __getstate__(self) -> dict[str, Array]:
        return {"weights": self.weights, "center": self.center}

    def __setstate__(self, state: dict[str, Array]) -> None:
        LinearRule.__init__(self, **state)

    @property
    def n_children(self) -> int:
        """Number of children that rows are sent to."""
        return len(self.weights)

    @property
    def dtype(self) -> np.dtype[np.floating]:
        """Dtype of both arrays."""
        return self.weights.dtype

    @property
    def features(self) -> IndexArray:
        """Indices of the features with any non-zero weight, ascending."""
        return np.flatnonzero(self.weights.any(axis=0))

    @property
    def n_features_used(self) -> int:
        """Number of features with any non-zero weight."""
        return int(np.count_nonzero(self.weights.any(axis=0)))


def _check(weights: Array, center: Array) -> None:
    """Raise ValueError unless these arrays make a rule."""
    if weights.ndim != 2 or center.shape != weights.shape[1:]:
        raise ValueError(
            "weights must have shape (n_children, n_features) and center (n_features,), "
            f"got {weights.shape} and {center.shape}"
        )
    if weights.shape[0] < 2 or weights.shape[1] < 1:
        raise ValueError(
            f"a rule needs two children and one feature at least, got weights {weights.shape}"
        )
    if weights.dtype != center.dtype or weights.dtype not in (np.float32, np.float64):
        raise ValueError(
            "weights and center must both be float32 or both float64, "
            f"got {weights.dtype} and {center.dtype}"
        )
    if not (np.isfinite(weights).all() and np.isfinite(center).all()):
        raise ValueError("weights and center must be finite, got NaN or infinity")
