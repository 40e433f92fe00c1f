// gpt2_block: a whole program on real input. Bytes of a text are embedded, go through one block of GPT-2 (A.
// Radford et al., Language Models are Unsupervised Multitask Learners, 2019) and a tied head, to the mean
// loss of guessing each next byte.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <system_error>

#include "pairs/gpt2_block/gpt2_reference.h"
#include "pairs/pairs.h"
#include "pairs/tensor_pair.h"

namespace tilewright::lab {

namespace {

// Positions of the inputs in the list.
enum In {
  tokens,
  targets,
  pos,
  wte,
  wpe,
  ln1w,
  ln1b,
  qkvw,
  qkvb,
  ow,
  ob,
  ln2w,
  ln2b,
  fcw,
  fcb,
  pw,
  pb,
  lnfw,
  lnfb
};

Tensor attention(const Tensor& h, const std::vector<Tensor>& in, const GptSizes& s) {
  const Tensor qkv = matmul(h, in[qkvw]) + in[qkvb];  // (B, T, 3C)
  const Index head = s.channels / s.heads;
  const auto heads = [&](Index part) {  // (B, H, T, D)
    const Tensor one = slice(qkv, 2, {part * s.channels, (part + 1) * s.channels});
    return transpose(reshape(one, {s.batch, s.time, s.heads, head}), {0, 2, 1, 3});
  };
  const Tensor q = heads(0), k = heads(1), v = heads(2);
  const Tensor scores = matmul(q, swap_axes(k, 2, 3)) * (1 / std::sqrt(static_cast<double>(head)));
  const Tensor past = unsqueeze(in[pos], 1) >= unsqueeze(in[pos], 0);  // (T, T)
  const Tensor weights = softmax(where(past, scores, -std::numeric_limits<float>::infinity()));
  const Tensor mixed = reshape(transpose(matmul(weights, v), {0, 2, 1, 3}), {s.batch, s.time, s.channels});
  return matmul(mixed, in[ow]) + in[ob];
}

// Loss and logits (B, T, V).
std::vector<Tensor> forward(const std::vector<Tensor>& in, const GptSizes& s) {
  Tensor x = embedding(in[wte], in[tokens]) + in[wpe];  // (B, T, C)
  x = x + attention(layer_norm(x, in[ln1w], in[ln1b]), in, s);
  const Tensor wide = gelu_tanh(matmul(layer_norm(x, in[ln2w], in[ln2b]), in[fcw]) + in[fcb]);
  x = x + matmul(wide, in[pw]) + in[pb];
  const Tensor logits = matmul(layer_norm(x, in[lnfw], in[lnfb]), transpose(in[wte], {1, 0}));
  return {cross_entropy(cast(logits, DType::f32), in[targets]), logits};
}

// The bytes of the text.
std::vector<std::int64_t> read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw Error(fmt::format("gpt2_block: the text {} cannot be read; --set text=FILE names another", path));
  std::vector<std::int64_t> bytes;
  for (std::istreambuf_iterator<char> at(file), end; at != end; ++at)
    bytes.push_back(static_cast<unsigned char>(*at));
  return bytes;
}

// The user's text, or the one that comes with the project: from the checkout that the program lies in, the
// prefix that it was installed into, or the folder it is run in.
std::string text_path(const std::string& asked) {
  if (!asked.empty()) return asked;
  std::error_code ignored;
  auto folder = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  for (; folder.has_relative_path(); folder = folder.parent_path())
    for (const char* place : {"lab/data/", "share/tilewright/"})
      if (const auto path = folder / place / "tinyshakespeare.txt"; std::filesystem::exists(path, ignored))
        return path.string();
  return "lab/data/tinyshakespeare.txt";
}

// B passages of T bytes each; `shift` 1 gives what follows each byte. Tokens and targets of one copy are made
// with the same random start, because the seed of the context draws both from the same text.
struct Passages {
  std::shared_ptr<const std::vector<std::int64_t>> text;
  std::shared_ptr<std::vector<std::int64_t>> starts;
  GptSizes sizes;

