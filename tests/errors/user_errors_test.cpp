// What a user does wrong with tensors and kernels throws an Error that names the op, what it was given and
// the user's line; nothing crashes.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <optional>

#include "support/errors.h"

namespace tilewright {
namespace {

using test::expect_says;
using test::message_of;

tile::Kernel copy_kernel(Index columns) {
  tile::Builder k("copy");
  auto x = k.view("x", DType::f32, {8, columns});
  auto y = k.view("y", DType::f32, {8, columns});
  tile::Value row = k.program_id(0);
  k.store(y, {row, 0}, k.load(x, {row, 0}, {.shape = {columns}}));
  return k.finish({{{8, 1}}});
}

class UserErrors : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = ""}};
  const std::string here_ = "user_errors_test.cpp:";
};

TEST_P(UserErrors, ShapesThatDoNotMeet) {
  const Tensor a = ctx_.zeros({4, 8}), b = ctx_.zeros({7, 3});
  expect_says([&] { matmul(a, b); }, {"matmul", "[4,8]", "[7,3]", here_});
  expect_says([&] { add(a, b); }, {"[4,8]", "[7,3]", here_});
  expect_says([&] { concat({a, b}, 0); }, {"concat", "[4,8]", "[7,3]", here_});
  expect_says([&] { reshape(a, {5, 5}); }, {"reshape", "[4,8]", "[5,5]", here_});
  expect_says([&] { broadcast_to(a, {4, 9}); }, {"[4,8]", "[4,9]", here_});
  expect_says([&] { ctx_.from(std::vector<float>{1, 2, 3}, {2}); }, {"3 values", "[2]", here_});
  expect_says([&] { a.item(); }, {"32 elements", here_});
}

TEST_P(UserErrors, NumbersThatADoubleDoesNotHold) {
  const std::int64_t odd = 9007199254740993, least = std::numeric_limits<std::int64_t>::min();
  const Tensor x = ctx_.from(std::vector{odd}, {1});
  EXPECT_EQ(x.item<std::int64_t>(), odd);
  expect_says([&] { x.item(); }, {"item", "9007199254740993", "item<std::int64_t>()", here_});
  EXPECT_EQ(ctx_.from(std::vector{least}, {}).item(), -0x1p63);
  EXPECT_EQ(ctx_.from(std::vector{odd - 1}, {}).item(), 9007199254740992.0);
  EXPECT_TRUE(ctx_.from(std::vector{2.5f}, {1}).item<float>() == 2.5f);
}

TEST_P(UserErrors, OutputsThatAreOneTensor) {
  Tensor y = ctx_.empty({3}), z = ctx_.empty({3}), w = ctx_.ones({3});
  const Tensor x = ctx_.ones({3});
  const auto both = compile([&](const Tensor& t) { return std::pair{t + w, t * 3.0}; });
  expect_says([&] { both.into({y, y}, {x}); }, {"outputs 0 and 1 are the same tensor", here_});
  both.into({y, z}, {x});
  EXPECT_EQ(z.to_vector<float>()[2], 3);
}

TEST_P(UserErrors, TypesThatDoNotFit) {
  const Tensor x = ctx_.zeros({3}), i = ctx_.zeros({3}, DType::i32);
  expect_says([&] { bit_and(x, x); }, {"bit_and", "f32", here_});
  expect_says([&] { shl(x, i); }, {"shl", "f32", here_});
  expect_says([&] { take(x, x, 0); }, {"take", "f32", here_});
  expect_says([&] { where(x, x, x); }, {"where", "f32", here_});
  expect_says([&] { ctx_.rand({2}, DType::i32); }, {"rand", "i32", here_});
}

TEST_P(UserErrors, OperatorsOfOneTensor) {
  const Tensor x = ctx_.ones({4}, DType::f16), nothing;
  const auto flip = [](const Tensor& t) { return ~t; };
  const auto bits = [](const Tensor& t) { return t & 255; };
  expect_says([&] { flip(x); }, {"bit_not", "f16[4]", here_});
  expect_says([&] { compile(flip)(x); }, {"bit_not", "f16[4]", here_});
  expect_says([&] { bits(x); }, {"bit_and", "f16[4]", here_});
  expect_says([&] { compile(bits)(x); }, {"bit_and", "f16[4]", here_});
  expect_says([&] { -nothing; }, {"neg", here_});
}

