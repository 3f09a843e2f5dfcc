"""Large tables with a known tree of classes, as files: planted, and like a shared set.

Rows come in blocks with a seed each, so that a smaller table is the beginning of a larger one.
"""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from taxarbor.metrics import ClassTree

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("TAXARBOR_DATA", HERE.parents[1] / "shared" / "data"))
N_FEATURES, N_NOISE, HEIGHT = 50, 10, 6
BLOCK, FILE = 100_000, 250_000
"""Rows made with one seed, and rows of one Parquet file, of which there are eight at least."""
SEED = 15

Maker = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Source:
    """Where rows come from: ``make(rng, n)`` returns rows and the class of each."""

    make: Maker
    classes: tuple[str, ...]
    truth: ClassTree


def planted() -> Source:
    """Return rows about the 64 leaves of a binary tree, of unequal sizes.

    Two children are apart along twelve features of their parent's own; siblings are 4 standard
    deviations apart at the leaves, and 1.3 times as far with each level up. Ten of the features
    say nothing.
    """
    rng = np.random.default_rng(SEED)
    centers, shares, names = np.zeros((1, N_FEATURES)), np.ones(1), [""]
    for depth in range(HEIGHT):
        gap = 4.0 * 1.3 ** (HEIGHT - 1 - depth)
        steps = np.zeros_like(centers)
        for step in steps:
            features = rng.choice(N_FEATURES - N_NOISE, 12, replace=False)
            step[features] = rng.standard_normal(12)
        steps *= 0.5 * gap / np.linalg.norm(steps, axis=1, keepdims=True)
        left = rng.uniform(0.35, 0.65, len(shares))
        centers = np.stack([centers - steps, centers + steps], axis=1).reshape(-1, N_FEATURES)
        shares = np.stack([shares * left, shares * (1 - left)], axis=1).ravel()
        names = [name + side for name in names for side in "01"]
    bounds, means = np.cumsum(shares)[:-1], centers.astype(np.float32)

    def make(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        leaf = np.searchsorted(bounds, rng.random(n)).astype(np.uint8)
        X = rng.standard_normal((n, N_FEATURES), dtype=np.float32)
        X += means[leaf]
        return X, leaf

    paths = {name: [name[:depth] or "all" for depth in range(HEIGHT)] for name in names}
    return Source(make, tuple(names), ClassTree.read(paths))


def shared_like() -> Source | None:
    """Return rows drawn from `awa_attr`, with jitter; None where that set is not here.

    The 50 features that vary most; each row is one of the set's, moved by 0.3 of each feature's
    standard deviation.
    """
    path = DATA / "awa_attr.npz"
    if not path.exists():
        return None
    with np.load(path, allow_pickle=False) as file:
        X, y, names = file["X"].astype(np.float32), file["y"], file["class_names"].tolist()
    X = np.ascontiguousarray(X[:, np.sort(np.argsort(X.var(axis=0))[-N_FEATURES:])])
    jitter = 0.3 * X.std(axis=0)

    def make(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
        drawn = rng.integers(0, len(X), n)
        moved = rng.standard_normal((n, N_FEATURES), dtype=np.float32)
        moved *= jitter
        moved += X[drawn]
        return moved, y[drawn].astype(np.uint8)

    truth = json.loads((DATA / "awa_attr.hierarchy.json").read_text(encoding="utf-8"))
    return Source(make, tuple(names), ClassTree.read(truth))


SOURCES: dict[str, Callable[[], Source | None]] = {"planted": planted, "shared": shared_like}


@dataclass(frozen=True)
class Table:
    """A table in files: an array, a folder of Parquet files, and the class of each row."""

    folder: Path
    kind: str
    n_rows: int

    def _path(self, ending: str) -> Path:
        return self.folder / f"{self.kind}-{self.n_rows}{ending}"

    @property
    def array(self) -> Path:
        """The rows, as an array."""
        return self._path(".npy")

    @property
    def parquet(self) -> Path:
        """The rows, as a folder of Parquet files."""
        return self._path(".parquet")

    @property
    def classes(self) -> Path:
        """The class of each row."""
        return self._path(".classes.npy")

    @property
    def n_bytes(self) -> int:
        """What the numbers of the rows take."""
        return 4 * N_FEATURES * self.n_rows

    def write(self, *, parquet: bool) -> str | None:
        """Write what is not there yet; return why not, if it cannot be made."""
        source = SOURCES[self.kind]()
        if source is None:
            return f"the data set awa_attr is not in {DATA.name}"
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self.classes.exists():  # it is written last
            self._write_array(source)
        if parquet and not self.parquet.exists():
            self._write_parquet()
        return None

    def _write_array(self, source: Source) -> None:
        rows = np.lib.format.open_memmap(
            self.array, "w+", dtype=np.float32, shape=(self.n_rows, N_FEATURES)
        )
        classes = np.empty(self.n_rows, dtype=np.uint8)
        for block, first in enumerate(range(0, self.n_rows, BLOCK)):
            rng = np.random.default_rng([SEED, block])
            X, y = source.make(rng, BLOCK)
            last = min(first + BLOCK, self.n_rows)
            rows[first:last], classes[first:last] = X[: last - first], y[: last - first]
        rows.flush()
        np.save(self.classes, classes)

    def _write_parquet(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        X = np.load(self.array, mmap_mode="r")
        names = [f"f{j:02}" for j in range(N_FEATURES)]
        unfinished = self._path(".unfinished")
        unfinished.mkdir(exist_ok=True)
        step = min(FILE, -(-self.n_rows // 8))
        for number, first in enumerate(range(0, self.n_rows, step)):
            part = np.asarray(X[first : first + step])
            columns = [pa.array(np.ascontiguousarray(part[:, j])) for j in range(N_FEATURES)]
            pq.write_table(
                pa.table(columns, names=names),
                unfinished / f"part-{number:04}.parquet",
                row_group_size=50_000,
                compression="none",
                use_dictionary=False,
            )
        unfinished.rename(self.parquet)
