// The text form of tile IR: parse(print(k)) == k.
#pragma once

#include <tilewright/base/error.h>
#include <tilewright/tile/kernel.h>

#include <string>
#include <string_view>

#pragma GCC visibility push(default)
namespace tilewright::tile {

// One op a line, as docs/tour.md shows it.
std::string print(const Kernel& kernel);
// A malformed text gives a Failure with line and column; a well-formed one is verified too.
Result<Kernel> parse(std::string_view text);

}  // namespace tilewright::tile
#pragma GCC visibility pop
