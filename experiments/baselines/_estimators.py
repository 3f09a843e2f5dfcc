"""The paper's baselines: flat maximum margins, hierarchical k-means and spectral clustering.

Parameters that are not described here, and the fitted attributes, are those of
:class:`taxarbor.HMMC`.
"""

from typing import Any, Literal, Self

from experiments.baselines._splitters import (
    CRITERIA,
    Criterion,
    KMeansSplitter,
    SpectralSplitter,
)
from taxarbor import HMMC
from taxarbor._parameters import check_choice, check_count
from taxarbor.estimators._base import TaxonomyEstimator, check_growth
from taxarbor.estimators._hmmc import fit_greedily
from taxarbor.grow import StoppingRule
from taxarbor.split._alternate import SolverName

FlatPenalty = Literal["group", "l1", "l2"]
FLAT_PENALTIES: tuple[FlatPenalty, ...] = ("group", "l1", "l2")


class MMC(TaxonomyEstimator):
    """Maximum-margin clustering, flat: a root with one child per cluster.

    Parameters
    ----------
    penalty : {"group", "l1", "l2"}, default="group"
        Without ancestors there is nothing to be exclusive of.

    Examples
    --------
    >>> from experiments.baselines import MMC
    >>> from taxarbor import load_animals
    >>> model = MMC(n_clusters=4, random_state=0).fit(load_animals().X)
    >>> model.taxonomy_
    Taxonomy(n_rows=206, n_leaves=4, height=1)
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
        check_choice("penalty", self.penalty, FLAT_PENALTIES)
        branching, stop = max(n_clusters, 2), StoppingRule(n_clusters)
        one_split = HMMC(
            penalty=self.penalty, alpha=self.alpha, beta=0.0, units=self.units,
            balance=self.balance, center="node", n_init=self.n_init, solver=self.solver,
            tol=self.tol,
        )  # fmt: skip
        splitter = one_split._make_splitter(branching)
        return fit_greedily(self, X, sample_weight, splitter, branching=branching, stop=stop)


class HierarchicalKMeans(TaxonomyEstimator):
    """Top-down clustering by k-means: HKM-D, or HKM, of the paper's comparison.

    Parameters
    ----------
    criterion : {"scatter", "compact"}, default="scatter"
        Which leaf is split next: of the largest total distance from its centre (HKM-D), or of
        the least average distance from its children's (HKM), which favours small leaves.
    n_init : int, default=1
        Runs of k-means per split; the best one is kept.

    Examples
    --------
    >>> from experiments.baselines import HierarchicalKMeans
    >>> from taxarbor import load_animals
    >>> HierarchicalKMeans(6, random_state=0).fit(load_animals().X).taxonomy_.tree.n_leaves
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
        branching, stop = check_growth(self, self.n_clusters)
        check_choice("criterion", self.criterion, CRITERIA)
        splitter = KMeansSplitter(self.criterion, check_count("n_init", self.n_init, least=1))
        return fit_greedily(self, X, sample_weight, splitter, branching=branching, stop=stop)


class HierarchicalSpectral(TaxonomyEstimator):
    """Top-down spectral clustering: HSC-D, or HSC, of the paper's comparison.

    Each node's rows are joined with their nearest neighbours by Gaussian similarities, as
    wide as neighbours are apart on average, and the sparse graph is cut by its leading
    eigenvectors. With ``branching=n_clusters`` it is flat spectral clustering.

    The graph is of the training rows alone. ``predict`` sends a new row to the child whose
    mean is nearest, which need not agree with ``labels_`` on training rows.

    Parameters
    ----------
    criterion : {"scatter", "compact"}, default="scatter"
        As in :class:`HierarchicalKMeans`: HSC-D, or HSC.
    n_neighbors : int, default=5
        Neighbours per row in the graph.
    n_init : int, default=10
        Runs of k-means on the eigenvectors; the best one is kept.

    Examples
    --------
    >>> from experiments.baselines import HierarchicalSpectral
    >>> from taxarbor import load_animals
    >>> HierarchicalSpectral(6, random_state=0).fit(load_animals().X).taxonomy_.tree.n_leaves
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
        branching, stop = check_growth(self, self.n_clusters)
        check_choice("criterion", self.criterion, CRITERIA)
        n_neighbors = check_count("n_neighbors", self.n_neighbors, least=1)
        n_init = check_count("n_init", self.n_init, least=1)
        splitter = SpectralSplitter(self.criterion, n_neighbors, n_init)
        return fit_greedily(self, X, sample_weight, splitter, branching=branching, stop=stop)
