// The sparse rule of one division: features are added one at a time, the one that promises most
// first, and the weights fitted anew, until no other is worth its price. A child has weights of
// its own, and so few features of its own; of two children the second has none and scores zero.
// Features that make up one column of a table, as the values of a category do, are one thing: the
// first of them pays for the column, others come for a part of the price.
#include <nanobind/stl/optional.h>

#include <limits>
#include <map>
#include <numeric>

#include "cholesky.hpp"
#include "rows.hpp"

namespace {

// What a rule should be like, in checked buffers: taxarbor.rows.RuleProblem.
struct RuleProblem {
  const int32_t* labels;
  int64_t n_children;
  const double* weights;     // (n_rows), what a row in another child costs
  const double* penalty_factor;  // (n_features), by which a feature's price is multiplied; 0: barred
  const int64_t* owner;      // (n_features), its column, below n_features; null: each its own
  double rounding;           // beside a feature's own: what deviates by no more is not used
  double price;              // what a feature of a child must lower the loss by
  double ridge;              // for weights of features of unit variance, per unit of `weights`
  int64_t max_features;      // most columns in use; 0 for any number
};

constexpr int Rounds = 20;      // most rounds over the children, and most steps for one of them
constexpr int Kept = 4;         // steps for which a Hessian is kept
constexpr double Next = 0.5;    // share of its price that a feature of a column in use costs
constexpr double Rough = 0.1;   // share of a price that the weights may be from the least loss by
constexpr double Fine = 1e-4;   // and share of the loss
constexpr double Alike = 1e-6;  // share by which two costs must differ to be told apart
constexpr double Tied = 1e-5;   // and two promises, which are sums over rows of type T
constexpr int64_t Chunk = 256;  // rows: sums over as many are of type T, longer ones double

template <class T> TAXARBOR_INLINE double sum_of(const typename Lanes<T>::type& lanes) {
  T each[Lanes<T>::count];
  store<T>(each, lanes);
  double sum = 0.0;
  for (const T one : each) sum += static_cast<double>(one);
  return sum;
}

// The sum of a b over a chunk.
template <class T> TAXARBOR_INLINE double dot_chunk(const T* a, const T* b) {
  using V = typename Lanes<T>::type;
  constexpr int64_t L = Lanes<T>::count;
  V even = {}, odd = {};
  for (int64_t i = 0; i < Chunk; i += 2 * L) {
    V a0, a1, b0, b1;
    load<T>(a0, a + i), load<T>(a1, a + i + L), load<T>(b0, b + i), load<T>(b1, b + i + L);
    even += a0 * b0, odd += a1 * b1;
  }
  return sum_of<T>(even + odd);
}

// out += the sums over a chunk of a times each of some columns.
template <class T, int Columns>
TAXARBOR_INLINE void dot_columns(const T* a, const T* const* Z, int64_t from, double* out) {
  using V = typename Lanes<T>::type;
  constexpr int64_t L = Lanes<T>::count;
  V even[Columns] = {}, odd[Columns] = {};
  for (int64_t i = 0; i < Chunk; i += 2 * L) {
    V a0, a1;
    load<T>(a0, a + i), load<T>(a1, a + i + L);
    for (int b = 0; b < Columns; ++b) {
      V b0, b1;
      load<T>(b0, Z[b] + from + i), load<T>(b1, Z[b] + from + i + L);
      even[b] += a0 * b0, odd[b] += a1 * b1;
    }
  }
  for (int b = 0; b < Columns; ++b) out[b] += sum_of<T>(even[b] + odd[b]);
}

template <class T>
TAXARBOR_INLINE void dot_all(const T* a, const T* const* Z, int64_t d, int64_t from, double* out) {
  int64_t b = 0;
  for (; b + 4 <= d; b += 4) dot_columns<T, 4>(a, Z + b, from, out + b);
  for (; b + 2 <= d; b += 2) dot_columns<T, 2>(a, Z + b, from, out + b);
  for (; b < d; ++b) dot_columns<T, 1>(a, Z + b, from, out + b);
}

// H (d, d), its lower triangle, = Z' diag(curvature) Z; n is whole chunks.
template <class T> TAXARBOR_CLONES void curve(
    const std::vector<const T*>& Z, const T* curvature, int64_t n, double* H) {
  const int64_t d = Z.size();
  T own[Chunk];
  for (int64_t from = 0; from < n; from += Chunk)
    for (int64_t a = 0; a < d; ++a) {
      const T* z = Z[a] + from;
      for (int64_t i = 0; i < Chunk; ++i) own[i] = curvature[from + i] * z[i];
      dot_all<T>(own, Z.data(), a + 1, from, H + a * d);
    }
}

// out (d) = Z' a
template <class T>
TAXARBOR_CLONES void sum_up(const std::vector<const T*>& Z, const T* a, int64_t n, double* out) {
  std::fill(out, out + Z.size(), 0.0);
  for (int64_t from = 0; from < n; from += Chunk)
    dot_all<T>(a + from, Z.data(), Z.size(), from, out);
}

// scores (n) = Z beta, where the first column is ones.
template <class T> TAXARBOR_CLONES void score_rows(
    const std::vector<const T*>& Z, const double* beta, int64_t n, T* scores) {
  for (int64_t from = 0; from < n; from += Chunk) {
    std::fill(scores + from, scores + from + Chunk, static_cast<T>(beta[0]));
    for (size_t a = 1; a < Z.size(); ++a) {
      const T weight = static_cast<T>(beta[a]), *z = Z[a] + from;
      for (int64_t i = 0; i < Chunk; ++i) scores[from + i] += weight * z[i];
    }
  }
}

// Two children: the sum of w [1 - s f]_+^2, and the parts of the rows in slope and curvature.
template <class T> TAXARBOR_CLONES double look_pair(
    const T* f, const T* side, const T* w, int64_t n, T* pull, T* curvature) {
  double sum = 0.0;
  T lack[Chunk];
  for (int64_t from = 0; from < n; from += Chunk) {
    for (int64_t i = 0; i < Chunk; ++i) {
      const T s = side[from + i];
      lack[i] = std::max(T{1} - s * f[from + i], T{0});
      curvature[from + i] = lack[i] > T{0} ? w[from + i] : T{0};
      pull[from + i] = w[from + i] * s * lack[i];
      lack[i] *= s;
    }
    sum += dot_chunk<T>(pull + from, lack);
  }
  return sum;
}

// More children: the sum over the other children l of w [1 - (f_y - f_l)]_+^2. Arrays are
// (n_children, n), `f`, `pull` and `curvature` of all children.
template <class T> TAXARBOR_CLONES double look_all(
    const T* f, const int32_t* labels, const T* w, int64_t n, int64_t K, T* pull, T* curvature) {
  double sum = 0.0;
  T own[Chunk], lack[Chunk], pulled[Chunk], curved[Chunk];
  for (int64_t from = 0; from < n; from += Chunk) {
    const int32_t* y = labels + from;
    for (int64_t i = 0; i < Chunk; ++i) {
      own[i] = f[y[i] * n + from + i];
      pulled[i] = curved[i] = T{0};
    }
    for (int32_t k = 0; k < K; ++k) {
      const int64_t at = k * n + from;
      for (int64_t i = 0; i < Chunk; ++i) {
        const T short_by = y[i] == k ? T{0} : T{1} - own[i] + f[at + i];
        lack[i] = std::max(short_by, T{0});
        curvature[at + i] = lack[i] > T{0} ? w[from + i] : T{0};
        pull[at + i] = -w[from + i] * lack[i];
        pulled[i] -= pull[at + i], curved[i] += curvature[at + i];
      }
      sum -= dot_chunk<T>(pull + at, lack);
    }
    for (int64_t i = 0; i < Chunk; ++i)
      pull[y[i] * n + from + i] = pulled[i], curvature[y[i] * n + from + i] = curved[i];
  }
  return sum;
}

// Minimises over the children's f_k = beta_k0 + sum_a beta_ka z_a, of few features z_a each,
//   sum_i w_i sum_{l != y_i} [1 - (f_{y_i} - f_l)]_+^2 / 2 + ridge |beta|^2 / 2,
// by Newton steps for one child at a time.
template <class T> class RuleSearch {
 public:
  struct Rule {
    std::vector<double> W, offsets;  // (n_models, n_features), (n_models)
  };

  RuleSearch(const View<T>& rows, const RuleProblem& a)
      : rows_(rows), a_(a), n_(rows.n_rows()), p_(rows.n_features()),
        size_((n_ + Chunk - 1) / Chunk * Chunk), m_(a.n_children > 2 ? a.n_children : 1), w_(size_),
        side_(size_), ones_(size_, T{1}), labels_(size_), f_(m_ * size_), pull_(m_ * size_),
        curvature_(m_ * size_), children_(m_) {
    std::copy(a.weights, a.weights + n_, w_.begin());  // and none for the rows that fill the chunk
    std::copy(a.labels, a.labels + n_, labels_.begin());
    for (int64_t i = 0; i < size_; ++i) side_[i] = labels_[i] == 0 ? T{1} : T{-1};
    ridge_ = a.ridge * std::accumulate(a.weights, a.weights + n_, 0.0);
    for (Child& child : children_) child.columns.push_back(ones_.data());
    look();
  }

  Rule find() {
    gather();
    measure();
    settle();
    Listener signals;
    while (true) {
      signals.listen();
      const auto [k, feature] = most_promising();
      if (k < 0) break;
      Child& child = children_[k];
      const Child before = child;
      const double hinge = hinge_;
      child.features.push_back(feature);
      child.columns.push_back(column(feature));
      child.beta.push_back(0.0);
      // Without a feature of its own, a child is not told from others that have none either.
      const int64_t owner = owner_[feature];
      double share = before.features.empty() ? 0.0 : 1.0;
      for (const int64_t j : before.features)
        if (owner_[j] == owner) share = Next;
      fit(k, Rough * a_.price + Fine * loss_);
      if (hinge - hinge_ >= share * (a_.price * a_.penalty_factor[feature])) {
        n_used_ += !is_used_[owner];
        is_used_[owner] = true;
        continue;
      }
      // Features together may have promised more than the first of them keeps: others are tried.
      child = before, child.is_open = size_of(owner) > 1;
      child.refused.push_back(owner);
      score(k);
    }
    settle();
    return finished();
  }

 private:
  struct Child {
    std::vector<double> beta{0.0};  // the intercept, then a weight per feature
    std::vector<int64_t> features;
    std::vector<const T*> columns;  // ones, then the features, in units of their deviations
    std::vector<int64_t> refused;   // columns that are not worth their price
    bool is_open = true;            // whether another feature may be worth its price
  };

  // List the features of each column, in their order.
  void gather() {
    owner_.resize(p_), members_.resize(p_), starts_.resize(p_ + 1);
    std::iota(owner_.begin(), owner_.end(), 0);
    if (a_.owner) std::copy(a_.owner, a_.owner + p_, owner_.begin());
    for (const int64_t column : owner_) ++starts_[column + 1];
    std::partial_sum(starts_.begin(), starts_.end(), starts_.begin());
    std::vector<int64_t> next(starts_.begin(), starts_.end() - 1);
    for (int64_t j = 0; j < p_; ++j) members_[next[owner_[j]]++] = j;
  }

  int64_t size_of(int64_t column) const { return starts_[column + 1] - starts_[column]; }

  void measure() {
    deviations_.resize(p_), is_used_.resize(p_);
    rows_.moment(Moment::square, deviations_.data());
    for (int64_t j = 0; j < p_; ++j) {
      deviations_[j] = std::sqrt(deviations_[j]);
      const double own = 4.0 * std::numeric_limits<T>::epsilon() * std::abs(rows_.center()[j]);
      const bool varies = deviations_[j] > a_.rounding + own && std::isfinite(deviations_[j]);
      if (!varies || a_.penalty_factor[j] == 0.0) deviations_[j] = 0.0;
    }
  }

  const T* column(int64_t feature) {
    std::vector<T>& values = columns_[feature];
    if (values.empty()) {
      std::vector<double> exact(n_);
      rows_.columns(&feature, 1, exact.data());
      values.resize(size_);
      for (int64_t i = 0; i < n_; ++i) values[i] = static_cast<T>(exact[i] / deviations_[feature]);
    }
    return values.data();
  }

  void look() {
    const double sum = m_ == 1
        ? look_pair(f_.data(), side_.data(), w_.data(), size_, pull_.data(), curvature_.data())
        : look_all(
              f_.data(), labels_.data(), w_.data(), size_, m_, pull_.data(), curvature_.data());
    hinge_ = 0.5 * sum, loss_ = hinge_;
    for (const Child& child : children_)
      for (size_t a = 1; a < child.beta.size(); ++a)
        loss_ += 0.5 * ridge_ * child.beta[a] * child.beta[a];
  }

  // All children in turn, until a round changes little.
  void settle() {
    for (int round = 0; round < Rounds; ++round) {
      const double before = loss_;
      for (int64_t k = 0; k < m_; ++k) fit(k, 0.1 * Fine * loss_);
      if (m_ == 1 || before - loss_ <= Fine * before) return;
    }
  }

  // Newton steps for one child, until another promises no more than `enough`. Few rows enter or
  // leave the margin in a step, so some steps share a Hessian.
  void fit(int64_t k, double enough) {
    Child& child = children_[k];
    const int64_t d = child.beta.size();
    std::vector<double> H, gradient(d);
    for (int step = 0; step < Rounds; ++step) {
      sum_up<T>(child.columns, &pull_[k * size_], size_, gradient.data());
      for (int64_t a = 1; a < d; ++a) gradient[a] -= ridge_ * child.beta[a];
      const bool is_new = step % Kept == 0;
      if (is_new) {
        H.assign(d * d, 0.0);
        curve<T>(child.columns, &curvature_[k * size_], size_, H.data());
        const double rounding = 1e-12 * (H[0] + ridge_);  // where no row pulls, or ridge is zero
        for (int64_t a = 0; a < d; ++a) H[a * d + a] += (a ? ridge_ : 0.0) + rounding;
        if (!factor_cholesky<Sequential>(H, d)) return;
      }
      std::vector<double> move = gradient;
      substitute<Sequential>(H, move);
      const double slope = std::inner_product(move.begin(), move.end(), gradient.begin(), 0.0);
      if (step && 0.5 * slope <= enough) return;
      if (!advance(k, move, slope) && is_new) return;
    }
  }

  // Go along a direction as far as the loss falls by a part of what the slope promises.
  bool advance(int64_t k, const std::vector<double>& move, double slope) {
    std::vector<double>& beta = children_[k].beta;
    const std::vector<double> start = beta;
    const double before = loss_;
    for (double part = 1.0; part > 1e-3; part *= 0.5) {
      for (size_t a = 0; a < move.size(); ++a) beta[a] = start[a] + part * move[a];
      score(k);
      if (loss_ <= before - 1e-4 * part * slope) return true;
    }
    beta = start;
    score(k);
    return false;
  }

  // The scores of one child, and with them the loss.
  void score(int64_t k) {
    const Child& child = children_[k];
    score_rows<T>(child.columns, child.beta.data(), size_, &f_[k * size_]);
    look();
  }

  // The child and the feature, not in use there, that lower a model of the loss most for their
  // price; -1 if none does. The first of those that are alike but for rounding.
  std::pair<int64_t, int64_t> most_promising() {
    std::vector<T> by_row(m_ == 1 ? 0 : n_ * m_);
    for (int64_t k = 0; k < m_ && m_ > 1; ++k)
      for (int64_t i = 0; i < n_; ++i) by_row[i * m_ + k] = pull_[k * size_ + i];
    std::vector<double> slopes(m_ * p_);
    rows_.adjoint(m_ == 1 ? pull_.data() : by_row.data(), m_, slopes.data());
    const bool is_full = a_.max_features && n_used_ >= a_.max_features;
    std::pair<int64_t, int64_t> best{-1, -1};
    double most = 0.0;
    for (int64_t k = 0; k < m_; ++k) {
      const Child& child = children_[k];
      if (!child.is_open) continue;
      double active = 0.0;
      sum_up<T>({ones_.data()}, &curvature_[k * size_], size_, &active);
      if (!(active > 0.0)) continue;
      double* gains = &slopes[k * p_];
      sums_.assign(p_, 0.0);
      for (int64_t j = 0; j < p_; ++j) {
        const double slope = deviations_[j] == 0.0 ? 0.0 : gains[j] / deviations_[j];
        gains[j] = slope == 0.0 ? 0.0 : slope * slope / (active * a_.penalty_factor[j]);
        sums_[owner_[j]] += gains[j];
      }
      for (int64_t column = 0; column < p_; ++column) {
        if (!(sums_[column] > Next * most) || (is_full && !is_used_[column])) continue;
        const auto [gain, j] = promise(child, column, gains);
        if (gain > (1.0 + Tied) * most) best = {k, j}, most = gain;
      }
    }
    return best;
  }

  // What a column promises a child for its price, all its features together unless it is in use
  // there, and the one of them that promises most.
  std::pair<double, int64_t> promise(
      const Child& child, int64_t column, const double* gains) const {
    const auto has = [](const std::vector<int64_t>& list, int64_t one) {
      return std::find(list.begin(), list.end(), one) != list.end();
    };
    int64_t first = -1;
    double most = 0.0, sum = 0.0;
    bool is_used = false;
    if (has(child.refused, column)) return {0.0, -1};
    for (int64_t at = starts_[column]; at < starts_[column + 1]; ++at) {
      const int64_t j = members_[at];
      if (is_used_[column] && has(child.features, j)) {
        is_used = true;
        continue;
      }
      if (gains[j] > (1.0 + Tied) * most) first = j, most = gains[j];
      sum += gains[j];
    }
    return {is_used ? most / Next : sum, first};
  }

  // In units of the data, about the centre of the rows.
  Rule finished() {
    Rule rule{std::vector<double>(m_ * p_), std::vector<double>(m_)};
    for (int round = 0; round < (m_ == 1 ? 1 : 2); ++round)
      for (int64_t k = 0; k < m_; ++k) {
        const double shift = threshold(k);
        children_[k].beta[0] -= shift;
        for (int64_t i = 0; i < size_; ++i) f_[k * size_ + i] -= static_cast<T>(shift);
      }
    for (int64_t k = 0; k < m_; ++k) {
      const Child& child = children_[k];
      rule.offsets[k] = child.beta[0];
      for (size_t a = 0; a < child.features.size(); ++a)
        rule.W[k * p_ + child.features[a]] = child.beta[a + 1] / deviations_[child.features[a]];
    }
    return rule;
  }

  // What to take from a child's scores so that the rows in the wrong child weigh least: no loss
  // but that counts. In the middle of a gap; nothing where all rows would be on one side.
  double threshold(int64_t k) const {
    struct Row {
      T above;      // how far the child's score is above the best of the others
      double cost;  // what is lost if the row leaves the child
    };
    constexpr int Reaches = 5;
    constexpr T reaches[Reaches] = {T(0.125), T(0.25), T(0.5), T(1), T(2)};
    std::vector<Row> rows(n_);
    double passed[Reaches + 1][2] = {};  // what rows within reach cost that are right now
    double wrong[2] = {};  // what the rows cost that are in the wrong child now: out of it, in it
    for (int64_t i = 0; i < n_; ++i) {
      int64_t other = m_ == 1 ? 1 : k == 0;
      T rest = m_ == 1 ? T{0} : f_[other * size_ + i];
      for (int64_t l = other + 1; l < m_; ++l)
        if (l != k && f_[l * size_ + i] > rest) other = l, rest = f_[l * size_ + i];
      const T above = f_[k * size_ + i] - rest;
      const double w = a_.weights[i];
      rows[i] = {above, labels_[i] == k ? w : labels_[i] == other ? -w : 0.0};
      const bool is_in = above > T{0};
      const double cost = std::abs(rows[i].cost);
      if (is_in != (labels_[i] == k)) wrong[is_in] += cost;
      int nearest = 0;
      for (const T reach : reaches) nearest += std::abs(above) > reach;
      passed[nearest][is_in] += (rows[i].cost > 0.0) == is_in ? cost : 0.0;
    }
    // A threshold so far away that more rows would change from right to wrong than there are
    // wrong ones is not the best one: only the rows before it are sorted.
    double sum = 0.0, least = 0.0, cut = 0.0;
    auto first = rows.begin(), last = rows.end();
    double within[2] = {};
    for (int r = 0; r < Reaches; ++r) {
      const T reach = reaches[r];
      for (int side = 0; side < 2; ++side) within[side] += passed[r][side];
      if (!(within[0] > wrong[0] && within[1] > wrong[1])) continue;
      first = std::partition(first, last, [&](const Row& row) { return row.above < -reach; });
      last = std::partition(first, last, [&](const Row& row) { return row.above <= reach; });
      break;
    }
    for (auto row = rows.begin(); row < first; ++row) sum += row->cost;
    std::sort(first, last, [](const Row& a, const Row& b) { return a.above < b.above; });
    const double rounding = Alike * std::accumulate(a_.weights, a_.weights + n_, 0.0);
    for (auto row = first; row + 1 < last; ++row) {
      sum += row->cost;
      const T here = row->above, next = (row + 1)->above;
      if (next > here && sum < least - rounding) least = sum, cut = 0.5 * (here + next);
    }
    return cut;
  }

  const View<T>& rows_;
  const RuleProblem& a_;
  const int64_t n_, p_, size_, m_;  // size_: rows, and as many more as fill a chunk
  std::vector<T> w_, side_, ones_;
  std::vector<int32_t> labels_;
  std::vector<T> f_, pull_, curvature_;  // (n_models, size): scores, slopes, curvatures
  std::vector<Child> children_;
  std::vector<double> deviations_;                 // 0 for features that are not to be used
  std::vector<bool> is_used_;                      // of columns
  std::vector<int64_t> owner_, members_, starts_;  // the column of each feature, and their features
  std::vector<double> sums_;  // what the features of each column promise together
  std::map<int64_t, std::vector<T>> columns_;
  int64_t n_used_ = 0;
  double ridge_ = 0.0, loss_ = 0.0, hinge_ = 0.0;  // hinge: without the ridge
};

nb::object rule(const Data& data, nb::handle problem) {
  return data.visit([&](const auto& rows) {
    const int64_t n = rows.n_rows(), p = rows.n_features();
    checked_count("the number of rows", n, 1);
    const Fields from{problem};
    const auto labels = from.get<Given>("labels"), weights = from.get<Given>("weights");
    const auto penalty_factor = from.get<Given>("penalty_factor");
    const auto owner = from.get<std::optional<Given>>("owner");
    const int64_t K = from.count("n_children", 2), models = K > 2 ? K : 1;
    if (K > 2 && K > n) refuse("n_children must be at most ", n, ", the number of rows; got ", K);
    const RuleProblem checked{checked_range<int32_t>("labels", labels, {n}, 0, K), K,
        checked_weights("weights", weights, n), checked_weights("penalty_factor", penalty_factor, p),
        owner ? checked_range<int64_t>("owner", *owner, {p}, 0, p) : nullptr,
        from.weight("rounding"), from.weight("price"), from.weight("ridge"),
        from.count("max_features", 0)};
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
