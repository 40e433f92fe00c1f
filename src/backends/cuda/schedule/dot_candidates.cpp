// The schedules of dots: as many pipeline stages as shared memory has room for, group_m by what a wave of
// programs reads.
#include "backends/cuda/schedule/dot_candidates.h"

#include "backends/cuda/analysis/b2b_plan.h"
#include "backends/cuda/analysis/dot_use.h"
#include "backends/cuda/machine/fitted.h"
#include "backends/cuda/schedule/b2b_price.h"
#include "backends/cuda/schedule/estimate.h"
#include "backends/cuda/schedule/result_stages.h"

#include <tilewright/tile/cost.h>
#include <tilewright/tile/loop_rounds.h>
#include <tilewright/tile/tensor_rate.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <span>

namespace tilewright::cuda {

using backends::Candidate;
using tile::DotUnit;
using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::Schedule;

namespace {

constexpr Index kMaxWarpgroups = 3;  // the most that a form of the printer knows

// The row of kFmaTiles for tiles of this size: their own or, if these were not measured, the largest measured
// ones that are no larger.
const FmaTile& fma_tile(Index rows, Index columns) {
  const auto size = [](const FmaTile& t) { return t.tile.rows * t.tile.columns; };
  const FmaTile* best = std::min_element(std::begin(kFmaTiles), std::end(kFmaTiles),
                                         [&](const auto& x, const auto& y) { return size(x) < size(y); });
  for (const FmaTile& t : kFmaTiles) {
    if (t.tile.rows == rows && t.tile.columns == columns) return t;
    if (size(t) <= rows * columns && size(t) > size(*best)) best = &t;
  }
  return *best;
}

bool has_nested(const B2bMatmul& b2b) {
  return std::any_of(b2b.dots.begin(), b2b.dots.end(), [](const B2bDot& d) { return d.is_nested(); });
}

class Lister {
 public:
  Lister(const Kernel& kernel, const tile::Target& target, const PlanOptions& options)
      : kernel_(kernel),
        target_(target),
        options_(options),
        planner_(kernel, options),
        rounds_(tile::loop_rounds(kernel)),
        price_(kernel, target, options.arch, rounds_) {}

  std::vector<Candidate> run() {
    if (options_.arch.has_warpgroup_dots()) list_wgmma();
    if (!found_one()) list_mma();
    if (!found_one()) list_fma();
    std::stable_sort(found_.begin(), found_.end(), [](const Candidate& a, const Candidate& b) {
      return std::pair(!a.refusal.empty(), a.predicted_us) < std::pair(!b.refusal.empty(), b.predicted_us);
    });
    if (found_one()) keep_floors();
    return std::move(found_);
  }

 private:
  bool found_one() const {
    return std::any_of(found_.begin(), found_.end(), [](const Candidate& c) { return c.refusal.empty(); });
  }

  // Lists a schedule that was considered and cannot run: explain() shows it, with the reason.
  void refuse(const Schedule& s, const std::string& why) {
    Candidate c;
    c.schedule = s;
    c.refusal = why;
    found_.push_back(std::move(c));
  }
  // Refuses a group_m of more rows than the result has: its order would be that of a smaller one.
  template <typename Kind>
  bool is_too_long(int threads, Kind kind, int group_m, double rows) {
    if (group_m <= 2 * rows) return false;
    kind.group_m = group_m;
    refuse({.threads = threads, .kind = kind},
           fmt::format("group_m: the result has {:.0f} rows of blocks, fewer than half a group_m", rows));
    return true;
  }

  // Shared memory apart from blocks: barriers, and what 8 warps at most leave for one another where they
  // reduce columns of the result (tw_cuda/columns.cuh).
  Index reserved_bytes() const {
    constexpr Index kWarps = 8, kQuad = 4;
    Index exchanged = 0;
    for (const Op& op : kernel_.body.ops) {
      if (op.kind != OpKind::reduce || op.axis != 0) continue;
      const tile::TileType& type = kernel_.type(op.operands[0]);
      const Index columns = type.shape.size() < 2 ? 1 : type.shape[1];
      exchanged = std::max(exchanged, kWarps * std::max(columns + columns / 32, kQuad) *
                                          std::max<Index>(static_cast<Index>(size_bytes(type.dtype)), 4));
    }
    return kReservedSharedBytes + exchanged;
  }

