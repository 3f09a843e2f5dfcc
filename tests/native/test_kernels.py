"""What kernels refuse, and that they work where their surroundings are unusual."""

import ast
import importlib.util
import multiprocessing
import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from taxarbor import native
from taxarbor.native import _kernels
from taxarbor.rows import as_rows
from taxarbor.rows._problems import KwayProblem, PairProblem

FOLDER = Path(__file__).parent
N, P = 12, 5
X = np.random.default_rng(0).normal(size=(N, P))
S = sparse.csr_array(X * (np.random.default_rng(1).random((N, P)) < 0.6))
DENSE = native.Data.dense(X, None, 1)
CSR = native.Data.csr(S.data, S.indices.astype("i4"), S.indptr.astype("i8"), P, None, 1)
LABELS = np.arange(N, dtype="i4") % 3
PAIR = PairProblem(
    np.zeros(P),
    (LABELS % 2).astype("i1"),
    (3, 9),
    np.full(P, 0.1),
    0.0,
    1e-6,
    1e-6,
    9,
    99,
)
KWAY = KwayProblem(
    np.zeros((3, P)), LABELS, (2, 9), 0.1, np.full(P, 0.1), 0.0, 1e-6, 1e-6, 9, 99
)


def ints(*values):
    return np.array(values, dtype=np.int64)


def csr(values=S.data, columns=S.indices, starts=S.indptr, n_features=P):
    starts = np.asarray(starts, dtype=np.int64)
    return native.Data.csr(values, np.asarray(columns, np.int32), starts, n_features, None, 1)


def changed(array, position, value):
    array = array.copy()
    array[position] = value
    return array


def unaligned(array):
    raw = np.frombuffer(b"\0" + array.tobytes(), dtype="u1")[1:]
    return raw.view(array.dtype).reshape(array.shape)


def pair(data, **fields):
    return native.pair(data, replace(PAIR, **fields))


def kway(data, **fields):
    return native.kway(data, replace(KWAY, **fields))


TWICE = changed(S.indices, 1, S.indices[0])
MAKING = [
    (
        lambda: native.Data.dense(X.astype("i8"), None, 1),
        "X must be float32 or float64; got int64",
    ),
    (lambda: native.Data.dense(X > 0, None, 1), "float32 or float64; got bool"),
    (
        lambda: native.Data.dense(X[0], None, 1),
        r"shape \(any, any\); got float64 of shape \(5,\)",
    ),
    (lambda: native.Data.dense(X[None], None, 1), r"got float64 of shape \(1, 12, 5\)"),
    (lambda: native.Data.dense(X[:, ::2], None, 1), "X must be C-contiguous"),
    (lambda: native.Data.dense(X[::-1], None, 1), "X must be C-contiguous"),
    (lambda: native.Data.dense(X.T, None, 1), "X must be C-contiguous"),
    (lambda: native.Data.dense(unaligned(X), None, 1), "aligned"),
    (lambda: native.Data.dense(X[:0], None, 1), r"a row and a feature at least.*\(0, 5\)"),
    (lambda: native.Data.dense(X[:, :0].copy(), None, 1), r"a row and a feature.*\(12, 0\)"),
    (lambda: native.Data.dense(X, np.zeros(4), 1), r"center must .* shape \(5,\).*\(4,\)"),
    (lambda: native.Data.dense(X, np.zeros(5, "i8"), 1), "center must be float32 or float64"),
    (lambda: native.Data.dense(X, None, 0), "n_threads must be at least 1; got 0"),
    (lambda: csr(values=S.data[:-1]), r"columns must be an array of int32 of shape"),
    (lambda: csr(values=S.data.astype("i8")), "values must be float32 or float64; got int64"),
    (lambda: csr(values=S.data[:, None]), "values must be an array of float64"),
    (lambda: csr(columns=changed(S.indices, 3, P)), "columns must lie between 0 and 4; got 5"),
    (
        lambda: csr(columns=changed(S.indices, 3, -1)),
        "columns must lie between 0 and 4; got -1",
    ),
    (lambda: csr(columns=TWICE), "column . is stored twice in row 0"),
    (lambda: csr(starts=changed(S.indptr, 0, 1)), "starts must run from 0"),
    (lambda: csr(starts=changed(S.indptr, -1, 10**9)), "starts must run from 0"),
    (lambda: csr(starts=S.indptr[:-1]), "starts must run from 0"),
    (lambda: csr(starts=changed(S.indptr, 5, 10**9)), "starts must not fall"),
    (lambda: csr(starts=changed(S.indptr, 5, -1)), "starts must not fall"),
    (lambda: csr(starts=[]), "an entry per row and one more"),
    (lambda: csr(starts=[0]), "an entry per row and one more"),
    (lambda: csr(n_features=2), "columns must lie between 0 and 1"),
    (lambda: csr(n_features=0), "n_features must lie between 1"),
    (lambda: csr(n_features=2**31), "n_features must lie between 1"),
]

