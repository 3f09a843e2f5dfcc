// The squared hinge, row by row: values, residuals, costs, and which rows lie inside the
// margin. These read scores, never X.
#include "common.hpp"

template <class T> TAXARBOR_CLONES double pair_rows(
    const T* f, const int8_t* labels, int64_t n, T* residual, uint8_t* active) {
  for (int64_t i = 0; i < n; ++i) {
    const T sign = static_cast<T>(1 - 2 * labels[i]);
    const T slack = std::max(T{0}, T{1} - sign * f[i]);
    residual[i] = sign * slack;
    active[i] = slack > T{0};
  }
  return sum_terms<false>(n, [&](int64_t i) {
    return static_cast<double>(residual[i]) * static_cast<double>(residual[i]);
  });
}
template double pair_rows(const float*, const int8_t*, int64_t, float*, uint8_t*);
template double pair_rows(const double*, const int8_t*, int64_t, double*, uint8_t*);

template <class T> TAXARBOR_CLONES double hinge_rows(
    const T* S, const int32_t* labels, int64_t n, int64_t K, T* residual) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i) {
    const T* s = S + i * K;
    T* r = residual + i * K;
    const int64_t y = labels[i];
    const T edge = T{1} - s[y];
    T own = 0, row = 0;
    for (int64_t k = 0; k < K; ++k) r[k] = -std::max(T{0}, edge + s[k]);
    r[y] = 0;
    for (int64_t k = 0; k < K; ++k) own -= r[k], row += r[k] * r[k];
    r[y] = own;
    sum += static_cast<double>(row);
  }
  return sum;
}
template double hinge_rows(const float*, const int32_t*, int64_t, int64_t, float*);
template double hinge_rows(const double*, const int32_t*, int64_t, int64_t, double*);

template <class T> TAXARBOR_CLONES void cost_rows(const T* S, int64_t n, int64_t K, double* cost) {
  for (const T* s = S; s < S + n * K; s += K)
    for (int64_t k = 0; k < K; ++k) {
      double sum = -1.0;  // the term l = k, which is not counted
      for (int64_t l = 0; l < K; ++l) {
        const double slack =
            std::max(0.0, 1.0 - static_cast<double>(s[k]) + static_cast<double>(s[l]));
        sum += slack * slack;
      }
      *cost++ = sum;
    }
}
template void cost_rows(const float*, int64_t, int64_t, double*);
template void cost_rows(const double*, int64_t, int64_t, double*);

namespace {

nb::object hinge_multi(const Given& given, const Given& labels) {
  return of_type("S", given, [&](auto number) -> nb::object {
    using T = decltype(number);
    const T* S = checked<T>("S", given, {-1, -1});
    const size_t n = given.shape(0), K = given.shape(1);
    const int32_t* child =
        checked_range<int32_t>("labels", labels, {static_cast<int64_t>(n)}, 0, K);
    const Owned<T> residual(n * K);
    const double sum = unlocked([&] { return hinge_rows(S, child, n, K, residual.data); });
    return nb::make_tuple(sum, residual.shaped({n, K}));
  });
}

nb::object hinge_costs(const Given& given) {
  return of_type("S", given, [&](auto number) {
    const auto* S = checked<decltype(number)>("S", given, {-1, -1});
    const size_t n = given.shape(0), K = given.shape(1);
    return filled<double>({n, K}, [&](double* cost) { cost_rows(S, n, K, cost); });
  });
}

}  // namespace

void bind_hinge(nb::module_& m) {
  using namespace nb::literals;
  m.def("hinge_multi", &hinge_multi, "S"_a, "labels"_a,
      nb::sig("def hinge_multi(S: Array, labels: Labels) -> tuple[float, Array]"));
  m.def("hinge_costs", &hinge_costs, "S"_a, nb::sig("def hinge_costs(S: Array) -> Array"));
}
