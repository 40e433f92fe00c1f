// One line on stderr that says what is done now: rewritten in place on a terminal, a line a step elsewhere,
// and nothing at all with --quiet.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace tilewright::tw {

enum class Progress { shown, silent };

class ProgressLine {
 public:
  ProgressLine(std::string who, Progress progress);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void step(std::string_view what);
  void clear();
  // Whether half a second is over since this was last true: for work of many short parts.
  bool is_due();

 private:
  std::string who_;
  Progress progress_;
  bool terminal_, shown_ = false;
  std::optional<std::chrono::steady_clock::time_point> due_since_;
};

// "1 h 02 min left", "3:07 left".
std::string time_left_text(double seconds);

}  // namespace tilewright::tw
