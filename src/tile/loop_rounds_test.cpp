// Rounds of loops whose length is known, follows the program, or follows data.
#include <tilewright/tile/cost.h>
#include <tilewright/tile/loop_rounds.h>
#include <tilewright/tile/text.h>

#include <gtest/gtest.h>

namespace tilewright::tile {
namespace {

// Sums blocks of 32 of %x's rows, from `from` to `to`.
Kernel rows(const std::string& bounds, const std::string& from, const std::string& to) {
  const auto kernel = parse(R"(kernel @k(
    %x: view<f32,[64,1024],strides=[1024,1],align=256>,
    %n: view<i64,[64],strides=[1],align=256>,
    %y: view<f32,[64],strides=[1],align=256>)
    grid(64) {
  %pid = program_id 0 : i64
  %none = constant 0 : i64
  %sixteen = constant 16 : i64
  %step = constant 32 : i64
  %end_of_row = constant 1024 : i64
  %zero = constant 0.0 : tile<f32,[32]>
)" + bounds + R"(
  %sum = loop %i in )" + from +
                            " to " + to +
                            R"( step %step (%s = %zero) : tile<f32,[32]> {
    %b = load %x[%pid, %i] : tile<f32,[32]>
    %t = add %s, %b : tile<f32,[32]>
    yield %t
  }
  %more = loop %j in )" + to +
                            " to %end_of_row step %step (%u = %sum) : tile<f32,[32]>" +
                            R"( {
    %c = load %x[%pid, %j] : tile<f32,[32]>
    %v = add %u, %c : tile<f32,[32]>
    yield %v
  }
  %all = reduce sum %more {axis=0} : f32
  store %y[%pid], %all : f32
}
)");
  EXPECT_TRUE(kernel) << (kernel ? "" : kernel.error().message);
  return kernel ? *kernel : Kernel();
}

// Rounds of both loops, in their order.
std::vector<double> rounds_of(const Kernel& kernel) {
  const std::map<const Op*, double> all = loop_rounds(kernel);
  std::vector<double> out;
  for_each_op(kernel.body, [&](const Op& op) {
    if (op.kind == OpKind::loop) out.push_back(all.count(&op) ? all.at(&op) : -1);
  });
  return out;
}

TEST(LoopRounds, AreCountedWhereBoundsAreKnown) {
  EXPECT_EQ(rounds_of(rows("", "%none", "%step")), (std::vector<double>{1, 31}));
}

TEST(LoopRounds, AreTheMeanOfProgramsThatDiffer) {
  // Program p walks 16 p of 1024: ceil(p / 2) blocks, and what is left.
  EXPECT_EQ(rounds_of(rows("  %end = mul %pid, %sixteen : i64", "%none", "%end")),
            (std::vector<double>{16, 16.5}));
}

TEST(LoopRounds, OfWhatDataDecidesAreHalfTheAxisForAllLoopsTogether) {
  EXPECT_EQ(rounds_of(rows("  %end = load %n[%pid] : i64", "%none", "%end")), (std::vector<double>{16, 0}));
}

TEST(LoopRounds, OfWhatDataDecidesAreWorkWhereTheCostIsToldOfThem) {
  const Kernel kernel = rows("  %end = load %n[%pid] : i64", "%none", "%end");
  // Two loops of 32 additions a round, and each program's last sum of 32.
  EXPECT_EQ(kernel_cost(kernel, {}).work.flops(), 64 * (2 * 32 + 32));
  EXPECT_EQ(kernel_cost(kernel, {}, 1024, loop_rounds(kernel)).work.flops(), 64 * (16 * 32 + 32));
}

}  // namespace
}  // namespace tilewright::tile
