// Joining probes.
#include "pairs/seen_ceilings.h"

#include <tilewright/perf/best_ceilings.h>

namespace tilewright::lab {

SeenCeilings::SeenCeilings(perf::Ceilings known, std::string source, std::string path)
    : best_(perf::in_order(std::move(known))), source_(std::move(source)), path_(std::move(path)) {}

Status SeenCeilings::join(const runtime::Probed& probed) {
  perf::Ceilings best = perf::in_order(perf::best_of(best_, probed.ceilings));
  if (best == best_) return Unit{};
  constexpr std::string_view kRaised = ", raised by probes beside the work";
  if (!source_.ends_with(kRaised)) source_ += kRaised;
  best_ = std::move(best);
  // A probe of some figures is no ceiling file by itself: where the file has gone, nothing is written.
  if (path_.empty() || !probed.busy.empty() || !perf::read_ceilings(path_)) return Unit{};
  const auto stored = runtime::store_best(probed.ceilings, path_);
  return stored ? Status(Unit{}) : Status(stored.error());
}

// Floors count arithmetic as the source writes it, while a rate is one of multiply-adds: two FLOPs an
// instruction. The bound still holds, and is the roofline's.
Ceilings SeenCeilings::ceilings() const { return ceilings_of(perf::to_hardware(best_), source_); }

}  // namespace tilewright::lab
