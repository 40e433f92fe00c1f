// Ceilings from the probes of src/runtime.
#include "pairs/ceilings.h"

#include <fmt/format.h>
#include <tilewright/perf/best_ceilings.h>

#include <algorithm>

#include "pairs/seen_ceilings.h"
#include "runtime/probe.h"
#include "tensor/storage.h"

namespace tilewright::lab {

namespace {

using DevicePtr = std::shared_ptr<runtime::Device>;
using SeenPtr = std::shared_ptr<SeenCeilings>;

// Probes beside the work: samples as short as the lab's own (TimingOptions::min_sample_us), because beside a
// busy neighbour few longer ones have the processors to themselves; some tens of them for each way to reach a
// figure.
constexpr double kBesideSampleUs = 500, kBesideSeconds = 0.02;

CeilingSampler sampler_of(const DevicePtr& open, const SeenPtr& seen, const std::function<bool()>& stop,
                          const std::vector<std::string>& figures) {
  auto prober = std::make_shared<runtime::Prober>(*open);
  return [open, prober, seen, stop, figures]() -> Result<Ceilings> {
    const auto probed =
        prober->probe({.seconds_each = kBesideSeconds,
                       .sample_us = kBesideSampleUs,
                       .stop = stop,
                       .how = "tw bench run, beside the work",
                       .wanted = [&](std::string_view figure) {
                         return std::find(figures.begin(), figures.end(), figure) != figures.end();
                       }});
    if (!probed) return probed.error();
    if (Status joined = seen->join(*probed); !joined) return joined.error();
    return seen->ceilings();
  };
}

// Ceilings measured now; none if the user stopped that.
std::optional<runtime::Probed> measure(runtime::Device& device, const CeilingEvents& events) {
  constexpr double kBrief = 0.05;  // seconds for each figure: a second or two in all
  auto probed = runtime::probe(device, {.seconds_each = kBrief,
                                        .progress = events.progress,
                                        .stop = events.stop,
                                        .how = "measured before this run"});
  if (probed) return std::move(*probed);
  if (events.stop && events.stop()) return std::nullopt;
  throw Unavailable(probed.error().message);
}

}  // namespace

void find_ceilings(LabDevice& device, CeilingSource source, const CeilingEvents& events) {
  const DevicePtr open = detail::device_of(*device.context, device.name);
  device.ceilings = {.source = "none"};
  // The interpreter's speed says nothing about a machine.
  if (open->target().kind == tile::TargetKind::reference) return;
  const std::string cache = detail::cache_directory(*device.context);
  const auto stored = runtime::stored_ceilings(*open, cache);
  if (!stored && stored.error().kind != Failure::Kind::not_found) throw Unavailable(stored.error().message);
  const std::string path = stored ? runtime::ceilings_path(*open, cache) : "";
  SeenPtr seen;
  if (stored && source == CeilingSource::stored_or_measured) {
    seen = std::make_shared<SeenCeilings>(*stored, stored->measurements.back().how, path);
  } else {
    const auto probed = measure(*open, events);
    if (!probed) return;
    const std::string busy =
        probed->busy.empty() ? "" : fmt::format(", on a busy machine ({})", probed->busy);
    seen =
        std::make_shared<SeenCeilings>(stored ? perf::best_of(*stored, probed->ceilings) : probed->ceilings,
                                       "measured before this run" + busy, path);
  }
  device.ceilings = seen->ceilings();
  device.probe_again = [open, seen, stop = events.stop](const std::vector<std::string>& figures) {
    return sampler_of(open, seen, stop, figures);
  };
}

}  // namespace tilewright::lab
