"""The order of numbers in whole numbers: a key that is greater for a greater number."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from taxarbor._types import Array

Keys = NDArray[np.unsignedinteger[Any]]


def key_of(values: Array) -> Keys:
    """Return the key of each number, as wide as it is; those of -0 and 0 are the same.

    Examples
    --------
    >>> import numpy as np
    >>> key_of(np.array([-np.inf, -1.0, 0.0, 1.0, np.inf], dtype=np.float32))
    array([   8388607, 1082130431, 2147483648, 3212836864, 4286578688],
          dtype=uint32)
    """
    bits: Any = (values + values.dtype.type(0.0)).view(f"u{values.itemsize}")
    sign = _sign(bits)
    keys: Keys = np.where(bits & sign, ~bits, bits | sign)
    return keys


def float_of(keys: Keys) -> Array:
    """Return the number of each key.

    Examples
    --------
    >>> import numpy as np
    >>> float_of(key_of(np.array([-1.5, 0.0, 2.5], dtype=np.float32)))
    array([-1.5,  0. ,  2.5], dtype=float32)
    """
    sign = _sign(keys)
    found: Array = np.where(keys & sign, keys ^ sign, ~keys).view(f"f{keys.itemsize}")
    return found


def _sign(keys: Keys) -> Any:
    return keys.dtype.type(1 << (8 * keys.itemsize - 1))
