// Balanced assignment to two clusters: a threshold on the difference of their scores.
#include <functional>
#include <limits>

#include "common.hpp"

namespace {

// Child 0 takes the m rows of largest f, m = #{f >= 0} clipped to the bounds.
template <typename T>
void split_pair(const T* f, int64_t n, int64_t lower, int64_t upper, int8_t* label) {
  largest(f, n);  // refuses what is not finite
  int64_t positive = 0;
  for (int64_t i = 0; i < n; ++i) positive += f[i] >= 0;
  for (int64_t i = 0; i < n; ++i) label[i] = f[i] < 0;
  const int64_t m = std::clamp(positive, lower, upper);
  if (m == positive) return;
  // Only one side of zero changes: of its rows, the `keep` largest end in child 0.
  const bool below = m > positive;
  int64_t keep = below ? m - positive : m, size = 0;
  std::vector<T> values(n);
  for (int64_t i = 0; i < n; ++i) {  // no branch: it would be mispredicted at every other row
    values[size] = f[i];
    size += (f[i] < 0) == below;
  }
  T threshold = std::numeric_limits<T>::infinity();  // keep == 0: nothing passes
  if (keep > 0) {
    const auto at = values.begin() + (keep - 1);
    std::nth_element(values.begin(), at, values.begin() + size, std::greater<T>());
    threshold = *at;
    keep -= std::count_if(values.begin(), at, [&](T x) { return x > threshold; });
  }
  for (int64_t i = 0; i < n; ++i) label[i] = !(f[i] > threshold);
  for (int64_t i = 0; keep > 0; ++i)  // this many pass at the threshold itself
    if (f[i] == threshold) label[i] = 0, --keep;
}

template <typename T>
nb::ndarray<nb::numpy, int8_t> assign_pair(Vec<const T> f, int64_t lower, int64_t upper) {
  const int64_t n = f.shape(0);
  if (lower < 0 || lower > upper || upper > n)
    throw std::invalid_argument("assign_pair needs 0 <= lower <= upper <= len(f)");
  const Owned<int8_t> out(n);
  {
    nb::gil_scoped_release release;
    split_pair(f.data(), n, lower, upper, out.data);
  }
  return out.shaped({f.shape(0)});
}

template <typename T>
void bind(nb::module_& m) {
  m.def("assign_pair", &assign_pair<T>, nb::arg("f").noconvert(), nb::arg("lower"),
        nb::arg("upper"), "Labels 0 and 1 from margins f, lower <= #{0} <= upper.");
}

}  // namespace

void split_pair(const float* f, int64_t n, int64_t lower, int64_t upper, int8_t* label) { split_pair<float>(f, n, lower, upper, label); }
void split_pair(const double* f, int64_t n, int64_t lower, int64_t upper, int8_t* label) { split_pair<double>(f, n, lower, upper, label); }

void bind_threshold(nb::module_& m) {
  bind<float>(m);
  bind<double>(m);
}
