// Rounds over candidates.
#include "runtime/tuner.h"

#include <tilewright/base/clock.h>

#include <tilewright/tile/text.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>

namespace tilewright::runtime {

using backends::Candidate;

namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The next power of two in magnitude, of either sign, as views may run backwards. A size with no larger power
// in its type stays.
Index next_power(Index size) {
  constexpr Index kLargest = Index{1} << 62;
  if (size > kLargest || size < -kLargest) return size;
  const auto up = static_cast<Index>(std::bit_ceil(static_cast<std::uint64_t>(std::abs(size))));
  return size < 0 ? -up : size == 0 ? 0 : up;
}

// What kernels of a shape bucket have in common: what is computed of views whose sizes are rounded up to
// powers of two. Tiles are fitted to the size, and with them change numbers, indices and how many programs
// there are.
std::string bucket_of(const tile::Kernel& kernel) {
  std::string text;
  const auto add_rounded = [&](const std::vector<tile::Dim>& dims) {
    for (const tile::Dim& d : dims)
      text += d.is_constant() ? fmt::format("{} ", next_power(d.value)) : fmt::format("s{} ", d.scalar);
  };
  for (const tile::ViewParam& view : kernel.views) {
    text += fmt::format("{} of ", name(view.dtype));
    add_rounded(view.extents);
    text += "by ";
    add_rounded(view.strides);
  }
  tile::for_each_op(kernel.body, [&](const tile::Op& op) {
    const bool index = op.results.size() == 1 && kernel.type(op.results[0]).rank() == 0 &&
                       is_integer(kernel.type(op.results[0]).dtype);
    if (index || op.kind == tile::OpKind::constant) return;
    text += fmt::format("\n{} {} {} {} {} {}:", static_cast<int>(op.kind), static_cast<int>(op.prim),
                        static_cast<int>(op.monoid), op.param, op.axis, static_cast<int>(op.precision));
    for (const tile::ValueId result : op.results)
      text += fmt::format(" {}{}", name(kernel.type(result).dtype), kernel.type(result).rank());
  });
  return text;
}

// A schedule of the kernel, or of one of its variants.
struct Choice {
  const tile::Kernel* kernel = nullptr;
  Candidate candidate;
  std::string text() const { return to_string(candidate.schedule) + "\n" + tiles_of(*kernel); }
};

// How far apart two kernels' tiles are, those of 128 by 256 and 96 by 256: the sum of their ratios'
// logarithms. Infinite where they have other names.
double distance(const std::vector<tile::ConstParam>& a, const std::vector<tile::ConstParam>& b) {
  if (a.size() != b.size()) return std::numeric_limits<double>::infinity();
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].name != b[i].name) return std::numeric_limits<double>::infinity();
    sum += std::fabs(std::log(static_cast<double>(a[i].value) / static_cast<double>(b[i].value)));
  }
  return sum;
}

// What a stored winner says of its tiles, as tiles_of() writes it.
std::vector<tile::ConstParam> stored_tiles(const std::string& text) {
  std::vector<tile::ConstParam> tiles;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const std::size_t equals = std::min(word.find('='), word.size() - 1);
    tiles.push_back({word.substr(0, equals), std::atoll(word.c_str() + equals + 1)});
  }
  return tiles;
}

class KernelTuner {
 public:
  KernelTuner(Executable& executable, std::size_t kernel, KernelStore& store, BinaryCache* cache,
              std::span<const tile::Kernel> variants, const TuneOptions& options)
      : executable_(executable),
        index_(kernel),
        kernels_{executable.plan().kernels[kernel]},
        store_(store),
        cache_(cache),
        options_(options) {
    kernels_.insert(kernels_.end(), variants.begin(), variants.end());
  }

  Result<KernelTuning> run() {
    const auto start = std::chrono::steady_clock::now();
    KernelTuning out;
    std::vector<Choice> candidates = legal_choices();
    out.stored = candidates.size() > 1 && use_stored(candidates);
    if (candidates.size() > 1 && !out.stored) {
      keep_tried(candidates);
      if (auto measured = measure(candidates); !measured) return measured.error();
      for (Entrant& e : entrants_) out.trials.push_back(std::move(e.trial));
    }
    out.ms = ms_since(start);
    return out;
  }

