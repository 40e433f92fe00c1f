// References, and the oracle with noise.
#include "pairs/truth.h"

#include <tilewright/base/philox.h>

#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "ops/ops.h"
#include "tensor/trace.h"

namespace tilewright::lab {

namespace {

constexpr double kFactor = 8;

double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  std::size_t count = 0;
  for (const double v : values) {
    if (!std::isfinite(v)) continue;
    sum += v * v;
    ++count;
  }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

// The root mean square of each element's row; short rows are taken together. Two runs move some elements
// hardly at all by chance, but not a whole row of them.
std::vector<double> by_rows(const std::vector<double>& spread, const Shape& shape) {
  constexpr std::size_t kFewest = 32;
  const auto columns = shape.rank() > 0 ? static_cast<std::size_t>(shape[shape.rank() - 1]) : 1;
  const std::size_t each =
      columns >= kFewest
          ? columns
          : std::max(std::size_t{1}, columns) * ((kFewest + columns - 1) / std::max(std::size_t{1}, columns));
  std::vector<double> out(spread.size());
  for (std::size_t begin = 0; begin < spread.size(); begin += each) {
    const std::size_t end = std::min(begin + each, spread.size());
    const std::vector<double> row(spread.begin() + static_cast<std::ptrdiff_t>(begin),
                                  spread.begin() + static_cast<std::ptrdiff_t>(end));
    std::fill(out.begin() + static_cast<std::ptrdiff_t>(begin),
              out.begin() + static_cast<std::ptrdiff_t>(end), root_mean_square(row));
  }
  return out;
}

Reference reference(std::vector<double> values, const std::vector<double>& spread, const OutputSpec& output) {
  Reference out{.values = std::move(values)};
  if (output.rule.kind == ToleranceRule::Kind::exact) return out;
  const double bound = tolerance(output.rule, static_cast<std::int64_t>(out.values.size()));
  const double size = root_mean_square(out.values), spreads = root_mean_square(spread);
  const double share = size > 0 ? spreads / size : 0;
  const std::vector<double> of_rows = by_rows(spread, output.shape);
  out.magnitude.resize(out.values.size());
  for (std::size_t i = 0; i < out.values.size(); ++i) {
    const double moved = std::isfinite(spread[i]) ? spread[i] : 0;  // of an infinity nothing is known
    const double far = std::max({moved, of_rows[i], share * std::fabs(out.values[i])});
    out.magnitude[i] = std::max(size, kFactor * far / bound);
  }
  return out;
}

}  // namespace

std::vector<Reference> references(Spread truth, const std::vector<OutputSpec>& outputs) {
  std::vector<Reference> all;
  all.reserve(outputs.size());
  for (std::size_t o = 0; o < outputs.size(); ++o)
    all.push_back(reference(std::move(truth[o]), truth[outputs.size() + o], outputs[o]));
  return all;
}

std::vector<Reference> unknown(const std::vector<OutputSpec>& outputs) {
  std::vector<Reference> all;
  all.reserve(outputs.size());
  for (const OutputSpec& output : outputs)
    all.push_back(
        {.values = {}, .known = {.length = std::max(Index{1}, output.shape.size()), .rows = {false}}});
  return all;
}

ir::Graph recorded(const std::function<std::vector<Tensor>(const std::vector<Tensor>&)>& function,
                   const std::vector<ir::Type>& inputs, Context& context) {
  const auto& state = context.state();
  auto trace = std::make_shared<detail::Trace>(detail::Trace::Of::compile, "main", Location::current());
  const auto device = state->device(context.options().device).device;
  std::vector<Tensor> arguments;
  arguments.reserve(inputs.size());
  for (const ir::Type& type : inputs) arguments.push_back(detail::make_tensor(state, type, device, nullptr));
  const auto leaves = [&](const std::vector<Tensor>& in) { return detail::leaves_of(function(in)); };
  detail::Recorded done = detail::record_function(leaves, arguments, inputs, trace, state);
  detail::finish(done);
  return trace->graph;
}

std::vector<ir::Type> types_of(const std::vector<InputSpec>& inputs) {
  std::vector<ir::Type> types;
  types.reserve(inputs.size());
  for (const InputSpec& input : inputs) types.push_back({input.dtype, input.shape});
  return types;
}

bool oracle_can(const ir::Graph& graph) {
  constexpr double kMostOperations = 1e9, kMostElements = 2e7;
  double operations = 0, elements = 0;
  for (const ir::Node& node : graph.nodes()) {
    const auto size = static_cast<double>(node.type.shape.size());
    elements += size;
    if (node.op->name != "matmul") continue;
    const Shape& a = graph.type(node.operands[0]).shape;
    operations += 2 * size * static_cast<double>(a[a.rank() - 1]);
  }
  return operations <= kMostOperations && elements <= kMostElements;
}

void RandomRounding::move(std::span<double> values, double roundoff, double underflow) {
  if (seed_ == 0) return;
  for (std::size_t i = 0; i < values.size(); i += 4) {
    const auto words = philox4x32((seed_ + 1) / 2, place_++);
    for (std::size_t w = 0; w < 4 && i + w < values.size(); ++w)
      if (double& v = values[i + w]; v != 0) {
        double drawn = 2 * static_cast<double>(uniform_f32(words[w])) - 1;
        if (seed_ % 2 == 0) drawn = drawn < 0 ? 1 + drawn : drawn - 1;
        v = v * (1 + roundoff * drawn) + underflow * drawn;
      }
  }
}

double roundoff(DType dtype) {
  const double sums = 8 * 0x1p-24;
  return dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : sums;
}

double underflow(DType dtype) { return dtype == DType::f16 ? 0x1p-25 : 0; }

double roundoff_of_sums(double terms) {
  return std::max(roundoff(DType::f32), 0x1p-24 * std::sqrt(terms / 2));
}

Spread spread_of(const std::function<HostArrays(RandomRounding& rounding)>& program, int runs) {
  RandomRounding none(0);
  Spread truth = program(none);
  const std::size_t count = truth.size();
  for (std::size_t o = 0; o < count; ++o) truth.emplace_back(truth[o].size(), 0.0);
  for (int run = 1; run <= runs; ++run) {
    RandomRounding rounding(static_cast<std::uint64_t>(run));
    const HostArrays noisy = program(rounding);
    for (std::size_t o = 0; o < count; ++o)
      for (std::size_t i = 0; i < noisy[o].size(); ++i)
        truth[count + o][i] = std::max(truth[count + o][i], std::fabs(noisy[o][i] - truth[o][i]));
  }
  return truth;
}

namespace {

// The same of the graph's products.
double roundoff_of_products(const ir::Graph& graph) {
  double terms = 1;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op->name != "matmul") continue;
    const Shape& a = graph.type(node.operands[0]).shape;
    terms = std::max(terms, static_cast<double>(a[a.rank() - 1]));
  }
  return roundoff_of_sums(terms);
}

