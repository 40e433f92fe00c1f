// Programs as text, a statement a line, which the library runs here: the judge's (tests/judge, where PyTorch
// runs the same text in torch_ops.py) and the sweep's (lab/sweep), which draws statements:
//   seed 17                            how calls and values of inputs are drawn: values.py
//   how eager                          what is tried beside compile(): see Program::how
//   v0: f32[3,4]                       an input; what follows the type says what it holds, to the script
//   c0: 0.5                            a literal, which calls may change
//   v1 = sum(v0, axes=0, keep=1)       an op with operands, then options
//   out v1 v0                          the results, or
//   grad v9 wrt=0,1                    value_and_grad of a scalar by these inputs, or
//   hess v9 wrt=0,1                    the same of the sum of squares of these gradients
//   call v0=[5,4] c0=2                 the same function once more, with other shapes or literals
#pragma once

#include <tilewright/tensor/compile.h>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace tilewright::programs {

struct Statement {
  std::string result, op;
  std::vector<std::string> operands;
  std::map<std::string, std::string> options;
};

struct Input {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
};

struct Call {
  std::map<std::string, Shape> shapes;
  std::map<std::string, std::string> literals;
};

struct Program {
  // eager: no compile(); closure: inputs without a gradient are captured; unfused, recompute, deterministic,
  // dynamic: CompileOptions.
  std::set<std::string> how;
  std::vector<Input> inputs;
  std::map<std::string, std::string> literals;
  std::vector<Statement> statements;
  enum class Wanted { values, gradient, second } wanted = Wanted::values;
  std::vector<std::string> results;
  std::vector<int> wrt;
  std::vector<Call> calls;  // the first has nothing changed
};

// Throws std::runtime_error with the line that is none.
Program parse_program(const std::string& text);
std::string to_text(const Program& program);  // that is read as it

// All of the text is the number; else throws std::runtime_error, which begins with `what` it is of.
Index parse_number(const std::string& text, const std::string& what);
double parse_real(const std::string& text, const std::string& what);
// "1,-2,3"; nothing for an empty text.
std::vector<Index> parse_numbers(const std::string& text, const std::string& what);
std::vector<std::string> split(const std::string& text, const std::string& separator);

// What a name stands for while a program runs.
using Values = std::map<std::string, Tensor>;
using Literals = std::map<std::string, std::string>;
// The statement's result by the library's functions.
Tensor evaluate(const Statement& statement, const Values& values, const Literals& literals);
// The whole program by evaluate(), with its gradients where they are wanted. `program` and `literals` must
// outlive it: a caller may change the literals between calls.
detail::ListFunction function_of(const Program& program, const Literals& literals);

}  // namespace tilewright::programs
