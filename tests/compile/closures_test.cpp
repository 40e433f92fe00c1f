// Functions that capture tensors: values of enclosing functions and tensors with memory are inputs, at any
// nesting of compile(), value_and_grad() and plain calls; what escapes from a function is an error.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "support/errors.h"
#include "support/kernel_folder.h"

namespace tilewright {
namespace {

using Floats = std::vector<float>;

class Closures : public ::testing::Test {
 protected:
  Context ctx_{{.device = "cpu", .cache_directory = test::kernel_folder()}};
  Tensor row(const Floats& values) { return ctx_.from(values, {static_cast<Index>(values.size())}); }
};

Floats numbers_of(const Tensor& t) { return t.to_vector<float>(); }

// Fused sums round elsewhere: a bit or two of numbers below 16.
void expect_near(const Tensor& got, const Floats& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(numbers_of(got).at(i), expected[i], 4e-6);
}

TEST_F(Closures, OfATrainingStepCaptureItsData) {
  const auto step = compile([](const Tensor& w, const Tensor& x) {
    return value_and_grad([&](const Tensor& v) { return sum(square(matmul(x, v))); })(w);
  });
  const Tensor x = ctx_.from(Floats{1, 2, 3, 4}, {2, 2}), w = ctx_.from(Floats{1, -1}, {2, 1});
  for (int call = 0; call < 2; ++call) {
    const auto both = step(w, x);
    EXPECT_EQ(both.first.item(), 2);
    EXPECT_EQ(numbers_of(both.second), (Floats{-8, -12})) << "2 xᵀ x w";
  }
  EXPECT_EQ(step.report().size(), 1u);
}

TEST_F(Closures, AreConstantsOfTheirOwnDerivativeAndInputsOfTheEnclosingOne) {
  const Tensor w = row({2, 3});
  // d/dw of (d/du Σ u² w at u = w) · w, with w captured by the inner function: d/dw Σ 2 w² w = 6 w².
  const auto outer = [](const Tensor& v) {
    const auto inner = value_and_grad([&](const Tensor& u) { return sum(u * u * v); });
    return sum(inner(v).second * v);
  };
  const Floats expected{24, 54};
  EXPECT_EQ(numbers_of(grad(outer)(w)), expected);
  EXPECT_EQ(numbers_of(compile([&](const Tensor& t) { return grad(outer)(t); })(w)), expected);
  EXPECT_EQ(numbers_of(grad(compile(outer))(w)), expected);
  // The tensor itself, captured beside the argument it is given for, is a constant.
  EXPECT_EQ(numbers_of(grad([&](const Tensor& v) { return sum(v * w); })(w)), (Floats{2, 3}));
}

// A compiled function called on a tensor with memory, all of whose results are made of the function around
// it.
TEST_F(Closures, MayReturnWhatIsOfTheEnclosingFunctionAlone) {
  const Tensor x = row({2, 3}), z = row({5, 5});
  using Made = std::function<Tensor(const Tensor&)>;
  const std::pair<Made, Floats> cases[] = {
      {[&](const Tensor& a) { return compile([=](const Tensor&) { return a; })(z); }, {4, 6}},
      {[&](const Tensor& a) { return compile([=](const Tensor&) { return a * 2.f; })(z); }, {8, 12}},
      {[&](const Tensor& a) {
         const auto both = compile([=](const Tensor& y) { return std::pair(a * 2.f, y * 2.f); })(z);
         return both.first * both.second / 10.f;
       },
       {8, 12}}};
  for (const auto& [made, gradient] : cases) {
    const auto loss = [&made = made](const Tensor& a) { return sum(made(a) * a); };
    EXPECT_EQ(numbers_of(grad(loss)(x)), gradient);
    EXPECT_EQ(numbers_of(compile([&](const Tensor& t) { return grad(loss)(t); })(x)), gradient);
  }
}

TEST_F(Closures, MayTakeOnlyWhatTheyCapture) {
  const Tensor w = row({2, 3}), one = row({1, 1});
  // The inner functions' arguments have memory; what is recorded comes in by capture alone.
  const auto loss = [&](const Tensor& v) {
    const auto scaled = compile([&](const Tensor& u) { return u * v; });
    const Tensor slope = grad([&](const Tensor& u) { return sum(scaled(u) * v); })(one);
    return sum(slope * scaled(one));  // Σ v² v
  };
  EXPECT_EQ(numbers_of(grad(loss)(w)), (Floats{12, 27}));
  const auto compiled = compile([&](const Tensor& v) { return grad(loss)(v); });
  EXPECT_EQ(numbers_of(compiled(w)), (Floats{12, 27}));
  EXPECT_EQ(numbers_of(compiled(one)), (Floats{3, 3})) << "what was captured is an input";
}

TEST_F(Closures, ThatWereCompiledBeforeSeeWhatTheyCaptureNow) {
  Tensor w = row({2, 3});
  const Tensor x = row({5, 7});
  const auto layer = compile([&](const Tensor& t) { return t * w; });
  layer(x);
  const auto slope = value_and_grad([&](const Tensor& p) {
    w = p;
    return sum(layer(x));
  });
  EXPECT_EQ(numbers_of(slope(w).second), (Floats{5, 7}));
  w = Tensor();
}

TEST_F(Closures, NestThreeDeep) {
  const Tensor x = row({0.5f});
  // Third derivative of x⁵: each function captures the argument of the one around it.
  const auto third = [](const Tensor& a) {
    return grad([&](const Tensor& b) {
      return sum(grad([&](const Tensor& c) {
        return sum(grad([&](const Tensor& d) { return sum(d * d * d * d * d) + sum(a + b + c) * 0.0; })(c));
      })(b));
    })(a);
  };
  EXPECT_FLOAT_EQ(third(x).to_vector<float>()[0], 15);
  EXPECT_FLOAT_EQ(compile(third)(x).to_vector<float>()[0], 15);
}

TEST_F(Closures, OfTensorsWithMemoryAreInputs) {
  Tensor bias = row({1, 2});
  const auto f = compile([&](const Tensor& x) { return x + bias + bias; });
  const Tensor x = row({10, 20});
  EXPECT_EQ(numbers_of(f(x)), (Floats{12, 24}));
  compile([](const Tensor& t) { return t * 10.0; }).into({bias}, {row({1, 2})});
  EXPECT_EQ(numbers_of(f(x)), (Floats{30, 60})) << "the memory is read at each call";
}

TEST_F(Closures, ComputeWithWhatTheyCaptureAtEachCall) {
  const Tensor x = row({1, 2}), u = row({1, 1});
  Tensor w = row({1, 10});
  const auto twice = compile([](const Tensor& t) { return t + t; });
  const auto slope = value_and_grad([](const Tensor& t) { return sum(t * t); });
  // No operand of these is an argument: what they give is not that of the first call.
  const std::vector<Compiled<Tensor(Tensor)>> programs = {
      compile([&](const Tensor& t) { return t + w * 3.f; }),
      compile([&](const Tensor& t) { return t + flip(flip(w, {0}), {0}) + (w + w); }),
      compile([&](const Tensor& t) { return t + w + twice(w); }),
      compile([&](const Tensor& t) { return t + slope(w).second + w; }),
      compile(
          [&](const Tensor& t) { return t + grad([&](const Tensor& v) { return sum(v * (w * 3.f)); })(t); }),
      compile([&](const Tensor& t) { return where(t > 0.f, t + w, w) + take(w, ctx_.arange(2), 0) + w; }),
      compile([&](const Tensor& t) { return t * 0.f + (sum(w).item() > 11 ? w * 3.f : w * 4.f) + t; }),
  };
  for (int call = 0; call < 2; ++call)
    for (std::size_t i = 0; i + 1 < programs.size(); ++i)
      EXPECT_EQ(numbers_of(programs[i](x)), (Floats{4, 32})) << "program " << i;
  EXPECT_EQ(numbers_of(programs.back()(x)), (Floats{5, 42}));
  compile([](const Tensor& t) { return t * 100.f; }).into({w}, {u});
  for (std::size_t i = 0; i < programs.size(); ++i)
    EXPECT_EQ(numbers_of(programs[i](x)), (Floats{301, 302})) << "program " << i;
  EXPECT_EQ(programs.back().report().at(0).breaks.size(), 1u);
  programs[0].into({w}, {x});
  EXPECT_EQ(numbers_of(w), (Floats{301, 302})) << "its old values were read";
}

TEST_F(Closures, MakeTensorsAsPartOfTheProgram) {
  const auto f = compile([&](const Tensor& x) {
    return x + ctx_.full({2}, 3) * ctx_.arange(2) + ctx_.ones({2}) + sin(ctx_.zeros({2}));
  });
  EXPECT_EQ(numbers_of(f(row({1, 2}))), (Floats{2, 6}));
  EXPECT_EQ(f.report().at(0).graph.find("input(a1"), std::string::npos) << f.report().at(0).graph;
  EXPECT_EQ(f.report().at(0).kernels.size(), 1u) << f.explain();
  const auto alone = compile([&](const Tensor&) { return ctx_.full({2}, 7); });
  EXPECT_EQ(numbers_of(alone(row({1}))), (Floats{7, 7}));
  // A number that was read is no constant of the program.
  const auto read = compile([&](const Tensor& x) { return x + ctx_.full({2}, sum(x).item()); });
  EXPECT_EQ(numbers_of(read(row({1, 2}))), (Floats{4, 5}));
  EXPECT_EQ(numbers_of(read(row({3, 4}))), (Floats{10, 11}));
}

TEST_F(Closures, FollowHostReads) {
  const auto f = compile([&](const Tensor& x) {
    const Tensor y = x * 2.0;
    const auto inner = compile([&](const Tensor& t) { return sum(t * y).item() > 3 ? t + y : t - y; });
    return inner(ctx_.ones({2}));
  });
  for (int call = 0; call < 2; ++call) {
    EXPECT_EQ(numbers_of(f(row({1, 1}))), (Floats{3, 3}));
    EXPECT_EQ(numbers_of(f(row({0.5f, 0.5f}))), (Floats{0, 0}));
  }
}

TEST_F(Closures, DoNotLetTensorsEscape) {
  Tensor kept;
  const Tensor x = row({1, 2});
  const std::vector<std::string> wanted = {"recorded inside",
                                           "closures_test.cpp:", "what a function returns"};
  const auto slope = value_and_grad([&](const Tensor& v) {
    kept = v * 2.0;
    return sum(kept);
  });
  slope(x);
  test::expect_says([&] { kept + 1.0; }, wanted);
  test::expect_says([&] { kept.to_vector<float>(); }, wanted);
  test::expect_says([&] { compile([](const Tensor& t) { return t; })(kept); }, wanted);
  const auto f = compile([&](const Tensor& v) {
    kept = v * 2.0;
    return v;
  });
  f(x);
  test::expect_says([&] { kept + x; }, wanted);
  test::expect_says([&] { kept.to_vector<float>(); }, wanted);
  test::expect_says([&] { compile([&](const Tensor& v) { return v + kept; })(x); }, wanted);
  test::expect_says(
      [&] {
        compile([&](const Tensor& v) {
          slope(v);
          return v + kept;
        })(x);
      },
      wanted);
  // A function that throws leaves nothing behind.
  EXPECT_EQ(numbers_of(x + x), (Floats{2, 4}));
  EXPECT_EQ(numbers_of(f(x)), (Floats{1, 2}));
}

TEST_F(Closures, ThatCallThemselvesWithoutEndAreErrors) {
  std::optional<Compiled<Tensor(Tensor)>> f, even, odd, halves;
  f = compile([&](const Tensor& x) { return (*f)(x * 2.0); });
  even = compile([&](const Tensor& x) { return (*odd)(x); });
  odd = compile([&](const Tensor& x) { return sum(grad(*even)(x)); });
  const Tensor x = row({1, 2, 3, 4});
  test::expect_says([&] { (*f)(x); }, {"calls itself", "closures_test.cpp:"});
  test::expect_says([&] { (*f)(x); }, {"calls itself"});
  test::expect_says([&] { (*even)(x); }, {"calls itself"});
  // One that ends is none.
  halves = compile([&](const Tensor& t) {
    if (t.size() == 1) return t;
    return (*halves)(slice(t, 0, {0, t.size() / 2}) + slice(t, 0, {t.size() / 2, t.size()}));
  });
  EXPECT_EQ(numbers_of((*halves)(x)), Floats{10});
}

TEST_F(Closures, DrawRandomNumbersAnewAtEachCall) {
  const auto plain = [&](const Tensor& x) {
    return x + ctx_.randn({3}) + cast(ctx_.randint({3}, 9), DType::f32);
  };
  const auto f = compile(plain);
  const Tensor x = row({1, 2, 3});
  ctx_.set_seed(7);
  const Floats first = numbers_of(plain(x)), second = numbers_of(plain(x));
  ASSERT_NE(first, second);
  for (int repeat = 0; repeat < 2; ++repeat) {
    ctx_.set_seed(7);
    expect_near(f(x), first);  // what the function draws by itself
    f.measure({x});
    expect_near(f(x), second);
    Tensor out = ctx_.empty({3});
    ctx_.set_seed(7);
    f.into({out}, {x});
    expect_near(out, first);
    expect_near(f(x), second);
  }
  EXPECT_EQ(f.report().size(), 1u);
  EXPECT_NE(f.explain().find("random: 2 tensors drawn at each call"), std::string::npos) << f.explain();
}

TEST_F(Closures, DrawRandomNumbersInsideOtherFunctions) {
  const Tensor x = row({1, 2, 3});
  const auto noise = compile([&](const Tensor& t) { return t + ctx_.rand({3}); });
  noise(x);
  const auto slope = value_and_grad([&](const Tensor& w) { return sum(w * noise(x) * ctx_.rand({3})); });
  const auto f = compile([&](const Tensor& w) { return slope(w).second; });
  ctx_.set_seed(3);
  const Floats first = numbers_of(slope(x).second), second = numbers_of(slope(x).second);
  ASSERT_NE(first, second);
  ctx_.set_seed(3);
  expect_near(f(x), first);
  expect_near(f(x), second);
  const auto broken = compile([&](const Tensor& w) {
    const Tensor y = w * noise(x);
    return y + (sum(y).item() - sum(y).item()) + ctx_.rand({3});
  });
  EXPECT_NE(numbers_of(broken(x)), numbers_of(broken(x)));
  const auto sized =
      compile([&](const Tensor& w) { return w * ctx_.rand(w.shape()); }, {.dynamic = {{0, 0}}});
  EXPECT_NE(numbers_of(sized(x)), numbers_of(sized(x)));
}

}  // namespace
}  // namespace tilewright
