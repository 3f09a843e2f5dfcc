from typing import TypeAlias

from numpy import int8, int32, uint8
from numpy.typing import NDArray

from taxarbor._types import Array, IndexArray

PairResult: TypeAlias = tuple[Array, NDArray[int8], Array, list[float], str, float]

def dense_scores(
    X: Array, index: IndexArray | None, center: Array, threads: int, W: Array
) -> Array: ...
def dense_adjoint(
    X: Array, index: IndexArray | None, center: Array, threads: int, R: Array
) -> Array: ...
def dense_gram(
    X: Array,
    index: IndexArray | None,
    center: Array,
    threads: int,
    positions: IndexArray,
    features: IndexArray,
) -> Array: ...
def dense_moment(
    X: Array, index: IndexArray | None, center: Array, threads: int, absolute: bool
) -> Array: ...
def dense_norms(X: Array, index: IndexArray | None, center: Array, threads: int) -> Array: ...
def dense_pair(
    X: Array,
    index: IndexArray | None,
    center: Array,
    threads: int,
    start: Array,
    labels: NDArray[int8] | None,
    hold: int,
    bounds: tuple[int, int],
    l1: Array,
    ridge: float,
    tol: float,
    violation: float,
    max_alternations: int,
    max_working: int,
) -> PairResult: ...
def csr_scores(
    values: Array,
    columns: NDArray[int32],
    starts: IndexArray,
    index: IndexArray | None,
    center: Array,
    threads: int,
    W: Array,
) -> Array: ...
def csr_adjoint(
    values: Array,
    columns: NDArray[int32],
    starts: IndexArray,
    index: IndexArray | None,
    center: Array,
    threads: int,
    R: Array,
) -> Array: ...
def csr_gram(
    values: Array,
    columns: NDArray[int32],
    starts: IndexArray,
    index: IndexArray | None,
    center: Array,
    threads: int,
    positions: IndexArray,
    features: IndexArray,
) -> Array: ...
def csr_moment(
    values: Array,
    columns: NDArray[int32],
    starts: IndexArray,
    index: IndexArray | None,
    center: Array,
    threads: int,
    absolute: bool,
) -> Array: ...
def csr_norms(
    values: Array,
    columns: NDArray[int32],
    starts: IndexArray,
    index: IndexArray | None,
    center: Array,
    threads: int,
) -> Array: ...
def csr_pair(
    values: Array,
    columns: NDArray[int32],
    starts: IndexArray,
    index: IndexArray | None,
    center: Array,
    threads: int,
    start: Array,
    labels: NDArray[int8] | None,
    hold: int,
    bounds: tuple[int, int],
    l1: Array,
    ridge: float,
    tol: float,
    violation: float,
    max_alternations: int,
    max_working: int,
) -> PairResult: ...
def hinge_pair(f: Array, labels: NDArray[int8]) -> tuple[float, Array, NDArray[uint8]]: ...
def hinge_multi(S: Array, labels: NDArray[int32]) -> tuple[float, Array, NDArray[uint8]]: ...
def hinge_costs(S: Array) -> Array: ...
def mask_changes(
    before: NDArray[uint8], after: NDArray[uint8]
) -> tuple[IndexArray, IndexArray]: ...
def descend_blocks(
    H: Array,
    gradient: Array,
    W: Array,
    group: float,
    l1: Array,
    ridge: float,
    tol: float,
    max_sweeps: int,
) -> tuple[Array, int]: ...
def assign_pair(f: Array, lower: int, upper: int) -> NDArray[int8]: ...
def assign_flow(
    C: Array, lower: int, upper: int, warm: NDArray[int32] | None = None
) -> NDArray[int32]: ...
def dense_lloyd(
    X: Array,
    index: IndexArray | None,
    center: Array,
    threads: int,
    centers: Array,
    n_steps: int,
) -> tuple[NDArray[int32], Array]: ...
def dense_principal(
    X: Array, index: IndexArray | None, center: Array, threads: int, start: Array, n_steps: int
) -> Array: ...
def csr_lloyd(
    values: Array,
    columns: NDArray[int32],
    starts: IndexArray,
    index: IndexArray | None,
    center: Array,
    threads: int,
    centers: Array,
    n_steps: int,
) -> tuple[NDArray[int32], Array]: ...
def csr_principal(
    values: Array,
    columns: NDArray[int32],
    starts: IndexArray,
    index: IndexArray | None,
    center: Array,
    threads: int,
    start: Array,
    n_steps: int,
) -> Array: ...
def ward(X: Array, n_clusters: int) -> NDArray[int32]: ...
def dense_rule(
    X: Array,
    index: IndexArray | None,
    center: Array,
    threads: int,
    labels: NDArray[int32],
    n_children: int,
    l1: Array,
    ridge: float,
    second_ridge: float,
    barred: float,
    strengths: list[float],
    max_features: int,
    reproduced: float,
    nearly: float,
    tol: float,
    violation: float,
    max_working: int,
    steepest: Array,
) -> tuple[Array, Array]: ...
def csr_rule(
    values: Array,
    columns: NDArray[int32],
    starts: IndexArray,
    index: IndexArray | None,
    center: Array,
    threads: int,
    labels: NDArray[int32],
    n_children: int,
    l1: Array,
    ridge: float,
    second_ridge: float,
    barred: float,
    strengths: list[float],
    max_features: int,
    reproduced: float,
    nearly: float,
    tol: float,
    violation: float,
    max_working: int,
    steepest: Array,
) -> tuple[Array, Array]: ...
