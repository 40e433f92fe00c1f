// Buffers that overlap are laid out together, the others one after another.
#include "backends/reference/shadow.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace tilewright::reference {

namespace {
constexpr std::int32_t kMany = std::numeric_limits<std::int32_t>::max();
constexpr std::int32_t kAdded = kMany - 1;

bool other(std::int32_t who, std::int32_t self) { return who != 0 && who != self; }

std::string programs(std::int32_t who) {
  return who == kMany ? "other programs read" : fmt::format("program {} reads", who - 1);
}
}  // namespace

Shadow::Shadow(const std::vector<BoundView>& views, const std::vector<ViewBinding>& bindings) {
  std::vector<std::size_t> order(views.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto begin_of = [&](std::size_t v) {
    return reinterpret_cast<std::uintptr_t>(views[v].data) -
           static_cast<std::uintptr_t>(bindings[v].before_bytes);
  };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(begin_of(a), a) < std::pair(begin_of(b), b);
  });
  // Bytes of the shadowed memory from the first buffer's begin on, buffers apart joined.
  struct Range {
    std::size_t begin, end;
  };
  std::vector<Range> ranges(views.size());
  std::uintptr_t group_begin = 0, group_end = 0;
  std::size_t group_shadow = 0, total = 0;
  for (std::size_t v : order) {
    const std::uintptr_t begin = begin_of(v);
    const std::uintptr_t end =
        begin + static_cast<std::uintptr_t>(bindings[v].before_bytes + bindings[v].extent_bytes);
    cell_bytes_ = std::gcd(cell_bytes_, static_cast<std::uintptr_t>(views[v].element_bytes));
    if (begin >= group_end) {
      group_begin = begin;
      group_end = begin;
      group_shadow = (total + 15) / 16 * 16;
    }
    group_end = std::max(group_end, end);
    total = std::max(total, group_shadow + (group_end - group_begin));
    ranges[v] = {group_shadow + (begin - group_begin), group_shadow + (end - group_begin)};
  }
  for (std::size_t v = 0; v < views.size(); ++v)
    for (const std::uintptr_t offset :
         {ranges[v].begin, ranges[v].end, static_cast<std::uintptr_t>(bindings[v].before_bytes)})
      cell_bytes_ = std::gcd(cell_bytes_, offset);
  cells_.reset(
      static_cast<Cell*>(std::calloc(total / std::max(cell_bytes_, std::uintptr_t{1}) + 1, sizeof(Cell))));
  if (!cells_) throw std::bad_alloc();
  for (std::size_t v = 0; v < views.size(); ++v) {
    const ViewBinding& binding = bindings[v];
    windows_.push_back(
        {.origin = (ranges[v].begin + static_cast<std::size_t>(binding.before_bytes)) / cell_bytes_,
         .begin = -binding.before_bytes,
         .end = binding.extent_bytes,
         .element_bytes = views[v].element_bytes});
    if (!binding.initialized)
      for (std::size_t i = ranges[v].begin / cell_bytes_; i < ranges[v].end / cell_bytes_; ++i)
        cells_.get()[i].uninitialized = true;
  }
}

std::string Shadow::touch(int view, Index offset, Index program, Touch how) {
  const Window& window = windows_[static_cast<std::size_t>(view)];
  const Index first = offset * window.element_bytes;
  if (first < window.begin || first + window.element_bytes > window.end)
    return fmt::format("element {} lies outside the buffer of {} bytes", offset, window.end - window.begin);
  const auto self = static_cast<std::int32_t>(program + 1);
  const auto cell_bytes = static_cast<Index>(cell_bytes_);
  Cell* const at = cells_.get() + static_cast<Index>(window.origin) + first / cell_bytes;
  for (Cell* c = at; c < at + window.element_bytes / cell_bytes; ++c) {
    Cell& cell = *c;
    const bool reads = how == Touch::read || how == Touch::add;
    if (reads && cell.uninitialized && cell.writer == 0) return "nothing was written here before";
    if (how == Touch::add && cell.writer == kAdded) continue;
    if (other(cell.writer, self))
      return cell.writer == kAdded ? "programs add here atomically"
                                   : fmt::format("program {} writes here too", cell.writer - 1);
    if (how == Touch::read) {
      cell.reader = other(cell.reader, self) ? kMany : self;
      continue;
    }
    if (other(cell.reader, self)) return fmt::format("{} this", programs(cell.reader));
    if (how == Touch::scatter && cell.writer != 0) return "two scattered elements meet here";
    if (how == Touch::store && cell.scattered) return "a scattered element was written here";
    cell.writer = how == Touch::add ? kAdded : self;
    cell.scattered = how == Touch::scatter;
  }
  return "";
}

}  // namespace tilewright::reference
