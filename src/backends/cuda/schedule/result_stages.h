// How a product's blocks and the stages of its results share a multiprocessor's shared memory.
#pragma once

#include <tilewright/base/shape.h>

#include <vector>

namespace tilewright::cuda {

struct StageRoom {
  Index bytes = 0;        // of shared memory for both
  Index block_bytes = 0;  // of a block of each operand
  Index blocks = 0;       // that the pipeline has without stages
  Index groups = 1;       // warpgroups, each with stages of its own
  Index results = 1;
  Index tiles = 0;  // that the epilogue loads and the copy engine may bring
};

struct ResultStages {
  int blocks = 0;   // of the pipeline
  int stages = 0;   // of a warpgroup
  Index slots = 0;  // stages of a piece: of results, and of tiles beyond as many
};

// The pipeline that hides memory's latency, with stages for as many tiles as it leaves room for; then a
// shorter one, where that makes room for more. Nothing where the results have no room beside either.
std::vector<ResultStages> result_stages(const StageRoom& room);

}  // namespace tilewright::cuda
