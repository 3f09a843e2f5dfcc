"""Calibration of probabilities: half of the rows are fitted, the other half is predicted.

A second tree is fitted to the other half. A row is matched if its cluster there is the one that
matches the predicted cluster. The expected calibration error is the mean absolute difference
between the predicted probability and the share of matched rows among rows of about this
probability.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from experiments.baselines import HierarchicalKMeans
from experiments.data import list_datasets
from experiments.plan import Setup
from experiments.results import write_page
from experiments.run import commit, machine
from experiments.tables import mean_of, percent, table
from taxarbor import HMMC, Taxarbor, make_planted_tree
from taxarbor.taxonomy.new_rows import read_rows
from taxarbor.taxonomy.probabilities import calibrate, find_staying

MODELS = {
    "Taxarbor": Taxarbor(),
    "HMMC": HMMC(),
    "HKM-D": HierarchicalKMeans(),
}
MAX_ROWS = 6000
N_SEEDS = 3
N_REFITS = 10
BINS = 15
COARSE = 4
"""Leaves per cluster of the pruned tree."""
HEADINGS = ["matched", "default", "ECE", "refits", "ECE", "pruned: matched", "ECE"]

TEXT = """\
# Are the probabilities calibrated?

Written by `make calibration`; do not edit it by hand.

`predict_proba` estimates how likely a row is to be in the same cluster when the method is
fitted to other rows of the same distribution. This page checks it on {rows}, with as many
leaves as classes and {seeds}. One half of the rows is fitted, and the fitted tree predicts
probabilities for the other half. A second tree is fitted to that other half. Its clusters are
matched one to one with those of the first tree, by the largest sum of Jaccard indices.

- **matched**: the share of rows whose cluster in the second tree matches the predicted one.
- **default**: the mean probability of the predicted cluster and the expected calibration error
  (ECE), as `fit` leaves the tree.
- **refits**: the same after the temperature was set by {refits} refits to halves of the first
  half, as `assess` does.
- **pruned**: matched rows and ECE of that tree, pruned to a quarter of its leaves.

ECE is the mean absolute difference between the probability and the share of matched rows, in
{bins} bins of the probability. All numbers are percent, means over seeds ± their standard
deviation. `noise` is one normal distribution without clusters; `planted` has eight
well-separated clusters in a tree. Commit {commit}; {machine}."""

READING = """\
## How to read this

- Before refits, probabilities rank rows but may be far off, as on `noise`: one temperature is
  used for all data. It was chosen on the real data of this page, so on other data the error
  may be larger.
- After refits, the mean probability of `Taxarbor` is close to the share of matched rows. That
  of `HMMC` is too low: its refits, which have half as many rows, differ more than trees of all
  rows.
- One temperature serves the whole tree, so the probabilities of clusters that differ in
  stability, and those of pruned trees, have the largest errors."""


class Outcome(NamedTuple):
    """What came of one fit; all of them shares."""

    hits: float
    guess: float  # mean probability, before refits
    guess_error: float
    measured: float  # and after
    measured_error: float
    coarse_hits: float
    coarse_error: float


def write_calibration(
    folder: Path | None, page: Path, n_seeds: int = N_SEEDS, max_rows: int = 0
) -> Path:
    """Fit, and write the page; return its path."""
    setup = Setup(folder, n_seeds=n_seeds, max_rows=min(max_rows or MAX_ROWS, MAX_ROWS))
    text = TEXT.format(
        rows=f"at most {setup.max_rows:,} rows of each data set",
        seeds=f"{n_seeds} seed" + "s" * (n_seeds != 1),
        refits=N_REFITS,
        bins=BINS,
        commit=commit(),
        machine=machine(),
    )
    lines = {name: list(_lines(model, setup)) for name, model in MODELS.items()}
    sections = [text, "## Taxarbor", table(["data", "leaves", *HEADINGS], lines["Taxarbor"])]
    means = [[name, *own[-1][2:]] for name, own in lines.items()]
    sections += ["## Other methods", "Means over the real data.", table(["", *HEADINGS], means)]
    write_page(page, [*sections, READING.rstrip()])
    return page


def _data(setup: Setup) -> Iterator[tuple[str, NDArray[Any], int]]:
    """Yield the name of each data set, its rows, and how many leaves to grow."""
    for name in list_datasets(setup.folder):
        dataset = setup.open(name)
        yield name, dataset.X, dataset.n_classes
    n_rows = min(setup.max_rows, 4000)
    yield "noise", np.random.default_rng(0).standard_normal((n_rows, 8)), 8
    yield "planted", make_planted_tree(n_rows, random_state=0).X, 8


def _lines(model: Any, setup: Setup) -> Iterator[list[str]]:
    """Yield a line for each data set, then the means over the real data."""
    means = []
    for name, X, n_leaves in _data(setup):
        trial = clone(model).set_params(n_clusters=n_leaves)
        outcomes = np.array([measure(trial, X, seed) for seed in range(setup.n_seeds)])
        cells = [percent(mean_of(column), 1) for column in outcomes.T.tolist()]
        yield [name, f"{n_leaves}", *cells]
        if name not in ("noise", "planted"):
            means.append(outcomes.mean(axis=0))
    over_data = [f"{100 * value:.1f}" for value in np.mean(means, axis=0)]
    yield ["mean of the real data", "", *over_data]


def measure(model: Any, X: NDArray[Any], seed: int) -> Outcome:
    """Fit halves of the rows, and compare."""
    first, second = halves(len(X), seed)
    taxonomy = clone(model).set_params(random_state=seed).fit(X[first]).taxonomy_
    other = clone(model).set_params(random_state=seed + 1).fit(X[second]).taxonomy_.tree
    new = X[second]
    hits = find_staying(taxonomy.predict(new), other.labels)
    guess = taxonomy.predict_proba(new).max(axis=1)
    taxonomy = calibrate(taxonomy, read_rows(taxonomy, X[first]), refits(model, X[first], seed))
    P = taxonomy.predict_proba(new).max(axis=1)
    n_coarse = max(taxonomy.tree.n_leaves // COARSE, 2)
    pruned = taxonomy.prune(n_coarse)
    coarse = find_staying(pruned.predict(new), other.cut(min(n_coarse, other.n_leaves)))
    error = expected_calibration_error
    return Outcome(
        hits.mean(),
        guess.mean(),
        error(guess, hits),
        P.mean(),
        error(P, hits),
        coarse.mean(),
        error(pruned.predict_proba(new).max(axis=1), coarse),
    )


def halves(n_rows: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the positions of a random half of the rows, and of the other one."""
    order = np.random.default_rng(seed).permutation(n_rows)
    return np.sort(order[: n_rows // 2]), np.sort(order[n_rows // 2 :])


def refits(model: Any, X: NDArray[Any], seed: int) -> Iterator[NDArray[np.intp]]:
    """Fit halves again, and yield where each of them puts all rows."""
    for refit in range(N_REFITS):
        half, _ = halves(len(X), 1000 * (seed + 1) + refit)
        yield clone(model).set_params(random_state=refit).fit(X[half]).predict(X)


def expected_calibration_error(probabilities: NDArray[Any], hits: NDArray[np.bool_]) -> float:
    """Return the mean distance between probability and share of hits, in equal bins."""
    bins = np.minimum((probabilities * BINS).astype(np.intp), BINS - 1)
    gaps = np.bincount(bins, weights=probabilities - hits, minlength=BINS)
    return float(np.abs(gaps).sum() / len(hits))
