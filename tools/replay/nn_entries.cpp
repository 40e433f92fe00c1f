// Training steps of nn's models, as `tw train` compiles them.
#include <tilewright/nn/gpt2.h>
#include <tilewright/nn/optimizer.h>
#include <tilewright/tensor/compile.h>
#include <tilewright/tensor/gradient.h>

#include <tuple>
#include <utility>

#include "replay/corpus.h"
#include "replay/recording_backend.h"

namespace tilewright::replay {

namespace {

struct State {
  nn::GPT2 model;
  nn::OptimizerState<nn::GPT2> optimizer;
  TILEWRIGHT_FIELDS(model, optimizer)
};

// A GPT-2 whose layers drop activations with this probability: each use has a key of its own.
struct Step {
  std::string name;
  nn::GPT2Config config;
  Index rows = 0;
  double dropout = 0;
};

std::vector<ProgramRecord> record_step(const Step& recorded, const Machine& machine) {
  const auto& [name, config, rows, dropout] = recorded;
  std::vector<ProgramRecord> records{{.name = name + ": inputs", .machine = machine.name},
                                     {.name = name, .machine = machine.name}};
  Recording recording{machine, &records[0]};
  record_contexts(recording);
  Context ctx({.device = machine.is_gpu() ? "cuda" : "cpu",
               .cache_directory = "",
               .library_directory = TW_REPLAY_BACKENDS});
  const auto optimizer = nn::adamw({.weight_decay = 0.1});
  State state{.model = nn::make_gpt2(ctx, config), .optimizer = {}};
  state.optimizer = optimizer.init(state.model);
  const Tensor tokens = ctx.zeros({rows, config.context}, DType::i32);
  const Tensor rate = ctx.scalar(1e-3), key = ctx.from(std::vector<std::int64_t>{1}, {});
  const auto step = compile(
      [&](const State& s, const Tensor& in, const Tensor& out, const Tensor& rate_of_step,
          const Tensor& key_of_step) {
        const auto loss = [&](const nn::GPT2& m) {
          const nn::GPT2 narrow = nn::cast_tree(m, DType::bf16);
          return nn::gpt2_loss(narrow, in, out, config.heads, nn::Dropout(key_of_step, dropout));
        };
        const auto [value, gradient] = value_and_grad(loss)(s.model);
        const auto [clipped, norm] = nn::clip_by_global_norm(gradient, 1);
        const auto [model, moments] = optimizer.update(s.model, clipped, s.optimizer, rate_of_step);
        return std::tuple{value, norm, State{model, moments}};
      },
      {.deterministic = true, .donate = {0}});
  recording.program = &records[1];
  try {
    step(state, tokens, tokens, rate, key);
  } catch (const Error& e) {
    records[1].failure = e.what();
  }
  return records;
}

}  // namespace

std::vector<CorpusEntry> nn_entries() {
  const nn::GPT2Config small{
      .vocabulary = 65, .context = 64, .width = 64, .layers = 2, .heads = 2, .bias = false};
  const nn::GPT2Config characters{
      .vocabulary = 65, .context = 256, .width = 384, .layers = 6, .heads = 6, .bias = false};
  const nn::GPT2Config gpt2{.vocabulary = 50304};
  std::vector<CorpusEntry> out;
  for (const Step& step : {Step{"nn/gpt2_training_step layers=12 B32 bf16", gpt2, 32},
                           Step{"nn/gpt2_training_step dropout layers=6 B64 bf16", characters, 64, 0.2},
                           Step{"nn/gpt2_training_step dropout layers=2 B4 bf16", small, 4, 0.2}})
    out.push_back({.name = step.name,
                   .record = [step](const Machine& on) { return record_step(step, on); },
                   .in_short = false});
  return out;
}

}  // namespace tilewright::replay
