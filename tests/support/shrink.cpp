// What is simpler, in which order it is tried.
#include "support/shrink.h"

#include "ir/text.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::test {

namespace {

// An op of a generator asks up to about as often as this. Pieces up to here begin everywhere, so that one of
// them is what an op asked; longer ones lie side by side.
constexpr std::size_t kLongestOp = 16;

}  // namespace

bool is_simpler(const Numbers& a, const Numbers& b) {
  if (a.size() != b.size()) return a.size() < b.size();
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end());
}

SimplerNumbers::SimplerNumbers(Numbers numbers)
    : numbers_(std::move(numbers)), length_(numbers_.size()), begin_(0) {}

std::optional<Numbers> SimplerNumbers::next() {
  if (length_ > 0) return without_a_piece();
  return with_a_smaller_number();
}

std::optional<Numbers> SimplerNumbers::without_a_piece() {
  Numbers out = numbers_;
  const auto begin = out.begin() + static_cast<std::ptrdiff_t>(begin_);
  out.erase(begin, begin + static_cast<std::ptrdiff_t>(length_));
  const std::size_t step = length_ > kLongestOp ? length_ : 1;
  if (begin_ >= step) {
    begin_ -= step;
  } else {
    length_ = length_ > kLongestOp ? std::max(length_ / 2, kLongestOp) : length_ - 1;
    begin_ = numbers_.size() - length_;
  }
  return out;
}

std::optional<Numbers> SimplerNumbers::with_a_smaller_number() {
  for (; place_ < numbers_.size(); ++place_, attempt_ = 0) {
    const std::uint64_t value = numbers_[place_];
    // Smaller numbers are 0, half, and one less, each tried once. One less is nothing simpler for a number
    // this large, which is no choice of few.
    constexpr std::uint64_t kCountable = 64;
    Numbers attempts;
    if (value > 0) attempts.push_back(0);
    if (value > 1) attempts.push_back(value / 2);
    if (value > 2 && value < kCountable) attempts.push_back(value - 1);
    if (attempt_ >= attempts.size()) continue;
    Numbers out = numbers_;
    out[place_] = attempts[attempt_++];
    return out;
  }
  return std::nullopt;
}

GraphCase graph_case(const RandomGraphOptions& options) {
  Random random(options.seed);
  RecordedChoices choices(random);
  ir::Graph graph = random_graph(options, choices);
  return {options, choices.numbers(), std::move(graph)};
}

GraphCase graph_case(const RandomGraphOptions& options, const Numbers& numbers) {
  ListedChoices listed(numbers);
  RecordedChoices choices(listed);
  ir::Graph graph = random_graph(options, choices);
  return {options, choices.numbers(), std::move(graph)};
}

std::optional<GraphCase> SimplerCases::next() {
  while (const std::optional<Numbers> numbers = numbers_.next()) {
    GraphCase simpler = graph_case(from_.options, *numbers);
    if (is_simpler(simpler.numbers, from_.numbers)) return simpler;
  }
  if (cut_ < cuts_.size()) return GraphCase{from_.options, {}, cuts_[cut_++]};
  return std::nullopt;
}

std::string AskedOnce::operator()(const GraphCase& graph) {
  const auto asked = answers_.empty() ? answers_.end() : answers_.find(ir::print(graph.graph));
  if (asked != answers_.end()) return asked->second;
  std::string answer = question_(graph);
  if (!answers_.empty() || !answer.empty()) answers_[ir::print(graph.graph)] = answer;
  return answer;
}

GraphCase shrink(GraphCase failing, AskedOnce& problem_with) {
  SimplerCases cases(failing);
  while (std::optional<GraphCase> simpler = cases.next()) {
    if (problem_with(*simpler).empty()) continue;
    failing = std::move(*simpler);
    cases = SimplerCases(failing);
  }
  return failing;
}

std::string describe(const GraphCase& graph, const std::string& command) {
  return fmt::format("{}in a file: {} --graph FILE --seed {}\nas it was drawn: {} --seed {} --count 1\n",
                     ir::print(graph.graph), command, graph.options.seed, command, graph.options.seed);
}

}  // namespace tilewright::test
