"""The paper's method: hierarchical maximum-margin clustering."""

from typing import Any, Literal, Self

from taxarbor.estimators._base import TaxonomyEstimator, check_growth
from taxarbor.split import MaxMarginSplitter, Regularizer
from taxarbor.split._alternate import SolverName
from taxarbor.split._margins import KINDS, Center, Kind
from taxarbor.tables._validation import check_balance, check_choice, check_count, check_strength

UNITS = ("relative", "raw")
SOLVERS = ("auto", "newton", "pqn")
CENTERS = ("node", "data")


class HMMC(TaxonomyEstimator):
    r"""Hierarchical maximum-margin clustering, the method of the paper.

    The tree is grown from the root down. Each split maximises the margin between children of
    about equal size; its hyperplanes use few features, and avoid those that the splits above it
    use. :class:`Taxarbor` grew from this method; on average over the data sets it was developed
    on, its clusters agree better with the true classes.

    Parameters
    ----------
    n_clusters : int or None, default=8
        Number of leaves. None: only ``max_leaf_size`` or ``max_depth`` ends the growth.
    branching : int, default=2
        Number of children per split. With more than two, leaves come in steps of
        ``branching - 1``, and their number never exceeds ``n_clusters``.
    penalty : {"group+exclusive", "group", "exclusive", "l1", "l2"}, default="group+exclusive"
        The paper's HMMC, and its variants -G, -E, -1 and -2. "exclusive" has no ancestors to
        avoid at the root, where a small ridge penalty takes its place.
    alpha : float, default=0.003
        Strength of the penalty on the number of features in a split. Not used by "exclusive".
    beta : float, default=0.003
        Strength of the penalty on features that ancestors use. Used by "exclusive" and
        "group+exclusive".
    units : {"relative", "raw"}, default="relative"
        Relative strengths are fractions of the strength at which all weights of a split are
        zero. Raw ones are the paper's (``alpha=beta=1e-2``), which depend on the scale of
        ``X``.
    balance : float, pair of float or None, default=(0.9, 1.1)
        Minimum and maximum size of a child, as multiples of an equal share of the node's rows.
        A number ``b`` means ``(b, 2 - b)``; None sets no bounds, but no child is empty.
        Duplicate rows stay together, even if a child then has another size, with a warning.
    center : {"data", "node"}, default="data"
        The point that the boundary between two children passes through: the mean of all rows,
        as in the paper, or that of the node's rows.
    max_leaf_size, max_depth : int or None, default=None
        Leaves of at most this many rows, or at this depth, are not split.
    n_init : int, default=1
        Number of initializations per split, on a sample of its rows; the lowest objective is
        kept. In turn: along the principal direction, from rows far apart, along a random
        direction.
    solver : {"auto", "newton", "pqn"}, default="auto"
        Proximal Newton or the paper's proximal quasi-Newton method; "auto" chooses by the
        number of features in use.
    tol : float, default=0.02
        A split has converged when a round lowers its objective by less than this fraction.
    encoder : "auto", TableEncoder or None, default="auto"
        How a table is made into features; see :class:`Taxarbor`.
    random_state : int, RandomState instance or None, default=None
        Seed of the samples and the initializations.
    n_jobs : int or None, default=None
        Number of threads; the result does not depend on it. None means 1 unless in a
        :func:`joblib.parallel_config` context, -1 all processors.
    verbose : int, default=0
        With 1, a progress bar is shown if a fit takes longer than two seconds.

    Attributes
    ----------
    labels_ : array of shape (n_rows,)
        The cluster of each row, numbered from left to right.
    taxonomy_ : Taxonomy
        The fitted tree, with everything that describes it: ``print``, ``cut``, ``save``, ...
    outlier_score_ : array of shape (n_rows,)
        Distance of each row from the mean of the nearest cluster, in units of the average
        distance of that cluster's rows: typically 1. Up to 3, that of its own cluster.
    n_rerouted_ : int
        Number of rows whose label differs from ``predict``: where ``balance`` binds, it moves
        some rows to another child than the rules, which do not know it.
    n_features_in_, feature_names_in_ : int, array of str
        Number of features seen in fit, and their names, where the data had any.

    Notes
    -----
    A split minimises the paper's Eq. 5 over weights and labels, on all rows in memory.

    References
    ----------
    G.-T. Zhou, S. J. Hwang, M. Schmidt, L. Sigal and G. Mori, "Hierarchical Maximum-Margin
    Clustering", ICML 2015.

    Examples
    --------
    >>> from taxarbor import HMMC, load_animals
    >>> model = HMMC(n_clusters=6, random_state=0).fit(load_animals().X)
    >>> model.taxonomy_
    Taxonomy(n_rows=206, n_leaves=6, height=3)
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
        balance: float | tuple[float, float] | None = (0.9, 1.1),
        center: Center = "data",
        max_leaf_size: int | None = None,
        max_depth: int | None = None,
        n_init: int = 1,
        solver: SolverName = "auto",
        tol: float = 0.02,
        encoder: Any = "auto",
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
        self.encoder = encoder
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the taxonomy; see :meth:`Taxarbor.fit`."""
        branching, stop = check_growth(self)
        splitter = self._make_splitter(branching)
        return self._fit_greedily(X, sample_weight, splitter, branching, stop)

    def _make_splitter(self, branching: int) -> MaxMarginSplitter:
        """Check the parameters of a split."""
        check_choice("penalty", self.penalty, KINDS)
        check_choice("units", self.units, UNITS)
        check_choice("center", self.center, CENTERS)
        check_choice("solver", self.solver, SOLVERS)
        alpha, beta = check_strength("alpha", self.alpha), check_strength("beta", self.beta)
        is_relative = self.units == "relative"
        regularizer = Regularizer(self.penalty, alpha, beta, relative=is_relative)
        balance = check_balance(self.balance, branching)
        n_init = check_count("n_init", self.n_init, least=1)
        tol = check_strength("tol", self.tol)
        return MaxMarginSplitter(regularizer, balance, n_init, self.solver, tol, self.center)
