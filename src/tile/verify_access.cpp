// What the verifier can prove about memory from affine starts. It refuses only what is certainly wrong: an
// unknown size or a start that is not affine leaves the kernel's promise as it is (the reference
// interpreter's checked mode tests it on real sizes).
#include <fmt/format.h>
#include <tilewright/tile/affine.h>

#include <algorithm>

#include "tile/index_tiles.h"
#include "tile/verify_parts.h"

namespace tilewright::tile {

namespace {

using Variable = Affine::Variable;

// A load or store of a block: what it touches along each dim of its view.
struct Access {
  const Op* op = nullptr;
  std::vector<Affine> starts;
  std::vector<Index> extents;  // of the tile along each view dim, 1 where it does not walk
  friend bool operator==(const Access& a, const Access& b) {
    return a.starts == b.starts && a.extents == b.extents && a.op->tile_dims == b.op->tile_dims;
  }
};

class AccessCheck {
 public:
  explicit AccessCheck(const Kernel& kernel)
      : kernel_(kernel),
        table_(kernel, known_statically(kernel)),
        tiles_(kernel, table_),
        seen_(kernel.views.size()) {}

  OpProblem run() {
    for (const std::optional<Index>& count : table_.known().grid)
      if (count == 0) return {};  // no program, no access
    if (OpProblem p = block(kernel_.body, true); !p.message.empty()) return p;
    return {};
  }

 private:
  // `certain`: the block runs in every program, at least once.
  OpProblem block(const Block& block, bool certain) {
    for (const Op& op : block.ops) {
      if (OpProblem p{&op, visit(op, certain)}; !p.message.empty()) return p;
      for (const Block& inner : op.blocks) {
        const bool runs = op.kind == OpKind::loop && table_.trip_count(op).value_or(0) > 0;
        if (OpProblem p = this->block(inner, certain && runs); !p.message.empty()) return p;
      }
    }
    return {};
  }

  std::string visit(const Op& op, bool certain) {
    const bool block_access = op.kind == OpKind::load || op.kind == OpKind::store;
    if (block_access) {
      const Access access = access_of(op);
      if (certain) {
        if (std::string problem = leaves_view(access); !problem.empty()) return problem;
        if (op.kind == OpKind::store)
          if (std::string problem = meets_itself(access); !problem.empty()) return problem;
      }
      return shares_view(op, &access);
    }
    if (op.kind == OpKind::gather || op.kind == OpKind::scatter || op.kind == OpKind::atomic_add) {
      if (certain)
        if (std::string problem = index_outside(op); !problem.empty()) return problem;
      return shares_view(op, nullptr);
    }
    if (op.kind == OpKind::loop) {
      const Affine& step = table_.of(op.operands[2]);
      if (step.is_constant() && step.constant <= 0) return fmt::format("the step is {}", step.constant);
    }
    return "";
  }

  const ViewParam& view_of(const Op& op) const { return kernel_.views[static_cast<std::size_t>(op.param)]; }

  Access access_of(const Op& op) const {
    const std::size_t first = op.kind == OpKind::store ? 1 : 0;
    Access access{.op = &op};
    for (std::size_t i = first; i < op.operands.size(); ++i)
      access.starts.push_back(table_.of(op.operands[i]));
    access.extents.assign(access.starts.size(), 1);
    const TileType& tile = kernel_.type(first == 0 ? op.results[0] : op.operands[0]);
    for (std::size_t i = 0; i < op.tile_dims.size(); ++i)
      access.extents[static_cast<std::size_t>(op.tile_dims[i])] = tile.shape[i];
    return access;
  }

  // Some program surely reaches outside a constant extent although the op promises to stay inside.
  std::string leaves_view(const Access& access) const {
    if (access.op->bounded) return "";
    for (std::size_t d = 0; d < access.starts.size(); ++d) {
      const std::optional<Range> range = table_.range(access.starts[d]);
      if (!range) continue;
      const Dim& extent = view_of(*access.op).extents[d];
      if (range->low < 0) return fmt::format("the block leaves the view: dim {} starts at {}", d, range->low);
      const Index end = range->high > kMaxViewSpan ? range->high : range->high + access.extents[d];
      if (extent.is_constant() && end > extent.value)
        return fmt::format("the block leaves the view: dim {} reaches {} of {}; {}", d, end, extent.value,
                           access.op->kind == OpKind::load ? "give a fill" : "make it bounded");
    }
    return "";
  }

