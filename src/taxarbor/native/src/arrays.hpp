// Arrays in and out of Python. Nothing that comes in is read before it has been checked; what is
// wrong is said in a ValueError: what was expected, and what came.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <new>
#include <numeric>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace nb = nanobind;

using Given = nb::ndarray<nb::ro, nb::device::cpu>;

template <class... Parts> [[noreturn]] void refuse(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  throw std::invalid_argument(text.str());
}

inline std::string type_name(nb::dlpack::dtype type) {
  static constexpr const char* kinds[] = {"int", "uint", "float", "?", "bfloat", "complex", "bool"};
  return (type.code < 7 ? kinds[type.code] : "?") +
      (type.code == 6 ? "" : std::to_string(type.bits));
}

inline std::string tuple_text(const std::vector<int64_t>& shape) {
  std::string out = "(";
  for (const int64_t n : shape) out += (n < 0 ? "any" : std::to_string(n)) + ", ";
  if (!shape.empty()) out.resize(out.size() - (shape.size() > 1 ? 2 : 1));
  return out + ")";
}

inline std::string shape_of(const Given& array) {
  std::vector<int64_t> shape(array.ndim());
  for (size_t k = 0; k < shape.size(); ++k) shape[k] = array.shape(k);
  return tuple_text(shape);
}

inline bool is_contiguous(const Given& array) {
  if (array.size() == 0) return true;
  int64_t step = 1;
  for (size_t k = array.ndim(); k-- > 0; step *= array.shape(k))
    if (array.shape(k) > 1 && array.stride(k) != step) return false;
  return true;
}

// An array of that type and shape, C-contiguous; -1 for any length.
inline const void* checked_bytes(const char* name, const Given& array, nb::dlpack::dtype type,
    std::initializer_list<int64_t> shape) {
  bool fits = array.ndim() == shape.size() && array.dtype() == type;
  for (size_t k = 0; fits && k < shape.size(); ++k)
    fits = shape.begin()[k] < 0 || static_cast<int64_t>(array.shape(k)) == shape.begin()[k];
  if (!fits)
    refuse(name, " must be an array of ", type_name(type), " of shape ", tuple_text(shape),
        "; got ", type_name(array.dtype()), " of shape ", shape_of(array));
  const bool aligned = reinterpret_cast<uintptr_t>(array.data()) % (type.bits / 8) == 0;
  if (!is_contiguous(array) || !aligned)
    refuse(name, " must be C-contiguous and aligned; np.ascontiguousarray makes it so");
  return array.data();
}
template <class T>
const T* checked(const char* name, const Given& array, std::initializer_list<int64_t> shape) {
  return static_cast<const T*>(checked_bytes(name, array, nb::dtype<T>(), shape));
}

// The same, with each whole number at least `least` and below `end`.
template <class T> const T* checked_range(const char* name, const Given& array,
    std::initializer_list<int64_t> shape, int64_t least, int64_t end) {
  const T* values = checked<T>(name, array, shape);
  for (size_t i = 0; i < array.size(); ++i)
    if (values[i] < least || values[i] >= end)
      refuse(name, " must lie between ", least, " and ", end - 1, "; got ", +values[i], " at ", i);
  return values;
}

inline const double* checked_finite(
    const char* name, const Given& array, std::initializer_list<int64_t> shape) {
  const double* values = checked<double>(name, array, shape);
  for (size_t i = 0; i < array.size(); ++i)
    if (!std::isfinite(values[i]))
      refuse(name, " must be finite; got ", values[i], " at position ", i);
  return values;
}

// Numbers that may be weights of a penalty: finite, none negative.
inline const double* checked_weights(const char* name, const Given& array, int64_t size) {
  const double* values = checked_finite(name, array, {size});
  for (int64_t i = 0; i < size; ++i)
    if (values[i] < 0.0) refuse(name, " must not be negative; got ", values[i], " at position ", i);
  return values;
}

inline int64_t checked_count(const char* name, int64_t value, int64_t least) {
  if (value < least) refuse(name, " must be at least ", least, "; got ", value);
  return value;
}

// Whole numbers below `end`, of which negative ones stand for none.
template <class T>
const T* checked_below(const char* name, const Given& array, int64_t size, int64_t end) {
  return checked_range<T>(name, array, {size}, std::numeric_limits<T>::min(), end);
}

inline void check_bounds(int64_t lower, int64_t upper, int64_t n) {
  if (lower < 0 || lower > upper || upper > n)
    refuse("bounds must satisfy 0 <= lower <= upper <= n; got lower = ", lower,
        " and upper = ", upper, " for n = ", n, " rows");
}

// Call body(T{}) with the type of a float32 or float64 array.
template <class Body> auto of_type(const char* name, const Given& array, const Body& body) {
  if (array.dtype() == nb::dtype<float>()) return body(float{});
  if (array.dtype() == nb::dtype<double>()) return body(double{});
  refuse(name, " must be float32 or float64; got ", type_name(array.dtype()));
}

// The fields of a problem, a dataclass, by their names.
struct Fields {
  nb::handle problem;
  template <class V> V get(const char* name) const {
    V value;
    const nb::object found = problem.attr(name);
    if (!nb::try_cast<V>(found, value))
      refuse(name, " cannot be read from ", nb::inst_name(found).c_str());
    return value;
  }
  double weight(const char* name) const {
    const double value = get<double>(name);
    if (!(value >= 0.0) || !std::isfinite(value))
      refuse(name, " must be finite and not negative; got ", value);
    return value;
  }
  int64_t count(const char* name, int64_t least) const {
    return checked_count(name, get<int64_t>(name), least);
  }
};

// ---- arrays that go out -------------------------------------------------------------------------

// Call body() while other Python threads may run.
template <class Body> auto unlocked(const Body& body) {
  const nb::gil_scoped_release free;
  return body();
}

// A NumPy array that owns its memory, left uninitialised.
template <class T> struct Owned {
  T* data;
  nb::capsule owner;
  explicit Owned(size_t size)
      : data(new T[std::max<size_t>(size, 1)]),
        owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); }) {}
  nb::object shaped(std::initializer_list<size_t> shape) const {
    return nb::cast(nb::ndarray<nb::numpy, T>(data, shape.size(), shape.begin(), owner));
  }
};

// A new array, filled while other Python threads may run.
template <class T, class Fill>
nb::object filled(std::initializer_list<size_t> shape, const Fill& fill) {
  size_t size = 1;
  for (const size_t n : shape) {
    if (n && size > SIZE_MAX / sizeof(T) / n) throw std::bad_alloc();
    size *= n;
  }
  const Owned<T> out(size);
  unlocked([&] { fill(out.data); });
  return out.shaped(shape);
}

template <class T>
nb::object copied(const std::vector<T>& from, std::initializer_list<size_t> shape) {
  return filled<T>(shape, [&](T* out) { std::copy(from.begin(), from.end(), out); });
}
template <class T> nb::object copied(const std::vector<T>& from) {
  return copied(from, {from.size()});
}
