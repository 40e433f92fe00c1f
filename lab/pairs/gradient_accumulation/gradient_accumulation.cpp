// gradient_accumulation: the gradient of a batch in `parts` micro-batches, added up: in one program; against
// all rows at once, which holds more; and against a call for each part, as tw train makes them. All give the
// gradient of the mean over the whole batch.
#include <tilewright/nn/optimizer.h>

#include <fmt/format.h>

#include "pairs/mlp_stack.h"
#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"

namespace tilewright::lab {

namespace {

using List = std::vector<Tensor>;

List weights_of(const List& in) { return {in.begin() + 2, in.end()}; }

// Loss and gradients of all rows.
List whole(const List& in) { return mlp_gradient(in[0], in[1], weights_of(in)); }

List rows_of(const List& in, Index part, Index parts) {
  const Index rows = in[0].shape()[0] / parts;
  const auto own = [&](const Tensor& t) { return slice(t, 0, {part * rows, (part + 1) * rows}); };
  List out{own(in[0]), own(in[1])};
  out.insert(out.end(), in.begin() + 2, in.end());
  return out;
}

List in_parts(const List& in, Index parts) {
  const double share = 1 / static_cast<double>(parts);
  List sum;
  for (Index part = 0; part < parts; ++part) {
    const List own = whole(rows_of(in, part, parts));
    sum = nn::accumulate(sum.empty() ? nn::no_gradient(own) : sum, own, share);
  }
  return sum;
}

// A call of the first part, and calls of another program that add the others, into the sum's own memory.
TensorFunction by_calls(Index parts, std::size_t weights, const CompileOptions& options) {
  const double share = 1 / static_cast<double>(parts);
  const auto scaled = [share](const List& in) {
    return map_tensors([&](const Tensor& g) { return g * share; }, whole(in));
  };
  CompileOptions adding = options;
  for (std::size_t i = 0; i <= weights; ++i) adding.donate.push_back(static_cast<int>(i));
  const auto add = [share, weights](const List& in) {
    const auto end = in.begin() + static_cast<std::ptrdiff_t>(1 + weights);
    return nn::accumulate(List(in.begin(), end), whole(List(end, in.end())), share);
  };
  return [parts, first = compile(TensorFunction(scaled), options),
          next = compile(TensorFunction(add), adding)](const List& in) {
    List sum = first(rows_of(in, 0, parts));
    for (Index part = 1; part < parts; ++part) {
      const List own = rows_of(in, part, parts);
      sum.insert(sum.end(), own.begin(), own.end());
      sum = next(sum);
    }
    return sum;
  };
}

Result<PairInstance> make_gradient_accumulation(const Knobs& knobs, LabDevice& device) {
  const MlpSizes s = mlp_sizes(knobs);
  const Index parts = knobs.integer("parts");
  const std::string& precision = knobs.text("precision");
  if (s.rows % parts != 0)
    throw Error(fmt::format("gradient_accumulation: {} rows are not {} parts of one size", s.rows, parts));
  TensorWorkload w{.target = "gradient_accumulation",
                   .shape = fmt::format("{} in {}", s.text(), parts),
                   .dtype = precision};
  w.inputs = mlp_inputs(s);
  w.outputs = {{"loss", DType::f32, Shape{}, mlp_rule(s)}};
  const std::vector<OutputSpec> gradients = like_weights(s, "d", mlp_rule(s));
  w.outputs.insert(w.outputs.end(), gradients.begin(), gradients.end());
  w.cost = cost_of(w.inputs, w.outputs, 0);
  w.cost.matrix[factors_of(precision)] = s.flops();
  w.unit = "GFLOP/s";
  w.options = {.precision = parse_precision(precision).value()};
  w.op_by_op = false;  // a gradient
  w.tells_memory = true;
  w.before = {{.name = "one batch", .function = whole, .options = w.options}};
  w.function = [parts](const List& in) { return in_parts(in, parts); };
  w.behind = {
      {.name = "a call a part", .function = by_calls(parts, gradients.size(), w.options), .options = {}}};
  w.peer_parameters = {{"parts", fmt::format("{}", parts)}, {"precision", precision}};
  w.reference = [s, precision, outputs = w.outputs](const HostArrays& in, ThreadPool& pool) {
    return mlp_references(in, s, precision, outputs, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair gradient_accumulation_pair() {
  std::vector<Knob> knobs = mlp_knobs({.rows = 1024, .width = 256, .hidden = 1024, .layers = 2},
                                      {.rows = 8192, .width = 1024, .hidden = 4096, .layers = 4});
  knobs.push_back(
      {.name = "parts", .values = {Index{4}}, .doc = "micro-batches, which must divide the rows"});
  knobs.push_back(mlp_precision_knob({"f32", "bf16"}));
  return {.name = "gradient_accumulation",
          .doc = "a batch's gradient in micro-batches: one program, or a call each, or all rows at once",
          .knobs = std::move(knobs),
          .make = make_gradient_accumulation,
          .tiny = {{"rows=36", "width=20", "hidden=50", "layers=2", "parts=3", "precision=f32,bf16"}},
          .suites = {{"quick", {"rows=256", "width=256", "hidden=1024", "layers=1"}}}};
}

}  // namespace tilewright::lab
