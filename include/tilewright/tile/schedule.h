// Schedule: how a kernel is run, apart from what it means. A plain printable struct; any legal schedule gives
// the same result up to the stated rounding.
#pragma once

#include <string>

namespace tilewright::tile {

struct Schedule {
  int threads = 0;          // CUDA: threads per program (a multiple of 32); CPU: unused
  int threads_per_row = 0;  // CUDA: threads that share one tile row; threads for 1-D tiles
  int vector_bytes = 0;     // widest single access
  int unroll = 1;           // CPU: independent vector chains in flight; CUDA: independent accesses per thread
  int cluster = 1;          // CUDA: programs that share one tile row through distributed shared memory
  int stages = 1;           // pipelined loops: blocks in flight; CPU: 2 fetches the next program's rows ahead
  int programs_per_sm =
      0;  // CUDA: resident programs the register budget is cut for; 0 lets the compiler choose
  bool streaming_stores = false;  // stores bypass the caches
  bool keep_in_registers = true;  // CUDA: values used again stay in registers instead of being read again
  bool persistent = false;        // a program walks over several grid cells
  friend bool operator==(const Schedule&, const Schedule&) = default;
};
std::string to_string(
    const Schedule& schedule);  // "threads=256 vector_bytes=16 …", only what differs from the default

}  // namespace tilewright::tile
