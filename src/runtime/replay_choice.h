// ReplayChoice: whether a program is run launch by launch or as a recorded graph, decided by measuring both.
#pragma once

#include "runtime/executable.h"

#include <array>
#include <cstddef>

namespace tilewright::runtime {

class ReplayChoice {
 public:
  // Runs the executable the way that is known to be faster. A graph holds addresses: the first set of buffers
  // that comes again is where both ways are timed, and later only sets that come again are recorded.
  Status run(Executable& executable, std::span<const std::shared_ptr<Buffer>> inputs,
             std::span<const std::shared_ptr<Buffer>> outputs);

  bool replays() const { return state_ == State::replay; }
  double direct_us() const { return direct_us_; }  // per run; 0 until both ways were timed
  double replay_us() const { return replay_us_; }

 private:
  enum class State : unsigned char { watching, direct, replay };
  Status measure(Executable& executable, std::span<const std::shared_ptr<Buffer>> inputs,
                 std::span<const std::shared_ptr<Buffer>> outputs);
  bool seen_before(std::size_t buffers);

  State state_ = State::watching;
  std::array<std::size_t, 8> recent_{};  // hashes of the last sets of buffers
  std::size_t next_ = 0;
  double direct_us_ = 0, replay_us_ = 0;
};

}  // namespace tilewright::runtime
