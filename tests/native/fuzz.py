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


def make_rows(rng):
    """Rows themselves, dense and sparse, and parts of them."""
    data, X = draw_data(rng)
    n, p = X.shape
    values, columns, starts = csr_parts(X)
    center = None if rng.random() < 0.5 else rng.normal(size=p)
    rest = {"n_features": p, "center": center, "n_threads": 1}
    positions = rng.integers(0, n, int(rng.integers(1, 9)))
    return [
        (native.Data.dense, {"X": X, "center": center, "n_threads": 2}),
        (native.Data.csr, {"values": values, "columns": columns, "starts": starts, **rest}),
        (data.take, {"positions": positions, "center": center}),
    ]


def sweep_rows(rng):
    """Passes over rows."""
    data, X = draw_data(rng)
    n, p, m = *X.shape, int(rng.integers(1, 40))
    W, start = rng.normal(size=(m, p)), rng.normal(size=p)
    positions = rng.integers(0, n, int(rng.integers(0, 60)))
    features = np.flatnonzero(rng.random(p) < 0.6)
    places = {"labels": rng.integers(-1, m, n).astype("i4"), "centers": W}
    fill = rng.normal(size=p) if rng.random() < 0.5 else None
    sweeps = [
        (native.scores, {"W": W}),
        (native.best, {"W": W, "offsets": rng.normal(size=m)}),
        (native.adjoint, {"R": rng.normal(size=(n, 3)).astype(X.dtype)}),
        (native.spread, {}),
        (native.norms, {}),
        (native.gram, {"positions": positions, "features": features}),
        (native.lloyd, {"centers": W[:5], "n_steps": 3}),
        (native.principal, {"start": start, "n_steps": 2}),
        (native.distances, {**places, "factors": np.abs(start), "fill": start}),
        (native.route, {"fill": fill, **draw_table(rng, p)}),
    ]
    return [(kernel, {"data": data, **arguments}) for kernel, arguments in sweeps]


def read_matrices(rng):
    """What needs no rows: losses, assignments, sums, hashes and links."""
    X = draw_matrix(rng)
    n, K = X.shape
    labels = rng.integers(0, K, n).astype(rng.choice(["i4", "i8"]))
    warm = labels.astype("i4") if rng.random() < 0.5 else None
    counts = rng.integers(0, 4, n).astype("i4") if rng.random() < 0.5 else None
    key = int(rng.integers(0, 2**64, dtype="u8"))
    plane = {"Z": X.astype("f4"), "plane": rng.normal(size=K), "offset": float(rng.normal())}
    return [
        (native.hinge_multi, {"S": X, "labels": labels.astype("i4")}),
        (native.hinge_costs, {"S": X}),
        (native.assign_flow, {"C": X, "lower": n // K, "upper": -(-n // K), "warm": warm}),
        (native.assign_pair, {"f": X[:, 0].copy(), "lower": n // 3, "upper": n // 2}),
        (native.label_sums, {"X": X, "labels": labels - 1, "n_labels": K, "counts": counts}),
        (native.sort_by_label, {"labels": labels - 1, "n_labels": K}),
        (native.hashes, {"key": key, "numbers": rng.integers(0, 2**62, 5)}),
        (native.plane_scores, plane),
        (native.ward, {"X": X, "n_clusters": int(rng.integers(1, n + 1))}),
        (native.ward_links, {"points": X.astype("f8"), "weights": rng.uniform(1, 9, n)}),
    ]


def split_rows(rng):
    """Splits in two, in several and in halves, their fields beside the data: see `call`."""
    data, X = draw_data(rng)
    (n, p), K = X.shape, int(rng.integers(2, 5))
    has_labels, is_far = rng.random(2) < [0.7, 0.5]
    limits = {"ridge": float(rng.choice([0.0, 1e-2])), "tol": 1e-6, "violation": 1e-6}
    common = {
        "data": data,
        "l1": np.full(p, float(rng.choice([0.0, 1e-3, 0.1]))),
        "max_alternations": 20,
        "max_working": int(rng.choice([1, 5, 2048])),
        **limits,
    }
    pair = {
        "start": rng.normal(size=p) * is_far,
        "labels": rng.integers(0, 2, n).astype("i1") if has_labels else None,
        "bounds": (n // 4, n - n // 4),
    }
    kway = {
        "start": rng.normal(size=(K, p)) * is_far,
        "labels": rng.integers(0, K, n).astype("i4") if has_labels else None,
        "bounds": (n // K, -(-n // K)) if rng.random() < 0.5 else (0, n),
        "group": 0.01,
    }
    halve = {
        "data": data.take(np.arange(2 * n) // 2),  # two at least
        "seed": int(rng.integers(0, 2**63)),
        "starts": ["principal", "ward", "far_rows"],
        "bounds": (max(n // 2, 1), 2 * n - max(n // 2, 1)),
        "max_rounds": 20,
        "start_rows": int(rng.integers(2, 40)),
        "ward_rows": int(rng.integers(2, 40)),
        "lloyd_steps": 2,
        "power_steps": 2,
        **limits,
    }
    return [(native.pair, common | pair), (native.kway, common | kway), (native.halve, halve)]


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


CASES = [make_rows, sweep_rows, read_matrices, split_rows]


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


def sound_calls(seed):
    """Return what each kernel says to the sound arguments of one seed."""
    rng = np.random.default_rng(seed)
    calls = [kernel_call for case in CASES for kernel_call in case(rng)]
    return {kernel.__name__: call(kernel, arguments) for kernel, arguments in calls}


def fuzz(seed, n_calls):
    """Make that many spoilt calls; return how many were refused."""
    rng = np.random.default_rng(seed)
    refused = 0
    for _ in range(n_calls):
        try:
            calls = CASES[rng.integers(len(CASES))](rng)
            kernel, arguments = calls[rng.integers(len(calls))]
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
