// Sweeps over compressed sparse rows. The centre is never subtracted from stored values: its
// part of each sum is known in closed form, so zeros stay unstored.
#include <nanobind/stl/pair.h>

#include <cmath>

#include "view.hpp"

namespace {

template <class T> class CsrView final : public View<T> {
 public:
  CsrView(const Vec<const T>& values, const Vec<const std::int32_t>& columns, const Positions& starts,
          const std::optional<Positions>& index, const Vec<const double>& center, int threads)
      : values_(values.data()), columns_(columns.data()), starts_(starts.data()),
        index_(index ? index->data() : nullptr), center_(center.data()),
        n_(index ? static_cast<std::int64_t>(index->shape(0)) : static_cast<std::int64_t>(starts.shape(0)) - 1),
        p_(static_cast<std::int64_t>(center.shape(0))), threads_(threads) {}

  std::int64_t n_rows() const override { return n_; }
  std::int64_t n_features() const override { return p_; }

  void scores(const double* W, std::int64_t m, T* out) const override {
    const Models models(W, m, *this);
    for_parts(n_, part_count(n_, 2048, 1), threads_, [&](int, std::int64_t a, std::int64_t b) {
      std::vector<double> dots(m);
      for (std::int64_t i = a; i < b; ++i) {
        models.dot(row(i), dots.data());
        for (std::int64_t k = 0; k < m; ++k) out[i * m + k] = static_cast<T>(dots[k]);
      }
    });
  }

  void adjoint(const T* R, std::int64_t m, double* out) const override {
    const std::int64_t size = m * p_ + m;
    const int parts = part_count(n_, 8192, size * 8);
    std::vector<double> sums(parts * size);  // per part: (m, p) sums, then the m totals of R
    for_parts(n_, parts, threads_, [&](int part, std::int64_t a, std::int64_t b) {
      double* sum = sums.data() + part * size;
      for (std::int64_t i = a; i < b; ++i)
        for (std::int64_t k = 0; k < m; ++k) add_row(row(i), R[i * m + k], sum + k * p_, sum[m * p_ + k]);
    });
    finish(sums, m, size, out);
  }

  void nearest(const double* centers, std::int64_t K, std::int32_t* labels, double* out) const override {
    const Models models(centers, K, *this);
    std::vector<double> offset(K);
    for (std::int64_t k = 0; k < K; ++k)
      for (std::int64_t j = 0; j < p_; ++j) offset[k] += 0.5 * centers[k * p_ + j] * centers[k * p_ + j];
    const std::int64_t size = K * p_ + K;
    const int parts = part_count(n_, 8192, size * 8);
    std::vector<double> sums(parts * size);
    for_parts(n_, parts, threads_, [&](int part, std::int64_t a, std::int64_t b) {
      double* sum = sums.data() + part * size;
      std::vector<double> dots(K);
      for (std::int64_t i = a; i < b; ++i) {
        models.dot(row(i), dots.data());
        std::int64_t best = 0;
        for (std::int64_t k = 1; k < K; ++k)
          if (dots[k] - offset[k] > dots[best] - offset[best]) best = k;
        labels[i] = static_cast<std::int32_t>(best);
        add_row(row(i), 1.0, sum + best * p_, sum[K * p_ + best]);
      }
    });
    finish(sums, K, size, out);
  }

  // Mean of x - c, or of its absolute value; an entry that is not stored counts as -c.
  void moment(bool absolute, double* out) const override {
    std::fill(out, out + p_, 0.0);
    std::vector<std::int64_t> stored(p_);
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t e = starts_[row(i)]; e < starts_[row(i) + 1]; ++e) {
        const std::int32_t j = columns_[e];
        const double z = values_[e] - center_[j];
        out[j] += absolute ? std::abs(z) : z;
        ++stored[j];
      }
    for (std::int64_t j = 0; j < p_; ++j) {
      const double rest = absolute ? std::abs(center_[j]) : -center_[j];
      out[j] = (out[j] + static_cast<double>(n_ - stored[j]) * rest) / static_cast<double>(n_);
    }
  }

  // |x|^2 - 2 x . c + |c|^2
  void norms(double* out) const override {
    double base = 0.0;
    for (std::int64_t j = 0; j < p_; ++j) base += center_[j] * center_[j];
    for (std::int64_t i = 0; i < n_; ++i) {
      out[i] = base;
      for (std::int64_t e = starts_[row(i)]; e < starts_[row(i) + 1]; ++e) {
        const double x = values_[e];
        out[i] += x * (x - 2.0 * center_[columns_[e]]);
      }
      out[i] = std::max(out[i], 0.0);
    }
  }

