// Kernels on the CPU backend against the reference interpreter, by each instruction set, for this folder's
// tests.
#pragma once

#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/host/host.h"
#include "support/backend_parity.h"
#include "support/draws.h"

namespace tilewright::cpu::testing {

using test::ParityOptions;

// Fails the test with the text of the kernel where an element is further off than rounding explains. Inputs
// are ordinary: what odd ones do, kernel_fuzz tries.
inline void expect_parity(backends::Backend& backend, const tile::Kernel& kernel, ParityOptions options = {},
                          const tile::Schedule& schedule = {.kind = tile::CpuLoops{.unroll = 4}}) {
  options.odd_share = 0;
  std::string source;
  const test::ParityReport report =
      test::check_parity(kernel, options, test::on_backend(backend, schedule, source));
  ASSERT_TRUE(report.ok()) << report.message << "\n" << source;
}

// Whether a test tries case number n on an instruction set. The widest set of this machine has all cases;
// each other set has a share of them, another one for each.
inline bool is_tried(Isa isa, std::uint64_t n) {
  return isa == host_isa() || test::is_drawn(n + static_cast<std::uint64_t>(isa));
}

// A test of each instruction set that this machine has.
class OnIsa : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!host_runs(GetParam())) GTEST_SKIP() << "this machine lacks " << name(GetParam());
    backend_ = CpuBackend::open({.threads = 2, .isa = std::string(name(GetParam()))}).value();
  }
  void check(const tile::Kernel& kernel, ParityOptions options = {},
             const tile::Schedule& schedule = {.kind = tile::CpuLoops{.unroll = 4}}) {
    if (!is_tried(GetParam(), checks_++)) return;
    expect_parity(*backend_, kernel, std::move(options), schedule);
  }
  std::unique_ptr<backends::Backend> backend_;
  std::uint64_t checks_ = 0;
};

}  // namespace tilewright::cpu::testing
