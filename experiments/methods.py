"""The methods of the comparison, each as a function from rows to a taxonomy, and one fit.

Settings are what a method is given beside the rows, the number of clusters, the branching and
the seed. A method with a grid is run with each of its settings under the paper's protocol;
without labels, a method has its defaults alone.

Every method takes the setting ``sample`` as well. The rows are then halved at random: one half,
or with a number so many rows of it per cluster, is fitted. The other half is new: its rows are
placed by the rules of the tree, at the best score (clusters without rules), or at the nearest
mean of a leaf, and scored by themselves, as the measures ``new_...``.
"""

import gc
import json
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from itertools import product
from pathlib import Path
from typing import Any, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin

from experiments.baselines import (
    MMC,
    HierarchicalKMeans,
    HierarchicalSpectral,
    read_bisecting_kmeans,
    read_kmeans,
)
from experiments.data import Dataset, Scaling, open_dataset
from experiments.variants import estimator_seed, fit_variant
from taxarbor import HMMC, Taxarbor, Taxonomy
from taxarbor.exchange import from_linkage
from taxarbor.metrics import tree_scores
from taxarbor.sources import draw_rows
from taxarbor.tree import Tree, TreeBuilder

Settings = Mapping[str, Any]
Family = Literal["flat", "bottom-up", "top-down", "ours"]

GRID = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""The paper's choices of alpha and of beta."""

STRENGTHS = ("alpha", "beta")

PAPER = {"n_init": 1, "units": "raw", "balance": [0.9, 1.1], "center": "data"}
"""The paper's setting: one start; penalties in the units of the data, children within a tenth
of an equal share, one origin for all nodes."""

CENTRES = 10
"""Of k-means before Ward's method, as a multiple of the number of clusters."""

SHORT = 2
"""Features of a rule, between two children, that is read at a glance."""

DONE = "done"


class Job(NamedTuple):
    """What identifies a fit. Settings are JSON text, so that jobs compare and hash.

    Equal jobs have equal results, to the last bit, on one machine.
    """

    dataset: str
    scaling: Scaling
    max_rows: int  # 0 for all
    method: str
    settings: str
    n_clusters: int
    branching: int
    seed: int


class Outcome(NamedTuple):
    """What came of a job: done, timed out, or why it failed.

    With the time of the fit, its memory beyond the data, and, if done, the
    measures and the shape of the tree.
    """

    status: str
    seconds: float
    peak_mb: float
    measures: dict[str, float]


Fit = Callable[[Any, Job, Settings], Taxonomy]
"""From rows to a taxonomy, of the size and seed of a job."""


@final
@dataclass(frozen=True, slots=True)
class Method:
    """One row of the comparison."""

    name: str  # as in the paper's tables
    family: Family
    fit: Fit
    grid: tuple[Settings, ...] = ({},)  # to choose from with the labels, the paper's way
    has_default: bool = True  # also run as it comes, for users without labels
    is_random: bool = True
    branches: bool = True  # makes trees of any number of children per split
    cost: float = 1.0  # rough seconds for 30,000 rows, 50 clusters: who goes first

    @property
    def is_slow(self) -> bool:
        """Whether it looks at all pairs of rows."""
        return self.cost >= 20.0


def _kmeans(X: Any, job: Job, settings: Settings) -> Taxonomy:
    from sklearn.cluster import KMeans

    return read_kmeans(KMeans(job.n_clusters, random_state=job.seed, **settings).fit(X))


def _bisecting(X: Any, job: Job, settings: Settings) -> Taxonomy:
    from sklearn.cluster import BisectingKMeans

    model = BisectingKMeans(job.n_clusters, random_state=job.seed, **settings)
    return read_bisecting_kmeans(model.fit(X))


def _spectral(n_clusters: int, **settings: Any) -> HierarchicalSpectral:
    return HierarchicalSpectral(n_clusters, branching=n_clusters, **settings)


def _bottom_up(
    name: str, linkage_name: Literal["single", "average", "complete", "ward"]
) -> Method:
    def fit(X: Any, job: Job, settings: Settings) -> Taxonomy:
        from scipy.cluster.hierarchy import linkage

        return from_linkage(linkage(X, linkage_name), job.n_clusters)

    return Method(name, "bottom-up", fit, is_random=False, branches=False, cost=90.0)


def _estimator(make: Callable[..., Any], **fixed: Any) -> Fit:
    """Return the fit of an estimator, with the branching of the job where it has one."""
    has_branching = "branching" in signature(make).parameters

    def fit(X: Any, job: Job, settings: Settings) -> Taxonomy:
        shape = {"branching": job.branching} if has_branching else {}
        options = {"random_state": job.seed, **shape, **fixed, **settings}
        taxonomy: Taxonomy = make(job.n_clusters, **options).fit(X).taxonomy_
        return taxonomy

    return fit


