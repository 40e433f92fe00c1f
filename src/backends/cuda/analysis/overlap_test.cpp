// Printed kernels wait for the one before them ahead of all memory.
#include "backends/cuda/analysis/overlap.h"

#include "backends/cuda/cuda_backend.h"
#include "support/attention_kernels.h"
#include "support/hand_kernels.h"
#include "support/matmul_kernels.h"

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

using tile::Kernel;

// Under each schedule that the backend proposes for each kernel, the texts for the architecture.
std::vector<std::string> all_texts(const std::string& architecture) {
  std::vector<Kernel> kernels;
  for (const auto& k : tile::samples::small_kernels()) kernels.push_back(k.kernel);
  for (const auto& k : tile::samples::lab_kernels()) kernels.push_back(k.kernel);
  kernels.push_back(tile::samples::matmul({.m = 512, .n = 512, .k = 256, .bias_gelu = true}));
  kernels.push_back(tile::samples::matmul({.dtype = DType::f32, .m = 200, .n = 136, .k = 100}));
  kernels.push_back(attention(tile::samples::AttentionKernel{.queries = 256, .keys = 512}));
  const auto backend = CudaBackend::open({.compile_only = architecture}).value();
  std::vector<std::string> texts;
  for (const Kernel& kernel : kernels)
    for (const backends::Candidate& c : backend->candidates(kernel))
      if (c.refusal.empty()) texts.push_back(backend->print(kernel, c.schedule).value().text);
  return texts;
}

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++n;
  return n;
}

TEST(Overlap, KernelsWaitOnceAndBeforeTheyTouchMemory) {
  const std::vector<std::string> texts = all_texts("sm_90a");
  EXPECT_GE(texts.size(), 200u);
  for (const std::string& text : texts) {
    ASSERT_EQ(count(text, kWaitForPrevious), 1u) << text;
    ASSERT_TRUE(waits_for_previous(text)) << text;
    const std::size_t body = text.find("{\n", text.find("__global__")), wait = text.find(kWaitForPrevious);
    ASSERT_LT(body, wait);
    const std::string before = text.substr(body, wait - body);
    for (const char* access : {"load", "store", "fetch", "copy_", "tma_", "atomic", "for (", "if (threadIdx"})
      ASSERT_EQ(before.find(access), std::string::npos) << access << text;
    // Threads without a program may leave before; the others of their block wait.
    ASSERT_LE(count(before, "return;"), 1u) << text;
  }
}

TEST(Overlap, DevicesBeforeSm90HaveNone) {
  for (const std::string& text : all_texts("sm_80"))
    ASSERT_EQ(text.find(kWaitForPrevious), std::string::npos) << text;
}

TEST(Overlap, EditedTextsOverlapOnlyWhileTheyWait) {
  EXPECT_TRUE(waits_for_previous("{\n  wait_for_previous_kernel();\n  y[0] = 1;\n"));
  EXPECT_FALSE(waits_for_previous("{\n  y[0] = 1;\n"));
  EXPECT_FALSE(waits_for_previous("{\n  // wait_for_previous_kernel();\n  y[0] = 1;\n"));
  EXPECT_FALSE(waits_for_previous("{\n  if (t == 0) wait_for_previous_kernel();\n  y[0] = 1;\n"));
}

}  // namespace
}  // namespace tilewright::cuda
