// What the compiled solvers of a split have in common: rounds of a proximal step for the labels as
// they are and of a new assignment, the features that a step may change, and the search along it.
// A solver (pair.cpp, kway.cpp, halve.cpp) adds its loss, its penalty and its metric.
#pragma once

#include "rows.hpp"

constexpr double Sufficient = 1e-4;  // share of the predicted decrease that a step must bring
constexpr double Shortest = 1e-6;    // step length below which a search gives up
constexpr double Damping = 1e-6;     // share of the Hessian's diagonal that is added to it
constexpr int64_t Few = 256;         // features to begin with, where more are wanted than may be

// A split in checked buffers: taxarbor.rows.SplitProblem.
template <class Label> struct SplitProblem {
  const double* start;  // (n_models, n_features); null: zero
  const Label* labels;  // null: those of the weights
  int64_t lower, upper;
  double group;
  const double* l1;
  double ridge, tol, violation;
  int64_t max_alternations, max_working;
};

// A solver that IsSmooth has no penalty but a ridge, whose part is in its gradients. All of its
// steps are Newton's: the first one fits the labels of the start, which stay for that round.
template <class T, class Solver, class Label> class Rounds {
 public:
  // Returns how it ended: a value of taxarbor._types.Status.
  const char* run() {
    const bool begun = any(W_);
    if (begun) sweep(W_, f_);  // else f is zero, as it was made
    if (a_.labels)
      std::copy(a_.labels, a_.labels + n_, labels_.data());
    else
      assign();
    value_ = self().measure(f_);
    trace_.push_back(value_ + self().penalty(W_));
    for (const double w : W_) scale_ = std::max(scale_, w * w);
    if (scale_ > 0.0) scale_ = 1.0 / scale_;  // curvature has the unit of 1 / W^2
    const int64_t first = begun ? 0 : 1;      // a first step from nowhere says little
    for (int64_t round = 0; round < a_.max_alternations; ++round) {
      signals_.listen();
      const char* end = step();
      const bool is_fit = Solver::IsSmooth && round == 0, moved = !is_fit && assign();
      if (moved) value_ = self().measure(f_);
      trace_.push_back(value_ + self().penalty(W_));
      if (end && !moved && !is_fit) return end;
      const double gain = trace_[trace_.size() - 2] - trace_.back();
      if (self().is_settled(gain <= a_.tol * trace_.back() && round >= first)) return "settled";
    }
    return "iteration_limit";
  }

 protected:
  Rounds(const View<T>& rows, const SplitProblem<Label>& a, int64_t n_models)
      : rows_(rows), a_(a), n_(rows.n_rows()), p_(rows.n_features()), M_(n_models), W_(M_ * p_),
        gradient_(M_ * p_), violation_(p_), f_(n_ * M_), tried_(n_ * M_), residual_(n_ * M_),
        labels_(n_), is_working_(p_) {
    if (a.start) W_.assign(a.start, a.start + M_ * p_);
  }

  Solver& self() { return static_cast<Solver&>(*this); }

  static bool any(const std::vector<double>& W) {
    return std::any_of(W.begin(), W.end(), [](double w) { return w != 0.0; });
  }

  bool is_used(int64_t j) const {
    for (int64_t m = 0; m < M_; ++m)
      if (W_[m * p_ + j] != 0.0) return true;
    return false;
  }

  // Features that are not optimal, where a step from zero begins.
  std::vector<int64_t> moving() const {
    std::vector<int64_t> found;
    for (int64_t j = 0; j < p_; ++j)
      if (violation_[j] > 0.0) found.push_back(j);
    return found;
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

  void add_gram(
      const int64_t* positions, int64_t n, const T* weights, double sign, double* metric) {
    if (n == 0) return;
    const int64_t F = working_.size();
    part_.resize(F * F);
    rows_.gram(positions, n, working_.data(), F, part_.data(), weights);
    for (int64_t e = 0; e < F * F; ++e) metric[e] += sign * part_[e];
    passes_ += static_cast<double>(n) / n_;
  }

  // Where the model of a step is least, over the working features; false if that is nowhere.
  bool newton_target(double tol, std::vector<double>& target) {
    const int64_t F = working_.size();
    std::vector<double> H(metric_.size()), g(M_ * F), V(M_ * F), l1(F);
    for (size_t e = 0; e < H.size(); ++e) H[e] = self().averaged(metric_[e]);
    double mean = 0.0;
    for (int64_t e = 0; e < M_ * F; ++e) mean += H[e * F + e % F] / (M_ * F);
    if (mean > 0.0) scale_ = mean;  // else as before: no row is inside the margin now
    for (int64_t e = 0; e < M_ * F; ++e) {
      double& h = H[e * F + e % F];
      h *= 1.0 + Damping;
      if (h < Damping * Damping * scale_) h = Damping * scale_;
      const int64_t from = e / F * p_ + working_[e % F];
      g[e] = gradient_[from], V[e] = W_[from];
    }
    for (int64_t j = 0; j < F; ++j) l1[j] = a_.l1[working_[j]];
    self().minimise(H, l1, g, V, tol);
    for (int64_t e = 0; e < M_ * F; ++e) target[e / F * p_ + working_[e % F]] = V[e];
    return true;
  }

  // Scores of weights, which are rounded to what T holds first.
  void sweep(std::vector<double>& W, std::vector<T>& f) {
    for (double& w : W) w = static_cast<double>(static_cast<T>(w));
    rows_.scores(W.data(), M_, f.data());
    passes_ += 1.0;
  }

 private:
  // One proximal step towards the minimum for these labels; if there is none to take, why.
  const char* step() {
    is_full_ = true;
    self().gradient();
    const bool begun = Solver::IsSmooth || any(W_);
    double worst = 0.0;
    for (int64_t j = 0; j < p_; ++j) {
      violation_[j] = self().violation(j);
      worst = std::max(worst, violation_[j]);
    }
    if (worst <= (begun ? a_.violation : 0.0))
      return "converged";  // zero is left unless it is optimal
    std::vector<double> target = W_;
    if (begun) {
      choose_working();
      self().update_metric();
      if (!self().newton_target(Solver::Close * worst, target)) return "stalled";
      return search(target) ? nullptr : "stalled";
    }
    if constexpr (!Solver::IsSmooth) self().gradient_target(target);
    if (!search(target)) return "stalled";
    stretch();
    return nullptr;
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
    metric_.assign(M_ * working_.size() * working_.size(), 0.0);
    std::fill(self().counted_.begin(), self().counted_.end(), 0);
  }

  // Double the weights while that helps: exact in floating point, and no sweep is needed.
  void stretch() {
    std::vector<double> twice(W_.size());
    for (;;) {
      for (size_t e = 0; e < W_.size(); ++e) twice[e] = 2.0 * W_[e];
      for (size_t e = 0; e < f_.size(); ++e) tried_[e] = T{2} * f_[e];
      const double value = self().measure(tried_);
      if (!(value + self().penalty(twice) < value_ + self().penalty(W_))) break;
      W_.swap(twice), f_.swap(tried_);
      value_ = value;
    }
    value_ = self().measure(f_);
  }

  // Go to the target, or part of the way: as optim/_minimise.py's search_line.
  bool search(std::vector<double>& target) {
    const double before = self().penalty(W_), start = value_ + before;
    sweep(target, tried_);
    const double value = self().measure(tried_), full = self().penalty(target);
    double slope = Solver::IsSmooth ? 0.0 : full - before;
    for (size_t e = 0; e < W_.size(); ++e) slope += gradient_[e] * (target[e] - W_[e]);
    if (slope < 0.0 && value + full <= start + Sufficient * slope) return accept(target, value);
    std::vector<double> W(W_.size());
    std::vector<T> between(f_.size());
    for (double step = 0.5; step >= Shortest; step *= 0.5) {
      for (size_t e = 0; e < W.size(); ++e) W[e] = W_[e] + step * (target[e] - W_[e]);
      if (Solver::IsSmooth)
        sweep(W, between);
      else
        for (size_t e = 0; e < f_.size(); ++e)
          between[e] = f_[e] + static_cast<T>(step) * (tried_[e] - f_[e]);
      double exact = self().measure(between);
      const double objective = exact + self().penalty(W);
      if (objective < start && objective <= start + Sufficient * step * slope) {
        if (!Solver::IsSmooth) sweep(W, between), exact = self().measure(between);
        tried_.swap(between), is_full_ = false;
        if (exact + self().penalty(W) < start) return accept(W, exact);
        break;
      }
    }
    value_ = self().measure(f_);  // residuals back to where we are
    return false;
  }

  bool accept(std::vector<double>& W, double value) {
    W_.swap(W), f_.swap(tried_);
    value_ = value;
    return true;
  }

  bool assign() {
    next_ = labels_;
    self().place(next_.data());
    const bool moved = next_ != labels_;
    labels_.swap(next_);
    return moved;
  }

 protected:
  const View<T>& rows_;
  const SplitProblem<Label>& a_;
  const int64_t n_, p_, M_;  // M: models
  std::vector<double> W_, gradient_, violation_;
  std::vector<T> f_, tried_, residual_;
  std::vector<Label> labels_, next_;
  std::vector<uint8_t> is_working_;
  std::vector<int64_t> working_;
  std::vector<double> metric_, part_, trace_;
  double value_ = 0.0, passes_ = 0.0;
  Listener signals_;
  double scale_ = 0.0;   // mean diagonal of the last Hessian that had one, or a guess at it
  bool is_full_ = true;  // whether the last step went all the way
};
