// A node of lifted rows divided in two where the gap is: all of split/_gap.py's starts, in one
// call. In d, whose sign says the child, the problem is
//
//   1/(2m) sum_i [1 - s_i d . z_i]_+^2 + ridge |d|^2,   s_i = +1 for child 0,
//
// over m rows z = x - c, but for the last feature, a constant, which is not centred: its weight is
// the intercept. From zero all rows are inside the margin, so the first Newton step is the least
// squares fit of the labels, whose matrix is the same for all starts of a node.
#include "pair.hpp"

namespace {

// taxarbor.rows.HalveProblem.
struct HalveProblem {
  uint64_t seed;
  std::vector<std::string> starts;  // kinds, in turn
  int64_t lower, upper;             // rows of child 0
  double ridge, tol, violation;
  int64_t max_rounds, start_rows, ward_rows, lloyd_steps, power_steps;
};

constexpr double Tiny = 1e-300;

class Random {  // splitmix64
 public:
  // A stream of its own for each number of rows.
  Random(uint64_t seed, int64_t n_rows) : state_(seed + Golden * static_cast<uint64_t>(n_rows)) {}
  double uniform() { return static_cast<double>(mixed(state_ += Golden) >> 11) * 0x1p-53; }
  // As many of the first n whole numbers, ascending.
  std::vector<int64_t> choose(int64_t n, int64_t size) {
    std::vector<int64_t> chosen;
    chosen.reserve(size);
    for (int64_t i = 0; size > 0; ++i)
      if (static_cast<double>(n - i) * uniform() < static_cast<double>(size))
        chosen.push_back(i), --size;
    return chosen;
  }

 private:
  uint64_t state_;
};

// Replace A by U, upper triangular, with U'U = A, of which the upper triangle counts. Some pivots
// at a time: what lies below them is read and written once for all.
TAXARBOR_CLONES bool factorise(double* A, int64_t n) {
  constexpr int64_t B = 4;
  for (int64_t from = 0; from < n; from += B) {
    const int64_t to = std::min(from + B, n);
    for (int64_t k = from; k < to; ++k) {
      double* own = A + k * n;
      if (!(own[k] > 0.0)) return false;
      const double pivot = std::sqrt(own[k]);
      for (int64_t j = k; j < n; ++j) own[j] /= pivot;
      for (int64_t i = k + 1; i < to; ++i) {
        double* row = A + i * n;
        const double by = own[i];
        for (int64_t j = i; j < n; ++j) row[j] -= by * own[j];
      }
    }
    const double *u0 = A + from * n, *u1 = u0 + n, *u2 = u1 + n, *u3 = u2 + n;
    for (int64_t i = to; i < n; ++i) {  // only after a whole block
      double* row = A + i * n;
      const double b0 = u0[i], b1 = u1[i], b2 = u2[i], b3 = u3[i];
      for (int64_t j = i; j < n; ++j) {
        double rest = row[j];
        rest -= b0 * u0[j];
        rest -= b1 * u1[j];
        rest -= b2 * u2[j];
        rest -= b3 * u3[j];
        row[j] = rest;
      }
    }
  }
  return true;
}

// Replace x by the solution of U'U x = x.
TAXARBOR_CLONES void solve(const double* U, double* x, int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    const double value = x[k] /= U[k * n + k];
    for (int64_t j = k + 1; j < n; ++j) x[j] -= value * U[k * n + j];
  }
  for (int64_t k = n - 1; k >= 0; --k) {
    constexpr int64_t L = 8;  // interleaved totals: one order, yet vectorisable
    double total[L] = {x[k]};
    int64_t j = k + 1;
    for (; j + L <= n; j += L)
      for (int64_t l = 0; l < L; ++l) total[l] -= U[k * n + j + l] * x[j + l];
    for (; j < n; ++j) total[j % L] -= U[k * n + j] * x[j];
    x[k] = std::accumulate(total, total + L, 0.0) / U[k * n + k];
  }
}