  void list_wgmma() {
    const auto dot = find_tensor_dot(kernel_, DotUnit::wgmma);
    if (!dot) return list_b2b();
    const Index block_bytes = dot->a.bytes() + dot->b.bytes();
    const int threads = dot->a.rows % kWarpgroup == 0 ? 2 * kWarpgroup : kWarpgroup;
    const tile::WgmmaDot together{.stages = stages_for(block_bytes, kMaxStages)};
    tile::TensorTiles tiles = tiles_of(*dot, {.threads = threads, .kind = together});
    const auto results = find_tile_stores(kernel_, *dot->dot);
    tile::TensorTiles from_registers = tiles;
    if (results && !results->front().by_engine) from_registers.leaving_cycles += kAloneElementCycles;
    const Index loaded = results ? fetched_tiles(*dot, *results) : 0;
    const double by_threads = results && results->front().by_engine
                                  ? slower_by_threads(loaded + static_cast<Index>(results->size()))
                                  : 1;
    const std::string why = list_group_m(kGroupMs, threads, together, from_registers, by_threads);
    if (!why.empty()) return refuse({.kind = tile::WgmmaDot()}, why);
    if (results)
      list_staged(threads, together, tiles, block_bytes, *results, loaded);
    else
      refuse({.threads = threads, .kind = together}, results.error().message);
    // A warpgroup that waits for each block's sums, to add them, leaves the tensor cores to the other one:
    // these share a tile.
    if (dot->two_level || !tile::fits_pingpong(kWarpgroupRate, tiles.bm, tiles.bn)) return;
    const tile::WgmmaPingpong apart{.stages = together.stages};
    tiles.pingpong = from_registers.pingpong = true;
    const std::string alone = list_group_m(kFewGroupMs, 2 * kWarpgroup, apart, from_registers, by_threads);
    if (!alone.empty()) return refuse({.threads = 2 * kWarpgroup, .kind = apart}, alone);
    if (results) list_staged(2 * kWarpgroup, apart, tiles, block_bytes, *results, loaded);
  }

  void list_mma() {
    const auto dot = find_tensor_dot(kernel_, DotUnit::mma);
    if (!dot) return list_cp_async_b2b();
    const int threads = dot->a.rows * dot->b.rows >= kLargeTile ? 2 * kWarpgroup : kWarpgroup;
    const tile::MmaDot kind{.stages = stages_for(dot->a.bytes() + dot->b.bytes(), kMaxCopies)};
    const tile::TensorTiles tiles = tiles_of(*dot, {.threads = threads, .kind = kind});
    const std::string why = list_group_m(kGroupMs, threads, kind, tiles, kSlowerByThreads);
    if (!why.empty()) return refuse({.kind = tile::MmaDot()}, why);
    const double copying = copying_us(*dot);
    for (Candidate& c : found_)
      if (c.refusal.empty()) c.predicted_us += copying;
  }

  int stages_for(Index block_bytes, Index most) const {
    return static_cast<int>(std::min(most, (options_.max_shared_bytes - reserved_bytes()) / block_bytes));
  }

  tile::TensorTiles tiles_of(const TensorDot& dot, const Schedule& s) const {
    tile::TensorTiles tiles{
        .bm = dot.a.rows, .bn = dot.b.rows, .operand_bytes = static_cast<Index>(size_bytes(dot.dtype))};
    tiles.k = depth_of(dot);
    tiles.programs = programs();
    tiles.a_lines = lines_of(dot.a), tiles.b_lines = lines_of(dot.b);
    tiles.two_level = dot.two_level && !is_f8(dot.dtype);
    const KernelWork after = work_after(dot, s);
    const auto elements = static_cast<double>(dot.a.rows * dot.b.rows);
    // One result is written while the next tile is multiplied; the program waits for what it loads, and for
    // room to store more.
    const double more_stores =
        std::max(0.0, after.streamed_bytes - after.read_bytes - kHiddenStoreBytes * elements);
    const double bytes_per_cycle =
        target_.memory_bytes_per_s / std::max(1, target_.units) / kWarpgroupRate.clock_hz;
    tiles.leaving_cycles = tile::leaving_cycles(kWarpgroupRate, after.instructions / elements) +
                           (after.read_bytes + more_stores) / elements / bytes_per_cycle;
    return tiles;
  }

