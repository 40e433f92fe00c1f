// Back-to-back matmuls on tensor cores give what the reference gives: scores that never leave the registers,
// blocks of keys that are read twice, ragged lengths, rows that see nothing.
#include "cuda_emulation/kernel_expect.h"

#include "backends/cuda/analysis/schedule_fields.h"
#include "ops/attention.h"
#include "ops/composites.h"
#include "passes/pipeline.h"
#include "support/attention_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::emulation {
namespace {

using tile::DotUnit;
using tile::samples::AttentionKernel;

class EmulatedB2b : public ::testing::Test {
 protected:
  EmulatedB2b() : backend_(open_emulated_cuda("sm_90a").value()) {}
  void check_kernel_of(const AttentionKernel& a, const tile::Kernel& kernel, const tile::Schedule& schedule) {
    SCOPED_TRACE(to_string(a));
    test::ParityOptions options = as_printed();
    options.scale = spread_;
    expect_right(*backend_, kernel, schedule, options);
  }
  void check(const AttentionKernel& a, const tile::Schedule& schedule) {
    check_kernel_of(a, attention(a), schedule);
  }
  // Checks a kernel that the compiler wrote under its first schedule, which must use tensor cores, and
  // returns that schedule. Of the grid's `heads` two say what all do.
  tile::Schedule check_compiled(tile::Kernel kernel, Index heads = 0,
                                const test::ParityOptions& options = as_printed()) {
    const auto candidates = backend_->candidates(kernel);
    if (candidates.empty()) {
      ADD_FAILURE() << kernel.name << ": no schedule";
      return {};
    }
    EXPECT_EQ(dot_unit(candidates[0].schedule), unit_) << kernel.name;
    for (tile::GridAxis& axis : kernel.grid)
      if (axis.size() == 1 && axis[0].extent == tile::Dim{heads}) axis = {{tile::Dim{2}, 1}};
    expect_right(*backend_, kernel, candidates[0].schedule, options);
    return candidates[0].schedule;
  }
  std::unique_ptr<backends::Backend> backend_;
  DotUnit unit_ = DotUnit::wgmma;
  double spread_ = 1;
};

// softmax(scores) v in bf16, with weights of v's type, `scale` times as large, which are divided by their sum
// after the product.
ir::Value attended(ir::Value scores, ir::Value v, double scale = 1) {
  ir::Value shift = ops::max(scores, {-1}, ops::Keep::yes);
  if (scale != 1) shift = shift - std::log(scale);
  const ir::Value weights = ops::exp(scores - shift), total = ops::sum(weights, {-1}, ops::Keep::yes);
  const ir::Value product = ops::matmul(ops::cast(weights, v.dtype()), v, DType::f32);
  return ops::cast(product * ops::reciprocal(total), DType::bf16);
}

tile::Schedule b2b(int threads, const tile::WgmmaB2b& kind = {}) {
  return {.threads = threads, .kind = kind};
}

TEST_F(EmulatedB2b, ScoresStayInRegisters) {
  check({.queries = 128, .keys = 256}, b2b(256));
  check({.dtype = DType::f16, .out = DType::f32, .queries = 64, .keys = 128, .block_m = 64, .block_n = 64},
        b2b(128, {.stages = 3}));
}

// The threads copy blocks ahead: one place each, asked for by halves of a round, or several.
tile::Schedule cp_async_b2b(int threads, int stages) {
  return {.threads = threads, .kind = tile::MmaB2b{.stages = stages}};
}

class EmulatedCpAsyncB2b : public EmulatedB2b {
 protected:
  EmulatedCpAsyncB2b() { backend_ = open_emulated_cuda("sm_80").value(); }
};

TEST_F(EmulatedCpAsyncB2b, ScoresStayInRegisters) {
  for (int stages : {1, 2, 3}) {
    check({.queries = 128, .keys = 448, .block_n = 64}, cp_async_b2b(128, stages));
    check({.dtype = DType::f16, .out = DType::f32, .queries = 64, .keys = 128, .block_m = 64, .block_n = 32},
          cp_async_b2b(128, stages));
  }
  check({.heads = 4, .shared = 2, .queries = 128, .keys = 128, .depth = 128, .columns = 128},
        cp_async_b2b(256, 1));
}

TEST_F(EmulatedCpAsyncB2b, RaggedLengthsAndMasks) {
  for (int stages : {1, 2}) {
    check({.heads = 2, .queries = 200, .keys = 333, .causal = true, .gap = 8}, cp_async_b2b(128, stages));
    check({.heads = 2, .queries = 200, .keys = 333, .causal = true, .skips = true, .splits = true, .gap = 3},
          cp_async_b2b(256, stages));
    check({.queries = 128, .keys = 256, .causal = true, .unseen = 150, .log_sum_exp = true},
          cp_async_b2b(128, stages));
  }
}

// Keys are read by the first and by the last product of a round.
TEST_F(EmulatedCpAsyncB2b, TwoProductsBeforeTheLast) {
  const AttentionKernel a{.heads = 2, .queries = 128, .keys = 200, .block_n = 64, .causal = true};
  for (int stages : {2, 3}) {
    const tile::MmaB2b kind{.stages = stages, .longest_first = stages == 2};
    check_kernel_of(a, attention_gradient_q(a), {.threads = 128, .kind = kind});
  }
  const auto one_place = backend_->print(attention_gradient_q(a), cp_async_b2b(128, 1));
  ASSERT_FALSE(one_place);
  EXPECT_NE(one_place.error().message.find("wants two stages"), std::string::npos);
}

TEST_F(EmulatedB2b, HeadsShareKeys) {
  check({.heads = 4, .shared = 2, .queries = 128, .keys = 128, .depth = 128, .columns = 128}, b2b(256));
}

TEST_F(EmulatedB2b, RaggedLengthsAndMasks) {
  check({.heads = 2, .queries = 200, .keys = 333, .causal = true, .gap = 8}, b2b(256));
  check({.queries = 130, .keys = 300, .causal = true, .skips = true}, b2b(256));
}

TEST_F(EmulatedB2b, RowsThatSeeNothing) {
  check({.queries = 128, .keys = 256, .causal = true, .unseen = 150, .log_sum_exp = true}, b2b(256));
}

TEST_F(EmulatedB2b, ScoresThatOverflowWithoutTheirMaximum) {
  spread_ = 12;
  check({.queries = 128, .keys = 256}, b2b(256));
}

TEST_F(EmulatedB2b, RoundsOverlap) {
  for (tile::Rounds rounds : {tile::Rounds::overlapped, tile::Rounds::fa3_pingpong}) {
    const tile::Schedule s = b2b(256, {.rounds = rounds});
    check({.heads = 3, .queries = 200, .keys = 555, .depth = 128, .columns = 128, .causal = true}, s);
    check({.queries = 256, .keys = 256, .depth = 64, .columns = 128, .causal = true, .skips = true}, s);
    check({.queries = 128, .keys = 100, .causal = true, .unseen = 150, .log_sum_exp = true}, s);
    const AttentionKernel a{.heads = 2, .queries = 200, .keys = 200, .block_n = 64, .causal = true};
    check_kernel_of(a, attention_gradient_q(a),
                    b2b(256, {.stages = 3, .longest_first = true, .rounds = rounds}));
  }
}

// Warpgroups that begin a program together stay together for some rounds: turns part them.
TEST_F(EmulatedB2b, ShortLoopsTakeTurns) {
  const auto fa3_pingpong = [&](const AttentionKernel& a) {
    return cuda::rounds(backend_->candidates(attention(a)).at(0).schedule) == tile::Rounds::fa3_pingpong;
  };
  AttentionKernel a{.heads = 16, .queries = 1024, .keys = 1024, .depth = 128, .columns = 128, .causal = true};
  EXPECT_TRUE(fa3_pingpong(a));
  a.queries = a.keys = 16384;
  EXPECT_FALSE(fa3_pingpong(a));
  a.skips = true, a.queries = a.keys = 3072;
  EXPECT_TRUE(fa3_pingpong(a)) << "12.5 rounds in the mean, 24 the longest";
}

// Pieces of 64 columns, by way of places behind the blocks; rows that overhang and lengths of a second
// result.
TEST_F(EmulatedB2b, ResultsLeaveByTheCopyEngine) {
  for (bool turns : {false, true})
    for (int places : {2, 3}) {
      const tile::Schedule s = b2b(256, {.longest_first = turns,
                                         .rounds = turns ? tile::Rounds::fa3_pingpong : tile::Rounds::apart,
                                         .store_stages = places});
      check({.heads = 3, .queries = 200, .keys = 300, .depth = 64, .columns = 128, .causal = true}, s);
      check({.out = DType::f32, .heads = 2, .queries = 256, .keys = 128, .causal = true, .log_sum_exp = true},
            s);
    }
  check({.heads = 2, .queries = 250, .keys = 200, .block_m = 192, .causal = true, .unseen = 150},
        b2b(384, {.rounds = tile::Rounds::overlapped, .store_stages = 2}));
}

// Weights of 8 bits change lanes on their way to the second product, whose sum is added a round later.
TEST_F(EmulatedB2b, EightBits) {
  for (bool ahead : {false, true}) {
    const tile::Schedule s = b2b(256, {.rounds = ahead ? tile::Rounds::overlapped : tile::Rounds::apart});
    const DType dtype = DType::f8e4m3, out = DType::f32;
    check({.dtype = dtype, .out = out, .queries = 128, .keys = 512, .depth = 128, .columns = 128}, s);
    check({.dtype = dtype,
           .out = out,
           .heads = 2,
           .shared = 2,
           .queries = 200,
           .keys = 333,
           .depth = 128,
           .columns = 64,
           .causal = true,
           .unseen = 150,
           .log_sum_exp = true},
          s);
    check({.dtype = DType::f8e5m2,
           .out = DType::bf16,
           .queries = 256,
           .keys = 400,
           .depth = 256,
           .columns = 96,
           .causal = true,
           .splits = true},
          ahead ? b2b(256, {.rounds = tile::Rounds::fa3_pingpong}) : s);
  }
}

TEST_F(EmulatedB2b, TwoProductsBeforeTheLast) {
  const AttentionKernel a{.heads = 2, .queries = 128, .keys = 200, .block_n = 64, .causal = true};
  check_kernel_of(a, attention_gradient_q(a), b2b(256));
}

// Chains as the compiler lowers them, for devices with wgmma and for those with mma.sync alone.
class CompiledB2b : public EmulatedB2b, public ::testing::WithParamInterface<const char*> {
 protected:
  CompiledB2b() {
    backend_ = open_emulated_cuda(GetParam()).value();
    unit_ = std::string_view(GetParam()) == "sm_90a" ? DotUnit::wgmma : DotUnit::mma;
  }
};
INSTANTIATE_TEST_SUITE_P(Architectures, CompiledB2b, ::testing::Values("sm_90a", "sm_80"),
                         [](const auto& info) { return std::string(info.param); });

// The keys of 700 that each of 400 queries sees: those up to `ahead` places further, and of these the last
// `window`.
struct Seen {
  Index ahead = 0, window = 0;  // 0: all
};

// 40 heads of masked attention.
ir::Graph masked_attention(const Seen& keys) {
  constexpr Index kQueries = 400, kKeys = 700, kHeads = 40, kDepth = 64;
  ir::Graph graph("attention");
  const auto input = [&](const char* name, Index length) {
    return ir::Value{&graph, graph.add_input(name, {DType::bf16, {1, kHeads, length, kDepth}})};
  };
  const ir::Value q = input("q", kQueries), k = input("k", kKeys), v = input("v", kKeys);
  const Shape all{1, 1, kQueries, kKeys};
  const ir::Value key = ops::iota(graph, all, 3), last = ops::iota(graph, all, 2) + keys.ahead;
  ir::Value seen = ops::le(key, last);
  if (keys.window > 0) seen = ops::logical_and(seen, ops::lt(last, key + keys.window));
  const ir::Value scores =
      ops::where(ops::broadcast_to(seen, {1, kHeads, kQueries, kKeys}), ops::attention_scores(q, k, 0.125),
                 -std::numeric_limits<double>::infinity());
  graph.set_outputs({attended(scores, v).id});
  return graph;
}

std::ptrdiff_t loops_in(const tile::Kernel& kernel) {
  return std::count_if(kernel.body.ops.begin(), kernel.body.ops.end(),
                       [](const tile::Op& op) { return op.kind == tile::OpKind::loop; });
}

std::size_t count_of(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += what.size()) ++count;
  return count;
}

