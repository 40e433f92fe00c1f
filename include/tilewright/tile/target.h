// Target: what lowering and the cost model may know about a device: numbers that a backend fills in, so that
// neither includes a backend, nor asks what a device is called. A backend's fitted numbers stand in one
// table, each with its source (backends/*/machine/fitted.h).
#pragma once

#include <tilewright/base/shape.h>
#include <tilewright/tile/matrix_unit.h>
#include <tilewright/tile/program_cuts.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)
namespace tilewright::tile {

struct Kernel;
struct Target;
// Microseconds that a launch is predicted to take under the schedule a backend would choose for it; infinite
// where it has none.
using KernelTime = double (*)(const Kernel&, const Target&);

// For the runtime and tools: passes do not look at it (scripts/check_machine_names.py).
enum class TargetKind { reference, cpu, cuda };
// The name's end of a file with a kernel's source: C++, CUDA C++, or the tile IR that the reference runs.
constexpr std::string_view source_ending(TargetKind kind) {
  return kind == TargetKind::cpu ? ".cpp" : kind == TargetKind::cuda ? ".cu" : ".tile";
}

struct Target {
  TargetKind kind = TargetKind::cpu;
  std::string name;       // "AMD EPYC, avx512", "NVIDIA H200"
  std::string arch;       // "amx", "avx512", "avx2", "baseline"; "sm_90a", "sm_80"
  int units = 1;          // cores or multiprocessors
  int vector_bytes = 64;  // widest single access of a lane
  // Bytes that the address of every buffer is a multiple of, beside an element's size: what kernels rely on.
  Index buffer_align = 256;  // kBufferAlign (plan.h), which views may promise
  Index sector_bytes = 64;   // what memory gives at least
  Index row_bytes =
      256 * 1024;  // f32 bytes of one row that a program can keep on chip (L2 share; registers of a cluster)
  Index shared_bytes = 0;  // memory on chip that the threads of a program share; 0: they have none
  int max_threads = 1;     // per program
  int max_cluster = 1;     // blocks that can share a program's row, or a tile's rows
  Index memory_bytes = 0;  // that the machine has; 0: not known
  double memory_bytes_per_s = 20e9;
  double cache_bytes_per_s = 200e9;  // last-level cache
  Index cache_bytes = 16 << 20;      // last-level cache
  // Caches that units have to themselves (second level of cores), all units together; 0: they have none.
  double unit_cache_bytes_per_s = 0;
  Index unit_cache_bytes = 0;
  double beside_bytes = 0;    // that pass the caches meanwhile, where a kernel is priced as a part of more
  double flops_per_s = 50e9;  // f32 outside matrix units
  double matrix_flops_per_s = 0;  // 16-bit operands on matrix units; 0: it has none
  bool tf32 = false;              // f32 operands of products may lose all but 10 bits of mantissa
  bool any_size = false;          // kernels are to serve other sizes, too: tiles do not follow this one's
  bool ends_anywhere = false;     // a loop over a tile ends where a view does, at no cost
  double launch_s = 1e-6;         // one kernel after another
  // Bytes of arguments that a launch may be given: launches of one kernel whose arguments fit run as one,
  // where they do not wait for one another. 0: each runs by itself.
  Index together_bytes = 0;
  double round_wait_s = 0;      // of a loop that has no product to hide memory's latency behind, each round
  double burst_share = 1;       // of memory_bytes_per_s, where all programs write at once and compute nothing
  double program_start_us = 0;  // of a product: its first block, its results, and its sums' way on chip
  double alone_share = 1;       // what one unit alone reads comes faster, as if it had this much less to read
  KernelTime predicted_us = nullptr;  // what fusion decides by; none: bytes and FLOPs at the rates above
  double prediction_error = 0;        // of predicted_us: what it must differ by to be believed against floors
  double recomputed_bytes = 1 << 16;  // a stored value of fewer stays in a cache until it is read (chosen)
  RowCuts rows;
  VectorDots vector_dots;
  std::optional<PackedDots> packed_dots;  // takes the place of vector_dots
  B2bBlocks b2b_blocks;
  std::vector<MatrixUnit> matrix_units;  // the first that takes a product multiplies it
  // Whether the threads of a program share a tile: what each of them has is combined once, after a loop. A
  // program of one thread adds the blocks of a loop up one after another.
  bool shares_tiles() const { return max_threads > 1; }
  // Whether so many bytes, beside as many others, stay in the units' own caches or in the last-level one
  // (chosen, not measured), and the rate of the nearest that holds them, or memory's.
  bool unit_caches_hold(double bytes) const { return 2 * bytes < static_cast<double>(unit_cache_bytes); }
  bool cache_holds(double bytes) const { return 2 * bytes < static_cast<double>(cache_bytes); }
  double bytes_per_s(double bytes) const {
    const double passing = std::max(bytes, beside_bytes);
    if (unit_caches_hold(passing)) return unit_cache_bytes_per_s;
    return cache_holds(passing) ? cache_bytes_per_s : memory_bytes_per_s;
  }
  // Elements of so many bytes that the threads of one block keep in registers: narrow ones are computed in
  // f32.
  Index held_elements(Index element_bytes) const {
    return row_bytes / std::max<Index>(element_bytes, 4) / std::max(max_cluster, 1);
  }
  friend bool operator==(const Target&, const Target&) = default;
};

}  // namespace tilewright::tile
#pragma GCC visibility pop
