// Sums without rounding, in whole numbers: they do not depend on the order or the blocks in which
// rows come, and those of blocks can be added up.
#include <nanobind/stl/optional.h>

#include "rows.hpp"

namespace {

// ---- sums of values: limbs of 32 bits, lowest first, the last one with a sign -------------------

// A value is a whole number of units, the least number above zero of its type. The limbs hold the
// sum of 2^74 of the greatest ones.
template <class T> struct Format;
template <> struct Format<float> {
  using Bits = uint32_t;
  static constexpr int Mantissa = 23, Exponents = 255, Unit = -149;
  static constexpr int64_t Limbs = 10;
};
template <> struct Format<double> {
  using Bits = uint64_t;
  static constexpr int Mantissa = 52, Exponents = 2047, Unit = -1074;
  static constexpr int64_t Limbs = 67;
};

constexpr int64_t Low = 0xffffffff;
constexpr int64_t Budget = int64_t{1} << 30;  // times that a limb's digits may be added to it

// a + b; what does not fit is lost, as in any sum of more than limbs can hold.
inline int64_t wrapped(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}

// Hand on what is above 32 bits.
inline void carry(int64_t* limbs, int64_t L) {
  for (int64_t k = 0; k + 1 < L; ++k) {
    limbs[k + 1] = wrapped(limbs[k + 1], limbs[k] >> 32);
    limbs[k] &= Low;
  }
}

// Add digits, times a number below 2^17 and 2^at: those of a value or of a short sum.
template <int Parts>
TAXARBOR_INLINE void add_digits(uint64_t digits, int at, int64_t times, int64_t* limbs) {
  const int shift = at & 31;
  const uint64_t moved = digits << shift;
  int64_t* limb = limbs + (at >> 5);
  limb[0] += static_cast<int64_t>(moved & Low) * times;
  limb[1] += static_cast<int64_t>(moved >> 32) * times;
  if constexpr (Parts == 3) limb[2] += static_cast<int64_t>((digits >> 1) >> (63 - shift)) * times;
}

// Add values, times a number below 2^16 and 2^up, to the sums of their columns; null: of each in
// turn. Whether none of them was infinite.
template <class T> TAXARBOR_CLONES bool add_values(
    const T* x, const int32_t* columns, int64_t size, int64_t times, int up, int64_t* sums) {
  using F = Format<T>;
  using Bits = typename F::Bits;
  constexpr Bits Top = Bits{1} << F::Mantissa;
  bool is_sound = true;
  for (int64_t e = 0; e < size; ++e) {
    Bits bits;
    std::memcpy(&bits, x + e, sizeof bits);
    const int exponent = static_cast<int>(bits >> F::Mantissa) & F::Exponents;
    const Bits digits = bits & (Top - 1);
    if (exponent == F::Exponents) {
      is_sound &= digits != 0;
      continue;
    }
    const bool is_normal = exponent != 0;
    add_digits<sizeof(T) == 4 ? 2 : 3>(digits | (is_normal ? Top : 0), exponent - is_normal + up,
        bits >> (8 * sizeof(T) - 1) ? -times : times, sums + (columns ? columns[e] : e) * F::Limbs);
  }
  return is_sound;
}

// Most dense values need no limbs of their own. Each feature has a grid, made for values up to a
// limit, on which sums of some rows are exact in double, and a finer one for what is not on the
// first. Values that are greater, or on neither grid, are added to the limbs.
constexpr int64_t Group = 64;  // features at a time
constexpr int MostLevels = 2;

struct Grids {
  std::vector<double> limit;              // 0: no grid yet
  std::vector<double> magic[MostLevels];  // to which a value is added to be rounded to the grid
  std::vector<int> unit;                  // of the first grid: its power of two
  explicit Grids(int64_t p) : limit(p), unit(p) {
    for (auto& one : magic) one.resize(p);
  }
};

// Add values of as many features, times a number, to sums, which are `step` apart from level to
// level; if all are missing or on the grids, otherwise none of them.
template <class T, int Levels> TAXARBOR_CLONES bool add_group(const T* x, int64_t size,
    const Grids& grids, int64_t first, double times, double* sums, int64_t step) {
  double parts[Levels][Group];
  const double* limit = grids.limit.data() + first;
  const double* upper = grids.magic[0].data() + first;
  const double* lower = grids.magic[1].data() + first;
  int64_t wrong = 0;  // as wide as the values, so that the loop vectorises
  for (int64_t j = 0; j < size; ++j) {
    const double given = static_cast<double>(x[j]), value = given == given ? given : 0.0;
    parts[0][j] = (value + upper[j]) - upper[j];
    double rest = value - parts[0][j];
    if constexpr (Levels == 2) {
      parts[1][j] = (rest + lower[j]) - lower[j];
      rest -= parts[1][j];
    }
    wrong |= (std::abs(value) <= limit[j] ? int64_t{0} : int64_t{1}) |
        (rest == 0.0 ? int64_t{0} : int64_t{1});
  }
  if (wrong) return false;
  for (int level = 0; level < Levels; ++level)
    for (int64_t j = 0; j < size; ++j) sums[level * step + j] += times * parts[level][j];
  return true;
}

template <class T> class ExactSums {
 public:
  ExactSums(const View<T>& rows, int64_t K, bool has_counts, int64_t* out)
      : rows_(rows), K_(K), p_(rows.n_features()), out_(out), grids_(p_) {
    std::fill(out, out + K * p_ * L, 0);
    // What is kept in double is handed on after so many copies: rarely, where there is much.
    bits_ = 53 - 9;
    while (bits_ > 53 - 16 && (copies() < 64 * K || (has_counts && copies() < 8192))) --bits_;
  }

  void run(const int32_t* labels, const int32_t* counts) {
    for (int64_t i = 0; i < rows_.n_rows(); ++i) {
      const int64_t label = labels ? labels[i] : 0, count = counts ? counts[i] : 1;
      if (label < 0 || count == 0) continue;
      const Entries<T> row = rows_.entries(i);
      if (row.columns || count > copies() / 64)
        add(row, label, 0, count, i);
      else
        add_on_grid(row.values, label, count, i);
    }
    hand_on();
    carry_all();
  }

 private:
  static constexpr int64_t L = Format<T>::Limbs;

  int64_t copies() const { return int64_t{1} << (53 - bits_); }
  int64_t* limbs(int64_t label, int64_t j) { return out_ + (label * p_ + j) * L; }

  // To the limbs, from those of feature j on.
  void add(const Entries<T>& row, int64_t label, int64_t j, int64_t count, int64_t i) {
    for (int up = 0; up <= 16; up += 16) {  // the count's lower digits, then the upper ones
      const int64_t times = (count >> up) & 0xffff;
      if (times == 0) continue;
      spend(times);
      if (!add_values(row.values, row.columns, row.size, times, up, limbs(label, j)))
        refuse("values must be finite or missing; got an infinite one in row ", i);
    }
  }

  void add_on_grid(const T* x, int64_t label, int64_t count, int64_t i) {
    if ((kept_ += count) > copies()) hand_on(), kept_ = count;
    if (sums_.empty()) sums_.resize(K_ * MostLevels * p_);
    double* own = sums_.data() + label * MostLevels * p_;
    for (int64_t j = 0; j < p_; j += Group) {
      const int64_t size = std::min(Group, p_ - j);
      const bool fits = levels_ == 1 ? add_group<T, 1>(x + j, size, grids_, j, count, own + j, p_)
                                     : add_group<T, 2>(x + j, size, grids_, j, count, own + j, p_);
      ++n_groups_;
      if (fits) continue;
      ++n_misfits_;
      for (int64_t l = j; l < j + size; ++l) add_one(x[l], label, l, count, own + l, i);
    }
  }

  // Add one value, after the grid of its feature was made for it; if it cannot be, to the limbs.
  void add_one(T x, int64_t label, int64_t j, int64_t count, double* sums, int64_t i) {
    if (std::abs(x) > grids_.limit[j]) make_grid(j, x);
    double rest = static_cast<double>(x), parts[MostLevels] = {};
    const bool is_small = std::abs(rest) <= grids_.limit[j];
    for (int level = 0; level < levels_; ++level) {
      const double magic = grids_.magic[level][j];
      parts[level] = (rest + magic) - magic;
      rest -= parts[level];
    }
    if (is_small && rest == 0.0) {
      for (int level = 0; level < levels_; ++level) sums[level * p_] += count * parts[level];
    } else {
      add({&x, nullptr, 1}, label, j, count, i);
    }
  }

  // A grid for values up to twice this one at least.
  void make_grid(int64_t j, T value) {
    const double size = std::abs(static_cast<double>(value));
    if (!(size > 0x1p-800 && size < 0x1p900)) return;  // no room for a grid
    for (int64_t label = 0; label < K_; ++label) hand_on(label, j);
    spend(1);
    const int above = std::ilogb(value) + 2;
    grids_.limit[j] = std::ldexp(1.0, above);
    grids_.unit[j] = above - bits_;
    for (int level = 0; level < MostLevels; ++level)
      grids_.magic[level][j] = std::ldexp(1.5, 52 + unit(j, level));
  }
  int unit(int64_t j, int level) const {
    return std::max(grids_.unit[j] - level * bits_, Format<T>::Unit);
  }

  // What is kept in double goes to the limbs.
  void hand_on(int64_t label, int64_t j) {
    for (int level = 0; level < levels_; ++level) {
      double& sum = sums_[(label * MostLevels + level) * p_ + j];
      if (sum == 0.0) continue;
      const auto digits = static_cast<int64_t>(std::ldexp(sum, -unit(j, level)));
      add_digits<3>(
          std::abs(digits), unit(j, level) - Format<T>::Unit, digits < 0 ? -1 : 1, limbs(label, j));
      sum = 0.0;
    }
  }
  void hand_on() {
    kept_ = 0;
    if (sums_.empty()) return;
    spend(1);
    for (int64_t label = 0; label < K_; ++label)
      for (int64_t j = 0; j < p_; ++j) hand_on(label, j);
    std::fill(grids_.limit.begin(), grids_.limit.end(), 0.0);
    if (8 * n_misfits_ > n_groups_) levels_ = MostLevels;  // this pays
    n_groups_ = n_misfits_ = 0;
  }

  // Before digits are added to limbs so many times.
  void spend(int64_t times) {
    times *= MostLevels;
    if ((used_ += times) > Budget) carry_all(), used_ = times;
  }
  void carry_all() {
    for (int64_t e = 0; e < K_ * p_; ++e) carry(out_ + e * L, L);
  }

  const View<T>& rows_;
  const int64_t K_, p_;
  int64_t* const out_;
  Grids grids_;
  std::vector<double> sums_;                      // (K, MostLevels, p)
  int bits_;                                      // of a value on its grid
  int levels_ = sizeof(T) == 4 ? 1 : MostLevels;  // float32 values of like size are on one grid
  int64_t kept_ = 0, used_ = 0, n_groups_ = 0, n_misfits_ = 0;
};

nb::object exact_sums(const Data& data, const std::optional<Given>& labels,
    const std::optional<Given>& counts, int64_t K) {
  return data.visit([&](const auto& rows) {
    using T = Number<decltype(rows)>;
    const int64_t n = rows.n_rows();
    checked_count("n_labels", K, 1);
    const int32_t* own = labels ? checked_below<int32_t>("labels", *labels, n, K) : nullptr;
    const int32_t* times = checked_counts(counts, n);
    const size_t p = rows.n_features();
    return filled<int64_t>({static_cast<size_t>(K), p, Format<T>::Limbs},
        [&](int64_t* out) { ExactSums<T>(rows, K, times != nullptr, out).run(own, times); });
  });
}

// The nearest double, of ties the even one.
double rounded(const int64_t* limbs, int64_t L, int unit, std::vector<int64_t>& digits) {
  digits.assign(limbs, limbs + L);
  carry(digits.data(), L);
  const bool is_negative = digits[L - 1] < 0;
  if (is_negative) {
    for (int64_t& digit : digits) digit = wrapped(~digit, 1);
    carry(digits.data(), L);
  }
  digits.push_back(static_cast<int64_t>(static_cast<uint64_t>(digits[L - 1]) >> 32));
  digits[L - 1] &= Low;
  int64_t k = L;
  while (k > 0 && digits[k] == 0) --k;
  const auto at = [&](int64_t j) { return j < 0 ? 0 : static_cast<uint64_t>(digits[j]); };
  // The highest 64 bits, from the first that is set, and whether any below them is.
  int zeros = 0;
  while (zeros < 31 && !(at(k) >> (31 - zeros))) ++zeros;
  const uint64_t top = at(k) << (32 + zeros) | at(k - 1) << zeros | (at(k - 2) << zeros) >> 32;
  bool rest = (at(k - 2) << zeros & Low) != 0;
  for (int64_t j = 0; j < k - 2; ++j) rest |= digits[j] != 0;
  const uint64_t below = top & 0x7ff;
  uint64_t kept = top >> 11;
  if (below > 0x400 || (below == 0x400 && (rest || (kept & 1)))) ++kept;
  const int exponent = static_cast<int>(32 * k) - 32 - zeros + 11 + unit;
  const double value = std::ldexp(static_cast<double>(kept), exponent);
  return is_negative ? -value : value;
}

nb::object exact_values(const Given& limbs, bool is_float32) {
  const int64_t L = is_float32 ? Format<float>::Limbs : Format<double>::Limbs;
  const int unit = is_float32 ? Format<float>::Unit : Format<double>::Unit;
  const size_t dimensions = limbs.ndim();
  if (limbs.dtype() != nb::dtype<int64_t>() || dimensions < 1 ||
      static_cast<int64_t>(limbs.shape(dimensions - 1)) != L)
    refuse("limbs must be an array of int64 whose last axis has ", L, " entries; got ",
        type_name(limbs.dtype()), " of shape ", shape_of(limbs));
  if (!is_contiguous(limbs) || reinterpret_cast<uintptr_t>(limbs.data()) % sizeof(int64_t))
    refuse("limbs must be C-contiguous and aligned; np.ascontiguousarray makes it so");
  const auto* from = static_cast<const int64_t*>(limbs.data());
  const size_t size = limbs.size() / L;
  nb::list shape;
  for (size_t k = 0; k + 1 < dimensions; ++k) shape.append(limbs.shape(k));
  const nb::object flat = filled<double>({size}, [&](double* out) {
    std::vector<int64_t> digits;
    for (size_t i = 0; i < size; ++i) out[i] = rounded(from + i * L, L, unit, digits);
  });
  return flat.attr("reshape")(nb::tuple(shape));
}

// ---- sums of products of coordinates on a grid --------------------------------------------------

constexpr int64_t PanelRows = 256, TileRows = 4, TileColumns = 8;
constexpr int64_t HiBits = 40, Greatest = int64_t{1} << 22;
constexpr int64_t FullRows = int64_t{1} << 18;  // products of 2^44 at most fill 62 bits

// panel (n, width) = z / unit, padded with zeros; whether all are whole and small enough.
TAXARBOR_CLONES bool fill_panel(
    const float* Z, int64_t n, int64_t q, int64_t width, double scale, double* panel) {
  constexpr double Whole = 0x1.8p52;  // what is added to it is rounded to a whole number
  bool is_sound = true;
  for (int64_t i = 0; i < n; ++i) {
    const float* z = Z + i * q;
    double* out = panel + i * width;
    int wrong = 0;
    for (int64_t j = 0; j < q; ++j) {
      const double value = static_cast<double>(z[j]) * scale;
      wrong |= !(std::abs(value) <= Greatest) | ((value + Whole) - Whole != value);
      out[j] = value;
    }
    is_sound &= !wrong;
  }
  return is_sound;
}

// Add panel' * panel to the upper triangle (by tiles) of `sum`: exact, at most 2^52 in a panel.
TAXARBOR_CLONES void add_products(const double* panel, int64_t n, int64_t width, int64_t* sum) {
  using V = Lanes<double>::type;
  constexpr int64_t L = Lanes<double>::count;
  for (int64_t q = 0; q < width; q += TileColumns)
    for (int64_t p = 0; p < q + TileColumns; p += TileRows) {
      V acc[TileRows][2] = {};
      const double* z = panel;
      for (int64_t i = 0; i < n; ++i, z += width) {
        V b0, b1;
        load<double>(b0, z + q), load<double>(b1, z + q + L);
        for (int64_t r = 0; r < TileRows; ++r) {
          acc[r][0] += z[p + r] * b0;
          acc[r][1] += z[p + r] * b1;
        }
      }
      for (int64_t r = 0; r < TileRows; ++r) {
        double lanes[TileColumns];
        store<double>(lanes, acc[r][0]), store<double>(lanes + L, acc[r][1]);
        int64_t* own = sum + (p + r) * width + q;
        for (int64_t l = 0; l < TileColumns; ++l) own[l] += static_cast<int64_t>(lanes[l]);
      }
    }
}

void gram_on_grid(const float* Z, int64_t n, int64_t q, double unit, int64_t* out) {
  const int64_t width = (q + TileColumns - 1) / TileColumns * TileColumns;
  std::vector<double> panel(PanelRows * width);
  std::vector<int64_t> sum(width * width);
  int64_t *hi = out, *lo = out + q * q;
  std::fill(out, out + 2 * q * q, 0);
  int64_t waiting = 0;
  const auto hand_on = [&] {
    for (int64_t i = 0; i < q; ++i)
      for (int64_t j = i; j < q; ++j) {
        const int64_t total = sum[i * width + j] + lo[i * q + j];
        hi[i * q + j] += total >> HiBits;
        lo[i * q + j] = total & ((int64_t{1} << HiBits) - 1);
      }
    std::fill(sum.begin(), sum.end(), 0);
    waiting = 0;
  };
  for (int64_t from = 0; from < n; from += PanelRows) {
    const int64_t size = std::min(PanelRows, n - from);
    if (!fill_panel(Z + from * q, size, q, width, 1.0 / unit, panel.data()))
      refuse("Z must be multiples of the unit, at most ", Greatest, " of them; those of rows ",
          from, " to ", from + size - 1, " are not all");
    add_products(panel.data(), size, width, sum.data());
    if ((waiting += size) >= FullRows) hand_on();
  }
  hand_on();
  for (int64_t half = 0; half < 2; ++half)
    for (int64_t i = 0; i < q; ++i)
      for (int64_t j = 0; j < i; ++j) out[half * q * q + i * q + j] = out[half * q * q + j * q + i];
}

nb::object exact_gram(const Given& given, double unit) {
  const float* Z = checked<float>("Z", given, {-1, -1});
  int exponent = 0;
  if (!(std::frexp(unit, &exponent) == 0.5) || std::abs(exponent) > 1000)
    refuse("unit must be a power of two, between 2^-1000 and 2^1000; got ", unit);
  const size_t q = given.shape(1);
  return filled<int64_t>(
      {2, q, q}, [&](int64_t* out) { gram_on_grid(Z, given.shape(0), q, unit, out); });
}

}  // namespace

