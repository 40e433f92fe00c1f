// The flag that signals set.
#include "base/interrupt.h"

#include <tilewright/base/error.h>

#include <atomic>
#include <csignal>
#include <ctime>

namespace tilewright {

namespace {
// A signal handler can reach nothing but a global; these three are the only ones.
std::atomic<bool> g_interrupted = false;
std::atomic<long> g_first_ms = 0;
std::atomic<bool> g_guarded = false;
static_assert(std::atomic<bool>::is_always_lock_free,
              "only lock-free atomics may be used in a signal handler");

// Ctrl-C, and how timeout and batch systems end a program.
constexpr int kSignals[] = {SIGINT, SIGTERM};

// `timeout` sends its signal to the program and to its group: what comes at once is the same one.
constexpr long kAtOnceMs = 500;

extern "C" void on_interrupt(int signal) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);  // safe here by POSIX
  const long ms = now.tv_sec * 1000L + now.tv_nsec / 1'000'000;
  if (!g_interrupted.exchange(true)) {
    g_first_ms = ms;
  } else if (ms - g_first_ms > kAtOnceMs) {  // the second one ends the program
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}
}  // namespace

InterruptGuard::InterruptGuard() {
  TW_CHECK(!g_guarded.exchange(true), "one InterruptGuard at a time");
  g_interrupted = false;
  for (const int signal : kSignals) std::signal(signal, on_interrupt);
}

InterruptGuard::~InterruptGuard() {
  for (const int signal : kSignals) std::signal(signal, SIG_DFL);
  g_guarded = false;
}

bool InterruptGuard::interrupted() { return g_interrupted; }

}  // namespace tilewright
