// Balanced assignment: n rows to K clusters at least total cost, every cluster's count within
// [lower, upper]. Derivation, proof of optimality and what rounding may do: optim/ASSIGNMENT.md.
#include <functional>

#include "common.hpp"

// ---- two clusters: a threshold on the difference of their scores --------------------------------

// Child 0 takes the m rows of largest f, m = #{f >= 0} clipped to the bounds.
template <class T>
void split_pair(const T* f, int64_t n, int64_t lower, int64_t upper, int8_t* label) {
  largest(f, n);  // refuses what is not finite
  int64_t positive = 0;
  for (int64_t i = 0; i < n; ++i) positive += f[i] >= 0;
  for (int64_t i = 0; i < n; ++i) label[i] = f[i] < 0;
  const int64_t m = std::clamp(positive, lower, upper);
  if (m == positive) return;
  // Only one side of zero changes: of its rows, the `keep` largest end in child 0.
  const bool below = m > positive;
  int64_t keep = below ? m - positive : m, size = 0;
  std::vector<T> values(n);
  for (int64_t i = 0; i < n; ++i) {  // no branch: it would be mispredicted at every other row
    values[size] = f[i];
    size += (f[i] < 0) == below;
  }
  T threshold = std::numeric_limits<T>::infinity();  // keep == 0: nothing passes
  if (keep > 0) {
    const auto at = values.begin() + (keep - 1);
    std::nth_element(values.begin(), at, values.begin() + size, std::greater<T>());
    threshold = *at;
    keep -= std::count_if(values.begin(), at, [&](T x) { return x > threshold; });
  }
  for (int64_t i = 0; i < n; ++i) label[i] = !(f[i] > threshold);
  for (int64_t i = 0; keep > 0; ++i)  // this many pass at the threshold itself
    if (f[i] == threshold) label[i] = 0, --keep;
}
template void split_pair(const float*, int64_t, int64_t, int64_t, int8_t*);
template void split_pair(const double*, int64_t, int64_t, int64_t, int8_t*);

// ---- more: a flow -------------------------------------------------------------------------------

