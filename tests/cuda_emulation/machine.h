// A machine of coroutines that runs one cluster of CUDA blocks at a time on the host: every CUDA thread has a
// stack of its own and runs until it waits for others.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace tilewright::emulation {

struct LaunchSize {
  unsigned blocks = 1;
  unsigned threads = 1;  // a block
  unsigned cluster = 1;  // blocks
  std::size_t shared_bytes = 0;
};

// Runs `thread` once for each thread of the launch, cluster after cluster. Empty, or why it stopped ("threads
// of block 3 wait for each other for ever").
std::string run_grid(const LaunchSize& size, const std::function<void()>& thread);

}  // namespace tilewright::emulation
