"""Running the experiment: what is missing is run, what is there is shown."""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, final

from taxarbor.bench._ablation import plan_defaults
from taxarbor.bench._jobs import Job
from taxarbor.bench._methods import find_method
from taxarbor.bench._plan import (
    Setup,
    plan_scalings,
    plan_sparsity,
    plan_sweep,
    plan_table,
    plan_tree,
)
from taxarbor.bench._pool import Pool
from taxarbor.bench._store import Store
from taxarbor.bench._work import open_dataset, run_job

Part = Literal["table", "scalings", "sweep", "sparsity", "tree", "defaults"]
PARTS: dict[Part, Callable[[Setup], Iterator[Job]]] = {
    "table": plan_table,
    "scalings": plan_scalings,
    "sweep": plan_sweep,
    "sparsity": plan_sparsity,
    "tree": plan_tree,
    "defaults": plan_defaults,
}
"""The paper's experiment, and last, apart from it, why the defaults are what they are."""
RESULTS, CONTENTS = "results.csv", "data.json"


@final
@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Attributes
    ----------
    n_done, n_jobs : int
        Jobs that have ended, and all that had to be run.
    share : float
        The share of the work that is done, by rough costs.
    job : Job or None
        The one that just ended; None at the beginning.
    status : str
        What became of it.
    """

    n_done: int
    n_jobs: int
    share: float
    job: Job | None
    status: str


def run_experiment(
    parts: tuple[Part, ...],
    setup: Setup,
    out: Path,
    *,
    n_workers: int = 1,
    time_limit: float = 600.0,
    observer: Callable[[Progress], None] = lambda _: None,
) -> Store:
    """Run the jobs of some parts that have no result yet, and return all results.

    Results are on the disk as soon as a job ends. After an interrupt, or a crash, the same
    call goes on where it stopped; results of other code are left out and made anew.

    Parameters
    ----------
    parts : tuple of {"table", "scalings", "sweep", "sparsity", "tree", "defaults"}
        What is wanted.
    setup : Setup
        On what.
    out : Path
        Folder of the results, made if need be.
    n_workers : int
        Processes side by side, of one thread each.
    time_limit : float
        Seconds that one fit may take; then it is given up.
    observer : callable
        Is told of the progress.

    Returns
    -------
    Store

    Raises
    ------
    ValueError
        If the folder has results of other data of the same name.
    """
    wanted = dict.fromkeys(job for part in parts for job in PARTS[part](setup))
    names = dict.fromkeys([*setup.datasets(), *(job.dataset for job in wanted)])
    contents = _compare_contents(names, setup, out)
    store = Store(out / RESULTS)
    (out / CONTENTS).write_text(
        json.dumps(contents, indent=1, sort_keys=True), encoding="utf-8"
    )
    known = store.known()
    costs = {job: _cost(job, setup) for job in wanted if job not in known}
    # The longest first: no worker is left with one when all others are done.
    missing = sorted(costs, key=lambda job: -costs[job])
    total = sum(costs.values())
    done = 0.0
    observer(Progress(0, len(missing), 0.0, None, ""))
    pool = Pool(run_job, setup.folder, min(n_workers, max(len(missing), 1)), time_limit)
    with closing(pool.run(missing)) as outcomes:
        for n_done, (job, outcome) in enumerate(outcomes, 1):
            store.add(job, outcome)
            done += costs[job]
            observer(Progress(n_done, len(missing), done / total, job, outcome.status))
    return store


def _compare_contents(names: Iterable[str], setup: Setup, out: Path) -> dict[str, str]:
    """Return digests of all data that the folder has results of, with these."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"{str(out)!r} is a file; results need a folder")
    path = out / CONTENTS
    known: dict[str, str] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for name in names:
        digest = open_dataset(name, "none", 0, setup.folder).digest()
        if known.setdefault(name, digest) != digest:
            raise ValueError(
                f"{str(out)!r} has results of other data called {name!r}; choose another "
                "folder for the results, or remove that one"
            )
    return known


def _cost(job: Job, setup: Setup) -> float:
    """Return rough seconds, of which only the ratios matter."""
    n_rows = len(open_dataset(job.dataset, job.scaling, job.max_rows, setup.folder).X)
    method = find_method(job.method)
    power = 2.0 if method.is_slow else 1.0
    children = math.sqrt(job.branching - 1)
    seconds = method.cost * children * (n_rows / 3e4) ** power * job.n_clusters / 50.0
    return float(seconds) + 0.02
