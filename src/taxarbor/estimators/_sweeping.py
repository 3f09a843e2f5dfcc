"""One fit of ours, by sweeps over blocks of rows, from its beginning to its end."""

from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from taxarbor import native
from taxarbor._errors import InputError, counted
from taxarbor._run import Run
from taxarbor._types import Array, IndexArray
from taxarbor.estimators._base import (
    HierarchyEstimator,
    begin,
    finish,
    made_by,
    warn_if_short,
)
from taxarbor.grow import StoppingRule
from taxarbor.hierarchy import Hierarchy, HierarchyBuilder
from taxarbor.hierarchy._noise import Scored, scored
from taxarbor.hierarchy._reasons import find_two_values
from taxarbor.hierarchy._remade import regrouped, resized, without_rows
from taxarbor.hierarchy._route import arranged
from taxarbor.hierarchy._route import place as place_rows
from taxarbor.refine import (
    Clusters,
    Coordinates,
    Leafing,
    Sparsity,
    Survey,
    find_outliers,
    find_rules,
)
from taxarbor.refine._clusters import n_held
from taxarbor.refine._coordinates import N_COORDINATES
from taxarbor.refine._leaves import count_stayed
from taxarbor.refine._outliers import MIDDLE
from taxarbor.refine._rules import without_leaves
from taxarbor.rows import as_rows
from taxarbor.rows._memory import seen_from
from taxarbor.sweep import Column, LocalEngine
from taxarbor.sweep._copies import Copies, count_copies
from taxarbor.sweep._room import room
from taxarbor.sweep._sums import Sums, below, sums_of_labels
from taxarbor.tables._checks import check_jobs, check_weights
from taxarbor.tables._stream import as_stream
from taxarbor.tables._training import Source, Training, train_on_stream

MANY = 100_000
"""Rows up to which nobody asks whether their coordinates fit into memory."""

PER_ROW = 48
"""Bytes that a fit keeps of each row in memory beside its coordinates: where it is, how far."""

