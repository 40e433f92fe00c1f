// The suites: what each is for. Which pairs are in them, at which sizes, the pairs say.
#include "pairs/pairs.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::lab {

std::vector<Suite> suites_of(PairList pairs) {
  // Past the last-level cache still, but no more than that needs.
  std::vector<Suite> suites = {
      {.name = "quick", .doc = "each kind of work once, in at most 90 s on two cores"},
      {.name = "products", .doc = "every pair around matrix products, at sizes that suit any machine"}};
  for (const Pair& pair : pairs)
    for (const Pair::InSuite& in : pair.suites) {
      const auto suite =
          std::find_if(suites.begin(), suites.end(), [&](const Suite& s) { return s.name == in.suite; });
      TW_CHECK(suite != suites.end(),
               fmt::format("{} is in a suite '{}' that nobody has", pair.name, in.suite));
      suite->entries.push_back({pair.name, in.settings});
    }
  return suites;
}

std::vector<Suite> all_suites() { return suites_of(all_pairs()); }

}  // namespace tilewright::lab
