"""Names for arrays, and what a solver says about its work."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Array: TypeAlias = NDArray[np.floating[Any]]
IndexArray: TypeAlias = NDArray[np.intp]
Mask: TypeAlias = NDArray[np.bool_]
Matrix: TypeAlias = "NDArray[Any] | csr_array[Any, tuple[int, int]]"
"""Rows of numbers in memory, dense or CSR."""
TableLike: TypeAlias = Any
"""A user's table before it is checked: an array, a sparse matrix, a frame of any library, a
path or a Dask collection."""


class Status(StrEnum):
    """How a solver stopped.

    Examples
    --------
    >>> from taxarbor.split import Status
    >>> [status.value for status in Status]
    ['converged', 'settled', 'iteration_limit', 'stalled']
    """

    CONVERGED = "converged"
    """The optimality condition holds to the tolerance asked for."""
    SETTLED = "settled"
    """A round of labels and weights lowered the objective by less than the tolerance."""
    ITERATION_LIMIT = "iteration_limit"
    """The iteration limit came first."""
    STALLED = "stalled"
    """No step lowers the objective at this precision: as good as converged, but unproven."""


@dataclass(frozen=True, slots=True)
class SolveInfo:
    """What it took to solve one node.

    Attributes
    ----------
    status : Status
        How the solver stopped.
    n_iter : int
        Rounds of labels and weights on all rows of the node.
    n_passes : float
        Sweeps over the node's rows in those rounds, ones over a part of them counted in part.
    trace : tuple of float
        The objective where the rounds began and after each; it never rises.

    Examples
    --------
    >>> from taxarbor import HMMC, load_animals
    >>> info = HMMC(2, random_state=0).fit(load_animals().X).taxonomy_.tree.info[0]
    >>> info.trace[-1] <= info.trace[0]
    True
    """

    status: Status
    n_iter: int
    n_passes: float
    trace: tuple[float, ...] = field(repr=False)


def set_frozen(frozen: object, /, **values: object) -> None:
    """Set attributes of a frozen value; its arrays cannot be written to from now on."""
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            value.setflags(write=False)
        object.__setattr__(frozen, name, value)
