// The emulator's kernel before ends as late as it can: a kernel that does not wait for it is found out.
#include "backends/cuda/analysis/overlap.h"

#include "cuda_emulation/emulated_cuda.h"
#include "support/hand_kernels.h"

#include <gtest/gtest.h>

namespace tilewright::emulation {
namespace {

constexpr Index kElements = 1000;

// y after a launch of the elu kernel whose printed text was edited, or why it failed.
Result<std::vector<float>> run_edited(const std::function<void(std::string&)>& edit) {
  const auto backend = open_emulated_cuda("sm_90a").value();
  const tile::Kernel kernel = tile::samples::elu_of(kElements, 256);
  auto source = backend->print(kernel, backend->candidates(kernel).front().schedule).value();
  edit(source.text);
  const auto program = backend->load(kernel, source, backend->compile(kernel, source).value()).value();
  std::vector<float> x(kElements, 2.f), y(kElements);
  void* views[] = {backend->allocate(4 * kElements).value(), backend->allocate(4 * kElements).value()};
  (void)backend->copy(views[0], x.data(), 4 * kElements, backends::CopyKind::host_to_device);
  const Status launched = program->launch({.views = views, .grid = {4, 1, 1}});
  (void)backend->copy(y.data(), views[1], 4 * kElements, backends::CopyKind::device_to_host);
  for (void* view : views) backend->release(view, 4 * kElements);
  if (!launched) return launched.error();
  return y;
}

void replace_wait(std::string& text, const std::string& by) {
  text.replace(text.find(cuda::kWaitForPrevious), cuda::kWaitForPrevious.size(), by);
}

TEST(EmulatedOverlap, WhatWaitsReadsWhatTheKernelBeforeLeft) {
  EXPECT_EQ(run_edited([](std::string&) {}).value(), std::vector<float>(kElements, 2.f));
  // Without the line nothing overlaps.
  EXPECT_EQ(run_edited([](std::string& text) { replace_wait(text, ""); }).value(),
            std::vector<float>(kElements, 2.f));
}

TEST(EmulatedOverlap, WhatWaitsTooLateReadsNothingSensible) {
  const auto late = run_edited([](std::string& text) {
    replace_wait(text, "");
    text.insert(text.rfind("}\n\n}"), "\nwait_for_previous_kernel();\n");
  });
  EXPECT_NE(late.value(), std::vector<float>(kElements, 2.f));
}

TEST(EmulatedOverlap, NoBlockEndsWithoutWaiting) {
  const auto never = run_edited(
      [](std::string& text) { replace_wait(text, "if (gridDim.x == 0)\n    wait_for_previous_kernel();"); });
  ASSERT_FALSE(never.ok());
  EXPECT_EQ(never.error().message, "block 0 ended without waiting for the kernel before");
}

}  // namespace
}  // namespace tilewright::emulation
