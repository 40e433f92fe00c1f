// Bytes that must move: the elements a launch touches, each once.
#include <tilewright/tile/affine.h>
#include <tilewright/tile/cost.h>

#include <algorithm>

#include "tile/cost_count.h"

namespace tilewright::tile {

namespace {

using Variable = Affine::Variable;

// The part of a view that one memory op touches over all programs and iterations.
struct Footprint {
  std::vector<std::pair<Index, Index>> box;  // [begin, end) along each dim of the view
  double elements = 0;                       // at most this many
};

class Footprints {
 public:
  Footprints(const Kernel& kernel, const std::vector<std::int64_t>& scalars)
      : kernel_(kernel), scalars_(scalars), table_(kernel, known_at_launch(kernel, scalars)) {}

  // Elements of a view when each address counts once.
  double view_elements(const ViewParam& view) const {
    double elements = 1;
    for (std::size_t d = 0; d < view.extents.size(); ++d)
      if (size(view.strides[d]) != 0)
        elements *= static_cast<double>(std::max<Index>(size(view.extents[d]), 0));
    return elements;
  }

  Footprint of_block(const Op& op) {
    const std::size_t first = op.kind == OpKind::store ? 1 : 0;
    const ViewParam& view = kernel_.views[static_cast<std::size_t>(op.param)];
    const TileType& tile = kernel_.type(first == 0 ? op.results[0] : op.operands[0]);
    std::vector<Index> walked(view.extents.size(), 1);
    for (std::size_t i = 0; i < op.tile_dims.size(); ++i)
      walked[static_cast<std::size_t>(op.tile_dims[i])] = tile.shape[i];
    Footprint footprint{.elements = 1};
    for (std::size_t d = 0; d < view.extents.size(); ++d) {
      const Affine& start = table_.of(op.operands[first + d]);
      const Index extent = std::max<Index>(size(view.extents[d]), 0);
      Index begin = 0, end = extent;
      if (const auto range = table_.range(start)) {
        begin = std::clamp<Index>(range->low, 0, extent);
        end = range->high > extent ? extent : std::clamp<Index>(range->high + walked[d], begin, extent);
      } else if (!start.is_constant()) {
        exact_ = false;
      }
      footprint.box.emplace_back(begin, end);
      if (size(view.strides[d]) == 0) continue;
      footprint.elements *=
          std::min(static_cast<double>(end - begin), starts(start) * static_cast<double>(walked[d]));
    }
    return footprint;
  }

  bool exact() const { return exact_; }

 private:
  Index size(const Dim& dim) const { return dim.in(scalars_.data()); }
  // How many different starts at most: blocks with gaps between them do not touch the gaps.
  double starts(const Affine& start) const {
    double count = 1;
    for (const Affine::Term& t : start.terms) {
      const auto range = table_.range_of(t.variable, t.index);
      if (!range) return static_cast<double>(kMaxViewSpan);
      const Index step =
          t.variable == Variable::loop ? table_.of(table_.loop_of(t.index).operands[2]).constant : 1;
      const Index values = (range->high - range->low) / step + 1;
      count *= static_cast<double>(values);
    }
    return count;
  }

  const Kernel& kernel_;
  const std::vector<std::int64_t>& scalars_;
  AffineTable table_;
  bool exact_ = true;
};

// The union of what several ops touch of one view: equal boxes count once.
class Union {
 public:
  void add(const Footprint& footprint) {
    for (Footprint& known : parts_)
      if (known.box == footprint.box && !footprint.box.empty()) {
        known.elements = std::max(known.elements, footprint.elements);
        return;
      }
    parts_.push_back(footprint);
  }
  double elements(double limit) const {
    double sum = 0;
    for (const Footprint& part : parts_) sum += part.elements;
    return std::min(sum, limit);
  }

 private:
  std::vector<Footprint> parts_;
};

}  // namespace

KernelCost kernel_cost(const Kernel& kernel, const std::vector<std::int64_t>& scalars, Index most_sampled,
                       const std::map<const Op*, double>& by_data) {
  const Counts counts = count_launch(kernel, scalars, most_sampled, by_data);
  KernelCost cost{.work = counts.work, .exact = counts.exact};
  Footprints footprints(kernel, scalars);
  std::vector<Union> read(kernel.views.size()), written(kernel.views.size());
  for_each_op(kernel.body, [&](const Op& op) {
    const auto found = counts.accessed.find(&op);
    if (found == counts.accessed.end()) return;
    const auto view = static_cast<std::size_t>(op.param);
    const double accessed = found->second;
    const double bytes = accessed * static_cast<double>(size_bytes(kernel.views[view].dtype));
    const bool block = op.kind == OpKind::load || op.kind == OpKind::store;
    Footprint footprint = block ? footprints.of_block(op) : Footprint{.elements = accessed};
    footprint.elements = std::min(footprint.elements, accessed);
    if (!block) cost.exact = false;
    if (op.kind == OpKind::load || op.kind == OpKind::gather || op.kind == OpKind::atomic_add) {
      cost.bytes_loaded += bytes;
      read[view].add(footprint);
    }
    if (op.kind != OpKind::load && op.kind != OpKind::gather) {
      cost.bytes_stored += bytes;
      written[view].add(footprint);
    }
  });
  for (std::size_t v = 0; v < kernel.views.size(); ++v) {
    const ViewParam& view = kernel.views[v];
    const auto element = static_cast<double>(size_bytes(view.dtype));
    const double limit = footprints.view_elements(view);
    cost.work.bytes_read += element * read[v].elements(limit);
    cost.work.bytes_written += element * written[v].elements(limit);
  }
  cost.exact = cost.exact && footprints.exact();
  return cost;
}

}  // namespace tilewright::tile
