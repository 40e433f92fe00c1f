// tw explain and tw kernel: pairs, graph files, stages, and edited kernels that are right, wrong and broken.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tw/command/run_command.h"

namespace tilewright::tw {
namespace {

using Json = nlohmann::json;

const std::string kSmallSoftmax = "softmax --set cols=256 --set elements=65536 ";

void write(const std::string& name, const std::string& text) {
  std::ofstream(work_folder() + "/" + name) << text;
}

void replace(std::string& text, const std::string& what, const std::string& with) {
  const auto at = text.find(what);
  ASSERT_NE(at, std::string::npos) << what << " is not in\n" << text;
  text.replace(at, what.size(), with);
}

constexpr const char* kGraph = R"(graph @scaled(%x: f32[64,256], %i: i64[8]) -> f32[8,256] {
  %1 = take %x, %i {axis=0} : f32[8,256]
  %2 = exp %1 : f32[8,256]
  return %2
}
)";

TEST(Explain, CompilesAGraphFileWithinAnAmountOfMemory) {
  write("scaled.tw", kGraph);
  const std::string file = work_folder() + "/scaled.tw";
  const Outcome within = run_tw("explain " + file + " --memory 1MiB --no-time");
  EXPECT_EQ(within.exit_code, 0) << within.output;
  EXPECT_TRUE(contains(within.output, "memory: temporaries take 0.0 MB")) << within.output;
  const Outcome less = run_tw("explain " + file + " --memory 1KiB");
  EXPECT_NE(less.exit_code, 0);
  EXPECT_TRUE(contains(
      less.output, "--memory 1KiB is too little: the least that was found is 73792 bytes. Give it as much"))
      << less.output;
  EXPECT_TRUE(contains(run_tw("explain softmax --memory 1MiB").output, "--memory is for graph files"));
  EXPECT_TRUE(contains(run_tw("explain " + file + " --memory much").output, "'much' is no size"));
  for (const char* memory : {"--memory -5MiB", "--memory=-1"}) {
    const Outcome below = run_tw(fmt::format("explain {} {}", file, memory));
    EXPECT_EQ(below.exit_code, 2) << below.output;
    EXPECT_TRUE(contains(below.output, "' is negative: a size is 64MiB")) << below.output;
  }
}

TEST(Explain, CompilesAGraphFileInAPrecision) {
  write("product.tw", R"(graph @product(%x: f32[64,32], %w: f32[32,16]) -> f32[64,16] {
  %1 = matmul %x, %w : f32[64,16]
  return %1
}
)");
  const std::string file = work_folder() + "/product.tw";
  const Outcome narrow = run_tw("explain " + file + " --precision bf16 --no-time");
  EXPECT_EQ(narrow.exit_code, 0) << narrow.output;
  EXPECT_TRUE(contains(narrow.output, "precision bf16: 1 product of bf16")) << narrow.output;
  EXPECT_TRUE(contains(narrow.output, "types: matmul bf16, sums f32")) << narrow.output;
  EXPECT_TRUE(
      contains(run_tw("explain " + file + " --precision f7").output, "there is no precision 'f7'; known: "));
  EXPECT_TRUE(contains(run_tw("explain softmax --precision bf16").output, "--precision is for graph files"));
}

TEST(Explain, ShowsKernelsFloorsAndTimes) {
  const Outcome outcome = run_tw("explain " + kSmallSoftmax);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  for (const char* part : {"columns=256", "for f32[256,256] on cpu", "first call", "kernel max_sub_exp",
                           "floor ", "measured ", "schedule ", "floors: "})
    EXPECT_TRUE(contains(outcome.output, part)) << part << "\n" << outcome.output;
  const Json all = Json::parse(run_tw("explain --json " + kSmallSoftmax).output);
  ASSERT_EQ(all.size(), 1u);
  const Json& json = all[0];
  ASSERT_EQ(json.at("kernels").size(), 1u);
  const Json& kernel = json.at("kernels")[0];
  EXPECT_EQ(kernel.at("bytes").get<double>(), 2 * 4 * 65536);
  EXPECT_GT(kernel.at("flops").get<double>(), 4 * 65536);
  EXPECT_GT(kernel.at("floor_us").get<double>(), 0);
  EXPECT_GT(kernel.at("measured_us").get<double>(), 0);
  EXPECT_GT(json.at("measured_us").get<double>(), 0);
}