// Blocks that the mask cuts are walked first, both ends of a window in one loop, then the others without the
// mask: the rounds of both are one row, in which the last product of each runs under the next.
TEST_F(EmulatedB2b, MaskedLoopsGoOnWithoutAGap) {
  for (const Seen& keys : {Seen{100}, Seen{300, 420}, Seen{10, 40}, Seen{-150, 300}, Seen{-250, 90}}) {
    SCOPED_TRACE(fmt::format("{} ahead, {} keys", keys.ahead, keys.window));
    const passes::Compiled compiled = passes::run_pipeline(masked_attention(keys), backend_->target());
    ASSERT_EQ(compiled.plan.kernels.size(), 1u);
    tile::Kernel kernel = compiled.plan.kernels[0];
    EXPECT_EQ(loops_in(kernel), 2);
    for (tile::Rounds rounds : {tile::Rounds::overlapped, tile::Rounds::fa3_pingpong}) {
      tile::Schedule schedule = backend_->candidates(kernel).at(0).schedule;
      EXPECT_NE(cuda::rounds(schedule), tile::Rounds::apart);
      std::get<tile::WgmmaB2b>(schedule.kind).rounds = rounds;
      const auto source = backend_->print(kernel, schedule);
      ASSERT_TRUE(source);
      // Masked rounds at both ends compute where they stand, and have a text of their own.
      const auto texts = count_of(source->text, "wgmma_wait<1>();");
      EXPECT_TRUE(texts == 1 || (texts == 2 && keys.window > 0)) << texts;
      EXPECT_EQ(count_of(source->text, "wgmma_block<"), 2 * texts + 1) << "they end once";
      EXPECT_EQ(count_of(source->text, ") & ("), 0u) << "comparisons are predicates";
      kernel.grid[2] = {{tile::Dim{2}, 1}};  // two heads say what 40 do
      check_kernel_of({}, kernel, schedule);
    }
  }
}

