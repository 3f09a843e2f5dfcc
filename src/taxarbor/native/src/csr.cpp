// Sweeps over compressed sparse rows. The centre is never subtracted from stored values: its
// part of each sum is known in closed form, so zeros stay unstored.
#include "rows.hpp"

namespace {

template <class T> class CsrView final : public View<T> {
 public:
  CsrView(const Given& values, const Given& columns, const Given& starts, int64_t p, int threads)
      : View<T>(static_cast<int64_t>(starts.shape(0)) - 1, p, threads),
        arrays_{values, columns, starts}, values_(static_cast<const T*>(values.data())),
        columns_(static_cast<const int32_t*>(columns.data())),
        starts_(static_cast<const int64_t*>(starts.data())) {}
  CsrView(const CsrView& other, Index index)
      : View<T>(other, std::move(index)), arrays_(other.arrays_), values_(other.values_),
        columns_(other.columns_), starts_(other.starts_) {}

  std::shared_ptr<View<T>> with(Index index) const override {
    return std::make_shared<CsrView>(*this, std::move(index));
  }

  // Twice, the second time about the first: exact for constant features.
  void center_on_mean() override {
    this->set_center(std::vector<double>(p_));
    this->move_to_mean();
    this->move_to_mean();
  }

  void scores(const double* W, int64_t m, T* out) const override {
    over_dots(W, m, [&](int64_t i, const double* dots) {
      for (int64_t k = 0; k < m; ++k) out[i * m + k] = static_cast<T>(dots[k]);
    });
  }

  void best(const double* W, const double* offsets, int64_t m, int64_t* out) const override {
    over_dots(W, m, [&](int64_t i, double* scores) {
      for (int64_t k = 0; k < m; ++k)
        scores[k] = static_cast<T>(scores[k]) + static_cast<T>(offsets[k]);
      out[i] = 0;  // as in dense rows, what is not a number is never the highest
      for (int64_t k = 1; k < m; ++k)
        if (scores[k] > scores[out[i]] || std::isnan(scores[out[i]])) out[i] = k;
    });
  }

  void adjoint(const T* R, int64_t m, double* out) const override {
    add_parts(m, out, [&](int64_t a, int64_t b, double* sum) {
      for (int64_t i = a; i < b; ++i)
        for (int64_t k = 0; k < m; ++k)
          add_row(row(i), R[i * m + k], sum + k * p_, sum[m * p_ + k]);
    });
  }

  void nearest(const double* centers, int64_t K, int32_t* labels, double* out) const override {
    const Models models(centers, K, *this);
    std::vector<double> offset(K);
    for (int64_t k = 0; k < K; ++k)
      for (int64_t j = 0; j < p_; ++j) offset[k] += 0.5 * centers[k * p_ + j] * centers[k * p_ + j];
    add_parts(K, out, [&](int64_t a, int64_t b, double* sum) {
      std::vector<double> dots(K);
      for (int64_t i = a; i < b; ++i) {
        models.dot(row(i), dots.data());
        int64_t best = 0;
        for (int64_t k = 1; k < K; ++k)
          if (dots[k] - offset[k] > dots[best] - offset[best]) best = k;
        labels[i] = static_cast<int32_t>(best);
        add_row(row(i), 1.0, sum + best * p_, sum[K * p_ + best]);
      }
    });
  }

  // An entry that is not stored counts as -c.
  void mean(bool absolute, double* out) const override {
    const auto seen = [absolute](double z) { return absolute ? std::abs(z) : z; };
    std::fill(out, out + p_, 0.0);
    std::vector<int64_t> stored(p_);
    for (int64_t i = 0; i < n_; ++i)
      for (int64_t e = starts_[row(i)]; e < starts_[row(i) + 1]; ++e) {
        const int32_t j = columns_[e];
        out[j] += seen(values_[e] - center_[j]);
        ++stored[j];
      }
    for (int64_t j = 0; j < p_; ++j) {
      const double rest = static_cast<double>(n_ - stored[j]) * seen(-center_[j]);
      out[j] = (out[j] + rest) / static_cast<double>(n_);
    }
  }

  void gather(const std::vector<int64_t>& positions, T* out) const override {
    for (const int64_t i : positions) {
      for (int64_t j = 0; j < p_; ++j) out[j] = static_cast<T>(-center_[j]);
      for (int64_t e = starts_[row(i)]; e < starts_[row(i) + 1]; ++e)
        out[columns_[e]] += values_[e];
      out += p_;
    }
  }

  Entries<T> entries(int64_t i) const override {
    const int64_t first = starts_[row(i)];
    return {values_ + first, columns_ + first, starts_[row(i) + 1] - first};
  }

  // |x|^2 - 2 x . c + |c|^2
  void norms(double* out) const override {
    double base = 0.0;
    for (int64_t j = 0; j < p_; ++j) base += center_[j] * center_[j];
    for (int64_t i = 0; i < n_; ++i) {
      out[i] = base;
      for (int64_t e = starts_[row(i)]; e < starts_[row(i) + 1]; ++e) {
        const double x = values_[e];
        out[i] += x * (x - 2.0 * center_[columns_[e]]);
      }
      out[i] = std::max(out[i], 0.0);
    }
  }

  // The sum of x x', less what the centre takes away.
  void gram(const int64_t* positions, int64_t n, const int64_t* features, int64_t f, double* out,
      const T* weights) const override {
    std::vector<int32_t> place(p_, -1);
    for (int64_t j = 0; j < f; ++j) place[features[j]] = static_cast<int32_t>(j);
    std::vector<double> sums(f * f + f + 1);  // (f, f) products, f sums, a count
    this->add_up(n, 4096, sums.size(), sums.data(), [&](int64_t a, int64_t b, double* products) {
      double* total = products + f * f;
      std::vector<std::pair<int64_t, double>> kept;
      double count = 0.0;
      for (int64_t i = a; i < b; ++i) {
        const int64_t r = row(positions[i]);
        const double weight = weights ? weights[i] : 1.0;
        count += weight;
        kept.clear();
        for (int64_t e = starts_[r]; e < starts_[r + 1]; ++e)
          if (place[columns_[e]] >= 0) kept.emplace_back(place[columns_[e]], values_[e]);
        for (const auto& [j, x] : kept) {
          total[j] += weight * x;
          for (const auto& [k, y] : kept)
            if (k >= j) products[j * f + k] += weight * x * y;
        }
      }
      total[f] = count;
    });
    const double* total = sums.data() + f * f;
    for (int64_t j = 0; j < f; ++j)
      for (int64_t k = j; k < f; ++k) {
        const double cj = center_[features[j]], ck = center_[features[k]];
        out[j * f + k] = out[k * f + j] =
            sums[j * f + k] - cj * total[k] - total[j] * ck + total[f] * cj * ck;
      }
  }

 private:
  // Weights by feature, so that a stored value meets all models together, and their parts of
  // the centre.
  struct Models {
    const CsrView& rows;
    int64_t m;
    std::vector<double> by_feature, base;
    Models(const double* W, int64_t count, const CsrView& view)
        : rows(view), m(count), by_feature(count * view.p_), base(count) {
      for (int64_t k = 0; k < m; ++k)
        for (int64_t j = 0; j < rows.p_; ++j) {
          if (W[k * rows.p_ + j] == 0.0) continue;
          by_feature[j * m + k] = static_cast<double>(static_cast<T>(W[k * rows.p_ + j]));
          base[k] += rows.center_[j] * by_feature[j * m + k];
        }
    }
    void dot(int64_t r, double* out) const {
      std::fill(out, out + m, 0.0);
      for (int64_t e = rows.starts_[r]; e < rows.starts_[r + 1]; ++e) {
        const double x = rows.values_[e];
        const double* w = by_feature.data() + int64_t{rows.columns_[e]} * m;
        for (int64_t k = 0; k < m; ++k) out[k] += x * w[k];
      }
      for (int64_t k = 0; k < m; ++k) out[k] -= base[k];
    }
  };

  void add_row(int64_t r, double weight, double* sum, double& total) const {
    if (weight == 0.0) return;
    total += weight;
    for (int64_t e = starts_[r]; e < starts_[r + 1]; ++e) sum[columns_[e]] += weight * values_[e];
  }

  // Call body(i, scores) for each row, side by side.
  template <class Body> void over_dots(const double* W, int64_t m, const Body& body) const {
    const Models models(W, m, *this);
    for_parts(n_, part_count(n_, 2048, 1), this->threads(), [&](int, int64_t a, int64_t b) {
      std::vector<double> dots(m);
      for (int64_t i = a; i < b; ++i) models.dot(row(i), dots.data()), body(i, dots.data());
    });
  }

  // out (m, p) = the sum of what body(first, last, sum) adds for the rows of each part: (m, p) sums
  // of weighted rows, then the m totals of their weights, by which the centre counts.
  template <class Body> void add_parts(int64_t m, double* out, const Body& body) const {
    std::vector<double> sums(m * p_ + m);
    this->add_up(n_, 8192, sums.size(), sums.data(), body);
    for (int64_t k = 0; k < m; ++k)
      for (int64_t j = 0; j < p_; ++j)
        out[k * p_ + j] = sums[k * p_ + j] - sums[m * p_ + k] * center_[j];
  }

  using View<T>::n_;
  using View<T>::p_;
  using View<T>::row;
  using View<T>::center_;
  const std::vector<Given> arrays_;  // keep the memory alive
  const T* const values_;
  const int32_t* const columns_;
  const int64_t* const starts_;
};

}  // namespace

template <class T> std::shared_ptr<View<T>> view_csr(const Given& values, const Given& columns,
    const Given& starts, int64_t n_features, int threads) {
  return std::make_shared<CsrView<T>>(values, columns, starts, n_features, threads);
}
template std::shared_ptr<View<float>> view_csr(
    const Given&, const Given&, const Given&, int64_t, int);
template std::shared_ptr<View<double>> view_csr(
    const Given&, const Given&, const Given&, int64_t, int);
