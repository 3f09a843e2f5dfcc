"""The paper's top-down baselines: hierarchical k-means and hierarchical spectral clustering."""

from typing import Any, Self

from taxarbor.estimators._base import HierarchyEstimator, check_growth
from taxarbor.split import KMeansSplitter, SpectralSplitter
from taxarbor.split._baselines import CRITERIA, Criterion
from taxarbor.tables._checks import check_choice, check_count


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
    >>> from taxarbor import HierarchicalKMeans, load_animals
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
    >>> from taxarbor import HierarchicalSpectral, load_animals
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
