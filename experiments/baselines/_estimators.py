"""The paper's baselines: flat maximum margins, hierarchical k-means and spectral clustering."""

from typing import Any, Literal, Self

from experiments.baselines._splitters import (
    CRITERIA,
    Criterion,
    KMeansSplitter,
    SpectralSplitter,
)
from taxarbor import HMMC
from taxarbor.estimators._base import HierarchyEstimator, check_growth
from taxarbor.grow import StoppingRule
from taxarbor.split._alternate import SolverName
from taxarbor.tables._checks import check_choice, check_count

FlatPenalty = Literal["group", "l1", "l2"]
FLAT: tuple[FlatPenalty, ...] = ("group", "l1", "l2")


class MMC(HierarchyEstimator):
    """Maximum-margin clustering, flat: a root with one child per cluster.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    penalty : {"group", "l1", "l2"}, default="group"
        As in :class:`HMMC`; without ancestors there is nothing to be exclusive of.
    alpha : float, default=0.003
        Strength of the penalty.
    units : {"relative", "raw"}, default="relative"
        Whether ``alpha`` is a share of the critical value or the paper's number.
    balance : float, pair of float or None, default=0.3
        Least and greatest size of a cluster, as multiples of an equal share. Equal rows stay
        together, also where a cluster then has another size: there is a warning.
    n_init : int, default=1
        Starts; the one with the lowest objective is kept.
    solver : {"auto", "newton", "pqn"}, default="auto"
        How the weights are found.
    tol : float, default=0.02
        Settled when a round lowers the objective by less than this share.
    encoder : "auto", TableEncoder or None, default="auto"
        What makes features of a table; see :class:`Taxarbor`.
    random_state : int, RandomState instance or None, default=None
        Seed of the sample and the starts.
    n_jobs : int or None, default=None
        Threads; the result does not depend on their number.
    verbose : int, default=0
        With 1, a fit that takes longer than two seconds shows its progress.

    Attributes
    ----------
    labels_ : array of shape (n_rows,)
        The cluster of each row.
    hierarchy_ : Hierarchy
        A root with the clusters as its leaves.
    outlier_score_ : array of shape (n_rows,)
        How far each row is from the mean of the nearest cluster, in units of how far that
        cluster's rows are from it on average: 1 is usual. Up to 3, by its own cluster.
    n_features_in_, feature_names_in_ : int, array of str
        Number of features seen in fit, and their names, where the data had any.

    Examples
    --------
    >>> from experiments.baselines import MMC
    >>> from taxarbor import load_animals
    >>> model = MMC(n_clusters=4, random_state=0).fit(load_animals().X)
    >>> model.hierarchy_
    Hierarchy(n_rows=206, n_leaves=4, height=1)
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        penalty: FlatPenalty = "group",
        alpha: float = 0.003,
        units: Literal["relative", "raw"] = "relative",
        balance: float | tuple[float, float] | None = 0.3,
        n_init: int = 1,
        solver: SolverName = "auto",
        tol: float = 0.02,
        encoder: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.balance = balance
        self.penalty = penalty
        self.alpha = alpha
        self.units = units
        self.n_init = n_init
        self.solver = solver
        self.tol = tol
        self.encoder = encoder
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Divide the rows once."""
        n_clusters = check_count("n_clusters", self.n_clusters, least=1)
        check_choice("penalty", self.penalty, FLAT)
        branching, stop = max(n_clusters, 2), StoppingRule(n_clusters)
        one_split = HMMC(
            penalty=self.penalty, alpha=self.alpha, beta=0.0, units=self.units,
            balance=self.balance, center="node", n_init=self.n_init, solver=self.solver,
            tol=self.tol,
        )  # fmt: skip
        splitter = one_split._make_splitter(branching)
        return self._fit_greedily(X, sample_weight, splitter, branching, stop)


