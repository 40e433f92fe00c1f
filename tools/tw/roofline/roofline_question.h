// A roofline question as the command line states it, and the ways to answer it: text, JSON, table of a sweep,
// plot.
#pragma once

#include <tilewright/perf/workloads.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "tw/command/output.h"

namespace tilewright::tw {

// Something about the workload beside its bounds, such as its critical batch.
struct Fact {
  std::string key;              // in JSON
  std::optional<double> value;  // null in JSON when there is none
  std::string line;             // in text; empty: not shown
};

using Setting = std::variant<std::string, Index, bool>;

struct Question {
  std::string work;                                       // "matmul"
  std::function<std::string()> describe;                  // "bf16[240,8192] x bf16[8192,8192], math bf16"
  std::vector<std::pair<std::string, Index*>> extents;    // what --sweep and --also may set
  std::vector<std::pair<std::string, Setting>> settings;  // what else was chosen, for JSON
  std::function<perf::Cost()> cost;
  std::function<std::vector<Fact>(const perf::Hardware&)> facts;
};

struct RooflineOptions {
  std::string hardware;
  double peak = 0, bandwidth = 0, link = 0;  // 0: as the hardware says
  OutputOptions output;
  std::string sweep;
  std::vector<std::string> also;  // further curves of a sweep: "d=1024,f=1024"
  std::string plot;
};

// Writes the answer, and the plot when one was asked for. Throws Error for a user's mistake.
void answer(const Question& question, const RooflineOptions& options);

void write_hardware_table(const std::string& name,
                          const OutputOptions& output);  // all when the name is empty

}  // namespace tilewright::tw
