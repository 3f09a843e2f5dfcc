// Shared by all kernels: compiler, vectors of the machine, threads.
//
// Two rules make results independent of the number of threads: work is divided by the
// shape of the data alone, and partial sums are added in the order of the parts.
#pragma once

#include <atomic>
#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <utility>

#include "arrays.hpp"

#ifdef _OPENMP
#include <omp.h>
#endif

// ---- what compilers add to the language; with TAXARBOR_PORTABLE, or elsewhere, plain C++ --------

#if defined(__GNUC__) && !defined(TAXARBOR_PORTABLE)
#define TAXARBOR_EXTENSIONS
#define TAXARBOR_INLINE static inline __attribute__((always_inline))
#define TAXARBOR_PREFETCH(p) __builtin_prefetch(p)
#else
#define TAXARBOR_INLINE static inline
#define TAXARBOR_PREFETCH(p) ((void)(p))
#endif

// One copy of each hot function for processors with AVX2 and FMA, one for the others.
#if defined(TAXARBOR_EXTENSIONS) && defined(__x86_64__) && !defined(__APPLE__) && \
    (defined(__clang__) ? (__clang_major__ >= 17) : (__GNUC__ >= 12))
#define TAXARBOR_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define TAXARBOR_CLONES
#endif

// 32 bytes of numbers: one AVX register, two of SSE or NEON.
template <class T> struct Lanes {
  static constexpr int64_t count = 32 / sizeof(T);
#ifdef TAXARBOR_EXTENSIONS
  typedef T type __attribute__((vector_size(32)));
#else
  struct type {
    T at[count];
    T operator[](int64_t l) const { return at[l]; }
    template <class F> static type each(const F& f) {
      type out;
      for (int64_t l = 0; l < count; ++l) out.at[l] = f(l);
      return out;
    }
    friend type operator+(const type& a, const type& b) {
      return each([&](int64_t l) { return a.at[l] + b.at[l]; });
    }
    friend type operator*(const type& a, const type& b) {
      return each([&](int64_t l) { return a.at[l] * b.at[l]; });
    }
    friend type operator*(T a, const type& b) {
      return each([&](int64_t l) { return a * b.at[l]; });
    }
    type& operator+=(const type& b) { return *this = *this + b; }
    type& operator-=(const type& b) {
      return *this = each([&](int64_t l) { return at[l] - b.at[l]; });
    }
  };
#endif
};

template <class T> TAXARBOR_INLINE void load(typename Lanes<T>::type& v, const T* p) {
  std::memcpy(&v, p, sizeof v);
}

template <class T> TAXARBOR_INLINE void store(T* p, const typename Lanes<T>::type& v) {
  std::memcpy(p, &v, sizeof v);
}

// ---- what is drawn: splitmix64 ------------------------------------------------------------------

constexpr uint64_t Golden = 0x9e3779b97f4a7c15;

constexpr uint64_t mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

// ---- sums ---------------------------------------------------------------------------------------

// Sum of term(j) over j < n through interleaved totals: one order, yet vectorisable. What is left
// of a number of terms that eight does not divide goes to the first, or, as a tree, one to each.
template <bool IsTree, class Term> TAXARBOR_INLINE double sum_terms(int64_t n, const Term& term) {
  constexpr int64_t L = 8;
  double total[L] = {}, sum = 0.0;
  int64_t j = 0;
  for (; j + L <= n; j += L)
    for (int64_t l = 0; l < L; ++l) total[l] += term(j + l);
  for (int64_t l = 0; j < n; ++j, l += IsTree) total[l] += term(j);
  if (IsTree)
    return ((total[0] + total[4]) + (total[2] + total[6])) +
        ((total[1] + total[5]) + (total[3] + total[7]));
  for (const double t : total) sum += t;
  return sum;
}

