// From each dot back to the blocks of memory that it reads.
#include "backends/cuda/analysis/dot_chain.h"

#include <algorithm>
#include <functional>

namespace tilewright::cuda {

using tile::DotUnit;
using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

const ChainDot* DotChain::find(const Op& dot) const {
  const auto it = std::find_if(dots.begin(), dots.end(), [&](const ChainDot& d) { return d.op == &dot; });
  return it == dots.end() ? nullptr : &*it;
}

bool DotChain::has_dots(const Op& loop) const {
  return std::any_of(dots.begin(), dots.end(), [&](const ChainDot& d) { return d.loop == &loop; });
}

bool DotChain::is_outermost(const Op& loop) const {
  return std::any_of(dots.begin(), dots.end(), [&](const ChainDot& d) { return d.outermost == &loop; });
}
bool DotChain::adds_up() const { return dots.size() == 1 && dots[0].from_zero; }
bool DotChain::multiplies_alone() const {
  return std::all_of(dots.begin(), dots.end(),
                     [](const ChainDot& d) { return d.a >= 0 && !d.from_zero && !d.is_nested(); });
}

namespace {

bool holds_dots(const Op& op) {
  bool found = false;
  for (const tile::Block& b : op.blocks)
    tile::for_each_op(b, [&](const Op& inner) { found = found || inner.kind == OpKind::dot; });
  return found;
}

class Finder {
 public:
  Finder(const Kernel& kernel, DotUnit unit) : kernel_(kernel), unit_(unit), reader_(kernel, unit) {
    tile::for_each_op(kernel.body, [&](const Op& op) {
      for (ValueId o : op.operands) users_[o].push_back(&op);
    });
    for (const Op& op : kernel.body.ops) loop_of_[&op] = nullptr;
  }

  Result<DotChain> run() {
    for (const Op& op : kernel_.body.ops) {
      if (op.kind == OpKind::dot) return refuse_dot("outside of a loop of dots");
      if (!holds_dots(op)) continue;
      const auto before = static_cast<std::ptrdiff_t>(out_.dots.size());
      if (Status s = add_loop(op, op); !s) return s.error();
      std::stable_partition(out_.dots.begin() + before, out_.dots.end(),
                            [](const ChainDot& d) { return d.waits_for_blocks(); });
    }
    if (out_.dots.empty()) return refuse_dot("no loop");
    return std::move(out_);
  }

 private:
  Status add_loop(const Op& outermost, const Op& loop) {
    if (loop.kind != OpKind::loop) return refuse_dot("under a condition");
    for (const Op& op : loop.blocks[0].ops) loop_of_[&op] = &loop;
    for (const Op& op : loop.blocks[0].ops) {
      Status s = Unit{};
      if (op.kind == OpKind::dot)
        s = add(outermost, loop, op);
      else if (holds_dots(op))
        s = &loop == &outermost ? add_loop(outermost, op) : refuse_dot("in three loops inside one another");
      if (!s) return s;
    }
    return Unit{};
  }

  // A loop inside another does one product and nothing else.
  bool only_adds_up(const Op& loop, const Op& dot) const {
    return loop.results.size() == 1 && dot.operands[2] == loop.blocks[0].args[1] &&
           loop.blocks[0].ops.back().operands == dot.results && reader_.trips(loop) > 0 &&
           std::all_of(loop.blocks[0].ops.begin(), loop.blocks[0].ops.end(), [&](const Op& op) {
             return &op == &dot || op.kind == OpKind::yield || op.kind == OpKind::load ||
                    op.kind == OpKind::transpose || kernel_.type(op.results[0]).rank() == 0;
           });
  }

  Status add(const Op& outermost, const Op& loop, const Op& dot) {
    const DType left = kernel_.type(dot.operands[0]).dtype, right = kernel_.type(dot.operands[1]).dtype;
    const bool of16 = left == right && (left == DType::bf16 || left == DType::f16);
    const bool integers = left == DType::i8 && right == DType::i8, floats = is_f8(left) && is_f8(right);
    if (!of16 && unit_ != DotUnit::wgmma) return refuse_dot("mma.sync takes bf16 or f16 in chains of dots");
    if ((!of16 && !floats && !integers) ||
        kernel_.type(dot.results[0]).dtype != (integers ? DType::i32 : DType::f32))
      return refuse_dot("tensor cores multiply bf16 or f16, 8-bit floats and 8-bit integers");
    ChainDot d{.op = &dot, .loop = &loop, .outermost = &outermost};
    if (d.is_nested() && !only_adds_up(loop, dot))
      return refuse_dot("a loop inside another does more than add up one product");
    d.loop_from_zero = d.is_nested() && reader_.is_zero_tile(loop.operands[3]);
    d.from_zero = reader_.is_zero_tile(dot.operands[2]);
    // They keep about 14 bits of what they add up.
    if (floats && !d.from_zero) return refuse_dot("8-bit floats are summed in blocks");
    for (int side : {0, 1}) {
      const ValueId v = dot.operands[static_cast<std::size_t>(side)];
      const Op *last = reader_.maker(v), *load = load_of(v);
      if (load && loop_of_.at(load) && loop_of_.at(load) != &loop)
        return refuse_dot("a block is loaded around the loop that reads it");
      if (!load && (side == 1 || d.is_nested())) return refuse_dot("something is computed on an operand");
      if (!load) {
        if (d.from_zero && unit_ == DotUnit::wgmma) bring_parts(loop, v);
        continue;
      }
      const bool transposed = last->kind == OpKind::transpose;
      auto operand = reader_.read(*load, transposed == (side == 0) ? 1 : 0);
      if (!operand) return operand.error();
      (side == 0 ? d.a_k_major : d.b_k_major) = operand->k_major;
      (side == 0 ? d.a : d.b) = block_of(loop, *operand);
      out_.in_place.insert({v, load->results[0]});
    }
    constexpr Index kStepBytes = 32;  // of a's columns, in one instruction
    if (d.a < 0 && integers) return refuse_dot("operand a of 8-bit integers is computed");
    if (d.a < 0 && kernel_.type(dot.operands[0]).shape[1] * static_cast<Index>(size_bytes(left)) % kStepBytes)
      return refuse_dot("operand a is no whole number of 32 bytes");
    out_.dots.push_back(d);
    return Unit{};
  }