ir::HostTensor host_tensor(const ir::Type& type, const HostArray& values) {
  ir::HostTensor out{.type = type, .f = {}, .i = {}};
  if (is_float(type.dtype))
    out.f = values;
  else
    out.i.assign(values.begin(), values.end());
  return out;
}

HostArrays evaluated(const ir::Graph& graph, const std::vector<ir::HostTensor>& inputs,
                     RandomRounding& rounding) {
  const double of_products = roundoff_of_products(graph);
  const ops::Observer move = [&](const ir::Node& node, ir::HostTensor& value) {
    if (node.op->kind == ir::OpClass::constant) return;
    const double most = node.op->kind == ir::OpClass::input ? of_products : roundoff(node.type.dtype);
    rounding.move(value.f, most, underflow(node.type.dtype));
  };
  HostArrays all;
  for (ir::HostTensor& out : ops::evaluate(graph, inputs, move)) {
    if (is_float(out.type.dtype))
      all.push_back(std::move(out.f));
    else
      all.emplace_back(out.i.begin(), out.i.end());
  }
  return all;
}

}  // namespace

Spread by_oracle(const ir::Graph& graph, const HostArrays& inputs, int runs) {
  std::vector<ir::HostTensor> given;
  given.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    given.push_back(host_tensor(graph.type(graph.inputs()[i]), inputs[i]));
  return spread_of([&](RandomRounding& rounding) { return evaluated(graph, given, rounding); }, runs);
}

}  // namespace tilewright::lab
