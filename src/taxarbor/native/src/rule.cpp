// The sparse rule of one division: features are added one at a time, the one that promises most
// first, and all weights fitted anew, until the next would not be worth its price. One model
// against the rest per child, or one for two.
#include <numeric>

#include "cholesky.hpp"
#include "rows.hpp"

namespace {

// What a rule should be like, in checked buffers: taxarbor.rows.RuleProblem.
struct RuleProblem {
  const int32_t* labels;
  int64_t n_children;
  const double* weights;     // (n_rows), what a row on the wrong side costs
  const double* reluctance;  // (n_features), by which a feature's price is multiplied; 0: barred
  double price;              // what a feature must lower the loss by
  double ridge;              // for weights of features of unit variance, per unit of `weights`
  int64_t max_features;      // 0 for any number
  int64_t max_candidates;    // features, the most promising ones, that are looked at closely
};

constexpr int Few = 6, Many = 20;  // Newton steps while features are added, and at the end
constexpr double Settled = 1e-3;   // share of the loss below which a step is the last
constexpr double Alike = 1e-6;     // share by which two costs must differ to be told apart

TAXARBOR_CLONES double dot(const double* a, const double* b, int64_t n) {
  using V = Lanes<double>::type;
  constexpr int64_t L = Lanes<double>::count;
  V even = {}, odd = {};
  int64_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L) {
    V a0, a1, b0, b1;
    load<double>(a0, a + i), load<double>(a1, a + i + L);
    load<double>(b0, b + i), load<double>(b1, b + i + L);
    even += a0 * b0, odd += a1 * b1;
  }
  double lanes[L], sum = 0.0;
  store<double>(lanes, even + odd);
  for (; i < n; ++i) sum += a[i] * b[i];
  for (int64_t l = 0; l < L; ++l) sum += lanes[l];
  return sum;
}

// One child against the others, or, of two, the first against the second: minimises
//   sum_i w_i [1 - s_i f_i]_+^2 / 2 + ridge |beta|^2 / 2,  f = beta_0 + sum_a beta_a z_a.
class Model {
 public:
  std::vector<double> beta{0.0};  // the intercept, then a weight per feature in use
  double loss = 0.0;              // with the ridge
  double hinge = 0.0;             // without it: what a feature is paid for
  std::vector<double> pull;       // w s [1 - s f]_+: how much each row wants a higher score
  double active = 0.0;            // weight of the rows that pull

  Model(const RuleProblem& a, int64_t n, int64_t child, double ridge)
      : pull(n), w_(a.weights), n_(n), ridge_(ridge), sides_(n), scores_(n), along_(n), active_(n) {
    for (int64_t i = 0; i < n; ++i) sides_[i] = a.labels[i] == child ? 1.0 : -1.0;
    loss = look();
  }

  const std::vector<double>& scores() const { return scores_; }
  const std::vector<double>& sides() const { return sides_; }

  // Newton steps from the weights there are; features beyond them begin at zero.
  void fit(const std::vector<const double*>& columns, int steps) {
    const int64_t d = columns.size();
    beta.resize(d);
    for (int step = 0; step < steps; ++step) {
      std::vector<double> H(d * d), move(d), own(n_);
      double slope = 0.0;
      for (int64_t a = 0; a < d; ++a) {
        for (int64_t i = 0; i < n_; ++i) own[i] = active_[i] * columns[a][i];
        for (int64_t b = 0; b <= a; ++b) H[a * d + b] = dot(own.data(), columns[b], n_);
        H[a * d + a] += a ? ridge_ : 0.0;
        H[a * d + a] += 1e-12 * (active + ridge_);  // where no row pulls, or ridge is zero
        move[a] = dot(pull.data(), columns[a], n_) - (a ? ridge_ * beta[a] : 0.0);
      }
      const std::vector<double> gradient = move;
      if (!solve_cholesky<Sequential>(H, move)) return;
      std::fill(along_.begin(), along_.end(), 0.0);
      for (int64_t a = 0; a < d; ++a) {
        slope += gradient[a] * move[a];
        for (int64_t i = 0; i < n_; ++i) along_[i] += move[a] * columns[a][i];
      }
      const double before = loss;
      if (!advance(move, slope) || before - loss <= Settled * before) return;
    }
  }

