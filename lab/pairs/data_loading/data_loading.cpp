// data_loading: how batches of tokens reach a training step. An iteration is an epoch: every window of the
// token shards once, in an order that a seed decides, in batches beside a step of a stated length. The step
// proves what it was given: its program writes tokens and targets to its output.
#include <tilewright/nn/batches.h>
#include <tilewright/nn/permutation.h>
#include <tilewright/nn/prefetch.h>
#include <tilewright/nn/token_shards.h>
#include <tilewright/tensor/compile.h>
#include <tilewright/tensor/functions.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>

#include "pairs/pairs.h"
#include "pairs/procedure_pair.h"
#include "peers/peer_files.h"

namespace tilewright::lab {

namespace {

constexpr Index kVocabulary = 50257;  // GPT-2's: tokens of two bytes
// Chosen: an epoch of so many is held, verified and written in some 7 GB, a hundred bytes each.
constexpr Index kMostTokens = 1 << 26;
constexpr double kMostKnob = 1 << 20;

struct LoadSizes {
  Index rows = 0, length = 0, steps = 0;
  Index windows() const { return rows * steps; }
  Index tokens() const { return windows() * length + 1; }
  Shape taken() const { return {2 * rows, length}; }  // the tokens of the rows, then their targets
};

// The shards, and what is in them.
class TokenFiles {
 public:
  explicit TokenFiles(const LoadSizes& sizes) : sizes_(sizes) {}

  Status write(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    tokens_.resize(static_cast<std::size_t>(sizes_.tokens()));
    for (std::int32_t& token : tokens_) token = static_cast<std::int32_t>(random() % kVocabulary);
    order_seed_ = random();
    ++version_;
    try {
      std::filesystem::remove_all(path());  // who has the old files mapped keeps them
      // Three files: some windows go over from one to the next.
      nn::TokenShardWriter writer(
          {.folder = path(), .vocabulary = kVocabulary, .shard_tokens = sizes_.tokens() / 3 + 1});
      writer.add(tokens_);
      writer.finish();
    } catch (const std::exception& error) {
      return failure(Failure::Kind::io, error.what());
    }
    return Unit{};
  }

  Result<std::uint64_t> digest() const {
    std::uint64_t hash = order_seed_;
    try {
      const nn::TokenShards shards(path());
      shards.verify();
      const Hash128 sum = shards.checksum();
      hash = lab::digest(&sum, sizeof sum, hash);
    } catch (const Error& error) {
      return failure(Failure::Kind::io, error.what());
    }
    return hash;
  }

  // Which window stands at each place of the epoch.
  std::vector<Index> order() const {
    const nn::Permutation permutation(sizes_.windows(), order_seed_, 0);
    std::vector<Index> windows;
    windows.reserve(static_cast<std::size_t>(sizes_.windows()));
    for (Index place = 0; place < sizes_.windows(); ++place) windows.push_back(permutation(place));
    return windows;
  }

  // What the step takes of a window: `length` tokens, or the targets, one place on.
  std::span<const std::int32_t> part(Index window, Index from) const {
    return std::span(tokens_).subspan(static_cast<std::size_t>(window * sizes_.length + from),
                                      static_cast<std::size_t>(sizes_.length));
  }

  const LoadSizes& sizes() const { return sizes_; }
  std::string path() const { return folder_.path() + "/shards"; }
  std::uint64_t order_seed() const { return order_seed_; }
  int version() const { return version_; }  // another after each change

 private:
  LoadSizes sizes_;
  PeerFolder folder_;
  std::vector<std::int32_t> tokens_;
  std::uint64_t order_seed_ = 0;
  int version_ = 0;
};
using FilesPtr = std::shared_ptr<TokenFiles>;

// A step of a training as the loader knows it: it takes a batch, keeps the device at work for a while and has
// an end that the host sees, as where the loss is read.
class Step {
 public:
  Step(LabDevice& device, double us)
      : context_(device.context), size_(device.kind == DeviceKind::cuda ? 2048 : 256) {
    const DType dtype = device.kind == DeviceKind::cuda ? DType::bf16 : DType::f32;
    a_ = context_->randn({size_, size_}, dtype);
    b_ = context_->randn({size_, size_}, dtype);
    c_ = {context_->empty({size_, size_}, dtype)};
    if (us > 0) calibrate(us);
  }

  void operator()(const nn::Batch& batch, const Tensor& result) const {
    take_.into({result}, {batch.tokens, batch.targets});
    multiply(products_);
    context_->synchronize();
  }

  std::string text() const {
    return fmt::format("a step is {} products of {}x{}: {:.4g} us alone", products_, size_, size_,
                       each_us_ * static_cast<double>(products_));
  }

