// The count by a line through two samples, steps by trying; all are held to every sample.
#include "passes/plan/float_formula.h"

#include <tilewright/tile/kernel.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::passes {

namespace {

using Step = FloatFormula::Step;

constexpr std::size_t kMostSteps = 3;      // chosen: a factor of the loss, the chain rule's, a step's
constexpr std::size_t kMostConstants = 8;  // 16 steps: 4,000 chains of three
constexpr int kScales = 10;                // powers of two that chains of constants bring

bool is_power_of_two(double x) {
  int exponent = 0;
  return std::frexp(std::fabs(x), &exponent) == 0.5;
}

// Steps that may have been folded: those by powers of two are the scale.
std::vector<Step> steps_of(const std::vector<double>& constants) {
  std::vector<double> known;
  for (const double c : constants) {
    const double size = std::fabs(c);
    const bool counts = std::isfinite(size) && size != 0 && !is_power_of_two(size);
    if (counts && std::find(known.begin(), known.end(), size) == known.end()) known.push_back(size);
    if (known.size() == kMostConstants) break;
  }
  std::vector<Step> out;
  out.reserve(2 * known.size());
  for (const double c : known) {
    out.push_back({c, false});
    out.push_back({c, true});
  }
  return out;
}

// Counts that are not on one line with an earlier one, and products of two. Lines through one are lines
// through the other: the count of the least slope tells the most.
std::vector<Count> independent(std::vector<Count> counts) {
  const auto span = [](const Count& c) {
    const auto [least, most] = std::minmax_element(c.values.begin(), c.values.end());
    return static_cast<long double>(*most) - static_cast<long double>(*least);
  };
  const auto on_a_line = [&](const Count& a, const Count& b) {
    const auto at = [](const Count& c, std::size_t s) {
      return static_cast<long double>(c.values[s]) - static_cast<long double>(c.values[0]);
    };
    std::size_t far = 0;
    for (std::size_t s = 1; s < a.values.size(); ++s)
      if (std::fabs(at(a, s)) > std::fabs(at(a, far))) far = s;
    for (std::size_t s = 0; s < a.values.size(); ++s)
      if (at(a, s) * at(b, far) != at(a, far) * at(b, s)) return false;
    return true;
  };
  std::vector<Count> out;
  const auto keep = [&](std::vector<Count> some) {
    std::stable_sort(some.begin(), some.end(),
                     [&](const Count& a, const Count& b) { return span(a) < span(b); });
    for (Count& c : some)
      if (span(c) > 0 &&
          std::none_of(out.begin(), out.end(), [&](const Count& o) { return on_a_line(o, c); }))
        out.push_back(std::move(c));
  };
  keep(std::move(counts));
  constexpr std::size_t kMostFactors = 6;
  std::vector<Count> products;
  const std::size_t factors = std::min(out.size(), kMostFactors);
  for (std::size_t i = 0; i < factors; ++i)
    for (std::size_t j = i; j < factors; ++j) {
      Count product{out[i].of, out[j].of, out[i].values};
      bool fits = true;
      for (std::size_t s = 0; s < product.values.size(); ++s)
        fits = fits && !__builtin_mul_overflow(product.values[s], out[j].values[s], &product.values[s]);
      if (fits) products.push_back(std::move(product));
    }
  keep(std::move(products));
  return out;
}

class Search {
 public:
  Search(DType dtype, DType rounded, const std::vector<std::int64_t>& bits) : bits_(bits) {
    formula_.dtype = dtype;
    formula_.rounded = rounded;
    values_.reserve(bits.size());
    for (const std::int64_t b : bits) values_.push_back(tile::scalar_value(dtype, b));
    const bool all =
        std::all_of(values_.begin(), values_.end(), [](double v) { return std::isfinite(v) && v != 0; });
    if (!all) values_.clear();  // no count is 0, and no reciprocal of one
  }

  void with(const std::vector<Step>& steps, const std::vector<Count>& counts,
            std::vector<FloatFormula>& out) {
    if (values_.empty()) return;
    formula_.steps = steps;
    double factor = 1;
    for (const Step& s : steps) factor = s.divides ? factor / s.by : factor * s.by;
    for (const Count& count : counts)
      for (const bool reciprocal : {false, true}) {
        formula_.reciprocal = reciprocal;
        if (const auto found = of(count, factor)) out.push_back(*found);
      }
  }

