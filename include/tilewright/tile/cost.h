// What a kernel costs, from its IR: the floor that every report prints beside the measured time.
#pragma once

#include <tilewright/perf/cost.h>
#include <tilewright/tile/kernel.h>

#include <map>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::tile {

struct KernelCost {
  // Operations: every element of every tile op of every program, padding included, index arithmetic on
  // scalars left out. Bytes: what must move between memory and chip at least once; an element read by many
  // programs counts once, as far as affine starts show it.
  perf::Cost work;
  double bytes_loaded = 0;  // by all programs, whole blocks, as if nothing were reused
  double bytes_stored = 0;
  bool exact = true;  // false: a trip count, a condition or a footprint depends on data, or was sampled
  // What all programs load and store, as if nothing were reused.
  double bytes_accessed() const { return bytes_loaded + bytes_stored; }
};

// `scalars` as scalar_bits gives them. A loop whose length data decides counts the iterations that `by_data`
// names (as loop_rounds() does), or one; a branch that data decides its dearer side. Loops whose length
// depends on the program (causal attention) are summed over the programs; above `most_sampled` programs over
// an even sample.
KernelCost kernel_cost(const Kernel& kernel, const std::vector<std::int64_t>& scalars,
                       Index most_sampled = 1024, const std::map<const Op*, double>& by_data = {});

// kernel_cost().work: operations, and bytes that must move.
inline perf::Cost cost(const Kernel& kernel, const std::vector<std::int64_t>& scalars) {
  return kernel_cost(kernel, scalars).work;
}

}  // namespace tilewright::tile
#pragma GCC visibility pop
