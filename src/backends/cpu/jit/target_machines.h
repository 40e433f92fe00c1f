// LLVM's target machines, kept for the next kernels: a new one describes the processor to itself anew.
#pragma once

#include <tilewright/base/error.h>

#include <functional>
#include <memory>
#include <string>

#include <llvm/Support/CodeGen.h>
#include <llvm/Target/TargetMachine.h>

namespace tilewright::cpu {

// A machine that is the holder's alone until this ends, and others' after.
using HeldMachine = std::unique_ptr<llvm::TargetMachine, std::function<void(llvm::TargetMachine*)>>;

// A machine for position-independent code of the processor `cpu`, at the level given; Failure{unsupported}
// for a triple that LLVM was built without. May be called from several threads at once.
Result<HeldMachine> hold_machine(const std::string& triple, const std::string& cpu,
                                 llvm::CodeGenOptLevel level);

}  // namespace tilewright::cpu
