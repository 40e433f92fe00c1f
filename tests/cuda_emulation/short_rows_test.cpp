// Rows that are shorter than a warp, several of them to each: sums, and what waits for them.
#include "cuda_emulation/kernel_expect.h"

#include "backends/cuda/analysis/schedule_fields.h"
#include "ops/composites.h"
#include "passes/pipeline.h"

#include <fmt/format.h>

#include <functional>

namespace tilewright::emulation {
namespace {

struct Rows {
  const char* what;
  std::function<ir::Value(const ir::Value&)> of;
};

// Last blocks that are not full, lengths that no vector divides, one that fills its lanes. Every schedule.
TEST(ShortRows, ShareAWarp) {
  const auto backend = open_emulated_cuda("sm_90a").value();
  const Rows kinds[] = {
      {"sums", [](const ir::Value& x) { return ops::sum(ops::tanh(x), {-1}); }},
      {"softmax", [](const ir::Value& x) { return ops::softmax(x, -1); }},
      {"largest", [](const ir::Value& x) { return ops::argmax(x, -1); }},
  };
  int shared = 0;
  for (const Rows& kind : kinds)
    for (const auto& [rows, length] : {std::pair<Index, Index>{192, 16}, {61, 7}, {45, 13}, {130, 32}}) {
      SCOPED_TRACE(fmt::format("{} of {} rows of {}", kind.what, rows, length));
      ir::Graph graph("rows");
      const ir::Value x{&graph, graph.add_input("x", {DType::f32, {rows, length}})};
      graph.set_outputs({kind.of(x).id});
      const passes::Compiled compiled = passes::run_pipeline(graph, backend->target());
      ASSERT_EQ(compiled.plan.kernels.size(), 1u);
      const tile::Kernel& kernel = compiled.plan.kernels[0];
      for (const backends::Candidate& c : backend->candidates(kernel)) {
        if (!c.refusal.empty()) continue;
        SCOPED_TRACE(to_string(c.schedule));
        shared += cuda::threads_per_row(c.schedule) < 32 && c.schedule.threads > 32 ? 1 : 0;
        expect_right(*backend, kernel, c.schedule);
      }
    }
  EXPECT_GE(shared, 12);
}

// Tiles of many rows that no vector divides come and leave as runs of bytes: rows of an odd length, of fewer
// elements than a vector, and a last tile that ends within a vector. Every schedule.
TEST(ShortRows, ComeAndLeaveAsRuns) {
  const auto backend = open_emulated_cuda("sm_90a").value();
  tile::Target few = backend->target();
  few.units = 1;
  const Rows kinds[] = {
      {"sums", [](const ir::Value& x) { return ops::sum(ops::tanh(x), {-1}); }},
      {"softmax", [](const ir::Value& x) { return ops::softmax(x, -1); }},
      {"softmax in f32", [](const ir::Value& x) { return ops::softmax(ops::cast(x, DType::f32), -1); }},
      {"their own sum's share",
       [](const ir::Value& x) { return ops::add(x, ops::softmax(ops::mul(x, x), -1)); }},
  };
  for (const Rows& kind : kinds)
    for (const auto& [dtype, rows, length] : {std::tuple<DType, Index, Index>{DType::bf16, 300, 26},
                                              {DType::f32, 1001, 5},
                                              {DType::f16, 257, 33},
                                              {DType::f32, 210, 60}}) {
      SCOPED_TRACE(fmt::format("{} of {} rows of {} {}", kind.what, rows, length, name(dtype)));
      ir::Graph graph("rows");
      const ir::Value x{&graph, graph.add_input("x", {dtype, {rows, length}})};
      graph.set_outputs({kind.of(x).id});
      const passes::Compiled compiled = passes::run_pipeline(graph, few);
      ASSERT_EQ(compiled.plan.kernels.size(), 1u);
      const tile::Kernel& kernel = compiled.plan.kernels[0];
      int runs = 0;
      for (const backends::Candidate& c : backend->candidates(kernel)) {
        const auto* kind_of = std::get_if<tile::ElementLoops>(&c.schedule.kind);
        if (!c.refusal.empty() || !kind_of || kind_of->through_shared == 0) continue;
        SCOPED_TRACE(to_string(c.schedule));
        ++runs;
        expect_right(*backend, kernel, c.schedule);
      }
      EXPECT_GE(runs, 4);
    }
}

}  // namespace
}  // namespace tilewright::emulation