  // The sum of x x', less what the centre takes away.
  void gram(const std::int64_t* positions, std::int64_t n, const std::int64_t* features, std::int64_t f, double* out) const override {
    std::vector<std::int32_t> place(p_, -1);
    for (std::int64_t j = 0; j < f; ++j) place[features[j]] = static_cast<std::int32_t>(j);
    const std::int64_t size = f * f + f;
    const int parts = part_count(n, 4096, size * 8);
    std::vector<double> sums(parts * size);  // per part: (f, f) products, then f sums
    for_parts(n, parts, threads_, [&](int part, std::int64_t a, std::int64_t b) {
      double* products = sums.data() + part * size;
      double* total = products + f * f;
      std::vector<std::pair<std::int64_t, double>> kept;
      for (std::int64_t i = a; i < b; ++i) {
        const std::int64_t r = row(positions[i]);
        kept.clear();
        for (std::int64_t e = starts_[r]; e < starts_[r + 1]; ++e)
          if (place[columns_[e]] >= 0) kept.emplace_back(place[columns_[e]], values_[e]);
        for (const auto& [j, x] : kept) {
          total[j] += x;
          for (const auto& [k, y] : kept)
            if (k >= j) products[j * f + k] += x * y;
        }
      }
    });
    for (int part = 1; part < parts; ++part)
      for (std::int64_t j = 0; j < size; ++j) sums[j] += sums[part * size + j];
    const double* total = sums.data() + f * f;
    for (std::int64_t j = 0; j < f; ++j)
      for (std::int64_t k = j; k < f; ++k) {
        const double cj = center_[features[j]], ck = center_[features[k]];
        out[j * f + k] = out[k * f + j] = sums[j * f + k] - cj * total[k] - total[j] * ck + static_cast<double>(n) * cj * ck;
      }
  }

 private:
  // Weights by feature, so that a stored value meets all models together, and their parts of
  // the centre.
  struct Models {
    const CsrView& rows;
    std::int64_t m;
    std::vector<double> by_feature, base;
    Models(const double* W, std::int64_t count, const CsrView& view) : rows(view), m(count), by_feature(count * view.p_), base(count) {
      for (std::int64_t k = 0; k < m; ++k)
        for (std::int64_t j = 0; j < rows.p_; ++j) {
          by_feature[j * m + k] = static_cast<double>(static_cast<T>(W[k * rows.p_ + j]));
          base[k] += rows.center_[j] * by_feature[j * m + k];
        }
    }
    void dot(std::int64_t r, double* out) const {
      std::fill(out, out + m, 0.0);
      for (std::int64_t e = rows.starts_[r]; e < rows.starts_[r + 1]; ++e) {
        const double x = rows.values_[e];
        const double* w = by_feature.data() + std::int64_t{rows.columns_[e]} * m;
        for (std::int64_t k = 0; k < m; ++k) out[k] += x * w[k];
      }
      for (std::int64_t k = 0; k < m; ++k) out[k] -= base[k];
    }
  };

  std::int64_t row(std::int64_t i) const { return index_ ? index_[i] : i; }

  void add_row(std::int64_t r, double weight, double* sum, double& total) const {
    if (weight == 0.0) return;
    total += weight;
    for (std::int64_t e = starts_[r]; e < starts_[r + 1]; ++e) sum[columns_[e]] += weight * values_[e];
  }

  void finish(std::vector<double>& sums, std::int64_t m, std::int64_t size, double* out) const {
    for (std::size_t at = size; at < sums.size(); at += size)
      for (std::int64_t j = 0; j < size; ++j) sums[j] += sums[at + j];
    for (std::int64_t k = 0; k < m; ++k)
      for (std::int64_t j = 0; j < p_; ++j) out[k * p_ + j] = sums[k * p_ + j] - sums[m * p_ + k] * center_[j];
  }

  const T* values_;
  const std::int32_t* columns_;
  const std::int64_t* starts_;
  const std::int64_t* index_;  // null: row i is row i
  const double* center_;
  std::int64_t n_, p_;
  int threads_;
};