class HierarchicalKMeans(HierarchyEstimator):
    """Top-down clustering by k-means: HKM-D, or HKM, of the paper's comparison.

    Parameters
    ----------
    n_clusters : int or None, default=8
        Number of leaves. None lets ``max_leaf_size`` or ``max_depth`` alone end the growth.
    branching : int, default=2
        Children per split.
    criterion : {"scatter", "compact"}, default="scatter"
        Which leaf is split next: of the largest total distance from its centre (HKM-D), or of
        the least average distance from its children's (HKM), which favours small leaves.
    max_leaf_size, max_depth : int or None, default=None
        Leaves of at most this many rows, or at this depth, are not split.
    n_init : int, default=1
        Runs of k-means per split; the best one is kept.
    encoder : "auto", TableEncoder or None, default="auto"
        What makes features of a table; see :class:`Taxarbor`.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    n_jobs : int or None, default=None
        Threads; the tree does not depend on their number.
    verbose : int, default=0
        With 1, a fit that takes longer than two seconds shows its progress.

    Attributes
    ----------
    labels_ : array of shape (n_rows,)
        The cluster of each row, numbered from left to right.
    hierarchy_ : Hierarchy
        The tree.
    outlier_score_ : array of shape (n_rows,)
        How far each row is from the mean of the nearest cluster, in units of how far that
        cluster's rows are from it on average: 1 is usual. Up to 3, by its own cluster.
    n_features_in_, feature_names_in_ : int, array of str
        Number of features seen in fit, and their names, where the data had any.

    Examples
    --------
    >>> from experiments.baselines import HierarchicalKMeans
    >>> from taxarbor import load_animals
    >>> HierarchicalKMeans(6, random_state=0).fit(load_animals().X).hierarchy_.n_leaves
    6
    """

    def __init__(
        self,
        n_clusters: int | None = 8,
        *,
        branching: int = 2,
        criterion: Criterion = "scatter",
        max_leaf_size: int | None = None,
        max_depth: int | None = None,
        n_init: int = 1,
        encoder: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.branching = branching
        self.criterion = criterion
        self.max_leaf_size = max_leaf_size
        self.max_depth = max_depth
        self.n_init = n_init
        self.encoder = encoder
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the tree; see :meth:`Taxarbor.fit`."""
        branching, stop = check_growth(self)
        check_choice("criterion", self.criterion, CRITERIA)
        splitter = KMeansSplitter(self.criterion, check_count("n_init", self.n_init, least=1))
        return self._fit_greedily(X, sample_weight, splitter, branching, stop)


class HierarchicalSpectral(HierarchyEstimator):
    """Top-down spectral clustering: HSC-D, or HSC, of the paper's comparison.

    Each node's rows are joined with their nearest neighbours by Gaussian similarities, as
    wide as neighbours are apart on average, and the sparse graph is cut by its leading
    eigenvectors. With ``branching=n_clusters`` it is flat spectral clustering.

    The graph is of the training rows alone. ``predict`` sends a new row to the child whose
    mean is nearest, which need not agree with ``labels_`` on training rows.

    Parameters
    ----------
    n_clusters : int or None, default=8
        Number of leaves. None lets ``max_leaf_size`` or ``max_depth`` alone end the growth.
    branching : int, default=2
        Children per split.
    criterion : {"scatter", "compact"}, default="scatter"
        Which leaf is split next: of the largest total distance from its centre (HSC-D), or of
        the least average distance from its children's (HSC), which favours small leaves.
    n_neighbors : int, default=5
        Neighbours per row in the graph.
    max_leaf_size, max_depth : int or None, default=None
        Leaves of at most this many rows, or at this depth, are not split.
    n_init : int, default=10
        Runs of k-means on the eigenvectors; the best one is kept.
    encoder : "auto", TableEncoder or None, default="auto"
        What makes features of a table; see :class:`Taxarbor`.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    n_jobs : int or None, default=None
        Threads; the tree does not depend on their number.
    verbose : int, default=0
        With 1, a fit that takes longer than two seconds shows its progress.

    Attributes
    ----------
    labels_ : array of shape (n_rows,)
        The cluster of each row, numbered from left to right.
    hierarchy_ : Hierarchy
        The tree.
    outlier_score_ : array of shape (n_rows,)
        How far each row is from the mean of the nearest cluster, in units of how far that
        cluster's rows are from it on average: 1 is usual. Up to 3, by its own cluster.
    n_features_in_, feature_names_in_ : int, array of str
        Number of features seen in fit, and their names, where the data had any.

    Examples
    --------
    >>> from experiments.baselines import HierarchicalSpectral
    >>> from taxarbor import load_animals
    >>> HierarchicalSpectral(6, random_state=0).fit(load_animals().X).hierarchy_.n_leaves
    6
    """

    def __init__(
        self,
        n_clusters: int | None = 8,
        *,
        branching: int = 2,
        criterion: Criterion = "scatter",
        n_neighbors: int = 5,
        max_leaf_size: int | None = None,
        max_depth: int | None = None,
        n_init: int = 10,
        encoder: Any = "auto",
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.branching = branching
        self.criterion = criterion
        self.n_neighbors = n_neighbors
        self.max_leaf_size = max_leaf_size
        self.max_depth = max_depth
        self.n_init = n_init
        self.encoder = encoder
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the tree; see :meth:`Taxarbor.fit`."""
        branching, stop = check_growth(self)
        check_choice("criterion", self.criterion, CRITERIA)
        n_neighbors = check_count("n_neighbors", self.n_neighbors, least=1)
        n_init = check_count("n_init", self.n_init, least=1)
        splitter = SpectralSplitter(self.criterion, n_neighbors, n_init)
        return self._fit_greedily(X, sample_weight, splitter, branching, stop)
