// The steps in the order in which they are printed.
#include "backends/cuda/plan/element_loops.h"

#include "backends/cuda/analysis/powers.h"
#include "backends/cuda/analysis/schedule_fields.h"
#include "backends/cuda/layout/cluster_exchange.h"
#include "backends/cuda/layout/spread.h"
#include "backends/cuda/machine/fitted.h"
#include "backends/cuda/plan/refusal.h"

#include <algorithm>
#include <set>

namespace tilewright::cuda {

using printer::ElementLoop;
using printer::Instr;
using printer::Step;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

std::map<ValueId, ValueId> join_exchanges(const tile::Kernel& kernel, printer::LoopPlan& plan) {
  std::map<ValueId, ValueId> max_of_sum;
  for (const JoinedExchange& e : joined_exchanges(kernel, plan)) {
    max_of_sum[e.sum] = e.max;
    const auto first = plan.steps.begin() + e.first, second = plan.steps.begin() + e.second;
    std::rotate(first + 1, second, second + 1);  // the scalars between the two wait for both
  }
  return max_of_sum;
}

namespace {

bool scans(const ElementLoop& loop) {
  return std::any_of(loop.body.begin(), loop.body.end(),
                     [](const Instr& in) { return in.kind == Instr::Kind::scan; });
}

// Whether a load sees anything but zeros outside of its view.
bool fills_with_numbers(const Op& load) { return load.bounded && !(load.number == tile::Number()); }

class ElementLoopPlanner {
 public:
  ElementLoopPlanner(const ElementsInput& input, ElementLoops& out)
      : kernel_(input.kernel),
        schedule_(input.schedule),
        plan_(input.plan),
        layouts_(input.layouts),
        dots_(input.dots),
        out_(out) {}

  Status run() {
    if (Status s = walk(plan_.steps); !s) return s;
    if (!deferred_.empty()) return refusal("a maximum waits for a sum that no loop prints");
    return Unit{};
  }

 private:
  Status walk(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      if (Status s = visit(step); !s) return s;
      for (const auto& body : step.body)
        if (Status s = walk(body); !s) return s;
    }
    return Unit{};
  }

  Status visit(const Step& step) {
    switch (step.kind) {
      case Step::Kind::elements:
        return elements(step.loop);
      case Step::Kind::relayout:
        if (wgmma()) return refusal("wgmma: a tile changes its layout");
        exchange(relayout_stage(kernel_, *step.op).bytes);
        return Unit{};
      case Step::Kind::dot:
        if (!dots_.dot && !dots_.b2b)
          exchange(dot_stage(kernel_, layouts_, place_of(step.op->results[0]), *step.op).bytes);
        return Unit{};
      case Step::Kind::assign:
        for (const auto& [from, to] : step.moves)
          if (kernel_.type(to).rank() > 0)
            if (Status s = move(from, place_of(to)); !s) return s;
        return Unit{};
      default:
        return Unit{};
    }
  }

  Status elements(const ElementLoop& loop) {
    const ThreadLayout layout = layouts_.loops.at(&loop);
    if (Status s = choose_pieces(loop, layout); !s) return s;
    for (const Instr& in : loop.body) {
      if (in.kind != Instr::Kind::reload) continue;
      const Part part = spread_of(loop, layout, in.axes);
      if (Status s = move(in.value, part == Part::one ? ThreadLayout{} : ThreadLayout{layout.frame, part});
          !s)
        return s;
    }
    for (const Instr& in : loop.body)
      if (Status s = check_result(loop, layout, in); !s) return s;
    if (layout.part == Part::one) return Unit{};
    if (Status s = plan_scans(loop, layout); !s) return s;
    return plan_exchange(loop, layout);
  }

