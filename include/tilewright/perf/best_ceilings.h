// Ceilings of several probes of one device: the best seen of each figure, and the order of the memory levels.
//
// A probe errs in one direction. In a slower minute of a virtual machine, or beside other work, it finds less
// than the device can do; it never finds more, because only what a tenth of its samples reach counts. So of
// two probes the better figure holds, whichever came last.
//
// What lies in memory passes through every cache on its way to the arithmetic, so a level is never slower
// than one farther out: L1 ≥ L2 ≥ L3 ≥ memory, by kind of access. Where probes say otherwise, the nearer
// level met the slower minute. A probe tries it again (runtime/probe.cpp); what then is still below is raised
// to the farther level's figure, and says so.
#pragma once

#include <tilewright/base/list.h>
#include <tilewright/perf/ceiling_file.h>

#include <string>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::perf {

// The better of the two for each figure: the larger rate, the shorter launch. What is told and not measured
// (sizes, counts) is the latest's; so are name and title.
Ceilings best_of(const Ceilings& known, const Ceilings& latest);

// A nearer level that was found slower than a farther one.
struct OutOfOrder {
  std::string nearer, farther;  // keys: "level.L2.copy_bytes_per_s", "memory.copy_bytes_per_s"
  double nearer_rate = 0, farther_rate = 0;
  friend bool operator==(const OutOfOrder&, const OutOfOrder&) = default;
};
// Those slower by more than the factor `slack`. Shared memory of a GPU is no cache on the way and takes no
// part.
List<OutOfOrder> out_of_order(const Ceilings& ceilings, double slack = 1);
// The same ceilings with every nearer level at least as fast as those farther out.
Ceilings in_order(Ceilings ceilings);

}  // namespace tilewright::perf
#pragma GCC visibility pop
