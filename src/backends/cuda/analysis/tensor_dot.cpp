// What tensor cores and copy engine can take, and the plan without what they take over.
#include "backends/cuda/analysis/tensor_dot.h"

#include "backends/cuda/analysis/chain_plan.h"
#include "backends/cuda/analysis/dot_loop.h"
#include "backends/cuda/analysis/loop_policy.h"
#include "backends/cuda/analysis/tile_store.h"

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

class Finder {
 public:
  Finder(const Kernel& kernel, DotUnit unit) : kernel_(kernel), unit_(unit), reader_(kernel, unit) {}

  Result<TensorDot> run() const {
    const Op* loop = nullptr;
    for (const Op& op : kernel_.body.ops) {
      if (op.kind == OpKind::dot || op.kind == OpKind::branch) return refuse_dot("outside of a loop of dots");
      if (op.kind != OpKind::loop) continue;
      if (loop) return refuse_dot("several loops");
      loop = &op;
    }
    if (!loop) return refuse_dot("no loop");
    const auto found = find_dot_loop(kernel_, *loop);
    if (!found || !found->only_dots || found->dots.size() != 1 || loop->results.size() != 1)
      return refuse_dot("the loop does more than one dot");
    const Dot& dot = found->dots[0];
    if (!dot.a.load || !dot.b.load) return refuse_dot("something is computed on an operand");
    TensorDot out{.loop = loop, .dot = dot.op};
    out.dtype = kernel_.type(dot.a.value).dtype;
    const DType other = kernel_.type(dot.b.value).dtype;
    out.promoted = is_f8(out.dtype) && is_f8(other);
    if ((other != out.dtype && !out.promoted) || !takes(*dot.op, out.dtype) ||
        kernel_.type(dot.op->results[0]).dtype != (out.dtype == DType::i8 ? DType::i32 : DType::f32))
      return refuse_dot(types_taken());
    auto a = reader_.read(*dot.a.load, dot.a.transposed ? 1 : 0);
    if (!a) return a.error();
    auto b = reader_.read(*dot.b.load, dot.b.transposed ? 0 : 1);
    if (!b) return b.error();
    out.a = *a, out.b = *b;
    out.trips = reader_.trips(*loop);
    out.from_zero = !out.promoted && out.trips > 0 && reader_.is_zero_tile(loop->operands[3]);
    return out;
  }

 private:
  bool takes(const Op& dot, DType dtype) const {
    if (unit_ == DotUnit::fma_blocks) return dtype == DType::f32;
    const bool of8 = is_f8(dtype) || dtype == DType::i8;
    return dtype == DType::bf16 || dtype == DType::f16 || (of8 && unit_ == DotUnit::wgmma) ||
           dot.precision == tile::DotPrecision::tf32;
  }
  const char* types_taken() const {
    return unit_ == DotUnit::fma_blocks
               ? "fma_blocks multiplies f32"
               : "tensor cores multiply bf16 or f16 into f32, f32 where it may be tf32, "
                 "wgmma 8-bit floats and integers, too";
  }

  const Kernel& kernel_;
  DotUnit unit_;
  OperandReader reader_;
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
  std::vector<TensorBlock> blocks;
  const auto share_of = [&](const TensorOperand& o) { return o.shared && o.k_major ? schedule.cluster : 1; };
  if (const auto dot = find_tensor_dot(kernel, schedule.dot)) {
    for (const TensorOperand* o : {&dot->a, &dot->b})
      blocks.push_back(tensor_block(kernel, *o, share_of(*o)));
    if (schedule.store_places > 0)
      if (auto result = find_tile_store(kernel, *dot->dot)) blocks.push_back(std::move(result->block));
  } else if (const auto chain = find_dot_chain(kernel, schedule.dot)) {
    for (const ChainBlock& b : chain->blocks)
      blocks.push_back(tensor_block(kernel, b.operand, share_of(b.operand)));
    if (schedule.store_places > 0)
      if (auto result = find_tile_store(kernel, *chain->dots.back().op))
        blocks.push_back(std::move(result->block));
  }
  return blocks;
}

LoopPlan plan_for(const Kernel& kernel, const tile::Schedule& schedule) {
  printer::LoopPolicy policy = loop_policy(kernel, schedule);
  if (schedule.dot == DotUnit::fma) return printer::plan_loops(kernel, policy);
  const auto dot = find_tensor_dot(kernel, schedule.dot);
  if (!dot) {
    const Result<DotChain> chain =
        on_tensor_cores(schedule.dot) ? find_dot_chain(kernel, schedule.dot) : dot.error();
    if (chain) policy.read_in_place = chain->in_place;
    // An exponential that two steps read is kept: it takes the place of what it is computed from.
    constexpr double kKeptFlops = 8;
    if (chain) policy.keep_above_flops = std::min(policy.keep_above_flops, kKeptFlops);
    policy.keep_unscaled = bool(chain);
    policy.load_before_dots = chain && chain->adds_up();
    LoopPlan plan = printer::plan_loops(kernel, policy);
    // mma.sync adds to what is there; ptxas finds its zeros.
    if (chain && schedule.dot == DotUnit::wgmma) erase_fills(*chain, plan);
    if (chain && schedule.ahead) part_sums(*chain, plan);
    return plan;
  }
  LoopPlan plan = printer::plan_loops(kernel, policy);
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
