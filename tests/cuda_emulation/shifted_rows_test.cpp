// Rows that begin anywhere: columns are counted from an aligned place before them, so that vectors are
// aligned.
#include "cuda_emulation/kernel_expect.h"

#include "ops/composites.h"
#include "ops/functions.h"
#include "passes/pipeline.h"

#include <fmt/format.h>

#include <functional>

namespace tilewright::emulation {
namespace {

struct Program {
  const char* what;
  std::function<ir::Value(const ir::Value&)> of;
};

struct Shifted {
  int rows = 0, loads = 0;  // kernels of such rows, and of them those that load from others
};

// Each schedule of a program's kernels is right.
void expect_shifted(backends::Backend& backend, DType dtype, const Shape& shape, const Program& program,
                    Shifted& seen) {
  ir::Graph graph("rows");
  const ir::Value x{&graph, graph.add_input("x", {dtype, shape})};
  graph.set_outputs({program.of(x).id});
  const passes::Compiled compiled = passes::run_pipeline(graph, backend.target());
  for (const tile::Kernel& kernel : compiled.plan.kernels)
    for (const backends::Candidate& c : backend.candidates(kernel)) {
      if (!c.refusal.empty()) continue;
      SCOPED_TRACE(to_string(c.schedule));
      expect_right(backend, kernel, c.schedule);
      const std::string text = backend.print(kernel, c.schedule).value().text;
      seen.loads += text.find("load_shifted<") != std::string::npos;
      seen.rows += text.find("const int shift = ") != std::string::npos;
    }
}

TEST(ShiftedRows, OfEveryLengthAreRight) {
  const auto backend = open_emulated_cuda("sm_90a").value();
  const Program programs[] = {
      {"softmax", [](const ir::Value& x) { return ops::softmax(x, -1); }},
      {"of weighted columns",
       [](const ir::Value& x) {
         ir::Graph* graph = x.graph;
         const ir::Value w{graph, graph->add_input("w", {x.type().dtype, {x.type().shape[1]}})};
         return ops::mul(ops::softmax(x, -1), w);
       }},
  };
  Shifted seen;
  for (const auto& [rows, length] : {std::pair<Index, Index>{18, 513}, {5, 1549}, {270, 521}})
    for (const Program& program : programs) {
      SCOPED_TRACE(fmt::format("{} of {} rows of {}", program.what, rows, length));
      expect_shifted(*backend, DType::bf16, {rows, length}, program, seen);
    }
  expect_shifted(*backend, DType::f16, {3, 4099}, programs[1], seen);
  const Program flipped{"flipped rows",
                        [](const ir::Value& x) { return ops::softmax(ops::flip(x, {0}), -1); }};
  expect_shifted(*backend, DType::bf16, {9, 1549}, flipped, seen);
  EXPECT_GE(seen.rows, 40);
  EXPECT_GE(seen.loads, 15);
}

}  // namespace
}  // namespace tilewright::emulation
