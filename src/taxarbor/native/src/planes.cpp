// Which rows a sample has, and on which side of a plane each row is. What is said of a row depends
// on that row alone, or on its number, and not on the machine, as no product is fused with a sum in
// this file (CMakeLists.txt).
#include "common.hpp"

namespace {

// ---- samples: the rows of lowest hash -----------------------------------------------------------

nb::object hashes(uint64_t key, const Given& numbers) {
  const int64_t* from = checked<int64_t>("numbers", numbers, {-1});
  const size_t n = numbers.shape(0);
  return filled<uint64_t>({n}, [&](uint64_t* out) {
    for (size_t i = 0; i < n; ++i) out[i] = mixed(mixed(key ^ (from[i] * Golden)));
  });
}

// ---- sides of planes ----------------------------------------------------------------------------

// offset + plane . z, in double, in one order; never -0.
TAXARBOR_CLONES void score_rows(
    const float* Z, int64_t n, int64_t q, const double* plane, double offset, float* out) {
  for (int64_t i = 0; i < n; ++i, Z += q) {
    const double sum =
        sum_terms<true>(q, [&](int64_t j) { return plane[j] * static_cast<double>(Z[j]); });
    out[i] = static_cast<float>(offset + sum) + 0.0f;
  }
}

nb::object plane_scores(const Given& Z, const Given& plane, double offset) {
  const float* rows = checked<float>("Z", Z, {-1, -1});
  const int64_t n = Z.shape(0), q = Z.shape(1);
  const double* weights = checked_finite("plane", plane, {q});
  return filled<float>(
      {static_cast<size_t>(n)}, [&](float* out) { score_rows(rows, n, q, weights, offset, out); });
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
