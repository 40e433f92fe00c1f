// A row for each op whose PyTorch expression is one: {0} is an operand, {axis} an option.
#include <tilewright/base/error.h>

#include <fmt/format.h>

#include "sweep/draft.h"

namespace tilewright::sweep {

namespace {

struct TorchRow {
  const char *op, *expression;
};
constexpr TorchRow kRows[] = {
    {"add", "{0} + {1}"},
    {"sub", "{0} - {1}"},
    {"mul", "{0} * {1}"},
    {"div", "{0} / {1}"},
    {"maximum", "torch.maximum({0}, {1})"},
    {"minimum", "torch.minimum({0}, {1})"},
    {"neg", "-{0}"},
    {"abs", "{0}.abs()"},
    {"sqrt", "{0}.sqrt()"},
    {"rsqrt", "{0}.rsqrt()"},
    {"square", "{0}.square()"},
    {"exp", "{0}.exp()"},
    {"log", "{0}.log()"},
    {"log1p", "{0}.log1p()"},
    {"sin", "{0}.sin()"},
    {"cos", "{0}.cos()"},
    {"tanh", "torch.tanh({0})"},
    {"erf", "torch.erf({0})"},
    {"sigmoid", "torch.sigmoid({0})"},
    {"relu", "F.relu({0})"},
    {"silu", "F.silu({0})"},
    {"softplus", "F.softplus({0})"},
    {"gelu", "F.gelu({0})"},
    {"gelu_tanh", "F.gelu({0}, approximate=\"tanh\")"},
    {"elu", "F.elu({0})"},
    {"clamp", "{0}.clamp({low}, {high})"},
    {"reshape", "{0}.reshape({shape})"},
    {"broadcast_to", "{0}.expand({shape})"},
    {"transpose", "{0}.permute({perm})"},
    {"swap_axes", "{0}.transpose({a}, {b})"},
    {"unsqueeze", "{0}.unsqueeze({axis})"},
    {"squeeze", "{0}.squeeze({axis})"},
    {"flip", "{0}.flip({axes})"},
    {"sum", "{0}.sum(({axes},), keepdim={keep})"},
    {"mean", "{0}.mean(({axes},), keepdim={keep})"},
    {"max", "{0}.amax(({axes},), keepdim={keep})"},
    {"min", "{0}.amin(({axes},), keepdim={keep})"},
    {"logsumexp", "{0}.logsumexp(({axes},), keepdim={keep})"},
    {"var", "{0}.var(({axes},), unbiased=False, keepdim={keep})"},
    {"argmax", "{0}.argmax({axis}, keepdim={keep})"},
    {"argmin", "{0}.argmin({axis}, keepdim={keep})"},
    {"cumsum", "{0}.cumsum({axis})"},
    {"softmax", "F.softmax({0}, dim={axis})"},
    {"log_softmax", "F.log_softmax({0}, dim={axis})"},
    {"matmul", "{0} @ {1}"},
    {"embedding", "F.embedding({1}, {0})"},
    {"take_along", "{0}.gather({axis}, {1})"},
};

std::string word(const programs::Statement& statement, const std::string& key) {
  if (key.size() == 1 && key[0] >= '0' && key[0] <= '9')
    return statement.operands.at(static_cast<std::size_t>(key[0] - '0'));
  const auto found = statement.options.find(key);
  if (key == "keep") return found != statement.options.end() && found->second == "1" ? "True" : "False";
  TW_CHECK(found != statement.options.end(), "a drawn statement gives every option that PyTorch's has");
  return found->second;
}

// "a:b" of an axis counted from the front.
std::string slice_text(const programs::Statement& statement) {
  std::string text = statement.operands.at(0) + "[";
  for (Index axis = programs::parse_number(statement.options.at("axis"), statement.op); axis > 0; --axis)
    text += ":, ";
  const auto option = [&](const char* key) {
    const auto found = statement.options.find(key);
    return found == statement.options.end() ? "" : found->second;
  };
  text += option("start") + ":" + option("stop");
  if (!option("step").empty()) text += ":" + option("step");
  return text + "]";
}

// F.pad takes pairs from the last axis on; the statement's axis counts from the back.
std::string pad_text(const programs::Statement& statement) {
  std::string pairs;
  for (Index axis = programs::parse_number(statement.options.at("axis"), statement.op); axis < -1; ++axis)
    pairs += "0, 0, ";
  return fmt::format("F.pad({}, ({}{}, {}), value={})", statement.operands.at(0), pairs,
                     statement.options.at("low"), statement.options.at("high"),
                     statement.options.at("value"));
}

std::string joined(const programs::Statement& statement, const char* function) {
  std::string parts;
  for (const std::string& operand : statement.operands) parts += (parts.empty() ? "" : ", ") + operand;
  return fmt::format("{}([{}], dim={})", function, parts, statement.options.at("axis"));
}

}  // namespace

std::string torch_expression(const programs::Statement& statement) {
  if (statement.op == "slice") return slice_text(statement);
  if (statement.op == "pad") return pad_text(statement);
  if (statement.op == "concat") return joined(statement, "torch.cat");
  if (statement.op == "stack") return joined(statement, "torch.stack");
  for (const TorchRow& row : kRows) {
    if (statement.op != row.op) continue;
    std::string text = row.expression;
    for (std::size_t open = 0; (open = text.find('{')) != std::string::npos;) {
      const std::size_t close = text.find('}', open);
      text.replace(open, close - open + 1, word(statement, text.substr(open + 1, close - open - 1)));
    }
    return text;
  }
  TW_CHECK(false, "families write PyTorch's side of other ops themselves");
  return {};
}

}  // namespace tilewright::sweep
