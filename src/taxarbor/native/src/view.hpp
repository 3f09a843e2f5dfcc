// The rows of one node as the compiled solvers see them: coarse passes, each one sweep.
#pragma once

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cmath>

#include "common.hpp"

template <class T> struct View {
  virtual ~View() = default;
  virtual std::int64_t n_rows() const = 0;
  virtual std::int64_t n_features() const = 0;
  // out (n_rows, n_models) = (X - c) W', W (n_models, n_features) already rounded to T
  virtual void scores(const double* W, std::int64_t n_models, T* out) const = 0;
  // out (n_models, n_features) = R' (X - c); rows where R is zero are not touched
  virtual void adjoint(const T* R, std::int64_t n_models, double* out) const = 0;
  // out (f, f) = Z' Z, Z = (X - c)[positions][:, features], features sorted and distinct
  virtual void gram(const std::int64_t* positions, std::int64_t n, const std::int64_t* features, std::int64_t f, double* out) const = 0;
  // out (n_features): mean of x - c, or of |x - c|
  virtual void moment(bool absolute, double* out) const = 0;
  // out (n_rows) = |x - c|^2
  virtual void norms(double* out) const = 0;
  // labels = argmax over k of (x - c) . m_k - |m_k|^2 / 2; sums (K, n_features) of x - c per label
  virtual void nearest(const double* centers, std::int64_t K, std::int32_t* labels, double* sums) const = 0;
};

// Add the parts of a divided sum, in order, into `out`.
inline void add_parts(const std::vector<double>& parts, std::int64_t size, double* out) {
  std::fill(out, out + size, 0.0);
  for (std::size_t at = 0; at + size <= parts.size(); at += size)
    for (std::int64_t j = 0; j < size; ++j) out[j] += parts[at + j];
}

template <class T> struct PairArguments {
  const double* start;          // weights to start from, (n_features)
  const std::int8_t* labels;    // labels to start from, or null: those of the weights
  std::int64_t hold;            // rounds for which they stay as they are, at the start
  std::int64_t lower, upper;    // bounds on the rows of child 0
  const double* l1;             // (n_features)
  double ridge, tol, violation;
  std::int64_t max_alternations, max_working;
};

// Alternate labels and weights of a two-way split (pair.cpp); returns what Python is given.
template <class T> nb::tuple solve_pair(const View<T>& rows, const PairArguments<T>& a);

// The weights that it ends with.
template <class T> std::vector<double> fit_pair(const View<T>& rows, const PairArguments<T>& a);

// What a rule should be like (rule.cpp).
struct RuleArguments {
  const std::int32_t* labels;
  std::int64_t n_children;
  const double* l1;               // the penalty at strength one, (n_features)
  double ridge, second_ridge;     // beside it, and in its place for the features in use
  double barred;                  // what keeps a feature out
  std::vector<double> strengths;  // of the path; none for strength one alone
  std::int64_t max_features;      // 0 for any number
  double reproduced, nearly;      // agreement to reach, and what is no loss of it
  double tol, violation;
  std::int64_t max_working;
};

// Find a rule, given weights of the steepest feature alone; returns what Python is given.
template <class T> nb::tuple find_rule(const View<T>& rows, const RuleArguments& a, const double* steepest);

