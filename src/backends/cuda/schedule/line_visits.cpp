// Counting the lines and banks that accesses touch.
#include "backends/cuda/schedule/line_visits.h"

#include "backends/cuda/analysis/access.h"
#include "backends/cuda/machine/fitted.h"

#include <algorithm>
#include <map>
#include <set>

namespace tilewright::cuda {

using printer::ElementLoop;
using printer::Instr;
using tile::OpKind;

namespace {

// Bytes between neighbours along an axis of a loop; 0 where the access does not walk it.
double step_bytes(const Access& access, const Instr& in, int loop_axis) {
  for (int axis = 0; axis < static_cast<int>(in.axes.size()); ++axis) {
    if (in.axes[static_cast<std::size_t>(axis)] != loop_axis) continue;
    const tile::Dim& stride = access.stride(access.dim_of(axis));
    const double elements = stride.is_constant() ? std::abs(static_cast<double>(stride.value)) : kLineBytes;
    return elements * static_cast<double>(size_bytes(access.view().dtype));
  }
  return 0;
}

// Cache lines that one access of a warp touches, whose threads stand in a row, or in several that may be far
// apart.
double lines_of_a_warp(const TileFrame& f, double row_bytes, double column_bytes, double access_bytes) {
  const double lanes = std::min(32, f.threads_per_row), rows = 32 / lanes;
  const double span = (lanes - 1) * column_bytes + access_bytes;
  const double of_row = std::min(lanes, 1 + (span - access_bytes) / kLineBytes);
  return std::min(rows * of_row, 1 + ((rows - 1) * row_bytes + span - access_bytes) / kLineBytes);
}

// Turns in which shared memory answers a warp whose lanes lie `apart` bytes from row to row and `bytes` from
// lane to lane: of its 32 banks of 4 bytes each gives one word a turn.
double bank_turns(const TileFrame& f, Index apart, Index bytes) {
  const Index phases = std::max<Index>(1, bytes / 4), lanes = 32 / phases,
              in_row = std::min(32, f.threads_per_row);
  Index turns = 0;
  for (Index phase = 0; phase < phases; ++phase) {
    std::map<Index, std::set<Index>> words;  // by bank
    for (Index lane = phase * lanes; lane < (phase + 1) * lanes; ++lane)
      for (Index byte = 0; byte < std::max<Index>(bytes, 1); byte += 4) {
        const Index word = (lane / in_row * apart + lane % in_row * bytes + byte) / 4;
        words[word % 32].insert(word);
      }
    std::size_t most = 0;
    for (const auto& [bank, of_bank] : words) most = std::max(most, of_bank.size());
    turns += static_cast<Index>(most);
  }
  return static_cast<double>(turns);
}

}  // namespace

double line_visits(const tile::Kernel& kernel, const CudaPlan& plan) {
  double visits = 0;
  for (const auto& [loop, place] : plan.layouts.loops) {
    const Axes axes = long_axes(loop->shape);
    if (place.part != Part::all || axes.empty()) continue;
    const TileFrame& f = plan.layouts.frame(place);
    for (const Instr& in : loop->body) {
      const bool load = in.op && in.kind == Instr::Kind::compute && in.op->kind == OpKind::load;
      const bool store = in.op && in.kind == Instr::Kind::effect && in.op->kind == OpKind::store;
      if (!load && !store) continue;
      const Access access(kernel, plan.ranges, *in.op);
      const double bytes = static_cast<double>(size_bytes(access.view().dtype)),
                   step = step_bytes(access, in, axes.back()),
                   row = axes.size() == 2 ? step_bytes(access, in, axes.front()) : 0;
      if (plan.runs.has(*in.op)) {
        const Index size = static_cast<Index>(size_bytes(access.view().dtype)), vector = f.vector * size;
        visits += 2 * static_cast<double>(f.rows * f.cols) * bytes / kLineBytes +
                  static_cast<double>(f.row_steps() * f.col_steps()) * (plan.schedule.threads / 32.0) *
                      bank_turns(f, f.cols * size, vector);
        continue;
      }
      const bool vectors = step == bytes;
      const double together = vectors ? static_cast<double>(f.vector) : 1;
      const double accesses =
          static_cast<double>(f.elements_per_thread()) / together * (plan.schedule.threads / 32.0);
      const double lines = lines_of_a_warp(f, row, step * static_cast<double>(f.vector), together * bytes);
      // Parts of a sector that are stored one after another are as many writes of the cache.
      visits += accesses * lines * (store ? kVisitsOfStore : 1);
    }
  }
  return visits;
}

bool moves_singly(const tile::Kernel& kernel, const CudaPlan& plan) {
  return std::any_of(plan.layouts.loops.begin(), plan.layouts.loops.end(), [&](const auto& entry) {
    const auto& [loop, place] = entry;
    if (place.part != Part::cols) return false;
    if (const TileFrame& f = plan.layouts.frame(place); f.vector > 1 || f.col_steps() == 1) return false;
    return std::any_of(loop->body.begin(), loop->body.end(), [&](const Instr& in) {
      if (!in.op || (in.op->kind != OpKind::load && in.op->kind != OpKind::store) || in.axes.empty())
        return false;
      const Access access(kernel, plan.ranges, *in.op);
      const double bytes = static_cast<double>(size_bytes(access.view().dtype));
      return bytes <= 2 && step_bytes(access, in, long_axes(loop->shape).back()) == bytes;
    });
  });
}

}  // namespace tilewright::cuda
