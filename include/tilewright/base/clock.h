// Time that has passed on this machine, in the units that are printed.
#pragma once

#include <chrono>

#pragma GCC visibility push(default)
namespace tilewright {

// Milliseconds from `start` to `end`; negative where `end` comes first.
inline double ms_between(std::chrono::steady_clock::time_point start,
                         std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double, std::milli>(end - start).count();
}

// Milliseconds from `start` until now.
inline double ms_since(std::chrono::steady_clock::time_point start) {
  return ms_between(start, std::chrono::steady_clock::now());
}

// Since a moment that stays the same while the program runs.
inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace tilewright
#pragma GCC visibility pop
