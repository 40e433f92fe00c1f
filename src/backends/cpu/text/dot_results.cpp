// What becomes of a result: a dot from zeros and a loop that copies to memory are one step.
#include "backends/cpu/text/dot_results.h"

#include "backends/cpu/machine/fitted.h"

#include <algorithm>
#include <vector>

namespace tilewright::cpu {

using printer::Instr;
using printer::Step;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

class DotResultFinder {
 public:
  DotResultFinder(const KernelText& k, printer::LoopPlan& plan)
      : k_(k), plan_(plan), uses_(tile::view_uses(k.kernel)), use_count_(k.kernel.values.size()) {
    tile::for_each_op(k.kernel.body, [&](const Op& op) {
      for (const ValueId v : op.operands) ++use_count_[static_cast<std::size_t>(v)];
    });
  }

  std::map<ValueId, const Op*> run() {
    visit(plan_.steps);
    std::erase_if(plan_.buffers, [&](ValueId v) { return found_.count(v) != 0; });
    return std::move(found_);
  }

 private:
  void visit(std::vector<Step>& steps) {
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (std::vector<Step>& body : steps[i].body) visit(body);
      if (steps[i].kind != Step::Kind::dot) continue;
      std::size_t next = i + 1;  // scalars alone may come between: the dot can wait for them
      while (next < steps.size() && steps[next].kind == Step::Kind::scalar) ++next;
      if (next == steps.size()) continue;
      const Op* store = copied_by(steps[next], steps[i].op->results[0]);
      if (store == nullptr || !can_write(*steps[i].op, *store)) continue;
      found_[steps[i].op->results[0]] = store;
      const auto first = steps.begin() + static_cast<std::ptrdiff_t>(i);
      std::rotate(first, first + 1, steps.begin() + static_cast<std::ptrdiff_t>(next));
      steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(next));
    }
  }

  // The store of a loop that does nothing but copy the value to memory.
  static const Op* copied_by(const Step& step, ValueId value) {
    if (step.kind != Step::Kind::elements || step.loop.body.size() != 2) return nullptr;
    const Instr &read = step.loop.body[0], &write = step.loop.body[1];
    const bool copies = read.kind == Instr::Kind::reload && read.value == value &&
                        write.kind == Instr::Kind::effect && write.op->kind == OpKind::store &&
                        write.op->operands[0] == value;
    return copies ? write.op : nullptr;
  }

  bool can_write(const Op& dot, const Op& store) const {
    const ValueId result = dot.results[0];
    const tile::TileType& type = k_.kernel.type(result);
    const tile::ViewParam& view = k_.kernel.views[static_cast<std::size_t>(store.param)];
    // Tile registers and products of few rows or of one column write buffers (dot_text.cpp).
    const bool singles = k_.kernel.type(dot.operands[1]).dtype == type.dtype &&
                         (type.dtype == DType::f32 || type.dtype == DType::f64);
    if (!singles || type.shape[0] < kRegisterRows || type.shape[1] == 1) return false;
    if (use_count_[static_cast<std::size_t>(result)] != 1 ||
        uses_[static_cast<std::size_t>(store.param)].read)
      return false;
    if (!printer::is_zeros(k_.definition(dot.operands[2])) || store.tile_dims.size() != 2) return false;
    const tile::Dim& step = view.strides[static_cast<std::size_t>(store.tile_dims[1])];
    if (!step.is_constant() || step.value != 1 || !starts_inside(store)) return false;
    return !may_overwrite(store, dot.operands[1]) && ends_together(store, 0, dot.operands[0]) &&
           ends_together(store, 1, dot.operands[1]);
  }

  // Whether b is read from memory that the store may be granted (passes/plan/overwrite_inputs.h): the same
  // block of a view that lies the same way. Rows of a are packed before rows of c are written, panels of b
  // one after another.
  bool may_overwrite(const Op& store, ValueId b) const {
    if (k_.in_place.count(b) == 0) return false;
    const Op* load = k_.definition(b);
    if (load->kind == OpKind::transpose) load = k_.definition(load->operands[0]);
    const tile::ViewParam &from = k_.kernel.views[static_cast<std::size_t>(load->param)],
                          &to = k_.kernel.views[static_cast<std::size_t>(store.param)];
    return from.dtype == to.dtype && from.extents == to.extents && from.strides == to.strides &&
           k_.kernel.type(load->results[0]).shape == k_.kernel.type(store.operands[0]).shape;
  }

  // Whether a store's block begins inside its view, and lies inside along the axes that it does not walk.
  bool starts_inside(const Op& store) const {
    if (!store.bounded) return true;
    const tile::ViewParam& view = k_.kernel.views[static_cast<std::size_t>(store.param)];
    for (std::size_t d = 0; d < view.extents.size(); ++d) {
      const ValueId start = store.operands[d + 1];
      const Range range = k_.range(start);
      if (range.low < 0) return false;
      if (std::count(store.tile_dims.begin(), store.tile_dims.end(), static_cast<int>(d)) != 0) continue;
      const tile::Dim& extent = view.extents[d];
      if (!k_.is_program_of(start, extent) && !(extent.is_constant() && range.high < extent.value))
        return false;
    }
    return true;
  }

  // Whether an operand has a row (a column) for each one that is stored.
  bool ends_together(const Op& store, std::size_t axis, ValueId operand) const {
    if (k_.in_place.count(operand) == 0) return true;  // a tile in a buffer is whole
    const Op* load = k_.definition(operand);
    std::size_t own = axis;
    if (load->kind == OpKind::transpose) load = k_.definition(load->operands[0]), own = 1 - axis;
    if (!load->bounded) return true;
    const auto from = static_cast<std::size_t>(load->tile_dims[own]),
               to = static_cast<std::size_t>(store.tile_dims[axis]);
    return load->operands[from] == store.operands[to + 1] &&
           k_.kernel.views[static_cast<std::size_t>(load->param)].extents[from] ==
               k_.kernel.views[static_cast<std::size_t>(store.param)].extents[to];
  }

  const KernelText& k_;
  printer::LoopPlan& plan_;
  std::vector<tile::ViewUse> uses_;
  std::vector<int> use_count_;
  std::map<ValueId, const Op*> found_;
};

}  // namespace

std::map<ValueId, const Op*> dot_results_in_place(const KernelText& k, printer::LoopPlan& plan) {
  return DotResultFinder(k, plan).run();
}

}  // namespace tilewright::cpu