// Some rows about a centre, copied: all that follows reads them many times.
template <class T> struct Copy {
  int64_t n, p;
  std::unique_ptr<T[]> values;  // not filled with zeros first
  std::shared_ptr<View<T>> view;

  Copy(int64_t n_rows, int64_t n_features) : n(n_rows), p(n_features), values(new T[n * p]) {}
  Copy(const Copy& other, const std::vector<int64_t>& rows) : Copy(rows.size(), other.p) {
    for (int64_t i = 0; i < n; ++i) {
      const T* from = other.values.get() + rows[i] * p;
      std::copy(from, from + p - 1, values.get() + i * p);
      values[i * p + p - 1] = T{0};  // the last feature says nothing
    }
    look();
  }
  // Whether no row differs from the first; the last feature does not count.
  bool is_one_point() const {
    for (int64_t i = 1; i < n; ++i)
      if (!std::equal(values.get(), values.get() + p - 1, values.get() + i * p)) return false;
    return true;
  }
  void look() {
    view = view_dense(values.get(), n, p);
    view->set_center(std::vector<double>(p));
  }
};

// Where one start ended.
template <class T> struct Ending {
  std::vector<double> d, trace;
  std::vector<int8_t> labels;
  std::vector<T> f;
  const char* status;
  double passes, gap = 0.0;
};

// The factor of the objective's Hessian, for the Gram matrix of the rows inside the margin. Damped:
// in few coordinates rows may lie on a plane.
bool factor(
    const std::vector<double>& gram, int64_t n, int64_t p, double ridge, std::vector<double>& U) {
  U.resize(gram.size());
  const double share = 1.0 / n;
  for (size_t e = 0; e < U.size(); ++e) U[e] = gram[e] * share;
  for (int64_t j = 0; j < p; ++j)
    U[j * p + j] += Damping * std::max(U[j * p + j], 0.0) + 2.0 * ridge;
  return factorise(U.data(), p);
}

// All rows, which are inside the margin of zero: what the first steps of all starts share.
struct Whole {
  std::vector<int64_t> features;
  std::vector<double> gram, factor;
  bool is_sound;
};

template <class T> class HalveSolver : public PairRounds<T, HalveSolver<T>> {
  using Base = PairRounds<T, HalveSolver<T>>;
  friend typename Base::Loop;
  using Base::a_, Base::gradient_, Base::metric_, Base::n_, Base::p_, Base::passes_,
      Base::residual_, Base::rows_, Base::W_;

 public:
  HalveSolver(const View<T>& rows, const SplitProblem<int8_t>& a, const Whole& whole)
      : Base(rows, a), whole_(whole) {
    metric_ = whole.gram, this->working_ = whole.features;
    for (auto* all : {&this->is_working_, &this->counted_}) std::fill(all->begin(), all->end(), 1);
  }

  Ending<T> ending(const char* status) {
    return {std::move(W_), std::move(this->trace_), std::move(this->labels_), std::move(this->f_),
        status, passes_};
  }

 private:
  static constexpr bool IsSmooth = true;
  static constexpr double Close = 0.0;  // the model of a step is solved as well as can be

  void gradient() {
    rows_.adjoint(residual_.data(), 1, gradient_.data());
    for (int64_t j = 0; j < p_; ++j) gradient_[j] = 2.0 * a_.ridge * W_[j] - gradient_[j] / n_;
    passes_ += 1.0;
  }

  double violation(int64_t j) const { return std::abs(gradient_[j]); }

  bool newton_target(double, std::vector<double>& target) const {
    const bool begun = this->any(W_);
    std::vector<double> move(gradient_), now;
    if (!(begun ? factor(metric_, n_, p_, a_.ridge, now) : whole_.is_sound)) return false;
    solve(begun ? now.data() : whole_.factor.data(), move.data(), p_);
    for (int64_t j = 0; j < p_; ++j) target[j] -= move[j];
    return true;
  }

  double penalty(const std::vector<double>& W) const {
    return a_.ridge * std::inner_product(W.begin(), W.end(), W.begin(), 0.0);
  }

  const Whole& whole_;
};

