// Choosing the jobs of a run.
#include "harness/run/workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "harness/run/pattern.h"

namespace tilewright::lab {

namespace {

std::vector<Suite::Entry> entries_of(PairList pairs, std::span<const Suite> suites, const std::string& name) {
  for (const Suite& suite : suites) {
    if (suite.name == name) return suite.entries;
  }
  std::vector<Suite::Entry> found;
  for (const Pair& pair : pairs) {
    if (matches(name, pair.name)) found.push_back({pair.name, {}});
  }
  if (!found.empty()) return found;
  std::vector<std::string> known;
  for (const Suite& suite : suites) known.push_back(suite.name);
  for (const Pair& pair : pairs) known.push_back(pair.name);
  throw Error(fmt::format("no pair or suite is named '{}'; there are {}", name, fmt::join(known, ", ")));
}

const Pair& find_pair(PairList pairs, const std::string& name) {
  const auto it =
      std::find_if(pairs.begin(), pairs.end(), [&](const Pair& pair) { return pair.name == name; });
  TW_CHECK(it != pairs.end(), fmt::format("a suite names the unknown pair '{}'", name));
  return *it;
}

bool has_knob(const Pair& pair, const std::string& key) {
  return std::any_of(pair.knobs.begin(), pair.knobs.end(),
                     [&](const Knob& knob) { return knob.is_named(key); });
}

// A user's setting must change something among the chosen pairs, else it is a slip of the pen.
void check_settings(std::span<const Pair* const> chosen, std::span<const Setting> settings) {
  for (const Setting& setting : settings) {
    const bool used = std::any_of(chosen.begin(), chosen.end(), [&](const Pair* pair) {
      return (setting.pair.empty() || setting.pair == pair->name) && has_knob(*pair, setting.key);
    });
    if (used) continue;
    std::vector<std::string> known;
    for (const Pair* pair : chosen) {
      for (const Knob& knob : pair->knobs) {
        const std::string text = fmt::format("{}.{}", pair->name, knob.name);
        if (std::find(known.begin(), known.end(), text) == known.end()) known.push_back(text);
      }
    }
    const std::string dot = setting.pair.empty() ? "" : ".";
    throw Error(fmt::format("--set {}{}{}={}: no chosen pair has that knob; there are {}", setting.pair, dot,
                            setting.key, setting.values, fmt::join(known, ", ")));
  }
}

std::string text_of(const Setting& s) {
  return fmt::format("--set {}{}{}={}", s.pair, s.pair.empty() ? "" : ".", s.key, s.values);
}

// Two settings of one knob, both for all pairs or both for this one: which of them was meant is not known.
void refuse_repeated(const Pair& pair, std::span<const Setting> settings) {
  const auto is_for = [&](const Setting& s, const Knob& knob) {
    return (s.pair.empty() || s.pair == pair.name) && knob.is_named(s.key);
  };
  for (const Knob& knob : pair.knobs)
    for (std::size_t i = 0; i < settings.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        if (is_for(settings[i], knob) && is_for(settings[j], knob) && settings[i].pair == settings[j].pair)
          throw Error(fmt::format("{} and {}: {} is set twice; several values are one list: {},{}",
                                  text_of(settings[j]), text_of(settings[i]), knob.name, text_of(settings[j]),
                                  settings[i].values));
}

}  // namespace

std::vector<Job> select_jobs(PairList pairs, std::span<const Suite> suites,
                             std::span<const std::string> names, std::span<const std::string> settings,
                             DeviceKind kind) {
  std::vector<Suite::Entry> entries;
  if (names.empty()) entries = entries_of(pairs, suites, "*");
  for (const std::string& name : names) {
    const auto more = entries_of(pairs, suites, name);
    entries.insert(entries.end(), more.begin(), more.end());
  }
  std::vector<Setting> user;
  user.reserve(settings.size());
  for (const std::string& text : settings) user.push_back(parse_setting(text));
  std::vector<const Pair*> chosen;
  chosen.reserve(entries.size());
  for (const auto& entry : entries) chosen.push_back(&find_pair(pairs, entry.pair));
  check_settings(chosen, user);
  for (const Pair* pair : chosen) refuse_repeated(*pair, user);
  // The last one holds: what names its pair holds over what is said to all.
  std::stable_partition(user.begin(), user.end(), [](const Setting& s) { return s.pair.empty(); });

  std::vector<Job> jobs;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Pair& pair = *chosen[i];
    std::vector<Setting> applied;
    for (const std::string& text : entries[i].settings) applied.push_back(parse_setting(text));
    for (const Setting& setting : user) {
      if ((setting.pair.empty() || setting.pair == pair.name) && has_knob(pair, setting.key))
        applied.push_back(setting);
    }
    for (Knobs& knobs : expand(pair.knobs, kind, applied)) {
      const bool known = std::any_of(jobs.begin(), jobs.end(),
                                     [&](const Job& job) { return job.pair == &pair && job.knobs == knobs; });
      if (!known) jobs.push_back({&pair, std::move(knobs)});
    }
  }
  return jobs;
}

void widen(const StoredElements& elements, std::int64_t begin, std::int64_t count, double* to) {
  const DType dtype = elements.dtype;
  const std::size_t size = size_bytes(dtype);
  const auto* from = static_cast<const std::byte*>(elements.at) + static_cast<std::size_t>(begin) * size;
  if (dtype != DType::bf16 && dtype != DType::f16)
    return convert(from, dtype, to, DType::f64, static_cast<std::size_t>(count));
  // Through f32, which holds every value of both: convert() is quick at both steps.
  constexpr std::size_t kBlock = 1024;  // stays in the first-level cache
  float block[kBlock];
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); i += kBlock) {
    const std::size_t part = std::min(kBlock, static_cast<std::size_t>(count) - i);
    convert(from + i * size, dtype, block, DType::f32, part);
    convert(block, DType::f32, to + i, DType::f64, part);
  }
}

Result<std::vector<double>> read_doubles(const OutputAccess& output) {
  std::vector<double> values;
  const Status read = output.read([&](const StoredElements& elements) {
    const std::size_t before = values.size();
    values.resize(before + static_cast<std::size_t>(elements.count));
    widen(elements, 0, elements.count, values.data() + before);
  });
  if (!read) return read.error();
  return values;
}

std::uint64_t digest(const void* data, std::size_t size_bytes, std::uint64_t seed) {
  constexpr std::uint64_t kPrime = 1099511628211ull;
  const auto* bytes = static_cast<const unsigned char*>(data);
  // Eight bytes a step, in four lanes, because inputs are large and FNV waits for each product.
  std::uint64_t lanes[4] = {seed, seed + 1, seed + 2, seed + 3};
  std::size_t at = 0;
  for (; at + 32 <= size_bytes; at += 32) {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes + at + 8 * lane, 8);
      lanes[lane] = (lanes[lane] ^ word) * kPrime;
      lanes[lane] ^= lanes[lane] >> 32;  // lets the high bytes of a word reach the low ones
    }
  }
  std::uint64_t hash = seed;
  for (std::uint64_t lane : lanes) hash = (hash ^ lane) * kPrime;
  for (; at < size_bytes; ++at) hash = (hash ^ bytes[at]) * kPrime;
  return hash;
}

}  // namespace tilewright::lab
