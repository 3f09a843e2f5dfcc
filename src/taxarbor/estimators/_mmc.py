"""Flat maximum-margin clustering: one split into all clusters."""

from typing import Any, Literal

from taxarbor.estimators._base import HierarchyEstimator
from taxarbor.estimators._parameters import check_margins
from taxarbor.grow import StoppingRule
from taxarbor.split import Kind, SolverName, Splitter
from taxarbor.tables._checks import check_count

FlatPenalty = Literal["group", "l1", "l2"]
PENALTIES: tuple[Kind, ...] = ("group", "l1", "l2")


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
        Least and greatest size of a cluster, as multiples of an equal share.
    n_init : int, default=1
        Starts; the one with the lowest objective is kept.
    solver : {"auto", "newton", "pqn"}, default="auto"
        How the weights are found.
    tol : float, default=0.02
        Settled when a round lowers the objective by less than this share.
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
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : array of str
        Their names, where the data had any.

    Examples
    --------
    >>> from taxarbor import MMC, load_animals
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
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.penalty = penalty
        self.alpha = alpha
        self.units = units
        self.balance = balance
        self.n_init = n_init
        self.solver = solver
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> tuple[Splitter, int, StoppingRule]:
        n_clusters = check_count("n_clusters", self.n_clusters, least=1)
        branching = max(n_clusters, 2)
        splitter = check_margins(self, PENALTIES, (self.alpha, 0.0), branching)
        return splitter, branching, StoppingRule(n_clusters)
