"""How fast and how small: each figure beside what is asked of it.

    python benchmarks/speed.py [--write docs/speed.md] [--only NAME ...] [--json]

Contestants alternate; times are medians; ratios come from one run. Data sets that are not
there are said to be missing, never guessed. Rows are long-form: one figure each.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from tempfile import TemporaryDirectory

import assignment
import numpy as np
from scipy.sparse import csr_matrix, random_array
from sklearn.cluster import BisectingKMeans
from threadpoolctl import threadpool_limits

from taxarbor import HMMC, TableWarning, Taxarbor, Taxonomy
from taxarbor.metrics import tree_scores
from taxarbor.tree import TreeBuilder

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("TAXARBOR_DATA", HERE.parents[1] / "shared" / "data"))
WORDNET = Path("/usr/share/wordnet/data.noun")
RUNS = 7


@dataclass(frozen=True)
class Figure:
    """One measured number, and what is asked of it."""

    what: str
    got: str
    asked: str
    holds: bool | None
    detail: str = ""


def alternate(contestants: dict[str, Callable[[int], object]], runs: int) -> dict[str, float]:
    """Return the median seconds of each contestant; they take turns, with a seed each."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for run in range(runs + 1):
        for name, call in contestants.items():
            begun = time.perf_counter()
            call(run)
            times[name].append(time.perf_counter() - begun)
    return {name: float(np.median(taken[1:])) for name, taken in times.items()}


def load(name: str) -> np.ndarray | None:
    path = DATA / f"{name}.npz"
    return np.load(path)["X"].astype(np.float32) if path.exists() else None


GREEDY = {"n_init": 1, "alpha": 0.003, "beta": 0.003, "balance": 0.5, "center": "node"}


def against_bisecting() -> Iterator[Figure]:
    """Yield how ours compare with bisecting k-means: as it comes, with more starts, greedy."""
    greedy = ", ".join(f"{name}={value!r}" for name, value in GREEDY.items())
    kinds: dict[str, tuple[Callable[..., Taxarbor | HMMC], dict[str, object], float]] = {
        "Taxarbor": (Taxarbor, {}, 1.5),
        "Taxarbor(n_init=1)": (Taxarbor, {"n_init": 1}, 3.5),
        f"HMMC({greedy})": (HMMC, GREEDY, 0.9),
    }
    for name in ("awa_pca", "awa_attr"):
        X = load(name)
        if X is None:
            what = f"Taxarbor / BisectingKMeans, {name}"
            yield Figure(what, "data missing", "at most 1.5", None)
            continue
        for threads in (1, 2):
            contestants: dict[str, Callable[[int], object]] = {
                kind: lambda s, X=X, t=threads, make=make, given=given: make(
                    50, random_state=s, n_jobs=t, **given
                ).fit(X)
                for kind, (make, given, _) in kinds.items()
            }
            contestants["bisecting"] = lambda s, X=X: BisectingKMeans(50, random_state=s).fit(X)
            with threadpool_limits(threads):
                took = alternate(contestants, RUNS)
            for kind, (_, _, most) in kinds.items():
                ratio = took[kind] / took["bisecting"]
                yield Figure(
                    f"{kind} / BisectingKMeans, {name}, 50 leaves, {threads} thread(s)",
                    f"{ratio:.2f}",
                    f"at most {most:g}",
                    ratio <= most,
                    f"{took[kind] * 1e3:.0f} ms / {took['bisecting'] * 1e3:.0f} ms",
                )


def wide_splits() -> Iterator[Figure]:
    """Yield what more children per split cost, and all clusters in one split."""
    X = load("awa_attr")
    if X is None:
        yield Figure("branching, awa_attr", "data missing", "at most 3", None)
        return
    kinds: dict[str, Callable[..., Taxarbor | HMMC]] = {
        "Taxarbor": Taxarbor,
        "HMMC": HMMC,
        "HMMC, alpha = beta = 0.003": lambda k, **given: HMMC(k, **GREEDY, **given),
    }
    with threadpool_limits(1):
        for kind, make in kinds.items():
            contestants: dict[str, Callable[[int], object]] = {
                str(K): lambda s, make=make, K=K: make(50, branching=K, random_state=s).fit(X)
                for K in (2, 3, 5, 10)
            }
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # 50 leaves are not reached in all steps
                took = alternate(contestants, 5)
            for K in ("3", "5", "10"):
                ratio = took[K] / took["2"]
                yield Figure(
                    f"{kind}, branching={K} / branching=2, awa_attr, 50 leaves, 1 thread",
                    f"{ratio:.2f}",
                    "at most 3",
                    ratio <= 3.0,
                    f"{took[K] * 1e3:.0f} ms / {took['2'] * 1e3:.0f} ms",
                )
        flat = HMMC(50, branching=50, penalty="group", balance=0.3, center="node")
        seconds = alternate({"": lambda s: flat.set_params(random_state=s).fit(X)}, 5)[""]
    what = "HMMC, 50 children of one node, awa_attr, 1 thread"
    yield Figure(what, f"{seconds:.2f} s", "at most 2 s", seconds <= 2.0)


