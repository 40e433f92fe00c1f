// Outputs of a plan in the memory of its inputs: what makes a program update in place. An input's memory may
// be written once nothing reads the input any more: kernels that read it are launched before, and one that
// reads and writes it reads what it writes, block for block (same_blocks.h).
#pragma once

#include <tilewright/tile/plan.h>
#include <tilewright/tile/target.h>

#include <string>
#include <vector>

namespace tilewright::passes {

// An output and the inputs whose memory it is to lie in: several where one tensor is given for them all.
struct Overwrite {
  int output = -1;  // -1: any that fits
  std::vector<int> inputs;
  friend bool operator==(const Overwrite&, const Overwrite&) = default;
};

// One that was asked for, with the output that was found, and why it cannot be: empty where the plan does it.
struct Overwriting {
  Overwrite what;
  std::string why_not;
};

// Temporaries that are copied as a whole, with the buffers they are copied to: one memory where what reads
// the temporary can come before what else is written there, by the same rule.
void merge_copied_temporaries(tile::Plan& plan, std::vector<std::vector<tile::Kernel>>& variants);

// Large temporaries in the memory of those that the kernel which writes them is the last to read, by the same
// rule again: where that makes the arena smaller by much. A kernel that only reads its operand may read it on
// faster ways: what is lost by that must be small beside the whole program.
void reuse_large_temporaries(tile::Plan& plan, std::vector<std::vector<tile::Kernel>>& variants,
                             const tile::Target& target);

// Grants what it can, in their order: launches may change places, kernels that read and write one memory get
// one view for both, copies of an input to itself go. `variants`, beside the plan's kernels, are changed
// alike. A launch of a plan that overwrites must be given one buffer for the output and its inputs.
std::vector<Overwriting> overwrite_inputs(tile::Plan& plan, std::vector<std::vector<tile::Kernel>>& variants,
                                          const std::vector<Overwrite>& wanted);

}  // namespace tilewright::passes
