import tempfile

import numpy as np
import pytest
from scipy.sparse import csr_array

from taxarbor._run import Run
from taxarbor.sweep import LocalEngine, blocks_of, merged


def total(X):
    return X.sum(axis=0), len(X)


def doubled(X):
    return 2 * X, len(X)


def test_what_blocks_find_is_added_up():
    assert merged({"a": 1, "b": (2, np.ones(2))}, {"a": 2, "b": (3, np.ones(2))})["a"] == 3
    X = np.arange(12.0).reshape(6, 2)
    sums, n = LocalEngine(Run()).sweep(total, [X[:4], X[4:]])
    assert sums.tolist() == X.sum(axis=0).tolist()
    assert n == 6


@pytest.mark.parametrize("room", [None, 0, 70])
def test_what_is_kept_is_the_same_in_memory_and_on_disk(room):
    X = np.arange(12.0).reshape(6, 2)
    engine = LocalEngine(Run(), room)
    column, n = engine.keep(doubled, [X[:4], X[4:]])
    assert n == 6
    assert np.array_equal(np.concatenate(engine.gather(column)), 2 * X)
    again = engine.lazy(total, column)
    assert engine.sweep(lambda found: found[1], again) == 6
    engine.close()


def test_blocks_are_parts_of_the_data():
    X = np.random.default_rng(0).random((600, 20_000), dtype=np.float32)
    blocks = blocks_of(X, LocalEngine(Run()))
    assert blocks.sizes.tolist() == [256, 256, 88]
    assert np.shares_memory(blocks.data[1], X)
    thin = blocks_of(csr_array(X), LocalEngine(Run()))
    assert np.array_equal(np.concatenate([part.toarray() for part in thin.data]), X)


def test_a_full_disk_is_told_of(monkeypatch):
    class Full:
        def seek(self, *where):
            return 0

        def write(self, data):
            raise OSError(28, "No space left on device")

        def close(self):
            pass

    monkeypatch.setattr(tempfile, "TemporaryFile", Full)
    engine = LocalEngine(Run(), 0)
    with pytest.raises(OSError, match=r"cannot keep rows in .* \(No space .*: make room, set"):
        engine.keep(doubled, [np.ones((4, 2))])
    engine.close()
