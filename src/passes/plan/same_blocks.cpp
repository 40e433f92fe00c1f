// The proof is of mixed radix: along each dimension of a view the start of a block is a sum of digits (of the
// program's number, and of loops) times factors. Where each factor is at least the reach of all smaller ones
// with the block, different digits are different blocks.
#include "passes/plan/same_blocks.h"

#include <tilewright/tile/affine.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

namespace tilewright::passes {

using tile::Affine;
using tile::AffineTable;
using tile::Kernel;
using tile::Op;
using tile::OpKind;
using tile::ValueId;
using Variable = Affine::Variable;

namespace {

bool is_access(const Op& op) {
  return op.kind == OpKind::load || op.kind == OpKind::store || op.kind == OpKind::gather ||
         op.kind == OpKind::scatter || op.kind == OpKind::atomic_add;
}

// number / divisor, of which the remainder by `modulus` where that is not 0: of a program's number along an
// axis, or of what a loop counts.
struct Digit {
  bool is_loop = false;
  int index = 0;  // grid axis, or the loop's induction variable
  Index divisor = 1, modulus = 0;
  friend bool operator==(const Digit&, const Digit&) = default;
};

class SameBlocks {
 public:
  SameBlocks(const Kernel& kernel, const std::vector<std::int64_t>& scalars, const std::vector<int>& views)
      : kernel_(kernel), table_(kernel, tile::known_at_launch(kernel, scalars)), views_(views) {}

  std::string why_not() {
    const tile::ViewParam& first = view(views_[0]);
    for (int v : views_)
      if (view(v).dtype != first.dtype || view(v).extents != first.extents ||
          view(v).strides != first.strides)
        return "reads it as another shape than it writes";
    if (std::string why = walk(kernel_.body); !why.empty()) return why;
    if (!accesses_ || loops_of_stores_.empty()) return "";
    if (!addresses_differ(first)) return "writes elements that lie in one place";
    return programs_meet() ? "may write where another of its programs reads" : "";
  }

 private:
  const tile::ViewParam& view(int v) const { return kernel_.views[static_cast<std::size_t>(v)]; }
  bool is_ours(const Op& op) const {
    return is_access(op) && std::find(views_.begin(), views_.end(), op.param) != views_.end();
  }

  // All accesses are to one block, given by the same numbers, and loads come before stores. A load in a loop
  // comes again: which rounds meet is asked of the digits.
  std::string walk(const tile::Block& block) {
    for (const Op& op : block.ops) {
      define(op);
      if (is_ours(op))
        if (std::string why = add(op); !why.empty()) return why;
      if (op.kind == OpKind::loop) open_.push_back(&op);
      for (const tile::Block& inner : op.blocks)
        if (std::string why = walk(inner); !why.empty()) return why;
      if (op.kind == OpKind::loop) open_.pop_back();
    }
    return "";
  }

  std::string add(const Op& op) {
    if (op.kind == OpKind::atomic_add) return "adds to what it reads";
    if (op.kind != OpKind::load && op.kind != OpKind::store) return "reads or writes it by indices";
    const bool stores = op.kind == OpKind::store;
    const std::size_t first = stores ? 1 : 0;
    std::vector<Affine> starts;
    for (std::size_t i = first; i < op.operands.size(); ++i) starts.push_back(table_.of(op.operands[i]));
    std::vector<Index> extents(starts.size(), 1);
    const tile::TileType& tile = kernel_.type(stores ? op.operands[0] : op.results[0]);
    for (std::size_t i = 0; i < op.tile_dims.size(); ++i)
      extents[static_cast<std::size_t>(op.tile_dims[i])] = tile.shape[i];
    if (!accesses_) {
      accesses_ = true;
      starts_ = std::move(starts);
      extents_ = std::move(extents);
      dims_ = op.tile_dims;
    } else if (starts != starts_ || extents != extents_ || op.tile_dims != dims_) {
      return "reads other elements of it than it writes";
    }
    if (stores)
      loops_of_stores_.push_back(open_);
    else if (!loops_of_stores_.empty())
      return "reads it again after it has written it";
    return "";
  }

