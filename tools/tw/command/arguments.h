// What several subcommands read from the command line: element types, hardware, sweeps.
#pragma once

#include <tilewright/base/dtype.h>
#include <tilewright/base/error.h>
#include <tilewright/base/shape.h>
#include <tilewright/passes/graph/precision.h>
#include <tilewright/perf/hardware.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright::tw {

// "bf16", and the names people write elsewhere: int8, float16, fp32, bfloat16, fp8, e4m3. Throws Error with
// the list.
DType dtype_argument(std::string_view text);
// The value of --precision. Throws Error with the list.
Precision precision_argument(std::string_view text);

// A known name, `here` (the CPU) or `here:cuda:0` for what `tw devices --probe` measured on this machine, or
// the path of a ceiling file. Throws Error, or Unavailable where nothing was measured.
perf::Hardware hardware_argument(const std::string& text);
// The value of --cache: a folder, "auto" for the user's, "" for none.
std::string cache_argument(const std::string& text);

// Throws `text`, which says why something failed: as Error where it was asked for wrongly
// (Failure::Kind::invalid), else as Unavailable.
[[noreturn]] void give_up(const Failure& why, const std::string& text);

// "b=1:512", "b=1:512:8" (steps of 8) or "b=1:65536:x2" (doubling); both ends included.
struct Sweep {
  std::string name;
  std::vector<Index> values;
  bool geometric = false;
};
Sweep sweep_argument(const std::string& text);

// "d=1024,f=1024"
std::vector<std::pair<std::string, Index>> extents_argument(const std::string& text);

}  // namespace tilewright::tw
