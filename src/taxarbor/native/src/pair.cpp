// The two-way split: labels and weights in turn, to a local optimum. In d, the difference of
// the two children's weights, one node's problem is
//
//   1/(2n) sum_i [1 - s_i d . (x_i - c)]_+^2 + sum_p l1_p |d_p| + ridge d_p^2,
//
// s_i = +1 for child 0. Each round takes one proximal Newton step for the labels as they are and
// then gives the rows their best labels. This is the loop of split/_alternate.py with its parts
// in one place: there a round costs a hundred array operations, here none.
#include "pair.hpp"

#include "cholesky.hpp"

namespace {

template <class T> class PairSolver : public PairRounds<T, PairSolver<T>> {
  using Base = PairRounds<T, PairSolver<T>>;
  friend typename Base::Loop;
  using Base::a_, Base::f_, Base::gradient_, Base::inside_, Base::labels_, Base::n_, Base::p_,
      Base::passes_, Base::residual_, Base::rows_, Base::scale_, Base::value_, Base::W_;

 public:
  using Base::Base;

  nb::object result(const char* status) const {
    return nb::make_tuple(
        copied(W_), copied(labels_), copied(f_, {f_.size(), 1}), this->trace_, status, passes_);
  }

 private:
  static constexpr bool IsSmooth = false;
  static constexpr double Close = 0.01;  // share of the violation to which a model is solved

  void gradient() {
    rows_.adjoint(residual_.data(), 1, gradient_.data());
    for (double& g : gradient_) g /= -static_cast<double>(n_);
    passes_ +=
        static_cast<double>(std::accumulate(inside_.begin(), inside_.end(), int64_t{0})) / n_;
  }

  double violation(int64_t j) const {
    const double g = gradient_[j] + 2.0 * a_.ridge * W_[j];
    return W_[j] == 0.0 ? std::max(0.0, std::abs(g) - a_.l1[j])
                        : std::abs(g + std::copysign(a_.l1[j], W_[j]));
  }

  double averaged(double sum) const { return sum / n_; }

  void minimise(const std::vector<double>& H, const std::vector<double>& l1, std::vector<double>& g,
      std::vector<double>& V, double tol) const {
    const bool smooth =
        a_.ridge > 0.0 && std::all_of(l1.begin(), l1.end(), [](double w) { return w == 0.0; });
    const int64_t F = V.size();
    if (!smooth || !solve(H, g, V))
      descend({H.data(), 1, F, 0.0, l1.data(), a_.ridge}, V.data(), g.data(), tol);
  }

  // Where only the ridge counts the model's minimum solves (H + 2 ridge I) V = H d - g: exact, so
  // that it does not depend on the axes. By Cholesky; false, and V as it was, if that breaks down.
  bool solve(
      const std::vector<double>& H, const std::vector<double>& g, std::vector<double>& V) const {
    const int64_t F = V.size();
    std::vector<double> A(H), x(F);
    for (int64_t i = 0; i < F; ++i) {
      x[i] = -g[i];
      for (int64_t j = 0; j < F; ++j) x[i] += H[i * F + j] * V[j];
      A[i * F + i] += 2.0 * a_.ridge;
    }
    if (!solve_cholesky<Sequential>(A, x)) return false;
    V.swap(x);
    return true;
  }

  // From zero: a proximal gradient step of the length that would, at best, bring the loss to zero.
  // Of very many features only few may move: each would have to be taken back by later steps.
  void gradient_target(std::vector<double>& target) {
    std::vector<int64_t> moving = this->moving();
    std::vector<double> g = gradient_;
    const bool is_sparse = std::any_of(a_.l1, a_.l1 + p_, [](double w) { return w > 0.0; });
    if (is_sparse && static_cast<int64_t>(moving.size()) > a_.max_working) {
      this->shorten(moving);
      std::fill(g.begin(), g.end(), 0.0);
      for (const int64_t j : moving) g[j] = gradient_[j];
    }
    const double square = std::inner_product(g.begin(), g.end(), g.begin(), 0.0);
    const double step = value_ / std::max(square, 1e-300);
    scale_ = 1.0 / step;
    for (int64_t j = 0; j < p_; ++j) {
      const double move = std::max(0.0, std::abs(g[j]) - a_.l1[j]);
      target[j] = -std::copysign(step * move, g[j]) / (1.0 + 2.0 * step * a_.ridge);
    }
  }

  double penalty(const std::vector<double>& W) const {
    double sum = 0.0;
    for (int64_t j = 0; j < p_; ++j)
      if (W[j] != 0.0) sum += a_.l1[j] * std::abs(W[j]) + a_.ridge * W[j] * W[j];
    return sum;
  }
};

nb::object pair(const Data& data, nb::handle problem) {
  return data.visit([&](const auto& rows) {
    const int64_t n = rows.n_rows(), p = rows.n_features();
    checked_count("the number of rows", n, 1);
    const Fields from{problem};
    const auto start = from.get<Given>("start"), l1 = from.get<Given>("l1");
    const auto labels = from.get<std::optional<Given>>("labels");
    const auto bounds = from.get<std::pair<int64_t, int64_t>>("bounds");
    check_bounds(bounds.first, bounds.second, n);
    const SplitProblem<int8_t> checked{checked_finite("start", start, {p}),
        labels ? checked_range<int8_t>("labels", *labels, {n}, 0, 2) : nullptr, bounds.first,
        bounds.second, 0.0, checked_weights("l1", l1, p), from.weight("ridge"), from.weight("tol"),
        from.weight("violation"), from.count("max_alternations", 0), from.count("max_working", 1)};
    PairSolver<Number<decltype(rows)>> solver(rows, checked);
    const char* status = unlocked([&] { return solver.run(); });
    return solver.result(status);
  });
}

}  // namespace

void bind_pair(nb::module_& m) {
  using namespace nb::literals;
  m.def("pair", &pair, "data"_a, "problem"_a,
      nb::sig("def pair(data: Data, problem: object) -> "
              "tuple[Array, NDArray[int8], Array, list[float], str, float]"),
      "Solve a two-way split, given by the fields of a SplitProblem.");
}