  // Numbers that are a digit of another one.
  void define(const Op& op) {
    if (op.kind != OpKind::apply || (op.prim != tile::Prim::div && op.prim != tile::Prim::rem)) return;
    if (kernel_.type(op.results[0]) != tile::TileType{DType::i64, {}}) return;
    const Affine &of = table_.of(op.operands[0]), &by = table_.of(op.operands[1]);
    if (!by.is_constant() || by.constant <= 0 || of.constant != 0 || of.terms.size() != 1 ||
        of.terms[0].factor != 1)
      return;
    std::optional<Digit> digit = digit_of(of.terms[0]);
    if (!digit || digit->is_loop || digit->modulus != 0) return;
    if (op.prim == tile::Prim::rem)
      digit->modulus = by.constant;
    else if (__builtin_mul_overflow(digit->divisor, by.constant, &digit->divisor))
      return;
    digits_[op.results[0]] = *digit;
  }

  std::optional<Digit> digit_of(const Affine::Term& term) const {
    if (term.variable == Variable::program) return Digit{false, term.index, 1, 0};
    if (term.variable == Variable::loop) return Digit{true, term.index, 1, 0};
    if (term.variable != Variable::opaque) return std::nullopt;
    const auto known = digits_.find(term.index);
    return known == digits_.end() ? std::nullopt : std::optional(known->second);
  }

  // The number of values that a digit takes, from 0, and the step between two. None if that is not known.
  struct Count {
    Index count, step;
  };
  std::optional<Count> count_of(const Digit& d) const {
    if (d.is_loop) {
      const Op& loop = table_.loop_of(d.index);
      const std::optional<Index> trips = table_.trip_count(loop);
      // A loop that begins elsewhere in each program is a digit behind another one.
      if (!trips || !table_.of(loop.operands[0]).is_constant()) return std::nullopt;
      return Count{*trips, table_.of(loop.operands[2]).constant};
    }
    const std::optional<Index> programs = table_.known().grid[static_cast<std::size_t>(d.index)];
    if (!programs) return std::nullopt;
    const Index all = ceil_div(*programs, d.divisor);
    return Count{d.modulus == 0 ? all : std::min(all, d.modulus), 1};
  }

  std::optional<Index> known(const tile::Dim& dim) const {
    return dim.is_constant() ? std::optional(dim.value)
                             : table_.known().scalars[static_cast<std::size_t>(dim.scalar)];
  }

  // Two coordinates inside the view are two addresses.
  bool addresses_differ(const tile::ViewParam& view) const {
    std::vector<std::pair<Index, Index>> dims;  // stride, extent
    for (std::size_t d = 0; d < view.extents.size(); ++d) {
      const std::optional<Index> extent = known(view.extents[d]), stride = known(view.strides[d]);
      if (!extent || !stride) return false;
      if (*extent > 1) dims.push_back({std::abs(*stride), *extent});
    }
    std::sort(dims.begin(), dims.end());
    Index reach = 1;
    for (auto [stride, extent] : dims) {
      if (stride < reach) return false;
      reach += stride * (extent - 1);
    }
    return true;
  }

  // Digits along one dimension whose values are told from where a block starts.
  std::vector<Digit> told_by(std::size_t dim) const {
    struct Part {
      Index factor, count;
      Digit digit;
    };
    std::vector<Part> parts;
    for (const Affine::Term& t : starts_[dim].terms) {
      const std::optional<Digit> digit = digit_of(t);
      const std::optional<Count> count = digit ? count_of(*digit) : std::nullopt;
      Index factor = 0;
      if (!count || __builtin_mul_overflow(t.factor, count->step, &factor)) return {};
      parts.push_back({std::abs(factor), count->count, *digit});
    }
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) { return a.factor < b.factor; });
    std::vector<Digit> told;
    Index reach = extents_[dim];
    for (const Part& p : parts) {
      Index length = 0;
      if (p.factor < reach || __builtin_mul_overflow(p.factor, p.count - 1, &length) ||
          __builtin_add_overflow(reach, length, &reach))
        return {};
      told.push_back(p.digit);
    }
    return told;
  }

