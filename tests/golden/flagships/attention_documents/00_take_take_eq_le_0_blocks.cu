// threads=1024 threads_per_row=1024 vector_bytes=16; predicted 35.6 us
// take_take_eq_le_0_blocks: ids i64[16384] -> blocks i64[4,128]
// schedule: threads=1024 threads_per_row=1024 vector_bytes=16
// tiles [1,128]: column (c*1024 + t)*2 + v; 1 rows, 1 vectors of 2 a thread
// tiles [1,4096]: column (c*1024 + t)*2 + v; 1 rows, 2 vectors of 2 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/convert.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/memory.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(1024) take_take_eq_le_0_blocks(const i64* __restrict__ ids, i64* __restrict__ blocks) {
  __shared__ i64 v10_parts[1][32];
  __shared__ i64 v22_parts[1][32];
  __shared__ i32 v119_parts[1][32];
  __shared__ i32 v126_parts[1][32];
  __shared__ i32 v135_parts[1][32];
  __shared__ i32 v166_parts[1][32];
  const int t = int(threadIdx.x);
  const i32 program_0 = i32(blockIdx.x);
  const i32 v7 = program_0 * 128;
  const i32 v35 = v7 * (-1);
  const i32 v37 = v35 + (-127);
  const i32 v38 = -v37;
  const i32 v64 = v7 + 1;
  const i32 v65 = -v64;
  wait_for_previous_kernel();

  Vec<i64, 2> ids_in;
  const i64* const ids_at = ids + v7 + t * 2;
  ids_in = load_if<2, Cache::constant>(t * 2 < 128, ids_at, i64(0));
  i64 v10 = Min::identity<i64>();
  i64 v22 = Max::identity<i64>();
  if (t * 2 < 128) {
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      v10 = min(v10, ids_in.v[v]);
      v22 = max(v22, ids_in.v[v]);
    }
  }
  reduce_lanes<Min, 32>(v10);
  reduce_lanes<Max, 32>(v22);
  put_parts(v10_parts, v10);
  put_parts(v22_parts, v22);
  __syncthreads();
  take_parts<Min>(v10, v10_parts);
  take_parts<Max>(v22, v22_parts);
  const i64 v12 = mul(v10, i64(1));
  const i64 v13 = add(i64(0), v12);
  const bool v15 = v10 < (-72057594037927936ll);
  const bool v17 = v10 > 72057594037927936ll;
  const bool v18 = v17 || v15;
  const i64 v20 = v18 ? (-9223372036854775807ll - 1) : v13;
  const i64 v24 = mul(v22, i64(-1));
  const i64 v25 = add(i64(0), v24);
  const bool v27 = v22 < (-72057594037927936ll);
  const bool v29 = v22 > 72057594037927936ll;
  const bool v30 = v29 || v27;
  const i64 v31 = neg(v25);
  const i64 v33 = v30 ? 9223372036854775807ll : v31;
  const i64 v42 = mul(v22, i64(-1));
  const i64 v43 = add(i64(1), v42);
  const bool v45 = v22 < (-72057594037927936ll);
  const bool v47 = v22 > 72057594037927936ll;
  const bool v48 = v47 || v45;
  const i64 v49 = neg(v43);
  const i64 v51 = v48 ? 9223372036854775807ll : v49;
  const i64 v54 = mul(v10, i64(1));
  const i64 v55 = add(i64(1), v54);
  const bool v57 = v10 < (-72057594037927936ll);
  const bool v59 = v10 > 72057594037927936ll;
  const bool v60 = v59 || v57;
  const i64 v62 = v60 ? (-9223372036854775807ll - 1) : v55;

  Vec<i32, 2> v74[2];
  Vec<i32, 2> v75[2];
  Vec<i32, 2> v76[2];
#pragma unroll
  for (int c = 0; c < 2; ++c) {
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      v74[c].v[v] = 16384;
      v75[c].v[v] = -1;
      v76[c].v[v] = -1;
    }
  }

  for (i32 v73 = 0; v73 < 16384; v73 += 4096) {
    Vec<i64, 2> ids_in_2[2];
    const i64* const ids_at_2 = ids + v73 + t * 2;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      ids_in_2[c] = load<2, Cache::constant>(ids_at_2 + c * 2048);
    }
