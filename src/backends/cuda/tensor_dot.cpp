// What tensor cores and copy engine can take, and the plan without what they take over.
#include "backends/cuda/tensor_dot.h"

#include "backends/cuda/dot_loop.h"
#include "backends/cuda/printer.h"

#include <tilewright/tile/affine.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace tilewright::cuda {

using printer::Instr;
using printer::LoopPlan;
using printer::Step;
using tile::DotUnit;
using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

Failure refuse(std::string why) { return failure(Failure::Kind::unsupported, "dot: " + std::move(why)); }

class Finder {
 public:
  Finder(const Kernel& kernel, DotUnit unit) : kernel_(kernel), unit_(unit) {
    tile::for_each_op(kernel.body, [&](const Op& op) {
      for (ValueId r : op.results) made_by_[r] = &op;
    });
  }

  Result<TensorDot> run() const {
    const Op* loop = nullptr;
    for (const Op& op : kernel_.body.ops) {
      if (op.kind == OpKind::dot || op.kind == OpKind::branch) return refuse("outside of a loop of dots");
      if (op.kind != OpKind::loop) continue;
      if (loop) return refuse("several loops");
      loop = &op;
    }
    if (!loop) return refuse("no loop");
    const auto found = find_dot_loop(kernel_, *loop);
    if (!found || !found->only_dots || found->dots.size() != 1 || loop->results.size() != 1)
      return refuse("the loop does more than one dot");
    const Dot& dot = found->dots[0];
    if (!dot.a.load || !dot.b.load) return refuse("something is computed on an operand");
    TensorDot out{.loop = loop, .dot = dot.op};
    out.dtype = kernel_.type(dot.a.value).dtype;
    if (kernel_.type(dot.b.value).dtype != out.dtype ||
        (out.dtype != DType::bf16 && out.dtype != DType::f16) ||
        kernel_.type(dot.op->results[0]).dtype != DType::f32)
      return refuse("tensor cores multiply bf16 or f16 into f32");
    out.a = operand(*dot.a.load, dot.a.transposed ? 1 : 0);
    out.b = operand(*dot.b.load, dot.b.transposed ? 0 : 1);
    for (const TensorOperand* o : {&out.a, &out.b})
      if (Status s = check_load(*o); !s) return s.error();
    out.trips = tile::AffineTable(kernel_, tile::known_statically(kernel_)).trip_count(*loop).value_or(0);
    out.from_zero = out.trips > 0 && starts_at_zero(*loop);
    return out;
  }

 private:
  const tile::ViewParam& view(const TensorOperand& o) const {
    return kernel_.views[static_cast<std::size_t>(o.load->param)];
  }
  const tile::Dim& stride(const TensorOperand& o, int dim) const {
    return view(o).strides[static_cast<std::size_t>(dim)];
  }

  TensorOperand operand(const Op& load, int row_axis) const {
    const tile::TileType& tile = kernel_.type(load.results[0]);
    const auto row = static_cast<std::size_t>(row_axis), k = 1 - row;
    TensorOperand o{.load = &load};
    o.rows = tile.shape[row], o.depth = tile.shape[k];
    o.row_dim = load.tile_dims[row], o.k_dim = load.tile_dims[k];
    o.k_major = stride(o, o.k_dim) == tile::Dim{1, -1};
    std::set<int> axes;
    for (ValueId start : load.operands) gather_axes(start, axes);
    o.shared = axes.count(1) == 0;
    return o;
  }

  void gather_axes(ValueId v, std::set<int>& axes) const {
    const auto it = made_by_.find(v);
    if (it == made_by_.end()) return;  // the loop's induction value
    if (it->second->kind == OpKind::program_id) axes.insert(it->second->param);
    for (ValueId o : it->second->operands) gather_axes(o, axes);
  }

