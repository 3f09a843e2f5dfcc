// The squared hinge, row by row: values, residuals, costs, and which rows lie inside the
// margin. These read scores, never X.
#include "common.hpp"

// Sums over rows run through eight interleaved totals: one order, yet vectorisable.
template <class T> TAXARBOR_CLONES double pair_rows(
    const T* f, const int8_t* labels, int64_t n, T* residual, uint8_t* active) {
  constexpr int L = 8;
  double total[L] = {};
  int64_t i = 0;
  for (; i + L <= n; i += L)
    for (int l = 0; l < L; ++l) {
      const T sign = labels[i + l] ? T{-1} : T{1};
      const T slack = std::max(T{0}, T{1} - sign * f[i + l]);
      residual[i + l] = sign * slack;
      active[i + l] = slack > T{0};
      total[l] += static_cast<double>(slack) * static_cast<double>(slack);
    }
  for (; i < n; ++i) {
    const T sign = labels[i] ? T{-1} : T{1};
    const T slack = std::max(T{0}, T{1} - sign * f[i]);
    residual[i] = sign * slack;
    active[i] = slack > T{0};
    total[0] += static_cast<double>(slack) * static_cast<double>(slack);
  }
  double sum = 0.0;
  for (double t : total) sum += t;
  return sum;
}
template double pair_rows(const float*, const int8_t*, int64_t, float*, uint8_t*);
template double pair_rows(const double*, const int8_t*, int64_t, double*, uint8_t*);

namespace {

// Any number of children: sum over k != y of [1 - s_y + s_k]_+^2; residual[i, k] is minus half
// the derivative in s_k; active[i, k] says that k violates the margin of row i.
nb::object hinge_multi(const Given& given, const Given& labels) {
  return of_type("S", given, [&](auto number) -> nb::object {
    using T = decltype(number);
    const T* S = checked<T>("S", given, {-1, -1});
    const int64_t n = given.shape(0), K = given.shape(1);
    const int32_t* child = checked_range<int32_t>("labels", labels, {n}, 0, K);
    const Owned<T> residual(n * K);
    const Owned<uint8_t> active(n * K);
    double sum = 0.0;
    unlocked([&] {
      for (int64_t i = 0; i < n; ++i) {
        const T* s = S + i * K;
        T* r = residual.data + i * K;
        const int64_t y = child[i];
        T own = 0;
        double row = 0.0;
        for (int64_t k = 0; k < K; ++k) {
          const T slack = k == y ? T{0} : std::max(T{0}, T{1} - s[y] + s[k]);
          r[k] = -slack;
          active.data[i * K + k] = slack > T{0};
          own += slack;
          row += static_cast<double>(slack) * static_cast<double>(slack);
        }
        r[y] = own;
        sum += row;
      }
    });
    const size_t rows = n, columns = K;
    return nb::make_tuple(sum, residual.shaped({rows, columns}), active.shaped({rows, columns}));
  });
}

// What each row would cost in each child: C[i, k] = sum over l != k of [1 - s_k + s_l]_+^2.
nb::object hinge_costs(const Given& given) {
  return of_type("S", given, [&](auto number) -> nb::object {
    using T = decltype(number);
    const T* S = checked<T>("S", given, {-1, -1});
    const size_t n = given.shape(0), K = given.shape(1);
    return filled<double>({n, K}, [&](double* cost) {
      for (const T* s = S; s < S + n * K; s += K)
        for (size_t k = 0; k < K; ++k) {
          double sum = -1.0;  // the term l = k, which is not counted
          for (size_t l = 0; l < K; ++l) {
            const double slack =
                std::max(0.0, 1.0 - static_cast<double>(s[k]) + static_cast<double>(s[l]));
            sum += slack * slack;
          }
          *cost++ = sum;
        }
    });
  });
}

// Where two masks differ: positions that only the new one has, and that only the old one had.
nb::object mask_changes(const Given& before, const Given& after) {
  const uint8_t* was = checked<uint8_t>("before", before, {-1});
  const int64_t n = before.shape(0);
  const uint8_t* is = checked<uint8_t>("after", after, {n});
  std::vector<int64_t> entered, left;
  unlocked([&] {
    for (int64_t i = 0; i < n; ++i)
      if (was[i] != is[i]) (is[i] ? entered : left).push_back(i);
  });
  return nb::make_tuple(copied(entered), copied(left));
}

}  // namespace

void bind_hinge(nb::module_& m) {
  using namespace nb::literals;
  m.def("hinge_multi", &hinge_multi, "S"_a, "labels"_a,
      nb::sig("def hinge_multi(S: Array, labels: Labels) -> tuple[float, Array, Mask]"));
  m.def("hinge_costs", &hinge_costs, "S"_a, nb::sig("def hinge_costs(S: Array) -> Array"));
  m.def("mask_changes", &mask_changes, "before"_a, "after"_a,
      nb::sig("def mask_changes(before: Mask, after: Mask) -> tuple[IndexArray, IndexArray]"));
}
