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
  windows_.resize(views.size());
  std::uintptr_t group_begin = 0, group_end = 0;
  std::size_t group_shadow = 0;
  for (std::size_t v : order) {
    const ViewBinding& binding = bindings[v];
    const std::uintptr_t begin = begin_of(v);
    const std::uintptr_t end =
        begin + static_cast<std::uintptr_t>(binding.before_bytes + binding.extent_bytes);
    if (begin >= group_end) {
      group_begin = begin;
      group_end = begin;
      group_shadow = bytes_.size();
    }
    group_end = std::max(group_end, end);
    bytes_.resize(std::max(bytes_.size(), group_shadow + (group_end - group_begin)));
    windows_[v] = {
        .origin = group_shadow + (begin - group_begin) + static_cast<std::size_t>(binding.before_bytes),
        .begin = -binding.before_bytes,
        .end = binding.extent_bytes,
        .element_bytes = views[v].element_bytes};
    if (!binding.initialized)
      for (std::size_t i = begin - group_begin; i < end - group_begin; ++i)
        bytes_[group_shadow + i].initialized = false;
  }
}

std::string Shadow::touch(int view, Index offset, Index program, Touch how) {
  const Window& window = windows_[static_cast<std::size_t>(view)];
  const Index first = offset * window.element_bytes;
  if (first < window.begin || first + window.element_bytes > window.end)
    return fmt::format("element {} lies outside the buffer of {} bytes", offset, window.end - window.begin);
  const auto self = static_cast<std::int32_t>(program + 1);
  const auto at = static_cast<std::size_t>(static_cast<Index>(window.origin) + first);
  for (std::size_t i = at; i < at + static_cast<std::size_t>(window.element_bytes); ++i) {
    Byte& byte = bytes_[i];
    const bool reads = how == Touch::read || how == Touch::add;
    if (reads && !byte.initialized && byte.writer == 0) return "nothing was written here before";
    if (how == Touch::add && byte.writer == kAdded) continue;
    if (other(byte.writer, self))
      return byte.writer == kAdded ? "programs add here atomically"
                                   : fmt::format("program {} writes here too", byte.writer - 1);
    if (how == Touch::read) {
      byte.reader = other(byte.reader, self) ? kMany : self;
      continue;
    }
    if (other(byte.reader, self)) return fmt::format("{} this", programs(byte.reader));
    if (how == Touch::scatter && byte.writer != 0) return "two scattered elements meet here";
    if (how == Touch::store && byte.scattered) return "a scattered element was written here";
    byte.writer = how == Touch::add ? kAdded : self;
    byte.scattered = how == Touch::scatter;
  }
  return "";
}

}  // namespace tilewright::reference
