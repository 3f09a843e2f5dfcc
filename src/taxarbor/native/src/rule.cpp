// The sparse rule of one division: weights for fixed labels along a path of penalties, until
// few features reproduce the division. One model against the rest per child, or one for two.
#include <nanobind/stl/vector.h>

#include <numeric>

#include "rows.hpp"

namespace {

// What a rule should be like, in checked buffers: taxarbor.rows.RuleProblem.
struct RuleProblem {
  const int32_t* labels;
  int64_t n_children;
  const double* l1;               // the penalty at strength one, (n_features)
  double second_ridge;            // in its place, for the features in use
  double barred;                  // what keeps a feature out
  std::vector<double> strengths;  // of the path
  int64_t max_features;           // 0 for any number
  double reproduced, nearly;      // agreement to reach, and what is no loss of it
  double tol, violation;
  int64_t max_working;
};

constexpr int64_t MaxSteps = 50;  // of the solver, at one strength

template <class T> class RuleSearch {
 public:
  using Weights = std::vector<double>;  // (n_models, n_features)

  struct Rule {
    Weights W;
    std::vector<double> offsets;
    double agreement;
  };

  RuleSearch(const View<T>& rows, const RuleProblem& a)
      : rows_(rows), a_(a), n_(rows.n_rows()), p_(rows.n_features()),
        models_(a.n_children > 2 ? a.n_children : 1), sides_(models_ * n_), l1_(p_),
        scores_(n_ * models_) {
    for (int64_t k = 0; k < models_; ++k)
      for (int64_t i = 0; i < n_; ++i) sides_[k * n_ + i] = a_.labels[i] != k;
  }

  Rule along_path(const Weights& steepest) {
    std::vector<Rule> passed{score(steepest)};
    if (passed.back().agreement >= a_.reproduced) return refit(steepest);
    Weights W(models_ * p_);
    double before = 1.0;
    for (const double strength : a_.strengths) {
      Weights tried = solve(strength, W);
      if (a_.max_features && count(tried) > a_.max_features) {
        passed.push_back(score(shorten(before, strength, W)));
        break;
      }
      before = strength;
      W = tried;
      passed.push_back(score(std::move(tried)));
      if (passed.back().agreement >= a_.reproduced || is_level(passed)) break;
    }
    double best = 0.0;
    for (const Rule& rule : passed)
      if (count(rule.W)) best = std::max(best, rule.agreement);
    const auto found = std::find_if(passed.begin(), passed.end(),
        [&](const Rule& rule) { return count(rule.W) && rule.agreement >= best - a_.nearly; });
    return found == passed.end() ? passed.front()
                                 : refit(found->W);  // no feature varies: none tells
  }

 private:
  // Whether the last two steps brought next to nothing.
  bool is_level(const std::vector<Rule>& passed) const {
    const size_t n = passed.size();
    return n > 3 && passed[n - 1].agreement < passed[n - 3].agreement + a_.nearly;
  }

  // Halve the step that broke the budget: the last weights within it.
  Weights shorten(double before, double strength, Weights W) {
    for (int halving = 0; halving < 6; ++halving) {
      const double middle = std::sqrt(before * strength);
      Weights tried = solve(middle, W);
      if (count(tried) > a_.max_features)
        strength = middle;
      else
        before = middle, W = std::move(tried);
    }
    return W;
  }

  Weights solve(double strength, const Weights& start) {
    for (int64_t j = 0; j < p_; ++j) l1_[j] = strength * a_.l1[j];
    return minimise(0.0, start);
  }

  // Fit the features in use without the sparse penalty.
  Rule refit(const Weights& W) {
    for (int64_t j = 0; j < p_; ++j) l1_[j] = is_used(W, j) ? 0.0 : a_.barred;
    return score(minimise(a_.second_ridge, W));
  }

  Weights minimise(double ridge, const Weights& start) {
    Weights W(models_ * p_);
    for (int64_t k = 0; k < models_; ++k) {
      const std::vector<double> d = fit_pair<T>(rows_,
          {start.data() + k * p_, sides_.data() + k * n_, MaxSteps, 0, n_, l1_.data(), ridge,
              a_.tol, a_.violation, MaxSteps, a_.max_working});
      std::copy(d.begin(), d.end(), W.begin() + k * p_);
    }
    return W;
  }

  // Set each threshold where most rows are on their side of it, and count those of all children.
  Rule score(Weights W) {
    rows_.scores(W.data(), models_, scores_.data());
    std::vector<double> offsets(models_);
    for (int64_t k = 0; k < models_; ++k) offsets[k] = threshold(k);
    int64_t agreed = 0;
    for (int64_t i = 0; i < n_; ++i) agreed += sent(offsets, i) == a_.labels[i];
    return {std::move(W), std::move(offsets), static_cast<double>(agreed) / n_};
  }

  int64_t sent(const std::vector<double>& offsets, int64_t i) const {
    if (models_ == 1) return static_cast<double>(scores_[i]) + offsets[0] < 0.0;
    int64_t best = 0;
    const auto at = [&](int64_t k) {
      return static_cast<double>(scores_[i * models_ + k]) + offsets[k];
    };
    for (int64_t k = 1; k < models_; ++k)
      if (at(k) > at(best)) best = k;
    return best;
  }

  // What to add to a model's scores for most of its own rows to be above zero, others below: the
  // middle of a gap.
  double threshold(int64_t k) {
    order_.resize(n_);
    std::iota(order_.begin(), order_.end(), 0);
    const auto at = [&](int64_t i) { return static_cast<double>(scores_[i * models_ + k]); };
    std::stable_sort(
        order_.begin(), order_.end(), [&](int64_t a, int64_t b) { return at(a) < at(b); });
    const int8_t* side = sides_.data() + k * n_;
    // Below every score all rows count as the child's own: wrong are the others.
    int64_t wrong = std::accumulate(side, side + n_, int64_t{0}), least = wrong;
    double cut = at(order_[0]) - 1.0;
    for (int64_t i = 0; i < n_; ++i) {
      wrong += side[order_[i]] ? -1 : 1;
      const double here = at(order_[i]), next = i + 1 < n_ ? at(order_[i + 1]) : here + 2.0;
      if (wrong < least && next > here) least = wrong, cut = 0.5 * (here + next);
    }
    return -cut;
  }

  bool is_used(const Weights& W, int64_t j) const {
    for (int64_t k = 0; k < models_; ++k)
      if (W[k * p_ + j] != 0.0) return true;
    return false;
  }

  int64_t count(const Weights& W) const {
    int64_t used = 0;
    for (int64_t j = 0; j < p_; ++j) used += is_used(W, j);
    return used;
  }

  const View<T>& rows_;
  const RuleProblem& a_;
  const int64_t n_, p_, models_;
  std::vector<int8_t> sides_;  // (n_models, n_rows): 0 for the model's own rows
  std::vector<double> l1_;
  std::vector<T> scores_;
  std::vector<int64_t> order_;
};

nb::object rule(const Data& data, nb::handle problem) {
  return data.visit([&](const auto& rows) {
    const int64_t n = rows.n_rows(), p = rows.n_features();
    checked_count("the number of rows", n, 1);
    const Fields from{problem};
    const auto labels = from.get<Given>("labels"), l1 = from.get<Given>("l1");
    const auto steepest = from.get<Given>("steepest");
    const int64_t K = from.count("n_children", 2), models = K > 2 ? K : 1;
    const double* start = checked_finite("steepest", steepest, {models, p});
    const RuleProblem checked{checked_range<int32_t>("labels", labels, {n}, 0, K), K,
        checked_weights("l1", l1, p), from.weight("second_ridge"), from.weight("barred"),
        from.get<std::vector<double>>("strengths"), from.count("max_features", 0),
        from.weight("reproduced"), from.weight("nearly"), from.weight("tol"),
        from.weight("violation"), from.count("max_working", 1)};
    for (const double strength : checked.strengths) checked_weight("strengths", strength);
    const auto found = unlocked([&] {
      RuleSearch<Number<decltype(rows)>> search(rows, checked);
      const std::vector<double> first(start, start + models * p);
      return search.along_path(first);
    });
    const nb::object W = copied(found.W).attr("reshape")(models, p);
    return nb::object(nb::make_tuple(W, copied(found.offsets)));
  });
}

}  // namespace

void bind_rule(nb::module_& m) {
  using namespace nb::literals;
  m.def("rule", &rule, "data"_a, "problem"_a,
      nb::sig("def rule(data: Data, problem: object) -> tuple[Array, Array]"),
      "Find a sparse rule, given the fields of a RuleProblem.");
}
