"""Who divides a large table into 64 clusters: each is called in a process of its own.

A contestant reads the table, fits, and returns how long both took, the memory and the bytes
that it cost, and its clusters of the first rows. Its tree, where it has one, is built again of
these rows, so that all trees are measured alike.
"""

import gc
import hashlib
import json
import os
import resource
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scale_data import N_FEATURES, SOURCES, Table
from sklearn.metrics import adjusted_rand_score

from taxarbor import Taxarbor, Taxonomy
from taxarbor.metrics import tree_scores
from taxarbor.tree import Tree, TreeBuilder

N_CLUSTERS = 64
N_SCORED = 1_000_000
"""The rows that agreement is measured by: the first ones, which are as random as any."""
SPARK_MEMORY, WORKER_MEMORY = "14g", "9GiB"

Splits = Sequence[tuple[int, Sequence[int]]]
"""Nodes and their children, in the order in which they were made; the root is first."""


# Memory and bytes


def peak_bytes() -> int:
    """Return the peak memory of this process and all below it: the sum of their own peaks."""
    return sum(_status(pid, "VmHWM") for pid in family(os.getpid()))


def family(root: int) -> list[int]:
    """Return a process and all that it started, and they in turn."""
    below: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            below.setdefault(_status(int(entry.name), "PPid"), []).append(int(entry.name))
    pids = [root]
    for pid in pids:
        pids += below.get(pid, [])
    return pids


def _status(pid: int, name: str) -> int:
    """Return a number of a process, in bytes where it is one of kB; 0 if it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return -1 if name == "PPid" else 0
    for line in lines:
        if line.startswith(f"{name}:"):
            number, *unit = line.split()[1:]
            return int(number) * (1024 if unit else 1)
    return 0


# Fits


@dataclass
class Outcome:
    """What a contestant reports."""

    read_seconds: float = 0.0
    seconds: float = 0.0
    peak: int = 0
    sent: int | None = None
    detail: dict[str, Any] = field(default_factory=dict)
    labels: np.ndarray | None = None
    splits: Splits = ()
    leaves: Sequence[int] = ()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Time what makes the rows ready."""
        begun = time.perf_counter()
        yield
        self.read_seconds = time.perf_counter() - begun

    @contextmanager
    def fitting(self) -> Iterator[None]:
        """Time the fit; its peak is that of all processes so far."""
        gc.collect()
        begun = time.perf_counter()
        yield
        self.seconds = time.perf_counter() - begun
        self.peak = peak_bytes()

    def take(self, tree: Tree, labels: np.ndarray) -> None:
        """Keep a tree whose leaves are numbered from left to right."""
        inner = sorted(set(range(tree.n_nodes)) - set(tree.leaves.tolist()), key=_born_in(tree))
        self.splits = [(node, tree.children(node)) for node in inner]
        self.leaves, self.labels = tree.leaves.tolist(), labels


def _born_in(tree: Tree) -> Callable[[int], int]:
    return lambda node: int(tree.birth[tree.children(node)[0]])


def head(table: Table) -> np.ndarray:
    return np.array(np.load(table.array, mmap_mode="r")[:N_SCORED])


def fingerprint(model: Taxarbor, table: Table) -> dict[str, str]:
    """Return what is equal for equal trees: of its rules, its sizes and the labels of rows."""
    tree = model.taxonomy_.tree
    rules = [
        part
        for rule in tree.rules
        if rule is not None
        for part in (rule.weights, rule.center, rule.offsets)
    ]
    labels = model.predict(head(table))
    kinds = {"rules": rules, "sizes": [tree.parents, tree.sizes], "labels": [labels]}
    return {kind: _hash(arrays) for kind, arrays in kinds.items()}


def _hash(arrays: Sequence[np.ndarray]) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        wide = np.float64 if array.dtype.kind == "f" else np.int64
        digest.update(np.ascontiguousarray(array, dtype=wide).tobytes())
    return digest.hexdigest()[:16]


def _finish(outcome: Outcome, model: Taxarbor, table: Table) -> Outcome:
    outcome.take(model.taxonomy_.tree, np.asarray(model.predict(head(table))))
    outcome.detail |= {"tree": fingerprint(model, table)}
    return outcome


def ours_in_memory(table: Table, n_jobs: int) -> Outcome:
    outcome = Outcome()
    with outcome.reading():
        X = np.load(table.array)
    model = Taxarbor(N_CLUSTERS, random_state=0, n_jobs=n_jobs)
    with outcome.fitting():
        model.fit(X)
    return _finish(outcome, model, table)


