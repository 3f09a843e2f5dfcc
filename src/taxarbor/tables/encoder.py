"""From tables with missing values, categories and mixed units to features, for any estimator.

:class:`TableEncoder` is the transformer, :func:`find_features` the step of a fit that uses it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize
from sklearn.utils import validation
from sklearn.utils.validation import check_is_fitted

from taxarbor._errors import InputError, InputTypeError, TableWarning, counted, warn_caller
from taxarbor._frames import as_table, column_names, is_anndata, is_plain
from taxarbor._parameters import check_choice
from taxarbor._types import Array, IndexArray, Matrix
from taxarbor.rows import all_finite, as_rows
from taxarbor.sources import Sample
from taxarbor.tables._column_checks import look_like_counts, looks_like_bits
from taxarbor.tables._kinds import FROM_DTYPE, find_columns
from taxarbor.tables.checks import (
    check_array,
    check_columns,
    check_range,
    check_weights,
    count_repeats,
    input_errors,
    list_seen,
)
from taxarbor.tables.columns import Columns, FeatureRows, find_empty_rows
from taxarbor.tables.notes import MAX_NOTES, Note

MAX_LATENT = 100  # dimensions of texts


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Make features of a table with missing values, categories, dates and mixed units.

    A number is one feature, and so is an ordered category. Other categories are one-hot
    encoded: a category of share p among the rows is a feature, 1 or 0, less p, divided by
    :math:`\sqrt p`, as in factor analysis of mixed data; a column of two categories is one
    feature of variance 1. A date is its year, month, weekday and hour, where they vary. Numbers
    and dates may be written as text. Missing values are imputed by the mean of their column.
    Columns of frames that are empty, constant, identifiers or text of many values are left out,
    with the reason.

    Estimators do this by themselves (``encoder="auto"``), and their trees come back in the
    units and words of the table. They divide each categorical column by the root of its number
    of categories less one, so that it weighs as much as a number. By itself it is a step of a
    pipeline, before any estimator, and leaves the weights of factor analysis.

    Parameters
    ----------
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Which columns are categorical: "from_dtype", those of a frame that are text or of type
        category, if text has few values (50 at most, each twice on average); or the names or
        positions of others that are categorical, too. None: no text is. Unless a column is
        named, rare values (of fewer than 5 rows, or one in a thousand) count as missing.
    numeric_features : array-like, optional
        Columns that are numbers, though they look like identifiers or hold other words, too.
    date_features : "from_dtype", array-like or None, default="from_dtype"
        Which columns of dates to use: all that hold dates, named as above, or none.
    text_features : array-like of str or TextColumn, optional
        Columns of texts: each frequent word is a feature, 1 or 0, divided by its rarity as in
        tf-idf. A fit without another embedding finds its clusters in their first 100 latent
        dimensions (LSA), and all columns serve its rules.
    missing_values : array-like, default=()
        Numbers and texts that stand for a missing value, in all columns, such as -999.
    scale : {"auto", "standard"} or None, default="auto"
        "standard": numbers to variance 1, which outliers have no part in. None: nothing is
        scaled. "auto": to variance 1 where there are categories, or where columns differ in
        unit: one holds 90 % of the variance, or half and ten times as much as the next, or a
        third of them less than 1 % of the mean variance each, or half are answers of few values
        beside another of ten times their variance. Then skewed columns are read as logarithms,
        columns of which the others tell less than a tenth count less, down to a fifth, and
        copies count as one column.
    column_weights : mapping from str to float, optional
        What the variance of a column is multiplied by, by its name, instead of what "auto"
        finds: 1 for a column that counts whole.
    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine": each row is normalized to length 1, so that only its direction counts; for
        numbers, which are not scaled then. Thresholds are parts of the length.

    Attributes
    ----------
    columns_ : Columns
        What each column becomes; ``columns_.dropped`` with reasons, ``columns_.notes``.
    n_features_in_, feature_names_in_ : int, array of str
        Number of columns seen in fit, and their names, where there were any.

    Examples
    --------
    >>> import pandas as pd
    >>> from taxarbor import TableEncoder
    >>> cars = pd.DataFrame({"kg": [900.0, None, 1500.0], "from": ["us", "us", "jp"]})
    >>> encoder = TableEncoder(categorical_features=["from"]).fit(cars)
    >>> encoder.get_feature_names_out().tolist()
    ['kg', 'from = us']
    >>> encoder.transform(cars).round(2).tolist()
    [[-1.0, 0.71], [0.0, 0.71], [1.0, -1.41]]
    """

    columns_: Columns
    n_features_in_: int

    def __init__(
        self,
        *,
        categorical_features: Any = FROM_DTYPE,
        numeric_features: Any = None,
        date_features: Any = FROM_DTYPE,
        text_features: Any = None,
        missing_values: Any = (),
        scale: Literal["auto", "standard"] | None = "auto",
        column_weights: Any = None,
        metric: Literal["euclidean", "cosine"] = "euclidean",
    ) -> None:
        self.categorical_features = categorical_features
        self.numeric_features = numeric_features
        self.date_features = date_features
        self.text_features = text_features
        self.missing_values = missing_values
        self.scale = scale
        self.column_weights = column_weights
        self.metric = metric

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn what each column becomes.

        Parameters
        ----------
        X : frame, array-like or sparse matrix
            The table; frames are those of pandas, polars, narwhals and Arrow. Missing values
            are None, NaN, NA, masked cells and empty text.
        y : ignored
            Present by convention.
        sample_weight : array-like of shape (n_rows,), optional
            Weights of the rows; integers are repeats.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If a parameter or the table cannot be used; the message says which, and why.
        """
        table = self._check(X, reset=True)
        n_rows = table.shape[0]
        sample = Sample(table, np.arange(n_rows), sample_weight, n_rows)
        self._fit(sample, column_names(table))
        return self

    def _fit(
        self, sample: Sample, names: Sequence[str] | None, *, weighs: bool = True
    ) -> tuple[Any, FeatureRows]:
        """Learn what each column of a checked table becomes; return its cells and features."""
        check_choice("scale", self.scale, ("auto", "standard", None))
        check_choice("metric", self.metric, ("euclidean", "cosine"))
        weights = check_weights(sample.weights, len(sample.rows))
        counts = None if weights is None else count_repeats(weights)
        self.columns_, *found = find_columns(sample, names, self, counts, weighs=weighs)
        return found[0], found[1]

    def transform(self, X: Any) -> Any:
        r"""Return the rows as scaled features: an array, or CSR where most are of categories.

        CSR is not centred: its categories are 1 or 0 by :math:`\sqrt p`. Frames, as
        ``set_output`` asks for them, are dense: there CSR is refused.
        """
        return self.encode(X).data

    def encode(self, X: Any) -> FeatureRows:
        """Return what :meth:`transform` does, and which cells of the table are missing."""
        check_is_fitted(self)
        return self.columns_.encode(self._check(X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features."""
        check_is_fitted(self)
        return np.array(self.columns_.feature_names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Say that missing values, text and sparse matrices are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _check(self, X: Any, *, reset: bool) -> Any:
        """Return a frame of narwhals, an array or CSR, by scikit-learn's conventions."""
        table: Any = as_table(X.X if is_anndata(X) else X)
        with input_errors():
            if isinstance(table, nw.DataFrame):
                check_columns(self, table, reset=reset)
                if not table.shape[0]:
                    raise ValueError("Found array with 0 sample(s), while 1 is required.")
                return table
            any_values = {"dtype": None, "accept_sparse": "csr", "ensure_all_finite": False}
            data = validation.validate_data(self, table, reset=reset, **any_values)
        return table if np.ma.isMaskedArray(table) else data


@final
@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """The features of a sample, as a fit sees them and in the user's units."""

    data: Matrix  # C-contiguous or canonical CSR
    columns: Columns
    rows: FeatureRows  # the same rows in the user's units, imputed
    seen: dict[str, Any]  # the attributes of the data that scikit-learn's conventions ask for
    owner: IndexArray | None = None  # the column of each feature, where any column has several
    empty: NDArray[np.bool_] | None = None  # rows without any value; None: all have one
    embedding: Array | None = None  # vectors in which clusters are found; None: the features


def find_features(estimator: Any, sample: Sample, names: Sequence[str] | None) -> Features:
    """Return the features that an estimator is fitted to, or raise InputError.

    Arrays of numbers and sparse matrices are features already, with missing values imputed, and
    so are rows that ``Columns`` have encoded; all other tables are encoded. The column with the
    vectors of rows is no feature. The estimator stays as it is.
    """
    X, encoder, embedding = sample.table, estimator.encoder, sample.embedding_column
    is_auto = isinstance(encoder, str) and encoder == "auto"
    if not (encoder is None or is_auto or isinstance(encoder, TableEncoder | Columns)):
        problem = f'must be "auto", None or a TableEncoder; got {encoder!r}'
        raise InputTypeError(problem, "encoder")
    if encoder is None and embedding is not None:
        raise InputError(f"must be an array for encoder=None; got {embedding!r}", "embedding")
    given = estimator.get_params(deep=False).get("column_weights")
    if given is not None and not (is_auto or isinstance(encoder, TableEncoder)):
        raise InputError("needs an encoder, and encoder is None", "column_weights")
    is_mixed = is_auto and isinstance(X, np.ndarray) and not is_plain(X)
    cells = np.asarray(X, dtype=object).ravel() if is_mixed else ()
    has_units = isinstance(X, nw.DataFrame) or any(isinstance(cell, str) for cell in cells)
    is_mixed = has_units or np.ma.isMaskedArray(X) or any(cell is None for cell in cells)
    is_mixed = is_mixed or given is not None
    if not isinstance(encoder, TableEncoder) and not (is_auto and is_mixed):
        data, seen = check_array(estimator, X, allow_nan=is_auto)
        if all_finite(data if isinstance(data, np.ndarray) else data.data):
            notes = _describe_matrix(X, sample.embedding)
            if is_auto:
                _warn(notes)
            counted_rows = slice(None) if sample.weights is None else sample.weights > 0.0
            check_range(data[counted_rows])
            rows = as_rows(data[counted_rows])
            more = {"fills": rows.center, "is_boolean": rows.find_booleans(), "notes": notes}
            columns = Columns.plain(data.shape[1], names, imputes=is_auto, **more)
            meant = encoder if isinstance(encoder, Columns) else columns
            owner, vectors = _find_owner(meant), _find_embedding(sample, meant, data)
            return Features(data, columns, FeatureRows(data), seen, owner, None, vectors)
    encoder = TableEncoder(scale="auto" if has_units else None) if is_auto else clone(encoder)
    if given is not None:
        encoder.set_params(column_weights=given)
    weighs = estimator._weighs_columns
    return _encode_table(encoder, sample, names, is_auto=is_auto, weighs=weighs)


def _encode_table(
    encoder: TableEncoder,
    sample: Sample,
    names: Sequence[str] | None,
    *,
    is_auto: bool,
    weighs: bool,
) -> Features:
    table = encoder._check(sample.table, reset=True)
    if table.shape[0] < 2:
        raise InputError("has 1 row (n_samples=1), and at least 2 are needed", "X")
    cells, rows = encoder._fit(replace(sample, table=table), names, weighs=weighs)
    columns = encoder.columns_.equalize()
    data = columns.scale_rows(rows.data)
    check_range(data)
    notes = [*_describe_matrix(cells, sample.embedding), *columns.notes]
    empty = find_empty_rows(rows.missing)
    if empty is not None:
        n_empty = int(empty.sum())
        excluded = f"without any value {'is' if n_empty == 1 else 'are'} excluded from the fit"
        notes.append(Note(f"{counted(n_empty, 'row')} {excluded}"))
    columns = replace(columns, notes=tuple(notes))
    if is_auto:
        _warn(columns.notes)
    owner, vectors = _find_owner(columns), _find_embedding(sample, columns, data)
    return Features(data, columns, rows, list_seen(encoder), owner, empty, vectors)


def _describe_matrix(X: Any, embedding: Array | None) -> tuple[Note, ...]:
    """Return a note on numbers that are packed bits or raw counts."""
    for name, matrix in (("X", X), ("embedding", embedding)):
        if isinstance(matrix, np.ndarray) and looks_like_bits(matrix):
            problem = f"bytes of {name} look like packed bits, and are taken as numbers"
            return (Note(f"{problem}: pass np.unpackbits({name}, axis=1)"),)
    if is_plain(X) and look_like_counts(X):
        remedy = "divide each row by its sum, and take np.log1p of 10,000 times that"
        return (Note(f"numbers look like raw counts, as of genes in cells: {remedy}"),)
    return ()


def _warn(notes: Sequence[Note]) -> None:
    """Warn of what was noticed in a table, a line each."""
    if notes:
        warn_caller("\n".join(map(str, notes[:MAX_NOTES])), TableWarning)


def _find_embedding(sample: Sample, columns: Columns, data: Any) -> Array | None:
    """Return the vectors of a sample, or else the latent dimensions (LSA) of its texts."""
    places = [place for place, one in columns.readings.items() if one.kind == "text"]
    if sample.embedding is not None or not places:
        return sample.embedding
    words = normalize(data[:, np.isin(columns.owner, places)].astype(np.float64))
    size = min(MAX_LATENT, *(length - 1 for length in words.shape))
    if size < 1:
        return None
    return np.asarray(normalize(TruncatedSVD(size, random_state=0).fit_transform(words)))


def _find_owner(columns: Columns) -> IndexArray | None:
    """Return the column of each feature, where any column has several."""
    return None if len(columns) == columns.n_features else columns.owner
