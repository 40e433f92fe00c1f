// Mistakes in kernels written by hand: each is an Error that says what and where, once.
#include <gtest/gtest.h>
#include <tilewright/tile/builder.h>
#include <tilewright/tile/verify.h>

#include <functional>
#include <memory>
#include <optional>

#include "support/errors.h"

namespace tilewright::tile {
namespace {

// `mistake` throws an Error with the text, and with one place: a line of this call.
void expect_mistake(const std::string& text, const std::function<void()>& mistake,
                    const Location& call = Location::current()) {
  const std::string message = test::message_of(mistake), place = " (at builder_errors_test.cpp:";
  EXPECT_NE(message.find(text), std::string::npos) << text << "\n-> " << message;
  const std::size_t at = message.find(place);
  ASSERT_NE(at, std::string::npos) << message;
  EXPECT_EQ(message.find(" (at "), at) << message;
  EXPECT_EQ(message.rfind(" (at "), at) << message;
  const int line = std::stoi(message.substr(at + place.size()));
  constexpr int kLongestCall = 12;
  EXPECT_LE(std::abs(line - static_cast<int>(call.line())), kLongestCall) << message << call.line();
}

constexpr const char* kUnset = " was never given a value, or was moved from";

// A kernel with a value of each kind that the ops want.
struct Parts {
  explicit Parts(const std::string& name = "a") : k(name) {}
  Builder k;
  Value n = k.scalar("n");
  View x = k.view("x", DType::f32, {64}), m = k.view("m", DType::f32, {64, 64});
  Value p = k.program_id(0), i = k.arange(8), t = k.load(x, {0}, {.shape = {8}});
  Value square = k.literal(DType::f32, 0, {8, 8}), yes = p < 3;
};

// Every op that takes a value, with `v` in each of its places, and what is said of it.
std::vector<std::pair<std::string, std::function<void(const Value& v)>>> uses_of_values(Parts& s) {
  const auto same = [](Value, const std::vector<Value>& carried) { return carried; };
  const auto nothing = [] { return std::vector<Value>{}; };
  return {
      {"add: operand 1", [&](const Value& v) { s.t + v; }},
      {"max: operand 1", [&](const Value& v) { max(s.t, v); }},
      {"fma: operand 2", [&](const Value& v) { fma(s.t, s.t, v); }},
      {"select: operand 0", [&](const Value& v) { s.k.apply(Prim::select, {v, s.t, 0.f}); }},
      {"select: operand 2", [&](const Value& v) { where(s.t > 0.f, s.t, v); }},
      {"exp: operand 0", [&](const Value& v) { s.k.apply(Prim::exp, {v}); }},
      {"load: start 1", [&](const Value& v) { s.k.load(s.m, {0, v}, {.shape = {8}}); }},
      {"store: start 0", [&](const Value& v) { s.k.store(s.x, {v}, s.t); }},
      {"store: the value", [&](const Value& v) { s.k.store(s.x, {0}, v); }},
      {"gather: index 1", [&](const Value& v) { s.k.gather(s.m, {s.i, v}); }},
      {"gather: the mask", [&](const Value& v) { s.k.gather(s.x, {s.i}, {.mask = v}); }},
      {"scatter: index 0", [&](const Value& v) { s.k.scatter(s.x, {v}, s.t); }},
      {"scatter: the value", [&](const Value& v) { s.k.scatter(s.x, {s.i}, v); }},
      {"scatter: the mask", [&](const Value& v) { s.k.scatter(s.x, {s.i}, s.t, v); }},
      {"atomic_add: index 0", [&](const Value& v) { s.k.atomic_add(s.x, {v}, s.t); }},
      {"atomic_add: the value", [&](const Value& v) { s.k.atomic_add(s.x, {s.i}, v); }},
      {"atomic_add: the mask", [&](const Value& v) { s.k.atomic_add(s.x, {s.i}, s.t, v); }},
      {"random: the seed", [&](const Value& v) { s.k.random(v, s.i); }},
      {"random: the counter", [&](const Value& v) { s.k.random(s.n, v); }},
      {"broadcast: the operand", [&](const Value& v) { s.k.broadcast(v, {8, 8}); }},
      {"reshape: the operand", [&](const Value& v) { s.k.reshape(v, {8, 1}); }},
      {"transpose: the operand", [&](const Value& v) { s.k.transpose(v); }},
      {"expand: the operand", [&](const Value& v) { s.k.expand(v, 0); }},
      {"cast: the operand", [&](const Value& v) { s.k.cast(v, DType::f32); }},
      {"round: the product", [&](const Value& v) { s.k.round(v); }},
      {"reduce: the operand", [&](const Value& v) { s.k.reduce(Monoid::sum, v, 0); }},
      {"scan: the operand", [&](const Value& v) { s.k.scan(Monoid::sum, v, 0); }},
      {"argsort: the operand", [&](const Value& v) { s.k.argsort(v, 0); }},
      {"dot: operand 0", [&](const Value& v) { s.k.dot(v, s.square, s.square); }},
      {"dot: operand 1", [&](const Value& v) { s.k.dot(s.square, v, s.square); }},
      {"dot: the accumulator", [&](const Value& v) { s.k.dot(s.square, s.square, v); }},
      {"loop: the lower bound", [&, same](const Value& v) { s.k.loop(v, 4, 1, {}, same); }},
      {"loop: the upper bound", [&, same](const Value& v) { s.k.loop(0, v, 1, {}, same); }},
      {"loop: the step", [&, same](const Value& v) { s.k.loop(0, 4, v, {}, same); }},
      {"loop: initial value 1", [&, same](const Value& v) { s.k.loop(0, 4, 1, {s.t, v}, same); }},
      {"loop: carried value 0",
       [&](const Value& v) {
         s.k.loop(0, 4, 1, {s.t}, [&](Value, const std::vector<Value>&) { return std::vector<Value>{v}; });
       }},
      {"branch: the condition", [&, nothing](const Value& v) { s.k.branch(v, nothing, nothing); }},
      {"branch: result 0",
       [&](const Value& v) {
         s.k.branch(s.yes, [&] { return std::vector<Value>{v}; }, [&] { return std::vector<Value>{s.t}; });
       }},
      {"name_value: the value", [&](const Value& v) { s.k.name_value(v, "v"); }},
      {"view y: extent 1", [&](const Value& v) { s.k.view("y", DType::f32, {4, v}); }},
      {"grid: the extent of axis 1", [&](const Value& v) { (void)s.k.finish({{{1, 1}}, {{v, 1}}}); }},
  };
}

// The place lies in the table above.
void expect_says_of_use(const std::string& text, const std::function<void()>& mistake) {
  const std::string message = test::message_of(mistake), place = " (at builder_errors_test.cpp:";
  EXPECT_EQ(message.find(text), 0U) << text << "\n-> " << message;
  EXPECT_NE(message.find(place), std::string::npos) << message;
  EXPECT_EQ(message.rfind(" (at "), message.find(" (at ")) << message;
}

TEST(BuilderErrors, ValuesThatWereNeverGiven) {
  Parts s;
  for (const auto& [what, use] : uses_of_values(s)) expect_says_of_use(what + kUnset, [&] { use(Value()); });
  const Value none;
  expect_mistake(std::string("exp: operand 0") + kUnset, [&] { exp(none); });
  expect_mistake(std::string("neg: operand 0") + kUnset, [&] { -none; });
  expect_mistake(std::string("not: operand 0") + kUnset, [&] { ~none; });
  expect_mistake(std::string("add: operand 0") + kUnset, [&] { none + 1; });
  expect_mistake(std::string("mul: operand 1") + kUnset, [&] { 2 * none; });
  expect_mistake(std::string("add: operand 0") + kUnset, [&] { cdiv(none, 4); });
  expect_mistake(std::string("select: operand 0") + kUnset, [&] { where(none, 1, 2); });
  expect_mistake(std::string("type: this tile value") + kUnset, [&] { (void)none.type(); });
  expect_mistake(std::string("type: this tile value") + kUnset, [&] { (void)none.rank(); });
  expect_mistake(std::string("type: this tile value") + kUnset, [&] { (void)none.dtype(); });
  expect_mistake(std::string("builder: this tile value") + kUnset, [&] { (void)none.builder(); });
  EXPECT_EQ(none.id(), -1);
  EXPECT_FALSE(none.defined());
}

TEST(BuilderErrors, ValuesThatWereMovedFrom) {
  Parts s;
  Value taken = std::move(s.t);
  // NOLINTNEXTLINE(bugprone-use-after-move): what is said of it
  expect_mistake(std::string("add: operand 1") + kUnset, [&] { taken + s.t; });
  expect_mistake(std::string("reduce: the operand") + kUnset, [&] { s.k.reduce(Monoid::sum, s.t, 0); });
  EXPECT_EQ((taken + taken).rank(), 1);
}

TEST(BuilderErrors, ValuesOfAnotherKernel) {
  Parts s("a"), other("b");
  const std::string why = " belongs to another kernel: it is of kernel b, and this is kernel a";
  for (const auto& [what, use] : uses_of_values(s)) expect_says_of_use(what + why, [&] { use(other.t); });
  expect_mistake("add: operand 1" + why, [&] { s.t + other.t; });
  (void)other.k.finish({{{1, 1}}});
  expect_mistake("add: operand 1" + why, [&] { s.t + other.t; });
}

TEST(BuilderErrors, ViewsOfAnotherKernelAndOfNone) {
  Parts s("a"), other("b");
  const std::pair<std::string, std::function<void(const View&)>> uses[] = {
      {"load", [&](const View& v) { s.k.load(v, {0}); }},
      {"store", [&](const View& v) { s.k.store(v, {0}, s.t); }},
      {"gather", [&](const View& v) { s.k.gather(v, {s.i}); }},
      {"scatter", [&](const View& v) { s.k.scatter(v, {s.i}, s.t); }},
      {"atomic_add", [&](const View& v) { s.k.atomic_add(v, {s.i}, s.t); }},
      {"extent", [&](const View& v) { s.k.extent(v, 0); }},
      {"param", [&](const View& v) { (void)s.k.param(v); }},
  };
  for (const auto& [op, use] : uses) {
    expect_says_of_use(op + ": the view" + kUnset, [&] { use(View()); });
    expect_says_of_use(op + ": the view belongs to another kernel: it is of kernel b, and this is kernel a",
                       [&] { use(other.x); });
  }
  View taken = std::move(s.x);
  // NOLINTNEXTLINE(bugprone-use-after-move): what is said of it
  expect_mistake(std::string("load: the view") + kUnset, [&] { s.k.load(s.x, {0}); });
  EXPECT_EQ(s.k.param(taken).name, "x");
}

TEST(BuilderErrors, ValuesOfBodiesThatEnded) {
  const std::string why = "is used outside the block that defines it";
  Parts in_loop;
  Value inner, index;
  in_loop.k.loop(0, 4, 1, {}, [&](Value i, const std::vector<Value>&) {
    index = i;
    inner = in_loop.t * 2.f;
    return std::vector<Value>{};
  });

  expect_mistake(why, [&] {
    in_loop.k.store(in_loop.x, {0}, inner * 1.f);
    (void)in_loop.k.finish({{{1, 1}}});
  });
  Parts with_index;
  with_index.k.loop(0, 4, 1, {}, [&](Value i, const std::vector<Value>&) {
    index = i;
    return std::vector<Value>{};
  });
  expect_mistake(why, [&] {
    with_index.k.load(with_index.x, {index});
    (void)with_index.k.finish({{{1, 1}}});
  });
  Parts branched;
  expect_mistake(why, [&] {
    Value made;
    branched.k.branch(
        branched.yes,
        [&] {
          made = branched.t * 2.f;
          return std::vector<Value>{made};
        },
        [&] { return std::vector<Value>{made}; });
    (void)branched.k.finish({{{1, 1}}});
  });
}

TEST(BuilderErrors, AKernelThatWasFinished) {
  Parts s("done");
  const auto use_all = uses_of_values(s);
  (void)s.k.finish({{{1, 1}}});
  const std::string why = "kernel done was already finished";
  for (const auto& [what, use] : use_all) {
    const std::string message = test::message_of([&] { use(s.t); });
    EXPECT_NE(message.find(why + " (at builder_errors_test.cpp:"), std::string::npos)
        << what << "\n-> " << message;
  }
  expect_mistake(why, [&] { (void)s.k.finish({{{1, 1}}}); });
  expect_mistake(why, [&] { s.t + s.t; });
  expect_mistake(why, [&] { s.t + 1.f; });
  expect_mistake(why, [&] { exp(s.t); });
  expect_mistake("type: " + why, [&] { (void)s.t.type(); });
  expect_mistake(why, [&] { (void)s.t.builder(); });
  expect_mistake(why, [&] { s.k.view("z", DType::f32, {8}); });
  expect_mistake(why, [&] { s.k.scalar("z"); });
  expect_mistake(why, [&] { s.k.constant("Z", 8); });
  expect_mistake(why, [&] { s.k.extent(s.x, 0); });
  expect_mistake(why, [&] { (void)s.k.param(s.x); });
  expect_mistake(why, [&] { s.k.literal(DType::f32, 0); });
  expect_mistake(why, [&] { s.k.literal_int(DType::i64, 0); });
  expect_mistake(why, [&] { s.k.program_id(0); });
  expect_mistake(why, [&] { s.k.arange(8); });
  expect_mistake(why, [&] { s.k.load(s.x, {0}); });
  expect_mistake(why, [&] { s.k.loop(0, 4, 1, {}, [](Value, const auto& carried) { return carried; }); });
}

TEST(BuilderErrors, AKernelThatWasRefusedIsFinishedToo) {
  Parts s("wrong");
  s.k.load(s.x, {60}, {.shape = {8}});
  expect_mistake("kernel wrong: ", [&] { (void)s.k.finish({}); });
  expect_mistake("kernel wrong was already finished", [&] { (void)s.k.finish({{{1, 1}}}); });
}

TEST(BuilderErrors, FinishInsideABody) {
  Parts s;
  const std::string why = "kernel a: finish() inside the body of a loop or branch";
  expect_mistake(why, [&] {
    s.k.loop(0, 4, 1, {}, [&](Value, const std::vector<Value>& carried) {
      (void)s.k.finish({{{1, 1}}});
      return carried;
    });
  });
  expect_mistake(why, [&] {
    const auto nothing = [] { return std::vector<Value>{}; };
    const auto finishes = [&] { return (void)s.k.finish({{{1, 1}}}), std::vector<Value>{}; };
    s.k.branch(s.yes, finishes, nothing);
  });
}

TEST(BuilderErrors, HandlesOutliveTheirBuilder) {
  auto gone = std::make_unique<Parts>("gone");
  const Value t = gone->t;
  const View x = gone->x;
  gone.reset();
  expect_mistake("the Builder of kernel gone no longer exists", [&] { t + t; });
  expect_mistake("the Builder of kernel gone no longer exists", [&] { (void)t.builder(); });
  EXPECT_EQ(t.type(), (TileType{DType::f32, {8}}));
  Parts s;
  expect_mistake("load: the view belongs to another kernel: it is of kernel gone", [&] { s.k.load(x, {0}); });
}

TEST(BuilderErrors, SizesThatAreNoParameters) {
  Parts s;
  expect_mistake("view y: extent 0 is neither a number nor a scalar parameter",
                 [&] { s.k.view("y", DType::f32, {s.p}); });
  expect_mistake("grid: the extent of axis 0 is neither", [&] { (void)s.k.finish({{{s.p, 1}}}); });
  expect_mistake("view far: it reaches further than 2^48 elements",
                 [&] { s.k.view("far", DType::f32, {4, Index{1} << 40, Index{1} << 40}); });
  expect_mistake("cdiv: the divisor 0 is not positive", [&] { cdiv(s.n, 0); });
}

TEST(BuilderErrors, NumbersThatATypeDoesNotHold) {
  Parts s;
  const Value byte = s.k.cast(s.i, DType::u8);
  expect_mistake("add: u8 does not hold 300", [&] { byte + 300; });
  expect_mistake("sub: u8 does not hold -1", [&] { -1 - byte; });
  expect_mistake("lt: u8 does not hold 256", [&] { (void)(byte < 256.0); });
  expect_mistake("literal: i8 does not hold 128", [&] { s.k.literal_int(DType::i8, 128); });
  expect_mistake("literal: i8 does not hold -129", [&] { s.k.literal(DType::i8, -129); });
  expect_mistake("load's fill: i32 does not hold 3000000000",
                 [&] { s.k.load(s.k.view("whole", DType::i32, {8}), {0}, {.fill = 3e9}); });
  expect_mistake("literal: i64 does not hold 9.22337", [&] { s.k.literal(DType::i64, 0x1p63); });
  expect_mistake("add: i64 does not hold 9.22337", [&] { s.p + 0x1p63; });
  expect_mistake("load: start 0 is 9.22337", [&] { s.k.load(s.x, {0x1p63}); });
  s.p + -0x1p63;
}

TEST(BuilderErrors, AViewThatWasRefusedLeavesItsName) {
  Parts s;
  expect_mistake("view out: 1 strides for 2 extents",
                 [&] { s.k.view("out", DType::f32, {4, 4}, {.strides = {{1, -1}}}); });
  EXPECT_TRUE(s.k.view("out", DType::f32, {4, 4}).defined());
}

TEST(BuilderErrors, IndicesThatAreNotWhole) {
  Parts s;
  const auto same = [](Value, const std::vector<Value>& carried) { return carried; };
  expect_mistake("load: start 0 is 1.5, not an integer", [&] { s.k.load(s.x, {1.5}); });
  expect_mistake("store: start 1 is 0.5, not an integer", [&] { s.k.store(s.m, {0, 0.5}, s.t); });
  expect_mistake("gather: index 0 is 2.5, not an integer", [&] { s.k.gather(s.x, {2.5}); });
  expect_mistake("scatter: index 0 is 2.5, not an integer", [&] { s.k.scatter(s.x, {2.5}, s.t); });
  expect_mistake("loop: the upper bound is 4.5, not an integer", [&] { s.k.loop(0, 4.5, 1, {}, same); });
  expect_mistake("loop: the step must be an i64 scalar, got tile<i64,[8]>",
                 [&] { s.k.loop(0, 4, s.i, {}, same); });
}

TEST(BuilderErrors, BodiesThatAreNone) {
  Parts s;
  const auto nothing = [] { return std::vector<Value>{}; };
  expect_mistake("loop: there is no body", [&] { s.k.loop(0, 4, 1, {}, nullptr); });
  expect_mistake("branch: a side has no body", [&] { s.k.branch(s.yes, nothing, nullptr); });
}

TEST(BuilderErrors, FinishNamesOnePlace) {
  Parts s;
  expect_mistake("the block leaves the view: dim 0 reaches 68 of 64; give a fill",
                 [&] { s.k.load(s.x, {60}, {.shape = {8}}), (void)s.k.finish({{{1, 1}}}); });
  Parts no_grid;
  expect_mistake("kernel a: a grid has 1 to 3 axes, not 0", [&] { (void)no_grid.k.finish({}); });
}

TEST(BuilderErrors, IndicesThatLeaveTheView) {
  const std::string why = "an index leaves the view: dim 0 has ";
  const std::pair<std::string, std::function<void(Parts&)>> mistakes[] = {
      {"65 of 64", [](Parts& s) { s.k.gather(s.x, {s.k.arange(66)}); }},
      {"64 of 64", [](Parts& s) { s.k.gather(s.x, {64}); }},
      {"-1 of 64", [](Parts& s) { s.k.gather(s.x, {s.i - 1}); }},
      {"70 of 64", [](Parts& s) { s.k.gather(s.x, {s.i * 10}); }},
      {"64 of 64", [](Parts& s) { s.k.scatter(s.x, {64 - s.i}, s.t * 2.f); }},
      {"71 of 64", [](Parts& s) { s.k.atomic_add(s.m, {s.p * 64 + s.i, 0}, s.t * 2.f); }},
      {"71 of 64", [](Parts& s) { s.k.gather(s.m, {s.k.expand(s.i, 1) + 64, s.k.expand(s.i, 0)}); }},
  };
  for (const auto& [what, mistake] : mistakes) {
    Parts s;
    const std::string message = test::message_of([&] {
      mistake(s);
      (void)s.k.finish({{{2, 1}}});
    });
    EXPECT_NE(message.find(why + what + "; give a mask (at builder_errors_test.cpp:"), std::string::npos)
        << message;
  }
  Parts good;
  good.k.gather(good.x, {good.i * 9});
  good.k.gather(good.x, {good.i * 10}, {.mask = good.i * 10 < 64});
  good.k.gather(good.m, {good.k.expand(good.i, 1) * 9, good.k.expand(good.i, 0) + good.p * 56});
  good.k.gather(good.x, {good.n + 64});
  Value twice = good.i * 0;
  for (int step = 0; step < 64; ++step) twice = twice + twice;  // each is looked at once
  good.k.gather(good.x, {twice});
  (void)good.k.finish({{{2, 1}}});
}

}  // namespace
}  // namespace tilewright::tile