def ours_from_parquet(table: Table) -> Outcome:
    outcome = Outcome()
    model = Taxarbor(N_CLUSTERS, random_state=0, n_jobs=2, encoder=None)
    with outcome.fitting():
        model.fit(str(table.parquet))
    return _finish(outcome, model, table)


def ours_from_array(table: Table, limit: int) -> Outcome:
    """Fit a file that is larger than what the process may have."""
    outcome = Outcome()
    with outcome.reading():
        for _ in range(2):
            read_file(table.array)
    model = Taxarbor(N_CLUSTERS, random_state=0, n_jobs=2)
    with outcome.fitting(), limit_memory(limit):
        model.fit(str(table.array))
    return _finish(outcome, model, table)


@contextmanager
def limit_memory(limit: int) -> Iterator[None]:
    """Let this process have no more data than that.

    What is mapped from a file does not count; it does in the peak, which is measured.
    """
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def read_file(path: Path) -> None:
    """Read a file from the first to the last byte."""
    buffer = bytearray(1 << 24)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


@contextmanager
def cluster() -> Iterator[Any]:
    """Start two workers of one thread each."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            memory_limit=WORKER_MEMORY,
            dashboard_address=None,
        ) as workers,
        Client(workers) as client,
    ):
        yield client


def count_writes() -> None:
    """Count what this process writes to others of the cluster, byte by byte.

    Dask's own count takes the size that objects claim to have, not what is sent of them.
    """
    from distributed.comm.tcp import TCP

    if hasattr(TCP, "n_written"):
        return
    write = TCP.write

    async def counted(self: Any, *given: Any, **options: Any) -> Any:
        n_bytes = await write(self, *given, **options)
        TCP.n_written += n_bytes
        return n_bytes

    TCP.n_written, TCP.write = 0, counted


def written() -> int:
    from distributed.comm.tcp import TCP

    return int(TCP.n_written)


@contextmanager
def counting(client: Any, outcome: Outcome) -> Iterator[None]:
    """Count all bytes that pass between workers, scheduler and client."""
    count_writes()
    client.run(count_writes)
    here, there = written(), sum(client.run(written).values())
    yield
    by_workers = sum(client.run(written).values()) - there
    by_client = written() - here
    outcome.detail |= {"by workers": by_workers, "by client and scheduler": by_client}
    outcome.sent = by_workers + by_client


def ours_on_dask(table: Table) -> Outcome:
    import dask.dataframe as dd

    outcome = Outcome()
    with cluster() as client:
        rows = dd.read_parquet(table.parquet)
        with outcome.reading():
            for _ in range(2):
                rows.map_partitions(len, meta=(None, "i8")).compute(optimize_graph=False)
        model = Taxarbor(N_CLUSTERS, random_state=0, encoder=None)
        with counting(client, outcome), outcome.fitting():
            model.fit(rows)
        outcome.detail["partitions"] = rows.npartitions
        return _finish(outcome, model, table)


def dask_ml(table: Table) -> Outcome:
    import dask.dataframe as dd
    from dask_ml.cluster import KMeans
    from distributed import wait

    outcome = Outcome()
    with cluster() as client:
        with outcome.reading():
            rows = dd.read_parquet(table.parquet).to_dask_array(lengths=True).persist()
            wait(rows)
        model = KMeans(N_CLUSTERS, random_state=0)
        with counting(client, outcome), outcome.fitting():
            model.fit(rows)
        outcome.detail |= {"iterations": int(model.n_iter_), "partitions": rows.npartitions}
        centers = np.asarray(model.cluster_centers_)
    outcome.labels = nearest(head(table), centers)
    return outcome


def nearest(X: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the number of the centre nearest to each row."""
    labels = np.empty(len(X), dtype=np.int64)
    halves = 0.5 * np.square(centers).sum(axis=1)
    for first in range(0, len(X), 65536):
        part = X[first : first + 65536]
        labels[first : first + 65536] = np.argmax(part @ centers.T - halves, axis=1)
    return labels


