// Sweeps of one block: which rows a sample has, and to which leaf of a tree of planes each row goes.
// What is said of a row depends on that row alone, and on its number among all: neither on its
// block nor on the machine, as no product is fused with a sum in this file (CMakeLists.txt).
#include <nanobind/stl/optional.h>

#include "common.hpp"

namespace {

// ---- samples: the copies of lowest hash ---------------------------------------------------------

TAXARBOR_INLINE uint64_t mixed(uint64_t z) {  // the end of splitmix64
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

TAXARBOR_INLINE uint64_t hash(uint64_t key, uint64_t number) {
  return mixed(mixed(key ^ (number * 0x9e3779b97f4a7c15)));
}

nb::object hashes(uint64_t key, const Given& numbers) {
  const int64_t* from = checked<int64_t>("numbers", numbers, {-1});
  const size_t n = numbers.shape(0);
  return filled<uint64_t>({n}, [&](uint64_t* out) {
    for (size_t i = 0; i < n; ++i) out[i] = hash(key, static_cast<uint64_t>(from[i]));
  });
}

nb::object draw(const Given& keys, const Given& limits, const std::optional<Given>& nodes,
    const std::optional<Given>& counts, int64_t n, int64_t first) {
  const uint64_t* key = checked<uint64_t>("keys", keys, {-1});
  const int64_t m = keys.shape(0);
  checked_count("the number of keys", m, 1);
  const uint64_t* limit = checked<uint64_t>("limits", limits, {m});
  checked_count("n", n, 0), checked_count("first", first, 0);
  const int32_t* own = nodes ? checked_below<int32_t>("nodes", *nodes, n, m) : nullptr;
  const int32_t* times = checked_counts(counts, n);
  std::vector<int64_t> positions;
  std::vector<uint64_t> found;
  unlocked([&] {
    uint64_t number = first;
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t end = number + (times ? times[i] : 1);
      const int32_t node = own ? own[i] : 0;
      if (node >= 0)
        for (uint64_t c = number; c != end; ++c) {
          const uint64_t h = hash(key[node], c);
          if (h <= limit[node]) positions.push_back(i), found.push_back(h);
        }
      number = end;
    }
  });
  return nb::make_tuple(copied(positions), copied(found));
}

// ---- sides of planes ----------------------------------------------------------------------------

// offset + plane . z, in double, in one order; never -0.
TAXARBOR_INLINE float score(const float* z, const double* plane, double offset, int64_t q) {
  constexpr int64_t L = 8;  // interleaved totals: one order, yet vectorisable
  double total[L] = {};
  int64_t j = 0;
  for (; j + L <= q; j += L)
    for (int64_t l = 0; l < L; ++l) total[l] += plane[j + l] * static_cast<double>(z[j + l]);
  for (int64_t l = 0; j < q; ++j, ++l) total[l] += plane[j] * static_cast<double>(z[j]);
  const double sum = ((total[0] + total[4]) + (total[2] + total[6])) +
      ((total[1] + total[5]) + (total[3] + total[7]));
  return static_cast<float>(offset + sum) + 0.0f;
}

TAXARBOR_CLONES void score_rows(
    const float* Z, int64_t n, int64_t q, const double* plane, double offset, float* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = score(Z + i * q, plane, offset, q);
}

// A tree of planes; its children are other planes, or leaves: ~0, ~1, ...
struct Tree {
  const double* planes;
  const double* offsets;
  const float* thresholds;
  const int32_t* children;
};

TAXARBOR_CLONES void descend_rows(
    const float* Z, int64_t n, int64_t q, const Tree& tree, int32_t* out) {
  for (int64_t i = 0; i < n; ++i) {
    int32_t at = 0;
    do {
      const float f = score(Z + i * q, tree.planes + at * q, tree.offsets[at], q);
      at = tree.children[int64_t{2} * at + !(f >= tree.thresholds[at])];
    } while (at >= 0);
    out[i] = ~at;
  }
}

nb::object plane_scores(const Given& Z, const Given& plane, double offset) {
  const float* rows = checked<float>("Z", Z, {-1, -1});
  const int64_t n = Z.shape(0), q = Z.shape(1);
  const double* weights = checked_finite("plane", plane, {q});
  return filled<float>({static_cast<size_t>(n)},
      [&](float* out) { score_rows(rows, n, q, weights, offset, out); });
}

nb::object to_leaves(const Given& Z, const Given& planes, const Given& offsets,
    const Given& thresholds, const Given& children) {
  const float* rows = checked<float>("Z", Z, {-1, -1});
  const int64_t n = Z.shape(0), q = Z.shape(1);
  const double* weights = checked_finite("planes", planes, {-1, q});
  const int64_t m = checked_count("the number of planes", planes.shape(0), 1);
  const Tree tree{weights, checked_finite("offsets", offsets, {m}),
      checked<float>("thresholds", thresholds, {m}),
      checked_range<int32_t>("children", children, {m, 2}, -m - 1, m)};
  for (int64_t at = 0; at < 2 * m; ++at)  // so that nobody walks in circles
    if (tree.children[at] >= 0 && tree.children[at] <= at / 2)
      refuse("children must come after their parents; got ", tree.children[at], " below ", at / 2);
  return filled<int32_t>({static_cast<size_t>(n)},
      [&](int32_t* out) { descend_rows(rows, n, q, tree, out); });
}

}  // namespace

void bind_planes(nb::module_& m) {
  using namespace nb::literals;
  m.def("hashes", &hashes, "key"_a, "numbers"_a,
      nb::sig("def hashes(key: int, numbers: IndexArray) -> NDArray[uint64]"),
      "The hash of each number of a copy, for the key of a node: see draw.");
  m.def("draw", &draw, "keys"_a, "limits"_a, "nodes"_a.none(), "counts"_a.none(), "n"_a, "first"_a,
      nb::sig("def draw(keys: NDArray[uint64], limits: NDArray[uint64], "
              "nodes: NDArray[int32] | None, counts: NDArray[int32] | None, n: int, first: int) "
              "-> tuple[IndexArray, NDArray[uint64]]"),
      "Positions and hashes of the copies of n rows whose hash is at most their node's limit.\n\n"
      "Copies are numbered from `first`, those of all rows in turn; rows of a negative node are\n"
      "not drawn. Without nodes all rows are of node 0, without counts each has one copy.");
  m.def("plane_scores", &plane_scores, "Z"_a, "plane"_a, "offset"_a,
      nb::sig("def plane_scores(Z: Array, plane: Array, offset: float) -> Array"),
      "offset + plane . z of each row, summed up in double.");
  m.def("descend", &to_leaves, "Z"_a, "planes"_a, "offsets"_a, "thresholds"_a, "children"_a,
      nb::sig("def descend(Z: Array, planes: Array, offsets: Array, thresholds: Array, "
              "children: NDArray[int32]) -> NDArray[int32]"),
      "The leaf of each row in a tree of planes, of which the first one is the root's.\n\n"
      "A row goes to its plane's first child if its score is at least the threshold, otherwise\n"
      "to the second: to another plane further on, or, if negative, to the leaf ~child.");
}
