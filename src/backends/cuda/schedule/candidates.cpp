// The schedules worth trying for a kernel: ways to spread its largest tile over threads, ranked by predicted
// time.
#include "backends/cuda/schedule/candidates.h"

#include "backends/cuda/machine/fitted.h"
#include "backends/cuda/schedule/dot_candidates.h"
#include "backends/cuda/schedule/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <set>
#include <tuple>

namespace tilewright::cuda {

namespace {

constexpr std::size_t kMaxCandidates = 20;
constexpr Index kLeastGroups = 8;  // of threads with a row, of a block by runs of rows; chosen, not measured

class Candidates {
 public:
  Candidates(const tile::Kernel& kernel, const tile::Target& target, const PlanOptions& options)
      : kernel_(kernel),
        target_(target),
        planner_(kernel, options),
        plan_(printer::plan_loops(kernel, {.keep_above_flops = kKeepAboveFlops, .keep_loads = true})),
        main_(main_shape(kernel, plan_, printer::value_ranges(kernel))),
        work_(kernel_work(kernel, plan_, target.cache_bytes)) {}

  std::vector<backends::Candidate> run() {
    list();
    // Few programs wait for their threads: narrower accesses leave each of these less to do in turn.
    const bool few = !work_.loops && work_.programs <= kSmallPrograms * target_.units;
    if (few && main_.rows * main_.cols <= kSmallTile) {
      least_bytes_ = 1;
      for (; main_.vector > 1; list()) main_.vector /= 2;
    }
    if (found_.empty()) one_of_any_size();
    if (work_.scanned > 0 && main_.rows > 1) columns_side_by_side();
    if (std::all_of(found_.begin(), found_.end(), [](const auto& c) { return !c.refusal.empty(); })) spill();
    std::stable_sort(found_.begin(), found_.end(), [](const auto& a, const auto& b) {
      return std::make_tuple(!a.refusal.empty(), a.predicted_us) <
             std::make_tuple(!b.refusal.empty(), b.predicted_us);
    });
    if (found_.size() > kMaxCandidates) found_.resize(kMaxCandidates);
    return std::move(found_);
  }

 private:
  void list() {
    if (main_.rows == 1)
      rows_of_one();
    else
      rows_of_several();
  }

  Index vectors() const {
    return ceil_div(main_.cols + (main_.shifted ? main_.vector - 1 : 0), main_.vector);
  }
  Index vectors_rounded_up() const {
    return static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(std::max<Index>(vectors(), 1))));
  }

  tile::Schedule schedule_of(int threads, tile::ElementLoops kind) const {
    const Index bytes = std::max(main_.vector * main_.access_bytes, least_bytes_);
    return {.threads = threads,
            .vector_bytes = static_cast<int>(std::min<Index>(kWidestAccess, bytes)),
            .kind = kind};
  }

  // The schedule, and for rows that wait for each other's results its form that copies the next rows ahead.
  void add(int threads, tile::ElementLoops kind) {
    if (!seen_.insert({threads, kind.threads_per_row, kind.cluster, kind.programs, main_.vector}).second)
      return;
    tile::Schedule s = schedule_of(threads, kind);
    const auto plan = evaluate(s);
    if (!plan || work_.exchanges == 0 || work_.loops || threads != kind.threads_per_row ||
        work_.programs <= 2 * target_.units)
      return;
    kind.stages = 2;
    s.kind = kind;
    if (!find_staged_loads({kernel_, *plan->loops, plan->ranges, s}, plan->layouts).empty())
      (void)evaluate(s);
  }

  // Rows that lie one behind another, whose length leaves lanes or parts of a vector without work.
  bool are_runs() const {
    return work_.exchanges > 0 && !work_.loops && !main_.shifted && main_.rows > 1 &&
           (main_.vector * main_.access_bytes < kWidestAccess ||
            !std::has_single_bit(static_cast<std::uint64_t>(vectors())));
  }

  Result<CudaPlan> evaluate(const tile::Schedule& s) {
    backends::Candidate c;
    c.schedule = s;
    auto plan = planner_.plan(s);
    if (!plan) {
      c.refusal = plan.error().message;
      found_.push_back(std::move(c));
      return plan;
    }
    const Occupancy o = occupancy(kernel_, *plan);
    if (o.blocks == 0) {
      c.refusal =
          o.staged ? "the rows under way do not fit shared memory"
                   : fmt::format("about {} registers for each of {} threads: more than a multiprocessor has",
                                 o.registers, s.threads);
    } else {
      c.predicted_us = predicted_us(work_, o, *plan, target_);
    }
    found_.push_back(std::move(c));
    return plan;
  }

