// A few thousand elements at a time, on every core.
#include "harness/run/output_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>

namespace tilewright::lab {

namespace {

using Rule = OutputChecker::Rule;
using Part = OutputChecker::Part;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargestF64 = std::numeric_limits<double>::max();
// Elements that are widened at once: they and their errors stay in the first-level cache.
constexpr std::int64_t kBlock = 1024;

double denominator(double want, double magnitude, const Rule& rule) {
  return std::max({std::fabs(want), magnitude, rule.normal});
}

double relative_error(double got, double want, double magnitude, const Rule& rule) {
  if (got == want || (std::isnan(got) && std::isnan(want))) return 0;
  if (std::isnan(got) || std::isnan(want)) return kInfinity;
  if (rule.rounds && std::fabs(want) > rule.largest) {
    const double stored = round_to(rule.dtype, want);
    if (got == stored) return 0;
    if (!std::isfinite(stored)) {
      // Within the tolerance of the reference a finite result is as right as the infinity.
      if (!std::isfinite(got) || !std::isfinite(want)) return kInfinity;
    } else {
      want = stored;
    }
  }
  // A value the tolerance away from one that overflows may itself overflow.
  if (rule.rounds && std::isinf(got) && std::isfinite(want)) {
    const double edge = std::copysign(rule.largest, got);
    return std::fabs(edge - want) <= rule.tolerance * denominator(want, magnitude, rule) ? 0 : kInfinity;
  }
  const double error = std::fabs(got - want) / denominator(want, magnitude, rule);
  return std::isnan(error) ? kInfinity : error;
}

// Checks an element without a reference: something was written, and it is a number.
double error_without_reference(double got, const Rule& rule) {
  return std::isfinite(got) && !(rule.poison && got == *rule.poison) ? 0 : kInfinity;
}

// Some elements of an output in float64, from element `first` on, and what is known of them.
struct Block {
  std::span<const double> got;
  std::size_t first = 0;
  const Reference& want;

  bool known(std::size_t i) const { return want.known.at(static_cast<std::int64_t>(first + i)); }
  double value(std::size_t i) const { return known(i) ? want.values[first + i] : 0; }
  double magnitude(std::size_t i) const {
    return want.magnitude.empty() ? 0 : want.magnitude[want.magnitude.size() == 1 ? 0 : first + i];
  }
};

// The errors by the rule, one after another.
void all_errors(const Block& block, const Rule& rule, std::span<double> errors) {
  for (std::size_t i = 0; i < block.got.size(); ++i)
    errors[i] = block.known(i) ? relative_error(block.got[i], block.want.values[block.first + i],
                                                block.magnitude(i), rule)
                               : error_without_reference(block.got[i], rule);
}

// The same where all elements have a reference and nothing is NaN, infinite or past the stored type's largest
// value: the quotient of relative_error() alone, several at once. False, and errors that mean nothing, where
// something is.
template <class Magnitude>
bool plain_errors(const double* got, const double* want, std::size_t count, const Rule& rule,
                  Magnitude magnitude, double* errors) {
  const double largest = rule.largest, normal = rule.normal;
  std::int64_t odd = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double g = got[i], w = want[i], m = magnitude(i), size = std::fabs(w);
    const double scale = std::max(std::max(size, m), normal);
    odd += static_cast<int>(!(size <= largest)) + static_cast<int>(!(std::fabs(g) <= largest)) +
           static_cast<int>(!(m <= kLargestF64));
    errors[i] = g == w ? 0 : std::fabs(g - w) / scale;
  }
  return odd == 0;
}

bool plain_errors(const Block& block, const Rule& rule, std::span<double> errors) {
  const Reference& want = block.want;
  const std::size_t count = block.got.size();
  if (!want.known.rows.empty()) return false;
  const auto of = [&](auto magnitude) {
    return plain_errors(block.got.data(), want.values.data() + block.first, count, rule, magnitude,
                        errors.data());
  };
  if (want.magnitude.size() <= 1) return of([same = block.magnitude(0)](std::size_t) { return same; });
  return of([each = want.magnitude.data() + block.first](std::size_t i) { return each[i]; });
}

// Whether nothing of the block has a reference, and all of it is written and finite.
bool only_written(const Block& block, const Rule& rule, bool none_known) {
  if (!none_known) return false;
  const double poison = rule.poison.value_or(std::numeric_limits<double>::quiet_NaN());
  std::int64_t odd = 0;
  for (const double got : block.got)
    odd += static_cast<int>(!(std::fabs(got) <= kLargestF64)) + static_cast<int>(got == poison);
  return odd == 0;
}

// Once zeros are known to fail there is nothing more to learn about them.
void ask_zeros(const Block& block, const Rule& rule, Part& part) {
  for (std::size_t i = 0; i < block.got.size() && part.zero_error <= rule.tolerance; ++i) {
    const double value = block.value(i);
    if (value == 0 || (rule.rounds && round_to(rule.dtype, value) == 0)) continue;
    part.all_zero = false;
    part.zero_error = std::max(part.zero_error, relative_error(0, value, block.magnitude(i), rule));
  }
}

void count_wrong(const Block& block, const Rule& rule, std::span<const double> errors, Part& part) {
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (errors[i] <= rule.tolerance) continue;
    const double got = block.got[i];
    ++part.check.wrong;
    if (std::isnan(got)) ++part.check.unexpected_nan;
    if (rule.poison && (got == *rule.poison || (std::isnan(got) && std::isnan(*rule.poison))))
      ++part.check.unwritten;
  }
}

