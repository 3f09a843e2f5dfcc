"""Refit a model to halves of its rows, and compare the trees with its own."""

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator, clone

from taxarbor._errors import InputError, InputTypeError, counted
from taxarbor._fit_context import one_blas_thread, show_progress
from taxarbor._parameters import check_count, check_jobs, check_random
from taxarbor._types import Array, IndexArray, Matrix, TableLike
from taxarbor.clusters import Coordinates, find_coordinates, reduce_wide
from taxarbor.sources import open_source
from taxarbor.stability._compare import Refits, compare_nodes, measure_curve
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy.new_rows import load_rows, read_rows
from taxarbor.taxonomy.probabilities import calibrate
from taxarbor.taxonomy.stability_result import Curve
from taxarbor.taxonomy.taxonomy import taxonomy_of
from taxarbor.tree import Tree

MAX_ROWS = 10000  # that halves are drawn from: a refit sees one, and the other tests it
MIN_ROWS = 4  # that can be halved, with something to divide in each half
N_REFITS = 20
REFITS_PER_REFERENCE = 4  # one in so many is repeated on rows without clusters

RandomState: TypeAlias = int | np.random.RandomState | None
Fit: TypeAlias = Callable[[], BaseEstimator]


def assess(
    model: BaseEstimator,
    X: TableLike,
    *,
    n_refits: int = N_REFITS,
    n_jobs: int | None = None,
    random_state: RandomState = 0,
    verbose: int = 0,
    embedding: TableLike = None,
) -> Taxonomy:
    """Measure how stable a model is: refit it to halves of its rows, and compare the trees.

    Each refit sees half of the rows, drawn without replacement (from 10,000 at most), with
    their weights and without noise, and predicts the cluster of every row.
    :class:`~taxarbor.taxonomy.Stability` says when a cluster counts as recovered and separated,
    and what share of the rows that a refit has not seen go where the model puts them. The
    stability of each number of clusters is compared with that of reference rows without
    clusters, drawn from one normal distribution of the same covariance.

    Parameters
    ----------
    model : estimator
        A fitted :class:`~taxarbor.Taxarbor` or :class:`~taxarbor.HMMC`. It is not changed.
    X : array-like, CSR matrix or data frame of shape (n_rows, n_features)
        The rows that it was fitted to, in the same order.
    n_refits : int, default=20
        Number of refits.
    n_jobs : int or None, default=None
        Number of refits in parallel; the result does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Seed of the halves and the refits.
    verbose : int, default=0
        With 1, a progress bar is shown if it takes longer than two seconds.
    embedding : array-like, path or str, optional
        The embedding that the model was fitted with, if there was one, as in its ``fit``.

    Returns
    -------
    Taxonomy
        The model's taxonomy with its :class:`~taxarbor.taxonomy.Stability`, in ``stability``,
        and with the temperature at which its probabilities match the agreement of the refits.

    Raises
    ------
    ValueError, TypeError
        If the model is not fitted, is a taxonomy without its model, or was fitted to other
        rows.

    Examples
    --------
    >>> from taxarbor import Taxarbor, make_planted_tree
    >>> from taxarbor.stability import assess
    >>> planted = make_planted_tree(200, depth=2)
    >>> model = Taxarbor(6, random_state=0).fit(planted.X)
    >>> taxonomy = assess(model, planted.X, n_refits=5)
    >>> taxonomy.stability.suggested, taxonomy.prune(4).tree.n_leaves
    (4, 4)
    """
    refits, reference = _refit(
        model, X, embedding, n_refits, random_state, n_jobs=n_jobs, verbose=verbose
    )
    labels = [refit.predict(refits.data).astype(np.int32) for refit in refits.models]
    with one_blas_thread():
        stability = compare_nodes(refits, labels, measure_curve(refits, reference))
    rows = read_rows(refits.taxonomy, X)
    return replace(calibrate(refits.taxonomy, rows, labels), stability=stability)


def measure_cuts(model: BaseEstimator, X: TableLike, embedding: TableLike) -> Curve:
    """Return how stable each cut of a fitted model's tree is; a part of :func:`assess`."""
    seed, n_jobs, verbose = model.random_state, model.n_jobs, model.verbose
    refits = _refit(model, X, embedding, N_REFITS, seed, n_jobs=n_jobs, verbose=verbose)
    with one_blas_thread():
        return measure_curve(*refits)


def can_refit(tree: Tree) -> bool:
    """Return whether the rows of a tree can be halved."""
    return len(_list_rows(tree)) >= MIN_ROWS


