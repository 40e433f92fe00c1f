// The parts of the verifier, and their sum before it becomes text. Each returns what is wrong, empty when
// nothing is.
#pragma once

#include <tilewright/tile/kernel.h>

#include <string>

namespace tilewright::tile {

// Names, views, scalars and the grid.
std::string check_params(const Kernel& kernel);
// Fields, operand counts, types and shapes of one op whose value ids are valid.
std::string check_op(const Kernel& kernel, const Op& op);

// What is wrong with an op, to be reported with the op's text and place.
struct OpProblem {
  const Op* op = nullptr;
  std::string message;
  bool is_there() const { return !message.empty(); }
};
// Blocks that leave their view, meet between programs, or are read while another program writes them. The
// kernel is well formed otherwise.
OpProblem check_access(const Kernel& kernel);

// The first of all problems, of an op or of the whole kernel, and its text as verify() gives it.
OpProblem first_problem(const Kernel& kernel);
std::string to_string(const Kernel& kernel, const OpProblem& problem);

}  // namespace tilewright::tile