 private:
  // Go along a direction as far as the loss falls by a part of what the slope promises.
  bool advance(const std::vector<double>& move, double slope) {
    const std::vector<double> scores = scores_, start = beta;
    const double before = loss;
    for (double part = 1.0; part > 1e-3; part *= 0.5) {
      for (int64_t i = 0; i < n_; ++i) scores_[i] = scores[i] + part * along_[i];
      for (size_t a = 0; a < beta.size(); ++a) beta[a] = start[a] + part * move[a];
      loss = look();
      if (loss <= before - 1e-4 * part * slope) return true;
    }
    scores_ = scores, beta = start, loss = look();
    return false;
  }

  double look() {
    double sum = 0.0;
    active = 0.0;
    for (int64_t i = 0; i < n_; ++i) {
      const double lack = 1.0 - sides_[i] * scores_[i];
      active_[i] = lack > 0.0 ? w_[i] : 0.0;
      pull[i] = active_[i] * sides_[i] * lack;
      sum += active_[i] * lack * lack;
      active += active_[i];
    }
    hinge = 0.5 * sum;
    for (size_t a = 1; a < beta.size(); ++a) sum += ridge_ * beta[a] * beta[a];
    return 0.5 * sum;
  }

  const double* w_;
  const int64_t n_;
  const double ridge_;
  std::vector<double> sides_, scores_, along_, active_;
};