  // The same of an index that no mask hides.
  std::string index_outside(const Op& op) {
    if (op.masked) return "";
    const std::size_t first = op.kind == OpKind::gather ? 0 : 1;
    for (std::size_t d = 0; first + d < op.operands.size(); ++d) {
      const std::optional<Range> range = tiles_.range(op.operands[first + d]);
      if (!range) continue;
      const Dim& extent = view_of(op).extents[d];
      if (range->low < 0 || (extent.is_constant() && range->high >= extent.value))
        return fmt::format("an index leaves the view: dim {} has {}{}; give a mask", d,
                           range->low < 0 ? range->low : range->high,
                           extent.is_constant() ? fmt::format(" of {}", extent.value) : "");
    }
    return "";
  }

  // Two elements of the block, or the blocks of two neighbouring programs, surely share an address.
  std::string meets_itself(const Access& access) const {
    const ViewParam& view = view_of(*access.op);
    for (std::size_t d = 0; d < access.starts.size(); ++d)
      if (view.strides[d] == Dim{0, -1} && access.extents[d] > 1)
        return fmt::format("elements of the block meet: the view has stride 0 along dim {}", d);
    for (int axis = 0; axis < static_cast<int>(kernel_.grid.size()); ++axis)
      if (least_programs(axis) > 1 && neighbours_meet(access, axis))
        return fmt::format("the blocks of different programs overlap along grid axis {}", axis);
    return "";
  }

  Index least_programs(int axis) const {
    Index least = 1;
    for (const GridFactor& f : kernel_.grid[static_cast<std::size_t>(axis)])
      if (f.extent.is_constant()) least *= block_count(f.extent.value, f.block);
    return least;
  }

  bool neighbours_meet(const Access& access, int axis) const {
    for (std::size_t d = 0; d < access.starts.size(); ++d) {
      const Affine& start = access.starts[d];
      if (!same_for_all_programs_but(start, axis)) return false;
      const Index step = start.factor_of(Variable::program, axis);
      if (step >= access.extents[d] || step <= -access.extents[d]) return false;
      if (access.op->bounded && !shared_part_inside(access, d, step)) return false;
    }
    return true;
  }

  // The start depends on nothing whose value could differ between neighbours along `axis`, the axis apart.
  bool same_for_all_programs_but(const Affine& start, int axis) const {
    for (const Affine::Term& t : start.terms) {
      if (t.variable == Variable::opaque) return false;
      if (t.variable != Variable::loop) continue;
      const Affine& lower = table_.of(table_.loop_of(t.index).operands[0]);
      if (lower.depends_on(Variable::opaque) || lower.depends_on(Variable::loop) ||
          lower.factor_of(Variable::program, axis) != 0)
        return false;
    }
    return true;
  }

  // A bounded store drops what is outside: the part that the first two programs share is not all dropped.
  bool shared_part_inside(const Access& access, std::size_t d, Index step) const {
    const Affine& start = access.starts[d];
    if (start.constant > kMaxViewSpan || start.constant < -kMaxViewSpan) return false;
    for (const Affine::Term& t : start.terms)
      if (t.variable != Variable::program) return false;
    const Dim& extent = view_of(*access.op).extents[d];
    const Index least_extent = extent.is_constant() ? extent.value : 1;
    const Index begin = start.constant + std::max<Index>(0, step);
    const Index end = start.constant + std::min<Index>(0, step) + access.extents[d];
    return begin < least_extent && end > 0;
  }

  // A view is read and written only at the same blocks; what is added to atomically is nothing else.
  std::string shares_view(const Op& op, const Access* access) {
    Seen& seen = seen_[static_cast<std::size_t>(op.param)];
    const std::string& view = view_of(op).name;
    const bool reads = op.kind == OpKind::load || op.kind == OpKind::gather;
    const bool adds = op.kind == OpKind::atomic_add;
    const bool differs =
        !access || (seen.first.op && !(seen.first == *access)) || seen.indexed || seen.differ;
    if ((adds && (seen.read || seen.written)) || (!adds && seen.added))
      return fmt::format("%{} is added to atomically and also read or stored", view);
    if ((reads && seen.written && differs) || (!reads && !adds && seen.read && differs))
      return fmt::format("%{} is both read and written, and the blocks may differ", view);
    (reads ? seen.read : adds ? seen.added : seen.written) = true;
    if (!access) seen.indexed = true;
    if (access && seen.first.op && !(seen.first == *access)) seen.differ = true;
    if (access && !seen.first.op) seen.first = *access;
    return "";
  }

  struct Seen {
    bool read = false, written = false, added = false;
    bool indexed = false;  // by gather or scatter
    bool differ = false;   // two different blocks
    Access first;
  };

  const Kernel& kernel_;
  AffineTable table_;
  IndexTiles tiles_;
  std::vector<Seen> seen_;
};

}  // namespace

OpProblem check_access(const Kernel& kernel) { return AccessCheck(kernel).run(); }

}  // namespace tilewright::tile
