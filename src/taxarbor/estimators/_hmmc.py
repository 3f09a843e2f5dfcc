"""Hierarchical maximum-margin clustering."""

from collections.abc import Callable
from typing import Any, Literal

from taxarbor.estimators._base import HierarchyEstimator
from taxarbor.estimators._parameters import check_growth, check_margins, check_sparsity
from taxarbor.grow import StoppingRule
from taxarbor.hierarchy import Hierarchy
from taxarbor.refine import grow_refined
from taxarbor.rows import Rows
from taxarbor.split import KINDS, Center, Kind, LiftedSplitter, SolverName, Splitter
from taxarbor.tables._checks import check_balance, check_count, check_strength

GREEDY_STRENGTH = 0.003
"""Alpha, and beta, of a greedy tree where none is given."""


class HMMC(HierarchyEstimator):
    r"""Hierarchical maximum-margin clustering.

    Grows a tree from the root down, each split by the widest margin it can find; then lets the
    leaves compete for the rows; then seeks, for each split, a rule that tells its children
    apart by few features, and rather ones that the splits above it do not use. Fitted and read
    like :class:`sklearn.cluster.BisectingKMeans`.

    Parameters
    ----------
    n_clusters : int or None, default=8
        Number of leaves. None lets ``max_leaf_size`` or ``max_depth`` alone end the growth.
    branching : int, default=2
        Children per split. With more than two, leaves come in steps of ``branching - 1``,
        and their number never exceeds ``n_clusters``.
    refine : bool, default=True
        Whether the tree is refined as a whole when it is grown: rows move to the leaf they
        fit best, and rules are sought for the splits as they are then. False is the paper's
        greedy algorithm: penalties act while rows are divided, and a split is final.
    max_features : int or None, default=None
        The most features that the rule of a split uses. None leaves it to the split: as few
        as tell most of its rows apart. Takes ``refine``, no ``alpha``, and a penalty on all
        features, not "exclusive" or "l2".
    penalty : {"group+exclusive", "group", "exclusive", "l1", "l2"}, default="group+exclusive"
        The paper's HMMC, and its variants -G, -E, -1 and -2. "exclusive" has nothing to
        compete with at the root, where a small ridge takes its place.
    alpha : float or None, default=None
        How strongly the number of features in a split is held down. None is as strongly as
        the split allows: it is lowered from the critical strength, at which all weights are
        zero, until a rule reproduces the split. Without ``refine``, None is 0.003.
    beta : float or None, default=None
        How strongly a split avoids the features of its ancestors. None is the same as alpha;
        where alpha is None, beta is in units of it.
    units : {"relative", "raw"}, default="relative"
        Relative strengths are shares of the critical one at which all weights of a split
        are zero; they do not depend on the scale of ``X``. Raw ones are the paper's, which
        do. ``HMMC(refine=False, n_init=1, units="raw", alpha=1e-2, beta=1e-2,
        balance=(0.9, 1.1), center="data")`` is its setting.
    balance : float, pair of float or None, default=0.5
        Least and greatest size of a child, as multiples of an equal share of the node's
        rows, when a node is split. A single number ``b`` means ``(b, 2 - b)``; None leaves
        sizes free, only no child is empty. The paper has ``(0.9, 1.1)``.
    center : {"node", "data"}, default="node"
        Without ``refine``, the point that the boundary between two children passes through:
        the mean of the node's own rows, or that of all rows, which is the paper's. With it,
        boundaries lie where the gap is.
    max_leaf_size : int or None, default=None
        Leaves of at most this many rows are not split. Refinement may then move rows between
        leaves.
    max_depth : int or None, default=None
        Leaves at this depth are not split.
    n_init : int, default=4
        Starts per split, on a sample of the node's rows, of which the best is kept: along the
        principal direction, from rows far apart, and, with ``refine``, from Ward's clusters
        of a few hundred rows. There are then more for splits near the root, on which most
        depends, unless it is one.
    solver : {"auto", "newton", "pqn"}, default="auto"
        Without ``refine``: proximal Newton, the paper's proximal quasi-Newton, or whichever
        fits the number of features.
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
    With ``refine``, groups are found in up to 63 principal coordinates, where a split
    minimises the paper's squared hinge loss with a light ridge and an intercept. The leaves
    then compete for the rows by linear scores (``hierarchy_.placement``), which decide where
    new rows go, too. The rule of a split describes it: ``hierarchy_.fidelity`` is the share of
    its rows that the rule sends the right way. Scores, objectives and infos of the nodes are
    those of growth, before rows moved.

    Without, a split minimises the paper's Eq. 5 over weights and labels; rows are seen from
    the mean that ``center`` names. Where ``balance`` binds, some training rows carry the label
    of the side to which the balance moved them, and ``predict``, which knows no balance, sends
    them to the other.

    Ctrl-C while the tree grows ends it early: what there is so far is refined and kept, with a
    warning. So does a callback (``set_callbacks``, scikit-learn 1.9) that returns True. Ctrl-C
    while it is refined waits until that is done, and a second one ends the fit.

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
        refine: bool = True,
        max_features: int | None = None,
        penalty: Kind = "group+exclusive",
        alpha: float | None = None,
        beta: float | None = None,
        units: Literal["relative", "raw"] = "relative",
        balance: float | tuple[float, float] | None = 0.5,
        center: Center = "node",
        max_leaf_size: int | None = None,
        max_depth: int | None = None,
        n_init: int = 4,
        solver: SolverName = "auto",
        tol: float = 0.02,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.branching = branching
        self.refine = refine
        self.max_features = max_features
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
        check_sparsity(self)
        if not self.refine:
            alpha = GREEDY_STRENGTH if self.alpha is None else self.alpha
            beta = alpha if self.beta is None else self.beta
            splitter = check_margins(self, KINDS, (alpha, beta), branching, self.center)
            return splitter, branching, stop
        lifted = LiftedSplitter(
            check_balance(self.balance, branching),
            check_count("n_init", self.n_init, least=1),
            check_strength("tol", self.tol),
        )
        return lifted, branching, stop

    def _make_tree(
        self, rows: Rows, grow_on: Callable[[Rows], Hierarchy], seed: int, run_all: Any
    ) -> Hierarchy:
        if not self.refine:
            return grow_on(rows)
        return grow_refined(rows, grow_on, check_sparsity(self), seed, run_all)