TEST_P(UserErrors, ReadsOfTensorsWithoutAValue) {
  const Tensor never;
  const std::string why = "never given a value, or was moved from";
  expect_says([&] { never.item(); }, {"item", why, here_});
  expect_says([&] { never.to_vector<float>(); }, {"to_vector", why, here_});
  expect_says([&] { never.to("reference"); }, {"to: ", why, here_});
  expect_says([&] { (void)never.shape(); }, {"shape: ", why, here_});
  expect_says([&] { (void)never.dtype(); }, {"dtype: ", why, here_});
  expect_says([&] { (void)never.device(); }, {"device: ", why, here_});
  expect_says([&] { (void)never.size(); }, {"size: ", why, here_});
  expect_says([&] { (void)never.rank(); }, {"rank: ", why, here_});
  Tensor given = ctx_.ones({2});
  const Tensor taken = std::move(given);
  // NOLINTNEXTLINE(bugprone-use-after-move): what is said of it
  expect_says([&] { given.to_vector<float>(); }, {"to_vector: ", why, here_});
  expect_says([&] { given + taken; }, {"add: ", why, here_});
}

TEST_P(UserErrors, ConditionsThatAreNone) {
  const Tensor x = ctx_.ones({3});
  expect_says([&] { where(x, x, x); }, {"where: the condition is f32[3], not bool", here_});
}

TEST_P(UserErrors, WhatIsNotDifferentiated) {
  const Tensor x = ctx_.ones({3}), i = ctx_.ones({3}, DType::i64);
  const auto many = value_and_grad([](const Tensor& t) { return t * 2.0; });
  expect_says([&] { many(x); }, {"value_and_grad", "first result is f32[3]", "sum", here_});
  expect_says([&] { grad([](const Tensor& t) { return t; })(x); },
              {"grad: the function's first result", here_});
  expect_says([&] { many(i); }, {"value_and_grad", "argument 0 is i64[3]", "cast", here_});
  const auto reads = value_and_grad([](const Tensor& t) {
    const Tensor s = sum(t);
    return s * s.item();
  });
  expect_says([&] { reads(x); }, {"item() of f32[]", "differentiated", "return the tensor", here_});
}

TEST_P(UserErrors, SeedsSetInARecording) {
  const Tensor x = ctx_.ones({3});
  const auto seeded = [&](const Tensor& t) {
    ctx_.set_seed(3);
    return t + ctx_.rand({3});
  };
  seeded(x);
  expect_says([&] { compile(seeded)(x); }, {"set_seed", "before the call", here_});
}

TEST_P(UserErrors, CountsBelowZero) {
  expect_says([&] { one_hot(ctx_.ones({3}, DType::i64), -2); }, {"one_hot", "-2 classes", here_});
}

TEST_P(UserErrors, SeedsOfFloats) {
  const Tensor x = ctx_.ones({3});
  expect_says([&] { dropout(x, sum(x), 0.5); }, {"dropout", "i64[]", "f32[]", here_});
}

TEST_P(UserErrors, AxesOutOfRange) {
  const Tensor x = ctx_.zeros({2, 3});
  expect_says([&] { sum(x, {2}); }, {"sum", "2", "[2,3]", here_});
  expect_says([&] { sum(x, {-3}); }, {"sum", "-3", here_});
  expect_says([&] { sum(x, {0, 0}); }, {"sum", "named twice", here_});
  expect_says([&] { softmax(x, 5); }, {"5", here_});
  expect_says([&] { transpose(x, {0, 2}); }, {"transpose", here_});
  expect_says([&] { select(x, 1, 3); }, {"3", here_});
  expect_says([&] { unsqueeze(x, 4); }, {"4", here_});
  expect_says([&] { squeeze(x, 0); }, {here_});
}

