"""Inner products whose result does not depend on the number of BLAS threads.

BLAS may divide a long sum among its threads, so that its last digits change with their
number; these sums have one order.
"""

import numpy as np

from taxarbor._types import Array


def inner(A: Array, B: Array) -> float:
    """Return the sum of the products of the entries of two arrays of one shape."""
    return float(np.einsum("i,i->", A.reshape(-1), B.reshape(-1)))


def inner_rows(A: Array, v: Array) -> Array:
    """Return the inner product of each row of A with v."""
    product: Array = np.einsum("ij,j->i", A, v)
    return product


def combine_rows(weights: Array, A: Array) -> Array:
    """Return the sum of the rows of A, weighted."""
    total: Array = np.einsum("i,ij->j", weights, A)
    return total


def column_norms(W: Array) -> Array:
    """Return the length of each column."""
    norms: Array = np.sqrt(np.einsum("mp,mp->p", W, W))
    return norms
