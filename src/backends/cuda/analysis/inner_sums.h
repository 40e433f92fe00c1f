// Sums along a row whose products tensor cores multiply and add, as the cost model sees them.
#pragma once

#include "backends/printer/loop_plan.h"

#include <set>

namespace tilewright::cuda {

// Finds an element loop's sums of products of two narrow factors (print_inner.cpp), with their products and
// the casts of the factors, which nothing computes one by one.
std::set<const printer::Instr*> find_inner_sums(const tile::Kernel& kernel, const printer::ElementLoop& loop);

}  // namespace tilewright::cuda
