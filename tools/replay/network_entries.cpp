// Whole networks with their gradients: layers that repeat, and a training step.
#include "support/program_families.h"
#include "support/training_step.h"

#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "replay/corpus.h"

namespace tilewright::replay {

namespace {

ir::Graph residual_layers(int layers) {
  const std::vector<test::ProgramFamily>& families = test::program_families();
  const auto family = std::find_if(families.begin(), families.end(), [](const test::ProgramFamily& f) {
    return std::string_view(f.name) == "residual_layers";
  });
  TW_CHECK(family != families.end(), "the family of residual layers has another name");
  return test::program_of(*family, test::Derivative::first, layers);
}

}  // namespace

std::vector<CorpusEntry> network_entries() {
  std::vector<CorpusEntry> out;
  for (const DType compute : {DType::f32, DType::bf16})
    out.push_back(graph_entry(fmt::format("network/gpt2_training_step layers=2 {}", name(compute)),
                              [compute] { return graph_of(test::TrainingStep{.compute = compute}); }));
  for (const int layers : {16, 4, 1})
    out.push_back(graph_entry(fmt::format("network/residual_layers layers={} gradient", layers),
                              [layers] { return residual_layers(layers); }, {.in_short = layers == 1}));
  return out;
}

}  // namespace tilewright::replay