template <class T> class RuleSearch {
 public:
  struct Rule {
    std::vector<double> W, offsets;  // (n_models, n_features), (n_models)
  };

  RuleSearch(const View<T>& rows, const RuleProblem& a)
      : rows_(rows), a_(a), n_(rows.n_rows()), p_(rows.n_features()), ones_(n_, 1.0) {
    const double total = std::accumulate(a.weights, a.weights + n_, 0.0);
    for (int64_t k = 0; k < (a.n_children > 2 ? a.n_children : 1); ++k)
      models_.emplace_back(a, n_, k, a.ridge * total);
    for (Model& model : models_) model.fit({ones_.data()}, Many);
  }

  Rule find() {
    gather();
    const int64_t most = a_.max_features ? a_.max_features : p_;
    std::vector<const double*> columns{ones_.data()};
    while (static_cast<int64_t>(used_.size()) < most) {
      const int64_t best = most_promising();
      if (best < 0) break;
      std::vector<Model> tried = models_;
      columns.push_back(column(best));
      for (Model& model : tried) model.fit(columns, Few);
      const double price = a_.price * a_.reluctance[candidates_[best]];
      if (!used_.empty() && total(models_) - total(tried) < price) break;
      models_ = std::move(tried);
      used_.push_back(best);
    }
    columns.resize(used_.size() + 1);
    for (Model& model : models_) model.fit(columns, Many);
    return finished();
  }

 private:
  static double total(const std::vector<Model>& models) {
    return std::accumulate(models.begin(), models.end(), 0.0,
        [](double sum, const Model& model) { return sum + model.hinge; });
  }

  const double* column(int64_t c) const { return values_.data() + c * n_; }

  // Choose the features that will be looked at, and read them, in units of their deviation.
  void gather() {
    const int64_t m = models_.size();
    std::vector<double> mean(p_), square(p_), promise(p_), slopes(m * p_);
    rows_.moment(Moment::mean, mean.data());
    rows_.moment(Moment::square, square.data());
    std::vector<T> pulls(n_ * m);
    for (int64_t k = 0; k < m; ++k)
      for (int64_t i = 0; i < n_; ++i) pulls[i * m + k] = static_cast<T>(models_[k].pull[i]);
    rows_.adjoint(pulls.data(), m, slopes.data());
    for (int64_t j = 0; j < p_; ++j) {
      square[j] = std::max(square[j] - mean[j] * mean[j], 0.0);
      if (a_.reluctance[j] == 0.0 || !(square[j] > 0.0)) continue;
      for (int64_t k = 0; k < m; ++k) promise[j] += slopes[k * p_ + j] * slopes[k * p_ + j];
      promise[j] /= square[j] * a_.reluctance[j];
      if (std::isfinite(promise[j])) candidates_.push_back(j);
    }
    if (static_cast<int64_t>(candidates_.size()) > a_.max_candidates) {
      std::stable_sort(candidates_.begin(), candidates_.end(),
          [&](int64_t i, int64_t j) { return promise[i] > promise[j]; });
      candidates_.resize(a_.max_candidates);
      std::sort(candidates_.begin(), candidates_.end());
    }
    values_.resize(candidates_.size() * n_);
    rows_.columns(candidates_.data(), candidates_.size(), values_.data());
    for (size_t c = 0; c < candidates_.size(); ++c) {
      const int64_t j = candidates_[c];
      deviations_.push_back(std::sqrt(square[j]));
      means_.push_back(mean[j]);
      for (int64_t i = 0; i < n_; ++i)
        values_[c * n_ + i] = (values_[c * n_ + i] - mean[j]) / deviations_[c];
    }
  }

  // The feature, not in use, that lowers a model of the loss most for its price; -1 if none does.
  // The first of those that are alike but for rounding.
  int64_t most_promising() const {
    int64_t best = -1;
    double most = 0.0;
    for (size_t c = 0; c < candidates_.size(); ++c) {
      if (std::find(used_.begin(), used_.end(), c) != used_.end()) continue;
      double gain = 0.0;
      for (const Model& model : models_) {
        const double slope = dot(model.pull.data(), column(c), n_);
        if (model.active > 0.0) gain += slope * slope / model.active;
      }
      gain /= a_.reluctance[candidates_[c]];
      if (gain > (1.0 + Alike) * most) best = c, most = gain;
    }
    return best;
  }

  // In units of the data, about the centre of the rows.
  Rule finished() const {
    Rule rule{std::vector<double>(models_.size() * p_), {}};
    for (size_t k = 0; k < models_.size(); ++k) {
      double offset = models_.size() == 1 ? threshold() : models_[k].beta[0];
      for (size_t a = 0; a < used_.size(); ++a) {
        const double weight = models_[k].beta[a + 1] / deviations_[used_[a]];
        rule.W[k * p_ + candidates_[used_[a]]] = weight;
        offset -= weight * means_[used_[a]];
      }
      rule.offsets.push_back(offset);
    }
    return rule;
  }

  // The intercept that costs least: no loss but the weights of the rows on the wrong side count.
  // In the middle of a gap; the fitted one where all rows would be on one side.
  double threshold() const {
    const Model& model = models_[0];
    const std::vector<double>& at = model.scores();
    std::vector<int64_t> order(n_);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(
        order.begin(), order.end(), [&](int64_t i, int64_t j) { return at[i] < at[j]; });
    const double rounding = Alike * std::accumulate(a_.weights, a_.weights + n_, 0.0);
    double cost = 0.0, least = 0.0, cut = 0.0;
    bool is_inside = false;
    for (int64_t i = 0; i + 1 < n_; ++i) {
      cost += a_.weights[order[i]] * model.sides()[order[i]];
      const double here = at[order[i]], next = at[order[i + 1]];
      if (next > here && cost < least - rounding)
        least = cost, cut = 0.5 * (here + next), is_inside = true;
    }
    return model.beta[0] - (is_inside ? cut : 0.0);
  }

  const View<T>& rows_;
  const RuleProblem& a_;
  const int64_t n_, p_;
  const std::vector<double> ones_;
  std::vector<Model> models_;
  std::vector<int64_t> candidates_, used_;           // features; positions among the candidates
  std::vector<double> values_, deviations_, means_;  // (n_candidates, n_rows), (n_candidates)
};

nb::object rule(const Data& data, nb::handle problem) {
  return data.visit([&](const auto& rows) {
    const int64_t n = rows.n_rows(), p = rows.n_features();
    checked_count("the number of rows", n, 1);
    const Fields from{problem};
    const auto labels = from.get<Given>("labels"), weights = from.get<Given>("weights");
    const auto reluctance = from.get<Given>("reluctance");
    const int64_t K = from.count("n_children", 2), models = K > 2 ? K : 1;
    if (K > 2 && K > n) refuse("n_children must be at most ", n, ", the number of rows; got ", K);
    const RuleProblem checked{checked_range<int32_t>("labels", labels, {n}, 0, K), K,
        checked_weights("weights", weights, n), checked_weights("reluctance", reluctance, p),
        from.weight("price"), from.weight("ridge"), from.count("max_features", 0),
        from.count("max_candidates", 1)};
    const auto found =
        unlocked([&] { return RuleSearch<Number<decltype(rows)>>(rows, checked).find(); });
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
