// KernelStore: kernels of one device, each printed, compiled and loaded once.
#pragma once

#include "runtime/binary_cache.h"
#include "runtime/device.h"
#include "runtime/recent.h"

#include <atomic>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace tilewright::runtime {

// One compiled kernel and what was done to get it.
struct LoadedKernel {
  backends::Source source;
  Hash128 key;  // of source, launch, compiler and device: what it is stored under
  std::string compiler_log;
  std::unique_ptr<backends::Program> program;
  enum class Origin : std::uint8_t { compiled, disk } origin = Origin::compiled;
  double build_ms = 0;  // print, compile or read, and load
  double predicted_us = 0;
  std::vector<backends::Candidate> candidates;  // all that were considered
};
using KernelResult = Result<std::shared_ptr<LoadedKernel>>;

// Times of getting several kernels, in ms of the wall clock.
struct BuildTimes {
  double print_ms = 0;     // schedules considered, texts written
  double compiler_ms = 0;  // compilers side by side; of kernels on disk: reading them
  double load_ms = 0;      // handed to the device
};

// The kernels of a plan, in its order.
struct BuiltKernels {
  std::vector<std::shared_ptr<LoadedKernel>> kernels;
  BuildTimes times = {};  // of what was not there
};

struct ScheduledKernel {
  const tile::Kernel* kernel = nullptr;
  const tile::Schedule* schedule = nullptr;
};

// Equal sources share a program in memory and, through BinaryCache, on disk. Kernels that no program uses any
// more stay while they are among the last kMostUnused asked for.
class KernelStore {
 public:
  KernelStore(std::shared_ptr<Device> device, BinaryCache* cache)
      : device_(std::move(device)), cache_(cache) {}
  KernelResult get(const tile::Kernel& kernel);  // the best predicted schedule
  KernelResult get(const tile::Kernel& kernel, const tile::Schedule& schedule);
  // Several, whose compilers run side by side on the cores that this process may use.
  // As get() of each; adds to `times`, if given.
  std::vector<KernelResult> get_all(const std::vector<tile::Kernel>& kernels, BuildTimes* times = nullptr);
  std::vector<KernelResult> get_all(const std::vector<ScheduledKernel>& kernels);
  // All of them, or why one is not to be had. Several threads may do so at once.
  Result<BuiltKernels> build(const std::vector<tile::Kernel>& kernels);
  // A source someone edited, for the same kernel.
  KernelResult get_edited(const tile::Kernel& kernel, const backends::Source& source);
  const std::shared_ptr<Device>& device() const { return device_; }
  // Kernels that were compiled, or read from the disk, because no equal one was in memory.
  std::size_t builds() const { return builds_; }
  static constexpr std::size_t kMostUnused = 256;

 private:
  // A kernel on its way: what is not there yet of key, source and binary is made step by step.
  struct Build;
  Build printed(const tile::Kernel& kernel) const;
  Build printed(const tile::Kernel& kernel, const tile::Schedule& schedule) const;
  std::vector<KernelResult> finish(std::vector<Build> builds, BuildTimes* times = nullptr);
  void compile(Build& build) const;
  static void add_candidates(LoadedKernel& kernel, Build& build);
  KernelResult load(Build& build);
  std::shared_ptr<LoadedKernel> known(const Hash128& key);
  std::shared_ptr<LoadedKernel> find(const Hash128& key);  // with the lock held

  std::shared_ptr<Device> device_;
  BinaryCache* cache_;
  std::atomic<std::size_t> builds_ = 0;
  std::mutex mutex_;  // of what follows, of its kernels' candidates, and of cache_'s writes
  std::map<Hash128, std::weak_ptr<LoadedKernel>> loaded_;  // what any program uses, and what is recent
  Recent<Hash128, std::shared_ptr<LoadedKernel>> recent_{kMostUnused};
};

}  // namespace tilewright::runtime
