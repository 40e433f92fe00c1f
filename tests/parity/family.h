// The option that says which random graphs are drawn.
#pragma once

#include "support/random_graph.h"

#include <CLI/CLI.hpp>

#include <map>
#include <string>

namespace tilewright::test {

template <class Family>  // or an optional one
void add_family(CLI::App& app, Family& family) {
  const std::map<std::string, GraphFamily> names = {{"mixed", GraphFamily::mixed},
                                                    {"tiny", GraphFamily::tiny}};
  app.add_option("--family", family, "mixed, or tiny: products and reductions of one-wide and odd shapes")
      ->transform(CLI::CheckedTransformer(names));
}

}  // namespace tilewright::test
