"""Rows of a user's table meet a taxonomy: the only way from any source to leaves."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from taxarbor._errors import InputTypeError, TableWarning, counted, some, warn_caller
from taxarbor._frames import Table
from taxarbor._types import IndexArray, TableLike
from taxarbor.rows import all_finite
from taxarbor.sources import DaskSource, Source, has_layers, open_source
from taxarbor.tables.columns import Columns, FeatureRows, Match, find_empty_rows
from taxarbor.tree.edit_tree import drop_rows
from taxarbor.tree.route_rows import place_rows, refuse_values

if TYPE_CHECKING:
    from taxarbor.taxonomy.taxonomy import Taxonomy

MAX_NAMED = 5  # columns, and values, that a warning names

Work: TypeAlias = Callable[..., NDArray[Any]]
"""A function of a taxonomy and feature rows: an array with one entry, or line, for each row."""
Unseen: TypeAlias = Counter[tuple[str, str]]  # rows by column and value that the fit lacks


def apply(
    taxonomy: "Taxonomy",
    X: TableLike,
    work: Work,
    dtype: DTypeLike = np.intp,
    n_columns: int | None = None,
    *,
    n_threads: int = 1,
) -> NDArray[Any]:
    """Return the result of some work for each row of any source; of Dask, a lazy array."""
    source = open_source(X, layer=_layer_of(taxonomy, X), n_threads=n_threads)
    taxonomy = add_columns(taxonomy, source)
    source, match = match_columns(taxonomy, source)
    counts = replace(taxonomy, tree=drop_rows(taxonomy.tree), stability=None)

    def run(table: Table, _: slice) -> tuple[tuple[NDArray[Any]], Unseen]:
        read = counts.columns.read(table, counts.dtype, match)
        unseen = Counter(read.unseen)
        if isinstance(source, DaskSource):  # nobody adds them up
            warn_of_unseen(unseen)
        return (work(counts, read, n_threads=n_threads),), unseen

    if isinstance(source, DaskSource):
        lazy: NDArray[Any] = source.apply(run, dtype, n_columns)
        return lazy
    (result,), unseen = source.route(run, (dtype,))
    warn_of_unseen(unseen)
    return result


def load_rows(taxonomy: "Taxonomy", X: TableLike) -> tuple["Taxonomy", Source]:
    """Return rows that fit into memory, and a taxonomy that has columns for them.

    Raises InputTypeError for rows of Dask.
    """
    source = open_source(X, layer=_layer_of(taxonomy, X))
    if isinstance(source, DaskSource):
        problem = f"must be rows in memory or in a file, got a {type(X).__name__} of Dask"
        raise InputTypeError(f"{problem}: compute a sample, and attach it to the model", "X")
    return add_columns(taxonomy, source), source


def _layer_of(taxonomy: "Taxonomy", X: TableLike) -> str:
    return taxonomy.columns.layer if has_layers(X) else ""


def add_columns(taxonomy: "Taxonomy", source: Source) -> "Taxonomy":
    """Return a taxonomy that has no columns, as one made from labels, with those of rows."""
    if taxonomy.columns.n_features:
        return taxonomy
    columns = Columns.plain(source.n_columns, source.names, imputes=False)
    return replace(taxonomy, columns=columns)


def match_columns(
    taxonomy: "Taxonomy", source: Source, *, of_rules: bool = True
) -> tuple[Source, Match]:
    """Return rows as a source, and where the columns of a taxonomy stand in it.

    Only the columns that rules and noise read are needed, or all if not ``of_rules``. One that
    is needed and absent has missing values, and a warning says so. Of the others, only those
    are read whose values the fit may not have seen.
    """
    columns = taxonomy.columns
    needed = np.full(len(columns), not of_rules or taxonomy.noise_model is not None)
    for rule in taxonomy.tree.rules:
        if rule is not None:
            needed[columns.owner[rule.features]] = True
    match = columns.match(source.names, source.n_columns, needed)
    if match.absent:
        listing = some([repr(name) for name in match.absent], MAX_NAMED)
        warn_caller(f"X lacks {listing}: its values count as missing", TableWarning)
    if source.in_memory or source.names is None or columns.names is None:
        return source, match
    is_read = needed.copy()
    is_read[[*columns.readings]] = True
    positions = match.positions[is_read & (match.positions >= 0)]
    source = source.keep({source.names[position] for position in positions.tolist()})
    return source, columns.match(source.names, source.n_columns, needed)


def warn_of_unseen(unseen: Unseen | None) -> None:
    """Warn of values that the fit did not see, which count as missing."""
    if not unseen:
        return
    listed = [
        f"{name} = {value!r} ({counted(n_rows, 'row')})"
        for (name, value), n_rows in unseen.most_common()
    ]
    problem = "X holds values that the fit did not see, which count as missing"
    warn_caller(f"{problem}: {some(listed, MAX_NAMED)}", TableWarning)


def read_rows(taxonomy: "Taxonomy", X: TableLike) -> FeatureRows:
    """Return all rows of a table as imputed features, with the missing cells."""
    source = open_source(X, layer=_layer_of(taxonomy, X))
    source, match = match_columns(taxonomy, source, of_rules=False)
    table = source.sample(source.n_rows, 0).table
    rows = taxonomy.columns.read(table, taxonomy.dtype, match)
    warn_of_unseen(Counter(rows.unseen))
    return impute(taxonomy, rows)


def impute(taxonomy: "Taxonomy", rows: FeatureRows) -> FeatureRows:
    """Return rows without NaN, and where values were missing, or raise InputError."""
    columns, data = taxonomy.columns, rows.data
    cells = data if isinstance(data, np.ndarray) else data.data
    if not (rows.missing is not None or all_finite(cells)):
        refuse_values(data, columns.feature_name, allow_nan=columns.imputes)
    return columns.impute(rows)


def route(taxonomy: "Taxonomy", rows: FeatureRows, *, n_threads: int = 1) -> IndexArray:
    """Return the leaves of rows, -1 for noise; see :meth:`Taxonomy.predict`."""
    return mark_noise(taxonomy, rows, send(taxonomy, rows, n_threads=n_threads), n_threads)


def send(taxonomy: "Taxonomy", rows: FeatureRows, *, n_threads: int = 1) -> IndexArray:
    """Return the leaves of all rows, of noise as well."""
    columns = taxonomy.columns
    data, name = columns.take_logs(rows.data), columns.feature_name
    labels = place_rows(taxonomy.tree, data, columns.fill, name=name, n_threads=n_threads)
    return labels.astype(np.intp)


def mark_noise(
    taxonomy: "Taxonomy", rows: FeatureRows, labels: IndexArray, n_threads: int = 1
) -> IndexArray:
    """Return the leaves of rows with -1 for noise; rows without any value are none."""
    data, model = rows.data, taxonomy.noise_model
    if model is None or not len(labels):
        return labels
    logs, fill = taxonomy.columns.take_logs(data), taxonomy.columns.fill
    is_noise = model.find_least_scores(logs, fill, n_threads) > model.limit
    empty = find_empty_rows(rows.missing)
    if empty is None and isinstance(data, np.ndarray):
        empty = np.zeros(len(labels), dtype=bool)
        empty[is_noise] = np.isnan(data[is_noise]).all(axis=1)
    return np.where(is_noise if empty is None else is_noise & ~empty, -1, labels)
