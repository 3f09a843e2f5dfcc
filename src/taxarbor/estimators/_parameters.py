"""Parameters that several estimators have, checked in one place."""

from typing import Any, Protocol

import numpy as np

from taxarbor.grow import StoppingRule
from taxarbor.refine import Sparsity
from taxarbor.split import KINDS, Center, Kind, MaxMarginSplitter, Regularizer, SolverName
from taxarbor.tables._checks import check_balance, check_choice, check_count, check_strength

UNITS = ("relative", "raw")
SOLVERS = ("auto", "newton", "pqn")
CENTERS = ("node", "data")
SPARSE = ("group+exclusive", "group", "l1")
DENSE_STRENGTH = 0.1
"""Alpha of an l2 penalty where none is given."""


class Growing(Protocol):
    """An estimator that says how far a tree grows."""

    n_clusters: int | None
    branching: int
    max_leaf_size: int | None
    max_depth: int | None


class Margins(Protocol):
    """An estimator that splits by margins."""

    penalty: Any
    units: Any
    balance: float | tuple[float, float] | None
    n_init: int
    solver: SolverName
    tol: float


class Refining(Protocol):
    """An estimator whose rules are found when the tree is whole."""

    refine: bool
    max_features: int | None
    penalty: Any
    alpha: float | None
    beta: float | None
    units: Any
    center: Any
    solver: Any


def check_growth(estimator: Growing) -> tuple[int, StoppingRule]:
    """Return the number of children per split, and when to stop."""
    limits = {
        name: None if value is None else check_count(name, value, least=1)
        for name, value in (
            ("n_clusters", estimator.n_clusters),
            ("max_leaf_size", estimator.max_leaf_size),
            ("max_depth", estimator.max_depth),
        )
    }
    if all(limit is None for limit in limits.values()):
        raise ValueError("give n_clusters, max_leaf_size or max_depth: nothing ends the growth")
    branching = check_count("branching", estimator.branching, least=2)
    return branching, StoppingRule(
        limits["n_clusters"], limits["max_leaf_size"], limits["max_depth"]
    )


def check_margins(
    estimator: Margins,
    kinds: tuple[Kind, ...],
    strengths: tuple[float, float],
    n_children: int,
    center: Center = "node",
) -> MaxMarginSplitter:
    """Return the splitter that the parameters describe; the strengths are alpha and beta."""
    check_choice("center", center, CENTERS)
    check_choice("penalty", estimator.penalty, kinds)
    check_choice("units", estimator.units, UNITS)
    check_choice("solver", estimator.solver, SOLVERS)
    alpha, beta = (
        check_strength(name, value)
        for name, value in zip(("alpha", "beta"), strengths, strict=True)
    )
    return MaxMarginSplitter(
        Regularizer(estimator.penalty, alpha, beta, estimator.units == "relative"),
        check_balance(estimator.balance, n_children),
        check_count("n_init", estimator.n_init, least=1),
        estimator.solver,
        check_strength("tol", estimator.tol),
        center,
    )


def check_sparsity(estimator: Refining) -> Sparsity:
    """Return how few features rules use, or raise where parameters contradict each other."""
    _check_choices(estimator)
    alpha, beta, most = estimator.alpha, estimator.beta, estimator.max_features
    strength = None if alpha is None else check_strength("alpha", alpha)
    rival = strength if beta is None else check_strength("beta", beta)
    if most is not None:
        most = check_count("max_features", most, least=1)
        if not estimator.refine or alpha is not None or estimator.penalty not in SPARSE:
            raise ValueError(
                f"max_features={most} takes refine=True, alpha=None and a penalty that holds "
                f"down all features, {' or '.join(map(repr, SPARSE))}; got "
                f"refine={estimator.refine}, alpha={alpha}, penalty={estimator.penalty!r}"
            )
    # An l2 penalty leaves no feature out, however strong it is; in "exclusive" beta is all.
    given = beta if estimator.penalty == "exclusive" else alpha
    is_fixed = given is not None or estimator.penalty == "l2"
    own = DENSE_STRENGTH if strength is None and is_fixed else strength
    return Sparsity(
        Regularizer(
            estimator.penalty,
            1.0 if own is None else own,
            1.0 if rival is None else rival,
            estimator.units == "relative",
        ),
        is_fixed,
        most,
    )


def _check_choices(estimator: Refining) -> None:
    if not isinstance(estimator.refine, bool | np.bool_):
        raise TypeError(f"refine must be True or False, got {estimator.refine!r}")
    check_choice("center", estimator.center, CENTERS)
    check_choice("penalty", estimator.penalty, KINDS)
    check_choice("units", estimator.units, UNITS)
    check_choice("solver", estimator.solver, SOLVERS)
    if estimator.units == "raw" and estimator.alpha is None and not _needs_no_alpha(estimator):
        raise ValueError("units='raw' takes a number for alpha, got None")
    if not estimator.refine:
        return
    for name, value, usual in (
        ("center", estimator.center, "node"),
        ("solver", estimator.solver, "auto"),
    ):
        if value != usual:
            raise ValueError(f"{name}={value!r} takes refine=False; it has no effect otherwise")


def _needs_no_alpha(estimator: Refining) -> bool:
    return bool(estimator.penalty == "exclusive" and estimator.beta is not None)