template <class T> void bind_for(nb::module_& m) {
  using Values = Vec<const T>;
  using Columns = Vec<const std::int32_t>;
  using Index = std::optional<Positions>;
  using Center = Vec<const double>;
  using S = Sweeps<T>;
  const auto none = nb::arg("index").none();
  m.def("csr_scores", [](Values v, Columns j, Positions s, Index i, Center c, int t, Mat<const double> W) { return S::scores(CsrView<T>(v, j, s, i, c, t), W); }, nb::arg("values").noconvert(), nb::arg("columns").noconvert(), nb::arg("starts").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"), nb::arg("W"));
  m.def("csr_adjoint", [](Values v, Columns j, Positions s, Index i, Center c, int t, Mat<const T> R) { return S::adjoint(CsrView<T>(v, j, s, i, c, t), R); }, nb::arg("values").noconvert(), nb::arg("columns").noconvert(), nb::arg("starts").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"), nb::arg("R").noconvert());
  m.def("csr_gram", [](Values v, Columns j, Positions s, Index i, Center c, int t, Positions p, Positions f) { return S::gram(CsrView<T>(v, j, s, i, c, t), p, f); }, nb::arg("values").noconvert(), nb::arg("columns").noconvert(), nb::arg("starts").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"), nb::arg("positions"), nb::arg("features"));
  m.def("csr_moment", [](Values v, Columns j, Positions s, Index i, Center c, int t, bool absolute) { return S::moment(CsrView<T>(v, j, s, i, c, t), absolute); }, nb::arg("values").noconvert(), nb::arg("columns").noconvert(), nb::arg("starts").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"), nb::arg("absolute"));
  m.def("csr_norms", [](Values v, Columns j, Positions s, Index i, Center c, int t) { return S::norms(CsrView<T>(v, j, s, i, c, t)); }, nb::arg("values").noconvert(), nb::arg("columns").noconvert(), nb::arg("starts").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"));
  m.def("csr_lloyd", [](Values v, Columns j, Positions s, Index i, Center c, int t, Mat<const double> C, std::int64_t steps) { return S::lloyd(CsrView<T>(v, j, s, i, c, t), C, steps); }, nb::arg("values").noconvert(), nb::arg("columns").noconvert(), nb::arg("starts").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"), nb::arg("centers"), nb::arg("n_steps"));
  m.def("csr_principal", [](Values v, Columns j, Positions s, Index i, Center c, int t, Vec<const double> d, std::int64_t steps) { return S::principal(CsrView<T>(v, j, s, i, c, t), d, steps); }, nb::arg("values").noconvert(), nb::arg("columns").noconvert(), nb::arg("starts").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"), nb::arg("start"), nb::arg("n_steps"));
  m.def("csr_rule", [](Values v, Columns j, Positions s, Index i, Center c, int t, Vec<const std::int32_t> labels, std::int64_t n_children, Vec<const double> l1, double ridge, double second_ridge, double barred, std::vector<double> strengths, std::int64_t max_features, double reproduced, double nearly, double tol, double violation, std::int64_t max_working, Mat<const double> steepest) {
    return S::rule(CsrView<T>(v, j, s, i, c, t), labels, n_children, l1, ridge, second_ridge, barred, std::move(strengths), max_features, reproduced, nearly, tol, violation, max_working, steepest);
  }, nb::arg("values").noconvert(), nb::arg("columns").noconvert(), nb::arg("starts").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"), nb::arg("labels"), nb::arg("n_children"), nb::arg("l1"), nb::arg("ridge"), nb::arg("second_ridge"), nb::arg("barred"), nb::arg("strengths"), nb::arg("max_features"), nb::arg("reproduced"), nb::arg("nearly"), nb::arg("tol"), nb::arg("violation"), nb::arg("max_working"), nb::arg("steepest"));
  m.def("csr_pair", [](Values v, Columns j, Positions s, Index i, Center c, int t, Vec<const double> start, std::optional<Vec<const std::int8_t>> labels, std::int64_t hold, std::pair<std::int64_t, std::int64_t> bounds, Vec<const double> l1, double ridge, double tol, double violation, std::int64_t max_alternations, std::int64_t max_working) {
    return S::pair(CsrView<T>(v, j, s, i, c, t), start, labels, hold, bounds, l1, ridge, tol, violation, max_alternations, max_working);
  }, nb::arg("values").noconvert(), nb::arg("columns").noconvert(), nb::arg("starts").noconvert(), none, nb::arg("center").noconvert(), nb::arg("threads"), nb::arg("start"), nb::arg("labels").none(), nb::arg("hold"), nb::arg("bounds"), nb::arg("l1"), nb::arg("ridge"), nb::arg("tol"), nb::arg("violation"), nb::arg("max_alternations"), nb::arg("max_working"));
}

}  // namespace

void bind_csr(nb::module_& m) {
  bind_for<float>(m);
  bind_for<double>(m);
}
