// Copies of n bytes by several means: for their correctness and, timed, for the machine's ceiling.
#include "tw_cuda/async.cuh"
#include "tw_cuda/memory.cuh"

using tw::Cache;
using tw::u64;
using tw::u8;

// kUnroll accesses of 16 bytes a thread in flight; a block covers blockDim · kUnroll · 16 bytes at a time. n
// is a multiple of 16.
template <Cache kLoad, int kUnroll>
__device__ void copy(const u8* from, u8* to, u64 n) {
  const u64 chunk = u64(blockDim.x) * 16 * kUnroll;
  for (u64 base = blockIdx.x * chunk; base < n; base += gridDim.x * chunk) {
    const u64 at = base + threadIdx.x * 16;
    tw::Vec<u8, 16> held[kUnroll];
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const u64 here = at + u64(i) * blockDim.x * 16;
      if (here < n) held[i] = tw::load<16, kLoad>(from + here);
    }
#pragma unroll
    for (int i = 0; i < kUnroll; ++i) {
      const u64 here = at + u64(i) * blockDim.x * 16;
      if (here < n) tw::store(to + here, held[i]);
    }
  }
}

#define COPY(NAME, LOAD, UNROLL)                                                          \
  extern "C" __global__ void __launch_bounds__(512) NAME(const u8* from, u8* to, u64 n) { \
    copy<Cache::LOAD, UNROLL>(from, to, n);                                               \
  }
COPY(copy_normal_4, normal, 4)
COPY(copy_in_turn_4, in_turn, 4)
COPY(copy_constant_2, constant, 2)
COPY(copy_constant_4, constant, 4)
COPY(copy_constant_8, constant, 8)

// Rows of 32 bytes as 16 + 8 + 4 + 2 and one byte of a pair; the last byte of each row stays as it was.
extern "C" __global__ void copy_widths(const u8* from, u8* to, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const u8* row = from + i * 32;
  u8* out = to + i * 32;
  if ((i + 1) * 32 > n) return;
  tw::store(out, tw::load<16>(row));
  tw::store(out + 16, tw::load<8>(row + 16));
  tw::store(out + 24, tw::load<4>(row + 24));
  tw::store(out + 28, tw::load<2>(row + 28));
  tw::store_first(1, out + 30, tw::load_first<2>(1, row + 30, u8(0)));
}

#if __CUDA_ARCH__ >= 900
// One thread moves whole pieces through shared memory with the copy engine, kStages in flight. n is a
// multiple of kPiece.
constexpr int kPiece = 16384;
constexpr int kStages = 4;
extern "C" __global__ void __launch_bounds__(32) copy_bulk(const u8* from, u8* to, u64 n) {
  extern __shared__ __align__(128) u8 pieces[];
  __shared__ tw::Barrier full[kStages];
  if (threadIdx.x != 0) return;
  for (int s = 0; s < kStages; ++s) tw::barrier_init(full[s], 1);
  tw::barrier_init_done();
  const u64 count = n / kPiece;
  const u64 mine = blockIdx.x < count ? (count - blockIdx.x + gridDim.x - 1) / gridDim.x : 0;
  const auto piece_at = [&](u64 i) { return (blockIdx.x + i * gridDim.x) * kPiece; };
  const auto load = [&](u64 i) {
    const int stage = int(i % kStages);
    tw::barrier_expect(full[stage], kPiece);
    tw::bulk_load(pieces + stage * kPiece, from + piece_at(i), kPiece, full[stage]);
  };
  constexpr int kAhead = kStages - 1;
  for (u64 i = 0; i < kAhead && i < mine; ++i) load(i);
  for (u64 i = 0; i < mine; ++i) {
    const int stage = int(i % kStages);
    tw::barrier_wait(full[stage], u64(i / kStages) & 1);
    tw::bulk_store(to + piece_at(i), pieces + stage * kPiece, kPiece);
    tw::bulk_commit();
    if (i + kAhead < mine) {
      tw::bulk_wait_read<1>();  // the stage that is loaded next was stored one round ago
      load(i + kAhead);
    }
  }
  tw::bulk_wait_read<0>();
}
#endif

// cp.async through shared memory: 16 bytes a thread and stage.
extern "C" __global__ void __launch_bounds__(256) copy_async(const u8* from, u8* to, u64 n) {
  __shared__ __align__(16) u8 staged[256 * 16];
  const u64 step = u64(gridDim.x) * 256 * 16;
  for (u64 at = (u64(blockIdx.x) * 256 + threadIdx.x) * 16; at < n; at += step) {
    tw::copy_async16(staged + threadIdx.x * 16, from + at);
    tw::copy_async_commit();
    tw::copy_async_wait<0>();
    const auto held = *reinterpret_cast<const tw::Vec<tw::u32, 4>*>(staged + threadIdx.x * 16);
    tw::store(reinterpret_cast<tw::u32*>(to + at), held);
  }
}
