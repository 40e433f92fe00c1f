// The search for a row's accesses that begin at the same place modulo a vector.
#include "backends/cuda/layout/shifted_row.h"

#include "backends/cuda/analysis/access.h"
#include "backends/cuda/layout/layout.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <tuple>

namespace tilewright::cuda {

using printer::ElementLoop;
using printer::Instr;
using printer::Step;
using tile::OpKind;
using tile::ValueId;

namespace {

constexpr Index kShortestRow = 512;  // elements: of fewer vectors the first and the last are too many
constexpr int kNarrow = 2;           // bytes of an element of which a warp alone moves half a line
constexpr Index kLeastVector = 4;

// Where rows begin, modulo a vector: a constant and terms start · stride.
struct RowStart {
  Index constant = 0;
  std::vector<std::tuple<ValueId, Index, int>> terms = {};  // start, and the stride's number or scalar
  friend bool operator==(const RowStart&, const RowStart&) = default;
};

class ShiftedRowFinder {
 public:
  ShiftedRowFinder(const ShiftedRowInput& input, const std::vector<Index>& shape)
      : input_(input), shape_(shape), axes_(long_axes(shape)) {}

  std::optional<ShiftedRow> run() {
    if (axes_.size() != 1 || columns() < kShortestRow) return std::nullopt;
    for (const Step& step : input_.plan.steps) {
      if (step.kind == Step::Kind::scalar) continue;
      if (step.kind != Step::Kind::elements || !add(step.loop)) return std::nullopt;
    }
    if (seen_.empty()) return std::nullopt;
    ShiftedRow row;
    row.narrowest_bytes =
        static_cast<int>(std::min_element(seen_.begin(), seen_.end(), [](const Seen& a, const Seen& b) {
                           return a.bytes < b.bytes;
                         })->bytes);
    row.vector = input_.limit_bytes / row.narrowest_bytes;
    if (row.narrowest_bytes > kNarrow || row.vector < kLeastVector ||
        !std::has_single_bit(static_cast<std::uint64_t>(row.vector)))
      return std::nullopt;
    return alike(row) ? std::optional(std::move(row)) : std::nullopt;
  }

 private:
  struct Seen {
    const tile::Op* op;
    Index bytes, vector;  // of an element; elements that are aligned together as they are
    bool in_first_loop;
    bool is_store() const { return op->kind == OpKind::store; }
  };

  Index columns() const { return shape_[static_cast<std::size_t>(axes_[0])]; }

  // Notes the accesses of a loop over the row; false where its columns must lie as they are counted.
  bool add(const ElementLoop& loop) {
    const Axes axes = long_axes(loop.shape);
    const bool is_row = loop.shape == shape_;
    if (!is_row && !axes.empty() && loop.shape[static_cast<std::size_t>(axes.back())] == columns())
      return false;
    for (const Instr& in : loop.body) {
      if (in.kind == Instr::Kind::scan) return false;
      if (!in.op) continue;
      const OpKind kind = in.op->kind;
      if (kind == OpKind::gather || kind == OpKind::scatter || kind == OpKind::atomic_add) return false;
      if (is_row && (kind == OpKind::load || kind == OpKind::store) && !add_access(in)) return false;
    }
    loops_over_row_ += is_row ? 1 : 0;
    return true;
  }

  bool add_access(const Instr& in) {
    const auto column = std::find(in.axes.begin(), in.axes.end(), axes_[0]);
    if (column == in.axes.end()) return in.op->kind == OpKind::load;
    const Access access(input_.kernel, input_.ranges, *in.op);
    const int axis = static_cast<int>(column - in.axes.begin()), dim = access.dim_of(axis);
    if (!access.contiguous(axis) || access.checked_below(dim) || access.checked_above(dim)) return false;
    seen_.push_back({in.op, static_cast<Index>(size_bytes(access.view().dtype)),
                     access.widest(axis, input_.limit_bytes), loops_over_row_ == 0});
    return true;
  }

  // Where the row of an access begins; none where the view itself may begin anywhere.
  std::optional<RowStart> start_of(const Seen& seen, Index vector) const {
    const Access access(input_.kernel, input_.ranges, *seen.op);
    if (!access.begins_aligned(vector)) return std::nullopt;
    RowStart out;
    for (int d = 0; d < access.rank(); ++d) {
      const ValueId start = access.start(d);
      const printer::ValueRange& range = input_.ranges[static_cast<std::size_t>(start)];
      const tile::Dim stride = access.stride(d);
      const Index number = stride.is_constant() ? stride.value % vector : 0;
      if (range.divisor == 0 || (stride.is_constant() && number * range.divisor % vector == 0)) continue;
      if (stride.is_constant() && range.low == range.high)
        out.constant += range.low * number;
      else
        out.terms.emplace_back(start, number, stride.scalar);
    }
    out.constant = (out.constant % vector + vector) % vector;
    std::sort(out.terms.begin(), out.terms.end());
    return out;
  }

  // All stores begin alike, or if there are none the first load says how.
  bool alike(ShiftedRow& row) const {
    const auto stored = std::find_if(seen_.begin(), seen_.end(), [](const Seen& s) { return s.is_store(); });
    const Seen& decides = stored == seen_.end() ? seen_.front() : *stored;
    const auto start = start_of(decides, row.vector);
    if (!start || decides.vector > 1) return false;
    for (const Seen& s : seen_) {
      if (start_of(s, row.vector) == start) {
        row.aligned.insert(s.op);
        if (s.in_first_loop && row.first == nullptr) row.first = s.op;
      } else if (s.is_store()) {
        return false;
      }
    }
    return row.first != nullptr;
  }

  const ShiftedRowInput& input_;
  const std::vector<Index>& shape_;
  const Axes axes_;
  std::vector<Seen> seen_;
  int loops_over_row_ = 0;
};

}  // namespace

std::optional<ShiftedRow> find_shifted_row(const ShiftedRowInput& input, const std::vector<Index>& shape) {
  return ShiftedRowFinder(input, shape).run();
}

}  // namespace tilewright::cuda