void take_worst(const Block& block, std::size_t worst, double error, Part& part) {
  if (error <= part.check.max_rel_err) return;
  part.check.max_rel_err = error;
  part.check.worst = static_cast<std::int64_t>(block.first + worst);
  part.check.got = block.got[worst];
}

void check_block(const Block& block, const Rule& rule, bool none_known, Part& part) {
  if (only_written(block, rule, none_known)) return take_worst(block, 0, 0, part);
  double room[kBlock];
  const std::span<double> errors(room, block.got.size());
  ask_zeros(block, rule, part);
  if (!plain_errors(block, rule, errors)) all_errors(block, rule, errors);
  double most = 0;
  for (const double error : errors) most = std::max(most, error);
  if (most > part.check.max_rel_err)
    take_worst(block,
               static_cast<std::size_t>(std::find(errors.begin(), errors.end(), most) - errors.begin()), most,
               part);
  if (most > rule.tolerance) count_wrong(block, rule, errors, part);
  if (block.want.known.rows.empty()) {
    part.check.compared += static_cast<std::int64_t>(errors.size());
  } else {
    for (std::size_t i = 0; i < errors.size(); ++i) part.check.compared += block.known(i) ? 1 : 0;
  }
}

// The check of nothing yet: the first element becomes the worst, whatever its error.
Part no_part() {
  Part part;
  part.check.max_rel_err = -1;
  return part;
}

// Elements begin … end - 1 of those given.
Part check_range(const StoredElements& elements, const Reference& want, const Rule& rule, std::int64_t begin,
                 std::int64_t end) {
  Part part = no_part();
  const bool none_known = want.known.none();
  double room[kBlock];
  for (std::int64_t i = begin; i < end; i += kBlock) {
    const auto count = static_cast<std::size_t>(std::min(kBlock, end - i));
    widen(elements, i, static_cast<std::int64_t>(count), room);
    check_block({{room, count}, static_cast<std::size_t>(elements.first + i), want}, rule, none_known, part);
  }
  return part;
}

void merge(Part& into, const Part& from) {
  if (from.check.max_rel_err > into.check.max_rel_err) {
    into.check.max_rel_err = from.check.max_rel_err;
    into.check.worst = from.check.worst;
    into.check.got = from.check.got;
  }
  into.check.compared += from.check.compared;
  into.check.wrong += from.check.wrong;
  into.check.unexpected_nan += from.check.unexpected_nan;
  into.check.unwritten += from.check.unwritten;
  into.zero_error = std::max(into.zero_error, from.zero_error);
  into.all_zero = into.all_zero && from.all_zero;
}

Part check_all(const StoredElements& elements, const Reference& want, const Rule& rule) {
  constexpr std::int64_t kPerThread = 1 << 18;  // below, a thread costs more than it saves
  const std::int64_t most = std::max(1u, std::thread::hardware_concurrency());
  const std::int64_t count = std::clamp<std::int64_t>(elements.count / kPerThread, 1, most);
  std::vector<Part> parts(static_cast<std::size_t>(count));
  const auto work = [&](std::int64_t t) {
    parts[static_cast<std::size_t>(t)] =
        check_range(elements, want, rule, elements.count * t / count, elements.count * (t + 1) / count);
  };
  std::vector<std::jthread> threads;
  threads.reserve(parts.size());
  for (std::int64_t t = 1; t < count; ++t) threads.emplace_back(work, t);
  work(0);
  threads.clear();  // joins
  for (std::size_t t = 1; t < parts.size(); ++t) merge(parts[0], parts[t]);
  return parts[0];
}

