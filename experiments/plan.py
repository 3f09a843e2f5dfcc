"""Which jobs the paper's experiment needs. Its parts share jobs; each is run once."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, product
from pathlib import Path
from typing import final

from experiments.data import SCALINGS, STAND_INS, Dataset, Scaling, list_datasets, open_dataset
from experiments.methods import GRID, METHODS, STRENGTHS, Job, Method, Settings, write_settings

MULTIPLES = (1.0, 1.5, 2.0)
"""Numbers of clusters, as multiples of the number of classes (the paper's Figure 2, a to d)."""
BRANCHINGS = (2, 3, 4, 5)
"""Children per split (the paper's Figure 2, e to h)."""
SWEPT = ("KM", "SC", "MMC", "HKM", "HSC", "HKM-D", "HSC-D", "HMMC")
SWEEP_SEEDS = 2
SPARSE = ("HMMC", "HMMC-G", "HMMC-E", "HMMC-1")
SCALED = ("HKM-D", "HMMC")
"""What is run on rows scaled in every way."""
QUICK_ROWS = 1000


@final
@dataclass(frozen=True, slots=True)
class Setup:
    """What an experiment is run on."""

    folder: Path | None  # None for what is bundled
    scaling: Scaling = "none"  # before any method sees the rows
    n_seeds: int = 5  # of a method that is random
    max_rows: int = 0  # of each data set; 0 for all
    strengths: tuple[float, ...] = GRID  # of alpha and beta, out of the paper's

    @classmethod
    def quick(cls, folder: Path | None) -> "Setup":
        """Return a setup that takes minutes: to see that all works, not to learn from."""
        return cls(folder, n_seeds=1, max_rows=QUICK_ROWS, strengths=GRID[::2])

    def open(self, dataset: str) -> Dataset:
        """Return a data set as it is used here."""
        return open_dataset(dataset, self.scaling, self.max_rows, self.folder)

    def grid(self, method: Method) -> list[Settings]:
        """Return those settings of a method's grid that are to be tried."""
        return [
            settings
            for settings in method.grid
            if all(settings.get(key, self.strengths[0]) in self.strengths for key in STRENGTHS)
        ]

    def datasets(self) -> list[str]:
        """Return the stand-ins for the paper's data, with their other rows, or all data."""
        names = list_datasets(self.folder)
        stems = {name.partition("/")[0] for name in STAND_INS}
        known = [name for name in names if name.partition("/")[0] in stems]
        first = [name for name in STAND_INS if name in known]
        return [*first, *(name for name in known if name not in first)] or names

    def stand_ins(self) -> list[str]:
        """Return the stand-ins for the paper's four data sets, or all data without them."""
        names = self.datasets()
        return [name for name in names if name in STAND_INS] or names

    def tree_dataset(self) -> str:
        """Return the data set whose tree is drawn: the first whose features have names."""
        return min(self.datasets(), key=lambda name: self.open(name).feature_names is None)

    def n_classes(self, dataset: str) -> int:
        """Return the number of classes of a data set."""
        return self.open(dataset).n_classes

    def jobs(
        self,
        dataset: str,
        method: Method,
        settings: Settings,
        *,
        n_clusters: int,
        branching: int = 2,
        n_seeds: int | None = None,
    ) -> Iterator[Job]:
        """Yield the same job for each seed; one is enough where nothing is random."""
        n_seeds = self.n_seeds if n_seeds is None else n_seeds
        for seed in range(n_seeds if method.is_random or "sample" in settings else 1):
            data = dataset, self.scaling, self.max_rows
            yield Job(*data, method.name, write_settings(settings), n_clusters, branching, seed)


def plan_results(setup: Setup) -> Iterator[Job]:
    """Yield all that the page of the paper's experiment needs, each job once.

    The tree that is drawn, the paper's Figure 4, is one of the table's.
    """
    parts = (plan_table, plan_scalings, plan_sweep, plan_sparsity)
    yield from dict.fromkeys(chain.from_iterable(part(setup) for part in parts))


def plan_table(setup: Setup) -> Iterator[Job]:
    """Yield every method with each of its settings, as many clusters as classes."""
    for dataset in setup.datasets():
        n_clusters = setup.n_classes(dataset)
        for method in METHODS.values():
            tried: list[Settings] = [{}] if method.has_default else []
            tried += [settings for settings in setup.grid(method) if settings not in tried]
            for settings in tried:
                yield from setup.jobs(dataset, method, settings, n_clusters=n_clusters)


def plan_scalings(setup: Setup) -> Iterator[Job]:
    """Yield HMMC and its nearest rival on rows that are scaled in the other ways."""
    for scaling in SCALINGS:
        if scaling != setup.scaling:
            other = replace(setup, scaling=scaling)
            for dataset, name in product(setup.stand_ins(), SCALED):
                n_clusters = setup.n_classes(dataset)
                for settings in setup.grid(METHODS[name]):
                    yield from other.jobs(
                        dataset, METHODS[name], settings, n_clusters=n_clusters
                    )


def plan_sweep(setup: Setup) -> Iterator[Job]:
    """Yield the paper's Figure 2: more clusters, and more children per split."""
    for dataset, name in product(setup.stand_ins(), SWEPT):
        method = METHODS[name]
        # Spectral clusterings take long and hardly depend on the seed.
        n_seeds = min(setup.n_seeds, 1 if method.is_slow else SWEEP_SEEDS)
        shapes = sweep_shapes(method, setup.n_classes(dataset))
        for (n_clusters, branching), settings in product(shapes, setup.grid(method)):
            shape = {"n_clusters": n_clusters, "branching": branching}
            yield from setup.jobs(dataset, method, settings, **shape, n_seeds=n_seeds)


def plan_sparsity(setup: Setup) -> Iterator[Job]:
    """Yield the paper's Figure 3: the variants with all strengths at 1."""
    for dataset, name in product(setup.stand_ins(), SPARSE):
        method = METHODS[name]
        yield from setup.jobs(
            dataset, method, full_strength(method), n_clusters=setup.n_classes(dataset)
        )


def sweep_shapes(method: Method, n_classes: int) -> list[tuple[int, int]]:
    """Return the numbers of clusters and of children per split that a method is run with."""
    more_clusters = [(math.floor(multiple * n_classes), 2) for multiple in MULTIPLES]
    more_children = [(n_classes, branching) for branching in BRANCHINGS[1:]]
    return more_clusters + (more_children if method.branches else [])


def full_strength(method: Method) -> Settings:
    """Return those settings of a method's grid in which every strength is 1."""
    (settings,) = (
        settings
        for settings in method.grid
        if all(settings.get(key, 1.0) == 1.0 for key in STRENGTHS)
    )
    return settings
