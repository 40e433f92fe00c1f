// Counting over the loop plan, and the time model.
#include "backends/cuda/schedule/estimate.h"

#include "backends/cuda/analysis/access.h"
#include "backends/cuda/analysis/inner_sums.h"
#include "backends/cuda/analysis/neighbours.h"
#include "backends/cuda/analysis/powers.h"
#include "backends/cuda/layout/staging.h"
#include "backends/cuda/machine/arch.h"
#include "backends/cuda/machine/fitted.h"
#include "backends/cuda/schedule/exchange_cost.h"
#include "backends/cuda/schedule/line_visits.h"
#include "backends/cuda/schedule/straight_block.h"
#include "backends/printer/accuracy.h"

#include <tilewright/tile/loop_rounds.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

namespace tilewright::cuda {

using printer::ElementLoop;
using printer::Instr;
using printer::Step;
using tile::Op;
using tile::OpKind;
using tile::Prim;
using tile::ValueId;

namespace {

// CUDA C++ Programming Guide, technical specifications, compute capability 8.0 and 9.0.
constexpr int kRegistersPerMultiprocessor = 65536;
constexpr int kThreadsPerMultiprocessor = 2048;
constexpr int kBlocksPerMultiprocessor = 32;

double instructions_of(const Instr& in, bool narrow, bool divides_by_constant) {
  if (in.kind == Instr::Kind::reduce || in.kind == Instr::Kind::scan)
    return tile::finds_place(in.op->monoid) ? kInstructionsOfPlace : 1;
  if (!in.op) return 0;
  switch (in.op->kind) {
    case OpKind::apply:
      return divides_by_constant ? kInstructionsOfDivisionByConstant
                                 : primitive_instructions(in.op->prim, narrow);
    case OpKind::cast:
      return kInstructionsOfCast;
    case OpKind::random:
      return kInstructionsOfRandom;
    case OpKind::gather:
    case OpKind::scatter:
    case OpKind::atomic_add:
      return kInstructionsOfIndexed;
    default:
      return kInstructionsOfOther;
  }
}

double registers_of(const Layouts& layouts, ValueId v, const tile::Kernel& kernel) {
  const auto it = layouts.buffers.find(v);
  if (it == layouts.buffers.end()) return 0;
  const double bytes = static_cast<double>(size_bytes(kernel.type(v).dtype));
  if (it->second.part == Part::one) return 1;
  const TileFrame& f = layouts.frame(it->second);
  const double words = std::max(bytes, is_float(kernel.type(v).dtype) ? bytes : 4.0) / 4;
  switch (it->second.part) {
    case Part::all: {
      const Index rows_in_one = layouts.folded.count(v) > 0 ? f.row_steps() : 1;
      const Index elements = f.elements_per_thread() / rows_in_one;
      return static_cast<double>(elements) * words;
    }
    case Part::cols:
      return static_cast<double>(f.col_steps() * f.vector) * words;
    default:
      return static_cast<double>(f.row_steps()) * std::max(1.0, words);
  }
}

// Buffers an element loop reads and writes, by storage.
void touched(const printer::LoopPlan& plan, const Step& step, std::vector<ValueId>& reads,
             std::vector<ValueId>& writes) {
  for (const Instr& in : step.loop.body) {
    if (in.value < 0 || in.kind == Instr::Kind::compute) continue;
    (in.kind == Instr::Kind::reload ? reads : writes).push_back(plan.storage(in.value));
  }
  if (step.op)
    for (ValueId v : step.op->operands) reads.push_back(plan.storage(v));
  if (step.op)
    for (ValueId v : step.op->results) writes.push_back(plan.storage(v));
  for (auto [from, to] : step.moves) reads.push_back(plan.storage(from)), writes.push_back(plan.storage(to));
  for (const auto& body : step.body)
    for (const Step& inner : body) touched(plan, inner, reads, writes);
}

// Bytes a thread loads at the head of a loop, apart from kept loads.
double loaded_bytes(const tile::Kernel& kernel, const Layouts& layouts, const ElementLoop& loop) {
  const auto it = layouts.loops.find(&loop);
  if (it == layouts.loops.end() || it->second.part == Part::one) return 0;
  const TileFrame& f = layouts.frame(it->second);
  double bytes = 0;
  for (const Instr& in : loop.body) {
    if (in.kind != Instr::Kind::compute || !in.op) continue;
    if (in.op->kind != OpKind::load && in.op->kind != OpKind::gather) continue;
    const auto walked = std::count_if(in.axes.begin(), in.axes.end(), [](int a) { return a >= 0; });
    const bool whole = walked == static_cast<long>(long_axes(loop.shape).size());
    const Index elements = whole ? (it->second.part == Part::rows   ? f.row_steps()
                                    : it->second.part == Part::cols ? f.col_steps() * f.vector
                                                                    : f.elements_per_thread())
                                 : 1;
    bytes += static_cast<double>(elements) *
             static_cast<double>(size_bytes(kernel.views[static_cast<std::size_t>(in.op->param)].dtype));
  }
  return bytes;
}

}  // namespace

namespace {

class WorkCounter {
 public:
  WorkCounter(const tile::Kernel& kernel, Index cache_bytes)
      : kernel_(kernel),
        cache_bytes_(static_cast<double>(cache_bytes)),
        rounds_(tile::loop_rounds(kernel)),
        differs_(printer::differ_between_programs(kernel)),
        accuracy_(printer::needed_accuracy(kernel)),
        ranges_(printer::value_ranges(kernel)) {}

