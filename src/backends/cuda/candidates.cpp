// The schedules worth trying for a kernel: ways to spread its largest tile over threads, ranked by predicted time.
#include "backends/cuda/cuda_backend.h"
#include "backends/cuda/estimate.h"
#include "backends/cuda/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

namespace tilewright::cuda {

namespace {

constexpr Index kMaxElements = 64;  // of the largest tile in one thread: more do not stay in registers
constexpr std::size_t kMaxCandidates = 12;

class Candidates {
 public:
  Candidates(const tile::Kernel& kernel, const tile::Target& target, const PrintOptions& options)
      : kernel_(kernel),
        target_(target),
        options_(options),
        plan_(printer::plan_loops(kernel, {.keep_above_flops = 4, .keep_loads = true})),
        ranges_(printer::value_ranges(kernel)),
        main_(main_shape(kernel, plan_, ranges_)),
        work_(kernel_work(kernel, plan_)) {}

  std::vector<backends::Candidate> run() {
    if (main_.rows == 1)
      rows_of_one();
    else
      rows_of_several();
    if (found_.empty()) fallback();
    std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) {
      return std::make_tuple(!a.refusal.empty(), a.predicted_us) < std::make_tuple(!b.refusal.empty(), b.predicted_us);
    });
    if (found_.size() > kMaxCandidates) found_.resize(kMaxCandidates);
    return std::move(found_);
  }

 private:
  Index vectors() const { return ceil_div(main_.cols, main_.vector); }

  void add(tile::Schedule s) {
    s.vector_bytes = static_cast<int>(std::min<Index>(16, std::max<Index>(main_.vector * main_.access_bytes, 4)));
    if (!seen_.insert({s.threads, s.threads_per_row, s.cluster}).second) return;
    backends::Candidate c;
    c.schedule = s;
    auto layouts = assign_layouts({kernel_, plan_, ranges_, s});
    if (!layouts) {
      c.refusal = layouts.error().message;
      found_.push_back(std::move(c));
      return;
    }
    const Occupancy o = occupancy(kernel_, plan_, *layouts, s);
    if (o.blocks == 0) {
      c.refusal = fmt::format("about {} registers for each of {} threads: more than a multiprocessor has", o.registers, s.threads);
    } else {
      c.predicted_us = predicted_us(work_, o, *layouts, s, target_);
    }
    found_.push_back(std::move(c));
  }

  // One long row a program: all threads along it; short ones a warp each, several programs to a block; long ones over a
  // cluster.
  void rows_of_one() {
    for (int cluster = 1; cluster <= target_.max_cluster; cluster *= 2) {
      if (cluster > 1 && vectors() < Index{256} * cluster) break;
      std::set<Index> steps_seen;
      for (int threads = 1024; threads >= 32; threads -= threads > 512 ? 64 : 32) {
        const Index steps = ceil_div(vectors(), Index{threads} * cluster);
        if (steps * main_.vector > kMaxElements) break;
        // Of the thread counts that take the same number of steps the smallest wastes least: wait for it.
        const int next = threads - (threads > 512 ? 64 : 32);
        if (next >= 32 && ceil_div(vectors(), Index{next} * cluster) == steps) continue;
        if (threads < 64 && vectors() > 64) continue;
        add({.threads = threads, .threads_per_row = threads, .cluster = cluster});
      }
    }
    if (vectors() <= 32 * 8 && vectors() * main_.vector <= 32 * kMaxElements)
      for (int threads : {128, 256}) add({.threads = threads, .threads_per_row = 32});
  }

  void rows_of_several() {
    for (int threads : {64, 128, 256, 512, 1024}) {
      if (threads > target_.max_threads) continue;
      const Index elements = main_.rows * main_.cols / threads;
      if (elements > 2 * kMaxElements || (elements < main_.vector && threads > 64)) continue;
      for (int row = threads; row >= 1; row /= 2) {
        if (Index{row} > std::bit_ceil(static_cast<std::uint64_t>(vectors()))) continue;
        const Index rows_each = ceil_div(main_.rows, threads / row);
        const Index columns_each = ceil_div(vectors(), row) * main_.vector;
        if (rows_each * columns_each > 2 * kMaxElements) continue;
        if (threads / row > 2 * main_.rows) continue;  // groups without a row
        add({.threads = threads, .threads_per_row = row});
      }
    }
  }

  // Tiles too large for registers still run: they spill.
  void fallback() {
    const int threads = 1024;
    const int row = main_.rows == 1 ? threads : static_cast<int>(std::clamp<Index>(static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(vectors()))), 1, threads));
    add({.threads = threads, .threads_per_row = row});
    for (backends::Candidate& c : found_) c.refusal.clear();
  }

  const tile::Kernel& kernel_;
  const tile::Target& target_;
  const PrintOptions& options_;
  printer::LoopPlan plan_;
  std::vector<printer::ValueRange> ranges_;
  MainShape main_;
  KernelWork work_;
  std::vector<backends::Candidate> found_;
  std::set<std::tuple<int, int, int>> seen_;
};

}  // namespace

std::vector<backends::Candidate> list_candidates(const tile::Kernel& kernel, const tile::Target& target,
                                                 const PrintOptions& options) {
  return Candidates(kernel, target, options).run();
}

}  // namespace tilewright::cuda
