// What a kernel under one schedule asks of a multiprocessor, counted from its plan: the
// inputs of the time model.
#pragma once

#include "backends/cuda/plan/plan.h"

#include <tilewright/tile/target.h>

namespace tilewright::cuda {

// Programs along one grid axis: many where arguments decide.
double programs_of(const tile::GridAxis& axis);
// Programs of a kernel's grid.
double programs_of(const tile::Kernel& kernel);

// Counts that no schedule changes.
struct KernelWork {
  double programs = 1;
  double streamed_bytes = 0;  // a program; read or written once
  double read_bytes = 0;      // of these, read
  double cached_bytes = 0;    // a program; the same for many programs (weights)
  double instructions = 0;    // a program, per-element arithmetic of all its elements
  double multiply_adds = 0;   // a program, of products by element loops
  double exchanges = 0;       // barriers a program waits at
  double scanned = 0;         // elements of a program that are scanned down the columns of a tile
  double sector_bytes = 0;    // streamed_bytes in whole sectors of the cache
  double memory_bytes = 0;    // streamed_bytes as memory moves them: short rows of tall strips cost more
  bool loops = false;         // there is a loop inside
  double rounds = 0;          // of loops: each waits for memory anew,
  double loop_lines = 0;      // but for no more cache lines than its loads' views have
};
// `cache_bytes`: of the last-level cache, which finds again what several programs read.
KernelWork kernel_work(const tile::Kernel& kernel, const printer::LoopPlan& plan, Index cache_bytes);

struct Occupancy {
  int registers = 0;       // a thread, estimated
  int blocks = 0;          // resident on a multiprocessor
  double bytes_ahead = 0;  // a thread: loads issued before the first is waited for
  bool staged = false;     // these loads are those of a later program
  double elements = 0;     // a thread, of the tile it holds most of
  double line_visits = 0;  // cycles of the load and store unit for a block: cache lines that its warps touch
  double waste = 1;        // places for elements over elements: threads and vectors beyond the tile's end
  bool narrow = false;     // a thread moves elements of at most two bytes one by one
};
Occupancy occupancy(const tile::Kernel& kernel, const CudaPlan& plan);

// Microseconds for the whole launch.
double predicted_us(const KernelWork& work, const Occupancy& occupancy, const CudaPlan& plan,
                    const tile::Target& target);

}  // namespace tilewright::cuda
