// The CUDA backend: a device (or, for machines without one, an architecture to compile for), its stream, pool
// and compiler behind backends::Backend.
#pragma once

#include "backends/backend.h"

#include "backends/cuda/host/context.h"
#include "backends/cuda/host/copy.h"
#include "backends/cuda/host/leaving.h"
#include "backends/cuda/host/memory_pool.h"
#include "backends/cuda/library/library.h"
#include "backends/cuda/nvrtc/nvrtc.h"

#include <map>
#include <mutex>
#include <optional>

namespace tilewright::cuda {

class CudaBackend final : public backends::Backend {
 public:
  static Result<std::unique_ptr<backends::Backend>> open(const backends::BackendOptions& options);
  ~CudaBackend() override;

  const tile::Target& target() const override { return target_; }
  std::string binary_key() const override;
  std::vector<backends::DeviceFact> facts() const override;

  std::vector<backends::Candidate> candidates(const tile::Kernel& kernel) const override;
  std::vector<backends::Candidate> library_candidates(const tile::Kernel& kernel) override;
  Result<backends::Source> print(const tile::Kernel& kernel, const tile::Schedule& schedule) const override;
  Result<backends::Binary> compile(const tile::Kernel& kernel, const backends::Source& source) const override;
  Result<std::unique_ptr<backends::Program>> load(const tile::Kernel& kernel, const backends::Source& source,
                                                  const backends::Binary& binary) override;

  Result<void*> allocate(std::size_t bytes) override;
  void release(void* address, std::size_t bytes) override;
  Status copy(void* to, const void* from, std::size_t bytes, backends::CopyKind kind) override;
  Status fill(void* to, backends::FillPattern pattern, std::size_t bytes) override;
  Status synchronize() override;
  Status check_foreign(const void* address, std::size_t bytes) override;
  void let_go(std::shared_ptr<void> owner) override;
  Status wait_for(backends::StreamHandle stream) override;
  Status make_wait(backends::StreamHandle stream) override;
  backends::StreamHandle stream_handle() const override {
    return device_ ? reinterpret_cast<backends::StreamHandle>(stream()) : 0;
  }
  Status timer_start() override;
  Result<double> timer_stop_us() override;
  Result<std::unique_ptr<backends::Replay>> record(
      const std::vector<backends::RecordedLaunch>& launches) override;

  // Makes the device's context current on the calling thread, for programs, while the result lives.
  Result<Entered> enter();
  const Context& context() const { return device_->context; }
  api::CUstream stream() const { return device_->stream.get(); }

 private:
  // Everything that needs a GPU, destroyed in the reverse order.
  struct Device {
    Device(std::unique_ptr<Driver> d, Context c)
        : owned_driver(std::move(d)), context(std::move(c)), pool(context) {}
    const Driver& driver() const { return *owned_driver; }
    std::unique_ptr<Driver> owned_driver;  // at one address: everything below points to it
    Context context;
    MemoryPool pool;
    Stream stream;
    Staging staging;
    Event timer_begin, timer_end;
    std::map<void*, Buffer> buffers;
    Leaving leaving;
  };
  explicit CudaBackend(std::vector<std::string> library_paths);
  static Result<std::unique_ptr<Device>> open_device(const backends::BackendOptions& options);
  Failure no_device() const;
  void drop_leaving();
  const Result<Nvrtc>& nvrtc() const;
  const LibrarySet& libraries() const;

  Arch arch_;
  tile::Target target_;
  Index shared_bytes_ = 0;  // of a block
  std::vector<std::string> library_paths_;
  mutable std::mutex nvrtc_mutex_;
  mutable std::optional<Result<Nvrtc>> nvrtc_;  // opened when first needed: cached binaries need none
  std::mutex mutex_;                            // of buffers, staging and leaving
  std::unique_ptr<Device> device_;
  LibraryHost library_host_;
  mutable std::mutex libraries_mutex_;
  mutable std::optional<LibrarySet>
      libraries_;  // opened when a kernel is first tuned; gone before the device
};

}  // namespace tilewright::cuda
