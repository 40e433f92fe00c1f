#include "harness/run/environment.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace tilewright::lab {
namespace {

// A file system with the files that the reader looks at.
std::string fake_root() {
  const std::string root =
      (std::filesystem::temp_directory_path() / ("tilewright_root_" + std::to_string(getpid()))).string() +
      "/";
  const auto put = [&](const std::string& path, const std::string& text) {
    EXPECT_TRUE(write_file(root + path, text).ok());
  };
  put("proc/cpuinfo",
      "processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: AMD EPYC 9B45\nflags\t\t: fpu "
      "hypervisor sse\n");
  put("proc/meminfo", "MemTotal:       16777216 kB\nSwapTotal:  2097152 kB\nSwapFree:  1048576 kB\n");
  put("proc/loadavg", "7.50 1.00 0.50 1/100 4242\n");
  put("proc/self/cgroup", "0::/jobs/one\n");
  put("sys/fs/cgroup/jobs/one/cpu.max", "150000 100000\n");
  put("sys/fs/cgroup/jobs/one/memory.max", "4294967296\n");
  put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  return root;
}

TEST(Environment, IsReadFromTheMachinesFiles) {
  const Environment e = read_environment({.seed = 5, .gpu_name = "NVIDIA H200", .root = fake_root()});
  EXPECT_EQ(e.cpu_model, "AMD EPYC 9B45 (family 26 model 2)");
  EXPECT_TRUE(e.virtual_machine);
  EXPECT_DOUBLE_EQ(e.memory_gib, 16);
  EXPECT_DOUBLE_EQ(e.swap_used_gib, 1);
  EXPECT_DOUBLE_EQ(e.load_average, 7.5);
  EXPECT_EQ(e.cgroup_cpu, "1.5 cores");
  EXPECT_EQ(e.cgroup_memory, "4.0 GiB");
  EXPECT_EQ(e.governor, "powersave");
  EXPECT_EQ(e.seed, 5u);
}

TEST(Environment, ThisMachineHasTheFactsThatEveryMachineHas) {
  const Environment e = read_environment({});
  EXPECT_FALSE(e.cpu_model.empty());
  EXPECT_GT(e.cores, 0);
  EXPECT_FALSE(e.affinity.empty());
  EXPECT_GT(e.memory_gib, 0.1);
  EXPECT_NE(e.kernel.find("Linux"), std::string::npos);
  EXPECT_EQ(e.date.size(), 20u);
  EXPECT_EQ(e.date.back(), 'Z');
  EXPECT_FALSE(e.git_commit.empty());
}

TEST(Environment, WarnsOfWhatMakesFiguresDoubtful) {
  Environment e = read_environment({.root = fake_root()});
  e.cores = 4;
  const auto all = warnings(e);
  const auto mentions = [&](std::string_view what) {
    return std::any_of(all.begin(), all.end(),
                       [&](const std::string& w) { return w.find(what) != std::string::npos; });
  };
  EXPECT_TRUE(mentions("load average 7.5"));
  EXPECT_TRUE(mentions("powersave"));
  EXPECT_TRUE(mentions("swap"));
  EXPECT_TRUE(mentions("1.5 cores of 4"));
  EXPECT_TRUE(mentions("virtual machine"));
}

TEST(Environment, AQuietMachineHasNoWarnings) {
  Environment e;
  e.cores = 8;
  e.governor = "performance";
  e.cgroup_cpu = "none";
  e.git_commit = "0123456789ab";
  EXPECT_TRUE(warnings(e).empty());
}

TEST(HardwareKey, NamesTheProcessorOrTheGpu) {
  Environment e;
  e.cpu_model = "AMD EPYC (family 26 model 2)";
  e.cores = 2;
  e.gpu_name = "NVIDIA H200";
  EXPECT_EQ(hardware_key(e, "cpu"), "amd-epyc-family-26-model-2-2c");
  EXPECT_EQ(hardware_key(e, "cuda:0"), "nvidia-h200");
}

}  // namespace
}  // namespace tilewright::lab
