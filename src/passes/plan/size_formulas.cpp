// Polynomials by elimination, blocks by trying; both are held to every sample.
#include "passes/plan/size_formulas.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <utility>

namespace tilewright::passes {

namespace {

constexpr int kLinear = 1, kQuadratic = 2;

// The x of rows · x = values by Gaussian elimination; unknowns that the rows leave open are 0.
std::vector<long double> solved(std::vector<std::vector<long double>> rows, std::vector<long double> values) {
  const std::size_t unknowns = rows[0].size();
  std::vector<long double> x(unknowns, 0);
  std::vector<std::pair<std::size_t, std::size_t>> pivots;  // row, column
  std::size_t row = 0;
  for (std::size_t column = 0; column < unknowns && row < rows.size(); ++column) {
    std::size_t best = row;
    for (std::size_t r = row; r < rows.size(); ++r)
      if (std::fabs(rows[r][column]) > std::fabs(rows[best][column])) best = r;
    constexpr long double kNothing = 1e-6L;  // terms are integers: what is less is rounding
    if (std::fabs(rows[best][column]) < kNothing) continue;
    std::swap(rows[row], rows[best]);
    std::swap(values[row], values[best]);
    for (std::size_t r = row + 1; r < rows.size(); ++r) {
      const long double share = rows[r][column] / rows[row][column];
      for (std::size_t c = column; c < unknowns; ++c) rows[r][c] -= share * rows[row][c];
      values[r] -= share * values[row];
    }
    pivots.push_back({row++, column});
  }
  for (auto p = pivots.rbegin(); p != pivots.rend(); ++p) {
    const auto [r, column] = *p;
    long double rest = values[r];
    for (std::size_t c = column + 1; c < unknowns; ++c) rest -= rows[r][c] * x[c];
    x[column] = rest / rows[r][column];
  }
  return x;
}

// Sums and products that wrap around: a polynomial that is tried may be far off, and one that is right is so
// whatever its terms are.
std::int64_t sum_of(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
std::int64_t product_of(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

std::int64_t weighted(const std::vector<std::int64_t>& factors, const std::vector<std::int64_t>& terms) {
  return std::inner_product(factors.begin(), factors.end(), terms.begin(), std::int64_t{0}, sum_of,
                            product_of);
}

}  // namespace

// 1, the sizes, and with degree two their products.
std::vector<std::int64_t> SizeFormulas::terms(std::span<const Index> sizes, int degree) const {
  std::vector<std::int64_t> out = {1};
  for (std::size_t i = 0; i < sizes.size(); ++i) out.push_back(sizes[i] - origin_[i]);
  if (degree == kLinear) return out;
  for (std::size_t i = 1; i <= sizes.size(); ++i)
    for (std::size_t j = i; j <= sizes.size(); ++j) out.push_back(product_of(out[i], out[j]));
  return out;
}

std::int64_t SizeFormulas::value(const Polynomial& p, std::span<const Index> sizes) const {
  return weighted(p.factors, terms(sizes, kQuadratic));
}

std::int64_t SizeFormulas::Blocks::from(std::int64_t u) const {
  return product_of(times, ceil_div(u - start, block));
}

class SizeFormulas::Search {
 public:
  Search(SizeFormulas& formulas, const std::vector<SizeSample>& samples)
      : formulas_(formulas), samples_(samples) {}

  Status run() {
    const std::vector<PlanNumber>& first = samples_[0].numbers;
    std::vector<std::size_t> others;
    for (std::size_t n = 0; n < first.size(); ++n) {
      formulas_.constants_.push_back(first[n].bits);
      const bool differs = std::any_of(samples_.begin(), samples_.end(),
                                       [&](const SizeSample& s) { return !(s.numbers[n] == first[n]); });
      if (!differs) continue;
      auto polynomial = first[n].dtype == DType::i64 ? polynomial_of(n) : std::nullopt;
      if (polynomial)
        formulas_.polynomials_.push_back(std::move(*polynomial));
      else
        others.push_back(n);
    }
    for (std::size_t n : others) {
      if (is_float(first[n].dtype)) {
        auto formula = float_of(n);
        if (!formula) return formula.error();
        formulas_.floats_.push_back({n, std::move(*formula)});
        continue;
      }
      auto blocks = blocks_of(n);
      if (!blocks) return blocks.error();
      formulas_.blocks_.push_back(*blocks);
    }
    return Unit{};
  }

  std::vector<Index> apart() const { return apart_; }

 private:
  std::int64_t bits(std::size_t sample, std::size_t number) const {
    return samples_[sample].numbers[number].bits;
  }

  std::optional<Polynomial> polynomial_of(std::size_t number) const {
    constexpr long double kLargest = 1e18L;  // what llround() takes
    for (const int degree : {kLinear, kQuadratic}) {
      std::vector<std::vector<long double>> rows;
      std::vector<long double> values;
      for (std::size_t s = 0; s < samples_.size(); ++s) {
        const std::vector<std::int64_t> t = formulas_.terms(samples_[s].sizes, degree);
        rows.emplace_back(t.begin(), t.end());
        values.push_back(static_cast<long double>(bits(s, number)));
      }
      Polynomial p{number, {}};
      bool right = true;
      for (const long double x : solved(std::move(rows), std::move(values))) {
        right = right && std::fabs(x) < kLargest;
        p.factors.push_back(right ? std::llround(x) : 0);
      }
      for (std::size_t s = 0; s < samples_.size() && right; ++s)
        right = formulas_.value(p, samples_[s].sizes) == bits(s, number);
      if (right) return p;
    }
    return std::nullopt;
  }

  // Formulas that give the number at each sample and are the same between them.
  Result<Blocks> blocks_of(std::size_t number) {
    Result<Blocks> out = only_one(number, right(number, candidates(number)));
    if (out || out.error().kind == Failure::Kind::unsupported) return out;
    return only_one(number, right(number, steps(number)));
  }

  Result<FloatFormula> float_of(std::size_t number) {
    std::vector<Count> counts;
    counts.reserve(formulas_.polynomials_.size());
    for (const Polynomial& p : formulas_.polynomials_) counts.push_back({p.number, {}, all_bits(p.number)});
    std::vector<double> constants;
    const std::vector<PlanNumber>& first = samples_[0].numbers;
    for (std::size_t n = 0; n < first.size(); ++n) {
      const std::vector<std::int64_t> all = all_bits(n);
      if (is_float(first[n].dtype) && std::count(all.begin(), all.end(), all[0]) == std::ssize(all))
        constants.push_back(tile::scalar_value(first[n].dtype, all[0]));
    }
    return only_one(number, float_formulas(first[number].dtype, all_bits(number), counts, constants));
  }

  std::vector<std::int64_t> all_bits(std::size_t number) const {
    std::vector<std::int64_t> out;
    out.reserve(samples_.size());
    for (std::size_t s = 0; s < samples_.size(); ++s) out.push_back(bits(s, number));
    return out;
  }

  // Those that give the number at each sample.
  std::vector<Blocks> right(std::size_t number, std::vector<Blocks> all) const {
    std::erase_if(all, [&](const Blocks& b) {
      bool right = true;
      for (std::size_t s = 0; s < samples_.size() && right; ++s)
        right = b.from(bits(s, b.of)) == bits(s, number);
      return !right;
    });
    return all;
  }

  // A failure of kind not_found where none is right, unsupported where two are that differ.
  template <class Formula>
  Result<Formula> only_one(std::size_t number, const std::vector<Formula>& all) {
    if (all.empty())
      return failure(
          Failure::Kind::not_found,
          fmt::format("a number in its program, such as {}, follows the size by no rule that is known: it is "
                      "{} at size {}, and {} at size {}",
                      is_float(samples_[0].numbers[number].dtype) ? "a factor made of a mean's 1 / n"
                                                                  : "an extent or a count of bytes",
                      number_text(samples_.front(), number), sizes_text(samples_.front()),
                      number_text(samples_.back(), number), sizes_text(samples_.back())));
    for (const Formula& other : all)
      if (auto apart = where_apart(all[0], other)) {
        apart_ = std::move(*apart);
        return failure(Failure::Kind::unsupported, "a number that may follow the sizes in two ways");
      }
    return all[0];
  }

  static std::string sizes_text(const SizeSample& sample) {
    return fmt::format("{}", fmt::join(sample.sizes, ", "));
  }

  static std::string number_text(const SizeSample& sample, std::size_t number) {
    const auto [dtype, bits] = sample.numbers[number];
    if (!is_float(dtype)) return fmt::format("{}", bits);
    return fmt::format("{}", static_cast<float>(tile::scalar_value(dtype, bits)));
  }

  std::vector<Blocks> candidates(std::size_t number) const {
    constexpr std::int64_t kLargestBlock = 8192;
    std::vector<Blocks> out;
    if (samples_[0].numbers[number].dtype != DType::i64) return out;
    for (const Polynomial& p : formulas_.polynomials_)
      for (std::int64_t block = 2; block <= kLargestBlock; block *= 2) {
        const std::int64_t blocks = ceil_div(bits(0, p.number), block);
        if (blocks > 0 && bits(0, number) % blocks == 0)
          out.push_back({number, p.number, block, bits(0, number) / blocks});
      }
    return out;
  }

  // Steps from a start on, of lengths that slices have: each sample says where the start may be.
  std::vector<Blocks> steps(std::size_t number) const {
    constexpr std::int64_t kLongestStep = 16;
    std::vector<Blocks> out;
    if (samples_[0].numbers[number].dtype != DType::i64) return out;
    std::int64_t times = 0;  // two samples are one step apart
    for (std::size_t s = 0; s < samples_.size(); ++s)
      times = std::gcd(times, bits(s, number) - bits(0, number));
    if (times == 0 || bits(0, number) % times != 0) return out;
    for (const Polynomial& p : formulas_.polynomials_)
      for (std::int64_t step = 2; step <= kLongestStep; ++step) {
        std::int64_t first = std::numeric_limits<std::int64_t>::min(),
                     last = std::numeric_limits<std::int64_t>::max();
        for (std::size_t s = 0; s < samples_.size(); ++s) {
          const std::int64_t rest = sum_of(bits(s, p.number), -product_of(bits(s, number) / times, step));
          first = std::max(first, rest);
          last = std::min(last, sum_of(rest, step - 1));
        }
        for (std::int64_t start = first; start <= last; ++start)
          out.push_back({number, p.number, step, times, start});
      }
    return out;
  }

  // Sizes at which two formulas differ, of those along each size from its least sample on, as far apart as
  // samples are, for two rounds of their blocks (what covers a polynomial of degree one repeats after one),
  // and of drawn ones between the samples.
  template <class Formula>
  std::optional<std::vector<Index>> where_apart(const Formula& a, const Formula& b) const {
    const auto same = [&](const std::vector<Index>& sizes) { return at(a, sizes) == at(b, sizes); };
    constexpr int kDrawn = 64;
    std::mt19937_64 random(1);
    for (int d = 0; d < kDrawn; ++d) {
      std::vector<Index> sizes(samples_[0].sizes.size());
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        const Course c = course(i);
        sizes[i] = c.least + c.step * static_cast<Index>(random() % static_cast<std::uint64_t>(c.count));
      }
      if (!same(sizes)) return sizes;
    }
    for (std::size_t i = 0; i < samples_[0].sizes.size(); ++i) {
      const Course c = course(i);
      std::vector<Index> sizes = samples_[0].sizes;
      const Index count = std::min(c.count, 2 * std::max(round_of(a), round_of(b)) + 1);
      for (Index k = 0; k < count; ++k) {
        sizes[i] = c.least + k * c.step;
        if (!same(sizes)) return sizes;
      }
    }
    return std::nullopt;
  }

  std::int64_t at(const Blocks& b, const std::vector<Index>& sizes) const {
    return b.from(formulas_.value(polynomial(b.of), sizes));
  }
  std::int64_t at(const FloatFormula& f, const std::vector<Index>& sizes) const {
    return f.bits_at(formulas_.value(polynomial(f.of), sizes),
                     f.and_of ? formulas_.value(polynomial(*f.and_of), sizes) : 1);
  }
  // After how many it repeats itself; of floats, chosen: enough to find two orders of rounding apart.
  static Index round_of(const Blocks& b) { return b.block; }
  static Index round_of(const FloatFormula&) { return 256; }

  // The sizes from the least to the largest of the samples, as far apart as these are.
  struct Course {
    Index least = 0, step = 1, count = 1;
  };
  Course course(std::size_t size) const {
    Index least = samples_[0].sizes[size], most = least, step = 0;
    for (const SizeSample& s : samples_) {
      step = std::gcd(step, s.sizes[size] - samples_[0].sizes[size]);
      least = std::min(least, s.sizes[size]);
      most = std::max(most, s.sizes[size]);
    }
    return step == 0 ? Course{least} : Course{least, step, (most - least) / step + 1};
  }

  const Polynomial& polynomial(std::size_t number) const {
    return *std::find_if(formulas_.polynomials_.begin(), formulas_.polynomials_.end(),
                         [&](const Polynomial& p) { return p.number == number; });
  }

  SizeFormulas& formulas_;
  const std::vector<SizeSample>& samples_;
  std::vector<Index> apart_;
};

SizeFormulas::Found SizeFormulas::found(const std::vector<SizeSample>& samples) {
  SizeFormulas out;
  out.origin_ = samples.back().sizes;
  for (const SizeSample& s : samples) {
    const auto& first = samples[0].numbers;
    const bool alike =
        std::equal(first.begin(), first.end(), s.numbers.begin(), s.numbers.end(),
                   [](const PlanNumber& x, const PlanNumber& y) { return x.dtype == y.dtype; });
    if (!alike) return {failure(Failure::Kind::unsupported, "other numbers"), {}};
  }
  Search search(out, samples);
  if (Status searched = search.run(); !searched) return {searched.error(), search.apart()};
  return {std::move(out), {}};
}

std::vector<std::int64_t> SizeFormulas::at(std::span<const Index> sizes) const {
  std::vector<std::int64_t> out = constants_;
  const std::vector<std::int64_t> t = terms(sizes, kQuadratic);  // those of degree one come first
  for (const Polynomial& p : polynomials_) out[p.number] = weighted(p.factors, t);
  for (const Blocks& b : blocks_) out[b.number] = b.from(out[b.of]);
  for (const Float& f : floats_)
    out[f.number] = f.formula.bits_at(out[f.formula.of], f.formula.and_of ? out[*f.formula.and_of] : 1);
  return out;
}

}  // namespace tilewright::passes