  // Fails if a result is written where the loop's layout cannot put it.
  Status check_result(const ElementLoop& loop, ThreadLayout layout, const Instr& in) const {
    if (in.kind == Instr::Kind::keep || in.kind == Instr::Kind::scan) {
      const ThreadLayout kept = place_of(in.value);
      if (kept != layout && !same_spread(layouts_, kept, layout))
        return refusal("a kept value changes its layout");
    }
    if (in.kind != Instr::Kind::reduce || kernel_.type(in.value).rank() == 0) return Unit{};
    const int side = side_of_axis(loop, layout, in.op->axis);
    const ThreadLayout result = layout_of_result(layout, side);
    if (side >= 0 && result.part != Part::one && !same_spread(layouts_, place_of(in.value), result))
      return refusal("a reduction's result changes its layout");
    return Unit{};
  }

  // A value in other registers than its own: through shared memory, as a row-major tile.
  Status move(ValueId v, ThreadLayout to) {
    if (to.part == Part::one || same_spread(layouts_, place_of(v), to)) return Unit{};
    if (layouts_.is_packed()) return refusal("programs side by side: values stay in their threads");
    if (shares_rows(schedule_)) return refusal("cluster: values stay in the blocks that have their rows");
    // The blocks that a warpgroup fetches leave room for what stands along one axis of a tile, no more.
    const tile::TileType& type = kernel_.type(v);
    if (wgmma() && long_axes(type.shape).size() > 1) return refusal("wgmma: a tile changes its layout");
    exchange(type.size() * static_cast<Index>(size_bytes(type.dtype)));
    return Unit{};
  }

  Status choose_pieces(const ElementLoop& loop, ThreadLayout layout) {
    if (!wgmma() || (!dots_.dot && dots_.results.empty()) || layout.part != Part::all) return Unit{};
    const TileFrame& f = layouts_.frame(layout);
    if (f.map != RowMap::mma) return Unit{};
    Pieces pieces;
    Index registers = f.elements_per_thread(), tiles = 0, reduced = 0;
    for (const Instr& in : loop.body) {
      if (in.kind == Instr::Kind::effect && result_of(*in.op)) {
        if (scans(loop)) return refusal("store_stages: rows are scanned where they are stored");
        if (side_of_axis(loop, layout, in.axes[0]) != 0 || side_of_axis(loop, layout, in.axes[1]) != 1)
          return refusal("store_stages: the tile is stored the other way round");
        pieces.staged_stores.push_back(static_cast<int>(&in - loop.body.data()));
        pieces.vectors = result_of(*in.op)->columns() / (Index{kQuad} * f.vector);
        ++out_.staged_results;
      }
      if (in.kind == Instr::Kind::compute && in.op->kind == OpKind::load) {
        const Part part = spread_of(loop, layout, in.axes);
        if (part == Part::cols) registers += f.col_steps() * f.vector;
        if (part == Part::all) tiles += f.elements_per_thread();
      }
      if (in.kind == Instr::Kind::reduce && side_of_axis(loop, layout, in.op->axis) == 0)
        reduced += f.col_steps() * f.vector;
    }
    if (!dots_.results.empty() && pieces.staged_stores.size() == dots_.results.size())
      pieces.fetched = find_fetched(loop, layout);
    // Registers hold a row of a piece of each of them.
    const auto fetched = static_cast<Index>(pieces.fetched.size());
    tiles -= fetched * f.elements_per_thread();
    registers += fetched * pieces.vectors * f.vector;
    if (!dots_.b2b) {  // whose element loops stand between products
      // Two warpgroups' tiles of 192 columns leave none: ptxas spilled 100 bytes.
      if (is_pingpong(schedule_) && reduced > 0 && f.elements_per_thread() + reduced > kEpilogueRegisters)
        return refusal("cutlass_pingpong: no registers are left for what columns are reduced to");
      pieces.loads = !scans(loop) && registers + reduced > kEpilogueRegisters;
      const bool by_piece = !scans(loop) && tiles > 0 && registers + reduced + tiles > kEpilogueRegisters;
      if ((pieces.loads || by_piece) && pieces.vectors == 0) pieces.vectors = kQuad;
      const Index of_row = tiles / f.elements_per_thread() * pieces.vectors * f.vector;
      if (by_piece)
        pieces.rows = registers + reduced + kHalvesOfPiece * of_row > kEpilogueRegisters ? 1 : kHalvesOfPiece;
    }
    if (is_pingpong(schedule_) && !dots_.b2b) {
      const Index left = kPingpongRegisters - f.elements_per_thread() - reduced;
      if (registers_of_pieces(loop, layout, pieces) > left)
        return refusal("cutlass_pingpong: no registers are left for what the tile is computed with");
    }
    if (pieces.vectors > 0) out_.pieces[&loop] = pieces;
    return Unit{};
  }

