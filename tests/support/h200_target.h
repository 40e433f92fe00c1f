// What the passes know of an H200, for tests of what they choose on one.
#pragma once

#include <tilewright/tile/target.h>

#include "backends/cuda/machine/fitted.h"

namespace tilewright::test {

inline tile::Target h200_target() {
  tile::Target t;
  t.kind = tile::TargetKind::cuda;
  t.arch = "sm_90a";
  t.units = 132;
  t.vector_bytes = 16;
  t.max_threads = 1024;
  t.max_cluster = 8;
  t.row_bytes = Index{1024} * 32 * 8 * 4;
  t.memory_bytes_per_s = 4.25e12;
  t.cache_bytes_per_s = 8.5e12;
  t.cache_bytes = 50 << 20;
  t.flops_per_s = 57e12;
  t.matrix_flops_per_s = 920e12;
  t.launch_s = 2.5e-6;
  cuda::fill_fitted(t, {.major = 9, .minor = 0, .specific = true});
  return t;
}

}  // namespace tilewright::test
