// A machine of coroutines that runs one cluster of CUDA blocks at a time on the host: every CUDA thread has a
// stack of its own and runs until it waits for others.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// A thread's place in its launch, as emulated code asks for it.
struct EmuIds {
  unsigned thread, block, blocks, threads, rank, cluster, row;
};
extern "C" EmuIds emu_ids();

namespace tilewright::emulation {

struct LaunchSize {
  unsigned blocks = 1;
  unsigned threads = 1;  // a block
  unsigned cluster = 1;  // blocks
  unsigned row = 0;      // blockIdx.y of them all
  std::size_t shared_bytes = 0;
  // Not empty: the kernel before still runs, and ends (this is called) when no thread of the first cluster
  // can go on without that. Then griddepcontrol.wait returns.
  std::function<void()> previous_ends = {};
};

// What stands in a kernel's tensor map (CUtensorMap, 128 bytes) here; extents and box in elements, the
// contiguous dimension first.
struct alignas(64) EmulatedMap {
  unsigned char* address = nullptr;
  int element_bytes = 2;
  int box[4] = {1, 1, 1, 1};
  long long extents[4] = {1, 1, 1, 1};
  long long strides_bytes[4] = {};
};
static_assert(sizeof(EmulatedMap) == 128);

// Runs `thread` once for each thread of the launch, cluster after cluster. Empty, or why it stopped ("threads
// of block 3 wait for each other for ever").
std::string run_grid(const LaunchSize& size, const std::function<void()>& thread);

// --- for the functions that emulated code calls: the thread that runs now
unsigned char* shared_of_block(int rank);  // -1: its own block's
unsigned own_rank();
void let_others_run();
void note_progress();  // something happened that others may wait for

enum EmulatedType {
  emulated_f16,
  emulated_bf16,
  emulated_f8e4m3,
  emulated_f8e5m2,
  emulated_i8,
  emulated_tf32
};
// wgmma instructions under way in one thread, by committed group; the last one is open.
struct Wgmma {
  void* acc;  // of floats, of 32-bit integers for 8-bit ones
  int columns;
  unsigned long long a, b;
  bool add, a_mn, b_mn;
  EmulatedType a_type, b_type;
  const unsigned* parts[4] =
      {};  // operand a, where it stands in registers: they are read when it is waited for
};
std::vector<std::vector<Wgmma>>& wgmma_groups();
// Copies of the copy engine that have not arrived yet.
struct TensorCopy {
  unsigned blocks;  // bits of ranks
  unsigned to, barrier;
  EmulatedMap map;
  int at[4];
};
std::vector<TensorCopy>& tensor_copies();
// Panels that a thread has handed to the copy engine, by committed group; the last one is open. Shared memory
// is read when a group is waited for: nothing else may have changed it by then.
struct TensorStore {
  unsigned from;
  EmulatedMap map;
  int at[4];
};
std::vector<std::vector<TensorStore>>& tensor_stores();
// This thread wrote shared memory at `address`; or put a fence behind what it wrote, so that the copy engine
// sees it. Whether some thread of the block has written between two addresses without.
void note_write(unsigned address);
void note_fence();
bool writes_unseen(unsigned from, unsigned to);

}  // namespace tilewright::emulation
