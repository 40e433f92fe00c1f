#include <gtest/gtest.h>
#include <tilewright/tile/builder.h>
#include <tilewright/tile/text.h>

#include <functional>
#include <limits>

namespace tilewright::tile {
namespace {

// The message of the Error that `body` throws; it names this file.
std::string error_of(const std::function<void(Builder&)>& body) {
  Builder k("k");
  try {
    body(k);
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("builder_test.cpp:"), std::string::npos) << error.what();
    return error.what();
  }
  return "";
}

void expect_error(const std::string& message, const std::function<void(Builder&)>& body) {
  const std::string error = error_of(body);
  EXPECT_NE(error.find(message), std::string::npos) << message << "\n-> " << error;
}

int count(const Kernel& kernel, OpKind kind) {
  int n = 0;
  for_each_op(kernel.body, [&](const Op& op) { n += op.kind == kind; });
  return n;
}

TEST(Builder, LiteralsTakeTheOtherOperandsType) {
  Builder k("k");
  const View y = k.view("y", DType::i32, {8});
  const Value v = k.cast(k.arange(8), DType::i32);
  EXPECT_EQ((v * 3).type(), (TileType{DType::i32, {8}}));
  EXPECT_EQ((3 - v).dtype(), DType::i32);
  EXPECT_EQ((v < 3).dtype(), DType::boolean);
  EXPECT_EQ(where(v < 3, v, 7).dtype(), DType::i32);
  k.store(y, {0}, v);
  k.finish({{{1, 1}}});
}

TEST(Builder, OperandsBroadcastByNumpysRule) {
  Builder k("k");
  const Value row = k.arange(4), column = k.expand(k.arange(3), 1), one = k.literal_int(DType::i64, 5);
  EXPECT_EQ((row + column).type().shape, (std::vector<Index>{3, 4}));
  EXPECT_EQ((column + one).type().shape, (std::vector<Index>{3, 1}));
  EXPECT_EQ(k.broadcast(row, {3, 4}).type().shape, (std::vector<Index>{3, 4}));
}

TEST(Builder, SizesMayNameScalarsFromInsideALoop) {
  Builder k("k");
  const Value n = k.scalar("n");
  const View x = k.view("x", DType::f32, {n});
  Value inner;
  k.loop(0, n, 1, {}, [&](Value, const std::vector<Value>&) {
    inner = k.extent(x, 0);
    const Builder::SizeArg size(inner), outer(n);  // both while the loop is open
    EXPECT_EQ(size.dim, (Dim{0, 0}));
    EXPECT_EQ(outer.dim, (Dim{0, 0}));
    return std::vector<Value>{};
  });
  EXPECT_THROW(k.view("y", DType::f32, {k.arange(3)}), Error);
}

TEST(Builder, NamesAreMadeUniqueAmongParametersAndValues) {
  Builder k("k");
  const View x = k.view("x", DType::f32, {8});
  const Value a = k.load(x, {0}), b = k.load(x, {1});
  k.name_value(a, "x");
  k.name_value(b, "x");
  const View y = k.view("y", DType::f32, {8});
  k.store(y, {0}, a + b);
  const Kernel kernel = k.finish({{{1, 1}}});
  EXPECT_NE(print(kernel).find("add %x.1, %x.2"), std::string::npos) << print(kernel);
}

TEST(Builder, AThrowingLoopBodyLeavesTheBuilderUsable) {
  Builder k("k");
  EXPECT_THROW(
      k.loop(0, 4, 1, {}, [](Value, const std::vector<Value>&) -> std::vector<Value> { throw Error("no"); }),
      Error);
  EXPECT_EQ(k.arange(3).rank(), 1);
}

TEST(Builder, ReshapesOfTheSameShapeAndCastsOfTheSameTypeAddNothing) {
  Builder k("k");
  const View y = k.view("y", DType::i64, {4});
  k.store(y, {0}, k.cast(k.reshape(k.broadcast(k.arange(4), {4}), {4}), DType::i64));
  const Kernel kernel = k.finish({{{1, 1}}});
  EXPECT_EQ(count(kernel, OpKind::reshape) + count(kernel, OpKind::cast) + count(kernel, OpKind::broadcast),
            0);
}

TEST(Builder, MistakesNameTheOpTheTypesAndTheLine) {
  const double infinity = std::numeric_limits<double>::infinity();
  expect_error("add: operand types differ: tile<i64,[4]>, tile<f32,[4]>",
               [](Builder& k) { k.arange(4) + k.literal(DType::f32, 1, {4}); });
  expect_error("add: shapes do not broadcast", [](Builder& k) { k.arange(4) + k.arange(3); });
  expect_error("add: 0.5 is not an integer", [](Builder& k) { k.arange(4) + 0.5; });
  expect_error("mul: f32 has no value 1e+300", [](Builder& k) { k.literal(DType::f32, 1) * 1e300; });
  expect_error("exp: not defined on bf16; cast to f32 first",
               [](Builder& k) { exp(k.literal(DType::bf16, 1)); });
  expect_error("load's fill: f8e4m3 has no value -inf", [=](Builder& k) {
    k.load(k.view("x", DType::f8e4m3, {8}), {0}, {.shape = {8}, .fill = -infinity});
  });
  expect_error("load x: 2 starts for a view of rank 1",
               [](Builder& k) { k.load(k.view("x", DType::f32, {8}), {0, 0}); });
  expect_error("store x: the view holds f32",
               [](Builder& k) { k.store(k.view("x", DType::f32, {8}), {0}, k.arange(8)); });
  expect_error("reduce: axis 1 out of range", [](Builder& k) { k.reduce(Monoid::sum, k.arange(4), 1); });
  expect_error("reduce and: not defined on",
               [](Builder& k) { k.reduce(Monoid::logical_and, k.arange(4), 0); });
  expect_error("scan argmax: not defined on", [](Builder& k) { k.scan(Monoid::argmax, k.arange(4), 0); });
  expect_error("dot: shapes do not meet", [](Builder& k) {
    const Value t = k.literal(DType::f32, 0, {2, 3});
    k.dot(t, t, t);
  });
  expect_error("loop: carried value 0 changes from i64 to tile<i64,[4]>", [](Builder& k) {
    k.loop(0, 4, 1, {k.literal_int(DType::i64, 0)},
           [&](Value, const std::vector<Value>&) { return std::vector<Value>{k.arange(4)}; });
  });
  expect_error("branch: the two sides yield different types", [](Builder& k) {
    k.branch(
        k.literal_int(DType::i64, 0) < 1, [&] { return std::vector<Value>{k.arange(4)}; },
        [] { return std::vector<Value>{}; });
  });
  expect_error("the name x is taken", [](Builder& k) {
    k.view("x", DType::f32, {8});
    k.scalar("x");
  });
  expect_error("is not a name", [](Builder& k) { k.scalar("2n"); });
  expect_error("so give the strides", [](Builder& k) { k.view("x", DType::f32, {4, k.scalar("n")}); });
}

TEST(Builder, FinishVerifiesAndNamesTheLineOfTheOp) {
  expect_error("kernel k: %3 = load %x[%2] : tile<f32,[9]>: the block leaves the view", [](Builder& k) {
    k.load(k.view("x", DType::f32, {8}), {k.program_id(0) * 0}, {.shape = {9}});
    k.finish({{{1, 1}}});
  });
}

}  // namespace
}  // namespace tilewright::tile
