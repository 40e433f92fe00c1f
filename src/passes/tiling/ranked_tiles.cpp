// Tiles in the order of their predicted times, and the best of each kind.
#include "passes/tiling/ranked_tiles.h"

#include <algorithm>

namespace tilewright::passes {

namespace {

constexpr std::size_t kMostRanked = 8;

}  // namespace

std::vector<DotTiles> best_first(const std::vector<RankedTiles>& all) {
  const auto by_cost = [](const RankedTiles& a, const RankedTiles& b) { return a.cost < b.cost; };
  std::vector<RankedTiles> best;  // sorted: of hundreds of tiles few are kept
  for (const RankedTiles& r : all) {
    if (best.size() == kMostRanked && r.cost >= best.back().cost) continue;
    const auto same = std::find_if(best.begin(), best.end(),
                                   [&](const RankedTiles& known) { return known.tiles == r.tiles; });
    if (same != best.end() && r.cost >= same->cost) continue;
    if (same != best.end())
      best.erase(same);
    else if (best.size() == kMostRanked)
      best.pop_back();
    best.insert(std::upper_bound(best.begin(), best.end(), r, by_cost), r);
  }
  std::vector<DotTiles> out;
  out.reserve(best.size());
  for (const RankedTiles& r : best) out.push_back(r.tiles);
  return out;
}

std::vector<DotTiles> best_of_each(std::vector<RankedTiles> all) {
  constexpr auto kMostAlike = 2;
  std::stable_sort(all.begin(), all.end(),
                   [](const RankedTiles& a, const RankedTiles& b) { return a.cost < b.cost; });
  std::vector<RankedTiles> kept;
  for (const RankedTiles& r : all)
    if (std::count_if(kept.begin(), kept.end(), [&](const RankedTiles& k) {
          return k.tiles.bm == r.tiles.bm && k.tiles.bn == r.tiles.bn;
        }) < kMostAlike)
      kept.push_back(r);
  return best_first(kept);
}

}  // namespace tilewright::passes
