// The message is made beforehand: a signal handler may do little more than write bytes.
#include "tw/command/crash_guard.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace tilewright::tw {

namespace {
// A handler can reach nothing but a global.
std::string g_message;

constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};

extern "C" void on_fault(int) {
  // Nothing can be done where stderr is closed.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, g_message.data(), g_message.size());
  _exit(1);
}
}  // namespace

CrashGuard::CrashGuard(const std::string& file) {
  TW_CHECK(g_message.empty(), "one CrashGuard at a time");
  g_message = fmt::format(
      "\ntw: {}: the kernel crashed: it reads or writes outside its memory, or divides by zero; it was not "
      "timed\n",
      file);
  std::fflush(stdout);  // what was said so far is not lost
  for (const int signal : kFaults) std::signal(signal, on_fault);
}

CrashGuard::~CrashGuard() {
  for (const int signal : kFaults) std::signal(signal, SIG_DFL);
  g_message.clear();
}

}  // namespace tilewright::tw
