// As many machines are kept as threads have compiled at once.
#include "backends/cpu/jit/target_machines.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Target/TargetOptions.h>

#include <map>
#include <mutex>
#include <tuple>
#include <vector>

namespace tilewright::cpu {

namespace {

using Key = std::tuple<std::string, std::string, llvm::CodeGenOptLevel>;

struct Idle {
  std::mutex mutex;
  std::map<Key, std::vector<std::unique_ptr<llvm::TargetMachine>>> machines;
};

}  // namespace

Result<HeldMachine> hold_machine(const std::string& triple, const std::string& cpu,
                                 llvm::CodeGenOptLevel level) {
  // Owned by each holder too: one may end after the process's statics.
  static const auto idle = std::make_shared<Idle>();
  const Key key{triple, cpu, level};
  const auto give_back = [idle = idle, key](llvm::TargetMachine* machine) {
    const std::lock_guard lock(idle->mutex);
    idle->machines[key].emplace_back(machine);
  };
  {
    const std::lock_guard lock(idle->mutex);
    if (auto& kept = idle->machines[key]; !kept.empty()) {
      HeldMachine machine(kept.back().release(), give_back);
      kept.pop_back();
      return machine;
    }
  }
  std::string message;
  const auto* target = llvm::TargetRegistry::lookupTarget(triple, message);
  if (!target) return failure(Failure::Kind::unsupported, message);
  // The features stand on each function, as Clang wrote them.
  return HeldMachine(target->createTargetMachine(triple, cpu, "", llvm::TargetOptions(), llvm::Reloc::PIC_,
                                                 std::nullopt, level, /*JIT=*/false),
                     give_back);
}

}  // namespace tilewright::cpu
