// Follows each dot back to the blocks of memory that it reads.
#include "backends/cuda/analysis/b2b_matmul.h"

#include <algorithm>
#include <functional>
#include <optional>

namespace tilewright::cuda {

using tile::DotUnit;
using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

const B2bDot* B2bMatmul::find(const Op& dot) const {
  const auto it = std::find_if(dots.begin(), dots.end(), [&](const B2bDot& d) { return d.op == &dot; });
  return it == dots.end() ? nullptr : &*it;
}

UsedPart B2bMatmul::used_part(const B2bDot& dot, int block) const {
  for (const B2bBlock::Fetch& f : blocks[static_cast<std::size_t>(block)].fetches)
    if (f.loop == dot.loop) return f.used;
  return {};
}

bool B2bMatmul::has_dots(const Op& loop) const {
  return std::any_of(dots.begin(), dots.end(), [&](const B2bDot& d) { return d.loop == &loop; });
}

bool B2bMatmul::is_outermost(const Op& loop) const {
  return std::any_of(dots.begin(), dots.end(), [&](const B2bDot& d) { return d.outermost == &loop; });
}
bool B2bMatmul::scaled_accumulation() const { return dots.size() == 1 && dots[0].from_zero; }
bool B2bMatmul::multiplies_alone() const {
  return std::all_of(dots.begin(), dots.end(),
                     [](const B2bDot& d) { return d.a >= 0 && !d.from_zero && !d.is_nested(); });
}

bool holds_dots(const Op& op) {
  bool found = false;
  for (const tile::Block& b : op.blocks)
    tile::for_each_op(b, [&](const Op& inner) { found = found || inner.kind == OpKind::dot; });
  return found;
}

namespace {

class B2bFinder {
 public:
  B2bFinder(const Kernel& kernel, DotUnit unit) : kernel_(kernel), unit_(unit), reader_(kernel, unit) {
    tile::for_each_op(kernel.body, [&](const Op& op) {
      for (ValueId o : op.operands) users_[o].push_back(&op);
    });
    for (const Op& op : kernel.body.ops) loop_of_[&op] = nullptr;
  }

