// Smaller cases of one that fails: graphs of simpler lists of answers (choices.h), and what is cut off these.
#pragma once

#include "support/cut_graph.h"
#include "support/random_graph.h"

#include <functional>
#include <map>
#include <optional>
#include <string>

namespace tilewright::test {

// Shorter, or as long and smaller where the two first differ.
bool is_simpler(const Numbers& a, const Numbers& b);

// Lists to try in the place of `numbers`: without a piece of it, the longest pieces and the last first; then
// with a number that is smaller. All of them are simpler than it.
class SimplerNumbers {
 public:
  explicit SimplerNumbers(Numbers numbers);
  std::optional<Numbers> next();

 private:
  std::optional<Numbers> without_a_piece();
  std::optional<Numbers> with_a_smaller_number();

  Numbers numbers_;
  std::size_t length_, begin_;           // of the next piece
  std::size_t place_ = 0, attempt_ = 0;  // of the next number, and how it is made smaller
};

// A graph of the generator, with all that it was answered; without numbers, any other graph.
struct GraphCase {
  RandomGraphOptions options;  // with the seed by which it was drawn, and by which its inputs are
  Numbers numbers;
  ir::Graph graph;
};
GraphCase graph_case(const RandomGraphOptions& options);
// `numbers` may be any; the case has those that were asked for.
GraphCase graph_case(const RandomGraphOptions& options, const Numbers& numbers);

// The cases of SimplerNumbers whose answers are simpler than those of `from`: the generator makes shapes and
// types smaller. Then what it would not make: the graph's cuts, of which only cuts are simpler.
class SimplerCases {
 public:
  explicit SimplerCases(GraphCase from)
      : from_(std::move(from)), numbers_(from_.numbers), cuts_(cuts(from_.graph)) {}
  std::optional<GraphCase> next();

 private:
  GraphCase from_;
  SimplerNumbers numbers_;
  std::vector<ir::Graph> cuts_;
  std::size_t cut_ = 0;
};

// Asks of each graph once what is wrong with it, from the first on with which something is: most lists of
// answers make a graph that another has made.
class AskedOnce {
 public:
  using Question = std::function<std::string(const GraphCase&)>;
  explicit AskedOnce(Question question) : question_(std::move(question)) {}
  std::string operator()(const GraphCase& graph);

 private:
  Question question_;
  std::map<std::string, std::string> answers_;  // by the graph's text; all of one seed
};

// The first simpler case that fails, and of it again, until none does.
GraphCase shrink(GraphCase failing, AskedOnce& problem_with);

// The graph's text, and how to see it again: `command` is the program and its options.
std::string describe(const GraphCase& graph, const std::string& command);

}  // namespace tilewright::test
