#include "passes/tiling/ranked_tiles.h"

#include <algorithm>

namespace tilewright::passes {

namespace {

constexpr std::size_t kMostRanked = 8;

void sort_by_cost(std::vector<RankedTiles>& all) {
  std::stable_sort(all.begin(), all.end(),
                   [](const RankedTiles& a, const RankedTiles& b) { return a.cost < b.cost; });
}

}  // namespace

std::vector<DotTiles> best_first(std::vector<RankedTiles> all) {
  sort_by_cost(all);
  std::vector<DotTiles> out;
  for (const RankedTiles& r : all)
    if (out.size() < kMostRanked && std::find(out.begin(), out.end(), r.tiles) == out.end())
      out.push_back(r.tiles);
  return out;
}

std::vector<DotTiles> best_of_each(std::vector<RankedTiles> all) {
  constexpr auto kMostAlike = 2;
  sort_by_cost(all);
  std::vector<RankedTiles> kept;
  for (const RankedTiles& r : all)
    if (std::count_if(kept.begin(), kept.end(), [&](const RankedTiles& k) {
          return k.tiles.bm == r.tiles.bm && k.tiles.bn == r.tiles.bn;
        }) < kMostAlike)
      kept.push_back(r);
  return best_first(std::move(kept));
}

}  // namespace tilewright::passes