  KernelWork run(const printer::LoopPlan& plan) {
    for (const tile::GridAxis& axis : kernel_.grid) work_.programs *= programs_of(axis);
    walk(plan.steps, 1);
    work_.exchanges -= static_cast<double>(joined_exchanges(kernel_, plan).size());
    return work_;
  }

 private:
  void walk(const std::vector<Step>& steps, double times) {
    for (const Step& step : steps) {
      if (step.kind == Step::Kind::relayout) work_.exchanges += 2 * times;
      if (step.kind == Step::Kind::relayout && step.op->kind == OpKind::argsort) count_sort(*step.op, times);
      if (step.kind == Step::Kind::dot) count_dot(*step.op, times);
      if (step.kind == Step::Kind::elements) count_elements(step.loop, times);
      double inside = times;
      if (step.kind == Step::Kind::loop) {
        work_.loops = true;
        const auto known = rounds_.find(step.op);
        inside *= known != rounds_.end() ? known->second : static_cast<double>(kUnknownRounds);
        work_.rounds += inside;
        ++depth_;
      }
      for (const auto& body : step.body) walk(body, inside);
      if (step.kind == Step::Kind::loop) --depth_;
    }
  }

  void count_dot(const Op& op, double times) {
    const auto& a = kernel_.type(op.operands[0]).shape;
    const auto& b = kernel_.type(op.operands[1]).shape;
    work_.exchanges += 2 * times;
    work_.multiply_adds += times * kOfMultiplyAdd * static_cast<double>(a[0]) * static_cast<double>(a[1]) *
                           static_cast<double>(b[1]);
  }

  // The rounds of a bitonic network: all threads wait behind each.
  void count_sort(const Op& op, double times) {
    const tile::TileType& type = kernel_.type(op.operands[0]);
    const double length = static_cast<double>(type.shape[static_cast<std::size_t>(op.axis)]),
                 doublings = std::ceil(std::log2(length)), rounds = doublings * (doublings + 1) / 2;
    work_.exchanges += rounds * times;
    work_.instructions += times * rounds * static_cast<double>(type.size()) / 2 * kInstructionsOfComparator;
  }

