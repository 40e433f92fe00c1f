// B2bMatmul: loops whose bodies multiply, compute on the products, and multiply those again, as tensor cores
// run them: every operand is a block of memory, which the copy engine or the threads bring, or (a alone) a
// tile in registers, spread as the accumulator of a product is. Everything between the dots are the loop
// plan's element loops on these accumulators.
#pragma once

#include "backends/cuda/analysis/tensor_operand.h"

#include <map>
#include <vector>

namespace tilewright::cuda {

// What a block in shared memory is multiplied by only where a bool tile along one of its axes holds: zeros
// take the place of the rest, of which 0 times NaN would be NaN.
struct UsedPart {
  tile::ValueId where = -1;  // a scalar, or a tile whose other axis is a unit one; -1: all of it is used
  bool k_major = true;
  friend bool operator==(const UsedPart&, const UsedPart&) = default;
};

// A block of memory that dots read, or threads that compute operand a of one from it.
struct B2bBlock {
  struct Fetch {
    const tile::Op* loop = nullptr;  // of each round; null: once a program, before the loops
    const tile::Op* load = nullptr;
    UsedPart used = {};
  };
  TensorOperand operand;       // as its first reader sees it
  std::vector<Fetch> fetches;  // of each loop that reads it
  bool resident() const { return fetches.front().loop == nullptr; }
};

struct B2bDot {
  const tile::Op* op = nullptr;
  const tile::Op* loop = nullptr;
  const tile::Op* outermost = nullptr;  // the loop around it in the kernel's own body; may be `loop`
  int a = -1, b = -1;                   // blocks; a: -1 for registers
  bool a_k_major = true, b_k_major = true;
  bool from_zero = false;       // its sum begins with zeros in each round
  bool loop_from_zero = false;  // begins at zero in the first round of its loop, which stands inside another
  bool is_nested() const { return loop != outermost; }
  bool has_used_parts = false;  // of some operand threads write zeros first
  // Whether the dot waits for blocks of memory and for nothing else.
  bool waits_for_blocks() const { return a >= 0 && from_zero && !has_used_parts; }
};

struct B2bMatmul {
  std::vector<B2bBlock> blocks;
  std::vector<B2bDot> dots;  // loop by loop; of each, those first that wait for nothing but blocks
  // Loads, and transposes and used parts of them, that only dots read.
  std::set<tile::ValueId> in_place;

  std::map<const tile::Op*, int> to_threads;  // loads of the loops' bodies → blocks

  const B2bDot* find(const tile::Op& dot) const;
  UsedPart used_part(const B2bDot& dot, int block) const;
  bool has_dots(const tile::Op& loop) const;      // in its own body
  bool is_outermost(const tile::Op& loop) const;  // of a dot
  // The loop adds up what is computed of products of blocks, one dot a round: what else it loads is asked for
  // before the dot.
  bool scaled_accumulation() const;
  // Every dot adds blocks of memory to what its loop carries: nothing is computed on the way.
  bool multiplies_alone() const;
};

// Whether a dot stands in an op's blocks, or in those of ops inside them.
bool holds_dots(const tile::Op& op);

// Why a kernel's dots are no such back-to-back matmul for tensor cores that are fed as `unit` says, as a
// failure of kind unsupported.
Result<B2bMatmul> find_b2b_matmul(const tile::Kernel& kernel, tile::DotUnit unit);

}  // namespace tilewright::cuda