def small_tables() -> Iterator[Figure]:
    """Yield how long tables take that fit on a screen."""
    rng = np.random.default_rng(0)
    centers = 4.0 * rng.standard_normal((8, 20))
    X = (rng.standard_normal((2000, 20)) + centers[rng.integers(0, 8, 2000)]).astype(np.float32)
    for n_rows, most in ((2000, 30.0), (200, 10.0)):
        few = X[:n_rows]
        with threadpool_limits(1):
            took = alternate({"": lambda s, few=few: Taxarbor(8, random_state=s).fit(few)}, 21)
        got = took[""] * 1e3
        yield Figure(
            f"Taxarbor(8), {n_rows:,} x 20, 1 thread",
            f"{got:.1f} ms",
            f"at most {most:g} ms",
            got <= most,
        )


def fit_many(n_leaves: int) -> dict[str, float]:
    """Fit many leaves in this process."""
    rng = np.random.default_rng(0)
    centers = 2.0 * rng.standard_normal((3000, 40), dtype=np.float32)
    X = rng.standard_normal((200_000, 40), dtype=np.float32)
    X += centers[rng.integers(0, 3000, 200_000)]
    Taxarbor(2, random_state=0).fit(X[:2000])
    before = current_bytes()
    begun = time.perf_counter()
    model = Taxarbor(n_leaves, random_state=0, n_jobs=2).fit(X)
    return {
        "seconds": time.perf_counter() - begun,
        "extra": (peak_bytes() - before) / 1e6,
        "leaves": model.taxonomy_.tree.n_leaves,
    }


def many_leaves() -> Iterator[Figure]:
    got = [in_own_process("many", 3000) for _ in range(5)]
    took = float(np.median([one["seconds"] for one in got]))
    yield Figure(
        "200,000 x 40, 3,000 leaves, 2 threads",
        f"{took:.1f} s",
        "at most 15 s",
        took <= 15.0,
        f"{got[0]['leaves']:.0f} leaves; median of 5",
    )
    most, half = max(one["extra"] for one in got), in_own_process("many", 1500)["extra"]
    yield Figure(
        "peak memory beyond X, 3,000 / 1,500 leaves",
        f"{most / half:.2f}",
        "at most 2.2",
        most / half <= 2.2,
        f"{most:.0f} MB / {half:.0f} MB",
    )


def fit_ward(_: int) -> dict[str, float]:
    """Time Taxarbor, and Ward's method once: it takes minutes, and gigabytes."""
    from scipy.cluster.hierarchy import linkage

    X = load("awa_pca")
    with threadpool_limits(1):
        ours = alternate({"ours": lambda s: Taxarbor(50, random_state=s).fit(X)}, RUNS)["ours"]
        begun = time.perf_counter()
        linkage(X, "ward")
        return {"ours": ours, "ward": time.perf_counter() - begun}


def against_ward() -> Iterator[Figure]:
    if load("awa_pca") is None:
        yield Figure("Ward / Taxarbor, awa_pca", "data missing", "at least 30", None)
        return
    # In a process of its own: a child's peak memory is its parent's at least.
    took = in_own_process("ward")
    ratio = took["ward"] / took["ours"]
    yield Figure(
        "Ward (SciPy) / Taxarbor, awa_pca, 50 leaves, 1 thread",
        f"{ratio:.0f}",
        "at least 30",
        ratio >= 30,
        f"{took['ward']:.0f} s / {took['ours']:.2f} s; Ward once",
    )