Rule rule_of(const OutputSpec& spec, std::optional<std::uint8_t> poison) {
  const bool rounds = is_float(spec.dtype);
  Rule rule{.tolerance = tolerance(spec.rule, spec.shape.size()),
            .normal = rounds ? min_normal(spec.dtype) : 1.0,
            .largest = rounds ? max_finite(spec.dtype) : kLargestF64,
            .dtype = spec.dtype,
            .rounds = rounds};
  if (poison) rule.poison = poison_value(spec.dtype, *poison);
  return rule;
}

std::string index_text(std::int64_t flat, const Shape& shape) {
  std::vector<Index> index(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    index[static_cast<std::size_t>(axis)] = flat % shape[axis];
    flat /= shape[axis];
  }
  return fmt::format("[{}]", fmt::join(index, ","));
}

}  // namespace

double poison_value(DType dtype, std::uint8_t byte) {
  unsigned char bytes[8];
  std::memset(bytes, byte, sizeof bytes);
  return load_f64(bytes, dtype);
}

OutputChecker::OutputChecker(const Reference& want, const OutputSpec& spec,
                             std::optional<std::uint8_t> poison)
    : want_(&want), elements_(spec.shape.size()), rule_(rule_of(spec, poison)), all_(no_part()) {
  const auto elements = static_cast<std::size_t>(elements_);
  TW_CHECK(want.values.size() == elements || (want.values.empty() && want.known.none()),
           fmt::format("the reference of output '{}' has its shape", spec.name));
  TW_CHECK(want.magnitude.size() <= 1 || want.magnitude.size() == elements,
           "magnitude: none, one, or one per element");
  TW_CHECK(want.known.rows.empty() ||
               want.known.length * static_cast<Index>(want.known.rows.size()) == spec.shape.size(),
           "what is known is said of every row");
}

void OutputChecker::add(const StoredElements& elements) {
  TW_CHECK(elements.first == all_.check.elements, "pieces of an output follow one another");
  all_.check.elements += elements.count;
  if (elements.count == 0 || all_.check.elements > elements_) return;
  merge(all_, check_all(elements, *want_, rule_));
}

OutputCheck OutputChecker::result() const {
  OutputCheck check{.elements = elements_, .tolerance = rule_.tolerance};
  if (all_.check.elements != check.elements) {
    check.max_rel_err = kInfinity;
    check.wrong = std::max<std::int64_t>(1, check.elements);
    return check;
  }
  check = all_.check;
  check.tolerance = rule_.tolerance;
  check.max_rel_err = std::max(check.max_rel_err, 0.0);
  if (check.elements > 0 && !want_->values.empty())
    check.want = want_->values[static_cast<std::size_t>(check.worst)];
  if (check.tolerance > kVacuousTolerance) {
    check.vacuous = fmt::format("the derived bound {:.2g} is above {}", check.tolerance, kVacuousTolerance);
  } else if (!all_.all_zero && all_.zero_error <= check.tolerance) {
    check.vacuous = "an output of zeros would pass: the magnitude dwarfs every value of the reference";
  }
  return check;
}

OutputCheck check_output(std::span<const double> got, const Reference& want, const OutputSpec& spec,
                         std::optional<std::uint8_t> poison) {
  OutputChecker checker(want, spec, poison);
  checker.add({got.data(), DType::f64, 0, std::ssize(got)});
  return checker.result();
}

std::string describe(const OutputCheck& check, const OutputSpec& spec) {
  if (check.ok()) return "";
  if (check.wrong == 0) return fmt::format("{}: the check proves nothing: {}", spec.name, check.vacuous);
  std::string text =
      fmt::format("{}{}: got {:.9g}, want {:.9g} (error {:.2g}, bound {:.2g}); {} of {} elements are wrong",
                  spec.name, index_text(check.worst, spec.shape), check.got, check.want, check.max_rel_err,
                  check.tolerance, check.wrong, check.elements);
  if (check.unexpected_nan > 0) text += fmt::format(", {} NaN", check.unexpected_nan);
  if (check.unwritten > 0) text += fmt::format(", {} never written", check.unwritten);
  return text;
}

}  // namespace tilewright::lab
