"""Every kernel with sound arguments, and with one of them spoilt.

A sound call gives finite arrays; a spoilt one gives some result or ValueError, TypeError or
MemoryError. Whether memory is touched that should not be shows only in a build with sanitizers:
``make sanitize``. ``python tests/native/fuzz.py SECONDS [SEED]`` runs it alone.
"""

import sys
import time
import warnings
from types import SimpleNamespace

import numpy as np
from scipy import sparse

from taxarbor import native
from taxarbor.rows import as_rows

REFUSALS = (ValueError, TypeError, MemoryError)
DTYPES = ["f4", "f8", "f2", "i1", "i4", "i8", "u1", "u8", "?", "c16", ">f8", "O"]
NUMBERS = [np.nan, np.inf, -np.inf, 1e308, 1e39, 5e-324, -1.0, 0.0]
WHOLE = [-1, 0, 1, 2, 7, 127, 10**6, 2**31 - 1, 2**31, 2**32 + 1, 2**62, 2**63 - 1, -(2**63)]
ENDLESS = {"lloyd_steps", "max_rounds", "power_steps", "n_steps", "max_alternations"}
ENDLESS |= {"n_features", "n_labels"}
"""Amounts of work to do or memory to take: what is asked for is done, so huge ones stay out."""


def draw_matrix(rng):
    """Return a small matrix, float32 or float64, with zeros in it."""
    shape = rng.integers(1, [40, 24])
    X = rng.normal(0.3, 1.0, shape) * (rng.random(shape) < 0.6)
    return X.astype(rng.choice(["f4", "f8"]))


def draw_data(rng, X=None):
    """Return rows of either kind, or a part of them, with the matrix that they are."""
    X = draw_matrix(rng) if X is None else X
    n_threads = int(rng.integers(1, 4))
    center = rng.normal(size=X.shape[1]) if rng.random() < 0.5 else None
    if rng.random() < 0.5:
        data = native.Data.dense(X, center, n_threads)
    else:
        data = native.Data.csr(*csr_parts(X), X.shape[1], center, n_threads)
    if rng.random() < 0.5:
        positions = rng.integers(0, len(X), int(rng.integers(1, 50)))
        data, X = data.take(positions, center), X[positions]
    return data, X


def csr_parts(X):
    S = sparse.csr_array(X)
    return S.data, S.indices.astype(np.int32), S.indptr.astype(np.int64)


def make_dense(rng):
    X = draw_matrix(rng)
    return native.Data.dense, {"X": X, "center": rng.normal(size=X.shape[1]), "n_threads": 2}


def make_csr(rng):
    X = draw_matrix(rng)
    names = ["values", "columns", "starts", "n_features", "center", "n_threads"]
    return native.Data.csr, dict(zip(names, (*csr_parts(X), X.shape[1], None, 1), strict=True))


def take(rng):
    data, X = draw_data(rng)
    positions = rng.integers(0, len(X), int(rng.integers(1, 9)))
    center = None if rng.random() < 0.5 else rng.normal(size=X.shape[1]).astype("f4")
    return data.take, {"positions": positions, "center": center}


def scores(rng):
    data, X = draw_data(rng)
    W = rng.normal(size=(rng.integers(1, 40), X.shape[1]))
    return native.scores, {"data": data, "W": W}


def best(rng):
    _, given = scores(rng)
    return native.best, given | {"offsets": rng.normal(size=len(given["W"]))}


def adjoint(rng):
    data, X = draw_data(rng)
    R = rng.normal(size=(len(X), rng.integers(1, 4))).astype(X.dtype)
    return native.adjoint, {"data": data, "R": R}


def spread(rng):
    return (native.spread, native.norms)[rng.integers(2)], {"data": draw_data(rng)[0]}


def gram(rng):
    data, X = draw_data(rng)
    positions = rng.integers(0, len(X), int(rng.integers(0, 60)))
    features = np.flatnonzero(rng.random(X.shape[1]) < 0.6)
    return native.gram, {"data": data, "positions": positions, "features": features}