def newton_against_pqn() -> Iterator[Figure]:
    for name in ("awa_pca", "awa_attr"):
        X = load(name)
        if X is None:
            yield Figure(f"pqn / newton, {name}", "data missing", "at least 10", None)
            continue
        took = alternate(
            {
                solver: lambda s, X=X, solver=solver: HMMC(
                    50, solver=solver, random_state=s, **GREEDY
                ).fit(X)
                for solver in ("newton", "pqn")
            },
            5,
        )
        ratio = took["pqn"] / took["newton"]
        yield Figure(
            f"pqn / newton, {name}, 50 leaves, same tolerance",
            f"{ratio:.1f}",
            "at least 10",
            ratio >= 10,
            f"{took['pqn']:.2f} s / {took['newton']:.3f} s",
        )


def assignments() -> Iterator[Figure]:
    for row in assignment.measure():
        asked = 5 if row["n_clusters"] == 20 else 10
        yield Figure(
            f"OR-Tools solve / ours, balanced assignment, 30,000 rows, K = {row['n_clusters']}",
            f"{row['solve_ratio']:.0f}",
            f"at least {asked}",
            row["solve_ratio"] >= asked,
            f"{row['ortools_solve_ms']:.0f} ms / {row['taxarbor_ms']:.2f} ms",
        )


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def current_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def fit_synthetic(n_rows: int) -> dict[str, float]:
    """Fit made-up rows in this process; called in one of its own, so that the peak is its."""
    rng = np.random.default_rng(0)
    X = np.empty((n_rows, 100), dtype=np.float32)
    centers = rng.normal(scale=1.0, size=(64, 100)).astype(np.float32)
    for first in range(0, n_rows, 10_000):
        part = X[first : first + 10_000]
        rng.standard_normal(out=part, dtype=np.float32)
        part += centers[rng.integers(64, size=len(part))]
    Taxarbor(2, random_state=0).fit(X[:2000])
    before = current_bytes()
    begun = time.perf_counter()
    model = Taxarbor(64, random_state=0, n_jobs=2).fit(X)
    return {
        "seconds": time.perf_counter() - begun,
        "extra": (peak_bytes() - before) / X.nbytes,
        "leaves": model.taxonomy_.tree.n_leaves,
    }


def in_own_process(
    job: str, argument: int = 0, timeout: float | None = None, folder: str | None = None
) -> dict[str, float]:
    call = [sys.executable, __file__, "--job", job, str(argument)]
    done = subprocess.run(call, check=True, capture_output=True, timeout=timeout, cwd=folder)
    return dict(json.loads(done.stdout))


def large_synthetic() -> Iterator[Figure]:
    times: dict[int, list[float]] = {125_000: [], 1_000_000: []}
    extra = []
    for _ in range(5):
        for n_rows, taken in times.items():
            got = in_own_process("synthetic", n_rows)
            taken.append(got["seconds"])
            if n_rows == 1_000_000:
                extra.append(got["extra"])
    small, large = (float(np.median(taken)) for taken in times.values())
    yield Figure(
        "1,000,000 x 100 float32, 64 leaves, 2 threads",
        f"{large:.1f} s",
        "finishes",
        got["leaves"] == 64,
        f"{got['leaves']:.0f} leaves; medians of 5",
    )
    worst = max(extra)
    yield Figure(
        "peak memory beyond X, as a share of X", f"{worst:.2f}", "at most 1.0", worst <= 1.0
    )
    yield Figure(
        "time at 1,000,000 / time at 125,000 rows",
        f"{large / small:.1f}",
        "at most 9",
        large / small <= 9,
        f"{large:.2f} s / {small:.2f} s",
    )


def planted(n_rows: int, n_columns: int) -> np.ndarray:
    """Return float32 rows of 64 clusters."""
    rng = np.random.default_rng(0)
    centers = 1.2 * rng.standard_normal((64, n_columns), dtype=np.float32)
    X = np.empty((n_rows, n_columns), dtype=np.float32)
    for first in range(0, n_rows, 100_000):
        part = X[first : first + 100_000]
        rng.standard_normal(out=part, dtype=np.float32)
        part += centers[rng.integers(64, size=len(part))]
    return X


