"""Hashes, scores of planes and sums by label, against Python."""

import numpy as np
import pytest

from taxarbor import native

MASK = 2**64 - 1


def python_hash(key, number):
    z = key ^ (number * 0x9E3779B97F4A7C15 & MASK)
    for _ in range(2):
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
        z ^= z >> 31
    return z


def test_hashes_are_those_of_python():
    numbers = np.array([0, 1, 2, 12345, 2**40, 2**63 - 1])
    for key in (0, 1, 2**63 + 11, MASK):
        expected = [python_hash(key, int(c)) for c in numbers]
        assert native.hashes(key, numbers).tolist() == expected


def draw_plane(rng, n=500, q=21):
    return rng.normal(size=(n, q)).astype("f4"), rng.normal(size=q), float(rng.normal())


def expected_scores(Z, plane, offset):
    """Return the scores in the order of the kernel: eight totals, of every eighth feature."""
    products = plane * Z.astype("f8")
    n, q = products.shape
    t = np.zeros((8, n))
    for j in range(q):
        t[j % 8] += products[:, j]
    sums = ((t[0] + t[4]) + (t[2] + t[6])) + ((t[1] + t[5]) + (t[3] + t[7]))
    return (offset + sums).astype("f4")


@pytest.mark.parametrize("q", [1, 7, 8, 21, 64])
def test_plane_scores(q):
    Z, plane, offset = draw_plane(np.random.default_rng(q), q=q)
    found = native.plane_scores(Z, plane, offset)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected_scores(Z, plane, offset))


def test_wrong_arguments_are_refused():
    Z, plane, offset = draw_plane(np.random.default_rng(0), n=6, q=3)
    labels = np.zeros(6, dtype="i4")
    for name, call in (
        ("plane", lambda: native.plane_scores(Z, plane[:-1], offset)),
        ("Z", lambda: native.plane_scores(Z.astype("f8"), plane, offset)),
        ("numbers", lambda: native.hashes(1, np.zeros(2))),
        ("labels", lambda: native.label_sums(Z, labels + 5, 5)),
        ("n_labels", lambda: native.label_sums(Z, labels, 0)),
    ):
        with pytest.raises(ValueError, match=f"^{name} "):
            call()


@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_label_sums_take_counts_and_leave_out_rows(dtype):
    X = np.arange(12, dtype="f4").reshape(4, 3)
    labels, counts = np.array([5, -1, 0, 5], dtype=dtype), np.array([2, 9, 0, 3], dtype="i4")
    assert native.label_sums(X, labels, 7)[5].tolist() == (X[0] + X[3]).tolist()
    weighted = native.label_sums(X, labels, 7, counts)
    assert weighted.shape == (7, 3)
    assert weighted[5].tolist() == (2 * X[0] + 3 * X[3]).tolist()
    assert (weighted[:5] == 0).all()
