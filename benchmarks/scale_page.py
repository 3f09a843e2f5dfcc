"""The page on scale, from what was measured."""

import os
import platform
import subprocess
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import scale_model
from scale_data import N_FEATURES
from scale_model import Cluster, Costs, Prediction, Step, predict

HERE = Path(__file__).resolve().parent
Known = dict[str, Any]

WHO = {
    "ours-1": "Taxarbor, in memory, 1 thread",
    "ours-2": "Taxarbor, in memory, 2 threads",
    "ours-parquet": "Taxarbor, from Parquet, `memory_limit` of 1 GB, 2 threads",
    "ours-dask": "Taxarbor, from Parquet, on `LocalCluster(2)`",
    "spark": "Spark BisectingKMeans, `local[2]`, data cached",
    "dask-ml": "dask-ml KMeans, on `LocalCluster(2)`, data persisted",
    "sklearn-bisecting": "scikit-learn BisectingKMeans, 2 threads",
    "sklearn-minibatch": "scikit-learn MiniBatchKMeans, 2 threads",
    "true-means": "nearest mean of the true classes",
}
FUTURES = [(n, workers) for n in (10**9, 10**10) for workers in (64, 512)]
WIDE, BLOCK_BYTES = 768, (128_000_000, 1_000_000_000)


def machine() -> str:
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    return f"{model}, {os.cpu_count()} cores, Python {platform.python_version()}"


def commit() -> str:
    call = ["git", "-C", str(HERE), "describe", "--always", "--dirty"]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


# Words for numbers


def table(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def in_bytes(n: float | None) -> str:
    if n is None:
        return "-"
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.3g} {unit}"
    return f"{n:.0f} B"


def in_time(seconds: float) -> str:
    if seconds >= 7200:
        return f"{seconds / 3600:.1f} h"
    if seconds >= 120:
        return f"{seconds / 60:.1f} min"
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1e3 * seconds:.3g} ms"


def why_not(found: Known | None) -> str:
    """Say why there is no number."""
    if found is None:
        return "not measured"
    if "over" in found:
        return f"more than {in_time(found['over'])}"
    return str(found.get("missing") or f"failed: {found.get('failed')}")


def has_ended(found: Known | None) -> bool:
    return found is not None and "seconds" in found


# What was asked


