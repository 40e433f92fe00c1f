// The target graphs are compiled for, with the machine's measured ceilings in place of rules of thumb.
#pragma once

#include <tilewright/perf/hardware.h>
#include <tilewright/tile/target.h>

namespace tilewright::runtime {

// Memory and last-level cache at the rate of a copy, f32 arithmetic outside matrix units, 16-bit products on
// them, and the time of a launch; what was not measured stays as it is.
tile::Target with_ceilings(tile::Target target, const perf::Hardware& ceilings);

// The other way round, where nothing was measured: the target's rules of thumb as ceilings.
perf::Hardware rules_of_thumb(const tile::Target& target);

}  // namespace tilewright::runtime
