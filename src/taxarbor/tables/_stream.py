"""Tables that need not fit into memory: files, memory maps, datasets and what Dask has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from taxarbor._run import Run
from taxarbor._types import IndexArray
from taxarbor.sweep import Column, Engine


@final
@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """A table in parts that need not fit into memory together.

    Attributes
    ----------
    parts : Column
        The rows of each part, in the user's units: an array, a CSR array or a frame of
        pandas, or what has a method ``load`` that returns them.
    titles : sequence of str
        How messages name each part.
    sizes : int array of shape (n_parts,) or None
        The rows of each part, none of them 0; None where nobody knows yet.
    names : list of str or None
        The columns, where they have names.
    make_engine : callable
        Returns who sweeps over the parts, for a run and the bytes of rows that may be kept.
    dtype : dtype or None
        Of an array; None for a frame.
    """

    parts: Column
    titles: Sequence[str]
    sizes: IndexArray | None
    names: list[str] | None
    make_engine: Callable[[Run, int | None], Engine]
    dtype: np.dtype[Any] | None