  void count_elements(const ElementLoop& loop, double times) {
    double elements = times;
    for (Index e : loop.shape) elements *= static_cast<double>(e);
    bool reduces = false;
    const std::vector<printer::Accuracy> accuracy = printer::accuracy_in_loop(kernel_, loop, accuracy_);
    const std::set<const Instr*> inner = find_inner_sums(kernel_, loop);
    const Index vector = vector_of_indexed(loop);
    for (const Instr& in : loop.body) {
      const bool narrow =
          in.value >= 0 && accuracy[static_cast<std::size_t>(in.value)] != printer::Accuracy::exact;
      const double times_each = elements / (is_indexing(in) ? static_cast<double>(vector) : 1.0);
      work_.instructions += inner.count(&in) == 0
                                ? times_each * instructions_of(in, narrow, divides_by_constant(in))
                            : in.kind == Instr::Kind::reduce ? elements * kInstructionsOfInnerSum
                                                             : 0;
      reduces = reduces || in.kind == Instr::Kind::reduce || in.kind == Instr::Kind::scan;
      if (in.kind == Instr::Kind::scan && in.op->axis == 0 && loop.shape.size() == 2)
        work_.scanned += elements;
      count_access(in, times);
    }
    work_.exchanges += reduces ? times : 0;
  }

  // Indexed accesses. If all of a loop load vectors, the integers behind them are computed once a vector.
  static bool is_indexed(const Instr& in) {
    return in.op && (in.op->kind == OpKind::gather || in.op->kind == OpKind::scatter ||
                     in.op->kind == OpKind::atomic_add);
  }
  bool is_indexing(const Instr& in) const {
    if (is_indexed(in)) return true;
    return in.kind == Instr::Kind::compute &&
           (kernel_.type(in.value).dtype == DType::i64 || is_bool(kernel_.type(in.value).dtype));
  }
  // Integers, as indices are computed of others.
  bool divides_by_constant(const Instr& in) const {
    if (in.kind != Instr::Kind::compute || !in.op || in.op->kind != OpKind::apply ||
        (in.op->prim != tile::Prim::div && in.op->prim != tile::Prim::rem) ||
        is_float(kernel_.type(in.value).dtype))
      return false;
    const printer::ValueRange& by = ranges_[static_cast<std::size_t>(in.op->operands[1])];
    return by.low == by.high;
  }
  // Elements of the vector that one load of an indexed access brings, 1 where it takes them one by one.
  Index vector_of(const ElementLoop& loop, const Instr& in) const {
    const Axes axes = long_axes(loop.shape);
    if (axes.empty() || in.op->kind != OpKind::gather) return 1;
    const auto side_of = [&](int axis) { return axis == axes.back() ? 1 : axis == axes.front() ? 0 : -1; };
    const auto size =
        static_cast<Index>(size_bytes(kernel_.views[static_cast<std::size_t>(in.op->param)].dtype));
    const Index vector = std::max<Index>(1, kWidestAccess / size);
    return Neighbours(kernel_, ranges_, loop, side_of, vector).gathers(in) ? vector : 1;
  }
  // The least of a loop's.
  Index vector_of_indexed(const ElementLoop& loop) const {
    Index vector = 0;
    for (const Instr& in : loop.body)
      if (is_indexed(in)) vector = vector == 0 ? vector_of(loop, in) : std::min(vector, vector_of(loop, in));
    return std::max<Index>(vector, 1);
  }

