"""Taxarbor with one choice made otherwise, where the estimator has no parameter for it.

The steps are those of :meth:`taxarbor.Taxarbor.fit`, but for the search of rules: each row is
in the leaf of the best score.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any, Literal, final

import numpy as np
from sklearn.utils import check_random_state

from taxarbor import Hierarchy, Taxarbor
from taxarbor._blas import one_blas_thread
from taxarbor.grow import StoppingRule
from taxarbor.refine import (
    Coordinates,
    _clusters,
    _coordinates,
    _leaves,
    _links,
    find_clusters,
    gather,
)
from taxarbor.split import GapSplitter, Refusal, _gap
from taxarbor.split._gap import Plane
from taxarbor.tables._checks import check_balance

Worth = Literal["gap", "scatter", "objective", "variance", "size"]
WORTHS: tuple[Worth, ...] = ("gap", "scatter", "objective", "variance", "size")
"""What a leaf may be ranked by: the scatter between its children for the root of the objective,
that scatter as it is, how small the objective is, how far its rows vary, how many they are."""

CONSTANTS: dict[str, tuple[ModuleType, str]] = {
    "more": (_clusters, "MORE"),
    "power": (_links, "POWER"),
    "rounds": (_leaves, "STEPS"),
    "shrinkage": (_leaves, "SHRINKAGE"),
    "ridge": (_gap, "RIDGE"),
    "starts": (_gap, "STARTS"),
    "coordinates": (_coordinates, "N_COORDINATES"),
}
"""Where each setting has its place; beside them there are ``grow_by`` and ``cut_of``."""

STARTS = frozenset(_gap.STARTS)


def usual(setting: str) -> Any:
    """Return what a setting is by default."""
    module, name = CONSTANTS[setting]
    return getattr(module, name)


def fit_variant(
    X: Any, n_clusters: int, branching: int, seed: int, settings: Mapping[str, Any]
) -> Hierarchy:
    """Return the tree that Taxarbor finds rules for.

    Settings are what is otherwise: ``n_init`` and ``balance``, as those of Taxarbor; ``more``,
    how many more leaves are grown than asked for at most; ``power`` of their rows, by which
    they are linked; ``rounds`` and ``shrinkage`` of their competition; ``coordinates``, their
    number; ``ridge``, ``starts`` (a list of "principal", "far_rows" and "ward") and ``grow_by``
    of the splitter; ``cut_of``, how many times as many clusters the tree has that is cut. A
    ValueError says which there are.
    """
    given = dict(settings)
    balance = check_balance(given.pop("balance", Taxarbor().balance), 2)
    own = GapSplitter(balance, given.pop("n_init", Taxarbor().n_init))
    splitter: Any = RankedSplitter(given.pop("grow_by", "gap"), own)
    own_seed = int(check_random_state(seed).randint(2**31 - 1))  # as an estimator draws it
    n_leaves = min(given.pop("cut_of", 1) * n_clusters, len(X) // 4)
    stop = StoppingRule(max(n_leaves, n_clusters))
    with changed(given), one_blas_thread():
        coordinates = Coordinates.in_memory(X, own_seed)
        how: Any = {"branching": branching, "stop": stop, "seed": own_seed}
        found = find_clusters(coordinates, splitter, **how)
        labels = np.concatenate(coordinates.blocks.engine.gather(found.leafing.labels))
        order = np.argsort(labels, kind="stable")
        whole = gather(found.tree, branching).freeze(order=order)
        return whole.prune(n_clusters) if whole.n_leaves > n_clusters else whole


@contextmanager
def changed(settings: Mapping[str, Any]) -> Iterator[None]:
    """Put settings in their places for a while, and back what was there, whatever happens."""
    unknown = sorted(set(settings) - set(CONSTANTS))
    if unknown:
        raise ValueError(f"no setting {unknown[0]!r}; there are {sorted(CONSTANTS)}")
    new = dict(settings)
    if "starts" in new:
        if not new["starts"] or not set(new["starts"]) <= STARTS:
            raise ValueError(f"starts={new['starts']} must be some of {sorted(STARTS)}")
        new["starts"] = tuple(new["starts"])
    before = {name: usual(name) for name in new}
    try:
        for name, value in new.items():
            setattr(*CONSTANTS[name], value)
        yield
    finally:
        for name, value in before.items():
            setattr(*CONSTANTS[name], value)


@final
@dataclass(frozen=True, slots=True)
class RankedSplitter:
    """Taxarbor's splitter, with leaves ranked in other ways: by this, times their rows."""

    grow_by: Worth = "gap"
    own: GapSplitter = field(default_factory=GapSplitter)
    min_size: int = 1

    def find(self, sample: Any, n_rows: int, seed: int) -> Plane | Refusal:
        """Return the same plane with another gap."""
        plane = self.own.find(sample, n_rows, seed)
        if isinstance(plane, Refusal) or self.grow_by == "gap":
            return plane
        objective = max(plane.info.trace[-1], 1e-300)
        worths = {
            "scatter": plane.gap * math.sqrt(objective),
            "objective": 1.0 / objective,
            "variance": float(sample[:, :-1].var(axis=0).sum()),
            "size": 1.0,
        }
        return replace(plane, gap=worths[self.grow_by])

    def bounds(self, n_drawn: int, n_rows: int) -> tuple[int, int]:
        """Return how many of the rows that were drawn a child has, least and most."""
        return self.own.bounds(n_drawn, n_rows)