 private:
  void multiply(Index count) const {
    for (Index i = 0; i < count; ++i) product_.into(c_, {a_, b_});
  }
  void calibrate(double us) {
    constexpr Index kTries = 5, kEach = 10, kMost = 1 << 12;
    each_us_ = INFINITY;
    for (Index i = 0; i < kTries; ++i) {  // the first compiles
      const double start = steady_now_us();
      multiply(kEach);
      context_->synchronize();
      each_us_ = std::min(each_us_, (steady_now_us() - start) / static_cast<double>(kEach));
    }
    products_ = std::clamp<Index>(std::llround(us / each_us_), 1, kMost);
  }

  Context* context_;
  Index size_, products_ = 0;
  double each_us_ = 0;
  Tensor a_, b_;
  std::vector<Tensor> c_;
  CompiledList take_ = compile([](const std::vector<Tensor>& in) { return std::vector{concat(in, 0)}; });
  CompiledList product_ =
      compile([](const std::vector<Tensor>& in) { return std::vector{matmul(in[0], in[1])}; });
};

// A way to come by batches: the n-th of the epoch, and how long was waited for it.
using NextBatch = std::function<nn::PrefetchedBatch(std::uint64_t number)>;

// A contender that takes its batches so; `open` begins anew, with the first batch of the present files.
// Between two batches it ends where `stop` says so.
Procedure loading(const std::string& name, const FilesPtr& files, const std::shared_ptr<const Step>& step,
                  const std::function<bool()>& stop, std::function<NextBatch()> open) {
  struct State {
    NextBatch next;
    int version = 0;
    double waited_us = 0;
  };
  const auto state = std::make_shared<State>();
  Procedure procedure{.name = name, .note = step->text()};
  procedure.run = [=, open = std::move(open)](std::int64_t, const std::vector<Tensor>& results) {
    if (state->version != files->version()) {
      state->next = nullptr;
      state->next = open();
      state->version = files->version();
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (stop && stop()) throw Error("data_loading: interrupted within an epoch", Location::current());
      const nn::PrefetchedBatch taken = state->next(i);
      state->waited_us += 1e6 * taken.waited_s;
      (*step)(taken.batch, results[i]);
    }
  };
  procedure.waited_us = [state] { return std::exchange(state->waited_us, 0.0); };
  return procedure;
}

nn::Batch batch_of(Context& context, const nn::TokenShards& shards, const TokenFiles& files,
                   std::uint64_t number) {
  const LoadSizes& s = files.sizes();
  return nn::shuffled_batch(context, shards, {.rows = s.rows, .length = s.length, .seed = files.order_seed()},
                            number);
}

// What many write first: the training's own thread reads each batch when the step wants it.
NextBatch in_turn(Context& context, const FilesPtr& files) {
  return [&context, files, shards = nn::TokenShards(files->path())](std::uint64_t number) {
    const double start = steady_now_us();
    nn::Batch batch = batch_of(context, shards, *files, number);
    return nn::PrefetchedBatch{std::move(batch), number, 1e-6 * (steady_now_us() - start)};
  };
}

// As tw train does it: batches are made ahead on another thread. Behind the last batch of an epoch comes the
// first: the next iteration is the same epoch.
NextBatch prefetched(Context& context, const FilesPtr& files) {
  const auto make = [&context, files, shards = nn::TokenShards(files->path()),
                     steps = static_cast<std::uint64_t>(files->sizes().steps)](std::uint64_t number) {
    return batch_of(context, shards, *files, number % steps);
  };
  const auto loader = std::make_shared<nn::Prefetch>(make);
  return [loader](std::uint64_t) { return loader->next(); };
}

std::vector<Reference> batches_in_order(const TokenFiles& files) {
  const LoadSizes& s = files.sizes();
  const std::vector<Index> order = files.order();
  std::vector<Reference> all(static_cast<std::size_t>(s.steps));
  for (Index step = 0; step < s.steps; ++step) {
    std::vector<double>& values = all[static_cast<std::size_t>(step)].values;
    for (const Index from : {0, 1})
      for (Index row = 0; row < s.rows; ++row) {
        const auto part = files.part(order[static_cast<std::size_t>(step * s.rows + row)], from);
        values.insert(values.end(), part.begin(), part.end());
      }
  }
  all.push_back({.values = std::vector<double>(static_cast<std::size_t>(s.windows()), 1)});
  return all;
}

// How often each window was delivered, whatever the order: found by its tokens.
std::vector<double> times_delivered(const TokenFiles& files,
                                    const std::vector<std::vector<double>>& batches) {
  const LoadSizes& s = files.sizes();
  std::map<std::vector<double>, std::size_t> known;
  for (Index window = 0; window < s.windows(); ++window) {
    const auto tokens = files.part(window, 0);
    known.emplace(std::vector<double>(tokens.begin(), tokens.end()), static_cast<std::size_t>(window));
  }
  std::vector<double> times(static_cast<std::size_t>(s.windows()), 0);
  for (const std::vector<double>& batch : batches)
    for (Index row = 0; row < s.rows; ++row) {
      const auto begin = batch.begin() + static_cast<std::ptrdiff_t>(row * s.length);
      const auto found = known.find({begin, begin + static_cast<std::ptrdiff_t>(s.length)});
      if (found != known.end()) ++times[found->second];
    }
  return times;
}

PeerWorkload for_data_loaders(const FilesPtr& files, double step_us) {
  const LoadSizes& s = files->sizes();
  PeerWorkload peer{.target = "data_loading",
                    .parameters = {{"shards", files->path()},
                                   {"rows", fmt::format("{}", s.rows)},
                                   {"length", fmt::format("{}", s.length)},
                                   {"step_us", fmt::format("{}", step_us)}}};
  peer.inputs = {{DType::i64, Shape{s.windows()}, 1}};  // the order of the windows
  peer.read_input = [files](std::size_t, std::int64_t, void* to) -> Status {
    const std::vector<Index> order = files->order();
    std::memcpy(to, order.data(), order.size() * sizeof(Index));
    return Unit{};
  };
  peer.ways = {"torch DataLoader", "torch DataLoader, workers"};
  peer.waits = true;
  return peer;
}

Result<PairInstance> make_data_loading(const Knobs& knobs, LabDevice& device) {
  const LoadSizes s{knobs.integer("rows"), knobs.integer("length"), knobs.integer("steps")};
  const auto step_us = static_cast<double>(knobs.integer("step_us"));
  // Each is at most 2^20: their product has room in 64 bits.
  if (s.windows() * s.length > kMostTokens)
    throw Error(
        fmt::format("data_loading: an epoch of {} tokens, rows x length x steps = {} x {} x {}: it has "
                    "at most {}",
                    s.windows() * s.length, s.rows, s.length, s.steps, kMostTokens),
        Location::current());
  const auto files = std::make_shared<TokenFiles>(s);
  ProcedureWorkload w{.target = "data_loading",
                      .shape = fmt::format("B{} T{} x{} step {} us", s.rows, s.length, s.steps, step_us),
                      .dtype = "i32"};
  w.steps = s.steps;
  const auto elements = static_cast<double>(s.rows * s.length);
  w.cost.bytes_read = elements * sizeof(std::uint16_t);
  w.cost.bytes_written = 2 * elements * sizeof(std::int32_t);
  w.unit = "GB/s";
  for (Index step = 0; step < s.steps; ++step)
    w.outputs.push_back({fmt::format("batch {}", step),
                         DType::i32,
                         s.taken(),
                         {.storage = DType::i32, .kind = ToleranceRule::Kind::exact}});
  w.derived = {{.spec = {"deliveries of each window",
                         DType::i64,
                         Shape{s.windows()},
                         {.storage = DType::i64, .kind = ToleranceRule::Kind::exact}},
                .make = [files](const auto& batches) { return times_delivered(*files, batches); }}};
  w.refresh = [files](std::uint64_t seed) { return files->write(seed); };
  w.digest = [files] { return files->digest(); };
  w.reference = [files] { return batches_in_order(*files); };
  std::shared_ptr<const Step> step;
  try {
    step = std::make_shared<const Step>(device, step_us);
  } catch (const Error& error) {
    return failure(Failure::Kind::device, error.what());
  }
  Context& context = *device.context;
  w.procedures = {
      loading("in turn", files, step, device.stop, [&context, files] { return in_turn(context, files); }),
      loading("prefetch", files, step, device.stop,
              [&context, files] { return prefetched(context, files); })};
  w.peers = for_data_loaders(files, step_us);
  return make_instance(std::move(w), device);
}

}  // namespace

Pair data_loading_pair() {
  return {.name = "data_loading",
          .doc = "batches of tokens from mapped shards to a training step",
          .knobs = {{.name = "rows", .values = {Index{32}}, .doc = "of a batch", .most = kMostKnob},
                    {.name = "length", .values = {Index{1024}}, .doc = "tokens of a row", .most = kMostKnob},
                    {.name = "steps",
                     .values = {Index{32}},
                     .doc = "batches of an epoch, which is an iteration",
                     .most = kMostKnob},
                    {.name = "step_us",
                     .values = {Index{1000}},
                     .doc = "microseconds of a step without its data, about; 0: none",
                     .least = 0,
                     .most = 1e6}},
          .make = make_data_loading,
          .tiny = {{"rows=3", "length=5", "steps=4", "step_us=0,100"}},
          .suites = {{"quick", {"rows=8", "steps=16"}}},
          .is_program = false};
}

}  // namespace tilewright::lab
