// Sweeps of one block over coordinates: which rows lie on which side of their node's plane, and
// which rows of each node a sample has. What is said of a row depends on that row alone, and on its
// number among all: neither on its block nor on the machine, as no product is fused with a sum in
// this file (CMakeLists.txt).
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

// What all sweeps over planes are given.
struct Planes {
  const float* Z;
  const int32_t* nodes;
  const int32_t* slots;
  const double* planes;
  const double* offsets;
  int64_t n, q, n_nodes, n_slots;

  Planes(const Given& coordinates, const Given& own, const Given& node_slots, const Given& weights,
      const Given& constants)
      : Z(checked<float>("Z", coordinates, {-1, -1})), n(coordinates.shape(0)),
        q(coordinates.shape(1)) {
    planes = checked_finite("planes", weights, {-1, q});
    n_slots = weights.shape(0);
    offsets = checked_finite("offsets", constants, {n_slots});
    slots = checked_range<int32_t>("slots", node_slots, {-1}, -1, n_slots);
    n_nodes = node_slots.shape(0);
    nodes = checked_below<int32_t>("nodes", own, n, n_nodes);
  }
  // The plane of a row, -1 for none.
  int32_t slot(int64_t i) const { return nodes[i] < 0 ? -1 : slots[nodes[i]]; }
};

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

// A whole number that is greater for a greater score.
TAXARBOR_INLINE uint32_t key_of(float score) {
  uint32_t bits;
  std::memcpy(&bits, &score, sizeof bits);
  return bits >> 31 ? ~bits : bits | 0x80000000u;
}

// Call body(row, plane, score) for the rows that have a plane.
template <class Body> TAXARBOR_INLINE void for_scores(const Planes& a, const Body& body) {
  for (int64_t i = 0; i < a.n; ++i) {
    const int32_t slot = a.slot(i);
    if (slot < 0) continue;
    body(i, slot, score(a.Z + i * a.q, a.planes + slot * a.q, a.offsets[slot], a.q));
  }
}

TAXARBOR_CLONES void count_sides_rows(const Planes& a, const int32_t* counts, int64_t* out) {
  for_scores(a, [&](int64_t i, int32_t slot, float f) {
    out[slot] += (f >= 0.0f) * int64_t{counts ? counts[i] : 1};  // nobody could predict a branch
  });
}

constexpr int64_t Bins = 2048;

TAXARBOR_CLONES void count_scores_rows(
    const Planes& a, const int32_t* counts, const int64_t* prefixes, int64_t shift, int64_t* out) {
  for_scores(a, [&](int64_t i, int32_t slot, float f) {
    const uint64_t key = key_of(f);
    const int64_t prefix = static_cast<int64_t>(key >> (shift + 11));
    if (prefixes[slot] >= 0 && prefixes[slot] != prefix) return;
    out[slot * Bins + ((key >> shift) & (Bins - 1))] += counts ? counts[i] : 1;
  });
}

TAXARBOR_CLONES void move_rows(
    const Planes& a, const float* thresholds, const int32_t* children, int32_t* out) {
  std::copy(a.nodes, a.nodes + a.n, out);
  for_scores(a, [&](int64_t i, int32_t slot, float f) {
    out[i] = children[int64_t{2} * slot + !(f >= thresholds[slot])];
  });
}

nb::object count_sides(const Given& Z, const Given& nodes, const std::optional<Given>& counts,
    const Given& slots, const Given& planes, const Given& offsets) {
  const Planes a(Z, nodes, slots, planes, offsets);
  const int32_t* times = checked_counts(counts, a.n);
  return filled<int64_t>({static_cast<size_t>(a.n_slots)}, [&](int64_t* out) {
    std::fill(out, out + a.n_slots, 0);
    count_sides_rows(a, times, out);
  });
}

nb::object count_scores(const Given& Z, const Given& nodes, const std::optional<Given>& counts,
    const Given& slots, const Given& planes, const Given& offsets, const Given& prefixes,
    int64_t shift) {
  const Planes a(Z, nodes, slots, planes, offsets);
  const int32_t* times = checked_counts(counts, a.n);
  const int64_t* own =
      checked_range<int64_t>("prefixes", prefixes, {a.n_slots}, -1, int64_t{1} << 32);
  if (shift < 0 || shift > 31) refuse("shift must lie between 0 and 31; got ", shift);
  return filled<int64_t>({static_cast<size_t>(a.n_slots), Bins}, [&](int64_t* out) {
    std::fill(out, out + a.n_slots * Bins, 0);
    count_scores_rows(a, times, own, shift, out);
  });
}

nb::object move(const Given& Z, const Given& nodes, const Given& slots, const Given& planes,
    const Given& offsets, const Given& thresholds, const Given& children) {
  const Planes a(Z, nodes, slots, planes, offsets);
  const float* at = checked<float>("thresholds", thresholds, {a.n_slots});
  const int32_t* to = checked<int32_t>("children", children, {a.n_slots, 2});
  return filled<int32_t>(
      {static_cast<size_t>(a.n)}, [&](int32_t* out) { move_rows(a, at, to, out); });
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
  m.def("count_sides", &count_sides, "Z"_a, "nodes"_a, "counts"_a.none(), "slots"_a, "planes"_a,
      "offsets"_a,
      nb::sig("def count_sides(Z: Array, nodes: NDArray[int32], counts: NDArray[int32] | None, "
              "slots: NDArray[int32], planes: Array, offsets: Array) -> NDArray[int64]"),
      "How many copies of rows score zero at least, for each plane.\n\n"
      "The plane of a row is that of its node's slot; -1, or a negative node, for none. Its score\n"
      "is offset + plane . z, summed up in double, as a float32.");
  m.def("count_scores", &count_scores, "Z"_a, "nodes"_a, "counts"_a.none(), "slots"_a, "planes"_a,
      "offsets"_a, "prefixes"_a, "shift"_a,
      nb::sig("def count_scores(Z: Array, nodes: NDArray[int32], counts: NDArray[int32] | None, "
              "slots: NDArray[int32], planes: Array, offsets: Array, prefixes: NDArray[int64], "
              "shift: int) -> NDArray[int64]"),
      "Counts of copies by 11 bits of their scores' keys, from `shift` on: (n_planes, 2048).\n\n"
      "Only of keys whose bits above these are the plane's prefix; -1 for any. See\n"
      "taxarbor.rows._order.");
  m.def("move", &move, "Z"_a, "nodes"_a, "slots"_a, "planes"_a, "offsets"_a, "thresholds"_a,
      "children"_a,
      nb::sig("def move(Z: Array, nodes: NDArray[int32], slots: NDArray[int32], planes: Array, "
              "offsets: Array, thresholds: Array, children: NDArray[int32]) -> NDArray[int32]"),
      "The node of each row after a move: to its plane's first child if its score is at least\n"
      "the threshold, otherwise to the second; rows without a plane stay.");
}
