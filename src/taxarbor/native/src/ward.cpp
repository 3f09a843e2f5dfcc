// Ward's clusters of a few rows: all pairs, merged along chains of nearest neighbours.
#include "rows.hpp"

namespace {

constexpr double Gone = std::numeric_limits<double>::infinity();

struct Merge {
  double height;
  int64_t kept, gone;
};

// The position of the least value, the first of ties.
TAXARBOR_CLONES int64_t least_of(const double* values, int64_t n) {
  constexpr int64_t L = Lanes<double>::count;
  double least[2 * L];  // independent, so that the loop vectorises
  std::fill(least, least + 2 * L, Gone);
  int64_t i = 0;
  for (; i + 2 * L <= n; i += 2 * L)
    for (int64_t l = 0; l < 2 * L; ++l)
      least[l] = values[i + l] < least[l] ? values[i + l] : least[l];
  double best = *std::min_element(least, least + 2 * L);
  for (; i < n; ++i) best = std::min(best, values[i]);
  return std::find(values, values + n, best) - values;
}

// Lance and Williams: what it costs to merge the union of two with each of the others.
TAXARBOR_CLONES void unite(const double* kept, const double* gone, const double* size, double a,
    double b, double own, int64_t n, double* out) {
  for (int64_t i = 0; i < n; ++i) {
    const double c = size[i];
    const double cost = ((a + c) * kept[i] + (b + c) * gone[i] - c * own) / (a + b + c);
    out[i] = cost > own ? cost : own;
  }
}

class Agglomeration {
 public:
  // Products of all pairs at once, from the features as rows. Those that are gone, and a cluster
  // with itself, cost infinity.
  template <class T> Agglomeration(const T* X, int64_t n, int64_t p)
      : n_(n), cost_(n * n), size_(n, 1.0), united_(n) {
    std::vector<T> features(n * p);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < p; ++j) features[j * n + i] = X[i * p + j];
    const std::vector<int64_t> order = numbers(std::max(n, p));
    const auto view = view_dense(features.data(), p, n);
    view->set_center(std::vector<double>(n));
    view->gram(order.data(), p, order.data(), n, cost_.data());
    std::vector<double> squares(n);
    for (int64_t i = 0; i < n; ++i) squares[i] = cost_[i * n + i];
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        const double distance = squares[i] + squares[j] - 2.0 * cost_[i * n + j];
        cost_[i * n + j] = i == j ? Gone : 0.5 * std::max(distance, 0.0);
      }
  }

  // Merge until one cluster is left. A merge raises the squared distances from the means by its
  // height, which is at least that of the merges below it: so they can be sorted afterwards.
  std::vector<Merge> run() {
    std::vector<Merge> merges;
    std::vector<int64_t> chain;
    int64_t first = 0;  // of those that are left
    while (static_cast<int64_t>(merges.size()) < n_ - 1) {
      while (size_[first] == 0.0) ++first;
      if (chain.empty()) chain.push_back(first);
      const int64_t here = chain.back(), before = chain.size() > 1 ? chain[chain.size() - 2] : -1;
      const double* cost = cost_.data() + here * n_;
      const int64_t next = least_of(cost, n_);
      if (next == n_ || !(cost[next] < Gone)) refuse("the rows' squared distances must be finite");
      if (before < 0 || cost[next] < cost[before]) {  // of ties the one before
        chain.push_back(next);
        continue;
      }
      chain.resize(chain.size() - 2);
      const int64_t kept = std::min(here, before), gone = std::max(here, before);
      merges.push_back({cost_[kept * n_ + gone], kept, gone});
      merge(kept, gone);
    }
    std::stable_sort(merges.begin(), merges.end(),
        [](const Merge& a, const Merge& b) { return a.height < b.height; });
    return merges;
  }

 private:
  void merge(int64_t kept, int64_t gone) {
    double* own = &cost_[kept * n_];
    unite(own, &cost_[gone * n_], size_.data(), size_[kept], size_[gone], own[gone], n_,
        united_.data());
    united_[kept] = united_[gone] = Gone;
    std::copy(united_.begin(), united_.end(), own);
    size_[kept] += size_[gone];
    size_[gone] = 0.0;
    for (int64_t i = 0; i < n_; ++i) {
      if (size_[i] == 0.0) continue;
      cost_[i * n_ + kept] = united_[i];
      cost_[i * n_ + gone] = Gone;
    }
  }

  const int64_t n_;
  std::vector<double> cost_, size_, united_;
};

// Labels of K clusters, numbered by their first rows.
void cut(const std::vector<Merge>& merges, int64_t n, int64_t K, int32_t* labels) {
  std::vector<int64_t> root = numbers(n);
  const auto find = [&](int64_t i) {
    while (root[i] != i) i = root[i] = root[root[i]];
    return i;
  };
  for (int64_t m = 0; m < n - K; ++m) {
    const int64_t a = find(merges[m].kept), b = find(merges[m].gone);
    root[std::max(a, b)] = std::min(a, b);
  }
  int32_t next = 0;
  for (int64_t i = 0; i < n; ++i) labels[i] = find(i) == i ? next++ : labels[find(i)];
}

}  // namespace

