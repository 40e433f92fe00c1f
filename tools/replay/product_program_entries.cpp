// Random programs around products, their gradients and second derivatives.
#include "support/product_programs.h"

#include <fmt/format.h>

#include "replay/corpus.h"

namespace tilewright::replay {

namespace {
constexpr std::uint64_t kPrograms = 100, kShort = 10;  // every so many is in the shortened form
}

std::vector<CorpusEntry> product_program_entries() {
  std::vector<CorpusEntry> out;
  for (std::uint64_t seed = 1; seed <= kPrograms; ++seed)
    out.push_back(graph_entry(fmt::format("product_program/{}", seed),
                              [seed] {
                                test::Random random(seed);
                                return test::random_product_program(random).graph;
                              },
                              {.recompute = seed % 8 == 0, .in_short = seed % kShort == 0}));
  return out;
}

}  // namespace tilewright::replay
