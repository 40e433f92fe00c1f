// Shapes: sizes, strides, broadcasting and axes.
#include <tilewright/base/shape.h>

#include <gtest/gtest.h>

namespace tilewright {
namespace {

TEST(Shape, SizeIsTheProductOfExtents) {
  EXPECT_EQ(Shape({2, 3, 4}).size(), 24);
  EXPECT_EQ(Shape().size(), 1);
  EXPECT_EQ(Shape({5, 0}).size(), 0);
}

TEST(Shape, PrintsAsInTheIr) {
  EXPECT_EQ(to_string(Shape({4, 8})), "[4,8]");
  EXPECT_EQ(to_string(Shape()), "[]");
}

TEST(Shape, RowMajorStridesEndWithOne) {
  EXPECT_EQ(row_major_strides({2, 3, 4}), (Strides{12, 4, 1}));
  EXPECT_EQ(row_major_strides({}), Strides{});
}

TEST(Broadcast, AlignsAtTheLastAxisAndStretchesOnes) {
  EXPECT_EQ(broadcast({4, 1, 3}, {5, 1}), (Shape{4, 5, 3}));
  EXPECT_EQ(broadcast({}, {2, 3}), (Shape{2, 3}));
  EXPECT_EQ(broadcast({0}, {1}), Shape{0});
}

TEST(Broadcast, IsEmptyWhenExtentsDiffer) {
  EXPECT_EQ(broadcast({4, 8}, {7, 3}), std::nullopt);
  EXPECT_EQ(broadcast({2}, {0}), std::nullopt);
}

TEST(Axis, NegativeCountsFromTheEnd) {
  EXPECT_EQ(normalize_axis(-1, 3), 2);
  EXPECT_EQ(normalize_axis(0, 3), 0);
  EXPECT_EQ(normalize_axis(3, 3), std::nullopt);
  EXPECT_EQ(normalize_axis(-4, 3), std::nullopt);
  EXPECT_EQ(normalize_axis(0, 0), std::nullopt);
}

TEST(CeilDiv, RoundsUp) {
  EXPECT_EQ(ceil_div(7, 4), 2);
  EXPECT_EQ(ceil_div(8, 4), 2);
  EXPECT_EQ(ceil_div(0, 4), 0);
  EXPECT_EQ(round_up(9, 8), 16);
}

}  // namespace
}  // namespace tilewright
