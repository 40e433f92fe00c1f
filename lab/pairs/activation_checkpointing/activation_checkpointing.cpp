// activation_checkpointing: the gradient of a stack of layers whose values between forward and backward are
// kept, or computed again: each layer behind checkpoint(), or what memory_budget chooses. Rows say what
// temporaries a call has beside the time.
#include <tilewright/tensor/checkpoint.h>

#include <fmt/format.h>

#include "pairs/mlp_stack.h"
#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"

namespace tilewright::lab {

namespace {

using List = std::vector<Tensor>;

List gradient(const List& in, const MlpLayer& layer) {
  return mlp_gradient(in[0], in[1], {in.begin() + 2, in.end()}, layer);
}

List checkpointed(const List& in) {
  const auto layer =
      checkpoint([](const Tensor& x, const Tensor& w1, const Tensor& w2) { return mlp_layer(x, w1, w2); });
  return gradient(in, [&](const Tensor& x, const Tensor& w1, const Tensor& w2) { return layer(x, w1, w2); });
}

Result<PairInstance> make_activation_checkpointing(const Knobs& knobs, LabDevice& device) {
  const MlpSizes s = mlp_sizes(knobs);
  const Index budget = knobs.integer("budget");
  const std::string& precision = knobs.text("precision");
  TensorWorkload w{.target = "activation_checkpointing",
                   .shape = fmt::format("{} budget {} MiB", s.text(), budget),
                   .dtype = precision};
  w.inputs = mlp_inputs(s);
  w.outputs = {{"loss", DType::f32, Shape{}, mlp_rule(s)}};
  const std::vector<OutputSpec> gradients = like_weights(s, "d", mlp_rule(s));
  w.outputs.insert(w.outputs.end(), gradients.begin(), gradients.end());
  w.cost = cost_of(w.inputs, w.outputs, 0);
  w.cost.matrix[factors_of(precision)] = s.flops();  // what is computed again is no work that was asked for
  w.unit = "GFLOP/s";
  w.options = {.precision = parse_precision(precision).value()};
  w.op_by_op = false;  // a gradient
  w.tells_memory = true;
  w.function = [](const List& in) { return gradient(in, mlp_layer); };
  CompileOptions within = w.options;
  within.memory_budget = budget << 20;
  w.behind = {{.name = "checkpoint", .function = checkpointed, .options = w.options},
              {.name = "memory_budget", .function = w.function, .options = within}};
  w.peer_parameters = {{"precision", precision}};
  w.reference = [s, precision, outputs = w.outputs](const HostArrays& in, ThreadPool& pool) {
    return mlp_references(in, s, precision, outputs, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair activation_checkpointing_pair() {
  std::vector<Knob> knobs = mlp_knobs({.rows = 1024, .width = 256, .hidden = 1024, .layers = 4},
                                      {.rows = 8192, .width = 1024, .hidden = 4096, .layers = 6});
  knobs.push_back({.name = "budget",
                   .values = {Index{60}},
                   .doc = "MiB that a call may hold, its inputs and results among them",
                   .cuda_values = {Index{1792}},
                   .most = 1 << 24});
  knobs.push_back(mlp_precision_knob({"f32", "bf16"}));
  return {.name = "activation_checkpointing",
          .doc = "a gradient whose values are kept, or made again by checkpoint() or memory_budget",
          .knobs = std::move(knobs),
          .make = make_activation_checkpointing,
          .tiny = {{"rows=300", "width=24", "hidden=100", "layers=4", "budget=1", "precision=f32,bf16"}},
          .suites = {{"quick", {"rows=256", "width=256", "hidden=1024", "layers=4", "budget=27"}}}};
}

}  // namespace tilewright::lab