// What both kinds of rows show to Python.
template <class T> struct Sweeps {
  static auto scores(const View<T>& v, const Mat<const double>& W) {
    const std::size_t n = v.n_rows(), m = W.shape(0);
    Owned<T> out(n * m);
    {
      nb::gil_scoped_release free;
      v.scores(W.data(), m, out.data);
    }
    return out.shaped({n, m});
  }
  static auto adjoint(const View<T>& v, const Mat<const T>& R) {
    const std::size_t m = R.shape(1), p = v.n_features();
    Owned<double> out(m * p);
    {
      nb::gil_scoped_release free;
      v.adjoint(R.data(), m, out.data);
    }
    return out.shaped({m, p});
  }
  static auto gram(const View<T>& v, const Positions& positions, const Positions& features) {
    const std::size_t f = features.shape(0);
    Owned<double> out(f * f);
    {
      nb::gil_scoped_release free;
      v.gram(positions.data(), positions.shape(0), features.data(), f, out.data);
    }
    return out.shaped({f, f});
  }
  static auto moment(const View<T>& v, bool absolute) {
    const std::size_t p = v.n_features();
    Owned<double> out(p);
    {
      nb::gil_scoped_release free;
      v.moment(absolute, out.data);
    }
    return out.shaped({p});
  }
  static auto norms(const View<T>& v) {
    const std::size_t n = v.n_rows();
    Owned<double> out(n);
    {
      nb::gil_scoped_release free;
      v.norms(out.data);
    }
    return out.shaped({n});
  }
  // Steps of k-means; a centre that no row is nearest to stays where it is.
  static auto lloyd(const View<T>& v, const Mat<const double>& start, std::int64_t n_steps) {
    const std::size_t n = v.n_rows(), K = start.shape(0), p = v.n_features();
    if (n_steps < 1) throw std::invalid_argument("lloyd needs at least one step");
    Owned<std::int32_t> labels(n);
    Owned<double> centers(K * p);
    std::copy(start.data(), start.data() + K * p, centers.data);
    {
      nb::gil_scoped_release free;
      std::vector<double> sums(K * p);
      for (std::int64_t step = 0; step < n_steps; ++step) {
        v.nearest(centers.data, K, labels.data, sums.data());
        std::vector<std::int64_t> counts(K);
        for (std::size_t i = 0; i < n; ++i) ++counts[labels.data[i]];
        for (std::size_t k = 0; k < K; ++k)
          for (std::size_t j = 0; j < p && counts[k]; ++j) centers.data[k * p + j] = sums[k * p + j] / static_cast<double>(counts[k]);
      }
    }
    return nb::make_tuple(labels.shaped({n}), centers.shaped({K, p}));
  }
  // Steps of the power method towards the direction of greatest variance, of unit length.
  static auto principal(const View<T>& v, const Vec<const double>& start, std::int64_t n_steps) {
    const std::size_t p = v.n_features();
    Owned<double> direction(p);
    std::copy(start.data(), start.data() + p, direction.data);
    {
      nb::gil_scoped_release free;
      std::vector<T> along(v.n_rows());
      for (std::int64_t step = 0; step <= n_steps; ++step) {
        double square = 0.0;
        for (std::size_t j = 0; j < p; ++j) square += direction.data[j] * direction.data[j];
        for (std::size_t j = 0; j < p && square > 0.0; ++j) direction.data[j] /= std::sqrt(square);
        if (step == n_steps) break;
        v.scores(direction.data, 1, along.data());
        v.adjoint(along.data(), 1, direction.data);
      }
    }
    return direction.shaped({p});
  }
  static auto rule(const View<T>& v, Vec<const std::int32_t> labels, std::int64_t n_children, Vec<const double> l1, double ridge,
                   double second_ridge, double barred, std::vector<double> strengths, std::int64_t max_features,
                   double reproduced, double nearly, double tol, double violation, std::int64_t max_working, Mat<const double> steepest) {
    return find_rule<T>(v, {labels.data(), n_children, l1.data(), ridge, second_ridge, barred, std::move(strengths), max_features,
                            reproduced, nearly, tol, violation, max_working}, steepest.data());
  }
  static auto pair(const View<T>& v, Vec<const double> start, std::optional<Vec<const std::int8_t>> labels, std::int64_t hold,
                   std::pair<std::int64_t, std::int64_t> bounds, Vec<const double> l1, double ridge, double tol,
                   double violation, std::int64_t max_alternations, std::int64_t max_working) {
    return solve_pair<T>(v, {start.data(), labels ? labels->data() : nullptr, hold, bounds.first, bounds.second, l1.data(),
                             ridge, tol, violation, max_alternations, max_working});
  }
};
