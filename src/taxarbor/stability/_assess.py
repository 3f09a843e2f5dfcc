"""Refit a model to halves of its rows, and compare the trees with its own."""

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from taxarbor._errors import InputError, InputTypeError, counted
from taxarbor._progress import show_progress
from taxarbor._run import GrowthEvent, Observer, ignore, one_blas_thread
from taxarbor._types import Array, IndexArray
from taxarbor.clusters import Coordinates, find_coordinates, reduce_wide
from taxarbor.sources import open_source
from taxarbor.stability._compare import Refits, compare_nodes, measure_curve
from taxarbor.tables._validation import check_count, check_jobs, check_new_rows
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._probabilities import calibrate
from taxarbor.taxonomy._stability_result import Curve
from taxarbor.taxonomy._taxonomy import taxonomy_of
from taxarbor.tree import Tree

MAX_ROWS = 10000
"""Rows that the halves are drawn from: each refit sees one half, and the other tests it."""

MIN_ROWS = 4
"""Rows that can be halved, with something to divide in each half."""

N_REFITS = 20

REFITS_PER_REFERENCE = 4
"""One refit in so many is repeated on reference rows without clusters."""

FitTask: TypeAlias = Callable[[], Any]
"""Fits a model to some rows, and returns it."""


def assess(
    model: Any,
    X: Any,
    *,
    n_refits: int = N_REFITS,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
    embedding: Any = None,
) -> Taxonomy:
    """Measure how stable a model is: refit it to halves of its rows, and compare the trees.

    Each refit sees half of the rows, drawn without replacement (from 10,000 at most), with
    their weights and without noise, and predicts the cluster of every row. A cluster of the
    model is recovered if a node of the refit has a Jaccard index of at least 0.75 with it. It
    is separated if the rows that the refit has not seen leave a gap between it and its
    siblings. The stability of each number of clusters is compared with that of reference rows
    without clusters, drawn from one normal distribution of the same covariance. The rows that a
    refit has not seen also test how new rows are clustered: ``stability.left_out`` is the share
    of them that go where the model, which was fitted with them, puts them.

    Parameters
    ----------
    model : estimator
        A fitted :class:`~taxarbor.Taxarbor`, :class:`~taxarbor.HMMC` or other model with a
        ``taxonomy_``. It is not changed.
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
    options = RefitOptions(n_refits, n_jobs, random_state, verbose)
    refits, reference = _refit(model, X, embedding, options, "assess")
    labels = [refit.predict(refits.data).astype(np.int32) for refit in refits.models]
    with one_blas_thread():
        stability = compare_nodes(refits, labels, measure_curve(refits, reference))
    return replace(calibrate(refits.taxonomy, X, labels), stability=stability)


class RefitOptions(NamedTuple):
    """Parameters of :func:`assess`."""

    n_refits: int = N_REFITS
    n_jobs: int | None = None
    random_state: Any = 0
    verbose: int = 0


def measure_cuts(model: Any, X: Any, embedding: Any, options: RefitOptions) -> Curve:
    """Return how stable each cut of a fitted model's tree is; a part of :func:`assess`."""
    refits = _refit(model, X, embedding, options, "number of clusters")
    with one_blas_thread():
        return measure_curve(*refits)


def can_refit(tree: Tree) -> bool:
    """Say whether the rows of a tree can be halved."""
    return len(_list_rows(tree)) >= MIN_ROWS


