"""The page on scale, from what was measured."""

import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from scale_data import N_FEATURES
from scale_model import SAMPLE_ROWS, Cluster, Costs, Prediction, fit_line, predict

HERE = Path(__file__).resolve().parent
Known = dict[str, Any]

WHO = {
    "ours-1": "Taxarbor, in memory, 1 thread",
    "ours-2": "Taxarbor, in memory, 2 threads",
    "ours-parquet": "Taxarbor, from Parquet, 2 threads",
    "ours-dask": "Taxarbor, from Parquet, on `LocalCluster(2)`",
    "spark": "Spark BisectingKMeans, `local[2]`, data cached",
    "dask-ml": "dask-ml KMeans, on `LocalCluster(2)`, data persisted",
    "sklearn-bisecting": "scikit-learn BisectingKMeans, 2 threads",
    "sklearn-minibatch": "scikit-learn MiniBatchKMeans, 2 threads",
    "true-means": "nearest mean of the true classes",
}
FUTURES = [(n, workers) for n in (10**9, 10**10) for workers in (64, 512)]
NOT_MEASURED = "not measured"
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
        return NOT_MEASURED
    if "over" in found:
        return f"more than {in_time(found['over'])}"
    return str(found.get("missing") or f"failed: {found.get('failed')}")


def has_ended(found: Known | None) -> bool:
    return found is not None and "seconds" in found


# What was asked


