// Figures to show: the rows of a run, or those that are stored for a machine, each with where it comes from.
#pragma once

#include <string>
#include <vector>

#include "harness/run/expectations.h"
#include "harness/run/record.h"

namespace tilewright::lab {

struct Figure {
  Row row;
  std::string date, commit;
};

struct Figures {
  std::vector<Figure> entries;
  Environment environment;  // of stored figures: the machine alone
};

Figures figures_of(const RunRecord& run);
Figures figures_of(const Expectations& stored);
// A file that `tw bench run` wrote, or one of lab/expectations.
Result<Figures> read_figures(const std::string& path);
// The same as a run, for the tables and charts of runs.
RunRecord run_of(const Figures& figures);

// The figures of the contenders named whose "target shape dtype device" matches a pattern; an empty list lets
// all pass. They come in the order of the patterns, and of the contenders.
Figures selected(const Figures& figures, const std::vector<std::string>& patterns,
                 const std::vector<std::string>& contenders);
// "NVIDIA H200, 2026-11-22 and 2026-11-26": of which machine the figures are, and of which days.
std::string measured_text(const Figures& figures);
std::string workload_name(const Row& row);  // "softmax 8192x8192 bf16"

}  // namespace tilewright::lab
