#include "backends/printer/value_names.h"

#include <tilewright/tile/text.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tilewright::printer {
namespace {

// Names of all values of a kernel whose loop is that of online softmax.
std::vector<std::string> names_of(const std::string& text, bool of_storage = false) {
  const tile::Kernel kernel = tile::parse(text).value();
  const LoopPlan plan = plan_loops(kernel, {});
  const ValueNames names(kernel, plan);
  std::vector<std::string> all;
  all.reserve(kernel.values.size());
  for (std::size_t v = 0; v < kernel.values.size(); ++v)
    all.push_back(of_storage ? names.of_storage(static_cast<tile::ValueId>(v))
                             : names[static_cast<tile::ValueId>(v)]);
  return all;
}

bool has(const std::vector<std::string>& all, const std::string& name) {
  return std::find(all.begin(), all.end(), name) != all.end();
}

constexpr const char* kOnline = R"(
kernel @online(%y: view<f32,[64],strides=[1],align=256>, %x: view<f32,[64,4096],strides=[4096,1],align=256>)
    grid(64) const(BN=512) {
  %pid = program_id 0 : i64
  %1 = constant 0 : i64
  %2 = constant 4096 : i64
  %3 = constant 512 : i64
  %4 = constant -inf : f32
  %5 = constant 0 : f32
  %6, %7 = loop %8 in %1 to %2 step %3 (%9 = %4, %10 = %5) : f32, f32 {
    %11 = load %x[%pid, %8] : tile<f32,[512]>
    %12 = reduce max %11 {axis=0} : f32
    %13 = max %9, %12 : f32
    %14 = broadcast %13 : tile<f32,[512]>
    %15 = sub %11, %14 : tile<f32,[512]>
    %16 = exp %15 : tile<f32,[512]>
    %17 = reduce sum %16 {axis=0} : f32
    %rescale = sub %9, %13 : f32
    %19 = exp %rescale : f32
    %20 = mul %10, %19 : f32
    %21 = add %20, %17 : f32
    yield %13, %21
  }
  store %y[%pid], %7 : f32
}
)";

TEST(ValueNames, SayWhatALoopCarriesAndWhatIsComputedOfWhat) {
  const std::vector<std::string> all = names_of(kOnline);
  for (const char* name : {"pid", "x_in", "max_of_x", "exp_x", "sum_of_exp_x", "rescale", "running_max",
                           "running_sum", "new_running_max", "new_running_sum"})
    EXPECT_TRUE(has(all, name)) << name;
}

TEST(ValueNames, OfWhatSharesAVariableAreWhatTheLoopCarries) {
  const std::vector<std::string> all = names_of(kOnline, true);
  EXPECT_TRUE(has(all, "running_max"));
  EXPECT_FALSE(has(all, "constant_2"));
}

}  // namespace
}  // namespace tilewright::printer