// Several warpgroups of rows; the blocks left of the diagonal are walked without the mask.
TEST_P(CompiledB2b, AttentionAsTheCompilerWritesIt) {
  const passes::Compiled compiled = passes::run_pipeline(masked_attention({100}), backend_->target());
  ASSERT_EQ(compiled.plan.kernels.size(), 1u);
  tile::Kernel kernel = compiled.plan.kernels[0];
  EXPECT_EQ(loops_in(kernel), 2);
  const auto candidates = backend_->candidates(kernel);
  ASSERT_FALSE(candidates.empty());
  EXPECT_EQ(dot_unit(candidates[0].schedule), unit_);
  EXPECT_GE(candidates[0].schedule.threads, unit_ == DotUnit::wgmma ? 256 : 128);
  const auto source = backend_->print(kernel, candidates[0].schedule);
  ASSERT_TRUE(source);
  EXPECT_EQ(count_of(source->text, "fast::exp2(fmaf("), unit_ == DotUnit::wgmma ? 1u : 2u)
      << "scores are not scaled on the way, masked or not";
  kernel.grid[2] = {{tile::Dim{2}, 1}};  // two heads say what 40 do
  check_kernel_of({}, kernel, candidates[0].schedule);
}

// Two kernels: values are laid out by keys, padded to whole 16 bytes, and attention reads them. Masked in
// part: a product that is added a round later is added in the other loop.
TEST_F(EmulatedB2b, EightBitAttentionAsTheCompilerWritesIt) {
  struct Case {
    DType dtype;
    Index keys, depth;
    bool masked = false;
  };
  for (const Case& c : {Case{DType::f8e4m3, 256, 128}, Case{DType::f8e5m2, 333, 64},
                        Case{DType::f8e4m3, 520, 96}, Case{DType::f8e4m3, 420, 64, true}}) {
    constexpr Index kQueries = 200, kHeads = 40;
    ir::Graph graph("attention");
    const auto input = [&](const char* name, Index heads, Index length) {
      return ir::Value{&graph, graph.add_input(name, {c.dtype, {1, heads, length, c.depth}})};
    };
    const ir::Value q = input("q", kHeads, kQueries), k = input("k", kHeads / 2, c.keys),
                    v = input("v", kHeads / 2, c.keys);
    const auto every = [&](const ir::Value& x) {
      const Shape apart{1, kHeads / 2, 1, c.keys, c.depth}, wide{1, kHeads / 2, 2, c.keys, c.depth};
      return ops::reshape(ops::broadcast_to(ops::reshape(x, apart), wide), {1, kHeads, c.keys, c.depth});
    };
    ir::Value scores = ops::attention_scores(q, k, 0.1);
    const Shape all{1, 1, kQueries, c.keys};
    if (c.masked) {
      const ir::Value seen = ops::le(ops::iota(graph, all, 3), ops::iota(graph, all, 2) + 200);
      scores = ops::where(ops::broadcast_to(seen, {1, kHeads, kQueries, c.keys}), scores,
                          -std::numeric_limits<double>::infinity());
    }
    graph.set_outputs({attended(scores, every(v), 256).id});
    const passes::Compiled compiled = passes::run_pipeline(graph, backend_->target());
    ASSERT_EQ(compiled.plan.kernels.size(), 2u) << c.keys;
    const tile::Kernel& copy = compiled.plan.kernels[0];
    // The copy has all heads, which takes the emulator long: one of the four is run, the ragged one.
    if (c.keys == 333) check_kernel_of({}, copy, backend_->candidates(copy).at(0).schedule);
    EXPECT_NE(cuda::rounds(check_compiled(compiled.plan.kernels[1], kHeads / 2)), tile::Rounds::apart)
        << c.keys;
  }
}