template <class T> class Halving {
 public:
  Halving(const View<T>& rows, const HalveProblem& a)
      : rows_(rows), a_(a), p_(rows.n_features()), random_(a.seed, rows.n_rows()),
        z_(rows.n_rows(), p_) {}

  // The best ending; none if the rows are all equal.
  std::optional<Ending<T>> run() {
    gather();
    if (variance_ == 0.0 || z_.is_one_point()) return std::nullopt;
    SplitProblem<int8_t> problem{nullptr, nullptr, a_.lower, a_.upper, 0.0, nullptr,
        a_.ridge * variance_, a_.tol, a_.violation * std::sqrt(variance_), a_.max_rounds, p_};
    const Whole whole = look_at_all(problem.ridge);
    std::optional<Ending<T>> best;
    bool again = false;  // whether all rows have been Ward's before
    Listener signals;
    for (const std::string& kind : a_.starts) {
      signals.listen();
      if (kind == "ward" && z_.n <= a_.ward_rows && std::exchange(again, true)) continue;
      std::vector<int8_t> labels(z_.n);
      const std::vector<T> f = between_centers(centers(kind));
      split_pair(f.data(), z_.n, a_.lower, a_.upper, labels.data());
      problem.labels = labels.data();
      HalveSolver<T> solver(*z_.view, problem, whole);
      Ending<T> found = solver.ending(solver.run());
      found.gap = scatter_between(found.labels) / std::sqrt(std::max(found.trace.back(), Tiny));
      // Starts that end alike differ by rounding, which must not choose among them.
      if (!best || digits(found.gap) > digits(best->gap)) best = std::move(found);
    }
    return best;
  }

 private:
  static double digits(double gap) { return std::round(1e5 * std::log(std::max(gap, Tiny))); }

  void gather() {
    rows_.gather(numbers(z_.n), z_.values.get());
    z_.look();
    std::vector<double> norms(z_.n);
    z_.view->norms(norms.data());
    variance_ = std::accumulate(norms.begin(), norms.end(), 0.0) / z_.n;
    const T constant = static_cast<T>(rows_.center()[p_ - 1]);
    for (int64_t i = 0; i < z_.n; ++i) z_.values[i * p_ + p_ - 1] = constant;
  }

  Whole look_at_all(double ridge) const {
    Whole whole{numbers(p_), std::vector<double>(p_ * p_), {}, false};
    z_.view->gram(numbers(z_.n).data(), z_.n, whole.features.data(), p_, whole.gram.data());
    whole.is_sound = factor(whole.gram, z_.n, p_, ridge, whole.factor);
    return whole;
  }

  // Rows, evenly spaced, that starts look at.
  const Copy<T>& few() {
    if (!few_) {
      const int64_t size = std::min(z_.n, a_.start_rows);
      std::vector<int64_t> chosen(size);
      for (int64_t i = 0; i < size; ++i) chosen[i] = i * z_.n / size;
      few_.emplace(z_, chosen);
      if (size < z_.n && few_->is_one_point()) few_.emplace(z_, numbers(z_.n));
    }
    return *few_;
  }

  std::vector<double> centers(const std::string& kind) {
    if (kind == "ward") return ward_centers();
    std::vector<double> centers = kind == "far_rows" ? far_rows() : slices();
    std::vector<int32_t> labels(few().n);
    step_centers(*few().view, a_.lloyd_steps, 2, centers.data(), labels.data());
    return centers;
  }

  // Points on a line along the principal direction, in the middle of either half of the rows.
  std::vector<double> slices() {
    const Copy<T>& rows = few();
    std::vector<double> direction(p_);
    std::vector<T> along(rows.n);
    for (T& r : along) r = static_cast<T>(random_.uniform() - 0.5);  // likelier where rows vary
    rows.view->adjoint(along.data(), 1, direction.data());
    step_direction(*rows.view, a_.power_steps, Tiny, direction.data());
    rows.view->scores(direction.data(), 1, along.data());
    std::vector<double> centers(2 * p_);
    for (int k = 0; k < 2; ++k) {
      const auto middle = along.begin() + (2 * k + 1) * rows.n / 4;
      std::nth_element(along.begin(), middle, along.end());
      for (int64_t j = 0; j < p_; ++j) centers[k * p_ + j] = direction[j] * *middle;
    }
    return centers;
  }

  // Two rows, drawn as in k-means++.
  std::vector<double> far_rows() {
    const Copy<T>& rows = few();
    std::vector<double> norms(rows.n), nearest, centers(2 * p_);
    rows.view->norms(norms.data());
    nearest = norms;
    for (int k = 0; k < 2; ++k) {
      const double mass = random_.uniform() * std::accumulate(nearest.begin(), nearest.end(), 0.0);
      double sum = 0.0;
      int64_t chosen = 0;
      while (chosen < rows.n - 1 && (sum += nearest[chosen]) < mass) ++chosen;
      const T* at = rows.values.get() + chosen * p_;
      std::copy(at, at + p_, centers.data() + k * p_);
      if (k == 1) break;
      std::vector<T> dots(rows.n);
      rows.view->scores(centers.data(), 1, dots.data());
      for (int64_t i = 0; i < rows.n; ++i)
        nearest[i] = std::max(norms[i] - 2.0 * dots[i] + norms[chosen], 0.0);
    }
    return centers;
  }

  // The means of Ward's clusters of some rows.
  std::vector<double> ward_centers() {
    const int64_t size = std::min(z_.n, a_.ward_rows);
    const Copy<T> some(z_, random_.choose(z_.n, size));
    std::vector<int32_t> labels(size);
    ward_clusters(some.values.get(), size, p_, 2, labels.data());
    std::vector<T> member(2 * size);
    for (int64_t i = 0; i < size; ++i) member[2 * i + labels[i]] = T{1};
    std::vector<double> centers(2 * p_);
    some.view->adjoint(member.data(), 2, centers.data());
    const double ones = std::count(labels.begin(), labels.end(), 1);
    for (int64_t j = 0; j < p_; ++j) centers[j] /= size - ones, centers[p_ + j] /= ones;
    return centers;
  }

  // Positive for rows that are nearer to the first of two centres.
  std::vector<T> between_centers(const std::vector<double>& centers) const {
    std::vector<double> w(p_);
    double offset = 0.0;
    for (int64_t j = 0; j < p_; ++j) {
      w[j] = centers[j] - centers[p_ + j];
      offset -= 0.5 * (centers[j] + centers[p_ + j]) * w[j];
    }
    std::vector<T> f(z_.n);
    z_.view->scores(w.data(), 1, f.data());
    for (T& one : f) one += static_cast<T>(offset);
    return f;
  }

  double scatter_between(const std::vector<int8_t>& labels) const {
    std::vector<T> member(2 * z_.n);
    int64_t counts[2] = {};
    for (int64_t i = 0; i < z_.n; ++i) member[2 * i + labels[i]] = T{1}, ++counts[labels[i]];
    std::vector<double> sums(2 * p_);
    z_.view->adjoint(member.data(), 2, sums.data());
    double between = 0.0;
    for (int k = 0; k < 2; ++k)
      for (int64_t j = 0; j + 1 < p_; ++j)
        between += sums[k * p_ + j] * sums[k * p_ + j] / counts[k] / z_.n;
    return between;
  }

  const View<T>& rows_;
  const HalveProblem& a_;
  const int64_t p_;
  Random random_;
  Copy<T> z_;
  std::optional<Copy<T>> few_;
  double variance_ = 0.0;
};

