// Watching for buffers that come again, and the comparison.
#include "runtime/replay_choice.h"

#include "runtime/outputs_apart.h"

#include <algorithm>
#include <functional>

namespace tilewright::runtime {

namespace {

std::size_t hash_of(std::span<const std::shared_ptr<Buffer>> inputs,
                    std::span<const std::shared_ptr<Buffer>> outputs) {
  std::size_t hash = 1;
  for (const auto& buffers : {inputs, outputs})
    for (const std::shared_ptr<Buffer>& b : buffers) hash = hash * 1000003 ^ std::hash<void*>()(b->data());
  return hash;
}

// Median of a few timed groups of runs, in µs per run.
template <class Run>
Result<double> time(backends::Backend& backend, const Run& run, int runs) {
  constexpr int kGroups = 5;
  std::array<double, kGroups> us{};
  for (double& group : us) {
    if (Status started = backend.timer_start(); !started) return started.error();
    for (int i = 0; i < runs; ++i)
      if (Status ran = run(); !ran) return ran.error();
    auto stopped = backend.timer_stop_us();
    if (!stopped) return stopped.error();
    group = *stopped / runs;
  }
  std::nth_element(us.begin(), us.begin() + kGroups / 2, us.end());
  return us[kGroups / 2];
}

}  // namespace

bool ReplayChoice::seen_before(std::size_t buffers) {
  if (std::find(recent_.begin(), recent_.end(), buffers) != recent_.end()) return true;
  recent_[next_++ % recent_.size()] = buffers;
  return false;
}

Status ReplayChoice::run(Executable& executable, std::span<const std::shared_ptr<Buffer>> inputs,
                         std::span<const std::shared_ptr<Buffer>> outputs) {
  if (state_ == State::direct) return executable.run(inputs, outputs);
  if (state_ == State::watching && !executable.can_replay()) {
    state_ = State::direct;
    return executable.run(inputs, outputs);
  }
  if (!seen_before(hash_of(inputs, outputs))) return executable.run(inputs, outputs);
  if (state_ == State::watching)
    if (Status measured = measure(executable, inputs, outputs); !measured) return measured;
  return state_ == State::replay ? executable.replay(inputs, outputs) : executable.run(inputs, outputs);
}

Status ReplayChoice::measure(Executable& executable, std::span<const std::shared_ptr<Buffer>> inputs,
                             std::span<const std::shared_ptr<Buffer>> outputs) {
  // Long programs gain nothing: the device is busy while the host launches.
  constexpr double kLongUs = 500, kBudgetUs = 1000, kLeastGain = 0.02;
  constexpr std::size_t kLongBytes = std::size_t{1} << 30;  // read and written: long at 4 TB/s
  backends::Backend& backend = executable.device().backend();
  state_ = State::direct;
  if (bytes_overwritten(inputs, outputs) > kLongBytes) return Unit{};
  const auto trial = outputs_apart(inputs, outputs);
  if (!trial) return trial.error();
  const auto directly = [&] { return executable.run(inputs, *trial); };
  const auto replayed = [&] { return executable.replay(inputs, *trial); };
  auto once = time(backend, directly, 1);
  if (!once) return once.error();
  direct_us_ = *once;
  if (direct_us_ > kLongUs) return Unit{};
  if (Status recorded = replayed(); !recorded) return recorded;
  const int runs = std::clamp(static_cast<int>(kBudgetUs / 5 / std::max(direct_us_, 1.0)), 2, 50);
  auto direct = time(backend, directly, runs);
  if (!direct) return direct.error();
  auto replay = time(backend, replayed, runs);
  if (!replay) return replay.error();
  direct_us_ = *direct;
  replay_us_ = *replay;
  if (replay_us_ < (1 - kLeastGain) * direct_us_) state_ = State::replay;
  return Unit{};
}

}  // namespace tilewright::runtime
