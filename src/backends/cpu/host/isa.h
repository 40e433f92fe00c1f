// The instruction sets that CPU kernels are generated for, and how the compiler is told about each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilewright::cpu {

// Widest first: x86-64-v4 with tile registers (AMX), x86-64-v4, x86-64-v3, x86-64.
enum class Isa { amx, avx512, avx2, baseline };

inline constexpr Isa kAllIsas[] = {Isa::amx, Isa::avx512, Isa::avx2, Isa::baseline};

std::string_view name(Isa isa);  // "avx512" …
int vector_bytes(Isa isa);       // 64, 64, 32, 16

// What the compiler generates for. Two equal targets give the same machine code for the same text, so
// to_string belongs into the key of a cached object.
struct CpuTarget {
  std::string cpu;                    // the instruction set's level: "x86-64-v4"
  std::string tune;                   // whose scheduling model orders the instructions: "znver5"
  std::vector<std::string> features;  // beyond the level: "avx512bf16"
  int vector_bytes = 16;
  friend bool operator==(const CpuTarget&, const CpuTarget&) = default;
};
std::string to_string(const CpuTarget& target);

// The widest instruction set that this machine runs.
Isa host_isa();
// Whether this machine runs an instruction set. Isa::amx also needs the system to save tile registers, which
// it is asked once for the process and all its threads.
bool host_runs(Isa isa);
// The level's instructions, plus those extensions of it that this machine has (VNNI, BF16, VBMI and
// more), scheduled for this machine's cores.
CpuTarget host_target(Isa isa);
// Features beyond the level which the generated code asks about and this machine has.
std::vector<std::string> isa_features(Isa isa);

}  // namespace tilewright::cpu
