"""Which jobs each part of the experiment needs. Parts share jobs; each is run once."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import final

from taxarbor.bench._datasets import SCALINGS, Scaling, list_datasets
from taxarbor.bench._jobs import Job, write_settings
from taxarbor.bench._methods import GRID, METHODS, STRENGTHS, Method, Settings
from taxarbor.bench._published import STAND_INS
from taxarbor.bench._work import open_dataset

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
    """What the experiment is run on.

    Attributes
    ----------
    folder : Path or None
        Where the data sets are; None for what is bundled.
    scaling : {"none", "unit", "standard"}
        What is done to the rows before any method sees them.
    n_seeds : int
        Seeds of a method that is random.
    max_rows : int
        Rows of each data set at most; 0 for all.
    strengths : tuple of float
        The values of alpha and beta to choose from, out of the paper's.
    """

    folder: Path | None
    scaling: Scaling = "none"
    n_seeds: int = 5
    max_rows: int = 0
    strengths: tuple[float, ...] = GRID

    @classmethod
    def quick(cls, folder: Path | None, scaling: Scaling = "none") -> "Setup":
        """Return a setup that takes minutes: to see that all works, not to learn from."""
        return cls(folder, scaling, n_seeds=1, max_rows=QUICK_ROWS, strengths=GRID[::2])

    def grid(self, method: Method) -> list[Settings]:
        """Return those settings of a method's grid that are to be tried."""
        return [
            settings
            for settings in method.grid
            if all(settings.get(key, self.strengths[0]) in self.strengths for key in STRENGTHS)
        ]

    def datasets(self) -> list[str]:
        """Return the stand-ins for the paper's data, with their other rows, or all data."""
        found = list_datasets(self.folder)
        stems = {name.partition("/")[0] for name in STAND_INS}
        known = [name for name in found if name.partition("/")[0] in stems]
        first = [name for name in STAND_INS if name in known]
        return [*first, *(name for name in known if name not in first)] or found

    def n_classes(self, dataset: str) -> int:
        """Return the number of classes of a data set."""
        return open_dataset(dataset, self.scaling, self.max_rows, self.folder).n_classes


def plan_table(setup: Setup) -> Iterator[Job]:
    """Yield every method with each of its settings, as many clusters as classes."""
    for dataset in setup.datasets():
        n_clusters = setup.n_classes(dataset)
        for method in METHODS.values():
            for settings in _distinct([{}, *setup.grid(method)]):
                yield from seeded(
                    setup,
                    dataset,
                    method,
                    settings,
                    n_clusters=n_clusters,
                    n_seeds=setup.n_seeds,
                )


def plan_scalings(setup: Setup) -> Iterator[Job]:
    """Yield HMMC and its nearest rival on rows that are scaled in the other ways."""
    for scaling in SCALINGS:
        if scaling != setup.scaling:
            other = replace(setup, scaling=scaling)
            for dataset, name in product(sweep_datasets(setup), SCALED):
                for settings in setup.grid(METHODS[name]):
                    yield from seeded(
                        other,
                        dataset,
                        METHODS[name],
                        settings,
                        n_clusters=setup.n_classes(dataset),
                        n_seeds=setup.n_seeds,
                    )


def plan_sweep(setup: Setup) -> Iterator[Job]:
    """Yield the paper's Figure 2: more clusters, and more children per split."""
    for dataset in sweep_datasets(setup):
        n_classes = setup.n_classes(dataset)
        for name in SWEPT:
            method = METHODS[name]
            # Spectral clusterings take long and hardly depend on the seed.
            n_seeds = min(setup.n_seeds, 1 if method.is_slow else SWEEP_SEEDS)
            for (n_clusters, branching), settings in product(
                sweep_shapes(method, n_classes), setup.grid(method)
            ):
                yield from seeded(
                    setup,
                    dataset,
                    method,
                    settings,
                    n_clusters=n_clusters,
                    branching=branching,
                    n_seeds=n_seeds,
                )


def plan_sparsity(setup: Setup) -> Iterator[Job]:
    """Yield the paper's Figure 3: the variants with all strengths at 1."""
    for dataset in sweep_datasets(setup):
        n_clusters = setup.n_classes(dataset)
        for name in SPARSE:
            method = METHODS[name]
            yield from seeded(
                setup,
                dataset,
                method,
                full_strength(method),
                n_clusters=n_clusters,
                n_seeds=setup.n_seeds,
            )


def plan_tree(setup: Setup) -> Iterator[Job]:
    """Yield the paper's Figure 4: one tree, its settings chosen as in the table."""
    dataset, method = tree_dataset(setup), METHODS["HMMC"]
    n_clusters = setup.n_classes(dataset)
    for settings in setup.grid(method):
        yield from seeded(setup, dataset, method, settings, n_clusters=n_clusters, n_seeds=1)


def sweep_shapes(method: Method, n_classes: int) -> list[tuple[int, int]]:
    """Return the numbers of clusters and of children per split that a method is run with."""
    more_clusters = [(math.floor(multiple * n_classes), 2) for multiple in MULTIPLES]
    more_children = [(n_classes, branching) for branching in BRANCHINGS[1:]]
    return more_clusters + (more_children if method.branches else [])


def sweep_datasets(setup: Setup) -> list[str]:
    """Return the stand-ins for the paper's four data sets, or all if there are none."""
    found = setup.datasets()
    return [name for name in found if name in STAND_INS] or found


def tree_dataset(setup: Setup) -> str:
    """Return the data set whose tree is drawn: the first with most to show of it."""

    def lacks(name: str) -> int:
        data = open_dataset(name, setup.scaling, setup.max_rows, setup.folder)
        return (data.truth is None) + (data.feature_names is None)

    return min(setup.datasets(), key=lacks)


def full_strength(method: Method) -> Settings:
    """Return those settings of a method's grid in which every strength is 1."""
    (settings,) = (
        settings
        for settings in method.grid
        if all(settings.get(key, 1.0) == 1.0 for key in STRENGTHS)
    )
    return settings


def _distinct(settings: Sequence[Settings]) -> list[Settings]:
    return list({write_settings(one): one for one in settings}.values())


def seeded(
    setup: Setup,
    dataset: str,
    method: Method,
    settings: Settings,
    *,
    n_clusters: int,
    branching: int = 2,
    n_seeds: int,
) -> Iterator[Job]:
    """Yield the same job for each seed; one is enough where nothing is random."""
    for seed in range(n_seeds if method.is_random else 1):
        yield Job(
            dataset,
            setup.scaling,
            setup.max_rows,
            method.name,
            write_settings(settings),
            n_clusters,
            branching,
            seed,
        )
