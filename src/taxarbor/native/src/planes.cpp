// Which rows a sample has, and on which side of a plane each row is. What is said of a row depends
// on that row alone, or on its number, and not on the machine, as no product is fused with a sum in
// this file (CMakeLists.txt).
#include "common.hpp"

namespace {

// ---- samples: the rows of lowest hash -----------------------------------------------------------

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

nb::object plane_scores(const Given& Z, const Given& plane, double offset) {
  const float* rows = checked<float>("Z", Z, {-1, -1});
  const int64_t n = Z.shape(0), q = Z.shape(1);
  const double* weights = checked_finite("plane", plane, {q});
  return filled<float>({static_cast<size_t>(n)},
      [&](float* out) { score_rows(rows, n, q, weights, offset, out); });
}

}  // namespace

void bind_planes(nb::module_& m) {
  using namespace nb::literals;
  m.def("hashes", &hashes, "key"_a, "numbers"_a,
      nb::sig("def hashes(key: int, numbers: IndexArray) -> NDArray[uint64]"),
      "The hash of each number, for a key.");
  m.def("plane_scores", &plane_scores, "Z"_a, "plane"_a, "offset"_a,
      nb::sig("def plane_scores(Z: Array, plane: Array, offset: float) -> Array"),
      "offset + plane . z of each row, summed up in double.");
}
