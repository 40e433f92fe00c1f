// Why a fusion group has no loop nest, or no kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace tilewright::passes {

// Why two groups were not fused. Kept on the edge and shown by explain().
class Refusal {
 public:
  enum Kind : std::uint8_t {
    none,
    would_cycle,                   // the groups depend on each other through a third
    shapes_differ,                 // no common iteration space
    reduction_shapes_differ,       // reductions over different extents
    reduction_feeds_reduced_axis,  // a reduction's result is needed at an index of the reduced axes
    several_reduced_loops,         // dependent reductions over axes that do not merge into one
    indirect_through_fused,        // take from a value that is not in memory
    row_is_not_whole,              // a scan or a sort shares no loop with other axes
    opaque,                        // a scatter stands alone
    dots_are_not_b2b,              // two matmuls, or one and a reduction, that share no loop
    dot_operand_not_plain,         // what a matmul would read is neither memory nor arithmetic on it
    no_time_saved,                 // the cost model predicts no gain
    too_many_operands,             // more views than a kernel may take
    too_long,                      // more operations than a kernel of several nodes may have
    keeps_memory,                  // little in common, and large values that would have to be there at once
    not_written,                   // an Error ended the writing of the kernel
  };
  Refusal(Kind kind = none) : kind_(kind) {}  // NOLINT(google-explicit-constructor): most say no more
  static Refusal not_written_for(std::string error) {
    Refusal r(not_written);
    r.error_ = std::make_shared<const std::string>(std::move(error));
    return r;
  }
  Kind kind() const { return kind_; }
  std::string_view error() const { return error_ ? std::string_view(*error_) : std::string_view(); }
  friend bool operator==(const Refusal& a, const Refusal& b) {
    return a.kind_ == b.kind_ && a.error() == b.error();
  }

 private:
  Kind kind_;
  std::shared_ptr<const std::string> error_;  // of not_written
};
std::string_view name(const Refusal& refusal);
std::string explain(const Refusal& refusal);  // a sentence for explain()

}  // namespace tilewright::passes
