"""Refit a model to halves of its rows, and compare the trees with its own."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from taxarbor._errors import InputError, InputTypeError, counted
from taxarbor._progress import show_progress
from taxarbor._run import GrowthEvent, Observer, ignore, one_blas_thread
from taxarbor._types import Array, IndexArray
from taxarbor.clusters import Coordinates, find_coordinates, reduce_wide
from taxarbor.sources import open_source
from taxarbor.stability._gaps import find_apart
from taxarbor.stability._numbers import cut_sizes, measure_stability
from taxarbor.tables._checks import check_count, check_jobs, check_new_rows
from taxarbor.taxonomy import Stability, Taxonomy
from taxarbor.taxonomy._edit import encode
from taxarbor.taxonomy._probabilities import calibrate
from taxarbor.taxonomy._stability import MIN_JACCARD, Curve
from taxarbor.taxonomy._taxonomy import taxonomy_of

MAX_ROWS = 10000
"""Rows that the halves are drawn from: each refit sees one half, and the other tests it."""

MIN_ROWS = 4
"""Rows that can be halved, with something to divide in each half."""

MAX_LEAVES, ROWS_PER_LEAF = 50, 10
"""Largest number of clusters that "auto" considers, and rows needed for each."""

REFITS_PER_REFERENCE = 4
"""One refit in so many is repeated on reference rows without clusters."""


def assess(
    model: Any,
    X: Any,
    *,
    n_refits: int = 20,
    n_jobs: int | None = None,
    random_state: Any = 0,
    verbose: int = 0,
    embedding: Any = None,
) -> Taxonomy:
    """Measure how stable a model is: refit it to halves of its rows, and compare the trees.

    Each refit sees half of the rows, drawn without replacement (of 10,000 at most), with their
    weights and without noise, and predicts the cluster of every row. A cluster of the model
    came back if a node of the refit has a Jaccard index of at least 0.75 with it. It is apart
    if the rows that the refit has not seen leave a gap between it and its siblings. The
    stability of each number of clusters is compared with that of reference rows without
    clusters, drawn from one normal distribution of the same covariance. The rows that a refit
    has not seen also say how new rows fare: ``stability.left_out`` is the share of them that go
    where the model, which was fitted with them, puts them.

    Parameters
    ----------
    model : estimator
        A fitted :class:`~taxarbor.Taxarbor`, :class:`~taxarbor.HMMC` or other model with a
        ``taxonomy_``; it stays as it is.
    X : array-like or CSR matrix of shape (n_rows, n_features)
        The rows that it was fitted to, in the same order.
    n_refits : int, default=20
        How many times to fit.
    n_jobs : int or None, default=None
        Refits side by side; the result does not depend on it.
    random_state : int, RandomState instance or None, default=0
        Seed of the halves and the refits.
    verbose : int, default=0
        With 1, progress is shown if it takes longer than two seconds.
    embedding : array-like, path or str, optional
        The embedding that the model was fitted with, if there was one, as in its ``fit``.

    Returns
    -------
    Taxonomy
        The model's tree with its :class:`~taxarbor.taxonomy.Stability`, in ``stability``, and with
        the temperature at which its probabilities match the agreement of the refits.

    Raises
    ------
    ValueError, TypeError
        If the model is not fitted, is a tree without its model, or has seen other rows.

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
    with show_progress("assess", verbose, "refits") as bar:
        options: Any = {"n_jobs": n_jobs, "random_state": random_state, "embedding": embedding}
        study = _Study.of(model, X, n_refits, **options, observe=bar or ignore)
        labels = [model.predict(study.data).astype(np.int32) for model in study.refits]
        stability = study.compare(labels)
    encoded = taxonomy = study.taxonomy
    if taxonomy.encoding is not None:  # the data are what a fit sees
        encoded = encode(taxonomy, taxonomy.encoding)
    temperature = calibrate(encoded, study.data, labels).temperature
    return replace(taxonomy, temperature=temperature, stability=stability)


def suggest(
    model: Any, X: Any, embedding: Any, *, n_jobs: int | None, random_state: Any, verbose: int
) -> Curve:
    """Return how stable the cuts of a fitted model's tree are: one part of an assessment."""
    with show_progress("how many clusters", verbose, "refits") as bar:
        options: Any = {"n_jobs": n_jobs, "random_state": random_state, "embedding": embedding}
        return _Study.of(model, X, 20, **options, observe=bar or ignore).curve()


