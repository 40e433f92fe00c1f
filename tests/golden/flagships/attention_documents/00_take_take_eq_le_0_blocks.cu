// elements threads=512 threads_per_row=512; predicted 16.9 us
// take_take_eq_le_0_blocks: ids i64[16384] -> blocks i64[4,128]
// schedule: elements threads=512 threads_per_row=512
// tiles [1,128]: column (c*512 + t)*2 + v; 1 rows, 1 vectors of 2 a thread
// tiles [1,4096]: column (c*512 + t)*2 + v; 1 rows, 4 vectors of 2 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/convert.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(512) take_take_eq_le_0_blocks(const i64* __restrict__ ids, i64* __restrict__ blocks) {
  __shared__ i64 min_of_ids_parts[1][16];
  __shared__ i64 max_of_ids_parts[1][16];
  __shared__ i32 min_of_best_parts[1][16];
  __shared__ i32 max_of_best_parts[1][16];
  __shared__ i32 max_of_best_2_parts[1][16];
  __shared__ i32 max_of_best_3_parts[1][16];
  const int t = int(threadIdx.x);
  const i32 program_0 = i32(blockIdx.x);
  const i32 index = program_0 * 128;
  const i32 neg_index = -(index * -1 - 127);
  const i32 neg_index_2 = -(index + 1);
  wait_for_previous_kernel();

  Vec<i64, 2> ids_in;
  const i64* const ids_at = ids + index + t * 2;
  ids_in = load_if<2, Cache::constant>(t * 2 < 128, ids_at, i64(0));
  i64 min_of_ids = Min::identity<i64>();
  i64 max_of_ids = Max::identity<i64>();
  if (t * 2 < 128) {
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      min_of_ids = min(min_of_ids, ids_in.v[v]);
      max_of_ids = max(max_of_ids, ids_in.v[v]);
    }
  }
  reduce_lanes<Min, 32>(min_of_ids);
  reduce_lanes<Max, 32>(max_of_ids);
  put_parts(min_of_ids_parts, min_of_ids);
  put_parts(max_of_ids_parts, max_of_ids);
  __syncthreads();
  take_parts<Min>(min_of_ids, min_of_ids_parts);
  take_parts<Max>(max_of_ids, max_of_ids_parts);
  const bool or_ = min_of_ids > 72057594037927936ll || min_of_ids < -72057594037927936ll;
  const i64 masked_min_of_ids = or_ ? (-9223372036854775807ll - 1) : add(i64(0), mul(min_of_ids, i64(1)));
  const bool or_2 = max_of_ids > 72057594037927936ll || max_of_ids < -72057594037927936ll;
  const i64 neg_max_of_ids = neg(add(i64(0), mul(max_of_ids, i64(-1))));
  const i64 masked_max_of_ids = or_2 ? 9223372036854775807ll : neg_max_of_ids;
  const bool or_3 = max_of_ids > 72057594037927936ll || max_of_ids < -72057594037927936ll;
  const i64 neg_max_of_ids_2 = neg(add(i64(1), mul(max_of_ids, i64(-1))));
  const i64 masked_max_of_ids_2 = or_3 ? 9223372036854775807ll : neg_max_of_ids_2;
  const bool or_4 = min_of_ids > 72057594037927936ll || min_of_ids < -72057594037927936ll;
  const i64 masked_min_of_ids_2 = or_4 ? (-9223372036854775807ll - 1) : add(i64(1), mul(min_of_ids, i64(1)));

  Vec<i32, 2> best[4];
  Vec<i32, 2> best_2[4];
  Vec<i32, 2> best_3[4];
