// Random graphs as rapidcheck's values.
#include "properties/graph_property.h"

#include <gtest/gtest.h>

#include <rapidcheck/detail/TestListenerAdapter.h>

#include <cstdlib>
#include <sstream>

namespace tilewright::test {

namespace {

// The graphs are small whatever they are: rapidcheck's size, which grows from case to case, is not looked at.
rc::Gen<GraphCase> graph_cases(RandomGraphOptions (*options)(std::uint64_t seed)) {
  return [options](const rc::Random& random, int /*size*/) {
    const std::uint64_t seed = rc::Random(random).next();
    return rc::shrinkable::shrinkRecur(graph_case(options(seed)), [](const GraphCase& from) {
      return rc::Seq<GraphCase>([cases = SimplerCases(from)]() mutable -> rc::Maybe<GraphCase> {
        if (std::optional<GraphCase> simpler = cases.next()) return *std::move(simpler);
        return rc::Nothing;
      });
    });
  };
}

}  // namespace

rc::detail::TestResult check(const GraphProperty& property) {
  const char* given = std::getenv("RC_PARAMS");
  rc::detail::Configuration defaults;
  defaults.testParams = {.seed = property.seed, .maxSuccess = property.cases};
  const rc::detail::Configuration configuration =
      rc::detail::configFromString(given == nullptr ? "" : given, defaults);
  const rc::Gen<GraphCase> cases = graph_cases(property.options);
  AskedOnce problem_with(property.problem_with);
  const auto holds = [&] {
    const GraphCase graph = *cases;
    const std::string problem = problem_with(graph);
    if (!problem.empty()) RC_FAIL(problem + "\n" + describe(graph, property.command));
  };
  rc::detail::TestListenerAdapter quiet;
  return rc::detail::checkProperty(rc::detail::toProperty(holds), {}, configuration.testParams, quiet,
                                   configuration.reproduce);
}

void expect_holds(const GraphProperty& property) {
  const rc::detail::TestResult result = check(property);
  if (result.is<rc::detail::SuccessResult>()) return;
  std::ostringstream text;
  rc::detail::printResultMessage(result, text);
  ADD_FAILURE() << text.str();
}

}  // namespace tilewright::test