def _refit(
    model: BaseEstimator,
    X: TableLike,
    embedding: TableLike,
    n_refits: int,
    random_state: RandomState,
    *,
    n_jobs: int | None,
    verbose: int,
) -> tuple[Refits, Refits]:
    """Fit a model to halves of its rows, and to halves of reference rows without clusters.

    The tree that the latter are compared with is fitted to all reference rows.
    """
    n_refits, n_threads = check_count("n_refits", n_refits, least=1), check_jobs(n_jobs)
    data, taxonomy = _encode_rows(model, X), taxonomy_of(model)
    rng, rows = check_random(random_state), _list_rows(taxonomy.tree)
    n_rows = len(rows)
    if n_rows > MAX_ROWS:
        rows = rows[np.sort(rng.choice(n_rows, MAX_ROWS, replace=False))]
    vectors, weights = _read_embedding(taxonomy, X, embedding), taxonomy.tree.weights
    vectors = None if vectors is None else vectors[rows]
    weights = None if weights is None else weights[rows]
    some, n_half = data[rows], len(rows) // 2
    halves = [np.sort(rng.choice(len(rows), n_half, replace=False)) for _ in range(n_refits)]
    with one_blas_thread():
        points = reduce_wide(some if vectors is None else vectors)
        coordinates = find_coordinates(points, int(rng.randint(2**31 - 1)))
        drawn = _draw_reference(coordinates, rng)
        reference = find_coordinates(drawn, int(rng.randint(2**31 - 1)))
    every_row, fewer = np.arange(len(rows)), halves[: -(-n_refits // REFITS_PER_REFERENCE)]
    unfitted = _clone_for_half(model, taxonomy, n_half, n_rows)
    # Reference rows are coordinates: the columns of a table are not theirs.
    without_encoder = clone(unfitted).set_params(encoder=None)

    def plan(
        unfitted: BaseEstimator, data: Matrix, embedding: Array | None, half: IndexArray
    ) -> Fit:
        seed = int(rng.randint(2**31 - 1))  # drawn in the order of the plans
        model = clone(unfitted).set_params(random_state=seed)
        per_row = {"sample_weight": weights, "embedding": embedding}
        given = {name: values for name, values in per_row.items() if values is not None}
        return lambda: model.fit(data[half], **{name: v[half] for name, v in given.items()})

    fits = [plan(unfitted, some, vectors, half) for half in halves]
    fits += [plan(without_encoder, drawn, None, half) for half in (*fewer, every_row)]
    *models, whole = _run_all(fits, n_threads, verbose)
    return (
        Refits(taxonomy, data, rows, coordinates, halves, models[:n_refits]),
        Refits(whole.taxonomy_, drawn, every_row, reference, fewer, models[n_refits:]),
    )


def _encode_rows(model: BaseEstimator, X: TableLike) -> Matrix:
    """Return the rows of a fitted model as an array of features, or raise InputError."""
    if isinstance(model, Taxonomy):
        raise InputTypeError("must be the fitted model, not its taxonomy_", "model")
    taxonomy = taxonomy_of(model)
    if not taxonomy.tree.has_rows:
        raise InputError("the model does not hold labels: assess one fitted to rows in memory")
    columns, (_, source) = taxonomy.columns, load_rows(taxonomy, X)
    table = source.sample(source.n_rows, 0).table
    match = columns.match(source.names, source.n_columns)
    data: Matrix = columns.encode(table, match).data
    if data.shape[0] != taxonomy.tree.n_rows:
        given = f"{counted(data.shape[0], 'row')}, and the model was fitted to"
        raise InputError(f"has {given} {taxonomy.tree.n_rows:,}: pass the same rows", "X")
    if not can_refit(taxonomy.tree):
        n_rows = counted(len(_list_rows(taxonomy.tree)), "row")
        raise InputError(f"has {n_rows} in the tree; refits to halves need {MIN_ROWS}", "X")
    return data


def _read_embedding(taxonomy: Taxonomy, X: TableLike, embedding: TableLike) -> Array | None:
    """Return the vectors that a model was fitted with, or raise InputError if not given."""
    fitted = (taxonomy.made_by or {}).get("embedding")
    if (embedding is None) == bool(fitted):
        given = "with one: pass it again" if fitted else "without one: pass None"
        raise InputError(f"does not fit: the model was fitted {given}", "embedding")
    if embedding is None:
        return None
    source = open_source(X, embedding=embedding)
    return source.sample(source.n_rows, 0).embedding


def _list_rows(tree: Tree) -> IndexArray:
    """Return the rows that halves are drawn from: those in the tree of positive weight."""
    rows = np.sort(tree.rows(tree.root))
    return rows if tree.weights is None else rows[tree.weights[rows] > 0.0]


def _clone_for_half(
    model: BaseEstimator, taxonomy: Taxonomy, n_half: int, n_rows: int
) -> BaseEstimator:
    """Return an unfitted copy for half of the rows: bounds on leaf sizes are in proportion."""
    given = model.get_params()
    # All are fitted to the same features.
    changed: dict[str, Any] = {"n_jobs": 1, "verbose": 0, "encoder": taxonomy.columns}
    if "noise" in given:
        changed |= {"noise": 0.0, "column_weights": None}  # which the columns have
    if (n_clusters := given["n_clusters"]) is not None:
        n_leaves = taxonomy.tree.n_leaves if n_clusters == "auto" else n_clusters
        changed["n_clusters"] = min(n_leaves, max(n_half // 2, 1))
    for name in ("min_leaf_size", "max_leaf_size"):
        if given.get(name) is not None:
            changed[name] = max(round(n_half / n_rows * given[name]), 1)
    return clone(model).set_params(**changed)


def _draw_reference(coordinates: Coordinates, rng: np.random.RandomState) -> Array:
    """Draw as many rows from one normal distribution with the covariance of the coordinates."""
    Z = coordinates.values[:, :-1].astype(np.float64)
    covariance = np.cov(Z, rowvar=False, bias=True).reshape(2 * Z.shape[1:])
    lengths, directions = np.linalg.eigh(covariance)
    drawn = rng.standard_normal(Z.shape) * np.sqrt(np.maximum(lengths, 0.0))
    return np.asarray(drawn @ directions.T, dtype=coordinates.dtype)


def _run_all(fits: list[Fit], n_threads: int, verbose: int) -> list[BaseEstimator]:
    """Return the fitted models, in the order of their fits."""
    models: list[BaseEstimator] = []
    run = Parallel(n_threads, require="sharedmem", return_as="generator")
    with show_progress("assess", verbose, "refits") as observer, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for model in run(delayed(fit)() for fit in fits):
            models.append(model)
            observer(len(models), len(fits))
    return models
