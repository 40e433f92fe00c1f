// What CudaBackend loads: programs that are launched, and that a graph records.
#pragma once

#include "backends/backend.h"

#include "backends/cuda/host/driver_api.h"

#include <functional>

namespace tilewright::cuda {

// Queues a launch with the arguments it was made for.
using RecordedWork = std::function<Status(api::CUstream)>;

class RecordableProgram : public backends::Program {
 public:
  // The same launch as a value; fails like launch. Null where there is nothing to do. The program must
  // outlive what is made.
  virtual Result<RecordedWork> record(const backends::RecordedLaunch& recorded) = 0;
  // Whether a graph can certainly record this; if it turns out that it cannot, there is no replay.
  virtual bool records_always() const { return true; }
};

}  // namespace tilewright::cuda