// Heads that are no whole rows of 128 bytes: zeros fill them up. Keys of one depth, values of another.
TEST_P(CompiledB2b, HeadsOfAnyDepth) {
  struct Case {
    Index depth, columns;
  };
  for (const Case& c : {Case{32, 32}, Case{80, 80}, Case{96, 40}, Case{160, 200}}) {
    constexpr Index kHeads = 64, kQueries = 130, kKeys = 150;
    ir::Graph graph("attention");
    const auto input = [&](const char* name, Index length, Index depth) {
      return ir::Value{&graph, graph.add_input(name, {DType::bf16, {kHeads, length, depth}})};
    };
    const ir::Value q = input("q", kQueries, c.depth), k = input("k", kKeys, c.depth),
                    v = input("v", kKeys, c.columns);
    const ir::Value scores = ops::matmul(q, ops::transpose(k, {0, 2, 1}), DType::f32) * 0.1;
    const ir::Value product = ops::matmul(ops::cast(ops::softmax(scores), DType::bf16), v, DType::f32);
    graph.set_outputs({ops::cast(product, DType::bf16).id});
    const passes::Compiled compiled = passes::run_pipeline(graph, backend_->target());
    ASSERT_EQ(compiled.plan.kernels.size(), 1u) << c.depth;
    EXPECT_EQ(cuda::rounds(check_compiled(compiled.plan.kernels[0], kHeads)) != tile::Rounds::apart,
              unit_ == DotUnit::wgmma)
        << c.depth;
  }
}

