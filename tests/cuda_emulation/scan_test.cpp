// Scans: down the columns of a tile each group of threads has a run of neighbouring rows, and only what the
// runs come to crosses threads; along rows, what the warps come to.
#include "cuda_emulation/kernel_expect.h"

#include "ops/functions.h"
#include "ops/rows.h"
#include "passes/pipeline.h"
#include "support/host_values.h"
#include "support/limit_check.h"

#include <tilewright/tile/builder.h>
#include <tilewright/tile/text.h>

namespace tilewright::emulation {
namespace {

using tile::Builder;
using tile::Kernel;
using tile::Monoid;
using tile::Schedule;
using tile::View;

struct Scan {
  Monoid monoid = Monoid::sum;
  DType dtype = DType::f32;
  Index rows = 1, columns = 1;
  int axis = 0;
  Index programs = 1;
};

Kernel scan_kernel(const Scan& s) {
  Builder k("scan");
  const View x = k.view("x", s.dtype, {s.programs, s.rows, s.columns}),
             y = k.view("y", s.dtype, {s.programs, s.rows, s.columns});
  const tile::Value program = k.program_id(0);
  const tile::Value tile = k.load(x, {program, 0, 0}, {.shape = {s.rows, s.columns}});
  const DType wide = compute_dtype(s.dtype);
  const tile::Value scanned = k.scan(s.monoid, wide == s.dtype ? tile : k.cast(tile, wide), s.axis);
  k.store(y, {program, 0, 0}, wide == s.dtype ? scanned : k.cast(scanned, s.dtype));
  return k.finish({{{s.programs, 1}}});
}

Schedule spread(int threads, int threads_per_row, int programs = 1) {
  return {.threads = threads,
          .kind = tile::ElementLoops{.threads_per_row = threads_per_row, .programs = programs}};
}

class Scans : public ::testing::Test {
 protected:
  std::unique_ptr<backends::Backend> backend_ = open_emulated_cuda("sm_90a").value();
  std::string text(const Kernel& kernel, const Schedule& schedule) {
    const auto printed = backend_->print(kernel, schedule);
    return printed ? printed->text : printed.error().message;
  }
};

// Runs that end inside the tile or lie beyond it, groups that share a warp or a block, several vectors a row.
TEST_F(Scans, DownColumnsAreRightUnderEverySpread) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i64})
    for (const auto& [rows, columns] : {std::pair<Index, Index>{37, 8}, {129, 5}, {300, 4}, {2, 48}})
      for (const auto& [threads, row] :
           {std::pair{32, 1}, {64, 2}, {64, 64}, {256, 1}, {96, 32}, {512, 16}}) {
        if (Index{row} > 2 * columns) continue;
        SCOPED_TRACE(std::string(name(dtype)) + " " + std::to_string(rows) + " by " +
                     std::to_string(columns) + ", " + to_string(spread(threads, row)));
        const Kernel kernel = scan_kernel({.dtype = dtype, .rows = rows, .columns = columns});
        expect_right(*backend_, kernel, spread(threads, row));
        EXPECT_NE(text(kernel, spread(threads, row)).find("scan_runs<"), std::string::npos);
      }
}

TEST_F(Scans, OfEveryMonoidAreRight) {
  for (const Monoid monoid : {Monoid::sum, Monoid::max, Monoid::min, Monoid::prod})
    for (const int axis : {0, 1})
      for (const Schedule& s : {spread(128, 4), spread(256, 64), spread(64, 64), spread(512, 2)})
        expect_right(*backend_, scan_kernel({.monoid = monoid, .rows = 21, .columns = 150, .axis = axis}), s);
}

TEST_F(Scans, AlongRowsOfSeveralWarpsAreRight) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::i64})
    for (const Index columns : {1000, 4099, 9000})
      for (const Index rows : {1, 3})
        for (const int threads : {96, 256, 1024}) {
          SCOPED_TRACE(std::string(name(dtype)) + " " + std::to_string(columns) + " by " +
                       std::to_string(threads));
          expect_right(*backend_, scan_kernel({.dtype = dtype, .rows = rows, .columns = columns, .axis = 1}),
                       spread(threads, threads));
        }
}

