// Names of a printed kernel differ from each other and from what the device headers declare.
#include "backends/cuda/print/kernel_names.h"

#include <tilewright/tile/text.h>

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

TEST(KernelNames, LeaveTheDeviceFunctionsTheirs) {
  for (const char* name :
       {"reduce_lanes", "wgmma_block", "exp2", "fast", "store", "Vec", "serpentine", "program_1"})
    EXPECT_TRUE(is_reserved(name)) << name;
  for (const char* name : {"scores", "row_max", "x", "weights"}) EXPECT_FALSE(is_reserved(name)) << name;
}

TEST(KernelNames, OfParametersDifferFromEachOtherAndFromWhatIsPrinted) {
  const tile::Kernel kernel = tile::parse(R"(
kernel @copy(%v_: view<f32,[64],strides=[1],align=256>, %v: view<f32,[64],strides=[1],align=256>,
             %reduce_lanes: view<f32,[64],strides=[1],align=256>)
    grid(64) {
  %pid = program_id 0 : i64
  %x = load %v[%pid] : f32
  store %v_[%pid], %x : f32
  store %reduce_lanes[%pid], %x : f32
}
)")
                                  .value();
  const printer::LoopPlan plan = printer::plan_loops(kernel, {});
  const KernelNames names(kernel, plan);
  EXPECT_EQ(names.view(0), "v_");
  EXPECT_EQ(names.view(1), "v_2");
  EXPECT_EQ(names.view(2), "reduce_lanes_");
  EXPECT_EQ(names.stem(1), "v");
}

}  // namespace
}  // namespace tilewright::cuda
