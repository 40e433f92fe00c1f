// Every hand-written kernel is printed and compiled by NVRTC, without a GPU: no error, no spill, no warning
// of slow code. Goldens of a few printed kernels show what a change of the printer changes.
#include "backends/cuda/cuda_backend.h"
#include "support/attention_kernels.h"
#include "support/hand_kernels.h"
#include "support/matmul_kernels.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace tilewright::cuda {
namespace {

std::unique_ptr<backends::Backend> open_for(const char* architecture) {
  auto backend = CudaBackend::open({.compile_only = architecture});
  return std::move(backend).value();
}

class KernelCompile : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Nvrtc::open(nvrtc_search_from_environment()).ok())
        << "`scripts/setup.sh test` installs NVRTC";
    backend_ = open_for(GetParam());
  }

  // The best candidate, compiled; its log's findings become failures.
  void compile(const tile::samples::HandKernel& k, const tile::Schedule& schedule) {
    const auto source = backend_->print(k.kernel, schedule);
    ASSERT_TRUE(source.ok()) << k.name << ": " << source.error().message;
    const auto binary = backend_->compile(k.kernel, *source);
    ASSERT_TRUE(binary.ok()) << k.name << ": " << binary.error().message << source->text;
    const CompileLog log = parse_compile_log(binary->log);
    ASSERT_EQ(log.kernels.size(), 1u) << k.name;
    EXPECT_TRUE(log.warnings.empty())
        << k.name << ": " << log.warnings[0].code << " " << log.warnings[0].text;
    // Before sm_90 no cluster shares a row: 50,304 elements in 800 threads leave each 80 registers, which
    // ptxas overruns by these few bytes, once a row.
    const int allowed = GetParam() == std::string("sm_80") ? 64 : 0;
    EXPECT_LE(log.kernels[0].spill_store_bytes, allowed) << k.name << " [" << to_string(schedule) << "]\n"
                                                         << source->text;
    EXPECT_LE(log.kernels[0].stack_bytes, allowed) << k.name << " [" << to_string(schedule) << "]\n"
                                                   << source->text;
  }

  std::unique_ptr<backends::Backend> backend_;
};

TEST_P(KernelCompile, SmallKernelsCompileWithoutSpills) {
  for (const auto& k : tile::samples::small_kernels())
    compile(k, backend_->candidates(k.kernel).front().schedule);
}

TEST_P(KernelCompile, LabKernelsCompileWithoutSpills) {
  for (const auto& k : tile::samples::lab_kernels())
    compile(k, backend_->candidates(k.kernel).front().schedule);
}

INSTANTIATE_TEST_SUITE_P(Architectures, KernelCompile, ::testing::Values("sm_80", "sm_90a", "sm_120"));

TEST(Candidates, AreRankedAndFitTheKernel) {
  const auto backend = open_for("sm_90a");
  for (const auto& k : tile::samples::lab_kernels()) {
    const auto all = backend->candidates(k.kernel);
    ASSERT_FALSE(all.empty()) << k.name;
    EXPECT_TRUE(all.front().refusal.empty()) << k.name << ": " << all.front().refusal;
    for (std::size_t i = 1; i < all.size() && all[i].refusal.empty(); ++i)
      EXPECT_GE(all[i].predicted_us, all[i - 1].predicted_us) << k.name;
  }
}

TEST(Candidates, ClustersAreRefusedWhereThereAreNone) {
  const auto backend = open_for("sm_80");
  const auto kernel = tile::samples::softmax_rows(DType::bf16, 8, 65536, 1);
  const auto source = backend->print(
      kernel, {.threads = 512, .kind = tile::ElementLoops{.threads_per_row = 512, .cluster = 4}});
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.error().kind, Failure::Kind::unsupported);
  EXPECT_NE(source.error().message.find("sm_80"), std::string::npos) << source.error().message;
}

TEST(CompileOnly, RunsNothing) {
  const auto backend = open_for("sm_90a");
  EXPECT_EQ(backend->allocate(16).error().kind, Failure::Kind::device);
  EXPECT_EQ(backend->synchronize().error().kind, Failure::Kind::device);
  EXPECT_EQ(CudaBackend::open({.compile_only = "sm_20"}).error().kind, Failure::Kind::unsupported);
}

// TILEWRIGHT_UPDATE=1 build/test_cuda --gtest_filter='Golden*' writes what is compared otherwise.
void expect_golden(const std::string& name, const std::string& text) {
  const std::filesystem::path path = std::filesystem::path(TW_GOLDEN_FOLDER) / "cuda" / (name + ".cu");
  if (std::getenv("TILEWRIGHT_UPDATE") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return;
  }
  std::ifstream file(path);
  std::stringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(text, golden.str())
      << path << " differs; if the change is meant: `make golden` rewrites it; look at the diff";
}

TEST(Golden, PrintedKernels) {
  const auto backend = open_for("sm_90a");
  const auto print = [&](const tile::Kernel& kernel, const tile::Schedule& schedule) {
    return backend->print(kernel, schedule).value().text;
  };
  expect_golden("elu", print(tile::samples::elu_of(1000, 1024),
                             {.threads = 128, .kind = tile::ElementLoops{.threads_per_row = 128}}));
  expect_golden("softmax_cluster",
                print(tile::samples::softmax_rows(DType::bf16, 1024, 65536, 1),
                      {.threads = 512, .kind = tile::ElementLoops{.threads_per_row = 512, .cluster = 4}}));
  const tile::samples::MatmulKernel gemm{.m = 8192, .n = 3072, .k = 768, .block_n = 256};
  expect_golden("gemm", print(tile::samples::matmul(gemm),
                              {.threads = 256, .kind = tile::WgmmaDot{.stages = 4, .group_m = 16}}));
  tile::samples::MatmulKernel gelu = gemm;
  gelu.block_n = 192, gelu.bias_gelu = true;
  expect_golden(
      "gemm_gelu_cutlass_pingpong",
      print(tile::samples::matmul(gelu),
            {.threads = 256, .kind = tile::WgmmaPingpong{.stages = 4, .group_m = 16, .store_stages = 4}}));
  const tile::samples::AttentionKernel causal{.heads = 16,
                                              .queries = 4096,
                                              .keys = 4096,
                                              .block_n = 64,
                                              .causal = true,
                                              .skips = true,
                                              .splits = true};
  expect_golden("attention_mma",
                open_for("sm_80")
                    ->print(tile::samples::attention(causal),
                            {.threads = 128, .kind = tile::MmaB2b{.stages = 2, .longest_first = true}})
                    .value()
                    .text);
  expect_golden("transpose", print(tile::samples::transpose_tiles(DType::f32, 8192, 8192, 64),
                                   {.threads = 256, .kind = tile::ElementLoops{.threads_per_row = 16}}));
}

}  // namespace
}  // namespace tilewright::cuda
