// The progress line.
#include "tw/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace tilewright::tw {

ProgressLine::ProgressLine(std::string who, Progress progress)
    : who_(std::move(who)), progress_(progress), terminal_(isatty(2) != 0) {}

void ProgressLine::step(std::string_view what) {
  if (progress_ == Progress::silent) return;
  clear();
  fmt::print(stderr, "{}: {}{}", who_, what, terminal_ ? " …" : "\n");
  std::fflush(stderr);
  shown_ = terminal_;
}

void ProgressLine::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace tilewright::tw