  // One row a program: all threads along it; short ones a warp each, several programs to a block; those that
  // a block's registers cannot hold over a cluster.
  void rows_of_one() {
    for (int cluster = 1; cluster <= target_.max_cluster; cluster *= 2) {
      const bool too_long =
          ceil_div(vectors(), Index{target_.max_threads} * (cluster / 2 > 0 ? cluster / 2 : 1)) *
              main_.vector >
          kMaxElements / 2;
      const bool few_rows = work_.programs * cluster <= target_.units * 2.0;
      const bool long_row = vectors() * main_.vector > kLongRow;
      if (cluster > 1 &&
          (work_.exchanges == 0 || !(too_long || few_rows || long_row) || vectors() < Index{128} * cluster))
        break;
      for (int threads = target_.max_threads; threads >= 64; threads /= 2) try_row(threads, cluster);
      // Lengths that no power of two divides: for each number of vectors a thread the fewest threads that do.
      if (!std::has_single_bit(static_cast<std::uint64_t>(vectors())))
        for (Index steps = 1; steps * main_.vector <= kMaxElements; ++steps)
          try_row(static_cast<int>(round_up(ceil_div(vectors(), steps * cluster), 32)), cluster);
    }
    if (vectors() <= 32 * 8 && vectors() * main_.vector <= 32 * kMaxElements)
      for (int threads : {128, 256}) add(threads, {.threads_per_row = 32});
    if (vectors() <= 32) add(32, {.threads_per_row = 32});
    // Rows that are too short for a warp: several to each.
    for (int row = 16; row >= 2 && row >= vectors(); row /= 2)
      for (int threads : {64, 128, 256}) add(threads, {.threads_per_row = row});
  }

  void try_row(int threads, int cluster) {
    if (threads < 32 || threads > target_.max_threads) return;
    const Index steps = ceil_div(vectors(), Index{threads} * cluster);
    if (steps * main_.vector > kMaxElements) return;
    if (threads * Index{cluster} > 2 * vectors() && threads > 64) return;  // most threads would have nothing
    add(threads, {.threads_per_row = threads, .cluster = cluster});
  }

  void rows_of_several() {
    for (int cluster = 1; cluster <= target_.max_cluster; cluster *= 2) {
      if (cluster > 1 && !may_share_rows(cluster)) break;
      rows_of_several(cluster);
    }
  }

  // Tiles that are scanned down their columns, and too small for a warp: a thread holds whole columns.
  void columns_side_by_side() {
    for (Index row = vectors_rounded_up(); row <= 16 && row >= ceil_div(vectors_rounded_up(), 4); row /= 2) {
      if (row == 0 || main_.rows * ceil_div(vectors(), row) * main_.vector > kMaxElements) break;
      for (const int threads : {32, 64, 128})
        add(threads, {.threads_per_row = static_cast<int>(row), .programs = static_cast<int>(threads / row)});
    }
  }

  void rows_of_several(int cluster) {
    const Index rows = ceil_div(main_.rows, cluster);
    for (int threads : {32, 64, 128, 256, 512, 1024}) {
      if (threads > target_.max_threads) continue;
      const Index elements = rows * main_.cols / threads;
      if (elements > 2 * kMaxElements || (elements < main_.vector && threads > 64)) continue;
      const int least = static_cast<int>(std::min<Index>(4, vectors_rounded_up()));
      for (int row = cluster > 1 ? threads / 2 : threads; row >= least; row /= 2) {
        if (Index{row} > vectors_rounded_up()) continue;
        const Index rows_each = ceil_div(rows, threads / row);
        const Index columns_each = ceil_div(vectors(), row) * main_.vector;
        if (rows_each * columns_each > 2 * kMaxElements) continue;
        if (threads / row > 2 * rows) continue;  // groups without a row
        add(threads, {.threads_per_row = row, .cluster = cluster});
      }
      if (cluster == 1 && are_runs()) runs_of_rows(threads);
    }
  }