  // Cache lines that a row of an operand's blocks lies in.
  double lines_of(const TensorOperand& o) const {
    const tile::ViewParam& view = kernel_.views[static_cast<std::size_t>(o.load->param)];
    const auto bytes = static_cast<Index>(size_bytes(view.dtype));
    Index step = view.align_bytes;
    for (int d = 0; d < view.rank(); ++d) {
      const tile::Dim& s = view.strides[static_cast<std::size_t>(d)];
      if (d != o.inner_dim()) step = s.is_constant() ? std::gcd(step, s.value * bytes) : bytes;
    }
    return kBlockRules.lines(step);
  }

  // Blocks that the threads copy an element at a time, as their rows are not aligned to 16 bytes.
  double copying_us(const TensorDot& dot) const {
    double elements = 0;
    for (const TensorOperand* o : {&dot.a, &dot.b})
      if (!copies_chunks(kernel_.views[static_cast<std::size_t>(o->load->param)], o->inner_dim()))
        elements += static_cast<double>(o->rows);
    const double waves = std::ceil(programs() / std::max(1, target_.units));
    return kCopiedElementUs * elements * static_cast<double>(depth_of(dot)) * waves;
  }

  // How many times as long a schedule takes whose threads load and store `tiles` that the copy engine could.
  static double slower_by_threads(Index tiles) {
    return std::pow(kTileByThreads, static_cast<double>(tiles));
  }
  // Tiles that the epilogue loads and the copy engine may bring.
  Index fetched_tiles(const TensorDot& dot, const std::vector<TileStore>& stores) const {
    if (!stores[0].by_engine) return 0;
    const std::vector<TileLoad> loads = find_tile_loads(kernel_, *dot.dot);
    return std::count_if(loads.begin(), loads.end(),
                         [&](const TileLoad& l) { return l.block.box[0] == stores[0].columns(); });
  }

  // The same with the results sent by way of shared memory, where the pipeline still hides memory's latency;
  // and with a shorter pipeline, where that makes room for more of what is loaded and stored.
  template <typename Kind>
  void list_staged(int threads, Kind kind, tile::TensorTiles tiles, Index block_bytes,
                   const std::vector<TileStore>& stores, Index loaded) {
    tiles.by_copy_engine = stores[0].by_engine;
    if (!stores[0].by_engine) tiles.leaving_cycles += kRowElementCycles;
    const std::vector<ResultStages> ways =
        result_stages({.bytes = options_.max_shared_bytes - reserved_bytes(),
                       .block_bytes = block_bytes,
                       .blocks = kind.stages,
                       .groups = threads / kWarpgroup,
                       .results = static_cast<Index>(stores.size()),
                       .tiles = loaded});
    for (const ResultStages& way : ways) {
      kind.stages = way.blocks;
      kind.store_stages = way.stages;
      const double slower = (way.blocks < kFewestStages ? kShortPipeline : 1) *
                            slower_by_threads(std::max<Index>(loaded - way.slots, 0));
      const std::string why = list_group_m(kFewGroupMs, threads, kind, tiles, slower);
      if (!why.empty()) refuse({.threads = threads, .kind = kind}, why);
    }
    if (ways.empty())
      refuse({.threads = threads, .kind = kind},
             fmt::format("store_stages: beside them the pipeline has fewer than {} blocks",
                         kFewestBesideStores));
  }

  // The kind with each of these groups. Why not, where it cannot be planned.
  template <typename Kind>
  std::string list_group_m(std::span<const int> groups, int threads, Kind kind, tile::TensorTiles tiles,
                           double slower) {
    const double rows = kernel_.grid.size() > 1 ? programs_of(kernel_.grid[1]) : 1;
    bool first = true;
    for (int group_m : groups) {
      if (!first && is_too_long(threads, kind, group_m, rows)) continue;
      kind.group_m = kernel_.grid.size() > 1 ? group_m : 0;
      tiles.group_m = group_m;
      Candidate c;
      c.schedule = {.threads = threads, .kind = kind};
      if (first)
        if (std::string why = why_not(c.schedule); !why.empty()) return why;
      first = false;
      c.predicted_us = tile::tensor_tiles_us(tiles, kWarpgroupRate, target_) * slower;
      if (programs_of(kernel_.grid[0]) <= kFewColumnTiles && group_m != kGroupOfFewColumns)
        c.predicted_us *= kOtherGroupOfFewColumns;
      found_.push_back(std::move(c));
      if (kind.group_m == 0) break;
    }
    return "";
  }

