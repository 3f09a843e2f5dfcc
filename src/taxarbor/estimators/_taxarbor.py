"""Our method, the one that people get by default."""

import warnings
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone

from taxarbor._errors import GrowthWarning, InputError, TableWarning, warn_caller
from taxarbor._run import GrowthEvent
from taxarbor.estimators._base import HierarchyEstimator, check_growth
from taxarbor.estimators._progress import with_callbacks
from taxarbor.estimators._sweeping import Sweeping
from taxarbor.hierarchy._trust import Curve
from taxarbor.refine import Sparsity, find_clusters
from taxarbor.split import GapSplitter
from taxarbor.tables._checks import (
    check_balance,
    check_count,
    check_jobs,
    check_noise,
    check_strength,
    check_weights,
)
from taxarbor.tables._stream import as_stream
from taxarbor.tables._training import Training
from taxarbor.trust import assess
from taxarbor.trust._assess import most_clusters, suggest


class Taxarbor(HierarchyEstimator):
    r"""A readable taxonomy of unlabelled rows.

    Grows a tree from the root down, each split by the widest margin it can find, to more leaves
    than asked for; lets the leaves compete for the rows, and links the closest, to the clusters
    and to the tree above them; then seeks, for each split, a rule that tells its children apart
    by few features, preferably ones that the splits above it do not use. Rows go where the
    rules send them. Fitted and read like
    :class:`sklearn.cluster.BisectingKMeans`.

    Parameters
    ----------
    n_clusters : int, "auto" or None, default=8
        Number of leaves. None lets ``max_leaf_size`` or ``max_depth`` alone end the growth.
        "auto" looks for as many as are stable, up to 50, and assesses the tree: it takes as
        long as about 54 fits to half of the rows (5,000 at most). See
        :func:`taxarbor.trust.assess`.
    branching : int, default=2
        The most children of a split. Nodes have fewer where the leaves run out.
    rules : {"decide", "describe"}, default="decide"
        What the rules are for. "decide": every row goes where the rules send it, in ``fit`` and
        ``predict`` alike, so that each word is exactly why a row is where it is. "describe":
        rows go to the cluster that they fit best by all features, and the rules say, as well
        as few features can, where that is.
    max_features : int or None, default=None
        The most features that a split's rule uses. None: as many as are worth it.
    novelty : float, default=1.0
        How strongly a rule avoids the features of the splits above it. 0 lets levels share
        features; larger values make them differ more.
    balance : float, pair of float or None, default=0.5
        Least and greatest size of the two children when a node is split in growth, as multiples
        of half of it. A number ``b`` means ``(b, 2 - b)``; None sets no sizes, but no child is
        empty. Clusters, which are linked later, may differ more.
    min_leaf_size : int, default=1
        Least number of rows in a leaf. A node that cannot be divided this way is not split.
    max_leaf_size : int or None, default=None
        Leaves of at most this many rows are not split, and do not grow beyond it when leaves
        compete for rows.
    max_depth : int or None, default=None
        Leaves at this depth are not split.
    noise : float, default=0.0
        Share of the rows, by weight, 0.5 at most, that is set apart, with the label -1: those
        farthest from every cluster, by ``outlier_score_``. A first tree finds them, and is not
        kept, so that the fit takes twice as long.
        ``predict`` sets apart what is as far. A cluster of nothing else is removed.
    n_init : int, default=1
        Starts per split, on a sample of its rows, of which the best is kept: along the
        principal direction, from Ward's clusters of a few hundred, and from rows far apart.
    encoder : "auto", TableEncoder or None, default="auto"
        What makes features of a table. "auto": frames are encoded as
        :class:`~taxarbor.TableEncoder` does, which fills gaps, reads categories and scales
        columns of different units; of arrays only gaps are filled. None: numbers only.
    memory_limit : int, str or None, default=None
        Bytes that the process may take, or a text such as "2GB". What a fit keeps of the rows
        beyond that, up to 64 numbers each, goes to a temporary file. None: half of the memory
        that the machine has to spare. On Dask its workers have limits of their own.
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
    hierarchy_ : Hierarchy
        The tree: its nodes, their rows, rules and features; cuts and files.
    outlier_score_ : array of shape (n_rows,)
        How far each row is from the mean of the nearest cluster, in units of how far that
        cluster's rows are from it on average: 1 is usual. Up to 3, by its own cluster.
    n_features_in_, feature_names_in_ : int, array of str
        Number of features seen in fit, and their names, where the data had any.

    Notes
    -----
    Clusters are found in up to 63 principal coordinates, where a split minimises the squared
    hinge loss with a light ridge and an intercept. Leaves that compete for the rows do so by
    linear scores in all features. What a row wants at a split, and how much it cares, is how
    well it fits the leaves on either side; a rule takes a feature if that sorts enough rows.
    ``predict`` puts the training rows where ``fit`` did.

    About twice as many leaves are grown as asked for, and linked by Ward's method, a leaf of n
    rows weighing as much as n to the power 0.75; the score of a node is what the union of its
    first two children adds to the scatter. With a ``max_depth`` the tree stays as it was grown.

    With ``rules="describe"`` the leaves keep the rows that they won. New rows go by the same
    scores (``hierarchy_.placement``); ``predict`` puts the training rows where ``fit`` did,
    except those that stayed in their leaf for the sake of ``min_leaf_size`` or
    ``max_leaf_size``. ``hierarchy_.follows`` says for which rows the rules hold.

    A fit is some 25 to 35 sweeps over blocks of rows, about ten of them over the data and the
    others over what was kept: up to 64 float32 numbers per row, the coordinates, which go to a
    temporary file beyond the ``memory_limit``, and about 48 bytes more. The tree grows on a
    sample, of which two copies are in memory: 2,000 rows per cluster, 100,000 at least and
    a million at most, or ten for each leaf of ``max_leaf_size``. Samples are drawn by
    hashes of row numbers and all sums are exact, so that the tree does not depend on how the
    rows lie in blocks, nor on who sweeps: it is the same from memory, from disk and on Dask.
    Trees of rows that are not in memory hold counts (``hierarchy_.has_rows`` is False);
    ``hierarchy_.attach`` gives them rows.

    Ctrl-C while the tree grows ends it early: what there is so far is finished and kept, with a
    warning. So does a callback (``set_callbacks``, scikit-learn 1.9) that returns True. Later
    on, and on a cluster of Dask, Ctrl-C ends the fit, and leaves the estimator as it was.

    Examples
    --------
    >>> from taxarbor import Taxarbor, load_animals
    >>> model = Taxarbor(n_clusters=6, random_state=0).fit(load_animals().X)
    >>> model.hierarchy_
    Hierarchy(n_rows=206, n_leaves=6, height=3)
    >>> len(set(model.hierarchy_.cut(3)))
    3
    """

    def __init__(
        self,
        n_clusters: int | str | None = 8,
        *,
        branching: int = 2,
        rules: Literal["decide", "describe"] = "decide",
        max_features: int | None = None,
        novelty: float = 1.0,
        balance: float | tuple[float, float] | None = 0.5,
        min_leaf_size: int = 1,
        max_leaf_size: int | None = None,
        max_depth: int | None = None,
        noise: float = 0.0,
        n_init: int = 1,
        encoder: Any = "auto",
        memory_limit: int | str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_clusters = n_clusters
        self.branching = branching
        self.rules = rules
        self.balance = balance
        self.max_features = max_features
        self.novelty = novelty
        self.min_leaf_size = min_leaf_size
        self.max_leaf_size = max_leaf_size
        self.max_depth = max_depth
        self.noise = noise
        self.n_init = n_init
        self.encoder = encoder
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @with_callbacks
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Grow the tree, let its leaves compete, and find its rules.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_rows, n_features)
            Finite numbers. float32 stays float32; CSR is not made dense. Or what need not fit
            into memory, and is read part by part: a memory map of NumPy, a dataset of pyarrow,
            the path of a .npy, .parquet or .h5ad file or of a folder of Parquet files, an
            array or a frame of Dask. The tree is the same, and holds counts instead of rows;
            of Dask, ``labels_`` and ``outlier_score_`` are lazy arrays.
        y : ignored
            Present by convention.
        sample_weight : array-like of shape (n_rows,), optional
            What each row counts for, not negative. An integer does what so many equal rows
            would do, also to bounds on sizes; rows of weight 0 take no part, and are placed
            with equal rows, or by the rules. Others, and integers that would make more than
            20,000 copies and four times the rows, are rounded: to about one part in ten of the
            average weight, or, of 10,000 rows and more, to whole multiples of it.

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
            If there are fewer leaves than asked for, with the leaves that refused and why; or
            if ``n_clusters="auto"`` finds no clusters.
        """
        curve = self._suggest(X, sample_weight) if self.n_clusters == "auto" else None
        branching, stop = check_growth(self, None if curve is None else curve.suggested)
        most = self.max_features
        if most is not None:
            most = check_count("max_features", most, least=1)
        sparsity = Sparsity(check_strength("novelty", self.novelty), most)
        least = check_count("min_leaf_size", self.min_leaf_size, least=1)
        if stop.max_leaf_size is not None and least > stop.max_leaf_size:
            more = f"is {least}, more than max_leaf_size={stop.max_leaf_size}"
            raise InputError(f"{more}; lower one or raise the other", "min_leaf_size")
        if self.rules not in ("decide", "describe"):
            raise InputError(f'must be "decide" or "describe", got {self.rules!r}', "rules")
        balance = check_balance(self.balance, 2)
        n_init, noise = check_count("n_init", self.n_init, least=1), check_noise(self.noise)
        with Sweeping(self, X, sample_weight, stop) as fit:
            sparsity, run = replace(sparsity, owner=fit.owner), fit.run
            if least > 1:  # or there is no bound, however little a row counts for
                least = fit.copies(least)
            splitter = GapSplitter(balance, n_init, least)
            how: Any = {"branching": branching, "stop": fit.stop, "min_leaf_size": least}
            if noise:
                told: Any = {"seed": run.seed, "is_silent": True}
                first = find_clusters(fit.coordinates, splitter, **told, **how)
                fit.leave_out_noise(first, noise)
            found = find_clusters(fit.coordinates, splitter, seed=run.seed, **how)
            # On a cluster nobody heard of the growth.
            n_leaves = found.tree.n_leaves
            run.observer(GrowthEvent(n_leaves, stop.n_leaves or 0, n_leaves))
            fit.leave(found, sparsity, noise=noise, **how)
        if curve is not None:
            self._keep_trust(X, curve)
        return self

    def _suggest(self, X: Any, sample_weight: Any) -> Curve:
        """Return how stable the clusters are that a tree of many leaves can be cut into."""
        if as_stream(X) is not None:
            told = '"auto" fits parts of the rows again and again, which must be in memory'
            raise InputError(f"{told}: try it on some of the rows first", "n_clusters")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GrowthWarning)  # nobody asked for so many
            warnings.simplefilter("ignore", TableWarning)  # the fit says the same
            rows = Training.of(self, X, check_jobs(self.n_jobs), sample_weight).rows
            weights = check_weights(sample_weight, rows.n_rows)
            n = rows.n_rows if weights is None else int(np.count_nonzero(weights))
            many = clone(self).set_params(n_clusters=most_clusters(n))
            many.fit(X, sample_weight=weights)
        return suggest(many, X, **self._how())

    def _keep_trust(self, X: Any, curve: Curve) -> None:
        """Assess the tree, and keep why it has as many leaves as it has."""
        tree = assess(self, X, **self._how())
        assert tree.trust is not None
        self.hierarchy_ = replace(tree, trust=replace(tree.trust, curve=curve))
        if curve.suggested == 1:
            warn_caller(curve.verdict(), GrowthWarning)

    def _how(self) -> dict[str, Any]:
        names = ("n_jobs", "random_state", "verbose")
        return {name: getattr(self, name) for name in names}
