// One line on stderr that says what is done now: rewritten in place on a terminal, a line a step elsewhere,
// and nothing at all with --quiet.
#pragma once

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

 private:
  std::string who_;
  Progress progress_;
  bool terminal_, shown_ = false;
};

}  // namespace tilewright::tw
