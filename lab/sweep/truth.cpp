// References, and the oracle with noise.
#include "sweep/truth.h"

#include <tilewright/base/philox.h>

#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "ops/ops.h"

namespace tilewright::sweep {

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

lab::Reference reference(std::vector<double> values, const std::vector<double>& spread,
                         const lab::OutputSpec& output) {
  lab::Reference out{.values = std::move(values)};
  if (output.rule.kind == lab::ToleranceRule::Kind::exact) return out;
  const double bound = lab::tolerance(output.rule, static_cast<std::int64_t>(out.values.size()));
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

std::vector<lab::Reference> references(Spread truth, const std::vector<lab::OutputSpec>& outputs) {
  std::vector<lab::Reference> all;
  all.reserve(outputs.size());
  for (std::size_t o = 0; o < outputs.size(); ++o)
    all.push_back(reference(std::move(truth[o]), truth[outputs.size() + o], outputs[o]));
  return all;
}

std::vector<lab::Reference> unknown(const std::vector<lab::OutputSpec>& outputs) {
  std::vector<lab::Reference> all;
  all.reserve(outputs.size());
  for (const lab::OutputSpec& output : outputs)
    all.push_back({.values = std::vector<double>(static_cast<std::size_t>(output.shape.size())),
                   .known = {.length = std::max(Index{1}, output.shape.size()), .rows = {false}}});
  return all;
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

namespace {

// Half the distance of neighbours relative to a value; of sums in f32 no less than what they do to their
// terms.
double roundoff(DType dtype) {
  const double sums = 8 * 0x1p-24;
  return dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : sums;
}

// The same of what a product's sums of `terms` do to each term: they may be added up one after another, and
// each of the partial sums, as large as the root of the terms so far, is rounded (lab/peers/truth.py).
double roundoff_of_products(const ir::Graph& graph) {
  double terms = 1;
  for (const ir::Node& node : graph.nodes()) {
    if (node.op->name != "matmul") continue;
    const Shape& a = graph.type(node.operands[0]).shape;
    terms = std::max(terms, static_cast<double>(a[a.rank() - 1]));
  }
  return std::max(roundoff(DType::f32), 0x1p-24 * std::sqrt(terms / 2));
}

// Half of the least number: what rounding does to smaller ones. Those of other types no program sees.
double underflow(DType dtype) { return dtype == DType::f16 ? 0x1p-25 : 0; }

ir::HostTensor host_tensor(const ir::Type& type, const lab::HostArray& values) {
  ir::HostTensor out{.type = type, .f = {}, .i = {}};
  if (is_float(type.dtype))
    out.f = values;
  else
    out.i.assign(values.begin(), values.end());
  return out;
}

std::vector<std::vector<double>> evaluated(const ir::Graph& graph, const std::vector<ir::HostTensor>& inputs,
                                           std::uint64_t noise) {
  std::uint64_t place = 0;
  const double of_products = roundoff_of_products(graph);
  const ops::Observer move = [&](const ir::Node& node, ir::HostTensor& value) {
    const double most = node.op->kind == ir::OpClass::input ? of_products : roundoff(node.type.dtype);
    if (node.op->kind == ir::OpClass::constant) return;
    for (std::size_t i = 0; i < value.f.size(); i += 4) {
      const auto words = philox4x32(noise, place++);
      for (std::size_t w = 0; w < 4 && i + w < value.f.size(); ++w)
        if (double& v = value.f[i + w]; v != 0) {
          const double drawn = 2 * static_cast<double>(uniform_f32(words[w])) - 1;
          v = v * (1 + most * drawn) + underflow(node.type.dtype) * drawn;
        }
    }
  };
  std::vector<std::vector<double>> all;
  for (ir::HostTensor& out : noise == 0 ? ops::evaluate(graph, inputs) : ops::evaluate(graph, inputs, move)) {
    if (is_float(out.type.dtype))
      all.push_back(std::move(out.f));
    else
      all.emplace_back(out.i.begin(), out.i.end());
  }
  return all;
}

}  // namespace

Spread by_oracle(const ir::Graph& graph, const lab::HostArrays& inputs) {
  std::vector<ir::HostTensor> given;
  given.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    given.push_back(host_tensor(graph.type(graph.inputs()[i]), inputs[i]));
  Spread truth = evaluated(graph, given, 0);
  const std::size_t count = truth.size();
  for (std::size_t o = 0; o < count; ++o) truth.emplace_back(truth[o].size(), 0.0);
  for (const std::uint64_t noise : {1, 2}) {
    const auto noisy = evaluated(graph, given, noise);
    for (std::size_t o = 0; o < count; ++o)
      for (std::size_t i = 0; i < noisy[o].size(); ++i)
        truth[count + o][i] = std::max(truth[count + o][i], std::fabs(noisy[o][i] - truth[o][i]));
  }
  return truth;
}

}  // namespace tilewright::sweep
