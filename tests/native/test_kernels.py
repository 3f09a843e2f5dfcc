"""What kernels refuse, and that they work where their surroundings are unusual."""

import ast
import importlib.util
import multiprocessing
import os
import subprocess
import sys
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from taxarbor import native
from taxarbor.native import _kernels
from taxarbor.rows import SplitProblem, as_rows
from tests.native.fuzz import fuzz, unaligned

FOLDER = Path(__file__).parent
N, P = 12, 5
X = np.random.default_rng(0).normal(size=(N, P))
S = sparse.csr_array(X * (np.random.default_rng(1).random((N, P)) < 0.6))
DENSE = native.Data.dense(X, None, 1)
CSR = native.Data.csr(S.data, S.indices.astype("i4"), S.indptr.astype("i8"), P, None, 1)
LABELS = np.arange(N, dtype="i4") % 3
PENALTY = 0.1, np.full(P, 0.1), 0.0
LIMITS = 1e-6, 1e-6, 9, 99
PAIR = SplitProblem(np.zeros(P), (LABELS % 2).astype("i1"), (3, 9), *PENALTY, *LIMITS)
KWAY = SplitProblem(np.zeros((3, P)), LABELS, (2, 9), *PENALTY, *LIMITS)


def ints(*values):
    return np.array(values, dtype=np.int64)


def csr(values=S.data, columns=S.indices, starts=S.indptr, n_features=P):
    starts = np.asarray(starts, dtype=np.int64)
    return native.Data.csr(values, np.asarray(columns, np.int32), starts, n_features, None, 1)


def changed(array, position, value):
    array = array.copy()
    array[position] = value
    return array


NO_ROWS = (ints(), np.zeros(P))
COSTS = np.zeros((10, 3))
NO_MATRICES = (X.astype("i8"), X[0], X[:, ::2], X.T, unaligned(X), X[:0], X[:, :0].copy())
BAD_STARTS = (0, 1), (-1, 10**9), (5, 10**9), (5, -1)
BAD_LABELS = np.zeros(9, "i4"), np.full(10, 3, "i4")
# What is wrong, and the callable that is given it.
MAKING = [
    *(("X", partial(native.Data.dense, bad, None, 1)) for bad in NO_MATRICES),
    ("center", lambda: native.Data.dense(X, np.zeros(4), 1)),
    ("n_threads", lambda: native.Data.dense(X, None, 0)),
    ("columns", lambda: csr(values=S.data[:-1])),
    ("values", lambda: csr(values=S.data.astype("i8"))),
    *(("columns", partial(csr, columns=changed(S.indices, 3, bad))) for bad in (P, -1)),
    ("column . is stored twice", lambda: csr(columns=changed(S.indices, 1, S.indices[0]))),
    *(("starts", partial(csr, starts=changed(S.indptr, *change))) for change in BAD_STARTS),
    *(("starts", partial(csr, starts=bad)) for bad in (S.indptr[:-1], [0])),
    *(("n_features", partial(csr, n_features=bad)) for bad in (0, 2**31)),
    *(("labels", partial(native.hinge_multi, COSTS, bad)) for bad in BAD_LABELS),
    *(("S", partial(native.hinge_costs, bad)) for bad in (COSTS[0], COSTS.astype("i4"))),
    *(("n_clusters", partial(native.ward, X, bad)) for bad in (0, N + 1)),
    ("X", lambda: native.ward(X.T, 2)),
]

