// Copy points of a loop stand before products that read a block for the first time in a round; a block is
// copied again at the point behind its last reader.
#include "backends/cuda/plan/copy_points.h"

#include "backends/cuda/plan/refusal.h"

#include <algorithm>
#include <map>

namespace tilewright::cuda {

using printer::Step;

Result<std::vector<CopyPoint>> find_copy_points(const B2bMatmul& b2b, const Step& loop, int stages) {
  struct Use {
    std::size_t first = 0, last = 0;  // points: where it is awaited, and the last one before its last reader
  };
  std::vector<CopyPoint> points;
  std::map<int, Use> uses;
  for (const Step& step : loop.body[0]) {
    if (step.kind != Step::Kind::dot) continue;
    const B2bDot& d = *b2b.find(*step.op);
    std::vector<int> fresh;
    for (int block : {d.a, d.b})
      if (block >= 0 && !b2b.blocks[static_cast<std::size_t>(block)].resident() && uses.count(block) == 0)
        fresh.push_back(block);
    if (points.empty() || (stages == 1 && !fresh.empty())) points.push_back({.dot = &d});
    for (int block : fresh) uses[block] = {points.size() - 1, points.size() - 1};
    for (int block : {d.a, d.b})
      if (uses.count(block) > 0) uses[block].last = points.size() - 1;
  }
  const int count = static_cast<int>(points.size());
  std::vector<int> pending(points.size(), -1);
  for (const auto& [block, use] : uses) {
    // A block's stage is free at the point behind its last reader, which may be the next round's first.
    const bool wraps = use.last + 1 == points.size();
    const std::size_t at = wraps ? 0 : use.last + 1;
    const int ahead = stages - (wraps ? 1 : 0);
    points[at].copies.push_back({block, ahead});
    const int later = ahead * count + static_cast<int>(use.first) - static_cast<int>(at) - 1;
    if (later < 0) return refusal("mma: a block that is read until a round's end wants two stages");
    int& least = pending[use.first];
    least = least < 0 ? later : std::min(least, later);
  }
  for (std::size_t i = 0; i < points.size(); ++i) points[i].pending = std::max(pending[i], 0);
  return points;
}

}  // namespace tilewright::cuda
