// Sweeps over dense rows. Row i of a node is row index[i] of X, less the centre; nothing is
// copied but the small panels of `gram`.
#include "rows.hpp"

namespace {

template <class T> struct Block {
  const T* X;
  int64_t n_features;
  const int64_t* index;  // null: row i is row i of X
  const T* center;
  const T* at(int64_t i) const { return X + (index ? index[i] : i) * n_features; }
};

// Gathered rows arrive by prefetch, a few rows ahead.
template <class T> TAXARBOR_INLINE void fetch(const T* x, int64_t p) {
  for (int64_t j = 0; j < p; j += 64 / sizeof(T)) TAXARBOR_PREFETCH(x + j);
}
template <class T> TAXARBOR_INLINE void fetch_ahead(const Block<T>& d, int64_t i, int64_t last) {
  if (d.index && i + 4 < last) fetch(d.at(i + 4), d.n_features);
}

// ---- (x - c) . w for several models or rows at once: what they share is read once ------------

constexpr int64_t Four = 4;

// out (Rows, n_models): Models of them, for rows x.
template <class T, int Models, int Rows> TAXARBOR_INLINE void dot_models(
    const T* const* x, const T* c, const T* w, int64_t p, T* out, int64_t n_models) {
  using V = typename Lanes<T>::type;
  constexpr int64_t L = Lanes<T>::count;
  V even[Rows][Models] = {}, odd[Rows][Models] = {};
  int64_t j = 0;
  for (; j + 2 * L <= p; j += 2 * L) {
    V c0, c1, w0[Models], w1[Models];
    load<T>(c0, c + j), load<T>(c1, c + j + L);
    for (int m = 0; m < Models; ++m)
      load<T>(w0[m], w + m * p + j), load<T>(w1[m], w + m * p + j + L);
    for (int r = 0; r < Rows; ++r) {
      V x0, x1;
      load<T>(x0, x[r] + j), load<T>(x1, x[r] + j + L);
      x0 -= c0, x1 -= c1;
      for (int m = 0; m < Models; ++m) even[r][m] += x0 * w0[m], odd[r][m] += x1 * w1[m];
    }
  }
  T sum[Rows][Models] = {}, lanes[Rows][Models][L];
  for (; j < p; ++j)
    for (int r = 0; r < Rows; ++r)
      for (int m = 0; m < Models; ++m) sum[r][m] += (x[r][j] - c[j]) * w[m * p + j];
  for (int r = 0; r < Rows; ++r)
    for (int m = 0; m < Models; ++m) store<T>(lanes[r][m], even[r][m] + odd[r][m]);
  for (int64_t l = 0; l < L; ++l)
    for (int r = 0; r < Rows; ++r)
      for (int m = 0; m < Models; ++m) sum[r][m] += lanes[r][m][l];
  for (int r = 0; r < Rows; ++r)
    for (int m = 0; m < Models; ++m) out[r * n_models + m] = sum[r][m];
}

// The same for all models; eight sums at a time hide the latency.
template <class T, int Rows> TAXARBOR_INLINE void dot_all(
    const T* const* x, const T* c, const T* W, int64_t n_models, int64_t p, T* out) {
  constexpr int Two = Rows < 2 ? 1 : 2;
  int64_t m = 0;
  for (; m + 4 <= n_models; m += 4)
    for (int r = 0; r < Rows; ++r)
      dot_models<T, 4, 1>(x + r, c, W + m * p, p, out + r * n_models + m, n_models);
  for (; m + 2 <= n_models; m += 2)
    for (int r = 0; r < Rows; r += Two)
      dot_models<T, 2, Two>(x + r, c, W + m * p, p, out + r * n_models + m, n_models);
  for (; m < n_models; ++m) dot_models<T, 1, Rows>(x, c, W + m * p, p, out + m, n_models);
}

template <class T> TAXARBOR_INLINE void dot_some(
    const Block<T>& d, const T* const* x, int64_t n, const T* W, int64_t n_models, T* out) {
  if (n == Four) return dot_all<T, Four>(x, d.center, W, n_models, d.n_features, out);
  for (int64_t r = 0; r < n; ++r)
    dot_all<T, 1>(x + r, d.center, W, n_models, d.n_features, out + r * n_models);
}

template <class T> TAXARBOR_CLONES void scores_rows(
    const Block<T>& d, const T* W, int64_t n_models, int64_t first, int64_t last, T* out) {
  for (int64_t i = first; i < last; i += Four) {
    const T* x[Four];
    const int64_t n = std::min(Four, last - i);
    for (int64_t r = 0; r < n; ++r) fetch_ahead(d, i + r, last), x[r] = d.at(i + r);
    dot_some(d, x, n, W, n_models, out + (i - first) * n_models);
  }
}

// ---- the same for many models: side by side in the lanes, some rows at a time ----------------

constexpr int64_t Short = 256;    // sums of as many terms are taken in T at most
constexpr int64_t TileRows = 4;   // 4 x 2 vectors of sums: enough to hide the latency
constexpr int64_t ManyRows = 16;  // whose features stay in the cache

template <class T> constexpr int64_t tile_columns() { return 2 * Lanes<T>::count; }

// Models by tiles, feature by feature, padded with zeros.
template <class T> std::vector<T> tiled(const double* W, int64_t n_models, int64_t p) {
  constexpr int64_t C = tile_columns<T>();
  std::vector<T> tiles((n_models + C - 1) / C * C * p);
  for (int64_t m = 0; m < n_models; ++m)
    for (int64_t j = 0; j < p; ++j)
      tiles[(m / C * p + j) * C + m % C] = static_cast<T>(W[m * p + j]);
  return tiles;
}

// acc = sum over j of z (TileRows, size) times w (size, columns), by their steps.
template <class T> TAXARBOR_INLINE void multiply(typename Lanes<T>::type (&acc)[TileRows][2],
    const T* z, int64_t row, int64_t step, const T* w, int64_t width, int64_t size) {
  for (int64_t j = 0; j < size; ++j) {
    typename Lanes<T>::type w0, w1;
    load<T>(w0, w + j * width), load<T>(w1, w + j * width + Lanes<T>::count);
    for (int64_t r = 0; r < TileRows; ++r) {
      acc[r][0] += z[r * row + j * step] * w0;
      acc[r][1] += z[r * row + j * step] * w1;
    }
  }
}

// Write z . w over some features, for the rows and models of a tile, or add it to what is there.
template <class T> TAXARBOR_INLINE void add_tile(const T* z, const T* w, int64_t size, bool adds,
    T* out, int64_t n, int64_t n_models, int64_t columns) {
  constexpr int64_t L = Lanes<T>::count, C = tile_columns<T>();
  typename Lanes<T>::type acc[TileRows][2] = {};
  multiply<T>(acc, z, size, 1, w, C, size);
  for (int64_t r = 0; r < TileRows; ++r, out += n_models) {  // unrolled: sums stay in registers
    if (r == n) break;
    if (columns == C && !adds) {
      store<T>(out, acc[r][0]), store<T>(out + L, acc[r][1]);
    } else {
      T lanes[C];
      store<T>(lanes, acc[r][0]), store<T>(lanes + L, acc[r][1]);
      for (int64_t m = 0; m < columns; ++m) out[m] = adds ? out[m] + lanes[m] : lanes[m];
    }
  }
}

template <class T> TAXARBOR_CLONES void scores_tiles(
    const Block<T>& d, const T* tiles, int64_t n_models, int64_t first, int64_t last, T* out) {
  constexpr int64_t C = tile_columns<T>();
  const int64_t p = d.n_features;
  T z[ManyRows * Short];
  for (int64_t i = first; i < last; i += ManyRows)
    for (int64_t from = 0; from < p; from += Short) {
      const int64_t n = std::min(ManyRows, last - i), size = std::min(Short, p - from);
      std::fill(z + n * size, z + ManyRows * size, T{0});
      for (int64_t r = 0; r < n; ++r) {
        if (from == 0) fetch_ahead(d, i + r, last);
        const T *x = d.at(i + r) + from, *c = d.center + from;
        for (int64_t j = 0; j < size; ++j) z[r * size + j] = x[j] - c[j];
      }
      for (int64_t m = 0; m < n_models; m += C)
        for (int64_t r = 0; r < n; r += TileRows)
          add_tile(z + r * size, tiles + m * p + from * C, size, from > 0,
              out + (i - first + r) * n_models + m, std::min(TileRows, n - r), n_models,
              std::min(C, n_models - m));
    }
}

// The position of each row's highest score, the first of ties: the score first, then its place. In
// lanes that do not depend on one another; the number of models is a multiple of theirs.
template <class T, int64_t L> TAXARBOR_INLINE void highest(
    const T* scores, const T* offsets, int64_t n_models, int64_t n, int64_t* out) {
  for (int64_t r = 0; r < n; ++r, scores += n_models) {
    T most[L];
    for (int64_t l = 0; l < L; ++l) most[l] = scores[l] + offsets[l];
    for (int64_t m = L; m < n_models; m += L)
      for (int64_t l = 0; l < L; ++l) {
        const T score = scores[m + l] + offsets[m + l];
        most[l] = score > most[l] ? score : most[l];
      }
    for (int64_t half = L / 2; half > 0; half /= 2)
      for (int64_t l = 0; l < half; ++l)
        most[l] = most[l + half] > most[l] ? most[l + half] : most[l];
    int64_t m = 0;
    for (; m + L < n_models; m += L) {
      int here = 0;
      for (int64_t l = 0; l < L; ++l) here |= scores[m + l] + offsets[m + l] == most[0];
      if (here) break;
    }
    int first = L - 1;
    for (int l = L - 1; l >= 0; --l) first = scores[m + l] + offsets[m + l] == most[0] ? l : first;
    out[r] = m + first;
  }
}

template <class T> TAXARBOR_CLONES void highest_rows(
    const T* scores, const T* offsets, int64_t n_models, int64_t n, int64_t* out) {
  constexpr int64_t C = tile_columns<T>();
  n_models % C ? highest<T, 1>(scores, offsets, n_models, n, out)
               : highest<T, C>(scores, offsets, n_models, n, out);
}

// ---- sums of r (x - c): short ones in T, long ones in double --------------------------------

// Add what `term` makes of the deviations of some rows, one row after the other, but for each
// feature together: the sums are read once.
template <int Rows, class T, class Term>
TAXARBOR_INLINE void add_terms(T* acc, const T* const* x, const T* c, int64_t p, const Term& term) {
  for (int64_t j = 0; j < p; ++j) {
    T sum = acc[j];
    for (int r = 0; r < Rows; ++r) sum = term(sum, x[r][j] - c[j], r);
    acc[j] = sum;
  }
}

template <int Rows, class T>
TAXARBOR_INLINE void add_rows(T* acc, const T* by, const T* const* x, const T* c, int64_t p) {
  T r[Rows];
  std::copy(by, by + Rows, r);
  add_terms<Rows>(acc, x, c, p, [&](T sum, T z, int k) { return sum + r[k] * z; });
}

template <class T> TAXARBOR_INLINE void flush(T* partial, double* sum, int64_t size) {
  for (int64_t j = 0; j < size; ++j) sum[j] += static_cast<double>(partial[j]);
  std::fill(partial, partial + size, T{0});
}

template <class T> TAXARBOR_CLONES void adjoint_rows(const Block<T>& d, const T* R,
    int64_t n_models, int64_t first, int64_t last, T* partial, double* sum) {
  const int64_t p = d.n_features;
  for (int64_t from = first; from < last; from += Short) {
    const int64_t to = std::min(from + Short, last);
    for (int64_t m = 0; m < n_models; ++m) {
      const T* rows[Short];
      T r[Short];
      int64_t n = 0, i = 0;
      for (int64_t at = from; at < to; ++at) {  // without a branch, as it would be unpredictable
        rows[n] = d.at(at), r[n] = R[at * n_models + m];
        n += r[n] != T{0};
      }
      T* own = partial + m * p;
      for (; i + Four <= n; i += Four) add_rows<Four>(own, r + i, rows + i, d.center, p);
      for (; i < n; ++i) add_rows<1>(own, r + i, rows + i, d.center, p);
    }
    flush(partial, sum, n_models * p);
  }
}

// ---- nearest centre and the sum of the rows of each, in one sweep ----------------------------

template <class T> TAXARBOR_CLONES void nearest_rows(const Block<T>& d, const T* centers,
    const T* offset, int64_t K, int64_t first, int64_t last, int32_t* labels, T* partial,
    double* sum) {
  const int64_t p = d.n_features;
  const T ones[Four] = {T{1}, T{1}, T{1}, T{1}};
  std::vector<T> dots(Four * K);
  std::vector<const T*> waiting(Four * K);  // rows of each centre, which are added by fours
  std::vector<uint8_t> count(K);
  for (int64_t from = first; from < last; from += Short) {
    const int64_t to = std::min(from + Short, last);
    for (int64_t i = from; i < to; i += Four) {
      const T* x[Four];
      const int64_t n = std::min(Four, to - i);
      for (int64_t r = 0; r < n; ++r) fetch_ahead(d, i + r, to), x[r] = d.at(i + r);
      dot_some(d, x, n, centers, K, dots.data());
      for (int64_t r = 0; r < n; ++r) {
        const T* dot = dots.data() + r * K;
        int64_t best = 0;
        for (int64_t k = 1; k < K; ++k)
          if (dot[k] - offset[k] > dot[best] - offset[best]) best = k;
        labels[i + r] = static_cast<int32_t>(best);
        const T** own = waiting.data() + best * Four;
        own[count[best]++] = x[r];
        if (count[best] < Four) continue;
        add_rows<Four>(partial + best * p, ones, own, d.center, p);
        count[best] = 0;
      }
    }
    for (int64_t k = 0; k < K; count[k++] = 0)
      for (int64_t r = 0; r < count[k]; ++r)
        add_rows<1>(partial + k * p, ones, &waiting[k * Four + r], d.center, p);
    flush(partial, sum, K * p);
  }
}

// ---- means, mean absolute deviations, squared norms ------------------------------------------

template <int Rows, class T>
TAXARBOR_INLINE void add_sizes(bool absolute, T* acc, const T* const* x, const T* c, int64_t p) {
  if (absolute)
    add_terms<Rows>(acc, x, c, p, [](T sum, T z, int) { return sum + std::abs(z); });
  else
    add_terms<Rows>(acc, x, c, p, [](T sum, T z, int) { return sum + z; });
}

template <class T> TAXARBOR_CLONES void mean_rows(
    const Block<T>& d, bool absolute, int64_t first, int64_t last, T* partial, double* sum) {
  const int64_t p = d.n_features;
  for (int64_t from = first; from < last; from += Short) {
    const int64_t to = std::min(from + Short, last);
    for (int64_t i = from; i < to; i += Four) {
      const T* x[Four];
      const int64_t n = std::min(Four, to - i);
      for (int64_t r = 0; r < n; ++r) fetch_ahead(d, i + r, to), x[r] = d.at(i + r);
      if (n == Four)
        add_sizes<Four>(absolute, partial, x, d.center, p);
      else
        for (int64_t r = 0; r < n; ++r) add_sizes<1>(absolute, partial, x + r, d.center, p);
    }
    flush(partial, sum, p);
  }
}

template <class T>
TAXARBOR_CLONES void norms_rows(const Block<T>& d, int64_t first, int64_t last, double* out) {
  for (int64_t i = first; i < last; ++i) {
    const T *x = d.at(i), *c = d.center;
    out[i] = sum_terms<false>(d.n_features, [&](int64_t j) {
      const double z = static_cast<double>(x[j] - c[j]);
      return z * z;
    });
  }
}

// ---- gram: sum over chosen rows of z z', z = the chosen features of x - c ---------------------

constexpr int64_t PanelRows = 256;

// Add panel' * panel to the upper triangle (by tiles) of `sum`; both tile edges divide `width`,
// the panel is padded with zeros.
template <class T>
TAXARBOR_INLINE void panel_product(const T* panel, int64_t n, int64_t width, double* sum) {
  constexpr int64_t L = Lanes<T>::count, Columns = tile_columns<T>();
  for (int64_t q = 0; q < width; q += Columns)
    for (int64_t p = 0; p < q + Columns; p += TileRows) {
      typename Lanes<T>::type acc[TileRows][2] = {};
      multiply<T>(acc, panel + p, 1, width, panel + q, width, n);
      for (int64_t r = 0; r < TileRows; ++r)
        for (int h = 0; h < 2; ++h) {
          T lanes[L];
          store<T>(lanes, acc[r][h]);
          for (int64_t l = 0; l < L; ++l)
            sum[(p + r) * width + q + h * L + l] += static_cast<double>(lanes[l]);
        }
    }
}

template <class T> TAXARBOR_CLONES void gram_rows(const Block<T>& d, const int64_t* positions,
    const T* weights, const int64_t* features, int64_t f, int64_t width, int64_t first,
    int64_t last, T* panel, double* sum) {
  const bool all = f == d.n_features;
  for (int64_t from = first; from < last; from += PanelRows) {
    const int64_t n = std::min(PanelRows, last - from);
    for (int64_t i = 0; i < n; ++i) {
      const T* x = d.at(positions[from + i]);
      T* z = panel + i * width;
      if (all)
        for (int64_t j = 0; j < f; ++j) z[j] = x[j] - d.center[j];
      else
        for (int64_t j = 0; j < f; ++j) z[j] = x[features[j]] - d.center[features[j]];
      if (!weights || weights[from + i] == T{1}) continue;
      const T root = std::sqrt(weights[from + i]);
      for (int64_t j = 0; j < f; ++j) z[j] *= root;
    }
    panel_product<T>(panel, n, width, sum);
  }
}

// ---- the view ----------------------------------------------------------------------------------

template <class T> class DenseView final : public View<T> {
 public:
  DenseView(const Given& X, int threads)
      : View<T>(X.shape(0), X.shape(1), threads), X_(X), x_(static_cast<const T*>(X.data())) {}
  DenseView(const T* X, int64_t n, int64_t p) : View<T>(n, p, 1), x_(X) {}
  DenseView(const DenseView& other, Index index)
      : View<T>(other, std::move(index)), X_(other.X_), x_(other.x_) {}

  std::shared_ptr<View<T>> with(Index index) const override {
    return std::make_shared<DenseView>(*this, std::move(index));
  }

  void set_center(std::vector<double> center) override {
    rounded_.assign(center.begin(), center.end());
    View<T>::set_center(std::move(center));
  }

  // About the first row: the centre of a constant feature is exact.
  void center_on_mean() override {
    const T* first = x_ + this->row(0) * p_;
    set_center(std::vector<double>(first, first + p_));
    this->move_to_mean();
  }

  void scores(const double* W, int64_t m, T* out) const override {
    const auto some = scorer(W, m);
    over_rows(m, [&](int64_t a, int64_t b) { some(a, b, out + a * m); });
  }

  void best(const double* W, const double* offsets, int64_t m, int64_t* out) const override {
    // Many models are made up to whole tiles by some that never win.
    constexpr int64_t C = tile_columns<T>();
    const int64_t width = m < C ? m : (m + C - 1) / C * C;
    std::vector<double> padded(W, W + m * p_);
    padded.resize(width * p_);
    std::vector<T> added(offsets, offsets + m);
    added.resize(width, -std::numeric_limits<T>::infinity());
    const auto some = scorer(padded.data(), width);
    over_rows(m, [&](int64_t a, int64_t b) {
      const int64_t size = std::min(std::max(ManyRows, 4096 / width), b - a);
      std::vector<T> scores(size * width);
      for (int64_t i = a; i < b; i += size) {
        const int64_t n = std::min(size, b - i);
        some(i, i + n, scores.data());
        highest_rows(scores.data(), added.data(), width, n, out + i);
      }
    });
  }

  void adjoint(const T* R, int64_t m, double* out) const override {
    const Block<T> d = block();
    this->add_up(n_, 2048, m * p_, out, [&](int64_t a, int64_t b, double* sum) {
      std::vector<T> partial(m * p_);
      adjoint_rows(d, R, m, a, b, partial.data(), sum);
    });
  }

  void nearest(const double* centers, int64_t K, int32_t* labels, double* out) const override {
    const Block<T> d = block();
    const std::vector<T> points(centers, centers + K * p_);
    std::vector<T> offset(K);
    for (int64_t k = 0; k < K; ++k) {
      double norm = 0.0;
      for (int64_t j = 0; j < p_; ++j) norm += centers[k * p_ + j] * centers[k * p_ + j];
      offset[k] = static_cast<T>(0.5 * norm);
    }
    this->add_up(n_, 2048, K * p_, out, [&](int64_t a, int64_t b, double* sum) {
      std::vector<T> partial(K * p_);
      nearest_rows(d, points.data(), offset.data(), K, a, b, labels, partial.data(), sum);
    });
  }

  void mean(bool absolute, double* out) const override {
    const Block<T> d = block();
    this->add_up(n_, 2048, p_, out, [&](int64_t a, int64_t b, double* sum) {
      std::vector<T> partial(p_);
      mean_rows(d, absolute, a, b, partial.data(), sum);
    });
    for (int64_t j = 0; j < p_; ++j) out[j] /= static_cast<double>(n_);
  }

  void gather(const std::vector<int64_t>& positions, T* out) const override {
    const Block<T> d = block();
    const int64_t n = positions.size();
    for (int64_t i = 0; i < n; ++i, out += p_) {
      if (i + 8 < n) fetch(d.at(positions[i + 8]), p_);
      const T* x = d.at(positions[i]);
      for (int64_t j = 0; j < p_; ++j) out[j] = x[j] - d.center[j];
    }
  }

  Entries<T> entries(int64_t i) const override { return {block().at(i), nullptr, p_}; }

  void norms(double* out) const override {
    const Block<T> d = block();
    over_rows(1, [&](int64_t a, int64_t b) { norms_rows(d, a, b, out); });
  }

  void gram(const int64_t* positions, int64_t n, const int64_t* features, int64_t f, double* out,
      const T* weights) const override {
    const Block<T> d = block();
    const int64_t width = (f + tile_columns<T>() - 1) / tile_columns<T>() * tile_columns<T>(),
                  size = width * width;
    std::vector<double> sums(size);
    this->add_up(n, 1024, size, sums.data(), [&](int64_t a, int64_t b, double* sum) {
      std::vector<T> panel(std::min(PanelRows, b - a) * width);
      gram_rows(d, positions, weights, features, f, width, a, b, panel.data(), sum);
    });
    for (int64_t p = 0; p < f; ++p)
      for (int64_t q = p; q < f; ++q) out[p * f + q] = out[q * f + p] = sums[p * width + q];
  }

 private:
  // What writes the scores of rows a to b for given models.
  auto scorer(const double* W, int64_t m) const {
    const bool many = m >= tile_columns<T>();
    return [=, d = block(), w = many ? tiled<T>(W, m, p_) : std::vector<T>(W, W + m * p_)](
               int64_t a, int64_t b, T* out) {
      many ? scores_tiles(d, w.data(), m, a, b, out) : scores_rows(d, w.data(), m, a, b, out);
    };
  }

  // Call body(first, last) for parts of the rows, whose results do not depend on one another.
  template <class Body> void over_rows(int64_t per_row, const Body& body) const {
    const int parts = part_count(n_, std::max<int64_t>(2048 / std::max<int64_t>(per_row, 1), 1), 1);
    for_parts(n_, parts, this->threads(), [&](int, int64_t a, int64_t b) { body(a, b); }, per_row);
  }

  Block<T> block() const {
    return {x_, p_, this->index_ ? this->index_->data() : nullptr, rounded_.data()};
  }

  using View<T>::n_;
  using View<T>::p_;
  const Given X_;  // keeps the memory alive
  const T* const x_;
  std::vector<T> rounded_;  // the centre, as T
};

}  // namespace

template <class T> std::shared_ptr<View<T>> view_dense(const Given& X, int threads) {
  return std::make_shared<DenseView<T>>(X, threads);
}
template <class T> std::shared_ptr<View<T>> view_dense(const T* X, int64_t n, int64_t p) {
  return std::make_shared<DenseView<T>>(X, n, p);
}
template std::shared_ptr<View<float>> view_dense(const float*, int64_t, int64_t);
template std::shared_ptr<View<double>> view_dense(const double*, int64_t, int64_t);
template std::shared_ptr<View<float>> view_dense(const Given&, int);
template std::shared_ptr<View<double>> view_dense(const Given&, int);
