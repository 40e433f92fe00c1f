// ScalarPrinter: the scalars of a kernel's steps: those that get a variable, and those that are part of what
// reads them.
#pragma once

#include "backends/cuda/print/printer_parts.h"
#include "backends/cuda/print/scalar_uses.h"

namespace tilewright::cuda {

class ScalarPrinter : PrinterParts {
 public:
  explicit ScalarPrinter(KernelPrinter& k) : PrinterParts(k), uses_(kernel_) {}

  void print_scalar(const tile::Op& op);
  void index_scalars();
  const Op* scalar_definition(ValueId v) const;  // of the kernel's own body
  std::string scalar_line(ValueId v) const;      // as printed; empty: none
  ValueId same_scalar(ValueId v) const;          // the one whose variable it shares, or itself

 private:
  void print_scalar_effect(const tile::Op& op);
  TypedText without_mask(const tile::Op& op, const std::vector<TypedText>& operands,
                         const TypedText& e) const;

  const ScalarUses uses_;
  std::map<ValueId, const Op*> definitions_;  // of the kernel's own body
  std::map<ValueId, std::string> lines_;      // as printed
  // Numbers of the kernel's own body by type and expression.
  std::map<std::pair<DType, std::string>, ValueId> equal_;
  std::map<ValueId, ValueId> same_;  // equal ones that were printed before
};

}  // namespace tilewright::cuda
