// A device made ready for work: its primary context, its limits, streams and events. All move-only; the
// Driver and the Context must outlive what is made from them.
#pragma once

#include <cstdint>
#include <string>

#include "backends/cuda/host/driver.h"

namespace tilewright::cuda {

// What the device can hold and how fast its clocks are, as the driver reports it.
struct DeviceLimits {
  std::string name;
  std::string pci_bus_id;  // "0000:0f:00.0", as in /sys/bus/pci/devices
  int compute_major = 0;
  int compute_minor = 0;
  int multiprocessors = 0;
  int max_threads_per_block = 0;
  int max_threads_per_multiprocessor = 0;
  int max_blocks_per_multiprocessor = 0;
  int registers_per_block = 0;
  int registers_per_multiprocessor = 0;
  int shared_bytes_per_block = 0;           // the most that a kernel may opt in to
  int shared_bytes_per_multiprocessor = 0;  // shared by its resident blocks
  int shared_bytes_reserved_per_block = 0;  // taken by the system from each block's share
  int l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  int clock_khz = 0;         // highest SM clock; 0 where the driver no longer tells
  int memory_clock_khz = 0;  // 0 where the driver no longer tells
  int memory_bus_bits = 0;
  bool clusters = false;

  // "sm_90a": with the suffix from Hopper on, where wgmma and setmaxnreg exist only for the exact
  // architecture.
  std::string architecture() const;
  // Double data rate on the whole bus, bytes per second; 0 where the clock is not known.
  double peak_memory_bytes_per_second() const;
  friend bool operator==(const DeviceLimits&, const DeviceLimits&) = default;
};
std::string to_string(const DeviceLimits& limits);

struct MemoryInfo {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

// The primary context of one device, shared with every other user of it in the process (PyTorch, NCCL).
class Context {
 public:
  // Leaves the context current on the calling thread.
  static Result<Context> open(const Driver& driver, int ordinal = 0);
  Context(Context&& other) noexcept;
  Context& operator=(Context&& other) noexcept;
  ~Context();

  const Driver& driver() const { return *driver_; }
  int ordinal() const { return ordinal_; }
  const DeviceLimits& limits() const { return limits_; }
  api::CUcontext get() const { return context_; }

  // Each thread that uses the device calls this once; the driver keeps the choice per thread.
  Status make_current() const;
  // Waits for all work of all streams.
  Status synchronize() const;
  Result<MemoryInfo> memory_info() const;

 private:
  Context(const Driver& driver, api::CUdevice device, int ordinal)
      : driver_(&driver), device_(device), ordinal_(ordinal) {}
  void release();

  const Driver* driver_;
  api::CUdevice device_;
  int ordinal_;
  api::CUcontext context_ = nullptr;
  DeviceLimits limits_;
};

class Event {
 public:
  enum class Timing { off, on };  // an event without timing is cheaper to record and to wait for
  static Result<Event> create(const Context& context, Timing timing = Timing::off);

  Status record(api::CUstream stream) const;
  Result<bool> done() const;  // without waiting
  Status synchronize() const;
  // From `start` to this event; both with timing, recorded and done. Resolution about 0.5 us.
  Result<float> elapsed_ms_since(const Event& start) const;
  api::CUevent get() const { return event_.get(); }

 private:
  Owned<api::CUevent, &Driver::event_destroy> event_;
};

class Stream {
 public:
  struct Options {
    int priority = 0;  // lower runs first; H200 knows 0 … -5
  };
  // Does not synchronise with the legacy default stream.
  static Result<Stream> create(const Context& context) { return create(context, Options{}); }
  static Result<Stream> create(const Context& context, const Options& options);

  Status synchronize() const;
  Result<bool> idle() const;
  Status wait(const Event& event) const;  // work queued here from now on runs after the event
  api::CUstream get() const { return stream_.get(); }
  const Driver& driver() const { return stream_.driver(); }

 private:
  Owned<api::CUstream, &Driver::stream_destroy> stream_;
};

}  // namespace tilewright::cuda