namespace {

constexpr int64_t MaxClusters = 1 << 20;  // arcs between any two are held
constexpr double kInf = std::numeric_limits<double>::infinity(), kEps = 0x1p-52;

struct Entry {
  double key;
  int64_t row;
};

struct Later {  // std heaps keep the largest in front: this order puts the least there
  bool operator()(const Entry& x, const Entry& y) const {
    return x.key != y.key ? x.key > y.key : x.row > y.row;
  }
};

// Successive shortest paths over K clusters and a hub, node K, that carries the slack between
// the bounds. An arc a -> b moves the row of a that it costs least to move.
template <class T> class Transport {
 public:
  Transport(const T* costs, int64_t n, int K)
      : costs_(costs), n_(n), K_(K), N_(K + 1), largest_(largest(costs, n * K)),
        // A power of two, so exact: no sum of keys along a path may overflow.
        scale_(largest_ > 0x1p960 ? 0x1p-64 : 1.0), price_(K, 0.0), flow_(K), excess_(N_),
        heap_(static_cast<size_t>(K) * K), weight_(static_cast<size_t>(N_) * N_, kInf),
        floor_(static_cast<size_t>(K) * K, kInf), dist_(N_), parent_(N_), pending_(N_) {}

  const std::vector<int32_t>& labels() const { return label_; }

  // Whether these labels are already optimal; if so they are kept.
  bool accept(const int32_t* warm, int64_t lower, int64_t upper) {
    for (int64_t i = 0; i < n_; ++i) {
      if (warm[i] < 0 || warm[i] >= K_) return false;
      ++flow_[warm[i]];
    }
    for (int k = 0; k < K_; ++k) {
      if (flow_[k] < lower || flow_[k] > upper) return false;
      if (flow_[k] < upper) weight(k, K_) = 0.0;
      if (flow_[k] > lower) weight(K_, k) = 0.0;
    }
    for (int64_t i = 0; i < n_; ++i) {
      const int a = warm[i];
      const T* c = row(i);
      for (int b = 0; b < K_; ++b)
        if (b != a) weight(a, b) = std::min(weight(a, b), key(c, a, b));
      // Weights only fall: labels that are far off give themselves away early.
      if (i % 1024 == 1023 && !search(true).empty()) return false;
    }
    if (!search(true).empty()) return false;
    label_.assign(warm, warm + n_);
    return true;
  }

  // Solve for every `stride`-th row, starting from the prices that the last call left.
  void solve(int64_t stride, int64_t lower, int64_t upper) {
    stride_ = stride, lower_ = lower, upper_ = upper;
    m_ = (n_ + stride - 1) / stride;
    label_by_price();
    set_flow();
    int64_t wrong = 0;
    for (const int64_t e : excess_) wrong += std::abs(e);
    admit(3 * wrong + 32 * K_);  // how many it takes to get by without another call, mostly
    for (;;) {
      const bool balanced = *std::max_element(excess_.begin(), excess_.end()) == 0;
      const std::vector<int> route = search(balanced);
      if (route.empty()) break;
      if (!push(route)) admit(2 * admitted_);
    }
    // A search from everywhere met no cycle: its distances are an optimal dual solution.
    for (int k = 0; k < K_; ++k) price_[k] = dist_[K_] - dist_[k];
  }

 private:
  const T* row(int64_t i) const { return costs_ + i * stride_ * K_; }
  double key(const T* c, int a, int b) const {
    return static_cast<double>(c[b]) * scale_ - static_cast<double>(c[a]) * scale_;
  }
  double& weight(int a, int b) { return weight_[static_cast<size_t>(a) * N_ + b]; }
  double& floor(int a, int b) { return floor_[static_cast<size_t>(a) * K_ + b]; }
  std::vector<Entry>& heap(int a, int b) { return heap_[static_cast<size_t>(a) * K_ + b]; }

  void label_by_price() {
    label_.resize(m_);
    gap_.resize(m_);
    const double scale = scale_;  // local copies: nothing written below can alias them
    const std::vector<double> price(price_);
    const int K = K_;
    for (int64_t i = 0; i < m_; ++i) {
      const T* c = row(i);
      double best = static_cast<double>(c[0]) * scale + price[0], second = kInf;
      int32_t where = 0;
      for (int k = 1; k < K; ++k) {
        const double x = static_cast<double>(c[k]) * scale + price[k];
        // k grows, so this is "k if less"; written so, no compiler makes a branch of it.
        where = std::max(where, k * static_cast<int32_t>(x < best));
        second = std::min(second, std::max(x, best));
        best = std::min(x, best);
      }
      label_[i] = where;
      gap_[i] = second - best;
    }
  }

  // Flow from clusters to the hub, as complementary slackness demands it for these prices.
  void set_flow() {
    std::vector<int64_t> count(K_, 0);
    for (const int32_t k : label_) ++count[k];
    excess_[K_] = -m_;
    for (int k = 0; k < K_; ++k) {
      flow_[k] = std::clamp(count[k], lower_, upper_);
      if (price_[k] != 0) flow_[k] = price_[k] > 0 ? upper_ : lower_;
      excess_[k] = count[k] - flow_[k];
      excess_[K_] += flow_[k];
    }
  }

  // Put about n_rows rows, those nearest to changing sides, into the heaps. Rows left out have
  // a gap above `theta`, hence no key below the arc's floor: an empty heap still has a bound.
  void admit(int64_t n_rows) {
    admitted_ = std::min(n_rows, m_);
    double theta = kInf;
    if (admitted_ < m_) {
      std::vector<double> gaps;  // a sample: the number admitted need not be exact
      for (int64_t i = 0; i < m_; i += 1 + m_ / 1024) gaps.push_back(gap_[i]);
      const auto at = gaps.begin() + admitted_ * static_cast<int64_t>(gaps.size()) / m_;
      std::nth_element(gaps.begin(), at, gaps.end());
      theta = std::max(*at, 0.0);
    }
    double size = largest_ * scale_ + theta;  // of what was rounded on the way to a gap
    for (const double p : price_) size = std::max(size, std::abs(p));
    for (int a = 0; a < K_; ++a)
      for (int b = 0; b < K_; ++b) {
        floor(a, b) = theta < kInf ? theta + price_[a] - price_[b] - 16 * kEps * size : kInf;
        heap(a, b).clear();
      }
    for (int64_t i = 0; i < m_; ++i)
      if (gap_[i] <= theta) enter(i, false);
    for (auto& h : heap_) std::make_heap(h.begin(), h.end(), Later());
    for (int k = 0; k < K_; ++k) refresh(k);
  }

  void enter(int64_t i, bool sift) {
    const int a = label_[i];
    const T* c = row(i);
    for (int b = 0; b < K_; ++b) {
      const double x = key(c, a, b);
      if (b == a || x > floor(a, b)) continue;
      auto& h = heap(a, b);
      h.push_back({x, i});
      if (sift) std::push_heap(h.begin(), h.end(), Later());
    }
  }

  // Bring the weights of the arcs that leave `a`, or join it to the hub, up to date.
  void refresh(int a) {
    for (int b = 0; b < K_; ++b) {
      auto& h = heap(a, b);
      while (!h.empty() && label_[h.front().row] != a) {
        std::pop_heap(h.begin(), h.end(), Later());
        h.pop_back();
      }
      weight(a, b) = a == b ? kInf : h.empty() ? floor(a, b) : h.front().key;
    }
    weight(a, K_) = flow_[a] < upper_ ? 0.0 : kInf;
    weight(K_, a) = flow_[a] > lower_ ? 0.0 : kInf;
  }

  // Bellman-Ford from the nodes with excess, or from everywhere. Returns a cycle that lowers
  // the cost if it meets one (first and last node the same), else the shortest path to a node
  // that lacks rows, else nothing. Parents always form a forest, whatever rounding does.
  std::vector<int> search(bool everywhere) {
    for (int v = 0; v < N_; ++v) {
      dist_[v] = everywhere || excess_[v] > 0 ? 0.0 : kInf;
      pending_[v] = dist_[v] < kInf;
      parent_[v] = -1;
    }
    bool changed = true;
    for (int round = 0; changed && round < N_; ++round) {
      changed = false;
      for (int a = 0; a < N_; ++a) {
        if (!pending_[a]) continue;
        pending_[a] = 0;
        for (int b = 0; b < N_; ++b) {
          const double x = dist_[a] + weight(a, b);
          if (!(x < dist_[b])) continue;
          if (above(b, a)) {
            if (negative(b, a)) return walk(b, a);
            continue;
          }
          dist_[b] = x;
          parent_[b] = a;
          pending_[b] = changed = true;
        }
      }
    }
    int last = -1;
    for (int v = 0; v < N_; ++v)
      if (excess_[v] < 0 && dist_[v] < kInf && (last < 0 || dist_[v] < dist_[last])) last = v;
    return walk(-1, last);
  }

  bool above(int b, int a) const {
    while (a >= 0 && a != b) a = parent_[a];
    return a == b;
  }

  // Whether the cycle b -> ... -> a -> b lowers the cost by more than rounding could feign.
  bool negative(int b, int a) {
    double sum = weight(a, b), size = std::abs(sum);
    int length = 1;
    for (int v = a; v != b; v = parent_[v], ++length) {
      const double w = weight(parent_[v], v);
      sum += w;
      size += std::abs(w);
    }
    return sum < -length * kEps * size;
  }

  // The tree path that ends in `a`: from its root, or from b and then back to it.
  std::vector<int> walk(int b, int a) const {
    std::vector<int> route;
    if (b >= 0) route.push_back(b);
    for (int v = a; v != b; v = parent_[v]) route.push_back(v);
    if (b >= 0) route.push_back(b);
    std::reverse(route.begin(), route.end());
    return route;
  }

  // Send rows along the route; false, and nothing done, if it uses an arc that has no row at
  // hand, only a bound on rows left out.
  bool push(const std::vector<int>& route) {
    const int first = route.front(), last = route.back();
    int64_t amount = first == last ? 1 : std::min(excess_[first], -excess_[last]);
    std::vector<std::pair<int64_t, int>> moves;  // row, new label: chosen before any moves
    for (size_t j = 0; j + 1 < route.size(); ++j) {
      const int a = route[j], b = route[j + 1];
      if (a == K_) {
        amount = std::min(amount, flow_[b] - lower_);
      } else if (b == K_) {
        amount = std::min(amount, upper_ - flow_[a]);
      } else if (heap(a, b).empty()) {
        return false;
      } else {
        amount = 1;
        moves.emplace_back(heap(a, b).front().row, b);
      }
    }
    excess_[first] -= amount;
    excess_[last] += amount;
    for (size_t j = 0; j + 1 < route.size(); ++j) {
      if (route[j] == K_) flow_[route[j + 1]] -= amount;
      if (route[j + 1] == K_) flow_[route[j]] += amount;
    }
    for (const auto& [i, k] : moves) {
      label_[i] = k;
      gap_[i] = -1.0;  // no longer where its price is best: never left out again
      enter(i, true);
    }
    for (const int v : route)
      if (v < K_) refresh(v);
    return true;
  }

  const T* costs_;
  const int64_t n_;
  const int K_, N_;
  const double largest_, scale_;
  int64_t stride_ = 1, m_ = 0, lower_ = 0, upper_ = 0, admitted_ = 0;
  std::vector<int32_t> label_;
  std::vector<double> gap_, price_;       // per row, to the second best cluster; per cluster
  std::vector<int64_t> flow_, excess_;    // count = flow + excess
  std::vector<std::vector<Entry>> heap_;  // per arc: rows by the cost of moving them
  std::vector<double> weight_, floor_;    // per arc: least key; bound on keys left out
  std::vector<double> dist_;              // per node, as are the next two
  std::vector<int> parent_;
  std::vector<char> pending_;
};

// Prices from every 5th row, themselves from every 25th, and so on: each level starts next to
// its optimum, and only rows near a boundary are left to move.
template <class T> std::vector<int32_t> solve_levels(
    const T* costs, int64_t n, int K, int64_t lower, int64_t upper, const int32_t* warm) {
  constexpr int64_t kStep = 5, kFewest = 16;
  Transport<T> transport(costs, n, K);
  if (warm && transport.accept(warm, lower, upper)) return transport.labels();
  int64_t stride = 1;
  while (n / (stride * kStep) >= kFewest * K) stride *= kStep;
  for (; stride >= 1; stride /= kStep) {
    const int64_t m = (n + stride - 1) / stride;
    transport.solve(stride, lower * m / n, (upper * m + n - 1) / n);
  }
  return transport.labels();
}

}  // namespace

