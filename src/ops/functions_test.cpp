// Building functions: promotion, broadcasting, weak scalars, Python's slices, errors with the user's place.
#include "ops/functions.h"

#include "ops/ops.h"
#include "ops/promote.h"
#include "ops/rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

namespace tilewright::ops {
namespace {

struct Fixture : testing::Test {
  ir::Graph g;
  Value input(DType dtype, const Shape& shape) { return {&g, g.add_input("x", {dtype, shape})}; }
  ir::Type type_of(Value v) { return v.type(); }

  // The value on inputs that count 0, 1, 2, …
  std::vector<double> numbers(Value v) {
    g.set_outputs({v.id});
    std::vector<ir::HostTensor> inputs;
    for (ir::NodeId id : g.inputs()) {
      ir::HostTensor t{.type = g.type(id)};
      for (Index i = 0; i < t.type.shape.size(); ++i) {
        if (is_float(t.type.dtype))
          t.f.push_back(static_cast<double>(i));
        else
          t.i.push_back(i);
      }
      inputs.push_back(std::move(t));
    }
    const ir::HostTensor out = evaluate(g, inputs)[0];
    if (is_float(out.type.dtype)) return out.f;
    return {out.i.begin(), out.i.end()};
  }
};
using Functions = Fixture;

std::string message_of(const auto& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Promotion, FollowsTheTable) {
  using enum DType;
  const std::tuple<DType, DType, DType> rows[] = {
      {boolean, u8, u8},     {u8, i8, i32},         {i8, i32, i32},       {i32, i64, i64},
      {i64, f32, f32},       {i64, f16, f16},       {f16, bf16, f32},     {bf16, f32, f32},
      {f32, f64, f64},       {f8e4m3, f8e5m2, f32}, {f8e4m3, bf16, bf16}, {f8e5m2, f16, f16},
      {f8e4m3, i64, f8e4m3}, {boolean, f64, f64},   {i8, i8, i8}};
  for (const auto& [a, b, result] : rows) {
    EXPECT_EQ(promote(a, b), result) << name(a) << " " << name(b);
    EXPECT_EQ(promote(b, a), result) << name(b) << " " << name(a);
  }
}

// Not associative: f16 with bf16 meets at f32, 8-bit integers at i32; but never narrower than an operand.
TEST(Promotion, CommutesAndKeepsBothOperands) {
  for (DType a : kAllDTypes)
    for (DType b : kAllDTypes) {
      EXPECT_EQ(promote(a, b), promote(b, a));
      EXPECT_EQ(promote(promote(a, b), b), promote(a, b)) << name(a) << " " << name(b);
    }
}

TEST_F(Functions, BroadcastAndPromoteOperands) {
  EXPECT_EQ(type_of(input(DType::bf16, {3, 1}) + input(DType::f32, {4})), (ir::Type{DType::f32, {3, 4}}));
  EXPECT_EQ(type_of(input(DType::i32, {}) / input(DType::i32, {2})), (ir::Type{DType::f32, {2}}));
  EXPECT_EQ(type_of(add(input(DType::boolean, {2}), input(DType::boolean, {2}))),
            (ir::Type{DType::i32, {2}}));
  EXPECT_EQ(type_of(exp(input(DType::i8, {2}))), (ir::Type{DType::f32, {2}}));
  EXPECT_EQ(type_of(lt(input(DType::i8, {2}), input(DType::f16, {2}))), (ir::Type{DType::boolean, {2}}));
}

TEST_F(Functions, LiteralsTakeTheTensorsType) {
  EXPECT_EQ(type_of(input(DType::bf16, {2}) * 0.1).dtype, DType::bf16);
  EXPECT_EQ(type_of(input(DType::i8, {2}) * 3).dtype, DType::i8);
  EXPECT_EQ(type_of(input(DType::i8, {2}) * 0.5).dtype, DType::f32);
  EXPECT_EQ(type_of(input(DType::boolean, {2}) + 2).dtype, DType::i32);
  EXPECT_EQ(type_of(where(input(DType::boolean, {2}), input(DType::u8, {2}), 0)).dtype, DType::u8);
  EXPECT_EQ(type_of(eq(input(DType::boolean, {2}), true)).dtype, DType::boolean);
}

TEST_F(Functions, LiteralsOfNarrowTensorsKeepF32Precision) {
  const Value c = full_like(input(DType::bf16, {}), 0.1);
  EXPECT_EQ(g.node(c.id).attrs.real("value"), static_cast<double>(0.1F));
}

TEST_F(Functions, ErrorsNameTheShapesAndThePlace) {
  const Value a = input(DType::f32, {4, 8});
  const Value b = input(DType::f32, {7, 3});
  const ir::LocationScope scope(g, "model.cpp:41");
  EXPECT_EQ(message_of([&] { matmul(a, b); }), "matmul: inner dims differ, [4,8] x [7,3] (at model.cpp:41)");
  EXPECT_EQ(message_of([&] { add(a, b); }),
            "add: shapes do not broadcast, f32[4,8] and f32[7,3] (at model.cpp:41)");
  EXPECT_EQ(message_of([&] { sum(a, {2}); }), "sum: axis 2 is out of range for f32[4,8] (at model.cpp:41)");
  EXPECT_EQ(message_of([&] { sum(a, {1, -1}); }), "sum: an axis is named twice (at model.cpp:41)");
  EXPECT_EQ(message_of([&] { flip(a, {1, -1}); }), "flip: an axis is named twice (at model.cpp:41)");
  EXPECT_EQ(message_of([&] { reshape(a, {5, -1}); }),
            "reshape: f32[4,8] does not divide into [5,-1] (at model.cpp:41)");
  EXPECT_EQ(message_of([&] { broadcast_to(a, {4, 9}); }),
            "expand: [4,8] does not stretch to [4,9] (at model.cpp:41)");
  EXPECT_EQ(message_of([&] { take(a, b, 0); }),
            "take: the index must be integers, got f32[7,3] (at model.cpp:41)");
  EXPECT_EQ(message_of([&] { bit_and(a, a); }),
            "bit_and: wants integers or bools, got f32[4,8] (at model.cpp:41)");
  EXPECT_EQ(message_of([&] { select(a, 0, 4); }),
            "select: position 4 is out of range for axis 0 of f32[4,8] (at model.cpp:41)");
  EXPECT_EQ(message_of([&] { concat({a, b}, 0); }),
            "concat: f32[7,3] does not continue f32[4,8] along axis 0 (at model.cpp:41)");
  EXPECT_EQ(message_of([&] { argmax(input(DType::f32, {2, 0}), 1); }),
            "argmax: axis 1 of f32[2,0] is empty (at model.cpp:41)");
}

TEST_F(Functions, OperandsOfTwoGraphsDoNotMix) {
  ir::Graph other;
  const Value foreign{&other, other.add_input("y", {DType::f32, {2}})};
  const Value own = input(DType::f32, {2});
  EXPECT_EQ(message_of([&] { add(own, foreign); }), "add: the operands are of different graphs");
}

TEST_F(Functions, SlicesFollowPython) {
  const Value x = input(DType::i64, {7});
  EXPECT_EQ(numbers(slice_axis(x, 0, {.start = 1, .stop = 6, .step = 2})), (std::vector<double>{1, 3, 5}));
  EXPECT_EQ(numbers(slice_axis(x, 0, {.start = -3})), (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(numbers(slice_axis(x, 0, {.stop = -5})), (std::vector<double>{0, 1}));
  EXPECT_EQ(numbers(slice_axis(x, 0, {.step = -3})), (std::vector<double>{6, 3, 0}));
  EXPECT_EQ(numbers(slice_axis(x, 0, {.start = 4, .stop = 1, .step = -1})), (std::vector<double>{4, 3, 2}));
  EXPECT_EQ(numbers(slice_axis(x, 0, {.start = 5, .stop = 2})), (std::vector<double>{}));
  EXPECT_EQ(numbers(slice_axis(x, 0, {.start = -100, .stop = 100, .step = 100})), (std::vector<double>{0}));
  EXPECT_EQ(slice_axis(x, 0, {}).id, x.id);
}

TEST_F(Functions, SplitAndStackAreInverse) {
  const Value x = input(DType::f32, {2, 3});
  const auto rows = split(x, 0, {1, 1});
  const Value again = stack({squeeze(rows[0], 0), squeeze(rows[1], 0)}, 0);
  EXPECT_EQ(numbers(again), (std::vector<double>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(numbers(flip(x, {0, 1})), (std::vector<double>{5, 4, 3, 2, 1, 0}));
}

TEST_F(Functions, MatmulTakesVectorsAndBatches) {
  EXPECT_EQ(matmul(input(DType::f32, {3}), input(DType::f32, {3})).shape(), Shape({}));
  EXPECT_EQ(matmul(input(DType::f32, {4, 3}), input(DType::f32, {3})).shape(), Shape({4}));
  EXPECT_EQ(matmul(input(DType::f32, {3}), input(DType::f32, {2, 3, 5})).shape(), Shape({2, 5}));
  EXPECT_EQ(matmul(input(DType::f32, {7, 1, 4, 3}), input(DType::f32, {2, 3, 5})).shape(),
            Shape({7, 2, 4, 5}));
  EXPECT_EQ(type_of(matmul(input(DType::i8, {4, 3}), input(DType::i8, {3, 2}))).dtype, DType::i32);
  EXPECT_EQ(type_of(matmul(input(DType::f8e4m3, {4, 3}), input(DType::f8e5m2, {3, 2}))).dtype, DType::f32);
  EXPECT_EQ(type_of(matmul(input(DType::f8e4m3, {4, 3}), input(DType::f8e4m3, {3, 2}), DType::bf16)).dtype,
            DType::bf16);
}

TEST_F(Functions, SumsOfIntegersAndBoolsAreCountedInI64) {
  EXPECT_EQ(type_of(sum(input(DType::u8, {300}))).dtype, DType::i64);
  EXPECT_EQ(numbers(sum(gt(input(DType::i32, {300}), 9))), (std::vector<double>{290}));
}

TEST_F(Functions, ReductionsOfNothingGiveTheirIdentity) {
  const Value empty = input(DType::f32, {0, 2});
  EXPECT_EQ(numbers(sum(empty, {0})), (std::vector<double>{0, 0}));
  EXPECT_EQ(numbers(max(empty, {0})), (std::vector<double>{-INFINITY, -INFINITY}));
  EXPECT_EQ(numbers(all(empty)), (std::vector<double>{1}));
}

// A view of the graph's own type stays valid while the graph grows under it.
TEST_F(Functions, ShapesMayBePassedByReference) {
  const Value x = input(DType::f32, {3, 1});
  Value y = x;
  for (int i = 0; i < 100; ++i) y = broadcast_to(unsqueeze(sum(y, {1}), 1), x.shape()) + i;
  EXPECT_EQ(y.shape(), Shape({3, 1}));
}

TEST_F(Functions, EvaluateRefusesOtherInputs) {
  const Value x = input(DType::f32, {2});
  g.set_outputs({x.id});
  EXPECT_EQ(message_of([&] { evaluate(g, {}); }), "evaluate: 0 inputs for a graph of 1");
  ir::HostTensor wrong;
  wrong.type = {DType::f32, {3}};
  wrong.f = {1, 2, 3};
  EXPECT_EQ(message_of([&] { evaluate(g, {&wrong, 1}); }),
            "evaluate: input x is f32[3], the graph wants f32[2]");
}

// Against sums over all axes, written out.
TEST_F(Functions, EinsumSumsProductsOverNamedAxes) {
  struct Case {
    const char* spec;
    Shape a, b;
  };
  for (const Case& c :
       {Case{"ik,kj->ij", {3, 4}, {4, 5}}, Case{"bhqd,bhkd->bhqk", {2, 2, 3, 4}, {2, 2, 5, 4}},
        Case{"ab,cd->dbca", {2, 3}, {4, 2}}, Case{"abc,cb->a", {2, 3, 4}, {4, 3}}, Case{"i,i->", {6}, {6}},
        Case{"abx,bcy->ca", {2, 3, 2}, {3, 2, 3}}, Case{"bthd,bshd->bhts", {1, 3, 2, 4}, {1, 2, 2, 4}},
        Case{"ij,->ji", {2, 3}, {}}}) {
    SCOPED_TRACE(c.spec);
    g = ir::Graph("einsum");
    const Value a = input(DType::f64, c.a), b = input(DType::f64, c.b);
    const std::vector<double> got = numbers(einsum(c.spec, {a, b}));
    const std::string spec = c.spec;
    const std::size_t comma = spec.find(','), arrow = spec.find("->");
    const std::string names[] = {spec.substr(0, comma), spec.substr(comma + 1, arrow - comma - 1),
                                 spec.substr(arrow + 2)};
    std::map<char, Index> sizes;
    for (std::size_t i = 0; i < names[0].size(); ++i) sizes[names[0][i]] = c.a[static_cast<int>(i)];
    for (std::size_t i = 0; i < names[1].size(); ++i) sizes[names[1][i]] = c.b[static_cast<int>(i)];
    std::map<char, Index> at;
    const auto position = [&](const std::string& axes) {
      Index place = 0;
      for (char axis : axes) place = place * sizes[axis] + at[axis];
      return static_cast<std::size_t>(place);
    };
    std::vector<double> want(got.size());
    Index points = 1;
    for (const auto& [axis, size] : sizes) points *= size;
    for (Index point = 0; point < points; ++point) {
      Index rest = point;
      for (const auto& [axis, size] : sizes) at[axis] = rest % size, rest /= size;
      want[position(names[2])] +=
          static_cast<double>(position(names[0])) * static_cast<double>(position(names[1]));
    }
    EXPECT_EQ(got, want);
  }
}

TEST_F(Functions, EinsumSaysWhatIsWrongWithItsSpec) {
  const Value a = input(DType::f32, {2, 3}), b = input(DType::f32, {4, 5});
  const std::pair<const char*, const char*> wrong[] = {
      {"ij,jk", "want \"axes of a, axes of b -> axes of the result\""},
      {"ij,jk->ik", "axis j is 3 in one operand and 4 in the other"},
      {"ijk,lm->il", "\"ijk\" names 3 axes, the operand is [2,3]"},
      {"ii,kl->i", "axis i is named twice in \"ii\""},
      {"ij,kl->iz", "the result's axis z is in no operand"},
      {"i1,kl->i", "'1' is no axis name"}};
  for (const auto& [spec, message] : wrong)
    EXPECT_NE(message_of([&] { einsum(spec, {a, b}); }).find(message), std::string::npos)
        << message_of([&] { einsum(spec, {a, b}); });
}

}  // namespace
}  // namespace tilewright::ops
