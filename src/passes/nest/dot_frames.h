// Which tile each value of a program with dots stands in, and which way round its inner dots multiply there.
#pragma once

#include "passes/nest/loop_nest.h"

namespace tilewright::passes {

// Whether the program's values can be tiles of the frames that its dots give them: a frame walks two
// variables, rows and columns, and what stands in it varies along no other variable that tiles walk in
// blocks. An inner dot whose result stands in its frame with its axes exchanged has its operands exchanged
// instead.
bool fits_frames(LoopNest& nest);

// Exchanges rows and columns of everything that is added up.
void exchange_added_dots(LoopNest& nest);

}  // namespace tilewright::passes
