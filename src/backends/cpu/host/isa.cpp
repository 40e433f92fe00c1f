// What this machine's cores can run, asked of LLVM (CPUID and the operating system's register state).
#include "backends/cpu/host/isa.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <utility>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace tilewright::cpu {

namespace {

constexpr std::string_view kAvx2Level[] = {"avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"};
constexpr std::string_view kAmxLevel[] = {"amx-tile", "amx-bf16", "amx-int8", "avx512bf16", "avx512vnni"};
constexpr std::string_view kAvx512Level[] = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};
// Extensions with an instruction that a generated kernel may use. Not avx512fp16: f16 is computed in f32, and
// with it the code generator compares and converts in f16 itself, of which 4 of 337,000 random graphs
// differed (docs/notes/2026-11-22-graphs-by-the-million.md).
constexpr std::string_view kAvx512Extras[] = {"avx512vnni",  "avx512bf16", "avx512vbmi",
                                              "avx512vbmi2", "avx512ifma", "gfni"};
constexpr std::string_view kAmxExtras[] = {"amx-tile", "amx-bf16", "amx-int8"};
constexpr std::string_view kAvx2Extras[] = {"avxvnni"};

bool has(const llvm::StringMap<bool>& features, std::string_view feature) {
  const auto found = features.find(llvm::StringRef(feature.data(), feature.size()));
  return found != features.end() && found->second;
}

template <std::size_t N>
bool has_all(const std::string_view (&level)[N]) {
  const auto features = llvm::sys::getHostCPUFeatures();
  for (const auto feature : level)
    if (!has(features, feature)) return false;
  return true;
}

template <std::size_t N>
std::vector<std::string> those_present(const std::string_view (&extras)[N]) {
  const auto features = llvm::sys::getHostCPUFeatures();
  std::vector<std::string> present;
  for (const auto extra : extras)
    if (has(features, extra)) present.emplace_back(extra);
  return present;
}

// Linux saves tile registers only for processes that have asked for it: the first instruction on one would be
// a fault otherwise. An older kernel does not know the question; one that knows it refuses where a thread's
// stack for signals has no room for them. Source: Linux, Documentation/arch/x86/xstate.rst.
bool may_use_tiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  static const bool granted = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return granted;
#else
  return false;
#endif
}

std::string_view level(Isa isa) {
  switch (isa) {
    case Isa::amx:
    case Isa::avx512:
      return "x86-64-v4";
    case Isa::avx2:
      return "x86-64-v3";
    case Isa::baseline:
      return "x86-64";
  }
  return "x86-64";
}

}  // namespace

std::string_view name(Isa isa) {
  switch (isa) {
    case Isa::amx:
      return "amx";
    case Isa::avx512:
      return "avx512";
    case Isa::avx2:
      return "avx2";
    case Isa::baseline:
      return "baseline";
  }
  return "?";
}

int vector_bytes(Isa isa) {
  switch (isa) {
    case Isa::amx:
    case Isa::avx512:
      return 64;
    case Isa::avx2:
      return 32;
    case Isa::baseline:
      return 16;
  }
  return 16;
}

std::string to_string(const CpuTarget& target) {
  return fmt::format("{} tune={} +[{}] {}B", target.cpu, target.tune, fmt::join(target.features, ","),
                     target.vector_bytes);
}

bool host_runs(Isa isa) {
  switch (isa) {
    case Isa::amx:
      return host_runs(Isa::avx512) && has_all(kAmxLevel) && may_use_tiles();
    case Isa::avx512:
      return has_all(kAvx2Level) && has_all(kAvx512Level);
    case Isa::avx2:
      return has_all(kAvx2Level);
    case Isa::baseline:
      return true;
  }
  return false;
}

Isa host_isa() {
  for (const Isa isa : kAllIsas)
    if (host_runs(isa)) return isa;
  return Isa::baseline;
}

std::vector<std::string> isa_features(Isa isa) {
  switch (isa) {
    case Isa::amx: {
      std::vector<std::string> features = those_present(kAvx512Extras);
      for (std::string& tiles : those_present(kAmxExtras)) features.push_back(std::move(tiles));
      return features;
    }
    case Isa::avx512:
      return those_present(kAvx512Extras);
    case Isa::avx2:
      return those_present(kAvx2Extras);
    case Isa::baseline:
      return {};
  }
  return {};
}

CpuTarget host_target(Isa isa) {
  return {.cpu = std::string(level(isa)),
          .tune = llvm::sys::getHostCPUName().str(),
          .features = isa_features(isa),
          .vector_bytes = vector_bytes(isa)};
}

}  // namespace tilewright::cpu
