// Sweeps over dense rows. Row i of a node is row index[i] of X, less the centre; nothing is
// copied but the small panels of `gram`.
#include <nanobind/stl/pair.h>

#include <cmath>

#include "view.hpp"

namespace {

template <class T> struct Data {
  const T* X;
  std::int64_t n_features;
  const std::int64_t* index;  // null: row i is row i of X
  const T* center;
  static inline const T* at(const Data& d, std::int64_t i) { return d.X + (d.index ? d.index[i] : i) * d.n_features; }
};

// Gathered rows arrive by prefetch, a few rows ahead.
template <class T>
TAXARBOR_INLINE void fetch_ahead(const Data<T>& d, std::int64_t i, std::int64_t last) {
  if (!d.index || i + 4 >= last) return;
  const T* x = Data<T>::at(d, i + 4);
  for (std::int64_t j = 0; j < d.n_features; j += 64 / sizeof(T)) TAXARBOR_PREFETCH(x + j);
}

// ---- (x - c) . w for several models at once: the row is read and centred once for all -------

template <class T, int Models>
TAXARBOR_INLINE void dot_models(const T* x, const T* c, const T* w, std::int64_t p, T* out) {
  using V = typename Lanes<T>::type;
  constexpr std::int64_t L = Lanes<T>::count;
  V even[Models] = {}, odd[Models] = {};
  std::int64_t j = 0;
  for (; j + 2 * L <= p; j += 2 * L) {
    V x0, x1, c0, c1;
    load<T>(x0, x + j), load<T>(x1, x + j + L), load<T>(c0, c + j), load<T>(c1, c + j + L);
    x0 -= c0, x1 -= c1;
    for (int m = 0; m < Models; ++m) {
      V w0, w1;
      load<T>(w0, w + m * p + j), load<T>(w1, w + m * p + j + L);
      even[m] += x0 * w0, odd[m] += x1 * w1;
    }
  }
  T tail[Models] = {};
  for (; j < p; ++j)
    for (int m = 0; m < Models; ++m) tail[m] += (x[j] - c[j]) * w[m * p + j];
  for (int m = 0; m < Models; ++m) {
    T lanes[L], sum = tail[m];
    store<T>(lanes, even[m] + odd[m]);
    for (std::int64_t l = 0; l < L; ++l) sum += lanes[l];
    out[m] = sum;
  }
}

template <class T>
TAXARBOR_INLINE void dot_all(const T* x, const T* c, const T* W, std::int64_t n_models, std::int64_t p, T* out) {
  std::int64_t m = 0;
  for (; m + 4 <= n_models; m += 4) dot_models<T, 4>(x, c, W + m * p, p, out + m);
  for (; m + 2 <= n_models; m += 2) dot_models<T, 2>(x, c, W + m * p, p, out + m);
  for (; m < n_models; ++m) dot_models<T, 1>(x, c, W + m * p, p, out + m);
}

template <class T>
TAXARBOR_INLINE void scores_block(const Data<T>& d, const T* W, std::int64_t n_models, std::int64_t first, std::int64_t last, T* out) {
  for (std::int64_t i = first; i < last; ++i) {
    fetch_ahead(d, i, last);
    dot_all(Data<T>::at(d, i), d.center, W, n_models, d.n_features, out + i * n_models);
  }
}
TAXARBOR_CLONES void scores_rows(const Data<float>& d, const float* W, std::int64_t m, std::int64_t a, std::int64_t b, float* out) { scores_block<float>(d, W, m, a, b, out); }
TAXARBOR_CLONES void scores_rows(const Data<double>& d, const double* W, std::int64_t m, std::int64_t a, std::int64_t b, double* out) { scores_block<double>(d, W, m, a, b, out); }

// ---- sums of r (x - c): short ones in T, long ones in double --------------------------------

constexpr std::int64_t Short = 256;

template <class T>
TAXARBOR_INLINE void add_row(T* acc, T r, const T* x, const T* c, std::int64_t p) {
  for (std::int64_t j = 0; j < p; ++j) acc[j] += r * (x[j] - c[j]);
}

template <class T>
TAXARBOR_INLINE void flush(T* partial, double* sum, std::int64_t size) {
  for (std::int64_t j = 0; j < size; ++j) sum[j] += static_cast<double>(partial[j]);
  std::fill(partial, partial + size, T{0});
}

template <class T>
TAXARBOR_INLINE void adjoint_block(const Data<T>& d, const T* R, std::int64_t n_models, std::int64_t first, std::int64_t last, T* partial, double* sum) {
  const std::int64_t p = d.n_features;
  for (std::int64_t from = first; from < last; from += Short) {
    const std::int64_t to = std::min(from + Short, last);
    for (std::int64_t i = from; i < to; ++i)
      for (std::int64_t m = 0; m < n_models; ++m)
        if (R[i * n_models + m] != T{0}) add_row(partial + m * p, R[i * n_models + m], Data<T>::at(d, i), d.center, p);
    flush(partial, sum, n_models * p);
  }
}
TAXARBOR_CLONES void adjoint_rows(const Data<float>& d, const float* R, std::int64_t m, std::int64_t a, std::int64_t b, float* partial, double* sum) { adjoint_block<float>(d, R, m, a, b, partial, sum); }
TAXARBOR_CLONES void adjoint_rows(const Data<double>& d, const double* R, std::int64_t m, std::int64_t a, std::int64_t b, double* partial, double* sum) { adjoint_block<double>(d, R, m, a, b, partial, sum); }

// ---- nearest centre and the sum of the rows of each, in one sweep ----------------------------

template <class T>
TAXARBOR_INLINE void nearest_block(const Data<T>& d, const T* centers, const T* offset, std::int64_t K, std::int64_t first, std::int64_t last, std::int32_t* labels, T* partial, double* sum) {
  const std::int64_t p = d.n_features;
  T* dots = partial + K * p;
  for (std::int64_t from = first; from < last; from += Short) {
    const std::int64_t to = std::min(from + Short, last);
    for (std::int64_t i = from; i < to; ++i) {
      fetch_ahead(d, i, to);
      const T* x = Data<T>::at(d, i);
      dot_all(x, d.center, centers, K, p, dots);
      std::int64_t best = 0;
      for (std::int64_t k = 1; k < K; ++k)
        if (dots[k] - offset[k] > dots[best] - offset[best]) best = k;
      labels[i] = static_cast<std::int32_t>(best);
      add_row(partial + best * p, T{1}, x, d.center, p);
    }
    flush(partial, sum, K * p);
  }
}
TAXARBOR_CLONES void nearest_rows(const Data<float>& d, const float* C, const float* o, std::int64_t K, std::int64_t a, std::int64_t b, std::int32_t* labels, float* partial, double* sum) { nearest_block<float>(d, C, o, K, a, b, labels, partial, sum); }
TAXARBOR_CLONES void nearest_rows(const Data<double>& d, const double* C, const double* o, std::int64_t K, std::int64_t a, std::int64_t b, std::int32_t* labels, double* partial, double* sum) { nearest_block<double>(d, C, o, K, a, b, labels, partial, sum); }

// ---- means, mean absolute deviations, squared norms ------------------------------------------

template <class T>
TAXARBOR_INLINE void moment_block(const Data<T>& d, bool absolute, std::int64_t first, std::int64_t last, T* partial, double* sum) {
  const std::int64_t p = d.n_features;
  const T* c = d.center;
  for (std::int64_t from = first; from < last; from += Short) {
    const std::int64_t to = std::min(from + Short, last);
    for (std::int64_t i = from; i < to; ++i) {
      fetch_ahead(d, i, to);
      const T* x = Data<T>::at(d, i);
      if (absolute)
        for (std::int64_t j = 0; j < p; ++j) partial[j] += std::abs(x[j] - c[j]);
      else
        for (std::int64_t j = 0; j < p; ++j) partial[j] += x[j] - c[j];
    }
    flush(partial, sum, p);
  }
}
TAXARBOR_CLONES void moment_rows(const Data<float>& d, bool absolute, std::int64_t a, std::int64_t b, float* partial, double* sum) { moment_block<float>(d, absolute, a, b, partial, sum); }
TAXARBOR_CLONES void moment_rows(const Data<double>& d, bool absolute, std::int64_t a, std::int64_t b, double* partial, double* sum) { moment_block<double>(d, absolute, a, b, partial, sum); }

template <class T>
TAXARBOR_INLINE void norms_block(const Data<T>& d, std::int64_t first, std::int64_t last, double* out) {
  constexpr int L = 8;  // interleaved totals: one order, yet vectorisable
  for (std::int64_t i = first; i < last; ++i) {
    const T* x = Data<T>::at(d, i);
    const T* c = d.center;
    double total[L] = {};
    std::int64_t j = 0;
    for (; j + L <= d.n_features; j += L)
      for (int l = 0; l < L; ++l) {
        const double z = static_cast<double>(x[j + l] - c[j + l]);
        total[l] += z * z;
      }
    for (; j < d.n_features; ++j) total[0] += static_cast<double>(x[j] - c[j]) * static_cast<double>(x[j] - c[j]);
    out[i] = 0.0;
    for (double t : total) out[i] += t;
  }
}
TAXARBOR_CLONES void norms_rows(const Data<float>& d, std::int64_t a, std::int64_t b, double* out) { norms_block<float>(d, a, b, out); }
TAXARBOR_CLONES void norms_rows(const Data<double>& d, std::int64_t a, std::int64_t b, double* out) { norms_block<double>(d, a, b, out); }

// ---- gram: sum over chosen rows of z z', z = the chosen features of x - c ---------------------

constexpr std::int64_t PanelRows = 256;
constexpr std::int64_t TileRows = 4;  // 4 x 2 vectors of sums: enough to hide the latency

template <class T> constexpr std::int64_t tile_columns() { return 2 * Lanes<T>::count; }

// Add panel' * panel to the upper triangle (by tiles) of `sum`; both tile edges divide `width`,
// the panel is padded with zeros.
template <class T>
TAXARBOR_INLINE void panel_product(const T* panel, std::int64_t n, std::int64_t width, double* sum) {
  using V = typename Lanes<T>::type;
  constexpr std::int64_t L = Lanes<T>::count, Columns = tile_columns<T>();
  for (std::int64_t q = 0; q < width; q += Columns)
    for (std::int64_t p = 0; p < q + Columns; p += TileRows) {
      V acc[TileRows][2] = {};
      const T* z = panel;
      for (std::int64_t i = 0; i < n; ++i, z += width) {
        V b0, b1;
        load<T>(b0, z + q), load<T>(b1, z + q + L);
        for (std::int64_t r = 0; r < TileRows; ++r) {
          acc[r][0] += z[p + r] * b0;
          acc[r][1] += z[p + r] * b1;
        }
      }
      for (std::int64_t r = 0; r < TileRows; ++r)
        for (int h = 0; h < 2; ++h) {
          T lanes[L];
          store<T>(lanes, acc[r][h]);
          for (std::int64_t l = 0; l < L; ++l) sum[(p + r) * width + q + h * L + l] += static_cast<double>(lanes[l]);
        }
    }
}

template <class T>
TAXARBOR_INLINE void gram_block(const Data<T>& d, const std::int64_t* positions, const std::int64_t* features, std::int64_t f, std::int64_t width, std::int64_t first, std::int64_t last, T* panel, double* sum) {
  const bool all = f == d.n_features;
  for (std::int64_t from = first; from < last; from += PanelRows) {
    const std::int64_t n = std::min(PanelRows, last - from);
    for (std::int64_t i = 0; i < n; ++i) {
      const T* x = Data<T>::at(d, positions[from + i]);
      T* z = panel + i * width;
      if (all)
        for (std::int64_t j = 0; j < f; ++j) z[j] = x[j] - d.center[j];
      else
        for (std::int64_t j = 0; j < f; ++j) z[j] = x[features[j]] - d.center[features[j]];
    }
    panel_product<T>(panel, n, width, sum);
  }
}
TAXARBOR_CLONES void gram_rows(const Data<float>& d, const std::int64_t* pos, const std::int64_t* f, std::int64_t nf, std::int64_t w, std::int64_t a, std::int64_t b, float* panel, double* sum) { gram_block<float>(d, pos, f, nf, w, a, b, panel, sum); }
TAXARBOR_CLONES void gram_rows(const Data<double>& d, const std::int64_t* pos, const std::int64_t* f, std::int64_t nf, std::int64_t w, std::int64_t a, std::int64_t b, double* panel, double* sum) { gram_block<double>(d, pos, f, nf, w, a, b, panel, sum); }

// ---- the view ----------------------------------------------------------------------------------

template <class T> class DenseView final : public View<T> {
 public:
  DenseView(const Mat<const T>& X, const std::optional<Positions>& index, const Vec<const T>& center, int threads)
      : d_{X.data(), static_cast<std::int64_t>(X.shape(1)), index ? index->data() : nullptr, center.data()},
        n_(static_cast<std::int64_t>(index ? index->shape(0) : X.shape(0))), threads_(threads) {}

  std::int64_t n_rows() const override { return n_; }
  std::int64_t n_features() const override { return d_.n_features; }

  void scores(const double* W, std::int64_t m, T* out) const override {
    const std::vector<T> weights(W, W + m * d_.n_features);
    for_parts(n_, part_count(n_, 2048, 1), threads_, [&](int, std::int64_t a, std::int64_t b) { scores_rows(d_, weights.data(), m, a, b, out); });
  }

  void adjoint(const T* R, std::int64_t m, double* out) const override {
    const std::int64_t size = m * d_.n_features;
    const int parts = part_count(n_, 2048, size * 8);
    std::vector<double> sums(parts * size);
    for_parts(n_, parts, threads_, [&](int part, std::int64_t a, std::int64_t b) {
      std::vector<T> partial(size);
      adjoint_rows(d_, R, m, a, b, partial.data(), sums.data() + part * size);
    });
    add_parts(sums, size, out);
  }

  void nearest(const double* centers, std::int64_t K, std::int32_t* labels, double* out) const override {
    const std::int64_t p = d_.n_features, size = K * p;
    const std::vector<T> points(centers, centers + size);
    std::vector<T> offset(K);
    for (std::int64_t k = 0; k < K; ++k) {
      double norm = 0.0;
      for (std::int64_t j = 0; j < p; ++j) norm += centers[k * p + j] * centers[k * p + j];
      offset[k] = static_cast<T>(0.5 * norm);
    }
    const int parts = part_count(n_, 2048, size * 8);
    std::vector<double> sums(parts * size);
    for_parts(n_, parts, threads_, [&](int part, std::int64_t a, std::int64_t b) {
      std::vector<T> partial(size + K);
      nearest_rows(d_, points.data(), offset.data(), K, a, b, labels, partial.data(), sums.data() + part * size);
    });
    add_parts(sums, size, out);
  }

  void moment(bool absolute, double* out) const override {
    const std::int64_t p = d_.n_features;
    const int parts = part_count(n_, 2048, p * 8);
    std::vector<double> sums(parts * p);
    for_parts(n_, parts, threads_, [&](int part, std::int64_t a, std::int64_t b) {
      std::vector<T> partial(p);
      moment_rows(d_, absolute, a, b, partial.data(), sums.data() + part * p);
    });
    add_parts(sums, p, out);
    for (std::int64_t j = 0; j < p; ++j) out[j] /= static_cast<double>(n_);
  }

  void norms(double* out) const override {
    for_parts(n_, part_count(n_, 2048, 1), threads_, [&](int, std::int64_t a, std::int64_t b) { norms_rows(d_, a, b, out); });
  }

  void gram(const std::int64_t* positions, std::int64_t n, const std::int64_t* features, std::int64_t f, double* out) const override {
    const std::int64_t width = (f + tile_columns<T>() - 1) / tile_columns<T>() * tile_columns<T>(), size = width * width;
    const int parts = part_count(n, 1024, size * 8);
    std::vector<double> sums(parts * size);
    for_parts(n, parts, threads_, [&](int part, std::int64_t a, std::int64_t b) {
      std::vector<T> panel(std::min(PanelRows, b - a) * width);
      gram_rows(d_, positions, features, f, width, a, b, panel.data(), sums.data() + part * size);
    });
    for (std::int64_t p = 0; p < f; ++p)
      for (std::int64_t q = p; q < f; ++q) {
        double sum = 0.0;
        for (int part = 0; part < parts; ++part) sum += sums[part * size + p * width + q];
        out[p * f + q] = out[q * f + p] = sum;
      }
  }

 private:
  Data<T> d_;
  std::int64_t n_;
  int threads_;
};

template <class T> void bind_for(nb::module_& m) {
  using X = Mat<const T>;
  using Index = std::optional<Positions>;
  using Center = Vec<const T>;
  using S = Sweeps<T>;
  const auto none = nb::arg("index").none();
  m.def("dense_scores", [](X x, Index i, Center c, int t, Mat<const double> W) { return S::scores(DenseView<T>(x, i, c, t), W); }, nb::arg("X").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"), nb::arg("W"));
  m.def("dense_adjoint", [](X x, Index i, Center c, int t, Mat<const T> R) { return S::adjoint(DenseView<T>(x, i, c, t), R); }, nb::arg("X").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"), nb::arg("R").noconvert());
  m.def("dense_gram", [](X x, Index i, Center c, int t, Positions p, Positions f) { return S::gram(DenseView<T>(x, i, c, t), p, f); }, nb::arg("X").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"), nb::arg("positions"), nb::arg("features"));
  m.def("dense_moment", [](X x, Index i, Center c, int t, bool absolute) { return S::moment(DenseView<T>(x, i, c, t), absolute); }, nb::arg("X").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"), nb::arg("absolute"));
  m.def("dense_norms", [](X x, Index i, Center c, int t) { return S::norms(DenseView<T>(x, i, c, t)); }, nb::arg("X").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"));
  m.def("dense_lloyd", [](X x, Index i, Center c, int t, Mat<const double> C, std::int64_t steps) { return S::lloyd(DenseView<T>(x, i, c, t), C, steps); }, nb::arg("X").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"), nb::arg("centers"), nb::arg("n_steps"));
  m.def("dense_principal", [](X x, Index i, Center c, int t, Vec<const double> d, std::int64_t steps) { return S::principal(DenseView<T>(x, i, c, t), d, steps); }, nb::arg("X").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"), nb::arg("start"), nb::arg("n_steps"));
  m.def("dense_rule", [](X x, Index i, Center c, int t, Vec<const std::int32_t> labels, std::int64_t n_children, Vec<const double> l1, double ridge, double second_ridge, double barred, std::vector<double> strengths, std::int64_t max_features, double reproduced, double nearly, double tol, double violation, std::int64_t max_working, Mat<const double> steepest) {
    return S::rule(DenseView<T>(x, i, c, t), labels, n_children, l1, ridge, second_ridge, barred, std::move(strengths), max_features, reproduced, nearly, tol, violation, max_working, steepest);
  }, nb::arg("X").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"), nb::arg("labels"), nb::arg("n_children"), nb::arg("l1"), nb::arg("ridge"), nb::arg("second_ridge"), nb::arg("barred"), nb::arg("strengths"), nb::arg("max_features"), nb::arg("reproduced"), nb::arg("nearly"), nb::arg("tol"), nb::arg("violation"), nb::arg("max_working"), nb::arg("steepest"));
  m.def("dense_pair", [](X x, Index i, Center c, int t, Vec<const double> start, std::optional<Vec<const std::int8_t>> labels, std::int64_t hold, std::pair<std::int64_t, std::int64_t> bounds, Vec<const double> l1, double ridge, double tol, double violation, std::int64_t max_alternations, std::int64_t max_working) {
    return S::pair(DenseView<T>(x, i, c, t), start, labels, hold, bounds, l1, ridge, tol, violation, max_alternations, max_working);
  }, nb::arg("X").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"), nb::arg("start"), nb::arg("labels").none(), nb::arg("hold"), nb::arg("bounds"), nb::arg("l1"), nb::arg("ridge"), nb::arg("tol"), nb::arg("violation"), nb::arg("max_alternations"), nb::arg("max_working"));
}

}  // namespace

void bind_dense(nb::module_& m) {
  bind_for<float>(m);
  bind_for<double>(m);
}
