"""The clusters of Taxarbor without rules, perhaps with one choice made otherwise.

The steps are those of :meth:`taxarbor.Taxarbor.fit` up to the search for rules. Each row is in
the leaf of the best score in all features: the ceiling that rules are compared with.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, Literal, final

import numpy as np
from sklearn.utils import check_random_state

from taxarbor import Taxarbor, Taxonomy
from taxarbor._fit_context import Run, one_blas_thread
from taxarbor._parameters import check_balance
from taxarbor._types import IndexArray
from taxarbor.clusters import (
    _coordinates,
    _find,
    count_coordinates,
    find_clusters,
    find_coordinates,
    leaves,
)
from taxarbor.clusters._find import GapPlane, GapSplitter
from taxarbor.clusters.leaves import Leaves, fit_leaves
from taxarbor.grow import StoppingRule
from taxarbor.rows import as_rows
from taxarbor.split import Refusal

Criterion = Literal["gap", "scatter", "objective", "variance", "size"]
CRITERIA: tuple[Criterion, ...] = ("gap", "scatter", "objective", "variance", "size")
"""What a leaf may be ranked by: the scatter between its children divided by the root of the
objective, that scatter, how small the objective is, the variance of its rows, their number."""

CONSTANTS: dict[str, tuple[ModuleType, str]] = {
    "more": (_find, "MAX_EXTRA"),
    "power": (leaves, "POWER"),
    "rounds": (leaves, "ROUNDS"),
    "shrinkage": (leaves, "SHRINKAGE"),
    "max_shrinkage": (leaves, "MAX_SHRINKAGE"),
    "ridge": (_find, "RIDGE"),
    "coordinates": (_coordinates, "N_COORDINATES"),
}
"""The constant behind each setting."""


def default_of(setting: str) -> Any:
    """Return the default of a setting."""
    module, name = CONSTANTS[setting]
    return getattr(module, name)


def estimator_seed(random_state: int) -> int:
    """Return the seed that an estimator with this ``random_state`` works with."""
    return int(check_random_state(random_state).randint(2**31 - 1))


def fit_variant(
    X: Any,
    n_clusters: int,
    seed: int,
    settings: Mapping[str, Any],
    rows: IndexArray | None = None,
) -> Taxonomy:
    """Return the taxonomy that Taxarbor finds rules for.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        All rows.
    n_clusters, seed : int
        As those of Taxarbor.
    settings : mapping
        What differs from the defaults: ``n_init``, as that of Taxarbor; ``grow_by``, one of
        CRITERIA; ``cut_of``, how many times as many clusters the tree has that is cut;
        ``balance`` (as that of HMMC) and ``starts`` (a list of "principal", "far_rows" and
        "ward") of a split; and those of CONSTANTS: ``more``, how many more leaves are grown
        than asked for at most; ``power`` of their sizes, by which they are linked; ``rounds``
        of the last competition; ``shrinkage``, the least, and ``max_shrinkage`` of its scatter;
        ``coordinates``, their number; ``ridge`` of a split.
    rows : int array, optional
        The rows that clusters are found on; others go to the leaf of the best score.

    Raises
    ------
    ValueError
        If there is no such setting; the message says which there are.
    """
    options = dict(settings)
    usual, n_init = GapSplitter(), options.pop("n_init", Taxarbor().n_init)
    gap_splitter = GapSplitter(
        check_balance(options.pop("balance", usual.balance), 2),
        tuple(options.pop("starts", usual.starts)),
    )
    splitter: Any = RankedSplitter(options.pop("grow_by", "gap"), gap_splitter)
    run = Run(estimator_seed(seed))
    fitted = X if rows is None else X[rows]
    n_leaves = min(options.pop("cut_of", 1) * n_clusters, len(fitted) // 4)
    stop = StoppingRule(max(n_leaves, n_clusters))
    with override(options), one_blas_thread():
        size = count_coordinates(stop.n_leaves)
        coordinates = find_coordinates(fitted, run.seed, size=size)
        clusters = find_clusters(
            coordinates, splitter, branching=2, stop=stop, run=run, n_init=n_init
        )
    labels = np.zeros(len(X), dtype=np.intp)
    if clusters.tree.n_leaves > 1:
        leaves = Leaves.of(clusters.labels, clusters.tree.n_leaves, coordinates)
        model, _ = fit_leaves(leaves, coordinates)
        weights = model.weights @ coordinates.directions
        labels = as_rows(X, center=coordinates.center).best(weights, model.offsets)
    labels[slice(None) if rows is None else rows] = clusters.labels
    clusters.tree.resize(np.bincount(labels))
    tree = clusters.tree.freeze(with_rows=False)
    tree = replace(tree, order=np.argsort(labels, kind="stable"))
    return Taxonomy(tree.prune(n_clusters) if tree.n_leaves > n_clusters else tree)


@contextmanager
def override(settings: Mapping[str, Any]) -> Iterator[None]:
    """Set constants for a while; the defaults come back whatever happens."""
    unknown = sorted(set(settings) - set(CONSTANTS))
    if unknown:
        raise ValueError(f"no setting {unknown[0]!r}; there are {sorted(CONSTANTS)}")
    before = {name: default_of(name) for name in settings}
    try:
        for name, value in settings.items():
            setattr(*CONSTANTS[name], value)
        yield
    finally:
        for name, value in before.items():
            setattr(*CONSTANTS[name], value)


@final
@dataclass(frozen=True, slots=True)
class RankedSplitter:
    """Taxarbor's splitter, with leaves ranked by a criterion times their number of rows."""

    grow_by: Criterion = "gap"
    splitter: GapSplitter = field(default_factory=GapSplitter)
    min_size: int = 1

    def find(self, sample: Any, n_rows: int, seed: int) -> GapPlane | Refusal:
        """Return the same plane with another gap."""
        plane = self.splitter.find(sample, n_rows, seed)
        if isinstance(plane, Refusal) or self.grow_by == "gap":
            return plane
        objective = max(plane.info.trace[-1], 1e-300)
        gaps = {
            "scatter": plane.gap * math.sqrt(objective),
            "objective": 1.0 / objective,
            "variance": float(sample[:, :-1].var(axis=0).sum()),
            "size": 1.0,
        }
        return replace(plane, gap=gaps[self.grow_by])

    def bounds(self, n_drawn: int, n_rows: int) -> tuple[int, int]:
        """Return the least and the greatest size of a child."""
        return self.splitter.bounds(n_drawn, n_rows)
