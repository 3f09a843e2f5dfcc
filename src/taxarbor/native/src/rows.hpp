// The rows of one node as the compiled solvers see them: coarse passes, each one sweep.
#pragma once

#include <tuple>
#include <variant>

#include "common.hpp"

// The values of a row as they are, without the centre: those of some columns, or of all in turn.
template <class T> struct Entries {
  const T* values;
  const int32_t* columns;  // null: all
  int64_t size;
};

using Index = std::optional<std::vector<int64_t>>;  // none: row i is row i

// Some rows of a matrix, about a centre. The matrix is shared by all nodes and was checked when
// the first of them was made (data.cpp); index and centre are the node's own.
template <class T> class View {
 public:
  using Value = T;
  virtual ~View() = default;
  // The same matrix and threads, other rows of it; the centre is yet to be set.
  virtual std::shared_ptr<View> with(Index index) const = 0;

  // out (n_rows, n_models) = (X - c) W', W (n_models, n_features) rounded to T
  virtual void scores(const double* W, int64_t n_models, T* out) const = 0;
  // out (n_rows) = argmax over the models of their scores and offsets, the first of ties
  virtual void best(
      const double* W, const double* offsets, int64_t n_models, int64_t* out) const = 0;
  // out (n_models, n_features) = R' (X - c); rows where R is zero are not touched
  virtual void adjoint(const T* R, int64_t n_models, double* out) const = 0;
  // out (f, f) = Z' D Z, Z = (X - c)[positions][:, features], features sorted and distinct; D holds
  // the weights, none of them negative, or is the identity
  virtual void gram(const int64_t* positions, int64_t n, const int64_t* features, int64_t f,
      double* out, const T* weights = nullptr) const = 0;
  // out (n_features): mean of x - c, or of |x - c|
  virtual void mean(bool absolute, double* out) const = 0;
  // out (size of positions, n_features) = (x - c)[positions]
  virtual void gather(const std::vector<int64_t>& positions, T* out) const = 0;
  virtual Entries<T> entries(int64_t i) const = 0;
  // out (n_rows) = |x - c|^2
  virtual void norms(double* out) const = 0;
  // labels = argmax over k of (x - c) . m_k - |m_k|^2 / 2; sums (K, n_features) of x - c per label
  virtual void nearest(const double* centers, int64_t K, int32_t* labels, double* sums) const = 0;

  int64_t n_rows() const { return n_; }
  int64_t n_features() const { return p_; }
  int threads() const { return is_forked ? 1 : threads_; }
  int64_t row(int64_t i) const { return index_ ? (*index_)[i] : i; }
  const Index& index() const { return index_; }
  const std::vector<double>& center() const { return center_; }

  virtual void set_center(std::vector<double> center) { center_ = std::move(center); }
  // Taken about a value of the data, and rounded to T: so that an offset costs no digits and a
  // saved rule routes as the fitted one.
  virtual void center_on_mean() = 0;

 protected:
  View(int64_t n, int64_t p, int threads) : n_(n), p_(p), threads_(threads) {}
  View(const View& other, Index index)
      : n_(index ? index->size() : other.n_), p_(other.p_), threads_(other.threads_),
        index_(std::move(index)) {}

  void move_to_mean() {
    std::vector<double> mean(p_);
    this->mean(false, mean.data());
    for (int64_t j = 0; j < p_; ++j)
      mean[j] = static_cast<double>(static_cast<T>(center_[j] + mean[j]));
    set_center(std::move(mean));
  }

  // out (size) = the sum of what body(first, last, sum) adds for each part of n rows, in order.
  template <class Body>
  void add_up(int64_t n, int64_t rows_per_part, int64_t size, double* out, const Body& body) const {
    const int parts = part_count(n, rows_per_part, size * 8);
    std::vector<double> sums((parts - 1) * size);  // but for the first part's, which are in `out`
    std::fill(out, out + size, 0.0);
    for_parts(n, parts, threads(), [&](int part, int64_t first, int64_t last) {
      body(first, last, part ? sums.data() + (part - 1) * size : out);
    });
    for (size_t at = 0; at < sums.size(); at += size)
      for (int64_t j = 0; j < size; ++j) out[j] += sums[at + j];
  }

  int64_t n_, p_;
  int threads_;
  Index index_;
  std::vector<double> center_;
};

// X (n, p), C-contiguous (dense.cpp).
template <class T> std::shared_ptr<View<T>> view_dense(const Given& X, int threads);
// The same in memory that outlives the view, for one thread.
template <class T> std::shared_ptr<View<T>> view_dense(const T* X, int64_t n, int64_t p);

// Values, columns (nnz) and starts (n + 1) of a CSR matrix (csr.cpp).
template <class T> std::shared_ptr<View<T>> view_csr(const Given& values, const Given& columns,
    const Given& starts, int64_t n_features, int threads);

// Steps of k-means, in place; a centre (K, n_features) that no row is nearest to stays.
template <class T> void step_centers(
    const View<T>& rows, int64_t n_steps, int64_t K, double* centers, int32_t* labels) {
  const int64_t p = rows.n_features();
  std::vector<double> sums(K * p);
  for (int64_t step = 0; step < n_steps; ++step) {
    rows.nearest(centers, K, labels, sums.data());
    std::vector<int64_t> counts(K);
    for (int64_t i = 0; i < rows.n_rows(); ++i) ++counts[labels[i]];
    for (int64_t e = 0; e < K * p; ++e)
      if (const int64_t count = counts[e / p]) centers[e] = sums[e] / static_cast<double>(count);
  }
}

// Steps of the power method towards the direction of greatest variance, in place, of unit length
// unless its square is less than `least`.
template <class T>
void step_direction(const View<T>& rows, int64_t n_steps, double least, double* direction) {
  const int64_t p = rows.n_features();
  std::vector<T> along(rows.n_rows());
  for (int64_t step = 0;; ++step) {
    const double square = std::inner_product(direction, direction + p, direction, 0.0);
    for (int64_t j = 0; j < p; ++j) direction[j] /= std::sqrt(std::max(square, least));
    if (step == n_steps) break;
    rows.scores(direction, 1, along.data());
    rows.adjoint(along.data(), 1, direction);
  }
}

// What Python holds: the rows of one node, of either type.
struct Data {
  std::variant<std::shared_ptr<View<float>>, std::shared_ptr<View<double>>> view;
  template <class Body> auto visit(const Body& body) const {
    return std::visit([&](const auto& one) { return body(*one); }, view);
  }
  int64_t n_rows() const {
    return visit([](auto& rows) { return rows.n_rows(); });
  }
  int64_t n_features() const {
    return visit([](auto& rows) { return rows.n_features(); });
  }
  int n_threads() const {
    return visit([](auto& rows) { return rows.threads(); });
  }
  nb::object center() const {
    return visit([](auto& rows) { return copied(rows.center()); });
  }
  nb::object index() const {
    return visit([](auto& rows) { return rows.index() ? copied(*rows.index()) : nb::none(); });
  }
};
template <class V> using Number = typename std::decay_t<V>::Value;