// Tiles of a few elements: a block has many of them, and the last one fewer.
TEST_F(Scans, OfTinyTilesStandSideBySide) {
  for (const auto& [columns, row] : {std::pair<Index, int>{4, 1}, {4, 4}, {3, 2}, {7, 8}}) {
    const Kernel kernel = scan_kernel({.dtype = DType::bf16, .rows = 8, .columns = columns, .programs = 45});
    expect_right(*backend_, kernel, spread(32, row, 32 / row));
    expect_right(*backend_, kernel, spread(128, row, 128 / row));
  }
  const Kernel along = scan_kernel({.rows = 8, .columns = 4, .axis = 1, .programs = 45});
  EXPECT_FALSE(
      backend_->print(along, spread(32, 4, 8)));  // lanes of a program that is not there would be asked
}

// Scans are lowered so that only the runs' totals wait, by enough programs for the machine.
TEST_F(Scans, AreLoweredToStripsThatRegistersHold) {
  struct Case {
    DType dtype;
    Shape shape;
    int axis;
    Index programs, elements;  // at least, of a tile at most
  };
  constexpr Index kHeld = 32 * 1024;  // in a block's registers
  for (const Case& c :
       {Case{DType::bf16, {2048, 64}, 0, 8, kHeld}, Case{DType::f32, {2129, 3712}, 0, 464, kHeld},
        Case{DType::f32, {4096, 46784}, 0, 5848, kHeld}, Case{DType::bf16, {64, 64, 176}, 1, 264, kHeld},
        Case{DType::bf16, {1344, 8, 4}, 1, 1344, 32}, Case{DType::f16, {256, 11, 9280}, 1, 264, kHeld}}) {
    ir::Graph graph("scan");
    const ir::Value x{&graph, graph.add_input("x", {c.dtype, c.shape})};
    graph.set_outputs({ops::cumsum(x, c.axis).id});
    const passes::Compiled compiled = passes::run_pipeline(graph, backend_->target());
    ASSERT_EQ(compiled.plan.kernels.size(), 1u) << to_string(c.shape);
    const Kernel& kernel = compiled.plan.kernels[0];
    Index programs = 1, elements = 0;
    for (const tile::GridAxis& axis : kernel.grid)
      for (const tile::GridFactor& f : axis) programs *= ceil_div(f.extent.value, f.block);
    tile::for_each_op(kernel.body, [&](const tile::Op& op) {
      if (op.kind == tile::OpKind::scan) elements = kernel.type(op.results[0]).size();
    });
    EXPECT_GE(programs, c.programs) << tile::print(kernel);
    EXPECT_LE(elements, c.elements) << tile::print(kernel);
    const auto candidates = backend_->candidates(kernel);
    ASSERT_FALSE(candidates.empty());
    EXPECT_NE(text(kernel, candidates.front().schedule).find("scan_runs<"), std::string::npos);
  }
}

// Longer than a block holds: blocks are read for what they come to, then scanned from there. A length that no
// block divides (40009 is a prime) is padded. Integers that f32 holds exactly.
TEST_F(Scans, OfLongAxesAreRight) {
  test::GraphRunner runner("emulated:sm_90a");
  for (const auto& [dtype, shape, axis] : {std::tuple<DType, Shape, Index>{DType::f32, {100000}, 0},
                                           {DType::f32, {40009}, 0},
                                           {DType::bf16, {12000, 3}, 0},
                                           {DType::i32, {40000, 3}, 0},
                                           {DType::i64, {2, 34000}, 1}})
    for (const ir::Op* op : {&ops::kCumsum, &ops::kCummax, &ops::kCummin}) {
      SCOPED_TRACE(std::string(op->name) + " of " + std::string(name(dtype)) + to_string(shape));
      ir::Graph graph("long");
      const ir::NodeId x = graph.add_input("x", {dtype, shape});
      graph.set_outputs({graph.add(*op, {x}, {{"axis", axis}})});
      std::vector<double> numbers(static_cast<std::size_t>(shape.size()));
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        const std::size_t height = 1 + i / 5000;
        numbers[i] = i % 1000 == 999 ? static_cast<double>(height) : -static_cast<double>(i % 1009 == 7);
      }
      const std::vector<ir::HostTensor> inputs = {
          is_float(dtype) ? test::host_floats(dtype, shape, numbers)
                          : ir::HostTensor{{dtype, shape}, {}, {numbers.begin(), numbers.end()}}};
      const auto got = runner.run(passes::run_pipeline(graph, runner.device->target()), inputs)[0],
                 want = ops::evaluate(graph, inputs)[0];
      EXPECT_EQ(test::difference(got, want, {dtype == DType::bf16 ? 4e-3 : 0, 0}), "");
    }
}

}  // namespace
}  // namespace tilewright::emulation
