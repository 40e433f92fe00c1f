// NVRTC: finding it, compiling with it, reading its log. Needs the library (pip install nvidia-cuda-nvrtc),
// not a GPU.
#include "backends/cuda/nvrtc/nvrtc.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cuda/gpu_tests/kernels.h"
#include "backends/cuda/nvrtc/device_headers.h"

namespace tilewright::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CompileLogTest, ReadsResourcesAndSlowCodeWarnings) {
  const auto log = parse_compile_log(
      "k.cu(2): warning #177-D: variable \"x\" was declared, 7 registers\n"
      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine "
      "register count at entry.\n"
      "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; unable to determine "
      "register count at entry.\n"
      "ptxas info    : 24 bytes gmem\n"
      "ptxas info    : Compiling entry function 'k2' for 'sm_90a'\n"
      "ptxas info    : Function properties for k2\n"
      "ptxas         .     288 bytes stack frame, 128 bytes spill stores, 96 bytes spill loads\n"
      "ptxas info    : Used 12 registers, used 1 barriers, 288 bytes cumulative stack size, 256 bytes smem, "
      "4 bytes cmem[0]\n"
      "ptxas info    : Function properties for _Z1ff\n"
      "ptxas         .     64 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Function properties for k\n"
      "    8 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"  // CUDA 12's form
      "ptxas info    : Used 22 registers, used 0 barriers\n");
  ASSERT_EQ(log.warnings.size(), 1u);
  EXPECT_EQ(log.warnings[0].code, "C7508");
  EXPECT_EQ(log.warnings[0].text,
            "Potential Performance Loss: 'setmaxnreg' ignored; unable to determine register count at entry.");
  const KernelResources k2{.name = "k2",
                           .registers = 12,
                           .stack_bytes = 288,
                           .spill_store_bytes = 128,
                           .spill_load_bytes = 96,
                           .shared_bytes = 256,
                           .barriers = 1};
  EXPECT_THAT(log.kernels, ElementsAre(k2, KernelResources{.name = "k", .registers = 22, .stack_bytes = 8}));
}

TEST(NvrtcOpen, SaysWhereItLookedAndHowToInstall) {
  // The loader's own search may succeed on a machine with CUDA installed system-wide: only a failure has a
  // message.
  const auto nvrtc = Nvrtc::open({.paths = {"/of/no/machine/libnvrtc.so.13", "/tmp"}});
  if (nvrtc.ok()) {
    EXPECT_THAT(nvrtc->library_path(), HasSubstr("libnvrtc.so"));
    return;
  }
  EXPECT_EQ(nvrtc.error().kind, Failure::Kind::not_found);
  EXPECT_THAT(nvrtc.error().message, HasSubstr("pip install nvidia-cuda-nvrtc"));
  EXPECT_THAT(nvrtc.error().message, HasSubstr("/of/no/machine/libnvrtc.so.13"));
  EXPECT_THAT(nvrtc.error().message, HasSubstr("/tmp: holds no libnvrtc.so.13"));
}

class Compiler : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(nvrtc_.ok()) << nvrtc_.error().message; }
  Result<Nvrtc> nvrtc_ = Nvrtc::open(nvrtc_search_from_environment());
};

TEST_F(Compiler, MakesMachineCodeAndReportsResources) {
  const auto binary = nvrtc_->compile(
      "extern \"C\" __global__ void twice(float* x) { x[threadIdx.x] *= 2.f; }", {.arch = {}});
  ASSERT_TRUE(binary.ok()) << binary.error().message;
  EXPECT_EQ(binary->cubin.substr(1, 3), "ELF");
  EXPECT_EQ(binary->arch.text(), "sm_90a");
  EXPECT_GT(binary->compile_ms, 0.0);
  ASSERT_EQ(binary->parsed.kernels.size(), 1u);
  EXPECT_EQ(binary->parsed.kernels[0].name, "twice");
  EXPECT_GT(binary->parsed.kernels[0].registers, 0);
  EXPECT_EQ(binary->parsed.kernels[0].spill_store_bytes, 0);
}