 private:
  // The formula whose count lies on a line through `count`, if the number at two samples says that there is
  // one.
  std::optional<FloatFormula> of(const Count& count, double factor) {
    const auto [least, most] = std::minmax_element(count.values.begin(), count.values.end());
    const auto at_least = static_cast<std::size_t>(least - count.values.begin()),
               at_most = static_cast<std::size_t>(most - count.values.begin());
    const auto counted = [&](std::size_t s) {
      const double v = std::fabs(values_[s]);
      return formula_.reciprocal ? factor / v : v / factor;
    };
    const double slope = (counted(at_most) - counted(at_least)) / static_cast<double>(*most - *least);
    for (int e = 0; e <= kScales; ++e) {
      constexpr double kNear = 1e-4, kMostMore = 64;
      const double scale = std::ldexp(1.0, e), times = std::round(slope * scale);
      if (times < 1 || times > double(std::int64_t{1} << 40)) continue;
      if (std::fabs(slope * scale - times) > kNear * times) continue;
      const double more = std::round(counted(at_least) * scale - times * static_cast<double>(*least));
      if (std::fabs(more) > kMostMore) continue;
      formula_.of = count.of;
      formula_.and_of = count.and_of;
      formula_.times = static_cast<std::int64_t>(times);
      formula_.more = static_cast<std::int64_t>(more);
      formula_.scale = std::copysign(formula_.reciprocal ? scale : 1 / scale, values_[0]);
      if (is_right(count)) return formula_;
    }
    return std::nullopt;
  }

  bool is_right(const Count& count) const {
    for (std::size_t s = 0; s < bits_.size(); ++s)
      if (formula_.bits_at(count.values[s], 1) != bits_[s]) return false;
    return true;
  }

  const std::vector<std::int64_t>& bits_;
  std::vector<double> values_;
  FloatFormula formula_;
};

}  // namespace

std::int64_t FloatFormula::bits_at(std::int64_t a, std::int64_t b) const {
  const auto narrowed = [&](double v) {
    return rounded == DType::f32 ? static_cast<double>(static_cast<float>(v)) : v;
  };
  // A formula that is tried may be far off: what wraps around is not right.
  const auto wide = [](std::int64_t i) { return static_cast<std::uint64_t>(i); };
  const std::uint64_t product = and_of ? wide(a) * wide(b) : wide(a);
  const auto count = static_cast<double>(static_cast<std::int64_t>(wide(times) * product + wide(more)));
  double v = narrowed(reciprocal ? scale / count : scale * count);
  for (const Step& s : steps) v = narrowed(s.divides ? v / s.by : v * s.by);
  return tile::scalar_bits(dtype, v);
}

std::vector<FloatFormula> float_formulas(DType dtype, const std::vector<std::int64_t>& bits,
                                         const std::vector<Count>& counts,
                                         const std::vector<double>& constants) {
  const std::vector<Step> steps = steps_of(constants);
  const std::vector<Count> lines = independent(counts);
  std::vector<Search> searches = {Search(dtype, dtype, bits)};
  if (dtype != DType::f32) searches.emplace_back(dtype, DType::f32, bits);
  std::vector<FloatFormula> out;
  std::vector<std::vector<Step>> chains = {{}};
  for (std::size_t length = 0; length <= kMostSteps; ++length) {
    for (const std::vector<Step>& chain : chains)
      for (Search& search : searches) search.with(chain, lines, out);
    if (length == kMostSteps) break;
    std::vector<std::vector<Step>> longer;
    longer.reserve(chains.size() * steps.size());
    for (const std::vector<Step>& chain : chains)
      for (const Step& s : steps) {
        const bool undoes = std::any_of(chain.begin(), chain.end(), [&](const Step& before) {
          return before.by == s.by && before.divides != s.divides;
        });
        if (undoes) continue;
        longer.push_back(chain);
        longer.back().push_back(s);
      }
    chains = std::move(longer);
  }
  return out;
}

}  // namespace tilewright::passes
