"""The package's own method: clusters by competition, a tree above them, sparse rules."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from taxarbor._errors import GrowthWarning, InputError, TableWarning, warn_caller
from taxarbor._fit_context import Run
from taxarbor._parameters import check_count, check_noise
from taxarbor._types import Array, TableLike
from taxarbor.clusters import (
    GapSplitter,
    count_coordinates,
    find_clusters,
    find_coordinates,
    find_outliers,
    reduce_wide,
)
from taxarbor.estimators._base import (
    Repeats,
    TaxonomyEstimator,
    check_growth,
    make_taxonomy,
    open_rows,
    route_source,
    start_run,
    warn_if_short,
)
from taxarbor.grow import StoppingRule
from taxarbor.rules import Sparsity, find_rules
from taxarbor.sources import Source
from taxarbor.stability import assess
from taxarbor.stability.refits import can_refit, measure_cuts
from taxarbor.tables import TableEncoder
from taxarbor.tables.checks import check_range, check_weights
from taxarbor.tables.columns import FeatureRows
from taxarbor.tables.encoder import Features, find_features
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy.edit_taxonomy import resize, round_thresholds
from taxarbor.taxonomy.new_rows import mark_noise
from taxarbor.taxonomy.noise import OutlierScorer, fit_noise_model
from taxarbor.taxonomy.stability_result import Curve
from taxarbor.taxonomy.statistics import describe_rows
from taxarbor.tree import Tree
from taxarbor.tree.route_rows import place_rows

SAMPLE_ROWS, ROWS_PER_CLUSTER = 100_000, 500
"""Rows of the sample that a tree is found on: this many at least, and for each leaf.
docs/defaults.md has what fewer cost."""

MIN_ROWS_FOR_SIZE, MIN_LEAF_ROWS = 500, 5
MIN_LEAF_SHARE, MAX_SIZE_RATIO = 0.002, 5
"""From so many rows on a leaf has at least so many, and this share of the rows, or an equal
share of them divided by that ratio, if that is less."""

MAX_AUTO_CLUSTERS, MIN_ROWS_PER_AUTO_CLUSTER = 50, 10
"""Largest number of clusters that ``n_clusters="auto"`` considers, and rows that each needs."""


class Taxarbor(TaxonomyEstimator):
    """Hierarchical clustering into a tree whose splits are sparse, readable rules.

    The tree is found on a sample of the rows. It is grown from the root down, each split with a
    wide margin, to more leaves than requested. Rows are then reassigned among the leaves, and
    the closest are linked, first to the requested clusters and then to the tree above. Rules
    on few features are fitted to this tree: one or two columns where these separate two
    children nearly as well as all columns do, elsewhere a linear discriminant that chooses
    among all clusters below a node. Finally every row is routed by the rules, in ``fit`` and in
    ``predict`` alike. The interface is that of :class:`sklearn.cluster.BisectingKMeans`.

    Parameters
    ----------
    n_clusters : int, "auto" or None, default=8
        Number of leaves. None: only ``max_leaf_size`` or ``max_depth`` ends the growth.
        "auto" chooses the largest number of clusters, up to 50, that are all stable in refits,
        and assesses the tree where its rows are in memory: it takes as long as about 54 fits
        to half of the rows (at most 5,000). See :func:`taxarbor.stability.assess`.
    branching : int, default=2
        Maximum number of children of a split. Nodes have fewer where leaves run out.
    max_features : int or None, default=None
        Maximum number of columns in a rule. None: chosen by validation on held-out rows.
    min_leaf_size : int or None, default=None
        Minimum number of rows in a leaf: smaller ones are merged with their nearest. If not
        all rows are sampled, it applies to the sample in proportion. None: 1, but from 500 rows
        on, and with ``n_clusters``, 0.2 % of the rows or, if that is less, a fifth of an equal
        share; at least five.
    max_leaf_size : int or None, default=None
        Leaves of at most this many rows are not split. If not all rows are sampled, it applies
        to the sample in proportion; rows may move between leaves afterwards.
    max_depth : int or None, default=None
        Leaves at this depth are not split.
    noise : float, default=0.0
        Fraction of the rows, by weight, at most 0.5, that are labelled as noise, -1: those
        farthest from every cluster, by a threshold that is found on the sample and that
        ``predict`` uses, too. A cluster of nothing but noise is removed.
    n_init : int, default=6
        Number of initializations. Clusters about random rows are joined with the best so far,
        compete with them for the rows, and the closest are merged. docs/defaults.md has what
        each gains.
    encoder : "auto", TableEncoder or None, default="auto"
        How a table is made into features. "auto": data frames are encoded as by
        :class:`~taxarbor.TableEncoder`, which imputes missing values, one-hot encodes
        categories and prepares columns of different units; in arrays only missing values
        are imputed. None: X must be numeric, without missing values.
    column_weights : mapping from str to float, optional
        What the variance of a column counts, by its name: 1 for a column that counts whole.
        Those of other columns are found, where units differ; see
        :class:`~taxarbor.TableEncoder`.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample and the initializations.
    n_jobs : int or None, default=None
        Number of threads; the result does not depend on it. None means 1 unless in a
        :func:`joblib.parallel_config` context, -1 all processors.
    verbose : int, default=0
        With 1, a progress bar is shown if a fit takes longer than two seconds.

    Attributes
    ----------
    labels_ : array of shape (n_rows,)
        The cluster of each row, numbered from left to right; -1 for noise.
    taxonomy_ : Taxonomy
        The fitted tree, with everything that describes it: ``print``, ``cut``, ``save``, ...
    outlier_score_ : array of shape (n_rows,)
        Distance of each row from the mean of the nearest cluster, in units of the average
        distance of that cluster's rows: typically 1. Up to 3, that of its own cluster.
    n_features_in_, feature_names_in_ : int, array of str
        Number of features seen in fit, and their names, where the data had any.

    Notes
    -----
    The sample has 100,000 rows, or 500 per cluster if that is more, or all rows if there are
    fewer; with weights, rows are drawn in proportion to them. It is the same from memory, from
    disk and on Dask, and so is the tree. Sizes and labels are of all rows, means and shares of
    missing values of the sample. Outliers, isolated rows far from all others, are excluded when
    the tree is found, and routed like all rows. With a ``max_depth`` the tree stays as it was
    grown. Where a rule chooses among all clusters below its node, the splits between have no
    rule of their own (``taxonomy_.tree.decided_by``). The user guide has the details.

    Trees of rows that are not in memory hold counts (``taxonomy_.tree.has_rows`` is False);
    ``taxonomy_.attach`` gives them rows. Ctrl-C ends a fit and leaves the estimator unchanged.

    Examples
    --------
    >>> from taxarbor import Taxarbor, load_animals
    >>> model = Taxarbor(n_clusters=6, random_state=0).fit(load_animals().X)
    >>> model.taxonomy_
    Taxonomy(n_rows=206, n_leaves=6, height=3)
    >>> len(set(model.taxonomy_.cut(3)))
    3
    """

    _weighs_columns = True

    def __init__(
        self,
        n_clusters: int | str | None = 8,
        *,
        branching: int = 2,
        max_features: int | None = None,
        min_leaf_size: int | None = None,
        max_leaf_size: int | None = None,
        max_depth: int | None = None,
        noise: float = 0.0,
        n_init: int = 6,
        encoder: TableEncoder | str | None = "auto",
        column_weights: Mapping[str, float] | None = None,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.branching = branching
        self.max_features = max_features
        self.min_leaf_size = min_leaf_size
        self.max_leaf_size = max_leaf_size
        self.max_depth = max_depth
        self.noise = noise
        self.n_init = n_init
        self.encoder = encoder
        self.column_weights = column_weights
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: TableLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        embedding: TableLike = None,
        feature_names: Sequence[str] | None = None,
        *,
        layer: str | None = None,
        use_raw: bool = False,
    ) -> Self:
        """Find the clusters, the tree above them and its rules, and route all rows.

        Parameters
        ----------
        X : array-like, CSR matrix or data frame of shape (n_rows, n_features)
            float32 stays float32, and CSR is not made dense. Or rows that need not fit into
            memory and are read in blocks: a NumPy memory map, the path of a .npy, .parquet
            or .h5ad file or of a folder of Parquet files, a Dask array or data frame. The
            tree is the same, and holds counts instead of rows; for Dask, ``labels_`` and
            ``outlier_score_`` are lazy arrays. Lazy frames and streams of Arrow are read into
            memory, once.
        y : ignored
            Present for API consistency by convention.
        sample_weight : array-like of shape (n_rows,), optional
            Non-negative sample weights. Integer weights are equivalent to repeating rows where
            all rows are sampled, and in expectation otherwise. Rows of weight 0 are excluded
            from the fit, and routed like new ones. Other weights, and integers that would
            repeat rows more than 20,000 times and four times each on average, are rounded: to
            about a tenth of the average weight or, from 10,000 rows on, to multiples of it.
        embedding : array-like of shape (n_rows, n_dimensions), path or str, optional
            Dense vectors of the rows: clusters are found in them, and rules in X, so
            ``predict`` needs only X. A numeric array, a memory map, the path of a .npy file, or
            the name of a column of X that holds vectors or of an entry of ``obsm`` (AnnData,
            .h5ad). By default clusters are found in the features of X.
        feature_names : sequence of str, optional
            Names of the columns of an array or a sparse matrix, which has none of its own.
        layer, use_raw : str, bool, optional
            Use this layer of AnnData, or its ``raw``, instead of its ``X``; so does
            ``predict``, and both in an .h5ad file.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If the data or a parameter is invalid; the message names it.

        Warns
        -----
        GrowthWarning
            If there are fewer leaves than requested, or if ``n_clusters="auto"`` finds no
            clusters.
        """
        with start_run(self) as run:
            source = open_rows(
                X, embedding, feature_names, layer, use_raw=use_raw, n_threads=run.width
            )
            weights = check_weights(sample_weight, source.n_rows)
            is_auto = self.n_clusters == "auto"
            curve = self._measure_cuts(source, weights, run) if is_auto else None
            settings = self._check_parameters(None if curve is None else curve.suggested)
            n_sample = count_sample_rows(source.n_rows, settings.stop, settings.branching)
            sample = source.sample(n_sample, run.seed, weights)
            features = find_features(self, sample, source.names)
            repeats = Repeats.of(sample, features.empty, settings.stop.n_leaves)
            tree, kept = _find_tree(features, repeats, settings, run)
            taxonomy = make_taxonomy(tree, features.columns, self, sample)
            taxonomy, scorer = _describe(
                taxonomy, features.rows, sample.weights, (repeats, kept), settings.noise
            )
            is_whole = source.in_memory and len(sample.rows) == source.n_rows
            read, seen = features.rows if is_whole else None, features.seen
            del sample, features  # which would take half of the memory below
            weights = kept.weigh_rows(weights, source.n_rows)
            taxonomy, labels, scores = route_source(
                source, taxonomy, scorer, weights, n_threads=run.width, read=read
            )
            fitted = self._copy_fitted(taxonomy, seen, labels_=labels, outlier_score_=scores)
            warn_if_short(taxonomy.tree, settings.stop, 2)
        if curve is not None:
            if source.in_memory and can_refit(taxonomy.tree):
                fitted._assess(source, embedding, curve)
            if curve.suggested == 1:
                warn_caller(curve.verdict(), GrowthWarning)
        self.__dict__ = fitted.__dict__  # in one step, once nothing can fail any more
        return self

    def _check_parameters(self, n_clusters: int | None) -> "_Settings":
        """Return the parameters, checked."""
        branching, stop = check_growth(self, n_clusters or self.n_clusters)
        if (max_features := self.max_features) is not None:
            max_features = check_count("max_features", max_features, least=1)
        if (min_size := self.min_leaf_size) is not None:
            min_size = check_count("min_leaf_size", min_size, least=1)
        if stop.max_leaf_size is not None and (min_size or 1) > stop.max_leaf_size:
            message = f"is {min_size}, more than max_leaf_size={stop.max_leaf_size}"
            raise InputError(f"{message}; lower one or raise the other", "min_leaf_size")
        sparsity = Sparsity(max_features)
        n_init = check_count("n_init", self.n_init, least=1)
        noise = check_noise(self.noise)
        return _Settings(branching, stop, sparsity, min_size, n_init, noise)

    def _measure_cuts(self, source: Source, weights: Array | None, run: Run) -> Curve:
        """Return how stable the cuts of a tree of many leaves are."""
        sample = source.sample(SAMPLE_ROWS, run.seed, weights)
        most = len(sample.rows) // MIN_ROWS_PER_AUTO_CLUSTER
        model = clone(self).set_params(n_clusters=max(min(MAX_AUTO_CLUSTERS, most), 1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GrowthWarning)  # so many were not requested
            warnings.simplefilter("ignore", TableWarning)  # the fit gives the same
            vectors = sample.embedding_column or sample.embedding
            model.fit(sample.table, sample_weight=sample.weights, embedding=vectors)
        if not can_refit(model.taxonomy_.tree):
            return Curve(np.ones(1, dtype=np.intp), np.ones(1), np.full(1, np.nan))
        return measure_cuts(model, sample.table, vectors)

    def _assess(self, X: TableLike, embedding: TableLike, curve: Curve) -> None:
        """Assess the tree, and keep the curve that its number of leaves was chosen by."""
        given = {name: getattr(self, name) for name in ("n_jobs", "random_state", "verbose")}
        taxonomy = assess(self, X, embedding=embedding, **given)
        assert taxonomy.stability is not None
        self.taxonomy_ = replace(taxonomy, stability=replace(taxonomy.stability, curve=curve))


class _Settings(NamedTuple):
    """The parameters of a fit."""

    branching: int
    stop: StoppingRule
    sparsity: Sparsity
    min_size: int | None
    n_init: int
    noise: float


def count_sample_rows(n_rows: int, stop: StoppingRule, branching: int) -> int:
    """Return how many rows to find a tree on: ROWS_PER_CLUSTER each, at least SAMPLE_ROWS."""
    n_leaves = [float(n_rows)]
    if stop.n_leaves is not None:
        n_leaves.append(stop.n_leaves)
    if stop.max_leaf_size is not None:
        n_leaves.append(n_rows / stop.max_leaf_size)
    if stop.max_depth is not None:
        n_leaves.append(float(branching) ** min(stop.max_depth, 60))
    return max(SAMPLE_ROWS, int(min(ROWS_PER_CLUSTER * min(n_leaves), float(n_rows))))


def _choose_min_size(n_rows: int, stop: StoppingRule) -> int:
    """Return the fewest rows of a leaf, of the sample, where none are given."""
    if n_rows < MIN_ROWS_FOR_SIZE or stop.n_leaves is None:
        return 1
    share = min(MIN_LEAF_SHARE * n_rows, n_rows / (MAX_SIZE_RATIO * stop.n_leaves))
    return min(max(MIN_LEAF_ROWS, int(share)), stop.max_leaf_size or n_rows)


def _find_tree(
    features: Features, repeats: Repeats, settings: _Settings, run: Run
) -> tuple[Tree, Repeats]:
    """Return a tree with rules, and the repeats it was found on, without outliers."""
    stop, least = repeats.scale_stop(settings.stop), settings.min_size or 1
    if settings.min_size is None:
        least = _choose_min_size(len(repeats.index), stop)
    elif least > 1:  # 1 is no bound, however little a row weighs
        least = repeats.scale_size(least)
    splitter = GapSplitter(min_size=least)
    vectors = features.embedding
    if vectors is not None:
        check_range(vectors, "embedding")
    points = reduce_wide(repeats.repeat(features.data if vectors is None else vectors))
    outliers = find_outliers(points, run.seed, repeats.copies_per_row)
    if outliers is not None:
        repeats, points = repeats.exclude(outliers), points[~outliers]
    size = count_coordinates(stop.n_leaves)
    coordinates = find_coordinates(points, run.seed, run.width, size)
    branching = settings.branching
    clusters = find_clusters(
        coordinates, splitter, branching=branching, stop=stop, run=run, n_init=settings.n_init
    )
    sparsity = replace(settings.sparsity, owner=features.owner, is_scaled=vectors is not None)
    X = repeats.repeat(features.data)
    tree = find_rules(clusters, X, sparsity, run, branching=branching, min_leaf_size=least)
    return tree, repeats


def _describe(
    taxonomy: Taxonomy,
    rows: FeatureRows,
    weights: Array | None,
    repeats: tuple[Repeats, Repeats],
    noise: float,
) -> tuple[Taxonomy, OutlierScorer]:
    """Return the taxonomy with rounded thresholds, statistics of the sample and noise.

    ``repeats`` are those of the sample, with and without outliers.
    """
    columns, (sampled, kept) = taxonomy.columns, repeats
    logs = columns.take_logs(rows.data)
    labels = place_rows(taxonomy.tree, logs).astype(np.intp)
    taxonomy = round_thresholds(taxonomy, rows.data, labels)  # which changes no label
    while True:
        scorer = fit_noise_model(
            logs,
            labels,
            taxonomy.tree.n_leaves,
            counts=kept.counts,
            counts_for_noise=sampled.counts,
            scale=columns.scale,
            noise=noise,
        )
        marked = labels
        if np.isfinite(scorer.model.limit):
            taxonomy = replace(taxonomy, noise_model=scorer.model)
            marked = mark_noise(taxonomy, rows, labels)
        sizes = np.bincount(marked[marked >= 0], minlength=taxonomy.tree.n_leaves)
        if sizes.all():
            statistics = describe_rows(taxonomy.tree, columns, rows, marked, weights)
            return replace(taxonomy, statistics=statistics), scorer
        taxonomy = resize(taxonomy, sizes)  # without leaves that are nothing but noise
        labels = place_rows(taxonomy.tree, logs).astype(np.intp)