TEST_F(Compiler, QuotesTheErrorOfBadSource) {
  const auto binary = nvrtc_->compile("extern \"C\" __global__ void k(float* x) { x[0] = nonsense; }",
                                      {.file_name = "softmax.cu"});
  ASSERT_FALSE(binary.ok());
  EXPECT_EQ(binary.error().kind, Failure::Kind::compile);
  EXPECT_THAT(binary.error().message,
              HasSubstr("softmax.cu(1): error: identifier \"nonsense\" is undefined"));
}

TEST_F(Compiler, NamesAnArchitectureThatItDoesNotKnow) {
  const auto binary =
      nvrtc_->compile("extern \"C\" __global__ void k() {}", {.arch = {.major = 8, .minor = 5}});
  ASSERT_FALSE(binary.ok());
  EXPECT_THAT(binary.error().message, HasSubstr("sm_85"));
}

TEST_F(Compiler, IncludesHeadersFromMemory) {
  const auto binary =
      nvrtc_->compile("#include \"mine.cuh\"\nextern \"C\" __global__ void k(int* x) { *x = kMine; }",
                      {.headers = {{"mine.cuh", "constexpr int kMine = 3;\n"}}, .device_headers = false});
  EXPECT_TRUE(binary.ok()) << binary.error().message;
}

TEST_F(Compiler, ReportsCodeThatIsSlowerThanItLooks) {
  // Without launch bounds ptxas ignores setmaxnreg, and says so only in the log.
  const auto binary = nvrtc_->compile(
      "extern \"C\" __global__ void k(float* x) { asm volatile(\"setmaxnreg.inc.sync.aligned.u32 240;\"); "
      "x[0] = 1; }",
      {.arch = {}});
  ASSERT_TRUE(binary.ok()) << binary.error().message;
  ASSERT_EQ(binary->parsed.warnings.size(), 1u);
  EXPECT_EQ(binary->parsed.warnings[0].code, "C7508");
}

TEST(DeviceHeaders, AreAllEmbedded) {
  std::vector<std::string> names;
  for (const auto& header : device_headers()) {
    names.emplace_back(header.name);
    // Read once, or for each of the numbers that those that are say before.
    EXPECT_THAT(std::string(header.text),
                testing::AnyOf(HasSubstr("#pragma once"), HasSubstr("#ifdef TW_COLUMNS")))
        << header.name;
  }
  EXPECT_THAT(names, testing::Contains("tw_cuda/math.cuh"));
  EXPECT_GE(names.size(), 10u);
}

// Each header alone, on the oldest GPU we print for and on the newest.
TEST_F(Compiler, CompilesEveryDeviceHeaderWithoutAWarning) {
  for (const auto& header : device_headers()) {
    for (const char* architecture : {"sm_80", "sm_90a", "sm_100", "sm_120"}) {
      const std::string source = std::string("#include \"") + header.name +
                                 "\"\nextern \"C\" __global__ void k(float* x) { x[threadIdx.x] = 1.f; }\n";
      const auto binary = nvrtc_->compile(source, {.arch = Arch::parse(architecture).value()});
      ASSERT_TRUE(binary.ok()) << header.name << ": " << binary.error().message;
      EXPECT_TRUE(binary->parsed.warnings.empty()) << header.name << ": " << binary->log;
      EXPECT_THAT(binary->log, testing::Not(HasSubstr("warning"))) << header.name;
    }
  }
}

// The kernels of gpu_tests use every function of the headers.
TEST_F(Compiler, CompilesTheKernelsOfTheGpuTestsWithoutAWarning) {
  for (const auto& kernel : kTestKernels) {
    for (const char* architecture : {"sm_80", "sm_90a", "sm_120"}) {
      const Arch arch = Arch::parse(architecture).value();
      if (kernel.needs_sm90 && !arch.has_warpgroup_dots()) continue;
      const auto binary =
          nvrtc_->compile(std::string(kernel.text), {.arch = arch, .file_name = std::string(kernel.name)});
      ASSERT_TRUE(binary.ok()) << binary.error().message;
      EXPECT_TRUE(binary->parsed.warnings.empty()) << kernel.name << ": " << binary->log;
      EXPECT_THAT(binary->log, testing::Not(HasSubstr("warning"))) << kernel.name;
    }
  }
}

}  // namespace
}  // namespace tilewright::cuda
