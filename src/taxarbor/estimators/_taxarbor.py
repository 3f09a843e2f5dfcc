"""Our method, the one that people get by default."""

import warnings
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from taxarbor._errors import GrowthWarning, InputError, TableWarning, warn_caller
from taxarbor._frames import is_plain
from taxarbor._run import Run
from taxarbor.clusters import (
    count_coordinates,
    find_clusters,
    find_coordinates,
    find_outliers,
    reduce_wide,
)
from taxarbor.estimators._base import TaxonomyEstimator, check_growth, warn_if_short
from taxarbor.estimators._fit import Training, route_all, start_run
from taxarbor.grow import StoppingRule
from taxarbor.rules import Sparsity, find_rules
from taxarbor.sources import Source, open_source
from taxarbor.split._gap import GapSplitter
from taxarbor.stability import assess
from taxarbor.stability._assess import most_clusters, suggest
from taxarbor.tables._checks import (
    check_balance,
    check_count,
    check_noise,
    check_strength,
    check_weights,
)
from taxarbor.taxonomy import Taxonomy
from taxarbor.taxonomy._edit import resize
from taxarbor.taxonomy._noise import NoiseModel
from taxarbor.taxonomy._routing import route
from taxarbor.taxonomy._stability import Curve
from taxarbor.tree import Tree

SAMPLE_ROWS, ROWS_PER_CLUSTER = 100_000, 500
"""Rows of the sample that a tree is found on: this many at least, and for each leaf.
docs/defaults.md has what fewer cost."""


