// The compiled part of taxarbor: one class for the data of a node, free functions on it and on
// plain arrays. Everything that comes in is checked; ValueError says what is wrong with it.
#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#define TAXARBOR_FORKS
#endif

#include "common.hpp"

std::string type_name(nb::dlpack::dtype type) {
  static constexpr const char* kinds[] = {"int", "uint", "float", "?", "bfloat", "complex", "bool"};
  return (type.code < 7 ? kinds[type.code] : "?") +
      (type.code == 6 ? "" : std::to_string(type.bits));
}

namespace {

std::string tuple_text(const std::vector<int64_t>& shape) {
  std::string out = "(";
  for (const int64_t n : shape) out += (n < 0 ? "any" : std::to_string(n)) + ", ";
  if (!shape.empty()) out.resize(out.size() - (shape.size() > 1 ? 2 : 1));
  return out + ")";
}

bool is_contiguous(const Given& array) {
  if (array.size() == 0) return true;
  int64_t step = 1;
  for (size_t k = array.ndim(); k-- > 0; step *= array.shape(k))
    if (array.shape(k) > 1 && array.stride(k) != step) return false;
  return true;
}

}  // namespace

std::string shape_of(const Given& array) {
  std::vector<int64_t> shape(array.ndim());
  for (size_t k = 0; k < shape.size(); ++k) shape[k] = array.shape(k);
  return tuple_text(shape);
}

const void* checked_bytes(const char* name, const Given& array, nb::dlpack::dtype type,
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

const double* checked_finite(
    const char* name, const Given& array, std::initializer_list<int64_t> shape) {
  const double* values = checked<double>(name, array, shape);
  for (size_t i = 0; i < array.size(); ++i)
    if (!std::isfinite(values[i]))
      refuse(name, " must be finite; got ", values[i], " at position ", i);
  return values;
}

const double* checked_weights(const char* name, const Given& array, int64_t size) {
  const double* values = checked_finite(name, array, {size});
  for (int64_t i = 0; i < size; ++i)
    if (values[i] < 0.0) refuse(name, " must not be negative; got ", values[i], " at position ", i);
  return values;
}

double checked_weight(const char* name, double value) {
  if (!(value >= 0.0) || !std::isfinite(value))
    refuse(name, " must be finite and not negative; got ", value);
  return value;
}

int64_t checked_count(const char* name, int64_t value, int64_t least) {
  if (value < least) refuse(name, " must be at least ", least, "; got ", value);
  return value;
}

void check_bounds(int64_t lower, int64_t upper, int64_t n) {
  if (lower < 0 || lower > upper || upper > n)
    refuse("bounds must satisfy 0 <= lower <= upper <= n; got lower = ", lower,
        " and upper = ", upper, " for n = ", n, " rows");
}

NB_MODULE(_kernels, m) {
#ifdef TAXARBOR_FORKS
  pthread_atfork(nullptr, nullptr, [] {
    is_forked = true;
    sweeps_under_way = 0;
  });
#endif
  bind_data(m);
  bind_pair(m);
  bind_rule(m);
  bind_hinge(m);
  bind_descent(m);
  bind_assign(m);
  bind_ward(m);
}