// Logits of a depth that shared memory does not hold at once, for their rows' statistics: the product has a
// loop of its own. Rows, classes and depth overhang; the last block of classes alone is masked.
TEST_P(CompiledB2b, StatisticsOfDeepProducts) {
  for (Index programs : {1, 40}) {  // idle multiprocessors share the classes
    constexpr Index kClasses = 900, kDepth = 328;
    const Index rows = 150;
    ir::Graph graph("loss");
    const ir::Value x{&graph, graph.add_input("x", {DType::bf16, {rows, kDepth}})},
        w{&graph, graph.add_input("w", {DType::bf16, {kClasses, kDepth}})},
        labels{&graph, graph.add_input("labels", {DType::i64, {rows}})};
    graph.set_outputs({ops::linear_cross_entropy(x, w, labels, {.reduction = ops::Reduction::none}).id});
    tile::Target target = backend_->target();
    target.units = static_cast<int>(programs);
    target.launch_s = 1e-9;
    target.memory_bytes_per_s = target.cache_bytes_per_s = 1e11;
    const passes::Compiled compiled = passes::run_pipeline(graph, target);
    ASSERT_EQ(compiled.plan.kernels.size(), programs == 1 ? 1u : 2u);
    EXPECT_EQ(cuda::stages(check_compiled(compiled.plan.kernels[0])), unit_ == DotUnit::wgmma ? 5 : 2);
  }
}

