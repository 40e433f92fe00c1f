// What compiled functions do with tensors they capture, beside recording operations on them: host reads,
// hand-written kernels, into(), operations on another device. Captured tensors are inputs of the program:
// each happens at every call, and is reported as a graph break.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <functional>

#include "support/errors.h"
#include "support/kernel_folder.h"

namespace tilewright {
namespace {

using Floats = std::vector<float>;
using test::expect_says;

Floats values(const Tensor& t) { return t.to_vector<float>(); }

// y = factor · x of three elements.
TileFunction scale_kernel() {
  tile::Builder k("scaled");
  auto x = k.view("x", DType::f32, {3}), y = k.view("y", DType::f32, {3});
  const tile::Value at = k.program_id(0);
  k.store(y, {at}, k.load(x, {at}, {.shape = {1}}) * 2.0);
  return TileFunction(k.finish({{{3, 1}}}));
}

class Captured : public ::testing::Test {
 protected:
  Context ctx_{{.device = "cpu", .cache_directory = test::kernel_folder()}};
  Tensor row(const Floats& values) { return ctx_.from(values, {static_cast<Index>(values.size())}); }
  // Through memory: other handles of `t` see it.
  void assign(const Tensor& t, const Tensor& to) {
    compile([](const Tensor& x) { return x * 1.f; }).into({t}, {to});
  }
  // The program gives `first`, after `w` became `next` it gives `second`, and names what breaks it.
  void expect_follows(const Compiled<Tensor(Tensor)>& f, const Tensor& w, const Tensor& next,
                      const Floats& first, const Floats& second, const std::string& reported) {
    const Tensor x = row({1, 2, 3}), before = w * 1.f;
    for (int call = 0; call < 2; ++call) EXPECT_EQ(values(f(x)), first) << reported;
    assign(w, next);
    for (int call = 0; call < 2; ++call) EXPECT_EQ(values(f(x)), second) << reported;
    assign(w, before);
    EXPECT_EQ(values(f(x)), first) << reported;
    EXPECT_NE(f.explain().find("graph break: " + reported), std::string::npos) << f.explain();
  }
};

TEST_F(Captured, ReadsOnTheHostFollowTheTensor) {
  const Tensor w = row({1, 10, 100}), s = ctx_.scalar(2), next = row({2, 10, 100});
  expect_follows(compile([&](const Tensor& x) { return x * w.to_vector<float>()[0]; }), w, next, {1, 2, 3},
                 {2, 4, 6}, "to_vector() of f32[3] at captured_test.cpp:");
  expect_follows(compile([&](const Tensor& x) { return s.item() > 3 ? x * 0.f : x * s.item<float>(); }), s,
                 ctx_.scalar(4), {2, 4, 6}, {0, 0, 0}, "item() of f32[] at captured_test.cpp:");
  // Beside what is recorded, and inside other functions of the same program.
  expect_follows(compile([&](const Tensor& x) {
                   const Tensor y = x + w;
                   return y + w.to_vector<float>()[0] * x;
                 }),
                 w, next, {3, 14, 106}, {5, 16, 109}, "to_vector() of f32[3]");
  const auto inner = compile([&](const Tensor& x) { return x * w.to_vector<float>()[0]; });
  expect_follows(compile([&](const Tensor& x) { return inner(x) + x; }), w, next, {2, 4, 6}, {3, 6, 9},
                 "to_vector() of f32[3]");
  expect_follows(compile([&](const Tensor& x) {
                   return grad([&](const Tensor& v) { return sum(v * v) * w.to_vector<float>()[0]; })(x);
                 }),
                 w, next, {2, 4, 6}, {4, 8, 12}, "to_vector() of f32[3]");
  expect_follows(compile([&](const Tensor& x) { return x + w.to("reference").to("cpu"); }), w, next,
                 {2, 12, 103}, {3, 12, 103}, "to() of f32[3]");
}

TEST_F(Captured, ReadsAreErrorsOfOneProgram) {
  const Tensor w = row({1, 2, 3}), y = ctx_.empty({3});
  const TileFunction twice = scale_kernel();
  const auto program = [](auto f) { return compile(f, {.fullgraph = true}); };
  const std::string why = "inside a function compiled with fullgraph";
  expect_says([&] { program([&](const Tensor& x) { return x * w.to_vector<float>()[0]; })(w); },
              {"to_vector() of f32[3]", why, "captured_test.cpp:"});
  expect_says([&] { program([&](const Tensor& x) { return x + twice({w, out({3})})[0]; })(w); },
              {"kernel scaled", why, "captured_test.cpp:"});
  expect_says([&] { compile([&](const Tensor& x) { return x * w.to_vector<float>()[0]; }).into({y}, {w}); },
              {"graph breaks", "Call it", "captured_test.cpp:"});
}

TEST_F(Captured, KernelsFollowTheTensor) {
  const Tensor w = row({1, 10, 100}), next = row({2, 20, 200});
  const TileFunction twice = scale_kernel();
  expect_follows(compile([&](const Tensor& x) { return x + twice({w, out({3})})[0]; }), w, next, {3, 22, 203},
                 {5, 42, 403}, "kernel scaled at captured_test.cpp:");
  // The kernel reads values that are only recorded so far.
  expect_follows(compile([&](const Tensor& x) {
                   const Tensor y = x + w;
                   return twice({y, out({3})})[0] - y;
                 }),
                 w, next, {2, 12, 103}, {3, 22, 203}, "kernel scaled");
  expect_follows(compile([&](const Tensor& x) {
                   const Tensor kept = x * 1.f, before = w * 1.f, copy = w * 1.f;
                   twice({before, into(w)});
                   const Tensor after = w * 1.f;
                   twice({kept, into(w)});
                   const Tensor result = before * 1000.f + after + (w - kept * 2.f);
                   compile([](const Tensor& t) { return t * 1.f; }).into({w}, {copy});
                   return result;
                 }),
                 w, next, {1002, 10020, 100200}, {2004, 20040, 200400}, "kernel scaled");
}

TEST_F(Captured, KernelsInDerivativesSeeWhatWasThere) {
  const Tensor w = row({1, 10, 100}), x = row({1, 2, 3}), y = ctx_.empty({3});
  const TileFunction twice = scale_kernel();
  const auto made = [&](const Tensor& v) { return sum(v * twice({w, out({3})})[0]); };
  EXPECT_EQ(values(grad(made)(x)), (Floats{2, 20, 200}));
  const auto f = compile([&](const Tensor& t) { return grad(made)(t); });
  expect_follows(f, w, row({2, 20, 200}), {2, 20, 200}, {4, 40, 400}, "kernel scaled");
  expect_says([&] { value_and_grad([&](const Tensor& v) { return sum(twice({v, into(y)})[0]); })(x); },
              {"kernel scaled", "differentiated", "captured_test.cpp:"});
  expect_says(
      [&] {
        value_and_grad([&](const Tensor& v) {
          const Tensor before = v * w;
          twice({x, into(w)});  // what `before` will read
          return sum(before);
        })(x);
      },
      {"kernel scaled", "differentiated", "captured_test.cpp:"});
}

TEST_F(Captured, OutputsOfIntoAreWrittenAtEachCall) {
  const Tensor w = row({1, 10, 100}), next = row({2, 20, 200}), state = row({0, 0, 0});
  const auto plus = compile([](const Tensor& t, const Tensor& u) { return t + u; });
  const auto count = compile([&](const Tensor& x) {
    const Tensor before = state * 1.f;
    plus.into({state}, {state, x});
    return before + state;
  });
  const Tensor x = row({1, 2, 3});
  EXPECT_EQ(values(count(x)), (Floats{1, 2, 3}));
  EXPECT_EQ(values(count(x)), (Floats{3, 6, 9}));
  EXPECT_EQ(values(state), (Floats{2, 4, 6}));
  const Tensor sum = ctx_.empty({3});
  expect_follows(compile([&](const Tensor& t) {
                   plus.into({sum}, {w, t + w});
                   return sum * 1.f;
                 }),
                 w, next, {3, 22, 203}, {5, 42, 403}, "into() at captured_test.cpp:");
  expect_says(
      [&] {
        value_and_grad([&](const Tensor& v) {
          const Tensor y = v * state;
          plus.into({state}, {x, x});
          return tilewright::sum(y);
        })(x);
      },
      {"into()", "differentiated", "captured_test.cpp:"});
}

TEST_F(Captured, OperationsOnAnotherDeviceFollowTheTensor) {
  const Tensor w = row({1, 10, 100}).to("reference"), next = row({2, 20, 200}).to("reference");
  expect_follows(compile([&](const Tensor& x) { return x + (w * 2.f + w).to("cpu"); }), w, next, {4, 32, 303},
                 {7, 62, 603}, "mul on reference at captured_test.cpp:");
  const auto twice = compile([](const Tensor& t) { return t + t; });
  expect_follows(compile([&](const Tensor& x) { return x + twice(w).to("cpu"); }), w, next, {3, 22, 203},
                 {5, 42, 403}, "call on reference at captured_test.cpp:");
  expect_follows(compile([&](const Tensor& x) {
                   return x + grad([](const Tensor& t) { return sum(t * t); })(w).to("cpu");
                 }),
                 w, next, {3, 22, 203}, {5, 42, 403}, "grad on reference");
  // Values of the program itself may go there and come back, and results may stay there.
  const auto round = compile([&](const Tensor& x) {
    const Tensor there = (x * 3.f).to("reference") + w;
    return std::tuple{there.to("cpu") - x, there, x * 5.f};
  });
  for (int call = 0; call < 2; ++call) {
    const auto [back, there, last] = round(row({1, 2, 3}));
    EXPECT_EQ(values(back), (Floats{3, 14, 106}));
    EXPECT_EQ(values(there), (Floats{4, 16, 109}));
    EXPECT_EQ(there.device(), "reference");
    EXPECT_EQ(values(last), (Floats{5, 10, 15}));
  }
  const auto only = compile([&](const Tensor&) { return Tensor(w); });
  EXPECT_EQ(values(only(row({1}))), (Floats{1, 10, 100}));
}

}  // namespace
}  // namespace tilewright
