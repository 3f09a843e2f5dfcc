// Block coordinate descent on the model that a proximal Newton step minimises:
//
//   g . (V - W) + (V - W)' H (V - W) / 2 + sum_p group |V_p| + l1_p |V_p|_1 + ridge |V_p|^2
//
// where V_p holds the weights of feature p in all M models. H comes as (M * M, F, F): block
// (a, b) of it is H[a * M + b].
#include <numeric>

#include "cholesky.hpp"
#include "common.hpp"

namespace {

inline double soft(double v, double by) { return v > by ? v - by : v < -by ? v + by : 0.0; }

// V += step * H[:, p]: how the gradient of the quadratic part follows a change of one feature.
TAXARBOR_CLONES void follow(double* gradient, const double* H, double step, int64_t n) {
  for (int64_t q = 0; q < n; ++q) gradient[q] += step * H[q];
}

// One feature's minimiser, of a majorant over its M models; returns how far the gradient moved.
// `L` is at least the largest eigenvalue of the feature's M x M block of H.
double update(const QuadraticModel& q, double L, int64_t p, double* V, double* gradient) {
  const int64_t M = q.n_models, F = q.n_features;
  if (!(L > 0.0)) return 0.0;
  double moved = 0.0, norm2 = 0.0;
  constexpr int64_t Small = 64;
  double stack[Small];
  std::vector<double> heap(M > Small ? M : 0);
  double* next = M > Small ? heap.data() : stack;
  for (int64_t m = 0; m < M; ++m) {
    next[m] = soft(V[m * F + p] - gradient[m * F + p] / L, q.l1[p] / L);
    norm2 += next[m] * next[m];
  }
  const double norm = std::sqrt(norm2);
  const double shrink =
      (norm * L > q.group ? 1.0 - q.group / (norm * L) : 0.0) / (1.0 + 2.0 * q.ridge / L);
  for (int64_t m = 0; m < M; ++m) {
    const double step = next[m] * shrink - V[m * F + p];
    if (step == 0.0) continue;
    V[m * F + p] += step;
    moved = std::max(moved, std::abs(step) * L);
    for (int64_t k = 0; k < M; ++k)
      follow(gradient + k * F, q.H + ((k * M + m) * F + p) * F, step, F);
  }
  return moved;
}

// Update these features in turn; returns how far the gradient moved at most. With one model
// there is no group but the entry itself, and all the work is following the gradient.
TAXARBOR_CLONES double sweep_single(const QuadraticModel& q, const double* curvature,
    const std::vector<int64_t>& features, double* V, double* gradient) {
  const int64_t F = q.n_features;
  double moved = 0.0;
  for (const int64_t p : features) {
    const double L = curvature[p];
    if (!(L > 0.0)) continue;
    const double step =
        soft(L * V[p] - gradient[p], q.l1[p] + q.group) / (L + 2.0 * q.ridge) - V[p];
    if (step == 0.0) continue;
    V[p] += step;
    moved = std::max(moved, std::abs(step) * L);
    const double* H = q.H + p * F;
    for (int64_t j = 0; j < F; ++j) gradient[j] += step * H[j];
  }
  return moved;
}

double sweep(const QuadraticModel& q, const double* curvature, const std::vector<int64_t>& features,
    double* V, double* gradient) {
  if (q.n_models == 1) return sweep_single(q, curvature, features, V, gradient);
  double moved = 0.0;
  for (const int64_t p : features) moved = std::max(moved, update(q, curvature[p], p, V, gradient));
  return moved;
}

// How far the feature is from optimal: as SparseGroupPenalty.violations.
double violation(const QuadraticModel& q, int64_t p, const double* V, const double* gradient) {
  const int64_t M = q.n_models, F = q.n_features;
  double norm2 = 0.0, distance2 = 0.0;
  for (int64_t m = 0; m < M; ++m) norm2 += V[m * F + p] * V[m * F + p];
  const double norm = std::sqrt(norm2);
  for (int64_t m = 0; m < M; ++m) {
    const double v = V[m * F + p];
    const double pull =
        gradient[m * F + p] + 2.0 * q.ridge * v + (norm > 0.0 ? q.group * v / norm : 0.0);
    const double rest =
        v == 0.0 ? std::max(0.0, std::abs(pull) - q.l1[p]) : pull + std::copysign(q.l1[p], v);
    distance2 += rest * rest;
  }
  return norm > 0.0 ? std::sqrt(distance2) : std::max(0.0, std::sqrt(distance2) - q.group);
}

// Sum of a[k] b[k], through interleaved totals: one order, yet vectorisable.
TAXARBOR_CLONES double dot(const double* a, const double* b, int64_t n) {
  constexpr int L = 8;
  double total[L] = {};
  int64_t k = 0;
  for (; k + L <= n; k += L)
    for (int l = 0; l < L; ++l) total[l] += a[k + l] * b[k + l];
  for (; k < n; ++k) total[0] += a[k] * b[k];
  double sum = 0.0;
  for (const double t : total) sum += t;
  return sum;
}

struct Interleaved {
  static double dot(const double* a, const double* b, int64_t n) { return ::dot(a, b, n); }
  static constexpr bool descends = false;
};

constexpr int64_t MaxSmooth = 512;  // MAX_SMOOTH of optim/_prox_newton.py, which says why

// With a ridge alone the model is smooth: one linear system, solved by Cholesky. Says whether it
// could be; large systems are left to the descent.
bool solve_smooth(const QuadraticModel& q, double* V, const double* gradient) {
  const int64_t M = q.n_models, F = q.n_features, N = M * F;
  if (!(q.ridge > 0.0) || q.group != 0.0 || N > MaxSmooth) return false;
  if (std::any_of(q.l1, q.l1 + F, [](double w) { return w != 0.0; })) return false;
  std::vector<double> A(N * N), step(N);
  for (int64_t i = 0; i < N; ++i) {
    for (int64_t j = 0; j <= i; ++j)
      A[i * N + j] =
          q.H[((i / F * M + j / F) * F + i % F) * F + j % F] + (i == j ? 2.0 * q.ridge : 0.0);
    step[i] = -gradient[i] - 2.0 * q.ridge * V[i];
  }
  if (!solve_cholesky<Interleaved>(A, step)) return false;
  for (int64_t i = 0; i < N; ++i) V[i] += step[i];
  return true;
}

}  // namespace

