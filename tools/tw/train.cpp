// tw train: a model trained from a text, with reports, checkpoints and a clean end.
#include <tilewright/base/error.h>

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>

#include "base/interrupt.h"
#include "tw/arguments.h"
#include "tw/commands.h"
#include "tw/output.h"
#include "tw/subject.h"
#include "tw/train_folder.h"
#include "tw/train_run.h"

namespace tilewright::tw {

namespace {

using Json = nlohmann::ordered_json;

struct TrainInput {
  std::string recipe, data, out, resume;
  std::string device = "cpu", cache = "auto", precision = "f32";
  bool small = false;
  Index steps = 0;  // 0: the recipe's
  std::uint64_t seed = 1337;
  int threads = 0;
  Index sample = 300;  // bytes written at the end
  OutputOptions output;
};

Json to_json(const TrainReport& r) {
  return {{"step", r.step},
          {"train_loss", r.train_loss},
          {"val_loss", r.val_loss},
          {"best_val_loss", r.best_val_loss},
          {"gradient_norm", r.gradient_norm},
          {"rate", r.rate},
          {"tokens_per_s", r.tokens_per_s},
          {"seconds", r.seconds},
          {"peak_bytes", r.peak_bytes}};
}

std::string to_text(const TrainReport& r) {
  return fmt::format(
      "step {:5}  train {:.4f}  val {:.4f}  best {:.4f}  norm {:6.3f}  rate {:.2e}  {:8.0f} tokens/s  {:.1f} "
      "s\n",
      r.step, r.train_loss, r.val_loss, r.best_val_loss, r.gradient_norm, r.rate, r.tokens_per_s, r.seconds);
}

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

std::string left_text(double seconds) {
  const auto whole = static_cast<long long>(seconds);
  return fmt::format("{}:{:02} left", whole / 60, whole % 60);
}

// Trains up to the last step, or to Ctrl-C. Whether it got to the end.
bool run(TrainRun& training, const TrainInput& in, const TrainRecipe& recipe, TrainFolder* folder,
         Lines& lines) {
  InterruptGuard guard;
  ProgressLine progress("tw train", in.output.progress());
  const Index last = recipe.schedule.steps;
  std::string known = "compiling";
  auto shown = std::chrono::steady_clock::now();
  double rate = 0;
  while (training.step() < last && !InterruptGuard::interrupted()) {
    const auto now = std::chrono::steady_clock::now();
    if (training.step() == 0 || now - shown > std::chrono::milliseconds(500)) {
      shown = now;
      const double left =
          rate > 0 ? static_cast<double>((last - training.step()) * recipe.rows * recipe.model.context) / rate
                   : 0;
      progress.step(fmt::format("step {} of {}, {}{}", training.step(), last, known,
                                left > 0 ? ", " + left_text(left) : ""));
    }
    training.advance();
    if (training.step() % recipe.report_every != 0 && training.step() != last) continue;
    const TrainReport report = training.report();
    rate = report.tokens_per_s;
    known = fmt::format("loss {:.3f}, {:.0f} tokens/s", report.train_loss, rate);
    progress.clear();
    lines.write(in.output.as_json() ? to_json(report).dump() + "\n" : to_text(report));
    if (folder != nullptr) {
      folder->log(to_json(report).dump());
      folder->save(training, report.val_loss <= report.best_val_loss);
    }
  }
  if (training.step() >= last) return true;
  progress.clear();
  if (folder != nullptr) folder->save(training, false);
  return false;
}

DType compute_type(const std::string& precision) {
  if (precision == "f32") return DType::f32;
  if (precision == "bf16") return DType::bf16;
  if (precision == "f16") return DType::f16;
  throw Error(fmt::format(
      "there is no precision '{}'; known: f32, bf16, f16 (of products; parameters and moments are f32)",
      precision));
}

void train(TrainInput in) {
  check_output(in.output);
  std::optional<TrainFolder> folder;
  if (!in.resume.empty()) {
    folder = TrainFolder::open(in.resume);
    const TrainFolder::Settings& s = folder->settings();
    if (s.recipe != in.recipe)
      throw Error(fmt::format("{} trains recipe '{}', not '{}'", in.resume, s.recipe, in.recipe));
    in.small = s.small;
    in.seed = s.seed;
    in.precision = s.precision;
    if (in.data.empty()) in.data = s.data;
    in.steps = s.steps;
  }
  if (in.data.empty()) throw Error("--data FILE says what to learn from");
  const std::string text = read_text(in.data);
  TrainRecipe recipe = train_recipe(in.recipe, in.small);
  if (in.steps > 0) recipe.schedule.steps = in.steps;
  recipe.report_every = std::clamp<Index>(recipe.schedule.steps / 8, 1, recipe.report_every);
  const DType compute = compute_type(in.precision);
  Context ctx({.device = in.device, .cache_directory = cache_argument(in.cache), .threads = in.threads});
  TrainRun training(ctx, {.recipe = recipe, .seed = in.seed, .compute = compute}, text);
  if (!in.resume.empty()) folder->load(training, in.output.quiet);
  if (!in.out.empty())
    folder = TrainFolder::make(in.out, {.recipe = in.recipe,
                                        .data = std::filesystem::absolute(in.data).string(),
                                        .precision = in.precision,
                                        .small = in.small,
                                        .seed = in.seed,
                                        .steps = recipe.schedule.steps});
  Lines lines(in.output);
  bool ended = false;
  try {
    ended = run(training, in, recipe, folder ? &*folder : nullptr, lines);
  } catch (...) {
    lines.finish();  // what was reported until then is kept
    throw;
  }
  if (ended && in.sample > 0 && !in.output.as_json())
    lines.write("\n" + training.write(text.substr(0, 1), in.sample) + "\n");
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
  CLI::App* sub = app.add_subcommand("train", "Train a model from a text");
  auto in = std::make_shared<TrainInput>();
  sub->add_option("recipe", in->recipe, "char: a model of the bytes of a text")
      ->required()
      ->type_name("RECIPE");
  sub->add_option("--data", in->data, "The text to learn; its last tenth validates")->type_name("FILE");
  sub->add_flag("--small", in->small, "The recipe's small form, for a CPU");
  sub->add_option("--steps", in->steps, "How many (default: the recipe's)")->check(CLI::PositiveNumber);
  sub->add_option("--seed", in->seed, "Of first parameters, batches and dropout");
  sub->add_option("--precision", in->precision,
                  "f32, bf16 or f16: of products; parameters and moments stay f32")
      ->type_name("TYPE");
  sub->add_option("--device", in->device, "cpu or cuda:N")->type_name("DEVICE");
  sub->add_option("--threads", in->threads, "CPU threads (default: every allowed core)");
  sub->add_option("--cache", in->cache, "Folder of compiled kernels; '' compiles everything anew")
      ->type_name("FOLDER");
  sub->add_option("--out", in->out, "A folder for checkpoints and the log; it must be new or empty")
      ->type_name("FOLDER");
  sub->add_option("--resume", in->resume, "Go on with what this folder holds, to the bit")
      ->type_name("FOLDER")
      ->excludes("--out", "--small", "--steps", "--seed", "--precision");  // as the folder says
  sub->add_option("--sample", in->sample, "Bytes of text that the model writes at the end")
      ->check(CLI::NonNegativeNumber);
  add_output_options(*sub, in->output, "a line with an object for each report");
  sub->callback([in] { train(*in); });
}

}  // namespace tilewright::tw
