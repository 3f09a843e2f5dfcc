"""What missing values and outliers cost: cells blanked at random, and rows added far away.

No method sees a class. There are as many clusters as classes for each method.
"""

import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import AgglomerativeClustering
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.preprocessing import StandardScaler

from experiments.baselines import HierarchicalKMeans
from experiments.data import BUNDLED, list_datasets, open_dataset
from experiments.tables import mean_of, percent, table, write_between
from taxarbor import GrowthWarning, TableWarning, Taxarbor

Rows: TypeAlias = NDArray[Any]

MAX_ROWS = 2000
"""Rows of each set: KNNImputer compares all pairs of them."""
N_SEEDS = 3
BLANKED = (0.05, 0.2, 0.5)
"""Shares of the cells that are blanked."""
PLANTED = (0.001, 0.01, 0.05)
"""Outliers, as shares of the rows."""
FAR = 1e5
"""Distance of outliers, in standard deviations."""
BEGIN, END = "<!-- numbers: written by make robustness -->", "<!-- end of numbers -->"


class Known(NamedTuple):
    """Rows, the class of each, and the number of classes."""

    name: str
    X: Rows
    y: Rows
    k: int


def write_robustness(
    folder: Path | None, page: Path, n_seeds: int = N_SEEDS, max_rows: int = 0
) -> Path:
    """Write the tables to a page: between two marks, if it has them, else alone."""
    sets = list(all_sets(folder, max_rows or MAX_ROWS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrowthWarning)  # few complete rows, many outliers
        warnings.simplefilter("ignore", TableWarning)
        parts = [*_missing_values(sets, n_seeds), *_outliers(sets, n_seeds)]
    return write_between(page, BEGIN, "\n\n".join(parts), END)


def all_sets(folder: Path | None, max_rows: int) -> Iterator[Known]:
    """Yield those of a folder, the bundled one, and those of scikit-learn."""
    names = [] if folder is None else list_datasets(folder)
    for name, where in [*((name, folder) for name in names), (BUNDLED, None)]:
        data = open_dataset(name, "none", max_rows, where)
        yield Known(name, data.X, data.y, data.n_classes)
    for told, load in (("wine", load_wine), ("breast cancer", load_breast_cancer)):
        X, y = load(return_X_y=True)
        yield Known(told, StandardScaler().fit_transform(X), y, len(set(y)))
    X, y = load_digits(return_X_y=True)
    yield Known("digits", X[:max_rows], y[:max_rows], 10)


def blank(X: Rows, share: float, seed: int) -> Rows:
    """Return rows with missing values at random; every column keeps a value."""
    rng = np.random.default_rng(seed)
    is_gap = rng.random(X.shape) < share
    is_gap[rng.integers(len(X), size=X.shape[1]), np.arange(X.shape[1])] = False
    return np.where(is_gap, np.array(np.nan, dtype=X.dtype), X)


FILLS: dict[str, Callable[[Rows], Rows]] = {
    "Taxarbor": lambda X: X,
    "SimpleImputer": SimpleImputer().fit_transform,
    "KNNImputer": KNNImputer().fit_transform,
}
"""How missing values are imputed before a fit."""
HEADINGS = ["complete data", *FILLS, "enough complete rows", "complete rows"]


METHODS: dict[str, Callable[[int, int], Any]] = {
    "Taxarbor": lambda k, seed: Taxarbor(k, random_state=seed),
    "top-down k-means": lambda k, seed: HierarchicalKMeans(k, random_state=seed),
    "Ward": lambda k, seed: AgglomerativeClustering(k),
}


def _ari(data: Known, X: Rows, seed: int, method: str = "Taxarbor") -> float:
    """Fit rows, the last of which may have no class, and compare the others."""
    labels = METHODS[method](data.k, seed).fit_predict(X)
    return float(adjusted_rand_score(data.y, labels[: len(data.y)]))


def _missing_values(sets: list[Known], n_seeds: int) -> Iterator[str]:
    """Yield the means over sets for each share of missing values."""
    whole = [[_ari(data, data.X, seed) for seed in range(n_seeds)] for data in sets]
    lines = []
    for share in BLANKED:
        scores: dict[str, list[list[float]]] = {name: [] for name in FILLS}
        complete: list[tuple[list[float], float]] = []
        for data in sets:
            rows = [blank(data.X, share, seed) for seed in range(n_seeds)]
            for name, fill in FILLS.items():
                scores[name].append([_ari(data, fill(X), seed) for seed, X in enumerate(rows)])
            complete.append(_dropped(data, rows))
        means = [_over(whole), *(_over(values) for values in scores.values())]
        used = f"{sum(bool(values) for values, _ in complete)} of {len(sets)} sets"
        left = float(np.mean([left for _, left in complete]))
        lines.append([f"{100 * share:g} %", *means, used, f"{100 * left:.1f} %"])
    yield "### Missing values"
    yield table(["missing cells", *HEADINGS], lines)


def _dropped(data: Known, rows: list[Rows]) -> tuple[list[float], float]:
    """Return the ARI of complete rows, where they are enough for a fit, and their share."""
    found, shares = [], []
    for seed, X in enumerate(rows):
        kept = ~np.isnan(X).any(axis=1)
        shares.append(float(kept.mean()))
        if kept.sum() >= 2 * data.k:
            found.append(_ari(data._replace(y=data.y[kept]), X[kept], seed))
    return (found if len(found) == len(rows) else []), float(np.mean(shares))


def _over(found: list[list[float]]) -> str:
    """Return the mean over sets, and its spread over seeds."""
    return percent(mean_of(np.mean(found, axis=0).tolist()), 1)


def _far(X: Rows, n: int, rng: np.random.Generator, spreads: float = FAR) -> Rows:
    """Return rows that are far away in all columns, each in a direction of its own."""
    away = rng.standard_normal((n, X.shape[1]))
    return np.asarray(X.mean(axis=0) + spreads * X.std() * away, dtype=X.dtype)


def _slipped(
    X: Rows, n: int, rng: np.random.Generator, spreads: float = FAR, together: bool = False
) -> Rows:
    """Return rows like the others but for one cell, which may be in the same column for all."""
    drawn = X[rng.integers(len(X), size=n)]
    places = rng.integers(X.shape[1], size=1 if together else n)
    drawn[np.arange(n), places] += spreads * X.std() * rng.standard_normal(n)
    return drawn


KINDS: dict[str, Callable[..., Rows]] = {
    "1e5 std in all columns": _far,
    "1e5 std in one cell": _slipped,
    "10 std in all columns": partial(_far, spreads=10.0),
    "100 std in the same column": partial(_slipped, spreads=100.0, together=True),
}


def _outliers(sets: list[Known], n_seeds: int) -> Iterator[str]:
    """Yield the means over sets of all methods, then the loss of ours on each set."""
    means = []
    worst = {(kind, data.name): 0.0 for kind in KINDS for data in sets}
    without = {
        name: [[_ari(data, data.X, seed, name) for seed in range(n_seeds)] for data in sets]
        for name in METHODS
    }
    means.append(["none", "0 %", *(_over(got) for got in without.values())])
    for kind, plant in KINDS.items():
        for share in PLANTED:
            found: dict[str, list[list[float]]] = {name: [] for name in METHODS}
            for at, data in enumerate(sets):
                n = max(round(share * len(data.X)), 1)
                rows = [
                    np.vstack([data.X, plant(data.X, n, np.random.default_rng(seed))])
                    for seed in range(n_seeds)
                ]
                for name, got in found.items():
                    got.append([_ari(data, X, seed, name) for seed, X in enumerate(rows)])
                loss = np.subtract(without["Taxarbor"][at], found["Taxarbor"][-1])
                worst[kind, data.name] = max(worst[kind, data.name], float(loss.mean()))
            told = [_over(got) for got in found.values()]
            means.append([kind, f"{100 * share:g} %", *told])
    yield "### Outliers"
    yield table(["outliers", "of the rows", *METHODS], means)
    yield "The largest loss of `Taxarbor` on each data set, in points, mean over seeds."
    lines = [
        [data.name, *(f"{100 * worst[kind, data.name]:.1f}" for kind in KINDS)] for data in sets
    ]
    yield table(["data", *KINDS], lines)