TEST_P(UserErrors, MemoryThatThereIsNot) {
  const Index huge = Index{1} << 46;
  expect_says([&] { ctx_.empty({huge}); }, {"f32[70368744177664]", GetParam(), "memory", here_});
  expect_says([&] { ctx_.zeros({huge}); }, {"f32[70368744177664]", GetParam(), "memory", here_});
  expect_says([&] { ctx_.empty({huge, huge}); },
              {"[70368744177664,70368744177664]", "too many elements", here_});
  const Tensor row = ctx_.ones({1 << 20, 1});
  expect_says([&] { row + ctx_.ones({1, 1 << 24}); }, {"f32[1048576,16777216]", "memory", here_});
  EXPECT_EQ(ctx_.ones({2}).to_vector<float>(), (std::vector<float>{1, 1})) << "the context goes on";
}

TEST_P(UserErrors, ATensorOfAContextThatIsGone) {
  std::optional<Context> gone(std::in_place, ContextOptions{.device = GetParam(), .cache_directory = ""});
  const Tensor x = gone->ones({3});
  const auto twice = compile([](const Tensor& t) { return t + t; });
  twice(x);
  gone.reset();
  expect_says([&] { x + x; }, {"Context no longer exists"});
  expect_says([&] { twice(x); }, {"Context no longer exists", here_});
  expect_says([&] { x.to("reference"); }, {"Context no longer exists", here_});
  expect_says([&] { x.to_vector<float>(); }, {"Context no longer exists", here_});
  expect_says([&] { x.item(); }, {here_});
  EXPECT_EQ(x.shape(), Shape({3})) << "what is known without the device stays";
}

TEST_P(UserErrors, TensorsWithoutAValue) {
  const Tensor none;
  expect_says([&] { none.shape(); }, {"this tensor was never given a value"});
  const std::string unset = "never given a value";
  expect_says([&] { none + none; }, {"add", unset, here_});
  const Tensor x = ctx_.ones({2});
  expect_says([&] { x + none; }, {"add: operand 1 ", unset, here_});
  expect_says([&] { none* x; }, {"mul", unset, here_});
  expect_says([&] { where(x > 0.f, x, none); }, {"where", unset, here_});
  expect_says([&] { exp(none); }, {"exp", unset, here_});
  const auto same = compile([](const Tensor& t) { return t; });
  expect_says([&] { same(none); }, {"argument 0 ", unset, "moved from", here_});
  expect_says([&] { same.into({none}, {x}); }, {"into: output 0 ", unset, "moved from", here_});
  const auto slope = value_and_grad([](const Tensor& a, const Tensor& b) { return sum(a * b); });
  expect_says([&] { slope(x, none); }, {"value_and_grad: argument 1 ", unset, here_});
  const auto of_grad = grad([](const Tensor& a, const Tensor& b) { return sum(a * b); });
  expect_says([&] { of_grad(x, none); }, {"grad: argument 1 ", unset, here_});
  const auto nothing = [](const Tensor&) { return Tensor(); };
  expect_says([&] { compile(nothing)(x); }, {"compile: result 0 ", unset, here_});
  TileFunction copy(copy_kernel(16));
  expect_says([&] { copy({ctx_.ones({8, 16}), into(none)}); }, {"copy", unset, here_});
  expect_says([&] { copy({none, into(ctx_.ones({8, 16}))}); }, {"copy: view x ", unset, here_});
}