def sklearn_bisecting(table: Table) -> Outcome:
    from sklearn.cluster import BisectingKMeans

    sys.path.append(str(Path(__file__).resolve().parents[1]))  # experiments are not installed
    from experiments.baselines import read_bisecting_kmeans

    outcome = Outcome()
    with outcome.reading():
        X = np.load(table.array)
    model = BisectingKMeans(N_CLUSTERS, random_state=0)
    with outcome.fitting():
        model.fit(X)
    tree = read_bisecting_kmeans(model).tree
    outcome.take(tree, tree.labels[:N_SCORED])
    return outcome


def sklearn_minibatch(table: Table) -> Outcome:
    from sklearn.cluster import MiniBatchKMeans

    outcome = Outcome()
    with outcome.reading():
        X = np.load(table.array)
    model = MiniBatchKMeans(N_CLUSTERS, random_state=0)
    with outcome.fitting():
        model.fit(X)
    outcome.labels = model.labels_[:N_SCORED].astype(np.int64)
    return outcome


def spark(table: Table) -> Outcome:
    from pyspark.ml.clustering import BisectingKMeans
    from pyspark.ml.feature import VectorAssembler
    from pyspark.sql import SparkSession

    outcome = Outcome()
    session = (
        SparkSession.builder.master("local[2]")
        .appName("scale")
        .config("spark.driver.memory", SPARK_MEMORY)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.retainedStages", "100000")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.local.dir", str(table.folder))
        .getOrCreate()
    )
    try:
        session.sparkContext.setLogLevel("ERROR")
        with outcome.reading():
            files = session.read.parquet(str(table.parquet))
            rows = VectorAssembler(inputCols=files.columns, outputCol="features")
            cached = rows.transform(files).select("features").cache()
            cached.count()
        before = _spark_bytes(session)
        with outcome.fitting():
            model = BisectingKMeans(k=N_CLUSTERS, seed=0).fit(cached)
        after = _spark_bytes(session)
        outcome.sent = sum(after[kind] - before[kind] for kind in after)
        outcome.detail |= {kind: after[kind] - before[kind] for kind in after}
        outcome.detail["partitions"] = cached.rdd.getNumPartitions()
        _take_spark_tree(outcome, model, head(table), table.folder / f"spark-{os.getpid()}")
    finally:
        session.stop()
    return outcome


def _spark_bytes(session: Any) -> dict[str, int]:
    """Return what stages wrote for each other, and what they sent to the driver."""
    context = session.sparkContext
    place = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(place, timeout=60) as answer:
        stages = json.load(answer)
    kinds = {"shuffled": "shuffleWriteBytes", "to the driver": "resultSize"}
    return {kind: sum(stage.get(key, 0) for stage in stages) for kind, key in kinds.items()}


def _take_spark_tree(outcome: Outcome, model: Any, X: np.ndarray, folder: Path) -> None:
    """Read the tree from the files of the saved model: it was split level by level."""
    import shutil

    import pyarrow.parquet as pq

    model.write().overwrite().save(str(folder))
    files = pq.read_table([str(path) for path in folder.rglob("*.parquet")])
    nodes = {row["index"]: row for row in files.to_pylist()}
    shutil.rmtree(folder)
    is_child = {child for row in nodes.values() for child in row["children"]}
    level, splits, leaves = [index for index in nodes if index not in is_child], [], []
    while level:
        level.sort(key=lambda index: -nodes[index]["size"])
        inner = [index for index in level if nodes[index]["children"]]
        leaves += [index for index in level if not nodes[index]["children"]]
        splits += [(index, nodes[index]["children"]) for index in inner]
        level = [child for index in inner for child in nodes[index]["children"]]
    values = [nodes[leaf]["center"]["values"] for leaf in leaves]
    # Spark sends a row down the tree, to the nearer of two centres at each node.
    outcome.labels = (
        _route(X, nodes, splits, leaves) if splits else nearest(X, np.array(values))
    )
    outcome.splits, outcome.leaves = splits, leaves


def _route(
    X: np.ndarray, nodes: dict[int, Any], splits: Splits, leaves: list[int]
) -> np.ndarray:
    rows = {splits[0][0]: np.arange(len(X))}
    for node, children in splits:
        here = rows.pop(node)
        centers = np.array([nodes[child]["center"]["values"] for child in children])
        side = nearest(X[here], centers)
        rows |= {child: here[side == k] for k, child in enumerate(children)}
    labels = np.empty(len(X), dtype=np.int64)
    for number, leaf in enumerate(leaves):
        labels[rows[leaf]] = number
    return labels


