// Scaled accumulation by wgmma: loops that add up what is computed of products, one a round. What a
// round loads beside its blocks is loaded a round before, so that it is there when the product is. While a
// warpgroup adds, the tensor cores have the other's product. Rows beyond 64 of a warpgroup are multiplied and
// added one block of 64 after another, through the same registers.
#pragma once

#include "backends/cuda/print/pipelines/wgmma_b2b.h"

namespace tilewright::cuda {

class WgmmaScaledAccumulation final : public WgmmaB2b {
 public:
  explicit WgmmaScaledAccumulation(KernelPrinter& k) : WgmmaB2b(k) {}

 protected:
  void choose_names() override;
  void print_dots(const Step& loop) override;

 private:
  // Rounds of two kinds, one after the other: what one leaves for its own later steps has a name for each.
  struct Rounds {
    const Step* loop = nullptr;
    std::vector<const Step*> before, after;  // the product
    std::set<ValueId> scalars, buffers;      // that `before` leaves for `after`
    struct Names {
      std::map<ValueId, std::string> scalars;
      std::map<ValueId, Registers> buffers;
    } names[2] = {};
    Index row_blocks = 1;  // of 64 rows of a warpgroup
    std::string end = {}, by = {};
  };
  struct Round {
    std::string index;
    int kind;  // of its names
  };
  const B2bDot& dot() const { return b2b_->dots[0]; }
  void share_product_registers();
  Rounds rounds_of(const Step& loop);
  void declare(const Rounds& rounds);
  void use_names(const Rounds& rounds, int kind);
  void print_steps(const Rounds& rounds, const Round& round, const std::vector<const Step*>& steps);
  void issue(const Rounds& rounds, int kind, Index row_block);
  void print_product(const Rounds& rounds, const Round& round, Index row_block);
  void print_round(const Rounds& rounds, const Round& round);
};

}  // namespace tilewright::cuda
