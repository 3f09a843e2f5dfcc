// Shared by all kernels: array types, vectors of the machine, fixed division of work.
//
// Two rules make results independent of the number of threads: work is divided by the
// shape of the data alone, and partial sums are added in the order of the parts.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <vector>

#ifdef _OPENMP
#include <omp.h>
#endif

namespace nb = nanobind;

template <class T> using Vec = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Mat = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using Cube = nb::ndarray<T, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Positions = Vec<const std::int64_t>;

// One copy of each hot function for processors with AVX2 and FMA, one for the others.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__APPLE__) && \
    (defined(__clang__) ? (__clang_major__ >= 17) : (__GNUC__ >= 12))
#define TAXARBOR_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define TAXARBOR_CLONES
#endif

#if defined(__GNUC__)
#define TAXARBOR_INLINE static inline __attribute__((always_inline))
#define TAXARBOR_PREFETCH(p) __builtin_prefetch(p)
#else
#error "taxarbor needs GCC or Clang (it uses their vector types)"
#endif

// 32 bytes of numbers: one AVX register, two of SSE or NEON.
template <class T> struct Lanes;
template <> struct Lanes<float> {
  typedef float type __attribute__((vector_size(32)));
  static constexpr std::int64_t count = 8;
};
template <> struct Lanes<double> {
  typedef double type __attribute__((vector_size(32)));
  static constexpr std::int64_t count = 4;
};

template <class T>
TAXARBOR_INLINE void load(typename Lanes<T>::type& v, const T* p) {
  std::memcpy(&v, p, sizeof v);
}

template <class T>
TAXARBOR_INLINE void store(T* p, const typename Lanes<T>::type& v) {
  std::memcpy(p, &v, sizeof v);
}

// Parts into which `n` rows are divided, for sums over rows: never by the thread count.
inline int part_count(std::int64_t n, std::int64_t rows_per_part, std::int64_t bytes_per_part) {
  const std::int64_t most = std::max<std::int64_t>(1, (std::int64_t{64} << 20) / std::max<std::int64_t>(1, bytes_per_part));
  return static_cast<int>(std::clamp<std::int64_t>((n + rows_per_part - 1) / rows_per_part, 1, std::min<std::int64_t>(16, most)));
}

// Rows from which several threads are worth waking for one sweep.
constexpr std::int64_t Several = 16384;

// Sweeps that run at this moment, in any thread: they share the threads that each may use.
inline std::atomic<int> sweeps_under_way{0};

struct UnderWay {
  const int count = ++sweeps_under_way;
  ~UnderWay() { --sweeps_under_way; }
};

// Call body(part, first, last) for each part, side by side on up to `threads` threads.
template <class Body>
void for_parts(std::int64_t n, int parts, int threads, const Body& body) {
  const auto edge = [&](int part) { return n * part / parts; };
  const UnderWay sweeps;
  threads /= sweeps.count;
#ifdef _OPENMP
  if (threads > 1 && parts > 1 && n >= Several) {
    std::exception_ptr failure;  // an exception must not leave the region: out of memory, say
#pragma omp parallel for schedule(static) num_threads(std::min(threads, parts))
    for (int part = 0; part < parts; ++part) {
      try {
        body(part, edge(part), edge(part + 1));
      } catch (...) {
#pragma omp critical(taxarbor_failure)
        failure = std::current_exception();
      }
    }
    if (failure) std::rethrow_exception(failure);
    return;
  }
#endif
  (void)threads;
  for (int part = 0; part < parts; ++part) body(part, edge(part), edge(part + 1));
}

// A NumPy array that owns its memory, left uninitialised.
template <class T> struct Owned {
  T* data;
  nb::capsule owner;
  explicit Owned(std::size_t size) : data(new T[std::max<std::size_t>(size, 1)]), owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); }) {}
  nb::ndarray<nb::numpy, T> shaped(std::initializer_list<std::size_t> shape) const {
    return nb::ndarray<nb::numpy, T>(data, shape.size(), shape.begin(), owner);
  }
};

// The largest absolute value. Infinities and NaN are refused: neither has a place in an order.
template <class T>
double largest(const T* values, int64_t size) {
  constexpr int kLanes = 8;  // independent, so that the loop vectorises without reassociation
  T most[kLanes] = {}, nothing[kLanes] = {};
  const auto look = [&](T value, int j) {
    const T x = std::abs(value);
    most[j] = x > most[j] ? x : most[j];
    nothing[j] += x - x;  // zero, unless x is not finite
  };
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes)
    for (int j = 0; j < kLanes; ++j) look(values[i + j], j);
  for (; i < size; ++i) look(values[i], 0);
  if (std::any_of(nothing, nothing + kLanes, [](T x) { return x != 0; }))
    throw std::invalid_argument("costs and margins must be finite; got NaN or infinity");
  return static_cast<double>(*std::max_element(most, most + kLanes));
}

// Where one solver needs another's inner part.

// Sum of [1 - s f]_+^2 over rows, s = +1 for label 0 and -1 for label 1; residual s [1 - s f]_+,
// active where it is not zero (hinge.cpp).
double pair_rows(const float* f, const std::int8_t* labels, std::int64_t n, float* residual, std::uint8_t* active);
double pair_rows(const double* f, const std::int8_t* labels, std::int64_t n, double* residual, std::uint8_t* active);

// Label 0 for the rows of largest f: those >= 0, or as many as the bounds allow (threshold.cpp).
void split_pair(const float* f, std::int64_t n, std::int64_t lower, std::int64_t upper, std::int8_t* labels);
void split_pair(const double* f, std::int64_t n, std::int64_t lower, std::int64_t upper, std::int8_t* labels);

// Minimise a quadratic model plus a penalty by block coordinate descent, in place (descent.cpp).
struct QuadraticModel {
  const double* H;  // (M * M, F, F)
  std::int64_t n_models, n_features;
  double group;
  const double* l1;
  double ridge;
};
std::int64_t descend(const QuadraticModel& model, double* V, double* gradient, double tol, std::int64_t max_sweeps);

void bind_dense(nb::module_& m);
void bind_csr(nb::module_& m);
void bind_hinge(nb::module_& m);
void bind_descent(nb::module_& m);
void bind_assign(nb::module_& m);
void bind_threshold(nb::module_& m);
void bind_ward(nb::module_& m);