  void count_access(const Instr& in, double times) {
    const bool load = in.op && in.kind == Instr::Kind::compute &&
                      (in.op->kind == OpKind::load || in.op->kind == OpKind::gather);
    const bool store = in.kind == Instr::Kind::effect;
    if ((!load && !store) || !counted_.insert(in.op).second) return;
    const tile::TileType& tile = kernel_.type(store ? in.op->operands[0] : in.op->results[0]);
    const double ways = store && in.op->kind == OpKind::atomic_add ? 2 : 1;  // read, and written again
    double bytes =
        ways * times * static_cast<double>(tile.size()) *
        static_cast<double>(size_bytes(kernel_.views[static_cast<std::size_t>(in.op->param)].dtype));
    if (load && in.op->masked) bytes = gathered(in.op->param, bytes);
    const bool own = std::any_of(in.op->operands.begin(), in.op->operands.end(),
                                 [&](ValueId v) { return differs_[static_cast<std::size_t>(v)]; });
    const double streamed = !own ? 0 : load ? read_once(in.op->param, bytes) : bytes;
    work_.streamed_bytes += streamed;
    work_.cached_bytes += bytes - streamed;
    work_.sector_bytes += streamed * moved_over_bytes(*in.op, tile, kSectorBytes, 0);
    work_.memory_bytes += streamed * moved_over_bytes(*in.op, tile, kLeastOfStrip, kTallStripBytes);
    if (own && load) work_.read_bytes += bytes;
    if (load && depth_ > 0)
      work_.loop_lines += lines_of(kernel_.views[static_cast<std::size_t>(in.op->param)]);
  }

  // Bytes that move over bytes that the tile has, where its rows are shorter than `least`, lie further apart,
  // and span so many bytes together.
  double moved_over_bytes(const Op& op, const tile::TileType& tile, double least, double span) const {
    const tile::ViewParam& view = kernel_.views[static_cast<std::size_t>(op.param)];
    if (tile.shape.size() != 2 || op.tile_dims.size() != 2) return 1;
    const auto size = static_cast<double>(size_bytes(view.dtype));
    const tile::Dim& apart = view.strides[static_cast<std::size_t>(op.tile_dims[0])];
    const double row = static_cast<double>(tile.shape[1]) * size;
    const double pitch = apart.is_constant() ? static_cast<double>(std::abs(apart.value)) * size : least;
    if (static_cast<double>(tile.shape[0]) * pitch < span) return 1;
    return std::max(1.0, std::min(pitch, least) / row);
  }

  // What is gathered under masks reads no more of a view than the program's share of it: parts of a
  // tile that each come from one of several views are masked this way (concat, pad, halves that change
  // places).
  double gathered(int view, double bytes) {
    double& left =
        left_of_view_
            .try_emplace(view, bytes_of(kernel_.views[static_cast<std::size_t>(view)]) / work_.programs)
            .first->second;
    const double taken = std::min(left, bytes);
    left -= taken;
    return taken;
  }

  // What a program reads of a view that is not there already because another one has read it: the tables of
  // an embedding or of angles. Half of the cache is theirs, beside all that passes; what of a larger table is
  // found there is by chance.
  double read_once(int view, double bytes) const {
    const double whole = bytes_of(kernel_.views[static_cast<std::size_t>(view)]);
    const double share = whole / work_.programs, again = bytes - share;
    if (again <= 0) return bytes;
    return share + again * (1 - std::min(1.0, cache_bytes_ / 2 / whole));
  }

  // Cache lines that hold all of a view; many where arguments decide.
  static double lines_of(const tile::ViewParam& view) { return std::ceil(bytes_of(view) / kLineBytes); }
  static double bytes_of(const tile::ViewParam& view) {
    double bytes = static_cast<double>(size_bytes(view.dtype));
    for (const tile::Dim& extent : view.extents)
      bytes *= extent.is_constant() ? static_cast<double>(extent.value) : kUnknownPrograms;
    return bytes;
  }

