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
#include "rounds.hpp"

namespace {

template <class T> class KwaySolver : public Rounds<T, KwaySolver<T>, int32_t> {
  using Base = Rounds<T, KwaySolver<T>, int32_t>;
  friend Base;
  using Base::a_, Base::f_, Base::gradient_, Base::is_full_, Base::labels_, Base::metric_, Base::n_,
      Base::p_, Base::passes_, Base::residual_, Base::rows_, Base::scale_, Base::value_, Base::W_,
      Base::working_;

 public:
  KwaySolver(const View<T>& rows, const SplitProblem<int32_t>& a, int64_t n_children)
      : Base(rows, a, n_children), K_(n_children), factor_(2.0 / (static_cast<double>(n_) * K_)),
        counted_(n_ * K_) {}

  nb::object result(const char* status) const {
    const size_t n = n_, K = K_, p = p_;
    return nb::make_tuple(
        copied(W_, {K, p}), copied(labels_), copied(f_, {n, K}), this->trace_, status, passes_);
  }

 private:
  static constexpr bool IsSmooth = false;
  static constexpr double Close = 0.3;  // share of the violation to which a model is solved

  // One slow round may be the model's fault, one that was cut short all the more; of many children
  // each has its own to wait for.
  bool is_settled(bool is_slow) {
    doubt_ = is_slow ? doubt_ + (is_full_ ? 2 : 1) : 0;
    return doubt_ >= 4 + K_ / 12;
  }

  void gradient() {
    rows_.adjoint(residual_.data(), K_, gradient_.data());
    for (double& g : gradient_) g *= -factor_;
    passes_ += 1.0;
  }

  // As SparseGroupPenalty.violations.
  double violation(int64_t j) const {
    return distance({nullptr, K_, p_, a_.group, a_.l1, a_.ridge}, j, W_.data(), gradient_.data());
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
        this->add_gram(c.all.data(), c.all.size(), c.by_all.data(), 1.0, metric);
      } else {
        this->add_gram(c.up.data(), c.up.size(), c.by_up.data(), 1.0, metric);
        this->add_gram(c.down.data(), c.down.size(), c.by_down.data(), -1.0, metric);
      }
    }
  }

  double averaged(double sum) const { return factor_ * sum; }

  void minimise(const std::vector<double>& H, const std::vector<double>& l1, std::vector<double>& g,
      std::vector<double>& V, double tol) const {
    const int64_t F = l1.size();
    descend({H.data(), K_, F, a_.group, l1.data(), a_.ridge}, V.data(), g.data(), tol);
  }

  bool newton_target(double tol, std::vector<double>& target) {
    Base::newton_target(tol, target);
    for (const int64_t j : working_) settle(j, target);
    return true;
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
    std::vector<int64_t> moving = this->moving();
    const bool is_sparse =
        a_.group > 0.0 || std::any_of(a_.l1, a_.l1 + p_, [](double w) { return w > 0.0; });
    if (is_sparse && static_cast<int64_t>(moving.size()) > a_.max_working) this->shorten(moving);
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

  // The loss of these scores; residuals are theirs from now on.
  double measure(const std::vector<T>& f) {
    return 0.5 * factor_ * hinge_rows(f.data(), labels_.data(), n_, K_, residual_.data());
  }

  void place(int32_t* labels) const { assign_rows(f_.data(), n_, K_, a_.lower, a_.upper, labels); }

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

  const int64_t K_;
  const double factor_;
  std::vector<int32_t> counted_;  // how often each row counts in each model's metric
  int64_t doubt_ = 0;
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
    const SplitProblem<int32_t> checked{W,
        labels ? checked_range<int32_t>("labels", *labels, {n}, 0, K) : nullptr, bounds.first,
        std::min(bounds.second, n), from.weight("group"), checked_weights("l1", l1, p),
        from.weight("ridge"), from.weight("tol"), from.weight("violation"),
        from.count("max_alternations", 0), from.count("max_working", 1)};
    KwaySolver<Number<decltype(rows)>> solver(rows, checked, K);
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
      "Solve a split into K children, given by the fields of a SplitProblem.");
}