  bool programs_meet() const {
    std::vector<Digit> told;
    for (std::size_t d = 0; d < starts_.size(); ++d)
      for (const Digit& digit : told_by(d)) told.push_back(digit);
    const auto is_told = [&](const Digit& d) { return std::find(told.begin(), told.end(), d) != told.end(); };
    for (const std::vector<const Op*>& loops : loops_of_stores_)
      for (const Op* loop : loops)
        if (table_.trip_count(*loop) != 1 && !is_told({true, loop->blocks[0].args[0], 1, 0})) return true;
    for (std::size_t axis = 0; axis < kernel_.grid.size(); ++axis) {
      const std::optional<Index> programs = table_.known().grid[axis];
      if (!programs) return true;
      // The digits of a number, from the last on: each begins where the one before ends.
      Index known = 1;  // the number's remainder by it is told
      while (known < *programs) {
        const auto next = std::find_if(told.begin(), told.end(), [&](const Digit& d) {
          return !d.is_loop && d.index == static_cast<int>(axis) && d.divisor == known && d.modulus != 1;
        });
        if (next == told.end()) return true;
        if (next->modulus == 0) break;
        known *= next->modulus;
      }
    }
    return false;
  }

  const Kernel& kernel_;
  AffineTable table_;
  const std::vector<int>& views_;
  std::map<ValueId, Digit> digits_;
  std::vector<const Op*> open_;  // loops around what is walked
  bool accesses_ = false;
  std::vector<Affine> starts_;  // of the one block
  std::vector<Index> extents_;  // along each dimension of the view
  std::vector<int> dims_;
  std::vector<std::vector<const Op*>> loops_of_stores_;
};

void rename_views(tile::Block& block, const std::vector<int>& to) {
  for (Op& op : block.ops) {
    if (is_access(op)) op.param = to[static_cast<std::size_t>(op.param)];
    for (tile::Block& inner : op.blocks) rename_views(inner, to);
  }
}

}  // namespace

std::string why_not_same_memory(const Kernel& kernel, const std::vector<std::int64_t>& scalars,
                                const std::vector<int>& views) {
  return SameBlocks(kernel, scalars, views).why_not();
}

OneView with_one_view(const Kernel& kernel, const std::vector<int>& views) {
  const std::vector<tile::ViewUse> uses = tile::view_uses(kernel);
  OneView out{kernel, *std::find_if(views.begin(), views.end(),
                                    [&](int v) { return uses[static_cast<std::size_t>(v)].written; })};
  out.kernel.views.clear();
  std::vector<int> to;
  for (int v = 0; v < static_cast<int>(kernel.views.size()); ++v) {
    const bool dropped = v != out.kept && std::find(views.begin(), views.end(), v) != views.end();
    to.push_back(static_cast<int>(out.kernel.views.size()));
    if (!dropped) out.kernel.views.push_back(kernel.views[static_cast<std::size_t>(v)]);
  }
  Index align = kernel.views[static_cast<std::size_t>(out.kept)].align_bytes;
  for (int v : views) align = std::min(align, kernel.views[static_cast<std::size_t>(v)].align_bytes);
  out.kernel.views[static_cast<std::size_t>(to[static_cast<std::size_t>(out.kept)])].align_bytes = align;
  for (int v : views) to[static_cast<std::size_t>(v)] = to[static_cast<std::size_t>(out.kept)];
  rename_views(out.kernel.body, to);
  return out;
}

}  // namespace tilewright::passes