PER_SAMPLE = 4 * (N_COORDINATES + 1)
"""Bytes of the coordinates of a row, at most."""

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
        self._estimator, self._asked, self.stop = estimator, stop, stop
        self._seed = int(check_random_state(estimator.random_state).randint(2**31 - 1))
        self._n_threads, self._given = check_jobs(estimator.n_jobs), sample_weight
        self._stream, self._training = as_stream(X), None
        if self._stream is None:
            self._training = Training.of(estimator, X, self._n_threads, sample_weight)
            self._given = check_weights(sample_weight, self._training.rows.n_rows)
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as opening:
            how = self._seed, self._n_threads, self._asked.n_leaves
            self.run, self._context = begin(self._estimator, opening, *how)
            self._source = self._found()
            self._blocks, self._engine = self._source.blocks, self._source.blocks.engine
            opening.callback(self._engine.close)
            self._begin()
            self._open = opening.pop_all()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._open.__exit__(*raised)

    def _found(self) -> Source:
        asked: Any = self._estimator
        space = None
        is_large = self._training is None or self._training.rows.n_rows > MANY
        if asked.memory_limit is not None or is_large:
            space = room(asked.memory_limit, self._n_threads)
        if self._stream is None:
            assert self._training is not None
            return Source.in_memory(self._training, LocalEngine(self.run, space), self._given)
        if self._stream.sizes is not None and space is not None:
            n_rows = int(np.sum(self._stream.sizes))
            held = PER_SAMPLE * n_held(n_rows, asked.branching, self._asked)
            space = max(space - PER_ROW * n_rows - held, 0)
        return train_on_stream(asked, self._stream, self.run, space, self._given)

    @property
    def owner(self) -> IndexArray | None:
        """The column of each feature, where any column has several."""
        return self._source.owner

    def _begin(self) -> None:
        """Find out who takes part, and in which coordinates."""
        seed, blocks, weights = self._seed, self._blocks, self._source.weights
        self._take_part(self._source.counts)
        self._per_weight = 1.0
        if weights is not None:
            limbs = self._engine.sweep(_add_weights, weights, self._nothing, n_leaves=1)
            self._per_weight = self._copies.n / float(native.exact_values(limbs, False)[0, 0])
        survey = Survey.of(blocks, self._copies, seed)
        told = self._copies.counts, self._copies.first
        self._outliers = find_outliers(blocks, *told, seed, survey.sample[:MIDDLE])
        if self._outliers.counts is not None:
            self._take_part(self._outliers.counts)
            survey = Survey.of(blocks, self._copies, seed)
        self._usual_counts = self._copies.counts
        self._project(survey)
        if self._copies.n != blocks.n_rows and self.stop.max_leaf_size is not None:
            self.stop = replace(self.stop, max_leaf_size=self.copies(self.stop.max_leaf_size))

    def _take_part(self, counts: Column | None) -> None:
        """Give each copy of a row its number, and check that there are enough."""
        n = n_all = self._blocks.n_rows
        self._copies = Copies.once(self._blocks.sizes)
        if counts is not None:
            n = self._engine.sweep(_n_present, counts, self._blocks.sizes.tolist())
            self._copies = Copies.of(counts, self._engine)
        if n < 2:
            told = "a fit needs two rows that count and have a value"
            raise InputError(f"leaves {counted(n, 'row')}; {told}", "sample_weight")
        if self._asked.n_leaves is not None and self._asked.n_leaves > n:
            told = f"n_samples={n} rows" + (" that take part" if n < n_all else "")
            few = f"{told} make fewer leaves; lower it"
            raise InputError(f"is {self._asked.n_leaves}, but {few}", "n_clusters")

    def _project(self, survey: Survey) -> None:
        away = float(np.linalg.norm(self._outliers.middle - survey.center))
        told = self._outliers.reach + away, self._seed
        self.coordinates = Coordinates.of(self._blocks, self._copies, survey, *told)

    def copies(self, size: int) -> int:
        """Return how many copies weigh as much as this size of a leaf."""
        return max(round(min(size * self._per_weight, 2.0**31)), 1)

    def leave_out_noise(self, found: Clusters, noise: float) -> None:
        """Give no part to the rows that are noise in a first tree."""
        first, labels = self._settled(found.tree, leafing=found.leafing, keeps=True)
        scores = self._scored(first, labels, noise)
        if scores.usual is not None:
            self._set_apart(scores)
            self._project(Survey.of(self._blocks, self._copies, self._seed))

    def _set_apart(self, found: Scored) -> Column:
        """Give no part to rows that are noise; return which they are."""
        empty = self._source.empty or self._nothing
        is_noise, _ = self._engine.keep(_is_noise, found.scores, empty, last=found.last)
        counts, _ = self._engine.keep(_counts_without, is_noise, self._usual_counts)
        self._take_part(counts)
        return is_noise

    @property
    def _nothing(self) -> Column:
        return [None] * len(self._blocks.data)

    def leave(
        self,
        found: Clusters,
        sparsity: Sparsity,
        *,
        noise: float,
        **how: Any,
    ) -> None:
        """Find rules for clusters, and leave the tree on the estimator.

        Further settings are those of :func:`taxarbor.refine.decide`.
        """
        kept: Any = {"leafing": found.leafing, "noise": noise}
        if found.placement is None:
            self._keep(found.tree, **kept)
            return
        told = found, self.coordinates, sparsity, self.run
        tree, stands_for = find_rules(*told, describes=False, **how)
        how = {"stands_for": stands_for, "least": how["min_leaf_size"]}
        self._keep(tree, **how, **kept)

    def _keep(
        self,
        tree: HierarchyBuilder,
        *,
        leafing: Leafing,
        noise: float = 0.0,
        **how: Any,
    ) -> None:
        """Freeze the tree, with the means of its nodes, and leave it on the estimator.

        That share of the rows that are farthest from every leaf is set apart as noise.
        """
        hierarchy, labels = self._settled(tree, leafing=leafing, **how)
        n_leaves = hierarchy.n_leaves
        found = self._scored(hierarchy, labels, noise)
        if found.usual is not None:  # what is known of the nodes is of all other rows
            hierarchy, labels = self._without_noise(hierarchy, labels, found)
            columns = self._blocks.data, labels, self._copies.counts
            sums = self._engine.sweep(_add_up, *columns, n_leaves=hierarchy.n_leaves)
            means = self._means(hierarchy.leaves, hierarchy.parents, sums)
            hierarchy = replace(hierarchy, means=means, usual=found.usual)
        hierarchy = self._weighted(hierarchy, labels)
        hierarchy = self._source.decode(hierarchy, labels, self._copies.counts)
        per_row = {
            "labels_": self._per_row(labels, np.dtype(np.intp)),
            "outlier_score_": self._per_row(found.scores, np.dtype(np.float64)),
        }
        finish(self._estimator, hierarchy, self._source.seen, self._context, **per_row)
        warn_if_short(hierarchy, self._asked, 2, n_leaves - hierarchy.n_leaves)

    def _without_noise(
        self, tree: Hierarchy, labels: Column, found: Scored
    ) -> tuple[Hierarchy, Column]:
        """Return the tree without the rows that are noise, nor leaves where nobody else is."""
        is_noise = self._set_apart(found)
        told = labels, self._copies.counts
        own, sizes = self._engine.keep(_taking_part, *told, n_leaves=tree.n_leaves)
        if not sizes.all():  # rows of the others are placed in the leaves that are left
            tree = self._regrouped(tree, own, sizes)
            place = np.where(sizes > 0, np.cumsum(sizes > 0) - 1, -1).astype(np.int32)
            told = self._blocks.data, labels
            labels, _ = self._engine.keep(_placed, *told, tree=without_rows(tree), place=place)
        labels, sizes = self._engine.keep(_set_apart, labels, is_noise, n_leaves=tree.n_leaves)
        return self._regrouped(tree, labels, sizes), labels

    def _regrouped(self, tree: Hierarchy, labels: Column, sizes: IndexArray) -> Hierarchy:
        """Return the tree with other rows, or other numbers of rows."""
        if self._source.has_rows:
            return regrouped(tree, np.concatenate(self._engine.gather(labels)))
        return resized(tree, sizes, int(self._blocks.n_rows - sizes.sum()))

    def _per_row(self, column: Column, dtype: np.dtype[Any]) -> Any:
        """Return a column as one array: as one of Dask, where the rows are there."""
        if isinstance(self._engine, LocalEngine):
            return np.concatenate(self._engine.gather(column)).astype(dtype, copy=False)
        from taxarbor.sweep._lazy_results import lazy_rows  # imports Dask

        own, _ = self._engine.keep(_of_type, column, dtype=dtype)
        engine: Any = self._engine
        return lazy_rows(engine, own, self._blocks.sizes, dtype)

    def _weighted(self, tree: Hierarchy, labels: Column) -> Hierarchy:
        """Return the tree with what its rows count for, if not all the same."""
        if all(part is None for part in self._copies.counts):
            return tree
        own = self._source.weights or self._nothing
        weights, _ = self._engine.keep(_weights, self._copies.counts, own)
        if tree.has_rows:
            return replace(tree, weights=np.concatenate(self._engine.gather(weights)))
        limbs = self._engine.sweep(_add_weights, weights, labels, n_leaves=tree.n_leaves)
        totals = below(limbs, tree.leaves, tree.parents)
        return replace(tree, totals=native.exact_values(totals, False)[:, 0])

    def _settled(
        self,
        tree: HierarchyBuilder,
        *,
        leafing: Leafing,
        stands_for: dict[int, int] | None = None,
        keeps: bool = False,
        least: int = 1,
    ) -> tuple[Hierarchy, Column]:
        """Send all rows to the leaves, and return the tree with what is known of its rows.

        With ``keeps``, or where a leaf would be empty, rows that have a leaf stay there. Where
        rules decide, leaves of fewer rows than ``least``, which witnesses took for larger, are
        undone.
        """
        while True:
            planned = _planned(tree, leafing, stands_for)
            before = np.full(leafing.n_leaves + 1, -2, dtype=np.int32)
            before[planned] = np.arange(len(planned))
            before[-1] = -2  # of leaves that the plan does not have
            columns = self._blocks.data, leafing.labels, self._copies.counts
            told: Any = {"tree": tree.freeze(order=False), "before": before}
            labels, (sizes, stayed, (copies, sums)) = self._engine.keep(
                _send, *columns, keeps=keeps, **told
            )
            if stands_for is None and not keeps and not copies.all():
                keeps = True  # scores of features may round so that a leaf has nobody
                continue
            small = [leaf for leaf, n in zip(tree.leaves, copies, strict=True) if n < least]
            if stands_for is None or not small or tree.n_leaves == 1:
                break
            tree, stands_for = without_leaves(tree, stands_for, small)
        grown = np.append(leafing.counts, -1)[planned]
        changed = (grown >= 0) & ((stayed != grown) | (stayed != copies))
        tree.resize(sizes, [bool(one) for one in changed])
        order: Any = False
        if self._source.has_rows:
            own = np.concatenate(self._engine.gather(labels))
            order = arranged(np.arange(len(own)), own, tree.n_leaves)
        names = None if self._source.encoding is not None else self._source.seen.names
        means = self._means(np.array(tree.leaves), np.array(tree.parents), (copies, sums))
        told = {"feature_names": names, "means": means, "order": order}
        frozen = tree.freeze(made_by=made_by(self._estimator), **told)
        encoding = self._source.encoding
        if encoding is not None:
            return replace(frozen, two_values=encoding.two_values), labels
        X: Any = self._blocks.data[0] if len(self._blocks.data) == 1 else None
        if hasattr(X, "shape"):
            pairs = find_two_values(seen_from(X, np.zeros(X.shape[1])))
            frozen = replace(frozen, two_values=pairs)
        return frozen, labels

    def _means(
        self, leaves: IndexArray, parents: IndexArray, found: tuple[IndexArray, Sums]
    ) -> Array:
        """Return the means of all nodes, given the copies in each leaf and their sums."""
        counts, sums = found
        sizes = below(counts, leaves, parents)
        means: Array = sums.below(leaves, parents).values() / sizes[:, None]
        return means.astype(self._blocks.dtype)

    def _scored(self, tree: Hierarchy, labels: Column, noise: float) -> Scored:
        """Return how far rows are from all leaves; and which are noise."""
        told = self._blocks.data, labels, self._engine
        # Of rows without a value it is not known that they are far: they have no weight.
        how: Any = {"counts": self._copies.counts, "weights": self._source.weights}
        return scored(tree, *told, **how, noise=noise)


