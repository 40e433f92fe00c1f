// Chains of dots on tensor cores mean what the kernel means: scores that never leave the registers, blocks of
// keys that are read twice, ragged lengths, rows that see nothing.
#include "cuda_emulation/emulated_cuda.h"

#include "support/attention_kernels.h"
#include "support/kernel_check.h"

#include <gtest/gtest.h>

namespace tilewright::emulation {
namespace {

using testing::check_kernel;
using tile::DotUnit;
using tile::samples::AttentionKernel;

class EmulatedChain : public ::testing::Test {
 protected:
  EmulatedChain() : backend_(open_emulated_cuda("sm_90a").value()) {}
  void check_kernel_of(const AttentionKernel& a, const tile::Kernel& kernel, const tile::Schedule& schedule) {
    const auto r =
        check_kernel(*backend_, kernel, schedule,
                     {.scale = spread_, .odd_share = 0, .model = {.scale = 2, .flush_subnormals = true}});
    EXPECT_TRUE(r.problem.empty()) << to_string(a) << ": " << r.problem;
    EXPECT_TRUE(r.refused.empty()) << to_string(a) << ": " << r.refused;
  }
  void check(const AttentionKernel& a, const tile::Schedule& schedule) {
    check_kernel_of(a, attention(a), schedule);
  }
  std::unique_ptr<backends::Backend> backend_;
  double spread_ = 1;
};

tile::Schedule chain(int threads, int stages = 2) {
  return {
      .threads = threads, .threads_per_row = 4, .vector_bytes = 16, .stages = stages, .dot = DotUnit::wgmma};
}

TEST_F(EmulatedChain, ScoresStayInRegisters) {
  check({.queries = 128, .keys = 256}, chain(256));
  check({.dtype = DType::f16, .out = DType::f32, .queries = 64, .keys = 128, .block_m = 64, .block_n = 64},
        chain(128, 3));
}

TEST_F(EmulatedChain, HeadsShareKeys) {
  check({.heads = 4, .shared = 2, .queries = 128, .keys = 128, .depth = 128, .columns = 128}, chain(256));
}

TEST_F(EmulatedChain, RaggedLengthsAndMasks) {
  check({.heads = 2, .queries = 200, .keys = 333, .causal = true, .gap = 8}, chain(256));
  check({.queries = 130, .keys = 300, .causal = true, .skips = true}, chain(256));
}

TEST_F(EmulatedChain, RowsThatSeeNothing) {
  check({.queries = 128, .keys = 256, .causal = true, .unseen = 150, .log_sum_exp = true}, chain(256));
}

TEST_F(EmulatedChain, ScoresThatOverflowWithoutTheirMaximum) {
  spread_ = 12;
  check({.queries = 128, .keys = 256}, chain(256));
}

TEST_F(EmulatedChain, RoundsOverlap) {
  for (bool turns : {false, true}) {
    tile::Schedule s = chain(256);
    s.ahead = true, s.take_turns = turns;
    check({.heads = 3, .queries = 200, .keys = 555, .depth = 128, .columns = 128, .causal = true}, s);
    check({.queries = 256, .keys = 256, .depth = 64, .columns = 128, .causal = true, .skips = true}, s);
    check({.queries = 128, .keys = 100, .causal = true, .unseen = 150, .log_sum_exp = true}, s);
    s.stages = 3, s.descending = true;
    const AttentionKernel a{.heads = 2, .queries = 200, .keys = 200, .block_n = 64, .causal = true};
    check_kernel_of(a, attention_gradient_q(a), s);
  }
}

TEST_F(EmulatedChain, TwoProductsBeforeTheLast) {
  const AttentionKernel a{.heads = 2, .queries = 128, .keys = 200, .block_n = 64, .causal = true};
  check_kernel_of(a, attention_gradient_q(a), chain(256));
}

}  // namespace
}  // namespace tilewright::emulation
