# Written by nanobind's stubgen; see CMakeLists.txt.
# fmt: off
# ruff: noqa
from typing import Any, TypeAlias

from numpy import int8, int32, int64, signedinteger, uint8, uint64
from numpy.typing import NDArray

from taxarbor._types import Array, IndexArray

Labels: TypeAlias = NDArray[signedinteger[Any]]
Mask: TypeAlias = NDArray[uint8]

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

def moment(data: Data, absolute: bool) -> Array: ...

def label_sums(X: Array, labels: Labels, n_labels: int, counts: NDArray[int32] | None = None) -> Array: ...

def norms(data: Data) -> Array: ...

def lloyd(data: Data, centers: Array, n_steps: int) -> tuple[NDArray[int32], Array]: ...

def principal(data: Data, start: Array, n_steps: int) -> Array: ...

def pair(data: Data, problem: object) -> tuple[Array, NDArray[int8], Array, list[float], str, float]:
    """Solve a two-way split, given by the fields of a PairProblem."""

def kway(data: Data, problem: object) -> tuple[Array, NDArray[int32], Array, list[float], str, float]:
    """Solve a split into K children, given by the fields of a KwayProblem."""

def rule(data: Data, problem: object) -> tuple[Array, Array]:
    """Find a sparse rule, given the fields of a RuleProblem."""

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

def exact_sums(data: Data, labels: NDArray[int32] | None, counts: NDArray[int32] | None, n_labels: int) -> NDArray[int64]:
    """
    Exact sums of the values of each label's rows, times their counts, in limbs of 32 bits.

    Of shape (n_labels, n_features, n_limbs), lowest limb first: such arrays can be added up,
    and exact_values says what they are. The centre does not matter; NaN, and rows of a
    negative label or of count 0, add nothing.
    """

def exact_values(limbs: NDArray[int64], is_float32: bool) -> Array:
    """
    The nearest double of each sum of exact_sums, of float32 or float64 values.
    """

def exact_gram(Z: Array, unit: float) -> NDArray[int64]:
    """
    The exact sum of z z' over rows, (2, n_features, n_features), as whole numbers hi and lo.

    It is (hi * 2^40 + lo) * unit^2, 0 <= lo < 2^40. Values are multiples of the unit, a power
    of two, and at most 2^22 of them. Such arrays can be added up, whatever lo becomes.
    """

def hashes(key: int, numbers: IndexArray) -> NDArray[uint64]:
    """The hash of each number of a copy, for the key of a node: see draw."""

def draw(keys: NDArray[uint64], limits: NDArray[uint64], nodes: NDArray[int32] | None, counts: NDArray[int32] | None, n: int, first: int) -> tuple[IndexArray, NDArray[uint64]]:
    """
    Positions and hashes of the copies of n rows whose hash is at most their node's limit.

    Copies are numbered from `first`, those of all rows in turn; rows of a negative node are
    not drawn. Without nodes all rows are of node 0, without counts each has one copy.
    """

def plane_scores(Z: Array, plane: Array, offset: float) -> Array:
    """offset + plane . z of each row, summed up in double."""

def descend(Z: Array, planes: Array, offsets: Array, thresholds: Array, children: NDArray[int32]) -> NDArray[int32]:
    """
    The leaf of each row in a tree of planes, of which the first one is the root's.

    A row goes to its plane's first child if its score is at least the threshold, otherwise
    to the second: to another plane further on, or, if negative, to the leaf ~child.
    """
