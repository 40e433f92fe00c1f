// The text of programs. Whoever writes it is a script of ours, so that a mistake need not be told at length.
#include "programs/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace tilewright::programs {

std::vector<std::string> split(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  std::size_t begin = 0, end = 0;
  for (; (end = text.find(separator, begin)) != std::string::npos; begin = end + separator.size())
    parts.push_back(text.substr(begin, end - begin));
  parts.push_back(text.substr(begin));
  return parts;
}

Index parse_number(const std::string& text, const std::string& what) {
  Index number = 0;
  const char* end = text.data() + text.size();
  if (const auto [rest, error] = std::from_chars(text.data(), end, number);
      error != std::errc() || rest != end)
    throw std::runtime_error(fmt::format("{}: no whole number: '{}'", what, text));
  return number;
}

// A number by strtod(), which reads infinities and numbers below the least normal one, too.
double parse_real(const std::string& text, const std::string& what) {
  char* rest = nullptr;
  const double number = std::strtod(text.c_str(), &rest);
  if (text.empty() || rest != text.c_str() + text.size())
    throw std::runtime_error(fmt::format("{}: no number: '{}'", what, text));
  return number;
}

std::vector<Index> parse_numbers(const std::string& text, const std::string& what) {
  std::vector<Index> numbers;
  for (const std::string& part : split(text, ",")) numbers.push_back(parse_number(part, what));
  return numbers;
}

namespace {

// The text between the first `open` and the last `close`.
std::string between(const std::string& text, char open, char close) {
  const std::size_t begin = text.find(open), end = text.rfind(close);
  if (begin == std::string::npos || end == std::string::npos || end < begin)
    throw std::runtime_error("no " + std::string{open, close} + " in: " + text);
  return text.substr(begin + 1, end - begin - 1);
}

Statement parse_statement(const std::string& line) {
  Statement statement;
  const std::size_t equals = line.find(" = "), open = line.find('(');
  statement.result = line.substr(0, equals);
  statement.op = line.substr(equals + 3, open - equals - 3);
  for (const std::string& part : split(between(line, '(', ')'), ", ")) {
    const std::size_t at = part.find('=');
    if (at == std::string::npos)
      statement.operands.push_back(part);
    else
      statement.options[part.substr(0, at)] = part.substr(at + 1);
  }
  return statement;
}

// "v0: f32[3,4] …" or "c0: 0.5".
void parse_declaration(const std::string& line, Program& program) {
  const std::size_t colon = line.find(": "), bracket = line.find('[');
  const std::string name = line.substr(0, colon);
  if (bracket == std::string::npos) {
    program.literals[name] = line.substr(colon + 2);
    return;
  }
  const auto dtype = parse_dtype(line.substr(colon + 2, bracket - colon - 2));
  if (!dtype) throw std::runtime_error("no such type: " + line);
  const std::string extents = line.substr(bracket + 1, line.find(']') - bracket - 1);
  program.inputs.push_back({name, *dtype, Shape(parse_numbers(extents, name))});
}

Call parse_call(const std::vector<std::string>& words) {
  Call call;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string name = words[i].substr(0, equals), value = words[i].substr(equals + 1);
    if (value.starts_with('['))
      call.shapes[name] = Shape(parse_numbers(between(value, '[', ']'), name));
    else
      call.literals[name] = value;
  }
  return call;
}

void parse_gradient(const std::vector<std::string>& words, Program& program) {
  program.wanted = words[0] == "grad" ? Program::Wanted::gradient : Program::Wanted::second;
  program.results = {words.at(1)};
  for (const Index i : parse_numbers(words.at(2).substr(words[2].find('=') + 1), "wrt"))
    program.wrt.push_back(static_cast<int>(i));
}

}  // namespace

Program parse_program(const std::string& text) {
  Program program;
  program.calls.emplace_back();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = split(line, " ");
    if (words.empty() || words[0] == "seed" || line.starts_with('#')) continue;
    if (words[0] == "how")
      program.how.insert(words.begin() + 1, words.end());
    else if (words[0] == "out")
      program.results.assign(words.begin() + 1, words.end());
    else if (words[0] == "grad" || words[0] == "hess")
      parse_gradient(words, program);
    else if (words[0] == "call")
      program.calls.push_back(parse_call(words));
    else if (words[0].ends_with(':'))
      parse_declaration(line, program);
    else
      program.statements.push_back(parse_statement(line));
  }
  return program;
}

namespace {

std::string to_text(const Statement& statement) {
  std::vector<std::string> parts = statement.operands;
  for (const auto& [key, value] : statement.options) parts.push_back(fmt::format("{}={}", key, value));
  return fmt::format("{} = {}({})\n", statement.result, statement.op, fmt::join(parts, ", "));
}

std::string to_text(const Call& call) {
  std::string text = "call";
  for (const auto& [name, shape] : call.shapes) text += fmt::format(" {}={}", name, to_string(shape));
  for (const auto& [name, value] : call.literals) text += fmt::format(" {}={}", name, value);
  return text + "\n";
}

}  // namespace

std::string to_text(const Program& program) {
  std::string text;
  if (!program.how.empty()) text += fmt::format("how {}\n", fmt::join(program.how, " "));
  for (const Input& input : program.inputs)
    text += fmt::format("{}: {}{}\n", input.name, name(input.dtype), to_string(input.shape));
  for (const auto& [name, value] : program.literals) text += fmt::format("{}: {}\n", name, value);
  for (const Statement& statement : program.statements) text += to_text(statement);
  if (program.wanted == Program::Wanted::values) {
    text += fmt::format("out {}\n", fmt::join(program.results, " "));
  } else {
    const char* what = program.wanted == Program::Wanted::gradient ? "grad" : "hess";
    text += fmt::format("{} {} wrt={}\n", what, program.results.at(0), fmt::join(program.wrt, ","));
  }
  for (std::size_t i = 1; i < program.calls.size(); ++i) text += to_text(program.calls[i]);
  return text;
}

}  // namespace tilewright::programs
