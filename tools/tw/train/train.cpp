// tw train: a model trained from a text, with reports, checkpoints and a clean end.
#include <tilewright/base/error.h>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "tw/command/arguments.h"
#include "tw/command/byte_size.h"
#include "tw/command/command_tree.h"
#include "tw/command/commands.h"
#include "tw/command/number_checks.h"
#include "tw/command/output.h"
#include "tw/command/subject.h"
#include "tw/train/train_loop.h"

namespace tilewright::tw {

namespace {

struct TrainInput {
  std::string recipe, data, out, resume;
  std::string device = "cpu", cache = "auto", precision = "f32", moments = "f32";
  bool small = false;
  Index steps = 0;       // 0: the recipe's
  double rate = 0;       // 0: the recipe's
  double ema = 0;        // 0: no average
  Index accumulate = 0;  // 0: the recipe's
  std::string memory;    // that a step may hold: "12GiB"; empty: any amount
  bool stop_on_spike = false;
  std::uint64_t seed = 1337;
  int threads = 0;
  Index sample = 300;  // bytes written at the end
  OutputOptions output;
};

// Writes what comes at once where it is shown, and all of it at the end into a file.
class Lines {
 public:
  explicit Lines(const OutputOptions& options) : options_(options) {}
  void write(const std::string& line) {
    if (options_.path.empty()) {
      fmt::print("{}", line);
      std::fflush(stdout);
    }
    all_ += line;
  }
  void finish() {
    if (!options_.path.empty()) write_results(options_, all_);
  }

