// Counting the lines and banks that accesses touch.
#include "backends/cuda/schedule/line_visits.h"

#include "backends/cuda/analysis/access.h"
#include "backends/cuda/machine/fitted.h"

#include <algorithm>
#include <array>

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
// lane to lane: of its 32 banks of 4 bytes each gives one word a turn, and words of 32 banks are asked for at
// once.
double bank_turns(const TileFrame& f, Index apart, Index bytes) {
  constexpr Index kBanks = 32, kWord = 4;
  const Index words = std::max<Index>(1, bytes / kWord), in_row = std::min(32, f.threads_per_row);
  double turns = 0;
  for (Index first = 0; first < kBanks * words; first += kBanks) {
    std::array<Index, kBanks> asked{};
    for (Index i = 0; i < kBanks; ++i) {
      const Index lane = (first + i) / words, of_lane = (first + i) % words;
      asked[static_cast<std::size_t>(i)] = (lane / in_row * apart + lane % in_row * bytes) / kWord + of_lane;
    }
    std::sort(asked.begin(), asked.end());
    std::array<int, kBanks> of_bank{};
    for (auto word = asked.begin(), end = std::unique(asked.begin(), asked.end()); word != end; ++word)
      ++of_bank[static_cast<std::size_t>(*word % kBanks)];
    turns += *std::max_element(of_bank.begin(), of_bank.end());
  }
  return turns;
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