  // Registers of a thread beside the product, where a warpgroup has a tile of its own: for a row of a piece
  // of each tile that is loaded, with where it lies, which what is stored takes the place of; for functions
  // under way; and for rows that warps send.
  Index registers_of_pieces(const ElementLoop& loop, ThreadLayout layout, const Pieces& pieces) const {
    const Index quad = kQuad * layouts_.frame(layout).vector / 2,
                row = std::max(pieces.vectors, Index{kQuad}) * layouts_.frame(layout).vector / 2;
    const bool by_rows = !pieces.staged_stores.empty() && !dots_.results[0].by_engine;
    Index loaded = 0, stored = 0, functions = 0;
    if (pieces.rows == 0 && !by_rows) return 0;
    for (const Instr& in : loop.body) {
      if (!in.op) continue;
      const bool fetched = pieces.fetches(static_cast<std::size_t>(&in - loop.body.data()));
      if (in.kind == Instr::Kind::compute && in.op->kind == OpKind::load && !fetched &&
          spread_of(loop, layout, in.axes) == Part::all)
        loaded += row * words_of(in) + (by_rows ? 2 : 1) * kAddressRegisters;
      if (in.kind == Instr::Kind::effect && in.op->kind == OpKind::store && in.axes.size() == 2)
        stored = std::max(stored, quad * words_of(in));
      if (in.op->kind == OpKind::apply && tile::info(in.op->prim).flops >= kFlopsOfFunction)
        functions = std::max(functions, static_cast<Index>(tile::info(in.op->prim).flops / kFlopsOfRegister));
    }
    return std::max(loaded, stored) + functions +
           (by_rows ? kRowSenderRegisters * static_cast<Index>(pieces.staged_stores.size()) : 0);
  }

  // Registers of two elements.
  Index words_of(const Instr& in) const {
    return size_bytes(kernel_.views[static_cast<std::size_t>(in.op->param)].dtype) > 2 ? 2 : 1;
  }

  const TileStore* result_of(const Op& store) const {
    const auto at = std::find_if(dots_.results.begin(), dots_.results.end(),
                                 [&](const TileStore& r) { return r.op == &store; });
    return at == dots_.results.end() ? nullptr : &*at;
  }

  // The loads that can come to the stages of the loop's results, as many as these have room for: their pieces
  // must look as the results' do, and their places be known in front of the product.
  std::vector<int> find_fetched(const ElementLoop& loop, ThreadLayout layout) {
    std::vector<int> found;
    if (dots_.loads.empty()) return found;
    const TileStore& result = dots_.results[0];
    for (const Instr& in : loop.body) {
      if (static_cast<Index>(found.size()) == store_stages(schedule_) / kFetchStages) break;
      if (in.kind != Instr::Kind::compute || in.op->kind != OpKind::load) continue;
      const auto load = std::find_if(dots_.loads.begin(), dots_.loads.end(),
                                     [&](const TileLoad& l) { return l.op == in.op; });
      if (load == dots_.loads.end() || fills_with_numbers(*in.op) || !is_known_before_loop(*in.op)) continue;
      const bool alike =
          load->block.dims[0] == in.op->tile_dims[1] && load->block.box[0] == result.columns() &&
          load->block.box[1] == kPieceRows && spread_of(loop, layout, in.axes) == Part::all &&
          side_of_axis(loop, layout, in.axes[0]) == 0 && side_of_axis(loop, layout, in.axes[1]) == 1;
      const bool in_place = std::any_of(dots_.results.begin(), dots_.results.end(), [&](const TileStore& r) {
        return loads_same_tile(kernel_, *in.op, *r.op);
      });
      const bool written = tile::view_uses(kernel_)[static_cast<std::size_t>(in.op->param)].written;
      if (!alike || (written && !in_place)) continue;
      out_.fetched.push_back(static_cast<int>(load - dots_.loads.begin()));
      found.push_back(static_cast<int>(&in - loop.body.data()));
    }
    return found;
  }

