"""The number of clusters: the suggestion for generated data, and on data with known classes.

No method sees a class. The silhouette and the gap statistic choose among k-means clusterings.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score

from experiments.data import list_datasets, open_dataset
from experiments.tables import table, write_between
from taxarbor import GrowthWarning, Taxarbor

Rows: TypeAlias = NDArray[Any]

MAX_ROWS = 1000
NUMBERS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30, 40, 50)
"""Numbers of clusters that k-means is run with; Taxarbor looks at all from 1 to 50."""
N_REFERENCES = 5
N_DRAWS = 10
PLANTED, SEPARATION = (3, 7, 12, 20), 6.0
BEGIN, END = "<!-- numbers: written by make stability -->", "<!-- end of numbers -->"


def write_stability(
    folder: Path | None, page: Path, n_seeds: int = 1, max_rows: int = 0
) -> Path:
    """Write the table to a page: between two marks, if it has them, else alone."""
    kinds: list[int | str] = [*PLANTED, *NOISE]
    known = table(
        ["data", "clusters", "suggested", "correct"],
        [_known(kind, 1 if max_rows else N_DRAWS) for kind in kinds],
    )
    found = table(
        ["data set", "rows", "features", "classes", "suggested", "silhouette", "gap statistic"],
        [_line(folder, name, n_seeds, max_rows or MAX_ROWS) for name in list_datasets(folder)],
    )
    return write_between(page, BEGIN, f"{known}\n\n{found}", END)


def plant(n_leaves: int, seed: int, n_rows: int = 1000, n_features: int = 20) -> Rows:
    """Draw rows from a random tree: leaves are split until there are enough, the highest first.

    Children lie apart in a direction of their own, the farther the higher they are.
    """
    rng = np.random.default_rng(seed)
    centers, depths = [np.zeros(n_features)], [0]
    while len(centers) < n_leaves:
        chosen = int(rng.choice(np.flatnonzero(np.array(depths) == min(depths))))
        direction = rng.standard_normal(n_features)
        center, depth = centers.pop(chosen), depths.pop(chosen)
        shift = SEPARATION / 2 * 2.0 ** (max(0, 4 - depth) / 2)
        shift = shift * direction / np.linalg.norm(direction)
        centers += [center + shift, center - shift]
        depths += [depth + 1, depth + 1]
    labels = rng.permutation(np.arange(n_rows) * n_leaves // n_rows)
    return np.asarray(np.stack(centers)[labels] + rng.standard_normal((n_rows, n_features)))


def _correlated(rng: np.random.Generator, shape: tuple[int, int]) -> Rows:
    mixed = rng.standard_normal((shape[1], shape[1])) * np.logspace(0, 1, shape[1])
    return rng.standard_normal(shape) @ mixed


NOISE: dict[str, Callable[[np.random.Generator, tuple[int, int]], Rows]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.random(shape),
    "correlated normal": _correlated,
    "Student's t, 3 degrees of freedom": lambda rng, shape: rng.standard_t(3, shape),
}
"""Rows without clusters."""


def _known(kind: int | str, n_seeds: int) -> list[str]:
    """Return a line on rows whose number of clusters is known."""
    n_right, told, n_clusters = 0, "planted tree", 1
    found = []
    for seed in range(n_seeds):
        if isinstance(kind, int):
            X, n_clusters = plant(kind, seed), kind
        else:
            X, told = NOISE[kind](np.random.default_rng(1000 + seed), (500, 8)), kind
        found.append(_suggested(X, seed))
        n_right += found[-1] == n_clusters
    numbers = sorted(set(found))
    return [told, f"{n_clusters}", ", ".join(map(str, numbers)), f"{n_right} of {n_seeds}"]


def _suggested(X: Rows, seed: int) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", GrowthWarning)
        return Taxarbor("auto", random_state=seed).fit(X).taxonomy_.tree.n_leaves


def _line(folder: Path | None, name: str, n_seeds: int, max_rows: int) -> list[str]:
    data = open_dataset(name, "none", max_rows, folder)
    suggested, silhouettes, gaps = [], [], []
    for seed in range(n_seeds):
        suggested.append(_suggested(data.X, seed))
        fits = [KMeans(k, n_init=1, random_state=seed).fit(data.X) for k in NUMBERS]
        silhouettes.append(by_silhouette(data.X, fits))
        gaps.append(by_gap(data.X, fits, seed))
    told = (", ".join(map(str, numbers)) for numbers in (suggested, silhouettes, gaps))
    return [name, f"{len(data.X):,}", f"{data.X.shape[1]:,}", f"{data.n_classes}", *told]


def by_silhouette(X: Rows, fits: list[KMeans]) -> int:
    """Return the number of clusters, at least 2, with the highest mean silhouette."""
    scores = [silhouette_score(X, fit.labels_) for fit in fits[1:]]
    return int(fits[1:][int(np.argmax(scores))].n_clusters)


def by_gap(X: Rows, fits: list[KMeans], seed: int) -> int:
    """Return the first number whose gap is within an error of the next one's.

    The reference is uniform in the box of the principal coordinates (Tibshirani et al., 2001);
    the largest number is returned where the gap goes on growing.
    """
    rng = np.random.default_rng(seed)
    centre = X.mean(axis=0)
    directions = np.linalg.svd(X - centre, full_matrices=False)[2]
    Z = (X - centre) @ directions.T
    logs = []
    for _ in range(N_REFERENCES):
        drawn = rng.uniform(Z.min(axis=0), Z.max(axis=0), Z.shape).astype(X.dtype)
        again = (KMeans(fit.n_clusters, n_init=1, random_state=seed) for fit in fits)
        logs.append([np.log(one.fit(drawn).inertia_) for one in again])
    gap = np.mean(logs, axis=0) - np.log([fit.inertia_ for fit in fits])
    error = np.std(logs, axis=0) * np.sqrt(1.0 + 1.0 / N_REFERENCES)
    is_enough = np.flatnonzero(gap[:-1] >= gap[1:] - error[1:])
    return int(fits[int(is_enough[0]) if len(is_enough) else -1].n_clusters)
