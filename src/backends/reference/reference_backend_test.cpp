#include "backends/reference/reference_backend.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/sample_kernels.h"

namespace tilewright::reference {
namespace {

TEST(ReferenceBackend, RunsTheTextItPrints) {
  const auto backend = open_reference_backend();
  const tile::Kernel kernel = tile::samples::elu(16);
  auto source = backend->print(kernel, backend->candidates(kernel)[0].schedule);
  ASSERT_TRUE(source.ok());
  // An edit of the text changes what runs: x > 0 becomes x > 1.
  const std::string zero = "%5 = constant 0.0";
  source->text.replace(source->text.find(zero), zero.size(), "%5 = constant 1.0");
  auto binary = backend->compile(kernel, *source);
  ASSERT_TRUE(binary.ok()) << binary.error().message;
  auto program = backend->load(kernel, *source, *binary);
  ASSERT_TRUE(program.ok()) << program.error().message;

  const float x[3] = {-1, 0.5f, 2};
  float y[3] = {};
  void* memory[2] = {*backend->allocate(sizeof x), *backend->allocate(sizeof y)};
  ASSERT_TRUE(backend->copy(memory[0], x, sizeof x, backends::CopyKind::host_to_device).ok());
  const std::int64_t n = 3;
  ASSERT_TRUE((*program)->launch({.views = memory, .scalars = &n, .grid = {1, 1, 1}}).ok());
  ASSERT_TRUE(backend->copy(y, memory[1], sizeof y, backends::CopyKind::device_to_host).ok());
  EXPECT_NEAR(y[0], std::exp(-1) - 1, 1e-6);
  EXPECT_NEAR(y[1], std::exp(0.5) - 1, 1e-6);
  EXPECT_EQ(y[2], 2);
  for (void* address : memory) backend->release(address, sizeof x);
}

TEST(ReferenceBackend, BrokenTextIsAFailureWithItsPlace) {
  const auto backend = open_reference_backend();
  const auto program = backend->load(tile::samples::elu(16), {.text = "kernel @elu(", .entry = "elu"}, {});
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.error().message.substr(0, 5), "1:13:");
}

}  // namespace
}  // namespace tilewright::reference
