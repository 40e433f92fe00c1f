// What fit_memory() found.
#pragma once

#include <tilewright/base/shape.h>

#include <string>

namespace tilewright::passes {

struct MemoryFit {
  Index bytes_before = 0;  // of the arena, without repeated launches
  Index bytes = 0;         // with them
  Index asked = 0;
  bool fits = false;               // else `bytes` is the least that was found
  int repeated = 0;                // launches
  double more_us = 0, all_us = 0;  // predicted: of those, and of all other launches
  friend bool operator==(const MemoryFit&, const MemoryFit&) = default;
};

// For explain(): "temporaries take 4.7 MB, not 12.5, as 214 launches are repeated: …".
std::string to_string(const MemoryFit& fit);

}  // namespace tilewright::passes
