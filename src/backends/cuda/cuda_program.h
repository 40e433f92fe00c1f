// A loaded kernel: one driver call a launch, nothing allocated.
#pragma once

#include "backends/cuda/host/launch.h"
#include "backends/cuda/host/launch_table.h"
#include "backends/cuda/host/module.h"
#include "backends/cuda/recordable.h"
#include "backends/cuda/tensor_map.h"

#include <vector>

namespace tilewright::cuda {

class CudaBackend;

class CudaProgram final : public RecordableProgram {
 public:
  static Result<std::unique_ptr<backends::Program>> load(CudaBackend& backend, const tile::Kernel& kernel,
                                                         const backends::Source& source,
                                                         const backends::Binary& binary);
  Status launch(const backends::LaunchArgs& args) override;
  int most_together() const override { return shape_.together; }
  std::string describe() const override;
  Result<RecordedWork> record(const backends::RecordedLaunch& recorded) override;

 private:
  CudaProgram(CudaBackend& backend, Module module, Function function)
      : backend_(backend), module_(std::move(module)), function_(function) {}
  Result<unsigned> blocks_for(const Index* grid) const;
  Status count_clusters(const Driver& driver);
  Status set_parameters(const backends::LaunchArgs& args);

  CudaBackend& backend_;
  Module module_;
  Function function_;
  FunctionAttributes attributes_;
  backends::LaunchShape shape_;
  std::size_t views_ = 0;
  std::vector<std::size_t> scalar_bytes_;
  std::vector<int> grid_axes_;
  TensorMaps maps_;
  Index resident_blocks_ = 0;  // of the whole device; a persistent kernel launches no more
  bool persistent_ = false;
  bool overlaps_ = false;  // may be launched before the kernel before has ended: its text waits for that
  LaunchTable table_;      // of a kernel that takes several launches' arguments at once
  std::vector<void*> parameters_;  // addresses of the arguments; views and scalars are set at each launch
  std::int32_t grid_values_[tile::kMaxGridAxes] = {};
  std::vector<api::LaunchAttribute> attributes_of_launch_;
  api::LaunchConfig config_{};
};

}  // namespace tilewright::cuda