def routing() -> Iterator[Figure]:
    """Yield how long rows beyond the sample take: in a fit, and in predict."""
    X = planted(1_000_000, 40)
    took = alternate(
        {str(n): lambda s, n=n: Taxarbor(64, random_state=s, n_jobs=n).fit(X) for n in (1, 2)},
        RUNS,
    )
    yield Figure(
        "1,000,000 x 40 float32, 64 leaves, 1 thread",
        f"{took['1']:.2f} s",
        "at most 1 s",
        took["1"] <= 1.0,
    )
    ratio = took["2"] / took["1"]
    yield Figure(
        "the same, 2 threads / 1 thread", f"{ratio:.2f}", "at most 0.65", ratio <= 0.65
    )
    X = planted(4_000_000, 50)
    copy = np.empty_like(X)
    model = Taxarbor(64, random_state=0, n_jobs=2).fit(X)
    took = alternate(
        {
            "fit": lambda s: Taxarbor(64, random_state=s, n_jobs=2).fit(X),
            "predict": lambda s: model.predict(X),
            "copy": lambda s: np.copyto(copy, X),
        },
        RUNS,
    )
    yield Figure(
        "4,000,000 x 50 float32, 64 leaves, 2 threads",
        f"{took['fit']:.2f} s",
        "at most 1 s",
        took["fit"] <= 1.0,
    )
    ratio = took["predict"] / took["copy"]
    yield Figure(
        "the same: predict / np.copyto of X",
        f"{ratio:.1f}",
        "at most 3",
        ratio <= 3.0,
        f"{took['predict']:.3f} s / {took['copy']:.3f} s",
    )


def wordnet_matrix() -> csr_matrix:
    """Return tf-idf of the glosses of all nouns, as the data's README says."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    lines = WORDNET.read_text(encoding="utf-8", errors="replace").splitlines()
    glosses = [line.split(" | ", 1)[1] for line in lines if " | " in line and line[0] != " "]
    return TfidfVectorizer(dtype=np.float32, stop_words="english").fit_transform(glosses)


def fit_wordnet(_: int) -> dict[str, float]:
    X = wordnet_matrix()
    begun = time.perf_counter()
    model = Taxarbor(64, random_state=0, n_jobs=2).fit(X)
    return {
        "seconds": time.perf_counter() - begun,
        "peak": peak_bytes(),
        "rows": X.shape[0],
        "columns": X.shape[1],
        "leaves": model.taxonomy_.tree.n_leaves,
    }


def fit_pqn(_: int) -> dict[str, float]:
    X = wordnet_matrix()
    begun = time.perf_counter()
    model = HMMC(8, solver="pqn", random_state=0).fit(X)
    return {
        "seconds": time.perf_counter() - begun,
        "leaves": model.taxonomy_.tree.n_leaves,
    }


def sparse_wordnet() -> Iterator[Figure]:
    if not WORDNET.exists():
        yield Figure(
            "CSR tf-idf of WordNet glosses", "not here: install wordnet-base", "< 4 GB", None
        )
        return
    got = in_own_process("wordnet")
    table = f"CSR tf-idf of WordNet glosses, {got['rows']:,.0f} x {got['columns']:,.0f}"
    runs = [in_own_process("pqn") for _ in range(5)]
    took = float(np.median([one["seconds"] for one in runs]))
    yield Figure(
        f"HMMC(solver='pqn'), {table}, 8 leaves",
        f"{took:.1f} s",
        "at most 5 s",
        took <= 5.0 and runs[0]["leaves"] == 8,
        "median of 5",
    )
    yield Figure(
        f"{table}, 64 leaves",
        f"{got['peak'] / 1e9:.2f} GB",
        "under 4 GB",
        got["peak"] < 4e9 and got["leaves"] == 64,
        f"{got['seconds']:.1f} s, {got['leaves']:.0f} leaves; peak of the whole process",
    )


def measures() -> Iterator[Figure]:
    """Yield how long all measures of a large tree take."""
    n_rows, n_leaves = 1_000_000, 500
    rng = np.random.default_rng(0)
    builder = TreeBuilder(n_rows)
    leaves = [0]
    while len(leaves) < n_leaves:
        node = leaves.pop(0)
        leaves += builder.add_split(node, rng.permutation(builder.size(node)) % 2)
    taxonomy, y = Taxonomy(builder.freeze()), rng.integers(0, n_leaves, n_rows)
    truth = [("root", f"group {c % 20}", str(c)) for c in range(n_leaves)]
    with threadpool_limits(1):
        took = alternate({"all": lambda _: tree_scores(taxonomy, y, truth)}, RUNS)["all"]
    yield Figure(
        "all measures, 1,000,000 rows, 500 leaves, 500 classes, 1 thread",
        f"{took:.2f} s",
        "under 1 s",
        took < 1.0,
    )


def fit_wide(n_features: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    if n_features == 50_000:
        X = rng.standard_normal((30, n_features), dtype=np.float32)
    else:
        X = random_array(
            (40, n_features), density=1e-3, format="csr", rng=rng, dtype=np.float32
        )
    begun = time.perf_counter()
    model = HMMC(4, random_state=0).fit(X)
    return {"seconds": time.perf_counter() - begun, "leaves": model.taxonomy_.tree.n_leaves}


def wide_papers() -> Iterator[Figure]:
    """Yield how long the paper's method takes where there are far more features than rows."""
    for told, n_features in (
        ("30 x 50,000 dense", 50_000),
        ("40 x 1,000,000 CSR", 1_000_000),
    ):
        what = f"paper's method, {told}, 4 leaves"
        try:
            got = in_own_process("wide", n_features, timeout=120.0)
        except subprocess.TimeoutExpired:
            yield Figure(what, "more than 120 s", "at most 10 s", False)
            continue
        holds = got["seconds"] <= 10.0 and got["leaves"] == 4
        yield Figure(
            what,
            f"{got['seconds']:.1f} s",
            "at most 10 s",
            holds,
            f"{got['leaves']:.0f} leaves; once",
        )


