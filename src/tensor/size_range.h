// SizeRange: the sizes that one specialisation serves, and what its program's numbers are at each of them.
//
// A range is opened from samples: the function is recorded and lowered at several sizes, and those whose
// kernels are the program's but for numbers give formulas for these (passes/plan/size_formulas.h). Sizes
// between them take the formulas, and nothing is lowered. What a kernel relies on is that sizes are not less
// or more than something, or are multiples of something:
//
// - bounds that are linear in the sizes, or grow with each, hold between the corners of a box where they hold
//   at the corners: every corner is a sample, and the range ends there;
// - remainders: no multiple of anything but 1 holds at several sizes in a row. Where a multiple of a large
//   power of two and its neighbours are samples, sizes of every remainder are served. Otherwise 32 sizes in a
//   row are tried: those whose own kernels are others' lie outside of the range, with all sizes of the same
//   remainder by 32, and what the rest have in common (even sizes alone) is asked of every size. Several
//   sizes are samples together, too, each with other remainders than the call's: their product or sum may be
//   a multiple of something as long as one of them is.
//
// A function that reads shapes may do anything with them, and is not asked what it does at sizes that nobody
// called it with: it has no range. One that does not may still know sizes from elsewhere (a length that the
// host counts), so it is recorded once at every size that it is called with, and takes the program only where
// the graph is the one that the formulas give.
#pragma once

#include "ir/graph_key.h"
#include "passes/plan/size_formulas.h"
#include "tensor/dynamic.h"
#include "tensor/trace.h"

#include <bitset>
#include <string>
#include <vector>

namespace tilewright::detail {

class SizeRange {
 public:
  // What a range is opened for.
  struct Of {
    const CompiledGraph& graph;  // with kernels of its family that were used last
    TracedAt traced;             // its function's, at the newest types
    // Types of arguments that were called, all alike but for dynamic dimensions, the newest first.
    const std::vector<std::vector<ir::Type>>& seen;
    const std::vector<DynamicDim>& dynamic;
  };
  // A Failure says why these sizes are lowered one by one.
  static Result<SizeRange> open(DeviceState& device, const Of& of, const TraceAt& trace_at,
                                const GraphOptions& options);

  // The sizes of arguments of these types, one for each that may differ; nothing where they lie outside.
  std::optional<std::vector<Index>> sizes_of(const std::vector<const ir::Type*>& args) const;
  // All numbers of the program at these sizes.
  std::vector<std::int64_t> numbers_at(const std::vector<Index>& sizes) const { return formulas_.at(sizes); }
  // Gives the program and its checks their numbers.
  void set(CompiledGraph& graph, std::vector<PendingCheck>& checks,
           const std::vector<std::int64_t>& numbers) const;
  // Whether the function recorded at these numbers what the program was made of.
  bool is_of(const TracedAt& traced, const std::vector<std::int64_t>& numbers) const;

  std::string guard() const;  // "f32[n0,64], f32[n1 + 1]; n0 from 100 to 2400"

 private:
  // An extent of an argument: a number, or a size, how many times it, and what it is more.
  struct Extent {
    int size = -1;
    Index value = 0;
    Index times = 1;
  };
  struct Size {
    Index least = 0, most = 0, step = 1, first = 0;  // first: one of those that are `step` apart
    std::bitset<32> remainders;
    bool holds(Index n) const {
      return n >= least && n <= most && (n - first) % step == 0 &&
             remainders[static_cast<std::size_t>(n) % remainders.size()];
    }
  };
  class Opening;

  std::vector<DType> dtypes_;                 // of arguments
  std::vector<std::vector<Extent>> extents_;  // of each argument
  std::vector<Size> sizes_;
  passes::SizeFormulas formulas_;
  std::optional<TracedAt> traced_;  // at the size it was opened for
  Hash128 form_;                    // of its graph
  std::size_t before_graph_ = 0;    // numbers that are not the graph's
};

}  // namespace tilewright::detail