def true_centers(table: Table) -> Outcome:
    """Assign rows to the nearest mean of a class: the best that can be expected."""
    outcome = Outcome()
    X, y = head(table), np.load(table.classes)[:N_SCORED]
    with outcome.fitting():
        means = np.stack([X[y == label].mean(axis=0) for label in range(int(y.max()) + 1)])
        outcome.labels = nearest(X, means)
    return outcome


CONTESTANTS: dict[str, Callable[[Table], Outcome]] = {
    "ours-1": lambda table: ours_in_memory(table, 1),
    "ours-2": lambda table: ours_in_memory(table, 2),
    "ours-parquet": ours_from_parquet,
    "ours-dask": ours_on_dask,
    "spark": spark,
    "dask-ml": dask_ml,
    "sklearn-bisecting": sklearn_bisecting,
    "sklearn-minibatch": sklearn_minibatch,
    "true-means": true_centers,
}


# Agreement


def rebuild_tree(labels: np.ndarray, splits: Splits, leaves: Sequence[int]) -> Tree:
    """Return a tree of rows with given leaves; splits that divide none of them are left out."""
    builder = TreeBuilder(len(labels))
    if not len(splits):
        _, numbers = np.unique(labels, return_inverse=True)
        if numbers.max() > 0:
            builder.add_split(0, numbers)
        return builder.freeze()
    children = dict(splits)
    below: dict[int, list[int]] = {leaf: [k] for k, leaf in enumerate(leaves)}
    for node, parts in reversed(splits):
        below[node] = [label for part in parts for label in below[part]]
    n_of = np.bincount(labels, minlength=len(leaves))
    order = np.argsort(labels, kind="stable")
    parts_of = dict(enumerate(np.split(order, np.cumsum(n_of)[:-1])))
    place = {splits[0][0]: 0}
    for node, _ in splits:
        if node not in place:
            continue
        alive = [part for part in children[node] if n_of[below[part]].sum()]
        here = place.pop(node)
        if len(alive) == 1:  # its rows go on as those of the only child
            place[alive[0]] = here
            continue
        side = np.empty(len(labels), dtype=np.int64)
        for k, part in enumerate(alive):
            for label in below[part]:
                side[parts_of[label]] = k
        rows = np.sort(np.concatenate([parts_of[label] for label in below[node]]))
        place |= dict(zip(alive, builder.add_split(here, side[rows]), strict=True))
    return builder.freeze()


def agreement(table: Table, outcome: Outcome) -> dict[str, float]:
    """Return the agreement of clusters and tree with the classes: 1 is best, 0 is chance."""
    source = SOURCES[table.kind]()
    assert source is not None
    assert outcome.labels is not None
    labels = outcome.labels
    y = np.load(table.classes, mmap_mode="r")[: len(labels)]
    tree = rebuild_tree(labels, outcome.splits, outcome.leaves)
    scores = {"leaves": float(tree.n_leaves), "classes": adjusted_rand_score(y, tree.labels)}
    if len(outcome.splits):
        deepest = max(len(path) for path in _paths(source.truth, source.classes))
        for depth in range(1, deepest):
            names, level = np.unique(
                source.truth.ancestors_of(source.classes, depth), return_inverse=True
            )
            if 1 < len(names) < min(len(source.classes), tree.n_leaves):
                scores[f"{len(names)} groups"] = adjusted_rand_score(
                    level[y], tree.cut(len(names))
                )
        names_of = np.array(source.classes)[y]
        of_tree = tree_scores(Taxonomy(tree), names_of, source.truth)
        scores |= {f"tree: {name}": value for name, value in of_tree.items()}
    return scores


def _paths(truth: Any, classes: Sequence[str]) -> Iterator[list[int]]:
    for leaf in truth.leaves_of(classes).tolist():
        path = [leaf]
        while truth.parents[path[-1]] >= 0:
            path.append(int(truth.parents[path[-1]]))
        yield path


def contest(name: str, table: Table) -> dict[str, Any]:
    """Run one contestant in this process."""
    outcome = CONTESTANTS[name](table)
    return describe(table, outcome) | {"data": table.n_bytes, "features": N_FEATURES}


def describe(table: Table, outcome: Outcome) -> dict[str, Any]:
    return {
        "read_seconds": outcome.read_seconds,
        "seconds": outcome.seconds,
        "peak": outcome.peak,
        "sent": outcome.sent,
        "detail": outcome.detail,
        "agreement": agreement(table, outcome),
    }
