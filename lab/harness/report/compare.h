// Two runs side by side: what changed between them, and whether the figures can say so.
#pragma once

#include "harness/run/record.h"

namespace tilewright::lab {

struct ComparedRow {
  std::string key;                     // Row::key
  std::optional<double> a_us, b_us;    // medians; empty where that run has no valid time
  std::optional<double> ratio;         // a / b: above 1, run b is faster
  std::optional<Interval> ratio_ci95;  // from the two intervals: [a.low / b.high, a.high / b.low]
  std::string verdict;  // "FASTER", "SLOWER", "SAME"; "ONLY A", "ONLY B"; "INVALID" with the reason
};

struct RunComparison {
  std::vector<ComparedRow> rows;         // in the order of run a, then what only b has
  std::vector<std::string> differences;  // of the environments: "governor: performance → powersave"
};

// Compares two runs. Rounds cannot be paired without their samples, so the interval is the widest that the
// two allow and FASTER means that the intervals do not overlap. Rows that are not verified or not timed are
// INVALID.
RunComparison compare_runs(const RunRecord& a, const RunRecord& b);

std::string render_comparison(const RunComparison& comparison, int width = 140);

}  // namespace tilewright::lab
