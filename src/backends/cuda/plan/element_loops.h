// Element loops under a schedule: how each is walked, what its threads exchange, and why that cannot be.
#pragma once

#include "backends/cuda/analysis/dot_use.h"
#include "backends/cuda/layout/layout.h"

#include <algorithm>
#include <map>
#include <vector>

namespace tilewright::cuda {

// A loop over an accumulator of tensor cores that is walked piece by piece instead of row by row: 64 rows of
// a few columns at a time.
struct Pieces {
  Index vectors = 0;   // of a piece; 0: row by row
  bool loads = false;  // a piece loads what stands along its columns
  Index rows = 0;  // whose elements it loads at once; 0: all of the tile's are loaded before the first piece
  std::vector<int> staged_stores = {};  // instructions whose stores leave by TMA store stages
  // Loads that the copy engine brings: the i-th to where the i-th of them leaves from, or behind them.
  std::vector<int> fetched = {};
  bool fetches(std::size_t instr) const {
    return std::find(fetched.begin(), fetched.end(), static_cast<int>(instr)) != fetched.end();
  }
  // The place of an instruction among the staged stores, or -1.
  int store_stage_of(std::size_t instr) const {
    const auto at = std::find(staged_stores.begin(), staged_stores.end(), static_cast<int>(instr));
    return at == staged_stores.end() ? -1 : static_cast<int>(at - staged_stores.begin());
  }
};

inline constexpr Index kHalvesOfPiece = 2;  // rows of a thread in a piece
inline constexpr Index kFetchedPieces = 2;  // pieces of a tile that come while one is computed

struct ElementLoops {
  std::map<const printer::ElementLoop*, Pieces> pieces;  // of loops that have such
  // Sums of powers below a maximum, whose exchanges between warps are one.
  std::map<tile::ValueId, tile::ValueId> max_of_sum;
  Index exchanged_bytes = 0;       // where values meet in shared memory, one exchange after another
  bool warps_meet = false;         // warps exchange parts of a row in arrays of their own
  std::size_t staged_results = 0;  // results that leave by stages
  std::vector<int>
      fetched;  // of DotUse::loads, that the copy engine brings to the stages of the results' pieces
  Pieces pieces_of(const printer::ElementLoop& loop) const {
    const auto found = pieces.find(&loop);
    return found == pieces.end() ? Pieces{} : found->second;
  }
};

// Puts the reduction of a sum of powers behind that of its maximum; gives ElementLoops::max_of_sum.
std::map<tile::ValueId, tile::ValueId> join_exchanges(const tile::Kernel& kernel, printer::LoopPlan& plan);

struct ElementsInput {
  const tile::Kernel& kernel;
  const tile::Schedule& schedule;
  const printer::LoopPlan& plan;
  const Layouts& layouts;
  const DotUse& dots;
};
// Goes through all steps, relayouts and dots that the threads carry out themselves among them.
Status plan_elements(const ElementsInput& input, ElementLoops& loops);

}  // namespace tilewright::cuda
