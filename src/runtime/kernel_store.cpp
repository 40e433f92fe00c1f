// Makes programs of kernels: candidates and text in turn, binaries side by side, the driver in turn again.
#include "runtime/kernel_store.h"

#include "base/side_by_side.h"

#include <tilewright/base/clock.h>
#include <tilewright/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>
#include <string_view>

namespace tilewright::runtime {

using backends::Candidate;
using backends::Source;

namespace {

Hash128 key_of(const Device& device, const Source& source) {
  Hasher h;
  h.add(device.backend().binary_key()).add(source.text).add(source.entry);
  h.add(source.launch.threads).add(source.launch.cluster).add(source.launch.shared_bytes);
  return h.digest();
}

}  // namespace

struct KernelStore::Build {
  const tile::Kernel* kernel = nullptr;
  std::optional<Failure> failure;
  Source source;
  Hash128 key;
  std::vector<Candidate> candidates;
  double predicted_us = 0;
  std::optional<backends::Binary> binary;
  std::shared_ptr<LoadedKernel> there;  // was loaded before
  LoadedKernel::Origin origin = LoadedKernel::Origin::compiled;
  double ms = 0;  // so far
};

KernelStore::Build KernelStore::printed(const tile::Kernel& kernel, const tile::Schedule& schedule) const {
  const auto start = std::chrono::steady_clock::now();
  Build out{.kernel = &kernel};
  auto source = device_->backend().print(kernel, schedule);
  if (source) {
    out.source = std::move(*source);
    out.key = key_of(*device_, out.source);
  } else {
    out.failure = source.error();
  }
  out.ms = ms_since(start);
  return out;
}

KernelStore::Build KernelStore::printed(const tile::Kernel& kernel) const {
  std::vector<Candidate> candidates = device_->backend().candidates(kernel);
  const auto best = std::find_if(candidates.begin(), candidates.end(),
                                 [](const Candidate& c) { return c.refusal.empty(); });
  if (best != candidates.end()) {
    Build out = printed(kernel, best->schedule);
    out.predicted_us = best->predicted_us;
    out.candidates = std::move(candidates);
    return out;
  }
  std::string reasons;
  for (const Candidate& c : candidates) reasons += "\n  " + to_string(c.schedule) + ": " + c.refusal;
  Build out{.kernel = &kernel};
  out.failure = failure(Failure::Kind::unsupported, fmt::format("kernel {}: no schedule runs on {}{}",
                                                                kernel.name, device_->name(), reasons));
  return out;
}

// Gets a binary from the disk, or from the compiler. Threads do this at the same time.
void KernelStore::compile(Build& build) const {
  const auto start = std::chrono::steady_clock::now();
  if (std::optional<std::string> stored = cache_ ? cache_->find(build.key) : std::nullopt) {
    build.binary.emplace();
    build.binary->bytes = std::move(*stored);
    build.origin = LoadedKernel::Origin::disk;
  } else if (auto compiled = device_->backend().compile(*build.kernel, build.source)) {
    build.binary = std::move(*compiled);
  } else {
    build.failure = compiled.error();
  }
  build.ms += ms_since(start);
}

void KernelStore::add_candidates(LoadedKernel& kernel, Build& build) {
  kernel.candidates = std::move(build.candidates);
  kernel.predicted_us = build.predicted_us;
}

KernelResult KernelStore::load(Build& build) {
  const auto start = std::chrono::steady_clock::now();
  const std::lock_guard lock(mutex_);
  if (std::shared_ptr<LoadedKernel> there = find(build.key)) {
    // It may have been asked for by its schedule until now.
    if (there->candidates.empty()) add_candidates(*there, build);
    return there;
  }
  // A full or read-only disk only costs the next process a compile.
  if (cache_ && build.origin == LoadedKernel::Origin::compiled)
    (void)cache_->store(build.key, build.binary->bytes);
  auto program = device_->backend().load(*build.kernel, build.source, *build.binary);
  if (!program) return program.error();
  auto out = std::make_shared<LoadedKernel>();
  out->source = build.source;
  out->key = build.key;
  out->compiler_log = build.binary->log;
  out->program = std::move(*program);
  out->origin = build.origin;
  out->build_ms = build.ms + ms_since(start);
  add_candidates(*out, build);
  constexpr std::size_t kSweep = 64;  // new entries until those of kernels that are gone are looked for
  if (loaded_.size() % kSweep == 0)
    std::erase_if(loaded_, [](const auto& each) { return each.second.expired(); });
  loaded_[build.key] = out;
  recent_.insert(build.key, out);
  return out;
}

std::shared_ptr<LoadedKernel> KernelStore::find(const Hash128& key) {
  const auto it = loaded_.find(key);
  std::shared_ptr<LoadedKernel> there = it == loaded_.end() ? nullptr : it->second.lock();
  if (there && !recent_.find(key)) recent_.insert(key, there);
  return there;
}

std::shared_ptr<LoadedKernel> KernelStore::known(const Hash128& key) {
  const std::lock_guard lock(mutex_);
  return find(key);
}

std::vector<KernelResult> KernelStore::finish(std::vector<Build> builds, BuildTimes* times) {
  const auto begun = std::chrono::steady_clock::now();
  std::vector<Build*> missing;
  std::set<Hash128> keys;
  for (Build& b : builds) {
    if (b.failure) continue;
    b.there = known(b.key);
    if (!b.there && keys.insert(b.key).second) missing.push_back(&b);
  }
  builds_ += missing.size();
  // The longest text is begun first: a compiler that began it last would be waited for by itself.
  std::stable_sort(missing.begin(), missing.end(), [](const Build* a, const Build* b) {
    return a->source.text.size() > b->source.text.size();
  });
  side_by_side(missing.size(), 2, [&](std::size_t i) { compile(*missing[i]); });
  const auto compiled = std::chrono::steady_clock::now();
  std::map<Hash128, Failure> failed;
  for (const Build* b : missing)
    if (b->failure) failed.emplace(b->key, *b->failure);
  std::vector<KernelResult> out;
  out.reserve(builds.size());
  for (Build& b : builds) {
    if (const auto it = failed.find(b.key); !b.failure && it != failed.end()) b.failure = it->second;
    out.push_back(b.failure ? KernelResult(*b.failure) : load(b));
    if (!out.back() && !b.failure) failed.emplace(b.key, out.back().error());
  }
  if (times) {
    times->load_ms += ms_since(compiled);
    times->compiler_ms += ms_between(begun, compiled);
  }
  return out;
}

std::vector<KernelResult> KernelStore::get_all(const std::vector<tile::Kernel>& kernels, BuildTimes* times) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Build> builds;
  builds.reserve(kernels.size());
  std::multimap<std::string_view, std::size_t> by_name;  // equal kernels of one plan have one name
  for (const tile::Kernel& k : kernels) {
    auto [known, end] = by_name.equal_range(k.name);
    while (known != end && !(*builds[known->second].kernel == k)) ++known;
    if (known == end) by_name.insert({k.name, builds.size()});
    builds.push_back(known == end ? printed(k) : Build(builds[known->second]));
  }
  if (times) times->print_ms += ms_since(start);
  return finish(std::move(builds), times);
}

