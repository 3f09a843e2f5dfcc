"""One fit of ours, by sweeps over blocks of rows, from its beginning to its end."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from taxarbor._blas import one_blas_thread
from taxarbor._errors import InputError, counted
from taxarbor._progress import show_progress
from taxarbor._run import Run
from taxarbor._types import IndexArray
from taxarbor.estimators._base import HierarchyEstimator, finish, made_by, warn_if_short
from taxarbor.estimators._progress import call_back, observe_all
from taxarbor.grow import StoppingRule
from taxarbor.hierarchy import Hierarchy, HierarchyBuilder, Placement
from taxarbor.hierarchy._follows import measured
from taxarbor.hierarchy._noise import score_rows
from taxarbor.hierarchy._repeats import regrouped, repeats_of
from taxarbor.hierarchy._route import arranged, place
from taxarbor.hierarchy._rule import deciding_rule
from taxarbor.refine import (
    Clusters,
    Coordinates,
    Leafing,
    Sparsity,
    Survey,
    Witnesses,
    decide,
    describe,
    find_outliers,
    gather,
)
from taxarbor.refine._leaves import count_stayed
from taxarbor.rows._memory import seen_from
from taxarbor.sweep import Blocks, Column, LocalEngine, blocks_of
from taxarbor.sweep._copies import Copies, exact_mean
from taxarbor.tables._checks import check_jobs, check_weights
from taxarbor.tables._training import Training

Labels = NDArray[np.int32]


@final
class Sweeping:
    """One fit by sweeps, from the check of its data to the attributes that it leaves.

    Inside the ``with`` block BLAS has one thread, the pool is open and progress is shown. An
    exception, Ctrl-C among them, leaves the estimator as it was. ``coordinates`` are those of
    the rows that take part, ``stop`` counts them by copies, and ``run`` is what the steps are
    told.
    """

    run: Run
    stop: StoppingRule
    coordinates: Coordinates

    def __init__(
        self, estimator: HierarchyEstimator, X: Any, sample_weight: Any, stop: StoppingRule
    ) -> None:
        self._estimator, self._asked = estimator, stop
        seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
        self._n_threads = check_jobs(estimator.n_jobs)
        self._training = Training.of(estimator, X, self._n_threads, sample_weight)
        self.owner, self._all = self._training.owner, self._training.rows
        self._weights = self._given = check_weights(sample_weight, self._all.n_rows)
        self.stop, self.run = stop, Run(seed)
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            opening.enter_context(one_blas_thread())
            title, verbose = type(self._estimator).__name__, self._estimator.verbose
            bar = opening.enter_context(show_progress(title, verbose))
            callbacks, self._context = call_back(self._estimator, self._asked.n_leaves)
            pool = None
            if self._n_threads > 1:
                pool = ThreadPoolExecutor(self._n_threads)
                opening.callback(pool.shutdown, cancel_futures=True)
            self.run = Run(self.run.seed, observe_all(bar, callbacks), pool)
            self._engine = LocalEngine(self.run)
            opening.callback(self._engine.close)
            self._blocks: Blocks = blocks_of(self._training.data, self._engine)
            self._begin()
            self._open = opening.pop_all()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._open.__exit__(*raised)

    def _begin(self) -> None:
        """Find out who takes part, and in which coordinates."""
        counts, self._per_weight = self._counts()
        self._take_part(counts)
        seed = self.run.seed
        survey = Survey.of(self._blocks, self._copies, seed)
        told = self._copies.counts, self._copies.first
        outliers = find_outliers(self._blocks, *told, seed, survey.sample[:250])
        if outliers.counts is not None:
            self._take_part(np.concatenate(self._engine.gather(outliers.counts)))
            survey = Survey.of(self._blocks, self._copies, seed)
        self._outliers = outliers
        self._project(survey)
        if self._copies.n != self._blocks.n_rows and self.stop.max_leaf_size is not None:
            self.stop = replace(self.stop, max_leaf_size=self.copies(self.stop.max_leaf_size))

    def _counts(self) -> tuple[Labels | None, float]:
        """Return how often each row counts, and how many copies a weight of one has."""
        weights, empty = self._given, self._training.empty
        if empty is not None:
            weights = np.where(empty, 0.0, 1.0 if weights is None else weights)
        if weights is None:
            return None, 1.0
        repeats = repeats_of(weights)
        with np.errstate(over="ignore"):
            return repeats.astype(np.int32), float(repeats.sum() / weights.sum())

    def _take_part(self, counts: Labels | None) -> None:
        """Number the copies of all rows, and check that there are enough."""
        n = n_all = self._blocks.n_rows
        self._copies = Copies.once(self._blocks.sizes)
        if counts is not None:
            n = int(np.count_nonzero(counts))
            parts = np.split(counts, np.cumsum(self._blocks.sizes)[:-1])
            self._copies = Copies.of(parts, self._engine)
        if n < 2:
            told = "a fit needs two rows that count and have a value"
            raise InputError(f"leaves {counted(n, 'row')}; {told}", "sample_weight")
        if self._asked.n_leaves is not None and self._asked.n_leaves > n:
            told = f"n_samples={n} rows" + (" that take part" if n < n_all else "")
            few = f"{told} make fewer leaves; lower it"
            raise InputError(f"is {self._asked.n_leaves}, but {few}", "n_clusters")

    def _project(self, survey: Survey) -> None:
        away = float(np.linalg.norm(self._outliers.middle - survey.center))
        told = self._outliers.reach + away, self.run.seed
        self.coordinates = Coordinates.of(self._blocks, self._copies, survey, *told)

    def copies(self, size: int) -> int:
        """Return how many copies weigh as much as this size of a leaf."""
        return max(round(min(size * self._per_weight, 2.0**31)), 1)

    def leave_out_noise(self, found: Clusters, noise: float) -> None:
        """Give no part to the rows that are noise in a first tree."""
        rule, tree = found.placement, found.tree
        placement = rule and Placement(rule, np.array(tree.leaves))
        first, _ = self._settled(tree, placement, leafing=found.leafing, holds=True)
        is_noise = self._scores(first, noise)[-1]
        if is_noise.any():
            self._set_apart(is_noise)
            self._project(Survey.of(self._blocks, self._copies, self.run.seed))

    def _set_apart(self, mask: NDArray[np.bool_]) -> None:
        now = self._all_counts()
        counts = np.ones(len(mask), dtype=np.int32) if now is None else now.copy()
        counts[mask] = 0
        self._take_part(counts)

    def _all_counts(self) -> Labels | None:
        if all(part is None for part in self._copies.counts):
            return None
        return np.concatenate(self._engine.gather(self._copies.counts))

    def leave(
        self,
        found: Clusters,
        sparsity: Sparsity,
        rules: str,
        *,
        noise: float,
        **how: Any,
    ) -> None:
        """Find rules for clusters, and leave the tree on the estimator.

        Further settings are those of :func:`taxarbor.refine.decide`.
        """
        kept: Any = {"leafing": found.leafing, "noise": noise}
        if found.placement is None:
            self._keep(found.tree, holds=False, **kept)
            return
        witnesses = Witnesses.of(found, self.coordinates, self.run.seed)
        told = witnesses, found.placement, sparsity, self.run
        if rules == "describe":
            tree = gather(found.tree, how["branching"])
            describe(tree, *told)
            placement = Placement(found.placement, np.array(tree.leaves))
            is_bound = how["min_leaf_size"] > 1 or how["stop"].max_leaf_size is not None
            self._keep(tree, placement, holds=False, keeps=is_bound, **kept)
        else:
            tree, stands_for = decide(found.tree, *told, **how)
            self._keep(tree, holds=True, stands_for=stands_for, **kept)

    def _keep(
        self,
        tree: HierarchyBuilder,
        placement: Placement | None = None,
        *,
        leafing: Leafing,
        noise: float = 0.0,
        **how: Any,
    ) -> None:
        """Freeze the tree, with the means of its nodes, and leave it on the estimator.

        That share of the rows that are farthest from every leaf is set apart as noise.
        """
        n_leaves = tree.n_leaves
        hierarchy, labels = self._settled(tree, placement, leafing=leafing, **how)
        scores, usual, is_noise = self._scores(hierarchy, noise)
        if usual is not None:  # what is known of the nodes is of all other rows
            self._set_apart(is_noise)
            own = np.where(is_noise, -1, hierarchy.labels)
            hierarchy = replace(regrouped(hierarchy, own), usual=usual)
            labels = np.split(
                hierarchy.labels.astype(np.int32), np.cumsum(self._blocks.sizes)[:-1]
            )
            hierarchy = self._dressed(hierarchy, labels, how["holds"])
        counts = self._all_counts()
        if counts is not None:
            weights = np.ones(len(counts)) if self._given is None else self._given
            hierarchy = replace(hierarchy, weights=np.where(counts > 0, weights, 0.0))
        training = self._training
        if training.encoding is not None:
            hierarchy = training.encoding.decode(hierarchy, training.gaps)
        finish(self._estimator, hierarchy, scores, training.seen, self._context)
        warn_if_short(hierarchy, self._asked, 2, n_leaves - hierarchy.n_leaves)

    def _settled(
        self,
        tree: HierarchyBuilder,
        placement: Placement | None,
        *,
        leafing: Leafing,
        holds: bool,
        stands_for: dict[int, int] | None = None,
        keeps: bool = False,
    ) -> tuple[Hierarchy, Column]:
        """Send all rows to the leaves, and return the tree with what is known of its rows.

        With ``keeps`` rows that have a leaf stay there.
        """
        plan = {leaf: at for at, leaf in enumerate(leafing.tree.leaves)}
        planned = [
            at if stands_for is None else plan.get(stands_for[leaf], -1)
            for at, leaf in enumerate(tree.leaves)
        ]
        before = np.full(leafing.n_leaves + 1, -2, dtype=np.int32)
        before[planned] = np.arange(len(planned))
        before[-1] = -2  # of leaves that the plan does not have
        labels, (sizes, copies, stayed) = self._engine.keep(
            _send,
            *(self._blocks.data, leafing.labels, self._copies.counts),
            tree=tree.freeze(placement, order=False),
            before=before,
            keeps=keeps,
        )
        grown = np.append(leafing.counts, -1)[planned]
        changed = (grown >= 0) & ((stayed != grown) | (stayed != copies))
        tree.resize(sizes, [bool(one) for one in changed])
        order = arranged(
            np.arange(self._blocks.n_rows),
            np.concatenate(self._engine.gather(labels)),
            tree.n_leaves,
        )
        names = None if self._training.encoding is not None else self._training.seen.names
        frozen = tree.freeze(
            placement, feature_names=names, made_by=made_by(self._estimator), order=order
        )
        return self._dressed(frozen, labels, holds), labels

    def _dressed(self, tree: Hierarchy, labels: Column, holds: bool) -> Hierarchy:
        """Return the tree with what only its rows can tell: the means of its nodes, and more."""
        counts, sums = self._engine.sweep(
            _add_up, self._blocks.data, labels, self._copies.counts, n_leaves=tree.n_leaves
        )
        limbs = np.zeros((tree.n_nodes, *sums.shape[1:]), dtype=np.int64)
        sizes = np.zeros(tree.n_nodes)
        limbs[tree.leaves], sizes[tree.leaves] = sums, counts
        for node in range(tree.n_nodes - 1, 0, -1):  # children come after their parents
            limbs[tree.parents[node]] += limbs[node]
            sizes[tree.parents[node]] += sizes[node]
        means = exact_mean(limbs, sizes[:, None], self._blocks.dtype)
        tree = replace(tree, means=means.astype(self._blocks.dtype))
        encoding = self._training.encoding
        pairs = None if encoding is None else encoding.two_values
        return measured(tree, self._all, self.run, holds=holds, two_values=pairs)

    def _scores(self, tree: Hierarchy, noise: float) -> Any:
        """Return how far rows are from all leaves; what is usual; which are noise."""
        weights, empty = self._given, self._training.empty
        if empty is not None:  # it is not known that they are far
            weights = np.where(empty, 0.0, 1.0 if weights is None else weights)
        told: Any = {"counts": self._all_counts(), "weights": weights, "noise": noise}
        scores, usual, is_noise = score_rows(tree, self._all, self.run, **told)
        return scores, usual, is_noise if empty is None else is_noise & ~empty


# ---- what is done in each block -----------------------------------------------------------------


def _send(
    X: Any,
    labels: Labels,
    counts: Labels | None,
    *,
    tree: Hierarchy,
    before: Labels,
    keeps: bool,
) -> tuple[Labels, tuple[IndexArray, IndexArray, IndexArray]]:
    """Send rows to the leaves of a tree; count them, their copies, and those that stayed."""
    rule, K = deciding_rule(tree), tree.n_leaves
    was = np.where(labels < 0, -2, before[labels]).astype(np.int32)
    if rule is None:
        sent = np.zeros(len(labels), dtype=np.int32)
    else:
        sent = place(tree, seen_from(X, rule.center)).astype(np.int32)
    if keeps:
        sent = np.where(was < 0, sent, was)
    copies = np.bincount(sent, weights=counts, minlength=K).astype(np.int64)
    stayed = count_stayed(was, sent, counts, n_leaves=K)
    return sent, (np.bincount(sent, minlength=K), copies, stayed)


def _add_up(
    X: Any, labels: Labels, counts: Labels | None, *, n_leaves: int
) -> tuple[IndexArray, NDArray[np.int64]]:
    """Return the copies in each leaf, and the exact sums of their rows."""
    there = labels >= 0
    own = None if counts is None else counts[there]
    sizes = np.bincount(labels[there], weights=own, minlength=n_leaves).astype(np.int64)
    sums = seen_from(X, np.zeros(X.shape[1])).exact_sums(labels, counts, n_leaves)
    return sizes, sums