  // What follows the loop, for all elements of a tile.
  KernelWork work_after(const TensorDot& dot, const Schedule& s) const {
    printer::LoopPlan plan = plan_for(kernel_, s, DotUse{.dot = dot});
    std::erase_if(plan.steps, [&](const printer::Step& step) { return step.op == dot.loop; });
    return kernel_work(kernel_, plan, target_.cache_bytes);
  }

  // f32 on the ordinary units, from blocks copied ahead: a second stage hides the copies, and of
  // several blocks on a multiprocessor one multiplies while another waits.
  void list_fma() {
    const auto refuse_all = [&](const std::string& why) { refuse({.kind = tile::FmaBlocks()}, why); };
    const auto dot = find_tensor_dot(kernel_, DotUnit::fma_blocks);
    if (!dot) return refuse_all(dot.error().message);
    const Index elements = dot->a.rows * dot->b.rows;
    const auto& [measured, threads, across] = fma_tile(dot->a.rows, dot->b.rows);
    const double rows = kernel_.grid.size() > 1 ? programs_of(kernel_.grid[1]) : 1;
    tile::FmaBlocks kind{.threads_per_row = static_cast<int>(across),
                         .group_m = rows > 1 ? kFmaGroupM : 0,
                         .programs_per_sm = fma_programs_per_sm(elements / threads, threads)};
    const double flops = 2.0 * static_cast<double>(depth_of(*dot) * elements),
                 waves = std::ceil(programs() / std::max(1, target_.units)),
                 peak = target_.flops_per_s * (dot->b.k_major ? measured.by_k : 1);
    for (const int stages : kFmaStages) {
      kind.stages = stages;
      Candidate c;
      c.schedule = {.threads = static_cast<int>(threads), .kind = kind};
      const std::string why = why_not(c.schedule);
      if (!why.empty()) return found_one() ? void() : refuse_all(why);
      c.predicted_us = tile::shared_tiles_us(measured, flops, waves, peak, target_) + target_.launch_s * 1e6;
      found_.push_back(std::move(c));
    }
  }

  // Dots that feed one another: as many warpgroups as the rows have 64s, as many stages as there is room for.
  void list_b2b() {
    const auto b2b = find_b2b_matmul(kernel_, DotUnit::wgmma);
    if (!b2b) return refuse({.kind = tile::WgmmaB2b()}, b2b.error().message);
    Index once = reserved_bytes(), each = 0;
    for (const B2bBlock& b : b2b->blocks) (b.resident() ? once : each) += b.operand.bytes();
    const Index rows = kernel_.type(b2b->dots[0].op->results[0]).shape[0];
    const bool waits = has_nested(*b2b) || b2b->scaled_accumulation() || b2b->multiplies_alone();
    const Index stages = std::min(waits ? kMaxStages : kMaxB2bStages,
                                  (options_.max_shared_bytes - once) / std::max<Index>(each, 1));
    // What adds up products holds several blocks of 64 rows, one product at a time.
    const Index most = b2b->scaled_accumulation() ? 2 : kMaxWarpgroups;
    const Index groups = std::clamp<Index>(rows / kGroupRows, 1, most);
    const int threads = static_cast<int>(groups) * kWarpgroup;
    if (b2b->scaled_accumulation()) return list_scaled_accumulation(*b2b, threads, static_cast<int>(stages));
    tile::WgmmaB2b kind{.stages = static_cast<int>(stages), .group_m = b2b_group_m(*b2b)};
    kind.longest_first = kind.group_m == 0 && differs_by_row(*b2b, kernel_);
    const double by_rounds = b2b->multiplies_alone() ? price_.us(*b2b) : price_.by_rounds_us(*b2b);
    const auto in_round = std::count_if(b2b->dots.begin(), b2b->dots.end(),
                                        [&](const B2bDot& d) { return d.loop == b2b->dots[0].loop; });
    const bool in_order = in_round > 2 && !b2b->multiplies_alone();
    std::string why = add_b2b({.threads = threads, .kind = kind}, (in_order ? 1 : kPlainB2b) * by_rounds);
    if (!why.empty()) return refuse({.kind = tile::WgmmaB2b()}, why);
    const bool wide = kernel_.type(b2b->dots[0].op->operands[0]).shape[1] >= kWideDepth;
    const auto try_rounds = [&](tile::Rounds rounds, double us) {
      kind.rounds = rounds;
      const Schedule s{.threads = threads, .kind = kind};
      if (why = add_b2b(s, us); !why.empty()) refuse(s, why);
    };
    const double overlapping = in_order ? kThreeOverlapped : 1;
    const bool in_turns = !wide || price_.mean_rounds(*b2b) < kFewRounds;
    for (const int tma_store : {0, static_cast<int>(kFewestStoreStages)}) {
      kind.store_stages = tma_store;
      const double us = (tma_store > 0 ? kB2bTmaStore : 1) * overlapping * by_rounds;
      try_rounds(tile::Rounds::overlapped, (in_turns ? kFa3Pingpong : 1) * us);
      if (groups > 1) try_rounds(tile::Rounds::fa3_pingpong, (in_turns ? 1 : kFa3Pingpong) * us);
    }
  }

