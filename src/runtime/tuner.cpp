// Rounds over candidates.
#include "runtime/tuner.h"

#include <tilewright/base/clock.h>

#include <tilewright/tile/text.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace tilewright::runtime {

using backends::Candidate;

namespace {

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class KernelTuner {
 public:
  KernelTuner(Executable& executable, std::size_t kernel, KernelStore& store, BinaryCache* cache,
              const TuneOptions& options)
      : executable_(executable), index_(kernel), store_(store), cache_(cache), options_(options) {}

  Result<KernelTuning> run() {
    const auto start = std::chrono::steady_clock::now();
    KernelTuning out;
    const std::vector<Candidate> candidates = legal_candidates();
    out.stored = candidates.size() > 1 && use_stored(candidates);
    if (candidates.size() > 1 && !out.stored) {
      if (auto measured = measure(candidates); !measured) return measured.error();
      for (Entrant& e : entrants_) out.trials.push_back(std::move(e.trial));
    }
    out.ms = ms_since(start);
    return out;
  }

 private:
  struct Entrant {
    Trial trial;
    std::shared_ptr<LoadedKernel> loaded;
  };

  const tile::Kernel& kernel() const { return executable_.plan().kernels[index_]; }

  std::vector<Candidate> legal_candidates() const {
    std::vector<Candidate> out;
    for (Candidate& c : store_.device()->backend().candidates(kernel()))
      if (c.refusal.empty() && out.size() < static_cast<std::size_t>(options_.candidates))
        out.push_back(std::move(c));
    return out;
  }

  // The winner depends on what it was chosen from.
  Hash128 key(const std::vector<Candidate>& candidates) const {
    Hasher h;
    h.add(std::string("schedule")).add(store_.device()->backend().binary_key()).add(tile::print(kernel()));
    for (const Candidate& c : candidates) h.add(to_string(c.schedule));
    return h.digest();
  }

  bool use_stored(const std::vector<Candidate>& candidates) {
    const std::optional<std::string> winner = cache_ ? cache_->find(key(candidates)) : std::nullopt;
    if (!winner) return false;
    for (const Candidate& c : candidates) {
      if (to_string(c.schedule) != *winner) continue;
      auto loaded = store_.get(kernel(), c.schedule);
      if (!loaded) return false;
      use(std::move(*loaded), c);
      return true;
    }
    return false;
  }

  void use(std::shared_ptr<LoadedKernel> loaded, const Candidate& candidate) {
    loaded->predicted_us = candidate.predicted_us;
    if (loaded->candidates.empty()) loaded->candidates = executable_.kernels()[index_]->candidates;
    executable_.replace(index_, std::move(loaded));
  }

  Status measure(const std::vector<Candidate>& candidates) {
    for (const Candidate& c : candidates) {
      Entrant e{.trial = {.schedule = c.schedule, .predicted_us = c.predicted_us}, .loaded = nullptr};
      if (auto loaded = store_.get(kernel(), c.schedule))
        e.loaded = std::move(*loaded);
      else
        e.trial.failure = loaded.error().message;
      entrants_.push_back(std::move(e));
    }
    if (Status heat = run_rounds(1, std::numeric_limits<double>::infinity()); !heat) return heat;
    if (Status final = run_rounds(options_.rounds, fastest() * options_.keep); !final) return final;
    std::stable_sort(entrants_.begin(), entrants_.end(),
                     [](const Entrant& a, const Entrant& b) { return rank(a.trial) < rank(b.trial); });
    Entrant& winner = entrants_.front();
    if (!winner.loaded || winner.trial.measured_us == 0)
      return Unit{};  // nothing ran: the model's choice stays
    if (cache_) (void)cache_->store(key(candidates), to_string(winner.trial.schedule));
    use(winner.loaded, {.schedule = winner.trial.schedule, .predicted_us = winner.trial.predicted_us});
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
      auto cold = executable_.time_kernel(index_, *e.loaded->program, 1);
      if (!cold) return cold;
      auto warm = executable_.time_kernel(index_, *e.loaded->program, 1);
      if (!warm) return warm;
      once = *warm;
    }
    const int launches =
        std::clamp(static_cast<int>(options_.round_us / std::max(once, 0.1)), 1, kMostLaunches);
    return executable_.time_kernel(index_, *e.loaded->program, launches);
  }

  Executable& executable_;
  std::size_t index_;
  KernelStore& store_;
  BinaryCache* cache_;
  const TuneOptions& options_;
  std::vector<Entrant> entrants_;
};

}  // namespace

Result<std::vector<KernelTuning>> tune(Executable& executable, KernelStore& store, BinaryCache* cache,
                                       std::span<const std::shared_ptr<Buffer>> inputs,
                                       std::span<const std::shared_ptr<Buffer>> outputs,
                                       const TuneOptions& options) {
  // A run gives every temporary the values its readers will find.
  if (Status ran = executable.run(inputs, outputs); !ran) return ran.error();
  std::vector<KernelTuning> out;
  for (std::size_t k = 0; k < executable.plan().kernels.size(); ++k) {
    auto tuned = KernelTuner(executable, k, store, cache, options).run();
    if (!tuned) return tuned.error();
    out.push_back(std::move(*tuned));
  }
  return out;
}

}  // namespace tilewright::runtime