 private:
  struct Entrant {
    Choice choice;
    Trial trial;
    std::shared_ptr<LoadedKernel> loaded;
  };

  // The least predicted times first; of equals the plan's own kernel.
  std::vector<Choice> legal_choices() const {
    std::vector<Choice> out;
    for (const tile::Kernel& kernel : kernels_)
      for (Candidate& c : store_.device()->backend().candidates(kernel))
        if (c.refusal.empty()) out.push_back({&kernel, std::move(c)});
    std::stable_sort(out.begin(), out.end(), [](const Choice& a, const Choice& b) {
      return a.candidate.predicted_us < b.candidate.predicted_us;
    });
    return out;
  }

  // Those that are measured: the first, and what would run untuned, the first of the plan's own kernel.
  void keep_tried(std::vector<Choice>& choices) const {
    const auto most = static_cast<std::ptrdiff_t>(options_.candidates);
    if (std::ssize(choices) <= most) return;
    const auto untuned = std::find_if(choices.begin(), choices.end(),
                                      [&](const Choice& c) { return c.kernel == &kernels_.front(); });
    const auto last = choices.begin() + most;
    if (untuned != choices.end() && untuned >= last) *(last - 1) = std::move(*untuned);
    choices.resize(static_cast<std::size_t>(most));
  }

  Hash128 key() const {
    return Hasher()
        .add(std::string("schedule by kind"))  // another form of the text is another key
        .add(store_.device()->backend().binary_key())
        .add(bucket_of(kernels_.front()))
        .digest();
  }

  // Whether the winner of the bucket is stored and legal for this shape, with the tiles that are nearest to
  // its.
  bool use_stored(const std::vector<Choice>& choices) {
    const std::optional<std::string> winner = cache_ ? cache_->find(key()) : std::nullopt;
    if (!winner) return false;
    const std::size_t line = winner->find('\n');
    const std::vector<tile::ConstParam> tiles = stored_tiles(winner->substr(line + 1));
    const auto away = [&](const Choice& c) {
      return to_string(c.candidate.schedule) == winner->substr(0, line)
                 ? distance(c.kernel->constants, tiles)
                 : std::numeric_limits<double>::infinity();
    };
    const auto nearest = std::min_element(choices.begin(), choices.end(),
                                          [&](const auto& a, const auto& b) { return away(a) < away(b); });
    if (!std::isfinite(away(*nearest))) return false;
    auto loaded = store_.get(*nearest->kernel, nearest->candidate.schedule);
    if (!loaded) return false;
    use(std::move(*loaded), *nearest);
    return true;
  }

  void use(std::shared_ptr<LoadedKernel> loaded, const Choice& choice) {
    loaded->predicted_us = choice.candidate.predicted_us;
    if (loaded->candidates.empty()) loaded->candidates = executable_.kernels()[index_]->candidates;
    executable_.replace(index_, *choice.kernel, std::move(loaded));
  }

  Status measure(const std::vector<Choice>& choices) {
    std::vector<ScheduledKernel> wanted;
    wanted.reserve(choices.size());
    for (const Choice& c : choices) wanted.push_back({c.kernel, &c.candidate.schedule});
    std::vector<KernelResult> loaded = store_.get_all(wanted);
    for (std::size_t i = 0; i < choices.size(); ++i) {
      const Choice& c = choices[i];
      Entrant e{.choice = c, .trial = {}, .loaded = nullptr};
      e.trial.tiles = tiles_of(*c.kernel);
      e.trial.schedule = c.candidate.schedule;
      e.trial.predicted_us = c.candidate.predicted_us;
      if (loaded[i])
        e.loaded = std::move(*loaded[i]);
      else
        e.trial.failure = loaded[i].error().message;
      entrants_.push_back(std::move(e));
    }
    if (Status heat = run_rounds(1, std::numeric_limits<double>::infinity()); !heat) return heat;
    if (Status final = run_rounds(options_.rounds, fastest() * options_.keep); !final) return final;
    std::stable_sort(entrants_.begin(), entrants_.end(),
                     [](const Entrant& a, const Entrant& b) { return rank(a.trial) < rank(b.trial); });
    Entrant& winner = entrants_.front();
    if (!winner.loaded || winner.trial.measured_us == 0)
      return Unit{};  // nothing ran: the model's choice stays
    if (cache_) (void)cache_->store(key(), winner.choice.text());
    use(winner.loaded, winner.choice);
    return Unit{};
  }

