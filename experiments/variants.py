"""Taxarbor with one choice made otherwise, where the estimator has no parameter for it.

The steps are those of :meth:`taxarbor.Taxarbor.fit` with ``rules="describe"``, but for the
search of rules, which then moves no row: without settings, rows end where Taxarbor puts them.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Literal, final

from sklearn.utils import check_random_state

from taxarbor import Hierarchy
from taxarbor._blas import one_blas_thread
from taxarbor.grow import Run, StoppingRule
from taxarbor.refine import _clusters, _coordinates, _leaves, _links, find_clusters, gather
from taxarbor.rows import as_rows
from taxarbor.split import GapSplitter, Refusal, Split, SplitTask, _gap

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

    Settings are what is otherwise: ``more``, how many more leaves are grown than asked for at
    most; ``power`` of their rows, by which they are linked; ``rounds`` and ``shrinkage`` of
    their competition; ``coordinates``, their number; ``ridge``, ``starts`` (a list of
    "principal", "far_rows" and "ward") and ``grow_by`` of the splitter; ``cut_of``, how
    many times as many clusters the tree has that is cut. A ValueError says which there are.
    """
    given = dict(settings)
    splitter = RankedSplitter(given.pop("grow_by", "gap"))
    own_seed = int(check_random_state(seed).randint(2**31 - 1))  # as an estimator draws it
    n_leaves = min(given.pop("cut_of", 1) * n_clusters, len(X) // 4)
    run, stop = Run(own_seed), StoppingRule(max(n_leaves, n_clusters))
    with changed(given), one_blas_thread():
        rows = as_rows(X, n_threads=1)
        tree, _ = find_clusters(rows, splitter, branching=branching, stop=stop, run=run)
        whole = gather(tree, branching).freeze()
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

    def split(self, task: SplitTask) -> Split | Refusal:
        """Return the same division with another score."""
        split, n_rows = GapSplitter(n_init=1).split(task), task.rows.n_rows
        if isinstance(split, Refusal) or self.grow_by == "gap":
            return split
        objective = max(split.objective, 1e-300)
        worths = {
            "scatter": split.score * math.sqrt(objective),
            "objective": n_rows / objective,
            "variance": float(task.rows.norms().sum()),
            "size": float(n_rows),
        }
        return replace(split, score=worths[self.grow_by])
