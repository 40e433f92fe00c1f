// The flag that signals set.
#include "base/interrupt.h"

#include <tilewright/base/error.h>

#include <atomic>
#include <csignal>

namespace tilewright {

namespace {
// A signal handler can reach nothing but a global; these two are the only ones.
std::atomic<bool> g_interrupted = false;
std::atomic<bool> g_guarded = false;
static_assert(std::atomic<bool>::is_always_lock_free,
              "only lock-free atomics may be used in a signal handler");

// Ctrl-C, and how timeout and batch systems end a program.
constexpr int kSignals[] = {SIGINT, SIGTERM};

extern "C" void on_interrupt(int signal) {
  g_interrupted = true;
  std::signal(signal, SIG_DFL);  // the second one ends the program
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
