// The forms of wgmma are compiled by NVRTC at the sizes that fill a thread's registers: none spills, none
// is warned of.
#include "backends/cuda/cuda_backend.h"
#include "support/attention_kernels.h"
#include "support/matmul_kernels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

using tile::samples::MatmulKernel;

class DotCompile : public ::testing::Test {
 protected:
  DotCompile() : backend_(CudaBackend::open({.compile_only = "sm_90a"}).value()) {}

  void compile(const MatmulKernel& m, const tile::Schedule& schedule) {
    compile(tile::samples::matmul(m), to_string(m), schedule);
  }
  void compile(const tile::Kernel& kernel, const std::string& name, const tile::Schedule& schedule) {
    const std::string what = fmt::format("{} [{}]", name, to_string(schedule));
    const auto source = backend_->print(kernel, schedule);
    ASSERT_TRUE(source.ok()) << what << ": " << source.error().message;
    const auto binary = backend_->compile(kernel, *source);
    ASSERT_TRUE(binary.ok()) << what << ": " << binary.error().message << source->text;
    const CompileLog log = parse_compile_log(binary->log);
    ASSERT_EQ(log.kernels.size(), 1u) << what;
    EXPECT_TRUE(log.warnings.empty())
        << what << ": " << log.warnings[0].code << " " << log.warnings[0].text << source->text;
    EXPECT_EQ(log.kernels[0].spill_store_bytes, 0) << what << log.kernels[0].registers << " registers\n"
                                                   << source->text;
  }

  std::unique_ptr<backends::Backend> backend_;
};

tile::Schedule cutlass_pingpong(int stages, int places = 0) {
  return {.threads = 256,
          .kind = tile::WgmmaPingpong{.stages = stages, .group_m = 16, .store_stages = places}};
}
tile::Schedule together(int stages, int places = 0) {
  return {.threads = 256, .kind = tile::WgmmaDot{.stages = stages, .group_m = 16, .store_stages = places}};
}

MatmulKernel of(DType dtype, Index block_m, Index block_n, bool bias_gelu) {
  const bool of16 = size_bytes(dtype) == 2;
  return {.dtype = dtype,
          .out = dtype == DType::i8 ? DType::i32 : DType::bf16,
          .m = 4096,
          .n = 3072,
          .k = 1024,
          .block_m = block_m,
          .block_n = block_n,
          .block_k = 128 / static_cast<Index>(size_bytes(dtype)),
          .b_by_columns = !of16,
          .bias_gelu = bias_gelu,
          .tf32 = dtype == DType::f32};
}

TEST_F(DotCompile, WarpgroupsHaveRegistersForTilesOfTheirOwn) {
  for (const bool bias_gelu : {false, true}) {
    compile(of(DType::bf16, 128, 192, bias_gelu), cutlass_pingpong(5));
    compile(of(DType::bf16, 64, 256, bias_gelu), cutlass_pingpong(5));
    compile(of(DType::f32, 128, 192, bias_gelu), cutlass_pingpong(5));
    compile(of(DType::f8e4m3, 64, 192, bias_gelu), cutlass_pingpong(6));
  }
  compile(of(DType::i8, 128, 192, false), cutlass_pingpong(5));
  compile(of(DType::f16, 128, 128, true), cutlass_pingpong(6));
  MatmulKernel ragged = of(DType::bf16, 128, 192, true);
  ragged.batch = 3, ragged.m = 4001, ragged.n = 3064, ragged.k = 1000;
  compile(ragged, cutlass_pingpong(5));
  ragged.any_depth = true;
  compile(ragged, cutlass_pingpong(5));
}

TEST_F(DotCompile, ResultsOfEightBitsAreStoredByTheQuad) {
  for (const DType out : {DType::f8e4m3, DType::i8, DType::boolean})
    for (const auto& [rows, columns] : {std::pair<Index, Index>{128, 256}, {256, 128}}) {
      MatmulKernel m = of(DType::bf16, rows, columns, out == DType::f8e4m3);
      m.out = out;
      compile(m, together(4));
    }
}

MatmulKernel with_maxima(MatmulKernel m) {
  m.maxima = true;
  return m;
}

TEST_F(DotCompile, WarpsReduceColumnsInTheirRegisters) {
  for (const bool bias_gelu : {false, true}) {
    compile(with_maxima(of(DType::bf16, 128, bias_gelu ? 192 : 256, bias_gelu)), together(4));
    compile(with_maxima(of(DType::bf16, 128, 128, bias_gelu)), cutlass_pingpong(5));
  }
  compile(with_maxima(of(DType::f8e4m3, 128, 192, false)), together(4));
  compile(with_maxima(of(DType::i8, 64, 192, false)), cutlass_pingpong(5));
  const auto none = backend_->print(tile::samples::matmul(with_maxima(of(DType::bf16, 128, 192, false))),
                                    cutlass_pingpong(5));
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().message.find("no registers"), std::string::npos) << none.error().message;
}

// Three tiles beside the result, as an update by AdamW reads a weight and two moments.
TEST_F(DotCompile, WhatIsLoadedBesideALargeTileFitsTheRegisters) {
  for (const Index columns : {192, 256}) {
    MatmulKernel m = of(DType::bf16, 128, columns, false);
    m.out = DType::f32, m.beside = 3;
    compile(m, together(4));
  }
}

TEST_F(DotCompile, ResultsLeaveByTheCopyEngine) {
  for (const bool bias_gelu : {false, true}) {
    compile(of(DType::bf16, 128, 256, bias_gelu), together(4, 2));
    compile(with_maxima(of(DType::bf16, 128, 192, bias_gelu)), together(4, 2));
    compile(of(DType::bf16, 128, 192, bias_gelu), cutlass_pingpong(4, 4));
    compile(of(DType::bf16, 64, 256, bias_gelu), cutlass_pingpong(4, 3));
    compile(of(DType::f8e4m3, 128, 192, bias_gelu), together(4, 3));
  }
  MatmulKernel ragged = of(DType::f16, 128, 256, true);
  ragged.batch = 3, ragged.m = 4001, ragged.n = 3064, ragged.k = 1000, ragged.out = DType::f32;
  compile(ragged, together(4, 2));
  ragged.block_n = 192;
  compile(ragged, cutlass_pingpong(4, 2));
  compile(of(DType::i8, 128, 192, false), cutlass_pingpong(4, 2));
}

// Two and three warpgroups, each with the products of a round and the sum in its registers.
TEST_F(DotCompile, ChainsSendTheirResults) {
  for (const bool causal : {false, true})
    for (const Index depth : {64, 128}) {
      const tile::samples::AttentionKernel a{.heads = 16,
                                             .queries = 4096,
                                             .keys = 4096,
                                             .depth = depth,
                                             .columns = depth,
                                             .block_m = depth == 64 ? 192 : 128,
                                             .causal = causal,
                                             .skips = causal,
                                             .splits = causal};
      tile::Schedule s{
          .threads = static_cast<int>(2 * a.block_m),
          .kind = tile::WgmmaB2b{
              .stages = 2, .longest_first = causal, .rounds = tile::Rounds::fa3_pingpong, .store_stages = 2}};
      compile(attention(a), to_string(a), s);
    }
}

}  // namespace
}  // namespace tilewright::cuda
