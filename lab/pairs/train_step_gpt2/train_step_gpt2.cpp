// train_step_gpt2: a whole training step of GPT-2 (A. Radford et al., Language Models are Unsupervised
// Multitask Learners, 2019): the loss of a batch, its gradient, clipping, and AdamW: from parameters and
// moments to the next ones, as tw train makes them. Sizes that the oracle of graphs takes are compared in
// full.
#include <tilewright/nn/gpt2.h>
#include <tilewright/nn/optimizer.h>
#include <tilewright/tensor/gradient.h>

#include <fmt/format.h>

#include <cmath>

#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"
#include "pairs/truth.h"
#include "passes/graph/narrow_products.h"

namespace tilewright::lab {

namespace {

struct StepSizes {
  const char* name;
  nn::GPT2Config model;
  Index rows;
  bool is_compared = true;  // with the oracle, which has seconds for it
};
constexpr StepSizes kSteps[] = {
    {"tiny", {.vocabulary = 37, .context = 8, .width = 16, .layers = 2, .heads = 2}, 2},
    {"small", {.vocabulary = 256, .context = 64, .width = 128, .layers = 2, .heads = 4}, 4},
    // The vocabulary of 50,257 filled up, as people train it.
    {"124M", {.vocabulary = 50304, .context = 1024, .width = 768, .layers = 12, .heads = 12}, 32, false},
};

const StepSizes& sizes_of(const std::string& name) {
  for (const StepSizes& s : kSteps)
    if (name == s.name) return s;
  throw Error(fmt::format("train_step_gpt2: no model '{}'", name));
}

// GPT-2's rate and betas, behind the 99th step; gradients are clipped to a norm of 1.
constexpr struct {
  double rate = 6e-4, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, decay = 0.1, norm = 1, steps = 99;
} kGpt2Adam;

// The inputs: tokens, targets, steps, parameters, and both moments of each.
std::vector<Tensor> train_step(const std::vector<Tensor>& in, const nn::GPT2& like, Index heads) {
  const auto count = static_cast<std::ptrdiff_t>(in.size() - 3) / 3;
  const auto part = [&](std::ptrdiff_t n) {
    const auto begin = in.begin() + 3 + n * count;
    return nn::detail::with_leaves(like, std::vector<Tensor>(begin, begin + count));
  };
  const nn::GPT2 model = part(0);
  const nn::OptimizerState<nn::GPT2> state{.steps = in[2], .slots = {part(1), part(2)}};
  const nn::Optimizer optimizer = nn::adamw({.beta1 = kGpt2Adam.beta1,
                                             .beta2 = kGpt2Adam.beta2,
                                             .epsilon = kGpt2Adam.epsilon,
                                             .weight_decay = kGpt2Adam.decay});
  const auto loss = [&](const nn::GPT2& m) { return nn::gpt2_loss(m, in[0], in[1], heads); };
  const auto [value, gradient] = value_and_grad(loss)(model);
  const auto [clipped, norm] = nn::clip_by_global_norm(gradient, kGpt2Adam.norm);
  const auto [next, next_state] =
      optimizer.update(model, clipped, state, full_like(state.steps, kGpt2Adam.rate));
  std::vector<Tensor> out{value};
  for (const nn::GPT2* tree : {&next, &next_state.slots[0], &next_state.slots[1]})
    for (const Tensor& t : tensors_of(*tree)) out.push_back(t);
  return out;
}

// Gains about 1, biases about 0, and matrices as GPT-2 begins: none can be forgotten.
Normal values_of(const NamedTensor& parameter) {
  if (parameter.tensor.rank() == 1 && parameter.name.ends_with("weight"))
    return {.mean = 1, .deviation = 0.1};
  return {.deviation = 0.02};
}

// 2 FLOPs forward and 4 backward for each weight of a product and token; of attention's two products the mask
// leaves half, 2 C T forward, and twice that backward (as tw train counts them).
double products_of(const nn::GPT2Config& c) { return static_cast<double>(c.layers * 12 * c.width * c.width); }
perf::FlopsByType matrix_flops(const StepSizes& s, Precision precision) {
  const nn::GPT2Config& c = s.model;
  const double tokens = static_cast<double>(s.rows * c.context);
  const DType narrow = precision == Precision::f32 ? DType::f32 : DType::bf16;
  perf::FlopsByType flops;
  flops[is_fp8(precision) ? DType::f8e4m3 : narrow] += 6 * products_of(c) * tokens;
  flops[narrow] += 6 * static_cast<double>(c.vocabulary * c.width + c.layers * c.width * c.context) * tokens;
  return flops;
}

Result<PairInstance> make_train_step_gpt2(const Knobs& knobs, LabDevice& device) {
  StepSizes s = sizes_of(knobs.text("model"));
  if (const Index rows = knobs.integer("rows"); rows > 0) s.rows = rows;
  const nn::GPT2Config& c = s.model;
  const std::string& text = knobs.text("precision");
  const Precision precision = parse_precision(text).value();
  const Index budget = knobs.integer("budget");
  TensorWorkload w{.target = "train_step_gpt2",
                   .shape = fmt::format("{} B{} T{} C{} L{}{}", s.name, s.rows, c.context, c.width, c.layers,
                                        budget > 0 ? fmt::format(" within {} MiB", budget) : ""),
                   .dtype = text};
  const Shape ids{s.rows, c.context};
  w.inputs = {integer_input("tokens", ids, c.vocabulary),
              integer_input("targets", ids, c.vocabulary),
              {"steps", DType::f32, Shape{}, [](Context& context) { return context.scalar(kGpt2Adam.steps); },
               false}};
  w.outputs = {{"loss", DType::f32, Shape{}, {}}};
  const NamedTensors parameters = named_tensors(nn::make_gpt2(*device.context, c));
  double count = 0;
  for (const NamedTensor& p : parameters) count += static_cast<double>(p.tensor.size());
  // The gradient has norm 16: those of biases are far above the mean, and their squares err, in 8 bits, by a
  // good part of themselves.
  const double slope = 16 * kGpt2Adam.norm / std::sqrt(count);
  for (const char* of : {"", "m ", "v "})
    for (const NamedTensor& p : parameters) {
      const Normal values = *of == '\0'  ? values_of(p)
                            : *of == 'm' ? Normal{.deviation = slope}
                                         : Normal{.mean = slope * slope, .deviation = 0.1 * slope * slope};
      w.inputs.push_back(shared(normal_input(of + p.name, p.tensor.shape(), DType::f32, values)));
      w.outputs.push_back({of + p.name, DType::f32, p.tensor.shape(), {}});
    }
  for (OutputSpec& output : w.outputs)
    output.rule = {.reduction = std::max(4 * c.width, s.rows * c.context),
                   .operations = 40 * static_cast<int>(c.layers)};
  w.cost = cost_of(w.inputs, w.outputs, 0);
  w.cost.matrix = matrix_flops(s, precision);
  w.unit = "GFLOP/s";
  w.options = {.precision = precision, .memory_budget = budget << 20};
  w.op_by_op = false;  // a gradient
  w.tells_memory = true;
  // The model's structure, of whatever sizes.
  const nn::GPT2 like = nn::make_gpt2(
      *device.context, {.vocabulary = 1, .context = 1, .width = 1, .layers = c.layers, .heads = 1});
  w.function = [like, heads = c.heads](const std::vector<Tensor>& in) { return train_step(in, like, heads); };
  w.peer_parameters = {{"heads", fmt::format("{}", c.heads)}, {"precision", text}};
  if (is_fp8(precision)) w.no_peers = "PyTorch alone does not train in 8 bits";
  if (!s.is_compared) return make_instance(std::move(w), device);
  w.reference = [function = w.function, inputs = types_of(w.inputs), outputs = w.outputs, precision,
                 &context = *device.context](const HostArrays& in, ThreadPool&) {
    constexpr int kRuns = 4;
    // What the precision multiplies is written out; fp8_training_matmul holds that to loops of its own.
    const ir::Graph graph = passes::with_narrow_products(recorded(function, inputs, context), precision);
    return references(by_oracle(graph, in, kRuns), outputs);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair train_step_gpt2_pair() {
  std::vector<KnobValue> models;
  for (const StepSizes& s : kSteps) models.emplace_back(std::string(s.name));
  const auto text = [](const char* t) { return KnobValue(std::string(t)); };
  return {.name = "train_step_gpt2",
          .doc = "loss, gradient, clipping and AdamW of GPT-2",
          .knobs = {{.name = "model",
                     .values = {text("small")},
                     .doc = "small: 2 layers of 128, 4 rows of 64 tokens; 124M: 32 rows of 1024",
                     .cuda_values = {text("124M")},
                     .choices = models},
                    {.name = "precision",
                     .values = {text("f32")},
                     .doc = "of the products, as CompileOptions::precision",
                     .cuda_values = {text("bf16"), text("fp8")},
                     .choices = {text("f32"), text("bf16"), text("fp8"), text("fp8-block")}},
                    {.name = "rows",
                     .values = {Index{0}},
                     .doc = "of the batch; 0: as the model is trained",
                     .least = 0,
                     .most = 1 << 20},
                    {.name = "budget",
                     .values = {Index{0}},
                     .doc = "MiB that a step may hold (CompileOptions::memory_budget); 0: any number",
                     .least = 0,
                     .most = 1 << 24}},
          .make = make_train_step_gpt2,
          .tiny = {{"model=tiny", "precision=f32,bf16,fp8,fp8-block"}},
          .suites = {{"quick", {"model=small", "precision=bf16"}}}};
}

}  // namespace tilewright::lab
