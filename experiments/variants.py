"""Taxarbor with one choice made otherwise, where the estimator has no parameter for it.

The steps are those of :meth:`taxarbor.Taxarbor.fit` with ``rules="describe"``, but for the
search of rules, which then moves no row: without settings, rows end in the leaves that Taxarbor
gives them.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Literal, final

from sklearn.utils import check_random_state

from taxarbor import Hierarchy
from taxarbor._blas import one_blas_thread
from taxarbor.grow import Run, StoppingRule, grow
from taxarbor.refine import Coordinates, _coordinates, _leaves, compete, link_leaves
from taxarbor.rows import as_rows
from taxarbor.split import GapSplitter, Refusal, Split, SplitTask, _gap

Worth = Literal["gap", "scatter", "objective", "variance", "size"]
WORTHS: tuple[Worth, ...] = ("gap", "scatter", "objective", "variance", "size")
"""What a leaf may be ranked by: the scatter between its children for the root of the objective,
that scatter as it is, how small the objective is, how far its rows vary, how many they are."""

CONSTANTS: dict[str, tuple[ModuleType, str]] = {
    "rounds": (_leaves, "STEPS"),
    "shrinkage": (_leaves, "SHRINKAGE"),
    "top": (_gap, "TOP"),
    "ridge": (_gap, "RIDGE"),
    "starts": (_gap, "STARTS"),
    "coordinates": (_coordinates, "N_COORDINATES"),
}
"""Where each setting has its place; beside them there is ``grow_by``."""

STARTS = frozenset(_gap.STARTS)


def usual(setting: str) -> Any:
    """Return what a setting is by default."""
    module, name = CONSTANTS[setting]
    return getattr(module, name)


def fit_variant(
    X: Any, n_clusters: int, branching: int, seed: int, settings: Mapping[str, Any]
) -> Hierarchy:
    """Grow a tree and let its leaves compete for the rows; return it without rules.

    Settings are what is otherwise than in Taxarbor: ``rounds`` (0 for no moves) and
    ``shrinkage`` of the leaves; ``coordinates``, their number; ``top``, ``ridge``, ``starts``
    (a list of "principal", "far_rows" and "ward") and ``grow_by`` of the splitter. A ValueError
    says which there are.
    """
    given = dict(settings)
    splitter = RankedSplitter(given.pop("grow_by", "gap"))
    own_seed = int(check_random_state(seed).randint(2**31 - 1))  # as an estimator draws it
    run, stop = Run(own_seed), StoppingRule(n_clusters)
    with changed(given), one_blas_thread():
        rows = as_rows(X, n_threads=1)
        coordinates = Coordinates.of(rows, run.seed)
        tree = grow(coordinates.rows, splitter, branching=branching, stop=stop, run=run)
        placement = compete(tree, coordinates, rows) if usual("rounds") else None
        if placement is not None and branching == 2:
            tree, _ = link_leaves(tree, placement, coordinates)
        return tree.freeze()


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
    """Taxarbor's splitter, with leaves ranked in other ways."""

    grow_by: Worth = "gap"  # which leaf is split next: this, times its rows

    def split(self, task: SplitTask) -> Split | Refusal:
        """Return the division, with a score by another measure."""
        split = GapSplitter().split(task)
        if isinstance(split, Refusal) or self.grow_by == "gap":
            return split
        n_rows, objective = task.rows.n_rows, max(split.objective, 1e-300)
        worths = {
            "scatter": split.score * objective**0.5,
            "objective": n_rows / objective,
            "variance": float(task.rows.norms().sum()),
            "size": float(n_rows),
        }
        return replace(split, score=worths[self.grow_by])
