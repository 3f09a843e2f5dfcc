// The data of a node as Python holds it, checked when it is made, and the sweeps over it.
#include "rows.hpp"

namespace {

constexpr int64_t MaxColumns = std::numeric_limits<int32_t>::max();  // CSR columns are int32

void check_csr(const int32_t* columns, int64_t size, const int64_t* starts, int64_t n, int64_t p) {
  if (starts[0] != 0 || starts[n] != size)
    refuse("starts must run from 0 to the number of values, ", size, "; got ", starts[0], " to ",
        starts[n]);
  for (int64_t i = 0; i < n; ++i)
    if (starts[i] > starts[i + 1])
      refuse("starts must not fall; got ", starts[i], " and then ", starts[i + 1], " at row ", i);
  std::vector<int64_t> last(0);  // the row in which each column was seen last
  for (int64_t i = 0; i < n; ++i) {
    bool ascends = true;
    for (int64_t e = starts[i]; e < starts[i + 1]; ++e) {
      if (columns[e] < 0 || columns[e] >= p)
        refuse("columns must lie between 0 and ", p - 1, "; got ", columns[e], " in row ", i);
      ascends &= e == starts[i] || columns[e - 1] < columns[e];
    }
    if (ascends) continue;
    last.resize(p, -1);
    for (int64_t e = starts[i]; e < starts[i + 1]; ++e)
      if (std::exchange(last[columns[e]], i) == i)
        refuse("column ", columns[e], " is stored twice in row ", i,
            "; sum_duplicates() adds such entries up");
  }
}

// Set the centre of new rows: the one given, or their mean.
template <class T> Data about(std::shared_ptr<View<T>> view, const std::optional<Given>& center) {
  const int64_t p = view->n_features();
  if (center) {
    view->set_center(of_type("center", *center, [&](auto number) {
      const auto* at = checked<decltype(number)>("center", *center, {p});
      return std::vector<double>(at, at + p);
    }));
  } else {
    if (view->n_rows() == 0) refuse("the mean of no rows is not defined; give a center");
    unlocked([&] { view->center_on_mean(); });
  }
  return {std::move(view)};
}

int checked_threads(int64_t threads) {
  if (threads < 1 || threads > 1 << 20) refuse("n_threads must be at least 1; got ", threads);
  return static_cast<int>(threads);
}

Data make_dense(const Given& X, const std::optional<Given>& center, int64_t threads) {
  return of_type("X", X, [&](auto number) {
    using T = decltype(number);
    checked<T>("X", X, {-1, -1});
    if (X.size() == 0) refuse("X must have a row and a feature at least; got shape ", shape_of(X));
    return about(view_dense<T>(X, checked_threads(threads)), center);
  });
}

Data make_csr(const Given& values, const Given& columns, const Given& starts, int64_t n_features,
    const std::optional<Given>& center, int64_t threads) {
  return of_type("values", values, [&](auto number) {
    using T = decltype(number);
    checked<T>("values", values, {-1});
    const int64_t size = values.shape(0);
    const int32_t* column = checked<int32_t>("columns", columns, {size});
    const int64_t* start = checked<int64_t>("starts", starts, {-1});
    if (starts.shape(0) < 2)
      refuse("starts must have an entry per row and one more; got ", starts.shape(0));
    if (n_features < 1 || n_features > MaxColumns)
      refuse("n_features must lie between 1 and ", MaxColumns, "; got ", n_features);
    check_csr(column, size, start, starts.shape(0) - 1, n_features);
    return about(
        view_csr<T>(values, columns, starts, n_features, checked_threads(threads)), center);
  });
}

Data take(const Data& data, const Given& positions, const std::optional<Given>& center) {
  return data.visit([&](const auto& rows) {
    const int64_t* at = checked_range<int64_t>("positions", positions, {-1}, 0, rows.n_rows());
    const int64_t n = positions.shape(0);
    bool is_all = n == rows.n_rows();  // the same rows about another centre: nothing to list
    for (int64_t i = 0; i < n && is_all; ++i) is_all = at[i] == i;
    if (is_all) return about(rows.with(rows.index()), center);
    std::vector<int64_t> index(at, at + n);
    if (rows.index())
      for (int64_t& i : index) i = (*rows.index())[i];
    return about(rows.with(std::move(index)), center);
  });
}

nb::object scores(const Data& data, const Given& given) {
  return data.visit([&](const auto& rows) {
    using T = Number<decltype(rows)>;
    const double* W = checked<double>("W", given, {-1, rows.n_features()});
    const size_t n = rows.n_rows(), m = given.shape(0);
    return filled<T>({n, m}, [&](T* out) { rows.scores(W, m, out); });
  });
}

nb::object best(const Data& data, const Given& given, const Given& offsets) {
  return data.visit([&](const auto& rows) {
    const double* W = checked<double>("W", given, {-1, rows.n_features()});
    const size_t n = rows.n_rows(), m = given.shape(0);
    checked_count("the number of models", m, 1);
    const double* added = checked<double>("offsets", offsets, {static_cast<int64_t>(m)});
    return filled<int64_t>({n}, [&](int64_t* out) { rows.best(W, added, m, out); });
  });
}

nb::object adjoint(const Data& data, const Given& given) {
  return data.visit([&](const auto& rows) {
    const auto* R = checked<Number<decltype(rows)>>("R", given, {rows.n_rows(), -1});
    const size_t m = given.shape(1), p = rows.n_features();
    return filled<double>({m, p}, [&](double* out) { rows.adjoint(R, m, out); });
  });
}

nb::object gram(const Data& data, const Given& positions, const Given& features) {
  return data.visit([&](const auto& rows) {
    const int64_t* at = checked_range<int64_t>("positions", positions, {-1}, 0, rows.n_rows());
    const int64_t* used = checked_range<int64_t>("features", features, {-1}, 0, rows.n_features());
    const size_t n = positions.shape(0), f = features.shape(0);
    for (size_t j = 1; j < f; ++j)
      if (used[j - 1] >= used[j])
        refuse("features must ascend, each once; got ", used[j - 1], " and then ", used[j]);
    return filled<double>({f, f}, [&](double* out) { rows.gram(at, n, used, f, out); });
  });
}

nb::object spread(const Data& data) {
  return data.visit([&](const auto& rows) {
    if (rows.n_rows() == 0) refuse("the mean of no rows is not defined");
    const size_t p = rows.n_features();
    return filled<double>({p}, [&](double* out) { rows.mean(true, out); });
  });
}

nb::object norms(const Data& data) {
  return data.visit([&](const auto& rows) {
    const size_t n = rows.n_rows();
    return filled<double>({n}, [&](double* out) { rows.norms(out); });
  });
}

// Sums of the rows of each label, times their counts, in the order of the rows; those of a negative
// label are left out. The rows may be those of a wider array.
template <class T, class Label> void add_labelled(const T* x, int64_t n, int64_t p, int64_t step,
    const Label* labels, const int32_t* counts, double* out) {
  for (int64_t i = 0; i < n; ++i) {
    if (labels[i] < 0 || (counts && counts[i] == 0)) continue;
    double* sum = out + labels[i] * p;
    const double count = counts ? counts[i] : 1.0;
    for (int64_t j = 0; j < p; ++j) sum[j] += count * static_cast<double>(x[i * step + j]);
  }
}

nb::object label_sums(
    const Given& X, const Given& labels, int64_t K, const std::optional<Given>& counts) {
  return of_type("X", X, [&](auto number) {
    using T = decltype(number);
    const bool is_rows = X.ndim() == 2 && (X.shape(1) < 2 || X.stride(1) == 1);
    if (!is_rows || reinterpret_cast<uintptr_t>(X.data()) % sizeof(T))
      refuse("X must be a matrix whose rows are contiguous and aligned; got shape ", shape_of(X));
    const int64_t n = X.shape(0), p = X.shape(1), step = X.stride(0);
    checked_count("n_labels", K, 1);
    const int32_t* times =
        counts ? checked_range<int32_t>("counts", *counts, {n}, 0, int64_t{1} << 31) : nullptr;
    const T* x = static_cast<const T*>(X.data());
    const auto sums = [&](auto label) {
      using Label = decltype(label);
      const Label* own = checked_below<Label>("labels", labels, n, K);
      return filled<double>({static_cast<size_t>(K), X.shape(1)}, [&](double* out) {
        std::fill(out, out + K * p, 0.0);
        add_labelled(x, n, p, step, own, times, out);
      });
    };
    return labels.dtype() == nb::dtype<int32_t>() ? sums(int32_t{}) : sums(int64_t{});
  });
}

nb::object lloyd(const Data& data, const Given& start, int64_t n_steps) {
  return data.visit([&](const auto& rows) {
    const double* from = checked<double>("centers", start, {-1, rows.n_features()});
    const size_t n = rows.n_rows(), K = start.shape(0), p = rows.n_features();
    checked_count("the number of centers", K, 1);
    checked_count("n_steps", n_steps, 1);
    Owned<int32_t> labels(n);
    const nb::object found = filled<double>({K, p}, [&](double* centers) {
      std::copy(from, from + K * p, centers);
      step_centers(rows, n_steps, K, centers, labels.data);
    });
    return nb::object(nb::make_tuple(labels.shaped({n}), found));
  });
}

nb::object principal(const Data& data, const Given& start, int64_t n_steps) {
  return data.visit([&](const auto& rows) {
    const size_t p = rows.n_features();
    const double* from = checked<double>("start", start, {rows.n_features()});
    checked_count("n_steps", n_steps, 0);
    return filled<double>({p}, [&](double* direction) {
      std::copy(from, from + p, direction);
      step_direction(rows, n_steps, std::numeric_limits<double>::denorm_min(), direction);
    });
  });
}

}  // namespace