def gaps_and_weights() -> Iterator[Figure]:
    """Yield the cost of missing values and weights, compared with the same rows without."""
    rng = np.random.default_rng(0)
    centers = 2.0 * rng.standard_normal((20, 40))
    X = (rng.standard_normal((100_000, 40)) + centers[rng.integers(0, 20, 100_000)]).astype(
        np.float32
    )
    gappy = np.where(rng.random(X.shape) < 0.05, np.float32(np.nan), X)
    weights = rng.uniform(0.2, 5.0, len(X))
    contestants: dict[str, Callable[[int], object]] = {
        "without": lambda s: Taxarbor(20, random_state=s).fit(X),
        "5 % missing values": lambda s: Taxarbor(20, random_state=s).fit(gappy),
        "fractional weights": lambda s: Taxarbor(20, random_state=s).fit(
            X, sample_weight=weights
        ),
    }
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        took = alternate(contestants, RUNS)
    for kind in ("5 % missing values", "fractional weights"):
        ratio = took[kind] / took["without"]
        yield Figure(
            f"fit with {kind} / without, 100,000 x 40, 20 leaves, 1 thread",
            f"{ratio:.2f}",
            "at most 1.5",
            ratio <= 1.5,
            f"{took[kind] * 1e3:.0f} ms / {took['without'] * 1e3:.0f} ms",
        )


def write_mixed(n_rows: int) -> dict[str, float]:
    """Write a table of 20 numbers and 10 categories of 20 values."""
    import pandas as pd

    rng = np.random.default_rng(0)
    group = rng.integers(0, 12, n_rows)
    table = pd.DataFrame(
        {
            f"number {j}": rng.standard_normal(n_rows) + 3.0 * rng.standard_normal(12)[group]
            for j in range(20)
        }
    )
    for j in range(10):
        usual = rng.integers(0, 20, 12)[group]
        codes = np.where(rng.random(n_rows) < 0.6, usual, rng.integers(0, 20, n_rows))
        values = [f"value {v}" for v in range(20)]
        table[f"category {j}"] = pd.Categorical.from_codes(codes, values).astype(str)
    table.to_parquet("mixed.parquet")
    return {}


