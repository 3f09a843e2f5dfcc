"""Bad data and parameters: what comes of each is decided, one line each, in decided.csv.

A line holds an estimator, a call, in which it is called ``E``, and the outcome: what is raised,
with a part of its message, or ``fits``, with the warnings there are and how each begins.

``python -m tests.attack.data`` says which lines do not hold. With ``--decide``, outcomes
that are missing are filled in with what happens: look at them.
"""

import csv
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from tests.attack.tally import Tally

DECIDED = Path(__file__).with_name("decided.csv")
COLUMNS = ("estimator", "call", "outcome")
SAID = 28
"""Letters of a message that a line keeps."""


def put(X, value, place=(3, 1)):
    """Return a copy with another value in one cell."""
    found = X.copy()
    found[place] = value
    return found


def names():
    """Return what a call may name."""
    import dask
    import dask.array as da
    import dask.dataframe as dd
    import pandas as pd
    import polars as pl
    from scipy import sparse

    import taxarbor

    dask.config.set(scheduler="synchronous")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4)) + 6 * rng.integers(0, 2, size=(40, 4))
    frame = pd.DataFrame(X, columns=[*"abcd"])
    S = sparse.csr_array(X)
    bad = sparse.csr_array((S.data, S.indices.copy(), S.indptr), shape=S.shape)
    bad.indices[5] = 99
    torn = sparse.csr_array((S.data, S.indices, S.indptr.copy()), shape=S.shape)
    torn.indptr[3] = 10**6
    return {
        **{"np": np, "pd": pd, "pl": pl, "da": da, "dd": dd, "sparse": sparse},
        **{"nan": np.nan, "inf": np.inf, "put": put, "X": X, "frame": frame},
        **{"pairs": np.repeat([[0.0, 1.0], [5.0, 2.0]], 20, axis=0), "S": S},
        **{"one_other": put(np.zeros((64, 2)), 1.0, 0), "bad": bad, "torn": torn},
        **{"words": pd.DataFrame({"w": ["x", "y"] * 20, "v": X[:, 0]})},
        **{"days": pd.DataFrame({"t": pd.date_range("2020", periods=40), "v": X[:, 0]})},
        "masked": np.ma.masked_array(X, X > 6),
        **{name: getattr(taxarbor, name) for name in ("TableEncoder",)},
        "estimators": {name: getattr(taxarbor, name) for name in ESTIMATORS},
    }


ESTIMATORS = ("Taxarbor", "HMMC", "MMC", "HierarchicalKMeans", "HierarchicalSpectral")


def outcome(line, given):
    """Return what comes of a call."""
    kind = given["estimators"][line["estimator"]]
    given = given | {"E": partial(kind, random_state=0)}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = eval(line["call"], given)
            told = ["fits", *_flaws(found, line["call"])]
        except Exception as error:
            return _said(getattr(error, "strerror", None) or error, type(error))
    kinds = (UserWarning, RuntimeWarning)
    said = [
        _said(one.message, one.category) for one in caught if issubclass(one.category, kinds)
    ]
    return ", ".join([*told, *(f"warns {one}" for one in dict.fromkeys(said))])


def _said(message, kind):
    text = " ".join(str(message).split())
    return f"{kind.__name__}: {text[:SAID].strip()}"


def _flaws(found, call):
    """Yield what is wrong with a fitted estimator, or with labels."""
    tree = getattr(found, "hierarchy_", None)
    if tree is None:
        return
    labels = np.asarray(found.labels_)
    if labels.shape != (tree.n_rows,) or labels.min() < -1 or labels.max() >= tree.n_leaves:
        yield "labels are wrong"
    equal = labels.reshape(2, -1) if "pairs" in call else [labels[1:]]
    if ("pairs" in call or "one_other" in call) and any(len({*rows}) > 1 for rows in equal):
        yield "equal rows are torn apart"


def holds(decided, came):
    """Say whether an outcome is as decided: the same warnings, of which the ends may differ."""
    parts = came.split(", warns "), decided.split(", warns ")
    if len(parts[0]) != len(parts[1]) or (parts[1][0] == "fits" and parts[0][0] != "fits"):
        return False
    return all(mine.startswith(wanted) for mine, wanted in zip(*parts, strict=True))


def lines():
    """Return the lines of the table."""
    with DECIDED.open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


def broken(estimator=None):
    """Yield each line that does not hold, with what came instead."""
    given = names()
    for line in lines():
        if estimator in (None, line["estimator"]):
            came = outcome(line, given)
            yield line, None if holds(line["outcome"], came) else came


def attack(seed, seconds):
    """Check all lines, however long it takes."""
    tally = Tally()
    for line, came in broken():
        call = f"{line['estimator']}: {line['call']}"
        problem = came and f"{call}: {came}; decided: {line['outcome']}"
        kind = "fits" if line["outcome"].startswith("fits") else "refused"
        kind = "fits and warns" if "warns" in line["outcome"] else kind
        tally.check(problem, kind, "python -m tests.attack.data")
    return tally


def decide():
    """Fill in the outcomes that are missing."""
    given, table = names(), lines()
    for line in table:
        line["outcome"] = line["outcome"] or outcome(line, given)
    with DECIDED.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


if __name__ == "__main__":
    if sys.argv[1:] == ["--decide"]:
        decide()
    else:
        print("\n".join(attack(0, 0).found) or "all lines hold")  # noqa: T201
