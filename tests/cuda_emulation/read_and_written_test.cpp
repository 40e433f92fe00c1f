// Kernels that read a view and write it from other threads: all have read it before one of them writes.
#include "cuda_emulation/kernel_expect.h"

#include <tilewright/tile/builder.h>

namespace tilewright::emulation {
namespace {

using tile::Builder;
using tile::Kernel;
using tile::Value;
using tile::View;

// Rows of `out` are those of `in` times a number each, and the numbers are counted up.
Kernel counted_up(Index programs, Index rows, Index columns) {
  Builder b("counted_up");
  const Index all = programs * rows;
  const View out = b.view("out", DType::f32, {all, columns}), in = b.view("in", DType::f32, {all, columns});
  const View count = b.view("count", DType::f32, {all});
  const Value row = b.program_id(0) * rows, n = b.load(count, {row}, {.shape = {rows}});
  b.store(out, {row, 0}, b.load(in, {row, 0}, {.shape = {rows, columns}}) * b.expand(n, 1));
  b.store(count, {row}, n + 1.0);
  return b.finish({{{programs, 1}}});
}

// The same of one number for each program, which all its threads read.
Kernel scalar_counted_up(Index programs, Index columns) {
  Builder b("scalar_counted_up");
  const View out = b.view("out", DType::f32, {programs, columns}),
             in = b.view("in", DType::f32, {programs, columns});
  const View count = b.view("count", DType::f32, {programs});
  const Value p = b.program_id(0), n = b.load(count, {p}, {});
  b.store(out, {p, 0}, b.load(in, {p, 0}, {.shape = {columns}}) * n);
  b.store(count, {p}, n + 1.0);
  return b.finish({{{programs, 1}}});
}

int checked_schedules(backends::Backend& backend, const Kernel& kernel) {
  int checked = 0;
  for (const backends::Candidate& c : backend.candidates(kernel)) {
    if (!c.refusal.empty()) continue;
    SCOPED_TRACE(to_string(c.schedule));
    expect_right(backend, kernel, c.schedule);
    if (++checked == 12) break;
  }
  return checked;
}

TEST(ReadAndWritten, NumbersThatManyThreadsRead) {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    SCOPED_TRACE(arch);
    const auto backend = open_emulated_cuda(arch).value();
    for (const Kernel& k : {counted_up(1, 16, 128), counted_up(3, 4, 1024), counted_up(64, 1, 32),
                            scalar_counted_up(1, 512), scalar_counted_up(64, 16)})
      EXPECT_GT(checked_schedules(*backend, k), 0);
  }
}

TEST(ReadAndWritten, NumbersThatBlocksOfAClusterRead) {
  const auto backend = open_emulated_cuda("sm_90a").value();
  const auto shared = [](int threads, int threads_per_row) {
    return tile::Schedule{.threads = threads,
                          .kind = tile::ElementLoops{.threads_per_row = threads_per_row, .cluster = 2}};
  };
  expect_right(*backend, counted_up(2, 64, 64), shared(64, 8));
  expect_right(*backend, scalar_counted_up(3, 4096), shared(128, 128));
  const std::string text = backend->print(counted_up(2, 64, 64), shared(64, 8)).value().text;
  EXPECT_NE(text.find("cluster_sync();"), std::string::npos) << text;
}

TEST(ReadAndWritten, AThreadsOwnElementsAreNotWaitedFor) {
  const auto backend = open_emulated_cuda("sm_90a").value();
  Builder b("own");
  const View x = b.view("x", DType::f32, {64, 512});
  const Value p = b.program_id(0);
  b.store(x, {p, 0}, b.load(x, {p, 0}, {.shape = {512}}) * 2.0);
  const Kernel k = b.finish({{{64, 1}}});
  const auto first = expect_first_right(*backend, k);
  ASSERT_TRUE(first);
  const std::string text = backend->print(k, *first).value().text;
  EXPECT_EQ(text.find("__sync"), std::string::npos) << text;
}

}  // namespace
}  // namespace tilewright::emulation
