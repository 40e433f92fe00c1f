// Cache sizes from sysfs, the brand from CPUID, speeds by rule of thumb.
#include "backends/cpu/host/host.h"

#include "backends/cpu/machine/fitted.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tilewright::cpu {

namespace {

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The folder in which a core's caches are described.
std::string cache_folder(int core, int index) {
  return fmt::format("/sys/devices/system/cpu/cpu{}/cache/index{}/", core, index);
}

// The largest data cache of a level that CPU 0 sees, by /sys or, where that is hidden, by the processor
// itself; 0 when neither says.
Index cache_bytes(int level) {
  Index bytes = 0;
  for (int i = 0; i < 8; ++i) {
    const std::string base = cache_folder(0, i);
    if (read_line(base + "level") != std::to_string(level) || read_line(base + "type") == "Instruction")
      continue;
    const std::string size = read_line(base + "size");  // "1024K"
    if (size.empty()) continue;
    Index value = std::stol(size);
    if (size.back() == 'K') value <<= 10;
    if (size.back() == 'M') value <<= 20;
    bytes = std::max(bytes, value);
  }
  constexpr int kByLevel[] = {_SC_LEVEL1_DCACHE_SIZE, _SC_LEVEL2_CACHE_SIZE, _SC_LEVEL3_CACHE_SIZE};
  return bytes > 0 ? bytes : std::max<Index>(0, sysconf(kByLevel[level - 1]));
}

std::string brand() {
  std::string text;
#if defined(__x86_64__)
  unsigned words[4];
  for (unsigned leaf = 0x80000002; leaf <= 0x80000004; ++leaf) {
    if (!__get_cpuid(leaf, &words[0], &words[1], &words[2], &words[3])) break;
    text.append(reinterpret_cast<const char*>(words), sizeof words);
  }
#endif
  text = text.substr(0, text.find('\0'));
  const std::size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(' ');
  return first == std::string::npos ? "CPU" : text.substr(first, last - first + 1);
}

// How many caches of a level the cores that this process may use have among them.
int cache_instances(int level) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  std::set<std::string> sharers;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &allowed)) continue;
    for (int i = 0; i < 8; ++i) {
      const std::string base = cache_folder(core, i);
      if (read_line(base + "level") == std::to_string(level) && read_line(base + "type") != "Instruction")
        sharers.insert(read_line(base + "shared_cpu_list"));
    }
  }
  return std::max(1, static_cast<int>(sharers.size()));
}

std::string size_text(double bytes) {
  if (bytes >= 1 << 30) return fmt::format("{:.1f} GiB", bytes / (1 << 30));
  return bytes >= 1 << 20 ? fmt::format("{:g} MiB", bytes / (1 << 20))
                          : fmt::format("{:g} KiB", bytes / 1024);
}

}  // namespace

std::vector<backends::DeviceFact> host_facts(const CpuTarget& target, int threads) {
  std::vector<backends::DeviceFact> facts = {
      {"processor", 0, brand()},
      {"cores", static_cast<double>(threads), fmt::format("{} used, one thread on each", threads)},
      {"isa", 0,
       fmt::format("{}{}{}, tuned for {}", target.cpu, target.features.empty() ? "" : " + ",
                   fmt::join(target.features, " "), target.tune)}};
  for (int level = 1; level <= 3; ++level) {
    const auto bytes = static_cast<double>(cache_bytes(level));
    if (bytes == 0) continue;
    const int instances = cache_instances(level);
    facts.push_back(
        {fmt::format("l{}_bytes", level), bytes, fmt::format("{} x {}", instances, size_text(bytes))});
    facts.push_back({fmt::format("l{}_instances", level), static_cast<double>(instances), ""});
  }
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  facts.push_back({"memory_bytes", memory, size_text(memory)});
  return facts;
}

tile::Target host_tile_target(Isa isa, int threads) {
  tile::Target t;
  t.kind = tile::TargetKind::cpu;
  t.arch = name(isa);
  t.name = fmt::format("{}, {}", brand(), t.arch);
  t.units = threads;
  t.vector_bytes = vector_bytes(isa);
  const Index l2 = cache_bytes(2), l3 = cache_bytes(3);
  // Half of L2: a row's input and one kept tile stay, and the next row's lines have room.
  if (l2 > 0) t.row_bytes = l2 / 2;
  if (std::max(l2, l3) > 0) t.cache_bytes = std::max(l2, l3);
  // Rules of thumb that rank schedules until the probes have measured the machine: a core moves 20 GB/s to
  // and from memory (several share a socket's 200), twice that in the cache that all cores share, six times
  // that in its own, and runs two vector operations a cycle.
  t.memory_bytes_per_s = std::min(20e9 * threads, 200e9);
  t.unit_cache_bytes_per_s = 120e9 * threads;
  t.unit_cache_bytes = l2 * threads;
  t.cache_bytes_per_s = l3 > 0 ? 40e9 * threads : t.unit_cache_bytes_per_s;
  t.flops_per_s = threads * 2.0 * t.vector_bytes / 4 * 3e9;
  t.launch_s = 1e-6;
  fill_fitted(t);
  if (isa == Isa::amx) fill_tile_registers(t);
  return t;
}

}  // namespace tilewright::cpu
