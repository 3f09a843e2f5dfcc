"""Hierarchical maximum-margin clustering."""

from typing import Any, Literal

from taxarbor.data import check_strength
from taxarbor.estimators._base import HierarchyEstimator
from taxarbor.estimators._parameters import check_growth, check_margins
from taxarbor.grow import StoppingRule
from taxarbor.split import KINDS, Center, Kind, SolverName, Splitter


class HMMC(HierarchyEstimator):
    r"""Hierarchical maximum-margin clustering.

    Grows a tree from the root down. Each split separates the rows of a node by the widest
    margin it can find, using few features, and rather ones that the splits above it do not
    use. Fitted and read like :class:`sklearn.cluster.BisectingKMeans`.

    Parameters
    ----------
    n_clusters : int or None, default=8
        Number of leaves. None lets ``max_leaf_size`` or ``max_depth`` alone end the growth.
    branching : int, default=2
        Children per split. With more than two, leaves come in steps of ``branching - 1``,
        and their number never exceeds ``n_clusters``.
    penalty : {"group+exclusive", "group", "exclusive", "l1", "l2"}, default="group+exclusive"
        The paper's HMMC, and its variants -G, -E, -1 and -2. "exclusive" has nothing to
        compete with at the root, where a small ridge takes its place.
    alpha : float, default=0.003
        How strongly the number of features in a split is held down.
    beta : float, default=0.003
        How strongly a split avoids the features of its ancestors.
    units : {"relative", "raw"}, default="relative"
        Relative strengths are shares of the critical one at which all weights of a split
        are zero; they do not depend on the scale of ``X``. Raw ones are the paper's, which
        do. ``HMMC(units="raw", alpha=1e-2, beta=1e-2, balance=(0.9, 1.1), center="data")``
        is its setting.
    balance : float, pair of float or None, default=0.3
        Least and greatest size of a child, as multiples of an equal share of the node's
        rows. A single number ``b`` means ``(b, 2 - b)``; None leaves sizes free, only no
        child is empty. The paper has ``(0.9, 1.1)``.
    center : {"node", "data"}, default="node"
        The point that the boundary between two children passes through: the mean of the
        node's own rows, or that of all rows, which is the paper's.
    max_leaf_size : int or None, default=None
        Leaves of at most this many rows are not split.
    max_depth : int or None, default=None
        Leaves at this depth are not split.
    n_init : int, default=1
        Starts per split, on a sample of the node's rows; the one with the lowest objective
        is kept.
    solver : {"auto", "newton", "pqn"}, default="auto"
        Proximal Newton, the paper's proximal quasi-Newton, or whichever fits the number of
        features.
    tol : float, default=0.02
        A split is settled when a round of labels and weights lowers its objective by less
        than this share.
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
        The leaf of each row, numbered from left to right.
    hierarchy_ : Hierarchy
        The tree: its nodes, their rows, rules and features; cuts, exports and files.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : array of str
        Their names, where the data had any.

    Notes
    -----
    A split minimises the paper's Eq. 5 over weights and labels; rows are seen from the mean
    that ``center`` names. Where ``balance`` binds, some training rows carry the label of the
    side to which the balance moved them, and ``predict``, which knows no balance, sends them
    to the other.

    Ctrl-C ends a fit early: the tree grown so far is kept, with a warning. So does a
    callback (``set_callbacks``, scikit-learn 1.9) that returns True.

    References
    ----------
    G.-T. Zhou, S. J. Hwang, M. Schmidt, L. Sigal and G. Mori, "Hierarchical Maximum-Margin
    Clustering", ICML 2015.

    Examples
    --------
    >>> from taxarbor import HMMC, load_animals
    >>> animals = load_animals()
    >>> model = HMMC(n_clusters=6, random_state=0).fit(animals.X)
    >>> model.hierarchy_
    Hierarchy(n_rows=206, n_leaves=6, height=3)
    >>> len(set(model.hierarchy_.cut(3)))
    3
    """

    def __init__(
        self,
        n_clusters: int | None = 8,
        *,
        branching: int = 2,
        penalty: Kind = "group+exclusive",
        alpha: float = 0.003,
        beta: float = 0.003,
        units: Literal["relative", "raw"] = "relative",
        balance: float | tuple[float, float] | None = 0.3,
        center: Center = "node",
        max_leaf_size: int | None = None,
        max_depth: int | None = None,
        n_init: int = 1,
        solver: SolverName = "auto",
        tol: float = 0.02,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.branching = branching
        self.penalty = penalty
        self.alpha = alpha
        self.beta = beta
        self.units = units
        self.balance = balance
        self.center = center
        self.max_leaf_size = max_leaf_size
        self.max_depth = max_depth
        self.n_init = n_init
        self.solver = solver
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_parameters(self) -> tuple[Splitter, int, StoppingRule]:
        branching, stop = check_growth(self)
        beta = check_strength("beta", self.beta)
        splitter = check_margins(self, KINDS, beta, branching, self.center)
        return splitter, branching, stop
