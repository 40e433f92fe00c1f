// A device made ready for work: its primary context, its limits, streams and events. All move-only; the
// Driver and the Context must outlive what is made from them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "backends/cuda/host/driver.h"
#include "backends/cuda/machine/limits.h"

namespace tilewright::cuda {

struct MemoryInfo {
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
};

// The primary context of one device, shared with every other user of it in the process (PyTorch, NCCL).
class Context {
 public:
  // Opens a device's primary context, without making it current on the calling thread.
  static Result<Context> open(const Driver& driver, int ordinal = 0);
  Context(Context&& other) noexcept;
  Context& operator=(Context&& other) noexcept;
  ~Context();

  const Driver& driver() const { return *driver_; }
  int ordinal() const { return ordinal_; }
  const DeviceLimits& limits() const { return limits_; }
  api::CUcontext get() const { return context_; }

  // Makes the context current on the calling thread, which each thread that uses the device needs once.
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

// The context is current on this thread while the value lives. What was current before is so again
// afterwards: the thread may belong to a program that uses other devices. Where nothing was, the context
// stays.
class Entered {
 public:
  static Result<Entered> enter(const Context& context);
  Entered(Entered&& other) noexcept
      : set_current_(other.set_current_), before_(std::exchange(other.before_, nullptr)) {}
  Entered& operator=(Entered&&) = delete;
  ~Entered() {
    if (before_ != nullptr) (void)set_current_(before_);
  }

 private:
  Entered(decltype(Driver::ctx_set_current) set_current, api::CUcontext before)
      : set_current_(set_current), before_(before) {}
  decltype(Driver::ctx_set_current) set_current_;
  api::CUcontext before_;
};

class Event {
 public:
  enum class Timing { off, on };  // an event without timing is cheaper to record and to wait for
  static Result<Event> create(const Context& context, Timing timing = Timing::off);

  Status record(api::CUstream stream) const;
  Result<bool> done() const;  // without waiting
  Status synchronize() const;
  // The time from `start` to this event; both with timing, recorded and done. Resolution about 0.5 us.
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
  // A stream of another, who keeps it for as long; 0 and 1: the legacy default stream. A Failure for a stream
  // of another context, and for the calling thread's default stream (2), which is another one on each thread.
  static Result<Stream> borrow(const Context& context, api::CUstream stream);

  Status synchronize() const;
  api::CUstream get() const { return stream_; }
  const Driver& driver() const { return *driver_; }

 private:
  const Driver* driver_ = nullptr;
  api::CUstream stream_ = nullptr;
  Owned<api::CUstream, &Driver::stream_destroy> owned_;  // empty: another's
};

// What is launched on `after` from now on waits for what was launched on `before` so far. Any streams of the
// context, the default ones too; the host does not wait.
Status order(const Context& context, api::CUstream before, api::CUstream after);
// A Failure where the address is not memory of the context's device.
Status check_on_device(const Context& context, api::CUdeviceptr address);

}  // namespace tilewright::cuda
