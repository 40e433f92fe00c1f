#include "replay/recording_backend.h"

#include <tilewright/tile/text.h>

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::replay {

using backends::Candidate;
using backends::Source;

namespace {

std::string reasons(const std::vector<Candidate>& candidates) {
  std::string text = "no schedule is legal";
  for (const Candidate& c : candidates) text += fmt::format("\n  {}: {}", to_string(c.schedule), c.refusal);
  return text;
}

std::string legal_ones(const std::vector<Candidate>& candidates) {
  std::string text;
  for (const Candidate& c : candidates)
    if (c.refusal.empty()) text += fmt::format("{:.6g} us: {}\n", c.predicted_us, to_string(c.schedule));
  return text;
}

std::string launch_text(const backends::LaunchShape& l) {
  return fmt::format("threads={} cluster={} shared_bytes={} programs_per_block={}", l.threads, l.cluster,
                     l.shared_bytes, l.programs_per_block);
}

// A library that is opened by name can be handed nothing else.
thread_local const Recording* contexts_recording = nullptr;

}  // namespace

std::vector<Candidate> RecordingBackend::candidates(const tile::Kernel& kernel) const {
  listed_ = to_.machine.candidates(kernel);
  const bool any =
      std::any_of(listed_.begin(), listed_.end(), [](const Candidate& c) { return c.refusal.empty(); });
  if (!any && to_.program)
    to_.program->kernels.push_back(
        {.name = kernel.name, .tile = tile::print(kernel), .failure = reasons(listed_)});
  return listed_;
}

Result<Source> RecordingBackend::print(const tile::Kernel& kernel, const tile::Schedule& schedule) const {
  auto source = to_.machine.print(kernel, schedule);
  if (!to_.program) return source;
  KernelRecord record{.name = kernel.name, .tile = tile::print(kernel), .schedule = to_string(schedule)};
  const auto chosen = std::find_if(listed_.begin(), listed_.end(),
                                   [&](const Candidate& c) { return c.schedule == schedule; });
  if (chosen != listed_.end()) record.predicted_us = chosen->predicted_us;
  record.candidates = legal_ones(listed_);
  if (source) {
    record.source = source->text;
    record.launch = launch_text(source->launch);
  } else {
    record.failure = source.error().message;
  }
  to_.program->kernels.push_back(std::move(record));
  return source;
}

void record_contexts(const Recording& recording) { contexts_recording = &recording; }

}  // namespace tilewright::replay

extern "C" tilewright::Result<std::unique_ptr<tilewright::backends::Backend>> tw_open_recording_backend() {
  return std::unique_ptr<tilewright::backends::Backend>(
      new tilewright::replay::RecordingBackend(*tilewright::replay::contexts_recording));
}
