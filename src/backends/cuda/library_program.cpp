// Making the call.
#include "backends/cuda/library_program.h"

#include "backends/cuda/cuda_backend.h"

namespace tilewright::cuda {

Status LibraryProgram::launch(const backends::LaunchArgs& args) {
  const auto entered = backend_.enter();
  if (!entered) return entered.error();
  return call_->enqueue(args.views, backend_.stream());
}

Result<RecordedWork> LibraryProgram::record(const backends::RecordedLaunch& recorded) {
  return RecordedWork(
      [this, views = recorded.views](api::CUstream stream) { return call_->enqueue(views.data(), stream); });
}

}  // namespace tilewright::cuda