  Tensor make(Context& context, Index shift) const {
    const auto last = static_cast<Index>(text->size()) - sizes.time - 1;
    if (shift == 0) *starts = context.randint(Shape{sizes.batch}, last).to_vector<std::int64_t>();
    std::vector<std::int64_t> ids;
    for (const std::int64_t start : *starts) {
      const auto from = text->begin() + start + shift;
      ids.insert(ids.end(), from, from + sizes.time);
    }
    return context.from(ids, Shape{sizes.batch, sizes.time});
  }
};

std::vector<InputSpec> gpt_inputs(const GptSizes& s, const std::string& path, DType dtype) {
  auto text = std::make_shared<const std::vector<std::int64_t>>(read_text(path));
  if (static_cast<Index>(text->size()) < s.time + 2)
    throw Error(fmt::format("gpt2_block: the text {} is shorter than {} bytes", path, s.time + 2));
  const Passages passages{text, std::make_shared<std::vector<std::int64_t>>(), s};
  const Shape ids{s.batch, s.time};
  const Index c = s.channels;
  std::vector<InputSpec> in = {
      {"tokens", DType::i64, ids, [passages](Context& context) { return passages.make(context, 0); }},
      {"targets", DType::i64, ids, [passages](Context& context) { return passages.make(context, 1); }},
      {"positions", DType::i64, Shape{s.time}, [t = s.time](Context& context) { return context.arange(t); },
       false}};
  const auto weight = [&](const char* name, const Shape& shape, Normal values) {
    in.push_back(shared(normal_input(name, shape, dtype, values)));
  };
  // GPT-2's initialisation, with biases and gains away from 0 and 1 so that none can be forgotten.
  const Normal matrix{.deviation = 0.02}, bias{.deviation = 0.02}, gain{.mean = 1, .deviation = 0.1};
  weight("wte", {s.vocabulary, c}, {.deviation = 0.02});
  weight("wpe", {s.time, c}, {.deviation = 0.01});
  weight("ln1w", {c}, gain), weight("ln1b", {c}, bias);
  weight("qkvw", {c, 3 * c}, matrix), weight("qkvb", {3 * c}, bias);
  weight("ow", {c, c}, matrix), weight("ob", {c}, bias);
  weight("ln2w", {c}, gain), weight("ln2b", {c}, bias);
  weight("fcw", {c, 4 * c}, matrix), weight("fcb", {4 * c}, bias);
  weight("pw", {4 * c, c}, matrix), weight("pb", {c}, bias);
  weight("lnfw", {c}, gain), weight("lnfb", {c}, bias);
  return in;
}

perf::Cost gpt_cost(const GptSizes& s, const std::vector<InputSpec>& in, const std::vector<OutputSpec>& out,
                    DType dtype) {
  perf::Cost cost = cost_of(in, out, 0);
  const auto rows = static_cast<double>(s.batch * s.time), c = static_cast<double>(s.channels);
  // A causal block needs half of the T × T scores.
  cost.matrix[dtype] = 2 * rows * 12 * c * c + 2 * rows * static_cast<double>(s.time) * c +
                       2 * rows * c * static_cast<double>(s.vocabulary);
  return cost;
}

Result<PairInstance> make_gpt2_block(const Knobs& knobs, LabDevice& device) {
  const GptSizes s{knobs.integer("batch"), knobs.integer("time"), knobs.integer("channels"),
                   knobs.integer("heads"), 256};
  if (s.heads < 1 || s.channels % s.heads != 0)
    throw Error("gpt2_block: channels must be a multiple of heads");
  const std::string path = text_path(knobs.text("text"));
  const DType dtype = knobs.dtype("dtype");
  TensorWorkload w{.target = "gpt2_block",
                   .shape = fmt::format("B{} T{} C{} H{}", s.batch, s.time, s.channels, s.heads),
                   .dtype = std::string(name(dtype))};
  w.inputs = gpt_inputs(s, path, dtype);
  // The rule counts one step: its sum, and what a norm or gelu computes beside it. The reference follows
  // errors through all steps.
  const ToleranceRule rule{.storage = dtype, .reduction = std::max(4 * s.channels, s.time), .operations = 16};
  const ToleranceRule of_loss{
      .storage = DType::f32, .reduction = s.batch * s.time + s.vocabulary, .operations = 16};
  w.outputs = {{"loss", DType::f32, Shape{}, of_loss},
               {"logits", dtype, Shape{s.batch, s.time, s.vocabulary}, rule}};
  w.cost = gpt_cost(s, w.inputs, w.outputs, dtype);
  w.unit = "GFLOP/s";
  w.function = [s](const std::vector<Tensor>& in) { return forward(in, s); };
  w.peer_parameters = {{"heads", fmt::format("{}", s.heads)}};
  const GptScales scales{ErrorScale(of_loss, 1), ErrorScale(rule, s.batch * s.time * s.vocabulary)};
  w.reference = [s, scales](const HostArrays& in, ThreadPool& pool) {
    return gpt2_reference(in, s, scales, pool);
  };
  return make_instance(std::move(w), device);
}

}  // namespace

Pair gpt2_block_pair() {
  return {.name = "gpt2_block",
          .doc = "bytes of a text through embeddings and one GPT-2 block to the loss",
          .knobs = {{.name = "batch", .values = {Index{1}}, .doc = "passages", .cuda_values = {Index{8}}},
                    {.name = "time", .values = {Index{1024}}, .doc = "bytes of a passage"},
                    {.name = "channels", .values = {Index{768}}, .doc = "width of the block"},
                    {.name = "heads", .values = {Index{12}}, .doc = "attention heads"},
                    {.name = "dtype",
                     .values = {DType::f32},
                     .doc = "type of weights and activations",
                     .cuda_values = {DType::f32, DType::bf16}},
                    {.name = "text", .values = {std::string()}, .doc = "file; empty: Tiny Shakespeare"}},
          .make = make_gpt2_block,
          .tiny = {{"time=24", "channels=32", "heads=4"}},
          .suites = {{"quick", {"time=512"}}}};
}

}  // namespace tilewright::lab
