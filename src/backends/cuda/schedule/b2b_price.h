// B2bPrice: the predicted time of a back-to-back matmul on tensor cores. What its schedules differ in is the
// caller's to multiply by.
#pragma once

#include "backends/cuda/analysis/b2b_matmul.h"
#include "backends/cuda/machine/arch.h"

#include <tilewright/tile/kernel.h>
#include <tilewright/tile/target.h>

#include <map>
#include <set>

namespace tilewright::cuda {

// Rounds of a loop: those of tile::loop_rounds(), or an assumed number where arguments decide.
double rounds_of(const tile::Op& loop, const std::map<const tile::Op*, double>& rounds);

class B2bPrice {
 public:
  // `rounds`: tile::loop_rounds() of the kernel.
  B2bPrice(const tile::Kernel& kernel, const tile::Target& target, const Arch& arch,
           const std::map<const tile::Op*, double>& rounds);

  // Microseconds by the products' FLOPs, at a share of the tensor cores' rate.
  double us(const B2bMatmul& b2b) const;
  // Microseconds of a kernel by warpgroups: each program's rounds, which wait and multiply, one after the
  // other; of a loop inside another's, what is computed after it.
  double by_rounds_us(const B2bMatmul& b2b) const;
  // Rounds of a program's loops together, in the mean over the grid; many where data or arguments decide.
  double mean_rounds(const B2bMatmul& b2b) const;

 private:
  double rounds(const tile::Op& loop) const { return rounds_of(loop, rounds_); }
  double programs() const;
  // Programs of a multiprocessor, 1 at least.
  double waves() const;
  // Elements of tiles that the threads of a program load in the rounds of loops with dots, their own loads
  // and what a round computes of loads that stand before the loop.
  double loaded_in_rounds(const tile::Block& block, const B2bMatmul& b2b, double times) const;
  void add_loads(const tile::Op& op, std::set<const tile::Op*>& loads, std::set<const tile::Op*>& seen) const;
  // Several sums of a loop that only multiplies: its blocks are those of one product as wide as all of them.
  double sums_us(const B2bMatmul& b2b) const;

  const tile::Kernel& kernel_;
  const tile::Target& target_;
  const Arch& arch_;
  const std::map<const tile::Op*, double>& rounds_;
  std::map<tile::ValueId, const tile::Op*> made_by_;
};

}  // namespace tilewright::cuda
