// For this folder's tests: a kernel on the CPU backend against the reference interpreter, by each instruction
// set.
#pragma once

#include <gtest/gtest.h>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/host/host.h"
#include "support/backend_parity.h"

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

// A test of each instruction set that this machine has.
class OnIsa : public ::testing::TestWithParam<Isa> {
 protected:
  void SetUp() override {
    if (!host_runs(GetParam())) GTEST_SKIP() << "this machine lacks " << name(GetParam());
    backend_ = CpuBackend::open({.threads = 2, .isa = std::string(name(GetParam()))}).value();
  }
  void check(const tile::Kernel& kernel, ParityOptions options = {},
             const tile::Schedule& schedule = {.kind = tile::CpuLoops{.unroll = 4}}) {
    expect_parity(*backend_, kernel, std::move(options), schedule);
  }
  std::unique_ptr<backends::Backend> backend_;
};

}  // namespace tilewright::cpu::testing
