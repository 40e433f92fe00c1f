// tw train bytes: what a training keeps for each parameter, by recipes of types, counted while a step runs.
#include <tilewright/base/error.h>
#include <tilewright/nn/gpt2.h>
#include <tilewright/nn/layers.h>
#include <tilewright/nn/optimizer.h>
#include <tilewright/tensor/compile.h>
#include <tilewright/tensor/gradient.h>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>

#include "harness/report/table.h"
#include "tw/command/arguments.h"
#include "tw/command/commands.h"
#include "tw/command/output.h"

namespace tilewright::tw {

namespace {

using Json = nlohmann::ordered_json;
using nn::GPT2;

// Types of what is there for each parameter at once when a gradient is done and not yet added up: the weights
// that products read, the masters that steps move, the gradient, the sum of the micro-batches' gradients, and
// both moments.
struct BytesRecipe {
  const char* name;
  DType weights, master, gradient, sum, moments;
  std::size_t bytes() const {
    return size_bytes(weights) + size_bytes(master) + size_bytes(gradient) + size_bytes(sum) +
           2 * size_bytes(moments);
  }
};
constexpr BytesRecipe kRecipes[] = {
    {"bf16 + f32", DType::bf16, DType::f32, DType::bf16, DType::f32, DType::f32},
    {"bf16, moments too", DType::bf16, DType::f32, DType::bf16, DType::f32, DType::bf16},
    {"fp8 weights, bf16 moments", DType::f8e4m3, DType::f32, DType::bf16, DType::f32, DType::bf16},
};

struct Measured {
  double parameters = 0;
  double weights = 0, master = 0, gradient = 0, sum = 0, moments = 0;  // bytes of a parameter
  double total = 0;                                                    // of all, counted at once
  double first = 0, last = 0;                                          // losses: the recipe learns
};

constexpr Index kHeads = 4, kRows = 4, kTime = 32, kSteps = 20, kParts = 2;
constexpr nn::GPT2Config kModel = {
    .vocabulary = 256, .context = kTime, .width = 128, .layers = 2, .heads = kHeads};

// Weights of 8 bits are stored a hundred times as large, where e4m3 has its digits: a first weight is about
// 0.02, and the type's least normal number 2⁻⁶.
constexpr double kEightBitScale = 128;

GPT2 stored(const GPT2& master, DType dtype) {
  return map_tensors([&](const Tensor& t) { return cast(is_f8(dtype) ? t * kEightBitScale : t, dtype); },
                     master);
}
// What products multiply.
GPT2 unpacked(const GPT2& weights, DType dtype) {
  return is_f8(dtype)
             ? map_tensors([](const Tensor& t) { return cast(t, DType::bf16) / kEightBitScale; }, weights)
             : weights;
}

// Tokens that count up, in each row from a start of its own, and in each part of a step from another.
std::vector<std::int32_t> counting(Index part, Index first) {
  std::vector<std::int32_t> tokens;
  for (Index row = 0; row < kRows; ++row)
    for (Index at = first; at < first + kTime; ++at)
      tokens.push_back(static_cast<std::int32_t>((3 * row + part + at) % kModel.vocabulary));
  return tokens;
}

// What is alive is what the trees below hold: each is made by a function of its own, and counted by the
// device before and after that. Temporaries of these functions are there all the time, and not counted.
Measured measure(Context& ctx, const BytesRecipe& recipe) {
  ctx.set_seed(1);
  const nn::Optimizer optimizer = nn::adamw({.beta2 = 0.95, .weight_decay = 0.1, .moments = recipe.moments});
  const auto pack = compile([&](const GPT2& master) { return stored(master, recipe.weights); });
  const auto slope = compile([&](const GPT2& weights, const Tensor& in, const Tensor& out) {
    const auto loss = [&](const GPT2& m) { return nn::gpt2_loss(m, in, out, kHeads); };
    return value_and_grad(loss)(unpacked(weights, recipe.weights));
  });
  const auto add = compile(
      [](const GPT2& sum, const GPT2& gradient) { return nn::accumulate(sum, gradient, 1.0 / kParts); },
      {.donate = {0}});
  const auto update = compile(
      [&](const GPT2& master, const GPT2& sum, const nn::OptimizerState<GPT2>& state) {
        return optimizer.update(master, nn::clip_by_global_norm(sum, 1.0).first, state,
                                full_like(state.steps, 3e-3));
      },
      {.donate = {0, 2}});
  std::vector<Tensor> in, out;
  for (Index part = 0; part < kParts; ++part) {
    in.push_back(ctx.from(counting(part, 0), {kRows, kTime}));
    out.push_back(ctx.from(counting(part, 1), {kRows, kTime}));
  }
  const auto bytes = [&] {
    ctx.synchronize();
    return static_cast<double>(ctx.memory().bytes);
  };
  const auto train = [&](Index steps) {
    Measured m;
    const double before = bytes();
    GPT2 master = nn::make_gpt2(ctx, kModel);
    for (const Tensor& t : tensors_of(master)) m.parameters += static_cast<double>(t.size());
    const auto since = [&](double then) { return (bytes() - then) / m.parameters; };
    m.master = since(before);
    double then = bytes();
    nn::OptimizerState<GPT2> state = optimizer.init(master);
    m.moments = since(then);
    for (Index step = 0; step < steps; ++step) {
      then = bytes();
      GPT2 weights = pack(master);
      m.weights = since(then);
      then = bytes();
      GPT2 sum = nn::no_gradient(master);
      m.sum = since(then);
      for (std::size_t part = 0; part < kParts; ++part) {
        then = bytes();
        const auto [loss, gradient] = slope(weights, in[part], out[part]);
        m.gradient = since(then);
        m.total = since(before);
        m.last = loss.item();
        if (step == 0 && part == 0) m.first = m.last;
        sum = add(sum, gradient);
      }
      weights = {};
      std::tie(master, state) = update(master, sum, state);
    }
    return m;
  };
  train(1);  // compiled functions keep the memory of their temporaries from the first call on
  return train(kSteps);
}

void train_bytes(const std::string& device, const std::string& cache, const OutputOptions& output) {
  check_output(output);
  Context ctx({.device = device, .cache_directory = cache_argument(cache)});
  Json all = Json::array();
  lab::TextTable table;
  table.column("types", lab::Align::left);
  for (const char* name :
       {"weights", "masters", "gradient", "its sum", "moments", "at once", "loss, from", "to"})
    table.column(name, lab::Align::right);
  for (const BytesRecipe& recipe : kRecipes) {
    const Measured m = measure(ctx, recipe);
    all.push_back({{"types", recipe.name},
                   {"parameters", m.parameters},
                   {"weights", m.weights},
                   {"masters", m.master},
                   {"gradient", m.gradient},
                   {"sum", m.sum},
                   {"moments", m.moments},
                   {"total", m.total},
                   {"planned", recipe.bytes()},
                   {"first_loss", m.first},
                   {"last_loss", m.last}});
    std::vector<std::string> cells = {recipe.name};
    for (const double number : {m.weights, m.master, m.gradient, m.sum, m.moments, m.total})
      cells.push_back(fmt::format("{:.2f}", number));
    cells.push_back(fmt::format("{:.3f}", m.first));
    cells.push_back(fmt::format("{:.3f}", m.last));
    table.row(std::move(cells));
  }
  write_results(output, output.as_json() ? all.dump(2) + "\n" : table.to_string(160));
}

struct TrainBytesInput {
  std::string device = "cpu", cache = "auto";
  OutputOptions output;
};

}  // namespace

void add_train_bytes(CLI::App& train) {
  CLI::App* sub = train.add_subcommand(
      "bytes",
      "Bytes of a parameter while a step runs, counted: weights, gradients, moments, by their types");
  auto in = std::make_shared<TrainBytesInput>();
  sub->add_option("--device", in->device, "cpu or cuda:N")->type_name("DEVICE");
  sub->add_option("--cache", in->cache, "Folder of compiled kernels; '' compiles everything anew")
      ->type_name("FOLDER");
  add_output_options(*sub, in->output, "a list, an object for each recipe of types");
  sub->callback([in] { train_bytes(in->device, in->cache, in->output); });
}

}  // namespace tilewright::tw
