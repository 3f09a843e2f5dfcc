"""Parameters that several estimators have, checked in one place."""

from typing import Any, Protocol

from taxarbor.data import check_balance, check_choice, check_count, check_strength
from taxarbor.grow import StoppingRule
from taxarbor.split import Center, Kind, MaxMarginSplitter, Regularizer, SolverName

UNITS = ("relative", "raw")
SOLVERS = ("auto", "newton", "pqn")
CENTERS = ("node", "data")


class Growing(Protocol):
    """An estimator that says how far a tree grows."""

    n_clusters: int | None
    branching: int
    max_leaf_size: int | None
    max_depth: int | None


class Margins(Protocol):
    """An estimator that splits by margins."""

    penalty: Any
    alpha: float
    units: Any
    balance: float | tuple[float, float] | None
    n_init: int
    solver: SolverName
    tol: float


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
    beta: float,
    n_children: int,
    center: Center = "node",
) -> MaxMarginSplitter:
    """Return the splitter that the parameters describe."""
    check_choice("center", center, CENTERS)
    check_choice("penalty", estimator.penalty, kinds)
    check_choice("units", estimator.units, UNITS)
    check_choice("solver", estimator.solver, SOLVERS)
    alpha = check_strength("alpha", estimator.alpha)
    return MaxMarginSplitter(
        Regularizer(estimator.penalty, alpha, beta, estimator.units == "relative"),
        check_balance(estimator.balance, n_children),
        check_count("n_init", estimator.n_init, least=1),
        estimator.solver,
        check_strength("tol", estimator.tol),
        center,
    )
