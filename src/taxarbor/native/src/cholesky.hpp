// One Cholesky solver, over how its sums run: callers keep the order in which they always added,
// since another one is another last digit, and with it another tree.
#pragma once

#include "common.hpp"

struct Sequential {  // sums from the first to the last; back substitution from the last row up
  static double dot(const double* a, const double* b, int64_t n) {
    return std::inner_product(a, a + n, b, 0.0);
  }
  static constexpr bool descends = true;
};

// Replace A (n, n), of which the lower triangle counts, by its factor and x by the solution of
// A x = x; false, with A spoilt, if it is not positive definite.
template <class Sums> bool solve_cholesky(std::vector<double>& A, std::vector<double>& x) {
  const int64_t n = x.size();
  for (int64_t i = 0; i < n; ++i) {
    double* own = &A[i * n];
    for (int64_t j = 0; j <= i; ++j) {
      const double rest = own[j] - Sums::dot(own, &A[j * n], j);
      if (i == j && !(rest > 0.0)) return false;
      own[j] = i == j ? std::sqrt(rest) : rest / A[j * n + j];
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    const double* own = &A[i * n];
    x[i] = (x[i] - Sums::dot(own, x.data(), i)) / own[i];
  }
  for (int64_t i = n - 1; i >= 0; --i) {
    for (int64_t k = 1; k < n - i; ++k) {
      const int64_t row = Sums::descends ? n - k : i + k;
      x[i] -= A[row * n + i] * x[row];
    }
    x[i] /= A[i * n + i];
  }
  return true;
}