  Result<B2bMatmul> run() {
    for (const Op& op : kernel_.body.ops) {
      if (op.kind == OpKind::dot) return refuse_dot("outside of a loop of dots");
      if (!holds_dots(op)) continue;
      const auto before = static_cast<std::ptrdiff_t>(out_.dots.size());
      if (Status s = add_loop(op, op); !s) return s.error();
      std::stable_partition(out_.dots.begin() + before, out_.dots.end(),
                            [](const B2bDot& d) { return d.waits_for_blocks(); });
    }
    if (out_.dots.empty()) return refuse_dot("no loop");
    if ((out_.scaled_accumulation() || out_.multiplies_alone()) && has_used_parts())
      return refuse_dot("a part of an operand is used, and nothing is computed between products");
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

  bool has_used_parts() const {
    return std::any_of(out_.dots.begin(), out_.dots.end(), [](const B2bDot& d) { return d.has_used_parts; });
  }

  // A loop inside another does one product and nothing else.
  bool only_accumulates_scaled(const Op& loop, const Op& dot) const {
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
    if (!of16 && unit_ != DotUnit::wgmma)
      return refuse_dot("mma.sync takes bf16 or f16 in back-to-back matmuls");
    if ((!of16 && !floats && !integers) ||
        kernel_.type(dot.results[0]).dtype != (integers ? DType::i32 : DType::f32))
      return refuse_dot("tensor cores multiply bf16 or f16, 8-bit floats and 8-bit integers");
    B2bDot d{.op = &dot, .loop = &loop, .outermost = &outermost};
    if (d.is_nested() && !only_accumulates_scaled(loop, dot))
      return refuse_dot("a loop inside another does more than add up one product");
    d.loop_from_zero = d.is_nested() && reader_.is_zero_tile(loop.operands[3]);
    d.from_zero = reader_.is_zero_tile(dot.operands[2]);
    // Sums of 8-bit floats keep about 14 bits (docs/numerics.md).
    if (floats && !d.from_zero) return refuse_dot("8-bit floats are summed in blocks");
    for (int side : {0, 1}) {
      const ValueId v = dot.operands[static_cast<std::size_t>(side)];
      const Source from = source_of(v, side);
      if (from.load && loop_of_.at(from.load) && loop_of_.at(from.load) != &loop)
        return refuse_dot("a block is loaded around the loop that reads it");
      const bool resident = from.load && !loop_of_.at(from.load);
      if (!from.load || (from.used.where >= 0 && (d.is_nested() || resident))) {
        if (side == 1 || d.is_nested()) return refuse_dot("something is computed on an operand");
        if (d.from_zero && unit_ == DotUnit::wgmma) bring_parts(loop, v);
        continue;
      }
      auto operand = reader_.read(*from.load, from.transposed == (side == 0) ? 1 : 0);
      if (!operand) return operand.error();
      (side == 0 ? d.a_k_major : d.b_k_major) = operand->k_major;
      (side == 0 ? d.a : d.b) = block_of(loop, *operand, from.used);
      d.has_used_parts = d.has_used_parts || from.used.where >= 0;
      out_.in_place.insert(from.in_place.begin(), from.in_place.end());
    }
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

  // The load of a tile that only dots read: as it is, transposed, or zeros where a part is not used.
  struct Source {
    const Op* load = nullptr;  // null when there is more to it
    bool transposed = false;
    UsedPart used = {};
    std::set<ValueId> in_place = {};
  };
  Source source_of(ValueId v, int side) const {
    Source out;
    while (const Op* op = reader_.maker(v)) {
      out.in_place.insert(v);
      if (op->kind == OpKind::transpose && !out.transposed) {
        out.transposed = true;
        v = op->operands[0];
      } else if (is_used_part(*op) && out.used.where < 0) {
        const auto part = said_of(op->operands[0]);
        if (!part) return {};
        // The depth is the second axis of a and the first of b; before a transpose it is the other one.
        out.used = {part->value, ((part->axis == 1) == (side == 0)) != out.transposed};
        v = op->operands[1];
      } else {
        if (op->kind == OpKind::load && only_dots(op->results[0])) out.load = op;
        return out;
      }
    }
    return {};
  }

  bool is_used_part(const Op& op) const {
    return op.kind == OpKind::apply && op.prim == tile::Prim::select && reader_.is_zero_tile(op.operands[2]);
  }
  bool only_dots(ValueId value) const {
    const auto& users = users_.at(value);
    return std::all_of(users.begin(), users.end(), [&](const Op* u) {
      return u->kind == OpKind::dot || (u->kind == OpKind::transpose && only_dots(u->results[0])) ||
             (is_used_part(*u) && u->operands[1] == value && only_dots(u->results[0]));
    });
  }

  // A bool along one axis of a tile, before it is stretched along the other.
  struct Said {
    ValueId value = -1;
    int axis = 0;
  };
  std::optional<Said> said_of(ValueId v) const {
    for (const Op* op = reader_.maker(v); op && op->kind == OpKind::broadcast; op = reader_.maker(v))
      v = op->operands[0];
    const std::vector<Index>& shape = kernel_.type(v).shape;
    if (!is_arithmetic(v) || shape.size() == 1) return std::nullopt;
    if (shape.empty() || shape[1] == 1) return Said{v, 0};
    return shape[0] == 1 ? std::optional(Said{v, 1}) : std::nullopt;
  }
  // Whether a value is arithmetic on positions, scalars, and vectors of integers and bools.
  bool is_arithmetic(ValueId v) const {
    const Op* op = reader_.maker(v);
    if (kernel_.type(v).rank() == 0) return true;
    if (!op) return false;
    const bool by_element = op->kind == OpKind::apply || op->kind == OpKind::cast ||
                            op->kind == OpKind::broadcast || op->kind == OpKind::reshape;
    const bool vector = op->kind == OpKind::load && !is_float(kernel_.type(v).dtype);
    return vector || op->kind == OpKind::arange || op->kind == OpKind::constant ||
           (by_element && std::all_of(op->operands.begin(), op->operands.end(),
                                      [&](ValueId o) { return is_arithmetic(o); }));
  }

  // The same view, cut alike: at the same place, or in a loop that has not fetched this block yet.
  int block_of(const Op& loop, const TensorOperand& operand, const UsedPart& used) {
    const Op& load = *operand.load;
    const bool resident = loop_of_.at(&load) == nullptr;
    const Op* round = resident ? nullptr : &loop;
    for (std::size_t i = 0; i < out_.blocks.size(); ++i) {
      B2bBlock& known = out_.blocks[i];
      const TensorOperand& o = known.operand;
      if (known.resident() != resident || o.load->param != load.param ||
          o.inner_dim() != operand.inner_dim() || o.outer_dim() != operand.outer_dim() ||
          o.inner() != operand.inner() || o.outer() != operand.outer())
        continue;
      const auto fetched = std::find_if(known.fetches.begin(), known.fetches.end(),
                                        [&](const B2bBlock::Fetch& f) { return f.loop == round; });
      if (fetched == known.fetches.end()) {
        known.fetches.push_back({round, &load, used});
        return static_cast<int>(i);
      }
      if (fetched->used == used && same_start(*fetched->load, load)) return static_cast<int>(i);
    }
    out_.blocks.push_back({operand, {{round, &load, used}}});
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
  B2bMatmul out_;
};

}  // namespace

Result<B2bMatmul> find_b2b_matmul(const Kernel& kernel, DotUnit unit) {
  return B2bFinder(kernel, unit).run();
}

}  // namespace tilewright::cuda