def asked(known: Known, n_rows: int) -> str:
    """Return each measured figure beside its goal."""
    verdict = {True: "yes", False: "**no**", None: ""}
    lines: list[list[str]] = []

    def add(what: str, got: str, most: str, holds: bool | None) -> None:
        if got != NOT_MEASURED:
            lines.append([what, got, most, verdict[holds]])

    size, least = f"{n_rows:,} x {N_FEATURES}", min(n_rows // 10, 10**9)

    def of(name: str, n: int = n_rows) -> Known | None:
        return known.get(f"{name}/planted/{n}")

    ours, dask = of("ours-2"), of("ours-dask")
    bisecting = of("sklearn-bisecting")
    add(f"ours / BisectingKMeans, {size}", *_ratio(ours, bisecting, 0.12, "at most"))
    add(f"Spark / ours, both in memory, {size}", *_ratio(of("spark"), ours, 10.0, "at least"))
    add(f"dask-ml / ours, {size}", *_ratio(of("dask-ml"), dask, 1.0, "more than"))
    twice = {"seconds": dask["read_seconds"]} if has_ended(dask) else dask
    what = f"`LocalCluster(2)`, {size} / reading the files twice there"
    add(what, *_ratio(dask, twice, 1.5, "at most"))
    sent, holds = (
        (in_bytes(dask["sent"]), dask["sent"] <= 60e6) if has_ended(dask) else ("", None)
    )
    add("bytes that workers, scheduler and client send", sent or why_not(dask), "60 MB", holds)
    add(
        f"time of {n_rows:,} / of {least:,} rows",
        *_ratio(ours, of("ours-2", least), 11.0, "at most"),
    )
    for what, got, most, holds in _asked_of_disk(known, n_rows) + _asked_of_threads(known):
        add(what, got, most, holds)
    if (costs := fit_costs(known, n_rows)) is not None:
        seconds = _future(costs, 10**10, 512, BLOCK_BYTES[1]).seconds
        what = f"the model for 1e10 x {WIDE} on 512 workers"
        add(what, in_time(seconds), "at most 15 min", seconds <= 900.0)
    return table(["", "measured", "goal", "reached"], lines)


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
    twice = {"seconds": disk["read_seconds"]}
    lines.append(("its time / reading the file twice", *_ratio(disk, twice, 1.5, "at most")))
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
        return [("two threads / one", NOT_MEASURED, "at most 0.65", None)]
    one, two = found[-1]["1"], found[-1]["2"]
    told = f"{two / one:.2f} ({in_time(two)} / {in_time(one)})"
    key = next(key for key, value in known.items() if value is found[-1])
    size = f"{int(key.split('/')[2]):,} x 40, 64 leaves"
    return [
        (f"two threads / one, {size}", told, "at most 0.65", two / one <= 0.65),
        (f"one thread, {size}", in_time(one), "at most 1 s", one <= 1.0),
        (
            "their labels",
            "equal" if found[-1]["same"] else "different",
            "equal",
            found[-1]["same"],
        ),
    ]


# The contest


def contest(known: Known, kind: str, n_rows: int) -> str:
    """Return all contestants on one table; those that were not run are skipped."""
    results = {name: known.get(f"{name}/{kind}/{n_rows}") for name in WHO}
    header = ["method", "fit", "reading", "peak memory", "sent", "ARI", "purity"]
    lines = []
    for name, one in results.items():
        if one is None:
            continue
        if not has_ended(one):
            lines.append([WHO[name], why_not(one), *[""] * (len(header) - 2)])
            continue
        purity = one["agreement"].get("tree: dendrogram_purity")
        lines.append(
            [
                WHO[name],
                "-" if name == "true-means" else in_time(one["seconds"]),
                in_time(one["read_seconds"]) if one["read_seconds"] else "in the fit",
                in_bytes(one["peak"]),
                in_bytes(one["sent"]),
                f"{one['agreement']['classes']:.3f}",
                "-" if purity is None else f"{purity:.3f}",
            ]
        )
    return table(header, lines) if lines else ""


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


def fit_costs(known: Known, n_rows: int) -> Costs | None:
    """Return the parameters of the model, of what was measured."""
    runs = {n: known.get(f"ours-1/planted/{n}") for n in _sizes(n_rows)}
    seconds = {n: run["seconds"] for n, run in runs.items() if has_ended(run)}
    over = known.get("overheads/planted/0", {})
    if len(seconds) < 2 or "latency" not in over:
        return None
    client, row = fit_line([*seconds], [*seconds.values()])
    route = max(0.0, row - over["draw"]) / N_FEATURES
    costs = Costs(client, over["draw"], route, over["latency"], over["task"])
    # Of files, what is missing is reading.
    rest, cells = [], []
    for n in _sizes(n_rows):
        run = known.get(f"ours-dask/planted/{n}")
        if has_ended(run):
            rest.append(run["seconds"] - _on_two_workers(costs, n, run).seconds)
            cells.append(2.0 * n * N_FEATURES / 2)
    if not cells:
        return costs
    x, y = np.array(cells), np.array(rest)
    return replace(costs, read=max(0.0, float(x @ y / (x @ x))))


def _sizes(n_rows: int) -> list[int]:
    """Return the numbers of rows that the model is fitted to: more than the sample has."""
    sizes = {n_rows // 10, n_rows // 5, n_rows // 2, n_rows}
    return sorted(n for n in sizes if n >= 2 * SAMPLE_ROWS)


def _on_two_workers(costs: Costs, n: int, run: Known) -> Prediction:
    block = -(-n // run["detail"]["partitions"])
    cluster = Cluster(2, storage=np.inf)
    return predict(costs, n, N_FEATURES, cluster=cluster, block_rows=block)


def parameters(costs: Costs) -> str:
    lines = [
        ["the client, on the sample", in_time(costs.client), "fit"],
        ["drawing the sample", f"{1e9 * costs.draw:.2f} ns", "row"],
        ["routing", f"{1e9 * costs.route:.3f} ns", "row, feature"],
        ["reading Parquet", f"{1e9 * costs.read:.2f} ns", "cell, twice"],
        ["latency of Dask", in_time(costs.latency), "round"],
        ["scheduling by Dask", in_time(costs.task), "task"],
    ]
    return table(["what", "costs", "per"], lines)


def checked(costs: Costs, known: Known, n_rows: int) -> str:
    """Return what the model says beside what was measured here."""
    lines = []
    for n in _sizes(n_rows):
        one = known.get(f"ours-1/planted/{n}")
        if has_ended(one):
            said = costs.client + n * (costs.draw + costs.route * N_FEATURES)
            lines.append(_beside(f"{n:,} rows in memory, 1 thread", one["seconds"], said))
    for n in _sizes(n_rows):
        run = known.get(f"ours-dask/planted/{n}")
        if has_ended(run):
            said = _on_two_workers(costs, n, run)
            what = f"{n:,} rows, `LocalCluster(2)`"
            lines.append(_beside(what, run["seconds"], said.seconds))
    return table(["run", "measured", "model", "model / measured"], lines)


def _beside(what: str, measured: float, said: float) -> list[str]:
    return [what, in_time(measured), in_time(said), f"{said / measured:.2f}"]


def predictions(costs: Costs) -> str:
    lines = []
    for n, workers in FUTURES:
        for size in BLOCK_BYTES:
            said = _future(costs, n, workers, size)
            parts = said.reading, said.routing, said.scheduling, said.client + said.sending
            lines.append(
                [
                    f"{n:.0e}".replace("e+", "e"),
                    str(workers),
                    in_bytes(size),
                    f"**{in_time(said.seconds)}**",
                    *map(in_time, parts),
                    f"{said.n_tasks:,}",
                    in_bytes(said.n_sent),
                ]
            )
    header = ["rows", "workers", "block", "fit", "reading", "routing", "scheduler", "client"]
    return table([*header, "tasks", "sent"], lines)


def _future(costs: Costs, n: int, workers: int, size: int) -> Prediction:
    block = size // (4 * WIDE)
    return predict(costs, n, WIDE, cluster=Cluster(workers), block_rows=block)


# The page


def page(known: Known, n_rows: int) -> str:
    """Return the page, of what was measured so far."""
    commits = sorted({one["commit"] for one in known.values() if "commit" in one})
    size = f"{n_rows:,} x {N_FEATURES} float32 ({in_bytes(4.0 * n_rows * N_FEATURES)})"
    parts = [
        "# Scale",
        "Written by `make scale`; do not edit it by hand. Each method runs in its own process, "
        "one at a time, and once unless medians are named.",
        f"Commit {', '.join(commits) or commit()}, {date.today()}, {machine()}.",
        "## Goals",
        asked(known, n_rows),
    ]
    for kind, title, text in (
        ("planted", "Generated classes", PLANTED_TEXT),
        ("shared", "Resampled data", SHARED_TEXT),
    ):
        if lines := contest(known, kind, n_rows):
            parts += [f"## {title}", f"{size}: {text}", lines]
    parts += [
        NOTES,
        "## Number of rows",
        "Taxarbor in memory, two threads, generated classes.",
        growth(known, n_rows),
        "## Larger than memory",
        f"{2 * n_rows:,} x {N_FEATURES} float32 in a `.npy` file, two threads. The data of the "
        "process are limited by `RLIMIT_DATA`; the peak is its resident memory, with mapped "
        "pages. The file is read from the page cache.",
        from_disk(known, n_rows),
        "## A model for clusters",
        _model_part(known, n_rows),
    ]
    return "\n\n".join(parts) + "\n"


def _model_part(known: Known, n_rows: int) -> str:
    costs = fit_costs(known, n_rows)
    if costs is None:
        return "Not measured."
    parts = [
        MODEL,
        parameters(costs),
        "Compared with the runs to which it was fitted:",
        checked(costs, known, n_rows),
        f"### {WIDE} features, 64 and 512 workers",
        ASSUMED,
        predictions(costs),
    ]
    return "\n\n".join(parts)


PLANTED_TEXT = (
    "64 classes of unequal size, the leaves of a binary tree of height 6. Siblings are 4 "
    "standard deviations apart at the leaves, and 1.3 times as far with each level up. Ten "
    "features are noise."
)
SHARED_TEXT = (
    "rows of `awa_attr`, the 50 features with the largest variance, drawn with replacement, "
    "with noise of 0.3 standard deviations. 50 classes in a tree."
)
NOTES = (
    "*Fit* excludes reading data that must be in memory. Peak memory is the sum over all "
    "processes, with the data. *Sent* are all bytes between the processes of a Dask cluster; "
    "for Spark, those between stages and to the driver. ARI is that of the first 1,000,000 "
    "rows with the classes; purity is that of the dendrogram."
)
MODEL = """\
The client draws row numbers and finds the tree on the sample; workers read the blocks with
sampled rows, and then read and route all blocks. A fit takes

    client + rows * draw + rounds of blocks * (reading + routing)
    + 2 * latency + tasks * scheduling + bytes of the sample / bandwidth

Routing is the slope of fits in memory on one thread, and the client is their intercept.
Latency and scheduling are those of empty tasks on `LocalCluster(2)`; reading is the rest of
fits there."""
ASSUMED = (
    "Assumptions: a worker is one core like this one, reads 0.5 GB and sends 1.25 GB per "
    "second; data are read in each of the two rounds; the sample has 100,000 rows. The block "
    "is the user's chunk."
)
