// What holds for every random graph, as a property of rapidcheck: it draws the seeds, and where one fails,
// walks the simpler cases of support/shrink.h to the smallest that still does.
#pragma once

#include "support/shrink.h"

#include <rapidcheck.h>

#include <functional>
#include <string>

namespace tilewright::test {

struct GraphProperty {
  std::uint64_t seed;  // of rapidcheck, which draws those of the graphs: the same in every run of the tests
  int cases;
  RandomGraphOptions (*options)(std::uint64_t seed);
  // What is wrong with a case, or nothing.
  std::function<std::string(const GraphCase&)> problem_with;
  std::string command = "graph_fuzz";  // that shows a case again
};

// What rapidcheck says of it. RC_PARAMS in the environment replaces seed and number of cases, as for every
// program of rapidcheck's.
rc::detail::TestResult check(const GraphProperty& property);

// Fails the test with the smallest graph and how to see it again.
void expect_holds(const GraphProperty& property);

}  // namespace tilewright::test