ON_ROWS = [
    (lambda d: d.take(ints(0, -1)), "positions must lie between 0 and 11; got -1 at 1"),
    (lambda d: d.take(ints(0, N)), "positions must lie between 0 and 11; got 12"),
    (lambda d: d.take(ints(0)).take(ints(1)), "positions must lie between 0 and 0; got 1"),
    (lambda d: d.take(ints()), "the mean of no rows"),
    (lambda d: d.take(np.zeros(3, "i4")), "positions must be an array of int64"),
    (lambda d: d.take(np.ones(N, bool)), "positions must be an array of int64.*got bool"),
    (lambda d: d.take(ints(*range(9))[::2]), "positions must be C-contiguous"),
    (lambda d: d.take(ints(0), np.zeros(P + 1)), r"center must .*\(5,\)"),
    (lambda d: native.spread(d.take(ints(), np.zeros(P))), "the mean of no rows"),
    (lambda d: native.scores(d, np.ones((2, P - 1))), r"W must .* \(any, 5\).*\(2, 4\)"),
    (lambda d: native.scores(d, np.ones(P)), "W must"),
    (lambda d: native.scores(d, np.ones((2, P), "f4")), "W must .*float64.*float32"),
    (lambda d: native.scores(d, np.ones((P, 2)).T), "W must be C-contiguous"),
    (lambda d: native.adjoint(d, np.ones((N - 1, 1))), r"R must .* \(12, any\)"),
    (lambda d: native.adjoint(d, np.ones((N, 1), "f4")), "R must"),
    (lambda d: native.gram(d, ints(N), ints(0)), "positions must lie"),
    (lambda d: native.gram(d, ints(-1), ints(0)), "positions must lie"),
    (lambda d: native.gram(d, ints(0), ints(P)), "features must lie between 0 and 4; got 5"),
    (lambda d: native.gram(d, ints(0), ints(-1)), "features must lie"),
    (lambda d: native.gram(d, ints(0), ints(2, 1)), "features must ascend.*2 and then 1"),
    (lambda d: native.gram(d, ints(0), ints(1, 1)), "features must ascend"),
    (lambda d: native.gram(d, ints(0), ints(*[0] * P)), "features must ascend"),
    (lambda d: native.lloyd(d, np.ones((2, P + 1)), 1), "centers must"),
    (lambda d: native.lloyd(d, np.ones((0, P)), 1), "the number of centers must be at least 1"),
    (lambda d: native.lloyd(d, np.ones((2, P)), 0), "n_steps must be at least 1; got 0"),
    (lambda d: native.principal(d, np.ones(P - 1), 1), r"start must .*\(5,\)"),
    (lambda d: native.principal(d, np.ones(P), -1), "n_steps must be at least 0"),
    (lambda d: pair(d, start=np.zeros(P - 1)), "start must"),
    (lambda d: pair(d, start=np.full(P, np.nan)), "start must be finite; got nan"),
    (lambda d: pair(d, labels=np.zeros(N - 1, "i1")), "labels must"),
    (lambda d: pair(d, labels=np.full(N, 2, "i1")), "labels must lie between 0 and 1; got 2"),
    (lambda d: pair(d, l1=np.zeros(P - 1)), "l1 must"),
    (lambda d: pair(d, l1=np.full(P, -1.0)), "l1 must not be negative"),
    (lambda d: pair(d, l1=np.full(P, np.inf)), "l1 must be finite"),
    (lambda d: pair(d, bounds=(-1, 5)), "bounds must"),
    (lambda d: pair(d, bounds=(6, 5)), "bounds must"),
    (lambda d: pair(d, bounds=(0, N + 1)), "bounds must .* upper = 13 for n = 12"),
    (lambda d: pair(d, ridge=np.nan), "ridge must be finite and not negative"),
    (lambda d: pair(d, tol=-1.0), "tol must be finite and not negative"),
    (lambda d: pair(d, max_alternations=-1), "max_alternations must be at least 0"),
    (lambda d: pair(d, max_working=0), "max_working must be at least 1"),
    (lambda d: pair(d, tol="x"), "tol cannot be read from"),
    (
        lambda d: native.pair(d.take(ints(), np.zeros(P)), PAIR),
        "number of rows must be at least",
    ),
    (lambda d: kway(d, start=np.zeros((3, P - 1))), "start must"),
    (lambda d: kway(d, start=np.zeros((1, P))), "number of children must be at least 2; got 1"),
    (lambda d: kway(d, start=np.full((3, P), np.inf)), "start must be finite"),
    (lambda d: kway(d, labels=LABELS + 1), "labels must lie between 0 and 2; got 3"),
    (lambda d: kway(d, bounds=(5, 9)), "bounds must let 3 children hold 12 rows; got 5 and 9"),
    (lambda d: kway(d, bounds=(0, 3)), "bounds must let"),
    (lambda d: kway(d, group=-1.0), "group must be finite and not negative"),
    (lambda d: kway(d, l1=np.zeros(P - 1)), "l1 must"),
    (lambda d: kway(d, max_working=0), "max_working must be at least 1"),
]