void bind_data(nb::module_& m) {
  using namespace nb::literals;
  nb::class_<Data>(m, "Data", "Some rows of a matrix, about a centre: what the sweeps are over.")
      .def_static("dense", &make_dense, "X"_a, "center"_a.none(), "n_threads"_a,
          nb::sig("def dense(X: Array, center: Array | None, n_threads: int) -> Data"),
          "All rows of a C-contiguous matrix, about a centre or their mean.")
      .def_static("csr", &make_csr, "values"_a, "columns"_a, "starts"_a, "n_features"_a,
          "center"_a.none(), "n_threads"_a,
          nb::sig("def csr(values: Array, columns: NDArray[int32], starts: IndexArray, "
                  "n_features: int, center: Array | None, n_threads: int) -> Data"),
          "All rows of a CSR matrix, about a centre or their mean.")
      .def("take", &take, "positions"_a, "center"_a.none() = nb::none(),
          nb::sig("def take(self, positions: IndexArray, center: Array | None = None) -> Data"),
          "Some of these rows, about a centre or their mean.")
      .def_prop_ro("n_rows", &Data::n_rows)
      .def_prop_ro("n_features", &Data::n_features)
      .def_prop_ro("n_threads", &Data::n_threads, "One in a process that was forked.")
      .def_prop_ro("center", &Data::center, nb::sig("def center(self) -> Array"))
      .def_prop_ro("index", &Data::index, nb::sig("def index(self) -> IndexArray | None"),
          "Their rows in the matrix; None for all.");
  m.def("scores", &scores, "data"_a, "W"_a, nb::sig("def scores(data: Data, W: Array) -> Array"));
  m.def("best", &best, "data"_a, "W"_a, "offsets"_a,
      nb::sig("def best(data: Data, W: Array, offsets: Array) -> IndexArray"),
      "The position of each row's highest score, the first of ties.");
  m.def(
      "adjoint", &adjoint, "data"_a, "R"_a, nb::sig("def adjoint(data: Data, R: Array) -> Array"));
  m.def("gram", &gram, "data"_a, "positions"_a, "features"_a,
      nb::sig("def gram(data: Data, positions: IndexArray, features: IndexArray) -> Array"));
  m.def("spread", &spread, "data"_a, nb::sig("def spread(data: Data) -> Array"),
      "The mean of each feature's distance from the centre.");
  m.def("label_sums", &label_sums, "X"_a, "labels"_a, "n_labels"_a, "counts"_a.none() = nb::none(),
      nb::sig("def label_sums(X: Array, labels: Labels, n_labels: int, "
              "counts: NDArray[int32] | None = None) -> Array"));
  m.def("norms", &norms, "data"_a, nb::sig("def norms(data: Data) -> Array"));
  m.def("lloyd", &lloyd, "data"_a, "centers"_a, "n_steps"_a,
      nb::sig(
          "def lloyd(data: Data, centers: Array, n_steps: int) -> tuple[NDArray[int32], Array]"));
  m.def("principal", &principal, "data"_a, "start"_a, "n_steps"_a,
      nb::sig("def principal(data: Data, start: Array, n_steps: int) -> Array"));
}