  int b2b_group_m(const B2bMatmul& b2b) const {
    return b2b.multiplies_alone() && kernel_.grid.size() > 1 ? kB2bGroupM : 0;
  }

  // Back-to-back matmuls whose threads copy the blocks: as few warps as have registers for the rows, so that
  // each reads what it multiplies with for many of them, and as many stages as leave room for a second
  // program.
  void list_cp_async_b2b() {
    const auto b2b = find_b2b_matmul(kernel_, DotUnit::mma);
    if (!b2b) return refuse({.kind = tile::MmaB2b()}, b2b.error().message);
    constexpr Index kDriverBytes = 1 << 10;  // of each block; a multiprocessor has them besides for one
    Index once = kDriverBytes + (1 << 10), each = 0;
    for (const B2bBlock& b : b2b->blocks) (b.resident() ? once : each) += b.operand.bytes();
    const Index rows = kernel_.type(b2b->dots[0].op->results[0]).shape[0];
    std::map<const Op*, Index> elements;  // of a loop's products and sums
    for (const B2bDot& d : b2b->dots) elements[d.outermost] += kernel_.type(d.op->results[0]).size();
    Index threads = std::max(rows, Index{kWarpgroup});
    for (const auto& [loop, count] : elements)
      if (count / threads > kMostAccumulators) threads = 2 * rows;
    tile::MmaB2b kind{.group_m = b2b_group_m(*b2b)};
    kind.longest_first = kind.group_m == 0 && differs_by_row(*b2b, kernel_);
    const bool waits = b2b->multiplies_alone() || has_nested(*b2b);
    const double us = (options_.arch.major < 9 ? 1 : kSlowerByThreads) * kPlainB2b * price_.us(*b2b);
    const Index room = options_.max_shared_bytes;
    std::string why = "dot: shared memory has no room for the back-to-back matmul's blocks";
    for (Index stages = 1; stages <= kMaxCopies && once + stages * each <= room; ++stages) {
      kind.stages = static_cast<int>(stages);
      const Schedule s{.threads = static_cast<int>(threads), .kind = kind};
      const Index programs = (room + kDriverBytes) / (once + stages * each);
      const bool alone = programs * threads < kThreadsForWaits;
      const double fewer = waits ? static_cast<double>(kMaxCopies - stages) : stages == 1 ? 1 : 0;
      why = add_b2b(s, us * (1 + kFewerStages * fewer) * (alone ? kAlone : 1));
      if (!why.empty()) refuse(s, why);
      if (!why.empty() && stages > 1) break;
    }
    if (found_.empty() || !std::holds_alternative<tile::MmaB2b>(found_.back().schedule.kind))
      refuse({.kind = tile::MmaB2b()}, why);
  }

