// The squared hinge, row by row: values, residuals, costs, and which rows lie inside the
// margin. These read scores, never X.
#include <cmath>

#include "common.hpp"

namespace {

// Sums over rows run through eight interleaved totals: one order, yet vectorisable.
template <class T>
TAXARBOR_INLINE double pair_block(const T* f, const std::int8_t* labels, std::int64_t n, T* residual, std::uint8_t* active) {
  constexpr int L = 8;
  double total[L] = {};
  std::int64_t i = 0;
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
}  // namespace

TAXARBOR_CLONES double pair_rows(const float* f, const std::int8_t* y, std::int64_t n, float* r, std::uint8_t* a) { return pair_block<float>(f, y, n, r, a); }
TAXARBOR_CLONES double pair_rows(const double* f, const std::int8_t* y, std::int64_t n, double* r, std::uint8_t* a) { return pair_block<double>(f, y, n, r, a); }

namespace {

// Two children, f = score of child 0 less that of child 1: sum of [1 - s f]_+^2, s = +1 for
// child 0; residual s [1 - s f]_+.
template <class T>
auto hinge_pair(Vec<const T> f, Vec<const std::int8_t> labels) {
  const std::size_t n = f.shape(0);
  Owned<T> residual(n);
  Owned<std::uint8_t> active(n);
  double sum;
  {
    nb::gil_scoped_release free;
    sum = pair_rows(f.data(), labels.data(), static_cast<std::int64_t>(n), residual.data, active.data);
  }
  return nb::make_tuple(sum, residual.shaped({n, 1}), active.shaped({n}));
}

// Any number of children: sum over k != y of [1 - s_y + s_k]_+^2; residual[i, k] is minus half
// the derivative in s_k; active[i, k] says that k violates the margin of row i.
template <class T>
auto hinge_multi(Mat<const T> S, Vec<const std::int32_t> labels) {
  const std::size_t n = S.shape(0), K = S.shape(1);
  Owned<T> residual(n * K);
  Owned<std::uint8_t> active(n * K);
  double sum = 0.0;
  {
    nb::gil_scoped_release free;
    for (std::size_t i = 0; i < n; ++i) {
      const T* s = S.data() + i * K;
      T* r = residual.data + i * K;
      const std::size_t y = labels.data()[i];
      T own = 0;
      double row = 0.0;
      for (std::size_t k = 0; k < K; ++k) {
        const T slack = k == y ? T{0} : std::max(T{0}, T{1} - s[y] + s[k]);
        r[k] = -slack;
        active.data[i * K + k] = slack > T{0};
        own += slack;
        row += static_cast<double>(slack) * static_cast<double>(slack);
      }
      r[y] = own;
      sum += row;
    }
  }
  return nb::make_tuple(sum, residual.shaped({n, K}), active.shaped({n, K}));
}

// What each row would cost in each child: C[i, k] = sum over l != k of [1 - s_k + s_l]_+^2.
template <class T>
auto hinge_costs(Mat<const T> S) {
  const std::size_t n = S.shape(0), K = S.shape(1);
  Owned<double> cost(n * K);
  {
    nb::gil_scoped_release free;
    for (std::size_t i = 0; i < n; ++i) {
      const T* s = S.data() + i * K;
      for (std::size_t k = 0; k < K; ++k) {
        double sum = -1.0;  // the term l = k, which is not counted
        for (std::size_t l = 0; l < K; ++l) {
          const double slack = std::max(0.0, 1.0 - static_cast<double>(s[k]) + static_cast<double>(s[l]));
          sum += slack * slack;
        }
        cost.data[i * K + k] = sum;
      }
    }
  }
  return cost.shaped({n, K});
}

// Where two masks differ: positions that only the new one has, and that only the old one had.
auto mask_changes(Vec<const std::uint8_t> before, Vec<const std::uint8_t> after) {
  const std::size_t n = before.shape(0);
  std::vector<std::int64_t> entered, left;
  {
    nb::gil_scoped_release free;
    for (std::size_t i = 0; i < n; ++i) {
      if (before.data()[i] == after.data()[i]) continue;
      (after.data()[i] ? entered : left).push_back(static_cast<std::int64_t>(i));
    }
  }
  const auto array = [](const std::vector<std::int64_t>& from) {
    Owned<std::int64_t> to(from.size());
    std::copy(from.begin(), from.end(), to.data);
    return to.shaped({from.size()});
  };
  return nb::make_tuple(array(entered), array(left));
}

template <class T> void bind_for(nb::module_& m) {
  m.def("hinge_pair", &hinge_pair<T>, nb::arg("f").noconvert(), nb::arg("labels").noconvert());
  m.def("hinge_multi", &hinge_multi<T>, nb::arg("S").noconvert(), nb::arg("labels").noconvert());
  m.def("hinge_costs", &hinge_costs<T>, nb::arg("S").noconvert());
}

}  // namespace

void bind_hinge(nb::module_& m) {
  bind_for<float>(m);
  bind_for<double>(m);
  m.def("mask_changes", &mask_changes, nb::arg("before"), nb::arg("after"));
}
