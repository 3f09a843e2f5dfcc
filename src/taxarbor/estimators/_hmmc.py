"""The paper's method: hierarchical maximum-margin clustering."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal, Self, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning

from taxarbor._errors import GrowthWarning, counted, warn_caller
from taxarbor._parameters import check_balance, check_choice, check_count, check_strength
from taxarbor._types import Status, TableLike
from taxarbor.estimators._base import (
    Repeats,
    TaxonomyEstimator,
    check_growth,
    make_taxonomy,
    open_rows,
    start_run,
    warn_if_short,
)
from taxarbor.grow import StoppingRule, grow
from taxarbor.rows import as_rows
from taxarbor.sources import open_source
from taxarbor.split import MaxMarginSplitter, Regularizer, Splitter
from taxarbor.split._alternate import SolverName
from taxarbor.split.max_margin_splitter import Center, Kind
from taxarbor.tables import TableEncoder
from taxarbor.tables.checks import check_weights
from taxarbor.tables.encoder import find_features
from taxarbor.taxonomy.edit_taxonomy import regroup
from taxarbor.taxonomy.new_rows import send
from taxarbor.taxonomy.noise import fit_noise_model
from taxarbor.taxonomy.statistics import describe_rows
from taxarbor.tree import Tree, TreeBuilder

Estimator = TypeVar("Estimator", bound=TaxonomyEstimator)


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
    encoder, random_state, n_jobs, verbose
        As those of :class:`Taxarbor`.

    Attributes
    ----------
    labels_, taxonomy_, outlier_score_, n_features_in_, feature_names_in_
        As those of :class:`Taxarbor`.
    n_rerouted_ : int
        Number of rows whose label differs from ``predict``: where ``balance`` binds, it moves
        some rows to another child than the rules, which do not know it.

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
        encoder: TableEncoder | str | None = "auto",
        random_state: int | np.random.RandomState | None = None,
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

    def fit(
        self,
        X: TableLike,
        y: object = None,
        sample_weight: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        *,
        layer: str | None = None,
        use_raw: bool = False,
    ) -> Self:
        """Fit the taxonomy; see :meth:`Taxarbor.fit`."""
        branching, stop = check_growth(self, self.n_clusters)
        splitter = self._make_splitter(branching)
        source = open_rows(X, None, feature_names, layer, use_raw=use_raw, n_threads=1)
        return fit_greedily(
            self, source, sample_weight, splitter, branching=branching, stop=stop
        )

    def _make_splitter(self, branching: int) -> MaxMarginSplitter:
        """Check the parameters of a split."""
        check_choice("penalty", self.penalty, get_args(Kind))
        check_choice("units", self.units, ("relative", "raw"))
        check_choice("center", self.center, get_args(Center))
        check_choice("solver", self.solver, get_args(SolverName))
        alpha, beta = check_strength("alpha", self.alpha), check_strength("beta", self.beta)
        regularizer = Regularizer(self.penalty, alpha, beta, relative=self.units == "relative")
        balance = check_balance(self.balance, branching)
        n_init = check_count("n_init", self.n_init, least=1)
        tol = check_strength("tol", self.tol)
        return MaxMarginSplitter(regularizer, balance, n_init, self.solver, tol, self.center)


def fit_greedily(
    estimator: Estimator,
    X: TableLike,
    sample_weight: ArrayLike | None,
    splitter: Splitter,
    *,
    branching: int,
    stop: StoppingRule,
) -> Estimator:
    """Grow a tree on all rows, in memory, whose splits are final.

    Labels are those of the splits; excluded rows are routed by the rules.
    """
    with start_run(estimator) as run:
        source = open_source(X)
        weights = check_weights(sample_weight, source.n_rows)
        sample = replace(source.sample(source.n_rows, run.seed), weights=weights)
        features = find_features(estimator, sample, source.names)
        repeats = Repeats.of(sample, features.empty, stop.n_leaves)
        columns, rows = features.columns, features.rows
        if isinstance(splitter, MaxMarginSplitter):
            splitter = splitter.over(features.owner)
        data = as_rows(repeats.repeat(features.data), n_threads=run.width)
        stop_at = repeats.scale_stop(stop)
        grown = grow(data, splitter, branching=branching, stop=stop_at, run=run)
        tree = grown.freeze(with_rows=False)
        taxonomy = make_taxonomy(tree, columns, estimator, sample)
        routed = np.zeros(len(sample.rows), dtype=np.intp)
        if tree.n_leaves > 1 and tree.rules[tree.root] is not None:
            routed = send(taxonomy, rows, n_threads=run.width)
        labels = routed.copy()
        labels[repeats.index] = grown.labels  # all repeats of a row are in one leaf
        statistics = describe_rows(taxonomy.tree, columns, rows, labels, weights)
        scorer = fit_noise_model(
            rows.data, labels, tree.n_leaves, counts=repeats.counts, scale=columns.scale
        )
        scores = scorer.score_rows(rows.data, None, labels, n_threads=run.width)
        taxonomy = replace(taxonomy, statistics=statistics)
        taxonomy = regroup(taxonomy, labels, repeats.weigh_rows(weights, source.n_rows))
        fitted = estimator._copy_fitted(
            taxonomy,
            features.seen,
            labels_=taxonomy.tree.labels.copy(),
            outlier_score_=scores,
            n_rerouted_=int(np.count_nonzero(labels != routed)),
        )
        warn_if_short(taxonomy.tree, stop, branching)
        if isinstance(splitter, MaxMarginSplitter):
            _warn_if_unbalanced(grown, splitter)
        _warn_if_not_converged(taxonomy.tree)
    estimator.__dict__ = fitted.__dict__  # in one step, once nothing can fail any more
    return estimator


def _warn_if_unbalanced(tree: TreeBuilder, splitter: MaxMarginSplitter) -> None:
    """Warn, once, of splits that cannot be balanced because equal rows stay together."""
    splits = [[tree.size(child) for child in tree.children(node)] for node in tree.inner]
    unbalanced = [sizes for sizes in splits if not splitter.allows(sizes)]
    if unbalanced:
        shares = [size * len(sizes) / sum(sizes) for sizes in unbalanced for size in sizes]
        low, high = splitter.balance
        warn_caller(
            f"{len(unbalanced)} of {counted(len(splits), 'split')} could not be balanced, as "
            "equal rows, and the repeats of a row with a weight, stay together: children have "
            f"{min(shares):.3g} to {max(shares):.3g} of an equal share, outside "
            f"balance=({low:g}, {high:g}); balance=None sets no bounds",
            GrowthWarning,
        )


def _warn_if_not_converged(tree: Tree) -> None:
    """Warn, once, of splits whose solver reached its limit of iterations."""
    splits = [info for info, rule in zip(tree.info, tree.rules, strict=True) if rule and info]
    n_open = sum(info.status is Status.ITERATION_LIMIT for info in splits)
    if n_open:
        warn_caller(
            f"{n_open} of {len(splits)} splits did not converge; scale columns or raise tol",
            ConvergenceWarning,
        )
