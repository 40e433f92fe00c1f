// Loops that are cut where their masks begin and end to matter give what the one loop gives, and most of
// their rounds are without a mask.
#include "passes/masks/loop_peeling.h"

#include "backends/reference/interpreter.h"

#include <tilewright/tile/builder.h>
#include <tilewright/tile/verify.h>

#include <gtest/gtest.h>

#include <functional>
#include <random>

namespace tilewright::emulation {
namespace {

using tile::Builder;
using tile::Kernel;
using tile::Op;
using tile::Operand;
using tile::OpKind;
using tile::Prim;

constexpr Index kRows = 70, kKeys = 150, kBlockRows = 16, kBlockKeys = 8, kDepth = 4;

// Scores of row and key positions, and of a number that the kernel loads.
using Mask = std::function<tile::Value(Builder& k, tile::Value scores, tile::Value row, tile::Value key,
                                       tile::Value loaded)>;

struct Setup {
  Mask mask;
  Index lower = 0, upper = kKeys;
};

tile::Value least(Builder& k) { return k.literal(DType::f32, -INFINITY, {kBlockRows, kBlockKeys}); }

// The largest score of each row, and the scores' products with the keys, zero where masked.
Kernel kernel_of(const Setup& setup) {
  Builder k("masked");
  const auto x = k.view("x", DType::f32, {kRows, kDepth}, {.align_bytes = 4}),
             y = k.view("y", DType::f32, {kKeys, kDepth}, {.align_bytes = 4});
  const auto length = k.view("length", DType::i64, {1}, {.align_bytes = 8});
  const auto most = k.view("most", DType::f32, {kRows}, {.align_bytes = 4}),
             sums = k.view("sums", DType::f32, {kRows, kDepth}, {.align_bytes = 4});
  const tile::Value row = k.program_id(0) * kBlockRows;
  const tile::Value loaded = k.load(length, {Index{0}}, {});
  const tile::Value rows = k.load(x, {row, 0}, {.shape = {kBlockRows, kDepth}, .fill = 0.0});
  const std::vector<tile::Value> start{k.literal(DType::f32, -INFINITY, {kBlockRows, 1}),
                                       k.literal(DType::f32, 0, {kBlockRows, kDepth})};
  const auto last = k.loop(
      setup.lower, setup.upper, kBlockKeys, start,
      [&](tile::Value i, const std::vector<tile::Value>& carried) {
        const tile::Value keys = k.load(y, {i, 0}, {.shape = {kBlockKeys, kDepth}, .fill = 0.0});
        const tile::Value none = k.literal(DType::f32, 0, {kBlockRows, kBlockKeys});
        const tile::Value scores = k.dot(rows, k.transpose(keys), none);
        const tile::Value r = k.broadcast(k.expand(row + k.arange(kBlockRows), 1), {kBlockRows, kBlockKeys}),
                          c = k.broadcast(k.expand(i + k.arange(kBlockKeys), 0), {kBlockRows, kBlockKeys});
        const tile::Value masked = setup.mask(k, scores, r, c, loaded);
        const tile::Value highest = max(carried[0], k.expand(k.reduce(tile::Monoid::max, masked, 1), 1));
        const tile::Value kept = where(masked == -INFINITY, 0.0, masked);
        return std::vector{highest, k.dot(kept, keys, carried[1])};
      });
  k.store(most, {row}, k.reshape(last[0], {kBlockRows}), {.bounded = true});
  k.store(sums, {row, 0}, last[1], {.bounded = true});
  return k.finish({{{kRows, kBlockRows}}});
}

std::vector<float> result_of(const Kernel& kernel, std::int64_t loaded) {
  std::mt19937 random(7);
  // Sums of small integers are exact in any order.
  std::uniform_int_distribution<int> small(-4, 4);
  std::vector<float> x(kRows * kDepth), y(kKeys * kDepth), out(kRows * (1 + kDepth), NAN);
  for (auto* all : {&x, &y})
    for (float& v : *all) v = static_cast<float>(small(random));
  const auto bytes = [](Index elements) { return elements * Index{4}; };
  const std::vector<reference::ViewBinding> views{{x.data(), bytes(kRows * kDepth)},
                                                  {y.data(), bytes(kKeys * kDepth)},
                                                  {&loaded, 8},
                                                  {out.data(), bytes(kRows), 0, false},
                                                  {out.data() + kRows, bytes(kRows * kDepth), 0, false}};
  const Status done = reference::run(kernel, views, {}, {.checked = true});
  EXPECT_TRUE(done) << (done ? "" : done.error().message);
  return out;
}

std::vector<const Op*> loops_of(const Kernel& kernel) {
  std::vector<const Op*> loops;
  for (const Op& op : kernel.body.ops)
    if (op.kind == OpKind::loop) loops.push_back(&op);
  return loops;
}

// Selects by comparisons of integers: the masks.
int masks_in(const Kernel& kernel, const Op& loop) {
  int count = 0;
  for (const Op& op : loop.blocks[0].ops)
    count +=
        op.kind == OpKind::apply && op.prim == Prim::le && kernel.type(op.operands[0]).dtype == DType::i64;
  return count;
}

// Checks that there are so many loops, exactly one of them without masks.
void check(const Setup& setup, std::size_t loops, const std::vector<std::int64_t>& lengths = {40}) {
  const Kernel one = kernel_of(setup), cut = passes::peel_masked_loops(one);
  EXPECT_EQ(tile::verify(cut).value_or(""), "");
  const auto all = loops_of(cut);
  EXPECT_EQ(all.size(), loops);
  int without = 0;
  for (const Op* loop : all) without += masks_in(cut, *loop) == 0;
  EXPECT_EQ(without, loops > 1 ? 1 : 0);
  for (std::int64_t length : lengths) {
    const std::vector<float> want = result_of(one, length), got = result_of(cut, length);
    for (std::size_t i = 0; i < want.size(); ++i)
      ASSERT_EQ(std::bit_cast<std::uint32_t>(got[i]), std::bit_cast<std::uint32_t>(want[i]))
          << "element " << i << ", length " << length;
  }
}

TEST(LoopPeeling, CausalMasksWithAnOffset) {
  for (Index offset : {-200, -90, -17, -1, 0, 1, 5, 8, 64, 79, 80, 81, 200})
    for (Index lower : {Index{0}, Index{3}}) {
      SCOPED_TRACE(offset);
      check({[=](Builder& k, tile::Value s, tile::Value row, tile::Value key, tile::Value) {
               return where(key <= row + offset, s, least(k));
             },
             lower},
            offset <= -90 ? 1 : 2);  // no program has a block that all its rows see
    }
}

// Blocks before and after are rounds of one loop.
TEST(LoopPeeling, WindowsHaveBlocksBeforeAndAfter) {
  for (Index width : {1, 7, 23, 24, 40, 100})
    for (Index upper : {kKeys, Index{77}}) {
      SCOPED_TRACE(width);
      check({[=](Builder& k, tile::Value s, tile::Value row, tile::Value key, tile::Value) {
               return where((key <= row) & (row <= key + width), s, least(k));
             },
             0, upper},
            2);
    }
}

// Masks of a difference of two positions, as the passes write it.
TEST(LoopPeeling, DifferencesOfPositionsAreSeenThrough) {
  for (Index width : {1, 24, 100})
    check({[=](Builder& k, tile::Value s, tile::Value row, tile::Value key, tile::Value) {
            const tile::Value apart = row + key * Index{-1};
            return where((apart * Index{-1} <= Index{0}) & (apart <= width), s, least(k));
          }},
          2);
}

TEST(LoopPeeling, NumbersThatAreLoaded) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  check({[](Builder& k, tile::Value s, tile::Value, tile::Value key, tile::Value loaded) {
          return where(key <= k.broadcast(loaded, {kBlockRows, kBlockKeys}), s, least(k));
        }},
        2, {-kMost, -5, 0, 7, 8, 63, 64, 65, 149, 150, 1000, kMost});
}

TEST(LoopPeeling, WhatIsMaskedByTheOppositeIsKeptElsewhere) {
  for (Index offset : {-3, 0, 30}) {
    check({[=](Builder& k, tile::Value s, tile::Value row, tile::Value key, tile::Value) {
            return where(row + offset <= key, least(k), s);
          }},
          2);
    check({[=](Builder& k, tile::Value s, tile::Value row, tile::Value key, tile::Value) {
            return where(~((row <= key + offset) | (row <= key - 40)), s, least(k));
          }},
          2);
  }
}

TEST(LoopPeeling, TheLastBlockIsRagged) {
  check({[](Builder& k, tile::Value s, tile::Value, tile::Value key, tile::Value) {
          return where(key <= k.literal_int(DType::i64, kKeys - 1, {kBlockRows, kBlockKeys}), s, least(k));
        }},
        2);
}

// Masks of no interval, of numbers that differ within a tile, and loops of few rounds.
TEST(LoopPeeling, OtherLoopsStayAsTheyAre) {
  check({[](Builder& k, tile::Value s, tile::Value row, tile::Value key, tile::Value) {
          return where((key <= row) | (row + 30 <= key), s, least(k));
        }},
        1);
  check({[](Builder& k, tile::Value s, tile::Value row, tile::Value key, tile::Value) {
          return where(key * key <= row, s, least(k));
        }},
        1);
  check({[](Builder& k, tile::Value s, tile::Value row, tile::Value key, tile::Value) {
           return where(key <= row, s, least(k));
         },
         0, 2 * kBlockKeys},
        1);
}

}  // namespace
}  // namespace tilewright::emulation
