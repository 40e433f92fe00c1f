// Blocks at starts that are data: values, gradients, and what a call writes of a cache that it is given.
#include <tilewright/tilewright.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "support/errors.h"
#include "support/kernel_folder.h"
#include "tensor/storage.h"

namespace tilewright {
namespace {

using Floats = std::vector<float>;

class UpdateSlice : public ::testing::TestWithParam<const char*> {
 protected:
  Context ctx_{{.device = GetParam(), .cache_directory = test::kernel_folder()}};
  Tensor at(Index position) { return ctx_.from(std::vector<Index>{position}, Shape{}); }
};

Floats floats(const Tensor& t) { return t.to_vector<float>(); }

TEST_P(UpdateSlice, StartsAreBroughtInside) {
  Context unchecked({.device = GetParam(), .cache_directory = test::kernel_folder(), .check = false});
  const Tensor x = unchecked.zeros({5}), v = unchecked.from(Floats{1, 2}, {2});
  const std::pair<Index, Floats> cases[] = {{0, {1, 2, 0, 0, 0}},
                                            {2, {0, 0, 1, 2, 0}},
                                            {4, {0, 0, 0, 1, 2}},
                                            {99, {0, 0, 0, 1, 2}},
                                            {-7, {1, 2, 0, 0, 0}}};
  for (const auto& [start, expected] : cases) {
    const Tensor s = unchecked.from(std::vector<Index>{start}, Shape{1});
    const std::vector<Arg> listed = {start}, tensors = {reshape(s, Shape{})};
    EXPECT_EQ(floats(update_slice(x, v, s)), expected) << start;
    EXPECT_EQ(floats(update_slice(x, v, listed)), expected) << start;
    EXPECT_EQ(floats(update_slice(x, v, tensors)), expected) << start;
    EXPECT_EQ(floats(dynamic_slice(update_slice(x, v, s), s, {2})), (Floats{1, 2})) << start;
  }
}

TEST_P(UpdateSlice, OutsideIsAnErrorWhereIndicesAreChecked) {
  Context checked({.device = GetParam(), .cache_directory = test::kernel_folder(), .check = true});
  const Tensor x = checked.zeros({3, 5}), v = checked.ones({3, 2});
  const Tensor start = checked.from(std::vector<Index>{0, 4}, Shape{2});
  const std::vector<std::string> says = {"start 4", "update_slice_test.cpp:"};
  test::expect_says([&] { update_slice(x, v, start); }, {"update_slice", says[0], says[1]});
  test::expect_says([&] { dynamic_slice(x, start, {3, 2}); }, {"dynamic_slice", says[0], says[1]});
  test::expect_says([&] { update_slice(x, v, {0, 4}); }, {"update_slice", says[0], says[1]});
  const auto f =
      compile([](const Tensor& c, const Tensor& n, const Tensor& p) { return update_slice(c, n, {0, p}); });
  const auto scalar = [&](Index i) { return checked.from(std::vector<Index>{i}, Shape{}); };
  EXPECT_EQ(sum(f(x, v, scalar(3))).item(), 6);
  test::expect_says([&] { f(x, v, scalar(4)); }, {"update_slice", says[0], says[1]});
  const std::string wanted = " of axis 1 is out of range: it must be in [0, 4)";
  const auto below = [&] { update_slice(x, v, {0, scalar(-3)}); };
  test::expect_says(below, {"update_slice: start -3" + wanted + "; negative", says[1]});
  test::expect_says([&] { update_slice(x, v, start); }, {"update_slice: start 4" + wanted, says[1]});
  test::expect_says([&] { f(x, v, scalar(4)); }, {"update_slice: start 4" + wanted, says[1]});
}

TEST_P(UpdateSlice, MistakesAreNamed) {
  const Tensor x = ctx_.zeros({3, 5}), v = ctx_.ones({3, 6});
  test::expect_says([&] { update_slice(x, v, {0, 0}); }, {"update_slice", "[3,6] is no part of [3,5]"});
  test::expect_says([&] { update_slice(x, x, {0}); }, {"update_slice: 1 starts are given for the 2 axes"});
  test::expect_says([&] { update_slice(x, x, {0, 1.5}); }, {"update_slice: the start of axis 1"});
  test::expect_says([&] { update_slice(x, x, ctx_.ones({2})); }, {"update_slice", "must be integers [2]"});
  test::expect_says([&] { dynamic_slice(x, {0, 0}, {3}); }, {"dynamic_slice", "[3] is no part of [3,5]"});
}

// Two updates of one tensor each keep what lies around their block, not what the other wrote.
TEST_P(UpdateSlice, TwoOfOneTensorDoNotMeet) {
  const Tensor u = ctx_.from(Floats{1, 2}, {2}), w = ctx_.from(Floats{5, 6}, {2}), start = at(0), end = at(3),
               x = ctx_.from(Floats{10, 20, 30, 40, 50}, {5});
  const std::pair<std::function<Tensor(const Tensor&)>, Floats> cases[] = {
      {[](const Tensor& t) { return zeros_like(t); }, {0, 0, 0, 0, 0}},
      {[](const Tensor& t) { return t * 2.f; }, {20, 40, 60, 80, 100}},
      {[](const Tensor& t) { return flip(t, {0}); }, {50, 40, 30, 20, 10}},
      {[](const Tensor& t) { return cumsum(t, 0); }, {10, 30, 60, 100, 150}},
      {[](const Tensor& t) { return t; }, {10, 20, 30, 40, 50}}};
  for (const auto& [made, z] : cases) {
    const auto f = compile([&made = made](const std::vector<Tensor>& a) {
      const Tensor whole = made(a[0]), p = update_slice(whole, a[1], {a[3]});
      const Tensor q = update_slice(whole, a[2] + max(p), {a[4]});
      return std::vector<Tensor>{p * 3.f, q * 2.f};
    });
    const Floats p{1, 2, z[2], z[3], z[4]};
    const float most = *std::max_element(p.begin(), p.end());
    Floats expected_p, expected_q;
    for (float v : p) expected_p.push_back(3 * v);
    for (float v : {z[0], z[1], z[2], 5 + most, 6 + most}) expected_q.push_back(2 * v);
    const std::vector<Tensor> got = f({x, u, w, start, end});
    EXPECT_EQ(floats(got.at(0)), expected_p);
    EXPECT_EQ(floats(got.at(1)), expected_q);
  }
}

TEST_P(UpdateSlice, GradientsGoAroundTheBlockAndIntoIt) {
  const auto loss = [](const Tensor& x, const Tensor& v, const Tensor& p) {
    const Tensor y = update_slice(x * 2.f, v, {1, p});
    return sum(y * y) + sum(dynamic_slice(x, {p, 0}, {1, 4}) * 3.f);
  };
  const Tensor x = ctx_.from(Floats{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {3, 4}), v = ctx_.full({1, 2}, 5);
  const auto g = compile(value_and_grad<0, 1>(loss))(x, v, at(2)).second;
  EXPECT_EQ(floats(std::get<0>(g)), (Floats{8, 16, 24, 32, 40, 48, 0, 0, 75, 83, 91, 99}));
  EXPECT_EQ(floats(std::get<1>(g)), (Floats{10, 10}));
}

// A step of a decoder: the new key and value are placed, and the query attends to all of the cache.
constexpr Index kB = 2, kH = 3, kT = 64, kD = 16;
std::vector<Tensor> decode(const std::vector<Tensor>& in) {
  const Tensor &keys = in[0], &values = in[1], &q = in[2], &k = in[3], &v = in[4], &position = in[5];
  const Tensor new_keys = update_slice(keys, k, {0, 0, position, 0});
  const Tensor new_values = update_slice(values, v * 0.5f, {0, 0, position, 0});
  const Tensor scores = matmul(q, swap_axes(new_keys, -1, -2));
  return {new_keys, new_values, matmul(softmax(scores), new_values)};
}

// Bytes that the kernels write which place blocks, and those of copies.
double bytes_placed(const SpecialisationReport& r) {
  double bytes = r.copied_bytes;
  for (const KernelReport& k : r.kernels)
    if (k.ops.find("update_slice") != std::string::npos) bytes += k.cost.bytes_written;
  return bytes;
}

TEST_P(UpdateSlice, ADecodingStepWritesOneRowOfItsCache) {
  const auto plain = compile(detail::ListFunction(decode));
  const CompiledList giving(decode, {.donate = {0, 1}});
  const Shape cache{kB, kH, kT, kD}, row{kB, kH, 1, kD};
  Tensor keys = ctx_.randn(cache), values = ctx_.randn(cache);
  Tensor own_keys = keys + 0.f, own_values = values + 0.f;
  const void *keys_at = detail::storage_address(own_keys), *values_at = detail::storage_address(own_values);
  for (Index t = 3; t < 6; ++t) {
    const Tensor q = ctx_.randn(row), k = ctx_.randn(row), v = ctx_.randn(row);
    const std::vector<Tensor> apart = plain({keys, values, q, k, v, at(t)});
    const std::vector<Tensor> in_place = giving({own_keys, own_values, q, k, v, at(t)});
    keys = apart[0], values = apart[1], own_keys = in_place[0], own_values = in_place[1];
    ASSERT_EQ(floats(own_keys), floats(keys));
    ASSERT_EQ(floats(own_values), floats(values));
    ASSERT_EQ(floats(in_place[2]), floats(apart[2]));
  }
  EXPECT_EQ(detail::storage_address(own_keys), keys_at);
  EXPECT_EQ(detail::storage_address(own_values), values_at);
  const double row_bytes = 4 * kB * kH * kD, cache_bytes = kT * row_bytes;
  const SpecialisationReport r = giving.report().front();
  EXPECT_EQ(r.in_place, (std::vector<std::string>{"donated: argument 0 becomes output 0",
                                                  "donated: argument 1 becomes output 1"}));
  EXPECT_EQ(bytes_placed(r), 2 * row_bytes) << "a row each, not the cache";
  EXPECT_EQ(r.copied_bytes, 0);
  EXPECT_EQ(bytes_placed(plain.report().front()), 2 * row_bytes + 2 * 2 * cache_bytes)
      << "each cache is read and written as a whole around its row";
  EXPECT_NE(plain.explain().find("copies beside the kernels"), std::string::npos) << plain.explain();
  EXPECT_EQ(giving.explain().find("copies beside the kernels"), std::string::npos) << giving.explain();
}

TEST_P(UpdateSlice, IntoACapturedCacheWritesOneRowToo) {
  const Tensor cache = ctx_.zeros({4, 8}), row = ctx_.ones({1, 8});
  const auto step = compile([&](const Tensor& v, const Tensor& p) { return update_slice(cache, v, {p, 0}); });
  for (Index t : {1, 3}) step.into({cache}, {row, at(t)});
  EXPECT_EQ(floats(sum(cache, {1})), (Floats{0, 8, 0, 8}));
  const SpecialisationReport r = step.report().front();
  EXPECT_EQ(r.in_place.front(), "into: output 0 is captured by the function: written in place");
  EXPECT_EQ(bytes_placed(r), 8 * 4);
}

TEST_P(UpdateSlice, WhatReadsTheOldCacheComesBefore) {
  // The sum is computed of the old cache, though it is asked for behind the update.
  const auto f = [](const Tensor& c, const Tensor& v, const Tensor& p) {
    const Tensor updated = update_slice(c, v, {p, 0});
    return std::pair{updated, matmul(c, swap_axes(updated, 0, 1))};
  };
  const auto g = [](const Tensor& c, const Tensor& v, const Tensor& p) {
    return std::pair{update_slice(c, v, {p, 0}), sum(c * c, {1})};
  };
  const Tensor row = ctx_.randn({1, 8});
  const Tensor cache = ctx_.randn({6, 8});
  const auto donated = compile(f, {.donate = {0}});
  const auto expected = compile(f)(cache, row, at(2)), got = donated(cache + 0.f, row, at(2));
  EXPECT_EQ(floats(got.first), floats(expected.first));
  EXPECT_EQ(floats(got.second), floats(expected.second)) << "it needs both: the old cache stays";
  EXPECT_GT(donated.report().front().copied_bytes, 0);
  const auto before = compile(g, {.donate = {0}});
  const auto expected_before = compile(g)(cache, row, at(2)), got_before = before(cache + 0.f, row, at(2));
  EXPECT_EQ(floats(got_before.first), floats(expected_before.first));
  EXPECT_EQ(floats(got_before.second), floats(expected_before.second));
  EXPECT_EQ(before.report().front().copied_bytes, 0);
}

TEST_P(UpdateSlice, WhatIsComputedIsNotCopiedAround) {
  // Its producer writes where the block is placed, and both blocks are placed in one buffer.
  const auto f = compile([](const Tensor& x, const Tensor& v, const Tensor& p) {
    const Tensor once = update_slice(matmul(x, x), v, {p, 0});
    return update_slice(once, v * 2.f, {0, p});
  });
  const Tensor x = ctx_.randn({8, 8}), v = ctx_.ones({2, 2});
  Floats expected = floats(matmul(x, x));
  const auto place = [&](Index row, Index column, float value) {
    for (Index i : {0, 1})
      for (Index k : {0, 1}) expected[static_cast<std::size_t>((row + i) * 8 + column + k)] = value;
  };
  place(3, 0, 1);
  place(0, 3, 2);
  const Floats got = floats(f(x, v, at(3)));
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-5) << i;
  EXPECT_EQ(f.report().front().copied_bytes, 0) << f.explain();
  EXPECT_EQ(f.report().front().arena_bytes, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, UpdateSlice, ::testing::Values("reference", "cpu"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace tilewright
