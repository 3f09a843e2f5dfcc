// The split into K children: labels and weights in turn, to a local optimum of
//
//   1/(nK) sum_i sum_{k != y_i} [1 - s_{i y_i} + s_ik]_+^2
//     + sum_p group |W_p| + l1_p |W_p|_1 + ridge |W_p|^2,   s_ik = w_k . (x_i - c).
//
// A round takes one proximal step for the labels as they are, then gives the rows their best
// labels: the loop of pair.cpp, for more models. The Hessian joins any two models by the Gram
// matrix of the rows between them; a step knows its blocks on the diagonal alone. They are K times
// smaller, and nearly as good: with all pairs of children alike the whole is K / (K - 1) times as
// steep. Nor is a step's model solved closely, as the labels are about to change: better ones come
// of that.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <numeric>

#include "rows.hpp"

namespace {

// A split into K children, in checked buffers: taxarbor.rows.KwayProblem.
struct KwayProblem {
  const double* start;    // (K, n_features)
  const int32_t* labels;  // null: those of the weights
  int64_t n_children;
  bool is_fixed;  // whether labels stay
  int64_t lower, upper;
  double group;
  const double* l1;
  double ridge, tol, violation;
  int64_t max_alternations, max_working;
};

constexpr double Sufficient = 1e-4;  // share of the predicted decrease that a step must bring
constexpr double Shortest = 1e-6;    // step length below which a search gives up
constexpr double Damping = 1e-6;     // share of the Hessian's diagonal that is added to it
constexpr int64_t MaxSweeps = 200;
constexpr int64_t Few = 256;  // features to begin with, where more are wanted than may be

template <class T> class KwaySolver {
 public:
  KwaySolver(const View<T>& rows, const KwayProblem& a)
      : rows_(rows), a_(a), n_(rows.n_rows()), p_(rows.n_features()), K_(a.n_children),
        factor_(2.0 / (static_cast<double>(n_) * K_)), W_(a.start, a.start + K_ * p_),
        gradient_(K_ * p_), f_(n_ * K_), tried_(n_ * K_), residual_(n_ * K_), labels_(n_),
        counted_(n_ * K_), is_working_(p_) {}

  // Returns how it ended: a value of taxarbor._types.Status.
  const char* run() {
    const bool begun = any(W_);
    if (begun) sweep(W_, f_);  // else f is zero, as it was made
    if (a_.labels)
      std::copy(a_.labels, a_.labels + n_, labels_.data());
    else
      assign();
    value_ = measure(f_);
    trace_.push_back(value_ + penalty(W_));
    for (const double w : W_) scale_ = std::max(scale_, w * w);
    if (scale_ > 0.0) scale_ = 1.0 / scale_;  // curvature has the unit of 1 / W^2
    int64_t doubt = 0;
    const int64_t first = begun ? 0 : 1;  // a first step from nowhere says little
    for (int64_t round = 0; round < a_.max_alternations; ++round) {
      signals_.listen();
      const char* end = step();
      const bool moved = !a_.is_fixed && assign();
      if (moved) value_ = measure(f_);
      trace_.push_back(value_ + penalty(W_));
      const double gain = trace_[trace_.size() - 2] - trace_.back();
      const bool slow = gain <= a_.tol * trace_.back();
      if (end && !moved) return end;
      // One slow round may be the model's fault, one that was cut short all the more; of many
      // children each has its own to wait for.
      doubt = slow && round >= first ? doubt + (is_full_ ? 2 : 1) : 0;
      if (doubt >= 4 + K_ / 12) return "settled";
    }
    return "iteration_limit";
  }

  nb::object result(const char* status) const {
    const size_t n = n_, K = K_, p = p_;
    return nb::make_tuple(
        copied(W_, {K, p}), copied(labels_), copied(f_, {n, K}), trace_, status, passes_);
  }

 private:
  static bool any(const std::vector<double>& W) {
    return std::any_of(W.begin(), W.end(), [](double w) { return w != 0.0; });
  }

  // One proximal step towards the minimum for these labels; if there is none to take, why.
  const char* step() {
    is_full_ = true;
    gradient();
    const bool begun = any(W_);
    double worst = violations();
    if (worst <= (begun ? a_.violation : 0.0))
      return "converged";  // zero is left unless it is optimal
    std::vector<double> target = W_;
    if (begun) {
      choose_working();
      update_metric();
      newton_target(0.3 * worst, target);
      return search(target) ? nullptr : "stalled";
    }
    gradient_target(target);
    if (!search(target)) return "stalled";
    stretch();
    return nullptr;
  }

  void gradient() {
    rows_.adjoint(residual_.data(), K_, gradient_.data());
    for (double& g : gradient_) g *= -factor_;
    passes_ += 1.0;
  }

  bool is_used(int64_t j) const {
    for (int64_t k = 0; k < K_; ++k)
      if (W_[k * p_ + j] != 0.0) return true;
    return false;
  }

  // As SparseGroupPenalty.violations.
  double violations() {
    violation_.resize(p_);
    double worst = 0.0;
    for (int64_t j = 0; j < p_; ++j) {
      violation_[j] =
          distance({nullptr, K_, p_, a_.group, a_.l1, a_.ridge}, j, W_.data(), gradient_.data());
      worst = std::max(worst, violation_[j]);
    }
    return worst;
  }

  // Features in use or violated, and those of the last step: a set that only grows.
  void choose_working() {
    int64_t added = 0;
    for (int64_t j = 0; j < p_; ++j)
      if (!is_working_[j] && (violation_[j] > 0.0 || is_used(j))) is_working_[j] = 1, ++added;
    if (added == 0) return;
    std::vector<int64_t> wanted;
    for (int64_t j = 0; j < p_; ++j)
      if (is_working_[j]) wanted.push_back(j);
    if (static_cast<int64_t>(wanted.size()) > a_.max_working) {
      shorten(wanted);
      std::fill(is_working_.begin(), is_working_.end(), 0);
      for (const int64_t j : wanted) is_working_[j] = 1;
    }
    working_ = std::move(wanted);
    metric_.assign(K_ * working_.size() * working_.size(), 0.0);
    std::fill(counted_.begin(), counted_.end(), 0);
  }

  // Where more features are wanted than one Hessian may have: those in use and as many again that
  // are furthest from optimal, since most of the others would leave as they came.
  void shorten(std::vector<int64_t>& wanted) const {
    const int64_t most = a_.max_working,
                  used = std::count_if(
                      wanted.begin(), wanted.end(), [&](int64_t j) { return is_used(j); });
    const bool fit = 2 * used <= most;  // else features take turns, in use or not
    const auto rank = [&](int64_t j) {
      const double far = violation_[j] > 0.0 ? violation_[j] : 0.0;  // NaN has no place in an order
      return std::make_tuple(fit && is_used(j), far, -j);
    };
    const auto end = wanted.begin() + (fit ? std::min(most, std::max(Few, 2 * used)) : most);
    std::nth_element(
        wanted.begin(), end, wanted.end(), [&](int64_t a, int64_t b) { return rank(a) > rank(b); });
    wanted.erase(end, wanted.end());
    std::sort(wanted.begin(), wanted.end());
  }

  // Bring each model's Gram matrix up to date. A row counts once in the model of each child that
  // threatens it, and as often in that of its own; only changes are touched, unless they are more.
  void update_metric() {
    struct Changes {
      std::vector<int64_t> up, down, all;
      std::vector<T> by_up, by_down, by_all;
    };
    std::vector<Changes> changes(K_);
    for (int64_t i = 0; i < n_; ++i) {
      const T* r = &residual_[i * K_];
      int32_t* was = &counted_[i * K_];
      int32_t own = 0;
      for (int64_t k = 0; k < K_; ++k) own += k != labels_[i] && r[k] != T{0};
      for (int64_t k = 0; k < K_; ++k) {
        const int32_t is = k == labels_[i] ? own : r[k] != T{0}, by = is - was[k];
        Changes& c = changes[k];
        if (is) c.all.push_back(i), c.by_all.push_back(static_cast<T>(is));
        if (by > 0) c.up.push_back(i), c.by_up.push_back(static_cast<T>(by));
        if (by < 0) c.down.push_back(i), c.by_down.push_back(static_cast<T>(-by));
        was[k] = is;
      }
    }
    const int64_t size = working_.size() * working_.size();
    for (int64_t k = 0; k < K_; ++k) {
      const Changes& c = changes[k];
      double* metric = &metric_[k * size];
      if (c.up.size() + c.down.size() > c.all.size()) {
        std::fill(metric, metric + size, 0.0);
        add_gram(c.all, c.by_all, 1.0, metric);
      } else {
        add_gram(c.up, c.by_up, 1.0, metric);
        add_gram(c.down, c.by_down, -1.0, metric);
      }
    }
  }

  void add_gram(const std::vector<int64_t>& positions, const std::vector<T>& weights, double sign,
      double* metric) {
    if (positions.empty()) return;
    const int64_t F = working_.size();
    part_.resize(F * F);
    rows_.gram(
        positions.data(), positions.size(), working_.data(), F, part_.data(), weights.data());
    for (int64_t e = 0; e < F * F; ++e) metric[e] += sign * part_[e];
    passes_ += static_cast<double>(positions.size()) / n_;
  }

  void newton_target(double tol, std::vector<double>& target) {
    const int64_t F = working_.size();
    std::vector<double> H(metric_.size()), g(K_ * F), V(K_ * F), l1(F);
    for (size_t e = 0; e < H.size(); ++e) H[e] = factor_ * metric_[e];
    double mean = 0.0;
    for (int64_t e = 0; e < K_ * F; ++e) mean += H[e * F + e % F] / (K_ * F);
    if (mean > 0.0) scale_ = mean;  // else as before: no row is inside the margin now
    for (int64_t e = 0; e < K_ * F; ++e) {
      double& h = H[e * F + e % F];
      h *= 1.0 + Damping;
      if (h < Damping * Damping * scale_) h = Damping * scale_;
      const int64_t from = e / F * p_ + working_[e % F];
      g[e] = gradient_[from], V[e] = W_[from];
    }
    for (int64_t j = 0; j < F; ++j) l1[j] = a_.l1[working_[j]];
    descend({H.data(), K_, F, a_.group, l1.data(), a_.ridge}, V.data(), g.data(), tol, MaxSweeps);
    for (int64_t e = 0; e < K_ * F; ++e) target[e / F * p_ + working_[e % F]] = V[e];
    for (const int64_t j : working_) settle(j, target);
  }

  // Only differences of models count in the loss: move a feature's weights, all alike, to where the
  // penalty is least; about their mean, or with one of them at zero. Nothing else would, as a step
  // knows nothing of what the other models do.
  void settle(int64_t j, std::vector<double>& W) const {
    double mean = 0.0;
    for (int64_t k = 0; k < K_; ++k) mean += W[k * p_ + j] / K_;
    if (mean == 0.0) return;
    double best = 0.0, least = column(W, j, 0.0);
    for (int64_t k = -1; k < K_; ++k) {
      const double by = k < 0 ? mean : W[k * p_ + j], size = column(W, j, by);
      if (size < least) best = by, least = size;
    }
    for (int64_t k = 0; k < K_; ++k) W[k * p_ + j] -= best;
  }

  // From zero: a proximal gradient step of the length that would, at best, bring the loss to zero.
  // Of very many features only few may move: each would have to be taken back by later steps.
  void gradient_target(std::vector<double>& target) {
    std::vector<int64_t> moving;
    for (int64_t j = 0; j < p_; ++j)
      if (violation_[j] > 0.0) moving.push_back(j);
    const bool is_sparse =
        a_.group > 0.0 || std::any_of(a_.l1, a_.l1 + p_, [](double w) { return w > 0.0; });
    if (is_sparse && static_cast<int64_t>(moving.size()) > a_.max_working) shorten(moving);
    double square = 0.0;
    for (const int64_t j : moving)
      for (int64_t k = 0; k < K_; ++k) square += gradient_[k * p_ + j] * gradient_[k * p_ + j];
    const double step = value_ / std::max(square, 1e-300);
    scale_ = 1.0 / step;
    for (const int64_t j : moving) {
      double norm2 = 0.0;
      for (int64_t k = 0; k < K_; ++k) {
        const double g = gradient_[k * p_ + j], move = std::max(0.0, std::abs(g) - a_.l1[j]);
        target[k * p_ + j] = -std::copysign(step * move, g);
        norm2 += move * move;
      }
      const double keep =
          std::max(0.0, 1.0 - a_.group / std::sqrt(norm2)) / (1.0 + 2.0 * step * a_.ridge);
      for (int64_t k = 0; k < K_; ++k) target[k * p_ + j] *= keep;
    }
  }

  // Double the weights while that helps: exact in floating point, and no sweep is needed.
  void stretch() {
    std::vector<double> twice(W_.size());
    for (;;) {
      for (size_t e = 0; e < W_.size(); ++e) twice[e] = 2.0 * W_[e];
      for (size_t e = 0; e < f_.size(); ++e) tried_[e] = T{2} * f_[e];
      const double value = measure(tried_);
      if (!(value + penalty(twice) < value_ + penalty(W_))) break;
      W_.swap(twice), f_.swap(tried_);
      value_ = value;
    }
    value_ = measure(f_);
  }

  // Go to the target, or part of the way: as optim/_minimise.py's search_line.
  bool search(std::vector<double>& target) {
    const double before = penalty(W_), start = value_ + before;
    sweep(target, tried_);
    const double value = measure(tried_), full = penalty(target);
    double slope = full - before;
    for (size_t e = 0; e < W_.size(); ++e) slope += gradient_[e] * (target[e] - W_[e]);
    if (slope < 0.0 && value + full <= start + Sufficient * slope) return accept(target, value);
    std::vector<double> W(W_.size());
    std::vector<T> between(f_.size());
    for (double step = 0.5; step >= Shortest; step *= 0.5) {
      for (size_t e = 0; e < W.size(); ++e) W[e] = W_[e] + step * (target[e] - W_[e]);
      for (size_t e = 0; e < f_.size(); ++e)
        between[e] = f_[e] + static_cast<T>(step) * (tried_[e] - f_[e]);
      const double objective = measure(between) + penalty(W);
      if (objective < start && objective <= start + Sufficient * step * slope) {
        sweep(W, tried_);
        const double exact = measure(tried_);
        is_full_ = false;
        if (exact + penalty(W) < start) return accept(W, exact);
        break;
      }
    }
    value_ = measure(f_);  // residuals back to where we are
    return false;
  }

  bool accept(std::vector<double>& W, double value) {
    W_.swap(W), f_.swap(tried_);
    value_ = value;
    return true;
  }

  // Scores of weights, which are rounded to what T holds first.
  void sweep(std::vector<double>& W, std::vector<T>& f) {
    for (double& w : W) w = static_cast<double>(static_cast<T>(w));
    rows_.scores(W.data(), K_, f.data());
    passes_ += 1.0;
  }

  // The loss of these scores; residuals are theirs from now on.
  double measure(const std::vector<T>& f) {
    return 0.5 * factor_ * hinge_rows(f.data(), labels_.data(), n_, K_, residual_.data());
  }

  bool assign() {
    next_ = labels_;
    assign_rows(f_.data(), n_, K_, a_.lower, a_.upper, next_.data());
    const bool moved = next_ != labels_;
    labels_.swap(next_);
    return moved;
  }

  double penalty(const std::vector<double>& W) const {
    double sum = 0.0;
    for (int64_t j = 0; j < p_; ++j) sum += column(W, j, 0.0);
    return sum;
  }

  // The penalty of one feature's weights, less a shift.
  double column(const std::vector<double>& W, int64_t j, double shift) const {
    double square = 0.0, size = 0.0;
    for (int64_t k = 0; k < K_; ++k) {
      const double w = W[k * p_ + j] - shift;
      square += w * w, size += std::abs(w);
    }
    return a_.group * std::sqrt(square) + a_.l1[j] * size + a_.ridge * square;
  }

  const View<T>& rows_;
  const KwayProblem& a_;
  const int64_t n_, p_, K_;
  const double factor_;
  std::vector<double> W_, gradient_, violation_;
  std::vector<T> f_, tried_, residual_;
  std::vector<int32_t> labels_, next_;
  std::vector<int32_t> counted_;  // how often each row counts in each model's metric
  std::vector<uint8_t> is_working_;
  std::vector<int64_t> working_;
  std::vector<double> metric_, part_, trace_;
  double value_ = 0.0, passes_ = 0.0;
  Listener signals_;
  double scale_ = 0.0;   // mean diagonal of the last Hessian that had one, or a guess at it
  bool is_full_ = true;  // whether the last step went all the way
};

nb::object kway(const Data& data, nb::handle problem) {
  return data.visit([&](const auto& rows) {
    const int64_t n = rows.n_rows(), p = rows.n_features();
    checked_count("the number of rows", n, 1);
    const Fields from{problem};
    const auto start = from.get<Given>("start"), l1 = from.get<Given>("l1");
    const auto labels = from.get<std::optional<Given>>("labels");
    const auto bounds = from.get<std::pair<int64_t, int64_t>>("bounds");
    const double* W = checked_finite("start", start, {-1, p});
    const int64_t K = checked_count("the number of children", start.shape(0), 2);
    if (bounds.first < 0 || bounds.first > n / K || bounds.second < (n + K - 1) / K)
      refuse("bounds must let ", K, " children hold ", n, " rows; got ", bounds.first, " and ",
          bounds.second);
    const KwayProblem checked{W,
        labels ? checked_range<int32_t>("labels", *labels, {n}, 0, K) : nullptr, K,
        from.get<bool>("is_fixed"), bounds.first, std::min(bounds.second, n), from.weight("group"),
        checked_weights("l1", l1, p), from.weight("ridge"), from.weight("tol"),
        from.weight("violation"), from.count("max_alternations", 0), from.count("max_working", 1)};
    KwaySolver<Number<decltype(rows)>> solver(rows, checked);
    const char* status = unlocked([&] { return solver.run(); });
    return solver.result(status);
  });
}

}  // namespace

void bind_kway(nb::module_& m) {
  using namespace nb::literals;
  m.def("kway", &kway, "data"_a, "problem"_a,
      nb::sig("def kway(data: Data, problem: object) -> "
              "tuple[Array, NDArray[int32], Array, list[float], str, float]"),
      "Solve a split into K children, given by the fields of a KwayProblem.");
}