def asked(known: Known, n_rows: int) -> str:
    """Return each figure beside what is asked of it."""
    verdict = {True: "yes", False: "**no**", None: "not measured"}
    lines: list[list[str]] = []

    def add(what: str, got: str, most: str, holds: bool | None) -> None:
        lines.append([what, got, most, verdict[holds]])

    size, least = f"{n_rows:,} x {N_FEATURES}", min(n_rows // 10, 10**9)
    ours, sparks = known.get(f"ours-2/planted/{n_rows}"), known.get(f"spark/planted/{n_rows}")
    add(f"Spark / ours, both in memory, {size}", *_ratio(sparks, ours, 10.0, "at least"))
    dask, other = (
        known.get(f"ours-dask/planted/{n_rows}"),
        known.get(f"dask-ml/planted/{n_rows}"),
    )
    add(f"dask-ml / ours, both on two workers, {size}", *_ratio(other, dask, 1.0, "more than"))
    if has_ended(dask):
        share = dask["sent"] / dask["data"]
        add(
            "bytes that our workers, scheduler and client send, of the data's",
            f"{share:.2%}",
            "under 1 %",
            share < 0.01,
        )
    else:
        add(
            "bytes that our workers, scheduler and client send, of the data's",
            why_not(dask),
            "under 1 %",
            None,
        )
    small = known.get(f"ours-2/planted/{least}")
    add(f"time of {n_rows:,} / of {least:,} rows", *_ratio(ours, small, 11.0, "at most"))
    for what, got, most, holds in _asked_of_disk(known, n_rows) + _asked_of_threads(known):
        add(what, got, most, holds)
    return table(["what", "got", "asked", "holds"], lines)


def _ratio(
    above: Known | None, below: Known | None, bound: float, word: str
) -> tuple[str, str, bool | None]:
    most = f"{word} {bound:g}"
    if above is not None and "over" in above and has_ended(below):
        ratio = above["over"] / below["seconds"]
        return f"more than {ratio:.0f}", most, True if ratio >= bound else None
    if not (has_ended(above) and has_ended(below)):
        missing = below if has_ended(above) else above
        return why_not(missing), most, None
    ratio = above["seconds"] / below["seconds"]
    holds = ratio <= bound if word == "at most" else ratio >= bound
    told = f"{ratio:.1f} ({in_time(above['seconds'])} / {in_time(below['seconds'])})"
    return told, most, holds


Line = tuple[str, str, str, bool | None]


def _asked_of_disk(known: Known, n_rows: int) -> list[Line]:
    disk, memory = (known.get(f"{name}/planted/{2 * n_rows}") for name in ("disk", "ours-2"))
    what = f"{2 * n_rows:,} x {N_FEATURES} from a file, peak memory"
    if not has_ended(disk):
        return [(what, why_not(disk), "under the limit", None)]
    peak, limit = disk["peak"], disk["limit"]
    lines: list[Line] = [(what, in_bytes(peak), f"under {in_bytes(limit)}", peak < limit)]
    if has_ended(memory):
        same = disk["detail"]["tree"] == memory["detail"]["tree"]
        got = "equal" if same else "different"
        lines.append(
            ("its rules, sizes and labels, beside those in memory", got, "equal", same)
        )
    return lines


def _asked_of_threads(known: Known) -> list[Line]:
    found = [one for key, one in known.items() if key.startswith("threads/") and "1" in one]
    if not found:
        return [("two threads / one", "not measured", "at most 0.6", None)]
    one, two = found[-1]["1"], found[-1]["2"]
    told = f"{two / one:.2f} ({in_time(two)} / {in_time(one)})"
    key = next(key for key, value in known.items() if value is found[-1])
    size = f"{int(key.split('/')[2]):,} x 40, 64 leaves"
    return [
        (f"two threads / one, {size}", told, "at most 0.6", two / one <= 0.6),
        (f"one thread, {size}", in_time(one), "at most 3.5 s", one <= 3.5),
        (
            "their labels",
            "equal" if found[-1]["same"] else "different",
            "equal",
            found[-1]["same"],
        ),
    ]


# The contest


def contest(known: Known, kind: str, n_rows: int) -> str:
    """Return all contestants on one table."""
    found = {name: known.get(f"{name}/{kind}/{n_rows}") for name in WHO}
    ended = [one for one in found.values() if has_ended(one)]
    levels = {key for one in ended for key in one["agreement"] if key.endswith(" groups")}
    groups = sorted(levels, key=lambda level: -int(level.split()[0]))
    header = ["who", "fit", "reading", "peak memory", "sent", "classes", *groups, "purity"]
    lines = []
    for name, one in found.items():
        if not has_ended(one):
            lines.append([WHO[name], why_not(one), *[""] * (len(header) - 2)])
            continue
        scores = one["agreement"]
        told = [f"{scores[key]:.3f}" if key in scores else "-" for key in ("classes", *groups)]
        purity = scores.get("tree: dendrogram_purity")
        lines.append(
            [
                WHO[name],
                "-" if name == "true-means" else in_time(one["seconds"]),
                in_time(one["read_seconds"]) if one["read_seconds"] else "in the fit",
                in_bytes(one["peak"]),
                in_bytes(one["sent"]),
                *told,
                "-" if purity is None else f"{purity:.3f}",
            ]
        )
    return table(header, lines)


def growth(known: Known, n_rows: int) -> str:
    sizes = sorted({n_rows // 10, n_rows // 5, n_rows // 2, n_rows, 2 * n_rows})
    lines = []
    for n in sizes:
        one = known.get(f"ours-2/planted/{n}")
        if has_ended(one):
            rate = f"{1e6 * one['seconds'] / n:.2f} µs"
            lines.append([f"{n:,}", in_time(one["seconds"]), rate, in_bytes(one["peak"])])
        else:
            lines.append([f"{n:,}", why_not(one), "", ""])
    return table(["rows", "fit", "per row", "peak memory"], lines)


def from_disk(known: Known, n_rows: int) -> str:
    disk, memory = (known.get(f"{name}/planted/{2 * n_rows}") for name in ("disk", "ours-2"))
    if not has_ended(disk):
        return why_not(disk)
    lines = [
        ["reading the file twice", in_time(disk["read_seconds"]), ""],
        ["fit from the file", in_time(disk["seconds"]), in_bytes(disk["peak"])],
    ]
    if has_ended(memory):
        lines.append(["fit in memory", in_time(memory["seconds"]), in_bytes(memory["peak"])])
    return table(["what", "time", "peak memory"], lines)


# The model


def fitted(known: Known, n_rows: int) -> tuple[Costs, list[Step], list[int]] | None:
    """Return the parameters of the model, the steps of a fit, and the rows of the runs."""
    sizes = [n for n in _sizes(n_rows) if has_ended(known.get(f"trace/planted/{n}"))]
    if not sizes or "latency" not in known.get("overheads/planted/0", {}):
        return None
    runs = [known[f"trace/planted/{n}"] for n in sizes]
    traces = [scale_model.from_json(run["steps"]) for run in runs]
    told = scale_model.slopes(traces, [run["seconds"] for run in runs])
    over = known["overheads/planted/0"]
    costs = Costs(**told, latency=over["latency"], task=over["task"], read=0.0)
    steps = traces[-1]
    on_dask = [known.get(f"trace-dask/planted/{n}") for n in _sizes(n_rows)]
    runs_there = [run for run in on_dask if has_ended(run)]
    if runs_there:
        there = scale_model.from_json(runs_there[-1]["steps"])
        steps = scale_model.completed(steps, there)
    return _with_reading(costs, steps, known, n_rows), steps, sizes


def _sizes(n_rows: int) -> list[int]:
    return sorted({n_rows // 10, n_rows // 5, n_rows // 2, n_rows})


def _with_reading(costs: Costs, steps: list[Step], known: Known, n_rows: int) -> Costs:
    """Add what it takes to read Parquet files in each sweep over the data, by least squares."""
    cells, rest = [], []
    n_data = sum(step.reads == "data" for step in steps)
    for n in _sizes(n_rows):
        run = known.get(f"trace-dask/planted/{n}")
        if has_ended(run):
            said = _of_two_workers(costs, steps, n, run["blocks"])
            cells.append(n * N_FEATURES * n_data / 2)
            rest.append(run["seconds"] - said.seconds)
    if not cells:
        return costs
    x, y = np.array(cells), np.array(rest)
    return scale_model.replace(costs, read=max(0.0, float(x @ y / (x @ x))))


def _of_two_workers(costs: Costs, steps: list[Step], n: int, n_blocks: int) -> Prediction:
    here = Cluster(2, storage=np.inf)
    block = -(-n // n_blocks)
    return predict(costs, steps, n, N_FEATURES, cluster=here, block_rows=block)


def parameters(costs: Costs, steps: Sequence[Step]) -> str:
    kinds = scale_model.counts_of(steps)
    lines = [
        [f"{kinds['data']} sweeps over the data", f"{1e9 * costs.data:.2f} ns", "row, feature"],
        ["making the coordinates", f"{1e9 * costs.project:.3f} ns", "row, feature, coordinate"],
        [
            f"{kinds['coordinates']} sweeps over the coordinates",
            f"{1e9 * costs.coordinates:.2f} ns",
            "row, coordinate",
        ],
        [f"{kinds['rows']} sweeps over columns", f"{1e9 * costs.rows:.2f} ns", "row"],
        ["reading Parquet, each sweep over the data", f"{1e9 * costs.read:.2f} ns", "cell"],
        ["the client alone", in_time(costs.client), "fit"],
        ["latency of Dask", in_time(costs.latency), "sweep"],
        ["scheduling by Dask", in_time(costs.task), "task"],
        ["samples that are found", in_bytes(_samples(steps)), "fit"],
        ["sums that are found", in_bytes(_sums(steps)), "block"],
        ["what tasks are given, all sweeps", in_bytes(sum(s.shared for s in steps)), "worker"],
    ]
    return table(["what", "costs", "per"], lines)


def _samples(steps: Sequence[Step]) -> float:
    return sum(step.bytes_found(0, step.width) for step in steps)


def _sums(steps: Sequence[Step]) -> float:
    return sum(step.bytes_found(1, step.width) for step in steps) - _samples(steps)


def checked(costs: Costs, steps: list[Step], known: Known, n_rows: int) -> str:
    """Return what the model says beside what was measured here."""
    lines = []
    for n in _sizes(n_rows):
        one = known.get(f"trace/planted/{n}")
        if has_ended(one):
            alone = scale_model.replace(costs, latency=0.0, task=0.0, read=0.0)
            flat = [scale_model.replace(step, found=0, total=0, shared=0) for step in steps]
            said = predict(alone, flat, n, N_FEATURES, cluster=Cluster(1), block_rows=65536)
            lines.append(_beside(f"{n:,} rows in memory, 1 thread", one, said.seconds))
        run = known.get(f"trace-dask/planted/{n}")
        if has_ended(run):
            told = _of_two_workers(costs, steps, n, run["blocks"]).seconds
            what = f"{n:,} rows, `LocalCluster(2)`, {run['blocks']} blocks"
            lines.append(_beside(what, run, told))
    lines.sort(key=_is_dask)
    run = known.get(f"ours-dask/planted/{n_rows}")
    if has_ended(run):
        sent = _of_two_workers(costs, steps, n_rows, run["detail"]["partitions"]).n_sent
        what = f"{n_rows:,} rows, `LocalCluster(2)`, bytes sent"
        ratio = f"{sent / run['sent']:.2f}"
        lines.append([what, in_bytes(run["sent"]), in_bytes(sent), ratio])
    return table(["what", "measured", "model", "model / measured"], lines)


def _is_dask(line: list[str]) -> bool:
    return "LocalCluster" in line[0]


def _beside(what: str, run: Known, said: float) -> list[str]:
    ratio = f"{said / run['seconds']:.2f}"
    return [what, in_time(run["seconds"]), in_time(said), ratio]


def simulated(known: Known, n_rows: int) -> str:
    found = known.get(f"simulate/planted/{n_rows // 10}")
    if found is None or "cases" not in found:
        return why_not(found)
    lines = [
        [
            f"{case['workers']:.0f}",
            f"{case['blocks']:.0f} x {case['rows of a block']:,.0f}",
            in_time(case["least"]),
            in_time(case["measured"]),
            in_time(case["predicted"]),
            f"{case['predicted'] / case['measured']:.2f}",
        ]
        for case in found["cases"]
    ]
    header = ["workers", "blocks x rows", "work / workers", "measured", "model"]
    return table([*header, "model / measured"], lines)


def predictions(costs: Costs, steps: list[Step]) -> str:
    lines = []
    for n, workers in FUTURES:
        for size in BLOCK_BYTES:
            said = _future(costs, steps, n, workers, size)
            lines.append(
                [
                    f"{n:.0e}".replace("e+", "e"),
                    str(workers),
                    in_bytes(size),
                    f"**{in_time(said.seconds)}**",
                    in_time(said.working),
                    in_time(said.scheduling),
                    in_time(said.sending),
                    f"{said.n_tasks:,}",
                    f"{in_bytes(said.n_sent)} ({said.n_sent / (4.0 * WIDE * n):.2%})",
                    in_bytes(said.n_per_worker),
                ]
            )
    header = ["rows", "workers", "block", "fit", "workers work", "scheduler", "sending"]
    return table([*header, "tasks", "sent", "kept by a worker"], lines)


def _future(costs: Costs, steps: list[Step], n: int, workers: int, size: int) -> Prediction:
    block = size // (4 * WIDE)
    return predict(costs, steps, n, WIDE, cluster=Cluster(workers), block_rows=block)


def breaks(costs: Costs, steps: list[Step]) -> str:
    """Say what comes to its limit first, of blocks of 128 MB."""
    lines = []
    for n, workers in FUTURES:
        said = _future(costs, steps, n, workers, BLOCK_BYTES[0])
        cluster, n_blocks = Cluster(workers), n * 4 * WIDE // BLOCK_BYTES[0]
        loads: dict[str, tuple[float, str]] = {
            "memory of coordinates": (
                said.n_per_worker / cluster.memory,
                f"{in_bytes(said.n_per_worker)} of {in_bytes(cluster.memory)} a worker",
            ),
            "the scheduler's tasks": (
                said.scheduling / said.seconds,
                f"{said.scheduling / said.seconds:.0%} of the time",
            ),
            "a graph in the scheduler's memory": (
                4 * n_blocks * TASK_BYTES / cluster.memory,
                f"{in_bytes(4 * n_blocks * TASK_BYTES)} of {in_bytes(cluster.memory)}",
            ),
            "findings on the network": (
                said.sending / said.seconds,
                f"{said.sending / said.seconds:.0%} of the time",
            ),
        }
        order = sorted(loads, key=lambda name: -loads[name][0])
        told = "; ".join(f"{name}: {loads[name][1]}" for name in order)
        lines.append([f"{n:.0e}".replace("e+", "e"), str(workers), order[0], told])
    return table(["rows", "workers", "first", "all, the nearest to its limit first"], lines)


TASK_BYTES = 2_000
"""About what a task takes in the memory of Dask's scheduler."""


# The page


def page(known: Known, n_rows: int) -> str:
    """Return the page, of what was measured so far."""
    commits = sorted({one["commit"] for one in known.values() if "commit" in one})
    size = f"{n_rows:,} x {N_FEATURES} float32 ({in_bytes(4.0 * n_rows * N_FEATURES)})"
    parts = [
        "# Scale",
        "Written by `make scale`; not by hand. Each contestant has a process of its own, one "
        "at a time; each ran once unless medians are named.",
        f"Commit {', '.join(commits) or commit()}, {date.today()}, {machine()}.",
        "## What was asked",
        asked(known, n_rows),
        "## Planted classes",
        f"{size}: 64 classes of unequal sizes, the leaves of a binary tree of height 6. "
        "Siblings are 4 standard deviations apart at the leaves, and 1.3 times as far with "
        "each level up; ten features say nothing.",
        contest(known, "planted", n_rows),
        NOTES,
        "## Rows like those of a shared set",
        f"{size}: rows of `awa_attr`, the 50 features that vary most, drawn with replacement "
        "and moved by 0.3 standard deviations. 50 classes in a tree of them.",
        contest(known, "shared", n_rows),
        "## Growth in rows",
        "Taxarbor in memory, two threads, planted classes.",
        growth(known, n_rows),
        "## Larger than memory",
        f"{2 * n_rows:,} x {N_FEATURES} float32 in a `.npy` file, two threads. The limit is "
        "one on the data of the process (`RLIMIT_DATA`), so that it would fail beyond it; "
        "the peak is that of its resident memory, pages of mapped files included. The file "
        "is read from the system's cache, as far as that holds it.",
        from_disk(known, n_rows),
        "## Beyond this machine: a model",
        _model_part(known, n_rows),
    ]
    return "\n\n".join(parts) + "\n"


def _model_part(known: Known, n_rows: int) -> str:
    found = fitted(known, n_rows)
    if found is None:
        return "Not measured."
    costs, steps, _ = found
    parts: list[str | Callable[[], str]] = [
        MODEL,
        parameters(costs, steps),
        "Beside the runs that it was fitted to:",
        checked(costs, steps, known, n_rows),
        SIMULATED,
        simulated(known, n_rows),
        f"### {WIDE} features, 64 and 512 workers",
        ASSUMED,
        predictions(costs, steps),
        "### What breaks first",
        breaks(costs, steps),
        BREAKS,
    ]
    return "\n\n".join(part if isinstance(part, str) else part() for part in parts)


NOTES = (
    "The time is that of the fit alone; reading what has to be in memory, or in a cache, "
    "stands beside it. Peak memory is the sum of the peaks of all processes, the data "
    "included. Sent: all bytes that the processes of a Dask cluster wrote to each other, "
    "tasks and results alike; of Spark, what stages wrote for each other and sent to the "
    "driver, but not the tasks. Agreement is the "
    "adjusted Rand index of the first 1,000,000 rows, with the classes, and of the tree cut "
    "to as many clusters as there are groups on a level of the true tree, with these groups; "
    "purity is that of the dendrogram. k-means has no tree."
)
MODEL = """\
A fit is a list of sweeps, each with a task per block; what tasks find is added up by workers,
up to 64 at a time. A sweep takes

    latency + tasks * scheduling + rounds of blocks * seconds of a block + bytes / bandwidth

and the client adds what it does alone, which does not grow with the rows. Seconds per row are
slopes of fits in memory by one thread; latency and scheduling are those of sweeps that do
nothing, on `LocalCluster(2)`; reading is what then is missing of fits there."""
SIMULATED = (
    "And beside simulated workers, to which no parameter was fitted: Dask's own scheduler, "
    "graphs and findings, but tasks that wait as long as their work would take. As these "
    "workers share one process, latency and scheduling are measured anew, before and after. "
    "The form of the model was changed once after such a check: it had scheduling and work "
    "side by side (the larger of both), and was too low; now it adds them up."
)
ASSUMED = (
    "Assumed: a worker is one core like this one, with 16 GB, which reads 0.5 GB and sends "
    "1.25 GB a second; data are read anew in each sweep over them; as many sweeps as here. The "
    "block is the user's chunk."
)
BREAKS = (
    "What does not grow with the rows: the samples (5,000 rows for the coordinates, 1,000 for "
    "each leaf that is grown, 1,250 of each cluster for the rules), which a worker gets whole."
)