inline std::vector<int64_t> numbers(int64_t n) {
  std::vector<int64_t> all(n);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// ---- threads ------------------------------------------------------------------------------------

// Parts into which `n` rows are divided, for sums over rows: never by the thread count.
inline int part_count(int64_t n, int64_t rows_per_part, int64_t bytes_per_part) {
  const int64_t most =
      std::max<int64_t>(1, (int64_t{64} << 20) / std::max<int64_t>(1, bytes_per_part));
  const int64_t parts = (n + rows_per_part - 1) / rows_per_part;
  return static_cast<int>(std::clamp<int64_t>(parts, 1, std::min<int64_t>(16, most)));
}

// Rows, times what is done for each, from which several threads are worth waking for one sweep.
constexpr int64_t Several = 16384;

// Sweeps that run at this moment, in any thread: they share the threads that each may use.
inline std::atomic<int> sweeps_under_way{0};

// Threads do not survive a fork, and OpenMP would wait for them: a forked child sweeps alone.
inline std::atomic<bool> is_forked{false};

struct UnderWay {
  const int count = ++sweeps_under_way;
  ~UnderWay() { --sweeps_under_way; }
};

// Call body(part, first, last) for each part, side by side on up to `threads` threads.
template <class Body>
void for_parts(int64_t n, int parts, int threads, const Body& body, int64_t per_row = 1) {
  const auto edge = [&](int part) { return n * part / parts; };
  const UnderWay sweeps;
  threads /= sweeps.count;
#ifdef _OPENMP
  if (threads > 1 && parts > 1 && n * per_row >= Several && !is_forked) {
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

// ---- where one solver needs another's inner part ------------------------------------------------

// The largest absolute value. Infinities and NaN are refused: neither has a place in an order.
template <class T> double largest(const T* values, int64_t size) {
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

// Sum of [1 - s f]_+^2 over rows, s = +1 for label 0 and -1 for label 1; residual s [1 - s f]_+,
// active where it is not zero (hinge.cpp).
template <class T>
double pair_rows(const T* f, const int8_t* labels, int64_t n, T* residual, uint8_t* active);

// Ctrl-C must be heard while a kernel takes long; short ones must not wait for the GIL.
class Listener {
 public:
  void listen() {
    const auto now = std::chrono::steady_clock::now();
    if (now - heard_ < std::chrono::milliseconds(50)) return;
    heard_ = now;
    nb::gil_scoped_acquire hold;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }

 private:
  std::chrono::steady_clock::time_point heard_ = std::chrono::steady_clock::now();
};

// Sum over rows and k != y of [1 - s_y + s_k]_+^2 for scores S (n, K); residual (n, K) is minus
// half its derivative in the scores: zero where k does not threaten the row (hinge.cpp).
template <class T>
double hinge_rows(const T* S, const int32_t* labels, int64_t n, int64_t K, T* residual);

// Labels of least total hinge for scores S (n, K), every count within [lower, upper]; those that
// come in are kept if they are as good (assign.cpp).
template <class T>
void assign_rows(const T* S, int64_t n, int64_t K, int64_t lower, int64_t upper, int32_t* labels);

// cost (n, K): what each row would cost in each child, sum over l != k of [1 - s_k + s_l]_+^2.
template <class T> void cost_rows(const T* S, int64_t n, int64_t K, double* cost);

// Label 0 for the rows of largest f: those >= 0, or as many as the bounds allow (assign.cpp).
template <class T>
void split_pair(const T* f, int64_t n, int64_t lower, int64_t upper, int8_t* labels);

// Ward's K clusters of a few rows X (n, p), numbered by their first rows (ward.cpp).
template <class T> void ward_clusters(const T* X, int64_t n, int64_t p, int64_t K, int32_t* labels);

// Minimise a quadratic model plus a penalty by block coordinate descent, in place (descent.cpp).
struct QuadraticModel {
  const double* H;  // (M, F, F)
  int64_t n_models, n_features;
  double group;
  const double* l1;
  double ridge;
};
// How far feature p is from optimal: as SparseGroupPenalty.violations.
double distance(const QuadraticModel& model, int64_t p, const double* V, const double* gradient);
void descend(const QuadraticModel& model, double* V, double* gradient, double tol);

void bind_data(nb::module_& m);
void bind_pair(nb::module_& m);
void bind_kway(nb::module_& m);
void bind_hinge(nb::module_& m);
void bind_assign(nb::module_& m);
void bind_ward(nb::module_& m);
void bind_halve(nb::module_& m);
void bind_planes(nb::module_& m);
void bind_route(nb::module_& m);