def most_clusters(n_rows: int) -> int:
    """Return the largest number of clusters that "auto" considers for so many rows."""
    return max(min(MAX_LEAVES, n_rows // ROWS_PER_LEAF), 1)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Study:
    """A model's tree, and those of its refits.

    ``rows`` are those that the halves are drawn from and that the coordinates are of; a half
    holds positions in these. The last of the references is fitted to all reference rows.
    """

    taxonomy: Taxonomy
    data: Any
    rows: IndexArray
    coordinates: Coordinates
    halves: list[IndexArray]
    refits: list[Any]
    reference: Coordinates
    references: list[Any]

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        n_refits: int,
        *,
        n_jobs: int | None,
        random_state: Any,
        embedding: Any,
        observe: Observer,
    ) -> Self:
        """Fit the model again, and to reference rows without clusters."""
        n_refits, n_threads = check_count("n_refits", n_refits, least=1), check_jobs(n_jobs)
        taxonomy, data = _check(model, X)
        rng = check_random_state(random_state)
        rows = _drawn_from(taxonomy)
        n = len(rows)
        if n > MAX_ROWS:
            rows = rows[np.sort(rng.choice(n, MAX_ROWS, replace=False))]
        some, size = data[rows], len(rows) // 2
        weights = None if taxonomy.tree.weights is None else taxonomy.tree.weights[rows]
        vectors = _read_embedding(taxonomy, X, embedding)
        points = None if vectors is None else vectors[rows]
        halves = [np.sort(rng.choice(len(rows), size, replace=False)) for _ in range(n_refits)]
        with one_blas_thread():
            likeness = some if points is None else points
            coordinates = find_coordinates(reduce_wide(likeness), int(rng.randint(2**31 - 1)))
            drawn = _draw_reference(coordinates, rng)
            reference = find_coordinates(drawn, int(rng.randint(2**31 - 1)))
        own = _unfitted(model, taxonomy, size, n)
        # Reference rows are coordinates: no table's encoding is theirs.
        bare = clone(own)
        if "encoder" in bare.get_params():
            bare.set_params(encoder=None)
        parts: list[Any] = [(own, some, points, half) for half in halves]
        n_references = -(-n_refits // REFITS_PER_REFERENCE)
        parts += [(bare, drawn, None, half) for half in halves[:n_references]]
        parts.append((bare, drawn, None, np.arange(len(rows))))
        tasks = [(*part, weights, int(rng.randint(2**31 - 1))) for part in parts]
        fitted = _fit_all(tasks, n_threads, observe)
        refits, references = fitted[:n_refits], fitted[n_refits:]
        return cls(taxonomy, data, rows, coordinates, halves, refits, reference, references)

    def curve(self) -> Curve:
        """Return how stable the cuts of the tree are, and those of the reference."""
        numbers = cut_sizes(self.taxonomy)
        reference = np.full(len(numbers), np.nan)
        *others, whole = self.references
        taxonomy, every_row = whole.taxonomy_, np.arange(len(self.rows))
        with one_blas_thread():
            stability = measure_stability(
                self.taxonomy, self.rows, self._grown(self.refits), self.coordinates
            )
            found = measure_stability(taxonomy, every_row, self._grown(others), self.reference)
        _, at, of = np.intersect1d(
            numbers, cut_sizes(taxonomy), assume_unique=True, return_indices=True
        )
        reference[at] = found[of]
        return Curve(numbers, stability, reference)

    def _grown(self, models: list[Any]) -> list[tuple[Taxonomy, IndexArray]]:
        return [(one.taxonomy_, half) for one, half in zip(models, self.halves, strict=False)]

    def compare(self, predicted: list[IndexArray]) -> Stability:
        """Return what came back, given the predicted leaf of each row in each refit."""
        taxonomy = self.taxonomy
        n_recovered, n_separated, rules = np.zeros((3, taxonomy.tree.n_nodes), dtype=np.intp)
        used = [0 if rule is None else rule.n_features_used for rule in taxonomy.tree.rules]
        features = [np.zeros(n, dtype=np.intp) for n in used]
        stayed = np.zeros(taxonomy.tree.n_rows)
        inside = taxonomy.tree.rows(taxonomy.tree.root)
        sent, n_left_out = np.zeros((2, taxonomy.tree.n_nodes))
        Z = self.coordinates.values[:, :-1].astype(np.float64)
        top = [_top_feature(taxonomy, node) for node in range(taxonomy.tree.n_nodes)]
        # Which value of a category a rule names may differ; -1 is in no rule.
        encoding = taxonomy.encoding
        owner = np.arange(taxonomy.n_features or 0) if encoding is None else encoding.owner
        owner = np.append(owner, -1)
        for model, half, labels in zip(self.refits, self.halves, predicted, strict=True):
            other = model.taxonomy_
            is_below = _below(other)
            both = _count_common(taxonomy, other, labels, inside)
            likeness = both / (both[:, :1] + both[:1] - both)  # the root, first, has all rows
            match = likeness.argmax(axis=1)
            back = likeness.max(axis=1) >= MIN_JACCARD
            n_recovered += back
            own = np.zeros(len(self.rows), dtype=bool)
            own[half] = True
            with one_blas_thread():
                is_apart = _nodes_apart(
                    other, labels[self.rows], Z, own, np.unique(match[back])
                )
            n_separated += back & is_apart[match]
            left_out = np.setdiff1d(inside, self.rows[half], assume_unique=True)
            both = _count_common(taxonomy, other, labels, left_out)
            n_left_out += both[:, 0]
            sent += _count_sent(taxonomy, other, likeness, both)
            home = taxonomy.tree.leaves[taxonomy.tree.labels[inside]]
            stayed[inside] += back[home] & is_below[labels[inside], match[home]]
            for node in np.flatnonzero(back).tolist():
                rule, again = taxonomy.tree.rules[node], other.tree.rules[match[node]]
                if (
                    rule is None
                    or again is None
                    or not back[list(taxonomy.tree.children(node))].all()
                ):
                    continue
                is_used = np.isin(rule.features, again.features)
                features[node] += is_used
                rules[node] += owner[top[node]] in owner[again.features]
        n_refits = len(self.refits)
        sent[0] = sent[taxonomy.tree.leaves].sum()
        unknown = np.full(taxonomy.tree.n_nodes, np.nan)
        return Stability(
            n_refits,
            n_recovered,
            n_separated,
            rules,
            tuple(features),
            left_out=np.divide(sent, n_left_out, unknown, where=n_left_out > 0.0),
            rows=stayed / n_refits,
            curve=self.curve(),
        )


def _check(model: Any, X: Any) -> tuple[Taxonomy, Any]:
    """Return the tree of a fitted model and its rows as an array, or say what is wrong."""
    if isinstance(model, Taxonomy):
        raise InputTypeError(
            "a tree alone cannot be fitted again: pass the model that it came from, whose "
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
    n = len(_drawn_from(taxonomy))
    if n < MIN_ROWS:
        raise InputError(f"has {n} rows, too few to be halved", "X")
    return taxonomy, data


def _read_embedding(taxonomy: Taxonomy, X: Any, embedding: Any) -> Array | None:
    """Return the vectors that a tree was found in, or raise InputError if they are missing."""
    fitted = (taxonomy.made_by or {}).get("embedding")
    if (embedding is None) == bool(fitted):
        given = f"with one: pass it again, {fitted!r}" if fitted else "without one: pass None"
        raise InputError(f"does not fit: the model was fitted {given}", "embedding")
    if embedding is None:
        return None
    source = open_source(X, embedding=embedding)
    return source.sample(source.n_rows, 0).embedding


def _drawn_from(taxonomy: Taxonomy) -> IndexArray:
    """Return the rows that halves are drawn from: those in the tree of positive weight."""
    rows = np.sort(taxonomy.tree.rows(taxonomy.tree.root))
    return rows if taxonomy.tree.weights is None else rows[taxonomy.tree.weights[rows] > 0.0]


def _unfitted(model: Any, taxonomy: Taxonomy, size: int, n: int) -> Any:
    """Return an unfitted copy for some of n rows: bounds on leaf sizes shrink in proportion."""
    given = model.get_params()
    changed: dict[str, Any] = {"n_jobs": 1, "verbose": 0, "noise": 0.0}
    if taxonomy.encoding is not None:  # all are fitted to the same features
        changed["encoder"] = taxonomy.encoding
    n_clusters = given.get("n_clusters")
    if n_clusters is not None:
        n_most = max(size // 2, 1)
        changed["n_clusters"] = min(
            taxonomy.tree.n_leaves if n_clusters == "auto" else n_clusters, n_most
        )
    for name in ("min_leaf_size", "max_leaf_size"):
        if given.get(name) is not None:
            changed[name] = max(round(size / n * given[name]), 1)
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


def _fit_all(
    tasks: list[tuple[Any, Any, Array | None, IndexArray, Array | None, int]],
    n_threads: int,
    observe: Observer,
) -> list[Any]:
    """Return models fitted to rows of some data, with their vectors, weights and seed."""

    def fit(task: tuple[Any, Any, Array | None, IndexArray, Array | None, int]) -> Any:
        model, data, points, rows, weights, seed = task
        fresh = clone(model)
        if "random_state" in fresh.get_params():
            fresh.set_params(random_state=seed)
        given = {"sample_weight": weights, "embedding": points}
        own = {name: values[rows] for name, values in given.items() if values is not None}
        return fresh.fit(data[rows], **own)

    done: list[Any] = []
    with warnings.catch_warnings(), ThreadPoolExecutor(n_threads) as pool:
        warnings.simplefilter("ignore")
        try:
            for model in pool.map(fit, tasks) if n_threads > 1 else map(fit, tasks):
                done.append(model)
                observe(GrowthEvent(len(done), len(tasks), len(done)))
        except BaseException:  # Ctrl-C: refits that wait are not begun
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return done


def _count_common(
    taxonomy: Taxonomy, other: Taxonomy, labels: IndexArray, rows: IndexArray
) -> Array:
    """Return the weight of those of some rows that are in each node of two trees.

    ``labels`` are the leaves of all rows in the other tree.
    """
    counts = np.zeros((taxonomy.tree.n_leaves, other.tree.n_leaves))
    weights = 1.0 if taxonomy.tree.weights is None else taxonomy.tree.weights[rows]
    np.add.at(counts, (taxonomy.tree.labels[rows], labels[rows]), weights)
    return np.asarray(_below(taxonomy).T.astype(np.float64) @ counts @ _below(other))


def _count_sent(taxonomy: Taxonomy, other: Taxonomy, likeness: Array, both: Array) -> Array:
    """Return the weight of the rows of each node that are in the matching node, too.

    Only the root matches the root, which has all rows. Leaves are matched one to one, so that
    their Jaccard indices add up to the most.
    """
    from scipy.optimize import linear_sum_assignment  # late: it takes long to load

    sent = np.zeros(taxonomy.tree.n_nodes)
    if other.tree.n_nodes > 1:
        match = 1 + likeness[:, 1:].argmax(axis=1)
        sent = both[np.arange(taxonomy.tree.n_nodes), match]
    pairs = likeness[np.ix_(taxonomy.tree.leaves, other.tree.leaves)]
    mine, theirs = linear_sum_assignment(pairs, maximize=True)
    sent[taxonomy.tree.leaves] = 0.0
    sent[taxonomy.tree.leaves[mine]] = both[
        taxonomy.tree.leaves[mine], other.tree.leaves[theirs]
    ]
    return sent


def _below(taxonomy: Taxonomy) -> NDArray[np.bool_]:
    """Return which leaves, in their order, are below which nodes."""
    first = taxonomy.tree.start[taxonomy.tree.leaves][:, None]
    return (taxonomy.tree.start <= first) & (first < taxonomy.tree.stop)


def _nodes_apart(
    taxonomy: Taxonomy,
    labels: IndexArray,
    Z: Array,
    is_own: NDArray[np.bool_],
    nodes: IndexArray,
) -> NDArray[np.bool_]:
    """Return which of these nodes are apart from their siblings; False for all others."""
    found = np.zeros(taxonomy.tree.n_nodes, dtype=bool)
    found[0] = True
    is_below = _below(taxonomy)
    for parent in np.unique(taxonomy.tree.parents[nodes[nodes > 0]]).tolist():
        children = list(taxonomy.tree.children(parent))
        rows = np.flatnonzero(is_below[labels, parent])
        child = is_below[labels[rows]][:, children].argmax(axis=1)
        wanted = np.isin(children, nodes)
        found[children] = find_apart(Z[rows], child, is_own[rows], wanted)
    return found


def _top_feature(taxonomy: Taxonomy, node: int) -> int:
    """Return the feature with the largest share in a node's rule, -1 where there is none."""
    for child in taxonomy.tree.children(node):
        for reason in taxonomy.reasons(child, 1):
            return reason.feature
    return -1
