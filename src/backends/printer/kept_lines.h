// Which values of a row or column, one number each, have a loop of their own instead of being computed in
// those of the tiles that read them.
#pragma once

#include "backends/printer/loop_emit.h"

#include <map>
#include <set>
#include <vector>

namespace tilewright::printer {

// What stands between two control ops: its ops and what must be written, the levels of both, and what is read
// behind it.
struct StraightLine {
  const std::vector<const tile::Op*>& ops;
  const std::vector<Root>& roots;
  const std::map<tile::ValueId, int>& levels;  // of the ops' results
  const std::set<tile::ValueId>& used_later;
};

// Roots that keep these values.
std::vector<Root> kept_lines(const LoopFacts& facts, const LinePolicy& policy, const StraightLine& line);

}  // namespace tilewright::printer
