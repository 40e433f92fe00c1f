// The numbers of a plan: what of it may follow sizes while its kernels stay as they are.
#pragma once

#include <tilewright/tile/plan.h>

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::passes {

// A number as an argument of a kernel has it: an integer, or the bits of a float.
struct PlanNumber {
  DType dtype = DType::i64;
  std::int64_t bits = 0;
  friend bool operator==(const PlanNumber&, const PlanNumber&) = default;
};

// Elements of buffers, then offsets of views and arguments of each launch. Places in the arena follow from
// them (plan_memory()).
std::vector<PlanNumber> numbers_of(const tile::Plan& plan);

// Gives `plan` the numbers that numbers_of() lists, in its order.
void set_numbers(tile::Plan& plan, std::span<const std::int64_t> numbers);

// Whether two plans of the same kernels differ in numbers alone: the same buffers, written and read in the
// same order.
bool same_but_numbers(const tile::Plan& a, const tile::Plan& b);

}  // namespace tilewright::passes
