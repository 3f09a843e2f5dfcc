"""Taxarbor with one choice made otherwise, where the estimator has no parameter for it.

The steps are those of :meth:`taxarbor.Taxarbor.fit` with ``rules="describe"``, but for the
search of rules, which then moves no row: without settings, rows end in the leaves that Taxarbor
gives them.
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
from taxarbor.grow import Run, StoppingRule, grow
from taxarbor.refine import Coordinates, _coordinates, _leaves, compete
from taxarbor.rows import as_rows
from taxarbor.split import GapSplitter, Refusal, Split, SplitTask, _gap
from taxarbor.split._alternate import Alternation
from taxarbor.split._starts import draw_sample

Worth = Literal["gap", "scatter", "objective", "variance", "size"]
WORTHS: tuple[Worth, ...] = ("gap", "scatter", "objective", "variance", "size")
"""What a leaf may be ranked by: the scatter between its children for the root of the objective,
that scatter as it is, how small the objective is, how far its rows vary, how many they are. The
first three rank starts, too."""

CONSTANTS: dict[str, tuple[ModuleType, str]] = {
    "rounds": (_leaves, "STEPS"),
    "shrinkage": (_leaves, "SHRINKAGE"),
    "top": (_gap, "TOP"),
    "ridge": (_gap, "RIDGE"),
    "starts": (_gap, "STARTS"),
    "coordinates": (_coordinates, "N_COORDINATES"),
    "intercept": (_gap, "lift"),
}
"""Where each setting has its place; beside them there are ``choose_by`` and ``grow_by``."""

STARTS = {start.__name__.removesuffix("_start"): start for start in _gap.STARTS}


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
    (a list of "principal", "far_rows" and "ward"), ``intercept`` (False for none),
    ``choose_by`` and ``grow_by`` of the splitter. A ValueError says which there are.
    """
    given = dict(settings)
    splitter = RankedSplitter(given.pop("choose_by", "gap"), given.pop("grow_by", "gap"))
    own_seed = int(check_random_state(seed).randint(2**31 - 1))  # as an estimator draws it
    run, stop = Run(own_seed), StoppingRule(n_clusters)
    with changed(given), one_blas_thread():
        rows = as_rows(X, n_threads=1)
        coordinates = Coordinates.of(rows, run.seed)
        tree = grow(coordinates.rows, splitter, branching=branching, stop=stop, run=run)
        if usual("rounds"):
            compete(tree, coordinates, rows)
        return tree.freeze()


@contextmanager
def changed(settings: Mapping[str, Any]) -> Iterator[None]:
    """Put settings in their places for a while, and back what was there, whatever happens."""
    unknown = sorted(set(settings) - set(CONSTANTS))
    if unknown:
        raise ValueError(f"no setting {unknown[0]!r}; there are {sorted(CONSTANTS)}")
    new = dict(settings)
    if "starts" in new:
        if not new["starts"] or not set(new["starts"]) <= set(STARTS):
            raise ValueError(f"starts={new['starts']} must be some of {sorted(STARTS)}")
        new["starts"] = tuple(STARTS[name] for name in new["starts"])
    if "intercept" in new:
        new["intercept"] = _gap.lift if new["intercept"] else lambda rows: rows
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
    """Taxarbor's splitter, with starts and leaves ranked in other ways."""

    choose_by: Worth = "gap"  # which start is kept
    grow_by: Worth = "gap"  # which leaf is split next: this, times its rows

    def split(self, task: SplitTask) -> Split | Refusal:
        """Return the best division by one measure, with a score by another."""
        kept = {"objective": math.nan, "scatter": math.nan, "gap": math.nan}
        own = _gap.gap

        def rank(found: Alternation, between: float) -> float:
            """Stand in for ``gap``, which is last asked about the start that was kept."""
            objective = 1.0 / max(found.trace[-1], _gap.TINY)
            kept.update(objective=objective, scatter=between, gap=own(found, between))
            return kept[self.choose_by]

        try:
            _gap.gap = rank
            split = GapSplitter().split(task)
        finally:
            _gap.gap = own
        if isinstance(split, Refusal):
            return split
        shares = {**kept, "variance": _variance(task), "size": 1.0}
        return replace(split, score=task.rows.n_rows * shares[self.grow_by])


def _variance(task: SplitTask) -> float:
    """Return the variance of the rows that the splitter draws first."""
    rows = task.rows
    drawn = draw_sample(rows.n_rows, max(_gap.SAMPLE, 200 * task.n_children), task.rng())
    sample = rows if drawn is None else rows.take(drawn, center=rows.center)
    return float(sample.norms().mean())