BAD_WEIGHTS = np.ones((2, P - 1)), np.ones((2, P), "f4"), np.ones((P, 2)).T
BAD_RESIDUALS = np.ones((N - 1, 1)), np.ones((N, 1), "f4")
BAD_FEATURES = (P,), (2, 1), (1, 1)
BAD_CENTERS = np.ones((2, P + 1)), np.ones((0, P))
ON_ROWS = [
    ("positions", lambda d: d.take(ints(0, -1))),
    ("positions", lambda d: d.take(ints(0)).take(ints(1))),
    ("no rows", lambda d: d.take(ints())),
    ("positions", lambda d: d.take(np.ones(N, bool))),
    ("positions", lambda d: d.take(ints(*range(9))[::2])),
    ("center", lambda d: d.take(ints(0), np.zeros(P + 1))),
    ("no rows", lambda d: native.spread(d.take(*NO_ROWS))),
    *(("W", lambda d, bad=bad: native.scores(d, bad)) for bad in BAD_WEIGHTS),
    *(("R", lambda d, bad=bad: native.adjoint(d, bad)) for bad in BAD_RESIDUALS),
    ("positions", lambda d: native.gram(d, ints(N), ints(0))),
    *(("features", lambda d, j=j: native.gram(d, ints(0), ints(*j))) for j in BAD_FEATURES),
    *(("centers", lambda d, bad=bad: native.lloyd(d, bad, 1)) for bad in BAD_CENTERS),
    ("n_steps", lambda d: native.lloyd(d, np.ones((2, P)), 0)),
    ("start", lambda d: native.principal(d, np.ones(P - 1), 1)),
    ("n_steps", lambda d: native.principal(d, np.ones(P), -1)),
    ("rows", lambda d: native.pair(d.take(*NO_ROWS), PAIR)),
]

# Fields of problems, with values that they cannot have.
PAIR_FIELDS = {
    "start": [np.zeros(P - 1), np.full(P, np.nan)],
    "labels": [np.zeros(N - 1, "i1"), np.full(N, 2, "i1")],
    "l1": [np.zeros(P - 1), np.full(P, -1.0), np.full(P, np.inf)],
    "bounds": [(-1, 5), (6, 5), (0, N + 1)],
    "ridge": [np.nan],
    "tol": [-1.0, "x"],
    "max_alternations": [-1],
    "max_working": [0],
}
KWAY_FIELDS = {
    "start": [np.zeros((3, P - 1)), np.full((3, P), np.inf)],
    "children": [np.zeros((1, P))],
    "labels": [LABELS + 1],
    "bounds": [(5, 9), (0, 3)],
    "group": [-1.0],
    "l1": [np.zeros(P - 1)],
    "max_working": [0],
}


def test_what_comes_in_is_checked():
    for name, use in MAKING:
        with pytest.raises(ValueError, match=name):
            use()


@pytest.mark.parametrize("data", [DENSE, CSR], ids=["dense", "csr"])
def test_kernels_check_what_they_get_beside_the_rows(data):
    for name, use in ON_ROWS:
        with pytest.raises(ValueError, match=name):
            use(data)
    both = (native.pair, PAIR, PAIR_FIELDS), (native.kway, KWAY, KWAY_FIELDS)
    for kernel, sound, fields in both:
        for name, values in fields.items():
            for value in values:
                problem = replace(sound, **{name.replace("children", "start"): value})
                with pytest.raises(ValueError, match=name):
                    kernel(data, problem)


def test_what_is_no_array_is_a_type_error():
    for use in (
        *(partial(native.Data.dense, bad, None, 1) for bad in ([[1.0]], None)),
        *(lambda: native.scores(X, X), lambda: native.norms(None), native.Data),
        lambda: native.assign_flow(COSTS, 0, 2**64),
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
    norms = native.norms(native.Data.dense(frozen, None, 1))
    np.testing.assert_array_equal(norms, native.norms(DENSE))


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
    # A build with -DTAXARBOR_STUB=ON writes it anew.
    assert _said(tmp_path / "new.pyi") == _said(package / "_kernels.pyi")


@pytest.mark.filterwarnings("ignore")
def test_spoilt_arguments_are_refused_or_do_no_harm():
    with np.errstate(all="ignore"):
        assert fuzz(seed=0, n_calls=2000) > 1000


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
    for folder in (os.environ["TAXARBOR_PORTABLE_BUILD"], Path(native.__file__).parents[2]):
        code = RECORD.format(paths=[str(folder), str(FOLDER)])
        run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        said.append([line.split(" ") for line in run.stdout.decode().splitlines()])
    for (name, plain), (_, fast) in zip(*said, strict=True):
        a, b = (np.frombuffer(bytes.fromhex(text)) for text in (plain, fast))
        scale = np.abs(b[np.isfinite(b)]).max(initial=1.0)  # some distances are infinite
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5 * scale, err_msg=name)
