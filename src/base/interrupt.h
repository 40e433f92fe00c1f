// Ctrl-C or SIGTERM ends long work between two of its steps and keeps what was found; a second one ends the
// program.
#pragma once

namespace tilewright {

// While one is alive, these signals set a flag instead of ending the process. One at a time; for a program's
// main().
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  static bool interrupted();  // whether one came since the guard was made
};

}  // namespace tilewright
