// Access: where the elements that one load, store or buffer access touches stand in memory, as seen from the
// loops around it.
#pragma once

#include "backends/cpu/text/kernel_text.h"

#include <string>
#include <vector>

namespace tilewright::cpu {

// A number, or the name of a scalar parameter or a variable: distances in elements, counts of them.
struct Amount {
  Index value = 0;
  std::string text;  // empty: `value`
  bool is(Index v) const { return text.empty() && value == v; }
  bool is_number() const { return text.empty(); }
  std::string str() const { return text.empty() ? int_text(value) : text; }
  friend bool operator==(const Amount&, const Amount&) = default;
};

// "a + 2 * b": a sum of products written without what is zero or one.
class Sum {
 public:
  Sum& add(const std::string& term, const Amount& factor);
  Sum& add(const std::string& term) { return add(term, {1, ""}); }
  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }
  std::string or_zero() const { return text_.empty() ? "0" : text_; }

 private:
  std::string text_;
};

// One axis of a bounded access: the coordinates start, start + 1, … of which [0, extent) exist.
struct AccessBound {
  int loop_axis = -1;  // the loop axis that walks it; -1: only `start` itself
  std::string start, extent;
  bool may_be_negative = true;
  bool may_end_early = true;
};

struct Access {
  std::string pointer;  // to the element at loop coordinate (0, 0)
  std::string name;     // of the view or buffer
  DType dtype = DType::f32;
  Amount stride[2];                 // along each loop axis
  std::vector<AccessBound> bounds;  // only those that the ranges of the starts do not prove
};

Amount stride_of(const KernelText& k, const tile::Dim& dim);

// The access of a load or store; `axes` as Instr::axes: the loop axis of each tile axis. `starts` begins at
// operand 0 (load) or 1 (store).
Access view_access(const KernelText& k, const tile::Op& op, const std::vector<int>& axes,
                   const std::vector<Index>& shape, const std::vector<Index>& loop_shape);
Access buffer_access(const KernelText& k, tile::ValueId v, const std::vector<int>& axes);

// The address of an element given by one index text per view dim: "i * 1024 + j".
std::string element_offset(const KernelText& k, const tile::ViewParam& view,
                           const std::vector<std::string>& indices);

}  // namespace tilewright::cpu