class Taxarbor(TaxonomyEstimator):
    """A readable taxonomy of unlabelled rows.

    The tree is found on a sample: grown from the root down, each split by the widest margin
    that can be found, to more leaves than asked for; then the leaves compete for the rows, and
    the closest are linked, to the clusters and to the tree above them. Rules on few features
    are found for it: one or two columns where these divide two children nearly as well as all
    columns do, elsewhere a linear discriminant that chooses among all clusters below a node.
    Every row then goes where the rules send it, in ``fit`` and ``predict`` alike. Fitted and
    read like :class:`sklearn.cluster.BisectingKMeans`.

    Parameters
    ----------
    n_clusters : int, "auto" or None, default=8
        Number of leaves. None lets ``max_leaf_size`` or ``max_depth`` alone end the growth.
        "auto" looks for as many as are stable, up to 50, on the sample, and assesses the tree
        where its rows are in memory: it takes as long as about 54 fits to half of the rows
        (5,000 at most). See :func:`taxarbor.stability.assess`.
    branching : int, default=2
        The most children of a split. Nodes have fewer where the leaves run out.
    max_features : int or None, default=None
        The most columns that a rule uses. None: as many as rows left out show to be worth it.
    novelty : float, default=1.0
        How strongly a rule avoids the columns of the rules above it, where others do nearly as
        well. 0 lets levels share columns.
    balance : float, pair of float or None, default=0.5
        Least and greatest size of the two children when a node is split in growth, as multiples
        of half of it. A number ``b`` means ``(b, 2 - b)``; None sets no sizes, but no child is
        empty. Clusters, which are linked later, may differ more.
    min_leaf_size : int, default=1
        Least number of rows in a leaf: smaller ones are merged with their nearest. Beyond the
        sample it holds in proportion.
    max_leaf_size : int or None, default=None
        Leaves of at most this many rows are not split. Beyond the sample it holds in
        proportion, and rows may move between leaves afterwards.
    max_depth : int or None, default=None
        Leaves at this depth are not split.
    noise : float, default=0.0
        Share of the rows, by weight, 0.5 at most, that has the label -1: those farthest from
        every cluster, by a threshold that is found on the sample. ``predict`` uses the same
        threshold. A cluster of nothing but noise is removed.
    n_init : int, default=1
        Starts per split, on a sample of its rows, of which the best is kept: along the
        principal direction, from Ward's clusters of a few hundred, and from rows far apart.
    encoder : "auto", TableEncoder or None, default="auto"
        What makes features of a table. "auto": frames are encoded as
        :class:`~taxarbor.TableEncoder` does, which imputes missing values, one-hot encodes
        categories and standardizes columns of different units; of arrays only missing values
        are imputed. None: numbers only.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples and the starts.
    n_jobs : int or None, default=None
        Threads; the tree does not depend on their number. None means 1 unless in a
        :func:`joblib.parallel_config` context, -1 all processors.
    verbose : int, default=0
        With 1, a fit that takes longer than two seconds shows its progress.

    Attributes
    ----------
    labels_ : array of shape (n_rows,)
        The cluster of each row, numbered from left to right; -1 for noise.
    taxonomy_ : Taxonomy
        The tree: its nodes, their rows, rules and features; cuts and files.
    outlier_score_ : array of shape (n_rows,)
        How far each row is from the mean of the nearest cluster, in units of how far that
        cluster's rows are from it on average: 1 is usual. Up to 3, by its own cluster.
    n_features_in_, feature_names_in_ : int, array of str
        Number of features seen in fit, and their names, where the data had any.

    Notes
    -----
    The sample is the rows with the lowest hash of the seed and their number: 100,000, or 500
    per cluster if that is more, and all where there are no more. So the tree is the same from
    memory, from disk and on Dask, whatever the blocks, threads and workers. With weights, rows
    are drawn in proportion to them. Every row is then routed once: sizes and labels are of all
    rows, means and shares of missing values of the sample.

    Clusters are found in up to 63 principal coordinates, and up to 255 for many clusters, where
    a split minimises the squared hinge loss with a light ridge and an intercept. Rows of more
    than 1,000 columns with a tenth of the values not zero at most are first reduced to 100
    dimensions and scaled to length 1.

    About twice as many leaves are grown as asked for. Where there are more clusters than
    coordinates, and more than a third of the rows change leaf when the leaves compete, the
    leaves begin anew from random rows. They are linked by Ward's method, a leaf of n rows
    weighing as much as n to the power 0.75; the score of a node is what the union of its first
    two children adds to the scatter. With a ``max_depth`` the tree stays as it was grown.

    Rules are those of linear discriminant analysis. Their columns are chosen by rows left out:
    each half of a sample makes rules, which are compared on the other half. Where a rule
    chooses among all clusters below its node, the splits between have no rule
    (``taxonomy_.decided_by``): they nest the clusters and describe them.

    Rows that are far from all others, and alone, are outliers: they are excluded from finding
    the tree, and routed like all rows.

    Trees of rows that are not in memory hold counts (``taxonomy_.has_rows`` is False);
    ``taxonomy_.attach`` gives them rows. Ctrl-C ends a fit and leaves the estimator as it was.

    Examples
    --------
    >>> from taxarbor import Taxarbor, load_animals
    >>> model = Taxarbor(n_clusters=6, random_state=0).fit(load_animals().X)
    >>> model.taxonomy_
    Taxonomy(n_rows=206, n_leaves=6, height=3)
    >>> len(set(model.taxonomy_.cut(3)))
    3
    """

    def __init__(
        self,
        n_clusters: int | str | None = 8,
        *,
        branching: int = 2,
        max_features: int | None = None,
        novelty: float = 1.0,
        balance: float | tuple[float, float] | None = 0.5,
        min_leaf_size: int = 1,
        max_leaf_size: int | None = None,
        max_depth: int | None = None,
        noise: float = 0.0,
        n_init: int = 1,
        encoder: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.branching = branching
        self.balance = balance
        self.max_features = max_features
        self.novelty = novelty
        self.min_leaf_size = min_leaf_size
        self.max_leaf_size = max_leaf_size
        self.max_depth = max_depth
        self.noise = noise
        self.n_init = n_init
        self.encoder = encoder
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, embedding: Any = None
    ) -> Self:
        """Find the clusters, the tree above them and its rules, and route all rows.

        Parameters
        ----------
        X : array-like, CSR matrix or data frame of shape (n_rows, n_features)
            float32 stays float32; CSR is not made dense. Or what need not fit into memory, and
            is read in blocks: a memory map of NumPy, a dataset of pyarrow, the path of a .npy,
            .parquet or .h5ad file or of a folder of Parquet files, an array or a frame of Dask.
            Of AnnData the matrix ``X`` is used.
            The tree is the same, and holds counts instead of rows; for Dask, ``labels_`` and
            ``outlier_score_`` are lazy arrays.
        y : ignored
            Present by convention.
        sample_weight : array-like of shape (n_rows,), optional
            Non-negative sample weights. Integer weights are equivalent to repeating rows where
            the sample is all rows, and in expectation beyond; rows of weight 0 are excluded
            from the fit, and routed like new ones. Other weights, and integers that would make
            more than 20,000 copies and four times the rows, are rounded: to about one part in
            ten of the average weight, or, of 10,000 rows and more, to multiples of it.
        embedding : array-like of shape (n_rows, n_dimensions), path or str, optional
            Dense vectors of the rows: clusters are found in them, and rules in X, so
            ``predict`` needs X alone. An array of any type of numbers, a memory map, the path
            of a .npy file, or the name of a column of X that holds vectors or of an entry of
            ``obsm`` (AnnData, .h5ad). By default clusters are found in the features of X.

        Returns
        -------
        self

        Raises
        ------
        ValueError, TypeError
            If the data or a parameter is not as described; the message says which.

        Warns
        -----
        GrowthWarning
            If there are fewer leaves than asked for, with the leaves that could not be split
            and why; or if ``n_clusters="auto"`` finds no clusters.
        """
        with start_run(self) as run:
            source = open_source(X, embedding=embedding)
            weights = check_weights(sample_weight, source.n_rows)
            curve = self._suggest(source, weights, run) if self.n_clusters == "auto" else None
            settings = self._settings(None if curve is None else curve.suggested)
            n_sample = sample_size(source.n_rows, settings.stop, settings.branching)
            sample = source.sample(n_sample, run.seed, weights)
            training = Training.of(self, sample, settings.stop.n_leaves)
            grown, training = _find_tree(training, settings, run)
            described, noise_model, center_of = _describe(grown, training, settings.noise, self)
            taxonomy, labels, scores = route_all(
                source,
                described,
                noise_model,
                center_of,
                weights=training.weights_of_rows(weights),
                n_threads=run.width,
            )
            if source.names is not None and is_plain(sample.table):  # a matrix of AnnData
                taxonomy = taxonomy.rename_features(source.names)
            fitted = copy(self)
            fitted._keep(
                taxonomy, training.features.seen, labels_=labels, outlier_score_=scores
            )
            warn_if_short(taxonomy.tree, settings.stop, 2)
        if curve is not None and source.in_memory:
            fitted._keep_stability(X, curve, embedding)
        if curve is not None and curve.suggested == 1:
            warn_caller(curve.verdict(), GrowthWarning)
        self.__dict__ = dict(vars(fitted))  # in one step, when nothing can go wrong any more
        return self

    def _settings(self, n_clusters: int | None) -> "_Settings":
        """Return the parameters, checked."""
        branching, stop = check_growth(self, n_clusters)
        most = self.max_features
        if most is not None:
            most = check_count("max_features", most, least=1)
        least = check_count("min_leaf_size", self.min_leaf_size, least=1)
        if stop.max_leaf_size is not None and least > stop.max_leaf_size:
            message = f"is {least}, more than max_leaf_size={stop.max_leaf_size}"
            raise InputError(f"{message}; lower one or raise the other", "min_leaf_size")
        return _Settings(
            branching,
            stop,
            Sparsity(check_strength("novelty", self.novelty), most),
            GapSplitter(
                check_balance(self.balance, 2),
                check_count("n_init", self.n_init, least=1),
                least,
            ),
            check_noise(self.noise),
        )

    def _suggest(self, source: Source, weights: Any, run: Run) -> Curve:
        """Return how stable the clusters are that a tree of many leaves can be cut into."""
        sample = source.sample(SAMPLE_ROWS, run.seed, weights)
        n = len(sample.rows)
        if sample.weights is not None:
            n = int(np.count_nonzero(sample.weights))
        many = clone(self).set_params(n_clusters=most_clusters(n))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GrowthWarning)  # so many were not asked for
            warnings.simplefilter("ignore", TableWarning)  # the fit says the same
            vectors = sample.embedding_column or sample.embedding
            many.fit(sample.table, sample_weight=sample.weights, embedding=vectors)
        return suggest(many, sample.table, vectors, **self._run_options())

    def _keep_stability(self, X: Any, curve: Curve, embedding: Any) -> None:
        """Assess the tree, and keep why it has as many leaves as it has."""
        taxonomy = assess(self, X, embedding=embedding, **self._run_options())
        assert taxonomy.stability is not None
        self.taxonomy_ = replace(taxonomy, stability=replace(taxonomy.stability, curve=curve))

    def _run_options(self) -> dict[str, Any]:
        names = ("n_jobs", "random_state", "verbose")
        return {name: getattr(self, name) for name in names}


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Settings:
    """The parameters of a fit."""

    branching: int
    stop: StoppingRule
    sparsity: Sparsity
    splitter: GapSplitter
    noise: float