def _refit(
    model: Any, X: Any, embedding: Any, options: RefitOptions, title: str
) -> tuple[Refits, Refits]:
    """Fit a model to halves of its rows, and to halves of reference rows without clusters.

    The tree that the latter are compared with is fitted to all reference rows.
    """
    n_refits = check_count("n_refits", options.n_refits, least=1)
    n_threads = check_jobs(options.n_jobs)
    data, taxonomy = _encode_rows(model, X), taxonomy_of(model)
    rng, rows = check_random_state(options.random_state), _list_rows(taxonomy.tree)
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
    unfitted = _clone_for_half(model, taxonomy, n_half, n_rows)
    # Reference rows are coordinates: the encoding of a table is not theirs.
    without_encoder = clone(unfitted)
    if "encoder" in without_encoder.get_params():
        without_encoder.set_params(encoder=None)
    every_row, fewer = np.arange(len(rows)), halves[: -(-n_refits // REFITS_PER_REFERENCE)]

    def plan(unfitted: Any, data: Any, embedding: Array | None, half: IndexArray) -> FitTask:
        model, per_row = clone(unfitted), {"sample_weight": weights, "embedding": embedding}
        if "random_state" in model.get_params():
            model.set_params(random_state=int(rng.randint(2**31 - 1)))

        def fit() -> Any:
            given = {name: v[half] for name, v in per_row.items() if v is not None}
            return model.fit(data[half], **given)

        return fit

    tasks = [plan(unfitted, some, vectors, half) for half in halves]
    tasks += [plan(without_encoder, drawn, None, half) for half in (*fewer, every_row)]
    with show_progress(title, options.verbose, "refits") as bar:
        models = _fit_all(tasks, n_threads, bar or ignore)
    whole = models.pop()
    return (
        Refits(taxonomy, data, rows, coordinates, halves, models[:n_refits]),
        Refits(whole.taxonomy_, drawn, every_row, reference, fewer, models[n_refits:]),
    )


def _encode_rows(model: Any, X: Any) -> Any:
    """Return the rows of a fitted model as an array of features, or raise InputError."""
    if isinstance(model, Taxonomy):
        raise InputTypeError(
            "a taxonomy cannot be fitted again: pass the model that it came from, whose "
            "taxonomy_ it is"
        )
    taxonomy = taxonomy_of(model)
    if not taxonomy.tree.has_rows:
        raise InputError(
            "the model does not hold the labels of its rows: assess one that was fitted to "
            "rows in memory, such as a sample of them"
        )
    data = check_new_rows(model, X)
    if taxonomy.encoding is not None:
        data = taxonomy.encoding.encode(data).data
    if data.shape[0] != taxonomy.tree.n_rows:
        raise InputError(
            f"has {counted(data.shape[0], 'row')}, and the model was fitted to "
            f"{taxonomy.tree.n_rows:,}: pass the same rows, in the same order",
            "X",
        )
    if not can_refit(taxonomy.tree):
        n_rows = counted(len(_list_rows(taxonomy.tree)), "row")
        raise InputError(f"has {n_rows} in the tree; refits to halves need {MIN_ROWS}", "X")
    return data


def _read_embedding(taxonomy: Taxonomy, X: Any, embedding: Any) -> Array | None:
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


def _clone_for_half(model: Any, taxonomy: Taxonomy, n_half: int, n_rows: int) -> Any:
    """Return an unfitted copy for half of the rows: bounds on leaf sizes are in proportion."""
    given = model.get_params()
    changed: dict[str, Any] = {"n_jobs": 1, "verbose": 0, "noise": 0.0}
    if taxonomy.encoding is not None:  # all are fitted to the same features
        changed["encoder"] = taxonomy.encoding
    n_clusters = given.get("n_clusters")
    if n_clusters is not None:
        n_leaves = taxonomy.tree.n_leaves if n_clusters == "auto" else n_clusters
        changed["n_clusters"] = min(n_leaves, max(n_half // 2, 1))
    for name in ("min_leaf_size", "max_leaf_size"):
        if given.get(name) is not None:
            changed[name] = max(round(n_half / n_rows * given[name]), 1)
    known = {name: value for name, value in changed.items() if name in given}
    return clone(model).set_params(**known)


def _draw_reference(coordinates: Coordinates, rng: np.random.RandomState) -> Array:
    """Draw as many rows from one normal distribution with the covariance of the coordinates."""
    Z = coordinates.values[:, :-1].astype(np.float64)
    lengths, directions = np.linalg.eigh(
        np.cov(Z, rowvar=False, bias=True).reshape(2 * Z.shape[1:])
    )
    drawn = rng.standard_normal(Z.shape) * np.sqrt(np.maximum(lengths, 0.0))
    return np.asarray(drawn @ directions.T, dtype=coordinates.dtype)


def _fit_all(tasks: list[FitTask], n_threads: int, observe: Observer) -> list[Any]:
    """Return the fitted models, in the order of their tasks."""
    models: list[Any] = []
    with warnings.catch_warnings(), ThreadPoolExecutor(n_threads) as pool:
        warnings.simplefilter("ignore")
        try:
            for model in (pool.map if n_threads > 1 else map)(lambda fit: fit(), tasks):
                models.append(model)
                observe(GrowthEvent(len(models), len(tasks), len(models)))
        except BaseException:  # Ctrl-C: refits that wait are not begun
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return models