  // What operand a is computed of in this round: bytes that wait in shared memory come ahead of their turn,
  // as those of dots do. Others, and what the copy engine cannot bring, threads load where they need it.
  void bring_parts(const Op& loop, ValueId operand) {
    const tile::TileType& whole = kernel_.type(operand);
    std::vector<ValueId> open = {operand};
    while (!open.empty()) {
      const ValueId v = open.back();
      open.pop_back();
      const Op* op = reader_.maker(v);
      const auto place = loop_of_.find(op);
      if (place == loop_of_.end() || place->second != &loop || kernel_.type(v).shape != whole.shape) continue;
      if (op->kind != OpKind::load) {
        if (op->kind == OpKind::apply || op->kind == OpKind::cast)
          open.insert(open.end(), op->operands.begin(), op->operands.end());
        continue;
      }
      const auto block = reader_.read(*op, 0);
      if (size_bytes(kernel_.type(v).dtype) != 1 || !block || out_.to_threads.count(op) > 0) continue;
      out_.blocks.push_back({*block, {{&loop, op}}});
      out_.to_threads[op] = static_cast<int>(out_.blocks.size()) - 1;
    }
  }

  // The load of a tile that only dots read, as it is or transposed; null when there is more to it.
  const Op* load_of(ValueId v) const {
    const std::function<bool(ValueId)> only_dots = [&](ValueId value) {
      const auto& users = users_.at(value);
      return std::all_of(users.begin(), users.end(), [&](const Op* u) {
        return u->kind == OpKind::dot || (u->kind == OpKind::transpose && only_dots(u->results[0]));
      });
    };
    const Op* op = reader_.maker(v);
    if (op && op->kind == OpKind::transpose) op = reader_.maker(op->operands[0]);
    return op && op->kind == OpKind::load && only_dots(op->results[0]) ? op : nullptr;
  }

  // The same view, cut alike: at the same place, or in a loop that has not fetched this block yet.
  int block_of(const Op& loop, const TensorOperand& operand) {
    const Op& load = *operand.load;
    const bool resident = loop_of_.at(&load) == nullptr;
    const Op* round = resident ? nullptr : &loop;
    for (std::size_t i = 0; i < out_.blocks.size(); ++i) {
      ChainBlock& known = out_.blocks[i];
      const TensorOperand& o = known.operand;
      if (known.resident() != resident || o.load->param != load.param ||
          o.inner_dim() != operand.inner_dim() || o.outer_dim() != operand.outer_dim() ||
          o.inner() != operand.inner() || o.outer() != operand.outer())
        continue;
      const auto fetched = std::find_if(known.fetches.begin(), known.fetches.end(),
                                        [&](const ChainBlock::Fetch& f) { return f.loop == round; });
      if (fetched == known.fetches.end()) {
        known.fetches.push_back({round, &load});
        return static_cast<int>(i);
      }
      if (same_start(*fetched->load, load)) return static_cast<int>(i);
    }
    out_.blocks.push_back({operand, {{round, &load}}});
    return static_cast<int>(out_.blocks.size()) - 1;
  }

  bool same_start(const Op& a, const Op& b) const {
    return std::equal(a.operands.begin(), a.operands.end(), b.operands.begin(), [&](ValueId x, ValueId y) {
      const Op *m = reader_.number(x), *n = reader_.number(y);
      return x == y || (m && n && m->number == n->number);
    });
  }

  const Kernel& kernel_;
  DotUnit unit_;
  OperandReader reader_;
  std::map<ValueId, std::vector<const Op*>> users_;
  std::map<const Op*, const Op*> loop_of_;  // of the ops in loops of dots; of the kernel's own body: null
  DotChain out_;
};

}  // namespace

Result<DotChain> find_dot_chain(const Kernel& kernel, DotUnit unit) { return Finder(kernel, unit).run(); }

}  // namespace tilewright::cuda
