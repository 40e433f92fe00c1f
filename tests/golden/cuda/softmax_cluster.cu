// softmax: x bf16[1024,65536] -> y bf16[1024,65536]
// schedule: elements threads=512 threads_per_row=512 cluster=4
// tiles [1,65536]: column (c*2048 + t)*8 + v; 1 rows, 4 vectors of 8 a thread
#include "tw_cuda/arith.cuh"
#include "tw_cuda/async.cuh"
#include "tw_cuda/cluster_exchange.cuh"
#include "tw_cuda/edge.cuh"
#include "tw_cuda/exchange.cuh"
#include "tw_cuda/extreme.cuh"
#include "tw_cuda/math_fast.cuh"
#include "tw_cuda/memory.cuh"

namespace tw {

extern "C" __global__ void __launch_bounds__(512) softmax(const bf16* __restrict__ x, bf16* __restrict__ y) {
  __shared__ f32 m_parts[1][64];
  __shared__ f32 s_parts[1][64];
  const int t = int(cluster_rank()) * 512 + int(threadIdx.x);
  const i32 program = i32(blockIdx.x) / 4;
  const i32 program_0 = program;
  cluster_arrive();  // every block of the cluster has started: waited for before the first exchange
  const i32 index = program_0 * 1;
  wait_for_previous_kernel();

  Vec<bf16, 8> x_in[4];
  const bf16* const x_at = x + index * 65536 + t * 8;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    x_in[c] = load<8, Cache::constant>(x_at + c * 16384);
  }
  f32 m = Max::identity<f32>();
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    m = max(m, max_of(x_in[c]));
  }
  reduce_lanes<Max, 32>(m);
  cluster_wait();
  put_parts_cluster<4>(m_parts, m);
  cluster_sync();
  take_parts<Max>(m, m_parts);

  Vec<f32, 8> e[4];
  f32 s = Sum::identity<f32>();
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    const Vec<f32, 8> x_in_f32 = to_f32(x_in[c]);
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      const f32 e_2 = fast::exp(x_in_f32.v[v] - m);
      s += e_2;
      e[c].v[v] = e_2;
    }
  }
  reduce_lanes<Sum, 32>(s);
  put_parts_cluster<4>(s_parts, s);
  cluster_sync();
  take_parts<Sum>(s, s_parts);
  const f32 quotient = fast::div(1.0f, s);

  bf16* const y_at = y + index * 65536 + t * 8;
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    Vec<f32, 8> y_out;
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      y_out.v[v] = e[c].v[v] * quotient;
    }
    store(y_at + c * 16384, from_f32<bf16>(y_out));
  }
}

}  // namespace tw
