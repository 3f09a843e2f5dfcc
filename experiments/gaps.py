"""What gaps and outliers cost: cells blanked at random, and rows planted far away.

No method sees a class. As many clusters as classes, whatever the method.
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
"""Shares of the cells that are made gaps."""
PLANTED = (0.001, 0.01, 0.05)
"""Outliers, as shares of the rows."""
FAR = 1e5
"""How far outliers lie away, in spreads."""
MOST_LOSS = 2.0
"""What was asked for: points of ARI that outliers may cost."""
BEGIN, END = "<!-- numbers: written by make gaps -->", "<!-- end of numbers -->"


class Known(NamedTuple):
    """Rows, the class of each, and the number of classes."""

    name: str
    X: Rows
    y: Rows
    k: int


def write_gaps(
    folder: Path | None, page: Path, n_seeds: int = N_SEEDS, max_rows: int = 0
) -> Path:
    """Write the tables to a page: between two marks, if it has them, else alone."""
    sets = list(all_sets(folder, max_rows or MAX_ROWS))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrowthWarning)  # few complete rows, many outliers
        warnings.simplefilter("ignore", TableWarning)
        parts = [*_of_gaps(sets, n_seeds), *_of_outliers(sets, n_seeds)]
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
    """Return rows with gaps at random; every column keeps a value."""
    rng = np.random.default_rng(seed)
    is_gap = rng.random(X.shape) < share
    is_gap[rng.integers(len(X), size=X.shape[1]), np.arange(X.shape[1])] = False
    return np.where(is_gap, np.array(np.nan, dtype=X.dtype), X)


FILLS: dict[str, Callable[[Rows], Rows]] = {
    "as they are": lambda X: X,
    "SimpleImputer": SimpleImputer().fit_transform,
    "KNNImputer": KNNImputer().fit_transform,
}
"""What is done to rows with gaps before a fit."""
HEADINGS = ["no gaps", *FILLS, "complete rows only", "rows left"]


METHODS: dict[str, Callable[[int, int], Any]] = {
    "Taxarbor": lambda k, seed: Taxarbor(k, random_state=seed),
    "HierarchicalKMeans": lambda k, seed: HierarchicalKMeans(k, random_state=seed),
    "Ward": lambda k, seed: AgglomerativeClustering(k),
}


def _ari(data: Known, X: Rows, seed: int, method: str = "Taxarbor") -> float:
    """Fit rows, the last of which may have no class, and compare the others."""
    labels = METHODS[method](data.k, seed).fit_predict(X)
    return float(adjusted_rand_score(data.y, labels[: len(data.y)]))


def _of_gaps(sets: list[Known], n_seeds: int) -> Iterator[str]:
    """Yield the means over sets, then each set, for each share of gaps."""
    whole = {data.name: [_ari(data, data.X, seed) for seed in range(n_seeds)] for data in sets}
    means, parts = [], []
    for share in BLANKED:
        lines: list[list[str]] = []
        found: dict[str, list[list[float]]] = {name: [] for name in FILLS}
        complete: list[tuple[list[float], float]] = []
        for data in sets:
            rows = [blank(data.X, share, seed) for seed in range(n_seeds)]
            cells = []
            for name, fill in FILLS.items():
                got = [_ari(data, fill(X), seed) for seed, X in enumerate(rows)]
                found[name].append(got)
                cells.append(percent(mean_of(got), 1))
            complete.append(_dropped(data, rows))
            got, left = complete[-1]
            cells += [percent(mean_of(got), 1), f"{100 * left:.1f} %"]
            lines.append([data.name, percent(mean_of(whole[data.name]), 1), *cells])
        told = [_over(list(whole.values())), *(_over(got) for got in found.values())]
        used = f"{sum(bool(got) for got, _ in complete)} of {len(sets)} sets"
        left = float(np.mean([left for _, left in complete]))
        means.append([f"{100 * share:g} %", *told, used, f"{100 * left:.1f} %"])
        part = table(["data", *HEADINGS], lines)
        parts.append(f"#### {100 * share:g} % of the cells\n\n{part}")
    yield "### Gaps"
    yield table(["cells blanked", *HEADINGS], means)
    yield from parts


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
    "far in all columns": _far,
    "far in one cell": _slipped,
    "ten spreads away": partial(_far, spreads=10.0),
    "in one column": partial(_slipped, spreads=100.0, together=True),
}


def _of_outliers(sets: list[Known], n_seeds: int) -> Iterator[str]:
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
    yield (
        f"The largest loss of `Taxarbor`, in points, mean over seeds; asked: {MOST_LOSS:g} at "
        "most, of those that are far."
    )
    lines = [
        [data.name, *(f"{100 * worst[kind, data.name]:.1f}" for kind in KINDS)] for data in sets
    ]
    yield table(["data", *KINDS], lines)
