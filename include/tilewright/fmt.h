// Formatters of {fmt} for tensors, shapes and element types: fmt::print("{}", x). For those who include it:
// the library's other headers do not need fmt. "{:.3}" prints a tensor with at most 3 digits behind the
// point. An error of a tensor that cannot be read names a line of this file: to_string(x) names the caller's.
#pragma once

#include <tilewright/tensor/print.h>

#include <fmt/format.h>

#include <string>
#include <string_view>

template <>
struct fmt::formatter<tilewright::Shape> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(const tilewright::Shape& shape, Context& context) const {
    return fmt::formatter<std::string_view>::format(to_string(shape), context);
  }
};

template <>
struct fmt::formatter<tilewright::DType> : fmt::formatter<std::string_view> {
  template <class Context>
  auto format(tilewright::DType dtype, Context& context) const {
    return fmt::formatter<std::string_view>::format(name(dtype), context);
  }
};

template <>
struct fmt::formatter<tilewright::Tensor> {
  constexpr auto parse(fmt::format_parse_context& context) {
    auto at = context.begin();
    if (at == context.end() || *at != '.') return at;
    options.precision = 0;
    for (++at; at != context.end() && *at >= '0' && *at <= '9' && options.precision <= 100; ++at)
      options.precision = 10 * options.precision + (*at - '0');
    return at;
  }
  template <class Context>
  auto format(const tilewright::Tensor& x, Context& context) const {
    return fmt::format_to(context.out(), "{}", to_string(x, options));
  }
  tilewright::PrintOptions options;
};
