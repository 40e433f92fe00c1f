// Making the call.
#include "backends/cuda/library_program.h"

#include "backends/cuda/cuda_backend.h"

namespace tilewright::cuda {

Status LibraryProgram::launch(const backends::LaunchArgs& args) {
  if (Status s = backend_.enter(); !s) return s;
  return call_->enqueue(args.views, backend_.stream());
}

Result<RecordedWork> LibraryProgram::record(const backends::RecordedLaunch& recorded) {
  return RecordedWork(
      [this, views = recorded.views](api::CUstream stream) { return call_->enqueue(views.data(), stream); });
}

}  // namespace tilewright::cuda
