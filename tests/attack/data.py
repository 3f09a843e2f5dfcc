"""Bad data and parameters for the estimators: what fits, and what is refused.

In the calls ``E`` is the estimator. A refusal is an error of taxarbor, in one line, that names
the parameter where one is given here.
"""

import warnings
from functools import partial

import numpy as np

from tests.attack.mutations import Outcomes

ESTIMATORS = ("Taxarbor", "HMMC")
FITS = """
E(2).fit(put(X, nan))
E(2).fit(X * 0)
E(9).fit(pairs)
E(3).fit(put(np.zeros((64, 2)), 1.0, 0))
E(2).fit(X[:2])
E(40).fit(X)
E(2).fit(X.tolist())
E(2).fit(X.astype(object))
E(2).fit(put(X.astype(object), "x"))
E(2).fit(np.ma.masked_array(X, X > 6))
E(2).fit(X * 1e60)
E(2).fit(put(X.astype("i8"), 2**63 - 1))
E(2).fit(X.astype(">f8"))
E(2).fit(np.asfortranarray(X)[::-1])
E(2).fit(S.tocsc())
E(2).fit(S * nan)
E(2).fit(sparse.csr_array((40, 4)))
E(2).fit(words)
E(2).fit(days)
E(2).fit(frame.assign(a=nan))
E(2).fit(X, sample_weight=np.full(40, 1e300))
E(2).fit(X).predict(put(X, nan))
E(2).fit(X).predict(X * 1e300)
E(2).fit(words).predict(words.assign(w="new"))
"""
REFUSED = {
    None: """
E(2, encoder=None).fit(put(X, nan))
E(2).fit(put(X, inf))
E(2).fit(X * nan)
E(2).fit(X[:1])
E(2).fit(X[:0])
E(2).fit(X[0])
E(2).fit(None)
E(2).fit("no such file.npy")
E(2).fit([[1, 2], [3]])
E(2).fit(X + 1j)
E(2).fit(X.astype(str))
E(2, encoder=None).fit(words)
E(2).fit(X * 1e300)
E(2).fit(put(X, 1e300))
E(2).fit(put(X.astype(object), 10**400))
E(2).fit(bad_index)
E(2).fit(bad_pointer)
E(2).fit(frame.rename(columns={"b": "a"}))
E(2).fit(frame.assign(a=inf))
E(None).fit(X)
E(2).predict(X)
E(2).fit(X).predict(X[:, :2])
E(2).fit(X).predict(X[:0])
E(2).fit(X).predict(put(X, inf))
E(2).fit(X).predict(bad_index)
E(2).fit(frame).predict(frame[["a", "b"]])
E(2).fit(frame).predict(frame.astype(str) + "x")
""",
    "n_clusters": """
E(50).fit(X)
E(0).fit(X)
E(1.5).fit(X)
E(True).fit(X)
""",
    "n_jobs": """
E(2, n_jobs=0).fit(X)
E(2, n_jobs="x").fit(X)
""",
    "encoder": 'E(2, encoder="x").fit(X)',
    "sample_weight": """
E(2).fit(X, sample_weight=-np.ones(40))
E(2).fit(X, sample_weight=np.zeros(40))
E(2).fit(X, sample_weight=np.full(40, nan))
E(2).fit(X, sample_weight=np.full(40, inf))
E(2).fit(X, sample_weight=np.ones(3))
E(2).fit(X, sample_weight=["x"] * 40)
E(2).fit(X, sample_weight=np.eye(40)[0])
""",
    "branching": "E(2, branching=1).fit(X)",
    "max_depth": "E(2, max_depth=0).fit(X)",
    "max_leaf_size": "E(2, max_leaf_size=0).fit(X)",
    "balance": """
E(2, balance=-1).fit(X)
E(2, balance=nan).fit(X)
E(2, balance=(1.1, 0.9)).fit(X)
""",
}


def make_names():
    """Return what the calls may name."""
    import pandas as pd
    from scipy import sparse

    def put(X, value, place=(3, 1)):
        changed = X.copy()
        changed[place] = value
        return changed

    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4)) + 6 * rng.integers(0, 2, size=(40, 4))
    S = sparse.csr_array(X)
    bad_index = sparse.csr_array((S.data, S.indices.copy(), S.indptr), shape=S.shape)
    bad_index.indices[5] = 99
    bad_pointer = sparse.csr_array((S.data, S.indices, S.indptr.copy()), shape=S.shape)
    bad_pointer.indptr[3] = 10**6
    return {
        **{"np": np, "sparse": sparse, "nan": np.nan, "inf": np.inf, "put": put},
        **{"X": X, "S": S, "bad_index": bad_index, "bad_pointer": bad_pointer},
        "pairs": np.repeat([[0.0, 1.0], [5.0, 2.0]], 20, axis=0),
        "frame": pd.DataFrame(X, columns=[*"abcd"]),
        "words": pd.DataFrame({"w": ["x", "y"] * 20, "v": X[:, 0]}),
        "days": pd.DataFrame({"t": pd.date_range("2020", periods=40), "v": X[:, 0]}),
    }


def attack(seed, seconds):
    """Try all calls for all estimators, however long it takes."""
    import taxarbor

    outcomes, names = Outcomes(), make_names()
    for kind in ESTIMATORS:
        E = partial(getattr(taxarbor, kind), random_state=0)
        for call in FITS.strip().splitlines():
            _try(outcomes, call, names | {"E": E}, f"{kind}: {call}")
        for parameter, calls in REFUSED.items():
            for call in calls.strip().splitlines():
                _try(outcomes, call, names | {"E": E}, f"{kind}: {call}", parameter, True)
    return outcomes


def _try(outcomes, call, names, title, parameter=None, is_refused=False):
    from sklearn.exceptions import NotFittedError

    from taxarbor import TaxarborError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = eval(call, names)
    except (TaxarborError, NotFittedError, FileNotFoundError) as error:
        is_named = parameter in (None, getattr(error, "parameter", None))
        if is_refused and is_named:
            outcomes["refused"] += 1
        else:
            outcomes.forbid(f"{title}: {type(error).__name__}: {error}")
    except Exception as error:
        outcomes.forbid(f"{title}: {type(error).__name__}: {error}")
    else:
        labels = np.asarray(getattr(result, "labels_", result))
        if is_refused or labels.ndim != 1 or labels.min() < -1:
            outcomes.forbid(f"{title}: fits, with labels {labels[:5]}")
        else:
            outcomes["fits"] += 1
