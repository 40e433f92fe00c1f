// Probes on the CPU: every figure there and positive, stored and read back, stopped when asked. How fast the
// machine is, is nobody's promise.
#include "runtime/probe.h"

#include "runtime/probe_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace tilewright::runtime {
namespace {

class Probe : public testing::Test {
 protected:
  void SetUp() override {
    auto device = Device::open("cpu");
    ASSERT_TRUE(device) << device.error().message;
    device_ = *device;
  }
  std::shared_ptr<Device> device_;
};

TEST_F(Probe, MeasuresEveryLevelAndRate) {
  std::vector<std::string> steps;
  const auto probed = probe(*device_, {.seconds_each = 0.001,
                                       .progress = [&](std::string_view what) { steps.emplace_back(what); }});
  ASSERT_TRUE(probed) << probed.error().message;
  const perf::Hardware h = perf::to_hardware(probed->ceilings);
  EXPECT_GT(h.memory_traffic.read->value, 0);
  EXPECT_GT(h.memory_traffic.write->value, 0);
  EXPECT_GT(h.memory_traffic.copy->value, 0);
  ASSERT_FALSE(h.levels.empty());
  for (const perf::MemoryLevel& level : h.levels) EXPECT_GT(level.bytes.value, 0) << level.name;
  EXPECT_GT(perf::rate(h, perf::MathUnit::vector, DType::f32).flops_per_s,
            perf::rate(h, perf::MathUnit::vector, DType::f64).flops_per_s / 4);
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i8}) {
    const std::string what = "matrix." + std::string(name(dtype));
    const bool measured = std::any_of(h.matrix.begin(), h.matrix.end(),
                                      [&](const perf::MathRate& rate) { return rate.dtype == dtype; });
    const bool left_out = std::any_of(probed->left_out.begin(), probed->left_out.end(),
                                      [&](const std::string& why) { return why.starts_with(what + ":"); });
    EXPECT_NE(measured, left_out) << what << ": a rate, or why there is none";
  }
  EXPECT_FALSE(h.matrix_beside_vector);
  EXPECT_GT(h.launch_s->value, 0);
  EXPECT_GT(steps.size(), 8u);
}

TEST_F(Probe, IsStoredByDeviceAndReadBack) {
  const std::string folder = testing::TempDir() + "/tw_probe_test";
  std::filesystem::remove_all(folder);
  const auto missing = stored_ceilings(*device_, folder);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind, Failure::Kind::not_found);
  EXPECT_NE(missing.error().message.find("tw devices --probe"), std::string::npos);
  const perf::Ceilings ceilings{"cpu", "test", {{"memory_bytes_per_s", 1e10, "made up"}}};
  ASSERT_TRUE(perf::write_ceilings(ceilings, ceilings_path(*device_, folder)));
  const auto stored = stored_ceilings(*device_, folder);
  ASSERT_TRUE(stored) << stored.error().message;
  EXPECT_EQ(*stored, ceilings);
  std::filesystem::remove_all(folder);
}

TEST_F(Probe, StopsWhenAsked) {
  const auto probed = probe(*device_, {.stop = [] { return true; }});
  ASSERT_FALSE(probed);
  EXPECT_NE(probed.error().message.find("interrupted"), std::string::npos);
}

TEST(ProbeOfCuda, EveryKernelCompilesForHopperWithoutSlowCode) {
  const auto device = Device::open("cuda:0", {.compile_only = "sm_90a"});
  ASSERT_TRUE(device) << device.error().message;
  ASSERT_EQ((*device)->backend().binary_key().find("nvrtc none"), std::string::npos)
      << "scripts/setup.sh test installs NVRTC";
  for (const ProbeKernel& kernel : cuda_probe_kernels()) {
    const auto binary = (*device)->backend().compile(probe_parameters(), source_of(kernel));
    ASSERT_TRUE(binary) << binary.error().message << kernel.text;
    EXPECT_EQ(binary->log.find("C75"), std::string::npos) << binary->log;  // a serialised wgmma
    EXPECT_EQ(binary->log.find("spill stores") != std::string::npos &&
                  binary->log.find(" 0 bytes spill stores") == std::string::npos,
              false)
        << binary->log;
  }
}

TEST(ProbeOnReference, IsRefused) {
  const auto device = Device::open("reference");
  ASSERT_TRUE(device);
  EXPECT_FALSE(probe(**device));
}

}  // namespace
}  // namespace tilewright::runtime