std::vector<KernelResult> KernelStore::get_all(const std::vector<ScheduledKernel>& kernels) {
  std::vector<Build> builds;
  builds.reserve(kernels.size());
  for (const ScheduledKernel& k : kernels) builds.push_back(printed(*k.kernel, *k.schedule));
  return finish(std::move(builds));
}

Result<BuiltKernels> KernelStore::build(const std::vector<tile::Kernel>& kernels) {
  BuiltKernels out;
  out.kernels.reserve(kernels.size());
  for (KernelResult& loaded : get_all(kernels, &out.times)) {
    if (!loaded) return loaded.error();
    out.kernels.push_back(std::move(*loaded));
  }
  return out;
}

KernelResult KernelStore::get(const tile::Kernel& kernel) {
  std::vector<Build> one;
  one.push_back(printed(kernel));
  return std::move(finish(std::move(one)).front());
}

KernelResult KernelStore::get(const tile::Kernel& kernel, const tile::Schedule& schedule) {
  return std::move(get_all(std::vector{ScheduledKernel{&kernel, &schedule}}).front());
}

KernelResult KernelStore::get_edited(const tile::Kernel& kernel, const Source& source) {
  std::vector<Build> one;
  one.push_back({.kernel = &kernel, .source = source, .key = key_of(*device_, source)});
  return std::move(finish(std::move(one)).front());
}

}  // namespace tilewright::runtime
