// One evaluated point of a roofline question, shared by the answers to single points and to sweeps.
#pragma once

#include <nlohmann/json.hpp>

#include <vector>

#include "tw/roofline/roofline_question.h"

namespace tilewright::tw {

using Json = nlohmann::ordered_json;

struct Answer {
  perf::Cost cost;
  perf::Bounds bounds;
  std::vector<Fact> facts;

  // FLOP/s at the lower bound; 0 without work.
  double attainable() const { return bounds.lower_s > 0 ? cost.flops() / bounds.lower_s : 0; }
  // The bytes that bounds.t_comms_s is about.
  double traffic() const { return cost.link_bytes > 0 ? cost.link_bytes : cost.bytes(); }
};

Answer evaluate(const Question& question, const perf::Hardware& hardware);

Json point_json(const Answer& answer);
// The workload, its extents and settings, and the hardware's name.
Json head_json(const Question& question, const perf::Hardware& hardware);

// Varies an extent over its values and prints or plots the curves.
void answer_sweep(const Question& question, const RooflineOptions& options, const perf::Hardware& hardware);

}  // namespace tilewright::tw