  const tile::Kernel& kernel_;
  const double cache_bytes_;
  const std::map<const Op*, double> rounds_;  // by loop
  const std::vector<bool> differs_;
  const std::vector<printer::Accuracy> accuracy_;
  const std::vector<printer::ValueRange> ranges_;
  std::set<const Op*> counted_;
  std::map<int, double> left_of_view_;  // bytes of a view that a program may still gather
  int depth_ = 0;                       // loops around what is counted
  KernelWork work_;
};

}  // namespace

KernelWork kernel_work(const tile::Kernel& kernel, const printer::LoopPlan& plan, Index cache_bytes) {
  return WorkCounter(kernel, cache_bytes).run(plan);
}

namespace {

// A reduction waits for all that its round loads.
bool computes_one_by_one(const ElementLoop& loop) {
  return std::none_of(loop.body.begin(), loop.body.end(), [](const Instr& in) {
    return in.kind == Instr::Kind::reduce || in.kind == Instr::Kind::scan;
  });
}

// Registers that hold tiles where most do: across the border of two steps, or while a loop's loads are under
// way.
double tile_registers(const tile::Kernel& kernel, const CudaPlan& plan, const std::set<const Op*>& staged,
                      double& bytes_ahead) {
  const std::vector<Step>& steps = plan.loops->steps;
  const Layouts& layouts = plan.layouts;
  std::vector<std::vector<ValueId>> reads(steps.size()), writes(steps.size());
  for (std::size_t i = 0; i < steps.size(); ++i) touched(*plan.loops, steps[i], reads[i], writes[i]);
  std::set<ValueId> in_shared;
  for (const Op* op : staged) in_shared.insert(plan.loops->storage(op->results[0]));
  struct Life {
    std::size_t first_written, last_read;  // steps
    double registers;
  };
  std::map<ValueId, Life> lives;
  for (const auto& [v, place] : layouts.buffers)
    if (!in_shared.count(v)) lives[v] = {steps.size(), 0, registers_of(layouts, v, kernel)};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    for (ValueId v : writes[i])
      if (const auto life = lives.find(v); life != lives.end())
        life->second.first_written = std::min(life->second.first_written, i);
    for (ValueId v : reads[i])
      if (const auto life = lives.find(v); life != lives.end()) life->second.last_read = i;
  }
  double most = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    double before = 0, after = 0;
    for (const auto& [v, life] : lives) {
      if (life.first_written < i && life.last_read >= i) before += life.registers;
      if (life.first_written <= i && life.last_read > i) after += life.registers;
    }
    double loads = 0, under_way = 0;
    for_each_step(steps[i], [&](const Step& s) {
      if (s.kind != Step::Kind::elements) return;
      const double bytes = loaded_bytes(kernel, layouts, s.loop);
      const bool squeezed = steps[i].kind == Step::Kind::loop && computes_one_by_one(s.loop);
      loads = std::max(loads, bytes);
      under_way = std::max(under_way, squeezed ? std::min(bytes, kUnderWayBytes) : bytes);
    });
    if (bytes_ahead == 0) bytes_ahead = under_way;
    most = std::max({most, before + (staged.empty() ? loads / 4 : 0), after});
  }
  return most;
}

}  // namespace

double programs_of(const tile::GridAxis& axis) {
  double n = 1;
  for (const tile::GridFactor& f : axis)
    n *= f.extent.is_constant() ? static_cast<double>(ceil_div(f.extent.value, f.block)) : kUnknownPrograms;
  return n;
}

double programs_of(const tile::Kernel& kernel) {
  double all = 1;
  for (const tile::GridAxis& axis : kernel.grid) all *= programs_of(axis);
  return all;
}