TEST(Explain, CallsInputsOfAGraphByTheirNames) {
  write("named.tw",
        "graph @g(%image: f32[8], %gain: f32[8]) -> f32[8] {\n  %0 = mul %image, %gain : f32[8]\n  return "
        "%0\n}\n");
  const Outcome source = run_tw("explain --no-time --stage source named.tw");
  for (const char* part : {"const f32* image", "const f32* gain"})
    EXPECT_TRUE(contains(source.output, part)) << part << "\n" << source.output;
}

TEST(Explain, ListsMeasuredSchedules) {
  const std::string empty = " --autotune --no-time --json --cache ''";
  const Json of_pair = Json::parse(run_tw("explain " + kSmallSoftmax + empty).output).at(0);
  write("tuned.tw", kGraph);
  const Json of_graph = Json::parse(run_tw("explain ./tuned.tw" + empty).output).at(0);
  for (const Json& json : {of_pair, of_graph}) {
    const Json& trials = json.at("kernels")[0].at("tuning");
    ASSERT_GE(trials.size(), 2u) << json.dump(2);
    for (const Json& trial : trials) EXPECT_TRUE(contains(trial.get<std::string>(), "measured ")) << trial;
  }
}

TEST(Explain, SeveralValuesAreRecompilesWithTheirReasons) {
  const Outcome outcome = run_tw("explain elu --set n=1024,4096 --no-time");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  for (const char* part : {"2 specialisations", "first call", "argument 0 is f32[4096], was f32[1024]"})
    EXPECT_TRUE(contains(outcome.output, part)) << part << "\n" << outcome.output;
  const Json all = Json::parse(run_tw("explain elu --set n=1024,4096 --no-time --json").output);
  ASSERT_EQ(all.size(), 2u);
  const auto of_size = [](const Json& r, const char* guard) {
    return r.at("guards").get<std::string>().find(guard) != std::string::npos && r.at("kernels").size() == 1;
  };
  EXPECT_TRUE(of_size(all[0], "f32[1024]") != of_size(all[1], "f32[1024]")) << all.dump(2);
  EXPECT_TRUE(of_size(all[0], "f32[4096]") != of_size(all[1], "f32[4096]")) << all.dump(2);
}

TEST(Explain, NamesRefusedFusions) {
  const Json json = Json::parse(run_tw("explain gpt2_block --set time=16 --no-time --json").output).at(0);
  EXPECT_GT(json.at("kernels").size(), 3u);
  EXPECT_FALSE(json.at("not_fused").empty());
}

TEST(Explain, PrintsEachStage) {
  EXPECT_TRUE(contains(run_tw("explain --stage graph " + kSmallSoftmax).output, "graph @main("));
  const std::string fused = run_tw("explain --stage fused " + kSmallSoftmax).output;
  EXPECT_TRUE(contains(fused, "graph @main(") && contains(fused, "// kernel max_sub_exp")) << fused;
  EXPECT_TRUE(contains(run_tw("explain --stage tile " + kSmallSoftmax).output, "kernel @max_sub_exp"));
  EXPECT_TRUE(
      contains(run_tw("explain --stage source " + kSmallSoftmax).output, "extern \"C\" void max_sub_exp"));
  const std::string all = run_tw("explain --stage all " + kSmallSoftmax).output;
  for (const char* stage : {"// ---- graph", "// ---- fused", "// ---- tile", "// ---- source"})
    EXPECT_TRUE(contains(all, stage)) << stage;
  EXPECT_EQ(run_tw("explain --stage soup " + kSmallSoftmax).exit_code, 2);
}

TEST(Explain, DumpsFilesThatAreReadAgain) {
  const Outcome dumped = run_tw("explain --dump stages " + kSmallSoftmax);
  EXPECT_EQ(dumped.exit_code, 0) << dumped.output;
  for (const char* file : {"stages/graph.tw", "stages/fused.tw", "stages/max_sub_exp_sum_0.tile",
                           "stages/max_sub_exp_sum_0.cpp"})
    EXPECT_FALSE(read_work_file(file).empty()) << file;
  const Outcome again = run_tw("explain stages/fused.tw --no-time");
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_TRUE(contains(again.output, "kernel max_sub_exp")) << again.output;
}

