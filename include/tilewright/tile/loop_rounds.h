// How often a kernel's loops run: what time models multiply by.
#pragma once

#include <tilewright/tile/kernel.h>

#include <map>

#pragma GCC visibility push(default)
namespace tilewright::tile {

// Rounds of each loop in the mean over the times it is entered, by its address. Loops whose length the
// program decides, as of causal attention, are walked in an even sample of the programs. One that data
// decides runs along half of the axis that it walks, together with the loops that carry on what it has: the
// first of them has these rounds, the others none. Missing: loops whose length arguments decide.
std::map<const Op*, double> loop_rounds(const Kernel& kernel);

}  // namespace tilewright::tile
#pragma GCC visibility pop
