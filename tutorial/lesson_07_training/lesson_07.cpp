// Lesson 7: training, from linear regression to a character model.
//
// Training is four lines in a loop: a batch, a loss, its gradient, a step against it. value_and_grad() gives
// the gradient of any function of tensors, ahead of time: it becomes a part of the same program, and
// compile() fuses both. Three models learn here, each judged by a number that is known without training:
//
//   a line        has a least-squares solution
//   pairs         no model that sees one character alone has less loss than the entropy of the next one
//   a GPT-2       sees more than one, and gets below that
//
//   lesson [device] [steps]      default: cpu 120, of the GPT-2
#include <fmt/core.h>

#include <tilewright/nn/batches.h>
#include <tilewright/nn/gpt2.h>
#include <tilewright/nn/optimizer.h>
#include <tilewright/nn/schedule.h>
#include <tilewright/nn/text_data.h>
#include <tilewright/tilewright.hpp>

#include <cmath>
#include <cstdlib>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace tw = tilewright;
namespace nn = tilewright::nn;
using tw::Index;
using tw::Tensor;

namespace {

// --- a line: y = x · weight + bias

// Parameters are a struct that names them; its gradient is a struct of the same type.
struct Line {
  Tensor weight;  // (features)
  Tensor bias;    // ()
  TILEWRIGHT_FIELDS(weight, bias)
};

Tensor squared_error(const Line& line, const Tensor& x, const Tensor& y) {
  const Tensor error = tw::matmul(x, line.weight) + line.bias - y;
  return tw::mean(error * error);
}

// Without noise the solution is the line that made the points.
bool learn_a_line(tw::Context& ctx) {
  const std::vector<float> truth = {2, -1, 0.5F};
  const Tensor x = ctx.randn({256, 3});
  const Tensor y = tw::matmul(x, ctx.from(truth, {3})) + 3.F;
  const auto step = tw::compile([](const Line& line, const Tensor& in, const Tensor& out) {
    const auto [loss, slope] = tw::value_and_grad(squared_error)(line, in, out);
    return std::pair{loss, Line{line.weight - 0.1F * slope.weight, line.bias - 0.1F * slope.bias}};
  });
  Line line{ctx.zeros({3}), ctx.zeros({})};
  Tensor loss;
  for (int i = 0; i < 200; ++i) std::tie(loss, line) = step(line, x, y);
  const std::vector<float> weight = line.weight.to_vector<float>();
  double worst = std::abs(line.bias.item() - 3);
  for (std::size_t i = 0; i < truth.size(); ++i)
    worst = std::max(worst, static_cast<double>(std::abs(weight[i] - truth[i])));
  fmt::print("a line: loss {:.1e}, its numbers are off by {:.1e} at most; a step is {} kernels\n",
             loss.item(), worst, step.report().front().kernels.size());
  return worst < 1e-4;  // each step brings the error nearer by a constant factor, down to f32's roundings
}

// --- pairs of characters: a table of logits, a row for each character

std::string written_text() {
  std::string text;
  for (int i = 0; i < 150; ++i) text += fmt::format("{} foxes and {} dogs; ", i, i + 1);
  return text;
}

// -Σ p(a, b) ln p(b | a) over all pairs of neighbours: what the best table of logits has as its loss.
double entropy_of_pairs(const std::vector<std::int32_t>& tokens) {
  std::map<std::pair<std::int32_t, std::int32_t>, double> pairs;
  std::map<std::int32_t, double> firsts;
  const double all = static_cast<double>(tokens.size() - 1);
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    pairs[{tokens[i], tokens[i + 1]}] += 1;
    firsts[tokens[i]] += 1;
  }
  double entropy = 0;
  for (const auto& [pair, count] : pairs) entropy -= count / all * std::log(count / firsts[pair.first]);
  return entropy;
}

Tensor pair_loss(const Tensor& table, const Tensor& tokens, const Tensor& targets) {
  return tw::cross_entropy(tw::embedding(table, tokens), targets);
}

