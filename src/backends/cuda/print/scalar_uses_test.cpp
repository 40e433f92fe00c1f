// Scalars that nobody reads, and those that are part of another, are told from variables.
#include "backends/cuda/print/scalar_uses.h"

#include <tilewright/tile/text.h>

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

TEST(ScalarUses, FindWhatIsPartOfAnotherAndWhatNobodyReads) {
  const tile::Kernel kernel = tile::parse(R"(
kernel @copy(%y: view<f32,[64],strides=[1],align=256>, %x: view<f32,[64],strides=[1],align=256>)
    grid(64) {
  %pid = program_id 0 : i64
  %two = constant 2 : i64
  %dead = mul %pid, %two : i64
  %deader = add %dead, %two : i64
  %twice = mul %pid, %two : i64
  %layout = sub %twice, %pid : i64
  %in = load %x[%layout] : f32
  store %y[%pid], %in : f32
}
)")
                                  .value();
  const ScalarUses uses(kernel);
  const auto value = [&](const std::string& name) {
    for (std::size_t v = 0; v < kernel.values.size(); ++v)
      if (kernel.values[v].name == name) return static_cast<tile::ValueId>(v);
    return tile::ValueId{-1};
  };
  EXPECT_TRUE(uses.is_unused(value("dead")));
  EXPECT_TRUE(uses.is_unused(value("deader")));
  EXPECT_TRUE(uses.is_part_of_another(value("twice")));
  EXPECT_FALSE(uses.is_part_of_another(value("layout")));
  EXPECT_FALSE(uses.is_unused(value("layout")));
  EXPECT_TRUE(uses.is_of_program(value("layout")));
}

}  // namespace
}  // namespace tilewright::cuda
