"""Whether probabilities hold: half of the rows are fitted, and asked of the other half.

A second tree is fitted to the other half. A row of it is a hit if it lies there in the cluster
that matches the one where the first tree puts it. The expected calibration error is the mean
distance between the probability that a row has in the first tree and the share of hits among
rows of about this probability.
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
from taxarbor.taxonomy._probabilities import calibrate, find_staying

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
"""Leaves per cluster of the coarser tree that is asked, too."""

TEXT = """\
# How far probabilities hold

Written by `make calibration`, not by hand: run it again rather than edit this page.

`predict_proba` says how likely a row is to lie in a cluster *again*, when the same method is
fitted to other rows of the same kind. Here this is put to the test: {rows},
as many leaves as classes, {seeds}. One half of the rows is fitted, and the probabilities of the
other half are asked for. A second tree is fitted to that other half, and its clusters are
matched with those where the first tree puts the same rows: one to one, with the largest sum of
Jaccard indices. A row is a hit if it lies in the cluster that matches its own.

- **hits**: the share of rows that are hits.
- **guess**: the mean probability of the rows' own clusters, and the expected calibration error
  (ECE), of trees as `fit` leaves them.
- **measured**: the same after the temperature was measured, on the first half alone, by
  {refits} refits to halves of it.
- **coarse**: hits and ECE of the measured tree, pruned to a quarter of its leaves.

ECE is the mean distance between the probability and the share of hits, in {bins} bins of the
probability. Numbers are percent, means over seeds ± their standard deviation. Commit
{commit}; {machine}."""

READING = """\
## How to read this

- Without refits the probabilities are a guess. What differs in another fit is mostly the tree
  as a whole, and how far a row lies from a border says little about that. The guess is one
  temperature for all data. It was chosen with the real data of these tables in view, so its
  error on them is flattered: on other data it may be far off, as on `noise`, one normal cloud
  without clusters. (`planted` is a tree of eight clusters, well apart.)
- Measured, the mean is about right, unless there are few rows per leaf: the refits, to half as
  many, then agree less than trees of all rows do, and the probabilities are too low.
- What is left of the error is that clusters differ: one temperature holds for the whole tree,
  which does not tell a cluster that rarely comes back from one that always does.
- Hits depend on both trees, of which one may be unlucky: a seed more or less moves a line by
  several points.
"""


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
    sections = [text]
    for name, model in MODELS.items():
        sections += [f"## {name}", _table(model, setup)]
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


def _table(model: Any, setup: Setup) -> str:
    lines, errors = [], []
    for name, X, n_leaves in _data(setup):
        trial = clone(model).set_params(n_clusters=n_leaves)
        outcomes = np.array([measure(trial, X, seed) for seed in range(setup.n_seeds)])
        cells = [percent(mean_of(column), 1) for column in outcomes.T.tolist()]
        lines.append([name, f"{n_leaves}", *cells])
        if name not in ("noise", "planted"):
            errors.append(outcomes.mean(axis=0))
    means = [f"{100 * value:.1f}" for value in np.mean(errors, axis=0)]
    lines.append(["mean of the real data", "", *means])
    headings = ["data", "leaves", "hits", "guess", "ECE", "measured", "ECE"]
    return table([*headings, "coarse: hits", "ECE"], lines)


def measure(model: Any, X: NDArray[Any], seed: int) -> Outcome:
    """Fit halves of the rows, and compare."""
    first, second = halves(len(X), seed)
    taxonomy = clone(model).set_params(random_state=seed).fit(X[first]).taxonomy_
    other = clone(model).set_params(random_state=seed + 1).fit(X[second]).taxonomy_.tree
    new = X[second]
    hits = find_staying(taxonomy.predict(new), other.labels)
    guess = taxonomy.predict_proba(new).max(axis=1)
    taxonomy = calibrate(taxonomy, X[first], refits(model, X[first], seed))
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
