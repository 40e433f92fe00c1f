// Schedule: how a kernel is run, apart from what it means. A plain printable struct; any legal schedule gives
// the same result up to the stated rounding.
#pragma once

#include <string>

namespace tilewright::tile {

// What multiplies in a loop of dots (CUDA).
enum class DotUnit : unsigned char {
  fma,         // the ordinary units, one product a thread and instruction
  mma,         // tensor cores, fed by the threads from shared memory that they fill themselves (sm_80)
  wgmma,       // tensor cores that read shared memory, which a warpgroup of its own fills by TMA (sm_90a)
  fma_blocks,  // the ordinary units, on blocks of f32 that the threads copy to shared memory ahead (sm_80)
};

struct Schedule {
  int threads = 0;          // CUDA: threads per program (a multiple of 32); CPU: unused
  int threads_per_row = 0;  // CUDA: threads that share one tile row; threads for 1-D tiles
  int vector_bytes = 0;     // widest single access
  int unroll = 1;           // CPU: independent vector chains in flight; CUDA: independent accesses per thread
  int cluster = 1;  // CUDA: blocks that share one tile row through distributed shared memory, or, with
                    // threads_per_row below threads, the rows of a tile; with dot=wgmma programs that
                    // get an operand's block by one multicast
  int stages = 1;   // pipelined loops: blocks in flight; CPU: 2 fetches the next program's rows ahead
  int programs_per_sm =
      0;  // CUDA: resident programs the register budget is cut for; 0 lets the compiler choose
  bool streaming_stores = false;  // stores bypass the caches
  bool keep_in_registers = true;  // CUDA: values used again stay in registers instead of being read again
  bool persistent = false;        // a program walks over several grid cells
  DotUnit dot = DotUnit::fma;     // wgmma: `threads` are those that multiply, one warpgroup more fetches
  int group_m =
      0;  // CUDA: programs in groups of this many along the grid's second axis, which counts fastest
          // inside a group_m: neighbours in time read the same blocks; 0: the first axis counts fastest
  bool intra_warpgroup_overlap =
      false;  // CUDA, back-to-back matmuls: the last product of a round and the first ones of the next
              // are under way while the steps between them are computed
  bool fa3_pingpong = false;  // … and while one warpgroup computes, the next hands over its products
  bool longest_first =
      false;  // CUDA: the grid's second axis counts slowest, from that end where the programs
              // of a triangle are longest, and every other wave of programs is turned around
  bool cutlass_pingpong =
      false;  // CUDA, dot=wgmma, one dot: each warpgroup that multiplies has programs of its own
              // and their loops take turns: what follows one's loop runs under the other's
  // CUDA, dot=wgmma: each multiplying warpgroup's places in shared memory, of 64 rows of 128 bytes,
  // from which the copy engine stores what they computed; 0: the tile leaves from registers.
  int tma_store_stages = 0;
  friend bool operator==(const Schedule&, const Schedule&) = default;
};
std::string to_string(
    const Schedule& schedule);  // "threads=256 vector_bytes=16 …", only what differs from the default

}  // namespace tilewright::tile
