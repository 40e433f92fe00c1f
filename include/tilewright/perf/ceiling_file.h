// The ceiling file: what probes measured on one device, as JSON, so that reports can name the machine at
// hand.
//   {"name": "here", "title": "AMD EPYC 9B45", "measurements": [{"what": "vector.f32", "value": 5.3e11,
//   "how": "…"}]}
#pragma once

#include <tilewright/base/error.h>
#include <tilewright/perf/hardware.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::perf {

struct Ceilings {
  std::string name;
  std::string title;
  std::vector<Measurement> measurements;  // keys as from_measured() takes them
  friend bool operator==(const Ceilings&, const Ceilings&) = default;
};

// The machine that these measurements describe; throws Error on a measurement of no known name, and where
// none is of its memory's rate.
Hardware to_hardware(const Ceilings& ceilings);

// The text that parse_ceilings() reads back.
std::string to_json(const Ceilings& ceilings);
// A failure names the origin and what is wrong at which entry.
Result<Ceilings> parse_ceilings(std::string_view json, std::string_view origin);

// The ceilings in a file; a Failure where it cannot be read, or is no such JSON.
Result<Ceilings> read_ceilings(const std::string& path);
// Written beside and renamed, so that a reader never sees half a file; missing folders are made.
Status write_ceilings(const Ceilings& ceilings, const std::string& path);

}  // namespace tilewright::perf
#pragma GCC visibility pop