  // Fewer threads a row than where these read memory: their places in shared memory may lie apart. Where the
  // tile is no run, the first schedule says so for all.
  void runs_of_rows(int threads) {
    for (int row = 1; row < 32 && Index{row} <= vectors_rounded_up(); row *= 2) {
      const Index groups = threads / row;
      const Index each = ceil_div(main_.rows, groups) * ceil_div(vectors(), row) * main_.vector;
      if (no_runs_ || groups < kLeastGroups) return;
      if (each > kMaxElements || groups > 2 * main_.rows) continue;
      no_runs_ = !evaluate(schedule_of(threads, {.threads_per_row = row, .through_shared = 1}));
    }
  }

  // Loops that reduce along the rows of their tiles, of too few programs for the machine; and tiles, held
  // while they are reduced, that the registers of fewer blocks do not hold.
  bool may_share_rows(int cluster) const {
    if (work_.exchanges == 0) return false;
    if (!work_.loops)
      return main_.rows * main_.cols > Index{target_.max_threads} * (cluster / 2) * (kMaxElements / 2);
    return work_.programs <= kFewPrograms * target_.units &&
           work_.programs * cluster <= kFewBlocks * target_.units;
  }

  // Tiles too large for any of the lists above, and tiny ones, which leave threads without work.
  void one_of_any_size() {
    const auto wanted = std::bit_ceil(static_cast<std::uint64_t>(main_.rows * main_.cols / 32 + 1));
    const int threads = static_cast<int>(std::clamp<std::uint64_t>(wanted, 64, 1024));
    const int row =
        main_.rows == 1 ? threads : static_cast<int>(std::clamp<Index>(vectors_rounded_up(), 1, threads));
    add(threads, {.threads_per_row = row});
  }

  // Prices schedules that lack registers: the compiler keeps what has none in memory, which each value enters
  // and leaves at least once.
  void spill() {
    for (backends::Candidate& c : found_) {
      const auto plan = planner_.plan(c.schedule);
      if (!plan) continue;
      Occupancy o = occupancy(kernel_, *plan);
      if (o.blocks > 0 || o.staged) continue;
      constexpr double kEachWay = 2, kRegisterBytes = 4;
      const double spilled = std::max(0.0, o.elements - static_cast<double>(kMaxElements) / 2);
      const double bytes =
          kEachWay * kRegisterBytes * spilled * c.schedule.threads * row_cluster(c.schedule) * work_.programs;
      o.blocks = 1;
      c.predicted_us = predicted_us(work_, o, *plan, target_) + 1e6 * bytes / target_.cache_bytes_per_s;
      c.refusal.clear();
    }
  }

  const tile::Kernel& kernel_;
  const tile::Target& target_;
  KernelPlanner planner_;
  printer::LoopPlan plan_;
  MainShape main_;
  Index least_bytes_ = 4;  // of an access
  KernelWork work_;
  bool no_runs_ = false;  // a schedule by runs of rows was refused
  std::vector<backends::Candidate> found_;
  std::set<std::tuple<int, int, int, int, Index>> seen_;
};

}  // namespace

std::vector<backends::Candidate> list_candidates(const tile::Kernel& kernel, const tile::Target& target,
                                                 const PlanOptions& options) {
  // On tensor cores where they can: no other schedule comes near.
  std::vector<backends::Candidate> dots = dot_candidates(kernel, target, options);
  if (!dots.empty() && dots.front().refusal.empty()) return dots;
  std::vector<backends::Candidate> all = Candidates(kernel, target, options).run();
  all.insert(all.end(), dots.begin(), dots.end());
  return all;
}

namespace {

template <Arch kArch>
double predicted_us(const tile::Kernel& kernel, const tile::Target& target) {
  const std::vector<backends::Candidate> all =
      list_candidates(kernel, target, {.arch = kArch, .max_shared_bytes = target.shared_bytes});
  return all.empty() || !all.front().refusal.empty() ? std::numeric_limits<double>::infinity()
                                                     : all.front().predicted_us;
}

}  // namespace

tile::KernelTime predictor(const Arch& arch) {
  if (arch.has_warpgroup_dots()) return predicted_us<Arch{9, 0, true}>;
  if (arch.has_clusters()) return predicted_us<Arch{9, 0, false}>;
  return predicted_us<Arch{8, 0, false}>;
}

}  // namespace tilewright::cuda
