// tw roofline as a user runs it: every worked result by a command, its JSON checked.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tw/command/run_command.h"

namespace tilewright::tw {
namespace {

using Json = nlohmann::json;

Json ask(const std::string& arguments) {
  const Outcome outcome = run_tw("roofline " + arguments + " --json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  return Json::parse(outcome.output);
}

double number(const Json& answer, const char* key) { return answer.at(key).get<double>(); }

TEST(Roofline, MatmulPrintsEveryPartOfTheAnswer) {
  const Json a = ask("matmul --hw tpu-v5e --b 240 --d 8192 --f 8192");
  const double b = 240, d = 8192, flops = 2 * b * d * d, bytes = 2 * (2 * b * d + d * d);
  EXPECT_EQ(number(a, "flops"), flops);
  EXPECT_EQ(number(a, "bytes"), bytes);
  EXPECT_DOUBLE_EQ(number(a, "intensity"), flops / bytes);
  EXPECT_DOUBLE_EQ(number(a, "ridge"), 1.97e14 / 8.2e11);
  EXPECT_DOUBLE_EQ(number(a, "t_math_s"), flops / 1.97e14);
  EXPECT_DOUBLE_EQ(number(a, "t_comms_s"), bytes / 8.2e11);
  EXPECT_DOUBLE_EQ(number(a, "lower_s"), std::max(flops / 1.97e14, bytes / 8.2e11));
  EXPECT_DOUBLE_EQ(number(a, "upper_s"), flops / 1.97e14 + bytes / 8.2e11);
  EXPECT_EQ(a.at("bound"), "memory");
  EXPECT_NEAR(number(a, "critical_b"), 240.2, 0.1);
  EXPECT_NEAR(number(a, "critical_b_exact"), 255.2, 0.1);
  EXPECT_EQ(a.at("weights"), "bf16");
}

TEST(Roofline, OneTeraflop) {
  EXPECT_NEAR(number(ask("work --hw h100 --flops 1e12"), "t_math_s"), 1.01e-3, 0.005e-3);
  EXPECT_NEAR(number(ask("work --hw tpu-v6e --flops 1e12"), "t_math_s"), 1.1e-3, 0.005e-3);
}

TEST(Roofline, DotProduct) {
  EXPECT_DOUBLE_EQ(number(ask("dot --hw tpu-v5p --n 10"), "intensity"), 19.0 / 42);
  const Json large = ask("dot --hw tpu-v5p --n 1000000000");
  EXPECT_NEAR(number(large, "intensity"), 0.5, 1e-6);
  EXPECT_EQ(large.at("bound"), "memory");
  EXPECT_TRUE(large.at("critical_b").is_null());
}

TEST(Roofline, SmallBatchMatmulHasItsBatchAsIntensity) {
  EXPECT_NEAR(number(ask("matmul --hw tpu-v5e --b 64 --d 1000000 --f 1000000"), "intensity"), 64, 0.01);
}

TEST(Roofline, CriticalBatchOfTheWorkedExercises) {
  const std::string large = "matmul --b 1 --d 8192 --f 8192 ";
  EXPECT_NEAR(number(ask(large + "--hw tpu-v5e"), "critical_b"), 240, 0.5);
  EXPECT_NEAR(number(ask(large + "--hw tpu-v5e --dtype int8 --bandwidth 8.1e11"), "critical_b"), 243, 0.5);
  EXPECT_NEAR(number(ask(large + "--hw tpu-v5e --dtype int8 --bandwidth 8.1e11"), "ridge"), 486, 0.5);
  EXPECT_NEAR(number(ask(large + "--hw tpu-v5e --weights int8 --acts bf16 --math bf16"), "critical_b"), 120,
              0.5);
  EXPECT_NEAR(number(ask(large + "--hw h100 --peak 1e15"), "critical_b"), 298, 0.6);
}

TEST(Roofline, TheExactCriticalBatchTendsToTheLimit) {
  const Json a = ask("matmul --hw tpu-v5e --b 1 --d 1000000000 --f 1000000000");
  EXPECT_NEAR(number(a, "critical_b_exact") / number(a, "critical_b"), 1, 1e-6);
}

TEST(Roofline, SmallMatricesHaveNoExactCriticalBatch) {
  const Json a = ask("matmul --hw tpu-v5e --b 1 --d 256 --f 256");
  EXPECT_TRUE(a.at("critical_b_exact").is_null());
  EXPECT_NEAR(number(a, "critical_b"), 240.2, 0.1);
}

TEST(Roofline, ExactCurvesOverTheBatch) {
  const Json a =
      ask("matmul --hw tpu-v5e --d 4096 --f 4096 --weights int8 --sweep b=1:511 --also d=1024,f=1024");
  ASSERT_EQ(a.at("curves").size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    const Json& points = a.at("curves")[i].at("points");
    ASSERT_EQ(points.size(), 511u);
    const double d = i == 0 ? 4096 : 1024;
    for (const Json& p : points) {
      const double b = number(p, "b"), flops = 2 * b * d * d;
      const double expected = flops / std::max(flops / 1.97e14, (2 * b * d + d * d + 2 * b * d) / 8.2e11);
      ASSERT_NEAR(number(p, "flops_per_s") / expected, 1, 1e-12) << b;
    }
  }
  EXPECT_NEAR(number(a.at("curves")[0].at("points")[0], "critical_b_exact"), 136.1, 0.1);
  EXPECT_NEAR(number(a.at("curves")[1].at("points")[0], "critical_b_exact"), 226.3, 0.1);
}

TEST(Roofline, AMatrixForEachElement) {
  const Json a = ask("batched-matvec --hw tpu-v5e --b 1024 --d 4096 --f 4096");
  EXPECT_NEAR(number(a, "intensity"), 2, 0.01);
  EXPECT_EQ(a.at("bound"), "memory");
  EXPECT_TRUE(a.at("critical_b").is_null());
}

TEST(Roofline, TwoChipsOverALink) {
  const Json a = ask("matmul --hw tpu-v5e --b 4096 --d 16384 --f 8192 --chips 2 --link 4.5e10");
  EXPECT_DOUBLE_EQ(number(a, "t_math_s"), 4096.0 * 16384 * 8192 / 1.97e14);
  EXPECT_DOUBLE_EQ(number(a, "t_comms_s"), 2.0 * 4096 * 8192 / 4.5e10);
  EXPECT_NEAR(number(a, "critical_d"), 8755.6, 0.1);
  EXPECT_TRUE(a.at("critical_b").is_null());
  EXPECT_TRUE(a.at("critical_b_exact").is_null());
  EXPECT_EQ(a.at("bound"), "compute");
  EXPECT_EQ(ask("matmul --hw tpu-v5e --b 4096 --d 8192 --f 8192 --chips 2").at("bound"), "link");
}

TEST(Roofline, TiledMatmul) {
  EXPECT_DOUBLE_EQ(number(ask("tiled --hw h100 --bm 128 --bn 256"), "intensity"), 128.0 * 256 / (128 + 256));
  const Json whole = ask("tiled --hw h100 --bm 128 --bn 256 --m 8192 --n 8192 --k 8192");
  EXPECT_DOUBLE_EQ(number(whole, "tile_intensity"), 128.0 * 256 / (128 + 256));
  EXPECT_LT(number(whole, "intensity"), number(whole, "tile_intensity"));
}

TEST(Roofline, AttentionTraffic) {
  const std::string heads = "attention --hw h100 --n 8192 --d 128 --heads 16 --traffic ";
  const double n = 8192, d = 128;
  const Json standard = ask(heads + "standard");
  EXPECT_DOUBLE_EQ(number(standard, "bytes"), 16 * 2 * (4 * n * d + 4 * n * n));
  EXPECT_DOUBLE_EQ(number(standard, "flops"), 16 * 4 * n * n * d);
  const Json flash = ask(heads + "flash --on-chip 196608");
  EXPECT_DOUBLE_EQ(number(flash, "block_rows"), 192);
  const double blocks = std::ceil(n / 192);
  EXPECT_DOUBLE_EQ(number(flash, "bytes"), 16 * (2 * (2 * n * d + 2 * n * d * blocks) + 4 * n));
  EXPECT_LT(number(flash, "bytes"), number(standard, "bytes"));
  EXPECT_EQ(flash.at("causal"), false);
}

TEST(Roofline, MeasuredHardwareComesFromACeilingFile) {
  std::ofstream(work_folder() + "/mine.json") << R"({"name": "mine", "title": "My machine", "measurements": [
    {"what": "memory_bytes_per_s", "value": 5e10, "how": "measured"},
    {"what": "vector.f32", "value": 2.5e11, "how": "measured"}]})";
  const Json a = ask("dot --hw ./mine.json --dtype f32 --n 1000000");
  EXPECT_EQ(a.at("hardware"), "mine");
  EXPECT_DOUBLE_EQ(number(a, "ridge"), 5);
  EXPECT_DOUBLE_EQ(number(a, "t_comms_s"), (8e6 + 4) / 5e10);
}