TEST(Explain, TakesGraphFilesAndStdin) {
  write("take.tw", kGraph);
  const Outcome file = run_tw("explain take.tw");
  EXPECT_EQ(file.exit_code, 0) << file.output;
  EXPECT_TRUE(contains(file.output, "take exp")) << file.output;
  EXPECT_TRUE(contains(run_tw("explain - --no-time < take.tw").output, "take exp"));
  write("broken.tw", "graph @x(%a: f32[4]) -> f32[4] {\n  %1 = expo %a : f32[4]\n  return %1\n}\n");
  const Outcome broken = run_tw("explain broken.tw");
  EXPECT_EQ(broken.exit_code, 2);
  EXPECT_TRUE(contains(broken.output, "broken.tw: ") && contains(broken.output, "expo")) << broken.output;
  EXPECT_TRUE(contains(run_tw("explain softmaxx").output, "no pair or suite is named 'softmaxx'"));
  EXPECT_TRUE(contains(run_tw("explain missing.tw").output, "cannot read missing.tw"));
}

TEST(Explain, FilesThatCannotRunAreNamedWithTheirOwnLine) {
  write("large.tw",
        "graph @x(%a: f32[4],\n  %0 \"big\": f32[99999999999999]) -> f32[4] {\n  %1 = exp %a : f32[4]\n"
        "  return %1\n}\n");
  const Outcome large = run_tw("explain large.tw --no-time");
  EXPECT_EQ(large.exit_code, 2) << large.output;
  EXPECT_TRUE(contains(large.output, "tw: large.tw:2: input big: f32[99999999999999] on cpu"))
      << large.output;
  EXPECT_FALSE(contains(large.output, ".cpp:")) << large.output;
  write("empty.tw", "\n");
  const Outcome empty = run_tw("explain empty.tw");
  EXPECT_EQ(empty.exit_code, 2);
  EXPECT_TRUE(contains(empty.output, "empty.tw: is empty; a graph begins with `graph @name("))
      << empty.output;
  EXPECT_TRUE(contains(run_tw("explain - < /dev/null").output, "stdin: is empty"));
  EXPECT_TRUE(contains(run_tw("explain ./").output, "cannot read ./"));
  write("empty.tile", "");
  EXPECT_TRUE(contains(run_tw("kernel run empty.tile").output, "empty.tile: is empty; `tw kernel edit"));
  EXPECT_TRUE(contains(run_tw("kernel show empty.tile").output, "empty.tile: is empty; `tw kernel edit"));
}

TEST(RooflineOfPrograms, IsTheSumOfTheKernels) {
  const Json a =
      Json::parse(run_tw("roofline softmax --set cols=256 --set elements=65536 --hw h100 --json").output);
  EXPECT_EQ(a.at("bytes").get<double>(), 2 * 4 * 65536);
  EXPECT_EQ(a.at("bound"), "memory");
  write("roof.tw", kGraph);
  const Outcome graph = run_tw("roofline graph roof.tw --hw h100");
  EXPECT_EQ(graph.exit_code, 0) << graph.output;
  EXPECT_TRUE(contains(graph.output, "bound by")) << graph.output;
}

TEST(Kernel, ListsAndShows) {
  const Outcome list = run_tw("kernel list " + kSmallSoftmax);
  EXPECT_EQ(list.exit_code, 0);
  EXPECT_TRUE(contains(list.output, "  0  max_sub_exp_sum_0")) << list.output;
  const std::string shown = run_tw("kernel show " + kSmallSoftmax).output;
  EXPECT_TRUE(contains(shown, "// tw kernel: 0 of softmax --set cols=256 --set elements=65536 --device cpu"))
      << shown;
  EXPECT_TRUE(contains(shown, "// launch: threads=1")) << shown;
  EXPECT_TRUE(contains(shown, "extern \"C\" void max_sub_exp_sum_0")) << shown;
  const Outcome none = run_tw("kernel show --kernel 7 " + kSmallSoftmax);
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_TRUE(contains(none.output, "has no kernel '7'; it has 0 max_sub_exp_sum_0")) << none.output;
}

