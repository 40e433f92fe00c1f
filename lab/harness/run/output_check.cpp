// Element by element, on every core.
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

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// What all elements share.
struct Rule {
  double tolerance = 0;
  double normal = 0;  // smallest normal: below it the spacing of a float no longer shrinks with the value
  double largest = 0;
  DType dtype = DType::f32;
  bool rounds = true;  // a float type, whose largest value bounds what it can hold
};

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
double error_without_reference(double got, std::optional<double> poison) {
  return std::isfinite(got) && !(poison && got == *poison) ? 0 : kInfinity;
}

struct Part {
  OutputCheck check;
  double zero_error = 0;  // the error that an output of zeros would show
  bool all_zero = true;   // whether the reference is, once stored
};

Part check_range(std::span<const double> got, const Reference& want, const Rule& rule,
                 std::optional<double> poison, std::size_t begin, std::size_t end) {
  Part part;
  part.check.worst = static_cast<std::int64_t>(begin);
  part.check.max_rel_err = -1;  // so that the first element becomes the worst
  const bool shared_magnitude = want.magnitude.size() == 1;
  for (std::size_t i = begin; i < end; ++i) {
    const bool known = want.known.at(static_cast<std::int64_t>(i));
    const double magnitude = want.magnitude.empty() ? 0 : want.magnitude[shared_magnitude ? 0 : i];
    const double value = known ? want.values[i] : 0;
    const double error =
        known ? relative_error(got[i], value, magnitude, rule) : error_without_reference(got[i], poison);
    part.check.compared += known ? 1 : 0;
    if (error > part.check.max_rel_err) {
      part.check.max_rel_err = error;
      part.check.worst = static_cast<std::int64_t>(i);
    }
    // Once zeros are known to fail there is nothing more to learn about them.
    const bool ask = part.zero_error <= rule.tolerance && value != 0;
    if (ask && (!rule.rounds || round_to(rule.dtype, value) != 0)) {
      part.all_zero = false;
      part.zero_error = std::max(part.zero_error, relative_error(0, value, magnitude, rule));
    }
    if (error <= rule.tolerance) continue;
    ++part.check.wrong;
    if (std::isnan(got[i])) ++part.check.unexpected_nan;
    if (poison && (got[i] == *poison || (std::isnan(got[i]) && std::isnan(*poison)))) ++part.check.unwritten;
  }
  part.check.max_rel_err = std::max(part.check.max_rel_err, 0.0);
  return part;
}

void merge(Part& into, const Part& from) {
  if (from.check.max_rel_err > into.check.max_rel_err) {
    into.check.max_rel_err = from.check.max_rel_err;
    into.check.worst = from.check.worst;
  }
  into.check.compared += from.check.compared;
  into.check.wrong += from.check.wrong;
  into.check.unexpected_nan += from.check.unexpected_nan;
  into.check.unwritten += from.check.unwritten;
  into.zero_error = std::max(into.zero_error, from.zero_error);
  into.all_zero = into.all_zero && from.all_zero;
}

Part check_all(std::span<const double> got, const Reference& want, const Rule& rule,
               std::optional<double> poison) {
  constexpr std::size_t kPerThread = 1 << 18;  // below, a thread costs more than it saves
  const std::size_t most = std::max(1u, std::thread::hardware_concurrency());
  const std::size_t count = std::clamp<std::size_t>(got.size() / kPerThread, 1, most);
  std::vector<Part> parts(count);
  const auto work = [&](std::size_t t) {
    parts[t] = check_range(got, want, rule, poison, got.size() * t / count, got.size() * (t + 1) / count);
  };
  std::vector<std::jthread> threads;
  for (std::size_t t = 1; t < count; ++t) threads.emplace_back(work, t);
  work(0);
  threads.clear();  // joins
  for (std::size_t t = 1; t < count; ++t) merge(parts[0], parts[t]);
  return parts[0];
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

OutputCheck check_output(std::span<const double> got, const Reference& want, const OutputSpec& spec,
                         std::optional<std::uint8_t> poison) {
  const auto elements = static_cast<std::size_t>(spec.shape.size());
  TW_CHECK(want.values.size() == elements || (want.values.empty() && want.known.none()),
           fmt::format("the reference of output '{}' has its shape", spec.name));
  TW_CHECK(want.magnitude.size() <= 1 || want.magnitude.size() == elements,
           "magnitude: none, one, or one per element");
  TW_CHECK(want.known.rows.empty() ||
               want.known.length * static_cast<Index>(want.known.rows.size()) == spec.shape.size(),
           "what is known is said of every row");
  OutputCheck check;
  check.elements = spec.shape.size();
  check.tolerance = tolerance(spec.rule, check.elements);
  if (got.size() != elements) {
    check.max_rel_err = kInfinity;
    check.wrong = std::max<std::int64_t>(1, check.elements);
    return check;
  }
  const bool rounds = is_float(spec.dtype);
  const Rule rule{check.tolerance, rounds ? min_normal(spec.dtype) : 1.0, rounds ? max_finite(spec.dtype) : 0,
                  spec.dtype, rounds};
  std::optional<double> poisoned;
  if (poison) poisoned = poison_value(spec.dtype, *poison);
  const Part all = check_all(got, want, rule, poisoned);
  check.compared = all.check.compared;
  check.max_rel_err = all.check.max_rel_err;
  check.worst = all.check.worst;
  check.wrong = all.check.wrong;
  check.unexpected_nan = all.check.unexpected_nan;
  check.unwritten = all.check.unwritten;
  if (elements > 0) {
    check.got = got[static_cast<std::size_t>(check.worst)];
    if (!want.values.empty()) check.want = want.values[static_cast<std::size_t>(check.worst)];
  }
  if (check.tolerance > kVacuousTolerance) {
    check.vacuous = fmt::format("the derived bound {:.2g} is above {}", check.tolerance, kVacuousTolerance);
  } else if (!all.all_zero && all.zero_error <= check.tolerance) {
    check.vacuous = "an output of zeros would pass: the magnitude dwarfs every value of the reference";
  }
  return check;
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
