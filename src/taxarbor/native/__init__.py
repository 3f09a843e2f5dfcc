"""Compiled kernels: the data of a node, and free functions on it and on plain arrays.

``_kernels.pyi`` lists them; their C++ sources document what they compute. Each checks what it
gets, and raises ValueError with what came and what was expected.
"""

from taxarbor.native import _kernels
from taxarbor.native._kernels import *  # noqa: F403

__all__ = [name for name in dir(_kernels) if not name.startswith("_")]
