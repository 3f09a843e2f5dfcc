"""A fit in small: a few rounds of splits at exact means, by sweeps with kept columns."""

import sys
import time

import numpy as np

UNIT = 1024


def rest(seconds, slow=None):
    """Take time, ten times as much on the worker of that name."""
    if seconds:
        distributed = sys.modules.get("distributed")
        if slow is not None and distributed.get_worker().name == slow:
            seconds *= 10
        time.sleep(seconds)


def whole(X):
    return np.rint(X * UNIT).astype(np.int64)


def survey(X):
    return whole(X).sum(axis=0), X.shape[0]


def coordinates(X, *, center, pause=0.0, slow=None):
    rest(pause, slow)
    Z = (whole(X) - center).astype(np.float32)
    return Z, (Z.astype(np.int64) ** 2).sum(axis=0)


def begin(Z):
    return np.zeros(len(Z), dtype=np.int32), {"rows": len(Z)}


def moments(Z, nodes, *, n_nodes, pause=0.0, slow=None):
    rest(pause, slow)
    sums = np.zeros((n_nodes, Z.shape[1]), dtype=np.int64)
    np.add.at(sums, nodes, Z.astype(np.int64))
    return np.bincount(nodes, minlength=n_nodes), sums


def move_rows(Z, nodes, *, feature, thresholds, pause=0.0, slow=None):
    rest(pause, slow)
    right = Z[np.arange(len(Z)), feature[nodes]] > thresholds[nodes]
    moved = (2 * nodes + right).astype(np.int32)
    return moved, np.bincount(moved, minlength=2 * len(thresholds))


def leaf_sums(X, nodes, *, n_nodes):
    sums = np.zeros((n_nodes, X.shape[1]), dtype=np.int64)
    np.add.at(sums, nodes, whole(X))
    return sums


def fit(engine, parts, n_rounds=3, **how):
    """Return all that was found, as numbers, and the column of leaves."""
    total, n = engine.sweep(survey, parts)
    center = total // n
    Z, squares = engine.keep(coordinates, parts, center=center, **how)
    nodes, found = engine.keep(begin, Z)
    said = [total, n, squares, found["rows"]]
    for level in range(n_rounds):
        counts, sums = engine.sweep(moments, Z, nodes, n_nodes=2**level, **how)
        means = sums // np.maximum(counts, 1)[:, None]
        feature = np.abs(means).argmax(axis=1)
        cut = means[np.arange(2**level), feature].astype(np.float32)
        nodes, counts = engine.keep(move_rows, Z, nodes, feature=feature, thresholds=cut, **how)
        said += [means, counts]
    said.append(engine.sweep(leaf_sums, parts, nodes, n_nodes=2**n_rounds))
    return said, nodes


def same(said, others):
    return all(np.array_equal(a, b) for a, b in zip(said, others, strict=True))
