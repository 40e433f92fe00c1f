// The option that says which random graphs are drawn.
#pragma once

#include "support/random_graph.h"

#include <CLI/CLI.hpp>

#include <map>
#include <string>

namespace tilewright::test {

inline std::map<std::string, GraphFamily> graph_families() {
  return {{"any", GraphFamily::any},
          {"mixed", GraphFamily::mixed},
          {"products", GraphFamily::products},
          {"joined", GraphFamily::joined},
          {"tiny", GraphFamily::tiny}};
}

// " --family tiny", as a command has it.
inline std::string family_option(GraphFamily family) {
  for (const auto& [name, each] : graph_families())
    if (each == family && family != GraphFamily::mixed) return " --family " + name;
  return "";
}

template <class Family>  // or an optional one
void add_family(CLI::App& app, Family& family) {
  app.add_option("--family", family, "of random graphs (random_graph.h); any: each seed has its own")
      ->transform(CLI::CheckedTransformer(graph_families()));
}

}  // namespace tilewright::test