  static double rank(const Trial& t) {
    return t.measured_us > 0 ? t.measured_us : std::numeric_limits<double>::infinity();
  }

  double fastest() const {
    double best = std::numeric_limits<double>::infinity();
    for (const Entrant& e : entrants_) best = std::min(best, rank(e.trial));
    return best;
  }

  // Interleaved, so that drift of the clock meets all alike.
  Status run_rounds(int rounds, double slowest_us) {
    std::vector<std::vector<double>> samples(entrants_.size());
    for (int r = 0; r < rounds; ++r)
      for (std::size_t i = 0; i < entrants_.size(); ++i) {
        Entrant& e = entrants_[i];
        if (!e.loaded || !e.trial.failure.empty() || e.trial.measured_us > slowest_us) continue;
        if (auto us = time(e))
          samples[i].push_back(*us);
        else
          e.trial.failure = us.error().message;
      }
    for (std::size_t i = 0; i < entrants_.size(); ++i)
      if (!samples[i].empty()) entrants_[i].trial.measured_us = median(samples[i]);
    return Unit{};
  }

  Result<double> time(const Entrant& e) const {
    constexpr int kMostLaunches = 50;
    double once = e.trial.measured_us;
    if (once == 0) {
      // The first launch loads code and fills caches; the second says how many a round takes.
      auto cold = executable_.time_kernel(index_, *e.choice.kernel, *e.loaded->program, 1);
      if (!cold) return cold;
      auto warm = executable_.time_kernel(index_, *e.choice.kernel, *e.loaded->program, 1);
      if (!warm) return warm;
      once = *warm;
    }
    const int launches =
        std::clamp(static_cast<int>(options_.round_us / std::max(once, 0.1)), 1, kMostLaunches);
    return executable_.time_kernel(index_, *e.choice.kernel, *e.loaded->program, launches);
  }

  Executable& executable_;
  std::size_t index_;
  std::vector<tile::Kernel> kernels_;  // the plan's, then its variants
  KernelStore& store_;
  BinaryCache* cache_;
  const TuneOptions& options_;
  std::vector<Entrant> entrants_;
};

}  // namespace

std::string tiles_of(const tile::Kernel& kernel) {
  std::vector<std::string> constants;
  constants.reserve(kernel.constants.size());
  for (const tile::ConstParam& c : kernel.constants)
    constants.push_back(fmt::format("{}={}", c.name, c.value));
  return fmt::format("{}", fmt::join(constants, " "));
}

Result<std::vector<KernelTuning>> tune(Executable& executable, KernelStore& store, BinaryCache* cache,
                                       const Variants& variants,
                                       std::span<const std::shared_ptr<Buffer>> inputs,
                                       std::span<const std::shared_ptr<Buffer>> outputs,
                                       const TuneOptions& options) {
  // A run gives every temporary the values its readers will find.
  if (Status ran = executable.run(inputs, outputs); !ran) return ran.error();
  std::vector<KernelTuning> out;
  for (std::size_t k = 0; k < executable.plan().kernels.size(); ++k) {
    auto tuned =
        KernelTuner(executable, k, store, cache,
                    k < variants.size() ? std::span(variants[k]) : std::span<const tile::Kernel>{}, options)
            .run();
    if (!tuned) return tuned.error();
    out.push_back(std::move(*tuned));
  }
  return out;
}

}  // namespace tilewright::runtime
