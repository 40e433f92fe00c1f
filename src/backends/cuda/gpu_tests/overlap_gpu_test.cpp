// Launches that overlap on the device: chains of kernels that read what the one before wrote, and write over
// what it read, must leave what they leave when each has ended before the next is launched.
#include "backends/cuda/analysis/overlap.h"
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/gpu_tests/must.h"
#include "support/matmul_kernels.h"

#include <tilewright/tile/builder.h>

#include <gtest/gtest.h>

namespace tilewright::cuda {
namespace {

using backends::CopyKind;
using tile::Builder;
using tile::Kernel;
using tile::Monoid;
using tile::Schedule;
using tile::Value;
using tile::View;

constexpr Index kEdge = 1024;

// Stays in [0, 1), and what it is made of stays visible round after round.
Value mixed(Value x) { return x - floor(x); }

// y = mixed(3.7 xᵀ + 0.1), element by element `gap` apart in memory.
Kernel turned(Index gap) {
  Builder k("turned");
  const tile::ViewOptions apart{.strides = {tile::Dim{kEdge * gap}, tile::Dim{gap}},
                                .align_bytes = gap == 1 ? 16 : 4};
  const View x = k.view("x", DType::f32, {kEdge, kEdge}, apart),
             y = k.view("y", DType::f32, {kEdge, kEdge}, apart);
  const Value i = k.program_id(0) * 32, j = k.program_id(1) * 32;
  const Value t = k.transpose(k.load(x, {i, j}, {.shape = {32, 32}}));
  k.store(y, {j, i}, mixed(t * 3.7 + 0.1));
  return k.finish({{{kEdge, 32}}, {{kEdge, 32}}});
}

// A few elements of a buffer of its own: over long before the kernels around it.
Kernel brief() {
  Builder k("brief");
  const View x = k.view("x", DType::f32, {256}), y = k.view("y", DType::f32, {256});
  k.store(y, {0}, mixed(k.load(x, {0}, {.shape = {256}}) * 3.7 + 0.1));
  return k.finish({{{1, 1}}});
}

// A row's elements with the row's largest and its sum.
Kernel rows_mixed(DType dtype) {
  Builder k("rows_mixed");
  const View x = k.view("x", dtype, {kEdge, kEdge}), y = k.view("y", dtype, {kEdge, kEdge});
  const Value r = k.program_id(0);
  const Value t = k.cast(k.load(x, {r, 0}, {.shape = {kEdge}}), DType::f32);
  const Value largest = k.reduce(Monoid::max, t, 0), sum = k.reduce(Monoid::sum, t, 0);
  k.store(y, {r, 0}, k.cast(mixed(t * 37.7 / largest + sum), dtype));
  return k.finish({{{kEdge, 1}}});
}

// What is launched: a kernel with its schedule, and which of the chain's buffers its views are.
struct Link {
  Kernel kernel;
  Schedule schedule;
  std::vector<std::pair<int, Index>> views;  // buffer, bytes from its beginning
};

enum class How : unsigned char {
  one_by_one,  // the next one when the one before has ended
  launched,
  replayed,
  hurried,  // a kernel lets the next one come before it waits itself: three are there at once
  blind,    // no kernel waits
};

constexpr int kBlindRuns = 20;  // a machine that is busy otherwise may order some of them by chance

class Overlap : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = kEdge * kEdge * 8;
  Overlap() : backend_(CudaBackend::open({}).value()) {
    for (int i = 0; i < 4; ++i) buffers_.push_back(must(backend_->allocate(kBytes)));
  }
  ~Overlap() override {
    for (void* b : buffers_) backend_->release(b, kBytes);
  }

  Schedule first_schedule(const Kernel& kernel) const {
    return backend_->candidates(kernel).front().schedule;
  }

  // The printed text, or one that lets the next kernel come as soon as it can.
  std::unique_ptr<backends::Program> load(const Link& link, How how) {
    auto source = must(backend_->print(link.kernel, link.schedule));
    EXPECT_TRUE(waits_for_previous(source.text)) << source.text;
    const std::string wait(kWaitForPrevious), hurry = "let_next_kernel_start();\n  ";
    const auto replace_wait = [&](const std::string& by) {
      source.text.replace(source.text.find(wait), wait.size(), by);
    };
    if (how == How::hurried) replace_wait(hurry + wait);
    if (how == How::blind) replace_wait(hurry + "if (gridDim.x == 0)\n  " + wait);
    return must(backend_->load(link.kernel, source, must(backend_->compile(link.kernel, source))));
  }

