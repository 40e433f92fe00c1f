// CompileOptions::memory_budget: the same bits in less memory, which is what the device counts.
#include <tilewright/tilewright.hpp>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <tuple>
#include <vector>

#include "support/errors.h"
#include "support/kernel_folder.h"

namespace tilewright::test {
namespace {

constexpr Index kWidth = 128, kRows = 512, kLayers = 6;
constexpr std::int64_t kAlign = 256;  // of each tensor in memory

// Residual layers: x + gelu(norm(x) · w), with the gradient of every w.
struct ResidualLayers {
  explicit ResidualLayers(Context& ctx) {
    ctx.set_seed(3);
    x = ctx.randn({kRows, kWidth});
    for (Index i = 0; i < kLayers; ++i) weights.push_back(ctx.randn({kWidth, kWidth}) * 0.05);
  }
  Tensor x;
  std::vector<Tensor> weights;
};
Tensor residual_loss(const std::vector<Tensor>& all) {
  Tensor x = all[0];
  for (std::size_t i = 1; i < all.size(); ++i)
    x = x + gelu(matmul(layer_norm(x, std::nullopt, std::nullopt), all[i]));
  return mean(x * x);
}
std::vector<Tensor> residual_step(const std::vector<Tensor>& all) {
  std::vector<int> wanted;
  for (std::size_t i = 1; i < all.size(); ++i) wanted.push_back(static_cast<int>(i));
  auto [value, gradients] = value_and_grad(residual_loss, wanted)(all);
  gradients.push_back(value);
  return gradients;
}

std::int64_t held_by(const std::vector<Tensor>& tensors) {
  std::int64_t bytes = 0;
  for (const Tensor& t : tensors) bytes += t.size() * static_cast<std::int64_t>(size_bytes(t.dtype()));
  return bytes;
}

// A call within a budget: what it gave, and the most that the device held.
struct BudgetedCall {
  std::vector<std::vector<float>> values;
  std::int64_t peak_bytes = 0, planned_bytes = 0;
  std::string explained;
};
BudgetedCall call_within(const char* device, std::int64_t budget) {
  Context ctx({.device = device, .cache_directory = test::kernel_folder()});
  const ResidualLayers problem(ctx);
  std::vector<Tensor> all = {problem.x};
  all.insert(all.end(), problem.weights.begin(), problem.weights.end());
  const CompiledList compiled(residual_step, {.memory_budget = budget});
  BudgetedCall out;
  {
    const std::vector<Tensor> warm = compiled(all);
  }
  ctx.reset_peak_memory();
  const std::vector<Tensor> results = compiled(all);
  out.peak_bytes = ctx.memory().peak_bytes;
  for (const Tensor& t : results) out.values.push_back(t.to_vector<float>());
  out.planned_bytes = held_by(all) + held_by(results) + compiled.report().front().arena_bytes;
  out.explained = compiled.explain();
  return out;
}

class MemoryBudgets : public ::testing::TestWithParam<const char*> {};

TEST_P(MemoryBudgets, GiveTheSameBitsInLessMemory) {
  const BudgetedCall whole = call_within(GetParam(), 0);
  for (const double part : {0.9, 0.75, 0.6}) {
    const auto budget = static_cast<std::int64_t>(static_cast<double>(whole.planned_bytes) * part);
    const BudgetedCall less = call_within(GetParam(), budget);
    EXPECT_EQ(less.values, whole.values) << part;
    EXPECT_LE(less.planned_bytes, budget);
    EXPECT_LE(less.peak_bytes, budget + 2 * kLayers * kAlign);
    EXPECT_NEAR(static_cast<double>(less.peak_bytes), static_cast<double>(less.planned_bytes),
                0.02 * static_cast<double>(less.planned_bytes));
    EXPECT_THAT(less.explained, testing::ContainsRegex("memory: temporaries take .* launches are repeated"));
  }
}

TEST_P(MemoryBudgets, ThatAreTooSmallSayWhatWouldDo) {
  const std::string said = message_of([] { return call_within(GetParam(), 1000); });
  EXPECT_THAT(said, testing::HasSubstr("memory_budget is 1000 bytes"));
  EXPECT_THAT(said, testing::HasSubstr("memory_budget_test.cpp:"));
  std::smatch found;
  ASSERT_TRUE(std::regex_search(said, found, std::regex("this call is (\\d+) bytes"))) << said;
  const std::int64_t least = std::stoll(found[1]);
  const BudgetedCall at_least = call_within(GetParam(), least);
  EXPECT_LE(at_least.planned_bytes, least);
  EXPECT_EQ(at_least.values, call_within(GetParam(), 0).values);
}

TEST_P(MemoryBudgets, ThatAreNegativeAreCalledSo) {
  expect_says([] { return call_within(GetParam(), -1); },
              {"compile: memory_budget is negative: -1 bytes", "memory_budget_test.cpp:"});
}

INSTANTIATE_TEST_SUITE_P(Devices, MemoryBudgets, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright::test