COSTS = np.zeros((10, 3))
ON_ARRAYS = [
    (lambda: native.hinge_multi(COSTS, np.zeros(9, "i4")), "labels must"),
    (
        lambda: native.hinge_multi(COSTS, np.full(10, 3, "i4")),
        "labels must lie between 0 and 2",
    ),
    (lambda: native.hinge_multi(COSTS, np.full(10, -1, "i4")), "labels must lie"),
    (lambda: native.hinge_costs(COSTS[0]), "S must"),
    (lambda: native.hinge_costs(COSTS.astype("i4")), "S must be float32 or float64"),
    (lambda: native.assign_flow(COSTS, 4, 10), "must hold; got n = 10 rows, K = 3"),
    (lambda: native.assign_flow(COSTS, 0, 3), "must hold"),
    (lambda: native.assign_flow(COSTS, -1, 10), "must hold"),
    (lambda: native.assign_flow(COSTS, 2**62, 2**62), "must hold"),
    (lambda: native.assign_flow(COSTS[:, :0], 0, 10), "must hold"),
    (lambda: native.assign_flow(COSTS, 0, 10, np.zeros(9, "i4")), "warm must"),
    (lambda: native.assign_flow(COSTS + np.nan, 0, 10), "finite"),
    (lambda: native.assign_pair(COSTS[:, 0].copy(), 0, 11), "bounds must"),
    (lambda: native.assign_pair(COSTS[:, 0].copy(), 6, 5), "bounds must"),
    (lambda: native.assign_pair(COSTS[:, 0].copy(), -1, 5), "bounds must"),
    (lambda: native.assign_pair(np.full(4, np.inf), 1, 2), "finite"),
    (lambda: native.ward(X, 0), "n_clusters must lie between one and one per row, 12; got 0"),
    (lambda: native.ward(X, N + 1), "n_clusters must"),
    (lambda: native.ward(X[:0], 1), "n_clusters must"),
    (lambda: native.ward(X.T, 2), "X must be C-contiguous"),
]


def test_data_are_checked_when_made():
    for make, message in MAKING:
        with pytest.raises(ValueError, match=message):
            make()


@pytest.mark.parametrize("data", [DENSE, CSR], ids=["dense", "csr"])
def test_kernels_check_what_they_get_beside_the_rows(data):
    for use, message in ON_ROWS:
        with pytest.raises(ValueError, match=message):
            use(data)


def test_kernels_on_arrays_check_them():
    for use, message in ON_ARRAYS:
        with pytest.raises(ValueError, match=message):
            use()


def test_what_is_no_array_is_a_type_error():
    for use in (
        lambda: native.Data.dense([[1.0]], None, 1),
        lambda: native.Data.dense(None, None, 1),
        lambda: native.scores(X, X),
        lambda: native.norms(None),
        lambda: native.assign_flow(COSTS, 0, 2**64),
        native.Data,
    ):
        with pytest.raises(TypeError):
            use()
    with pytest.raises(AttributeError, match="start"):
        native.pair(DENSE, object())


