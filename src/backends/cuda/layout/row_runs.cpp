// The search for tiles that are runs of bytes, and their places in shared memory.
#include "backends/cuda/layout/row_runs.h"

#include "backends/cuda/analysis/access.h"

#include <algorithm>
#include <numeric>

namespace tilewright::cuda {

using printer::ElementLoop;
using printer::Instr;
using printer::Step;
using tile::Op;
using tile::OpKind;

namespace {

bool is_load(const Instr& in) {
  return in.kind == Instr::Kind::compute && in.op && in.op->kind == OpKind::load;
}
bool is_store(const Instr& in) {
  return in.kind == Instr::Kind::effect && in.op && in.op->kind == OpKind::store;
}

class RowRunFinder {
 public:
  RowRunFinder(const LayoutInput& input, const Layouts& layouts)
      : input_(input), layouts_(layouts), uses_(tile::view_uses(input.kernel)) {}

  RowRuns run() {
    for (const Step& step : input_.plan.steps) {
      if (step.kind != Step::Kind::elements) continue;
      for (const Instr& in : step.loop.body)
        if (is_load(in)) ++loads_[in.op];
    }
    for (const Step& step : input_.plan.steps)
      if (step.kind == Step::Kind::elements) visit(step.loop);
    return std::move(out_);
  }

 private:
  void visit(const ElementLoop& loop) {
    const ThreadLayout layout = layouts_.loops.at(&loop);
    if (layout.part != Part::all) return;
    const TileFrame& f = layouts_.frame(layout);
    if (f.map != RowMap::strided || f.shifted || f.cluster > 1 || f.row_blocks > 1) return;
    for (const Instr& in : loop.body) {
      if (!(is_load(in) || is_store(in)) || in.axes.size() != 2 || out_.has(*in.op)) continue;
      if (side_of_axis(loop, layout, in.axes[0]) != 0 || side_of_axis(loop, layout, in.axes[1]) != 1)
        continue;
      const tile::ViewUse& use = uses_[static_cast<std::size_t>(in.op->param)];
      if (use.accumulated || (is_load(in) ? use.written : use.read)) continue;
      const Access access(input_.kernel, input_.ranges, *in.op);
      if (access.tile().shape != std::vector<Index>{f.rows, f.cols} || !is_run(access)) continue;
      RowRun r{.op = in.op, .loop = &loop, .rows_dim = access.dim_of(0), .rows = f.rows, .row = f.cols};
      r.at = is_store(in) ? place_of_result(r, layout) : place(bytes_of(r));
      out_.all.push_back(r);
    }
  }

  // Whether all rows are inside but the last ones, each is whole, and the first begins at a multiple of a
  // piece.
  bool is_run(const Access& access) const {
    const int rows = access.dim_of(0), columns = access.dim_of(1);
    const Index row = access.tile().shape[1];
    if (!access.contiguous(1) || access.stride(rows) != tile::Dim{row, -1} ||
        access.extent(columns) != tile::Dim{row, -1} || range(access.start(columns)).divisor != 0)
      return false;
    Index divisor = access.view().align_bytes;
    const auto size = static_cast<Index>(size_bytes(access.view().dtype));
    for (int d = 0; d < access.rank(); ++d) {
      if (access.checked_below(d) || (d != rows && access.checked_above(d))) return false;
      if (d == columns) continue;
      if (!access.stride(d).is_constant()) return false;
      divisor = std::gcd(divisor, range(access.start(d)).divisor * access.stride(d).value * size);
    }
    return divisor % kRunPiece == 0;
  }

  const printer::ValueRange& range(tile::ValueId v) const {
    return input_.ranges[static_cast<std::size_t>(v)];
  }
  Index bytes_of(const RowRun& r) const {
    return r.rows * r.row *
           static_cast<Index>(size_bytes(input_.kernel.views[static_cast<std::size_t>(r.op->param)].dtype));
  }
  Index place(Index bytes) {
    const Index at = out_.bytes;
    out_.bytes += round_up(bytes, kRunPiece);
    return at;
  }
  // That of a load whose elements the same threads have read before, or one of its own.
  Index place_of_result(const RowRun& result, ThreadLayout layout) {
    for (const RowRun& r : out_.all) {
      const bool same_threads = r.row == result.row && layouts_.loops.at(r.loop) == layout;
      if (r.op->kind == OpKind::load && same_threads && bytes_of(r) == bytes_of(result) &&
          loads_.at(r.op) == 1 && taken_.insert(r.op).second)
        return r.at;
    }
    return place(bytes_of(result));
  }

  const LayoutInput& input_;
  const Layouts& layouts_;
  std::vector<tile::ViewUse> uses_;
  std::map<const Op*, int> loads_;  // loops that read it
  std::set<const Op*> taken_;
  RowRuns out_;
};

}  // namespace

bool RowRuns::has(const Op& op) const {
  return std::any_of(all.begin(), all.end(), [&](const RowRun& r) { return r.op == &op; });
}

RowRuns find_row_runs(const LayoutInput& input, const Layouts& layouts) {
  return RowRunFinder(input, layouts).run();
}

}  // namespace tilewright::cuda
