// A tile kernel as readable C++ text, in clang's vector extensions, with the tw_cpu headers.
//
// The text defines `extern "C" void NAME_kernel(void* const* views, const i64* scalars, i64 begin, i64 end,
// char* scratch)`: it runs the programs [begin, end) of the grid, counted with axis 0 fastest. `scratch` is
// private to the thread; its size is LaunchShape::shared_bytes.
#pragma once

#include "backends/backend.h"

#include <tilewright/base/error.h>

namespace tilewright::cpu {

Result<backends::Source> print_kernel(const tile::Kernel& kernel, const tile::Schedule& schedule, int lanes);

}  // namespace tilewright::cpu