TEST(Roofline, SubstitutedRatesAreNoted) {
  EXPECT_EQ(ask("dot --hw tpu-v5e --n 8").at("notes").size(), 1u);
  EXPECT_FALSE(ask("dot --hw h100 --n 8").contains("notes"));
}

TEST(Roofline, SweepValuesFollowTheirStep) {
  const auto values = [](const std::string& sweep) {
    const Json a = ask("dot --hw h100 --n 1 --sweep " + sweep);
    std::vector<int> out;
    for (const Json& p : a.at("curves")[0].at("points")) out.push_back(p.at("n"));
    return out;
  };
  EXPECT_EQ(values("n=1:4"), (std::vector<int>{1, 2, 3, 4}));
  EXPECT_EQ(values("n=1:10:4"), (std::vector<int>{1, 5, 9}));
  EXPECT_EQ(values("n=2:40:x3"), (std::vector<int>{2, 6, 18}));
  EXPECT_EQ(values("n=7:7"), (std::vector<int>{7}));
}

TEST(Roofline, TableHasASourceForEveryFigure) {
  const Json table = ask("table");
  EXPECT_EQ(table.size(), 7u);
  for (const Json& h : table) {
    for (const auto& [dtype, figure] : h.at("matrix_flops_per_s").items()) {
      EXPECT_FALSE(figure.at("source").get<std::string>().empty()) << h.at("name") << dtype;
    }
  }
  EXPECT_EQ(run_tw("roofline table tpu-v5e").output.rfind("tpu-v5e: Google TPU v5e\n", 0), 0u);
}

TEST(Roofline, PlotsWriteSvgAndPng) {
  ASSERT_EQ(run_tw("--help; command -v gnuplot").exit_code, 0) << "scripts/setup.sh installs gnuplot";
  const std::string matmul = "roofline matmul --hw tpu-v5e --b 64 --d 4096 --f 4096 --plot ";
  const auto starts_with = [](const std::string& file, const std::string& magic) {
    std::ifstream in(work_folder() + "/" + file, std::ios::binary);
    std::string head(magic.size(), ' ');
    in.read(head.data(), static_cast<std::streamsize>(head.size()));
    return head == magic;
  };
  const Outcome sweep = run_tw(matmul + "curve.svg --sweep b=1:512 --also d=1024,f=1024");
  EXPECT_EQ(sweep.exit_code, 0) << sweep.output;
  EXPECT_EQ(sweep.output, "curve.svg: 2 curves of 512 points\n");
  EXPECT_TRUE(starts_with("curve.svg", "<?xml"));
  EXPECT_EQ(run_tw(matmul + "point.png").exit_code, 0);
  EXPECT_TRUE(starts_with("point.png", "\x89PNG"));
}

}  // namespace
}  // namespace tilewright::tw
