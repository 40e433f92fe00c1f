// One line on stderr that says what is done now: rewritten in place on a terminal, a line a step elsewhere.
#pragma once

#include <string>
#include <string_view>

namespace tilewright::tw {

class ProgressLine {
 public:
  explicit ProgressLine(std::string who);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void step(std::string_view what);
  void clear();

 private:
  std::string who_;
  bool terminal_, shown_ = false;
};

}  // namespace tilewright::tw