def _planned(
    tree: HierarchyBuilder, leafing: Leafing, stands_for: dict[int, int] | None
) -> list[int]:
    """Return the position of each leaf among those of the plan, -1 where it has none."""
    if stands_for is None:
        return list(range(tree.n_leaves))
    plan = {leaf: at for at, leaf in enumerate(leafing.tree.leaves)}
    return [plan.get(stands_for[leaf], -1) for leaf in tree.leaves]


# ---- what is done in each block --------------------------------------------------------------


def _n_present(counts: Labels | None, n: int) -> int:
    return n if counts is None else int(np.count_nonzero(counts))


def _is_noise(scores: Array, empty: Any, *, last: float) -> tuple[Any, None]:
    """Say which rows are far; of those without a value nobody knows."""
    far = scores > last
    return far if empty is None else far & ~empty, None


def _taking_part(labels: Labels, counts: Labels, *, n_leaves: int) -> tuple[Labels, IndexArray]:
    own = np.where(counts > 0, labels, -1).astype(np.int32)
    return own, np.bincount(own[own >= 0], minlength=n_leaves)


def _set_apart(
    labels: Labels, is_noise: NDArray[np.bool_], *, n_leaves: int
) -> tuple[Labels, IndexArray]:
    own = np.where(is_noise, -1, labels).astype(np.int32)
    return own, np.bincount(own[own >= 0], minlength=n_leaves)