#pragma unroll
    for (int c = 0; c < 2; ++c) {
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        const i32 v79_2 = v73 + ((c * 1024 + t) * 2 + v);
        const bool v92_2 = ((ids_in_2[c].v[v] >= v20) && (ids_in_2[c].v[v] <= v33)) && ((0 + v79_2) <= v38);
        const bool v109_2 = ((ids_in_2[c].v[v] <= v51) || (ids_in_2[c].v[v] >= v62)) || ((0 + (v79_2 * (-1))) <= v65);
        v74[c].v[v] = v92_2 ? min(v74[c].v[v], v79_2) : v74[c].v[v];
        v75[c].v[v] = v92_2 ? max(v75[c].v[v], v79_2) : v75[c].v[v];
        v76[c].v[v] = ((!v109_2) && (v79_2 < 16384)) ? max(v76[c].v[v], v79_2) : v76[c].v[v];
      }
    }
  }
  const i32 v123 = v7 / 128;
  const i32 v132 = v7 / 128;

  i32 v119 = Min::identity<i32>();
  i32 v126 = Max::identity<i32>();
  i32 v135 = Max::identity<i32>();
#pragma unroll
  for (int c = 0; c < 2; ++c) {
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      v119 = min(v119, v74[c].v[v]);
      v126 = max(v126, v75[c].v[v]);
      v135 = max(v135, v76[c].v[v]);
    }
  }
  reduce_lanes<Min, 32>(v119);
  reduce_lanes<Max, 32>(v126);
  reduce_lanes<Max, 32>(v135);
  put_parts(v119_parts, v119);
  put_parts(v126_parts, v126);
  put_parts(v135_parts, v135);
  __syncthreads();
  take_parts<Min>(v119, v119_parts);
  take_parts<Max>(v126, v126_parts);
  take_parts<Max>(v135, v135_parts);
  const i32 v121 = v119 / 128;
  const i32 v124 = v121;
  if (threadIdx.x == 0) blocks[v123] = cast<i64>(i64(v124));
  const i32 v128 = add(v126, 128);
  const i32 v130 = v128 / 128;
  const i32 v133 = v130;
  if (threadIdx.x == 0) blocks[128 + v132] = cast<i64>(i64(v133));

  Vec<i32, 2> v141[2];
#pragma unroll
  for (int c = 0; c < 2; ++c) {
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      v141[c].v[v] = -1;
    }
  }

  for (i32 v140 = 0; v140 < 16384; v140 += 4096) {
    Vec<i64, 2> ids_in_3[2];
    const i64* const ids_at_3 = ids + v140 + t * 2;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      ids_in_3[c] = load<2, Cache::constant>(ids_at_3 + c * 2048);
    }
#pragma unroll
    for (int c = 0; c < 2; ++c) {
#pragma unroll
      for (int v = 0; v < 2; ++v) {
        const i32 v144_2 = v140 + ((c * 1024 + t) * 2 + v);
        const bool v161_2 = ((ids_in_3[c].v[v] <= v51) || (ids_in_3[c].v[v] >= v62)) || ((0 + (v144_2 * (-1))) <= v65);
        v141[c].v[v] = (v161_2 && (v144_2 < v135)) ? max(v141[c].v[v], v144_2) : v141[c].v[v];
      }
    }
  }
  const i32 v172 = v7 / 128;
  const i32 v176 = add(v135, 1);
  const i32 v178 = v176 / 128;
  const i32 v180 = v7 / 128;
  const i32 v181 = v178;
  if (threadIdx.x == 0) blocks[384 + v180] = cast<i64>(i64(v181));

  i32 v166 = Max::identity<i32>();
#pragma unroll
  for (int c = 0; c < 2; ++c) {
#pragma unroll
    for (int v = 0; v < 2; ++v) {
      v166 = max(v166, v141[c].v[v]);
    }
  }
  reduce_lanes<Max, 32>(v166);
  put_parts(v166_parts, v166);
  __syncthreads();
  take_parts<Max>(v166, v166_parts);
  const i32 v168 = add(v166, 128);
  const i32 v170 = v168 / 128;
  const i32 v173 = v170;
  if (threadIdx.x == 0) blocks[256 + v172] = cast<i64>(i64(v173));
}

}  // namespace tw
