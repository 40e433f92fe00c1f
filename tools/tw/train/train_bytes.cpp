// tw train bytes: what a training keeps for each parameter, by recipes of types, counted while a step runs.
#include <tilewright/base/error.h>
#include <tilewright/nn/eight_bit.h>
#include <tilewright/nn/gpt2.h>
#include <tilewright/nn/layers.h>
#include <tilewright/nn/optimizer.h>
#include <tilewright/tensor/compile.h>
#include <tilewright/tensor/gradient.h>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <memory>
#include <optional>

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
// both moments. Gradients, sums and moments of 8 bits are so by blocks, with scales (nn/eight_bit.h).
struct BytesRecipe {
  const char* name;
  DType weights, master, gradient, sum, first_moment, second_moment;
  double bytes() const {
    double all = static_cast<double>(size_bytes(weights) + size_bytes(master));
    for (const DType dtype : {gradient, sum, first_moment, second_moment})
      all += static_cast<double>(size_bytes(dtype)) + (is_f8(dtype) ? 4.0 / nn::kEightBitBlock : 0);
    return all;
  }
};
constexpr BytesRecipe kRecipes[] = {
    {"bf16 + f32", DType::bf16, DType::f32, DType::bf16, DType::f32, DType::f32, DType::f32},
    {"bf16, moments too", DType::bf16, DType::f32, DType::bf16, DType::f32, DType::bf16, DType::bf16},
    // DeepSeek-V3 (arXiv 2412.19437, 3.3)
    {"fp8 weights, bf16 moments", DType::f8e4m3, DType::f32, DType::bf16, DType::f32, DType::bf16,
     DType::bf16},
    // FP8-LM (arXiv 2310.18313): 16 bits of masters, of the gradients' sum and of the squares' moment
    {"fp8, with 16 bits of masters, sums and squares", DType::f8e4m3, DType::f16, DType::f8e4m3, DType::bf16,
     DType::f8e4m3, DType::bf16},
    // Nanotron's: masters alone have 16 bits
    {"fp8, with 16 bits of masters", DType::f8e4m3, DType::f16, DType::f8e4m3, DType::f8e4m3, DType::f8e4m3,
     DType::f8e4m3},
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

// Gradients, or a sum of them, in a type: of 8 bits by blocks, in two trees.
struct Gradients {
  GPT2 values;
  std::optional<GPT2> scales;
  TILEWRIGHT_FIELDS(values, scales)
};

Gradients packed(const GPT2& gradients, DType dtype, const Tensor& seed) {
  if (!is_f8(dtype)) return {nn::cast_tree(gradients, dtype), std::nullopt};
  const auto part = [&](Tensor nn::EightBit::* member) {
    return map_tensors([&](const Tensor& t) { return nn::to_eight_bit(t, seed).*member; }, gradients);
  };
  return {part(&nn::EightBit::codes), part(&nn::EightBit::scales)};
}
GPT2 unpacked(const Gradients& g) {
  if (!g.scales) return g.values;
  return map_tensors(
      [](const Tensor& codes, const Tensor& scales) { return nn::from_eight_bit({codes, scales}); }, g.values,
      *g.scales);
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
  const nn::Optimizer optimizer = nn::adamw({.beta2 = 0.95,
                                             .weight_decay = 0.1,
                                             .moments = recipe.first_moment,
                                             .second_moments = recipe.second_moment});
  const auto pack = compile([&](const GPT2& master) { return stored(master, recipe.weights); });
  const auto slope =
      compile([&](const GPT2& weights, const Tensor& in, const Tensor& out, const Tensor& seed) {
        const auto loss = [&](const GPT2& m) { return nn::gpt2_loss(m, in, out, kHeads); };
        const auto [value, gradient] = value_and_grad(loss)(unpacked(weights, recipe.weights));
        return std::pair{value, packed(gradient, recipe.gradient, seed)};
      });
  const auto nothing = compile([&](const GPT2& master, const Tensor& seed) {
    return packed(nn::no_gradient(master), recipe.sum, seed);
  });
  const auto add = compile(
      [&](const Gradients& sum, const Gradients& gradient, const Tensor& seed) {
        const GPT2 wide = nn::cast_tree(unpacked(sum), DType::f32);
        return packed(nn::accumulate(wide, unpacked(gradient), 1.0 / kParts), recipe.sum, seed);
      },
      {.donate = {0}});
  const auto update = compile(
      [&](const GPT2& master, const Gradients& sum, const nn::OptimizerState<GPT2>& state) {
        const GPT2 wide = nn::cast_tree(unpacked(sum), DType::f32);
        return optimizer.update(master, nn::clip_by_global_norm(wide, 1.0).first, state,
                                full_like(state.steps, 3e-3));
      },
      {.donate = {0, 2}});
  std::vector<Tensor> in, out, seeds;
  for (Index part = 0; part < kParts; ++part) {
    in.push_back(ctx.from(counting(part, 0), {kRows, kTime}));
    out.push_back(ctx.from(counting(part, 1), {kRows, kTime}));
    seeds.push_back(ctx.scalar(part, DType::i64));
  }
  const auto bytes = [&] {
    ctx.synchronize();
    return static_cast<double>(ctx.memory().bytes);
  };
  const auto train = [&](Index steps) {
    Measured m;
    const double before = bytes();
    GPT2 master = nn::cast_tree(nn::make_gpt2(ctx, kModel), recipe.master);
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
      Gradients sum = nothing(master, seeds[0]);
      m.sum = since(then);
      for (std::size_t part = 0; part < kParts; ++part) {
        then = bytes();
        const auto [loss, gradient] = slope(weights, in[part], out[part], seeds[part]);
        m.gradient = since(then);
        m.total = since(before);
        m.last = loss.item();
        if (step == 0 && part == 0) m.first = m.last;
        sum = add(sum, gradient, seeds[part]);
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
