// Block coordinate descent on the model that a proximal Newton step minimises:
//
//   g . (V - W) + (V - W)' H (V - W) / 2 + sum_p group |V_p| + l1_p |V_p|_1 + ridge |V_p|^2
//
// where V_p holds the weights of feature p in all M models. H has a block per model, (M, F, F).
#include "cholesky.hpp"

namespace {

inline double soft(double v, double by) { return v > by ? v - by : v < -by ? v + by : 0.0; }

// The norm r of the minimiser over v of sum_m e_m v_m^2 / 2 - c_m v_m + group |v|: the root of
// sum_m (c_m / (e_m r + group))^2 = 1. Newton on the inverse root, which is concave: from the
// first step on it rises to the root.
double norm_of(const double* c, const double* e, int64_t M, double group, double r) {
  for (int turn = 0; turn < 30; ++turn) {
    double square = 0.0, slope = 0.0;
    for (int64_t m = 0; m < M; ++m) {
      const double inverse = 1.0 / (e[m] * r + group), part = c[m] * inverse * c[m] * inverse;
      square += part, slope += part * e[m] * inverse;
    }
    const double step = square / slope * (std::sqrt(square) - 1.0);
    const double next = std::max(0.0, r + step);
    if (std::abs(next - r) <= 1e-9 * next) return next;
    r = next;
  }
  return r;
}

// One feature's minimiser over its M models; returns how far the gradient moved. `work` holds 2 M.
TAXARBOR_CLONES double update(
    const QuadraticModel& q, int64_t p, double* V, double* gradient, double* work) {
  const int64_t M = q.n_models, F = q.n_features;
  double *c = work, *e = work + M;
  double norm2 = 0.0, now2 = 0.0, moved = 0.0;
  for (int64_t m = 0; m < M; ++m) {
    const double L = q.H[(m * F + p) * F + p], v = V[m * F + p];
    c[m] = soft(L * v - gradient[m * F + p], q.l1[p]);
    e[m] = L + 2.0 * q.ridge;
    norm2 += c[m] * c[m], now2 += v * v;
  }
  double extra = 0.0;  // what the group norm adds to the curvature
  const bool is_zero = !(norm2 > q.group * q.group);
  if (!is_zero && q.group > 0.0) extra = q.group / norm_of(c, e, M, q.group, std::sqrt(now2));
  for (int64_t m = 0; m < M; ++m) {
    const double L = q.H[(m * F + p) * F + p];
    if (!(L > 0.0)) continue;
    const double step = (is_zero ? 0.0 : c[m] / (e[m] + extra)) - V[m * F + p];
    if (step == 0.0) continue;
    V[m * F + p] += step;
    moved = std::max(moved, std::abs(step) * L);
    const double* H = q.H + (m * F + p) * F;
    double* g = gradient + m * F;
    for (int64_t j = 0; j < F; ++j) g[j] += step * H[j];
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
  std::vector<double> work(2 * q.n_models);
  double moved = 0.0;
  for (const int64_t p : features) moved = std::max(moved, update(q, p, V, gradient, work.data()));
  return moved;
}

TAXARBOR_CLONES double dot(const double* a, const double* b, int64_t n) {
  return sum_terms<false>(n, [&](int64_t k) { return a[k] * b[k]; });
}

struct Interleaved {
  static double dot(const double* a, const double* b, int64_t n) { return ::dot(a, b, n); }
  static constexpr bool descends = false;
};

constexpr int64_t MaxSweeps = 200;
constexpr int64_t MaxSmooth = 512;  // MAX_SMOOTH of split/_alternate.py, which says why

// With a ridge alone the model is smooth: a linear system per model, solved by Cholesky. Says
// whether they could be; large ones are left to the descent.
bool solve_smooth(const QuadraticModel& q, double* V, const double* gradient) {
  const int64_t M = q.n_models, F = q.n_features;
  if (!(q.ridge > 0.0) || q.group != 0.0 || F > MaxSmooth) return false;
  if (std::any_of(q.l1, q.l1 + F, [](double w) { return w != 0.0; })) return false;
  std::vector<double> steps;
  for (int64_t m = 0; m < M; ++m) {
    std::vector<double> A(q.H + m * F * F, q.H + (m + 1) * F * F), step(F);
    for (int64_t i = 0; i < F; ++i) {
      A[i * F + i] += 2.0 * q.ridge;
      step[i] = -gradient[m * F + i] - 2.0 * q.ridge * V[m * F + i];
    }
    if (!solve_cholesky<Interleaved>(A, step)) return false;
    steps.insert(steps.end(), step.begin(), step.end());
  }
  for (int64_t i = 0; i < M * F; ++i) V[i] += steps[i];
  return true;
}

}  // namespace

double distance(const QuadraticModel& q, int64_t p, const double* V, const double* gradient) {
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

// Sweep all features, then those in use until they settle, then all again. The steepest come
// first, in an order that depends neither on how the columns happen to be arranged nor on
// rounding: gradients that agree to three digits count as equal.
void descend(const QuadraticModel& q, double* V, double* gradient, double tol) {
  const int64_t M = q.n_models, F = q.n_features;
  if (solve_smooth(q, V, gradient)) return;
  std::vector<double> curvature(F);
  for (int64_t p = 0; p < F; ++p)
    for (int64_t m = 0; m < M; ++m) curvature[p] = std::max(curvature[p], q.H[(m * F + p) * F + p]);
  std::vector<double> steepness(F);
  for (int64_t p = 0; p < F; ++p)
    for (int64_t m = 0; m < M; ++m)
      steepness[p] = std::max(steepness[p], std::abs(gradient[m * F + p]));
  for (double& s : steepness) {
    int exponent;
    const double digits = std::round(std::frexp(s, &exponent) * 4096.0);
    s = std::ldexp(digits, exponent);
  }
  std::vector<int64_t> order = numbers(F), used;
  std::stable_sort(order.begin(), order.end(),
      [&](int64_t a, int64_t b) { return steepness[a] > steepness[b]; });
  int64_t sweeps = 0;
  while (sweeps < MaxSweeps) {
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
      if (curvature[p] > 0.0) worst = std::max(worst, distance(q, p, V, gradient));
    if (worst <= tol || moved == 0.0) break;
    while (sweeps < MaxSweeps) {
      moved = sweep(q, curvature.data(), used, V, gradient);
      ++sweeps;
      if (moved <= 0.5 * tol) break;
    }
  }
}