// A row costs least where its score is highest; no flow is needed if that is balanced.
template <class T>
void assign_rows(const T* S, int64_t n, int64_t K, int64_t lower, int64_t upper, int32_t* labels) {
  largest(S, n * K);  // refuses what is not finite
  std::vector<int32_t> highest(n);
  std::vector<int64_t> counts(K);
  for (int64_t i = 0; i < n; ++i) {
    const T* s = S + i * K;
    highest[i] = static_cast<int32_t>(std::max_element(s, s + K) - s);
    ++counts[highest[i]];
  }
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  if (*least < lower || *most > upper) {
    std::vector<double> costs(n * K);
    cost_rows(S, n, K, costs.data());
    highest = solve_levels(costs.data(), n, static_cast<int>(K), lower, upper, labels);
  }
  std::copy(highest.begin(), highest.end(), labels);
}
template void assign_rows(const float*, int64_t, int64_t, int64_t, int64_t, int32_t*);
template void assign_rows(const double*, int64_t, int64_t, int64_t, int64_t, int32_t*);

namespace {

nb::object assign_flow(
    const Given& C, int64_t lower, int64_t upper, const std::optional<Given>& warm) {
  return of_type("C", C, [&](auto number) {
    const auto* costs = checked<decltype(number)>("C", C, {-1, -1});
    const int64_t n = C.shape(0), K = C.shape(1);
    const int32_t* known = warm ? checked<int32_t>("warm", *warm, {n}) : nullptr;
    // Divided, not multiplied: bounds may be as large as they like.
    if (K < 1 || K > MaxClusters || lower < 0 || lower > n / K || upper < (n + K - 1) / K)
      refuse("K * lower <= n <= K * upper must hold; got n = ", n, " rows, K = ", K,
          " clusters, lower = ", lower, " and upper = ", upper);
    return filled<int32_t>({C.shape(0)}, [&](int32_t* out) {
      if (n == 0) return;
      const auto labels = solve_levels(costs, n, int(K), lower, std::min(upper, n), known);
      std::copy(labels.begin(), labels.end(), out);
    });
  });
}

nb::object assign_pair(const Given& given, int64_t lower, int64_t upper) {
  return of_type("f", given, [&](auto number) {
    const auto* f = checked<decltype(number)>("f", given, {-1});
    const int64_t n = given.shape(0);
    check_bounds(lower, upper, n);
    return filled<int8_t>(
        {given.shape(0)}, [&](int8_t* out) { split_pair(f, n, lower, upper, out); });
  });
}

}  // namespace

void bind_assign(nb::module_& m) {
  using namespace nb::literals;
  m.def("assign_flow", &assign_flow, "C"_a, "lower"_a, "upper"_a, "warm"_a.none() = nb::none(),
      nb::sig("def assign_flow(C: Array, lower: int, upper: int, "
              "warm: NDArray[int32] | None = None) -> NDArray[int32]"),
      "Labels of least total cost C (n, K), every count within [lower, upper].");
  m.def("assign_pair", &assign_pair, "f"_a, "lower"_a, "upper"_a,
      nb::sig("def assign_pair(f: Array, lower: int, upper: int) -> NDArray[int8]"),
      "Labels 0 and 1 from margins f, lower <= #{0} <= upper.");
}
