// ExpressionPrinter: values and places in memory as C++ expressions.
#pragma once

#include "backends/cuda/analysis/access.h"
#include "backends/cuda/print/printer_state.h"

namespace tilewright::cuda {

// An i64 as the i32 nearest to it.
TypedText saturated(const TypedText& e);

class ExpressionPrinter : PrinterState {
 public:
  explicit ExpressionPrinter(KernelPrinter& k) : PrinterState(k) {}

  // --- values
  TypedText scalar(ValueId v);
  TypedText compute(const tile::Op& op, const std::vector<TypedText>& operands);
  DType type_of(ValueId v) const;
  std::string as_type(const TypedText& e, DType type) const;
  TypedText converted(const TypedText& e, DType type) const;
  const printer::ValueRange& range(ValueId v) const { return ranges_[static_cast<std::size_t>(v)]; }

  // --- what moves through shared memory
  DType stage_type(ValueId v) const;
  std::string convert_text(DType from, DType to, const std::string& text);

  // --- places in views
  TypedText scalar_load(const tile::Op& op);
  IndexText base_offset(const Access& access);
  // The condition that an access begins inside its view, but for the dimensions `apart`; empty: it does.
  std::string inside(const Access& access, const std::vector<bool>& apart = {});
  IndexText stride_text(const Access& access, int dim);
  IndexText dim_text(const tile::Dim& dim);
  IndexText view_offset(int view, const std::vector<TypedText>& indices);
  std::string load_cache(const tile::Op& op) const;

 private:
  TypedText op_expr(const tile::Op& op, const std::vector<TypedText>& operands);
  // Whether a cast changes nothing of the text.
  bool is_the_same(const tile::Op& cast, const TypedText& from) const;
  TypedText cast_expr(const tile::Op& op, const TypedText& from);
  TypedText apply_expr(const tile::Op& op, const std::vector<TypedText>& operands);
  bool compares_in_32_bits(const tile::Op& op, const std::vector<TypedText>& operands) const;
  TypedText gather_expr(const tile::Op& op, const std::vector<TypedText>& operands);
  bool only_stored(ValueId v) const;  // every use rounds it to its narrow type
};

}  // namespace tilewright::cuda
