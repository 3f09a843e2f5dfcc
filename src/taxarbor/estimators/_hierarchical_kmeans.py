"""Hierarchical k-means."""

from typing import Any

from taxarbor.estimators._base import HierarchyEstimator
from taxarbor.estimators._parameters import check_growth
from taxarbor.grow import StoppingRule
from taxarbor.split import CRITERIA, Criterion, KMeansSplitter, Splitter
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
        Which leaf is split next: the one whose rows have the largest total distance from
        their centre (HKM-D), or the one whose children would have the smallest average
        distance from theirs (HKM), which favours leaves that are small already.
    max_leaf_size : int or None, default=None
        Leaves of at most this many rows are not split.
    max_depth : int or None, default=None
        Leaves at this depth are not split.
    n_init : int, default=1
        Runs of k-means per split; the best one is kept.
    random_state : int, RandomState instance or None, default=None
        Seed of the starts.
    n_jobs : int or None, default=None
        Threads; the tree does not depend on their number.
    verbose : int, default=0
        With 1, a fit that takes longer than two seconds shows its progress.

    Attributes
    ----------
    labels_ : array of shape (n_rows,)
        The leaf of each row, numbered from left to right.
    hierarchy_ : Hierarchy
        The tree.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : array of str
        Their names, where the data had any.

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
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> tuple[Splitter, int, StoppingRule]:
        branching, stop = check_growth(self)
        check_choice("criterion", self.criterion, CRITERIA)
        n_init = check_count("n_init", self.n_init, least=1)
        return KMeansSplitter(self.criterion, n_init), branching, stop
