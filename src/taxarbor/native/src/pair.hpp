// What two-way splits (pair.cpp, halve.cpp) have in common: one model, d, whose sign says the
// child, the loss 1/(2n) sum_i [1 - s_i d . x_i]_+^2, and the rows inside the margin.
#pragma once

#include "rounds.hpp"

template <class T, class Solver> class PairRounds : public Rounds<T, Solver, int8_t> {
 public:
  PairRounds(const View<T>& rows, const SplitProblem<int8_t>& a)
      : Loop(rows, a, 1), inside_(n_), counted_(n_) {}

 protected:
  using Loop = Rounds<T, Solver, int8_t>;
  friend Loop;
  using Loop::a_, Loop::f_, Loop::is_full_, Loop::labels_, Loop::metric_, Loop::n_, Loop::residual_;

  bool is_settled(bool is_slow) const { return is_slow && is_full_; }

  // Bring the Gram matrix of the rows inside the margin up to date: x x' does not depend on the
  // label, so only rows that crossed the margin count, unless they are the greater part.
  void update_metric() {
    if (inside_ == counted_) return;
    for (auto* some : {&entered_, &left_, &all_}) some->resize(n_ + 1);
    int64_t entered = 0, left = 0, all = 0;
    for (int64_t i = 0; i < n_; ++i) {  // without a branch, as it would be unpredictable
      entered_[entered] = left_[left] = all_[all] = i;
      entered += inside_[i] & ~counted_[i];
      left += counted_[i] & ~inside_[i];
      all += inside_[i];
    }
    if (entered + left > all) {
      std::fill(metric_.begin(), metric_.end(), 0.0);
      this->add_gram(all_.data(), all, nullptr, 1.0, metric_.data());
    } else {
      this->add_gram(entered_.data(), entered, nullptr, 1.0, metric_.data());
      this->add_gram(left_.data(), left, nullptr, -1.0, metric_.data());
    }
    counted_ = inside_;
  }

  // The loss of these scores; residuals and `inside_` are theirs from now on.
  double measure(const std::vector<T>& f) {
    return pair_rows(f.data(), labels_.data(), n_, residual_.data(), inside_.data()) / (2.0 * n_);
  }

  void place(int8_t* labels) const { split_pair(f_.data(), n_, a_.lower, a_.upper, labels); }

  std::vector<uint8_t> inside_, counted_;  // rows inside the margin; those in metric_
  std::vector<int64_t> entered_, left_, all_;
};