def sample_size(n_rows: int, stop: StoppingRule, branching: int) -> int:
    """Return how many rows to find a tree on: some for each leaf, and many at least."""
    n_leaves = [float(n_rows)]
    if stop.n_leaves is not None:
        n_leaves.append(stop.n_leaves)
    if stop.max_leaf_size is not None:
        n_leaves.append(n_rows / stop.max_leaf_size)
    if stop.max_depth is not None:
        n_leaves.append(float(branching) ** min(stop.max_depth, 60))
    wanted = min(ROWS_PER_CLUSTER * min(n_leaves), float(n_rows))
    return max(SAMPLE_ROWS, int(wanted))


def _find_tree(training: Training, settings: _Settings, run: Run) -> tuple[Tree, Training]:
    """Return a tree with rules, and the rows that took part: outliers do not."""
    stop, splitter = training.stop(settings.stop), settings.splitter
    if splitter.min_size > 1:  # or there is no bound, however little a row counts for
        splitter = replace(splitter, min_size=training.in_sample(splitter.min_size))
    points = reduce_wide(training.points())
    outliers = find_outliers(points, run.seed, training.copies_per_row)
    training = training.without(outliers)
    points = points if outliers is None else points[~outliers]
    X = training.copies()
    size = count_coordinates(stop.n_leaves)
    coordinates = find_coordinates(points, run.seed, run.width, size)
    clusters = find_clusters(
        coordinates, splitter, branching=settings.branching, stop=stop, run=run
    )
    tree = find_rules(
        clusters,
        X,
        replace(
            settings.sparsity,
            owner=training.features.owner,
            is_free=not training.features.is_readable,
            is_scaled=training.sample.embedding is not None,
        ),
        run,
        branching=settings.branching,
        min_leaf_size=splitter.min_size,
    )
    return tree, training


def _describe(
    tree: Tree, training: Training, noise: float, estimator: Taxarbor
) -> tuple[Taxonomy, NoiseModel, NDArray[np.int32]]:
    """Return the taxonomy in the user's units, with statistics of the sample and noise."""
    taxonomy, expanded = training.finish(tree, estimator, has_round_thresholds=True)
    while True:
        labels = route(taxonomy, expanded)
        described = training.describe(taxonomy, expanded, labels)
        noise_model, center_of = training.find_noise(described, expanded, labels, noise)
        if not np.isfinite(noise_model.limit):
            return described, noise_model, center_of
        described = replace(described, noise_model=noise_model)
        labels = route(described, expanded)
        sizes = np.bincount(labels[labels >= 0], minlength=taxonomy.tree.n_leaves)
        if sizes.all():
            described = training.describe(described, expanded, labels)
            return described, noise_model, center_of
        taxonomy = resize(taxonomy, sizes)  # without leaves that are nothing but noise