// The query heads that share one of k and v are the rows: far fewer than a warpgroup's 64.
TEST_P(CompiledB2b, FewRowsOverALongCache) {
  constexpr Index kGroup = 8, kKeys = 600, kHeads = 300, kDepth = 128;
  ir::Graph graph("decode");
  const auto input = [&](const char* name, Index length) {
    return ir::Value{&graph, graph.add_input(name, {DType::bf16, {kHeads, length, kDepth}})};
  };
  const ir::Value q = input("q", kGroup), k = input("k", kKeys), v = input("v", kKeys);
  const ir::Value scores = ops::matmul(q, ops::transpose(k, {0, 2, 1}), DType::f32) * 0.09;
  graph.set_outputs({attended(scores, v).id});
  const passes::Compiled compiled = passes::run_pipeline(graph, backend_->target());
  ASSERT_EQ(compiled.plan.kernels.size(), 1u);
  check_compiled(compiled.plan.kernels[0], kHeads);
}

// The copy engine fetches each block from the page that a table names in that round.
TEST_P(CompiledB2b, CachesInPages) {
  constexpr Index kGroup = 8, kPages = 5, kPage = 64, kHeads = 2, kSequences = 140, kDepth = 128;
  ir::Graph graph("paged_decode");
  const auto input = [&](const char* name, DType dtype, const Shape& shape) {
    return ir::Value{&graph, graph.add_input(name, {dtype, shape})};
  };
  const Shape pages{12, kPage, kHeads, kDepth};
  const ir::Value q = input("q", DType::bf16, {kSequences, kHeads, kGroup, kDepth}),
                  k = input("k", DType::bf16, pages), v = input("v", DType::bf16, pages),
                  table = input("table", DType::i32, {kSequences, kPages});
  const auto cache = [&](ir::Value in) {
    return ops::swap_axes(ops::reshape(ops::take(in, table, 0), {kSequences, kPages * kPage, kHeads, kDepth}),
                          1, 2);
  };
  const ir::Value scores = ops::matmul(q, ops::swap_axes(cache(k), 2, 3), DType::f32) * 0.09;
  graph.set_outputs({attended(scores, cache(v)).id});
  const passes::Compiled compiled = passes::run_pipeline(graph, backend_->target());
  ASSERT_EQ(compiled.plan.kernels.size(), 1u);
  tile::Kernel kernel = compiled.plan.kernels[0];
  for (tile::GridAxis& axis : kernel.grid)
    if (axis.size() == 2) axis = {{tile::Dim{3}, 1}};  // three heads say what all do
  test::ParityOptions options = as_printed();
  for (std::size_t view = 0; view < kernel.views.size(); ++view)
    if (kernel.views[view].dtype == DType::i32) options.ranges[static_cast<int>(view)] = {-1, 12};
  check_compiled(kernel, 0, options);
}

}  // namespace
}  // namespace tilewright::emulation
