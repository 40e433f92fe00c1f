// Ctrl-C ends long work between two of its steps and keeps what was found; a second Ctrl-C ends the program.
#pragma once

namespace tilewright {

// While one is alive, SIGINT sets a flag instead of ending the process. One at a time; for a program's
// main().
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
  static bool interrupted();  // whether SIGINT came since the guard was made
};

}  // namespace tilewright