  // One product a round: one warpgroup adds while the other one's blocks are multiplied. group_m as for plain
  // products.
  void list_scaled_accumulation(const B2bMatmul& b2b, int threads, int stages) {
    const auto rows = static_cast<Index>(kernel_.grid.size() > 1 ? programs_of(kernel_.grid[1]) : 1);
    double us = price_.us(b2b);
    const bool tall = kernel_.type(b2b.dots[0].op->results[0]).shape[0] > 2 * kGroupRows;
    for (int group_m : tall ? kScaledTallGroupMs : kScaledGroupMs) {
      tile::WgmmaScaled kind{.stages = stages};
      if (!found_.empty() && is_too_long(threads, kind, group_m, static_cast<double>(rows))) continue;
      kind.group_m = rows > 1 ? group_m : 0;
      kind.cluster = 2;
      const Schedule shared{.threads = threads, .kind = kind};
      const std::string why_alone = add_b2b(shared, us);
      if (!why_alone.empty()) refuse(shared, why_alone);
      kind.cluster = 1;
      const std::string why =
          add_b2b({.threads = threads, .kind = kind}, why_alone.empty() ? kOwnBlocks * us : us);
      if (!why.empty() && !found_one()) return refuse({.kind = tile::WgmmaScaled()}, why);
      us *= kOtherGroupM;
    }
  }

  std::string why_not(const Schedule& s) {
    const auto plan = planner_.plan(s);
    return plan ? "" : plan.error().message;
  }

  // Why not, where it cannot be planned.
  std::string add_b2b(const Schedule& s, double us) {
    if (std::string why = why_not(s); !why.empty()) return why;
    Candidate c;
    c.schedule = s;
    c.predicted_us = us;
    found_.push_back(std::move(c));
    return "";
  }

  double rounds(const Op& loop) const { return rounds_of(loop, rounds_); }
  Index depth_of(const TensorDot& dot) const {
    return std::max<Index>(1, std::llround(rounds(*dot.loop))) * dot.a.depth;
  }
  double programs() const { return programs_of(kernel_); }
  // No schedule is faster than what must move between memory and chip, none that the threads feed than
  // back-to-back matmuls are beside their other steps, and loops without a product come before.
  void keep_floors() {
    constexpr Index kSampled = 64;
    const perf::Cost work =
        kernel_.scalars.empty() ? tile::kernel_cost(kernel_, {}, kSampled).work : perf::Cost();
    const double bytes_us = work.bytes() / target_.memory_bytes_per_s * 1e6,
                 products_us = work.matrix_by_rate().total() / (kB2bShare * target_.matrix_flops_per_s) * 1e6,
                 launch_us = target_.launch_s * 1e6, waits_us = waiting_us();
    for (Candidate& c : found_) {
      if (!c.refusal.empty()) continue;
      const double floor_us =
          launch_us + (dot_unit(c.schedule) == DotUnit::mma ? std::max(bytes_us, products_us) : bytes_us);
      c.predicted_us = std::max(c.predicted_us, floor_us) + waits_us;
    }
  }

  // Loops before a product's, as of the statistics of rows that are then multiplied: in a kernel of few large
  // tiles nothing else runs while a round waits for memory.
  double waiting_us() const {
    double us = 0;
    for (const Op& op : kernel_.body.ops) {
      if (op.kind != OpKind::loop) continue;
      if (!holds_dots(op)) us += rounds(op) * target_.round_wait_s * 1e6;
    }
    return us * std::ceil(programs() / std::max(1, target_.units));
  }

  const Kernel& kernel_;
  const tile::Target& target_;
  const PlanOptions& options_;
  KernelPlanner planner_;
  const std::map<const Op*, double> rounds_;  // by loop
  const B2bPrice price_;
  std::vector<Candidate> found_;
};

}  // namespace

std::vector<Candidate> dot_candidates(const Kernel& kernel, const tile::Target& target,
                                      const PlanOptions& options) {
  bool dots = false;
  tile::for_each_op(kernel.body, [&](const Op& op) { dots = dots || op.kind == OpKind::dot; });
  return dots ? Lister(kernel, target, options).run() : std::vector<Candidate>();
}

}  // namespace tilewright::cuda
