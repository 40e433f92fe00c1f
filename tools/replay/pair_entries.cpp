// The lab's pairs: every contender is called once, on a device that runs nothing.
#include "pairs/lab_device.h"
#include "pairs/pairs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <set>

#include "replay/corpus.h"
#include "replay/recording_backend.h"

namespace tilewright::replay {

namespace {

std::vector<ProgramRecord> record_pair(const std::string& name, const lab::Job& job, const Machine& machine) {
  std::vector<ProgramRecord> records;
  records.reserve(1 + 8);  // more than any pair has contenders: what is recorded into stays where it is
  Recording recording{machine};
  record_contexts(recording);
  const auto part = [&](const std::string& what) -> ProgramRecord& {
    records.push_back({.name = fmt::format("{}: {}", name, what), .machine = machine.name});
    recording.program = &records.back();
    return records.back();
  };
  ProgramRecord& inputs = part("inputs");
  lab::OpenDevice open = lab::open_lab_device({.device = machine.is_gpu() ? "cuda" : "cpu",
                                               .cache_directory = "",
                                               .library_directory = TW_REPLAY_BACKENDS});
  auto instance = job.pair->make(job.knobs, open.device);
  if (!instance) {
    inputs.failure = instance.error().message;
    return records;
  }
  for (const lab::Contender& contender : instance->contenders) {
    if (!contender.unavailable.empty()) continue;
    ProgramRecord& record = part(contender.name);
    if (const Status done = contender.run(0); !done) record.failure = done.error().message;
  }
  return records;
}

// Every type that a pair takes, where it takes more than those it is measured in.
std::vector<std::string> all_types(const std::vector<lab::Pair>& pairs) {
  std::vector<std::string> settings;
  for (const lab::Pair& pair : pairs)
    for (const lab::Knob& knob : pair.knobs) {
      if (knob.name != "dtype" || knob.choices.empty()) continue;
      std::vector<std::string> types;
      types.reserve(knob.choices.size());
      for (const lab::KnobValue& value : knob.choices) types.push_back(lab::to_string(value));
      settings.push_back(fmt::format("{}.dtype={}", pair.name, fmt::join(types, ",")));
    }
  return settings;
}

// The lists outlive the entries, which point into them.
struct Lab {
  std::vector<lab::Pair> pairs = lab::all_pairs();
  std::vector<lab::Suite> suites = lab::all_suites();
  std::vector<lab::Job> select(const std::vector<std::string>& names,
                               const std::vector<std::string>& settings, const Machine& machine) const {
    return select_jobs(pairs, suites, names, settings,
                       machine.is_gpu() ? lab::DeviceKind::cuda : lab::DeviceKind::cpu);
  }
};

}  // namespace

std::vector<CorpusEntry> pair_entries(const Machine& machine) {
  const auto lists = std::make_shared<const Lab>();
  std::vector<CorpusEntry> out;
  std::set<std::string> known;
  const auto add = [&](const std::vector<std::string>& names, const std::vector<std::string>& settings,
                       bool in_short) {
    for (const lab::Job& job : lists->select(names, settings, machine)) {
      const std::string name = fmt::format("pair/{} {}", job.pair->name, job.knobs.to_string());
      if (!known.insert(name).second) continue;
      out.push_back({.name = name,
                     .record = [lists, name, job](const Machine& on) { return record_pair(name, job, on); },
                     .in_short = in_short});
    }
  };
  add({"quick"}, {}, true);  // each kind of work once
  add({"products"}, {}, false);
  add({}, {}, false);
  add({}, all_types(lists->pairs), false);
  return out;
}

}  // namespace tilewright::replay
