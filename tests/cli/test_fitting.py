import numpy as np
import pytest
from scipy import sparse

from taxarbor.cli._fitting import _standardized


def test_float32_is_scaled_in_float64():
    """Years and the like: means that are large beside what varies."""
    rng = np.random.default_rng(0)
    X = (1e5 + rng.normal(size=(50_000, 2))).astype(np.float32)
    scaled, mean, scale = _standardized(X)
    exact = X.astype(np.float64)
    expected = (exact - exact.mean(axis=0)) / exact.std(axis=0)
    assert scaled.dtype == np.float32
    np.testing.assert_allclose(scaled, expected, atol=1e-6)
    np.testing.assert_allclose(mean, exact.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(scale, exact.std(axis=0), rtol=1e-9)


def test_sparse_columns_keep_their_means():
    X = sparse.csr_array(np.eye(4, dtype=np.float32))
    scaled, mean, _ = _standardized(X)
    assert (scaled.nnz, scaled.dtype) == (4, np.float32)
    assert not mean.any()


@pytest.mark.parametrize(
    ("options", "told"),
    [((), "the table varies by about"), (("--standardize",), "too large for --standardize")],
)
def test_huge_values_are_refused_in_words(refused, folder, options, told):
    np.save(folder / "huge.npy", np.random.default_rng(0).normal(size=(40, 3)) * 1e200)
    refused(told, "fit", "huge.npy", "-o", "m", *options)  # warnings are errors here
