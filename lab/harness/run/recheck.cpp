// Timing again beside probes.
#include "harness/run/recheck.h"

#include <algorithm>

#include "harness/stats/stats.h"

namespace tilewright::lab {

namespace {

// Every figure that some contender is too fast for, each once.
std::vector<std::string> beaten_by(const Timing& timing, const Work& work, const Ceilings& ceilings,
                                   double slack) {
  std::vector<std::string> all;
  for (const ContenderTiming& times : timing.contenders) {
    if (times.samples_us.empty()) continue;
    for (std::string& figure : beaten_figures(work, ceilings, median(times.samples_us), slack))
      if (std::find(all.begin(), all.end(), figure) == all.end()) all.push_back(std::move(figure));
  }
  return all;
}

bool is_complete(const Timing& timing) { return !timing.interrupted && timing.rounds > 0; }

}  // namespace

Recheck recheck_ceilings(PairInstance& instance, LabDevice& device, const std::vector<bool>& take,
                         Timing first, const RecheckOptions& options) {
  Recheck result{.timing = std::move(first)};
  for (const ContenderTiming& times : result.timing.contenders)
    result.was_above.push_back(
        !times.samples_us.empty() &&
        beats_ceilings(instance.work, device.ceilings, median(times.samples_us), options.slack));
  while (device.probe_again && is_complete(result.timing) && result.tries < options.tries) {
    const auto beaten = beaten_by(result.timing, instance.work, device.ceilings, options.slack);
    if (beaten.empty()) break;
    if (options.progress) options.progress("faster than a ceiling: probing it again, beside the work");
    ++result.tries;
    const CeilingSampler sampler = device.probe_again(beaten);
    TimingOptions timing = options.timing;
    timing.beside = [&] {
      const Result<Ceilings> seen = sampler();
      if (seen)
        device.ceilings = best_of(device.ceilings, *seen);
      else
        result.why_not = seen.error().message;
    };
    Timing again = time_contenders(instance, device.clocks(), take, timing);
    result.timing.interrupted = again.interrupted;
    if (!is_complete(again)) break;
    result.timing = std::move(again);
    if (!result.why_not.empty()) break;
  }
  return result;
}

}  // namespace tilewright::lab
