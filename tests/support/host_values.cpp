// Random and odd tensors on the host.
#include "support/host_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::test {

namespace {

double odd_float(DType dtype, Random& random) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double odd[] = {0.0,
                        -0.0,
                        infinity,
                        -infinity,
                        std::numeric_limits<double>::quiet_NaN(),
                        min_subnormal(dtype),
                        -min_subnormal(dtype),
                        min_normal(dtype) * 0.75,
                        max_finite(dtype),
                        -max_finite(dtype),
                        1.0,
                        -1.0};
  return round_to(dtype, odd[random.below(std::size(odd))]);  // 8-bit floats store no infinity
}

double special_float(DType dtype, Random& random) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double special[] = {0.0, -0.0, infinity, -infinity, std::numeric_limits<double>::quiet_NaN()};
  return round_to(dtype, special[random.below(std::size(special))]);
}

double tiny_float(DType dtype, Random& random) {
  const double least = min_subnormal(dtype), normal = min_normal(dtype);
  const double tiny[] = {0.0, least, 3 * least, normal * 0.75, normal, 2 * normal};
  return round_to(dtype, tiny[random.below(std::size(tiny))] * (random.chance(0.5) ? 1 : -1));
}

// Puts the highest and the lowest number at places of their own; the lowest only if there are two places.
void put_extremes(DType dtype, std::vector<double>& values, Random& random) {
  const auto n = static_cast<Index>(values.size());
  if (n == 0) return;
  const Index at = random.below(n);
  if (n > 1) values[static_cast<std::size_t>((at + 1 + random.below(n - 1)) % n)] = -max_finite(dtype);
  values[static_cast<std::size_t>(at)] = max_finite(dtype);
}

std::int64_t odd_integer(DType dtype, Random& random) {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::int64_t odd[] = {0, 1, -1, 2, 7, float_to_int(dtype, infinity), float_to_int(dtype, -infinity)};
  return wrap_to(dtype, odd[random.below(std::size(odd))]);
}

}  // namespace

ir::HostTensor random_host(const ir::Type& type, const ir::Domain& domain, Random& random, Values values) {
  ir::HostTensor out{.type = type};
  const auto n = static_cast<std::size_t>(type.shape.size());
  const bool odd = values == Values::odd;
  if (is_float(type.dtype)) {
    for (std::size_t i = 0; i < n; ++i) {
      if (odd && random.chance(0.5))
        out.f.push_back(odd_float(type.dtype, random));
      else if (values == Values::special && random.chance(0.1))
        out.f.push_back(special_float(type.dtype, random));
      else if (values == Values::tiny)
        out.f.push_back(tiny_float(type.dtype, random));
      else if (values == Values::large)
        out.f.push_back(random.chance(0.5) ? 1 : -1);
      else
        out.f.push_back(round_to(type.dtype, random.real(domain.low, domain.high)));
    }
    if (values == Values::large) put_extremes(type.dtype, out.f, random);
    return out;
  }
  const auto low = static_cast<Index>(std::floor(domain.low));
  const auto high = static_cast<Index>(std::ceil(domain.high));
  for (std::size_t i = 0; i < n; ++i) {
    std::int64_t v = random.between(low, high);
    if (is_bool(type.dtype))
      v = random.below(2);
    else if (type.dtype == DType::u8)
      v = std::max<std::int64_t>(v, 0);
    out.i.push_back(odd && !is_bool(type.dtype) && random.chance(0.5) ? odd_integer(type.dtype, random) : v);
  }
  return out;
}

ir::HostTensor random_indices(const ir::Type& type, Index low, Index high, Random& random) {
  ir::HostTensor out{.type = type};
  for (Index i = 0; i < type.shape.size(); ++i)
    out.i.push_back(wrap_to(type.dtype, random.between(low, high)));
  return out;
}

std::string difference(const ir::HostTensor& got, const ir::HostTensor& wanted, const Tolerance& tolerance) {
  if (got.type != wanted.type)
    return fmt::format("type {} instead of {}", to_string(got.type), to_string(wanted.type));
  if (got.f.size() != wanted.f.size() || got.i.size() != wanted.i.size()) return "another element count";
  for (std::size_t i = 0; i < wanted.i.size(); ++i)
    if (got.i[i] != wanted.i[i]) return fmt::format("element {}: {} instead of {}", i, got.i[i], wanted.i[i]);
  for (std::size_t i = 0; i < wanted.f.size(); ++i) {
    const double a = got.f[i];
    const double b = wanted.f[i];
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double bound = tolerance.absolute + tolerance.relative * std::max(std::fabs(a), std::fabs(b));
    if (!(std::isfinite(a) && std::isfinite(b) && std::fabs(a - b) <= bound))
      return fmt::format("element {}: {} instead of {}", i, a, b);
  }
  return "";
}

}  // namespace tilewright::test
