"""A transformer from tables with missing values, categories and mixed units to features."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from taxarbor._frames import as_frame, as_table, is_frame
from taxarbor.tables._checks import check_choice, check_weights, input_errors, validate_data
from taxarbor.tables._encoding import Encoding, Expanded
from taxarbor.tables._profile import FROM_DTYPE, make_encoding
from taxarbor.tables._weights import repeats_of


class TableEncoder(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    r"""Make features of a table with missing values, categories, dates and mixed units.

    A number is one feature. Categories are one-hot encoded: a category of share p among the
    rows is a feature, 1 or 0, less p, divided by :math:`\sqrt p`, as in factor analysis of
    mixed data; a column of two categories is one feature of variance 1. Missing values are
    imputed by the mean of their column. Columns that are empty, identifiers, dates and text of
    many values are left out, with the reason.

    Estimators do this by themselves (``encoder="auto"``), and their trees come back in the
    units and words of the table. They divide each categorical column by the root of its number
    of categories less one, so that it weighs as much as a number. On its own it is a step of a
    pipeline, before any estimator, and leaves the weights of factor analysis.

    Parameters
    ----------
    missing : {"mean", "error"}, default="mean"
        "mean": missing values are imputed by the mean of the column, or the share of each
        category. "error": they raise an error.
    categorical_features : "from_dtype", array-like or None, default="from_dtype"
        Which columns are categorical: "from_dtype", those of a frame that are text or of type
        category, if text has few values (50 at most, each twice on average); or their names,
        their positions, or a mask. None: no column is. Unless a column is named, rare values
        (of fewer than 5 rows, or one in a thousand) count as missing.
    date_features : "from_dtype", array-like or None, default=None
        Which columns of dates to use, as year, month and weekday: all of a date type, or
        named as above.
    scale : {"auto", "standard"} or None, default="auto"
        "standard": numbers to variance 1, which outliers have no part in. None: nothing is
        scaled. "auto": to variance 1 where there are categories, or where columns differ in
        unit: one holds 90 % of the variance, or a third of them less than 1 % of the mean
        variance each, and so would hardly count; else not.
    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine": each row is normalized to length 1, so that only its direction counts; for
        numbers, which are not scaled then. Thresholds are parts of the length.

    Attributes
    ----------
    encoding_ : Encoding
        What each column became: ``columns``, ``dropped`` with reasons, ``notes``.
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

    encoding_: Encoding
    n_features_in_: int

    def __init__(
        self,
        *,
        missing: Literal["mean", "error"] = "mean",
        categorical_features: Any = FROM_DTYPE,
        date_features: Any = None,
        scale: Literal["auto", "standard"] | None = "auto",
        metric: Literal["euclidean", "cosine"] = "euclidean",
    ) -> None:
        self.missing = missing
        self.categorical_features = categorical_features
        self.date_features = date_features
        self.scale = scale
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
        check_choice("missing", self.missing, ("mean", "error"))
        check_choice("scale", self.scale, ("auto", "standard", None))
        check_choice("metric", self.metric, ("euclidean", "cosine"))
        table = self._checked(X, reset=True)
        weights = check_weights(sample_weight, table.shape[0])
        # What a fit will see.
        counts = None if weights is None else repeats_of(weights)
        self.encoding_ = make_encoding(table, self, counts)
        return self

    def transform(self, X: Any) -> Any:
        r"""Return the rows as scaled features: an array, or CSR where most are of categories.

        CSR is not centred: its categories are 1 or 0 by :math:`\sqrt p`. Frames, as
        ``set_output`` asks for them, are dense: there CSR is refused.
        """
        return self.encode(X).data

    def encode(self, X: Any) -> Expanded:
        """Return what :meth:`transform` does, and which cells of the table are missing."""
        check_is_fitted(self)
        return self.encoding_.encode(self._checked(X, reset=False))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the features."""
        check_is_fitted(self)
        return np.array(self.encoding_.feature_names, dtype=object)

    def __sklearn_tags__(self) -> Any:
        """Say that missing values, text and sparse matrices are accepted."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Return a frame as it is and all else as an array, as scikit-learn's rules want it."""
        X = as_frame(X)
        with input_errors():
            if is_frame(X):
                validate_data(self, X, skip_check_array=True, reset=reset)
                if not X.shape[0]:
                    raise ValueError("Found array with 0 sample(s), while 1 is required.")
                return X
            is_listed = isinstance(X, list | tuple) or np.ma.isMaskedArray(X)
            kept = as_table(X) if is_listed else X
            options: dict[str, Any] = {"dtype": None, "accept_sparse": "csr", "reset": reset}
            data = validate_data(self, kept, ensure_all_finite=False, **options)
        return kept if np.ma.isMaskedArray(kept) else data