 private:
  const OutputOptions& options_;
  std::string all_;
};

// What moments can be stored in.
constexpr DType kMoments[] = {DType::f32, DType::bf16, DType::f8e4m3};

// "bf16", of both, or "f8e4m3,bf16", of gradients and of their squares.
void take_moments(nn::AdamWOptions& optimizer, const std::string& moments) {
  const std::size_t comma = moments.find(',');
  const auto type = [&](const std::string& text) {
    const std::optional<DType> dtype = parse_dtype(text);
    if (dtype && std::find(std::begin(kMoments), std::end(kMoments), *dtype) != std::end(kMoments))
      return *dtype;
    throw Error(
        fmt::format("--moments {}: they can be f32, of 8 bytes a parameter, bf16, of 4, or f8e4m3, of 2 by "
                    "blocks with scales; 'f8e4m3,bf16' are those of gradients and of their squares",
                    moments));
  };
  optimizer.moments = type(moments.substr(0, comma));
  if (comma != std::string::npos) optimizer.second_moments = type(moments.substr(comma + 1));
}

// What the folder of an interrupted training says of it.
void take_settings(TrainInput& in, const TrainFolder::Settings& s) {
  if (s.recipe != in.recipe)
    throw Error(fmt::format("{} trains recipe '{}', not '{}'", in.resume, s.recipe, in.recipe));
  in.small = s.small;
  in.seed = s.seed;
  in.precision = s.precision;
  if (in.data.empty()) in.data = s.data;
  in.steps = s.steps;
  in.accumulate = s.accumulate;
  in.rate = s.rate;
  in.ema = s.ema;
  in.moments = s.moments;
}

TrainFolder::Settings settings_of(const TrainInput& in, const TrainRecipe& recipe) {
  return {.recipe = in.recipe,
          .data = std::filesystem::absolute(in.data).string(),
          .precision = in.precision,
          .small = in.small,
          .seed = in.seed,
          .steps = recipe.schedule.steps,
          .accumulate = recipe.parts,
          .rate = recipe.schedule.rate,
          .ema = in.ema,
          .moments = in.moments};
}

TrainRecipe recipe_of(const TrainInput& in) {
  TrainRecipe recipe = train_recipe(in.recipe, in.small);
  if (in.steps > 0) recipe.schedule.steps = in.steps;
  take_moments(recipe.optimizer, in.moments);
  if (in.accumulate > 0) recipe.parts = in.accumulate;
  if (in.rate > 0) {
    recipe.schedule.last_rate *= in.rate / recipe.schedule.rate;
    recipe.schedule.rate = in.rate;
  }
  recipe.report_every = std::clamp<Index>(recipe.schedule.steps / 8, 1, recipe.report_every);
  // A short training is not to be one of validations.
  recipe.validation_batches = std::min(recipe.validation_batches, 4 * recipe.report_every);
  return recipe;
}

// Goes on with the newest checkpoint that is whole; from the beginning where there was none yet.
void resume(Context& ctx, TrainRun& training, TrainFolder& folder, const OutputOptions& output) {
  const auto loaded = folder.checkpoints().load(ctx, training.state());
  if (loaded) training.resume(loaded->tree, loaded->words, loaded->step);
  training.add_seconds(folder.cut_log(training.step()));
  if (output.quiet) return;
  if (!loaded)
    fmt::print(stderr, "tw train: {} has no checkpoint yet: beginning at step 0\n", folder.path());
  else if (!loaded->lost.empty())
    fmt::print(stderr, "tw train: lost: {}; going on from step {}\n", loaded->lost, loaded->step);
}

void train(TrainInput in) {
  if (in.recipe.empty()) throw Error("a recipe is wanted: tw train char --data FILE");
  (void)train_recipe(in.recipe, in.small);  // that there is one is said first
  check_output(in.output);
  std::optional<TrainFolder> folder;
  if (!in.resume.empty()) {
    folder = TrainFolder::open(in.resume);
    take_settings(in, folder->settings());
  }
  if (in.data.empty()) throw Error("--data says what to learn from");
  const TrainRecipe recipe = recipe_of(in);
  const Precision precision = precision_argument(in.precision);
  TrainData data = train_data(in.data, recipe, in.seed);
  Context ctx({.device = in.device, .cache_directory = cache_argument(in.cache), .threads = in.threads});
  TrainRun training(ctx,
                    {.recipe = recipe,
                     .seed = in.seed,
                     .precision = precision,
                     .parts = recipe.parts,
                     .memory_budget = in.memory.empty() ? 0 : bytes_of_text(in.memory),
                     .ema = in.ema},
                    std::move(data));
  if (folder) resume(ctx, training, *folder, in.output);
  if (!in.out.empty()) folder = TrainFolder::make(in.out, settings_of(in, recipe));
  Lines lines(in.output);
  TrainLoop loop(training, {.recipe = recipe,
                            .folder = folder ? &*folder : nullptr,
                            .output = in.output,
                            .stop_on_spike = in.stop_on_spike,
                            .write = [&](const std::string& line) { lines.write(line); }});
  bool ended = false;
  try {
    within_memory_option(in.memory, "as much, or cut its batch by --accumulate N",
                         [&] { ended = loop.run(); });
  } catch (...) {
    lines.finish();  // what was reported until then is kept
    throw;
  }
  if (ended && in.sample > 0 && !in.output.as_json() && training.writes())
    lines.write("\n" + training.write(in.sample) + "\n");
  lines.finish();
  if (ended) return;
  if (!in.output.quiet)
    fmt::print(stderr, "tw train: interrupted after step {}; {}\n", training.step(),
               folder ? fmt::format("go on with `tw train {} --resume {}`", in.recipe, folder->path())
                      : "nothing is kept without --out FOLDER");
  throw CLI::RuntimeError(130);
}

}  // namespace

void add_train(CLI::App& app) {
  CLI::App* sub = app.add_subcommand("train", "Train a model from a text or from token shards");
  auto in = std::make_shared<TrainInput>();
  std::vector<std::string_view> moments;
  for (const DType dtype : kMoments) moments.push_back(name(dtype));
  sub->add_option("recipe", in->recipe, "char: a model of the bytes of a text; gpt2: GPT-2, of token shards")
      ->type_name(type_of_words("RECIPE", train_recipe_names()));
  sub->add_option("--data", in->data,
                  "The text to learn, whose last tenth validates; for gpt2 the folder that tw tokenize made")
      ->type_name("PATH");
  sub->add_flag("--small", in->small, "The recipe's small form, for a CPU");
  sub->add_option("--steps", in->steps, "How many (default: the recipe's)")->check(positive());
  sub->add_option("--rate", in->rate, "The largest learning rate (default: the recipe's)")->check(positive());
  sub->add_option(
         "--ema", in->ema,
         "Validate and write with an average of the weights of all steps, the last one's share 1 - D: "
         "0.999 for an average of about a thousand")
      ->type_name("D")
      ->check([](const std::string& text) {
        double decay = 0;
        const bool is_number = CLI::detail::lexical_cast(text, decay);
        return is_number && decay > 0 && decay < 1
                   ? std::string()
                   : fmt::format("a decay of {}; it is a number between 0 and 1, such as 0.999", text);
      });
  sub->add_option("--accumulate", in->accumulate,
                  "Micro-batches of a step: its rows in so many parts, one after another, for less memory "
                  "(default: 16 "
                  "of gpt2 in full, else 1)")
      ->check(positive());
  sub->add_option(
         "--memory", in->memory,
         fmt::format("The most that a step may hold: launches are repeated where it would be more, to the "
                     "same bits; {}",
                     kSizeForms))
      ->type_name("SIZE");
  sub->add_flag(
      "--stop-on-spike", in->stop_on_spike,
      "End where a loss is above the running mean by 6 deviations and a tenth; else it is a warning");
  sub->add_option("--seed", in->seed, "Seed of first parameters, batches and dropout");
  sub->add_option("--precision", in->precision,
                  "f32, tf32, bf16, f16, fp8 or fp8-block: of products; parameters stay f32")
      ->type_name("PRECISION");
  sub->add_option(
         "--moments", in->moments,
         "f32, bf16 or f8e4m3: what the optimizer's moments are stored in; 'f8e4m3,bf16' are those of "
         "gradients and of their squares")
      ->type_name(type_of_words("MOMENTS", moments));
  sub->add_option("--device", in->device, "cpu or cuda:N")->type_name("DEVICE");
  sub->add_option("--threads", in->threads, "CPU threads (default: every allowed core)");
  sub->add_option("--cache", in->cache, "Folder of compiled kernels; '' compiles everything anew")
      ->type_name("FOLDER");
  sub->add_option("--out", in->out, "A folder for checkpoints and the log; it must be new or empty")
      ->type_name("FOLDER");
  sub->add_option("--resume", in->resume, "Go on with what this folder holds, to the bit")
      ->type_name("FOLDER")
      ->excludes("--out", "--small", "--steps", "--seed", "--precision", "--rate", "--accumulate", "--ema",
                 "--moments");  // as the folder says
  sub->add_option("--sample", in->sample, "Bytes of text that the model of a text writes at the end")
      ->check(not_negative());
  add_output_options(*sub, in->output, "a line with an object for each report");
  sub->footer(kMfuFormula);
  const std::vector<CLI::Option*> own = sub->get_options();
  add_train_report(*sub);
  add_train_bytes(*sub);
  // Options that stand before a subcommand would be a training's, of which there is none.
  for (CLI::App* other : sub->get_subcommands([](const CLI::App*) { return true; }))
    for (CLI::Option* option : own)
      if (option != sub->get_help_ptr()) other->excludes(option);
  sub->callback([in, sub] {
    if (sub->get_subcommands().empty()) train(*in);
  });
}

}  // namespace tilewright::tw
