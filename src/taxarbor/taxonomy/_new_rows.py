"""Rows of the user's data meet a taxonomy: features, leaves, noise, statistics of nodes."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from taxarbor._errors import InputError, InputTypeError
from taxarbor._frames import as_frame, as_numeric, is_anndata, wrap_frame
from taxarbor._types import Array, IndexArray
from taxarbor.rows._rows import all_finite, check_structure
from taxarbor.sources import open_source
from taxarbor.tables._encoding import FeatureRows, find_empty_rows, impute
from taxarbor.tree._route_rows import node_means, place_rows, refuse_values

if TYPE_CHECKING:
    from taxarbor.taxonomy._taxonomy import Taxonomy
    from taxarbor.tree import Tree


def route(
    taxonomy: "Taxonomy", X: ArrayLike | FeatureRows, *, n_threads: int = 1
) -> IndexArray:
    """Return the leaves of rows, -1 for noise; see :meth:`Taxonomy.predict`."""
    rows = read_rows(X, taxonomy)
    labels = send(taxonomy, rows, n_threads=n_threads)
    return mark_noise(taxonomy, rows, labels, n_threads=n_threads)


def mark_noise(
    taxonomy: "Taxonomy", rows: FeatureRows, labels: IndexArray, *, n_threads: int = 1
) -> IndexArray:
    """Return the leaves of rows with -1 for noise; rows without any value are none."""
    if taxonomy.noise_model is None or not len(labels):
        return labels
    data, fill = rows.data, fills_of(taxonomy)
    is_noise = taxonomy.noise_model.find_noise(data, fill, n_threads=n_threads)
    empty = find_empty_rows(rows.missing)
    if empty is None and isinstance(data, np.ndarray):
        empty = np.zeros(len(labels), dtype=bool)
        empty[is_noise] = np.isnan(data[is_noise]).all(axis=1)
    return np.where(is_noise if empty is None else is_noise & ~empty, -1, labels)


def send(taxonomy: "Taxonomy", X: ArrayLike | FeatureRows, *, n_threads: int = 1) -> IndexArray:
    """Return the leaves of all rows, of noise as well."""
    data, fill = read_rows(X, taxonomy).data, fills_of(taxonomy)
    return place_rows(taxonomy.tree, data, fill, n_threads=n_threads).astype(np.intp)


def fills_of(taxonomy: "Taxonomy") -> Array | None:
    """Return the values that impute NaN in each feature; None where NaN is refused."""
    encoder = (taxonomy.made_by or {}).get("encoder")
    if not (encoder == "auto" or isinstance(encoder, dict)) or taxonomy.means is None:
        return None
    fills: Array = taxonomy.means[taxonomy.tree.root].astype(np.float64)
    return fills


def check_matrix(taxonomy: "Taxonomy", names: Sequence[str] | None) -> None:
    """Raise InputError if the columns of a matrix, as of AnnData, have other names.

    A matrix is read by position.
    """
    encoding = taxonomy.encoding
    if names is None or encoding is None:
        check_names(names, taxonomy.feature_names)
    elif not encoding.has_names and len(names) == encoding.n_columns_in:
        named = [one for one in encoding.columns if one.name != f"x{one.position}"]
        check_names([names[one.position] for one in named], [one.name for one in named])


def check_names(given: Sequence[str] | None, names: Sequence[str] | None) -> None:
    """Raise InputError if names of columns, where known, are not those of the features."""
    if given is None or names is None:
        return
    given, expected = list(given), list(names)
    if given == expected:
        return
    if sorted(given) == sorted(expected):
        raise InputError(
            "the columns of X are in another order than in the fit; reorder them as in "
            "taxonomy.feature_names"
        )
    missing = [name for name in expected if name not in set(given)][:3]
    raise InputError(f"the columns of X are not those of the fit; missing: {missing}")


def expand(X: ArrayLike | FeatureRows, taxonomy: "Taxonomy") -> FeatureRows:
    """Return X as features of a tree, with the missing cells of the user's table.

    Raises InputError where values are refused.
    """
    rows, fill = read_rows(X, taxonomy), fills_of(taxonomy)
    data: Any = rows.data
    cells = data.data if sparse.issparse(rows.data) else data
    if rows.missing is not None or all_finite(cells):
        return rows
    refuse_values(taxonomy.tree, data, allow_nan=fill is not None)
    assert fill is not None
    return impute(data.copy(), fill)


def read_rows(X: ArrayLike | FeatureRows, taxonomy: "Taxonomy") -> FeatureRows:
    """Return rows as an array or CSR matrix of features; arrays may still hold NaN.

    Cells are not looked at, unless a table is encoded.
    """
    rule = taxonomy.tree.rules[taxonomy.tree.root]
    dtype = np.dtype(np.float64) if rule is None else rule.dtype
    if isinstance(X, FeatureRows):
        return X
    if isinstance(X, str | os.PathLike):
        message = "is a path; pass rows in memory, or use predict of the fitted estimator"
        raise InputTypeError(message, "X")
    if is_anndata(X):
        check_matrix(taxonomy, open_source(X).names)
    if taxonomy.encoding is not None:
        return taxonomy.encoding.expand(X, dtype)
    X = as_frame(X)
    if (frame := wrap_frame(X)) is not None:
        check_names([str(name) for name in frame.columns], taxonomy.feature_names)
    width = taxonomy.n_features
    data: Any = X if sparse.issparse(X) else np.asarray(as_numeric(X))
    if data.ndim != 2:
        expected = "must have two dimensions, (n_rows, n_features)"
        raise InputError(f"{expected}, got shape {data.shape}", "X")
    if width not in (None, data.shape[1]):
        raise InputError(f"has {data.shape[1]} features, and {width} are expected", "X")
    if sparse.issparse(X):
        check_structure(X)
        data = data.tocsr()
        check_structure(data)  # what other formats were made into
        if not data.has_canonical_format:
            data = data.copy()  # the user's stays as it is
            data.sum_duplicates()
    data = _as_float(data, dtype)
    return FeatureRows(data if sparse.issparse(X) else np.ascontiguousarray(data), None)


def _as_float(data: Any, dtype: np.dtype[np.floating]) -> Any:
    """Cast integers to float64, floats to the given dtype; text and the like are refused."""
    if data.dtype.kind == "f":
        with np.errstate(over="ignore"):  # an overflow is infinite and refused for it
            return data.astype(dtype, copy=False)
    if data.dtype.kind not in "biuO":
        raise InputError(f"must hold numbers, got {data.dtype}", "X")
    try:
        return data.astype(np.float64)
    except OverflowError as error:  # of Python's integers, which know no bound
        raise InputError("holds an integer too large for float64", "X") from error
    except (TypeError, ValueError) as error:
        raise InputError(f"must hold numbers: {error}", "X") from error


def add_means(
    taxonomy: "Taxonomy", X: Any, labels: IndexArray, counts: IndexArray | None = None
) -> "Taxonomy":
    """Return the taxonomy with the mean of each node's rows, of the dtype of its rules."""
    tree = taxonomy.tree
    rule = tree.rules[tree.root]
    dtype = X.dtype if rule is None else rule.dtype
    means = node_means(tree, X, labels, counts).astype(dtype)
    if not all_finite(means):
        raise InputError("holds values that are too large to take means of; scale them", "X")
    return replace(taxonomy, means=means)


def share_missing(
    tree: "Tree", gaps: Any, labels: IndexArray, counts: IndexArray | None = None
) -> Array | None:
    """Return the share of missing values of each node's rows in each column of a table.

    ``gaps`` are the missing cells of rows, an array or a sparse matrix, or None; ``labels`` the
    positions of their leaves, and ``counts`` how often each counts.
    """
    if gaps is None:
        return None
    return node_means(tree, sparse.csr_array(gaps, dtype=np.float64), labels, counts)
