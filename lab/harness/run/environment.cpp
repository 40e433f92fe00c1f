// /proc, /sys and a few system calls.
#include "harness/run/environment.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

namespace tilewright::embedded {
extern const std::string_view commit;  // cmake/commit.cmake
}

namespace tilewright::lab {

namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string trimmed(std::string text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) text.pop_back();
  std::size_t begin = 0;
  while (begin < text.size() && std::isspace(static_cast<unsigned char>(text[begin]))) ++begin;
  return text.substr(begin);
}

// The value of "name : value" in a file of such lines.
std::string field(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon != std::string::npos && trimmed(line.substr(0, colon)) == name)
      return trimmed(line.substr(colon + 1));
  }
  return "";
}

double gib(const std::string& kib_text) { return std::atof(kib_text.c_str()) / (1024.0 * 1024.0); }

// Cores of the affinity mask as ranges: "0-3,8".
std::string affinity_text() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return "";
  std::string text;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &set)) continue;
    int last = core;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) ++last;
    if (!text.empty()) text += ',';
    text += last > core ? fmt::format("{}-{}", core, last) : fmt::format("{}", core);
    core = last;
  }
  return text;
}

std::string governor(const std::string& root) {
  const std::string text = first_line(root + "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  return text.empty() ? "none" : text;
}

// The folder of this process's control group, version 2: the line "0::/path".
std::string cgroup_folder(const std::string& root) {
  std::ifstream file(root + "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::")) return root + "sys/fs/cgroup" + line.substr(3);
  }
  return root + "sys/fs/cgroup";
}

// "max 100000" or "200000 100000": quota and period in microseconds.
std::string cgroup_cpu(const std::string& folder) {
  std::istringstream text(first_line(folder + "/cpu.max"));
  std::string quota;
  double period = 0;
  text >> quota >> period;
  if (quota.empty() || quota == "max" || period <= 0) return "none";
  return fmt::format("{:g} cores", std::atof(quota.c_str()) / period);
}

std::string cgroup_memory(const std::string& folder) {
  const std::string text = first_line(folder + "/memory.max");
  if (text.empty() || text == "max") return "none";
  return fmt::format("{:.1f} GiB", std::atof(text.c_str()) / (1024.0 * 1024 * 1024));
}

std::string compiler() {
#if defined(__clang__)
  return "clang " __clang_version__;
#else
  return "gcc " __VERSION__;
#endif
}

std::string slug(std::string_view text) {
  std::string out;
  for (char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isalnum(u)) {
      out += static_cast<char>(std::tolower(u));
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (!out.empty() && out.back() == '-') out.pop_back();
  return out;
}

}  // namespace

std::string_view built_commit() { return embedded::commit; }

Environment read_environment(const EnvironmentOptions& options) {
  const std::string& root = options.root;
  Environment e;
  e.cpu_model = field(root + "proc/cpuinfo", "model name");
  // Hypervisors hide the model number ("AMD EPYC"); family and model then tell generations apart.
  const std::string family = field(root + "proc/cpuinfo", "cpu family"),
                    model = field(root + "proc/cpuinfo", "model");
  if (!model.empty()) e.cpu_model += fmt::format(" (family {} model {})", family, model);
  e.virtual_machine = field(root + "proc/cpuinfo", "flags").find("hypervisor") != std::string::npos;
  e.cores = static_cast<int>(std::thread::hardware_concurrency());
  e.affinity = affinity_text();
  e.governor = governor(root);
  e.memory_gib = gib(field(root + "proc/meminfo", "MemTotal"));
  e.swap_used_gib =
      gib(field(root + "proc/meminfo", "SwapTotal")) - gib(field(root + "proc/meminfo", "SwapFree"));
  utsname system{};
  if (uname(&system) == 0) e.kernel = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  e.compiler = compiler();
  e.git_commit = built_commit().empty() ? "unknown" : built_commit();
  e.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
  e.gpu_name = options.gpu_name;
  e.gpu_driver = options.gpu_driver;
  e.seed = options.seed;
  e.load_average = std::atof(first_line(root + "proc/loadavg").c_str());
  const std::string folder = cgroup_folder(root);
  e.cgroup_cpu = cgroup_cpu(folder);
  e.cgroup_memory = cgroup_memory(folder);
  e.options = options.options;
  return e;
}

std::vector<std::string> warnings(const Environment& e) {
  std::vector<std::string> all;
  if (e.load_average > 0.5 * e.cores) {
    all.push_back(
        fmt::format("load average {:.1f} on {} cores: something else is running", e.load_average, e.cores));
  }
  if (e.governor != "none" && e.governor != "performance") {
    all.push_back(fmt::format("frequency governor '{}': clocks may change during the run", e.governor));
  }
  if (e.swap_used_gib > 0.1) all.push_back(fmt::format("{:.1f} GiB of swap in use", e.swap_used_gib));
  if (e.cgroup_cpu != "none" && !e.cgroup_cpu.empty() && std::atof(e.cgroup_cpu.c_str()) < e.cores) {
    all.push_back(
        fmt::format("the control group allows {} of {}: runs may be throttled", e.cgroup_cpu, e.cores));
  }
  if (e.virtual_machine) all.emplace_back("virtual machine: other guests may take time from this one");
  if (e.git_commit.ends_with("-dirty")) all.emplace_back("the checkout has uncommitted changes");
  return all;
}

std::string hardware_key(const Environment& e, const std::string& device) {
  if (device.starts_with("cuda")) return e.gpu_name.empty() ? "unknown-gpu" : slug(e.gpu_name);
  return fmt::format("{}-{}c", e.cpu_model.empty() ? "unknown-cpu" : slug(e.cpu_model), e.cores);
}

}  // namespace tilewright::lab