Occupancy occupancy(const tile::Kernel& kernel, const CudaPlan& plan) {
  Occupancy out;
  out.line_visits = line_visits(kernel, plan);
  out.narrow = moves_singly(kernel, plan);
  const Layouts& layouts = plan.layouts;
  std::set<const Op*> staged;
  Index slots = 0;
  for (const StagedLoad& s : plan.staged) {
    staged.insert(s.op);
    slots += s.slots;
  }
  const double most = tile_registers(kernel, plan, staged, out.bytes_ahead);
  for (const auto& [loop, place] : layouts.loops) {
    if (place.part != Part::all && place.part != Part::cols) continue;
    const TileFrame& f = layouts.frame(place);
    const auto elements = static_cast<double>(f.elements_per_thread());
    if (elements < out.elements) continue;
    const double held = elements * static_cast<double>(f.row_groups() * f.row_threads());
    const double waste = held / static_cast<double>(std::max<Index>(1, f.rows * f.cols));
    // The loops come in the order of their addresses: of equals, the one that wastes most counts.
    out.waste = elements > out.elements ? waste : std::max(out.waste, waste);
    out.elements = elements;
  }
  const tile::Schedule& s = plan.schedule;
  out.registers = std::min(255, (kBaseRegisters + static_cast<int>(most) + 7) / 8 * 8);
  out.blocks = std::min({kRegistersPerMultiprocessor / (out.registers * s.threads),
                         kThreadsPerMultiprocessor / s.threads, kBlocksPerMultiprocessor});
  if (plan.runs.bytes > 0)
    out.blocks = static_cast<int>(std::min<Index>(
        out.blocks, plan.options.max_shared_bytes / (plan.shared.dynamic + kReservedSharedBytes)));
  if (!staged.empty()) {
    out.staged = true;
    const Index bytes = slots * kSlotBytes * s.threads * stages(s);
    out.bytes_ahead = static_cast<double>(slots * kSlotBytes * (stages(s) - 1));
    out.blocks = static_cast<int>(
        std::min<Index>(out.blocks, plan.options.max_shared_bytes / (bytes + kReservedSharedBytes)));
  }
  return out;
}

namespace {

// Blocks that run at once. Those of a cluster have a GPC of multiprocessors to themselves: on an H200 of 16
// or 18.
double blocks_at_once(int cluster, double resident, double units) {
  if (cluster == 1 || units < kUnitsOfGpc) return units * resident;
  return std::floor(units / kUnitsOfGpc) * std::max(1.0, std::floor(kUnitsOfGpc * resident / cluster)) *
         cluster;
}

}  // namespace