  // What all buffers hold after so many rounds of the chain.
  std::string run(const std::vector<Link>& chain, How how) {
    constexpr int kRounds = 100;
    std::vector<std::uint32_t> start(kBytes / 4);
    for (std::size_t i = 0; i < start.size(); ++i)
      start[i] = 0x3f003e00u + 0x00010003u * static_cast<std::uint32_t>(i * 7919 % 97);
    for (void* b : buffers_) must(backend_->copy(b, start.data(), kBytes, CopyKind::host_to_device));
    std::vector<std::unique_ptr<backends::Program>> programs;
    std::vector<backends::RecordedLaunch> launches;
    for (const Link& link : chain) {
      programs.push_back(load(link, how));
      backends::RecordedLaunch launch{.program = programs.back().get()};
      for (const auto& [buffer, offset] : link.views)
        launch.views.push_back(static_cast<char*>(buffers_[static_cast<std::size_t>(buffer)]) + offset);
      const std::vector<Index> grid = tile::grid_extents(link.kernel, {});
      std::copy(grid.begin(), grid.end(), launch.grid);
      launches.push_back(launch);
    }
    const auto replay = must(backend_->record(launches));
    for (int round = 0; round < kRounds; ++round) {
      if (how == How::replayed) {
        must(replay->run());
        continue;
      }
      for (const backends::RecordedLaunch& l : launches) {
        must(l.program->launch({.views = l.views.data(), .grid = {l.grid[0], l.grid[1], l.grid[2]}}));
        if (how == How::one_by_one) must(backend_->synchronize());
      }
    }
    std::string all(kBytes * buffers_.size(), '\0');
    for (std::size_t i = 0; i < buffers_.size(); ++i)
      must(backend_->copy(all.data() + i * kBytes, buffers_[i], kBytes, CopyKind::device_to_host));
    return all;
  }

  void expect_same(const std::vector<Link>& chain) {
    if (!Arch::parse(backend_->target().arch).value().overlaps_launches()) return;  // no such hardware
    const std::string expected = run(chain, How::one_by_one);
    EXPECT_TRUE(run(chain, How::launched) == expected);
    EXPECT_TRUE(run(chain, How::replayed) == expected);
    EXPECT_TRUE(run(chain, How::hurried) == expected);
    // The chain tells whether its kernels wait: without that some run is wrong, soon or late.
    bool differs = false;
    for (int i = 0; i < kBlindRuns && !differs; ++i) differs = run(chain, How::blind) != expected;
    EXPECT_TRUE(differs);
  }

  std::unique_ptr<backends::Backend> backend_;
  std::vector<void*> buffers_;
};

TEST_F(Overlap, ReadersComeBehindWritersAndWritersBehindReaders) {
  const Kernel turn = turned(1), few = brief(), rows = rows_mixed(DType::f32);
  const Schedule by_row = first_schedule(rows);
  const Schedule cluster{.threads = 64, .kind = tile::ElementLoops{.threads_per_row = 64, .cluster = 4}};
  const Schedule ahead{.threads = 64, .kind = tile::ElementLoops{.threads_per_row = 64, .stages = 2}};
  const Schedule packed{.threads = 128, .kind = tile::ElementLoops{.threads_per_row = 32}};
  expect_same({{turn, first_schedule(turn), {{0, 0}, {1, 0}}},
               {few, first_schedule(few), {{3, 0}, {3, 4096}}},
               {turn, first_schedule(turn), {{1, 0}, {2, 0}}},
               {rows, cluster, {{2, 0}, {0, 0}}},
               {few, first_schedule(few), {{3, 4096}, {3, 0}}},
               {rows, ahead, {{0, 0}, {1, 0}}},
               {turn, first_schedule(turn), {{1, 0}, {0, 0}}},
               {rows, by_row, {{0, 0}, {2, 0}}},
               {rows, packed, {{2, 0}, {0, 0}}}});
}

// Each kernel writes what stands between the elements that it reads: a multiprocessor's cache holds lines of
// the kernel before whose other half another one has written since.
TEST_F(Overlap, CachesHoldNothingOfTheKernelBefore) {
  const Kernel turn = turned(2);
  const Schedule s = first_schedule(turn);
  expect_same({{turn, s, {{0, 0}, {0, 4}}}, {turn, s, {{0, 4}, {0, 0}}}});
}

TEST_F(Overlap, ProductsOfProducts) {
  const Kernel product =
      tile::samples::matmul({.m = kEdge, .n = kEdge, .k = kEdge, .block_m = 128, .block_n = 128});
  const Kernel rows = rows_mixed(DType::bf16);
  const Schedule copied{.threads = 256, .kind = tile::MmaDot{.stages = 3}};
  const Schedule cluster{.threads = 32, .kind = tile::ElementLoops{.threads_per_row = 32, .cluster = 2}};
  expect_same({{product, first_schedule(product), {{0, 0}, {3, 0}, {1, 0}}},
               {rows, cluster, {{1, 0}, {2, 0}}},
               {product, copied, {{2, 0}, {3, 0}, {1, 0}}},
               {rows, first_schedule(rows), {{1, 0}, {0, 0}}}});
}

}  // namespace
}  // namespace tilewright::cuda
