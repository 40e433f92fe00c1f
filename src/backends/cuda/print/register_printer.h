// RegisterPrinter: arrays that hold a value spread over the threads: how they are declared, named and walked.
#pragma once

#include "backends/cuda/print/expression_printer.h"

#include <functional>

namespace tilewright::cuda {

class RegisterPrinter : PrinterState {
 public:
  RegisterPrinter(KernelPrinter& k, const ExpressionPrinter& expressions)
      : PrinterState(k), expressions_(expressions) {}

  Registers buffer(ValueId v);  // the registers a value lives in
  std::string declaration(const Registers& r) const { return declarator(r) + ";"; }
  std::string declaration_of_zeros(const Registers& r) const { return declarator(r) + " = {};"; }
  std::string at(const Registers& r) const;          // "x[r][c]"
  std::string element(const Registers& r) const;     // "x[r][c].v[v]"
  std::string pointer_to(const Registers& r) const;  // first vector of it
  // Loops over the vectors (or rows) of an array; of a piece of a tile: over what the piece has of them.
  void for_registers(const Registers& r, const std::function<void()>& body, const Pieces* piece = nullptr);
  // This thread's first slot of the vector that r and c name, among loads that a pipeline copies ahead.
  std::string staged_slot(const Registers& r, const std::string& base) const;

 private:
  std::string declarator(const Registers& r) const;  // "Vec<f32, 2> x[4]"
  std::string staged_vector(const Registers& r) const;

  const ExpressionPrinter& expressions_;
};

}  // namespace tilewright::cuda
