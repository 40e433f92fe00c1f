// Executable: a Plan whose kernels are compiled and loaded on a device, ready to run.
#pragma once

#include "runtime/device.h"
#include "runtime/kernel_store.h"

#include <tilewright/tile/plan.h>

#include <span>
#include <utility>

namespace tilewright::runtime {

class Executable {
 public:
  static Result<std::unique_ptr<Executable>> create(const tile::Plan& plan, KernelStore& store);
  // The same of kernels that were built for an equal plan.kernels.
  static Result<std::unique_ptr<Executable>> create(const tile::Plan& plan, KernelStore& store,
                                                    BuiltKernels built);

  // Buffers in the order of the plan's inputs and outputs; returns when the work is launched (host devices:
  // done).
  Status run(std::span<const std::shared_ptr<Buffer>> inputs,
             std::span<const std::shared_ptr<Buffer>> outputs);
  // The same through a recorded replay (CUDA graph); recorded when these buffers are new to it.
  Status replay(std::span<const std::shared_ptr<Buffer>> inputs,
                std::span<const std::shared_ptr<Buffer>> outputs);
  // Whether replay() could gain anything: more than one launch, nothing else, on a device that records.
  bool can_replay() const;
  // µs per launch of a program in place of kernel `kernel`, on the buffers of the last run; `of` is what it
  // was made from: the plan's kernel, or the same with other tiles.
  Result<double> time_kernel(std::size_t kernel, const tile::Kernel& of, backends::Program& program,
                             int launches);

  const tile::Plan& plan() const { return plan_; }
  Device& device() const { return *device_; }
  const std::vector<std::shared_ptr<LoadedKernel>>& kernels() const { return kernels_; }
  // The parts of create()'s time, told once: to later callers the program was there already.
  BuildTimes take_build_times() { return std::exchange(build_times_, {}); }
  // One step at a time, for tools that measure or check single kernels: bind once, then run steps of plan().
  Status bind(std::span<const std::shared_ptr<Buffer>> inputs,
              std::span<const std::shared_ptr<Buffer>> outputs);
  Status run_step(std::size_t step);
  // What a launch step hands to its program, as bound last; no views for another step, or an empty launch.
  struct StepLaunch {
    std::size_t kernel = 0;
    std::vector<void*> views;
    std::vector<std::int64_t> scalars;
    Index grid[tile::kMaxGridAxes] = {1, 1, 1};
  };
  StepLaunch launch_of(std::size_t step) const;

  // What lies between kernels; none where a plan has no temporaries. Tests fill it before a run.
  const std::shared_ptr<Buffer>& temporaries() const { return arena_; }

  // The same kernels for other numbers of buffers and launches, which are all in which `plan` differs.
  Status resize(const tile::Plan& plan);

  // Puts another program (another schedule, an edited source) in a kernel's place.
  void replace(std::size_t kernel, std::shared_ptr<LoadedKernel> with);
  // The same for a kernel with other tiles: it takes its place in plan(), too.
  void replace(std::size_t kernel, const tile::Kernel& of, std::shared_ptr<LoadedKernel> with);

 private:
  struct Patch {  // views[view] of launch ← address of buffer + offset
    std::size_t view;
    std::size_t buffer;
    std::ptrdiff_t offset_bytes;
  };
  struct Launch {
    backends::Program* program = nullptr;
    std::size_t kernel = 0;
    std::vector<void*> views;
    std::vector<std::int64_t> scalars;
    Index grid[tile::kMaxGridAxes] = {1, 1, 1};
    bool empty = false;
    std::vector<Patch> patches;
  };

  explicit Executable(const tile::Plan& plan) : plan_(plan) {}
  void prepare();
  Status make_arena(std::size_t bytes);
  static void set_grid(Launch& launch, const tile::Kernel& kernel);
  // Launches that run as one (PlanStep::beside_previous, Program::most_together), with their arguments one
  // behind another. A step by itself is a bundle of one.
  struct Bundle {
    std::size_t first = 0, end = 0;  // steps
    std::vector<void*> views;        // of more than one step, as they were bound last
    std::vector<std::int64_t> scalars;
  };
  void bundle();
  bool runs_beside(std::size_t step) const;
  const std::vector<void*>& views_of(Bundle& b) const;
  Status run_bundle(Bundle& b);

  tile::Plan plan_;
  std::shared_ptr<Device> device_;
  std::vector<std::shared_ptr<LoadedKernel>> kernels_;
  std::vector<Launch> launches_;  // one per step; unused for zero and copy
  std::vector<Bundle> bundles_;   // of all steps
  std::vector<void*> addresses_;  // per buffer
  std::shared_ptr<Buffer> arena_;
  BuildTimes build_times_;
  struct Recording {
    std::vector<void*> addresses;
    std::unique_ptr<backends::Replay> replay;  // null: the device gains nothing from it
  };
  std::vector<Recording> recordings_;  // most recently used first
};

}  // namespace tilewright::runtime
