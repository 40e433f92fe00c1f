// Where temporaries lie in memory.
#pragma once

#include <tilewright/tile/plan.h>

namespace tilewright::passes {

// Places temporaries in one arena by their lifetimes; sets arena_offset and arena_bytes.
void plan_memory(tile::Plan& plan);

}  // namespace tilewright::passes
