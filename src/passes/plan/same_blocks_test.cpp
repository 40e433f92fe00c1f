// Which kernels may read and write one memory, and what becomes of their views.
#include "passes/plan/same_blocks.h"

#include <tilewright/tile/builder.h>
#include <tilewright/tile/verify.h>

#include <gtest/gtest.h>

#include <functional>

namespace tilewright::passes {
namespace {

using tile::Builder;
using tile::Value;
using tile::View;
using Grid = std::vector<std::vector<std::pair<Builder::SizeArg, Index>>>;

// A kernel that reads `in` and writes `out`, both f32 [64,128].
tile::Kernel kernel(const Grid& grid, const std::function<void(Builder&, View in, View out)>& body) {
  Builder k("k");
  const View out = k.view("out", DType::f32, {64, 128}), in = k.view("in", DType::f32, {64, 128});
  body(k, in, out);
  return k.finish(grid);
}

std::string why_not(const tile::Kernel& k) { return why_not_same_memory(k, {}, {0, 1}); }

TEST(SameBlocks, ABlockThatItsProgramAloneReadsIsWritten) {
  const tile::Kernel k = kernel({{{64, 1}}}, [](Builder& b, View in, View out) {
    const Value p = b.program_id(0);
    b.store(out, {p, 0}, exp(b.load(in, {p, 0}, {.shape = {128}})));
  });
  EXPECT_EQ(why_not(k), "");
  const OneView one = with_one_view(k, {0, 1});
  EXPECT_EQ(one.kept, 0);
  ASSERT_EQ(one.kernel.views.size(), 1U);
  EXPECT_TRUE(tile::view_uses(one.kernel)[0].read && tile::view_uses(one.kernel)[0].written);
  EXPECT_EQ(tile::verify(one.kernel), std::nullopt);
}

TEST(SameBlocks, PartsOfAProgramsNumberTellBlocksApart) {
  const auto of = [](Index columns, Index rows, Index width) {
    return kernel({{{64, 1}, {4, 1}}}, [=](Builder& b, View in, View out) {
      const Value p = b.program_id(0), row = p / rows, column = p % columns * width;
      b.store(out, {row, column}, b.load(in, {row, column}, {.shape = {32}, .fill = 0.0}), {.bounded = true});
    });
  };
  EXPECT_EQ(why_not(of(4, 4, 32)), "");
  EXPECT_EQ(why_not(of(8, 8, 32)), "") << "half of the programs are outside";
  const std::string meet = "may write where another of its programs reads";
  EXPECT_EQ(why_not(of(4, 8, 32)), meet) << "two programs of one row and column";
  EXPECT_EQ(why_not(of(8, 4, 32)), meet) << "some parts are nobody's: not proved";
  EXPECT_EQ(why_not(of(4, 4, 31)), meet) << "blocks overlap";
}

TEST(SameBlocks, OtherElementsAreNot) {
  EXPECT_EQ(why_not(kernel({{{63, 1}}},
                           [](Builder& b, View in, View out) {
                             const Value p = b.program_id(0);
                             b.store(out, {p, 0}, b.load(in, {p + 1, 0}, {.shape = {128}}));
                           })),
            "reads other elements of it than it writes");
  EXPECT_EQ(why_not(kernel({{{64, 1}}},
                           [](Builder& b, View in, View out) {
                             const Value p = b.program_id(0);
                             b.store(out, {p, 0}, b.load(in, {p, 0}, {.shape = {128}}));
                             b.store(out, {p, 0}, exp(b.load(in, {p, 0}, {.shape = {128}})));
                           })),
            "reads it again after it has written it");
  EXPECT_EQ(why_not(kernel({{{64, 1}}},
                           [](Builder& b, View in, View out) {
                             const Value p = b.program_id(0), row = b.broadcast(p, {128});
                             b.store(out, {p, 0}, b.gather(in, {row, b.arange(128)}));
                           })),
            "reads or writes it by indices");
}

TEST(SameBlocks, ProgramsReadWhatTheFirstOfThemWrites) {
  EXPECT_EQ(why_not(kernel({{{64, 1}}, {{2, 1}}},
                           [](Builder& b, View in, View out) {
                             const Value p = b.program_id(0), x = b.load(in, {p, 0}, {.shape = {128}});
                             b.branch(
                                 b.program_id(1) == 0,
                                 [&] {
                                   b.store(out, {p, 0}, x);
                                   return std::vector<Value>{};
                                 },
                                 [] { return std::vector<Value>{}; });
                           })),
            "may write where another of its programs reads");
}

TEST(SameBlocks, RoundsOfALoopThatItWritesInMustDiffer) {
  const auto of = [](Index times) {
    return kernel({{{64, 1}}}, [=](Builder& b, View in, View out) {
      const Value p = b.program_id(0);
      b.loop(0, 128, 32, {}, [&](Value i, const std::vector<Value>&) {
        const Value column = i * times;
        b.store(out, {p, column}, b.load(in, {p, column}, {.shape = {32}}));
        return std::vector<Value>{};
      });
    });
  };
  EXPECT_EQ(why_not(of(1)), "");
  EXPECT_EQ(why_not(of(0)), "may write where another of its programs reads");
}

TEST(SameBlocks, SizesThatAreArgumentsAreThoseOfTheLaunch) {
  Builder b("k");
  const Value n = b.scalar("n");
  const View out = b.view("out", DType::f32, {n}), in = b.view("in", DType::f32, {n});
  const Value at = b.program_id(0) * 32;
  b.store(out, {at}, b.load(in, {at}, {.shape = {32}, .fill = 0.0}), {.bounded = true});
  const tile::Kernel k = b.finish({{{n, 32}}});
  EXPECT_EQ(why_not_same_memory(k, {1000}, {0, 1}), "");
}

}  // namespace
}  // namespace tilewright::passes
