"""The methods of the comparison, each as a function from rows to a hierarchy.

Settings are what a method is given beside the rows, the number of clusters, the branching and
the seed. A method with a grid is run with each of its settings under the paper's protocol;
without labels, every method has its defaults alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, Protocol, final

import numpy as np

from taxarbor._types import Array, IndexArray
from taxarbor.bench._variants import fit_variant
from taxarbor.estimators import HMMC, MMC, HierarchicalKMeans, HierarchicalSpectral
from taxarbor.hierarchy import Hierarchy, HierarchyBuilder

Settings = Mapping[str, Any]
Family = Literal["flat", "bottom-up", "top-down", "ours"]

GRID = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""The paper's choices of alpha and of beta."""

STRENGTHS = ("alpha", "beta")

PAPER = {
    "refine": False,
    "n_init": 1,
    "units": "raw",
    "balance": [0.9, 1.1],
    "center": "data",
}
"""The paper's setting of HMMC: greedy, from one start; penalties in the units of the data,
children within a tenth of an equal share, one origin for all nodes."""

CENTRES = 10
"""Of k-means before Ward's method, as a multiple of the number of clusters."""


class Fit(Protocol):
    """How a method makes a hierarchy."""

    def __call__(
        self, X: Array, n_clusters: int, branching: int, seed: int, settings: Settings
    ) -> Hierarchy: ...


@final
@dataclass(frozen=True, slots=True)
class Method:
    """One row of the comparison.

    Attributes
    ----------
    name : str
        As in the paper's tables.
    family : str
        Flat, bottom-up, top-down, or ours.
    fit : callable
        From rows to a hierarchy.
    grid : tuple of mappings
        Settings to choose from with the labels, the paper's way. Without labels settings are
        empty: whatever the method does by default.
    is_random : bool
        Whether the result depends on the seed.
    branches : bool
        Whether it makes trees of any number of children per split.
    cost : float
        Rough seconds for 30,000 rows and 50 clusters: for the time left, and who goes first.
    """

    name: str
    family: Family
    fit: Fit
    grid: tuple[Settings, ...] = ({},)
    is_random: bool = True
    branches: bool = True
    cost: float = 1.0

    @property
    def is_slow(self) -> bool:
        """Whether it looks at all pairs of rows."""
        return self.cost >= 20.0


def _from_sklearn(name: str) -> Fit:
    def fit(
        X: Array, n_clusters: int, branching: int, seed: int, settings: Settings
    ) -> Hierarchy:
        from sklearn import cluster

        model = getattr(cluster, name)(n_clusters, random_state=seed, **settings)
        return Hierarchy.from_sklearn(model.fit(X))

    return fit


def _flat(make: Callable[..., Any]) -> Fit:
    """Return a method that makes all clusters in one split."""

    def fit(
        X: Array, n_clusters: int, branching: int, seed: int, settings: Settings
    ) -> Hierarchy:
        tree: Hierarchy = make(n_clusters, random_state=seed, **settings).fit(X).hierarchy_
        return tree

    return fit


def _spectral(n_clusters: int, **settings: Any) -> HierarchicalSpectral:
    return HierarchicalSpectral(n_clusters, branching=n_clusters, **settings)


def _bottom_up(name: str, how: Literal["single", "average", "complete", "ward"]) -> Method:
    def fit(
        X: Array, n_clusters: int, branching: int, seed: int, settings: Settings
    ) -> Hierarchy:
        from scipy.cluster.hierarchy import linkage

        return Hierarchy.from_linkage(linkage(X, how), n_clusters)

    return Method(name, "bottom-up", fit, is_random=False, branches=False, cost=90.0)


def _top_down(make: Callable[..., Any], **fixed: Any) -> Fit:
    def fit(
        X: Array, n_clusters: int, branching: int, seed: int, settings: Settings
    ) -> Hierarchy:
        model = make(
            n_clusters, branching=branching, random_state=seed, **{**fixed, **settings}
        )
        tree: Hierarchy = model.fit(X).hierarchy_
        return tree

    return fit