double predicted_us(const KernelWork& work, const Occupancy& o, const CudaPlan& plan,
                    const tile::Target& target) {
  const Layouts& layouts = plan.layouts;
  const tile::Schedule& schedule = plan.schedule;
  const int cluster = row_cluster(schedule);
  constexpr double kLanesPerUs = kLanes * kIssueClockMhz * kIssueShare;
  const double units = std::max(1, target.units), resident = std::max(1, o.blocks);
  const double programs_in_block = static_cast<double>(layouts.programs_per_block) / cluster;
  const double blocks = std::ceil(work.programs / layouts.programs_per_block) * cluster;
  // What the kernels before have left in the cache, or the next ones find there.
  const double passing = std::max(work.programs * work.streamed_bytes, target.beside_bytes);
  const bool in_cache = 2 * passing <= static_cast<double>(target.cache_bytes);
  const double bytes_per_s = in_cache ? target.cache_bytes_per_s : target.memory_bytes_per_s;
  // Neighbouring programs take their parts of a sector from the cache, where rows are shorter than one.
  const double streamed_s = std::max((in_cache ? work.streamed_bytes : work.memory_bytes) / bytes_per_s,
                                     work.scanned > 0 ? work.sector_bytes / target.cache_bytes_per_s : 0);
  const double memory_us = (o.narrow && work.exchanges > 0 ? kNarrowAccessCost : 1) * work.programs *
                           (streamed_s + work.cached_bytes / (kSharedReadRate * target.cache_bytes_per_s)) *
                           1e6;
  const ScanCost scan = scan_cost(work.scanned, layouts, schedule.threads);
  const bool straight = is_straight(work, o, schedule);
  const double instructions = work.instructions * o.waste + scan.instructions +
                              kInstructionsOfRowSum * sums_of_rows(layouts) * schedule.threads +
                              instructions_down(layouts, schedule.threads) +
                              (straight ? instructions_beside(work, o, plan) : 0);
  const double multiply_adds = work.multiply_adds * o.waste;
  const double compute_us = work.programs * (instructions + multiply_adds) / (units * kLanesPerUs);
  // A thread's sums of a product do not wait for one another; beside other blocks, threads wait for the
  // units.
  const bool alone = blocks <= units;
  const double filled = schedule.threads / kThreadsToFill,
               filled_by_sums = filled * (alone ? std::clamp(o.elements, 1.0, kIndependent) : 1);
  double exchange_us = exchange_us_of(schedule, layouts);
  if (cluster > 1) exchange_us += kClusterUs;
  // What one block does from its start to its end, alone: its own reads at its multiprocessor's rate, too.
  double block_us = work.exchanges * exchange_us + programs_in_block / kLanesPerUs *
                                                       (instructions / std::min(1.0, filled) +
                                                        multiply_adds / std::min(1.0, filled_by_sums));
  if (!o.staged)
    block_us += kBlockStartUs + kMemoryLatencyUs * std::max(1.0, std::min(work.rounds, work.loop_lines)) +
                kLineLatencyUs * work.rounds +
                work.read_bytes * programs_in_block * units / bytes_per_s * 1e6;
  block_us += scan.block_us + schedule.threads / 32.0 * kWarpStartUs;
  if (straight) block_us = straight_block_us(work, o, plan);
  const double at_once = blocks_at_once(cluster, resident, units), waves = blocks / at_once;
  // Blocks start one after another: the last of a grid that runs at once behind all others, those of a larger
  // one while others work.
  const double starts_us = blocks * kBlockLaunchUs;
  // Straight blocks are replaced as they end. The first ones' time comes before all else, below.
  const double latency_us = straight ? std::max(0.0, waves - 1) * block_us
                                     : (waves < 4 || o.staged ? std::ceil(waves) : waves) * block_us +
                                           std::min(blocks, at_once) / std::max(1.0, waves) * kBlockLaunchUs;
  // Blocks of loops stay: of a small grid no others come.
  const double there = work.loops || straight ? std::min(resident, std::ceil(blocks / units)) : resident;
  const double in_flight = there * schedule.threads * o.bytes_ahead / o.waste;
  const double starved = in_flight == 0         ? 1
                         : straight && in_cache ? std::hypot(1, kCacheBytesInFlight / in_flight)
                                                : std::max(1.0, kBytesInFlight / in_flight);
  const double visits_us = work.loops ? 0 : o.line_visits * blocks / (units * kIssueClockMhz);
  // Memory, walk and arithmetic overlap where several blocks of a multiprocessor stand at different points,
  // or rows come ahead. A block alone loads, computes and stores one after the other: that is its walk.
  const double overlap = work.exchanges == 0 || o.staged || resident >= 3 ? kOverlap
                         : resident == 2                                  ? kOverlapOfTwo
                         : work.multiply_adds > 0                         ? kOverlapOfProducts
                                                                          : kOverlap;
  double sum = 0;
  for (const double us : {memory_us * starved, latency_us, compute_us, visits_us})
    sum += std::pow(us, overlap);
  const double busy =
      std::pow(std::pow(sum, kOverlapOfStarts / overlap) + std::pow(starts_us, kOverlapOfStarts),
               1 / kOverlapOfStarts);
  const double more = o.staged && (cluster > 1 || resident > 1)            ? kStagedCost
                      : !o.staged && cluster > 1 && !shares_rows(schedule) ? kClusterCost
                                                                           : 1;
  const bool shifted_ahead =
      o.staged && layouts.shifted && passing <= 2 * static_cast<double>(target.cache_bytes);
  // Programs side by side whose threads take several pieces of a row in turn, and reduce no row.
  const bool in_turn = layouts.programs_per_block > 1 && work.exchanges == 0 &&
                       std::any_of(layouts.frames.begin(), layouts.frames.end(),
                                   [](const TileFrame& f) { return f.col_steps() > 1; });
  // Shorter code wins between equals: it compiles faster.
  const double own_us = (straight ? block_us + busy : busy) * more * (shifted_ahead ? kShiftedAheadCost : 1) *
                        (in_turn ? kPackedTurnsCost : 1) * (1 + kOfAnElement * o.elements);
  return own_us * own_us / (own_us + kHiddenByLaunchUs) + target.launch_s * 1e6;
}

}  // namespace tilewright::cuda
