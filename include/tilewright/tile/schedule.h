// Schedule: how a kernel is run, apart from what it means. A plain printable struct; any legal schedule gives
// the same result up to the stated rounding. Its kind says how the kernel's loops are fed, and holds the
// choices that only this kind has.
#pragma once

#include <tilewright/tile/libraries.h>

#include <string>
#include <string_view>
#include <tuple>
#include <variant>

#pragma GCC visibility push(default)
namespace tilewright::tile {

// What multiplies in a kernel's dots (CUDA).
enum class DotUnit {
  fma,         // the ordinary units, one product a thread and instruction
  mma,         // tensor cores, fed by the threads from shared memory that they fill themselves (sm_80)
  wgmma,       // tensor cores that read shared memory, which a warpgroup of its own fills by TMA (sm_90a)
  fma_blocks,  // the ordinary units, on blocks of f32 that the threads copy to shared memory ahead (sm_80)
};

// A field of a kind and its printed name: what is listed by fields() is printed.
template <typename Kind, typename T>
struct ScheduleField {
  std::string_view name;
  T Kind::* member;
};

// CPU: vector loops, shared out among the threads of a pool.
struct CpuLoops {
  int unroll = 1;                 // independent vector chains in flight
  bool fetch_ahead = false;       // the rows of the next program are prefetched
  bool streaming_stores = false;  // stores bypass the caches

  static constexpr std::string_view kName = "cpu";
  static constexpr DotUnit kUnit = DotUnit::fma;
  // What is printed behind the name, in this order.
  static constexpr auto fields() {
    return std::tuple(ScheduleField{"unroll", &CpuLoops::unroll},
                      ScheduleField{"fetch_ahead", &CpuLoops::fetch_ahead},
                      ScheduleField{"streaming_stores", &CpuLoops::streaming_stores});
  }
  friend bool operator==(const CpuLoops&, const CpuLoops&) = default;
};

// CUDA: element loops; a dot, if any, is a thread's own products.
struct ElementLoops {
  int threads_per_row = 0;  // that share one tile row; those of a block for tiles of one axis
  int cluster = 1;          // blocks that share, through distributed shared memory, a tile's row or, with
                            // threads_per_row below threads, the rows of a tile
  int stages = 1;           // programs whose rows are in shared memory or on their way to it; 1: none ahead
  int programs = 1;  // side by side in a block, of tiles of two axes whose columns a thread holds whole
  // 1: rows that lie one behind another come and leave through shared memory, as one run of bytes each tile.
  int through_shared = 0;

  static constexpr std::string_view kName = "elements";
  static constexpr DotUnit kUnit = DotUnit::fma;
  // What is printed behind the name, in this order.
  static constexpr auto fields() {
    return std::tuple(ScheduleField{"threads_per_row", &ElementLoops::threads_per_row},
                      ScheduleField{"cluster", &ElementLoops::cluster},
                      ScheduleField{"stages", &ElementLoops::stages},
                      ScheduleField{"programs", &ElementLoops::programs},
                      ScheduleField{"through_shared", &ElementLoops::through_shared});
  }
  friend bool operator==(const ElementLoops&, const ElementLoops&) = default;
};

// Fields of the kinds for dots, all of CUDA:
// - stages: blocks of each operand in shared memory, multiplied or on their way.
// - group_m: programs in groups of this many along the grid's second axis, which counts fastest inside a
//   group, so that neighbours in time read the same blocks; 0: the first axis counts fastest.
// - longest_first: the grid's second axis counts slowest, from that end where the programs of a triangle are
//   longest, and every other wave of programs is turned around.
// - store_stages: places in shared memory of each multiplying warpgroup, of 64 rows of 128 bytes, from
//   which the copy engine stores what it computed, two for each result at least; with three, a tile that the
//   result is computed with comes by them, too, where the copy engine can bring it. 0: the tile leaves from
//   registers.

// A loop of one dot on tensor cores, whose blocks all threads copy ahead (cp.async).
struct MmaDot {
  int stages = 2;
  int group_m = 0;

  static constexpr std::string_view kName = "mma_dot";
  static constexpr DotUnit kUnit = DotUnit::mma;
  // What is printed behind the name, in this order.
  static constexpr auto fields() {
    return std::tuple(ScheduleField{"stages", &MmaDot::stages}, ScheduleField{"group_m", &MmaDot::group_m});
  }
  friend bool operator==(const MmaDot&, const MmaDot&) = default;
};

// The same in f32 on the ordinary units.
struct FmaBlocks {
  int threads_per_row = 8;  // that share one row of the result's tile
  int stages = 2;
  int group_m = 0;
  int programs_per_sm = 0;  // resident programs the register budget is cut for; 0: the compiler chooses

  static constexpr std::string_view kName = "fma_blocks";
  static constexpr DotUnit kUnit = DotUnit::fma_blocks;
  // What is printed behind the name, in this order.
  static constexpr auto fields() {
    return std::tuple(ScheduleField{"threads_per_row", &FmaBlocks::threads_per_row},
                      ScheduleField{"stages", &FmaBlocks::stages},
                      ScheduleField{"group_m", &FmaBlocks::group_m},
                      ScheduleField{"programs_per_sm", &FmaBlocks::programs_per_sm});
  }
  friend bool operator==(const FmaBlocks&, const FmaBlocks&) = default;
};

// Back-to-back dots on tensor cores, whose blocks all threads copy ahead (cp.async).
struct MmaB2b {
  int stages = 1;
  int group_m = 0;
  bool longest_first = false;

