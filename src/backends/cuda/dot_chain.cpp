// From each dot back to the blocks of memory that it reads.
#include "backends/cuda/dot_chain.h"

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

bool DotChain::multiplies_alone() const {
  return std::all_of(dots.begin(), dots.end(), [](const ChainDot& d) { return d.a >= 0 && !d.from_zero; });
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
  explicit Finder(const Kernel& kernel) : kernel_(kernel), reader_(kernel, DotUnit::wgmma) {
    tile::for_each_op(kernel.body, [&](const Op& op) {
      for (ValueId o : op.operands) users_[o].push_back(&op);
    });
    for (const Op& op : kernel.body.ops)
      for (ValueId r : op.results) outside_.insert(r);
  }

  Result<DotChain> run() {
    for (const Op& op : kernel_.body.ops) {
      if (op.kind == OpKind::dot) return refuse_dot("outside of a loop of dots");
      if (!holds_dots(op)) continue;
      if (op.kind != OpKind::loop) return refuse_dot("under a condition");
      const auto before = static_cast<std::ptrdiff_t>(out_.dots.size());
      for (const Op& inner : op.blocks[0].ops) {
        if (holds_dots(inner)) return refuse_dot("in loops inside one another");
        if (inner.kind != OpKind::dot) continue;
        if (Status s = add(op, inner); !s) return s.error();
      }
      std::stable_partition(out_.dots.begin() + before, out_.dots.end(),
                            [](const ChainDot& d) { return d.waits_for_blocks(); });
    }
    if (out_.dots.empty()) return refuse_dot("no loop");
    out_.dtype = kernel_.type(out_.dots[0].op->operands[0]).dtype;
    return std::move(out_);
  }

 private:
  Status add(const Op& loop, const Op& dot) {
    const DType dtype = kernel_.type(dot.operands[0]).dtype;
    const bool same = out_.dots.empty() || kernel_.type(out_.dots[0].op->operands[0]).dtype == dtype;
    if (!same || kernel_.type(dot.operands[1]).dtype != dtype ||
        (dtype != DType::bf16 && dtype != DType::f16) || kernel_.type(dot.results[0]).dtype != DType::f32)
      return refuse_dot("tensor cores multiply bf16 or f16 into f32");
    ChainDot d{.op = &dot, .loop = &loop};
    d.from_zero = reader_.is_zero_tile(dot.operands[2]);
    for (int side : {0, 1}) {
      const ValueId v = dot.operands[static_cast<std::size_t>(side)];
      const Op *last = reader_.maker(v), *load = load_of(v);
      if (!load && side == 1) return refuse_dot("something is computed on operand b");
      if (!load) continue;
      const bool transposed = last->kind == OpKind::transpose;
      auto operand = reader_.read(*load, transposed == (side == 0) ? 1 : 0);
      if (!operand) return operand.error();
      (side == 0 ? d.a_k_major : d.b_k_major) = operand->k_major;
      (side == 0 ? d.a : d.b) = block_of(loop, *operand);
      out_.in_place.insert({v, load->results[0]});
    }
    if (d.a < 0 && kernel_.type(dot.operands[0]).shape[1] % 16 != 0)
      return refuse_dot("operand a is no whole number of 16 columns");
    out_.dots.push_back(d);
    return Unit{};
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
    const bool resident = outside_.count(load.results[0]) > 0;
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
  OperandReader reader_;
  std::map<ValueId, std::vector<const Op*>> users_;
  std::set<ValueId> outside_;  // made before or after the loops
  DotChain out_;
};

}  // namespace

Result<DotChain> find_dot_chain(const Kernel& kernel) { return Finder(kernel).run(); }

}  // namespace tilewright::cuda
