// While an edited kernel runs, what it does to memory that is not its own ends tw with a message, not with a
// bare signal: its text is compiled as it stands, and nothing checks its addresses.
#pragma once

#include <string>

namespace tilewright::tw {

// One at a time; for a program's main(). On a fault prints "tw: <file>: …" and exits with 1.
class CrashGuard {
 public:
  explicit CrashGuard(const std::string& file);
  ~CrashGuard();
  CrashGuard(const CrashGuard&) = delete;
  CrashGuard& operator=(const CrashGuard&) = delete;
};

}  // namespace tilewright::tw
