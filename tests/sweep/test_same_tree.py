"""One tree, wherever the rows are and however they lie in blocks."""

import numpy as np
import pytest

from taxarbor import Taxarbor
from tests.test_real_data import SETS, read

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")


def assert_same(one, other):
    """Compare two fitted models, to the bit."""
    mine, theirs = one.hierarchy_, other.hierarchy_
    for name in ("start", "stop", "parents", "score", "means"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
    for rule, again in zip(mine.rules, theirs.rules, strict=True):
        assert (rule is None) == (again is None)
        if rule is not None:
            for name in ("weights", "center", "offsets"):
                np.testing.assert_array_equal(getattr(rule, name), getattr(again, name))
    np.testing.assert_array_equal(mine.follows.gap, theirs.follows.gap)
    np.testing.assert_array_equal(one.labels_, np.asarray(other.labels_))
    np.testing.assert_array_equal(one.outlier_score_, np.asarray(other.outlier_score_))


@pytest.mark.parametrize("name", SETS)
def test_shared_sets(name, tmp_path):
    X = read(name)
    np.save(tmp_path / "rows.npy", X)
    usual, model = (Taxarbor(20, random_state=0) for _ in range(2))
    usual.fit(X)
    with dask.config.set(scheduler="synchronous"):
        for chunk in (1000, len(X) // 2 + 1):
            assert_same(usual, model.fit(da.from_array(X, chunks=(chunk, -1))))
    for how in ({"memory_limit": "1MB"}, {"memory_limit": None, "n_jobs": 2}):
        assert_same(usual, model.set_params(**how).fit(tmp_path / "rows.npy"))


@pytest.mark.long
def test_two_million_planted_rows():
    rng = np.random.default_rng(0)
    centers = 3.0 * rng.standard_normal((16, 10))
    y = rng.integers(16, size=2_000_000)
    X = (centers[y] + rng.standard_normal((len(y), 10))).astype(np.float32)
    usual = Taxarbor(16, random_state=0, n_jobs=2).fit(X)
    with dask.config.set(scheduler="threads"):
        for chunk in (10_000, 70_001, 1_000_000):
            rows = da.from_array(X, chunks=(chunk, -1))
            assert_same(usual, Taxarbor(16, random_state=0).fit(rows))
