// Rounds over candidates.
#include "runtime/tuner.h"

#include "runtime/stored_winner.h"

#include <tilewright/base/clock.h>

#include <tilewright/tile/text.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

namespace tilewright::runtime {

using backends::Candidate;

namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A schedule of the kernel, or of one of its variants.
struct Choice {
  const tile::Kernel* kernel = nullptr;
  Candidate candidate;
  bool is_library() const { return is_library_call(candidate.schedule); }
  std::string tiles() const { return is_library() ? "" : tiles_of(*kernel); }
};

// Who of trials, the fastest first, won: a library or a kernel of ours, and how much longer the other takes.
// Empty where only one of them ran.
std::string library_verdict(const std::vector<Trial>& trials) {
  const auto fastest = [&](bool of_library) {
    return std::find_if(trials.begin(), trials.end(), [&](const Trial& t) {
      return t.measured_us > 0 && is_library_call(t.schedule) == of_library;
    });
  };
  const auto ours = fastest(false), theirs = fastest(true);
  if (ours == trials.end() || theirs == trials.end()) return "";
  const std::string& name = std::get<tile::LibraryCall>(theirs->schedule.kind).name;
  const double lost = 100 * (std::max(ours->measured_us, theirs->measured_us) /
                                 std::min(ours->measured_us, theirs->measured_us) -
                             1);
  const std::string kernel = to_string(ours->schedule) + (ours->tiles.empty() ? "" : " ") + ours->tiles;
  if (theirs < ours)
    return fmt::format("{} won: {:.2f} us, the best of ours {:.2f} us, {:.1f} % more ({})", name,
                       theirs->measured_us, ours->measured_us, lost, kernel);
  return fmt::format("ours won: {:.2f} us, {} {:.2f} us, {:.1f} % more", ours->measured_us, name,
                     theirs->measured_us, lost);
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
    calls_ = library_choices();
    const bool alone = options_.libraries == tile::Libraries::alone;
    if (alone) candidates.clear();
    if (candidates.size() + calls_.size() > (alone ? 0 : 1)) {
      if (const std::optional<StoredWinner> winner = use_stored(candidates)) {
        out.stored = true;
        out.library = winner->library;
      } else {
        keep_tried(candidates);
        candidates.insert(candidates.end(), calls_.begin(), calls_.end());
        if (auto measured = measure(candidates); !measured) return measured.error();
        for (Entrant& e : entrants_) out.trials.push_back(std::move(e.trial));
        out.library = library_verdict(out.trials);
      }
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

  // What computes the plan's own kernel instead: other tiles are no other product.
  std::vector<Choice> library_choices() const {
    std::vector<Choice> out;
    if (options_.libraries == tile::Libraries::none) return out;
    for (Candidate& c : store_.device()->backend().library_candidates(kernels_.front()))
      out.push_back({&kernels_.front(), std::move(c)});
    return out;
  }

  // Keeps the choices that are measured: the first ones, and the one that would run untuned, the first of the
  // plan's own kernel.
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
    Hasher hasher;
    hasher
        .add(std::string("schedule by kind"))  // another form of the text is another key
        .add(store_.device()->backend().binary_key())
        .add(shape_bucket(kernels_.front()));
    // What won against a library is no winner without it, nor the other way round.
    for (const Choice& call : calls_) hasher.add(to_string(call.candidate.schedule));
    if (!calls_.empty()) hasher.add(static_cast<int>(options_.libraries));
    return hasher.digest();
  }

  // Takes the winner of the bucket where one is stored and legal for this shape, with the tiles that are
  // nearest to its.
  std::optional<StoredWinner> use_stored(std::vector<Choice> choices) {
    const std::optional<std::string> text = cache_ ? cache_->find(key()) : std::nullopt;
    if (!text) return std::nullopt;
    StoredWinner winner = StoredWinner::parse(*text);
    choices.insert(choices.end(), calls_.begin(), calls_.end());
    const auto away = [&](const Choice& c) {
      if (to_string(c.candidate.schedule) != winner.schedule) return std::numeric_limits<double>::infinity();
      return c.is_library() ? 0 : tile_distance(c.kernel->constants, winner.tile_constants());
    };
    const auto nearest = std::min_element(choices.begin(), choices.end(),
                                          [&](const auto& a, const auto& b) { return away(a) < away(b); });
    if (!std::isfinite(away(*nearest))) return std::nullopt;
    auto loaded = store_.get(*nearest->kernel, nearest->candidate.schedule);
    if (!loaded) return std::nullopt;
    use(std::move(*loaded), *nearest);
    return winner;
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
      e.trial.tiles = c.tiles();
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
    if (cache_) {
      std::vector<Trial> trials;
      trials.reserve(entrants_.size());
      for (const Entrant& e : entrants_) trials.push_back(e.trial);
      const StoredWinner stored{to_string(winner.choice.candidate.schedule), winner.choice.tiles(),
                                library_verdict(trials)};
      (void)cache_->store(key(), stored.text());
    }
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
  std::vector<Choice> calls_;  // of libraries
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