TEST(Kernel, AnUntouchedEditIsRightAndTimed) {
  ASSERT_EQ(run_tw("kernel edit -o same.cpp " + kSmallSoftmax).exit_code, 0);
  const Outcome run = run_tw("kernel run same.cpp --budget 0.05");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  for (const char* part : {"right: 65536 elements", "original ", "edited ", "interleaved"})
    EXPECT_TRUE(contains(run.output, part)) << part << "\n" << run.output;
}

TEST(Kernel, AWrongEditIsCaught) {
  ASSERT_EQ(run_tw("kernel edit -o wrong.cpp elu --set n=4096").exit_code, 0);
  std::string text = read_work_file("wrong.cpp");
  replace(text, "store(", "if (i != 64) store(");
  write("wrong.cpp", text);
  const Outcome run = run_tw("kernel run wrong.cpp --budget 0.05");
  EXPECT_EQ(run.exit_code, 1) << run.output;
  EXPECT_TRUE(contains(run.output, "WRONG: ")) << run.output;
  EXPECT_TRUE(contains(run.output, "nan")) << run.output;
}

TEST(Kernel, ABrokenEditGivesTheCompilersMessageWithTheUsersLine) {
  ASSERT_EQ(run_tw("kernel edit -o broken.cpp elu --set n=4096").exit_code, 0);
  write("broken.cpp", read_work_file("broken.cpp") + "int f() { return nothing_of_the_kind; }\n");
  std::string text = read_work_file("broken.cpp");
  const auto lines = std::count(text.begin(), text.end(), '\n');
  const Outcome run = run_tw("kernel run broken.cpp");
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_TRUE(contains(run.output, "broken.cpp:" + std::to_string(lines) + ":")) << run.output;
  EXPECT_TRUE(contains(run.output, "nothing_of_the_kind")) << run.output;
}

TEST(Kernel, AnEditThatLeavesItsMemoryIsNamed) {
  ASSERT_EQ(run_tw("kernel edit -o stray.cpp elu --set n=4096").exit_code, 0);
  std::string text = read_work_file("stray.cpp");
  replace(text, "for (i64 i = 0;", "*(volatile f32*)16 = 0; for (i64 i = 0;");  // the first page is nobody's
  write("stray.cpp", text);
  const Outcome run = run_tw("kernel run stray.cpp --budget 0.05");
  EXPECT_EQ(run.exit_code, 1) << run.output;
  EXPECT_TRUE(contains(run.output, "stray.cpp: the kernel crashed")) << run.output;
}

TEST(Kernel, TileTextIsEditedToo) {
  ASSERT_EQ(run_tw("kernel edit --tile -o elu.tile elu --set n=4096").exit_code, 0);
  const Outcome same = run_tw("kernel run elu.tile --budget 0.05");
  EXPECT_EQ(same.exit_code, 0) << same.output;
  EXPECT_TRUE(contains(same.output, "edited ")) << same.output;
  std::string text = read_work_file("elu.tile");
  replace(text, "= exp ", "= exp2 ");
  write("elu2.tile", text);
  const Outcome wrong = run_tw("kernel run elu2.tile --budget 0.05");
  EXPECT_EQ(wrong.exit_code, 1) << wrong.output;
  EXPECT_TRUE(contains(wrong.output, "WRONG: ")) << wrong.output;
  write("elu3.tile", read_work_file("elu.tile") + "}\n");
  const Outcome broken = run_tw("kernel run elu3.tile");
  EXPECT_EQ(broken.exit_code, 1);
  EXPECT_TRUE(contains(broken.output, "elu3.tile: 18:1: ")) << broken.output;
}