#pragma unroll
  for (int c = 0; c < 4; ++c) {
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      best[c].v[v] = 16384;
      best_2[c].v[v] = -1;
      best_3[c].v[v] = -1;
    }
  }

  for (i32 k = 0; k < 16384; k += 4096) {
    Vec<i64, 2> ids_in_2[4];
    const i64* const ids_at_2 = ids + k + t * 2;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      ids_in_2[c] = load<2, Cache::constant>(ids_at_2 + c * 1024);
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        const i32 column_index = k + ((c * 512 + t) * 2 + v);
        const bool and_ = (ids_in_2[c].v[v] >= masked_min_of_ids && ids_in_2[c].v[v] <= masked_max_of_ids) && 0 + column_index <= neg_index;
        const bool or_5 = (ids_in_2[c].v[v] <= masked_max_of_ids_2 || ids_in_2[c].v[v] >= masked_min_of_ids_2) || 0 + column_index * -1 <= neg_index_2;
        best[c].v[v] = and_ ? min(best[c].v[v], column_index) : best[c].v[v];
        best_2[c].v[v] = and_ ? max(best_2[c].v[v], column_index) : best_2[c].v[v];
        best_3[c].v[v] = !or_5 && column_index < 16384 ? max(best_3[c].v[v], column_index) : best_3[c].v[v];
      }
    }
  }
  const i32 index_2 = index / 128;

  i32 min_of_best = Min::identity<i32>();
  i32 max_of_best = Max::identity<i32>();
  i32 max_of_best_2 = Max::identity<i32>();
#pragma unroll
  for (int c = 0; c < 4; ++c) {
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      min_of_best = min(min_of_best, best[c].v[v]);
      max_of_best = max(max_of_best, best_2[c].v[v]);
      max_of_best_2 = max(max_of_best_2, best_3[c].v[v]);
    }
  }
  reduce_lanes<Min, 32>(min_of_best);
  reduce_lanes<Max, 32>(max_of_best);
  reduce_lanes<Max, 32>(max_of_best_2);
  put_parts(min_of_best_parts, min_of_best);
  put_parts(max_of_best_parts, max_of_best);
  put_parts(max_of_best_2_parts, max_of_best_2);
  __syncthreads();
  take_parts<Min>(min_of_best, min_of_best_parts);
  take_parts<Max>(max_of_best, max_of_best_parts);
  take_parts<Max>(max_of_best_2, max_of_best_2_parts);
  const i32 quotient = min_of_best / 128;
  const i32 min_of_best_i64 = quotient;
  if (threadIdx.x == 0) blocks[index_2] = cast<i64>(i64(min_of_best_i64));
  const i32 sum = add(max_of_best, 128);
  const i32 quotient_2 = sum / 128;
  const i32 max_of_best_i64 = quotient_2;
  if (threadIdx.x == 0) blocks[128 + index_2] = cast<i64>(i64(max_of_best_i64));

  Vec<i32, 2> best_4[4];
#pragma unroll
  for (int c = 0; c < 4; ++c) {
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      best_4[c].v[v] = -1;
    }
  }

  for (i32 k_2 = 0; k_2 < 16384; k_2 += 4096) {
    Vec<i64, 2> ids_in_2[4];
    const i64* const ids_at_2 = ids + k_2 + t * 2;
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      ids_in_2[c] = load<2, Cache::constant>(ids_at_2 + c * 1024);
    }
#pragma unroll
    for (int c = 0; c < 4; ++c) {
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        const i32 column_index = k_2 + ((c * 512 + t) * 2 + v);
        const bool or_5 = (ids_in_2[c].v[v] <= masked_max_of_ids_2 || ids_in_2[c].v[v] >= masked_min_of_ids_2) || 0 + column_index * -1 <= neg_index_2;
        best_4[c].v[v] = or_5 && column_index < max_of_best_2 ? max(best_4[c].v[v], column_index) : best_4[c].v[v];
      }
    }
  }
  const i32 sum_2 = add(max_of_best_2, 1);
  const i32 quotient_3 = sum_2 / 128;
  const i32 max_of_best_i64_2 = quotient_3;
  if (threadIdx.x == 0) blocks[384 + index_2] = cast<i64>(i64(max_of_best_i64_2));

  i32 max_of_best_3 = Max::identity<i32>();
#pragma unroll
  for (int c = 0; c < 4; ++c) {
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      max_of_best_3 = max(max_of_best_3, best_4[c].v[v]);
    }
  }
  reduce_lanes<Max, 32>(max_of_best_3);
  put_parts(max_of_best_3_parts, max_of_best_3);
  __syncthreads();
  take_parts<Max>(max_of_best_3, max_of_best_3_parts);
  const i32 sum_3 = add(max_of_best_3, 128);
  const i32 quotient_4 = sum_3 / 128;
  const i32 max_of_best_i64_3 = quotient_4;
  if (threadIdx.x == 0) blocks[256 + index_2] = cast<i64>(i64(max_of_best_i64_3));
}

}  // namespace tw
