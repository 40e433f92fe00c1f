// Names and sentences of refusals.
#include "passes/nest/refusal.h"

namespace tilewright::passes {

std::string_view name(const Refusal& refusal) {
  constexpr std::string_view names[] = {"none",
                                        "would_cycle",
                                        "shapes_differ",
                                        "reduction_shapes_differ",
                                        "reduction_feeds_reduced_axis",
                                        "several_reduced_loops",
                                        "indirect_through_fused",
                                        "row_is_not_whole",
                                        "opaque",
                                        "dots_are_not_b2b",
                                        "dot_operand_not_plain",
                                        "no_time_saved",
                                        "too_many_operands",
                                        "too_long",
                                        "keeps_memory",
                                        "not_written"};
  return names[refusal.kind()];
}

std::string explain(const Refusal& refusal) {
  constexpr std::string_view texts[] = {
      "fused",
      "each needs the other's result through a third kernel",
      "their results have no common iteration space",
      "they reduce over different extents",
      "a reduction's result is needed at an index of the reduced axes, so the row must be finished first",
      "dependent reductions run over axes that do not merge into one loop",
      "one gathers from the other's result, which must be in memory for that",
      "a scan or a sort needs its whole axis in one loop",
      "a scatter needs a kernel of its own",
      "the matmul shares no loop with the other matmul or reduction",
      "what the matmul would read is neither memory nor arithmetic on it",
      "the cost model predicts no time saved",
      "the kernel would take more views than a launch allows",
      "one kernel of both would be too long: what is read in several places is computed in each",
      "they have little in common, and as one kernel would need large values of both at once",
      "the kernel cannot be written",
  };
  std::string text(texts[refusal.kind()]);
  if (!refusal.error().empty()) text.append(": ").append(refusal.error());
  return text;
}

}  // namespace tilewright::passes