  bool is_known_before_loop(const Op& load) const {
    std::set<ValueId> known;
    for (const Op& op : kernel_.body.ops) {
      if (&op == dots_.dot->loop) break;
      known.insert(op.results.begin(), op.results.end());
    }
    return std::all_of(load.operands.begin(), load.operands.end(),
                       [&](ValueId v) { return known.count(v) > 0; });
  }

  Status plan_scans(const ElementLoop& loop, ThreadLayout layout) {
    const TileFrame& f = layouts_.frame(layout);
    for (const Instr& in : loop.body) {
      if (in.kind != Instr::Kind::scan) continue;
      const int side = side_of_axis(loop, layout, in.op->axis);
      if (side < 0) continue;
      if (wgmma()) return refusal("wgmma: a scan is of all threads");
      exchange(scan_bytes(f, layout.part, side, kernel_.type(in.value).dtype));
    }
    return Unit{};
  }

  Status plan_exchange(const ElementLoop& loop, ThreadLayout layout) {
    const TileFrame& f = layouts_.frame(layout);
    std::vector<const Instr*> along_row;
    for (const Instr& in : loop.body) {
      if (in.kind != Instr::Kind::reduce) continue;
      const int side = side_of_axis(loop, layout, in.op->axis);
      if (side == 1) along_row.push_back(&in);
      if (side == 0)
        exchange(column_exchange_bytes(
            f, layout.part, program_threads(schedule_),
            reduction_state_bytes(kernel_.type(in.op->operands[0]).dtype, in.op->monoid)));
    }
    if (along_row.empty() || row_parts(f) == 1) return Unit{};
    if (along_row.size() == 1) {
      const ValueId v = along_row[0]->value;
      const bool alone = layout.part == Part::cols && f.groups == 1;
      const bool waits = std::any_of(out_.max_of_sum.begin(), out_.max_of_sum.end(),
                                     [&](const auto& pair) { return pair.second == v; });
      if (waits && alone) {
        deferred_.insert(v);
        return Unit{};
      }
      const auto max = out_.max_of_sum.find(v);
      if (max != out_.max_of_sum.end() && deferred_.erase(max->second) > 0 && !alone)
        return refusal("a sum of powers changes its layout");
    }
    out_.warps_meet = true;
    return Unit{};
  }

  bool wgmma() const { return is_wgmma(schedule_); }
  ThreadLayout place_of(ValueId v) const {
    const auto layout = layouts_.buffers.find(plan_.storage(v));
    TW_CHECK(layout != layouts_.buffers.end(), "a buffer without a layout");
    return layout->second;
  }
  void exchange(Index bytes) { out_.exchanged_bytes = std::max(out_.exchanged_bytes, round_up(bytes, 16)); }

  const tile::Kernel& kernel_;
  const tile::Schedule& schedule_;
  const printer::LoopPlan& plan_;
  const Layouts& layouts_;
  const DotUse& dots_;
  ElementLoops& out_;
  std::set<ValueId> deferred_;  // maxima that are not exchanged yet
};

}  // namespace

Status plan_elements(const ElementsInput& input, ElementLoops& loops) {
  return ElementLoopPlanner(input, loops).run();
}

}  // namespace tilewright::cuda