def lloyd(rng):
    data, X = draw_data(rng)
    centers = rng.normal(size=(rng.integers(1, 6), X.shape[1]))
    return native.lloyd, {"data": data, "centers": centers, "n_steps": 3}


def principal(rng):
    data, X = draw_data(rng)
    return native.principal, {"data": data, "start": rng.normal(size=X.shape[1]), "n_steps": 2}


def pair(rng):
    """A two-way split, its fields beside the data: see `call`."""
    data, X = draw_data(rng)
    n, p = len(X), X.shape[1]
    labels = rng.integers(0, 2, n).astype("i1") if rng.random() < 0.7 else None
    fields = {
        "start": rng.normal(size=p) * (rng.random() < 0.5),
        "labels": labels,
        "bounds": (n // 4, n - n // 4),
        "l1": np.full(p, float(rng.choice([0.0, 1e-3, 0.1]))),
        "ridge": float(rng.choice([0.0, 1e-2])),
        "tol": 1e-6,
        "violation": 1e-6,
        "max_alternations": 20,
        "max_working": int(rng.choice([1, 5, 2048])),
    }
    return native.pair, {"data": data, **fields}


def kway(rng):
    """A split into several children, on rows and weights as for two."""
    _, fields = pair(rng)
    n, p, K = fields["data"].n_rows, fields["data"].n_features, int(rng.integers(2, 5))
    labels = rng.integers(0, K, n).astype("i4") if rng.random() < 0.7 else None
    start = rng.normal(size=(K, p)) * (rng.random() < 0.5)
    bounds = (n // K, -(-n // K)) if rng.random() < 0.5 else (0, n)
    own = {"start": start, "labels": labels, "bounds": bounds, "group": 0.01}
    return native.kway, {**fields, **own}


def halve(rng):
    data, X = draw_data(rng)
    n = len(X) * 2
    data = data.take(np.arange(n) // 2)  # two at least
    fields = {
        "seed": int(rng.integers(0, 2**63)),
        "starts": ["principal", "ward", "far_rows"],
        "bounds": (max(n // 4, 1), n - max(n // 4, 1)),
        "ridge": float(rng.choice([0.0, 1e-2])),
        "tol": 1e-6,
        "violation": 1e-6,
        "max_rounds": 20,
        "start_rows": int(rng.integers(2, 40)),
        "ward_rows": int(rng.integers(2, 40)),
        "lloyd_steps": 2,
        "power_steps": 2,
    }
    return native.halve, {"data": data, **fields}


def hinge_multi(rng):
    S = draw_matrix(rng)
    labels = rng.integers(0, S.shape[1], len(S)).astype("i4")
    return native.hinge_multi, {"S": S, "labels": labels}


def hinge_costs(rng):
    return native.hinge_costs, {"S": draw_matrix(rng)}


def assign_flow(rng):
    C = draw_matrix(rng)
    n, K = C.shape
    warm = rng.integers(0, K, n).astype("i4") if rng.random() < 0.5 else None
    return native.assign_flow, {"C": C, "lower": n // K, "upper": -(-n // K), "warm": warm}


def assign_pair(rng):
    f = rng.normal(size=rng.integers(1, 60)).astype(rng.choice(["f4", "f8"]))
    return native.assign_pair, {"f": f, "lower": len(f) // 3, "upper": len(f) // 2}


def label_sums(rng):
    X = draw_matrix(rng)
    K = int(rng.integers(1, max(len(X), 1) + 1))
    labels = rng.integers(-1, K, len(X)).astype(rng.choice(["i4", "i8"]))
    counts = rng.integers(0, 4, len(X)).astype("i4") if rng.random() < 0.5 else None
    return native.label_sums, {"X": X, "labels": labels, "n_labels": K, "counts": counts}


def hashes(rng):
    key = int(rng.integers(0, 2**64, dtype="u8"))
    return native.hashes, {"key": key, "numbers": rng.integers(0, 2**62, 5)}


def plane_scores(rng):
    n, q = rng.integers(1, [40, 24])
    own = {"Z": rng.normal(size=(n, q)).astype("f4"), "plane": rng.normal(size=q)}
    return native.plane_scores, own | {"offset": float(rng.normal())}


def draw_table(rng, p):
    """Return a few rules, each of two targets or more: rules further on, or leaves."""
    n_rules, n_leaves = int(rng.integers(1, 6)), int(rng.integers(1, 8))
    n_used = rng.integers(0, min(p, 5) + 1, n_rules)
    n_targets = rng.integers(2, 5, n_rules)
    rule_of = np.repeat(np.arange(n_rules), n_targets)
    leaves = rng.integers(-n_leaves, 0, len(rule_of))
    is_rule = (rng.random(len(rule_of)) < 0.5) & (rule_of < n_rules - 1)
    later = rng.integers(np.minimum(rule_of + 1, n_rules - 1), n_rules)
    return {
        "starts": np.cumsum([0, *n_used]),
        "features": rng.integers(0, p, n_used.sum()).astype("i4"),
        "centers": rng.normal(size=n_used.sum()),
        "weights": rng.normal(size=n_used @ n_targets),
        "firsts": np.cumsum([0, *n_targets]),
        "offsets": rng.normal(size=n_targets.sum()),
        "targets": np.where(is_rule, later, leaves).astype("i4"),
        "n_leaves": n_leaves,
    }


def route(rng):
    data, X = draw_data(rng)
    fill = rng.normal(size=X.shape[1]) if rng.random() < 0.5 else None
    return native.route, {"data": data, "fill": fill, **draw_table(rng, X.shape[1])}


def distances(rng):
    data, X = draw_data(rng)
    (n, p), m = X.shape, int(rng.integers(1, 5))
    own = {"labels": rng.integers(-1, m, n).astype("i4"), "centers": rng.normal(size=(m, p))}
    own |= {"factors": rng.uniform(0, 2, p), "fill": rng.normal(size=p)}
    return native.distances, {"data": data, **own}


def sort_by_label(rng):
    K = int(rng.integers(1, 6))
    labels = rng.integers(-1, K, int(rng.integers(0, 60))).astype(rng.choice(["i4", "i8"]))
    return native.sort_by_label, {"labels": labels, "n_labels": K}


def ward(rng):
    X = draw_matrix(rng)
    return native.ward, {"X": X, "n_clusters": int(rng.integers(1, len(X) + 1))}


def ward_links(rng):
    points = draw_matrix(rng).astype("f8")
    return native.ward_links, {"points": points, "weights": rng.uniform(1, 9, len(points))}


CASES = [make_dense, make_csr, take, scores, best, adjoint, gram, spread]
CASES += [lloyd, principal]
CASES += [pair, kway, halve, hinge_multi, hinge_costs]
CASES += [assign_flow, assign_pair, label_sums, ward, ward_links]
CASES += [hashes, plane_scores, route, distances, sort_by_label]


def call(kernel, arguments):
    """Call a kernel; rows that it makes are swept, so that nothing wrong with them hides."""
    if kernel in (native.pair, native.kway, native.halve):
        given = dict(arguments)
        return kernel(given.pop("data"), SimpleNamespace(**given))
    if kernel is native.route:
        given = dict(arguments)
        data, fill = given.pop("data"), given.pop("fill")
        return kernel(data, SimpleNamespace(**given), fill)
    result = kernel(**arguments)
    if not isinstance(result, native.Data):
        return result
    n, p = result.n_rows, result.n_features
    sweeps = [result.center, native.norms(result), native.scores(result, np.ones((2, p)))]
    if n:
        backwards = result.take(np.arange(n)[::-1].copy())
        gram = native.gram(result, np.arange(n), np.arange(p))
        sweeps += [gram, native.spread(result), native.norms(backwards)]
    return tuple(sweeps)


def unaligned(array):
    raw = np.frombuffer(b"\0" + array.tobytes(), dtype="u1")[1:]
    return raw.view(array.dtype).reshape(array.shape)


SHAPES = [
    lambda array: array[..., :-1].copy(),
    lambda array: array[:0],
    lambda array: array[None],
    lambda array: array.ravel(),
    lambda array: array.T,
    lambda array: array[::-1],
    lambda array: np.broadcast_to(array[:1], array.shape),
    lambda array: np.repeat(array, 2, axis=-1)[..., ::2],
    lambda array: np.concatenate([array, array]),
    lambda array: np.concatenate([array, array], axis=-1),
    unaligned,
]


def spoil_array(rng, array, n_kinds=4):
    """Return an array of another type, shape or layout, or with strange values."""
    if array.dtype.kind not in "fiu" or not array.size or not array.ndim:
        return array  # spoilt already
    kind = rng.integers(n_kinds)
    if kind == 0:
        return array.astype(rng.choice(DTYPES))
    if kind == 1:
        return SHAPES[rng.integers(len(SHAPES))](array)
    spoilt = array.copy()
    pool = NUMBERS if array.dtype.kind == "f" else [*WHOLE, len(array), array.size]
    info = None if array.dtype.kind == "f" else np.iinfo(array.dtype)
    for _ in range(int(rng.integers(1, 4))):
        value = pool[rng.integers(len(pool))]
        value = value if info is None else min(max(value, info.min), info.max)
        spoilt.flat[rng.integers(spoilt.size)] = value
    return spoilt


def spoil(rng, name, value):
    """Return something else in the place of a sound argument."""
    if rng.random() < 0.03:
        return [None, "text", [], object(), 1.5][rng.integers(5)]
    if isinstance(value, np.ndarray):
        return spoil_array(rng, value, 2 if name in ENDLESS else 4)
    pools = {
        bool: [None, 0, 2],
        type(None): [True, np.zeros(3, dtype="i4"), 0],
        int: [-1, 0, 1, 2] if name in ENDLESS else [*WHOLE, 2**64],
        float: NUMBERS,
        tuple: [tuple(WHOLE[k] for k in rng.integers(len(WHOLE), size=2))],
        list: [[NUMBERS[k] for k in rng.integers(len(NUMBERS), size=2)]],
    }
    pool = pools.get(type(value), [value])
    return pool[rng.integers(len(pool))]


def spoil_matrix(rng):
    """Hand `as_rows` a sparse matrix whose insides someone has touched."""
    X = sparse.csr_array(draw_matrix(rng))
    parts = ["data", "indices", "indptr"]
    for name in rng.choice(parts, int(rng.integers(1, 3)), replace=False):
        setattr(X, name, spoil_array(rng, getattr(X, name)))
    if rng.random() < 0.2:
        X = sparse.coo_array(draw_matrix(rng)).asformat(
            str(rng.choice(["csc", "coo", "lil", "bsr"]))
        )
    rows = as_rows(X)
    return rows.norms(), rows.scores(np.ones((1, rows.n_features)))


def sound_calls(seed):
    """Return what each kernel says to the sound arguments of one seed."""
    rng = np.random.default_rng(seed)
    return {case.__name__: call(*case(rng)) for case in CASES}


def fuzz(seed, n_calls):
    """Make that many spoilt calls; return how many were refused."""
    rng = np.random.default_rng(seed)
    refused = 0
    for _ in range(n_calls):
        try:
            if rng.random() < 0.05:
                spoil_matrix(rng)
                continue
            kernel, arguments = CASES[rng.integers(len(CASES))](rng)
            for name in rng.choice(list(arguments), int(rng.integers(1, 3))):
                arguments[name] = spoil(rng, name, arguments[name])
            call(kernel, arguments)
        except REFUSALS:
            refused += 1
    return refused


def main(seconds, seed=0):
    end = time.monotonic() + seconds
    first, refused = seed, 0
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    while time.monotonic() < end:
        sys.stdout.write(f"seed {seed}\n")
        sys.stdout.flush()
        sound_calls(seed)
        refused += fuzz(seed, 200)
        seed += 1
    calls = 200 * (seed - first)
    sys.stdout.write(f"seeds {first} to {seed - 1}: {calls} spoilt calls, {refused} refused\n")


if __name__ == "__main__":
    main(float(sys.argv[1]), *(int(seed) for seed in sys.argv[2:]))
