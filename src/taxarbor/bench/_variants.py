"""HMMC with one choice made otherwise, where the estimator has no parameter for it.

Rows are grouped as by the estimator, in :func:`taxarbor.refine.group_rows`, so that without
settings they end in the leaves that HMMC gives them. Rules move no row, and are not sought.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from sklearn.utils import check_random_state

from taxarbor._blas import one_blas_thread
from taxarbor._types import Array
from taxarbor.estimators import HMMC
from taxarbor.grow import StoppingRule, grow
from taxarbor.hierarchy import Hierarchy
from taxarbor.refine import group_rows
from taxarbor.rows import as_rows
from taxarbor.split import LiftedSplitter
from taxarbor.tables._checks import check_balance

MOVING = ("n_steps", "shrinkage")
SPLITTING = ("n_init", "top", "ridge", "has_intercept", "choose_by", "grow_by")
OTHER = ("balance", "starts", "n_coordinates")


def fit_variant(
    X: Array, n_clusters: int, branching: int, seed: int, settings: Mapping[str, Any]
) -> Hierarchy:
    """Grow a tree and let its leaves compete for the rows; return it without rules.

    Parameters
    ----------
    X : array of shape (n_rows, n_features)
        The rows.
    n_clusters, branching, seed : int
        As HMMC's ``n_clusters``, ``branching`` and ``random_state``.
    settings : mapping
        What is otherwise than in HMMC: ``n_steps`` (0 for no moves) and ``shrinkage`` of the
        leaves; ``n_init``, ``top``, ``ridge``, ``has_intercept``, ``choose_by``, ``grow_by``
        of the splitter; ``balance`` as HMMC's; ``starts``, a list of "principal", "far_rows"
        and "ward"; ``n_coordinates``.

    Raises
    ------
    ValueError
        If there is no such setting, or no such start.
    """
    known = (*MOVING, *SPLITTING, *OTHER)
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise ValueError(f"a variant has no setting {unknown[0]!r}; those are {sorted(known)}")
    splitter = _splitter(branching, settings)
    own_seed = int(check_random_state(seed).randint(2**31 - 1))  # as an estimator draws it
    options = {key: settings[key] for key in MOVING if key in settings}
    if "n_coordinates" in settings:
        options["size"] = settings["n_coordinates"]
    stop = StoppingRule(n_clusters)
    grow_on = partial(grow, splitter=splitter, branching=branching, stop=stop, seed=own_seed)
    with one_blas_thread():
        return group_rows(as_rows(X, n_threads=1), grow_on, own_seed, **options)[0]


def _splitter(branching: int, settings: Mapping[str, Any]) -> LiftedSplitter:
    """Return HMMC's splitter, but for what the settings say."""
    usual = HMMC()
    given = {key: settings[key] for key in SPLITTING if key in settings}
    given = {"n_init": usual.n_init, "tol": usual.tol, **given}
    bounds = check_balance(settings.get("balance", usual.balance), branching)
    splitter = LiftedSplitter(bounds, **given)
    if "starts" not in settings:
        return splitter
    starts = {start.__name__: start for start in splitter.starts}
    names = [f"{name}_start" for name in settings["starts"]]
    if not names or not set(names) <= set(starts):
        raise ValueError(f"starts={settings['starts']} must be some of {sorted(starts)}")
    return LiftedSplitter(bounds, **given, starts=tuple(starts[name] for name in names))
