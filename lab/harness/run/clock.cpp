// The host's steady clock.
#include "harness/run/clock.h"

#include <chrono>

namespace tilewright::lab {

double steady_now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Status HostTimer::start() {
  start_us_ = steady_now_us();
  return Unit{};
}

Result<double> HostTimer::stop_us() { return steady_now_us() - start_us_; }

}  // namespace tilewright::lab