def test_sound_extremes_are_accepted():
    assert native.assign_flow(COSTS, 0, 2**62).tolist() == [0] * 10
    assert native.adjoint(DENSE, np.ones((N, 0))).shape == (0, P)
    assert native.scores(DENSE, np.ones((0, P))).shape == (N, 0)
    assert native.gram(DENSE, ints(), ints()).shape == (0, 0)
    nothing = DENSE.take(ints(), np.zeros(P))
    assert native.scores(nothing, np.ones((2, P))).shape == (0, 2)
    assert native.norms(nothing).shape == (0,)
    order = np.concatenate([np.arange(a, b)[::-1] for a, b in pairwise(S.indptr)])
    backwards = csr(values=S.data[order], columns=S.indices[order])  # any order, each once
    np.testing.assert_allclose(native.norms(backwards), native.norms(CSR), rtol=1e-14)
    frozen = X.copy()
    frozen.flags.writeable = False
    np.testing.assert_array_equal(
        native.norms(native.Data.dense(frozen, None, 1)), native.norms(DENSE)
    )


def test_rows_keep_their_matrix_alive_and_own_their_index_and_center():
    matrix, center, positions = X.copy(), np.ones(P), ints(3, 1)
    expected = ((X[[3, 1]] - 1.0) ** 2).sum(axis=1)
    rows = native.Data.dense(matrix, center, 1).take(positions, center)
    del matrix
    center[:] = np.nan
    positions[:] = 10**12
    np.testing.assert_allclose(native.norms(rows), expected)
    assert rows.index.tolist() == [3, 1]


def _fit_in_child(rows, queue):
    queue.put((rows.n_threads, rows.norms().sum(), as_rows(np.ones((9, 2))).n_threads))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_sweeps_on_one_thread():
    """OpenMP would wait for threads that the child does not have, for ever."""
    rows = as_rows(np.random.default_rng(0).normal(size=(40_000, 3)), n_threads=2)
    expected = rows.norms().sum()  # wakes the parent's threads
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_fit_in_child, args=(rows, queue))
    child.start()
    try:
        assert queue.get(timeout=60) == (1, expected, 1)
        child.join(timeout=60)
        assert child.exitcode == 0
    finally:
        child.kill()
    assert rows.n_threads == 2


def _said(stub):
    """Return what a stub declares: the order, and blank lines, are those of a nanobind."""
    return sorted(map(ast.unparse, ast.parse(stub.read_text()).body))


@pytest.mark.skipif(importlib.util.find_spec("nanobind") is None, reason="needs nanobind")
def test_the_stub_is_that_of_the_bindings(tmp_path):
    package, compiled = Path(native.__file__).parent, Path(_kernels.__file__).parent
    patterns = FOLDER.parents[1] / "src/taxarbor/native/src/stub.txt"
    command = ["-m", "nanobind.stubgen", "-q", "-m", "_kernels", "-i", compiled, "-p", patterns]
    subprocess.run([sys.executable, *command, "-o", tmp_path / "new.pyi"], check=True)
    assert _said(tmp_path / "new.pyi") == _said(package / "_kernels.pyi"), (
        "a build with -DTAXARBOR_STUB=ON writes it anew"
    )


def _load_fuzz():
    spec = importlib.util.spec_from_file_location("fuzz", FOLDER / "fuzz.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore")
def test_spoilt_arguments_are_refused_or_do_no_harm():
    with np.errstate(all="ignore"):
        assert _load_fuzz().fuzz(seed=0, n_calls=2000) > 1000


RECORD = """
import sys, numpy as np
sys.meta_path[:] = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
sys.path[:0] = {paths!r}
import fuzz
for seed in range(40):
    for name, found in fuzz.sound_calls(seed).items():
        arrays = found if isinstance(found, tuple) else (found,)
        numbers = [np.ravel(a).astype(float) for a in arrays if not isinstance(a, str)]
        sys.stdout.write(name + " " + np.concatenate(numbers).tobytes().hex() + "\\n")
"""


@pytest.mark.skipif("TAXARBOR_PORTABLE_BUILD" not in os.environ, reason="see `make sanitize`")
def test_plain_cpp_says_the_same():
    """The portable build has no fused multiply-add: it rounds in other places."""
    said = []
    for folder in (
        os.environ["TAXARBOR_PORTABLE_BUILD"],
        str(Path(native.__file__).parents[2]),
    ):
        code = RECORD.format(paths=[folder, str(FOLDER)])
        run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        said.append([line.split(" ") for line in run.stdout.decode().splitlines()])
    for (name, plain), (_, fast) in zip(*said, strict=True):
        a, b = (np.frombuffer(bytes.fromhex(text)) for text in (plain, fast))
        scale = np.abs(b[np.isfinite(b)]).max(
            initial=1.0
        )  # rows of no label are infinitely far
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5 * scale, err_msg=name)
