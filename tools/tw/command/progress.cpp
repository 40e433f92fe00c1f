// The progress line.
#include "tw/command/progress.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace tilewright::tw {

ProgressLine::ProgressLine(std::string who, Progress progress)
    : who_(std::move(who)), progress_(progress), terminal_(isatty(2) != 0) {}

void ProgressLine::step(std::string_view what) {
  if (progress_ == Progress::silent) return;
  clear();
  std::string line = fmt::format("{}: {}", who_, what);
  // What is wider than the terminal would stay there: one line is rewritten.
  if (winsize size{}; terminal_ && ioctl(2, TIOCGWINSZ, &size) == 0 && size.ws_col > 2)
    line.resize(std::min<std::size_t>(line.size(), size.ws_col - 2U));
  fmt::print(stderr, "{}{}", line, terminal_ ? " …" : "\n");
  std::fflush(stderr);
  shown_ = terminal_;
}

bool ProgressLine::is_due() {
  const auto now = std::chrono::steady_clock::now();
  if (due_since_ && now - *due_since_ <= std::chrono::milliseconds(500)) return false;
  due_since_ = now;
  return true;
}

std::string time_left_text(double seconds) {
  const auto whole = static_cast<long long>(seconds);
  if (whole >= 3600) return fmt::format("{} h {:02} min left", whole / 3600, whole / 60 % 60);
  return fmt::format("{}:{:02} left", whole / 60, whole % 60);
}

void ProgressLine::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace tilewright::tw
