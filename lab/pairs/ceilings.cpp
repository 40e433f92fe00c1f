// Ceilings from the probes of src/runtime.
#include "pairs/ceilings.h"

#include "runtime/probe.h"
#include "tensor/storage.h"

namespace tilewright::lab {

namespace {

// Floors count arithmetic as the source writes it, while a rate is one of multiply-adds: two FLOPs an
// instruction. The bound still holds, and is the roofline's.
Ceilings from(const perf::Ceilings& measured, const std::string& source) {
  return ceilings_of(perf::to_hardware(measured), source);
}

}  // namespace

Ceilings device_ceilings(LabDevice& device, CeilingSource source, const CeilingEvents& events) {
  const std::shared_ptr<runtime::Device> open = detail::device_of(*device.context, device.name);
  // The interpreter's speed says nothing about a machine.
  if (open->target().kind == tile::TargetKind::reference) return {.source = "none"};
  if (source == CeilingSource::stored_or_measured) {
    const auto stored = runtime::stored_ceilings(*open, detail::cache_directory(*device.context));
    if (stored && !stored->measurements.empty()) return from(*stored, stored->measurements.back().how);
    if (!stored && stored.error().kind != Failure::Kind::not_found) throw Error(stored.error().message);
  }
  constexpr double kBrief = 0.05;  // seconds for each figure: a second or two in all
  const auto probed = runtime::probe(*open, {.seconds_each = kBrief,
                                             .progress = events.progress,
                                             .stop = events.stop,
                                             .how = "measured before this run"});
  if (probed) return from(probed->ceilings, "measured before this run");
  if (events.stop && events.stop()) return {.source = "none"};
  throw Error(probed.error().message);
}

}  // namespace tilewright::lab