bool learn_pairs(tw::Context& ctx, const std::vector<std::int32_t>& tokens, Index vocabulary) {
  // All of the text at once, so that the loss is the one that the entropy is of.
  const auto pairs = static_cast<Index>(tokens.size()) - 1;
  const Tensor in = ctx.from(std::vector(tokens.begin(), tokens.end() - 1), {pairs}),
               out = ctx.from(std::vector(tokens.begin() + 1, tokens.end()), {pairs});
  // An optimizer is a value, its state a tree like the parameters. Donated arguments become the results.
  const nn::Optimizer optimizer = nn::adamw({.weight_decay = 0});
  const auto step = tw::compile(
      [&](const Tensor& table, const nn::OptimizerState<Tensor>& state, const Tensor& x, const Tensor& y) {
        const auto [loss, slope] = tw::value_and_grad(pair_loss)(table, x, y);
        const auto [next, next_state] = optimizer.update(table, slope, state, tw::full_like(loss, 0.1));
        return std::tuple{loss, next, next_state};
      },
      {.donate = {0, 1}});
  Tensor table = ctx.zeros({vocabulary, vocabulary}), loss;
  nn::OptimizerState<Tensor> state = optimizer.init(table);
  for (int i = 0; i < 300; ++i) std::tie(loss, table, state) = step(table, state, in, out);
  const double least = entropy_of_pairs(tokens);
  fmt::print("pairs: loss {:.4f}, and the least there is {:.4f}\n", loss.item(), least);
  return loss.item() > least - 1e-4 && loss.item() < least + 0.02;
}

// --- a GPT-2: two layers that see sixteen characters

bool learn_text(tw::Context& ctx, const std::vector<std::int32_t>& tokens, Index vocabulary, int steps) {
  const Index heads = 2;
  nn::GPT2 model =
      nn::make_gpt2(ctx, {.vocabulary = vocabulary, .context = 16, .width = 32, .layers = 2, .heads = heads});
  const nn::Optimizer optimizer = nn::adamw({.weight_decay = 0.1});
  nn::OptimizerState<nn::GPT2> state = optimizer.init(model);
  const auto step = tw::compile(
      [&](const nn::GPT2& m, const nn::OptimizerState<nn::GPT2>& s, const Tensor& x, const Tensor& y,
          const Tensor& rate) {
        const auto loss = [&](const nn::GPT2& p) { return nn::gpt2_loss(p, x, y, heads); };
        const auto [value, slope] = tw::value_and_grad(loss)(m);
        const auto [clipped, norm] = nn::clip_by_global_norm(slope, 1.0);
        const auto [next, next_state] = optimizer.update(m, clipped, s, rate);
        return std::tuple{value, next, next_state};
      },
      {.donate = {0, 1}});
  const nn::ScheduleOptions schedule{.rate = 1e-2, .last_rate = 1e-3, .warmup = 10, .steps = steps};
  double first = 0, last = 0;
  for (int i = 0; i < steps; ++i) {
    const nn::Batch batch = nn::random_batch(ctx, tokens, 16, 16, /*seed=*/7, static_cast<std::uint64_t>(i));
    Tensor loss;
    // The rate is a tensor: a schedule compiles nothing anew.
    std::tie(loss, model, state) =
        step(model, state, batch.tokens, batch.targets, ctx.scalar(nn::cosine_rate(schedule, i)));
    last = loss.item();
    if (i == 0) first = last;
  }
  const double uniform = std::log(static_cast<double>(vocabulary)), pairs = entropy_of_pairs(tokens);
  fmt::print(
      "a GPT-2: loss {:.3f} at first, near ln {} = {:.3f}; {:.3f} after {} steps, below the {:.3f} of "
      "pairs\n",
      first, vocabulary, uniform, last, steps, pairs);
  return std::abs(first - uniform) < 0.3 && last < pairs;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string device = argc > 1 ? argv[1] : "cpu";
  const int steps = argc > 2 ? std::atoi(argv[2]) : 120;
  tw::Context ctx({.device = device});
  ctx.set_seed(1);
  const std::string text = written_text();
  const nn::ByteVocabulary vocabulary(text);
  const std::vector<std::int32_t> tokens = vocabulary.encode(text);
  bool right = learn_a_line(ctx);
  right = learn_pairs(ctx, tokens, vocabulary.size()) && right;
  right = learn_text(ctx, tokens, vocabulary.size(), steps) && right;
  return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
