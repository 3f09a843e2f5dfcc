// Where the rules of a tree send rows: a tile of rows goes down the tree while it is in the cache.
//
// A rule chooses among K targets by linear scores of a few features, sum_j w_kj (x_j - c_j) + b_k;
// the highest score wins, the first of ties. A target is another rule, further on, or a leaf. What
// is said of a row depends on that row alone, and no product is fused with a sum in this file
// (CMakeLists.txt): memory, disk and any machine agree to the bit.
#include "rows.hpp"

namespace {

struct Rule {
  int64_t begin, end;  // its features
  int64_t n_targets;
  const double* weights;   // (n_features, n_targets)
  const double* offsets;   // (n_targets)
  const int32_t* targets;  // (n_targets); a leaf k is ~k
  double offset;           // of two targets, of the difference of their scores
};

struct Rules {
  std::vector<Rule> all;
  std::vector<int32_t> features;  // where to find each in a row
  std::vector<double> centers;
  std::vector<double> differences;  // of rules of two targets: weights of the first less the second
  std::vector<int32_t> slots;       // of sparse rows: where a column is in a tile, -1 if in no rule
  int64_t n_slots = 0;
  int64_t most_targets = 2;
  int64_t width(int64_t p) const { return slots.empty() ? p : std::max<int64_t>(n_slots, 1); }
};

// Check the arrays of a tree: rows end at a leaf, as targets only point forward.
Rules checked_rules(nb::handle tree, int64_t p, int64_t n_leaves) {
  const Fields fields{tree};
  const auto starts = fields.get<Given>("starts"), features = fields.get<Given>("features"),
             centers = fields.get<Given>("centers"), weights = fields.get<Given>("weights"),
             firsts = fields.get<Given>("firsts"), offsets = fields.get<Given>("offsets"),
             targets = fields.get<Given>("targets");
  const int64_t size = features.size(), n_targets = targets.size(), n_weights = weights.size();
  const int64_t* start = checked_range<int64_t>("starts", starts, {-1}, 0, size + 1);
  const int64_t n_rules = static_cast<int64_t>(starts.shape(0)) - 1;
  checked_count("the number of rules", n_rules, 0);
  const int64_t* first = checked_range<int64_t>("firsts", firsts, {n_rules + 1}, 0, n_targets + 1);
  const int32_t* feature = checked_range<int32_t>("features", features, {size}, 0, p);
  const double* center = checked_finite("centers", centers, {size});
  const double* weight = checked_finite("weights", weights, {n_weights});
  const double* offset = checked_finite("offsets", offsets, {n_targets});
  const int32_t* target = checked_range<int32_t>(
      "targets", targets, {n_targets}, -n_leaves, std::max<int64_t>(n_rules, 1));
  if (start[0] != 0 || start[n_rules] != size || first[0] != 0 || first[n_rules] != n_targets)
    refuse("starts and firsts must run from 0 to the numbers of features and targets");
  if (n_rules == 0 && n_leaves > 1) refuse("without rules there is one leaf; got ", n_leaves);
  Rules rules;
  rules.features.assign(feature, feature + size);
  rules.centers.assign(center, center + size);
  rules.differences.assign(size, 0.0);
  int64_t used = 0;
  for (int64_t r = 0; r < n_rules; ++r) {
    const int64_t begin = start[r], end = start[r + 1], K = first[r + 1] - first[r];
    if (begin > end || K < 2)
      refuse("starts must not fall, and rule ", r, " must have two targets at least");
    for (int64_t k = first[r]; k < first[r + 1]; ++k)
      if (target[k] >= 0 && target[k] <= r)
        refuse("targets of rule ", r, " must be leaves or later rules; got ", target[k]);
    if (used + (end - begin) * K > n_weights)
      refuse("weights must hold one number per feature and target of each rule; got ", n_weights);
    Rule rule{begin, end, K, weight + used, offset + first[r], target + first[r],
        offset[first[r]] - offset[first[r] + 1]};
    for (int64_t e = begin; e < end && K == 2; ++e) {
      rules.differences[e] = rule.weights[2 * (e - begin)] - rule.weights[2 * (e - begin) + 1];
      if (end - begin > 1) rule.offset -= rules.differences[e] * center[e];
    }
    rules.all.push_back(rule);
    rules.most_targets = std::max(rules.most_targets, K);
    used += (end - begin) * K;
  }
  if (used != n_weights)
    refuse("weights must hold ", used, " numbers, one per feature and target; got ", n_weights);
  return rules;
}

// Let rules speak of the columns that any of them uses, by their place among these.
void use_slots(Rules& rules, int64_t p) {
  rules.slots.assign(p, -1);
  for (int32_t& feature : rules.features) {
    if (rules.slots[feature] < 0) rules.slots[feature] = static_cast<int32_t>(rules.n_slots++);
    feature = rules.slots[feature];
  }
}

constexpr int64_t Together = 8;  // rows whose sums do not wait for one another

template <class T, int64_t R> TAXARBOR_INLINE void choose_of_two(
    const Rules& rules, const Rule& rule, const T* const* rows, const int32_t* ids, int32_t* out) {
  const T* x[R];
  double total[R] = {};
  for (int64_t r = 0; r < R; ++r) x[r] = rows[ids[r]];
  for (int64_t e = rule.begin; e < rule.end; ++e) {
    const int64_t feature = rules.features[e];
    const double weight = rules.differences[e];
    for (int64_t r = 0; r < R; ++r) total[r] += weight * static_cast<double>(x[r][feature]);
  }
  for (int64_t r = 0; r < R; ++r) out[r] = total[r] + rule.offset < 0.0;
}

// Which of its targets a rule sends each of some rows to.
template <class T> TAXARBOR_INLINE void choose(const Rules& rules, const Rule& rule,
    const T* const* rows, const int32_t* ids, int64_t n, double* scores, int32_t* out) {
  const int32_t* features = rules.features.data();
  const double *centers = rules.centers.data(), *differences = rules.differences.data();
  const int64_t begin = rule.begin, end = rule.end, K = rule.n_targets;
  if (K == 2 && end - begin == 1) {  // a threshold, exact to the last bit
    const double center = centers[begin], weight = differences[begin], offset = rule.offset;
    for (int64_t i = 0; i < n; ++i)
      out[i] =
          weight * (static_cast<double>(rows[ids[i]][features[begin]]) - center) + offset < 0.0;
    return;
  }
  if (K == 2) {
    int64_t i = 0;
    for (; i + Together <= n; i += Together)
      choose_of_two<T, Together>(rules, rule, rows, ids + i, out + i);
    for (; i < n; ++i) choose_of_two<T, 1>(rules, rule, rows, ids + i, out + i);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    const T* x = rows[ids[i]];
    std::copy(rule.offsets, rule.offsets + K, scores);
    for (int64_t e = begin; e < end; ++e) {
      const double value = static_cast<double>(x[features[e]]) - centers[e];
      const double* weights = rule.weights + (e - begin) * K;
      for (int64_t k = 0; k < K; ++k) scores[k] += weights[k] * value;
    }
    out[i] = static_cast<int32_t>(std::max_element(scores, scores + K) - scores);
  }
}

// Some rows that wait at a rule: ids[begin:end].
struct Waiting {
  int32_t rule;
  int64_t begin, end;
};

// What one thread works with.
template <class T> struct Bench {
  std::vector<const T*> rows;
  std::vector<T> cells;  // of sparse rows, and of those with gaps; zeros between sparse tiles
  std::vector<int32_t> ids, chosen, moved;
  std::vector<int64_t> counts;
  std::vector<double> scores;
  std::vector<Waiting> waiting;
};

// Send the rows of a tile down the tree, rule by rule.
template <class T>
TAXARBOR_INLINE void descend_tile(const Rules& rules, int64_t n, Bench<T>& bench, int32_t* labels) {
  if (rules.all.empty()) {
    std::fill(labels, labels + n, 0);
    return;
  }
  for (int64_t i = 0; i < n; ++i) bench.ids[i] = static_cast<int32_t>(i);
  bench.waiting.assign(1, {0, 0, n});
  while (!bench.waiting.empty()) {
    const Waiting here = bench.waiting.back();
    bench.waiting.pop_back();
    const Rule& rule = rules.all[here.rule];
    int32_t *ids = bench.ids.data() + here.begin, *chosen = bench.chosen.data();
    const int64_t size = here.end - here.begin, K = rule.n_targets;
    choose(rules, rule, bench.rows.data(), ids, size, bench.scores.data(), chosen);
    int64_t* next = bench.counts.data();  // where the next row of each target goes
    std::fill(next, next + K, 0);
    for (int64_t i = 0; i < size; ++i) ++next[chosen[i]];
    int64_t at = 0;
    for (int64_t k = 0; k < K; ++k) {
      const int64_t count = next[k];
      next[k] = at;
      if (count && rule.targets[k] >= 0)
        bench.waiting.push_back({rule.targets[k], here.begin + at, here.begin + at + count});
      at += count;
    }
    for (int64_t i = 0; i < size; ++i) {
      const int32_t target = rule.targets[chosen[i]];
      if (target < 0) labels[ids[i]] = ~target;
      bench.moved[next[chosen[i]]++] = ids[i];
    }
    std::copy(bench.moved.begin(), bench.moved.begin() + size, ids);
  }
}

template <class T> TAXARBOR_INLINE bool is_finite(const T* x, int64_t size) {
  constexpr int64_t Lanes = 8;
  T nothing[Lanes] = {};  // zero, unless a value is not finite
  int64_t j = 0;
  for (; j + Lanes <= size; j += Lanes)
    for (int64_t l = 0; l < Lanes; ++l) nothing[l] += x[j + l] - x[j + l];
  for (; j < size; ++j) nothing[0] += x[j] - x[j];
  T sum = 0;
  for (int64_t l = 0; l < Lanes; ++l) sum += nothing[l];
  return sum == 0;
}

// Take the rows of a tile as they are, or fill cells; return the first that is refused, or -1.
template <class T> TAXARBOR_INLINE int64_t take_tile(const View<T>& rows, int64_t first, int64_t n,
    const Rules& rules, const double* fill, Bench<T>& bench) {
  const int64_t width = rules.width(rows.n_features());
  int64_t refused = -1;
  for (int64_t i = 0; i < n; ++i) {
    const Entries<T> row = rows.entries(first + i);
    const bool is_plain = is_finite(row.values, row.size);
    bench.rows[i] = row.values;
    if (is_plain && !row.columns) continue;
    if (bench.cells.empty()) bench.cells.resize(bench.rows.size() * width);
    T* cells = bench.cells.data() + i * width;
    bench.rows[i] = cells;
    for (int64_t e = 0; e < row.size; ++e) {
      const int64_t j = row.columns ? row.columns[e] : e, at = row.columns ? rules.slots[j] : e;
      const bool is_gap = !is_plain && fill && std::isnan(row.values[e]);
      if (!is_plain && !is_gap && !std::isfinite(row.values[e]) && refused < 0) refused = first + i;
      if (at >= 0) cells[at] = is_gap ? static_cast<T>(fill[j]) : row.values[e];
    }
  }
  return refused;
}

// Route rows first to last; return the first that holds what is refused, or -1.
template <class T> TAXARBOR_CLONES int64_t route_rows(const View<T>& rows, int64_t first,
    int64_t last, const Rules& rules, const double* fill, int32_t* labels) {
  const int64_t width = rules.width(rows.n_features());
  const int64_t tile = std::clamp<int64_t>((int64_t{1} << 17) / (width * sizeof(T)), 32, 1024);
  Bench<T> bench;
  bench.rows.resize(tile);
  for (auto* ids : {&bench.ids, &bench.chosen, &bench.moved}) ids->resize(tile);
  bench.counts.resize(rules.most_targets), bench.scores.resize(rules.most_targets);
  int64_t refused = -1;
  for (int64_t begin = first; begin < last; begin += tile) {
    const int64_t n = std::min(tile, last - begin);
    const int64_t bad = take_tile(rows, begin, n, rules, fill, bench);
    if (refused < 0) refused = bad;
    descend_tile(rules, n, bench, labels + begin);
    for (int64_t i = 0; i < n && !rules.slots.empty(); ++i) {
      const Entries<T> row = rows.entries(begin + i);
      for (int64_t e = 0; e < row.size; ++e)
        if (const int32_t at = rules.slots[row.columns[e]]; at >= 0)
          bench.cells[i * width + at] = 0;
    }
  }
  return refused;
}

nb::object route(const Data& data, nb::handle tree, const std::optional<Given>& fill) {
  return data.visit([&](const auto& rows) {
    const int64_t n = rows.n_rows(), p = rows.n_features();
    Rules rules = checked_rules(tree, p, Fields{tree}.count("n_leaves", 1));
    if (n > 0 && rows.entries(0).columns) use_slots(rules, p);
    const double* filling = fill ? checked_finite("fill", *fill, {p}) : nullptr;
    const Owned<int32_t> labels(n);
    const int parts = static_cast<int>(std::clamp<int64_t>(n / 2048, 1, 64));
    std::vector<int64_t> bad(parts, -1);
    unlocked([&] {
      for_parts(n, parts, rows.threads(), [&](int part, int64_t first, int64_t last) {
        bad[part] = route_rows(rows, first, last, rules, filling, labels.data);
      });
    });
    const auto refused = std::find_if(bad.begin(), bad.end(), [](int64_t i) { return i >= 0; });
    return nb::object(nb::make_tuple(
        labels.shaped({static_cast<size_t>(n)}), refused == bad.end() ? int64_t{-1} : *refused));
  });
}

// ---- distances from the means of clusters -------------------------------------------------------

// Points from which distances are taken: the root of sum_j ((x_j - c_j) s_j)^2.
struct Centers {
  const double* at;             // (n_centers, p)
  const double* factors;        // (p)
  const double* fill;           // what stands for NaN
  std::vector<double> squares;  // of each centre, times the factors
};

template <class T> TAXARBOR_INLINE double dense_distance(
    const T* x, const Centers& centers, int32_t center, int64_t p) {
  const double *c = centers.at + center * p, *s = centers.factors, *fill = centers.fill;
  return std::sqrt(sum_terms<true>(p, [&](int64_t j) {
    // Both are read, whichever is taken: of a masked read of fill GCC 12.2 lost half of the lanes.
    const double value = x[j], filling = fill[j];
    const double away = ((value == value ? value : filling) - c[j]) * s[j];
    return away * away;
  }));
}

// From the square of the centre: only cells that are stored differ from zero.
template <class T> TAXARBOR_INLINE double sparse_distance(
    const Entries<T>& row, const Centers& centers, int32_t center, int64_t p) {
  const double *c = centers.at + center * p, *s = centers.factors;
  double sum = centers.squares[center];
  for (int64_t e = 0; e < row.size; ++e) {
    const int32_t j = row.columns[e];
    const double value = std::isnan(row.values[e]) ? centers.fill[j] : row.values[e];
    const double away = (value - c[j]) * s[j], zero = c[j] * s[j];
    sum += away * away - zero * zero;
  }
  return std::sqrt(std::max(sum, 0.0));
}

template <class T> TAXARBOR_CLONES void distance_rows(const View<T>& rows, int64_t first,
    int64_t last, const Centers& centers, const int32_t* labels, double* out) {
  for (int64_t i = first; i < last; ++i) {
    out[i] = std::numeric_limits<double>::infinity();
    if (labels[i] < 0) continue;
    const Entries<T> row = rows.entries(i);
    out[i] = row.columns ? sparse_distance(row, centers, labels[i], rows.n_features())
                         : dense_distance(row.values, centers, labels[i], rows.n_features());
  }
}

nb::object distances(const Data& data, const Given& labels, const Given& points,
    const Given& factors, const Given& fill) {
  return data.visit([&](const auto& rows) {
    const int64_t n = rows.n_rows(), p = rows.n_features();
    Centers centers{checked_finite("centers", points, {-1, p}),
        checked_weights("factors", factors, p), checked_finite("fill", fill, {p}), {}};
    const int64_t m = points.shape(0);
    const int32_t* own = checked_below<int32_t>("labels", labels, n, m);
    for (int64_t k = 0; k < m; ++k) {
      double sum = 0.0;
      for (int64_t j = 0; j < p; ++j) {
        const double zero = centers.at[k * p + j] * centers.factors[j];
        sum += zero * zero;
      }
      centers.squares.push_back(sum);
    }
    const int parts = static_cast<int>(std::clamp<int64_t>(n / 2048, 1, 64));
    return filled<double>({static_cast<size_t>(n)}, [&](double* out) {
      for_parts(n, parts, rows.threads(), [&](int, int64_t first, int64_t last) {
        distance_rows(rows, first, last, centers, own, out);
      });
    });
  });
}

// Positions by label, in their order within a label; those of a negative label are left out.
nb::object sort_by_label(const Given& labels, int64_t K) {
  checked_count("n_labels", K, 1);
  const int64_t n = labels.size();
  const auto sort = [&](auto number) {
    using Label = decltype(number);
    const Label* own = checked_below<Label>("labels", labels, n, K);
    std::vector<int64_t> next(K + 1);
    for (int64_t i = 0; i < n; ++i)
      if (own[i] >= 0) ++next[own[i] + 1];
    for (int64_t k = 0; k < K; ++k) next[k + 1] += next[k];
    return filled<int64_t>({static_cast<size_t>(next[K])}, [&](int64_t* out) {
      for (int64_t i = 0; i < n; ++i)
        if (own[i] >= 0) out[next[own[i]]++] = i;
    });
  };
  return labels.dtype() == nb::dtype<int32_t>() ? sort(int32_t{}) : sort(int64_t{});
}

}  // namespace

void bind_route(nb::module_& m) {
  using namespace nb::literals;
  m.def("route", &route, "data"_a, "tree"_a, "fill"_a.none() = nb::none(),
      nb::sig("def route(data: Data, tree: object, fill: Array | None = None) "
              "-> tuple[NDArray[int32], int]"),
      "The leaf of each row, by the fields of a RoutingTable; and the first row that is "
      "refused.\n\n"
      "NaN stands for the values of `fill`, if there are any. A row is refused for a value that "
      "is\n"
      "not finite; -1 if none is.");
  m.def("distances", &distances, "data"_a, "labels"_a, "centers"_a, "factors"_a, "fill"_a,
      nb::sig("def distances(data: Data, labels: NDArray[int32], centers: Array, factors: Array, "
              "fill: Array) -> Array"),
      "The distance of each row from the center of its label, differences times factors.\n\n"
      "NaN stands for the values of `fill`; rows of a negative label are infinitely far.");
  m.def("sort_by_label", &sort_by_label, "labels"_a, "n_labels"_a,
      nb::sig("def sort_by_label(labels: Labels, n_labels: int) -> IndexArray"),
      "Positions by label, in their order within a label, without those of a negative label.");
}
