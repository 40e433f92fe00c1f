// What kernels must have in common to share a winner.
#include "runtime/stored_winner.h"

#include <tilewright/tile/builder.h>

#include <gtest/gtest.h>

namespace tilewright::runtime {
namespace {

tile::Kernel sorting(Order order, Index columns) {
  tile::Builder k("sort");
  const auto x = k.view("x", DType::f32, {8, columns}), y = k.view("y", DType::i32, {8, columns});
  const tile::Value row = k.program_id(0);
  k.store(y, {row, 0}, k.argsort(k.load(x, {row, 0}, {.shape = {columns}}), 0, order));
  return k.finish({{{8, 1}}});
}

TEST(ShapeBuckets, AreThoseOfNearSizes) {
  EXPECT_EQ(shape_bucket(sorting(Order::ascending, 100)), shape_bucket(sorting(Order::ascending, 120)));
  EXPECT_NE(shape_bucket(sorting(Order::ascending, 100)), shape_bucket(sorting(Order::ascending, 1000)));
}

TEST(ShapeBuckets, TellOrdersOfSortsApart) {
  EXPECT_NE(shape_bucket(sorting(Order::ascending, 100)), shape_bucket(sorting(Order::descending, 100)));
}

}  // namespace
}  // namespace tilewright::runtime
