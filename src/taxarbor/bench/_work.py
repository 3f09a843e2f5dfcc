"""What a worker process does: load a data set, fit, measure."""

import gc
import json
import time
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from taxarbor.bench._datasets import Dataset, Scaling, load_dataset
from taxarbor.bench._jobs import DONE, Job, Outcome
from taxarbor.bench._methods import find_method
from taxarbor.hierarchy import Hierarchy
from taxarbor.metrics import score_hierarchy


def run_job(job: Job, folder: Path | None) -> Outcome:
    """Return the outcome of one job; what goes wrong in the fit is a part of it."""
    data = open_dataset(job.dataset, job.scaling, job.max_rows, folder)
    gc.collect()
    before = _reset_peak()
    begun = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of fewer leaves: their number is a measure
            tree = fit(job, data)
    except (ValueError, MemoryError, ArithmeticError, np.linalg.LinAlgError) as error:
        seconds = time.perf_counter() - begun
        return Outcome(f"failed: {error}", seconds, _peak() - before, {})
    seconds = time.perf_counter() - begun
    return Outcome(DONE, seconds, max(_peak() - before, 0.0), measure(tree, data))


def fit(job: Job, data: Dataset) -> Hierarchy:
    """Return the hierarchy that a job describes."""
    settings = json.loads(job.settings)
    method = find_method(job.method)
    return method.fit(data.X, job.n_clusters, job.branching, job.seed, settings)


def measure(tree: Hierarchy, data: Dataset) -> dict[str, float]:
    """Return all measures of a tree, and its shape."""
    used = [rule.weights for rule in tree.rules if rule is not None]
    zeros = sum(int(np.count_nonzero(W == 0.0)) for W in used)
    return {
        **score_hierarchy(tree, data.y, data.truth),
        "height": float(tree.height),
        "n_leaves": float(tree.n_leaves),
        **_readability(tree),
        "zero_weights": zeros / max(sum(W.size for W in used), 1),
    }


def _readability(tree: Hierarchy) -> dict[str, float]:
    """Return how many features rules use, how true they are, and what parents share.

    Nothing for a tree without rules; no fidelity where that is not known.
    """
    used: dict[int, NDArray[np.bool_]] = {
        node: np.asarray(rule.weights.any(axis=0))
        for node, rule in enumerate(tree.rules)
        if rule is not None
    }
    if not used:
        return {}
    counts = [int(mine.sum()) for mine in used.values()]
    found = {"median_features": float(np.median(counts)), "most_features": float(max(counts))}
    known = tree.fidelity[~np.isnan(tree.fidelity)]
    if len(known):
        found["mean_fidelity"] = float(known.mean())
        found["least_fidelity"] = float(known.min())
    shared = [
        float(used[int(tree.parents[node])][mine].mean())
        for node, mine in used.items()
        if tree.parents[node] in used and mine.any()
    ]
    if shared:
        found["parent_overlap"] = float(np.mean(shared))
    return found


@lru_cache(maxsize=24)
def open_dataset(name: str, scaling: Scaling, max_rows: int, folder: Path | None) -> Dataset:
    """Return a data set, thinned out and scaled; the last few stay open."""
    return load_dataset(name, folder).thinned(max_rows).scaled(scaling)


def _reset_peak() -> float:
    """Forget how much memory there once was; return what there is, in megabytes."""
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
