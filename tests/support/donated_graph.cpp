// The last value of each input's type becomes an output.
#include "support/donated_graph.h"

#include <algorithm>

namespace tilewright::test {

ir::Graph with_fitting_outputs(ir::Graph graph) {
  std::vector<ir::NodeId> outputs = graph.outputs();
  const std::vector<ir::NodeId> inputs = graph.inputs();
  const auto is_among = [](const std::vector<ir::NodeId>& ids, ir::NodeId id) {
    return std::find(ids.begin(), ids.end(), id) != ids.end();
  };
  for (const ir::NodeId input : inputs)
    for (ir::NodeId id = graph.size() - 1; id >= 0; --id)
      if (graph.type(id) == graph.type(input) && !is_among(inputs, id) && !is_among(outputs, id)) {
        outputs.push_back(id);
        break;
      }
  graph.set_outputs(outputs);
  return graph;
}

passes::Compiled donating(passes::Compiled compiled) {
  std::vector<passes::Overwrite> all;
  all.reserve(compiled.graph.inputs().size());
  for (int i = 0; i < static_cast<int>(compiled.graph.inputs().size()); ++i) all.push_back({-1, {i}});
  compiled.overwriting = passes::overwrite_inputs(compiled.plan, compiled.variants, all);
  return compiled;
}

int donations(const passes::Compiled& compiled) {
  return static_cast<int>(std::count_if(compiled.overwriting.begin(), compiled.overwriting.end(),
                                        [](const auto& o) { return o.why_not.empty(); }));
}

}  // namespace tilewright::test
