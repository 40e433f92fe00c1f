// Reading /proc/stat.
#include "runtime/other_work.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

namespace tilewright::runtime {

namespace {

// user, nice, system, idle, iowait, irq, softirq, steal: proc(5). Guests' time that follows is in user
// already.
constexpr std::size_t kColumns = 8, kIdle = 3, kWaiting = 4;

std::vector<int> allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> all;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return all;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) all.push_back(i);
  return all;
}

double own_seconds() {
  double seconds = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    if (getrusage(who, &usage) != 0) continue;
    for (const timeval& t : {usage.ru_utime, usage.ru_stime})
      seconds += static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  }
  return seconds;
}

double share(const std::optional<ProcessorTime>& before, const std::optional<ProcessorTime>& after,
             double own_s) {
  if (!before || !after || after->all_s <= before->all_s) return 0;
  return std::clamp((after->taken_s - before->taken_s - own_s) / (after->all_s - before->all_s), 0.0, 1.0);
}

}  // namespace

std::optional<ProcessorTime> processor_time(std::string_view proc_stat, const std::vector<int>& processors) {
  const double tick_s = 1.0 / static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
  std::istringstream lines{std::string(proc_stat)};
  std::optional<ProcessorTime> sum;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    const bool wanted =
        processors.empty() ? name == "cpu" : std::any_of(processors.begin(), processors.end(), [&](int i) {
          return name == fmt::format("cpu{}", i);
        });
    if (!wanted) continue;
    if (!sum) sum.emplace();
    double ticks = 0;
    for (std::size_t column = 0; column < kColumns && words >> ticks; ++column) {
      sum->all_s += ticks * tick_s;
      if (column != kIdle && column != kWaiting) sum->taken_s += ticks * tick_s;
    }
  }
  return sum;
}

ProcessorLook look_at_processors() {
  std::ifstream file("/proc/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::vector<int> ours = allowed_processors();
  return {ours.empty() ? std::nullopt : processor_time(text, ours), processor_time(text, {}), own_seconds()};
}

double share_of_others(const ProcessorLook& before, const ProcessorLook& after) {
  const double own_s = after.own_s - before.own_s;
  return std::max(share(before.ours, after.ours, own_s), share(before.machine, after.machine, own_s));
}

std::string busy_text(double share) {
  if (share <= kBusyShare) return "";
  return fmt::format("others took {:.0f} % of the processors' time", 100 * share);
}

}  // namespace tilewright::runtime