def mixed_table() -> Iterator[Figure]:
    """Yield what the command takes from a file of numbers and categories to a page."""
    # Written in a process of its own: a child's peak memory is its parent's at least.
    n_rows = 1_000_000
    with TemporaryDirectory() as folder:
        in_own_process("mixed", n_rows, folder=folder)
        command = [sys.executable, "-m", "taxarbor", "fit", "mixed.parquet", "-k", "12"]
        command += ["--report", "mixed.html"]
        begun = time.perf_counter()
        quiet = subprocess.DEVNULL
        done = subprocess.Popen(command, cwd=folder, stdout=quiet, stderr=quiet)
        _, status, used = os.wait4(done.pid, 0)
        done.returncode = os.waitstatus_to_exitcode(status)
        took = time.perf_counter() - begun
        size = (Path(folder) / "mixed.parquet").stat().st_size
        is_there = done.returncode == 0 and (Path(folder) / "mixed.html").exists()
    told = "parquet to page, 1,000,000 x 30 (10 categories of 20 values)"
    yield Figure(f"{told}, 1 thread", f"{took:.1f} s", "at most 60 s", is_there and took <= 60)
    peak = used.ru_maxrss * 1024
    yield Figure(
        "peak memory of the whole process, as a multiple of the file",
        f"{peak / size:.2f}",
        "under 3",
        is_there and peak < 3 * size,
        f"{peak / 1e6:.0f} MB / {size / 1e6:.0f} MB",
    )


def start_up() -> Iterator[Figure]:
    def run(code: str) -> Callable[[int], object]:
        return lambda _: subprocess.run([sys.executable, "-c", code], check=True)

    took = alternate(
        {"with": run("import sklearn, taxarbor"), "sklearn": run("import sklearn")}, 7
    )
    extra = took["with"] - took["sklearn"]
    yield Figure(
        "import taxarbor, beyond import sklearn",
        f"{extra:.2f} s",
        "under 0.2 s",
        extra < 0.2,
        f"{took['with']:.2f} s - {took['sklearn']:.2f} s",
    )
    script = Path(sys.executable).with_name("taxarbor")
    version = [str(script), "--version"]
    took = alternate(
        {"it": lambda _: subprocess.run(version, check=True, stdout=subprocess.DEVNULL)}, 7
    )
    yield Figure(
        "taxarbor --version", f"{took['it']:.2f} s", "at most 0.5 s", took["it"] <= 0.5
    )
    root = HERE.parent
    took = alternate(
        {
            "demo": lambda _: subprocess.run(
                ["make", "-s", "demo"], check=True, cwd=root, stdout=subprocess.DEVNULL
            )
        },
        3,
    )
    yield Figure(
        "make demo, after set-up", f"{took['demo']:.1f} s", "under 15 s", took["demo"] < 15
    )


FIGURES = {
    "bisecting": against_bisecting,
    "branching": wide_splits,
    "small": small_tables,
    "many": many_leaves,
    "ward": against_ward,
    "solvers": newton_against_pqn,
    "assignment": assignments,
    "large": large_synthetic,
    "routing": routing,
    "sparse": sparse_wordnet,
    "measures": measures,
    "wide": wide_papers,
    "tables": gaps_and_weights,
    "mixed": mixed_table,
    "start": start_up,
}
JOBS = {
    "synthetic": fit_synthetic,
    "many": fit_many,
    "ward": fit_ward,
    "wordnet": fit_wordnet,
    "pqn": fit_pqn,
    "wide": fit_wide,
    "mixed": write_mixed,
}


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


def table(figures: list[Figure]) -> str:
    verdict = {True: "yes", False: "**no**"}
    lines = ["| figure | measured | goal | reached | detail |", "|---|---|---|---|---|"]
    lines += [
        f"| {f.what} | {f.got} | {f.asked} | {verdict[f.holds]} | {f.detail} |"
        for f in figures
        if f.holds is not None
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="write the table to this Markdown file")
    parser.add_argument("--only", nargs="*", choices=sorted(FIGURES), default=list(FIGURES))
    parser.add_argument("--json", action="store_true", help="print long-form rows instead")
    parser.add_argument("--job", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.job:
        print(json.dumps(JOBS[arguments.job[0]](int(arguments.job[1]))))
        return
    warnings.simplefilter("error")
    figures = []
    for name in arguments.only:
        for figure in FIGURES[name]():
            figures.append(figure)
            stamp = {"commit": commit(), "machine": machine()}
            print(json.dumps(asdict(figure) | stamp) if arguments.json else figure, flush=True)
    if arguments.write:
        arguments.write.write_text(
            "# Speed and size\n\n"
            "Written by `make bench`; do not edit it by hand. Ratios are those of medians of "
            "alternating runs in one process, on an idle machine.\n\n"
            f"Commit {commit()}, {date.today()}, {machine()}.\n\n{table(figures)}\n",
            encoding="utf-8",
        )


if __name__ == "__main__":
    main()
