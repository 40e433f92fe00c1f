// Functions from source text, on each instruction set that the machine runs, for this folder's tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/jit/compiler.h"
#include "backends/cpu/jit/jit.h"

namespace tilewright::cpu::testing {

// AMX is AVX-512 for everything but products.
inline constexpr Isa kVectorIsas[] = {Isa::avx512, Isa::avx2, Isa::baseline};

inline std::vector<Isa> runnable_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : kVectorIsas)
    if (host_runs(isa)) isas.push_back(isa);
  return isas;
}

// |got - exact| in units of the last place that f32 has at `exact`; infinity counts as the next power of two.
inline double error_ulp(float got, double exact) {
  if (std::isnan(exact) || std::isnan(got)) return std::isnan(exact) == std::isnan(got) ? 0 : HUGE_VAL;
  const double beyond = 0x1p128;
  const double wanted = std::clamp(exact, -beyond, beyond);
  const double found = std::clamp(static_cast<double>(got), -beyond, beyond);
  const int exponent = std::clamp(wanted == 0 ? -126 : std::ilogb(wanted), -126, 127);
  return std::abs(found - wanted) / std::ldexp(1.0, exponent - 23);
}

inline CompileOptions options_for(Isa isa) { return {.target = host_target(isa)}; }

// Code and what keeps it loaded.
template <class Function>
struct Callable {
  LoadedObject object;
  Function* function;
};

// Compiles and loads; a failure fails the test and throws.
template <class Function>
Callable<Function> build(const std::string& source, const char* symbol, const CompileOptions& options) {
  auto object_bytes = compile_cpp(source, options);
  EXPECT_TRUE(object_bytes.ok()) << (object_bytes.ok() ? "" : object_bytes.error().message);
  auto jit = Jit::create();
  auto object = (*jit)->load(object_bytes.value());
  EXPECT_TRUE(object.ok()) << (object.ok() ? "" : object.error().message);
  auto* function = reinterpret_cast<Function*>(object.value().symbol(symbol));
  EXPECT_NE(function, nullptr) << symbol;
  return {std::move(object).value(), function};
}

}  // namespace tilewright::cpu::testing
