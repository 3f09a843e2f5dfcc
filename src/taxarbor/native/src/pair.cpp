// The two-way split: labels and weights in turn, to a local optimum. In d, the difference of
// the two children's weights, one node's problem is
//
//   1/(2n) sum_i [1 - s_i d . (x_i - c)]_+^2 + sum_p l1_p |d_p| + ridge d_p^2,
//
// s_i = +1 for child 0. Each round takes one proximal Newton step for the labels as they are and
// then gives the rows their best labels. This is the loop of split/_alternate.py with its parts
// in one place: there a round costs a hundred array operations, here none.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <numeric>

#include "cholesky.hpp"
#include "rows.hpp"

namespace {

// A two-way split, in checked buffers: taxarbor.rows.PairProblem.
struct PairProblem {
  const double* start;
  const int8_t* labels;  // null: those of the weights
  bool is_fixed;         // whether labels stay
  int64_t lower, upper;
  const double* l1;
  double ridge, tol, violation;
  int64_t max_alternations, max_working;
};

constexpr double Sufficient = 1e-4;  // share of the predicted decrease that a step must bring
constexpr double Shortest = 1e-6;    // step length below which a search gives up
constexpr double Damping = 1e-6;     // share of the Hessian's diagonal that is added to it
constexpr int64_t MaxSweeps = 200;
constexpr int64_t Few = 256;  // features to begin with, where more are wanted than may be

template <class T> class PairSolver {
 public:
  PairSolver(const View<T>& rows, const PairProblem& a)
      : rows_(rows), a_(a), n_(rows.n_rows()), p_(rows.n_features()), d_(a.start, a.start + p_),
        gradient_(p_), f_(n_), tried_(n_), residual_(n_), labels_(n_), inside_(n_), counted_(n_),
        is_working_(p_) {}

  // Returns how it ended: a value of taxarbor._types.Status.
  const char* run() {
    const bool begun = std::any_of(d_.begin(), d_.end(), [](double w) { return w != 0.0; });
    if (begun) sweep(d_, f_);  // else f is zero, as it was made
    if (a_.labels)
      std::copy(a_.labels, a_.labels + n_, labels_.data());
    else
      assign();
    value_ = measure(f_);
    trace_.push_back(value_ + penalty(d_));
    for (const double w : d_) scale_ = std::max(scale_, w * w);
    if (scale_ > 0.0) scale_ = 1.0 / scale_;  // curvature has the unit of 1 / d^2
    const int64_t first = begun ? 0 : 1;      // a first step from nowhere says little
    for (int64_t round = 0; round < a_.max_alternations; ++round) {
      signals_.listen();
      const char* end = step();
      const bool moved = !a_.is_fixed && assign();
      if (moved) value_ = measure(f_);
      trace_.push_back(value_ + penalty(d_));
      const double gain = trace_[trace_.size() - 2] - trace_.back();
      const bool slow = is_full_ && gain <= a_.tol * trace_.back();
      if (end && !moved) return end;
      if (slow && round >= first) return "settled";
    }
    return "iteration_limit";
  }

  nb::object result(const char* status) const {
    return nb::make_tuple(copied(d_), copied(labels_),
        nb::object(copied(f_).attr("reshape")(-1, 1)), trace_, status, passes_);
  }

 private:
  // One proximal step towards the minimum for these labels; if there is none to take, why.
  const char* step() {
    is_full_ = true;
    gradient();
    const double worst = violations();
    const bool begun = std::any_of(d_.begin(), d_.end(), [](double w) { return w != 0.0; });
    if (worst <= (begun ? a_.violation : 0.0))
      return "converged";  // zero is left unless it is optimal
    std::vector<double> target = d_;
    if (begun) {
      choose_working();
      update_gram();
      newton_target(0.01 * worst, target);
      return search(target) ? nullptr : "stalled";
    }
    gradient_target(target);
    if (!search(target)) return "stalled";
    stretch();
    return nullptr;
  }

  void gradient() {
    rows_.adjoint(residual_.data(), 1, gradient_.data());
    for (double& g : gradient_) g /= -static_cast<double>(n_);
    passes_ +=
        static_cast<double>(std::accumulate(inside_.begin(), inside_.end(), int64_t{0})) / n_;
  }

  double violations() {
    violation_.resize(p_);
    double worst = 0.0;
    for (int64_t j = 0; j < p_; ++j) {
      const double g = gradient_[j] + 2.0 * a_.ridge * d_[j];
      violation_[j] = d_[j] == 0.0 ? std::max(0.0, std::abs(g) - a_.l1[j])
                                   : std::abs(g + std::copysign(a_.l1[j], d_[j]));
      worst = std::max(worst, violation_[j]);
    }
    return worst;
  }

  // Features in use or violated, and those of the last step: a set that only grows.
  void choose_working() {
    int64_t added = 0;
    for (int64_t j = 0; j < p_; ++j)
      if (!is_working_[j] && (d_[j] != 0.0 || violation_[j] > 0.0)) is_working_[j] = 1, ++added;
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
    gram_.assign(working_.size() * working_.size(), 0.0);
    std::fill(counted_.begin(), counted_.end(), 0);
  }

  // Where more features are wanted than one Hessian may have: those in use and as many again that
  // are furthest from optimal, since most of the others would leave as they came.
  void shorten(std::vector<int64_t>& wanted) const {
    const auto is_used = [&](int64_t j) { return d_[j] != 0.0; };
    const int64_t most = a_.max_working,
                  used = std::count_if(wanted.begin(), wanted.end(), is_used);
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

  // Bring the Gram matrix of the rows inside the margin up to date: x x' does not depend on the
  // label, so only rows that crossed the margin count, unless they are the greater part.
  void update_gram() {
    std::vector<int64_t> entered, left, all;
    int64_t inside = 0;
    for (int64_t i = 0; i < n_; ++i) {
      inside += inside_[i];
      if (inside_[i] != counted_[i]) (inside_[i] ? entered : left).push_back(i);
    }
    if (static_cast<int64_t>(entered.size() + left.size()) > inside) {
      for (int64_t i = 0; i < n_; ++i)
        if (inside_[i]) all.push_back(i);
      std::fill(gram_.begin(), gram_.end(), 0.0);
      add_gram(all, 1.0);
    } else {
      add_gram(entered, 1.0);
      add_gram(left, -1.0);
    }
    counted_ = inside_;
  }

  void add_gram(const std::vector<int64_t>& positions, double sign) {
    if (positions.empty()) return;
    part_.resize(gram_.size());
    rows_.gram(positions.data(), positions.size(), working_.data(), working_.size(), part_.data());
    for (size_t e = 0; e < gram_.size(); ++e) gram_[e] += sign * part_[e];
    passes_ += static_cast<double>(positions.size()) / n_;
  }

  void newton_target(double tol, std::vector<double>& target) {
    const int64_t F = working_.size();
    std::vector<double> H(gram_.size()), g(F), V(F), l1(F);
    double mean = 0.0;
    for (size_t e = 0; e < H.size(); ++e) H[e] = gram_[e] / n_;
    for (int64_t j = 0; j < F; ++j) mean += H[j * F + j] / F;
    if (mean > 0.0) scale_ = mean;  // else as before: no row is inside the margin now
    for (int64_t j = 0; j < F; ++j) {
      H[j * F + j] *= 1.0 + Damping;
      if (H[j * F + j] < Damping * Damping * scale_) H[j * F + j] = Damping * scale_;
      g[j] = gradient_[working_[j]], V[j] = d_[working_[j]], l1[j] = a_.l1[working_[j]];
    }
    const bool smooth =
        a_.ridge > 0.0 && std::all_of(l1.begin(), l1.end(), [](double w) { return w == 0.0; });
    if (!smooth || !solve(H, g, V))
      descend({H.data(), 1, F, 0.0, l1.data(), a_.ridge}, V.data(), g.data(), tol, MaxSweeps);
    for (int64_t j = 0; j < F; ++j) target[working_[j]] = V[j];
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
    std::vector<int64_t> moving;
    for (int64_t j = 0; j < p_; ++j)
      if (violation_[j] > 0.0) moving.push_back(j);
    std::vector<double> g = gradient_;
    const bool is_sparse = std::any_of(a_.l1, a_.l1 + p_, [](double w) { return w > 0.0; });
    if (is_sparse && static_cast<int64_t>(moving.size()) > a_.max_working) {
      shorten(moving);
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

  // Double the weights while that helps: exact in floating point, and no sweep is needed.
  void stretch() {
    std::vector<double> twice(p_);
    for (;;) {
      for (int64_t j = 0; j < p_; ++j) twice[j] = 2.0 * d_[j];
      for (int64_t i = 0; i < n_; ++i) tried_[i] = T{2} * f_[i];
      const double value = measure(tried_);
      if (!(value + penalty(twice) < value_ + penalty(d_))) break;
      d_.swap(twice), f_.swap(tried_);
      value_ = value;
    }
    value_ = measure(f_);
  }

  // Go to the target, or part of the way: as optim/_minimise.py's search_line.
  bool search(std::vector<double>& target) {
    const double before = penalty(d_), start = value_ + before;
    sweep(target, tried_);
    const double value = measure(tried_), full = penalty(target);
    double slope = full - before;
    for (int64_t j = 0; j < p_; ++j) slope += gradient_[j] * (target[j] - d_[j]);
    if (slope < 0.0 && value + full <= start + Sufficient * slope) return accept(target, value);
    std::vector<double> W(p_);
    std::vector<T> between(n_);
    for (double step = 0.5; step >= Shortest; step *= 0.5) {
      for (int64_t j = 0; j < p_; ++j) W[j] = d_[j] + step * (target[j] - d_[j]);
      for (int64_t i = 0; i < n_; ++i)
        between[i] = f_[i] + static_cast<T>(step) * (tried_[i] - f_[i]);
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
    d_.swap(W), f_.swap(tried_);
    value_ = value;
    return true;
  }

  // Scores of weights, which are rounded to what T holds first.
  void sweep(std::vector<double>& W, std::vector<T>& f) {
    for (double& w : W) w = static_cast<double>(static_cast<T>(w));
    rows_.scores(W.data(), 1, f.data());
    passes_ += 1.0;
  }

  // The loss of these scores; residuals and `inside_` are theirs from now on.
  double measure(const std::vector<T>& f) {
    return pair_rows(f.data(), labels_.data(), n_, residual_.data(), inside_.data()) / (2.0 * n_);
  }

  bool assign() {
    next_.resize(n_);
    split_pair(f_.data(), n_, a_.lower, a_.upper, next_.data());
    const bool moved = next_ != labels_;
    labels_.swap(next_);
    return moved;
  }

  double penalty(const std::vector<double>& W) const {
    double sum = 0.0;
    for (int64_t j = 0; j < p_; ++j)
      if (W[j] != 0.0) sum += a_.l1[j] * std::abs(W[j]) + a_.ridge * W[j] * W[j];
    return sum;
  }

  const View<T>& rows_;
  const PairProblem& a_;
  const int64_t n_, p_;
  std::vector<double> d_, gradient_, violation_;
  std::vector<T> f_, tried_, residual_;
  std::vector<int8_t> labels_, next_;
  std::vector<uint8_t> inside_, counted_;  // rows inside the margin; those in gram_
  std::vector<uint8_t> is_working_;
  std::vector<int64_t> working_;
  std::vector<double> gram_, part_, trace_;
  double value_ = 0.0, passes_ = 0.0;
  Listener signals_;
  double scale_ = 0.0;   // mean diagonal of the last Hessian that had one, or a guess at it
  bool is_full_ = true;  // whether the last step went all the way
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
    const PairProblem checked{checked_finite("start", start, {p}),
        labels ? checked_range<int8_t>("labels", *labels, {n}, 0, 2) : nullptr,
        from.get<bool>("is_fixed"), bounds.first, bounds.second, checked_weights("l1", l1, p),
        from.weight("ridge"), from.weight("tol"), from.weight("violation"),
        from.count("max_alternations", 0), from.count("max_working", 1)};
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
      "Solve a two-way split, given by the fields of a PairProblem.");
}
