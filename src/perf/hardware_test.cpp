// The hardware table is complete and sourced; rates stand in without breaking a bound; measurements build the
// same.
#include <tilewright/perf/hardware.h>

#include <tilewright/base/error.h>

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace tilewright::perf {
namespace {

void expect_sourced(const Figure& figure, const std::string& what) {
  EXPECT_GT(figure.value, 0) << what;
  EXPECT_TRUE(std::isfinite(figure.value)) << what;
  EXPECT_GT(figure.source.size(), 10u) << what;
}

double matrix_of(std::string_view hardware, DType dtype) {
  return rate(find_hardware(hardware), MathUnit::matrix, dtype).flops_per_s;
}

double vector_of(std::string_view hardware, DType dtype) {
  return rate(find_hardware(hardware), MathUnit::vector, dtype).flops_per_s;
}

TEST(HardwareTable, EveryFigureHasASource) {
  for (const Hardware& h : known_hardware()) {
    expect_sourced(h.memory_bytes, h.name);
    expect_sourced(h.memory_bytes_per_s, h.name);
    for (const auto* rates : {&h.matrix, &h.vector}) {
      for (const MathRate& r : *rates) expect_sourced(r.flops_per_s, h.name);
    }
    for (const MemoryLevel& level : h.levels) expect_sourced(level.bytes, h.name + level.name);
    for (const auto& figure : {h.special_ops_per_s, h.link_bytes_per_s, h.launch_s}) {
      if (figure) expect_sourced(*figure, h.name);
    }
  }
}

TEST(HardwareTable, NamesAreUniqueAndEachTypeStandsOnce) {
  std::set<std::string> names;
  for (const Hardware& h : known_hardware()) {
    EXPECT_TRUE(names.insert(h.name).second) << h.name;
    for (const auto* rates : {&h.matrix, &h.vector}) {
      std::set<DType> seen;
      for (const MathRate& r : *rates) EXPECT_TRUE(seen.insert(r.dtype).second) << h.name << name(r.dtype);
    }
  }
}

TEST(HardwareTable, HoldsTheFiguresOfTheWorkedResults) {
  EXPECT_EQ(matrix_of("h100", DType::bf16), 9.89e14);
  EXPECT_EQ(find_hardware("h100").memory_bytes_per_s.value, 3.35e12);
  EXPECT_EQ(matrix_of("tpu-v5e", DType::bf16), 1.97e14);
  EXPECT_EQ(matrix_of("tpu-v5e", DType::i8), 3.94e14);
  EXPECT_EQ(find_hardware("tpu-v5e").memory_bytes_per_s.value, 8.2e11);
  EXPECT_EQ(find_hardware("tpu-v5e").link_bytes_per_s->value, 4.5e10);
  EXPECT_EQ(matrix_of("tpu-v6e", DType::bf16), 9.1e14);
  EXPECT_EQ(find_hardware("tpu-v6e").memory_bytes_per_s.value, 1.6e12);
  EXPECT_EQ(vector_of("tpu-v5p", DType::f32), 7e12);
}

TEST(HardwareTable, VectorRatesFollowFromCoresAndClock) {
  // 132 SMs x 128 cores x 2 FLOPs x 1.98 GHz; the data sheet rounds to 67 TFLOP/s.
  EXPECT_NEAR(vector_of("h100", DType::f32) / (132 * 128 * 2 * 1.98e9), 1, 0.01);
  EXPECT_NEAR(vector_of("a100", DType::f32) / (108 * 64 * 2 * 1.41e9), 1, 0.01);
}

TEST(HardwareTable, H200IsTheH100WithOtherMemory) {
  EXPECT_EQ(find_hardware("h200").memory_bytes_per_s.value, 4.8e12);
  for (DType dtype : kAllDTypes) EXPECT_EQ(matrix_of("h200", dtype), matrix_of("h100", dtype)) << name(dtype);
}

TEST(FindHardware, UnknownNameListsTheKnown) {
  try {
    find_hardware("h300");
    FAIL() << "did not throw";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "unknown hardware 'h300'; known: h100, h200, a100, b200, tpu-v5e, tpu-v5p, tpu-v6e");
  }
}

TEST(Rate, AnExactFigureHasNoSubstitute) {
  EXPECT_EQ(rate(find_hardware("h100"), MathUnit::matrix, DType::bf16), (Rate{9.89e14, ""}));
}

TEST(Rate, F32MatmulOnAGpuIsTheVectorRateOrASixthOfBf16) {
  const Rate r = rate(find_hardware("h100"), MathUnit::matrix, DType::f32);
  EXPECT_DOUBLE_EQ(r.flops_per_s, 9.89e14 / 6);
  EXPECT_EQ(
      r.substitute,
      "h100 has no matrix rate for f32: a sixth of that of bf16 is used, as six products of parts make one");
  Hardware slow = find_hardware("h100");
  slow.matrix = {{DType::bf16, {3e14, ""}}};
  EXPECT_EQ(rate(slow, MathUnit::matrix, DType::f32).flops_per_s, 6.7e13);
  EXPECT_EQ(rate(slow, MathUnit::matrix, DType::f32).substitute,
            "h100 has no matrix rate for f32: the vector rate of f32 is used");
}

TEST(Rate, Fp8WithoutItsUnitRunsAsBf16) { EXPECT_EQ(matrix_of("a100", DType::f8e4m3), 3.12e14); }

TEST(Rate, EveryTypeButF64HasSomeRateEverywhere) {
  for (const Hardware& h : known_hardware()) {
    for (DType dtype : kAllDTypes) {
      if (dtype == DType::f64) continue;
      EXPECT_GT(rate(h, MathUnit::matrix, dtype).flops_per_s, 0) << h.name << name(dtype);
      EXPECT_GT(rate(h, MathUnit::vector, dtype).flops_per_s, 0) << h.name << name(dtype);
    }
  }
  EXPECT_THROW(rate(find_hardware("tpu-v5e"), MathUnit::matrix, DType::f64), Error);
}

TEST(FromMeasured, BuildsTheSameStruct) {
  const std::vector<Measurement> measurements = {
      {"memory_bytes", 64e9, "sysconf"},         {"memory_bytes_per_s", 83e9, "tw bench read"},
      {"vector.f32", 534e9, "tw bench fma"},     {"matrix.bf16", 1e12, "tw bench dot"},
      {"matrix_beside_vector", 0, "same ports"}, {"level.L1.bytes", 48 * 1024, "sysfs"},
      {"level.L1.instances", 2, "sysfs"},        {"level.L1.bytes_per_s", 1e12, "tw bench read"},
      {"level.L2.bytes", 1024 * 1024, "sysfs"},  {"launch_s", 0.3e-6, "tw bench launch"},
  };
  const Hardware h = from_measured("here", "this machine", measurements);
  EXPECT_EQ(h.name, "here");
  EXPECT_EQ(h.memory_bytes_per_s, (Figure{83e9, "tw bench read"}));
  EXPECT_EQ(rate(h, MathUnit::matrix, DType::bf16).flops_per_s, 1e12);
  EXPECT_FALSE(h.matrix_beside_vector);
  ASSERT_EQ(h.levels.size(), 2u);
  EXPECT_EQ(h.levels[0].name, "L1");
  EXPECT_EQ(h.levels[0].bytes.value, 48 * 1024);
  EXPECT_EQ(h.levels[0].instances, 2);
  EXPECT_EQ(h.levels[0].bytes_per_s->source, "tw bench read");
  EXPECT_EQ(h.launch_s->value, 0.3e-6);
}

TEST(FromMeasured, RatesByKindStandInForTheOneRate) {
  const std::vector<Measurement> measurements = {{"memory.read_bytes_per_s", 40e9, "probe"},
                                                 {"memory.copy_bytes_per_s", 50e9, "probe"},
                                                 {"level.L1.read_bytes_per_s", 3e11, "probe"},
                                                 {"level.L1.write_bytes_per_s", 2e11, "probe"},
                                                 {"graph_launch_s", 1e-6, "probe"}};
  const Hardware h = from_measured("here", "", measurements);
  EXPECT_EQ(h.memory_bytes_per_s.value, 50e9);
  EXPECT_EQ(h.memory_traffic.read->value, 40e9);
  EXPECT_FALSE(h.memory_traffic.write);
  EXPECT_EQ(h.levels.at(0).bytes_per_s->value, 3e11);
  EXPECT_EQ(h.levels.at(0).traffic.write->value, 2e11);
  EXPECT_EQ(h.graph_launch_s->value, 1e-6);
  EXPECT_THROW(from_measured("here", "", std::vector<Measurement>{{"memory.colour", 1, "x"}}), Error);
}

TEST(Holding, TheInnermostLevelWithRoomServes) {
  Hardware h;
  h.memory_bytes_per_s = {1e9, ""};
  h.levels = {{"shared", {1e9, ""}, 1, Figure{9e9, ""}},
              {"L1", {1000, ""}, 2, Figure{4e9, ""}},
              {"L2", {5000, ""}, 1, {}}};
  EXPECT_EQ(holding(h, 2000).memory_bytes_per_s.value, 4e9);
  EXPECT_EQ(level_holding(h, 2000), "L1");
  EXPECT_EQ(holding(h, 2001).memory_bytes_per_s.value, 1e9);
  EXPECT_EQ(level_holding(h, 2001), "memory");
}

TEST(FromMeasured, RefusesWhatItCannotUse) {
  const auto build = [](std::vector<Measurement> extra) {
    extra.push_back({"memory_bytes_per_s", 1e9, "x"});
    return from_measured("here", "", extra);
  };
  EXPECT_NO_THROW(build({}));
  EXPECT_THROW(build({{"vector.f33", 1e9, "x"}}), Error);
  EXPECT_THROW(build({{"vector.f32", -1, "x"}}), Error);
  EXPECT_THROW(build({{"vector.f32", std::nan(""), "x"}}), Error);
  EXPECT_THROW(build({{"colour", 1, "x"}}), Error);
  EXPECT_THROW(build({{"level.L1", 1, "x"}}), Error);
  EXPECT_THROW(from_measured("here", "", {}), Error);
}

}  // namespace
}  // namespace tilewright::perf