// Sweep all features, then those in use until they settle, then all again. The steepest come
// first, in an order that depends neither on how the columns happen to be arranged nor on
// rounding: gradients that agree to three digits count as equal.
int64_t descend(
    const QuadraticModel& q, double* V, double* gradient, double tol, int64_t max_sweeps) {
  const int64_t M = q.n_models, F = q.n_features;
  if (solve_smooth(q, V, gradient)) return 1;
  std::vector<double> curvature(F);
  for (int64_t p = 0; p < F; ++p)
    for (int64_t a = 0; a < M; ++a) {  // Gershgorin: the largest absolute row sum
      double sum = 0.0;
      for (int64_t b = 0; b < M; ++b) sum += std::abs(q.H[((a * M + b) * F + p) * F + p]);
      curvature[p] = std::max(curvature[p], sum);
    }
  std::vector<double> steepness(F);
  for (int64_t p = 0; p < F; ++p)
    for (int64_t m = 0; m < M; ++m)
      steepness[p] = std::max(steepness[p], std::abs(gradient[m * F + p]));
  for (double& s : steepness) {
    int exponent;
    const double digits = std::round(std::frexp(s, &exponent) * 4096.0);
    s = std::ldexp(digits, exponent);
  }
  std::vector<int64_t> order(F), used;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
      [&](int64_t a, int64_t b) { return steepness[a] > steepness[b]; });
  int64_t sweeps = 0;
  while (sweeps < max_sweeps) {
    double moved = sweep(q, curvature.data(), order, V, gradient);
    used.clear();
    for (const int64_t p : order) {
      bool in_use = false;
      for (int64_t m = 0; m < M; ++m) in_use |= V[m * F + p] != 0.0;
      if (in_use) used.push_back(p);
    }
    ++sweeps;
    double worst = 0.0;
    for (int64_t p = 0; p < F && worst <= tol; ++p)
      if (curvature[p] > 0.0) worst = std::max(worst, violation(q, p, V, gradient));
    if (worst <= tol || moved == 0.0) break;
    while (sweeps < max_sweeps) {
      moved = sweep(q, curvature.data(), used, V, gradient);
      ++sweeps;
      if (moved <= 0.5 * tol) break;
    }
  }
  return sweeps;
}

namespace {

nb::object descend_blocks(const Given& H, const Given& gradient, const Given& W, double group,
    const Given& l1, double ridge, double tol, int64_t max_sweeps) {
  const double* start = checked<double>("W", W, {-1, -1});
  const int64_t M = W.shape(0), F = W.shape(1);
  checked_count("the number of models", M, 1);
  const QuadraticModel model{checked<double>("H", H, {M * M, F, F}), M, F,
      checked_weight("group", group), checked_weights("l1", l1, F), checked_weight("ridge", ridge)};
  const double* slope = checked<double>("gradient", gradient, {M, F});
  checked_weight("tol", tol);
  checked_count("max_sweeps", max_sweeps, 0);
  std::vector<double> g(slope, slope + M * F);
  int64_t sweeps = 0;
  const nb::object found = filled<double>({W.shape(0), W.shape(1)}, [&](double* V) {
    std::copy(start, start + M * F, V);
    sweeps = descend(model, V, g.data(), tol, max_sweeps);
  });
  return nb::make_tuple(found, sweeps);
}

}  // namespace

void bind_descent(nb::module_& m) {
  using namespace nb::literals;
  m.def("descend_blocks", &descend_blocks, "H"_a, "gradient"_a, "W"_a, "group"_a, "l1"_a, "ridge"_a,
      "tol"_a, "max_sweeps"_a,
      nb::sig("def descend_blocks(H: Array, gradient: Array, W: Array, group: float, l1: Array, "
              "ridge: float, tol: float, max_sweeps: int) -> tuple[Array, int]"));
}
