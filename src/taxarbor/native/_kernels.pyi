# Written by nanobind's stubgen; see CMakeLists.txt.
# fmt: off
# ruff: noqa
from typing import Any, TypeAlias

from numpy import int8, int32, signedinteger, uint64
from numpy.typing import NDArray

from taxarbor._types import Array, IndexArray

Labels: TypeAlias = NDArray[signedinteger[Any]]

class Data:
    """Some rows of a matrix, about a centre: what the sweeps are over."""

    @staticmethod
    def dense(X: Array, center: Array | None, n_threads: int) -> Data:
        """All rows of a C-contiguous matrix, about a centre or their mean."""

    @staticmethod
    def csr(values: Array, columns: NDArray[int32], starts: IndexArray, n_features: int, center: Array | None, n_threads: int) -> Data:
        """All rows of a CSR matrix, about a centre or their mean."""

    def take(self, positions: IndexArray, center: Array | None = None) -> Data:
        """Some of these rows, about a centre or their mean."""

    @property
    def n_rows(self) -> int: ...

    @property
    def n_features(self) -> int: ...

    @property
    def n_threads(self) -> int:
        """One in a process that was forked."""

    @property
    def center(self) -> Array: ...

    @property
    def index(self) -> IndexArray | None:
        """Their rows in the matrix; None for all."""

def scores(data: Data, W: Array) -> Array: ...

def best(data: Data, W: Array, offsets: Array) -> IndexArray:
    """The position of each row's highest score, the first of ties."""

def adjoint(data: Data, R: Array) -> Array: ...

def gram(data: Data, positions: IndexArray, features: IndexArray) -> Array: ...

def spread(data: Data) -> Array:
    """The mean of each feature's distance from the centre."""

def label_sums(X: Array, labels: Labels, n_labels: int, counts: NDArray[int32] | None = None) -> Array: ...

def norms(data: Data) -> Array: ...

def lloyd(data: Data, centers: Array, n_steps: int) -> tuple[NDArray[int32], Array]: ...

def principal(data: Data, start: Array, n_steps: int) -> Array: ...

def pair(data: Data, problem: object) -> tuple[Array, NDArray[int8], Array, list[float], str, float]:
    """Solve a two-way split, given by the fields of a SplitProblem."""

def kway(data: Data, problem: object) -> tuple[Array, NDArray[int32], Array, list[float], str, float]:
    """Solve a split into K children, given by the fields of a SplitProblem."""

def hinge_multi(S: Array, labels: Labels) -> tuple[float, Array]: ...

def hinge_costs(S: Array) -> Array: ...

def assign_flow(C: Array, lower: int, upper: int, warm: NDArray[int32] | None = None) -> NDArray[int32]:
    """
    Labels of least total cost C (n, K), every count within [lower, upper].
    """

def assign_pair(f: Array, lower: int, upper: int) -> NDArray[int8]:
    """Labels 0 and 1 from margins f, lower <= #{0} <= upper."""

def ward(X: Array, n_clusters: int) -> NDArray[int32]: ...

def ward_links(points: Array, weights: Array) -> tuple[IndexArray, Array]:
    """
    Pairs that are merged, each by their first points, and what each adds to the scatter.
    """

def halve(data: Data, problem: object) -> tuple[NDArray[int8], Array, float, list[float], str, float, Array] | None:
    """
    Divide lifted rows in two, as the fields of a HalveProblem say; None if all are equal.
    """

def hashes(key: int, numbers: IndexArray) -> NDArray[uint64]:
    """The hash of each number, for a key."""

def plane_scores(Z: Array, plane: Array, offset: float) -> Array:
    """offset + plane . z of each row, summed up in double."""

def route(data: Data, tree: object, fill: Array | None = None) -> tuple[NDArray[int32], int]:
    """
    The leaf of each row, by the fields of a RoutingTable; and the first row that is refused.

    NaN stands for the values of `fill`, if there are any. A row is refused for a value that is
    not finite; -1 if none is.
    """

def distances(data: Data, labels: NDArray[int32], centers: Array, factors: Array, fill: Array) -> Array:
    """
    The distance of each row from the center of its label, differences times factors.

    NaN stands for the values of `fill`; rows of a negative label are infinitely far.
    """

def sort_by_label(labels: Labels, n_labels: int) -> IndexArray:
    """
    Positions by label, in their order within a label, without those of a negative label.
    """