template <class T>
void ward_clusters(const T* X, int64_t n, int64_t p, int64_t K, int32_t* labels) {
  cut(Agglomeration(X, n, p).run(), n, K, labels);
}
template void ward_clusters(const float*, int64_t, int64_t, int64_t, int32_t*);
template void ward_clusters(const double*, int64_t, int64_t, int64_t, int32_t*);

namespace {

nb::object ward(const Given& given, int64_t K) {
  return of_type("X", given, [&](auto number) {
    const auto* X = checked<decltype(number)>("X", given, {-1, -1});
    const size_t n = given.shape(0), p = given.shape(1);
    if (K < 1 || K > static_cast<int64_t>(n))
      refuse("n_clusters must lie between one and one per row, ", n, "; got ", K);
    return filled<int32_t>({n}, [&](int32_t* out) { ward_clusters(X, n, p, K, out); });
  });
}

// ---- many points of given weights: no pair is kept, costs are found anew ------------------------

// out (size) = w_i w / (w_i + w) |x_i - x|^2 for some of the points and the one here.
TAXARBOR_CLONES void union_costs(const double* X, const double* weights, const int64_t* some,
    int64_t size, int64_t p, int64_t here, double* out) {
  using V = Lanes<double>::type;
  constexpr int64_t L = Lanes<double>::count;
  const double* x = X + here * p;
  for (int64_t k = 0; k < size; ++k) {
    const double* other = X + some[k] * p;
    V even{}, odd{}, a, b;
    int64_t j = 0;
    for (; j + 2 * L <= p; j += 2 * L) {
      load<double>(a, x + j), load<double>(b, other + j), a -= b, even += a * a;
      load<double>(a, x + j + L), load<double>(b, other + j + L), a -= b, odd += a * a;
    }
    double total = 0.0;
    even += odd;
    for (int64_t l = 0; l < L; ++l) total += even[l];
    for (; j < p; ++j) total += (x[j] - other[j]) * (x[j] - other[j]);
    const double w = weights[some[k]], own = weights[here];
    out[k] = w * own / (w + own) * total;
  }
}

// Merge points until one is left; of two that merge, the first stands for both.
std::vector<Merge> link(std::vector<double> X, std::vector<double> weights, int64_t p) {
  std::vector<int64_t> alive = numbers(weights.size()), chain;
  std::vector<double> costs(alive.size());
  std::vector<Merge> merges;
  Listener signals;
  while (alive.size() > 1) {
    signals.listen();
    if (chain.empty()) chain.push_back(alive.front());
    const int64_t here = chain.back(), before = chain.size() > 1 ? chain[chain.size() - 2] : -1;
    union_costs(X.data(), weights.data(), alive.data(), alive.size(), p, here, costs.data());
    int64_t next = -1;  // the cheapest; of ties the one before in the chain, then the first
    double least = Gone;
    for (size_t k = 0; k < alive.size(); ++k)
      if (alive[k] != here &&
          (next < 0 || costs[k] < least || (costs[k] == least && alive[k] == before)))
        next = alive[k], least = costs[k];
    if (next != before) {
      if (chain.size() == alive.size()) refuse("distances of points must be finite numbers");
      chain.push_back(next);
      continue;
    }
    chain.resize(chain.size() - 2);
    const int64_t kept = std::min(here, before), gone = std::max(here, before);
    merges.push_back({least, kept, gone});
    const double sum = weights[kept] + weights[gone], share = weights[gone] / sum;
    for (int64_t j = 0; j < p; ++j) X[kept * p + j] += share * (X[gone * p + j] - X[kept * p + j]);
    weights[kept] = sum;
    alive.erase(std::lower_bound(alive.begin(), alive.end(), gone));
  }
  return merges;
}

nb::object ward_links(const Given& points, const Given& weights) {
  const double* X = checked<double>("points", points, {-1, -1});
  const int64_t n = points.shape(0), p = points.shape(1);
  const double* w = checked<double>("weights", weights, {n});
  checked_count("the number of points", n, 1);
  for (int64_t i = 0; i < n; ++i)
    if (!(w[i] > 0.0)) refuse("weights must be positive; got ", w[i]);
  const size_t size = n - 1;
  Owned<double> costs(size);
  const nb::object pairs = filled<int64_t>({size, 2}, [&](int64_t* out) {
    const auto merges = link(std::vector<double>(X, X + n * p), std::vector<double>(w, w + n), p);
    for (size_t m = 0; m < size; ++m) {
      out[2 * m] = merges[m].kept, out[2 * m + 1] = merges[m].gone;
      costs.data[m] = merges[m].height;
    }
  });
  return nb::make_tuple(pairs, costs.shaped({size}));
}

}  // namespace

void bind_ward(nb::module_& m) {
  using namespace nb::literals;
  m.def("ward", &ward, "X"_a, "n_clusters"_a,
      nb::sig("def ward(X: Array, n_clusters: int) -> NDArray[int32]"));
  m.def("ward_links", &ward_links, "points"_a, "weights"_a,
      nb::sig("def ward_links(points: Array, weights: Array) -> tuple[IndexArray, Array]"),
      "Pairs that are merged, each by their first points, and what each adds to the scatter.");
}