def _centres_then_ward(X: Any, job: Job, settings: Settings) -> Taxonomy:
    """Return Ward's tree of the centres of k-means; rows follow their centre."""
    from scipy.cluster.hierarchy import linkage
    from sklearn.cluster import KMeans

    size = max(min(CENTRES * job.n_clusters, len(X) // 3), job.n_clusters)
    model = KMeans(size, n_init=1, random_state=job.seed, **settings).fit(X)
    # A centre without rows, where rows are equal, would be a leaf without rows.
    used, centre_of = np.unique(model.labels_, return_inverse=True)
    merges = linkage(model.cluster_centers_[used], "ward")
    return _expand(from_linkage(merges, job.n_clusters).tree, centre_of)


def _variant(X: Any, job: Job, settings: Settings) -> Taxonomy:
    return fit_variant(X, job.n_clusters, job.seed, settings)


def _expand(tree: Tree, row_of: NDArray[np.intp]) -> Taxonomy:
    """Return the same tree, without rules, with several rows in place of each of its own."""
    builder = TreeBuilder(len(row_of))
    nodes = np.arange(tree.n_nodes)
    inner = [node for node in nodes if not tree.is_leaf(node)]
    for node in sorted(inner, key=lambda one: tree.children(one)[0]):  # numbered as they were
        side = np.zeros(tree.sizes[0], dtype=np.intp)
        for turn, child in enumerate(tree.children(node)):
            side[tree.rows(child)] = turn
        sides = side[row_of[builder.rows(int(node))]]
        builder.add_split(int(node), sides, None)
    return Taxonomy(builder.freeze())


def _grid(fixed: Settings, **choices: tuple[float, ...]) -> tuple[Settings, ...]:
    values = product(*choices.values())
    return tuple({**fixed, **dict(zip(choices, chosen, strict=True))} for chosen in values)


def _papers(name: str, penalty: str, **choices: tuple[float, ...]) -> Method:
    """Return a variant of the paper's method: its settings are chosen by the labels."""
    fit, grid = _estimator(HMMC, penalty=penalty), _grid(PAPER, **choices)
    return Method(name, "ours", fit, grid, has_default=False, cost=0.3)


_TEN: tuple[Settings, ...] = ({"n_init": 10},)
_FLAT = _grid({key: PAPER[key] for key in ("units", "balance")}, alpha=GRID)

METHODS = {
    method.name: method
    for method in (
        Method("KM", "flat", _kmeans, _TEN, branches=False, cost=15.0),
        Method("SC", "flat", _estimator(_spectral), branches=False, cost=40.0),
        Method("MMC", "flat", _estimator(MMC), _FLAT, branches=False, cost=6.0),
        _bottom_up("SL", "single"),
        _bottom_up("AL", "average"),
        _bottom_up("CL", "complete"),
        _bottom_up("Ward", "ward"),
        Method("BKM", "top-down", _bisecting, branches=False, cost=0.2),
        Method("HKM", "top-down", _estimator(HierarchicalKMeans, criterion="compact"), _TEN),
        Method(
            "HSC", "top-down", _estimator(HierarchicalSpectral, criterion="compact"), cost=20
        ),
        Method("HKM-D", "top-down", _estimator(HierarchicalKMeans), _TEN, cost=3.0),
        Method("HSC-D", "top-down", _estimator(HierarchicalSpectral), cost=30.0),
        _papers("HMMC", "group+exclusive", alpha=GRID, beta=GRID),
        _papers("HMMC-G", "group", alpha=GRID),
        _papers("HMMC-E", "exclusive", beta=GRID),
        _papers("HMMC-1", "l1", alpha=GRID),
        _papers("HMMC-2", "l2", alpha=GRID),
        Method("Taxarbor", "ours", _estimator(Taxarbor), (), cost=1.0),
    )
}
"""Every row of the paper's Table 1, with Ward, scikit-learn's bisecting k-means and ours."""

OTHERS = {
    method.name: method
    for method in (
        Method("KM+Ward", "top-down", _centres_then_ward, branches=False, cost=5.0),
        Method("variant", "ours", _variant, branches=False, cost=1.0),
    )
}
"""What only the page on the defaults has: a rival, and Taxarbor with one choice otherwise."""


def find_method(name: str) -> Method:
    """Return a method of the comparison, or another, by its name."""
    return METHODS[name] if name in METHODS else OTHERS[name]


def write_settings(settings: Settings) -> str:
    """Return settings as JSON text, the same for the same settings."""
    return json.dumps(dict(settings), sort_keys=True)


def run_job(job: Job, folder: Path | None) -> Outcome:
    """Return the outcome of one job; what goes wrong in the fit is a part of it."""
    data = open_dataset(job.dataset, job.scaling, job.max_rows, folder)
    gc.collect()
    before = _reset_peak()
    begun = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fewer leaves: their number is a measure
            taxonomy = fit(job, data)
            seconds = time.perf_counter() - begun
            placed = place(taxonomy, job, data)
    except (ValueError, MemoryError, ArithmeticError, np.linalg.LinAlgError) as error:
        seconds = time.perf_counter() - begun
        return Outcome(f"failed: {error}", seconds, _peak() - before, {})
    measures = summarise_tree(taxonomy)
    if "sample" not in json.loads(job.settings):
        measures |= tree_scores(placed, data.y, data.truth)
    else:
        n_rows = len(data.X)
        is_fitted = np.isin(np.arange(n_rows), draw_sample(job, n_rows))
        is_new = ~np.isin(np.arange(n_rows), _draw_half(job, n_rows))
        for prefix, kept in (("", is_fitted), ("new_", is_new)):
            labels = data.y.astype(object)
            labels[~kept] = None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of rows that are not scored
                scores = tree_scores(placed, labels, data.truth)
            measures |= {prefix + name: value for name, value in scores.items()}
    return Outcome(DONE, seconds, max(_peak() - before, 0.0), measures)


def fit(job: Job, data: Dataset) -> Taxonomy:
    """Return the taxonomy that a job describes, of the rows that are fitted.

    A variant has its own way to place the others: its taxonomy is of all rows.
    """
    method, settings = find_method(job.method), json.loads(job.settings)
    if settings.pop("sample", None) is None:
        return method.fit(data.X, job, settings)
    rows = draw_sample(job, len(data.X))
    if job.method == "variant":
        return fit_variant(data.X, job.n_clusters, job.seed, settings, rows)
    return method.fit(data.X[rows], job, settings)


def place(taxonomy: Taxonomy, job: Job, data: Dataset) -> Taxonomy:
    """Return the same taxonomy of all rows, without its rules; rows of the fit stay."""
    tree = taxonomy.tree
    if tree.n_rows == len(data.X):
        return taxonomy
    rows = draw_sample(job, len(data.X))
    if any(rule is not None for rule in tree.rules):
        labels = taxonomy.predict(data.X)
    else:
        means = [data.X[rows[tree.rows(leaf)]].mean(axis=0) for leaf in tree.leaves]
        labels = pairwise_distances_argmin(data.X, np.stack(means))
    labels[rows] = tree.labels
    return _expand(tree, np.array([tree.rows(leaf)[0] for leaf in tree.leaves])[labels])


def draw_sample(job: Job, n_rows: int) -> NDArray[np.intp]:
    """Return the rows that a job with the setting ``sample`` is fitted to.

    Those that Taxarbor draws, of this seed, where it draws as many.
    """
    sample = json.loads(job.settings)["sample"]
    half = _draw_half(job, n_rows)
    if sample == "half" or sample * job.n_clusters >= len(half):
        return half
    # The rows with the lowest hashes: a part of the half.
    return draw_rows(n_rows, sample * job.n_clusters, estimator_seed(job.seed))[0]


def _draw_half(job: Job, n_rows: int) -> NDArray[np.intp]:
    return draw_rows(n_rows, n_rows // 2, estimator_seed(job.seed))[0]


def summarise_tree(taxonomy: Taxonomy) -> dict[str, float]:
    """Return the shape of a tree, and the sizes of its rules."""
    tree = taxonomy.tree
    used = [rule.weights for rule in tree.rules if rule is not None]
    zeros = sum(int(np.count_nonzero(W == 0.0)) for W in used)
    return {
        "height": float(tree.height),
        "n_leaves": float(tree.n_leaves),
        **_readability(taxonomy),
        "zero_weights": zeros / max(sum(W.size for W in used), 1),
    }


def _readability(taxonomy: Taxonomy) -> dict[str, float]:
    """Count the features that rules use and share with parents; nothing without rules.

    An inner node may have no rule: one above it then chooses among nodes further down. A row
    meets the rules of all nodes on its path.
    """
    tree = taxonomy.tree
    used: dict[int, NDArray[np.bool_]] = {
        node: np.asarray(rule.weights.any(axis=0))
        for node, rule in enumerate(tree.rules)
        if rule is not None
    }
    if not used:
        return {}
    counts = [int(is_used.sum()) for is_used in used.values()]
    n_used = taxonomy.n_features_used
    on_path = [n_used[list(tree.path(leaf)[:-1])].sum() for leaf in tree.leaves]
    is_short = [
        len(rule.weights) == 2 and rule.n_features_used <= SHORT
        for rule in tree.rules
        if rule is not None
    ]
    measures = {
        "path_features": float(np.mean(on_path)),
        "n_rules": float(len(counts)),
        "short_rules": float(sum(is_short)),
        "mean_features": float(np.mean(counts)),
        "median_features": float(np.median(counts)),
        "most_features": float(max(counts)),
    }
    shared = [
        float(used[int(tree.parents[node])][is_used].mean())
        for node, is_used in used.items()
        if tree.parents[node] in used and is_used.any()
    ]
    if shared:
        measures["parent_overlap"] = float(np.mean(shared))
    return measures


def _reset_peak() -> float:
    """Reset the peak of memory; return the memory in use, in megabytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return _peak()
    return _status("VmRSS")


def _peak() -> float:
    """Return the most memory since then: of the whole process where it can't be forgotten."""
    try:
        return _status("VmHWM")
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def _status(field: str) -> float:
    with open("/proc/self/status", encoding="ascii") as file:
        for line in file:
            if line.startswith(field):
                return int(line.split()[1]) / 1024.0
    raise OSError(f"no {field} in /proc/self/status")
