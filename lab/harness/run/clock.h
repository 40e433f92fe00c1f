// What measures a batch: the host's steady clock, or a device's events or trace behind the same interface.
#pragma once

#include <tilewright/base/error.h>

#include <string_view>

namespace tilewright::lab {

// Measures what happens on a device between start() and stop_us().
class Timer {
 public:
  virtual ~Timer() = default;
  virtual std::string_view name() const = 0;
  virtual Status start() = 0;
  // Microseconds since start(), after everything enqueued in between is done.
  virtual Result<double> stop_us() = 0;
  // Whether stop_us() waits for the device by itself, as an event timer does. If not, the harness calls
  // Contender::finish before it reads the clock, so that work still under way is never left out of the time.
  virtual bool waits() const = 0;
  // Whether gaps between two pieces of work count, as they do between two events. A trace of kernels knows
  // each piece.
  virtual bool counts_gaps() const { return true; }
};

// The clock of the device's own work: a trace of its kernels; events around a queue of calls, between which
// gaps count; none. A trace is CUPTI's, which stays in the process and may cost each launch something.
enum class DeviceTime { trace, events, off };

// The clocks by which contenders are timed.
struct Clocks {
  Clocks(Timer& of_calls, Timer* of_device = nullptr) : calls(of_calls), device(of_device) {}
  Timer& calls;
  Timer* device;  // null: the calls are the work
};

double steady_now_us();

// The host's steady clock; right for the CPU and for contenders that end synchronised.
class HostTimer final : public Timer {
 public:
  std::string_view name() const override { return "steady clock"; }
  Status start() override;
  Result<double> stop_us() override;
  bool waits() const override { return false; }

 private:
  double start_us_ = 0;
};

}  // namespace tilewright::lab