void bind_exact(nb::module_& m) {
  using namespace nb::literals;
  m.def("exact_sums", &exact_sums, "data"_a, "labels"_a.none(), "counts"_a.none(), "n_labels"_a,
      nb::sig("def exact_sums(data: Data, labels: NDArray[int32] | None, "
              "counts: NDArray[int32] | None, n_labels: int) -> NDArray[int64]"),
      "Exact sums of the values of each label's rows, times their counts, in limbs of 32 bits.\n\n"
      "Of shape (n_labels, n_features, n_limbs), lowest limb first: such arrays can be added up,\n"
      "and exact_values says what they are. The centre does not matter; NaN, and rows of a\n"
      "negative label or of count 0, add nothing.");
  m.def("exact_values", &exact_values, "limbs"_a, "is_float32"_a,
      nb::sig("def exact_values(limbs: NDArray[int64], is_float32: bool) -> Array"),
      "The nearest double of each sum of exact_sums, of float32 or float64 values.");
  m.def("exact_gram", &exact_gram, "Z"_a, "unit"_a,
      nb::sig("def exact_gram(Z: Array, unit: float) -> NDArray[int64]"),
      "The exact sum of z z' over rows, (2, n_features, n_features), as whole numbers hi and "
      "lo.\n\n"
      "It is (hi * 2^40 + lo) * unit^2, 0 <= lo < 2^40. Values are multiples of the unit, a power\n"
      "of two, and at most 2^22 of them. Such arrays can be added up, whatever lo becomes.");
}