def _placed(X: Any, labels: Labels, *, tree: Hierarchy, place: Labels) -> tuple[Labels, None]:
    """Return labels by their new numbers, and where rows of leaves that are gone are sent."""
    stays = place[labels]
    return np.where(stays < 0, _sent(X, tree), stays).astype(np.int32), None


def _sent(X: Any, tree: Hierarchy) -> Labels:
    """Return the leaves that new rows go to."""
    rule = tree.rules[tree.root]
    if rule is None:
        return np.zeros(X.shape[0], dtype=np.int32)
    return place_rows(tree, seen_from(X, rule.center)).astype(np.int32)


def _counts_without(is_noise: NDArray[np.bool_], counts: Labels | None) -> tuple[Labels, None]:
    return np.where(is_noise, 0, 1 if counts is None else counts).astype(np.int32), None


def _weights(counts: Labels, weights: Array | None) -> tuple[Array, None]:
    return np.where(counts > 0, 1.0 if weights is None else weights, 0.0), None


def _add_weights(weights: Array, labels: Labels | None, *, n_leaves: int) -> NDArray[np.int64]:
    column = as_rows(weights[:, None], center=np.zeros(1))
    return column.exact_sums(labels, None, n_leaves)


def _of_type(values: NDArray[Any], *, dtype: np.dtype[Any]) -> tuple[NDArray[Any], None]:
    return values.astype(dtype), None


def _leaf_before(labels: Labels, before: Labels) -> Labels:
    """Return which leaf of a tree each row has, -2 for none."""
    return np.where(labels < 0, -2, before[labels]).astype(np.int32)


def _send(
    X: Any,
    labels: Labels,
    counts: Labels | None,
    *,
    tree: Hierarchy,
    before: Labels,
    keeps: bool,
) -> tuple[Labels, tuple[IndexArray, IndexArray, tuple[IndexArray, Sums]]]:
    """Send rows to the leaves of a tree; count them and those that stayed, and add them up.

    With ``keeps``, rows that have a leaf stay there.
    """
    K, was = tree.n_leaves, _leaf_before(labels, before)
    sent = _sent(X, tree)
    if keeps:
        sent = np.where(was < 0, sent, was)
    stayed = count_stayed(was, sent, counts, n_leaves=K)
    added = _add_up(X, sent, counts, n_leaves=K)
    return sent, (np.bincount(sent, minlength=K), stayed, added)


def _add_up(
    X: Any, labels: Labels, counts: Labels | None, *, n_leaves: int
) -> tuple[IndexArray, Sums]:
    """Return the copies in each leaf, and the exact sums of their rows."""
    sizes = count_copies(labels, counts, n_labels=n_leaves)
    rows = seen_from(X, np.zeros(X.shape[1]))
    return sizes, sums_of_labels(rows, labels, counts, n_leaves)