TEST(Kernel, AKernelOfTheUsersOwnIsProvedAndTimed) {
  write("own.tile", R"(kernel @twice(
    %x: view<f32,[%n],strides=[1],align=16>,
    %y: view<f32,[%n],strides=[1],align=16>,
    %n: i64)
    grid(cdiv(%n,1024)) {
  %0 = program_id 0 : i64
  %1 = constant 1024 : i64
  %2 = mul %0, %1 : i64
  %3 = load %x[%2] {fill=0.0} : tile<f32,[1024]>
  %4 = add %3, %3 : tile<f32,[1024]>
  store %y[%2], %4 {bounded=true} : tile<f32,[1024]>
}
)");
  const Outcome missing = run_tw("kernel run own.tile");
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_TRUE(contains(missing.output, "--scalar n=")) << missing.output;
  for (const std::string n : {"2.5", "many", "", "1e30"}) {
    const Outcome refused = run_tw("kernel run own.tile --scalar n=" + n);
    EXPECT_EQ(refused.exit_code, 2) << n;
    EXPECT_TRUE(contains(refused.output, "the scalar is an i64, '" + n + "' is no such number"))
        << refused.output;
  }
  const Outcome run = run_tw("kernel run own.tile --scalar n=5000 --budget 0.05");
  EXPECT_EQ(run.exit_code, 0) << run.output;
  EXPECT_TRUE(contains(run.output, "right: 5000 elements")) << run.output;
  EXPECT_TRUE(contains(run_tw("kernel show own.tile --scalar n=5000").output, "extern \"C\" void twice"));
}

// What an index is, data say: nothing is run that the interpreter sees outside of its memory.
TEST(Kernel, TileTextThatLeavesItsViewsIsNotRun) {
  const std::string head = R"(kernel @far(
    %out: view<f32,[64],strides=[1],align=256>,
    %i: view<i64,[64],strides=[1],align=256>,
    %a: view<f32,[256],strides=[1],align=256>)
    grid(1) {
  %0 = constant 0 : i64
  %1 = constant 1000000000 : i64
)";
  write("block.tile", head + R"(  %2 = load %i[%0] : i64
  %3 = sub %2, %1 : i64
  %4 = load %a[%3] : tile<f32,[64]>
  store %out[%0], %4 : tile<f32,[64]>
}
)");
  write("element.tile", head + R"(  %2 = load %i[%0] : tile<i64,[64]>
  %3 = broadcast %1 : tile<i64,[64]>
  %4 = sub %2, %3 : tile<i64,[64]>
  %5 = gather %a[%4] : tile<f32,[64]>
  store %out[%0], %5 : tile<f32,[64]>
}
)");
  ASSERT_EQ(run_tw("kernel edit --tile -o far.tile elu --set n=4096").exit_code, 0);
  std::string text = read_work_file("far.tile");
  replace(text, "  %1 = load %a0[%0]", R"(  %10 = load %a0[%0] : f32
  %11 = cast %10 : i64
  %12 = constant 1000000000 : i64
  %13 = add %11, %12 : i64
  %1 = load %a0[%13])");
  write("far.tile", text);
  for (const auto& [file, said] : {std::pair{"block.tile", "in a view of 256 in program (0)"},
                                   std::pair{"element.tile", "along dim 0 of 256 in program (0)"},
                                   std::pair{"far.tile", "in a view of 4096 in program (0)"}}) {
    const Outcome run = run_tw(std::string("kernel run ") + file);
    EXPECT_EQ(run.exit_code, 1) << run.output;
    EXPECT_TRUE(contains(run.output, said)) << run.output;
  }
}

TEST(Kernel, EditOpensTheEditor) {
  std::filesystem::remove(work_folder() + "/max_sub_exp_sum_0.cpp");
  const Outcome edited = run_tw("kernel edit " + kSmallSoftmax, "EDITOR='sed -i s/unroll=4/unroll=4,seen/'");
  EXPECT_EQ(edited.exit_code, 0) << edited.output;
  EXPECT_TRUE(contains(edited.output, "run it: tw kernel run max_sub_exp_sum_0.cpp")) << edited.output;
  EXPECT_TRUE(contains(read_work_file("max_sub_exp_sum_0.cpp"), "extern \"C\"")) << edited.output;
  const Outcome without = run_tw("kernel edit " + kSmallSoftmax, "EDITOR=");
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_TRUE(contains(without.output, "-o FILE")) << without.output;
}

}  // namespace
}  // namespace tilewright::tw