  static constexpr std::string_view kName = "mma_b2b";
  static constexpr DotUnit kUnit = DotUnit::mma;
  // What is printed behind the name, in this order.
  static constexpr auto fields() {
    return std::tuple(ScheduleField{"stages", &MmaB2b::stages}, ScheduleField{"group_m", &MmaB2b::group_m},
                      ScheduleField{"longest_first", &MmaB2b::longest_first});
  }
  friend bool operator==(const MmaB2b&, const MmaB2b&) = default;
};

// A loop of one dot whose blocks a warpgroup of its own fetches (TMA), and all others multiply.
struct WgmmaDot {
  int stages = 2;
  int group_m = 0;
  int store_stages = 0;

  static constexpr std::string_view kName = "wgmma_dot";
  static constexpr DotUnit kUnit = DotUnit::wgmma;
  // What is printed behind the name, in this order.
  static constexpr auto fields() {
    return std::tuple(ScheduleField{"stages", &WgmmaDot::stages},
                      ScheduleField{"group_m", &WgmmaDot::group_m},
                      ScheduleField{"store_stages", &WgmmaDot::store_stages});
  }
  friend bool operator==(const WgmmaDot&, const WgmmaDot&) = default;
};

// The same, but each multiplying warpgroup has programs of its own, and their loops take turns: what follows
// one's loop runs under the other's.
struct WgmmaPingpong {
  int stages = 2;
  int group_m = 0;
  int store_stages = 0;

  static constexpr std::string_view kName = "wgmma_pingpong";
  static constexpr DotUnit kUnit = DotUnit::wgmma;
  // What is printed behind the name, in this order.
  static constexpr auto fields() {
    return std::tuple(ScheduleField{"stages", &WgmmaPingpong::stages},
                      ScheduleField{"group_m", &WgmmaPingpong::group_m},
                      ScheduleField{"store_stages", &WgmmaPingpong::store_stages});
  }
  friend bool operator==(const WgmmaPingpong&, const WgmmaPingpong&) = default;
};

// How the rounds of back-to-back dots follow each other.
enum class Rounds {
  apart,         // one ends before the next begins
  overlapped,    // intra-warpgroup overlap: the last product of a round and the first ones of the next are
                 // under way while the steps between them are computed
  fa3_pingpong,  // overlapped, and one warpgroup computes while the next hands over its products
};
std::string_view to_string(Rounds rounds);

// Back-to-back dots whose blocks a warpgroup of its own fetches (TMA).
struct WgmmaB2b {
  int stages = 2;
  int group_m = 0;
  bool longest_first = false;
  Rounds rounds = Rounds::apart;
  int store_stages = 0;

  static constexpr std::string_view kName = "wgmma_b2b";
  static constexpr DotUnit kUnit = DotUnit::wgmma;
  // What is printed behind the name, in this order.
  static constexpr auto fields() {
    return std::tuple(
        ScheduleField{"stages", &WgmmaB2b::stages}, ScheduleField{"group_m", &WgmmaB2b::group_m},
        ScheduleField{"longest_first", &WgmmaB2b::longest_first}, ScheduleField{"rounds", &WgmmaB2b::rounds},
        ScheduleField{"store_stages", &WgmmaB2b::store_stages});
  }
  friend bool operator==(const WgmmaB2b&, const WgmmaB2b&) = default;
};

// Scaled accumulation: a sum of what is computed of products, fetched likewise.
struct WgmmaScaled {
  int stages = 2;
  int group_m = 0;
  int cluster = 1;  // programs that get an operand's block by one multicast

  static constexpr std::string_view kName = "wgmma_scaled";
  static constexpr DotUnit kUnit = DotUnit::wgmma;
  // What is printed behind the name, in this order.
  static constexpr auto fields() {
    return std::tuple(ScheduleField{"stages", &WgmmaScaled::stages},
                      ScheduleField{"group_m", &WgmmaScaled::group_m},
                      ScheduleField{"cluster", &WgmmaScaled::cluster});
  }
  friend bool operator==(const WgmmaScaled&, const WgmmaScaled&) = default;
};

// No kernel of ours: a call of a vendor's library that computes all that the kernel does.
struct LibraryCall {
  std::string name;   // of the library, as its backend calls it: "cublaslt"
  int algorithm = 0;  // the library's own ranking of what it could run, its first choice first

  static constexpr std::string_view kName = "library";
  static constexpr DotUnit kUnit = DotUnit::fma;
  // What is printed behind the name, in this order.
  static constexpr auto fields() {
    return std::tuple(ScheduleField{"name", &LibraryCall::name},
                      ScheduleField{"algorithm", &LibraryCall::algorithm});
  }
  friend bool operator==(const LibraryCall&, const LibraryCall&) = default;
};

using ScheduleKind = std::variant<CpuLoops, ElementLoops, MmaDot, FmaBlocks, MmaB2b, WgmmaDot, WgmmaPingpong,
                                  WgmmaB2b, WgmmaScaled, LibraryCall>;

struct Schedule {
  int threads = 0;        // CUDA: of a block, those that compute (a multiple of 32); the CPU's pool decides
  int vector_bytes = 16;  // CUDA: widest single access
  ScheduleKind kind = {};
  friend bool operator==(const Schedule&, const Schedule&) = default;
};
// "wgmma_dot threads=256 stages=4 …": the kind, then what differs from the default.
std::string to_string(const Schedule& schedule);

// What multiplies in a kernel that runs by it, and whether it is a vendor's library that runs.
DotUnit dot_unit(const Schedule& schedule);
inline bool is_library_call(const Schedule& schedule) {
  return std::holds_alternative<LibraryCall>(schedule.kind);
}

}  // namespace tilewright::tile
#pragma GCC visibility pop