def _centres_then_ward(
    X: Array, n_clusters: int, branching: int, seed: int, settings: Settings
) -> Hierarchy:
    """Return Ward's tree of the centres of k-means; rows follow their centre."""
    from scipy.cluster.hierarchy import linkage
    from sklearn.cluster import KMeans

    size = max(min(CENTRES * n_clusters, len(X) // 3), n_clusters)
    model = KMeans(size, n_init=1, random_state=seed, **settings).fit(X)
    # A centre without rows, where rows are equal, would be a leaf without rows.
    used, centre_of = np.unique(model.labels_, return_inverse=True)
    merges = linkage(model.cluster_centers_[used], "ward")
    return _expand(Hierarchy.from_linkage(merges, n_clusters), centre_of)


def _expand(tree: Hierarchy, row_of: IndexArray) -> Hierarchy:
    """Return the same tree with several rows in place of each of its own."""
    builder = HierarchyBuilder(len(row_of))
    nodes = np.arange(tree.n_nodes)
    inner = [node for node in nodes if not tree.is_leaf(node)]
    for node in sorted(inner, key=lambda one: tree.children(one)[0]):  # numbered as they were
        side = np.zeros(len(tree.order), dtype=np.intp)
        for turn, child in enumerate(tree.children(node)):
            side[tree.rows(child)] = turn
        builder.add_split(int(node), side[row_of[builder.rows(int(node))]])
    return builder.freeze()


def _grid(**choices: tuple[float, ...]) -> tuple[Settings, ...]:
    values = product(*choices.values())
    return tuple({**PAPER, **dict(zip(choices, chosen, strict=True))} for chosen in values)


_TEN: tuple[Settings, ...] = ({"n_init": 10},)
_ALPHA, _BETA = _grid(alpha=GRID), _grid(beta=GRID)
_OF_FLAT = ("units", "balance", "alpha")
_FLAT = tuple({key: one[key] for key in _OF_FLAT} for one in _ALPHA)

METHODS = {
    method.name: method
    for method in (
        Method("KM", "flat", _from_sklearn("KMeans"), _TEN, branches=False, cost=15.0),
        Method("SC", "flat", _flat(_spectral), branches=False, cost=40.0),
        Method("MMC", "flat", _flat(MMC), _FLAT, branches=False, cost=6.0),
        _bottom_up("SL", "single"),
        _bottom_up("AL", "average"),
        _bottom_up("CL", "complete"),
        _bottom_up("Ward", "ward"),
        Method("BKM", "top-down", _from_sklearn("BisectingKMeans"), branches=False, cost=0.2),
        Method("HKM", "top-down", _top_down(HierarchicalKMeans, criterion="compact"), _TEN),
        Method(
            "HSC", "top-down", _top_down(HierarchicalSpectral, criterion="compact"), cost=20
        ),
        Method("HKM-D", "top-down", _top_down(HierarchicalKMeans), _TEN, cost=3.0),
        Method("HSC-D", "top-down", _top_down(HierarchicalSpectral), cost=30.0),
        Method("HMMC", "ours", _top_down(HMMC), _grid(alpha=GRID, beta=GRID), cost=0.3),
        Method("HMMC-G", "ours", _top_down(HMMC, penalty="group"), _ALPHA, cost=0.3),
        Method("HMMC-E", "ours", _top_down(HMMC, penalty="exclusive"), _BETA, cost=0.3),
        Method("HMMC-1", "ours", _top_down(HMMC, penalty="l1"), _ALPHA, cost=0.3),
        Method("HMMC-2", "ours", _top_down(HMMC, penalty="l2"), _ALPHA, cost=0.3),
    )
}
"""Every row of the paper's Table 1, with Ward and scikit-learn's bisecting k-means added."""

OTHERS = {
    method.name: method
    for method in (
        Method("KM+Ward", "top-down", _centres_then_ward, branches=False, cost=5.0),
        Method("variant", "ours", fit_variant, cost=2.0),
    )
}
"""What only the page on the defaults has: a rival, and HMMC with one choice made otherwise."""


def find_method(name: str) -> Method:
    """Return a method of the comparison, or another, by its name."""
    return METHODS[name] if name in METHODS else OTHERS[name]
