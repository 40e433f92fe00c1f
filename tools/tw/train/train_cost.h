// The arithmetic of a training, and MFU: its share of what the device could do.
#pragma once

#include <tilewright/nn/gpt2.h>
#include <tilewright/passes/graph/precision.h>

#include <string>

namespace tilewright::tw {

// "6N + 6LCT FLOPs a token …": what mfu is, in a sentence, for help and for reports.
extern const char* const kMfuFormula;

struct TrainCost {
  double parameters = 0;       // N: all but the table of positions, which multiplies nothing
  double flops_per_token = 0;  // 6N, and 6LCT of the attention
  double peak_flops_per_s = 0;
  std::string peak_source;  // "measured by …", "rules of thumb …"
  double mfu(double tokens_per_s) const { return tokens_per_s * flops_per_token / peak_flops_per_s; }
};
// The cost of a model on the Context's device, with products of this precision.
TrainCost train_cost(Context& ctx, const nn::GPT2& model, const nn::GPT2Config& config, Precision precision);

}  // namespace tilewright::tw