TEST_P(UserErrors, NumbersThatATypeDoesNotHold) {
  expect_says([&] { ctx_.arange(300, DType::u8); }, {"arange", "u8 does not hold 299", here_});
  expect_says([&] { ctx_.randint({3}, 1000, DType::i8); }, {"randint", "i8 does not hold 999", here_});
  expect_says([&] { ctx_.arange(3, DType::boolean); }, {"bool does not hold 2", here_});
  EXPECT_EQ(ctx_.arange(128, DType::i8).to_vector<float>()[127], 127);
  EXPECT_EQ(ctx_.arange(256, DType::u8).to_vector<float>()[255], 255);
  expect_says([&] { one_hot(ctx_.ones({2}), 3); }, {"one_hot", "integers", "f32[2]", here_});
  expect_says([&] { Context({.device = GetParam(), .threads = -2}); }, {"-2 threads", here_});
  expect_says([&] { Context({.device = GetParam(), .threads = 100'000}); },
              {"100000 threads", "give 1 to 4096", here_});
}

TEST_P(UserErrors, CallsThatDoNotFitTheFunction) {
  const Tensor x = ctx_.ones({2});
  const auto twice = compile([](const Tensor& t) { return t + t; });
  expect_says([&] { twice(std::vector<Tensor>{x, x}); }, {"function of 1 tensors", "called with 2", here_});
  expect_says([&] { twice(std::vector<Tensor>{}); }, {"function of 1 tensors", "called with 0", here_});
  const auto all = compile([](const std::vector<Tensor>& list) { return list; });
  expect_says([&] { all({}); }, {"at least one tensor", here_});
  const auto slope = value_and_grad([](const Tensor& t) { return exp(t); });
  expect_says([&] { slope(x); }, {"scalar", "f32[2]", here_});
  expect_says([&] { slope(ctx_.ones({}, DType::i32)); }, {"i32", here_});
  expect_says([&] { value_and_grad([](const Tensor& t) { return sum(t); }, {1})(x); }, {"argument 1", here_});
  expect_says([&] { stack({x, ctx_.ones({3})}, 0); }, {"stack", "one shape", "f32[3] beside f32[2]", here_});
  expect_says([&] { einsum("ij,jk,kl->il", ctx_.ones({2, 2}), ctx_.ones({2, 2})); },
              {"of 3 operands", "2 are given", here_});
}

TEST_P(UserErrors, AKernelOnTensorsThatAreTooSmall) {
  TileFunction copy(copy_kernel(16));
  const Tensor x = ctx_.ones({8, 16}), small = ctx_.ones({7, 16}), wrong = ctx_.ones({8, 16}, DType::f16);
  EXPECT_EQ(copy({x, out({8, 16})}).at(0).to_vector<float>(), std::vector<float>(128, 1.f));
  expect_says([&] { copy({small, out({8, 16})}); }, {"copy", "view x", "112", here_});
  expect_says([&] { copy({x, out({8, 15})}); }, {"copy", "view y", "120", here_});
  expect_says([&] { copy({wrong, out({8, 16})}); }, {"view x", "f32", "f16", here_});
  expect_says([&] { copy({x}); }, {"copy", "1 views given", "2", here_});
  expect_says([&] { copy({x, x}); }, {"view y", "written", here_});
  expect_says([&] { copy({x, out({8, 16})}, {1.0}); }, {"1 scalars given", here_});
}

INSTANTIATE_TEST_SUITE_P(Devices, UserErrors, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

TEST(Devices, UnknownOnesAreNamedWithTheKnown) {
  for (const char* name :
       {"tpu", "", "cuda:", "cuda:x", "cuda:-1", "cpu:0:1", "CPU", "cpu:3", "cpu:0", "reference:1"})
    EXPECT_NE(message_of([&] {
                Context({.device = name});
              }).find("unknown device '" + std::string(name) + "'; devices are cpu, cuda:N and reference"),
              std::string::npos)
        << name;
  Context ctx({.device = "reference", .cache_directory = ""});
  expect_says([&] { ctx.ones({1}).to("npu"); }, {"unknown device 'npu'", "user_errors_test.cpp:"});
}

TEST(Devices, ABackendThatIsNotThereIsNamedWithItsFile) {
  const std::string message =
      message_of([] { Context({.device = "cpu", .library_directory = "/nonexistent"}); });
  EXPECT_NE(message.find("/nonexistent/libtw_cpu.so"), std::string::npos) << message;
}

TEST(Kernels, ThatLeaveTheirViewAreRefusedWhenTheyAreBuilt) {
  const std::string message = message_of([] {
    tile::Builder k("too_far");
    auto x = k.view("x", DType::f32, {8, 16});
    auto y = k.view("y", DType::f32, {8, 16});
    k.store(y, {k.program_id(0), 0}, k.load(x, {k.program_id(0), 1}, {.shape = {16}}));
    (void)k.finish({{{8, 1}}});
  });
  EXPECT_NE(message.find("user_errors_test.cpp:"), std::string::npos) << message;
  EXPECT_NE(message.find("load"), std::string::npos) << message;
}

}  // namespace
}  // namespace tilewright