  Status check_load(const TensorOperand& o) const {
    if (o.load->bounded && o.load->number.f != 0) return refuse("a block is filled with other than zeros");
    const tile::ViewUse use = tile::view_uses(kernel_)[static_cast<std::size_t>(o.load->param)];
    if (use.written || use.accumulated) return refuse("an operand is written, too");
    const Index bytes = static_cast<Index>(size_bytes(view(o).dtype));
    if (o.inner() * bytes % kPanelBytes != 0 || o.depth % 16 != 0 || o.outer() % 8 != 0)
      return refuse(fmt::format("blocks of {} are not whole rows of 128 bytes", view(o).name));
    if (unit_ != DotUnit::wgmma) return Unit{};
    const auto fail = [&](std::string_view why) {
      return refuse(fmt::format("the copy engine cannot read {}: {}", view(o).name, why));
    };
    constexpr Index kAlign = 16, kLargestBox = 256;
    constexpr int kLargestRank = 4;
    if (view(o).rank() < 2 || view(o).rank() > kLargestRank) return fail("it has not 2 to 4 dimensions");
    if (stride(o, o.inner_dim()) != tile::Dim{1, -1}) return fail("no axis of its blocks is contiguous");
    if (view(o).align_bytes < kAlign) return fail("it is not aligned to 16 bytes");
    for (int d = 0; d < view(o).rank(); ++d) {
      const tile::Dim& s = stride(o, d);
      if (d != o.inner_dim() && (!s.is_constant() || s.value <= 0 || s.value * bytes % kAlign != 0))
        return fail("a stride is no multiple of 16 bytes");
    }
    if (o.outer() > kLargestBox) return fail("its blocks are more rows than it takes at once");
    return Unit{};
  }

  const Op* number(ValueId v) const {
    const auto it = made_by_.find(v);
    return it != made_by_.end() && it->second->kind == OpKind::constant ? it->second : nullptr;
  }

  bool starts_at_zero(const Op& loop) const {
    ValueId initial = loop.operands[3];
    for (auto it = made_by_.find(initial); it != made_by_.end() && it->second->kind == OpKind::broadcast;
         it = made_by_.find(initial))
      initial = it->second->operands[0];
    const Op* zero = number(initial);
    return zero && zero->number.f == 0;
  }

  const Kernel& kernel_;
  DotUnit unit_;
  std::map<ValueId, const Op*> made_by_;
};

// Whether an element loop does nothing but write zeros to `buffer`.
bool only_fills(const LoopPlan& plan, const Step& step, ValueId buffer) {
  return step.kind == Step::Kind::elements &&
         std::all_of(step.loop.body.begin(), step.loop.body.end(), [&](const Instr& in) {
           return (in.kind == Instr::Kind::compute && in.op->kind == OpKind::constant) ||
                  (in.kind == Instr::Kind::keep && plan.storage(in.value) == buffer);
         });
}

}  // namespace

Result<TensorDot> find_tensor_dot(const Kernel& kernel, DotUnit unit) { return Finder(kernel, unit).run(); }

std::vector<TensorBlock> tensor_blocks(const Kernel& kernel, const tile::Schedule& schedule) {
  if (schedule.dot != DotUnit::wgmma) return {};
  const auto dot = find_tensor_dot(kernel, schedule.dot);
  if (!dot) return {};
  std::vector<TensorBlock> blocks;
  for (const TensorOperand* o : {&dot->a, &dot->b}) {
    const tile::ViewParam& view = kernel.views[static_cast<std::size_t>(o->load->param)];
    const Index panel = kPanelBytes / static_cast<Index>(size_bytes(view.dtype));
    const Index share = o->shared && o->k_major ? schedule.cluster : 1;  // of the rows each block fetches
    TensorBlock block{o->load->param, {o->inner_dim(), o->outer_dim()}, {panel, o->outer() / share}};
    for (int d = view.rank() - 1; d >= 0; --d) {
      if (d == o->inner_dim() || d == o->outer_dim()) continue;
      block.dims.push_back(d);
      block.box.push_back(1);
    }
    blocks.push_back(std::move(block));
  }
  return blocks;
}

LoopPlan plan_for(const Kernel& kernel, const tile::Schedule& schedule) {
  LoopPlan plan = printer::plan_loops(kernel, loop_policy(kernel, schedule));
  if (schedule.dot == DotUnit::fma) return plan;
  const auto dot = find_tensor_dot(kernel, schedule.dot);
  if (!dot) return plan;
  const ValueId accumulator = plan.storage(dot->dot->results[0]);
  if (dot->from_zero)
    std::erase_if(plan.steps, [&](const Step& s) { return only_fills(plan, s, accumulator); });
  for (Step& step : plan.steps)
    if (step.op == dot->loop && step.kind == Step::Kind::loop)
      std::erase_if(step.body[0],
                    [](const Step& s) { return s.kind != Step::Kind::scalar && s.kind != Step::Kind::dot; });
  std::set<ValueId> inside;
  for (const Op& op : dot->loop->blocks[0].ops)
    for (ValueId r : op.results) inside.insert(r);
  std::erase_if(plan.buffers,
                [&](ValueId v) { return inside.count(v) > 0 && plan.storage(v) != accumulator; });
  return plan;
}

}  // namespace tilewright::cuda