nb::object halve(const Data& data, nb::handle problem) {
  return data.visit([&](const auto& rows) -> nb::object {
    using T = Number<decltype(rows)>;
    const int64_t n = rows.n_rows();
    const Fields from{problem};
    const auto bounds = from.get<std::pair<int64_t, int64_t>>("bounds");
    checked_count("the number of rows", n, 2);
    check_bounds(bounds.first, bounds.second, n);
    if (bounds.first < 1 || bounds.second >= n) refuse("bounds must leave no child empty");
    const auto starts = from.get<std::vector<std::string>>("starts");
    for (const std::string& kind : starts)
      if (kind != "principal" && kind != "ward" && kind != "far_rows")
        refuse("starts must be principal, ward or far_rows; got ", kind);
    checked_count("the number of starts", starts.size(), 1);
    const HalveProblem checked{from.get<uint64_t>("seed"), starts, bounds.first, bounds.second,
        from.weight("ridge"), from.weight("tol"), from.weight("violation"),
        from.count("max_rounds", 1), from.count("start_rows", 2), from.count("ward_rows", 2),
        from.count("lloyd_steps", 1), from.count("power_steps", 0)};
    const auto found = unlocked([&] { return Halving<T>(rows, checked).run(); });
    if (!found) return nb::none();
    return nb::make_tuple(copied(found->labels), copied(found->f), found->gap, found->trace,
        found->status, found->passes, copied(found->d));
  });
}

}  // namespace

void bind_halve(nb::module_& m) {
  using namespace nb::literals;
  m.def("halve", &halve, "data"_a, "problem"_a,
      nb::sig("def halve(data: Data, problem: object) -> "
              "tuple[NDArray[int8], Array, float, list[float], str, float, Array] | None"),
      "Divide lifted rows in two, as the fields of a HalveProblem say; None if all are equal.");
}
