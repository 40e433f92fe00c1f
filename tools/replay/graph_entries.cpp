// Stage programs, random graphs and random matmuls. Seeds and counts are fixed: what they draw is the corpus.
#include "support/graph_check.h"
#include "support/product_graphs.h"
#include "support/random_graph.h"
#include "support/stage_programs.h"

#include <fmt/format.h>

#include "replay/corpus.h"

namespace tilewright::replay {

namespace {
constexpr std::uint64_t kGraphs = 300, kProducts = 100;
// Every so many is in the shortened form.
constexpr std::uint64_t kShortGraphs = 5, kShortProducts = 10;
}  // namespace

std::vector<CorpusEntry> stage_entries() {
  std::vector<CorpusEntry> out;
  for (const test::StageProgram& program : test::stage_programs())
    out.push_back(graph_entry(fmt::format("stage/{}", program.name),
                              [&program] { return test::graph_of(program); }, {.in_short = true}));
  return out;
}

std::vector<CorpusEntry> random_graph_entries() {
  std::vector<CorpusEntry> out;
  for (std::uint64_t seed = 1; seed <= kGraphs; ++seed)
    out.push_back(
        graph_entry(fmt::format("graph/{}", seed),
                    [seed] { return test::random_graph(test::graph_of_seed(seed, test::GraphFamily::any)); },
                    {.recompute = seed % 8 == 0, .in_short = seed % kShortGraphs == 0}));
  return out;
}

std::vector<CorpusEntry> product_entries() {
  std::vector<CorpusEntry> out;
  const auto add = [&](const test::ProductGraph& product, const std::string& name, bool in_short) {
    for (const bool tf32 : {false, true})
      if (!tf32 || product.dtype == DType::f32)
        out.push_back(graph_entry(fmt::format("{} {}{}", name, to_string(product), tf32 ? " tf32" : ""),
                                  [product] { return graph_of(product); },
                                  {.tf32 = tf32, .in_short = in_short}));
  };
  int number = 0;
  for (const test::ProductGraph& product : test::large_products())
    add(product, fmt::format("large_product/{}", ++number), false);
  for (std::uint64_t seed = 1; seed <= kProducts; ++seed)
    add(test::random_product(seed), fmt::format("product/{}", seed), seed % kShortProducts == 0);
  return out;
}

}  // namespace tilewright::replay
