// The search for loads that may be copied ahead: vectors of views that nobody writes, from places that follow
// from program ids and arguments.
#include "backends/cuda/layout/staging.h"

#include "backends/cuda/analysis/access.h"

#include <algorithm>

namespace tilewright::cuda {

using printer::ElementLoop;
using printer::Instr;
using printer::Step;
using tile::Op;
using tile::OpKind;
using tile::ValueId;

namespace {

class StagedLoadFinder {
 public:
  StagedLoadFinder(const LayoutInput& input, const Layouts& layouts)
      : input_(input),
        layouts_(layouts),
        uses_(tile::view_uses(input.kernel)),
        differs_(printer::differ_between_programs(input.kernel)) {}

  std::vector<StagedLoad> run() {
    for (const Step& step : input_.plan.steps) {
      if (step.kind == Step::Kind::scalar && !step.op->results.empty())
        scalars_[step.op->results[0]] = step.op;
      if (step.kind != Step::Kind::elements) continue;
      for (const Instr& in : step.loop.body)
        if (in.op && in.op->kind == OpKind::load && in.kind == Instr::Kind::compute) ++loads_[in.op];
    }
    std::vector<StagedLoad> found;
    for (const Step& step : input_.plan.steps) {
      if (step.kind != Step::Kind::elements) continue;
      const ThreadLayout layout = layouts_.loops.at(&step.loop);
      if (layout.part != Part::all && layout.part != Part::cols) continue;
      for (const Instr& in : step.loop.body) {
        if (!stageable(step.loop, layout, in)) continue;
        const TileFrame& f = layouts_.frame(layout);
        const Index rows = layout.part == Part::all ? f.row_steps() : 1;
        const auto bytes = static_cast<Index>(size_bytes(input_.kernel.type(in.value).dtype));
        found.push_back({in.op, &step.loop, rows * f.col_steps() * f.vector * bytes / kSlotBytes});
      }
    }
    return found;
  }

 private:
  // A scalar that another program's can be computed like: arithmetic on program ids, arguments and numbers.
  bool foreseeable(ValueId v) const {
    const auto found = scalars_.find(v);
    if (found == scalars_.end()) return false;
    const Op& op = *found->second;
    switch (op.kind) {
      case OpKind::constant:
      case OpKind::scalar_param:
      case OpKind::program_id:
        return true;
      case OpKind::apply:
      case OpKind::cast:
      case OpKind::broadcast:
      case OpKind::reshape:
        return std::all_of(op.operands.begin(), op.operands.end(), [&](ValueId o) { return foreseeable(o); });
      default:
        return false;
    }
  }

  bool stageable(const ElementLoop& loop, ThreadLayout layout, const Instr& in) const {
    if (in.kind != Instr::Kind::compute || !in.op || in.op->kind != OpKind::load || loads_.at(in.op) > 1)
      return false;
    // A view that is read and written is so at the same blocks (tile/verify_access.cpp): a program's rows are
    // not overwritten by another one while they are on their way.
    if (uses_[static_cast<std::size_t>(in.op->param)].accumulated) return false;
    const auto walked =
        static_cast<std::size_t>(std::count_if(in.axes.begin(), in.axes.end(), [](int a) { return a >= 0; }));
    if (walked != long_axes(loop.shape).size() || in.axes.back() != long_axes(loop.shape).back())
      return false;
    const TileFrame& f = layouts_.frame(layout);
    const Access access(input_.kernel, input_.ranges, *in.op);
    const int axis = static_cast<int>(in.axes.size()) - 1;
    const auto element = static_cast<Index>(size_bytes(access.view().dtype));
    // Each copy of a longer vector is half of a sector, which memory's cache sends twice.
    if (!access.contiguous(axis) || f.vector * element != kSlotBytes) return false;
    if (f.shifted) return layouts_.shifted->aligned.count(in.op) > 0 && starts_allow(access, axis, f);
    if (!f.whole_vectors()) return false;
    return access.widest(axis, kSlotBytes) * element >= kSlotBytes && starts_allow(access, axis, f);
  }

  bool starts_allow(const Access& access, int axis, const TileFrame& f) const {
    bool own = false, bounded = false;
    for (int d = 0; d < access.rank(); ++d) {
      if (!foreseeable(access.start(d)) || access.checked_below(d)) return false;
      own = own || differs_[static_cast<std::size_t>(access.start(d))];
      bounded = bounded || access.checked_above(d);
      if (access.axis_of(d) == axis && access.checked_above(d) && !access.whole_vectors(axis, f.vector))
        return false;
    }
    // cp.async writes zeros for what lies outside.
    const tile::Number& fill = access.op().number;
    const bool zero = is_float(access.view().dtype) ? fill == tile::Number{} : fill.i == 0;
    return own && (!bounded || zero);
  }

  const LayoutInput& input_;
  const Layouts& layouts_;
  std::vector<tile::ViewUse> uses_;
  std::vector<bool> differs_;
  std::map<ValueId, const Op*> scalars_;
  std::map<const Op*, int> loads_;
};

}  // namespace

std::vector<StagedLoad> find_staged_loads(const LayoutInput& input, const Layouts& layouts) {
  return StagedLoadFinder(input, layouts).run();
}

}  // namespace tilewright::cuda
